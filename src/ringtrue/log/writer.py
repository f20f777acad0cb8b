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
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ringtrue.batching import BatchQueue
from ringtrue.errors import RingtrueError, SearchFailed
from ringtrue.log.figures import ENDING, LOST, SPOOL, Counts, Losses, Recovered, Tally, of_the_dead, read, sweep
from ringtrue.log.linking import link_named
from ringtrue.log.rows import Row, Spool, storable, without_deleted_users, write_apart
from ringtrue.store import AuditEntry, FeedbackEvent, LoggedQuery, timestamp

if TYPE_CHECKING:
    from ringtrue.log.redact import Redactor
    from ringtrue.store import Store

EVERY = 0.1
"""Seconds from the beginning of one batch to that of the next, unless a full one waits."""
PAUSES = (0.1, 0.3, 1.0, 2.0, 5.0)
"""Seconds before the database is tried again, the last for ever after."""
AT_EXIT = 5.0
"""Seconds that the end of the program may wait for the last batch."""
DATABASE = "refused by the database"
AWAY = (SearchFailed, OSError, MemoryError)
"""What is the database's fault and not a row's."""


class PendingRow(Protocol):
    """An event that the caller left to be made into a row by the writing thread."""

    def row(self) -> Row: ...


Event = Row | PendingRow


