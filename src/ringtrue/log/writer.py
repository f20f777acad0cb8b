"""From the caller to the database: a bounded queue, one thread that writes batches, a spool for when the database is away.

The caller only appends to the queue. An event is *acknowledged* once a batch with it is committed, to the database or to the
spool; from then on no crash of this process can lose it. When the queue is full an event is dropped and counted; nothing here
ever blocks or raises into the search that is being logged. An event that the database refuses is counted and left out: it never
stands in the way of others.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ringtrue.errors import RingtrueError, SearchFailed
from ringtrue.log.batch import without_deleted_users, write_apart
from ringtrue.log.counters import (
    ACCEPTED,
    DROPPED,
    ENDING,
    FORGOTTEN,
    LOST_ROWS,
    SPOOL,
    SPOOLED,
    TOLD_DROPPED,
    TOLD_LOST,
    UNSPOOLED,
    WRITTEN,
    Counts,
    Tally,
    of_the_dead,
    read,
    sweep,
)
from ringtrue.log.lines import Row, storable
from ringtrue.log.linking import link_named
from ringtrue.log.spool import Spool
from ringtrue.store import DEFAULT_PROJECT, AuditEntry, FeedbackEvent, LoggedQuery, timestamp

if TYPE_CHECKING:
    from ringtrue.store import Store

LINGER = 0.1
"""Seconds that the thread waits for a batch to fill."""
PAUSES = (0.1, 0.3, 1.0, 2.0, 5.0)
"""Seconds before the database is tried again, the last for ever after."""
AT_EXIT = 5.0
"""Seconds that the end of the program may wait for the last batch."""
LOST = "log.lost"
"""What the audit trail calls events that are not in the log."""
LONGEST_EXAMPLE = 200
DATABASE = "refused by the database"


class Unmade(Protocol):
    """An event that the caller left to be made into a row."""

    def row(self) -> Row: ...


Event = Row | Unmade


class Cleaner(Protocol):
    """What is done to rows before they are stored."""

    def query(self, row: LoggedQuery) -> LoggedQuery: ...

    def feedback(self, row: FeedbackEvent) -> FeedbackEvent: ...

    def failure(self, said: str, kind: str | None) -> str: ...


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of the events of a process that ended without closing its log."""

    run: str
    accepted: int
    replayed: int
    """From its spool into the database, now."""
    lost: int
    """Accepted and never acknowledged, or damaged in its spool."""
    dropped: int
    refused: int
    project: str = DEFAULT_PROJECT
    forgotten: int = 0
    """Left out of the database, because their user was deleted while they were in the spool."""


@dataclass(slots=True)
class _Bill:
    """What became of spooled events, and of refused ones, and whom the audit trail charges with them."""

    run: str
    project: str
    replayed: int = 0
    refused: int = 0
    told: int = 0
    """Of the refused, those that the audit trail already tells of."""
    lost: int = 0
    forgotten: int = 0
    kept: str | None = None
    """The file with the lines that could not be read."""


