"""From requests to the log: searches and feedback wait in one queue, and those that wait together share a commit.

A request is answered after its rows are in the database and not before: an acknowledged row survives the death of this process.
What cannot be taken is refused at once, and never silently. Readiness says whether the service can take work.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ringtrue.answers import IntakeState
from ringtrue.batching import BatchQueue
from ringtrue.errors import RingtrueError, SearchFailed, Unusable
from ringtrue.log import Redactor
from ringtrue.log.rows import Row, storable, without_deleted_users, write_apart
from ringtrue.service.errors import Refused, clean
from ringtrue.store import FeedbackEvent, LoggedQuery

if TYPE_CHECKING:
    from ringtrue.store import Store

MOST_ROWS = 20_000
"""Rows that may wait: what the databases take in some seconds."""
MOST_BYTES = 64 * 1024 * 1024
ROW_BYTES = 1_300
"""What a row takes in memory beside its texts."""
BATCH = 1_000
"""Rows of one transaction, unless one request has more."""
EVERY_S = 0.02
"""Seconds from the beginning of one transaction to that of the next, at least."""
PATIENCE = 10.0
"""Seconds that a request waits for a database that does not answer."""
SILENT_S = 3.0
"""Seconds after which a transaction that has not come to its end counts as frozen."""
PROBE_S = 1.0
"""How often a write is tried after one has failed, while nobody sends anything: who asks for readiness waits for that."""
SYNC_S = 1.0
"""How often commits are brought to the disk; the death of this process they survive without."""
PAUSES = (0.05, 0.1, 0.3, 1.0)
"""Seconds before the database is tried again, the last for ever after."""
AWAY = (SearchFailed, Unusable, OSError, MemoryError)
"""What is the database's fault and not a row's; worth another try."""
TO_CLOSE = 15.0
"""Seconds that the end of the server waits for the last batch."""
_LOG = logging.getLogger("ringtrue.service")


@dataclass(slots=True, eq=False)
class _Waiter:
    """Rows of one request, and the future that is told when they are stored."""

    rows: Sequence[Row]
    fresh: bool
    since: float
    future: asyncio.Future[int]
    kept: list[Row] = field(default_factory=list)
    """As they are stored: without what may not be."""
    stored: int | None = None
    """How many of them are new; None until they are written."""
    refused: list[str] = field(default_factory=list)
    """What is wrong with each row that cannot be stored."""
    problem: Refused | None = None
    """Why nothing was stored."""

    def refuse(self, row: Row, problem: Exception) -> None:
        """Note that a row cannot be stored."""
        if row in self.kept:
            self.kept.remove(row)
        said = str(problem) if isinstance(problem, RingtrueError) else type(problem).__name__
        self.refused.append(clean(f"'{_name(row)}' cannot be stored: {said}"))

    def answer(self) -> None:
        """Tell who waits, in their loop."""
        if self.future.done():  # the caller went away
            return
        if self.refused and self.problem is None:
            rest = f"; {len(self.rows) - len(self.refused):,} others are stored" if len(self.rows) > len(self.refused) else ""
            self.problem = Refused(422, "not_storable", self.refused[0] + rest, field="body")
        if self.problem is not None:
            self.future.set_exception(self.problem)
        else:
            self.future.set_result(self.stored or 0)


class Intake:
    """Takes the rows of requests and answers when they are stored. One for a server, over the operator's view of the store."""

    def __init__(
        self,
        store: Store,
        *,
        cleaner: Redactor = Redactor(),  # noqa: B008  # frozen
        most_rows: int = MOST_ROWS,
        most_bytes: int = MOST_BYTES,
        patience: float = PATIENCE,
    ) -> None:
        self._store, self._cleaner, self._patience = store, cleaner, patience
        self._queue: BatchQueue[_Waiter] = BatchQueue(
            "ringtrue-intake", self._write_batch,
            most_rows=most_rows, most_bytes=most_bytes, batch=BATCH, every=EVERY_S, idle=self._look_after, written=self._tell,
        )  # fmt: skip
        # Each number is changed by one side only and so needs no lock: the first two by requests, the others by the writer.
        self._accepted = 0
        self._turned_away: Counter[str] = Counter()
        self._stored = self._there = self._forgotten = self._batches = self._last_batch = 0
        self._spoiled: Counter[str] = Counter()
        self._last_ms: float | None = None
        self._problem: str | None = None
        self._probe_at = self._synced_at = time.monotonic()
        self._unsynced = False

    # ── the requests' side, in the event loop ────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Begin to write; what was taken before waits until then."""
        self._queue.start()

    async def add(self, rows: Sequence[Row], *, size: int = 0, fresh: bool = False) -> int:
        """Store searches, or events, and return how many are new, once they are committed; an id that is there already stays.

        ``size`` is how many bytes they came in; ``fresh`` says that their ids were made just now, so that none can be there.
        Raises Refused: 503 if too much is waiting, the server ends or the database does not answer; 422 for a row that
        cannot be stored, while the others are.
        """
        if not rows:
            return 0
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        taken = _Waiter(rows, fresh, time.monotonic(), future)
        if not self._queue.put(taken, size=size + ROW_BYTES * len(rows), rows=len(rows)):
            self.turn_away(rows[0].project, len(rows))
            if self._queue.closed:
                raise Refused(503, "stopping", "this server is stopping; try again", headers={"Retry-After": "5"})
            said = f"{self._queue.rows:,} rows wait to be stored already; send fewer at a time, and this one again in a second"
            raise Refused(503, "busy", said, headers={"Retry-After": "1"})
        self._accepted += len(rows)
        return await future

    def turn_away(self, project: str, rows: int) -> None:
        """Count rows of a project that were refused before they were taken."""
        self._turned_away[project] += rows

    def close(self, timeout: float = TO_CLOSE) -> bool:
        """Take nothing more, store what was taken and end; False if the database did not take it in time."""
        return self._queue.close(timeout)

    @property
    def trouble(self) -> str | None:
        """Why nothing can be stored at the moment, in words that anybody may read; None if it can."""
        if not self._queue.alive:
            return "the writer has stopped"
        if self._problem is not None:
            return "the store accepts no writes"
        return "the store does not answer" if self._queue.writing_for > SILENT_S else None

    @property
    def refused_of(self) -> dict[str, int]:
        """Rows that were refused, before they were taken or by the database, by project."""
        return dict(self._turned_away + self._spoiled)

    @property
    def figures(self) -> IntakeState:
        """What became of the rows so far."""
        return IntakeState(
            accepted=self._accepted,
            stored=self._stored,
            there=self._there,
            refused=self._turned_away.total() + self._spoiled.total(),
            forgotten=self._forgotten,
            waiting=self._queue.rows,
            waiting_bytes=self._queue.bytes,
            batches=self._batches,
            last_batch=self._last_batch,
            last_commit_ms=self._last_ms,
            problem=self._problem,
        )

    # ── the writer's side, in its thread ─────────────────────────────────────────────────────────────────────────────

    def _look_after(self) -> float | None:
        """Try a write if the last one failed, and bring to the disk what was committed; return when to come again."""
        if self._problem is None:
            return self._sync()
        wait = self._probe_at - time.monotonic()
        if wait > 0:
            return wait
        try:
            self._store.check_writable()
        except Exception as problem:
            self._failed(problem)
            return PROBE_S
        self._works()
        return self._sync()

    def _sync(self) -> float | None:
        """Bring commits to the disk, once a second; return when to come again."""
        if not self._unsynced:
            return None
        wait = self._synced_at + SYNC_S - time.monotonic()
        if wait > 0:
            return wait
        try:
            self._store.sync()
        except OSError as problem:
            self._failed(problem)
        self._synced_at, self._unsynced = time.monotonic(), False
        return None

    def _write_batch(self, batch: list[_Waiter]) -> None:
        try:
            self._clean(batch)
            for kind, add in ((LoggedQuery, self._store.add_queries), (FeedbackEvent, self._store.add_feedback)):
                self._write_patiently([one for one in batch if isinstance(one.rows[0], kind)], add)
        except Exception as problem:  # the thread must live on, and nobody may wait for ever
            self._problem = type(problem).__name__
            _LOG.error("a batch could not be stored: %s", self._problem)  # its text may hold what users asked
            self._fail(batch, Refused(500, "internal", "something went wrong here, and nothing of this is stored"))

    def _clean(self, batch: Sequence[_Waiter]) -> None:
        """Make rows that may be stored; one that cannot be redacted is refused, never stored as it came."""
        for waiter, row in ((one, row) for one in batch for row in one.rows):
            try:
                cleaned = self._cleaner.query(row) if isinstance(row, LoggedQuery) else self._cleaner.feedback(row)
                waiter.kept.append(storable(cleaned))
            except Exception as problem:
                waiter.refuse(row, problem)
                self._spoiled[row.project] += 1

    def _write_patiently(self, waiters: Sequence[_Waiter], add: Callable[[Sequence[Any]], int]) -> None:
        """Write, again and again while the database is away, until those who wait have waited long enough."""
        tries = 0
        while waiters:
            begun = time.monotonic()
            try:
                self._write(waiters, add)
            except AWAY as problem:
                self._failed(problem)
                late = [one for one in waiters if one.stored is None and time.monotonic() - one.since >= self._patience]
                self._fail(late, Refused(503, "store_unavailable", self._unsure(), headers={"Retry-After": "5"}))
                waiters = [one for one in waiters if one not in late]
                if waiters:
                    time.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
                tries += 1
            else:
                self._note(waiters, begun)
                return

    def _unsure(self) -> str:
        """Return what is known of rows that a database did not take: of one on another machine only that it did not answer."""
        away = "the store does not take anything at the moment, and"
        if self._store.address.sqlite is not None:
            return f"{away} nothing of this is stored; try again"
        once = "with ids or an Idempotency-Key of your own it is stored once"
        return f"{away} it is not certain that this is stored; try again: {once}"

    def _failed(self, problem: Exception) -> None:
        self._probe_at = time.monotonic() + PROBE_S
        if self._problem is None:
            _LOG.error("the store accepts no writes: %s", clean(str(problem)))
        self._problem = clean(str(problem)) if isinstance(problem, RingtrueError) else type(problem).__name__

    def _works(self) -> None:
        if self._problem is not None:
            _LOG.warning("the store accepts writes again")
        self._problem = None

    def _note(self, waiters: Sequence[_Waiter], since: float) -> None:
        self._works()
        self._last_ms = (time.monotonic() - since) * 1000
        self._last_batch = sum(len(one.kept) for one in waiters)
        self._batches += 1
        stored = sum(one.stored or 0 for one in waiters)
        self._stored += stored
        self._there += self._last_batch - stored
        self._unsynced = True
        self._sync()

    def _fail(self, waiters: Iterable[_Waiter], problem: Refused) -> None:
        for waiter in waiters:
            waiter.stored = 0
            waiter.problem = problem
            self._spoiled[waiter.rows[0].project] += len(waiter.kept)

    def _write(self, waiters: Sequence[_Waiter], add: Callable[[Sequence[Any]], int]) -> None:
        """Write what is not written yet: rows with new ids together, others by request, whose answer says how many are new."""
        self._forget(waiters)
        left = [one for one in waiters if one.stored is None]
        for together in ([one for one in left if one.fresh], *([one] for one in left if not one.fresh)):
            new = self._send(together, add)
            for waiter in together:
                waiter.stored = len(waiter.kept) if waiter.fresh else new

    def _send(self, waiters: Sequence[_Waiter], add: Callable[[Sequence[Any]], int]) -> int:
        """Write all rows, those that the database refuses aside, and return how many are new."""
        new = 0

        def write(part: Sequence[tuple[_Waiter, Row]]) -> None:
            nonlocal new
            new += add([row for _, row in part])

        rows = [(one, row) for one in waiters for row in one.kept]
        write_apart(self._store, rows, write, away=AWAY, refuse=self._refuse)
        return new

    def _refuse(self, item: tuple[_Waiter, Row], problem: Exception) -> None:
        """Note that the database refuses a row."""
        waiter, row = item
        waiter.refuse(row, problem)
        self._spoiled[row.project] += 1

    def _forget(self, waiters: Sequence[_Waiter]) -> None:
        """Leave out what deleted users did before they were deleted: a client that sends again must not bring it back."""
        rows = [row for waiter in waiters for row in waiter.kept]
        left = {id(row) for row in without_deleted_users(self._store, rows)}
        for waiter in waiters:
            self._forgotten += len(waiter.kept)
            waiter.kept = [row for row in waiter.kept if id(row) in left]
            self._forgotten -= len(waiter.kept)

    def _tell(self, batch: list[_Waiter]) -> None:
        for waiter in batch:
            with contextlib.suppress(RuntimeError):  # its loop is closed, and nobody waits any more
                waiter.future.get_loop().call_soon_threadsafe(waiter.answer)


