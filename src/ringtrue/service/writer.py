"""The intake in a process of its own, so that writing does not take the processor from answering (W-3).

Threads of one Python process take turns; what the writer does for a search costs about as much as all the rest of its request.
Here the rows go through a pair of sockets to a second process, which runs the very same ``Intake``, and what became of them
comes back: a request is answered, as ever, after its commit. Should that process die, whoever waits is refused, nothing is
acknowledged that is not stored, and another one is started.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from operator import attrgetter
from typing import Any

from ringtrue.errors import UNDECIDED, RingtrueError
from ringtrue.online.lines import Row
from ringtrue.service.errors import Refused
from ringtrue.service.intake import MOST_BYTES, MOST_ROWS, ROW_BYTES, TO_CLOSE, Intake, IntakeFigures
from ringtrue.store import FeedbackEvent, LoggedQuery, Store

KINDS: tuple[type[Row], ...] = (LoggedQuery, FeedbackEvent)
_PARTS = {kind: attrgetter(*(field.name for field in fields(kind))) for kind in KINDS}
"""Records travel as tuples of their fields: three times as fast as objects."""
GATHERED_S = 0.003
"""So long requests are gathered before they are sent next door together."""
HEAD = 4
"""Bytes of a message's length."""
PAUSE_S, SHORT_S = 1.0, 3.0
"""Before a writer that died young is started again, and what is young."""
NOTHING = IntakeFigures(0, 0, 0, 0, 0, 0, 0, 0, 0, None, None)

Sent = tuple[int, int, list[tuple[Any, ...]], int, bool]
"""Number of the request, kind of its rows, the rows, bytes, and whether their ids were made just now."""
Answered = tuple[int, int | tuple[int, str, str, str | None, dict[str, str]]]
"""Number of the request, and how many are new, or the refusal."""


class WriterProcess:
    """Takes what ``Intake`` takes and answers what it answers; the work is done next door. One event loop uses it."""

    def __init__(self, address: str, *, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES) -> None:
        self._address, self._most_rows, self._most_bytes = address, most_rows, most_bytes
        self._outgoing: list[Sent] = []
        self._waiting: dict[int, tuple[asyncio.Future[int], int, int]] = {}
        self._number = self._rows = self._bytes = self._turned_away = self._lost = 0
        self._figures = self._before = NOTHING
        self._closed = self._due = False
        self._begun = 0.0
        self._line: asyncio.Transport | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None

    async def open(self) -> None:
        """Start the process, and use it from this event loop."""
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        await self._connect()

    async def queries(self, rows: Sequence[LoggedQuery], *, size: int = 0, fresh: bool = False) -> int:
        """Store searches and return how many are new, once they are committed; raises Refused, as ``Intake.queries``."""
        return await self._take(rows, LoggedQuery, size, fresh=fresh)

    async def feedback(self, rows: Sequence[FeedbackEvent], *, size: int = 0, fresh: bool = False) -> int:
        """Store feedback; as ``queries``."""
        return await self._take(rows, FeedbackEvent, size, fresh=fresh)

    def _take(self, rows: Sequence[Row], kind: type[Row], size: int, *, fresh: bool) -> asyncio.Future[int]:
        loop = self._loop
        assert loop is not None, "open it first"
        future: asyncio.Future[int] = loop.create_future()
        if not rows:
            future.set_result(0)
            return future
        held, count = size + ROW_BYTES * len(rows), len(rows)
        if self._closed:
            self._turned_away += count
            raise Refused(503, "stopping", "this server is stopping; try again", headers={"Retry-After": "5"})
        if self._rows and (self._rows + count > self._most_rows or self._bytes + held > self._most_bytes):
            self._turned_away += count
            said = f"{self._rows:,} rows wait to be stored already; send fewer at a time, and this one again in a second"
            raise Refused(503, "busy", said, headers={"Retry-After": "1"})
        self._number += 1
        self._rows += count
        self._bytes += held
        self._waiting[self._number] = (future, count, held)
        parts = _PARTS[kind]
        self._outgoing.append((self._number, KINDS.index(kind), [parts(row) for row in rows], size, fresh))
        if not self._due:
            self._due = True
            loop.call_later(GATHERED_S, self._flush)
        return future

    @property
    def alive(self) -> bool:
        """True while what is taken will be written."""
        return self._child is not None and self._child.poll() is None and not self._closed

    @property
    def figures(self) -> IntakeFigures:
        """What became of the rows so far, as the writer last said."""
        now, before = self._figures, self._before
        return replace(
            now,
            accepted=now.accepted + before.accepted,
            stored=now.stored + before.stored,
            there=now.there + before.there,
            refused=now.refused + before.refused + self._turned_away + self._lost,
            forgotten=now.forgotten + before.forgotten,
            waiting=self._rows,
            waiting_bytes=self._bytes,
        )

    async def finish(self, timeout: float = TO_CLOSE) -> bool:
        """Take nothing more, have everything stored that was taken, and end; False where that did not succeed in time."""
        self._closed = True
        self._flush()
        if self._line is not None:
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
        self._begun = time.monotonic()
        here, there = socket.socketpair()
        with there:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "ringtrue.service.writer", str(there.fileno())],
                pass_fds=(there.fileno(),),
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # who stops the server stops it, and it ends when the line does
            )
        assert self._loop is not None
        here.setblocking(False)
        line, _ = await self._loop.create_connection(lambda: _Line(self._heard, self._cut), sock=here)
        line.write(_framed(self._address))  # not as an argument, which others on this machine could read
        self._line = line
        self._flush()

    def _flush(self) -> None:
        self._due = False
        if self._outgoing and self._line is not None:
            batch, self._outgoing = self._outgoing, []
            self._line.write(_framed(batch))

    def _heard(self, message: tuple[list[Answered], dict[str, Any]]) -> None:
        answers, figures = message
        self._figures = IntakeFigures(**figures)
        for number, answer in answers:
            found = self._waiting.pop(number, None)
            if found is not None:
                future, rows, held = found
                self._rows -= rows
                self._bytes -= held
                _keep(future, answer)

    def _cut(self) -> None:
        """The line has ended: as it should, or because the writer died, and then another one is started."""
        self._line = None
        if self._closed:
            if self._ended is not None:
                self._ended.set()
            return
        self._before, self._figures = replace(self.figures, waiting=0, waiting_bytes=0), NOTHING
        self._turned_away = self._lost = 0
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
        for future, rows, _ in lost:
            self._lost += rows
            _keep(future, (503, "store_unavailable", said, None, {"Retry-After": "1"}))


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


