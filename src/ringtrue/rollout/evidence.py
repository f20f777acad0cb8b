"""What is known about a feature when its rollout is decided: from the golden corpus, the shadow, the test and live traffic.

The shadow of production beside itself (A/A) is the noise floor. What is missing of its sample counts too: queries that the
candidate was to answer, and of which no row is stored. Under load the queue of a shadow is full just when searches are slow, so
that what is missing is not a random part.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Literal

import numpy as np

from ringtrue.answers import ShadowSource, ShadowSummary
from ringtrue.stats import ranking_difference
from ringtrue.store import DEFAULT_PROJECT, ABTest, AuditEntry, Flag, LoggedQuery, ShadowRun, StoredResult, timestamp

if TYPE_CHECKING:
    from ringtrue.store import Store


NEWEST = 20_000
"""So many of the newest rows are looked at, or as many as min_samples needs at the present percentage."""
MOST = 200_000
LOOKED_AT = 50
"""Newest evaluations of the project that show whether it measures constitutional documents."""
ON = (True, "on", "treatment")
"""How a logged query says that the feature answered it."""
SINCE = "candidate_since"
"""The key of a flag's metadata that says since when its candidate is what it is; what is older counts for nothing."""
LAST_CONTROL = "last_control"
"""The key under which the figures of those without the feature are kept, when there are soon none of them left."""


@dataclass(frozen=True, slots=True)
class Side:
    """Live searches of a stage, with the feature or without."""

    queries: int
    degraded: int
    """Those that failed, fell back or ran in degraded mode."""
    p95_ms: float | None
    latencies: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything a decision rests on; None if there is nothing."""

    golden: StoredResult | None = None
    """The candidate on the golden corpus, newest result."""
    control: StoredResult | None = None
    """Production on the same."""
    shadow: ShadowSummary = field(default_factory=lambda: summarise([]))
    test: ABTest | None = None
    test_is_older: bool = False
    """The test began before the candidate was changed: it is about another one."""
    on: Side | None = None
    off: Side | None = None
    gate: str | None = None
    """pass, fail or undecided: the feature's newest gate."""
    constitutional: bool = False
    """One of the newest evaluations measured whether constitutional documents surface."""
    breaches: tuple[str, ...] = ()
    """What a watch outside Ringtrue says is wrong."""


def gather(store: Store, flag: Flag, *, now: datetime, breaches: Sequence[str] = ()) -> Evidence:
    """Return what the store knows about a flag's feature, of the candidate as it is now and of the present stage."""
    since = flag.metadata.get(SINCE)
    results = store.results(project=flag.project, feature_id=flag.name, since=since, limit=200)
    golden = next((one for one in results if one.run_type == "shadow" and one.control_run_id is not None), None)
    control = next((one for one in results if golden is not None and one.run_id == golden.control_run_id), None)
    test = store.test(flag.name, project=flag.project)
    older = test is not None and since is not None and timestamp(test.started_at) < timestamp(since)
    on, off = _sides(store, flag, now=now)
    return Evidence(
        golden=golden,
        control=control,
        shadow=shadow_of(store, flag),
        test=None if older else test,
        test_is_older=older,
        on=on,
        off=off,
        gate=next((one.gate for one in results if one.gate is not None), None),
        constitutional=any(
            name.startswith("Constitutional")
            for one in (*results, *store.results(project=flag.project, limit=LOOKED_AT))
            for name in one.metrics
        ),
        breaches=tuple(breaches),
    )


def shadowed(store: Store, *, project: str = DEFAULT_PROJECT) -> list[tuple[Flag, bool]]:
    """Return the flags, and after them one for each feature that has shadow runs and no flag; True for those in the store."""
    flags = store.flags(project=project)
    names = {flag.name for flag in flags}
    others = [name for name in store.shadow_features(project=project) if name not in names]
    return [*((flag, True) for flag in flags), *((Flag(name, project=project), False) for name in others)]


def shadow_of(store: Store, flag: Flag, *, scored: Callable[[list[ShadowRun]], list[ShadowRun]] = list) -> ShadowSummary:
    """Return what the shadow of a flag's candidate, as it is now, has shown, and how much of its sample is missing.

    ``scored`` may add scores to the rows first.
    """
    since = flag.metadata.get(SINCE)
    rows = store.shadow_runs(project=flag.project, feature_id=flag.name, since=since, limit=NEWEST, newest=True)
    # What is missing is counted over the time of the rows that are looked at.
    gone = missing_of(store, flag.name, since=rows[0].created_at if len(rows) == NEWEST else since, project=flag.project)
    return summarise(scored(rows), missing=gone.total(), enough_timed=flag.min_samples)


