"""Everything at a glance: is it well, how does quality go, what waits, and what a new user does next.

Health, alerts and the log are read at most every few seconds for a project; runs and first steps are always as they are now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal

from ringtrue.answers import HealthPart
from ringtrue.rollout import Health, health_of
from ringtrue.rollout.health import Pair, production_pair, set_name
from ringtrue.service.errors import clean
from ringtrue.service.work.finding_runs import AT_A_TIME

if TYPE_CHECKING:
    from ringtrue.answers import LogStep
    from ringtrue.service.alerts import RuleState
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service
    from ringtrue.store import StoredResult

LOG_HOURS = 48
MEASURES = ("nDCG@10", "R@10", "RR")
"""The measures of the trends."""
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
    volume: tuple[LogStep, ...]
    production: Pair | None
    """The search and the golden set that the first page is about."""


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


@dataclass(frozen=True)
class Glance:
    """What the first page shows."""

    steps: Mapping[Step, bool]
    """What a new user does first, and whether it was done."""
    slow: Slow
    series: tuple[Series, ...]
    """By retriever and golden set: production's first, then the one evaluated last."""
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
    def attention(self) -> list[HealthPart]:
        return [part for part in self.slow.health.parts if part.state == "wrong"]

    @property
    def firing(self) -> list[RuleState]:
        return [one for one in self.slow.alerts if one.state == "firing"]


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
        # A run with differences was gated by a baseline, though it may be a file of the repository.
        "baseline": bool(baselines) or any(row.gate is not None and row.deltas for row in ours),
        "verdict": gated is not None,
    }
    newest = f"{rows[0].run_id if rows else ''} {max((one.created_at for one in baselines), default='')}"
    slow = _slow(service, caller, newest)
    return Glance(
        steps=steps,
        slow=slow,
        series=_series([row for row in ours if not row.uploaded], slow.production),
        runs=tuple(rows[:LAST_RUNS]),
        first_run=ours[0] if ours else None,
        baseline=baselines[0].name if baselines else None,
    )


def _series(rows: list[StoredResult], production: Pair | None) -> tuple[Series, ...]:
    found: dict[tuple[str, str], list[StoredResult]] = {}
    for row in rows:
        found.setdefault((row.retriever or "", set_name(row.golden)), []).append(row)
    series = [Series(*key, tuple(reversed(some[:POINTS]))) for key, some in found.items()]
    return tuple(sorted(series, key=lambda one: production is None or not production.has(one.last)))


def _slow(service: Service, caller: Caller, newest: str) -> Slow:
    """Return what is slow to read, as it was a moment ago where nothing was evaluated or made a baseline since."""
    return service.figures.get(("overview", caller.project, newest), partial(_read, service, caller))


def _read(service: Service, caller: Caller) -> Slow:
    store, project, now = service.of(caller), caller.project, service.now()
    rules = service.telemetry.alerts(project)
    hour = now.replace(minute=0, second=0, microsecond=0)
    return Slow(
        health=_health(service, caller, now),
        alerts=tuple(one for one in rules if one.state in ("firing", "pending")),
        watched=sum(one.state != "no data" for one in rules),
        volume=tuple(store.log_volume(project=project, since=hour - timedelta(hours=LOG_HOURS - 1), until=now, step="hour")),
        production=production_pair(store, project=project, served=service.settings.retriever),
    )


def _health(service: Service, caller: Caller, now: datetime) -> Health:
    """Return the health of the project, without the memory, whose figures take a look at every event of a month."""
    folder, served = service.settings.folder, service.settings.retriever
    found = health_of(service.of(caller), now=now, project=caller.project, index=folder, retriever=served, served=served)
    return Health(tuple(replace(part, says=clean(part.says)) for part in found.parts))
