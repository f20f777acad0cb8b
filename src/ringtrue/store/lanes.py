"""Searches on their way to PostgreSQL while whoever sends them goes on with other things (W-3).

Of the time that a batch takes, the sender is at work for a fraction only; the rest it would wait for the database, and so would
everybody who has a request for it. libpq can send a statement and look for the answer later, when the event loop sees one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy import Engine

from ringtrue.store.faults import explained
from ringtrue.store.quickly import numbered_statement
from ringtrue.store.records import LoggedQuery
from ringtrue.store.rows import QUERY

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn

STATEMENTS = 50
"""Statements that PostgreSQL keeps for a lane: each is of another choice of columns, and few programs have many."""
LOOK_S = 0.1
"""How often is looked at a lane that has not said anything: of a line that broke uvloop tells once, and then no more."""
Told = Callable[[bool], None]
"""Who is told that all of a batch is stored; False where that is not certain."""


class Loop(Protocol):
    """What is needed of an event loop."""

    def add_reader(self, fd: int, callback: Callable[[], object], /) -> object: ...

    def remove_reader(self, fd: int, /) -> object: ...

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Any: ...

    def add_writer(self, fd: int, callback: Callable[[], object], /) -> object: ...

    def remove_writer(self, fd: int, /) -> object: ...


class Lanes:
    """A few connections, each of which takes a batch at a time; all calls come from one event loop."""

    def __init__(self, address: object, engine: Engine, loop: Loop, most: int) -> None:
        self._address, self._loop = address, loop
        self._watching = False
        self._all = [_Lane(engine, loop, self) for _ in range(most)]
        self.freed: Callable[[], None] = lambda: None
        """Who is told, after ``told``, that a lane is free again."""

    @property
    def busy(self) -> int:
        """How many batches are on their way."""
        return sum(lane.told is not None for lane in self._all)

    @property
    def free(self) -> bool:
        return any(lane.told is None for lane in self._all)

    def add_queries(self, rows: Sequence[LoggedQuery], told: Told) -> None:
        """Send searches on a free lane, all or none; one that is there stays.

        Where it is not certain that they are stored they may be sent again: they are stored once. Raises what ``Store`` raises
        where they cannot even be sent.
        """
        if not rows:
            told(True)
            return
        with explained(self._address):
            next(lane for lane in self._all if lane.told is None).send(rows, told)
        if not self._watching:
            self._watching = True
            self._loop.call_later(LOOK_S, self._watch)

    def _watch(self) -> None:
        for lane in self._all:
            if lane.told is not None:
                lane.look()
        self._watching = bool(self.busy)
        if self._watching:
            self._loop.call_later(LOOK_S, self._watch)

    def close(self) -> None:
        """Close the connections; what is on its way is not waited for."""
        for lane in self._all:
            lane.close()


class _Lane:
    """One connection of its own, opened when it is first used and again after it broke."""

    def __init__(self, engine: Engine, loop: Loop, lanes: Lanes) -> None:
        self._engine, self._loop, self._lanes = engine, loop, lanes
        self._driver: Any = None
        self._number = -1
        """Of the socket; a line that broke does not know it any more."""
        self._prepared: dict[str, bytes] = {}
        self._next: tuple[bytes, bytes] | None = None
        """What is sent once PostgreSQL has read the statement: its name and its parameter."""
        self._well = False
        self.told: Told | None = None

    def send(self, rows: Sequence[LoggedQuery], told: Told) -> None:
        text, content = numbered_statement(QUERY, rows)
        if len(self._prepared) >= STATEMENTS and text not in self._prepared:
            self.close()  # and with it PostgreSQL forgets them
        try:
            if self._driver is None:
                self._open()
            self._begin(text, content.encode())
        except BaseException:
            self.close()
            raise
        self.told = told

    @property
    def _line(self) -> PGconn:
        found: PGconn = self._driver.pgconn
        return found

    def _open(self) -> None:
        connection = self._engine.raw_connection()
        self._driver = connection.driver_connection
        connection.detach()  # from the pool, which would close it, or lend it to others
        self._number = self._line.socket
        self._line.nonblocking = 1
        self._loop.add_reader(self._number, self.look)

    def _begin(self, text: str, content: bytes) -> None:
        """Send a statement, or first let PostgreSQL read it: once for each choice of columns that rows fill together."""
        name = self._prepared.get(text)
        self._next = None
        if name is None:
            name = self._prepared[text] = f"rows_{len(self._prepared)}".encode()
            self._next = (name, content)
            self._line.send_prepare(name, text.encode())
        else:
            self._line.send_query_prepared(name, [content])
        self._push()

    def _push(self) -> None:
        self._well = False
        if self._line.flush():
            self._loop.add_writer(self._number, self._push_on)

    def _push_on(self) -> None:
        """Send what was too much for the operating system at first."""
        with self._breaking():
            if not self._line.flush():
                self._loop.remove_writer(self._number)

    def look(self) -> None:
        """Read what PostgreSQL says, and tell once that is all of it."""
        over = False
        with self._breaking():
            self._line.consume_input()
            over = self._read()
            if over and self._well and self._next is not None:
                (name, content), self._next = self._next, None
                self._line.send_query_prepared(name, [content])
                self._push()
                over = False
        if over:
            if not self._well:
                self.close()  # whatever it is that PostgreSQL has forgotten or refuses, a new line begins anew
            self._end(stored=self._well)

    def _read(self) -> bool:
        """Take the results that are here; True where no more will come."""
        from psycopg.pq import ExecStatus

        while not self._line.is_busy():
            found = self._line.get_result()
            if found is None:
                return self.told is not None
            self._well = found.status == ExecStatus.COMMAND_OK
        return False

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """Let a line that breaks be closed, and whoever waits for it know; another one is opened for the next batch."""
        import psycopg

        try:
            yield
        except (psycopg.Error, OSError):
            self.close()
            self._end(stored=False)

    def _end(self, *, stored: bool) -> None:
        told, self.told = self.told, None
        if told is not None:
            try:
                told(stored)
            finally:
                self._lanes.freed()

    def close(self) -> None:
        driver, self._driver, self._prepared = self._driver, None, {}
        if driver is not None:
            self._loop.remove_reader(self._number)
            self._loop.remove_writer(self._number)
            driver.close()
