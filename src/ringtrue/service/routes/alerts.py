"""``/v1/alerts`` and ``/v1/history``: the alert rules and gauges over time, without Prometheus."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from ringtrue.errors import InputError, nearest
from ringtrue.service.alerts import RuleState, rules_text
from ringtrue.service.auth import Reader
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS, Refused
from ringtrue.service.gauges import METRICS
from ringtrue.service.history import trends
from ringtrue.service.models import Answer, Moment
from ringtrue.store import timestamp

router = APIRouter(prefix="/v1", tags=["monitoring"], responses=ERRORS)
DAY = timedelta(days=1)
FIRST = datetime.min.replace(tzinfo=UTC)
MOST_DAYS = 400
MOST_LINES = 100
"""Series of one answer."""
_TIME: dict[str, Any] = {"format": "date-time"}
_YAML: dict[int | str, dict[str, Any]] = {
    200: {"description": "Rules for Prometheus", "content": {"application/yaml": {"schema": {"type": "object"}}}}
}


class AlertAnswer(Answer):
    """One series for which a rule holds."""

    state: Literal["firing", "pending"]
    labels: dict[str, str]
    value: float | None = Field(description="null if it is infinite.")
    since: Moment
    summary: str
    description: str


class RuleAnswer(Answer):
    """One rule and its state."""

    name: str
    state: Literal["firing", "pending", "inactive", "no data"] = Field(
        description="no data: the history has no current value that the rule looks at."
    )
    severity: str
    expression: str
    for_seconds: float
    alerts: list[AlertAnswer]


class AlertsAnswer(Answer):
    """The state of every shipped rule, checked over the history in the store."""

    source: Literal["rules over stored history"]
    firing: int
    rules: list[RuleAnswer]


class Point(Answer):
    """One figure at one moment."""

    at: Moment
    value: float


class Line(Answer):
    """One series: a metric under one set of labels."""

    labels: dict[str, str]
    points: list[Point]


class HistoryAnswer(Answer):
    """A metric over time."""

    series: str
    lines: list[Line]


@router.get("/alerts")
def alerts(service: Here, caller: Reader) -> AlertsAnswer:
    """Return the state of every alert rule, checked over the stored history of the project."""
    found = [_rule_answer(one) for one in service.telemetry.alerts(caller.project)]
    firing = sum(alert.state == "firing" for one in found for alert in one.alerts)
    return AlertsAnswer(source="rules over stored history", firing=firing, rules=found)


def _rule_answer(one: RuleState) -> RuleAnswer:
    alerts = [
        AlertAnswer(
            state=alert.state,
            labels=alert.labels,
            value=alert.value if abs(alert.value) < float("inf") else None,
            since=timestamp(alert.since),
            summary=alert.summary,
            description=alert.description,
        )
        for alert in one.alerts
    ]
    rule = one.rule
    text = " ".join(rule.text.split())
    return RuleAnswer(
        name=rule.name, state=one.state, severity=rule.severity, expression=text, for_seconds=rule.lasts, alerts=alerts
    )


@router.get("/alerts/rules", response_class=Response, responses=_YAML)
def rules(service: Here, caller: Reader) -> Response:
    """Return the alert rules as a file for Prometheus, with the metrics called as this service calls them."""
    return Response(rules_text(service.telemetry.names), media_type="application/yaml")


@router.get("/history")
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
) -> HistoryAnswer:
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
    lines = [
        Line(labels=dict(labels), points=[Point(at=timestamp(at), value=value) for at, value in line])
        for labels, line in list(found.items())[:MOST_LINES]
    ]
    return HistoryAnswer(series=series, lines=lines)


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
