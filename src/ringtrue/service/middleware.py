"""The layers around every request: ids and security headers, hosts and origins, requests a second, bytes and seconds.

These layers are plain ASGI: the frameworks' own would cost more than the work they wrap.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import time
import zlib
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ringtrue.service.auth import COOKIE, SESSION, BrowserSession, digest, token_of
from ringtrue.service.errors import Refused, clean, is_page, note_failure, refused, shown
from ringtrue.service.settings import Rates, Settings

BURST_S = 2.0
"""A caller may save up so many seconds' worth of requests."""
MOST_CALLERS = 50_000
UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
HEAVY = ("/v1/evaluate", "/v1/compare", "/v1/gate", "/v1/golden", "/v1/runs", "/evaluate", "/golden")
LOGGED = ("/v1/queries", "/v1/feedback")
PASSED_ON = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
"""Headers by which a proxy is known: through one the whole world may call, although the call comes from this machine."""
ENDLESS = "/events"
"""Streams of events end with what they tell of, not with a limit."""
BODY_S = 30.0
"""Seconds in which a request must have arrived."""
PIECE = 256 * 1024
"""Bytes that are decompressed at a time."""
MOST_VALUES = 1_000_000
"""Values of a request: a list of nothing takes thirty times its own size once it is read. Golden sets in JSON, too."""
SEPARATORS = (b",", b"[", b"{")
"""What stands before values; there are about as many values as of these, and counting them costs next to nothing."""


class RateLimits:
    """Counts what each caller asks for; in this process, which is the only one of a server."""

    def __init__(self, rates: Rates) -> None:
        self._rates = asdict(rates)
        self._buckets: dict[tuple[str, str | bytes], tuple[float, float]] = {}
        """How many requests each caller could still make, and at what time that was so."""

    def take(self, kind: str, who: str | bytes) -> float:
        """Count one request; return 0, or the seconds to wait."""
        rate, now = self._rates[kind], time.monotonic()
        most = max(10.0, rate * BURST_S)
        if (kind, who) not in self._buckets and len(self._buckets) >= MOST_CALLERS:
            self._forget(now)
        left, at = self._buckets.get((kind, who), (most, now))
        left = min(most, left + (now - at) * rate)
        self._buckets[kind, who] = (left - 1 if left >= 1 else left, now)
        return 0.0 if left >= 1 else (1 - left) / rate

    def failed(self, who: str) -> None:
        """Count a key that does not exist; raises Refused for an address that tried too many.

        Called when the key was looked up: behind a proxy all callers have one address, and a key that opens something is not
        refused for what others tried.
        """
        wait = self.take("login", who)
        if wait:
            raise too_many(wait)

    def _forget(self, now: float) -> None:
        """Drop those that have been quiet; where nobody is, all begin anew: memory stays bounded either way."""
        quiet = [key for key, (_, at) in self._buckets.items() if now - at > BURST_S * 5]
        for key in quiet or list(self._buckets):
            del self._buckets[key]


def too_many(wait: float) -> Refused:
    """Return the refusal of a caller who asks too often."""
    seconds = max(1, round(wait + 0.5))
    return Refused(429, "too_many_requests", f"too many requests; wait {seconds} s", headers={"Retry-After": str(seconds)})


class HttpLayer:
    """A layer around the requests of an application; what is no request passes."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.app if scope["type"] != "http" else self.answer)(scope, receive, send)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, by the layers within or instead of them."""
        raise NotImplementedError


class Doorkeeper(HttpLayer):
    """Turns away requests for another host, from another site, or too many of them."""

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        self._check_host(headers)
        if self.settings.open and any(name in headers for name in PASSED_ON):
            said = "a proxy passed this request on, and callers need no key here; start the server with --keys"
            raise Refused(403, "proxied", said)
        if scope["method"] in UNSAFE:
            _check_origin(headers)
        self._check_rate(scope, headers)
        await self.app(scope, receive, send)

    def _check_host(self, headers: Headers) -> None:
        given = headers.getlist("host")
        if len(given) != 1:
            raise Refused(400, "wrong_host", f"the request has {len(given) or 'no'} Host headers; send exactly one")
        # A page of another site may have its name resolve to this machine; the name in the request still tells.
        name = host_of(given[0])
        if "," in given[0]:
            raise Refused(400, "wrong_host", "the Host header names several hosts; send exactly one")
        hosts = self.settings.own_hosts
        if hosts and name not in hosts:
            raise Refused(400, "wrong_host", f"host '{name:.80}' is not allowed; if it is yours, add it with --allow-host")

    def _check_rate(self, scope: Scope, headers: Headers) -> None:
        path = scope["path"]
        if path.startswith(("/static/", "/healthz", "/readyz")):
            return
        writes = scope["method"] in UNSAFE
        kind = "other"
        if writes:
            kind = "log" if path in LOGGED else "heavy" if path.startswith(HEAVY) else "other"
        # Pages ask for no key: by one that was made up each of their requests would be another caller's.
        token = None if is_page(path) else token_of(headers.get("authorization", ""))
        address = scope["client"][0] if scope.get("client") else "unknown"
        who = address if token is None else digest(token)
        wait = scope["app"].state.service.rates.take(kind, who)
        if wait:
            raise too_many(wait)