class Writer:
    """The queue and its thread. The thread starts with the first event, and anew in a forked process."""

    def __init__(
        self,
        open_store: Callable[[], Store],
        *,
        owns_store: bool,
        cleaner: Cleaner,
        folder: Path | None,
        project: str = DEFAULT_PROJECT,
        queue_bytes: int,
        batch: int,
        spool_bytes: int,
    ) -> None:
        self._open_store, self._owns_store = open_store, owns_store
        self._cleaner, self._folder, self._project = cleaner, folder, project
        self._queue_bytes, self._batch, self._spool_bytes = queue_bytes, batch, spool_bytes
        self.problem: str | None = None
        """What last went wrong, though it may have passed; None where nothing did."""
        self.examples: dict[str, str] = {}
        """Of each reason for refusing the first case, as it may be shown."""
        self.recovered: tuple[Recovered, ...] = ()
        self._begin()
        _ALL.add(self)

    def _begin(self) -> None:
        """Begin with nothing: as a new writer, and as a forked child, whose parent writes what is in the queue."""
        self._queue: deque[tuple[int, Event]] = deque()
        self._given = self._taken = 0
        self._held: list[Row] = []
        self._held_bytes = 0
        self._lock = threading.Lock()
        self._progress = threading.Condition(threading.Lock())
        self._wake, self._now = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = self._abandoned = False
        self._store: Store | None = None
        self._failures, self._retry_at = 0, 0.0
        self._looked_after = False
        self._tally = Tally(None)
        self._spool: Spool | None = None
        self._ready = False

    # ── the caller's side ────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, event: Event, size: int) -> bool:
        """Take an event of so many bytes; False where it was dropped, because the queue is full or the log closed."""
        with self._lock:
            if not self._ready:
                self._prepare()
            if self._closed or self._given - self._taken + size > self._queue_bytes:
                self._tally.add(DROPPED)
                return False
            self._given += size
            self._tally.add(ACCEPTED)
            self._queue.append((size, event))
            if self._thread is None:
                self._start()
        if not self._wake.is_set():
            self._wake.set()
        return True

    def refuse(self, reason: str, problem: str | Exception, *, name: str = "") -> None:
        """Count an event that could not even be made into a row; ``name`` is its id, or who searched."""
        with self._lock:
            if not self._ready:
                self._prepare()
            self._tally.add(ACCEPTED)
            self._tally.refuse(reason)
        said = type(problem).__name__
        with contextlib.suppress(Exception):  # not every error can be printed
            said = str(problem)
        self.problem = f"{name}: {said}" if name else said
        self._exemplify(reason, problem, name)

    def _exemplify(self, reason: str, problem: str | Exception, name: str) -> None:
        """Keep the first case of a reason. Others' messages may quote what was to be kept out: of those the type is kept."""
        if reason in self.examples:
            return
        said = kind = type(problem).__name__
        if isinstance(problem, str):
            said = problem
        elif isinstance(problem, RingtrueError):
            with contextlib.suppress(Exception):  # what cannot be redacted is not shown
                said = self._cleaner.failure(str(problem), kind)
        self.examples[reason] = (f"{name}: {said}" if name else said)[:LONGEST_EXAMPLE]

    def _prepare(self) -> None:
        """Make the files of this process with its first event: a child that logs nothing needs none."""
        self._ready = True
        self._tally = Tally(self._folder, project=self._project)
        if self._tally.path is not None:
            self._spool = Spool(self._tally.path.with_suffix(SPOOL), limit=self._spool_bytes)

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name="ringtrue-log", daemon=True)
        with contextlib.suppress(RuntimeError):  # no threads any more: the interpreter is ending, and close() writes
            thread.start()
            self._thread = thread
        if "multiprocessing" in sys.modules and sys.modules["multiprocessing"].parent_process() is not None:
            from multiprocessing.util import Finalize  # such a child ends without running what atexit knows

            Finalize(None, self.close, exitpriority=0)

    @property
    def counts(self) -> Counts:
        """What became of the events so far."""
        return self._tally.counts

    @property
    def queued_bytes(self) -> int:
        """Memory that waiting events take."""
        return self._given - self._taken

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every event accepted so far is acknowledged or refused; False where that took longer than ``timeout``.

        The counts tell how many were refused.
        """
        target = self.counts.accepted
        end = None if timeout is None else time.monotonic() + timeout
        self._now.set()
        self._wake.set()
        with self._progress:
            while self._settled() < target:
                if self._thread is None or not self._thread.is_alive():
                    return False
                patience = None if end is None else end - time.monotonic()
                if patience is not None and patience <= 0:
                    return False
                self._progress.wait(patience)
        return True

    def _settled(self) -> int:
        counts = self.counts
        return counts.accepted - counts.waiting

    def close(self, timeout: float = AT_EXIT) -> bool:
        """Write what is left and end; False where something had to stay behind, which the counts then tell.

        Where the database does not take it in time, the rest goes to the spool, and the next start brings it in.
        """
        with self._lock:
            if self._closed:
                return self.counts.waiting == 0
            self._closed = True
        thread = self._thread
        if thread is None:
            self._drain()
        else:
            self._now.set()
            self._wake.set()
            thread.join(timeout)
        left = self.counts.waiting > 0
        if left:
            # The thread hangs in the database. Should its batch arrive after all: the store takes an id once.
            self._abandoned = True
            left = not self._spool_rest()
        counts = self.counts
        hangs = thread is not None and thread.is_alive()
        told = not any(counts.untold.values())
        self._tally.close(remove=told and not left and not self._spool and not hangs)
        if self._store is not None and self._owns_store and not hangs:
            with contextlib.suppress(Exception):
                self._store.close()
        _ALL.discard(self)
        return not left

    def _spool_rest(self) -> bool:
        """Put everything that waits into the spool, from the thread that closes; True where it is there."""
        rows = [*self._held, *self._clean(event for _, event in self._queue)]
        if rows and (self._spool is None or not self._put_aside(self._spool, rows)):
            return False
        self._queue.clear()
        return True

    def _put_aside(self, spool: Spool, rows: Sequence[Row]) -> bool:
        """Put rows into the spool, refusing those that could not be read again; False where it has no room."""
        self._tally.begin({**_mark(rows), "size": spool.size})
        try:
            refused = spool.append(rows)
        except OSError as problem:
            self.problem = str(problem)
            return False
        self._tally.add(SPOOLED, len(rows) - len(refused))
        if refused:
            self.problem = "an event holds what cannot be written to the spool, and was refused"
            self._count_refused("not spoolable", len(refused))
            self._exemplify("not spoolable", "it holds what cannot be written to the spool", _name(refused[0]))
        return True

    # ── the thread's side ────────────────────────────────────────────────────────────────────────────────────────────

    def _work(self) -> None:
        while True:
            self._wake.wait(self._patience())
            if not self._closed:
                self._now.wait(LINGER)
            self._wake.clear()
            self._now.clear()
            closing = self._closed
            self._drain()
            if closing:
                return

    def _drain(self) -> None:
        """Move on whatever can be moved on."""
        if self._closed:
            self._retry_at = 0.0  # the last chance
        try:
            while self._step():
                pass
        except Exception as problem:  # the thread must live on, whatever a database thinks of
            self._failed(problem)

    def _patience(self) -> float | None:
        """Return how long to wait for something to do; None for ever."""
        if self._held or self._spool or not self._looked_after:
            return max(0.0, self._retry_at - time.monotonic())
        return None

    def _step(self) -> bool:
        """Move one batch on; False where nothing can be done now."""
        if self._abandoned:
            return False
        if not self._held and self._queue:
            taken = [self._queue.popleft() for _ in islice(iter(int, 1), min(self._batch, len(self._queue)))]
            self._held_bytes = sum(size for size, _ in taken)
            self._held = self._clean(event for _, event in taken)
            if not self._held:
                self._let_go()
        up = self._may_try()
        if self._held and up:
            self._write_held()
        if self._held and self._spool is not None and not self._abandoned:
            if not self._put_aside(self._spool, self._held):
                return False
            self._held = []
            self._let_go()
        if self._held:
            return False
        if up and self._may_try() and not self._abandoned:
            self._tidy()
        return bool(self._queue) or (bool(self._spool) and self._may_try())

    def _clean(self, events: Iterable[Event]) -> list[Row]:
        """Return rows that may be stored; one that cannot be redacted is refused, never stored as it came."""
        cleaned: list[Row] = []
        for event in events:
            reason = "not storable"
            try:
                row = event if isinstance(event, LoggedQuery | FeedbackEvent) else event.row()
                reason = "not redacted"
                row = self._cleaner.query(row) if isinstance(row, LoggedQuery) else self._cleaner.feedback(row)
                reason = "not storable"
                cleaned.append(storable(row))
            except Exception as problem:
                # Its message may quote what was to be kept out.
                self.problem = f"an event could not be made into a row that may be stored: {type(problem).__name__}"
                self._count_refused(reason)
                self._exemplify(reason, problem, _name(event))
        return cleaned

    def _count_refused(self, reason: str, count: int = 1) -> None:
        with self._lock:  # callers count there, too
            self._tally.refuse(reason, count)

    def _let_go(self) -> None:
        """Give the memory of the held batch back to the queue, and tell those who wait."""
        self._taken += self._held_bytes
        self._held_bytes = 0
        with self._progress:
            self._progress.notify_all()

    def _may_try(self) -> bool:
        return time.monotonic() >= self._retry_at

    def _failed(self, problem: Exception) -> None:
        self.problem = str(problem) if isinstance(problem, RingtrueError) else f"{type(problem).__name__}: {problem}"
        self._retry_at = time.monotonic() + PAUSES[min(self._failures, len(PAUSES) - 1)]
        self._failures += 1

    def _write_held(self) -> None:
        """Write the held rows to the database; what it does not take now stays held."""
        bill = self._bill()
        try:
            for kind in (LoggedQuery, FeedbackEvent):
                self._write([row for row in self._held if isinstance(row, kind)], bill, held=True)
            self._failures = 0
        except Exception as problem:
            self._failed(problem)
        self._book(bill)
        if not self._held:
            self._let_go()

    def _write(self, rows: Sequence[Row], bill: _Bill, *, held: bool = False) -> None:
        """Write rows of one kind; those that the database refuses are charged to the bill, the others are written.

        Raises what the database says where it takes no row at all. Rows that are ``held`` are let go of one by one, so that
        what follows a failure is still there.
        """
        self._opened()  # what cannot be opened refuses no row
        proven = False

        def write(part: Sequence[Row]) -> None:
            nonlocal proven
            self._send(part, count=held)
            proven = True
            let_go(part)

        def refuse(row: Row, problem: Exception) -> None:
            nonlocal proven
            if not proven:
                self._prove(row, problem, bill)
                proven = True
            bill.refused += 1
            self.problem = f"the database refuses an event: {type(problem).__name__}"
            self._exemplify(DATABASE, problem, _name(row))
            let_go([row])

        def let_go(part: Sequence[Row]) -> None:
            if held:
                gone = set(map(id, part))
                self._held = [row for row in self._held if id(row) not in gone]

        write_apart(rows, write, away=(SearchFailed, OSError, MemoryError), refuse=refuse)

    def _prove(self, row: Row, problem: Exception, bill: _Bill) -> None:
        """Return where the database reads and writes all the same, so that the row is to blame; raises its complaint if not."""
        store = self._opened()
        try:
            if isinstance(row, LoggedQuery):
                store.queries(project=row.project, query_ids=[row.query_id])
            else:
                store.feedback(project=row.project, query_ids=[], limit=1)
            self._exemplify(DATABASE, problem, _name(row))
            self._audit(bill, {"refused": 1, **self._why({DATABASE: 1})})
        except Exception:
            raise problem from None
        bill.told += 1

    def _bill(self) -> _Bill:
        """Return an empty bill of this log."""
        return _Bill(f"process {os.getpid()}" if self._tally.path is None else self._tally.path.stem, self._project)

    def _book(self, bill: _Bill) -> None:
        """Count what a bill of this log holds."""
        if bill.refused:
            self._count_refused(DATABASE, bill.refused)
        self._tally.tell_refused({DATABASE: bill.told})

    def _send(self, rows: Sequence[Row], *, count: bool = True) -> None:
        store = self._opened()
        if count:
            self._tally.begin(_mark(rows))
        if isinstance(rows[0], LoggedQuery):
            store.add_queries(rows)  # type: ignore[arg-type]
        else:
            store.add_feedback(link_named(store, rows))  # type: ignore[arg-type]
        if count:
            self._tally.add(WRITTEN, len(rows))

    def _opened(self) -> Store:
        if self._store is None:
            self._store = self._open_store()
        return self._store

    # ── after trouble ────────────────────────────────────────────────────────────────────────────────────────────────

    def _tidy(self) -> None:
        """Bring in what waits in spools, of this process and of dead ones, and put losses into the audit trail."""
        try:
            if self._spool:
                self._bring_in(self._spool)
            self._report()
            if not self._looked_after and self._folder is not None:
                for path in sorted(self._folder.glob(f"*{ENDING}")):
                    if path != self._tally.path:
                        self._look_after(path)
                sweep(self._folder)
            self._looked_after = True
        except Exception as problem:
            self._failed(problem)

    def _bring_in(self, spool: Spool) -> None:
        """Bring in the next batch of this log's own spool."""
        bill = self._bill()
        try:
            self._replay(spool, bill)
        except Exception:
            self._tally.tell_refused({DATABASE: bill.told})  # the batch stays in the spool, and is counted when it is through
            raise
        self._book(bill)
        self._tally.add(LOST_ROWS, bill.lost)
        self._tally.add(FORGOTTEN, bill.forgotten)
        self._tally.add(UNSPOOLED, bill.refused + bill.lost + bill.forgotten)
        if bill.lost or bill.forgotten:
            self._audit(bill, _facts(bill, lost=bill.lost))
            self._tally.add(TOLD_LOST, bill.lost)

    def _replay(self, spool: Spool, bill: _Bill, *, whole: bool = False, cut: bool = False) -> None:
        """Bring spooled rows into the database, one batch or all, and write on the bill what became of them."""
        while spool:
            found = spool.peek(self._batch, cut=cut)
            rows = without_deleted_users(self._opened(), found.rows)
            bill.forgotten += len(found.rows) - len(rows)
            bill.replayed += len(rows)
            refused = bill.refused
            for kind in (LoggedQuery, FeedbackEvent):
                self._write([row for row in rows if isinstance(row, kind)], bill)
            bill.replayed -= bill.refused - refused
            if found.damaged:
                bill.lost += len(found.damaged)
                bill.kept = self._put_by(spool, found.damaged)
            spool.done(found.used)
            if not whole:
                break

    def _put_by(self, spool: Spool, damaged: Sequence[bytes]) -> str | None:
        """Keep lines that cannot be read, say so, and return the name of the file."""
        what = f"{len(damaged)} lines of the spool {spool.path.name} cannot be read"
        try:
            path = spool.put_by(damaged)
        except OSError as problem:
            self.problem = f"{what}, nor be kept: {problem}"
            return None
        self.problem = f"{what} and are lost; they are kept in {path}"
        return path.name

    def _report(self) -> None:
        """Tell the audit trail of events that this process lost, dropped or refused since it last did."""
        with self._lock:  # a caller counts a refused event and its reason there
            counts = self.counts
        reasons = counts.untold_reasons
        untold = {**counts.untold, "refused": sum(reasons.values())}
        if any(count > 0 for count in untold.values()):
            self._audit(self._bill(), {**untold, **self._why(reasons)})
            self._tally.add(TOLD_LOST, untold["lost"])
            self._tally.add(TOLD_DROPPED, untold["dropped"])
            self._tally.tell_refused(reasons)

    def _why(self, reasons: Mapping[str, int]) -> dict[str, Any]:
        """Return what the audit trail says of refused events beside their number; nothing where none was refused."""
        if not reasons:
            return {}
        examples = {reason: self.examples[reason] for reason in reasons if reason in self.examples}
        return {"reasons": dict(reasons), "examples": examples}

    def _audit(self, bill: _Bill, detail: Mapping[str, Any]) -> None:
        at = timestamp(datetime.now(UTC))
        self._opened().add_audit(AuditEntry(at, "query log", LOST, bill.run, detail, bill.project))

    def _look_after(self, path: Path) -> None:
        """Settle the accounts of a log that was not closed, whosever it is."""
        with of_the_dead(path) as dead:
            if not dead:
                return
            project, counts, batch = read(path)
            bill = _Bill(path.stem, project or self._project)
            spool = Spool(path.with_suffix(SPOOL), limit=self._spool_bytes)
            lost = counts.waiting
            cut = bool(batch) and (batch["written"], batch["spooled"]) == (counts.written, counts.spooled)
            if cut:
                # It was killed with a batch on its way, perhaps after the batch had arrived.
                lost = max(0, lost - max(spool.rows_from(batch.get("size", spool.size)), self._arrived(batch)))
            self._replay(spool, bill, whole=True, cut=cut)
            spool.done(0)
            missing = {
                "lost": lost + bill.lost + counts.untold["lost"],
                "dropped": counts.untold["dropped"],
                "refused": counts.untold["refused"] + bill.refused - bill.told,
            }
            reasons = Counter(counts.untold_reasons)
            reasons[DATABASE] += bill.refused - bill.told
            why = {"reasons": {reason: count for reason, count in reasons.items() if count}} if any(reasons.values()) else {}
            told = any(entry.detail.get("settled") for entry in self._opened().audit(project=bill.project, subject=path.stem))
            if (any(missing.values()) or bill.forgotten) and not told:
                # One that was killed while it settled this may have told already.
                self._audit(bill, {**_facts(bill, **missing), **why, "settled": True})
            self.recovered += (
                Recovered(
                    run=path.stem,
                    accepted=counts.accepted,
                    replayed=bill.replayed,
                    lost=lost + counts.lost + bill.lost,
                    dropped=counts.dropped,
                    refused=counts.refused + bill.refused,
                    project=bill.project,
                    forgotten=counts.forgotten + bill.forgotten,
                ),
            )
            path.unlink(missing_ok=True)

    def _arrived(self, batch: dict[str, Any]) -> int:
        """Return how many rows of the batch on its way are in the database: all or none, so that one row stands for all."""
        store = self._opened()
        if batch["kind"] == "query":
            found = bool(store.queries(project=batch["project"], query_ids=[batch["id"]]))
        else:
            later = store.feedback(project=batch["project"], since=batch["at"], limit=10_000)
            found = any(event.event_id == batch["id"] for event in later)
        return int(batch["count"]) if found else 0

    def after_fork(self) -> None:
        """Begin anew in a child."""
        self.recovered = ()
        self._tally.close()
        self._begin()