class Writer:
    """The queue of a log and its thread. The thread starts with the first event, and anew in a forked process."""

    def __init__(
        self,
        store: Store | str | Path | None,
        *,
        redactor: Redactor,
        folder: Path | None,
        project: str,
        queue_bytes: int,
        batch: int,
        spool_bytes: int,
    ) -> None:
        self._given = store
        self.redactor, self._folder, self.project = redactor, folder, project
        self._batch, self._spool_bytes = batch, spool_bytes
        self._queue: BatchQueue[Event | None] = BatchQueue(
            "ringtrue-log", self._write,
            most_rows=sys.maxsize, most_bytes=queue_bytes, batch=batch, every=EVERY, idle=self._idle,
        )  # fmt: skip
        self.problem: str | None = None
        """What last went wrong, though it may have passed; None if nothing did."""
        self._tally = Tally(None)
        self._begin()
        _ALL.add(self)

    def _begin(self) -> None:
        """Begin with nothing: as a new writer, and as a forked child, whose parent writes what is in the queue."""
        self._queue.reset()
        self._tally.close()
        self.recovered: tuple[Recovered, ...] = ()
        """What became of the events of processes that ended without closing, found when this one began to write."""
        self._held: list[Row] = []
        self._lock = threading.Lock()
        self._abandoned = self._ready = self._looked_after = False
        self._store: Store | None = None
        self._failures, self._retry_at = 0, 0.0
        self._tally = Tally(None)
        self._spool: Spool | None = None

    # ── the caller's side ────────────────────────────────────────────────────────────────────────────────────────────

    def _put(self, event: Event, size: int) -> bool:
        """Take an event of so many bytes; False if it was dropped, because the queue is full or the log closed."""
        with self._lock:
            self._prepare()
            taken = self._queue.put(event, size=size)
            self._tally.add("accepted" if taken else "dropped")
        if taken and not self._queue.started:
            self._start()
        return taken

    def _reject(self, reason: str, problem: str | Exception, *, name: str = "") -> None:
        """Count an event that could not even be made into a row; ``name`` is its id, or who searched."""
        with self._lock:
            self._prepare()
            self._tally.add("accepted")
        said = type(problem).__name__
        with contextlib.suppress(Exception):  # not every error can be printed
            said = str(problem)
        self._refuse(reason, f"{name}: {said}" if name else said)

    def _refuse(self, reason: str, problem: str, count: int = 1) -> None:
        self.problem = problem
        with self._lock:  # callers and the thread count here
            self._tally.add(reason, count)

    def _prepare(self) -> None:
        """Make the files of this process with its first event: a child that logs nothing needs none."""
        if self._ready:
            return
        self._ready = True
        self._tally = Tally(self._folder, project=self.project)
        if self._tally.path is not None:
            self._spool = Spool(self._tally.path.with_suffix(SPOOL), limit=self._spool_bytes)

    def _start(self) -> None:
        self._queue.start()
        if "multiprocessing" in sys.modules and sys.modules["multiprocessing"].parent_process() is not None:
            from multiprocessing.util import Finalize  # such a child ends without running what atexit knows

            Finalize(None, self.close, exitpriority=0)

    @property
    def counts(self) -> Counts:
        """How many events were accepted, written, spooled, dropped and refused so far, and ``reasons`` for refusing them."""
        return self._tally.counts

    @property
    def queued_bytes(self) -> int:
        """Memory that waiting events take."""
        return self._queue.bytes

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every event accepted so far is acknowledged or refused; False if it took longer than ``timeout`` (s).

        ``counts`` tells how many were refused, and how many of the acknowledged are still in the spool or came from it.
        """
        return self._queue.flush(timeout)

    def close(self, timeout: float = AT_EXIT) -> bool:
        """Write what is left and end; False if something had to stay behind, which the counts then tell.

        If the database does not take it in time, the rest goes to the spool, and the next start brings it in.
        """
        if not self._queue.put(None, size=0):  # the last batch, if only to report what was lost
            return self.counts.waiting == 0
        hangs = not self._queue.close(timeout)
        if hangs:
            # The thread hangs in the database. Should its batch arrive after all: the store takes an id once.
            self._abandoned = True
        rows = [*self._held, *self._clean(self._queue.remaining())] if self.counts.waiting > 0 else []
        left = bool(rows) and (self._spool is None or not self._put_aside(self._spool, rows))
        told = not self.counts.untold.total
        self._tally.close(remove=told and not left and not self._spool and not hangs)
        if self._store is not None and self._store is not self._given and not hangs:
            with contextlib.suppress(Exception):
                self._store.close()
        _ALL.discard(self)
        return not left

    def _put_aside(self, spool: Spool, rows: Sequence[Row]) -> bool:
        """Put rows into the spool, refusing those that could not be read again; False if it has no room."""
        self._tally.begin({**_mark(rows), "size": spool.size})
        try:
            refused = spool.append(rows)
        except OSError as problem:
            self.problem = str(problem)
            return False
        self._tally.add("spooled", len(rows) - len(refused))
        if refused:
            said = f"{_name(refused[0])}: the event holds what cannot be written to the spool, and was refused"
            self._refuse("not spoolable", said, len(refused))
        return True

    # ── the thread's side ────────────────────────────────────────────────────────────────────────────────────────────

    def _write(self, batch: Sequence[Event | None]) -> None:
        """Bring a batch into the database or the spool; if neither takes it, try until one does or the log is closed."""
        if "ringtrue.store.store" not in sys.modules:
            self._queue.pause(EVERY)  # a program that forks after its first search should not do so while this thread imports
        self._held = self._clean(batch)
        while True:
            closing = self._queue.closed
            if closing:
                self._retry_at = 0.0  # the last chance
            if self._held and self._may_try():
                self._write_held()
            if self._held and self._spool is not None and not self._abandoned and self._put_aside(self._spool, self._held):
                self._held = []
            if not self._held or closing or self._abandoned:
                break
            self._queue.pause(self._retry_at - time.monotonic())
        if not self._held and not self._abandoned and self._may_try():
            self._tidy()
            while closing and self._spool and self._may_try():
                self._tidy()

    def _idle(self) -> float | None:
        """Bring in what waits in spools while nothing else is to do; return when to look again, None for never."""
        if (self._spool or not self._looked_after) and self._may_try():
            self._tidy()
        return max(0.0, self._retry_at - time.monotonic()) if self._spool or not self._looked_after else None

    def _clean(self, events: Iterable[Event | None]) -> list[Row]:
        """Return rows that may be stored; one that cannot be redacted is refused, never stored as it came."""
        cleaned: list[Row] = []
        for event in events:
            if event is None:
                continue
            reason = "not storable"
            try:
                row = event if isinstance(event, LoggedQuery | FeedbackEvent) else event.row()
                reason = "not redacted"
                row = self.redactor.query(row) if isinstance(row, LoggedQuery) else self.redactor.feedback(row)
                reason = "not storable"
                cleaned.append(storable(row))
            except Exception as problem:
                # Its message may quote what was to be kept out.
                self._refuse(reason, f"{_name(event)}: the event is {reason}: {type(problem).__name__}")
        return cleaned

    def _may_try(self) -> bool:
        return time.monotonic() >= self._retry_at

    def _failed(self, problem: Exception) -> None:
        self.problem = str(problem) if isinstance(problem, RingtrueError) else f"{type(problem).__name__}: {problem}"
        self._retry_at = time.monotonic() + PAUSES[min(self._failures, len(PAUSES) - 1)]
        self._failures += 1

    def _write_held(self) -> None:
        """Write the held rows to the database; what it does not take now stays held."""

        def settled(part: Sequence[Row], what: str) -> None:
            with self._lock:
                self._tally.add(what, len(part))
            gone = set(map(id, part))
            self._held = [row for row in self._held if id(row) not in gone]

        try:
            self._store_rows(self._held, settled, marked=True)
            self._failures = 0
        except Exception as problem:
            self._failed(problem)

    def _store_rows(self, rows: Sequence[Row], settled: Callable[[Sequence[Row], str], None], *, marked: bool = False) -> None:
        """Write rows; raises the database's complaint if it takes no row.

        ``settled`` gets rows with ``written``, or with ``DATABASE`` if the database refuses them. If ``marked``, the tally
        notes each batch before it is sent.
        """
        store = self._opened()

        def write(part: Sequence[Row]) -> None:
            if marked:
                self._tally.begin(_mark(part))
            if isinstance(part[0], LoggedQuery):
                store.add_queries(part)  # type: ignore[arg-type]
            else:
                store.add_feedback(link_named(store, part))  # type: ignore[arg-type]
            settled(part, "written")

        def refuse(row: Row, problem: Exception) -> None:
            self.problem = f"{_name(row)}: the database refuses the event: {type(problem).__name__}"
            settled([row], DATABASE)

        for kind in (LoggedQuery, FeedbackEvent):
            write_apart(store, [row for row in rows if isinstance(row, kind)], write, away=AWAY, refuse=refuse)

    def _opened(self) -> Store:
        if self._store is None:
            from ringtrue.store import Store

            given = self._given
            self._store = Store.open(given) if given is None or isinstance(given, str | Path) else given
        return self._store

    # ── after trouble ────────────────────────────────────────────────────────────────────────────────────────────────

    def _tidy(self) -> None:
        """Bring in what waits in spools, of this process and of dead ones, and put losses into the audit trail."""
        try:
            if self._spool:
                found = self._replay(self._spool)
                gone = {DATABASE: found["refused"], "lost": found["damaged"], "forgotten": found["forgotten"]}
                with self._lock:
                    for name, count in (*gone.items(), ("unspooled", sum(gone.values()))):
                        self._tally.add(name, count)
                if found["forgotten"]:
                    self._audit(self._run, self.project, Losses(), forgotten=found["forgotten"])
            self._report()
            if not self._looked_after and self._folder is not None:
                for path in sorted(self._folder.glob(f"*{ENDING}")):
                    if path != self._tally.path:
                        self._look_after(path)
                sweep(self._folder)
            self._looked_after = True
        except Exception as problem:  # the thread must live on, whatever a database thinks of
            self._failed(problem)

    def _replay(self, spool: Spool, *, cut: bool = False) -> Counter[str]:
        """Bring the next batch of a spool into the database, and return what became of it."""
        peeked = spool.peek(self._batch, cut=cut)
        rows = without_deleted_users(self._opened(), peeked.rows)
        found: Counter[str] = Counter()
        self._store_rows(rows, lambda part, what: found.update({what: len(part)}))
        if peeked.damaged:
            self.problem = f"{peeked.damaged} lines of the spool {spool.path.name} cannot be read and are lost"
        spool.done(peeked.used)
        return Counter(
            replayed=found["written"],
            refused=found[DATABASE],
            damaged=peeked.damaged,
            forgotten=len(peeked.rows) - len(rows),
        )

    def _report(self) -> None:
        """Tell the audit trail of events that this process lost, dropped or refused since it last did."""
        counts = self.counts
        if counts.untold.total:
            self._audit(self._run, self.project, counts.untold)
            self._tally.tell(counts.losses)

    @property
    def _run(self) -> str:
        """How the audit trail names this log."""
        return f"process {os.getpid()}" if self._tally.path is None else self._tally.path.stem

    def _audit(self, run: str, project: str, missing: Losses, *, forgotten: int = 0, settled: bool = False) -> None:
        facts = {"forgotten": forgotten, "settled": settled}
        detail = asdict(missing) | {name: value for name, value in facts.items() if value}
        self._opened().add_audit(AuditEntry(timestamp(datetime.now(UTC)), "query log", LOST, run, detail, project))

    def _look_after(self, path: Path) -> None:
        """Settle the accounts of a log that was not closed, whosever it is."""
        with of_the_dead(path) as dead:
            if not dead:
                return
            project, counts, batch = read(path)
            project = project or self.project
            spool = Spool(path.with_suffix(SPOOL), limit=self._spool_bytes)
            lost = counts.waiting
            cut = bool(batch) and (batch["written"], batch["spooled"]) == (counts.written, counts.spooled)
            if cut:
                # It was killed with a batch on its way, perhaps after the batch had arrived.
                lost = max(0, lost - max(spool.rows_from(batch.get("size", spool.size)), self._arrived(batch)))
            total: Counter[str] = Counter()
            while spool:
                total += self._replay(spool, cut=cut)
            spool.done(0)
            final = replace(
                counts,
                lost=counts.lost + lost + total["damaged"],
                forgotten=counts.forgotten + total["forgotten"],
                reasons=Counter(counts.reasons) + Counter({DATABASE: total["refused"]}),
            )
            told = any(entry.detail.get("settled") for entry in self._opened().audit(project=project, subject=path.stem))
            if (final.untold.total or total["forgotten"]) and not told:
                # One that was killed while it settled this may have told already.
                self._audit(path.stem, project, final.untold, forgotten=total["forgotten"], settled=True)
            self.recovered += (Recovered(path.stem, project, total["replayed"], final),)
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


def _mark(rows: Sequence[Row]) -> dict[str, Any]:
    """Return what identifies a batch on its way: its first row, and how many there are."""
    first = rows[0]
    kind, name = ("query", first.query_id) if isinstance(first, LoggedQuery) else ("feedback", first.event_id)
    return {"kind": kind, "id": name, "project": first.project, "at": first.created_at, "count": len(rows)}


def _name(event: object) -> str:
    """Return the id by which an event can be found where it came from; '' if it has none."""
    try:
        found = getattr(event, "event_id" if isinstance(event, FeedbackEvent) else "query_id", "")
    except Exception:  # it is made of the text, which may be none
        return ""
    return found if isinstance(found, str) else ""


_ALL: weakref.WeakSet[Writer] = weakref.WeakSet()


def _in_child() -> None:
    for writer in list(_ALL):
        writer._begin()


@atexit.register
def _at_exit() -> None:
    for writer in list(_ALL):
        writer.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
