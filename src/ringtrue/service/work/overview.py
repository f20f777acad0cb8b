"""Everything at a glance: is it well, how does quality go, what waits, and what a new user does next.

Health, alerts and the log are read at most every few seconds for a project; runs and first steps are always as they are now.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from ringtrue.errors import RingtrueError
from ringtrue.online import Health, Part, health_of
from ringtrue.service.errors import clean
from ringtrue.service.gauges import label_value
from ringtrue.service.history import Trend, trend
from ringtrue.service.work.finding_runs import AT_A_TIME, figure, set_name

if TYPE_CHECKING:
    from ringtrue.service.alerts import RuleState
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service
    from ringtrue.store import LogBucket, StoredResult

FRESH_S = 5.0
"""How long what is slow to read is shown as it was."""
LOG_HOURS = 48
HISTORY = timedelta(days=7)
MEASURES: Mapping[str, tuple[str, dict[str, str]]] = {
    "nDCG@10": ("ringtrue_retrieval_ndcg_at_k", {"k": "10"}),
    "R@10": ("ringtrue_retrieval_recall_at_k", {"k": "10"}),
    "RR": ("ringtrue_retrieval_mrr", {}),
}
"""The measures of the trends, and the gauges that remember them."""
POINTS = 30
LAST_RUNS = 6
Step = Literal["golden", "evaluate", "baseline", "verdict"]


@dataclass(frozen=True)
class Slow:
    """What takes long to read."""

    health: Health
    alerts: tuple[RuleState, ...]
    """Those that fire or are about to."""
    watched: int
    """Rules that have something to look at."""
    volume: tuple[LogBucket, ...]
    history: Mapping[str, Trend]


@dataclass(frozen=True)
class Series:
    """The evaluations of one retriever on one golden set, the oldest first."""

    retriever: str
    golden: str
    rows: tuple[StoredResult, ...]

    @property
    def last(self) -> StoredResult:
        return self.rows[-1]

    @property
    def gated(self) -> list[StoredResult]:
        return [row for row in self.rows if row.gate is not None]

    def before_last(self, measure: str) -> float | None:
        """Return the value before the last one; None where there is none."""
        known = [value for row in self.rows[:-1] if (value := figure(row, measure)) is not None]
        return known[-1] if known else None


@dataclass(frozen=True)
class Glance:
    """What the first page shows."""

    steps: Mapping[Step, bool]
    """What a new user does first, and whether it was done."""
    slow: Slow
    series: tuple[Series, ...]
    """By retriever and golden set, the one evaluated last first."""
    runs: tuple[StoredResult, ...]
    first_run: StoredResult | None = field(default=None)
    """The newest run that could be kept as a baseline."""
    baseline: str | None = None

    @property
    def begun(self) -> bool:
        """True once every first step was done."""
        return all(self.steps.values())

    @property
    def empty(self) -> bool:
        """True for a store in which nothing happened yet."""
        return not self.runs and not any(bucket.searches for bucket in self.slow.volume) and not self.steps["golden"]

    @property
    def attention(self) -> list[Part]:
        return [part for part in self.slow.health.parts if part.state == "wrong"]

    @property
    def firing(self) -> list[RuleState]:
        return [one for one in self.slow.alerts if one.state == "firing"]


_KNOWN: WeakKeyDictionary[Any, dict[str, tuple[float, str, Slow]]] = WeakKeyDictionary()
_LOCK = threading.Lock()


def glance(service: Service, caller: Caller) -> Glance:
    """Return everything at a glance."""
    store, project = service.of(caller), caller.project
    rows = store.results(project=project, limit=AT_A_TIME)
    ours = [row for row in rows if row.feature_id is None and row.run_type in ("full", "regression")]
    baselines = store.baselines(project=project)
    gated = next((row for row in ours if row.gate is not None), None)
    steps: dict[Step, bool] = {
        "golden": bool(ours) or bool(store.golden_sets(project=project)),
        "evaluate": bool(ours),
        "baseline": bool(baselines),
        "verdict": gated is not None,
    }
    series = _series(ours)
    return Glance(
        steps=steps,
        slow=_slow(service, caller, rows[0].run_id if rows else "", series[0] if series else None),
        series=series,
        runs=tuple(rows[:LAST_RUNS]),
        first_run=ours[0] if ours else None,
        baseline=baselines[0].name if baselines else None,
    )


def _series(rows: list[StoredResult]) -> tuple[Series, ...]:
    found: dict[tuple[str, str], list[StoredResult]] = {}
    for row in rows:
        found.setdefault((row.retriever or "", set_name(row.golden)), []).append(row)
    return tuple(Series(*key, tuple(reversed(some[:POINTS]))) for key, some in found.items())


def _slow(service: Service, caller: Caller, newest: str, series: Series | None) -> Slow:
    """Return what is slow to read, as it was a moment ago where nothing was evaluated since."""
    with _LOCK:
        known = _KNOWN.setdefault(service, {})
    kept = known.get(caller.project)
    if kept is not None and kept[1] == newest and time.monotonic() - kept[0] < FRESH_S:
        return kept[2]
    found = _read(service, caller, series)
    known[caller.project] = (time.monotonic(), newest, found)
    return found


def _read(service: Service, caller: Caller, series: Series | None) -> Slow:
    store, project, now = service.of(caller), caller.project, service.now()
    rules = service.telemetry.alerts(project)
    hour = now.replace(minute=0, second=0, microsecond=0)
    return Slow(
        health=_health(service, caller, now),
        alerts=tuple(one for one in rules if one.state in ("firing", "pending")),
        watched=sum(one.state != "no data" for one in rules),
        volume=tuple(store.log_volume(project=project, since=hour - timedelta(hours=LOG_HOURS - 1), until=now, step="hour")),
        history={} if series is None else _history(service, caller, series, now),
    )


def _health(service: Service, caller: Caller, now: datetime) -> Health:
    """Return the health of the project, without the memory, whose figures take a look at every event of a month."""
    settings = service.settings
    found = health_of(service.of(caller), now=now, project=caller.project, index=settings.folder, retriever=settings.retriever)
    return Health(tuple(replace(part, says=clean(part.says)) for part in found.parts))


def _history(service: Service, caller: Caller, series: Series, now: datetime) -> dict[str, Trend]:
    labels = {"retriever": label_value(series.retriever), "golden": label_value(series.last.golden or ""), "slice": "all"}
    found = {}
    for measure, (gauge, cut) in MEASURES.items():
        try:
            found[measure] = trend(service.of(caller), caller.project, gauge, {**labels, **cut}, now - HISTORY, most=POINTS * 2)
        except RingtrueError:  # without it the page still shows what was evaluated
            continue
    return found
