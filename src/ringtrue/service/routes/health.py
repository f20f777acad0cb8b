"""``/v1/health``: one look at everything that runs (O-3)."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import Field

from ringtrue.service.auth import Reader
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import Answer
from ringtrue.service.work.diagnosing import health

router = APIRouter(prefix="/v1/health", tags=["health"], responses=ERRORS)
State = Literal["ok", "wrong", "unknown", "unused"]


class PartAnswer(Answer):
    """One part of the platform: its state, one line for a reader, and the figures behind it."""

    name: str
    state: State
    says: str
    figures: dict[str, Any]


class HealthAnswer(Answer):
    """All parts, and what they come to."""

    state: State = Field(description="'wrong' where a part is, else 'unknown' where a part is, else 'ok'.")
    project: str
    parts: list[PartAnswer]


@router.get("")
def look(service: Here, caller: Reader) -> HealthAnswer:
    """Look at the log, losses, evaluation, gate, reviews, shadow, tests, rollout, index and schema.

    The parts `constitutional` and `memory` are there as soon as the project uses the agent memory.

    The status is 200 whatever the state is; `/healthz` and `/readyz` are for supervisors.
    """
    found = health(service, caller)
    parts = [PartAnswer.model_validate(part, from_attributes=True) for part in found.parts]
    return HealthAnswer(state=found.state, project=caller.project, parts=parts)
