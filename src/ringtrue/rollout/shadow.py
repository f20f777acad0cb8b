"""A candidate beside production: production answers as if nobody watched, a sample is answered again off its path.

Nothing of the candidate can reach the caller: production's own object is returned without waiting for it, a queue that is full
drops and counts, which the audit trail tells (``missing_of``), and what crashes, hangs or returns rubbish becomes a stored
error. A candidate that keeps hanging or dying pauses the shadow run, which says so.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from ringtrue import traffic
from ringtrue.answers import ShadowSource
from ringtrue.batching import BatchQueue
from ringtrue.config import project as configured_project
from ringtrue.errors import InputError
from ringtrue.feedback import question_id
from ringtrue.log.capture import query_name
from ringtrue.log.query_log import LATEST_SEARCH
from ringtrue.log.redact import Redactor, redactor_of
from ringtrue.rollout.candidate import DEFAULT_MEMORY, InProcess, InThread, ids_of, said, searching
from ringtrue.rollout.evidence import SINCE, Feed, Scored, both, compared, is_stopped, missing_entry
from ringtrue.rollout.flags import bucket
from ringtrue.store import ShadowRun, timestamp

if TYPE_CHECKING:
    from ringtrue.records import Hit
    from ringtrue.store import Store

MOST_GONE = 8
"""So many hanging threads, or hung or dead candidates in a row, and shadowing pauses."""
BATCH = 100
SAVE_SECONDS = 0.5
"""Rows wait at most so long before they are stored."""
LOOK_SECONDS = 5.0
"""How often the flag is read, for `ringtrue shadow stop`."""
TELL_SECONDS = 300.0
"""How often the audit trail is told of what is missing of the sample; at once for the first, and at the end for the last."""

Keep = Literal["lists", "difference"]
Isolate = Literal["thread", "process"]
Scorer = Callable[[str, Sequence[str]], Scored | None]


@dataclass(frozen=True, slots=True)
class ShadowCounts:
    """What a shadow run has done since it was made. Every sampled query is in one of answered … waiting."""

    asked: int = 0
    """Searches that production answered."""
    sampled: int = 0
    """Those in the sample; the others were not to be answered again."""
    answered: int = 0
    failed: int = 0
    """The candidate raised, or returned what is not an answer."""
    gone: int = 0
    """The candidate hung, or its process died."""
    dropped: int = 0
    """Nobody was free and the queue was full, or shadowing was paused or closed."""
    unreadable: int = 0
    """Production's answer is not a list that could be compared; it was returned as it is."""
    waiting: int = 0
    """Not finished yet."""
    saved: int = 0
    """Rows in the store."""
    unsaved: int = 0
    """Rows that the store did not take."""
    paused: str | None = None
    """Why shadowing stands still; None if it does not."""
    problem: str | None = None
    """The last thing that went wrong with storing, scoring or feeding."""


@dataclass(frozen=True, slots=True)
class _Job:
    query_id: str
    text: str
    options: Mapping[str, Any]
    control: Any
    control_ms: float | None


