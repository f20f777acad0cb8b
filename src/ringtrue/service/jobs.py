"""Work that takes longer than a request: started, watched, cancelled, and remembered in the store."""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool

from ringtrue.answers import ENDED, JobError
from ringtrue.errors import MissingInput, RingtrueError
from ringtrue.run import Watcher
from ringtrue.service.auth import Caller
from ringtrue.service.errors import Refused, refused
from ringtrue.store import StoredJob, timestamp

if TYPE_CHECKING:
    from ringtrue.store import Store

MOST_WAITING = 20
"""Jobs of one project that may be unfinished at the same time."""
SAVED_EVERY_S = 0.5
"""How often progress is written down; whoever watches here sees it at once."""
LOOKED_EVERY_S = 0.1
BEAT_S = 15.0
SAVED_AGAIN_S = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Pauses between the tries to write down how a job ended, while the store does not take it."""
STOPPING = "stopping…"
"""What a job says from the moment somebody cancels it until it has stopped."""
COUNTED = {"indexing": "index entries", "searching": "queries"}
"""What the steps of a part of the work are."""

_LOG = logging.getLogger("ringtrue.service")

Work = Callable[["JobProgress"], Mapping[str, Any]]


class Cancelled(Exception):
    """Somebody cancelled the job, or the server stops."""


def unit_of(job: StoredJob) -> str:
    """Return what a job counts, by what it says it does or was stopped at; empty if that is not known."""
    return COUNTED.get((job.says or "").rpartition(" ")[2], "")


class JobProgress:
    """What a job tells while it works; it raises Cancelled there once nobody wants the result."""

    def __init__(self, tell: Callable[[str, int, int], None], stopped: threading.Event) -> None:
        self._tell, self._stopped = tell, stopped
        self._lock = threading.Lock()
        self.says, self.done, self.total = "", 0, 0

    def start(self, what: str, total: int) -> None:
        """Begin a part of the work of so many steps; 0 if nobody knows how many."""
        with self._lock:
            self.says, self.done, self.total = what, 0, total
        self._told()

    def step(self, count: int = 1) -> None:
        """Say that so many steps more are done."""
        with self._lock:
            self.done += count
        self._told()

    def _told(self) -> None:
        self.check()
        self._tell(self.says, self.done, self.total)

    def check(self) -> None:
        """Raise Cancelled if the work is no longer wanted."""
        if self._stopped.is_set():
            raise Cancelled

    def watcher(self) -> Watcher:
        """Return who an evaluation tells how it goes."""
        return Watcher(start=self.start, step=self.step)


class JobRunner:
    """The jobs of one server; those of all projects share its threads."""

    def __init__(self, store: Store, *, now: Callable[[], datetime], most: int) -> None:
        self._store, self._now = store, now
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="ringtrue-job")
        self._lock = threading.Lock()
        self._alive: dict[str, StoredJob] = {}
        """Those that have not ended, and those whose end the store has not taken yet."""
        self._stops: dict[str, threading.Event] = {}
        self._closing = threading.Event()

    def start(self, kind: str, caller: Caller, request: Mapping[str, Any], work: Work) -> StoredJob:
        """Begin a job and return it as it waits; raises Refused if a project has too many."""
        moment = timestamp(self._now())
        job = StoredJob(
            job_id=f"job_{secrets.token_hex(8)}",
            kind=kind,
            state="queued",
            created_at=moment,
            updated_at=moment,
            project=caller.project,
            who=caller.who,
            request=request,
        )
        with self._lock:
            if self._closing.is_set():
                raise Refused(503, "stopping", "the server stops; try again in a moment", headers={"Retry-After": "5"})
            if sum(one.project == caller.project and one.state not in ENDED for one in self._alive.values()) >= MOST_WAITING:
                said = f"{MOST_WAITING} jobs wait already; cancel some, or wait until they are done"
                raise Refused(429, "too_many_jobs", said, headers={"Retry-After": "30"})
            self._alive[job.job_id] = job
            self._stops[job.job_id] = threading.Event()
        try:
            self._store.add_job(job)
            self._pool.submit(self._run, job.job_id, work)
        except BaseException:
            self._forget(job.job_id)  # what never began must not count as one that waits
            raise
        return job

    def get(self, job_id: str, project: str) -> StoredJob:
        """Return a job as it stands; raises MissingInput if the project has none of that id."""
        alive = self._alive.get(job_id)
        found = alive if alive is not None and alive.project == project else self._store.job(job_id, project=project)
        if found is None:
            raise MissingInput(f"there is no job '{job_id:.80}'; look it up in the list of jobs")
        return found

    def cancel(self, job_id: str, project: str) -> StoredJob:
        """Ask a job to stop and return it; it says so at once and stops at its next step. One that has ended stays as it is."""
        found = self.get(job_id, project)
        with self._lock:
            found = self._alive.get(job_id, found)
            if job_id in self._alive and found.state not in ENDED:
                self._stops[job_id].set()
                found = self._alive[job_id] = replace(found, updated_at=timestamp(self._now()), says=STOPPING)
        return found

    async def watch(self, job_id: str, project: str) -> AsyncIterator[StoredJob | None]:
        """Yield a job whenever it has changed, until it has ended; None every few seconds in between, as a sign of life."""
        last, told = None, time.monotonic()
        while True:
            job = self._alive.get(job_id)
            if job is None or job.project != project:
                job = await run_in_threadpool(self.get, job_id, project)
            if job != last:
                last, told = job, time.monotonic()
                yield job
                if job.state in ENDED:
                    return
            elif time.monotonic() - told > BEAT_S:
                told = time.monotonic()
                yield None
            await asyncio.sleep(LOOKED_EVERY_S)

    def close(self) -> None:
        """Interrupt what runs, wait until it has stopped, and try once more to write down what the store has not taken."""
        with self._lock:
            self._closing.set()
            stops = list(self._stops.values())
        for stop in stops:
            stop.set()
        self._pool.shutdown(wait=True)
        left = list(self._alive.values())
        while left and self._saved(left[-1]):
            left.pop()
        if left:
            _LOG.error("how %d jobs ended could not be written down; they count as interrupted", len(left))

    def _run(self, job_id: str, work: Work) -> None:
        stop, saved = self._stops[job_id], time.monotonic()

        def tell(says: str, done: int, total: int) -> None:
            nonlocal saved
            self._change(job_id, says=STOPPING if stop.is_set() else says, done=done, total=total or None)
            if time.monotonic() - saved > SAVED_EVERY_S:
                saved = time.monotonic()
                self._store.save_job(self._alive[job_id])

        progress = JobProgress(tell, stop)
        try:
            progress.check()
            self._store.save_job(self._change(job_id, state="running"))
            result = work(progress)
            # What came from a cache took no steps: whoever waits for the last one must see it all the same.
            total = self._alive[job_id].total or 1
            ended: dict[str, Any] = {"state": "done", "result": dict(result), "says": "done", "done": total, "total": total}
        except Cancelled:
            # Its numbers stay, and mean nothing without what was counted.
            says = f"stopped while {progress.says}" if progress.says else "stopped"
            ended = {"state": "interrupted" if self._closing.is_set() else "cancelled", "says": says}
        except Exception as problem:
            if not isinstance(problem, RingtrueError | Refused):
                _LOG.exception("job %s failed", job_id)
            known = refused(problem)
            ended = {"state": "failed", "error": JobError(known.code, known.message)}
        self._end(job_id, ended)

    def _end(self, job_id: str, ended: dict[str, Any]) -> None:
        """Write down how a job ended; nobody is told before, since what was told must outlive this process.

        Where the store does not take it, it is told all the same: who waits must not wait for ever. The thread tries again for
        a while and takes no other job meanwhile, which would only fail at the same store; then it is left to the end of the
        server.
        """
        with self._lock:
            job = replace(self._alive[job_id], updated_at=timestamp(self._now()), **ended)
        for pause in (*SAVED_AGAIN_S, None):
            if self._saved(job):
                return
            with self._lock:
                self._alive[job_id] = job
                self._stops.pop(job_id, None)
            if pause is None or self._closing.wait(pause):
                return

    def _saved(self, job: StoredJob) -> bool:
        """Write down how a job ended, and forget it here; False if the store does not take it."""
        try:
            self._store.save_job(job)
        except MissingInput:
            pass  # it was deleted: there is nothing left to tell it of
        except Exception as problem:
            _LOG.warning("the store does not take that job %s is %s (%s)", job.job_id, job.state, type(problem).__name__)
            return False
        self._forget(job.job_id)
        return True

    def _forget(self, job_id: str) -> None:
        with self._lock:
            self._alive.pop(job_id, None)
            self._stops.pop(job_id, None)

    def _change(self, job_id: str, **values: Any) -> StoredJob:
        with self._lock:
            changed = replace(self._alive[job_id], updated_at=timestamp(self._now()), **values)
            self._alive[job_id] = changed
        return changed
