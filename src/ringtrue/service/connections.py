"""The connections of a server: how many there may be, and how long one may keep the server waiting.

To hold a connection takes no key, so nobody else may suffer from it. The head of a request must arrive within seconds. If there
are too many connections, the one that has kept the server waiting the longest is closed; if too many requests are under way,
the one whose body has been on its way the longest. Only if all of them are whole is the next request refused.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from ringtrue.service.errors import Refused, answer
from ringtrue.service.headers import POLICY, Envelope, always, next_request_id

if TYPE_CHECKING:
    from fastapi import FastAPI

HEAD_S = 15.0
"""Seconds in which the head of a request must have arrived, the first one's from when the connection was made."""
LONGEST_HEAD = 64 * 1024
MOST_CONNECTIONS = 2_000
MOST_AT_ONCE = 1_000
"""Requests under way."""


class ConnectionLimiter:
    """What a server's connections share: how many there may be, and which of them keep it waiting, the longest first."""

    def __init__(self, app: FastAPI, *, https: bool, most_connections: int, most_at_once: int) -> None:
        self.application, self.most_connections, self.most_at_once = app, most_connections, most_at_once
        self.draining = False
        """The server is stopping: every connection closes with its next answer."""
        self.silent: dict[LimitedConnection, None] = {}
        """Connections without a request under way: new ones, and those between two requests."""
        self.unfinished: dict[LimitedConnection, None] = {}
        """Connections with a request whose body has not arrived."""
        self.busy: ASGIApp = self._busy
        self._envelope = Envelope(_turned_away, https=https)
        self._fixed = [*always(https=https), (b"content-security-policy", POLICY.encode()), (b"cache-control", b"no-store")]

    def one_more(self, connections: set[HttpToolsProtocol]) -> None:
        """Make room for a connection where there are as many as may be."""
        if len(connections) >= self.most_connections:
            # Also one whose last answer nobody reads: to close it would wait for that.
            closing = (one for one in connections if one.transport.is_closing())
            self._end(next(itertools.chain(self.silent, self.unfinished, closing), None))

    def takes(self, under_way: int) -> bool:
        """True where one more request may begin, if need be in the place of one that has not arrived."""
        if under_way < self.most_at_once:
            return True
        one = next(iter(self.unfinished), None)
        self._end(one)
        return one is not None

    def _end(self, one: HttpToolsProtocol | None) -> None:
        if one is not None:
            self.forget(one)  # at once: it is told of its end later
            one.transport.abort()

    def forget(self, one: HttpToolsProtocol) -> None:
        """Expect nothing of a connection."""
        self.silent.pop(one, None)  # type: ignore[call-overload]
        self.unfinished.pop(one, None)  # type: ignore[call-overload]

    def refusal(self, problem: Refused, more: list[tuple[bytes, bytes]]) -> bytes:
        """Return the answer to what did not become a request, as it goes over the wire; the connection ends with it."""
        request_id = next_request_id()
        body = bytes(answer(request_id, problem).body)
        headers = [
            *more, (b"content-type", b"application/json"), *self._fixed, (b"x-request-id", request_id.encode()),
            (b"content-length", str(len(body)).encode()), (b"connection", b"close"),
        ]  # fmt: skip
        return b"".join([STATUS_LINE[problem.status], *(b"%s: %s\r\n" % header for header in headers), b"\r\n", body])

    async def _busy(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self.application
        await self._envelope(scope, receive, send)


async def _turned_away(scope: Scope, receive: Receive, send: Send) -> None:
    problem = Refused(503, "busy", "too many requests are under way; try again in a second", headers={"Retry-After": "1"})
    await answer(scope["state"]["request_id"], problem)(scope, receive, send)


class LimitedConnection(HttpToolsProtocol):
    """One connection of a server; ``for_server`` makes the class."""

    limiter: ConnectionLimiter
    deadline: asyncio.TimerHandle | None = None
    """When it ends unless a head has arrived."""
    in_head = False
    head_size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.limiter.one_more(self.connections)  # type: ignore[arg-type]
        super().connection_made(transport)
        self.limiter.silent[self] = None
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self.limiter.forget(self)
        self._head_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.in_head:
            self.head_size += len(data)
            if self.head_size > LONGEST_HEAD:
                self._refuse(Refused(431, "too_large", f"the head of the request is larger than {LONGEST_HEAD // 1024} KB"))
        # Also for what drips in behind an answer, such as the rest of a body that nobody wanted.
        if self.deadline is None and self.between and not self.transport.is_closing():
            self._expect_head()

    # ── what the parser tells ────────────────────────────────────────────────────────────────────────────────────────

    def on_message_begin(self) -> None:
        self.in_head, self.head_size = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self.in_head = False
        self._head_came()
        self.app = self.config.loaded_app if self.limiter.takes(len(self.tasks)) else self.limiter.busy
        super().on_headers_complete()
        if self.limiter.draining and self.cycle is not None:
            self.cycle.keep_alive = False
        self.limiter.silent.pop(self, None)
        self.limiter.unfinished[self] = None

    def on_message_complete(self) -> None:
        self.limiter.unfinished.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.between:  # or the next one, which was here already, has begun
            self.limiter.unfinished.pop(self, None)
            self.limiter.silent[self] = None

    # ── what arrives in time, and what does not ──────────────────────────────────────────────────────────────────────

    @property
    def between(self) -> bool:
        """True while no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def _expect_head(self) -> None:
        self.deadline = self.loop.call_later(HEAD_S, self._too_slow)

    def _head_came(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def _too_slow(self) -> None:
        self.deadline = None
        if self.in_head and self.between:
            self._refuse(Refused(408, "too_slow", f"the head of the request did not arrive within {HEAD_S:g} s"))
        else:
            self.transport.close()

    def _refuse(self, problem: Refused) -> None:
        if not self.transport.is_closing():
            self.transport.write(self.limiter.refusal(problem, self.server_state.default_headers))
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Refused(400, "bad_request", "this is not HTTP as it is read here"))


def for_server(
    app: FastAPI, *, https: bool = False, most_connections: int = MOST_CONNECTIONS, most_at_once: int = MOST_AT_ONCE
) -> type[LimitedConnection]:
    """Return the class of a server's connections."""
    limiter = ConnectionLimiter(app, https=https, most_connections=most_connections, most_at_once=most_at_once)
    return type("ServerProtocol", (LimitedConnection,), {"limiter": limiter})
