"""The shortest way into the log, for the request that comes thousands of times a second (W-3).

A connection whose first request logs a search is lent to the process that writes, which answers whatever else of that kind
comes over it (``plain.py``). It comes back with the first request that is anything else, and stays.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ringtrue.service.plain import BEGINNING
from ringtrue.service.writer import WriterProcess

if TYPE_CHECKING:
    from fastapi import FastAPI


class ExpressProtocol(HttpToolsProtocol):
    """One connection of a server; ``for_server`` makes the class."""

    application: FastAPI
    stays = False
    """It was looked at, or has come back."""
    rest = b""
    """What it had brought when it came back."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.rest:  # before anything else can come
            super().data_received(self.rest)

    def data_received(self, data: bytes) -> None:
        if not self.stays:
            self.stays = True  # only what comes first is looked at
            if data.startswith(BEGINNING) and self._lent(data):
                return
        super().data_received(data)

    def _lent(self, data: bytes) -> bool:
        service = getattr(self.application.state, "service", None)
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


def for_server(app: FastAPI) -> type[ExpressProtocol]:
    """Return the class of a server's connections."""
    return type("ServerProtocol", (ExpressProtocol,), {"application": app})
