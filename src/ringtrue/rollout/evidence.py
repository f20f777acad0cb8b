"""What is known about a feature when its rollout is decided: from the golden corpus, the shadow, the test and live traffic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ringtrue.answers import ShadowSummary
from ringtrue.rollout.shadow_summary import missing_of, percentile, summarise
from ringtrue.store import DEFAULT_PROJECT, ABTest, Flag, LoggedQuery, StoredResult, timestamp

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
NOTHING = summarise([])


@dataclass(frozen=True, slots=True)
class Side:
    """Live searches of a stage, with the feature or without."""

    queries: int
    degraded: int
    """Those that failed, fell back or ran in degraded mode."""
    p95_ms: float | None
    latencies: tuple[float, ...] = ()

    def as_metadata(self) -> dict[str, Any]:
        return {"queries": self.queries, "degraded": self.degraded, "p95_ms": self.p95_ms}


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything a decision rests on; None where there is nothing."""

    golden: StoredResult | None = None
    """The candidate on the golden corpus, newest result."""
    control: StoredResult | None = None
    """Production on the same."""
    shadow: ShadowSummary = NOTHING
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


def shadow_of(store: Store, flag: Flag) -> ShadowSummary:
    """Return what the shadow of a flag's candidate, as it is now, has shown, and how much of its sample is missing."""
    since = flag.metadata.get(SINCE)
    rows = store.shadow_runs(project=flag.project, feature_id=flag.name, since=since, limit=NEWEST, newest=True)
    # What is missing is counted over the time of the rows that are looked at.
    gone = missing_of(store, flag.name, since=rows[0].created_at if len(rows) == NEWEST else since, project=flag.project)
    return summarise(rows, missing=gone.total, enough_timed=flag.min_samples)


def _sides(store: Store, flag: Flag, *, now: datetime) -> tuple[Side | None, Side | None]:
    """Return the live searches of this stage with the feature and without; None before there is a stage."""
    if flag.rollout <= 0 or flag.stage_since is None:
        return None, None
    needed = math.ceil(2 * flag.min_samples * 100 / flag.rollout)
    rows = store.queries(
        project=flag.project, since=flag.stage_since, until=now, limit=min(MOST, max(NEWEST, needed)), newest=True
    )
    on = side([row for row in rows if row.flags.get(flag.name) in ON])
    off = side([row for row in rows if flag.name in row.flags and row.flags[flag.name] not in ON])
    return on, _last_control(store, flag) or off if flag.rollout >= 100 else off


def _last_control(store: Store, flag: Flag) -> Side | None:
    """Return those without the feature as they were last, when there are none left: kept with the flag, or from the log.

    What is kept is of the step to everybody; where a person set the percentage by hand, those of the log before it stand in.
    """
    kept = flag.metadata.get(LAST_CONTROL)
    if kept is not None and kept.get("until", flag.stage_since) == flag.stage_since:
        return Side(int(kept["queries"]), int(kept["degraded"]), kept["p95_ms"])
    rows = store.queries(project=flag.project, until=flag.stage_since, limit=NEWEST, newest=True)
    found = side([row for row in rows if flag.name in row.flags and row.flags[flag.name] not in ON])
    return found if found.queries else None


def side(rows: Sequence[LoggedQuery]) -> Side:
    """Return the figures of these searches."""
    taken = tuple(row.total_latency_ms for row in rows if row.total_latency_ms is not None)
    return Side(
        queries=len(rows),
        degraded=sum(row.degraded or row.fallback is not None for row in rows),
        p95_ms=percentile(taken, 95),
        latencies=taken,
    )