def _name(row: Row) -> str:
    return row.query_id if isinstance(row, LoggedQuery) else row.event_id


ANSWER_S = 2.0
"""Seconds that the store may take for the smallest question."""


class Readiness:
    """Asks the store and the writer of one server; without a writer, the store alone."""

    def __init__(self, store: Store, writer: Intake | None = None) -> None:
        self._store, self._writer = store, writer
        self._lock = threading.Lock()
        self._asked: Future[str | None] | None = None

    def read_problem(self) -> str | None:
        """Return why the store cannot be read; None if it can."""
        with self._lock:
            if self._asked is None or self._asked.done():  # a question that hangs is not asked again
                self._asked = Future()
                threading.Thread(target=self._ask, args=(self._asked,), name="ringtrue-readiness", daemon=True).start()
            asked = self._asked
        try:
            return asked.result(ANSWER_S)
        except TimeoutError:
            return "the store does not answer"

    def write_problem(self) -> str | None:
        """Return why nothing can be logged; None if it can."""
        return None if self._writer is None else self._writer.trouble

    def _ask(self, asked: Future[str | None]) -> None:
        """Look at the store, in a thread that may hang."""
        problem: str | None = None
        try:
            self._store.schema_version()
        except RingtrueError:
            problem = "the store cannot be reached"
        except Exception as other:
            problem = f"the store cannot be read: {type(other).__name__}"
        asked.set_result(problem)