def host_of(value: str) -> str:
    """Return the name in a Host header, without the port."""
    name = value.lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


def _check_origin(headers: Headers) -> None:
    if headers.get("sec-fetch-site") == "cross-site":
        raise Refused(403, "cross_site", "changes cannot be made from another site's page")
    origin = headers.get("origin")
    if origin is None:
        return
    if origin == "null" or urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
        raise Refused(403, "cross_site", f"changes cannot be made from a page of {origin:.80}")


class Bodies(HttpLayer):
    """Bounds what arrives: its size, also after decompression, and the time that it and its answer may take."""

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].endswith(ENDLESS):
            await self.app(scope, receive, send)
            return
        encoding = self._check_headers(Headers(scope=scope))
        try:
            async with asyncio.timeout(self.settings.time_limit):
                if encoding == "gzip" and scope["method"] in UNSAFE:
                    body = await self._inflated(await self._read(receive))
                    given = [one for one in scope["headers"] if one[0] not in (b"content-encoding", b"content-length")]
                    scope["headers"] = [*given, (b"content-length", str(len(body)).encode())]
                    arriving = replayed(body, receive)
                else:
                    arriving = self._arriving(receive)
                await self.app(scope, arriving, send)
        except TimeoutError:
            said = f"this took longer than {self.settings.time_limit:g} s; larger evaluations go as jobs: Prefer: respond-async"
            raise Refused(504, "timed_out", said) from None

    def _check_headers(self, headers: Headers) -> str:
        """Return how a body is encoded; raises Refused for one that is too large or cannot be read."""
        announced = headers.get("content-length", "0")
        if not announced.isascii() or not announced.isdigit():
            raise Refused(400, "bad_request", "content-length is not a number")
        self._check_size(int(announced))
        encoding = headers.get("content-encoding", "identity").lower()
        if encoding not in ("gzip", "identity"):
            raise Refused(415, "unsupported_type", f"content-encoding '{encoding:.40}' is not supported; use gzip or none")
        return encoding

    def _check_size(self, size: int) -> None:
        most = self.settings.body_limit
        if size > most:
            raise Refused(413, "too_large", f"the request is larger than {most // 1024 // 1024} MB; send it in parts")

    def _arriving(self, receive: Receive) -> Receive:
        """Return a channel that brings the whole body at once, when it is asked for; then whatever comes."""
        asked = False

        async def whole() -> Message:
            nonlocal asked
            if asked:
                return await receive()
            asked = True
            return {"type": "http.request", "body": await self._read(receive), "more_body": False}

        return whole

    async def _read(self, receive: Receive) -> bytes:
        body, more = bytearray(), True
        try:
            async with asyncio.timeout(BODY_S):
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise ClientDisconnect
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    self._check_size(len(body))
        except TimeoutError:
            raise Refused(408, "too_slow", f"the request did not arrive within {BODY_S:g} s") from None
        return _bounded(bytes(body))

    async def _inflated(self, packed: bytes) -> bytes:
        """Return a gzip body, no more of it than is allowed; what a bomb would become is never made."""
        machine, found = zlib.decompressobj(16 + zlib.MAX_WBITS), bytearray()
        try:
            while packed and not machine.eof:
                found += machine.decompress(packed, PIECE)
                packed = machine.unconsumed_tail
                self._check_size(len(found))
                await asyncio.sleep(0)  # others are answered in between
        except zlib.error:
            raise Refused(400, "bad_request", "the body is not a gzip stream, although content-encoding says so") from None
        if not machine.eof or machine.unused_data:
            raise Refused(400, "bad_request", "the body is not a whole gzip stream, or something follows it; send one stream")
        return _bounded(bytes(found))


def _bounded(body: bytes) -> bytes:
    if sum(body.count(mark) for mark in SEPARATORS) > MOST_VALUES:
        raise Refused(413, "too_large", f"the request holds more than {MOST_VALUES:,} values; send it in parts")
    return body


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a channel that brings a body that was read already, and then whatever comes."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def once() -> Message:
        return pending.pop() if pending else await receive()

    return once


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


class Envelope(HttpLayer):
    """Gives each request an id, times it, and adds the headers that keep browsers from doing harm."""

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = next_request_id()
        scope.setdefault("state", {})["request_id"] = request_id
        began, status = time.perf_counter(), 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = message.setdefault("headers", [])
                names = {name for name, _ in given}
                more = [header for header in always(https=self.settings.https) if header[0] not in names]
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


class BrowserSessions(HttpLayer):
    """Reads the session of a browser, or begins one, and writes the cookie if it is new."""

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_page(scope["path"]) or scope["path"].startswith("/static/"):
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
                    f"Max-Age={int(SESSION.total_seconds())}{'; Secure' if self.settings.https else ''}"
                )
                message["headers"] = [*message.get("headers", []), (b"set-cookie", value.encode())]
            await send(message)

        await self.app(scope, receive, sent)
