"""Overview: what is well, what needs attention, and how quality goes; for a new user the way to the first verdict."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from ringtrue import charts
from ringtrue.answers import HealthPart, LogStep
from ringtrue.report import page_number as number
from ringtrue.retrieve import run_title, shorten
from ringtrue.service.auth import PageReader
from ringtrue.service.context import Here
from ringtrue.service.pages.filters import signs
from ringtrue.service.pages.shell import page
from ringtrue.service.work.finding_runs import figure, kept_among
from ringtrue.service.work.overview import LOG_HOURS, MEASURES, Glance, Series, glance

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
ALERT_HELPS = (
    ("Review", "/backlog"), ("Log", "/queries"), ("Shadow", "/tests"), ("Flag", "/flags"), ("Test", "/tests"),
    ("Store", "/settings"),
)  # fmt: skip


@router.get("/")
def overview(request: Request, service: Here, caller: PageReader, series: Annotated[int, Query(ge=0, le=99)] = 0) -> Response:
    """Show everything at a glance."""
    found = glance(service, caller)
    chosen = found.series[min(series, len(found.series) - 1)] if found.series else None
    values: dict[str, Any] = {
        "found": found, "verdict": verdict(found), "parts": [_part(part) for part in _ordered(found)],
        "alerts": [(one, _helps(one.rule.name)) for one in found.slow.alerts], "chosen": chosen,
        "tiles": [] if chosen is None else [_tile(chosen, name) for name in MEASURES],
        "measured": "" if chosen is None else f"{shorten(chosen.retriever)[:60]} on {chosen.last.golden or 'an unknown set'}",
        "trends": [] if chosen is None else [(name, _trend(chosen, name)) for name in MEASURES],
        "series": [(place, one) for place, one in enumerate(found.series[:8])],
        "volume": _volume(found.slow.volume, service.now()),
        "searches": sum(bucket.searches for bucket in found.slow.volume), "hours": LOG_HOURS,
        "short": shorten, "called": run_title, "names": kept_among(service, caller, found.runs),
        "done": [name for name, over in found.steps.items() if over],
    }  # fmt: skip
    return page(request, caller, "overview.html.jinja", **values)


def verdict(found: Glance) -> tuple[str, str]:
    """Return tone and sentence of the whole.

    What is wrong comes first; what is not known is no good news, either.
    """
    wrong = [NAMES.get(part.name, part.name).lower() for part in found.attention]
    alarms = len(found.firing)
    if wrong or alarms:
        said = [f"{', '.join(wrong)}"] if wrong else []
        said += [f"{alarms} firing alert{'s' if alarms != 1 else ''}"] if alarms else []
        return "bad", f"Needs attention: {' and '.join(said)}."
    if found.slow.health.state == "unknown":
        unknown = [NAMES.get(part.name, part.name).lower() for part in found.slow.health.parts if part.state == "unknown"]
        return "unsure", f"Nothing is wrong that can be seen; not known: {', '.join(unknown)}."
    return "good", "All is well."


def _ordered(found: Glance) -> list[HealthPart]:
    order = {"wrong": 0, "unknown": 1, "ok": 2, "unused": 3}
    return sorted(found.slow.health.parts, key=lambda part: order[part.state])


def _part(part: HealthPart) -> dict[str, Any]:
    figures, href = part.figures, HELPS.get(part.name, "/settings")
    if part.name in ("evaluation", "gate") and isinstance(figures.get("run_id"), str):
        href = f"/runs/{quote(figures['run_id'])}"
    elif part.name in ("evaluation", "gate"):
        href = "/evaluate"
    moments = {"evaluation": "at", "gate": "at", "log": "last_at"}
    said, at = part.says, figures.get(moments.get(part.name, ""))
    if isinstance(at, str):
        # The moment is told as how long ago it was.
        said = said.partition(f" at {at}")[0].partition(", the last")[0]
    if part.name == "evaluation" and figures.get("metrics"):
        measure, value = next(iter(figures["metrics"].items()))
        ends = figures["intervals"].get(measure)
        said = f"{measure} {number(value)}" + (f" ({number(ends[0])} to {number(ends[1])})" if ends else "")
        gaps = f", {figures['unanswered']} queries not answered" if figures.get("unanswered") else ""
        said += f"{_of(figures)}{gaps}, measured"
    if part.name == "gate" and figures.get("verdict"):
        said = f"{figures['verdict']}{_of(figures)}"
    elif part.name == "gate" and figures.get("retriever"):
        said = f"{_of(figures).removeprefix(': ')} was not judged by a baseline yet"
    if part.name == "backlog" and isinstance(figures.get("oldest_pending_at"), str):
        said, at = said.partition(", the oldest")[0] + ", the oldest since", figures["oldest_pending_at"]
    return {
        "name": NAMES.get(part.name, part.name), "mark": MARKS[part.state], "state": part.state, "says": signs(said), "at": at,
        "href": href,
    }  # fmt: skip


def _of(figures: Mapping[str, Any]) -> str:
    """Return which search on which golden set figures are about."""
    golden = figures.get("golden")
    return f": {shorten(figures.get('retriever'))[:60]}" + (f" on {golden}" if golden else "")


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
