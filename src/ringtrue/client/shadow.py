"""Candidates that answer beside production without anybody seeing it: ``/v1/shadow``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ringtrue.answers import ShadowFeature, ShadowFeatureRuns, ShadowRecorded
from ringtrue.client.reading import read
from ringtrue.client.wire import Wire, given, segment


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
