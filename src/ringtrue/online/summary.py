"""What a shadow run has shown so far, in a few figures; of production beside itself (A/A) they are the noise floor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from ringtrue.store import ShadowRun


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
    """Queries with both latencies."""
    control_p95_ms: float | None
    treatment_p95_ms: float | None

    @property
    def failure_share(self) -> float | None:
        return self.failures / self.queries if self.queries else None

    @property
    def p95_increase(self) -> float | None:
        """How much longer the candidate's slow answers take, as a share: 0.2 is 20 %."""
        if not self.control_p95_ms or self.treatment_p95_ms is None:
            return None
        return self.treatment_p95_ms / self.control_p95_ms - 1


def summarise(rows: Sequence[ShadowRun]) -> ShadowSummary:
    """Return what these rows show.

    >>> found = summarise([ShadowRun("q1", "f", "2026-01-01T00:00:00+00:00", ("a",), ("a",), order_differences=0)])
    >>> found.queries, found.changed, found.mrr_delta
    (1, 0.0, None)
    """
    answered = [row for row in rows if row.error is None]
    rr = [row.mrr_delta for row in answered if row.mrr_delta is not None]
    # A search that failed took its time, too, but how much longer it would have taken nobody knows; failures are counted apart.
    timed = [
        (row.control_latency_ms, row.treatment_latency_ms)
        for row in answered
        if row.control_latency_ms is not None and row.treatment_latency_ms is not None
    ]
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
    )


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
