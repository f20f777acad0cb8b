"""The connections of a server: how many there may be, and how long one may keep the server waiting.

To hold a connection takes no key, so nobody else may suffer from it. The head of a request must arrive within seconds. If there
are too many connections, the one that the server has waited for the longest is closed.
"""

from __future__ import annotations

import asyncio
import math

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from ringtrue.service.errors import Refused, answer
from ringtrue.service.middleware import always, next_request_id

HEAD_S = 15.0
"""Seconds in which the head of a request must have arrived, the first one's from when the connection was made."""
LONGEST_HEAD = 64 * 1024
MOST_CONNECTIONS = 2_000


class LimitedConnection(HttpToolsProtocol):
    """One connection of a server; ``for_server`` makes the class, which holds what they share."""

    most = MOST_CONNECTIONS
    https = False
    draining = False
    """The server is stopping: every connection closes with its next answer."""
    awaited_since: float | None = None
    """Since when the server waits for a request, or for the rest of one; None while it works on one."""
    deadline: asyncio.TimerHandle | None = None
    """When it ends unless a head has arrived."""
    in_head = False
    head_size = 0

    def _make_room(self, connections: set[LimitedConnection]) -> None:
        """Close a connection if there are as many as may be: the one that the server has waited for the longest."""
        if len(connections) < self.most:
            return
        # Else one whose last answer nobody reads: to close it properly would wait for that.
        idle = [one for one in connections if one.awaited_since is not None or one.transport.is_closing()]
        if idle:
            oldest = min(idle, key=lambda one: math.inf if one.awaited_since is None else one.awaited_since)
            oldest.awaited_since = None
            oldest.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._make_room(self.connections)  # type: ignore[arg-type]
        super().connection_made(transport)
        self.awaited_since = self.loop.time()
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
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

    def on_message_begin(self) -> None:
        self.in_head, self.head_size = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self.in_head = False
        self._head_came()
        super().on_headers_complete()
        if self.draining and self.cycle is not None:
            self.cycle.keep_alive = False
        self.awaited_since = self.loop.time()  # for the body, from now

    def on_message_complete(self) -> None:
        self.awaited_since = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.between:  # or the next request, which was here already, has begun
            self.awaited_since = self.loop.time()

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
        """Answer what did not become a request; the connection ends with it."""
        if self.transport.is_closing():
            return
        request_id = next_request_id()
        body = bytes(answer(request_id, problem).body)
        headers = [
            *self.server_state.default_headers, (b"content-type", b"application/json"), *always(https=self.https),
            (b"x-request-id", request_id.encode()), (b"content-length", str(len(body)).encode()), (b"connection", b"close"),
        ]  # fmt: skip
        self.transport.write(b"".join([STATUS_LINE[problem.status], *(b"%s: %s\r\n" % one for one in headers), b"\r\n", body]))
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Refused(400, "bad_request", "malformed HTTP request"))


def for_server(*, https: bool = False, most: int = MOST_CONNECTIONS) -> type[LimitedConnection]:
    """Return the class of a server's connections."""
    return type("ServerProtocol", (LimitedConnection,), {"https": https, "most": most})
