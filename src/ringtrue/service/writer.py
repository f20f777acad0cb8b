"""The intake in a process of its own, so that writing does not take the processor from answering, nor pages from logging (W-3).

Threads of one Python process take turns; what is done for a search costs more than all the rest of its request, and a page that
is drawn, or an evaluation, takes turns with every search that is logged. Here a second process runs the very same ``Intake``.
Connections that log and nothing else are lent to it and answered there (``plain.py``); what reaches the server in any other way
goes through a pair of sockets, and the answer comes back. A request is answered, as ever, after its commit. Should that process
die, whoever waits is refused or hung up on, nothing is acknowledged that is not stored, and another one is started.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import logging
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from operator import attrgetter
from typing import Any

from ringtrue.errors import UNDECIDED, RingtrueError
from ringtrue.online.lines import Row
from ringtrue.service.errors import Refused, refused
from ringtrue.service.incoming import MOST, Incoming, Receipt
from ringtrue.service.intake import MOST_BYTES, MOST_ROWS, ROW_BYTES, TO_CLOSE, Intake, IntakeFigures, Promise, trouble
from ringtrue.service.plain import Connection, Observed, Rules
from ringtrue.service.plain import Counter as Answering
from ringtrue.store import FeedbackEvent, LoggedQuery, Store
from ringtrue.store.lanes import Lanes

try:
    from uvloop import run
except ImportError:  # pragma: no cover  (Windows)
    from asyncio import run  # type: ignore[assignment]

_LOG = logging.getLogger("ringtrue.service")

KINDS: tuple[type[Row], ...] = (LoggedQuery, FeedbackEvent)
DRAIN = "drain"
"""The message that tells the writer to close each connection with its next answer."""
BODIES, LENT = len(KINDS), len(KINDS) + 1
"""The kinds of what is not read yet: bodies of requests, and connections with what has come over them."""
_PARTS = {kind: attrgetter(*(field.name for field in fields(kind))) for kind in KINDS}
"""Records travel as tuples of their fields: three times as fast as objects."""
GATHERED_S = 0.002
"""So long requests are gathered before they are sent next door together."""
HEAD = 4
"""Bytes of a message's length."""
TO_OPEN = 10.0
"""Seconds that the start of the server waits for the writer, which loads its modules and opens the store."""
PAUSE_S, SHORT_S = 1.0, 3.0
"""Before a writer that died young is started again, and what is young."""
TURN_S = 0.0002
"""After how long the writer's own threads make way for each other."""
COLLECTED = (20_000, 20, 20)
"""Python's thresholds of its search for garbage, some thirty times as seldom as usual: requests leave hardly any."""
NUMBER = 8
"""Bytes of a connection's number on its way to the other process."""
MOST_TRIES, AGAIN_S = 100, 0.01
TICK_S = 0.1
BEATS = 10
"""Ticks after which the figures are told in any case: the server learns from them that the writer is alive."""
SILENT_S = 3.0
"""Seconds without a word after which the writer counts as frozen."""
LANES = 2
"""Batches that may be on their way to PostgreSQL: one that is slow to arrive does not hold up the next."""
MANY = 4
"""Rows of a batch from which on requests come so fast that more of them will be there by the next."""
SHORTEST_S = 0.001
"""Timers of the loop have no finer marks."""
TO_HANG_UP = 3.0
"""Seconds that the last answers have to reach those who wait for them."""
NOTHING = IntakeFigures(0, 0, 0, 0, {}, 0, 0, 0, 0, 0, None, None)

Sent = tuple[int, int, Any, Any, bool]
"""Number and kind; then rows, their bytes, and whether their ids are new; or a body and its project; or what a connection
brought and from whom."""
Refusal = tuple[int, str, str, str | None, dict[str, str]]
Answered = tuple[int, Refusal | None, Any]
"""Number of the request, the refusal if it is one, and else how many are new, or the parts of a receipt."""
Told = Callable[[Refused | None, Any], None]
"""Who is told what became of a request: the refusal, or None and the result."""


