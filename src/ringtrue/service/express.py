"""The connections of a server: who may hold one, for how long, and the shortest way into the log.

A connection whose first request logs a search is lent to the process that writes (W-3), which answers whatever else of that
kind comes over it (``plain.py``). It comes back with the first request that is anything else, and stays.

To hold a connection takes no key, so nobody else may suffer from it (V-4). A request's head must arrive in some seconds. Where
there are too many connections, the one goes that has kept the server waiting the longest, and where too many requests are under
way, the one whose body has been on its way the longest; only where all of them are whole, the next is refused.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from ringtrue.service.errors import Refused, answer
from ringtrue.service.headers import POLICY, Envelope, always, next_request_id
from ringtrue.service.plain import BEGINNING
from ringtrue.service.writer import WriterProcess

if TYPE_CHECKING:
    from fastapi import FastAPI

HEAD_S = 15.0
"""Seconds in which the head of a request must have arrived, the first one's from when the connection was made."""
LONGEST_HEAD = 64 * 1024
MOST_CONNECTIONS = 2_000
MOST_AT_ONCE = 1_000
"""Requests under way."""


class Room:
    """What a server's connections share: how many there may be, and which of them keep it waiting, the longest first."""

    def __init__(self, app: FastAPI, *, https: bool, most_connections: int, most_at_once: int) -> None:
        self.application, self.most_connections, self.most_at_once = app, most_connections, most_at_once
        self.draining = False
        """The server is stopping: every connection closes with its next answer."""
        self.silent: dict[ExpressProtocol, None] = {}
        """Connections without a request under way: new ones, and those between two requests."""
        self.unfinished: dict[ExpressProtocol, None] = {}
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


class ExpressProtocol(HttpToolsProtocol):
    """One connection of a server; ``for_server`` makes the class."""

    room: Room
    stays = False
    """It was looked at, or has come back."""
    rest = b""
    """What it had brought when it came back."""
    deadline: asyncio.TimerHandle | None = None
    """When it ends unless a head has arrived."""
    in_head = False
    head_size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.room.one_more(self.connections)  # type: ignore[arg-type]
        super().connection_made(transport)
        self.room.silent[self] = None
        self._expect_head()
        if self.rest:  # before anything else can come
            super().data_received(self.rest)

    def connection_lost(self, exc: Exception | None) -> None:
        self.room.forget(self)
        self._head_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self.stays:
            self.stays = True  # only what comes first is looked at
            if data.startswith(BEGINNING) and not self.room.draining and self._lent(data):
                return
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
        self.app = self.config.loaded_app if self.room.takes(len(self.tasks)) else self.room.busy
        super().on_headers_complete()
        if self.room.draining and self.cycle is not None:
            self.cycle.keep_alive = False
        self.room.silent.pop(self, None)
        self.room.unfinished[self] = None

    def on_message_complete(self) -> None:
        self.room.unfinished.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.between:  # or the next one, which was here already, has begun
            self.room.unfinished.pop(self, None)
            self.room.silent[self] = None

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
            self.transport.write(self.room.refusal(problem, self.server_state.default_headers))
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Refused(400, "bad_request", "this is not HTTP as it is read here"))

    # ── the short way ────────────────────────────────────────────────────────────────────────────────────────────────

    def _lent(self, data: bytes) -> bool:
        service = getattr(self.room.application.state, "service", None)
        if service is None or not isinstance(service.intake, WriterProcess) or not self.client:
            return False
        service.intake.given_back = self._resume
        if not service.intake.lend(self.transport.get_extra_info("socket").fileno(), self.client[0], data):
            return False
        self.transport.abort()  # this side of it: the connection itself lives on next door
        return True

    def _resume(self, connection: socket.socket, rest: bytes) -> None:
        """Go on with a connection that has come back; any of them may be asked, since they share all that is needed."""

        async def go_on() -> None:
            again = type(self)(self.config, self.server_state, self.app_state, self.loop)
            again.stays, again.rest = True, rest
            try:
                await self.loop.connect_accepted_socket(lambda: again, connection)
            except OSError:  # hung up meanwhile
                connection.close()

        task = self.loop.create_task(go_on())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


def for_server(
    app: FastAPI, *, https: bool = False, most_connections: int = MOST_CONNECTIONS, most_at_once: int = MOST_AT_ONCE
) -> type[ExpressProtocol]:
    """Return the class of a server's connections."""
    room = Room(app, https=https, most_connections=most_connections, most_at_once=most_at_once)
    return type("ServerProtocol", (ExpressProtocol,), {"room": room})
