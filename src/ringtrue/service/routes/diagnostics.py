"""``/v1/diagnostics``: how this server is, for whoever runs it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from ringtrue.service.auth import Admin
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import Answer
from ringtrue.service.work.diagnosing import diagnosis

router = APIRouter(prefix="/v1/diagnostics", tags=["diagnostics"], responses=ERRORS)


class IntakeAnswer(Answer):
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


class BacklogAnswer(Answer):
    """How many pairs are in each state of the review, and since when the oldest one waits."""

    pending_review: int
    approved: int
    rejected: int
    published: int
    total: int
    oldest_pending_at: str | None


class Diagnostics(Answer):
    """Versions, schema, uptime, the intake, the project's newest jobs by state, the settings without secrets, the review
    backlog and the newest evaluation."""

    versions: dict[str, str]
    database: str
    database_schema: str = Field(description="Version of the store's tables.")
    started_at: str
    uptime_s: float
    intake: IntakeAnswer
    jobs: dict[str, int]
    settings: dict[str, Any]
    backlog: BacklogAnswer | None
    evaluation: dict[str, Any] | None = Field(
        description="Newest evaluation of the search in production: the columns of eval_results, null if not measured, metrics "
        "and intervals."
    )
    unknown: dict[str, str] = Field(description="Why the backlog or the evaluation is null.")


@router.get("")
def look(service: Here, caller: Admin) -> Diagnostics:
    """Return what whoever runs this server wants to know of it."""
    found = diagnosis(service, caller)
    return Diagnostics(
        versions=dict(found.versions),
        database=found.database,
        database_schema=found.schema,
        started_at=found.started_at,
        uptime_s=found.uptime_s,
        intake=IntakeAnswer.model_validate(dict(found.intake)),
        jobs=dict(found.jobs),
        settings=dict(found.settings),
        backlog=None if found.backlog is None else BacklogAnswer.model_validate(dict(found.backlog)),
        evaluation=None if found.evaluation is None else dict(found.evaluation),
        unknown=dict(found.unknown),
    )
