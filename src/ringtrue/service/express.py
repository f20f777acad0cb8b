"""The shortest way into the log, for the request that comes thousands of times a second (W-3).

A program that logs a search sends a few plain headers, a key that was seen a moment ago, and a small JSON body. Such a request
is taken here, before the layers and the router, with the same checks and the same answer. Whatever else it has, or lacks, sends
it the usual way: nothing is refused here.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fastapi import FastAPI
from pydantic import ValidationError
from starlette.types import Message, Receive, Scope, Send

from ringtrue.service.errors import Refused, answer
from ringtrue.service.headers import POLICY, always
from ringtrue.service.limits import host_of
from ringtrue.service.routes.queries import BODY, MOST, stored
from ringtrue.service.settings import Settings

if TYPE_CHECKING:
    from ringtrue.service.context import Service

PATH = "/v1/queries"
PLAIN = frozenset(
    b"host content-type content-length authorization user-agent accept accept-encoding accept-language connection".split()
)
"""Headers that say nothing a check would have to look at."""
LARGEST = 256 * 1024


class Express:
    """Around the whole application: logs plain searches itself and hands on all the rest."""

    def __init__(self, app: FastAPI, *, settings: Settings) -> None:
        self.app, self.hosts, self.open, self.seconds = app, settings.own_hosts, settings.open, settings.time_limit
        self.prefix, self.counter = f"{secrets.token_hex(4)}-", itertools.count(1)
        self.headers = [
            (b"content-type", b"application/json"),
            *always(https=settings.https),
            (b"content-security-policy", POLICY.encode()),
            (b"cache-control", b"no-store"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        service: Service = self.app.state.service
        project = self._project(service, scope)
        if project is None:
            await self.app(scope, receive, send)
            return
        first = await receive()
        try:
            searches = BODY.parse(first["body"]) if not first.get("more_body") and first["type"] == "http.request" else []
        except ValidationError:
            searches = []
        if not 1 <= len(searches) <= MOST:
            await self.app(scope, _again(first, receive), send)
            return
        request_id = f"{self.prefix}{next(self.counter):x}"
        try:
            async with asyncio.timeout(self.seconds):
                status, body = 201, await stored(service, project, searches, len(first["body"]))
        except (Refused, TimeoutError) as found:
            problem = found if isinstance(found, Refused) else _too_long(self.seconds)
            status, body = problem.status, bytes(answer(request_id, problem).body)
            more = [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
        else:
            more = []
        length, named = (b"content-length", str(len(body)).encode()), (b"x-request-id", request_id.encode())
        await send({"type": "http.response.start", "status": status, "headers": [*self.headers, length, named, *more]})
        await send({"type": "http.response.body", "body": body})
        service.telemetry.observe_request("POST", PATH, status, time.perf_counter() - began, project=project)

    def _project(self, service: Service, scope: Scope) -> str | None:
        """Return the project that may be written to; None where a closer look is needed."""
        given: list[tuple[bytes, bytes]] = scope["headers"]
        headers: Mapping[bytes, bytes] = dict(given)
        if len(headers) != len(given) or not headers.keys() <= PLAIN or not scope.get("client"):
            return None
        kind, length = headers.get(b"content-type", b""), headers.get(b"content-length", b"")
        if kind != b"application/json" or not length.isdigit() or len(length) > 6 or int(length) > LARGEST:
            return None
        if self.hosts and host_of(headers.get(b"host", b"").decode("latin-1")) not in self.hosts:
            return None
        shown = headers.get(b"authorization")
        who = scope["client"][0] if shown is None else shown.decode("latin-1")
        if shown is None:
            project = service.local.project if self.open else None
        else:
            key = service.keyring.remembered(who[7:]) if shown.startswith(b"Bearer ") else None
            project = key.project if key is not None and key.allows("write") else None
        # Counted last: what goes the usual way is counted there.
        return project if project is not None and not service.rates.take("log", who) else None


def _too_long(seconds: float) -> Refused:
    said = f"this took longer than {seconds:g} s, and it is not certain that it is stored; send it again with the same query_id"
    return Refused(504, "timed_out", said)


def _again(first: Message, receive: Receive) -> Receive:
    """Return a channel that brings a message that was taken already, and then whatever comes."""
    pending = [first]

    async def channel() -> Message:
        return pending.pop() if pending else await receive()

    return channel