class WriterProcess:
    """Takes what ``Intake`` takes and answers what it answers; the work is done next door. One event loop uses it."""

    def __init__(
        self,
        address: str,
        rules: Rules | None = None,
        *,
        most_rows: int = MOST_ROWS,
        most_bytes: int = MOST_BYTES,
        observed: Callable[[Sequence[Observed]], None] = lambda found: None,
    ) -> None:
        self._address, self._rules, self._most_rows, self._most_bytes = address, rules, most_rows, most_bytes
        self._observed = observed
        self.given_back: Callable[[socket.socket, bytes], None] = lambda connection, _: connection.close()
        """Who takes connections that do more than log."""
        self._lent = itertools.count(1)
        self._back: dict[int, socket.socket | bytes] = {}
        self._handle: socket.socket | None = None
        self._outgoing: list[Sent] = []
        self._waiting: dict[int, tuple[Told, int, int, str]] = {}
        self._number = self._rows = self._bytes = 0
        self._refused: Counter[str] = Counter()
        """Rows refused on this side, by project."""
        self._figures = self._before = NOTHING
        self._closed = self._due = False
        self._begun = self._heard_at = 0.0
        self._line: asyncio.Transport | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._again: asyncio.Task[None] | None = None
        self._ended: asyncio.Event | None = None
        self._heard_of = asyncio.Event()
        """Set once the writer takes what comes, or has ended before it could."""

    async def open(self) -> None:
        """Start the process, and use it from this event loop; returns when it takes what comes, unless that takes too long.

        What is given to it before waits there, so that nothing is lost; but the first who log would wait as well.
        """
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        await self._connect()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._heard_of.wait(), TO_OPEN)

    def lend(self, connection: int, peer: str, brought: bytes) -> bool:
        """Let a connection (its descriptor), with what it brought so far, be answered next door; False where that cannot be.

        It belongs to whoever lends it until then, and is to be closed here afterwards.
        """
        if self._rules is None or self._handle is None or self._line is None or self._closed:
            return False
        number = next(self._lent)
        try:
            socket.send_fds(self._handle, [number.to_bytes(NUMBER, "big")], [connection])
        except OSError:  # too many are on their way
            return False
        self._outgoing.append((number, LENT, brought, peer, False))
        self._flush()
        return True

    async def log(self, body: bytes, project: str) -> Receipt:
        """Store the searches of a request's body and return what is answered, as ``Intake.log``; all it raises is Refused."""
        assert self._loop is not None, "open it first"
        future: asyncio.Future[Receipt] = self._loop.create_future()
        # How many searches it holds is known next door only; each has this word.
        count = min(MOST, max(1, body.count(b'"tool_name"')))
        held = len(body) + ROW_BYTES * count
        self._take(BODIES, body, project, project, count=count, held=held, fresh=False, told=partial(_keep, future))
        return await future

    async def queries(self, rows: Sequence[LoggedQuery], *, size: int = 0, fresh: bool = False) -> int:
        """Store searches and return how many are new, once they are committed; raises Refused, as ``Intake.queries``."""
        return await self._rows_in(rows, LoggedQuery, size, fresh=fresh)

    async def feedback(self, rows: Sequence[FeedbackEvent], *, size: int = 0, fresh: bool = False) -> int:
        """Store feedback; as ``queries``."""
        return await self._rows_in(rows, FeedbackEvent, size, fresh=fresh)

    async def _rows_in(self, rows: Sequence[Row], kind: type[Row], size: int, *, fresh: bool) -> int:
        if not rows:
            return 0
        assert self._loop is not None, "open it first"
        future: asyncio.Future[int] = self._loop.create_future()
        parts, held = [_PARTS[kind](row) for row in rows], size + ROW_BYTES * len(rows)
        told = partial(_keep, future)
        self._take(KINDS.index(kind), parts, size, rows[0].project, count=len(rows), held=held, fresh=fresh, told=told)
        return await future

    def _take(
        self, kind: int, content: Any, more: Any, project: str, *, count: int, held: int, fresh: bool, told: Told
    ) -> None:
        if self._closed:
            self._refused[project] += count
            raise Refused(503, "stopping", "this server is stopping; try again", headers={"Retry-After": "5"})
        if self._rows and (self._rows + count > self._most_rows or self._bytes + held > self._most_bytes):
            self._refused[project] += count
            said = f"{self._rows:,} rows wait to be stored already; send fewer at a time, and this one again in a second"
            raise Refused(503, "busy", said, headers={"Retry-After": "1"})
        self._number += 1
        self._rows += count
        self._bytes += held
        self._waiting[self._number] = (told, count, held, project)
        self._outgoing.append((self._number, kind, content, more, fresh))
        if not self._due:
            self._due = True
            assert self._loop is not None
            self._loop.call_later(GATHERED_S, self._flush)

    @property
    def alive(self) -> bool:
        """True while what is taken will be written."""
        return self._child is not None and self._child.poll() is None and not self._closed

    @property
    def trouble(self) -> str | None:
        """Why nothing can be stored at the moment; None if it can."""
        if self.alive and time.monotonic() - self._heard_at > SILENT_S:
            return "the writer does not answer"
        return trouble(self.alive, self._figures.problem)

    @property
    def figures(self) -> IntakeFigures:
        """What became of the rows so far, as the writer last said."""
        now, before = self._figures, self._before
        return replace(
            now,
            accepted=now.accepted + before.accepted,
            stored=now.stored + before.stored,
            there=now.there + before.there,
            refused=now.refused + before.refused + self._refused.total(),
            refused_of=Counter(now.refused_of) + Counter(before.refused_of) + self._refused,
            forgotten=now.forgotten + before.forgotten,
            waiting=max(self._rows, now.waiting),
            waiting_bytes=max(self._bytes, now.waiting_bytes),
        )

    def drain(self) -> None:
        """Let connections that were lent end with their next answer."""
        if self._line is not None:
            self._flush()
            self._line.write(_framed(DRAIN))

    async def finish(self, timeout: float = TO_CLOSE) -> bool:
        """Take nothing more, have everything stored that was taken, and end; False where that did not succeed in time."""
        self._closed = True
        self._flush()
        if self._again is not None:
            self._again.cancel()
        if self._line is not None:  # without one there is nobody to wait for
            self._line.write(_framed(None))
            assert self._ended is not None
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), timeout)
        done = not self._waiting
        self._fail("this server is stopping, and nothing of this is stored; try again")
        if self._line is not None:
            self._line.close()
        if self._child is not None:
            try:
                await asyncio.to_thread(self._child.wait, 5)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        return done

    # ── the line to the writer ───────────────────────────────────────────────────────────────────────────────────────

    async def _connect(self) -> None:
        self._begun = self._heard_at = time.monotonic()
        here, there = socket.socketpair()
        handle, other = socket.socketpair()
        with there, other:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "ringtrue.service.writer", str(there.fileno()), str(other.fileno())],
                pass_fds=(there.fileno(), other.fileno()),
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # who stops the server stops it, and it ends when the line does
            )
        assert self._loop is not None
        here.setblocking(False)
        handle.setblocking(False)
        line, _ = await self._loop.create_connection(lambda: _Line(self._heard, self._cut), sock=here)
        line.write(_framed((self._address, self._rules)))  # not as an argument, which others on this machine could read
        self._line, self._handle = line, handle
        self._loop.add_reader(handle, partial(_received, handle, self._came_back))
        self._flush()

    def _came_back(self, number: int, part: socket.socket | bytes) -> None:
        """Join a connection that comes back with what it brought; the two come by different ways."""
        other = self._back.pop(number, None)
        if other is None:
            self._back[number] = part
        elif isinstance(part, bytes) and isinstance(other, socket.socket):
            self.given_back(other, part)
        elif isinstance(part, socket.socket) and isinstance(other, bytes):
            self.given_back(part, other)

    def _flush(self) -> None:
        self._due = False
        if self._outgoing and self._line is not None:
            batch, self._outgoing = self._outgoing, []
            self._line.write(_framed(batch))

    def _heard(self, message: tuple[list[Answered], dict[str, Any], list[Observed], list[tuple[int, bytes]]]) -> None:
        answers, figures, observed, back = message
        self._heard_of.set()
        self._heard_at = time.monotonic()
        self._figures = IntakeFigures(**figures)
        self._observed(observed)
        for number, rest in back:
            self._came_back(number, rest)
        for number, refusal, result in answers:
            found = self._waiting.pop(number, None)
            if found is not None:
                told, rows, held, _ = found
                self._rows -= rows
                self._bytes -= held
                told(None if refusal is None else _refused(refusal), Receipt(*result) if isinstance(result, tuple) else result)

    def _cut(self) -> None:
        """The line has ended: as it should, or because the writer died, and then another one is started."""
        self._line = None
        self._heard_of.set()
        if self._handle is not None and self._loop is not None:
            self._loop.remove_reader(self._handle)
            self._handle.close()
            self._handle = None
        for part in self._back.values():
            if isinstance(part, socket.socket):
                part.close()
        self._back.clear()
        if self._closed:
            if self._ended is not None:
                self._ended.set()
            return
        self._before, self._figures = replace(self.figures, waiting=0, waiting_bytes=0), NOTHING
        self._refused.clear()
        self._fail("the writer ended, and it is not certain that this is stored; send it again")
        assert self._loop is not None
        self._again = self._loop.create_task(self._begin_again())

    async def _begin_again(self) -> None:
        if self._child is not None:
            await asyncio.to_thread(self._child.wait)
        while not self._closed:
            # One that dies as soon as it begins would be started for ever: its store cannot be opened.
            await asyncio.sleep(PAUSE_S if time.monotonic() - self._begun < SHORT_S else 0.0)
            try:
                await self._connect()
                return
            except OSError:
                self._begun = time.monotonic()

    def _fail(self, said: str) -> None:
        lost, self._waiting, self._outgoing = list(self._waiting.values()), {}, []
        self._rows = self._bytes = 0
        for told, rows, _, project in lost:
            self._refused[project] += rows
            told(Refused(503, "store_unavailable", said, headers={"Retry-After": "1"}), None)


