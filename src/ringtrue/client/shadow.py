"""Candidates that answer beside production without anybody seeing it: ``/v1/shadow``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ringtrue.client.reading import read
from ringtrue.client.wire import Wire, given, segment


@dataclass(frozen=True, slots=True)
class ShadowSummary:
    """What the runs of a candidate have shown; None where there is nothing to take a figure from."""

    queries: int
    failures: int
    changed: float | None
    """Share of answers that differ in any place."""
    top_changed: float | None
    overlap: float | None
    tau: float | None
    judged: int
    mrr_delta: float | None
    """Candidate − production, over judged queries."""
    mrr_spread: float | None
    ndcg_delta: float | None
    timed: int
    control_p95_ms: float | None
    treatment_p95_ms: float | None
    timed_source: str | None
    live: int
    missing: int
    missing_share: float | None
    failure_share: float | None
    p95_increase: float | None


@dataclass(frozen=True, slots=True)
class ShadowFeature:
    """A feature that runs in the shadow."""

    feature: str
    shadow: bool
    """Whether its candidate runs now."""
    rollout: float
    state: str
    summary: ShadowSummary


@dataclass(frozen=True, slots=True)
class ShadowRun:
    """One query, answered by production and by the candidate."""

    query_id: str
    created_at: str
    control_result_ids: tuple[str, ...]
    treatment_result_ids: tuple[str, ...]
    rank_correlation: float | None
    set_overlap: float | None
    top_result_changed: bool | None
    order_differences: int | None
    mrr_delta: float | None
    ndcg_delta: float | None
    control_latency_ms: float | None
    treatment_latency_ms: float | None
    error: str | None
    candidate: str
    source: str | None


@dataclass(frozen=True, slots=True)
class ShadowFeatureRuns(ShadowFeature):
    """A feature that runs in the shadow, with its newest runs."""

    runs: tuple[ShadowRun, ...]


@dataclass(frozen=True, slots=True)
class ShadowRecorded:
    """What became of runs that were sent; a query counts once for a candidate of a feature."""

    accepted: int
    stored: int


class Shadow:
    """The features of the project that run or ran in the shadow."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def list(self) -> tuple[ShadowFeature, ...]:
        """Return the features with what their shadow has shown."""
        return read(tuple[ShadowFeature, ...], self._wire.get("/v1/shadow"))

    def get(self, feature: str, *, limit: int | None = None) -> ShadowFeatureRuns:
        """Return what the shadow of a feature has shown, and its newest runs; raises MissingInput."""
        return self._wire.get_as(ShadowFeatureRuns, f"/v1/shadow/{segment(feature, 'feature')}", limit=limit)

    def record(self, feature: str, runs: Iterable[Mapping[str, Any]]) -> ShadowRecorded:
        """Record results of a candidate that runs elsewhere, 1,000 at most, and return what became of them.

        One has ``query_id`` and ``control_result_ids`` with ``treatment_result_ids``, or with ``error``; and may have
        ``control_latency_ms``, ``treatment_latency_ms``, ``candidate``, ``source`` and ``created_at``.
        """
        body = {"runs": [given(one) for one in runs]}
        return self._wire.write_as(ShadowRecorded, "POST", f"/v1/shadow/{segment(feature, 'feature')}/runs", body)