class Shadow:
    """Production as a retriever, with a candidate behind it. Make it after forking, and close it: ``with Shadow(…) as search``.

    ``sample`` is the share of queries that the candidate answers too, chosen by the hash of the query's id. ``timeout``
    (seconds) and ``memory`` (bytes) limit one answer of the candidate; memory needs ``isolate='process'``, and so does a
    candidate that computes much in Python, which would otherwise take turns with production. ``keep='difference'`` stores
    only the ids that one side has and the other lacks, instead of both lists. ``scorer`` gives the reciprocal rank and nDCG
    of a list for a judged query, None for others; ``feed`` hears of both sides' scores: ``golden_scorer`` and
    ``feed_for_test`` of ``ringtrue.rollout`` make them. ``redact`` is what the query log is given, or the log's ``redactor``:
    errors of the candidate may quote the question, so they pass through it before they are stored or shown. ``source`` says
    where the questions come from, which is stored with them: times in a live system are not those of a replay. ``project`` is
    the configured one unless given. ``timer`` (seconds) is what latencies are measured with in threads: a simulation gives its
    own, read in the thread that searches.

    Raises InputError for options that cannot be used. ``search`` raises what production raises and nothing else.

    >>> class Kept:
    ...     rows = []
    ...     def add_shadow_runs(self, rows): self.rows.extend(rows); return len(rows)
    ...     def flag(self, name, *, project="default"): return None
    >>> store = Kept()
    >>> with Shadow(lambda text, k: ["a", "b"], lambda text, k: ["b", "a"], store, "reverse", sample=1) as search:
    ...     search.search("pool", query_id="q1")
    ['a', 'b']
    >>> store.rows[0].treatment_result_ids, store.rows[0].top_result_changed
    (('b', 'a'), True)
    """

    def __init__(
        self,
        production: Any,
        candidate: Any,
        store: Store,
        feature_id: str,
        *,
        sample: float = 0.10,
        timeout: float = 5.0,
        memory: int | None = None,
        isolate: Isolate = "thread",
        workers: int = 2,
        waiting: int = 64,
        keep: Keep = "lists",
        scorer: Scorer | None = None,
        feed: Feed | None = None,
        redact: Redactor | Callable[[str], str] | None = Redactor(),  # noqa: B008  # frozen
        project: str | None = None,
        source: ShadowSource = "live",
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        _check(sample=sample, timeout=timeout, memory=memory, isolate=isolate, workers=workers, waiting=waiting, keep=keep)
        self.feature_id, self.sample, self.source = feature_id, sample, source
        self.project = project or configured_project()
        self._production = searching(production)
        self._timeout, self._keep, self._scorer, self._feed, self._clock = timeout, keep, scorer, feed, clock
        self._store, self._timer, self._redactor = store, timer, redactor_of(redact)
        searching(candidate)
        self._askers: list[InThread | InProcess] = [
            InThread(candidate, timer) if isolate == "thread" else InProcess(candidate, memory or DEFAULT_MEMORY)
            for _ in range(workers)
        ]
        self._jobs: queue.Queue[_Job | None] = queue.Queue(waiting)
        # Larger than what can come back while one batch is being saved; a store that stalls longer costs rows, not memory.
        self._rows: BatchQueue[ShadowRun | None] = BatchQueue(
            "ringtrue-shadow-save", self._save,
            most_rows=waiting + 10 * BATCH, most_bytes=1, batch=BATCH, every=SAVE_SECONDS, idle=self._idle,
        )  # fmt: skip
        self._lock = threading.Lock()
        self._tally: Counter[str] = Counter()
        self._missing: Counter[str] = Counter()
        self._gone_in_a_row, self._closed = 0, False
        self._paused: str | None = None
        self._stopped: str | None = None
        self._problem: str | None = None
        self._since = ""
        """Since when the flag's candidate is what it is; stored with each row."""
        self._looked_at = self._told_at = float("-inf")
        self._process = os.getpid()
        self._rows.start()
        self._workers = [
            threading.Thread(target=self._work, args=(asker,), name="ringtrue-shadow", daemon=True) for asker in self._askers
        ]
        for thread in self._workers:
            thread.start()

    def search(
        self,
        text: str,
        *,
        k: int = 10,
        scope: Mapping[str, str] | None = None,
        session: Sequence[str] | None = None,
        query_id: str | None = None,
    ) -> Sequence[Hit]:
        """Return production's answer, the very object; a sample goes to the candidate afterwards.

        ``query_id`` is the one under which the search is logged. Without it that is found where ``QueryLog`` logs the search in
        production or around this one, else one is made from the time and the text.
        """
        around = LATEST_SEARCH.get()
        given = _options(k, scope, session)
        start = self._timer()
        found = self._production(text, **given)
        spent = (self._timer() - start) * 1000
        try:
            # The search that production has just logged, else the one around it, if that is under way.
            latest = LATEST_SEARCH.get()
            logged = None if latest is None or (latest is around and not latest.under_way) else latest.query_id
            self.beside(query_id or logged or query_name(text), text, found, spent, **given)
        except Exception as problem:  # whatever is wrong with shadowing, production's answer is right
            self._add(problem=self._said(problem))
        return found  # type: ignore[no-any-return]

    def beside(
        self,
        query_id: str,
        text: str,
        control: Any,
        control_ms: float | None,
        *,
        k: int = 10,
        scope: Mapping[str, str] | None = None,
        session: Sequence[str] | None = None,
    ) -> bool:
        """Have the candidate answer beside an answer that production gave, here or elsewhere; True if it will be tried.

        This is what ``search`` does after production has answered, for systems that log and are shadowed by another process.
        A live shadow leaves out searches that are marked as an evaluation's or a test's.
        """
        if os.getpid() != self._process:
            return False  # a forked child has neither the workers nor any right to the locks
        if self.source == "live" and traffic.current() != "user":
            return False  # an evaluation of production is not live traffic
        if not self.in_sample(query_id):
            self._add(asked=1)
            return False
        if isinstance(control, str | bytes) or not isinstance(control, Sequence):
            self._add(asked=1, sampled=1)
            self._miss(unreadable=1)  # reading an iterator would take it away from the caller
            return False
        # Copies: the caller may do with its own as it likes.
        options = _options(k, None if scope is None else dict(scope), None if session is None else tuple(session))
        job = _Job(query_id, text, options, tuple(control), control_ms)
        with self._lock:
            wanted = not self._closed and self._stopped is None
            taken = wanted and self._paused is None and not self._jobs.full()  # only here, with the lock held, jobs are added
            if taken:
                self._jobs.put_nowait(job)
            self._tally.update({"asked": 1, "sampled": 1, "waiting" if taken else "dropped": 1})
            if wanted and not taken:
                self._missing["dropped"] += 1  # after a stop that somebody wanted nothing is missing
        return taken

    def in_sample(self, query_id: str) -> bool:
        """Return whether the candidate answers this query, too; the same for the same id, everywhere and always."""
        return bucket(query_id, f"shadow:{self.feature_id}") < 100 * self.sample

    @property
    def counts(self) -> ShadowCounts:
        """What has been done so far."""
        with self._lock:
            return ShadowCounts(**self._tally, paused=self._paused or self._stopped, problem=self._problem)

    @property
    def _hanging(self) -> int:
        return sum(one.hanging for one in self._askers if isinstance(one, InThread))

    def resume(self) -> None:
        """Go on after a pause."""
        with self._lock:
            self._gone_in_a_row, self._paused = 0, None

    def close(self, *, timeout: float = 30.0) -> ShadowCounts:
        """Let what waits be answered and stored, for ``timeout`` seconds at most, and return the final counts."""
        patience = time.monotonic() + timeout
        while self.counts.waiting and time.monotonic() < patience:
            time.sleep(0.01)
        with self._lock:
            self._closed = True
            self._drop_waiting()
        for _ in self._workers:
            self._jobs.put(None)
        for thread, asker in zip(self._workers, self._askers, strict=True):
            thread.join(max(0.0, patience - time.monotonic()))
            if thread.is_alive():
                asker.abort()
                thread.join(0.5)
        self._rows.put(None, size=0)  # the last batch, if only to tell what is missing
        self._rows.close(max(1.0, patience - time.monotonic()))  # a store that hangs must not hold up the end
        return self.counts

    def __enter__(self) -> Shadow:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self, asker: InThread | InProcess) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self._answer(asker, job)
            except Exception as problem:
                self._add(waiting=-1, failed=1, problem=self._said(problem))
                self._miss(unsaved=1)
        asker.close()

    def _answer(self, asker: InThread | InProcess, job: _Job) -> None:
        try:
            control = ids_of(job.control, "production", k=job.options["k"], duplicates="first")
        except Exception as problem:
            self._add(waiting=-1, problem=self._said(problem))
            self._miss(unreadable=1)
            return
        reply = asker.ask(job.text, job.options, self._timeout)
        error = reply.error
        if error is not None and reply.kind is not None:
            error = self._failure(error, reply.kind)
        row = ShadowRun(
            job.query_id, self._clock().isoformat(), control, reply.ids, feature_id=self.feature_id, project=self.project,
            control_latency_ms=job.control_ms, treatment_latency_ms=reply.ms, error=error, source=self.source,
        )  # fmt: skip
        if error is None:
            row = self._compared(row, job.text, k=job.options["k"])
        kept = int(self._rows.put(row, size=0))
        with self._lock:
            name = "gone" if reply.gone else "failed" if error is not None else "answered"
            self._tally.update({"waiting": -1, "unsaved": 1 - kept, name: 1})
            if not kept:
                self._missing["unsaved"] += 1
            self._gone_in_a_row = self._gone_in_a_row + 1 if reply.gone else 0
            many = max(self._gone_in_a_row, self._hanging)
            if self._paused is None and many >= MOST_GONE:
                self._paused = f"the candidate hung or died {many} times: {error}; fix it, then resume"
                self._drop_waiting()

    def _compared(self, row: ShadowRun, text: str, *, k: int) -> ShadowRun:
        """Return a row with its figures of rank difference and, for a judged query, the differences in quality."""
        scores = None
        try:
            if self._scorer is not None:
                scores = both(*(self._scorer(row.query_id, ids) for ids in (row.control_result_ids, row.treatment_result_ids)))
            if scores is not None and self._feed is not None:
                self._feed(question_id(text), *scores)
        except Exception as problem:
            self._add(problem=self._said(problem))
        return compared(row, k=k, scores=scores, keep=self._keep)

    def _save(self, batch: Sequence[ShadowRun | None]) -> None:
        self._look()  # before rows are stored: the first ones name their candidate too
        rows = [replace(row, candidate=self._since) for row in batch if row is not None]
        if rows and not self._stored(rows):
            self._rows.pause(SAVE_SECONDS)
            if not self._stored(rows):
                self._miss(unsaved=len(rows))
        self._tell()

    def _idle(self) -> float:
        self._look()
        self._tell()
        return LOOK_SECONDS

    def _stored(self, rows: list[ShadowRun]) -> bool:
        try:
            self._store.add_shadow_runs(rows)
        except Exception as problem:
            self._add(problem=self._said(problem))
            return False
        self._add(saved=len(rows))
        return True

    def _tell(self) -> None:
        """Tell the audit trail what is missing of the sample since it was last told, if that is due."""
        if not self._missing or not (self._rows.closed or time.monotonic() - self._told_at >= TELL_SECONDS):
            return
        self._told_at = time.monotonic()
        with self._lock:
            found, self._missing = self._missing, Counter()
        try:
            self._store.add_audit(missing_entry(self.feature_id, timestamp(self._clock()), found, project=self.project))
        except Exception as problem:
            with self._lock:
                self._missing += found
            self._add(problem=self._said(problem))

    def _look(self) -> None:
        """Stop or go on as the flag of that name says, if it is time to look; without one, go on."""
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        try:
            flag = self._store.flag(self.feature_id, project=self.project)
            stopped = flag is None and is_stopped(self._store, self.feature_id, project=self.project)
        except Exception as problem:
            self._add(problem=self._said(problem))
            return
        self._stopped = f"the flag '{self.feature_id}' says: no shadow" if flag is not None and not flag.shadow else None
        if stopped:
            self._stopped = f"`ringtrue shadow stop {self.feature_id}` ended it"
        self._since = str(flag.metadata.get(SINCE, "")) if flag is not None else ""

    def _said(self, problem: BaseException) -> str:
        """Return a problem as it may be shown."""
        return self._failure(said(problem), type(problem).__name__)

    def _failure(self, text: str, kind: str) -> str:
        try:
            return self._redactor.failure(text, kind)
        except Exception:  # what cannot be redacted is not stored
            return kind

    def _drop_waiting(self) -> None:
        """Empty the queue; the lock is held."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._jobs.get_nowait()
                self._tally.update({"waiting": -1, "dropped": 1})
                self._missing["dropped"] += 1

    def _miss(self, **changes: int) -> None:
        """Count sampled queries of which nothing will be stored."""
        with self._lock:
            self._tally.update(changes)
            self._missing.update(changes)

    def _add(self, *, problem: str | None = None, **changes: int) -> None:
        with self._lock:
            self._tally.update(changes)
            self._problem = problem or self._problem


def _options(k: int, scope: Mapping[str, str] | None, session: Sequence[str] | None) -> dict[str, Any]:
    """Return the options of a search, without those that were not given: not every search takes them."""
    return {"k": k} | {name: value for name, value in (("scope", scope), ("session", session)) if value is not None}


def _check(*, sample: float, timeout: float, memory: int | None, isolate: str, workers: int, waiting: int, keep: str) -> None:
    places = f"workers={workers!r} and waiting={waiting!r}; at least 1 worker, and a place in the queue for each"
    for wrong, why in (
        (not 0 <= sample <= 1, f"sample={sample!r} is not a share; write one from 0 to 1, like 0.10"),
        (not timeout > 0, f"timeout={timeout!r} gives no time; write seconds above 0"),
        (isolate not in ("thread", "process"), f"isolate={isolate!r} is not known; write 'thread' or 'process'"),
        (keep not in ("lists", "difference"), f"keep={keep!r} is not known; write 'lists' or 'difference'"),
        (memory is not None and isolate == "thread", "memory= cannot be held to in a thread; add isolate='process'"),
        (memory is not None and memory < 1, f"memory={memory!r} is not a number of bytes; write one above 0"),
        (workers < 1 or waiting < workers, places),
    ):
        if wrong:
            raise InputError(why)