class _Line(asyncio.Protocol):
    """Takes messages apart: a length of four bytes, and so many bytes of a pickle between two processes of our own."""

    def __init__(self, heard: Callable[[Any], None], cut: Callable[[], None]) -> None:
        self._heard, self._cut, self._got = heard, cut, bytearray()

    def data_received(self, data: bytes) -> None:
        got = self._got
        got += data
        while len(got) >= HEAD and len(got) >= (end := HEAD + int.from_bytes(got[:HEAD], "big")):
            message = pickle.loads(bytes(got[HEAD:end]))
            del got[:end]
            self._heard(message)

    def connection_lost(self, problem: Exception | None) -> None:
        self._cut()


def _framed(message: object) -> bytes:
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return len(body).to_bytes(HEAD, "big") + body


def _keep(future: asyncio.Future[Any], problem: Refused | None, result: Any) -> None:
    if future.done():  # who asked went away
        return
    if problem is None:
        future.set_result(result)
    else:
        future.set_exception(problem)


def _refused(refusal: Refusal) -> Refused:
    status, code, message, place, headers = refusal
    return Refused(status, code, message, field=place, headers=headers)


def _received(handle: socket.socket, came: Callable[[int, socket.socket], None]) -> None:
    """Take a connection that another process sent."""
    with contextlib.suppress(OSError):
        number, descriptors, _, _ = socket.recv_fds(handle, NUMBER, 1)
        for descriptor in descriptors:
            connection = socket.socket(fileno=descriptor)
            connection.setblocking(False)
            came(int.from_bytes(number, "big"), connection)


