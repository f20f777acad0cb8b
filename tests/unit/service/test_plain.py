"""W-3: what the process that writes remembers of the connections it answers, and how long it lets them wait."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from ringtrue.online.lines import Row
from ringtrue.service.intake import Promise
from ringtrue.service.plain import HEAD_END, LONGEST_HEAD, LONGEST_REMEMBERED, MOST_HEADS, Connection, Counter, Rules
from ringtrue.service.settings import Settings
from ringtrue.store import Store

BODY = json.dumps({"query": "late checkout", "tool_name": "web"}).encode()


def request(*more: str, length: int | None = None) -> bytes:
    lines = ["Host: localhost", "Content-Type: application/json", f"Content-Length: {length or len(BODY)}", *more]
    return "\r\n".join(["POST /v1/queries HTTP/1.1", *lines, "", ""]).encode() + BODY


def long_request(size: int) -> bytes:
    """Return a request whose head has so many letters."""
    missing = size - request("User-Agent: ").index(HEAD_END)
    return request("User-Agent: " + "x" * missing)


class Wire:
    """The transport of one connection."""

    def __init__(self) -> None:
        self.sent, self.closed, self.reading = b"", False, True

    def write(self, data: bytes) -> None:
        self.sent += data

    def close(self) -> None:
        self.closed = True

    def is_reading(self) -> bool:
        return self.reading

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def get_write_buffer_size(self) -> int:
        return 0


class Desk:
    """A counter without a process around it: everything that is put is stored at once."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.returned: list[bytes] = []
        self.counter = Counter(Rules.of(settings), store, self._put, lambda _, rest: self.returned.append(rest))

    def _put(self, rows: Sequence[Row], kind: type[Row], size: int, *, fresh: bool, future: Promise) -> None:
        future.set_result(len(rows))

    def open(self, brought: bytes) -> tuple[Connection, Wire]:
        connection, wire = Connection(self.counter, "127.0.0.1", brought), Wire()
        connection.connection_made(wire)  # type: ignore[arg-type]
        return connection, wire


Check = Callable[[Desk], Coroutine[Any, Any, None]]


@pytest.fixture
def at_desk(tmp_path: Path) -> Callable[..., None]:
    def run(check: Check, **settings: Any) -> None:
        async def inside() -> None:
            with Store.open(tmp_path / "store.sqlite") as store:
                desk = Desk(store, Settings(store=str(tmp_path / "store.sqlite"), **settings))
                await check(desk)
                desk.counter.close()

        asyncio.run(inside())

    return run


def test_a_head_of_any_size_that_comes_at_once_goes_back(at_desk: Callable[..., None]) -> None:
    async def check(desk: Desk) -> None:
        for size, back in ((LONGEST_HEAD, False), (LONGEST_HEAD + 1, True)):
            message = long_request(size)
            assert message.index(HEAD_END) == size
            _, wire = desk.open(message)
            assert (desk.returned == [message]) is back
            assert wire.sent.startswith(b"HTTP/1.1 201 ") is not back

    at_desk(check)


def test_only_short_plain_heads_are_remembered(at_desk: Callable[..., None]) -> None:
    async def check(desk: Desk) -> None:
        remembered = desk.counter._heads
        for message in (request("Cookie: a=b"), request("Authorization: Basic x"), long_request(LONGEST_REMEMBERED + 1)):
            desk.open(message)
        assert len(desk.returned) == 2
        assert remembered == {}
        desk.open(long_request(LONGEST_REMEMBERED))
        desk.open(request())
        assert len(remembered) == 2
        for number in range(MOST_HEADS):
            desk.counter.head(request(f"User-Agent: {number}").partition(HEAD_END)[0])
        assert len(remembered) <= MOST_HEADS

    at_desk(check)


def test_who_waits_for_a_key_to_be_looked_up_is_answered(at_desk: Callable[..., None]) -> None:
    async def check(desk: Desk) -> None:
        counter, limit = desk.counter, desk.counter.rules.time_limit
        hangs: list[asyncio.Future[bool]] = []

        def renew(token: str) -> asyncio.Future[bool]:
            hangs.append(counter.loop.create_future())
            return hangs[-1]

        counter.renew = renew  # type: ignore[method-assign]
        connection, wire = desk.open(request("Authorization: Bearer rt_x"))
        connection.look(time.monotonic() + limit - 1)
        assert (wire.sent, wire.closed, desk.returned) == (b"", False, [])
        connection.look(time.monotonic() + limit + 1)
        head, _, body = wire.sent.partition(HEAD_END)
        assert head.startswith(b"HTTP/1.1 504 ")
        assert b"connection: close" in head
        assert json.loads(body)["error"]["code"] == "timed_out"
        assert wire.closed
        [(project, status, _, spent)] = counter.take_observed()
        assert (project, status, spent) == (None, 504, ())
        hangs[0].set_result(True)  # at last: nobody waits for it any more
        await asyncio.sleep(0)
        assert (wire.sent.count(b"HTTP/1.1"), desk.returned, counter.take_observed()) == (1, [], [])

    at_desk(check, keys=True)
