"""Overview: what is well, what needs attention, and how quality goes; for a new user the way to the first verdict.

Health, alerts and the log are read at most every few seconds for a project; runs and first steps are always as they are now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from ringtrue import charts
from ringtrue.answers import HealthPart, LogStep
from ringtrue.retrieve import run_title, shorten
from ringtrue.rollout import Health, health_of
from ringtrue.rollout.health import SearchOnSet, production_pair, set_name
from ringtrue.service.auth import Access, PageReader
from ringtrue.service.errors import clean
from ringtrue.service.library import AT_A_TIME, figure, kept_among
from ringtrue.service.pages.shell import page

if TYPE_CHECKING:
    from ringtrue.answers import AlertRule, LogStep
    from ringtrue.store import StoredResult

router = APIRouter(include_in_schema=False)
HELPS = {
    "schema": "/settings", "log": "/queries", "losses": "/queries", "evaluation": "/runs", "gate": "/runs?gate=fail",
    "constitutional": "/runs", "backlog": "/backlog", "shadow": "/tests", "tests": "/tests", "rollout": "/flags",
    "index": "/settings",
}  # fmt: skip
"""The page that helps with a part of the health."""
NAMES = {
    "schema": "Store", "log": "Query log", "losses": "Lost events", "evaluation": "Evaluation", "gate": "Gate",
    "constitutional": "Must-have items", "backlog": "Review", "shadow": "Shadow", "tests": "Tests", "rollout": "Flags",
    "index": "Index",
}  # fmt: skip
MARKS = {
    "ok": ("good", "✓", "OK"), "wrong": ("bad", "✕", "Needs attention"), "unknown": ("unsure", "—", "Not known"),
    "unused": ("plain", "○", "Not used"),
}  # fmt: skip
ORDER = {"wrong": 0, "unknown": 1, "ok": 2, "unused": 3}
ALERT_HELPS = (
    ("Review", "/backlog"), ("Log", "/queries"), ("Shadow", "/tests"), ("Flag", "/flags"), ("Test", "/tests"),
    ("Store", "/settings"),
)  # fmt: skip


@router.get("/")
def overview(request: Request, access: PageReader, series: Annotated[int, Query(ge=0, le=99)] = 0) -> Response:
    """Show everything at a glance."""
    found = glance(access)
    chosen = found.series[min(series, len(found.series) - 1)] if found.series else None
    parts = sorted(found.slow.health.parts, key=lambda part: ORDER[part.state])
    values: dict[str, Any] = {
        "found": found, "verdict": verdict(found), "parts": list(map(_part, parts)),
        "alerts": [(one, _helps(one.name)) for one in found.slow.alerts], "chosen": chosen,
        "tiles": [] if chosen is None else [_tile(chosen, name) for name in MEASURES],
        "measured": "" if chosen is None else f"{shorten(chosen.retriever)[:60]} on {chosen.last.golden or 'an unknown set'}",
        "trends": [] if chosen is None else [(name, _trend(chosen, name)) for name in MEASURES],
        "series": [(place, one) for place, one in enumerate(found.series[:8])],
        "volume": _volume(found.slow.volume, access.now()),
        "searches": sum(bucket.searches for bucket in found.slow.volume), "hours": LOG_HOURS,
        "short": shorten, "called": run_title, "names": kept_among(access, found.runs),
        "done": [name for name, over in found.steps.items() if over],
    }  # fmt: skip
    return page(request, "overview.html.jinja", **values)


def verdict(found: Glance) -> tuple[str, str]:
    """Return tone and sentence of the whole.

    What is wrong comes first; what is not known is not good news, either.
    """
    wrong = [NAMES.get(part.name, part.name).lower() for part in found.attention]
    alarms = len(found.firing)
    if wrong or alarms:
        said = [f"{', '.join(wrong)}"] if wrong else []
        said += [f"{alarms} firing alert{'s' if alarms != 1 else ''}"] if alarms else []
        return "bad", f"Needs attention: {' and '.join(said)}."
    if found.slow.health.state == "unknown":
        unknown = [NAMES.get(part.name, part.name).lower() for part in found.slow.health.parts if part.state == "unknown"]
        return "unsure", f"No problems found, but some parts are unknown: {', '.join(unknown)}."
    return "good", "All is well."


def _part(part: HealthPart) -> dict[str, Any]:
    href, run_id = HELPS.get(part.name, "/settings"), part.figures.get("run_id")
    if part.name in ("evaluation", "gate"):
        href = f"/runs/{quote(run_id)}" if isinstance(run_id, str) else "/evaluate"
    name = NAMES.get(part.name, part.name)
    return {"name": name, "mark": MARKS[part.state], "state": part.state, "says": part.says, "href": href}


def _helps(rule: str) -> str:
    return next((href for word, href in ALERT_HELPS if word.lower() in rule.lower()), "/runs")


def _tile(series: Series, measure: str) -> dict[str, Any]:
    row = series.last
    # On this version of the set only: after a change of the questions, a difference is not the search's.
    known = [point for one in series.rows if one.golden == row.golden and (point := figure(one, measure)) is not None]
    # A line through one evaluation would say that nothing changed, where nothing is known.
    plot = charts.sparkline(known, label=f"{measure} of the last {len(known)} evaluations") if len(known) > 1 else ""
    return {
        "name": measure, "value": figure(row, measure), "before": known[-2] if len(known) > 1 else None,
        "ends": row.intervals.get(measure), "plot": plot, "run_id": row.run_id,
    }  # fmt: skip


def _trend(series: Series, measure: str) -> Any:
    points = []
    for row in series.rows:
        low, high = row.intervals.get(measure, (None, None))
        value = figure(row, measure)
        judged = f", gate: {row.gate}" if row.gate else ""
        said = "" if value is None else f"{row.created_at[:10]}: {value:.3f} on {row.golden}{judged}"
        points.append(
            charts.Point(
                datetime.fromisoformat(row.created_at).timestamp(), value, low, high,
                title=said, href=f"/runs/{quote(row.run_id)}", kind=row.golden or "",
            )
        )  # fmt: skip
    label = f"{measure} of {shorten(series.retriever)} on {series.golden}, every evaluation"
    return charts.trend(points, label=label, height=170)


def _volume(buckets: tuple[LogStep, ...], now: datetime) -> Any:
    """Return the searches of every hour; an hour in which nothing was logged had none."""
    counts = {bucket.at[:13]: bucket.searches for bucket in buckets}
    hours = [now - timedelta(hours=back) for back in range(LOG_HOURS - 1, -1, -1)]
    values = [float(counts.get(hour.strftime("%Y-%m-%dT%H"), 0)) for hour in hours]
    return charts.sparkline(values, label=f"Searches of each of the last {LOG_HOURS} hours", height=48) if any(values) else ""


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
    alerts: tuple[AlertRule, ...]
    """Those that fire or are about to."""
    watched: int
    """Rules that have something to look at."""
    volume: tuple[LogStep, ...]
    production: SearchOnSet | None
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
    def firing(self) -> list[AlertRule]:
        return [one for one in self.slow.alerts if one.state == "firing"]


def glance(access: Access) -> Glance:
    """Return everything at a glance."""
    store, project = access.store, access.project
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
    slow = access.service.figures.get(("overview", access.project, newest), partial(_read, access))
    return Glance(
        steps=steps,
        slow=slow,
        series=_series([row for row in ours if not row.uploaded], slow.production),
        runs=tuple(rows[:LAST_RUNS]),
        first_run=ours[0] if ours else None,
        baseline=baselines[0].name if baselines else None,
    )


def _series(rows: list[StoredResult], production: SearchOnSet | None) -> tuple[Series, ...]:
    found: dict[tuple[str, str], list[StoredResult]] = {}
    for row in rows:
        found.setdefault((row.retriever or "", set_name(row.golden)), []).append(row)
    series = [Series(*key, tuple(reversed(some[:POINTS]))) for key, some in found.items()]
    return tuple(sorted(series, key=lambda one: production is None or not production.has(one.last)))


def _read(access: Access) -> Slow:
    store, project, now = access.store, access.project, access.now()
    rules = access.service.telemetry.alerts(project)
    hour = now.replace(minute=0, second=0, microsecond=0)
    return Slow(
        health=_health(access, now),
        alerts=tuple(one for one in rules if one.state in ("firing", "pending")),
        watched=sum(one.state != "no data" for one in rules),
        volume=tuple(store.log_volume(project=project, since=hour - timedelta(hours=LOG_HOURS - 1), until=now, step="hour")),
        production=production_pair(store, project=project, served=access.service.settings.retriever),
    )


def _health(access: Access, now: datetime) -> Health:
    """Return the health of the project, without the memory, whose figures take a look at every event of a month."""
    folder, served = access.service.settings.folder, access.service.settings.retriever
    found = health_of(access.store, now=now, project=access.project, index=folder, retriever=served, served=served)
    return Health(tuple(replace(part, says=clean(part.says)) for part in found.parts))
