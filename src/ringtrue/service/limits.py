"""How much strangers may ask for: hosts and origins, requests a second, bytes and seconds."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ringtrue.service.auth import digest, token_of
from ringtrue.service.errors import Refused, is_page
from ringtrue.service.settings import Network, Rates, Settings

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


class Bucket:
    """So many requests a second, with a little saved up."""

    __slots__ = ("at", "left")

    def __init__(self, most: float, now: float) -> None:
        self.left, self.at = most, now

    def take(self, rate: float, most: float, now: float) -> float:
        """Take one; return 0, or the seconds until there is one."""
        self.left = min(most, self.left + (now - self.at) * rate)
        self.at = now
        if self.left >= 1:
            self.left -= 1
            return 0.0
        return (1 - self.left) / rate


class RateLimits:
    """Counts what each caller asks for; in this process, which is the only one of a server."""

    def __init__(self, rates: Rates) -> None:
        self._rates = {"log": rates.log, "heavy": rates.heavy, "other": rates.other, "login": rates.login}
        self._buckets: dict[tuple[str, str | bytes], Bucket] = {}

    def take(self, kind: str, who: str | bytes) -> float:
        """Count one request; return 0, or the seconds to wait."""
        rate, now = self._rates[kind], time.monotonic()
        most = max(10.0, rate * BURST_S)
        bucket = self._buckets.get((kind, who))
        if bucket is None:
            if len(self._buckets) >= MOST_CALLERS:
                self._forget(now)
            bucket = self._buckets[kind, who] = Bucket(most, now)
        return bucket.take(rate, most, now)

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
        quiet = [key for key, bucket in self._buckets.items() if now - bucket.at > BURST_S * 5]
        for key in quiet or list(self._buckets):
            del self._buckets[key]


def too_many(wait: float) -> Refused:
    """Return the refusal of a caller who asks too often."""
    seconds = max(1, round(wait + 0.5))
    return Refused(429, "too_many_requests", f"too many requests; wait {seconds} s", headers={"Retry-After": str(seconds)})


class Doorkeeper:
    """Turns away requests for another host, from another site, or too many of them."""

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self.app, self.hosts, self.open = app, settings.own_hosts, settings.open
        self.trusted = settings.trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if self.trusted and scope.get("client"):
            scope["client"] = (asked_for(scope["client"][0], headers.getlist("x-forwarded-for"), self.trusted), 0)
        self._check_host(headers)
        if self.open and any(name in headers for name in PASSED_ON):
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
        if self.hosts and name not in self.hosts:
            raise Refused(400, "wrong_host", f"this is not '{name:.80}'; name it with --allow-host if it is")

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


Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def asked_for(peer: str, passed_on: Sequence[str], trusted: Sequence[Network]) -> str:
    """Return the address of who asks, where a proxy that is believed says so; whatever anybody else says is not looked at.

    Each proxy adds at the right whom it was asked by, so the first from there that is no such proxy is who asked; what stands
    left of it anybody may have written.

    >>> nets = [ipaddress.ip_network("10.0.0.0/24")]
    >>> asked_for("10.0.0.1", ["1.2.3.4, 203.0.113.7", "10.0.0.9"], nets), asked_for("203.0.113.7", ["1.2.3.4"], nets)
    ('203.0.113.7', '203.0.113.7')
    """
    found = peer
    said = [part for line in passed_on for part in line.split(",")]
    while (address := _address(found)) is not None and any(address in net for net in trusted) and said:
        before = _address(said.pop())
        if before is None:  # no address: the proxy that passed it on is as far as anybody can see
            break
        found = str(before)
    return found


def _address(text: str) -> Address | None:
    """Return an address, also of one with a port; IPv4 as such, also where a socket for both calls it ``::ffff:1.2.3.4``."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


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


