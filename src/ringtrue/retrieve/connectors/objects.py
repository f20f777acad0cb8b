"""What connectors to Python objects share: the object named or given, its time limit, its exceptions as our errors, its rows.

Nothing of the object's library is imported here; an object is known by its methods. It is changed only where documents are
planted in it.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import math
import socket
import ssl
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, ClassVar, TypeVar

from ringtrue.errors import (
    AccessDenied,
    BadAnswer,
    InputError,
    MissingInput,
    RingtrueError,
    SearchFailed,
    TimedOut,
    Unreachable,
)
from ringtrue.http_client import in_time
from ringtrue.retrieve.connectors.base import Remote, Row, enough, field_of, within_scope
from ringtrue.retrieve.connectors.settings import Text
from ringtrue.retrieve.connectors.writing import RecordConnector
from ringtrue.retrieve.protocol import Scope

T = TypeVar("T")
THREAD = "ringtrue-object"
"""How the threads are called in which objects answer."""
STUCK = 16
"""Abandoned calls that may still be running; beyond, no further one is started."""
_abandoned: list[threading.Thread] = []
_opening = threading.RLock()


@dataclass(frozen=True, kw_only=True)
class ObjectConnector(RecordConnector):
    """A search object of somebody's program: given as it is, or imported by its name."""

    ANSWERING: ClassVar[tuple[str, ...]]
    """Methods of which an object must have one."""
    KINDS: ClassVar[str]
    """What such objects are, and how to get one."""

    retriever: Any = field(default=None, repr=False, hash=False)
    """The object itself, from Python."""
    object: Text | None = None
    """Where the object is, as 'package.module:name'; a function or class of that name is called without arguments."""
    document: Text | None = None
    """The metadata field that holds the document id; without it the record's own."""
    chunk: Text | None = None
    """The metadata field that names the passage; without it the record's own id."""
    lower_is_better: bool = False
    """Whether the scores are distances; they are then negated."""
    pass_k: bool = True
    """Whether the object is asked for k hits where it can be told; False asks it exactly as it is set up."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse(
            (
                (self.retriever is None) == (self.object is None),
                "needs one of retriever= (the object, in Python) and object='package.module:name'; give one",
            ),
            (
                isinstance(self.retriever, str),
                f"retriever={self.retriever!r:.60} is a text; write object='package.module:name' for a name",
            ),
        )
        if self.retriever is not None:
            self.check(self.retriever)

    def check(self, target: Any) -> None:
        """Raise InputError if the object is of no kind that can be asked."""
        if not any(callable(getattr(target, name, None)) for name in self.ANSWERING):
            raise InputError(f"{self.name}: {type(target).__name__} is neither {self.KINDS}")

    @abstractmethod
    def limited(self, target: Any, count: int, scope: Scope | None) -> tuple[Callable[[str], Any], bool]:
        """Return how to ask the object for ``count`` records, and whether it can be told how many."""

    @abstractmethod
    def row(self, item: Any) -> Row:
        """Return one record of the answer as a row, its score as the object gives it."""

    @abstractmethod
    def record_in(self, item: Any) -> Any:
        """Return the record in an item of the answer, without its score."""

    def metadata(self, item: Any) -> Mapping[str, Any]:
        """Return the metadata of one record of the answer."""
        record = self.record_in(item)
        metadata = getattr(record, "metadata", None)
        if not isinstance(metadata, Mapping):
            raise BadAnswer(f"{self.name} returned {type(record).__name__} instead of a record; return records with metadata")
        return metadata

    def resolves(self) -> bool:
        # By an id of the records' own; if their metadata names the document, the object cannot be asked for it.
        return self.document is None and self.looks_up()

    def implements(self, action: Callable[[], Any]) -> bool:
        """Return whether the object has more than the method of its base class, which only says that there is none."""
        try:
            self.tried(lambda: self.within(action))
        except BadAnswer as problem:
            if isinstance(problem.__cause__, NotImplementedError):
                return False
            raise
        return True

    def ask(self, text: str, *, k: int, scope: Scope | None) -> Iterable[Row]:
        if not text.strip():  # many an object raises for a blank question; none has an answer to it
            return []
        # Opening is not counted: it may build an index, and must happen once, however slow.
        target = self.target()

        def fetch(count: int) -> list[Row]:
            question, _ = self.limited(target, count, scope)
            return self._rows(awaited(question(text), self.timeout), scope)

        def answer() -> list[Row]:
            _, can_be_told = self.limited(target, k, scope)
            return enough(fetch, k) if can_be_told else fetch(k)

        return self.within(answer)

    def within(self, action: Callable[[], T]) -> T:
        """Return what an action with the object returns, within the timeout; raises SearchFailed."""
        return within(self, action, partial(failure, self.name))

    def target(self) -> Any:
        """Return the object, imported and made once; raises InputError, or SearchFailed where making it fails."""
        if self.object is None:
            return self.retriever
        with _opening:
            if "_target" not in self.__dict__:
                made = load(self.name, self.object, ready=self._usable)
                self.check(made)
                self.__dict__["_target"] = made
            return self.__dict__["_target"]

    def _usable(self, thing: Any) -> bool:
        try:
            self.check(thing)
        except InputError:
            return False
        return True

    def _rows(self, answer: Any, scope: Scope | None) -> list[Row]:
        if isinstance(answer, str | bytes | Mapping) or not isinstance(answer, Iterable):
            raise BadAnswer(f"{self.name} returned {type(answer).__name__}; it must return a list of records, best first")
        items = list(answer)
        for item in items if scope else ():
            if not within_scope(self.metadata(item), scope):
                raise BadAnswer(
                    f"{self.name} does not filter, it answered records outside of {dict(scope or {})}; search without a scope"
                )
        rows = [self.row(item) for item in items]
        sign = -1 if self.lower_is_better else 1
        best = math.inf
        for row in rows:
            score = row.pop("score")
            if score is not None:
                row["score"] = score = sign * score
                if score > best:
                    raise BadAnswer(
                        f"{self.name} returned scores that rise from one record to the next; say lower_is_better = "
                        f"{'false' if self.lower_is_better else 'true'}, or have it return the best first"
                    )
                best = score
        return rows

    def named(self, own: Any, metadata: Mapping[str, Any], score: Any) -> Row:
        """Return a row from a record's own id, its metadata and its score."""
        if score is not None and (
            isinstance(score, bool) or not hasattr(score, "__float__") or not math.isfinite(float(score))
        ):
            raise BadAnswer(f"{self.name} returned the score {score!r:.40}; it must be a finite number")
        doc_id = own if self.document is None else field_of(metadata, self.document, self.name, "document")
        if doc_id is None:
            there = ", ".join(f"'{key}'" for key in list(metadata)[:8]) or "none"
            raise BadAnswer(f"{self.name} returned a record without an id; say document= and a metadata field ({there})")
        row: Row = {"doc_id": doc_id, "score": None if score is None else float(score)}
        if self.chunk is not None:
            row["chunk"] = field_of(metadata, self.chunk, self.name, "chunk")
        elif self.document is not None and own is not None:
            row["chunk"] = own
        return row


