"""Search objects of LangChain and LlamaIndex: named or given, with a time limit, their exceptions as our errors.

Nothing of the object's library is imported here; an object is known by its methods, and never changed.
"""

from __future__ import annotations

import copy
import inspect
import math
import socket
import ssl
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from operator import attrgetter
from typing import Any, ClassVar

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
from ringtrue.retrieve.connectors.base import Connector, Row, enough, field_of, within_scope
from ringtrue.retrieve.connectors.settings import Text
from ringtrue.retrieve.protocol import Scope

STUCK = 16
"""Abandoned calls that may still be running; beyond, no further one is started."""
_abandoned: list[threading.Thread] = []
_opening = threading.RLock()


@dataclass(frozen=True, kw_only=True)
class ObjectConnector(Connector):
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
            (
                self.retriever is not None and not self.answers(self.retriever),
                f"{type(self.retriever).__name__} is neither {self.KINDS}",
            ),
        )

    def answers(self, thing: Any) -> bool:
        """Return whether an object is of a kind that can be asked."""
        return any(callable(getattr(thing, name, None)) for name in self.ANSWERING)

    @abstractmethod
    def limited(self, target: Any, count: int, scope: Scope | None) -> tuple[Callable[[str], Any], bool]:
        """Return how to ask the object for ``count`` records, and whether it can be told how many."""

    @abstractmethod
    def row(self, item: Any) -> Row:
        """Return one record of the answer as a row, its score as the object gives it."""

    @staticmethod
    @abstractmethod
    def record_in(item: Any) -> Any:
        """Return the record in an item of the answer, without its score."""

    def metadata(self, item: Any) -> Mapping[str, Any]:
        """Return the metadata of one record of the answer."""
        record = self.record_in(item)
        metadata = getattr(record, "metadata", None)
        if not isinstance(metadata, Mapping):
            raise BadAnswer(f"{self.name} returned {type(record).__name__} instead of a record; return records with metadata")
        return metadata

    def ask(self, text: str, *, k: int, scope: Scope | None) -> Iterable[Row]:
        # Opening is not counted: it may build an index, and must happen once, however slow.
        target = self._target

        def fetch(count: int) -> list[Row]:
            question, _ = self.limited(target, count, scope)
            return self._rows(question(text), scope)

        def answer() -> list[Row]:
            _, can_be_told = self.limited(target, k, scope)
            return enough(fetch, k) if can_be_told else fetch(k)

        return self._in_time(answer)

    def _in_time(self, action: Callable[[], list[Row]]) -> list[Row]:
        """Return what an action with the object returns, within the timeout; raises SearchFailed.

        A call that was given up goes on in the background; when too many do, none is started.
        """
        _abandoned[:] = [thread for thread in _abandoned if thread.is_alive()]
        if len(_abandoned) >= STUCK:
            raise TimedOut(f"{self.name} still works on {len(_abandoned)} earlier questions; find out why it hangs")

        def work() -> list[Row]:
            try:
                return action()
            except RingtrueError:
                raise
            except BaseException as problem:
                raise failure(self.name, problem) from problem

        try:
            return in_time(self.timeout, work, name=f"ringtrue {self.name}", abandon=_abandoned.append)
        except TimeoutError:
            raise self.too_slow() from None

    @property
    def _target(self) -> Any:
        """The object, imported and made once; raises InputError, or SearchFailed where making it fails."""
        if self.object is None:
            return self.retriever
        with _opening:
            if "_made" not in self.__dict__:
                self.__dict__["_made"] = self._loaded(self.object)
            return self.__dict__["_made"]

    def _loaded(self, place: str) -> Any:
        module, _, name = place.partition(":")
        if not module or not name:
            raise InputError(f"{self.name}: object={place!r:.80} names no place; write it like 'package.module:name'")
        try:
            thing = attrgetter(name)(import_module(module))
            if inspect.isclass(thing) or (not self.answers(thing) and callable(thing)):
                thing = thing()
        except ModuleNotFoundError as problem:
            cure = "install it, or set PYTHONPATH"
            raise MissingInput(
                f"{self.name}: there is no module '{problem.name}' to import '{place}' with; {cure}"
            ) from problem
        except AttributeError as problem:
            said = f"{self.name}: '{name}' of module '{module}' cannot be had ({problem})"
            raise MissingInput(f"{said}; check the name after the colon of object=") from problem
        except RingtrueError:
            raise
        except Exception as problem:
            raise failure(self.name, problem, doing=f"making '{place}'") from problem
        if not self.answers(thing):
            raise InputError(f"{self.name}: {type(thing).__name__} is neither {self.KINDS}")
        return thing

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
        scores = [row["score"] for row in rows if row["score"] == row["score"]]
        if scores != sorted(scores, reverse=True):
            raise BadAnswer(
                f"{self.name} returned scores that rise from one record to the next; set lower_is_better = "
                f"{'false' if self.lower_is_better else 'true'}, or have it return the best first"
            )
        return rows

    def named(self, own: Any, metadata: Mapping[str, Any], score: Any) -> Row:
        """Return a row from a record's own id, its metadata and its score."""
        score = math.nan if score is None else score
        if isinstance(score, bool) or not hasattr(score, "__float__") or math.isinf(float(score)):
            raise BadAnswer(f"{self.name} returned the score {score!r:.40}; it must be a finite number")
        doc_id = own if self.document is None else field_of(metadata, self.document, self.name, "document")
        if doc_id is None:
            there = ", ".join(f"'{key}'" for key in list(metadata)[:8]) or "none"
            raise BadAnswer(f"{self.name} returned a record without an id; set document= to a metadata field ({there})")
        row: Row = {"doc_id": doc_id, "score": -float(score) if self.lower_is_better else float(score)}
        if self.chunk is not None:
            row["chunk"] = field_of(metadata, self.chunk, self.name, "chunk")
        elif self.document is not None and own is not None:
            row["chunk"] = own
        return row