def _keep(future: asyncio.Future[int], answer: Any) -> None:
    if future.done():  # who asked went away
        return
    if isinstance(answer, int):
        future.set_result(answer)
    else:
        status, code, message, place, headers = answer
        future.set_exception(Refused(status, code, message, field=place, headers=headers))


# ── the writer itself ───────────────────────────────────────────────────────────────────────────────────────────────


class _Receipt:
    """A promise that is kept next door."""

    __slots__ = ("answer", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.answer: Any = None

    def done(self) -> bool:
        return False

    def set_result(self, result: int, /) -> None:
        self.answer = result

    def set_exception(self, problem: Refused, /) -> None:
        self.answer = (problem.status, problem.code, problem.message, problem.field, problem.headers)


class _Replies:
    """Sends what became of a batch back over the line."""

    def __init__(self, line: socket.socket, intake: Intake) -> None:
        self._line, self._intake, self._lock = line, intake, threading.Lock()

    def call_soon_threadsafe(self, tell: Callable[..., None], /, waiters: Sequence[Any]) -> None:
        tell(waiters)
        self.send([one.future for one in waiters])

    def send(self, receipts: Sequence[_Receipt]) -> None:
        """Send answers; where nobody listens any more, nobody waits for them either."""
        answers = [(one.number, one.answer) for one in receipts]
        with self._lock, contextlib.suppress(OSError):
            self._line.sendall(_framed((answers, asdict(self._intake.figures))))


def _messages(line: socket.socket) -> Iterator[Any]:
    """Yield what comes over a line until it ends."""
    with line.makefile("rb") as reader:
        while len(head := reader.read(HEAD)) == HEAD:
            size = int.from_bytes(head, "big")
            body = reader.read(size)
            if len(body) < size:
                return
            yield pickle.loads(body)


def main(line: socket.socket) -> None:
    """Write what comes over a line until it ends; what was taken by then is stored first."""
    messages = _messages(line)
    with Store.open(next(messages)) as store:
        intake = Intake(store)
        replies = _Replies(line, intake)
        intake.start()
        for batch in messages:
            if batch is None:
                break
            for number, kind, rows, size, fresh in batch:
                receipt = _Receipt(number)
                record = KINDS[kind]
                try:
                    made = [record(*row) for row in rows]
                    intake.put(made, record, size, fresh=fresh, loop=replies, future=receipt)
                except Refused as problem:
                    receipt.set_exception(problem)
                    replies.send([receipt])
        intake.close()
    line.close()


if __name__ == "__main__":
    try:
        main(socket.socket(fileno=int(sys.argv[1])))
    except RingtrueError:  # the server cannot reach the store either, and says so
        sys.exit(UNDECIDED)