def load(who: str, place: str, *, ready: Callable[[Any], bool]) -> Any:
    """Return the object at 'package.module:name'; what is not ``ready`` and can be called is called without arguments."""
    module, _, name = place.partition(":")
    if not module or not name:
        raise InputError(f"{who}: object={place!r:.80} names no place; write it like 'package.module:name'")
    try:
        thing: Any = import_module(module)
    except ModuleNotFoundError as problem:
        raise MissingInput(
            f"{who}: there is no module '{problem.name}' to import '{place}' with; install it, or set PYTHONPATH"
        ) from problem
    except Exception as problem:
        raise failure(who, problem, doing=f"importing '{module}'") from problem
    for part in name.split("."):
        if not hasattr(thing, part):
            raise MissingInput(f"{who}: module '{module}' has no '{name}'; check the name after the colon of object=")
        thing = getattr(thing, part)
    if not inspect.isclass(thing) and (ready(thing) or not callable(thing)):
        return thing
    try:
        return awaited(thing(), None)
    except RingtrueError:
        raise
    except Exception as problem:
        raise failure(who, problem, doing=f"making '{place}'") from problem


def within(remote: Remote, action: Callable[[], T], failed: Callable[[BaseException], RingtrueError]) -> T:
    """Return what an action with somebody's library returns, within the timeout; ``failed`` makes its exceptions ours.

    A call that was given up goes on in the background; when too many do, none is started.
    """
    _abandoned[:] = [thread for thread in _abandoned if thread.is_alive()]
    if len(_abandoned) >= STUCK:
        raise TimedOut(f"{remote.name} still works on {len(_abandoned)} earlier questions; ask why it hangs")

    def work() -> T:
        try:
            return action()
        except RingtrueError:
            raise
        except BaseException as problem:
            raise failed(problem) from problem

    try:
        return in_time(remote.timeout, work, name=f"{THREAD} {remote.name}", abandon=_abandoned.append)
    except TimeoutError:
        raise remote.too_slow() from None


def failure(who: str, problem: BaseException, *, doing: str = "searching") -> SearchFailed:
    """Return an exception of somebody's program as ours: by its kind or that of its causes, without its text.

    Libraries wrap what went wrong underneath; a refused connection is one, whoever passed it on. The text may hold an address.
    """
    kind = type(problem).__name__
    for cause in causes(problem):
        if isinstance(cause, SearchFailed):
            return cause
        if isinstance(cause, TimeoutError):
            return TimedOut(f"{who} ran out of time while {doing} ({kind}); raise its own time limit, or ask why it is slow")
        if isinstance(cause, PermissionError):
            return AccessDenied(f"{who} was denied access while {doing} ({kind}); check its credentials")
        if isinstance(cause, ConnectionError | socket.gaierror | ssl.SSLError):
            return Unreachable(f"{who} reached nobody while {doing} ({kind}); check that what it searches runs")
    return BadAnswer(f"{who} failed while {doing} ({kind}); run it by itself to see why")


def causes(problem: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and what led to it, the nearest first."""
    seen: set[int] = set()
    while problem is not None and id(problem) not in seen:  # causes may form a ring
        seen.add(id(problem))
        yield problem
        cause, suppressed = problem.__cause__, problem.__suppress_context__
        if cause is None:
            problem = None if suppressed else problem.__context__
        else:
            problem = problem.__context__ if id(cause) in seen else cause  # pymilvus chains an error to itself


def asked(target: Any, method: str, text: str) -> Any:
    """Return what an object answers; one that only answers asynchronously is asked so."""
    if callable(getattr(target, method, None)):
        try:
            return getattr(target, method)(text)
        except NotImplementedError:
            if not callable(getattr(target, f"a{method}", None)):
                raise
    return getattr(target, f"a{method}")(text)


def awaited(value: Any, seconds: float | None) -> Any:
    """Return a value, waiting for it where it is a coroutine; all of them run in one loop, as their clients expect."""
    if not inspect.isawaitable(value):
        return value

    async def wait() -> Any:
        return await asyncio.wait_for(value, seconds)

    return asyncio.run_coroutine_threadsafe(wait(), _loop()).result()


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True, name=f"{THREAD} loop")
    thread.start()

    def stop() -> None:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(1)
        if not loop.is_running():
            loop.close()

    atexit.register(stop)
    return loop