def failure(who: str, problem: BaseException, *, doing: str = "searching") -> SearchFailed:
    """Return an exception of somebody's program as ours: by its kind or that of its causes, without its text.

    Libraries wrap what went wrong underneath; a refused connection is one, whoever passed it on. The text may hold an address.
    """
    kind = type(problem).__name__
    for cause in causes(problem):
        if isinstance(cause, SearchFailed):
            return cause
        if isinstance(cause, TimeoutError):
            return TimedOut(f"{who} ran out of time while {doing} ({kind}); raise its time limit, or find out why it is slow")
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


@dataclass(frozen=True, kw_only=True)
class LangChain(ObjectConnector):
    """A retriever (``invoke``), or a vector store (``similarity_search_with_score``), whose scores are then passed on.

    A retriever's documents have no scores unless ``score`` names the metadata field that holds them.
    """

    ANSWERING: ClassVar[tuple[str, ...]] = ("invoke", "similarity_search_with_score")
    KINDS: ClassVar[str] = (
        "a retriever nor a vector store of LangChain; give something with invoke(text) or similarity_search_with_score(text)"
    )

    score: str | None = None
    """The metadata field of a retriever's documents that holds their score."""

    def limited(self, target: Any, count: int, scope: Scope | None) -> tuple[Callable[[str], Any], bool]:
        self.no_scope(scope)
        if hasattr(target, "similarity_search_with_score"):
            options = {"k": count} if self.pass_k else {}
            return (lambda text: target.similarity_search_with_score(text, **options)), self.pass_k
        settings = getattr(type(target), "model_fields", {}) if self.pass_k else {}
        limit = next((name for name in ("search_kwargs", "k", "top_k") if name in settings), None)
        if limit is None:
            return target.invoke, False
        changed = {**(target.search_kwargs or {}), "k": count} if limit == "search_kwargs" else count
        return target.model_copy(update={limit: changed}).invoke, True

    def row(self, item: Any) -> Row:
        score = item[1] if isinstance(item, tuple) and len(item) == 2 else None
        metadata = self.metadata(item)
        if score is None and self.score is not None:
            score = metadata.get(self.score)
        return self.named(getattr(self.record_in(item), "id", None), metadata, score)

    @staticmethod
    def record_in(item: Any) -> Any:
        return item[0] if isinstance(item, tuple) and item else item


_LIMITS = ("similarity_top_k", "_similarity_top_k", "num_chunks_per_query")
"""Where retrievers keep how many nodes they return."""


@dataclass(frozen=True, kw_only=True)
class LlamaIndex(ObjectConnector):
    """A retriever (``retrieve``), or an index (``as_retriever``), which can also be searched within a scope.

    The document is the one a node was cut from (``ref_doc_id``), else the node; the node names the passage.
    """

    ANSWERING: ClassVar[tuple[str, ...]] = ("retrieve", "as_retriever")
    KINDS: ClassVar[str] = "a retriever nor an index of LlamaIndex; give something with retrieve(text) or as_retriever()"

    def limited(self, target: Any, count: int, scope: Scope | None) -> tuple[Callable[[str], Any], bool]:
        if hasattr(target, "as_retriever"):
            made = target.as_retriever(**({"filters": _filters(scope)} if scope else {}))
        else:
            self.no_scope(scope)
            made = copy.copy(target)
        limit = next((name for name in _LIMITS if hasattr(made, name)), None) if self.pass_k else None
        if limit is not None:
            setattr(made, limit, count)
        return made.retrieve, limit is not None

    def row(self, item: Any) -> Row:
        node = self.record_in(item)
        metadata, own = self.metadata(item), getattr(node, "node_id", None)
        row = self.named(own, metadata, getattr(item, "score", None))
        if self.document is None:
            row["doc_id"] = getattr(node, "ref_doc_id", None) or own
            row.setdefault("chunk", own)
        return row

    @staticmethod
    def record_in(item: Any) -> Any:
        return getattr(item, "node", item)


def _filters(scope: Scope) -> Any:
    library = import_module("llama_index.core.vector_stores")
    return library.MetadataFilters(filters=[library.MetadataFilter(key=key, value=value) for key, value in scope.items()])
