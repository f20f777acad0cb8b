"""Settings: who may use this project, who changed what, and how the server itself is."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, get_args

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from ringtrue.answers import Scope
from ringtrue.service.auth import PageAdmin, PageReader
from ringtrue.service.context import Here
from ringtrue.service.models import Cursor
from ringtrue.service.pages.shell import page
from ringtrue.service.routes.keys import create_key, list_keys, revoke
from ringtrue.service.routes.server import audit_trail, diagnostics, runs_the_server
from ringtrue.store import timestamp

router = APIRouter(include_in_schema=False)
ENTRIES = 50
LASTING = (("30", "30 days"), ("90", "90 days"), ("365", "a year"), ("", "until it is revoked"))
MEANT = {
    "read": "see everything of the project",
    "write": "log searches, evaluate, upload golden sets",
    "review": "judge pairs in the review queue",
    "admin": "all of it, and make keys",
}


DEEDS = {
    "set flag": "flag set", "test.create": "test started", "test running": "test resumed", "test paused": "test paused",
    "test graduated": "test graduated", "test rejected": "test rejected", "golden.upload": "golden set uploaded",
    "golden.look": "held-out part looked at", "baseline.update": "baseline updated", "review.publish": "judgments published",
    "judgments.delete": "judgments deleted", "experiments.import": "experiments imported", "key.create": "key created",
    "key.revoke": "key revoked", "gate.verdict": "run judged", "shadow.missing": "shadow queries missed",
    "shadow.stopped": "shadow stopped",
    "log.lost": "searches lost", "user.deleted": "user forgotten", "demo.begun": "demonstration begun",
    "demo.filled": "demonstration filled",
}  # fmt: skip
"""What was done, of what: one grammar for the trail, whose entries keep the names that programs look for."""


@router.get("/settings")
def overview(request: Request, service: Here, caller: PageReader) -> Response:
    """Show who the reader is, what the server serves, and its state to whoever runs it."""
    found = diagnostics(service, caller) if runs_the_server(service, caller) else None
    return page(request, caller, "settings.html.jinja", tab="server", found=found, settings=service.settings)


@router.get("/settings/keys")
def key_list(request: Request, service: Here, caller: PageAdmin) -> Response:
    """List the keys of the project."""
    return _keys(request, service, caller)


@router.post("/settings/keys")
def make_key(
    request: Request,
    service: Here,
    caller: PageAdmin,
    name: Annotated[str, Form(max_length=200)] = "",
    scopes: Annotated[list[str], Form()] = [],  # noqa: B006  # FastAPI copies it
    days: Annotated[str, Form(max_length=4)] = "90",
) -> Response:
    """Make a key and show its token, this once."""
    chosen = [scope for scope in get_args(Scope) if scope in scopes]
    problem = "Give it a name: whose it is, or what for." if not name.strip() else "" if chosen else "Choose what it may do."
    if days not in dict(LASTING):
        problem = problem or "Choose how long it opens from the list."
    if problem:
        return _keys(request, service, caller, problem=problem, name=name, scopes=chosen, days=days, status=422)
    end = service.now() + timedelta(days=int(days)) if days else None
    key, token = create_key(service, caller, name.strip(), chosen, expires_at=None if end is None else timestamp(end))
    return _keys(request, service, caller, made=(key, token))


@router.post("/settings/keys/{key_id}/revoke")
def end_key(service: Here, caller: PageAdmin, key_id: str) -> Response:
    """Revoke a key."""
    revoke(service, caller, key_id)
    return RedirectResponse("/settings/keys", 303)


@router.get("/settings/audit")
def audit(request: Request, service: Here, caller: PageAdmin, cursor: Cursor = None) -> Response:
    """Show who changed what."""
    found = audit_trail(service, caller, limit=ENTRIES, cursor=cursor)
    return page(
        request, caller, "settings.html.jinja", tab="audit", entries=found.items, next=found.next, cursor=cursor, deeds=DEEDS
    )  # fmt: skip


def _keys(
    request: Request,
    service: Here,
    caller: PageAdmin,
    *,
    made: object = None,
    problem: str = "",
    name: str = "",
    scopes: list[Scope] | None = None,
    days: str = "90",
    status: int = 200,
) -> Response:
    moment = timestamp(service.now())
    rows = [
        (key, "revoked" if key.revoked_at else "expired" if key.expires_at and key.expires_at <= moment else "open")
        for key in reversed(list_keys(service, caller))
    ]
    return page(
        request, caller, "settings.html.jinja", status=status, tab="keys", rows=rows, made=made, problem=problem,
        name=name, scopes=scopes or ["read"], days=days, meant=MEANT, lasting=LASTING, open=service.settings.open,
    )  # fmt: skip
