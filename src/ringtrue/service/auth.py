"""Who calls, and what they may do: keys for programs, sessions for browsers, nobody's permission on loopback.

Programs send ``Authorization: Bearer rt_…``; cookies open nothing under ``/v1``. Browsers sign in once with a key and get a
session, a signed cookie; whatever changes something must carry its CSRF token. Where only this machine can reach the server
and nobody asked for keys, callers need none.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from ringtrue.answers import Scope
from ringtrue.service.errors import LoginNeeded, Refused
from ringtrue.store import ApiKey, AuditEntry, timestamp

if TYPE_CHECKING:
    from ringtrue.service.context import Service
    from ringtrue.store import Store

EVERYTHING: tuple[Scope, ...] = ("admin",)
LOCAL = "local"
"""What a caller without a key is called."""
REMEMBERED_S = 1.0
"""How long a key that was found is believed without asking the store again: so long may a revoked one still open."""
MOST_REMEMBERED = 10_000
LOOKED_UP_AT_ONCE = 4
"""Keys that nobody has seen open anything: whoever sends them in masses takes so many of the server's threads, not all."""
COOKIE = "ringtrue_session"
SESSION = timedelta(hours=12)
MOST_ENDED = 100_000
"""Sessions that somebody signed out of and that are remembered until they would have ended."""
SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request: of which project, under what name, and with which scopes."""

    project: str
    who: str
    scopes: tuple[Scope, ...]
    key_id: str | None = None
    expires_at: str | None = None
    """When the key ends."""

    def may(self, scope: Scope) -> bool:
        """True if this caller may do what needs the scope; 'admin' may do everything."""
        return scope in self.scopes or "admin" in self.scopes


@dataclass(frozen=True, slots=True)
class Access:
    """What one caller reaches of a server: its parts, and the store of the caller's project."""

    service: Service
    caller: Caller

    @property
    def store(self) -> Store:
        """The store as this caller may see it: one project and nothing else."""
        return self.service.store.only(self.caller.project)

    @property
    def project(self) -> str:
        return self.caller.project

    @property
    def who(self) -> str:
        return self.caller.who

    def may(self, scope: Scope) -> bool:
        """True if the caller may do what needs the scope."""
        return self.caller.may(scope)

    def now(self) -> datetime:
        """Return the time."""
        return self.service.now()

    def note(self, what: str, subject: str, detail: Mapping[str, Any]) -> None:
        """Write into the audit trail of the caller's project that they did something."""
        self.store.add_audit(AuditEntry(timestamp(self.now()), self.who, what, subject, detail, self.project))


def digest(token: str) -> bytes:
    """Return what a token is remembered by: as long as any other, and of no use to who finds it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class Keyring:
    """The keys of the store, remembered for a moment so that not every request asks the database."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[bytes, tuple[float, ApiKey]] = {}
        """Until when each key is believed."""
        self._turn = asyncio.Semaphore(LOOKED_UP_AT_ONCE)

    def find(self, token: str, *, now: datetime) -> ApiKey | None:
        """Return the key of a token; None if there is none, or it expired or was revoked."""
        key = self._store.verify_key(token, now=now)
        if key is None:
            self._known.pop(digest(token), None)
        else:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[digest(token)] = (time.monotonic() + REMEMBERED_S, key)
        return key

    async def look_up(self, token: str, *, now: datetime) -> ApiKey | None:
        """Return ``find``, beside the requests, or a key that was found a moment ago.

        A key that opened something does not queue behind those that never did.
        """
        name = digest(token)
        if name not in self._known:
            async with self._turn:
                return await run_in_threadpool(self.find, token, now=now)
        until, key = self._known[name]
        return key if until > time.monotonic() else await run_in_threadpool(self.find, token, now=now)

    def named(self, key_id: str, project: str, *, now: datetime) -> ApiKey | None:
        """Return a key by its id where it still opens something."""
        moment = timestamp(now)
        for key in self._store.keys(project=project):
            if key.key_id == key_id:
                ended = key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= moment)
                return None if ended else key
        return None

    def forget(self) -> None:
        """Believe nothing any more: a key was revoked."""
        self._known.clear()


# ── programs ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def caller_of(request: Request) -> Caller:
    """Return who makes a request under ``/v1``; raises Refused without a key that opens it."""
    service: Service = request.app.state.service
    given = request.headers.get("authorization")
    if given is None and service.settings.open:
        request.scope["state"]["project"] = service.local.project
        return service.local
    token = token_of(given or "")
    if token is None:
        said = "this service needs a key; send Authorization: Bearer rt_…"
        raise Refused(401, "no_key", said if given is None else "Authorization must read: Bearer rt_…", headers=CHALLENGE)
    key = await service.keyring.look_up(token, now=service.now())
    if key is None:
        service.rates.failed(client_of(request))
        said = "this key is unknown, expired or revoked; make one: ringtrue keys create"
        raise Refused(401, "no_key", said, headers=CHALLENGE)
    request.scope["state"]["project"] = key.project
    return Caller(key.project, key.name, key.scopes, key.key_id, key.expires_at)


def token_of(given: str) -> str | None:
    """Return the token in an Authorization header, however the word before it is spelled; None if there is none."""
    kind, _, token = given.partition(" ")
    return token.strip() or None if kind.lower() == "bearer" else None


