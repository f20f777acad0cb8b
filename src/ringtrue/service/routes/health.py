"""``/v1/health``: one look at everything that runs."""

from __future__ import annotations

from fastapi import APIRouter

from ringtrue.answers import HealthState
from ringtrue.service.auth import Reader
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.work.diagnosing import health

router = APIRouter(prefix="/v1/health", tags=["health"], responses=ERRORS)


@router.get("")
def look(service: Here, caller: Reader) -> HealthState:
    """Look at the log, losses, evaluation, gate, reviews, shadow, tests, rollout, index and schema.

    The parts `constitutional` and `memory` are there as soon as the project uses the agent memory.

    The status is 200 whatever the state is; `/healthz` and `/readyz` are for supervisors.
    """
    found = health(service, caller)
    return HealthState(found.state, caller.project, found.parts)
