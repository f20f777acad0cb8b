"""Settings: who may use this project, who changed what, how the server is; signing in, signing out, and giving a name."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Annotated, get_args

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from ringtrue.answers import Scope
from ringtrue.service.auth import PageAdmin, PageReader, check_csrf, client_of
from ringtrue.service.context import Here
from ringtrue.service.errors import Refused
from ringtrue.service.models import Cursor
from ringtrue.service.pages.shell import WordsField, login_page, page
from ringtrue.service.routes.server import audit_trail, create_key, diagnostics, list_keys, revoke, runs_the_server
from ringtrue.store import AuditEntry, timestamp

router = APIRouter(include_in_schema=False)


def local_path(wanted: str) -> str:
    """Return where to go next: a path of this server, or the first page for anything else.

    >>> local_path("/runs?x=1"), local_path("//elsewhere.test"), local_path("https://elsewhere.test")
    ('/runs?x=1', '/', '/')
    """
    plain = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable()
    return wanted if plain and "\\" not in wanted else "/"


@router.get("/login")
def ask(request: Request, service: Here, next: str = "/") -> Response:
    """Show the form, unless nobody needs to sign in."""
    if service.settings.open:
        return RedirectResponse(local_path(next), 303)
    return login_page(request, local_path(next))


@router.post("/login")
async def sign_in(request: Request, service: Here, key: WordsField = "", next: Annotated[str, Form()] = "/") -> Response:
    """Begin a session with a key."""
    await check_csrf(request, service, request.state.session)
    found = await service.keyring.look_up(key.strip(), now=service.now()) if key.strip() else None
    if found is None:
        service.rates.failed(client_of(request))
        return login_page(request, local_path(next), problem="This key is unknown, expired or revoked.")
    # A new session, so that nobody can sign somebody else in under a session they know.
    service.sessions.end(request.state.session, now=service.now())
    request.state.session = service.sessions.begin(found, now=service.now())
    entry = AuditEntry(timestamp(service.now()), found.name, "signed in", found.key_id, project=found.project)
    await run_in_threadpool(service.store.add_audit, entry)
    return RedirectResponse(local_path(next), 303)


@router.post("/logout")
async def sign_out(request: Request, service: Here) -> Response:
    """End the session, also for whoever has a copy of its cookie."""
    await check_csrf(request, service, request.state.session)
    service.sessions.end(request.state.session, now=service.now())
    request.state.session = service.sessions.begin(now=service.now())
    return RedirectResponse("/login", 303)


@router.post("/session/name")
async def name(
    request: Request,
    access: PageReader,
    name: Annotated[str, Form(min_length=1, max_length=80)],
    next: Annotated[str, Form()] = "/review",
) -> Response:
    """Keep how a reader without a key wants to be called; a key has its own name."""
    if access.caller.key_id is not None:
        raise Refused(409, "named_by_key", f"you are '{access.who}' by your key")
    if not name.strip():
        raise Refused(422, "invalid_input", "a name needs at least one letter", field="name")
    request.state.session = replace(request.state.session, name=name.strip())
    return RedirectResponse(local_path(next), 303)


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
def settings_page(request: Request, access: PageReader) -> Response:
    """Show who the reader is, what the server serves, and its state to whoever runs it."""
    found = diagnostics(access) if runs_the_server(access) else None
    return page(request, "settings.html.jinja", tab="server", found=found, settings=access.service.settings)


@router.get("/settings/keys")
def key_list(request: Request, access: PageAdmin) -> Response:
    """List the keys of the project."""
    return _keys(request, access)


@router.post("/settings/keys")
def make_key(
    request: Request,
    access: PageAdmin,
    name: WordsField = "",
    scopes: Annotated[list[str], Form()] = [],  # noqa: B006  # FastAPI copies it
    days: Annotated[str, Form(max_length=4)] = "90",
) -> Response:
    """Make a key and show its token, this once."""
    chosen = [scope for scope in get_args(Scope) if scope in scopes]
    problem = "Give it a name: whose it is, or what for." if not name.strip() else "" if chosen else "Choose what it may do."
    if days not in dict(LASTING):
        problem = problem or "Choose how long it opens from the list."
    if problem:
        return _keys(request, access, problem=problem, name=name, scopes=chosen, days=days, status=422)
    end = access.now() + timedelta(days=int(days)) if days else None
    key, token = create_key(access, name.strip(), chosen, expires_at=None if end is None else timestamp(end))
    return _keys(request, access, made=(key, token))


@router.post("/settings/keys/{key_id}/revoke")
def end_key(access: PageAdmin, key_id: str) -> Response:
    """Revoke a key."""
    revoke(access, key_id)
    return RedirectResponse("/settings/keys", 303)


@router.get("/settings/audit")
def audit(request: Request, access: PageAdmin, cursor: Cursor = None) -> Response:
    """Show who changed what."""
    found = audit_trail(access, limit=ENTRIES, cursor=cursor)
    return page(
        request, "settings.html.jinja", tab="audit", entries=found.items, next=found.next, cursor=cursor, deeds=DEEDS
    )  # fmt: skip


def _keys(
    request: Request,
    access: PageAdmin,
    *,
    made: object = None,
    problem: str = "",
    name: str = "",
    scopes: list[Scope] | None = None,
    days: str = "90",
    status: int = 200,
) -> Response:
    moment = timestamp(access.now())
    rows = [
        (key, "revoked" if key.revoked_at else "expired" if key.expires_at and key.expires_at <= moment else "open")
        for key in reversed(list_keys(access))
    ]
    return page(
        request, "settings.html.jinja", status=status, tab="keys", rows=rows, made=made, problem=problem,
        name=name, scopes=scopes or ["read"], days=days, meant=MEANT, lasting=LASTING, open=access.service.settings.open,
    )  # fmt: skip
