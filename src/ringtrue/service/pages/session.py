"""Signing in, signing out, and giving a name: the pages about the reader's own session."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from ringtrue.service.auth import PageReader, check_csrf, client_of
from ringtrue.service.context import Here
from ringtrue.service.errors import Refused
from ringtrue.service.pages.shell import login_page
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
async def sign_in(
    request: Request, service: Here, key: Annotated[str, Form(max_length=200)] = "", next: Annotated[str, Form()] = "/"
) -> Response:
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
    service: Here,
    caller: PageReader,
    name: Annotated[str, Form(min_length=1, max_length=80)],
    next: Annotated[str, Form()] = "/review",
) -> Response:
    """Keep how a reader without a key wants to be called; a key has its own name."""
    if caller.key_id is not None:
        raise Refused(409, "named_by_key", f"you are '{caller.who}' by your key")
    if not name.strip():
        raise Refused(422, "invalid_input", "a name has at least one letter", field="name")
    request.state.session = replace(request.state.session, name=name.strip())
    return RedirectResponse(local_path(next), 303)