CHALLENGE = {"WWW-Authenticate": 'Bearer realm="ringtrue"'}


def client_of(request: Request) -> str:
    """Return the address of who calls."""
    return request.client.host if request.client is not None else "unknown"


def needs(scope: Scope) -> Callable[[Request], Awaitable[Access]]:
    """Return the dependency of a route that needs a scope."""

    async def access(request: Request) -> Access:
        return _allowed(request, await caller_of(request), scope)

    return access


def _allowed(request: Request, caller: Caller, scope: Scope) -> Access:
    """Return the access of a caller; raises Refused if their key lacks the scope."""
    if not caller.may(scope):
        have = ", ".join(caller.scopes)
        raise Refused(403, "forbidden", f"this needs a key with scope '{scope}'; yours has {have}")
    return Access(request.app.state.service, caller)


Reader = Annotated[Access, Depends(needs("read"))]
Writer = Annotated[Access, Depends(needs("write"))]
Reviewer = Annotated[Access, Depends(needs("review"))]
Admin = Annotated[Access, Depends(needs("admin"))]


# ── browsers ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """What the cookie of a browser says; signed, so that nobody else can write one."""

    nonce: str
    until: float
    key_id: str | None = None
    project: str | None = None
    name: str | None = None
    """How a reader without a key wants to be called, such as when reviewing."""


class SessionCookies:
    """Makes and reads the cookies of browsers."""

    def __init__(self, secret: str) -> None:
        self._secret = (secret or secrets.token_hex(32)).encode()
        self._ended: dict[str, float] = {}
        """Until when the cookies of those who signed out would have opened something; those of nobody open nothing anyway."""

    def begin(self, key: ApiKey | None = None, *, now: datetime, name: str | None = None) -> BrowserSession:
        """Return a new session, of a key or of nobody."""
        begun = BrowserSession(secrets.token_urlsafe(18), (now + SESSION).timestamp(), name=name)
        return begun if key is None else replace(begun, key_id=key.key_id, project=key.project)

    def end(self, session: BrowserSession, *, now: datetime) -> None:
        """Let the cookie of a session open nothing any more, whoever kept a copy of it."""
        if session.key_id is None:
            return
        moment = now.timestamp()
        self._ended = {nonce: until for nonce, until in self._ended.items() if until > moment}
        if len(self._ended) >= MOST_ENDED:
            del self._ended[min(self._ended, key=self._ended.__getitem__)]
        self._ended[session.nonce] = session.until

    def cookie(self, session: BrowserSession) -> str:
        """Return the value of the cookie."""
        body = base64.urlsafe_b64encode(json.dumps(asdict(session), separators=(",", ":")).encode()).decode().rstrip("=")
        return f"{body}.{self._sign('session', body)}"

    def read(self, cookie: str, *, now: datetime) -> BrowserSession | None:
        """Return the session of a cookie; None if it is not ours, has ended, or somebody signed out of it."""
        body, _, signature = cookie.rpartition(".")
        if not body or not hmac.compare_digest(signature.encode(), self._sign("session", body).encode()):
            return None
        found = BrowserSession(**json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))))
        return found if found.until > now.timestamp() and found.nonce not in self._ended else None

    def csrf(self, session: BrowserSession) -> str:
        """Return the token that requests of this session's pages carry."""
        return self._sign("csrf", session.nonce)

    def _sign(self, what: str, text: str) -> str:
        return hmac.new(self._secret, f"{what}\0{text}".encode(), hashlib.sha256).hexdigest()


def page_needs(scope: Scope) -> Callable[[Request], Awaitable[Access]]:
    """Return the dependency of a page that needs a scope; what changes something must carry the CSRF token."""

    async def access(request: Request) -> Access:
        service: Service = request.app.state.service
        session: BrowserSession = request.state.session
        if request.method not in SAFE:
            await check_csrf(request, service, session)
        # Set before it may be refused: the page that says so still shows whose it is.
        request.state.caller = known = await _of_session(service, session)
        request.state.project = known.project
        return _allowed(request, known, scope)

    return access


async def _of_session(service: Service, session: BrowserSession) -> Caller:
    if session.key_id is not None and session.project is not None:
        key = await run_in_threadpool(service.keyring.named, session.key_id, session.project, now=service.now())
        if key is not None:
            return Caller(key.project, key.name, key.scopes, key.key_id)
        raise LoginNeeded
    if service.settings.open:
        return replace(service.local, who=session.name or LOCAL)
    raise LoginNeeded


async def check_csrf(request: Request, service: Service, session: BrowserSession) -> None:
    """Raise Refused for a change that does not come from a page of this session."""
    given: Any = request.headers.get("x-csrf-token")
    if given is None and request.headers.get("content-type", "").startswith(
        ("application/x-www-form-urlencoded", "multipart/form-data")
    ):
        given = (await request.form()).get("csrf")
    wanted = service.sessions.csrf(session)
    if not isinstance(given, str) or not hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode()):
        raise Refused(403, "csrf", "this form is out of date, or did not come from this page; reload the page and try again")


PageReader = Annotated[Access, Depends(page_needs("read"))]
PageWriter = Annotated[Access, Depends(page_needs("write"))]
PageReviewer = Annotated[Access, Depends(page_needs("review"))]
PageAdmin = Annotated[Access, Depends(page_needs("admin"))]
