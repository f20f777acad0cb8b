"""``/v1/alerts``, ``/v1/history`` and ``/metrics``: alert rules and gauges over time, and what Prometheus reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import Field

from ringtrue.answers import Alert, AlertRule, Alerts, History, Line, Point
from ringtrue.errors import InputError, nearest
from ringtrue.service.alerts import RuleState, rules_text
from ringtrue.service.auth import Reader
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS, Refused
from ringtrue.service.gauges import METRICS
from ringtrue.service.history import trends
from ringtrue.service.models import Moment, record_from
from ringtrue.store import timestamp

router = APIRouter(tags=["monitoring"], responses=ERRORS)
DAY = timedelta(days=1)
FIRST = datetime.min.replace(tzinfo=UTC)
MOST_DAYS = 400
MOST_LINES = 100
"""Series of one answer."""
_TIME: dict[str, Any] = {"format": "date-time"}
_YAML: dict[int | str, dict[str, Any]] = {
    200: {"description": "Rules for Prometheus", "content": {"application/yaml": {"schema": {"type": "object"}}}}
}


@router.get("/v1/alerts")
def alerts(service: Here, caller: Reader) -> Alerts:
    """Return the state of every alert rule, checked over the stored history of the project."""
    found = tuple(map(_rule_answer, service.telemetry.alerts(caller.project)))
    firing = sum(alert.state == "firing" for one in found for alert in one.alerts)
    return Alerts("rules over stored history", firing, found)


def _rule_answer(one: RuleState) -> AlertRule:
    rule = one.rule
    alerts = tuple(record_from(Alert, alert, since=timestamp(alert.since)) for alert in one.alerts)
    expression = " ".join(rule.text.split())
    return AlertRule(rule.name, one.state, rule.severity, expression, rule.lasts, alerts)


@router.get("/v1/alerts/rules", response_class=Response, responses=_YAML)
def rules(service: Here, caller: Reader) -> Response:
    """Return the alert rules as a file for Prometheus, with the metrics called as this service calls them."""
    return Response(rules_text(service.telemetry.names), media_type="application/yaml")


@router.get("/v1/history")
def history(
    service: Here,
    caller: Reader,
    series: Annotated[
        str,
        Query(
            min_length=1,
            max_length=100,
            description="The canonical name of a metric, whatever it is called outside.",
            examples=["ringtrue_retrieval_recall_at_k"],
            json_schema_extra={"enum": sorted(METRICS)},
        ),
    ],
    label: Annotated[
        list[Annotated[str, Field(max_length=300, pattern="^[^=]+=")]] | None,
        Query(max_length=10, description="NAME=VALUE that the series must have; repeatable.", examples=[["k=10"]]),
    ] = None,
    since: Annotated[
        Moment | None,
        Query(
            description=f"By default a day before `until`; at most {MOST_DAYS} days before it.",
            json_schema_extra=_TIME,
        ),
    ] = None,
    until: Annotated[Moment | None, Query(description="By default now.", json_schema_extra=_TIME)] = None,
    points: Annotated[
        int, Query(ge=1, le=2_000, description="Most points of a series; of more, the last of each stretch of time.")
    ] = 500,
) -> History:
    """Return the values of a gauge over time."""
    if series not in METRICS:
        raise Refused(
            422,
            "invalid_input",
            f"unknown metric '{series}'; did you mean {nearest(series, METRICS)}?",
            field="query.series",
        )
    end = _moment(until, "until") if until is not None else service.now()
    begin = _before(end, DAY) if since is None else max(_moment(since, "since"), _before(end, MOST_DAYS * DAY))
    found = trends(service.of(caller), caller.project, series, _labels(label or []), begin, end, most=points)
    lines = tuple(
        Line(dict(labels), tuple(Point(timestamp(at), value) for at, value in line))
        for labels, line in list(found.items())[:MOST_LINES]
    )
    return History(series, lines)


def _moment(text: str, name: str) -> datetime:
    try:
        return datetime.fromisoformat(timestamp(text)).astimezone(UTC)
    except InputError as problem:
        raise Refused(422, "invalid_input", f"{name}: {problem}", field=f"query.{name}") from None


def _before(end: datetime, span: timedelta) -> datetime:
    return end - span if end - FIRST > span else FIRST


def _labels(given: list[str]) -> dict[str, str]:
    parts = [one.partition("=") for one in given]
    return {name: value for name, _, value in parts}


_EXAMPLE = 'ringtrue_retrieval_recall_at_k{project="default",k="10",retriever="bm25",golden="hotel-v1.0.0",slice="all"} 0.82\n'
_FORMATS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The metrics of the caller's project",
        "content": {
            kind: {"schema": {"type": "string"}, "example": _EXAMPLE} for kind in ("text/plain", "application/openmetrics-text")
        },
    }
}


@router.get("/metrics", response_class=Response, responses=_FORMATS)
def metrics(request: Request, service: Here, caller: Reader) -> Response:
    """Return the metrics of the caller's project, in OpenMetrics where Accept asks for it, else in Prometheus' text format."""
    end = None if caller.expires_at is None else datetime.fromisoformat(caller.expires_at)
    body, kind = service.telemetry.scrape(caller.project, request.headers.get("accept"), key_ends=end)
    return Response(body, headers={"Content-Type": kind})
