"""How a candidate is asked where it can do no harm: in a thread that is left behind when it hangs, or a process that is killed.

Each asker serves one worker, one question at a time. A thread cannot be stopped, nor its memory limited, and it shares the
interpreter with production; a process can, and does not, at the price of its start.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringtrue.errors import BadAnswer, InputError, MissingInput, RingtrueError
from ringtrue.traffic import marked

if TYPE_CHECKING:
    from ringtrue.records import Hit
    from ringtrue.retrieve import Retriever

START_SECONDS = 60.0
"""A process may take so long to import and open what the candidate needs; it is not part of an answer's time."""
LONGEST_ID = 1000
LONGEST_ERROR = 300
DEFAULT_MEMORY = 2 * 2**30 if sys.platform == "linux" else None
"""Bytes a candidate's process may take up beyond what it has when it is ready; other systems do not hold processes to it."""
NICE = 10
"""A candidate's process yields the processor to production."""


@dataclass(frozen=True, slots=True)
class CandidateReply:
    """What came of one question: document ids and milliseconds, or an error; ``gone`` where the candidate hung or died."""

    ids: tuple[str, ...] = ()
    ms: float | None = None
    error: str | None = None
    gone: bool = False
    kind: str | None = None
    """The type of what the candidate raised; None if the error is ours."""


@dataclass(frozen=True)
class Described:
    """A retriever as it is written down: an expression, and the folder of its documents where it searches any.

    It is opened by the process that asks it, so it can be sent to one.
    """

    expression: str
    folder: Path | None = None

    def search(self, text: str, *, k: int = 10, scope: Mapping[str, str] | None = None) -> Sequence[Hit]:
        return self.opened.search(text, k=k, scope=scope)

    @cached_property
    def opened(self) -> Retriever:
        """The retriever itself; raises MissingInput if the folder holds no documents."""
        from ringtrue.retrieve import Collection, build, names_documents

        if not names_documents(self.expression):
            return build(self.expression, None)
        if self.folder is None:
            raise InputError(f"'{self.expression}' searches documents; name the folder that ringtrue ingest made")
        collection = Collection(self.folder)
        if not len(collection):
            raise MissingInput(f"{self.folder}: holds no documents; run `ringtrue ingest PATH… --into {self.folder}` first")
        return build(self.expression, collection)

    def __reduce__(self) -> tuple[type[Described], tuple[str, Path | None]]:
        return Described, (self.expression, self.folder)  # not what was opened


def answer(
    candidate: Any, text: str, options: Mapping[str, Any], *, timer: Callable[[], float] = time.perf_counter
) -> CandidateReply:
    """Return what a candidate says to a question; whatever it raises becomes an error."""
    start = timer()
    try:
        k = int(options["k"])
        with marked("shadow"):
            found = searching(candidate)(text, **options)
            if isinstance(found, Iterator):  # it may have no end
                found = list(itertools.islice(found, k))
        spent = (timer() - start) * 1000
        return CandidateReply(ids_of(found, "the candidate", k=k), spent)
    except BaseException as problem:  # SystemExit of a candidate must not end its worker either
        return CandidateReply(error=said(problem), kind=type(problem).__name__)


def searching(thing: Any) -> Callable[..., Any]:
    """Return what is called to search: the method ``search``, or the thing itself; raises InputError if it is neither."""
    asked = getattr(thing, "search", thing)
    if not callable(asked):
        raise InputError(f"{type(thing).__name__} cannot search; give it a method search(text, *, k), or pass a function")
    return asked  # type: ignore[no-any-return]


def ids_of(found: Any, name: str, *, k: int, duplicates: str = "error") -> tuple[str, ...]:
    """Return the ids of an answer of any usual shape; raises BadAnswer for what is none."""
    from ringtrue.retrieve import as_hits

    ids = tuple(hit.doc_id for hit in as_hits(found, name, duplicates=duplicates)[:k])
    longest = max(map(len, ids), default=0)
    if longest > LONGEST_ID:
        raise BadAnswer(f"{name} returned a document id of {longest:,} characters; at most {LONGEST_ID:,} are stored")
    return ids


def said(problem: BaseException) -> str:
    """Return an error as one line."""
    name, text = type(problem).__name__, ""
    with contextlib.suppress(Exception):
        text = str(problem)
    whole = text if isinstance(problem, RingtrueError) else f"{name}: {text}" if text else name
    return " ".join(whole.split())[:LONGEST_ERROR]


class InThread:
    """Asks in a thread of this process; one that does not come back in time is left behind and replaced.

    To ask never raises, and never takes much longer than ``timeout``.
    """

    def __init__(self, candidate: Any, timer: Callable[[], float] = time.perf_counter) -> None:
        self._candidate, self._timer = candidate, timer
        self._seat: _Seat | None = None
        self._left: list[_Seat] = []

    @property
    def hanging(self) -> int:
        """How many threads were left behind and have not come back."""
        return sum(seat.thread.is_alive() for seat in self._left)

    def ask(self, text: str, options: Mapping[str, Any], timeout: float) -> CandidateReply:
        seat = self._seat = self._seat or _Seat(self._candidate, self._timer)
        seat.questions.put((text, options))
        try:
            return seat.replies.get(timeout=timeout)
        except queue.Empty:
            self._seat = None
            seat.questions.put(None)
            with contextlib.suppress(queue.Empty):
                return seat.replies.get_nowait()  # it came in this very moment
            self._left = [*(one for one in self._left if one.thread.is_alive()), seat]
            return CandidateReply(error=f"took longer than {timeout:g} s; its thread was left behind", gone=True)

    def abort(self) -> None:
        pass  # nothing can stop a thread

    def close(self) -> None:
        if self._seat is not None:
            self._seat.questions.put(None)
            self._seat = None


