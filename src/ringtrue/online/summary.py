"""What a shadow run has shown so far, in a few figures; of production beside itself (A/A) they are the noise floor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from ringtrue.answers import ShadowSource
from ringtrue.store import ShadowRun

ENOUGH_TIMED = 100
"""So many queries of live systems that were timed, and replays are not looked at."""
ON_GOLDEN = "golden:"
"""How the id of a query begins that was asked on a golden set."""


@dataclass(frozen=True, slots=True)
class ShadowSummary:
    """Figures over the queries that a candidate answered beside production; None where there is nothing to take them from."""

    queries: int
    failures: int
    """Queries to which the candidate gave no answer."""
    changed: float | None
    """Share of answers that differ in any place."""
    top_changed: float | None
    overlap: float | None
    """Mean Jaccard overlap."""
    tau: float | None
    """Mean rank correlation, where it exists."""
    judged: int
    mrr_delta: float | None
    """Mean difference in reciprocal rank, candidate − production, over judged queries."""
    mrr_spread: float | None
    """Standard deviation of that difference from query to query."""
    ndcg_delta: float | None
    timed: int
    """Queries with both latencies, of the one source that these are taken from."""
    control_p95_ms: float | None
    treatment_p95_ms: float | None
    timed_source: ShadowSource | None = None
    """Where they were timed: 'live' where that is enough, else 'log' or 'golden'; None where nobody said."""
    live: int = 0
    """Queries of live systems, and those from before that was stored."""
    missing: int = 0
    """Sampled queries of live systems of which nothing is stored (``missing_of``)."""

    @property
    def missing_share(self) -> float | None:
        """The part of the live sample that is missing; under load that is no random part."""
        return self.missing / (self.live + self.missing) if self.live + self.missing else None

    @property
    def failure_share(self) -> float | None:
        return self.failures / self.queries if self.queries else None

    @property
    def p95_increase(self) -> float | None:
        """How much longer the candidate's slow answers take, as a share: 0.2 is 20 %."""
        if not self.control_p95_ms or self.treatment_p95_ms is None:
            return None
        return self.treatment_p95_ms / self.control_p95_ms - 1


def summarise(rows: Sequence[ShadowRun], *, missing: int = 0, enough_timed: int = ENOUGH_TIMED) -> ShadowSummary:
    """Return what these rows show; ``missing`` is how many are not among them that should be.

    Latencies are those of one source: what a replay takes in another process says nothing about a live system. Those of live
    systems come first, where there are ``enough_timed``; else the source with the most.

    >>> found = summarise([ShadowRun("q1", "2026-01-01T00:00:00+00:00", ("a",), ("a",), order_differences=0, feature_id="f")])
    >>> found.queries, found.changed, found.mrr_delta
    (1, 0.0, None)
    """
    answered = [row for row in rows if row.error is None]
    rr = [row.mrr_delta for row in answered if row.mrr_delta is not None]
    # A search that failed took its time, too, but how much longer it would have taken nobody knows; failures are counted apart.
    source, timed = _of_one_source(answered, enough_timed)
    return ShadowSummary(
        queries=len(rows),
        failures=len(rows) - len(answered),
        changed=_mean([float(row.order_differences > 0) for row in answered if row.order_differences is not None]),
        top_changed=_mean([float(row.top_result_changed) for row in answered if row.top_result_changed is not None]),
        overlap=_mean([row.set_overlap for row in answered if row.set_overlap is not None]),
        tau=_mean([row.rank_correlation for row in answered if row.rank_correlation is not None]),
        judged=len(rr),
        mrr_delta=_mean(rr),
        mrr_spread=stdev(rr) if len(rr) > 1 else None,
        ndcg_delta=_mean([row.ndcg_delta for row in answered if row.ndcg_delta is not None]),
        timed=len(timed),
        control_p95_ms=percentile([pair[0] for pair in timed], 95),
        treatment_p95_ms=percentile([pair[1] for pair in timed], 95),
        timed_source=source,
        live=sum(source_of(row) in ("live", None) for row in rows),
        missing=missing,
    )


def source_of(row: ShadowRun) -> ShadowSource | None:
    """Return where a row comes from; those from before this was stored say it where they are of a golden set."""
    return "golden" if row.source is None and row.query_id.startswith(ON_GOLDEN) else row.source


def _of_one_source(rows: Sequence[ShadowRun], enough: int) -> tuple[ShadowSource | None, list[tuple[float, float]]]:
    timed: dict[ShadowSource | None, list[tuple[float, float]]] = {}
    for row in rows:
        if row.control_latency_ms is not None and row.treatment_latency_ms is not None:
            timed.setdefault(source_of(row), []).append((row.control_latency_ms, row.treatment_latency_ms))
    if len(timed.get("live", ())) >= enough:
        return "live", timed["live"]
    return max(timed.items(), key=lambda item: (len(item[1]), item[0] == "live"), default=(None, []))


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return a percentile, linear between neighbours as NumPy's; None of nothing.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 50)
    2.5
    """
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
