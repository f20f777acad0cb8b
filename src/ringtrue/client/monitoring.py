"""What a service says of itself: health, diagnostics, alerts over stored history, and trends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Alert:
    """One series for which a rule holds."""

    state: Literal["firing", "pending"]
    labels: Mapping[str, str]
    value: float | None
    since: str
    summary: str
    description: str


@dataclass(frozen=True, slots=True)
class AlertRule:
    """One rule and what has become of it; unknown where the history has nothing that it is about."""

    name: str
    state: Literal["firing", "pending", "inactive", "unknown"]
    severity: str
    expression: str
    for_seconds: float
    alerts: tuple[Alert, ...]


@dataclass(frozen=True, slots=True)
class Alerts:
    """The state of every shipped rule over the history in the store."""

    source: str
    firing: int
    rules: tuple[AlertRule, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One figure at one moment."""

    at: str
    value: float


@dataclass(frozen=True, slots=True)
class Line:
    """One series: a metric under one set of labels."""

    labels: Mapping[str, str]
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class History:
    """A metric over time."""

    series: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class HealthPart:
    """One part of the platform: its state, one line for a reader, and the figures behind it."""

    name: str
    state: Literal["ok", "wrong", "unknown", "unused"]
    says: str
    figures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HealthState:
    """All parts, and what they come to: 'wrong' where a part is, else 'unknown' where a part is, else 'ok'."""

    state: Literal["ok", "wrong", "unknown", "unused"]
    project: str
    parts: tuple[HealthPart, ...]


@dataclass(frozen=True, slots=True)
class IntakeState:
    """What became of the rows that a service was sent for the log."""

    accepted: int
    stored: int
    there: int
    refused: int
    forgotten: int
    waiting: int
    waiting_bytes: int
    batches: int
    last_batch: int
    last_commit_ms: float | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Versions, schema, uptime, the intake, jobs by state, settings without secrets, review backlog and newest evaluation.

    ``unknown`` says why the backlog or the evaluation is None.
    """

    versions: Mapping[str, str]
    database: str
    database_schema: str
    started_at: str
    uptime_s: float
    intake: IntakeState
    jobs: Mapping[str, int]
    settings: Mapping[str, Any]
    backlog: Mapping[str, Any] | None
    evaluation: Mapping[str, Any] | None
    unknown: Mapping[str, str]
