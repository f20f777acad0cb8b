"""The server itself: jobs, keys, the audit trail, health, diagnostics, alerts and history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ringtrue.answers.record import Record

JobState = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]
ENDED = ("done", "failed", "cancelled", "interrupted")
"""The states of jobs that have ended."""
Scope = Literal["read", "write", "review", "admin"]
RuleState = Literal["firing", "pending", "inactive", "no data"]
PartState = Literal["ok", "wrong", "unknown", "unused"]


@dataclass(frozen=True, slots=True)
class JobError(Record):
    """Why a job failed."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class JobStarted(Record):
    """Work that was taken on; its state is at ``location``."""

    job_id: str
    state: JobState
    location: str


@dataclass(frozen=True, slots=True)
class Job(Record):
    """A job as it stands."""

    job_id: str
    kind: str
    state: JobState
    created_at: str
    updated_at: str
    who: str = ""
    request: Mapping[str, Any] = field(default_factory=dict)
    """What was asked for, without what was uploaded."""
    done: int = 0
    total: int | None = None
    """Steps of what it is doing now; null if nobody knows."""
    says: str = ""
    """What it is doing now."""
    result: Mapping[str, Any] | None = None
    """What came of it; for an evaluation run_id, location and metrics."""
    error: JobError | None = None

    @property
    def ended(self) -> bool:
        """True if nothing more will come of it."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class KeyState(Record):
    """A key; its token is nowhere but with its holder."""

    key_id: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: str
    expires_at: str | None = None
    revoked_at: str | None = None
    last_used_at: str | None = None
    """To the minute."""


@dataclass(frozen=True, slots=True)
class MadeKey(KeyState):
    """A new key with its token, which is shown this once."""

    token: str = field(kw_only=True, repr=False)


@dataclass(frozen=True, slots=True)
class AuditRecord(Record):
    """One change."""

    at: str
    who: str
    what: str
    subject: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alert(Record):
    """One series for which a rule holds."""

    state: Literal["firing", "pending"]
    labels: Mapping[str, str]
    value: float | None
    """null if it is infinite."""
    since: str
    summary: str
    description: str


@dataclass(frozen=True, slots=True)
class AlertRule(Record):
    """One rule and its state."""

    name: str
    state: RuleState
    """no data: the history has no current value that the rule looks at."""
    severity: str
    expression: str
    for_seconds: float
    alerts: tuple[Alert, ...]


@dataclass(frozen=True, slots=True)
class Alerts(Record):
    """The state of every shipped rule, checked over the history in the store."""

    source: Literal["rules over stored history"]
    firing: int
    rules: tuple[AlertRule, ...]


@dataclass(frozen=True, slots=True)
class TimePoint(Record):
    """One figure at one moment."""

    at: str
    value: float


@dataclass(frozen=True, slots=True)
class Line(Record):
    """One series: a metric under one set of labels."""

    labels: Mapping[str, str]
    points: tuple[TimePoint, ...]


@dataclass(frozen=True, slots=True)
class History(Record):
    """A metric over time."""

    series: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class HealthPart(Record):
    """One part of the platform: its state, one line for a reader, and the figures behind it."""

    name: str
    state: PartState
    says: str
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HealthState(Record):
    """All parts, and what they come to."""

    state: PartState
    """'wrong' where a part is, else 'unknown' where a part is, else 'ok'."""
    project: str
    parts: tuple[HealthPart, ...]


@dataclass(frozen=True, slots=True)
class IntakeState(Record):
    """What became of the rows that this server was sent for the log."""

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
class Diagnostics(Record):
    """Versions, schema, uptime, the intake, the project's newest jobs by state, the settings without secrets, the review
    backlog and the newest evaluation."""

    versions: Mapping[str, str]
    database: str
    database_schema: str
    """Version of the store's tables."""
    started_at: str
    uptime_s: float
    intake: IntakeState
    jobs: Mapping[str, int]
    settings: Mapping[str, Any]
    backlog: Mapping[str, int | str | None] | None
    """How many pairs are in each state of the review, their `total`, and `oldest_pending_at`, since when the oldest waits."""
    evaluation: Mapping[str, Any] | None
    """Newest evaluation of the search in production: metrics, intervals, and columns of eval_results, null if not measured."""
    unknown: Mapping[str, str]
    """Why the backlog or the evaluation is null."""