def _sides(store: Store, flag: Flag, *, now: datetime) -> tuple[Side | None, Side | None]:
    """Return the live searches of this stage with the feature and without; None before there is a stage."""
    if flag.rollout <= 0 or flag.stage_since is None:
        return None, None
    needed = math.ceil(2 * flag.min_samples * 100 / flag.rollout)
    rows = store.queries(
        project=flag.project, since=flag.stage_since, until=now, limit=min(MOST, max(NEWEST, needed)), newest=True
    )
    on, off = (
        side([row for row in rows if flag.name in row.flags and (row.flags[flag.name] in ON) is has]) for has in (True, False)
    )
    if flag.rollout < 100:
        return on, off
    # Nobody is left without the feature. Those who were last are kept with the flag since the step to everybody; if a person
    # set the percentage by hand, those of the log before it stand in.
    kept = flag.metadata.get(LAST_CONTROL)
    if kept is not None and kept.get("until", flag.stage_since) == flag.stage_since:
        return on, Side(int(kept["queries"]), int(kept["degraded"]), kept["p95_ms"])
    rows = store.queries(project=flag.project, until=flag.stage_since, limit=NEWEST, newest=True)
    found = side([row for row in rows if flag.name in row.flags and row.flags[flag.name] not in ON])
    return on, found if found.queries else off


def side(rows: Sequence[LoggedQuery]) -> Side:
    """Return the figures of these searches."""
    taken = tuple(row.total_latency_ms for row in rows if row.total_latency_ms is not None)
    return Side(
        queries=len(rows),
        degraded=sum(row.degraded or row.fallback is not None for row in rows),
        p95_ms=percentile(taken, 95),
        latencies=taken,
    )


@dataclass(frozen=True, slots=True)
class Scored:
    """How good one list is for one judged query."""

    rr: float
    ndcg: float


Feed = Callable[[str, Scored, Scored], object]
"""Hears of a judged question: its id (``question_id``), production's scores, the candidate's."""


def both(control: Scored | None, treatment: Scored | None) -> tuple[Scored, Scored] | None:
    """Return the scores of both sides; None unless both are known."""
    return None if control is None or treatment is None else (control, treatment)


def compared(
    row: ShadowRun,
    *,
    k: int,
    scores: tuple[Scored, Scored] | None = None,
    keep: Literal["lists", "difference"] = "lists",
) -> ShadowRun:
    """Return a row with its figures of rank difference and, if both sides are scored, the differences in quality."""
    control, treatment = row.control_result_ids, row.treatment_result_ids
    rr, ndcg = (None, None) if scores is None else ((scores[0].rr, scores[1].rr), (scores[0].ndcg, scores[1].ndcg))
    found = ranking_difference(control, treatment, k=k, rr=rr, ndcg=ndcg)
    if keep == "difference":
        both = {*control} & {*treatment}
        control, treatment = (tuple(one for one in ids if one not in both) for ids in (control, treatment))
    return replace(
        row,
        control_result_ids=control,
        treatment_result_ids=treatment,
        rank_correlation=None if math.isnan(found.tau) else found.tau,
        set_overlap=None if math.isnan(found.overlap) else found.overlap,
        top_result_changed=found.top1_changed,
        order_differences=found.order_differences,
        mrr_delta=found.rr_delta,
        ndcg_delta=found.ndcg_delta,
    )


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
        changed=_mean(None if row.order_differences is None else row.order_differences > 0 for row in answered),
        top_changed=_mean(row.top_result_changed for row in answered),
        overlap=_mean(row.set_overlap for row in answered),
        tau=_mean(row.rank_correlation for row in answered),
        judged=len(rr),
        mrr_delta=_mean(rr),
        mrr_spread=stdev(rr) if len(rr) > 1 else None,
        ndcg_delta=_mean(row.ndcg_delta for row in answered),
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
    live = timed.get("live", [])
    most: ShadowSource | None = max(timed, key=lambda source: (len(timed[source]), source == "live"), default=None)
    return ("live", live) if len(live) >= enough else (most, timed.get(most, []))


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return a percentile, linear between neighbours; None of nothing.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 50)
    2.5
    """
    return float(np.percentile(values, percent)) if len(values) else None


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the known values; None if none is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


STOPPED = "shadow.stopped"
"""What the audit trail calls the end of a live shadow that has no flag."""


def is_stopped(store: Store, feature_id: str, *, project: str = DEFAULT_PROJECT) -> bool:
    """Return whether somebody stopped a feature's live shadow; a flag that was set since then says more."""
    return bool(store.audit(project=project, subject=subject_of(feature_id), what=STOPPED, limit=1))


MISSING = "shadow.missing"
"""What the audit trail calls it; every entry tells of what came since the one before."""


def subject_of(feature_id: str) -> str:
    """Return under whose name the audit trail keeps it: not the flag's own, whose entries say who changed it."""
    return f"shadow:{feature_id}"


def missing_entry(feature_id: str, at: str, counts: Mapping[str, int], *, project: str = DEFAULT_PROJECT) -> AuditEntry:
    """Return the entry that tells of further missing queries."""
    return AuditEntry(at, "shadow", MISSING, subject_of(feature_id), dict(counts), project)


def missing_of(
    store: Store, feature_id: str, *, since: str | datetime | None = None, project: str = DEFAULT_PROJECT
) -> Counter[str]:
    """Return what the audit trail says is missing of a feature's shadow, from a time on, by what became of it.

    ``dropped``: nobody was free and the queue was full, the candidate kept hanging, or there was no time left at the end;
    ``unsaved``: the store did not take the row; ``unreadable``: production's answer is not a list that can be compared. A live
    shadow tells within minutes, one that is closed at once; one that was killed may have left some untold.
    """
    found: Counter[str] = Counter()
    for entry in store.audit(project=project, subject=subject_of(feature_id), what=MISSING, since=since):
        found.update(entry.detail)
    return found
