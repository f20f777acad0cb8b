"""``/v1/diagnostics``: how this server is, for whoever runs it."""

from __future__ import annotations

from fastapi import APIRouter

from ringtrue.answers import Diagnostics
from ringtrue.service.auth import Admin
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.work.diagnosing import diagnosis

router = APIRouter(prefix="/v1/diagnostics", tags=["diagnostics"], responses=ERRORS)


@router.get("")
def look(service: Here, caller: Admin) -> Diagnostics:
    """Return what whoever runs this server wants to know of it."""
    return diagnosis(service, caller)
