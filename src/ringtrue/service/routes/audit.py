"""``/v1/audit``: who changed what, when and why."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from ringtrue.answers import AuditEntry
from ringtrue.service.auth import Admin
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.incoming import At
from ringtrue.service.models import Cursor, Limit, Page
from ringtrue.service.work.diagnosing import audit_trail

router = APIRouter(prefix="/v1/audit", tags=["audit"], responses=ERRORS)


@router.get("")
def list_entries(
    service: Here,
    caller: Admin,
    subject: Annotated[str | None, Query(max_length=300)] = None,
    what: Annotated[str | None, Query(max_length=200)] = None,
    since: Annotated[At | None, Query()] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[AuditEntry]:
    """List changes, the newest first."""
    rows, behind = audit_trail(service, caller, limit=limit, before=cursor, subject=subject, what=what, since=since)
    return Page(items=rows, next=behind)
