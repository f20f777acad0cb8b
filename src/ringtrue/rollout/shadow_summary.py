"""What a shadow run has shown so far, in a few figures; of production beside itself (A/A) they are the noise floor.

What is missing of its sample counts too: queries that the candidate was to answer, and of which no row is stored. Under load
the queue of a shadow is full just when searches are slow, so that what is missing is no random part.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from ringtrue.answers import ShadowSource, ShadowSummary
from ringtrue.store import DEFAULT_PROJECT, AuditEntry, ShadowRun

if TYPE_CHECKING:
    from ringtrue.store import Store

ENOUGH_TIMED = 100
"""So many queries of live systems that were timed, and replays are not looked at."""
ON_GOLDEN = "golden:"
"""How the id of a query begins that was asked on a golden set."""


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
    before, after = (percentile([pair[side] for pair in timed], 95) for side in (0, 1))
    live = sum(source_of(row) in ("live", None) for row in rows)
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
        control_p95_ms=before,
        treatment_p95_ms=after,
        timed_source=source,
        live=live,
        missing=missing,
        missing_share=missing / (live + missing) if live + missing else None,
        failure_share=(len(rows) - len(answered)) / len(rows) if rows else None,
        p95_increase=after / before - 1 if before and after is not None else None,
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


MISSING = "shadow.missing"
"""What the audit trail calls it; every entry tells of what came since the one before."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Sampled queries without a stored row, by what became of them."""

    dropped: int = 0
    """Nobody was free and the queue was full, or the candidate kept hanging, or there was no time left at the end."""
    unsaved: int = 0
    """The store did not take the row."""
    unreadable: int = 0
    """Production's answer is no list that could be compared."""

    @property
    def total(self) -> int:
        return self.dropped + self.unsaved + self.unreadable


def subject_of(feature_id: str) -> str:
    """Return under whose name the audit trail keeps it: not the flag's own, whose entries say who changed it."""
    return f"shadow:{feature_id}"


def missing_entry(feature_id: str, at: str, counts: Mapping[str, int], *, project: str = DEFAULT_PROJECT) -> AuditEntry:
    """Return the entry that tells of further missing queries."""
    return AuditEntry(at, "shadow", MISSING, subject_of(feature_id), dict(counts), project)


def missing_of(
    store: Store, feature_id: str, *, since: str | datetime | None = None, project: str = DEFAULT_PROJECT
) -> Missing:
    """Return what the audit trail says is missing of a feature's shadow, from a time on.

    A living shadow tells within minutes, one that is closed at once; one that was killed may have left some untold.
    """
    found: Counter[str] = Counter()
    for entry in store.audit(project=project, subject=subject_of(feature_id), what=MISSING, since=since):
        found.update({name: int(entry.detail.get(name, 0)) for name in ("dropped", "unsaved", "unreadable")})
    return Missing(found["dropped"], found["unsaved"], found["unreadable"])