# ── the writer itself ───────────────────────────────────────────────────────────────────────────────────────────────


class _Promise:
    """A promise that is kept next door."""

    __slots__ = ("found", "keep", "number")

    def __init__(self, number: int, keep: Callable[[Answered], None]) -> None:
        self.number, self.keep = number, keep
        self.found: Incoming | None = None

    def done(self) -> bool:
        return False

    def set_result(self, result: int, /) -> None:
        receipt = None if self.found is None else self.found.receipt(result)
        self.keep((self.number, None, result if receipt is None else (receipt.body, receipt.spent)))

    def set_exception(self, problem: Refused, /) -> None:
        self.keep((self.number, (problem.status, problem.code, problem.message, problem.field, problem.headers), None))


class Desk:
    """The writer's side of the line: takes what comes over it, and sends back what became of that."""

    def __init__(self, line: socket.socket, handle: socket.socket) -> None:
        self._ends, self._handle = line, handle
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[tuple[str, Rules | None]] = self._loop.create_future()
        self._ending, self._cut = asyncio.Event(), asyncio.Event()
        self._early: list[list[Sent]] | None = []
        """What comes before the store is open."""
        self._answers: list[Answered] = []
        self._back: list[tuple[int, bytes]] = []
        self._came: dict[int, tuple[bytes, str] | socket.socket] = {}
        self._adopting: set[asyncio.Task[None]] = set()
        self._returned = itertools.count(1)
        self._telling = self._writing = False
        self._next = 0.0
        """When the next batch may be written, by the monotonic clock."""
        self._counter: Answering | None = None
        self._lanes: Lanes | None = None

    async def work(self) -> None:
        """Write what comes until the line ends or its other side asks for that; what was taken by then is stored first."""
        for one in (self._ends, self._handle):
            one.setblocking(False)
        self._line, _ = await self._loop.create_connection(lambda: _Line(self._heard, self._hung_up), sock=self._ends)
        address, rules = await self._opened
        with Store.open(address) as store, store.checkpoints_beside():
            self._intake = Intake(store)
            self._lanes = store.lanes(self._loop, LANES)
            if self._lanes is not None:
                self._lanes.freed = self._go_on
            if rules is not None:
                self._counter = Answering(rules, store, self._put, self._give_back)
                self._loop.add_reader(self._handle, partial(_received, self._handle, self._joined))
            early, self._early = self._early or [], None
            for batch in early:
                self._take(batch)
            gc.collect()
            gc.freeze()  # what was imported stays, and is not looked through again and again
            gc.set_threshold(*COLLECTED)
            self._tell()  # that it is open
            ticking = self._loop.create_task(self._tick())
            await self._ending.wait()
            await self._close()
            ticking.cancel()

    async def _close(self) -> None:
        if self._counter is not None:
            self._loop.remove_reader(self._handle)
            self._counter.close()
        if self._lanes is not None:
            await self._last_arrivals(self._lanes)
        await asyncio.to_thread(self._intake.close)
        await asyncio.sleep(0)  # who waited for the last batch is told in this loop
        self._tell()
        self._line.close()
        until = self._loop.time() + TO_HANG_UP
        while self._loop.time() < until and (not self._cut.is_set() or (self._counter and self._counter.connections)):
            await asyncio.sleep(0.01)

    async def _last_arrivals(self, lanes: Lanes) -> None:
        until = self._loop.time() + TO_CLOSE / 2  # the rest is for what is not on its way yet
        while lanes.busy and self._loop.time() < until:
            await asyncio.sleep(0.005)
        lanes.close()

    def _heard(self, message: Any) -> None:
        if message is None:
            self._ending.set()
        elif message == DRAIN:
            if self._counter is not None:
                self._counter.closing = True
        elif isinstance(message, tuple):
            self._opened.set_result(message)
        elif self._early is not None:
            self._early.append(message)
        else:
            self._take(message)

    def _hung_up(self) -> None:
        self._cut.set()
        self._ending.set()
        if not self._opened.done():
            self._opened.cancel()

    def _take(self, batch: list[Sent]) -> None:
        for number, kind, content, more, fresh in batch:
            if kind == LENT:
                self._joined(number, (content, more))
                continue
            promise = _Promise(number, self._keep)
            try:
                if kind == BODIES:
                    promise.found = found = Incoming.read(content, more)
                    self._put(found.rows, LoggedQuery, len(content), fresh=found.fresh, future=promise)
                else:
                    made = [KINDS[kind](*row) for row in content]
                    self._put(made, KINDS[kind], more, fresh=fresh, future=promise)
            except Exception as problem:  # whatever one request brings, the others are written
                known = refused(problem)
                if known.status >= 500 and not isinstance(problem, Refused):
                    _LOG.error("a request could not be read: %s", type(problem).__name__)
                promise.set_exception(known)

    def _put(self, rows: Sequence[Row], kind: type[Row], size: int, *, fresh: bool, future: Promise) -> None:
        self._intake.put(rows, kind, size, fresh=fresh, loop=self._loop, future=future)
        self._go_on()

    def _go_on(self) -> None:
        if not self._writing and self._intake.pending:
            # In turn with the requests: a thread would quarrel with them over the processor, which costs more than it saves.
            self._writing = True
            self._write_in_turn()

    def _write_in_turn(self) -> None:
        # By the clock itself: the loop's own stands still while something is done, and its timers come too early by that much.
        early = self._next - time.monotonic()
        if early > 0:
            self._loop.call_later(max(early, SHORTEST_S), self._write_in_turn)
        else:
            # The loop looks at its connections between two turns, so that what has come by now goes along.
            self._loop.call_soon(self._loop.call_soon, self._write)

    def _write(self) -> None:
        self._writing = False
        if not self._ending.is_set():  # the end writes what is left itself
            if self._lanes is not None:
                self._next = self._intake.write_by(self._lanes)
                return
            self._next = self._intake.write()
            if self._intake.figures.last_batch >= MANY:
                # Not before the answers have left, which the loop sends between two turns.
                self._loop.call_soon(self._loop.call_soon, self._rest)

    def _rest(self) -> None:
        """Look at no connection until the next batch is due: what is read together costs less than one by one."""
        time.sleep(max(0.0, self._next - time.monotonic()))

    # ── connections ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _joined(self, number: int, part: tuple[bytes, str] | socket.socket) -> None:
        """Join a connection with what it brought; the two come by different ways."""
        other = self._came.pop(number, None)
        if other is None:
            self._came[number] = part
            return
        connection, (brought, peer) = (part, other) if isinstance(part, socket.socket) else (other, part)  # type: ignore[misc]
        task = self._loop.create_task(self._adopt(connection, brought, peer))  # type: ignore[arg-type]
        self._adopting.add(task)
        task.add_done_callback(self._adopting.discard)

    async def _adopt(self, connection: socket.socket, brought: bytes, peer: str) -> None:
        assert self._counter is not None
        one = Connection(self._counter, peer, brought)
        try:
            await self._loop.connect_accepted_socket(lambda: one, connection)
        except OSError:  # hung up already
            connection.close()

    def _give_back(self, connection: Connection, rest: bytes, *, tries: int = 0) -> None:
        descriptor = connection.transport.get_extra_info("socket").fileno()
        number = next(self._returned)
        try:
            socket.send_fds(self._handle, [number.to_bytes(NUMBER, "big")], [descriptor])
        except BlockingIOError:
            if tries < MOST_TRIES:
                self._loop.call_later(AGAIN_S, partial(self._give_back, connection, rest, tries=tries + 1))
                return
        except OSError:  # the server is gone
            pass
        else:
            self._back.append((number, rest))
            self._soon()
        connection.transport.abort()

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _keep(self, answer: Answered) -> None:
        self._answers.append(answer)
        self._soon()

    def _soon(self) -> None:
        """Tell what has gathered when all of this moment has."""
        if not self._telling:
            self._telling = True
            self._loop.call_soon(self._tell)

    def _tell(self) -> None:
        self._telling = False
        answers, self._answers = self._answers, []
        back, self._back = self._back, []
        observed = [] if self._counter is None else self._counter.take_observed()
        if not self._cut.is_set():
            self._line.write(_framed((answers, asdict(self._intake.figures), observed, back)))

    async def _tick(self) -> None:
        """Tell the figures now and then, also if nothing happens; try a write after one that failed."""
        for ticks in itertools.count():
            await asyncio.sleep(TICK_S)
            beat = ticks % BEATS == 0
            if beat:
                await asyncio.to_thread(self._intake.probe)
            if beat or (self._counter is not None and self._counter.observed):
                self._tell()


async def main(line: socket.socket, handle: socket.socket) -> None:
    """Be the writer at the other ends of these sockets."""
    await Desk(line, handle).work()


if __name__ == "__main__":
    # Whoever stops the server may stop every process of it at once; this one ends with the line, when all is written.
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN)
    sys.setswitchinterval(TURN_S)
    ends = [socket.socket(fileno=int(argument)) for argument in sys.argv[1:]]
    try:
        run(main(*ends))
    except (RingtrueError, asyncio.CancelledError):  # the server cannot reach the store either, and says so
        sys.exit(UNDECIDED)