def _mark(rows: Sequence[Row]) -> dict[str, Any]:
    """Return what identifies a batch on its way: its first row, and how many there are."""
    first = rows[0]
    kind, name = ("query", first.query_id) if isinstance(first, LoggedQuery) else ("feedback", first.event_id)
    return {"kind": kind, "id": name, "project": first.project, "at": first.created_at, "count": len(rows)}


def _name(event: object) -> str:
    """Return the id by which an event can be found where it came from; '' where it has none."""
    try:
        found = getattr(event, "event_id" if isinstance(event, FeedbackEvent) else "query_id", "")
    except Exception:  # it is made of the text, which may be none
        return ""
    return found if isinstance(found, str) else ""


def _facts(bill: _Bill, **missing: int) -> dict[str, Any]:
    """Return what the audit trail says of a bill; events that were forgotten on purpose are not missing."""
    facts: dict[str, Any] = dict(missing)
    if bill.forgotten:
        facts["forgotten"] = bill.forgotten
    if bill.lost:
        facts |= {"damaged": bill.lost, "kept_in": bill.kept}
    return facts


_ALL: weakref.WeakSet[Writer] = weakref.WeakSet()


def _in_child() -> None:
    for writer in list(_ALL):
        writer.after_fork()


def _at_exit() -> None:
    for writer in list(_ALL):
        writer.close()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