class Bodies:
    """Bounds what arrives: its size, also after decompression, and the time it may take."""

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self.app, self.most, self.seconds = app, settings.body_limit, settings.time_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        arriving = self._arriving(headers, receive)
        encoding = headers.get("content-encoding", "identity").lower()
        if encoding == "gzip":
            body = await self._inflated_in_time(arriving)
            scope["headers"] = [
                *(item for item in scope["headers"] if item[0] not in (b"content-encoding", b"content-length")),
                (b"content-length", str(len(body)).encode()),
            ]
            arriving = replayed(body, receive)
        elif encoding != "identity":
            raise Refused(415, "unsupported_type", f"content-encoding '{encoding:.40}' is not read here; use gzip or none")
        if scope["path"].endswith(ENDLESS):
            await self.app(scope, arriving, send)
            return
        try:
            async with asyncio.timeout(self.seconds):
                await self.app(scope, arriving, send)
        except TimeoutError:
            said = f"this took longer than {self.seconds:g} s; larger evaluations go as jobs: Prefer: respond-async"
            raise Refused(504, "timed_out", said) from None

    def _arriving(self, headers: Headers, receive: Receive) -> Receive:
        announced = headers.get("content-length", "0")
        if not announced.isascii() or not announced.isdigit():
            raise Refused(400, "bad_request", "content-length is no number")
        if int(announced) > self.most:
            raise self._too_large()
        arrived, values, whole, until = 0, 0, False, math.inf

        async def rest() -> Message:
            try:
                async with asyncio.timeout(max(0.0, until - time.monotonic())):
                    return await receive()
            except TimeoutError:
                raise _too_slow() from None

        async def bounded() -> Message:
            nonlocal arrived, values, whole, until
            # The first part is there as a rule, and the time limit of the whole request holds for it; after the last part
            # comes only the caller's going away, which may take as long as the answer.
            message = await (receive() if whole or until == math.inf else rest())
            if message["type"] == "http.request":
                arrived += len(message.get("body", b""))
                values += _values(message.get("body", b""))
                whole = not message.get("more_body", False)
                until = time.monotonic() + BODY_S if until == math.inf else until
                if arrived > self.most:
                    raise self._too_large()
                if values > MOST_VALUES:
                    raise _too_many_values()
            return message

        return bounded

    def _too_large(self) -> Refused:
        return Refused(413, "too_large", f"the request is larger than {self.most // 1024 // 1024} MB; send it in parts")

    async def _inflated_in_time(self, receive: Receive) -> bytes:
        try:
            async with asyncio.timeout(BODY_S):
                return await self._inflated(receive)
        except TimeoutError:
            raise _too_slow() from None

    async def _inflated(self, receive: Receive) -> bytes:
        """Return a gzip body, no more of it than is allowed; what a bomb would become is never made."""
        machine, found = zlib.decompressobj(16 + zlib.MAX_WBITS), bytearray()
        with _damaged():
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise Refused(400, "bad_request", "the request ended before it was whole")
                part = message.get("body", b"")
                if part and machine.eof:
                    raise Refused(400, "bad_request", "something follows the gzip stream; send one stream")
                while part and not machine.eof:  # piece by piece, so that others are answered in between
                    found += machine.decompress(part, PIECE)
                    part = machine.unconsumed_tail
                    if len(found) > self.most:
                        raise self._too_large()
                    await asyncio.sleep(0)
                if not message.get("more_body", False):
                    break
            if not machine.eof or machine.unused_data:
                raise Refused(400, "bad_request", "the body is no whole gzip stream")
        if _values(found) > MOST_VALUES:
            raise _too_many_values()
        return bytes(found)


def _values(part: bytes | bytearray) -> int:
    return sum(part.count(mark) for mark in SEPARATORS)


def _too_many_values() -> Refused:
    return Refused(413, "too_large", f"the request holds more than {MOST_VALUES:,} values; send it in parts")


def _too_slow() -> Refused:
    return Refused(408, "too_slow", f"the request did not arrive within {BODY_S:g} s")


@contextmanager
def _damaged() -> Iterator[None]:
    try:
        yield
    except zlib.error:
        raise Refused(400, "bad_request", "the body is no gzip stream, although content-encoding says so") from None


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a channel that brings a body that was read already, and then whatever comes."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def once() -> Message:
        return pending.pop() if pending else await receive()

    return once