class _Seat:
    """One thread and its two queues."""

    def __init__(self, candidate: Any, timer: Callable[[], float]) -> None:
        self.questions: queue.SimpleQueue[tuple[str, Mapping[str, Any]] | None] = queue.SimpleQueue()
        self.replies: queue.SimpleQueue[CandidateReply] = queue.SimpleQueue()
        # A daemon: a search that hangs for ever must not keep the program from ending.
        self.thread = threading.Thread(target=self._sit, args=(candidate, timer), name="ringtrue-candidate", daemon=True)
        self.thread.start()

    def _sit(self, candidate: Any, timer: Callable[[], float]) -> None:
        while (question := self.questions.get()) is not None:
            self.replies.put(answer(candidate, *question, timer=timer))


class InProcess:
    """Asks in a process with a limit on its memory; one that takes too long is killed, and the next question starts another.

    Raises InputError at once where the candidate cannot be sent to a process.
    """

    def __init__(self, candidate: Any, memory: int | None) -> None:
        self._pickled = as_sent(candidate)
        self._memory = memory
        self._child: tuple[SpawnProcess, Connection] | None = None

    def ask(self, text: str, options: Mapping[str, Any], timeout: float) -> CandidateReply:
        try:
            _, pipe = self._child or self._started()
            pipe.send((text, options))
            if not pipe.poll(timeout):
                self.close()
                return CandidateReply(error=f"took longer than {timeout:g} s; its process was killed", gone=True)
            reply: CandidateReply = pipe.recv()
        except (EOFError, OSError):
            return CandidateReply(error=f"the candidate's process {self._end()}", gone=True)
        except RingtrueError as problem:
            self.close()
            return CandidateReply(error=said(problem), gone=True)
        if reply.error is not None and reply.error.startswith("MemoryError"):
            self.close()  # what it holds on to would starve the next question
        return reply

    def _started(self) -> tuple[SpawnProcess, Connection]:
        # Not forked: this process has threads, whose locks a copy would inherit locked.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=serve, args=(theirs, self._pickled, self._memory), name="ringtrue-candidate", daemon=True
        )
        process.start()
        theirs.close()
        self._child = (process, ours)
        if not ours.poll(START_SECONDS):
            raise InputError(f"the candidate's process was not ready after {START_SECONDS:g} s")
        problem = ours.recv()
        if problem is not None:
            raise InputError(f"the candidate cannot be opened in its process: {problem}")
        return process, ours

    def _end(self) -> str:
        if self._child is not None:
            wait([self._child[0].sentinel], 1.0)
        code = self.close()
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                return f"was ended by {signal.Signals(-code).name}"
        return f"ended with exit code {code}" if code is not None else "went away"

    def abort(self) -> None:
        """Have a question that is being asked end; from another thread."""
        child = self._child
        if child is not None:
            with contextlib.suppress(ValueError):  # it has just been closed
                _kill_group(child[0])

    def close(self) -> int | None:
        """Kill the process, if there is one, with all that it started, and return its exit code."""
        if self._child is None:
            return None
        (process, pipe), self._child = self._child, None
        _kill_group(process)  # before it is reaped: its number may then be another's
        process.join(5.0)
        pipe.close()
        code = process.exitcode
        if code is not None:
            process.close()
        return code


def _kill_group(process: SpawnProcess) -> None:
    """Kill a candidate's process and what it started, unless that has gone into a session of its own."""
    if hasattr(os, "killpg") and process.pid is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has just begun, or all of it has ended
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def as_sent(candidate: Any) -> bytes:
    """Return a candidate as it travels to a process; raises InputError if it cannot."""
    try:
        return pickle.dumps(candidate)
    except Exception as problem:
        raise InputError(
            f"the candidate cannot be sent to a process ({said(problem)}); pass a function of a module, "
            "Described(expression, folder), or isolate='thread'"
        ) from problem


def serve(pipe: Connection, pickled: bytes, memory: int | None) -> None:
    """The candidate's process: open it, say so, then answer until the other side goes away."""
    if hasattr(os, "setsid"):
        os.setsid()  # so that what the candidate starts can be killed with it
    with contextlib.suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program in front
    try:
        candidate = pickle.loads(pickled)
        if isinstance(candidate, Described):
            candidate = candidate.opened
        import ringtrue.retrieve.protocol  # noqa: F401  # imports are not part of the first answer's time, nor of its memory

        _limit(memory)
    except BaseException as problem:
        pipe.send(said(problem))
        return
    pipe.send(None)
    while True:
        try:
            text, options = pipe.recv()
        except (EOFError, OSError):
            return
        reply = answer(candidate, text, options)
        with contextlib.suppress(BrokenPipeError):
            pipe.send(reply)


def _limit(memory: int | None) -> None:
    """Let this process take up so many bytes more than it has now, and stand back behind others."""
    if sys.platform == "win32":
        if memory is not None:
            raise InputError("memory= needs a system with resource limits; this is Windows: pass memory=None")
        return
    import resource

    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        with contextlib.suppress(OSError):
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            memory += pages * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
