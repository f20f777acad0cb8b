"""The outermost layer: every request gets an id, every answer its security headers, and every failure is answered in one shape.

These layers are plain ASGI: the frameworks' own would cost more than the work they wrap.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import time
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ringtrue.service.auth import COOKIE, SESSION, BrowserSession
from ringtrue.service.errors import Refused, clean, is_page, note_failure, refused, shown

LOG = logging.getLogger("ringtrue.service")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
ALWAYS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    (b"content-security-policy", POLICY.encode()),
    (b"cache-control", b"no-store"),
]
GONE = 499
"""What is counted where the sender left before the request was whole; nginx's number, no answer has it."""


def always(*, https: bool) -> list[tuple[bytes, bytes]]:
    """Return the headers of every answer that does not set them itself."""
    return [*ALWAYS, *([(b"strict-transport-security", b"max-age=31536000")] if https else [])]


_PREFIX, _NUMBERS = f"{secrets.token_hex(4)}-", itertools.count(1)


def next_request_id() -> str:
    """Return the id of a request of this process."""
    # Drawn once and counted: to draw each would hand the processor to other threads thousands of times a second.
    return f"{_PREFIX}{next(_NUMBERS):x}"


class Envelope:
    """Gives each request an id, times it, and adds the headers that keep browsers from doing harm."""

    def __init__(self, app: ASGIApp, *, https: bool) -> None:
        self.app = app
        self.always = always(https=https)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = next_request_id()
        scope.setdefault("state", {})["request_id"] = request_id
        began, status = time.perf_counter(), 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = message.setdefault("headers", [])
                names = {name for name, _ in given}
                more = [header for header in self.always if header[0] not in names]
                message["headers"] = [*given, *more, (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self.app(scope, receive, sent)
        except ClientDisconnect:  # nobody is left to be answered, and nothing here broke
            status = status or GONE
            LOG.info("request %s was given up by its sender: %s %s", request_id, scope["method"], clean(scope["path"]))
        except asyncio.CancelledError:  # the server stops, and this request took longer than it may
            if status:
                raise
            stopping = Refused(503, "stopping", "this server is stopping; try again", headers={"Retry-After": "5"})
            await shown(Request(scope), stopping)(scope, receive, sent)
        except Exception as problem:
            known = refused(problem)
            if not isinstance(problem, Refused):
                LOG.exception("request %s failed: %s %s", request_id, scope["method"], clean(scope["path"]))
            elif known.status >= 500:
                note_failure(scope, known.status, problem)
            if status:  # the answer has begun; cutting it off tells the caller that it is not whole
                raise
            await shown(Request(scope), known)(scope, receive, sent)
        finally:
            route, project = getattr(scope.get("route"), "path", "other"), scope["state"].get("project")
            durations = scope["app"].state.service.telemetry.durations
            durations.request(scope["method"], route, status, time.perf_counter() - began, project=project)


class BrowserSessions:
    """Reads the session of a browser, or begins one, and writes the cookie where it is new."""

    def __init__(self, app: ASGIApp, *, https: bool) -> None:
        self.app, self.https = app, https

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_page(scope["path"]) or scope["path"].startswith("/static/"):
            await self.app(scope, receive, send)
            return
        service = scope["app"].state.service
        cookie = Request(scope).cookies.get(COOKIE)
        found: BrowserSession | None = service.sessions.read(cookie, now=service.now()) if cookie else None
        state: dict[str, Any] = scope.setdefault("state", {})
        state["session"] = session = found or service.sessions.begin(now=service.now())
        state["csrf"] = service.sessions.csrf(session)

        async def sent(message: Message) -> None:
            # A page may have put another session there: somebody signed in, signed out or gave a name.
            now: BrowserSession = state["session"]
            if message["type"] == "http.response.start" and now is not found:
                value = (
                    f"{COOKIE}={service.sessions.cookie(now)}; Path=/; HttpOnly; SameSite=Lax; "
                    f"Max-Age={int(SESSION.total_seconds())}{'; Secure' if self.https else ''}"
                )
                message["headers"] = [*message.get("headers", []), (b"set-cookie", value.encode())]
            await send(message)

        await self.app(scope, receive, sent)
