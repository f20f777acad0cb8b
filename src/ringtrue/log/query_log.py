"""The query log as a small SDK: a decorator, a context manager, a watched retriever, or plain records.

::

    log = QueryLog("postgresql://…", project="shop")

    @log.search(tool="shop")
    def search(text, k=10): ...

    with log.query("pool", tool="shop", session_id="s1") as q:
        q.answer(hits)

    retriever = log.watched(retriever)

    search("pool"); log.click(log.query_id, "d1")

Whatever goes wrong with the log, the search goes on: its answer, its exceptions and its speed stay what they are.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import fields as fields_of
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar

from ringtrue.answers import EventType
from ringtrue.config import cache_folder, store_url
from ringtrue.config import project as configured_project
from ringtrue.errors import InputError, check_choice
from ringtrue.ids import id_text
from ringtrue.log.capture import (
    Answered,
    Relevance,
    as_given,
    event_name,
    iso,
    quality_proxy,
    query_name,
    read_answer,
    stages_of,
    weight,
)
from ringtrue.log.linking import check_event
from ringtrue.log.redact import ERROR as ERROR
from ringtrue.log.redact import Redactor, redactor_of
from ringtrue.log.writer import Writer
from ringtrue.store import DEFAULT_PROJECT, FeedbackEvent, LoggedQuery
from ringtrue.traffic import current, kind_of

if TYPE_CHECKING:
    from ringtrue.records import Hit
    from ringtrue.retrieve import Retriever, Seen
    from ringtrue.store import Store

P = ParamSpec("P")
R = TypeVar("R")
QUEUE_BYTES = 60_000_000
SPOOL_BYTES = 256_000_000
BATCH = 500
NOTHING = Answered((), (), {})
_TEXTS = ("query", "text", "question", "q", "search_query", "prompt")
_FIELDS = frozenset(field.name for field in fields_of(LoggedQuery)) - {"query_id", "query", "created_at", "project"}
LATEST_SEARCH: ContextVar[RunningSearch | None] = ContextVar("ringtrue_latest_search", default=None)
"""What this thread or task logs now or logged last."""
_CONTEXT: ContextVar[Mapping[str, Any]] = ContextVar("ringtrue_log_context", default={})  # noqa: B039  # never changed


class QueryLog(Writer):
    """Logs searches and feedback of one project into a store.

    Everything logged here belongs to ``project``, the configured one unless given. ``store`` is an open Store, an address, or
    None for the configured one; an address is opened by the writing thread, so that a database that is down neither stops nor
    slows the start. ``redact`` is a Redactor (the default takes out every kind it knows), a function of one's own, or None to
    store everything as it is. ``relevance`` places scores in [0, 1] for the quality proxy. ``folder`` holds the counts and the
    spool of this process; unless given, it lies beside a SQLite file, else in the user's cache. Use it as a context manager, or
    ``close`` it; at the end of the program it closes itself.
    """

    def __init__(
        self,
        store: Store | str | Path | None = None,
        *,
        project: str | None = None,
        redact: Redactor | Callable[[str], str] | None = Redactor(),  # noqa: B008  # frozen
        relevance: Relevance = as_given,
        queue_bytes: int = QUEUE_BYTES,
        batch: int = BATCH,
        folder: str | Path | None = None,
        spool_bytes: int = SPOOL_BYTES,
    ) -> None:
        self.relevance = relevance
        super().__init__(
            store,
            redactor=redactor_of(redact),
            folder=Path(folder).expanduser() if folder else log_folder(store),
            project=project or configured_project(),
            queue_bytes=queue_bytes,
            batch=batch,
            spool_bytes=spool_bytes,
        )

    # ── ways in ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def record(self, row: LoggedQuery) -> bool:
        """Log a search as it is given; False if it was dropped or refused, which ``counts`` tells.

        It belongs to the log's project; one that names another, not the default, is refused.
        """
        return self._take(row)

    def feedback(self, event: FeedbackEvent) -> bool:
        """Log what somebody did with a result; as ``record``."""
        return self._take(event)

    def click(self, query_id: str, item_id: str | int, **fields: Any) -> bool:
        """Log that a result of a search was clicked; ``fields`` as for ``signal``."""
        return self.signal("click", query_id, item_id, **fields)

    def signal(
        self,
        kind: EventType,
        query_id: str,
        item_id: str | int,
        *,
        session_id: str | None = None,
        user_id: str | None = None,
        actor: Literal["person", "agent", "unknown"] = "person",
        **metadata: Any,
    ) -> bool:
        """Log what was done with a result of a search: click, selection, cite, validate_useful, dwell (``seconds=``) …

        Session and user are those of ``context`` unless given, and the search's own without either. Returns False if the event
        was dropped. Raises InputError for an unknown kind or actor, no query or item, or a dwell without seconds.
        """
        query_id = id_text(query_id)
        if not isinstance(query_id, str) or not query_id.strip():
            raise InputError(f"{kind}: {query_id!r} is not the id of a search; pass on the log.query_id of the answer")
        context = _CONTEXT.get()
        event = FeedbackEvent(
            event_id=event_name(f"{query_id} {item_id}"),
            event_type=kind,
            session_id=session_id or context.get("session_id") or query_id,
            created_at=iso(time.time_ns() // 1000),
            project=self.project,
            query_id=query_id,
            item_id=id_text(item_id),
            actor=actor,
            user_id=user_id or context.get("user_id"),
            metadata=metadata,
        )
        return self.feedback(check_event(event))

    @property
    def query_id(self) -> str | None:
        """The id of the search that this thread or task logs now or logged last; None before the first."""
        latest = LATEST_SEARCH.get()
        return latest.query_id if latest is not None and latest._log is self else None

    def _take(self, row: object) -> bool:
        """Take a record of somebody else's making; whatever it is, nothing is raised."""
        if not isinstance(row, LoggedQuery | FeedbackEvent):
            kind = type(row).__name__
            self._reject("no record", f"{kind} is neither a LoggedQuery nor a FeedbackEvent")
            return False
        name = row.query_id if isinstance(row, LoggedQuery) else row.event_id
        if row.project != self.project:
            if row.project != DEFAULT_PROJECT:
                self._reject("another project", f"it is of {row.project!r}, the log of {self.project!r}", name=str(name))
                return False
            row = replace(row, project=self.project)
        try:
            if isinstance(row, FeedbackEvent):
                return self._put(row, weight("", (), {}, [row.metadata]))
            further = (row.stages, row.flags, row.stage_latency_ms, row.fusion_weights)
            return self._put(row, weight(row.query, row.result_ids, row.channel_contributions, further))
        except Exception as problem:  # a field holds what it cannot
            self._reject("not storable", problem, name=str(name))
            return False

    def query(self, text: str, *, tool: str, results: Callable[[Any], Any] | None = None, **fields: Any) -> RunningSearch:
        """Return a context manager, also for ``async with``, around one search: call ``answer(hits)`` inside.

        ``fields`` are those of LoggedQuery: session_id, user_id, intent … Raises InputError for a name that is none of them.
        """
        return RunningSearch(self, _as_text(text), tool, results, _checked(fields))

    def search(
        self, *, tool: str, text: str | None = None, results: Callable[[Any], Any] | None = None, **fields: Any
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Return a decorator that logs every call of a function or method, sync or async.

        ``text`` names the parameter with the query's text; unless given it is the one called query, text, question or q, else
        the first. ``results`` makes a list of hits of an answer that is none. Raises InputError if there is no such
        parameter, and for generators, which could be logged only by using them up.
        """
        extra = _checked(fields)

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                raise InputError(f"{function.__name__} is a generator; log the list it is made into: with log.query(…) as q")
            name, place = _text_parameter(function, text)

            def asked(args: tuple[Any, ...], options: Mapping[str, Any]) -> RunningSearch:
                said = options[name] if name in options else args[place] if place < len(args) else ""
                return RunningSearch(self, _as_text(said), tool, results, extra)

            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def waiting(*args: P.args, **options: P.kwargs) -> Any:
                    with asked(args, options) as search:
                        answer = await function(*args, **options)
                        search.answer(answer)
                    return answer

                return waiting  # type: ignore[return-value]

            @functools.wraps(function)
            def calling(*args: P.args, **options: P.kwargs) -> R:
                with asked(args, options) as search:
                    answer = function(*args, **options)
                    search.answer(answer)
                return answer

            return calling

        return decorate

    def watched(self, retriever: Any, *, tool: str = "retriever", fingerprint: str | None = None, **fields: Any) -> Watched:
        """Return a retriever that answers as the given one does, and logs every search with its channels and stages.

        ``fingerprint`` says which retriever answered, in your own words. Unless given, it is the whole expression that the
        retriever was built from; any other retriever gets its name and a hash of its code and settings.
        """
        from ringtrue.retrieve import as_retriever, expression_of
        from ringtrue.run import subject_of

        inner = as_retriever(retriever)
        if fingerprint is None and (fingerprint := expression_of(retriever)) is None:
            found = subject_of(retriever, collection=lambda: None)  # type: ignore[arg-type, return-value]  # none is needed
            fingerprint = f"{found.name}#{found.fingerprint[:8]}"
        known = {"retriever": fingerprint, "fusion_weights": getattr(inner, "weights", {})}
        return Watched(self, inner, tool, {**known, **_checked(fields)})

    @contextmanager
    def context(self, **fields: Any) -> Iterator[None]:
        """Give every search logged inside, in this thread or task, these fields: session_id, user_id, trace_id, flags …"""
        token = _CONTEXT.set({**_CONTEXT.get(), **_checked(fields)})
        try:
            yield
        finally:
            _CONTEXT.reset(token)

    def user_key(self, user_id: str) -> str:
        """Return a user's id as the store has it, for ``Store.delete_user``."""
        return self.redactor.user(user_id, self.project) or user_id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class RunningSearch:
    """One search while it runs, and then in the queue: what can wait is made by the writing thread."""

    __slots__ = (
        "_answered", "_fields", "_log", "_moment", "_ms", "_results", "_start", "_text", "_tool", "_unreadable", "under_way",
    )  # fmt: skip

    def __init__(
        self, log: QueryLog, text: str, tool: str, results: Callable[[Any], Any] | None, fields: Mapping[str, Any]
    ) -> None:
        self._log, self._text, self._tool, self._results, self._fields = log, text, tool, results, fields
        self._moment = query_name.tick()
        self._answered: Answered | None = None
        self._ms: float | None = None
        self._unreadable = False
        self.under_way = True
        self._start = time.perf_counter()

    @property
    def query_id(self) -> str:
        """The id that the search has in the log, known from the start, so that feedback can name it."""
        return query_name.name(self._moment, self._text)

    def answer(self, hits: Any, **fields: Any) -> None:
        """Note the answer and stop the watch; raises InputError only for fields that a logged query does not have."""
        ms = (time.perf_counter() - self._start) * 1000
        if fields:
            self._fields = {**self._fields, **_checked(fields)}
        try:
            self._answered, self._ms = read_answer(hits if self._results is None else self._results(hits)), ms
        except Exception as problem:
            # An answer that cannot be read is not an empty one; it is counted, not logged.
            self._log._reject("unreadable answer", problem, name=self._tool)
            self._unreadable = True

    def saw(self, seen: Seen | None) -> None:
        """Note how a retriever with parts came to its answer."""
        try:
            figures, latency = stages_of(seen)
        except Exception as problem:
            self._log.problem = f"{self._tool}: its stages cannot be read: {problem}"
            return
        self._fields = {"stages": figures, "stage_latency_ms": latency, **self._fields}

    def __enter__(self) -> Self:
        LATEST_SEARCH.set(self)
        self._start = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.under_way = False
        if self._unreadable:
            return
        log = self._log
        try:
            whose = current()
            self._fields = {**_CONTEXT.get(), **({} if whose == "user" else {"traffic": whose}), **self._fields}
            if self._answered is None:
                if problem is None:
                    log._reject("no answer", "the search ended without answer(hits)", name=self._tool)
                    return
                self._ms = (time.perf_counter() - self._start) * 1000
                said = f"{ERROR}{type(problem).__name__}: {problem}"[:500]
                self._fields = {**self._fields, "degraded": True, "fallback": said}
                self._answered = NOTHING
            ids, _, channels = self._answered
            log._put(self, weight(self._text, ids, channels, self._fields.values()))
        except Exception as trouble:
            log._reject("not storable", trouble, name=self._tool)

    def row(self) -> LoggedQuery:
        """Return the search as it is logged."""
        ids, scores, channels = self._answered or NOTHING
        raised = str(self._fields.get("fallback", "")).startswith(ERROR)
        known = not raised and len(scores) == len(ids)
        given: dict[str, Any] = {
            "project": self._log.project,
            "result_ids": ids,
            "scores": scores,
            "channel_contributions": channels,
            "total_latency_ms": self._ms,
            "quality_proxy_score": quality_proxy(scores, self._ms, relevance=self._log.relevance) if known else None,
        }
        return LoggedQuery(self.query_id, self._text, self._tool, iso(self._moment.clock), **(given | dict(self._fields)))

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, problem, trace)


class Watched:
    """A retriever that logs; it answers exactly what the one inside answers."""

    def __init__(self, log: QueryLog, inner: Retriever, tool: str, fields: Mapping[str, Any]) -> None:
        self.inner, self._log, self._tool, self._fields = inner, log, tool, fields
        self.name = str(getattr(inner, "name", type(inner).__name__))

    @property
    def parts(self) -> list[Retriever]:
        """The retriever inside."""
        return [self.inner]

    def search(self, text: str, *, k: int = 10, scope: Mapping[str, str] | None = None) -> Sequence[Hit]:
        """Return the answer of the retriever inside."""
        from ringtrue.retrieve import is_observed, observing

        with RunningSearch(self._log, text, self._tool, None, self._fields) as search:
            # If somebody observes already, what is seen is theirs.
            with nullcontext() if is_observed() else observing() as seen:
                hits = self.inner.search(text, k=k, scope=scope)
            search.answer(hits)
            if seen is not None:
                search.saw(seen.root)
        return hits


def log_folder(store: Store | str | Path | None = None) -> Path | None:
    """Return where the processes that log into a store keep counts and spools; None for a store without an address."""
    if store is None:
        store = store_url()
    if not isinstance(store, str | Path):
        place = getattr(store, "address", None)
        if place is None:
            return None
        store = str(place.sqlite or place.url.render_as_string(hide_password=True))
    text = re.sub(r"^sqlite(\+\w+)?:///", "", str(store))
    if "://" not in text:
        path = Path(text).expanduser().absolute()
        return path.with_name(path.name + "-log")
    # Without the driver and the password, which may change while the database stays the same.
    plain = re.sub(r"^postgres(ql)?(\+\w+)?://", "", re.sub(r"(?<=//)([^:@/]*):[^@]*@", r"\1@", text)).replace(":***@", "@")
    return cache_folder() / "log" / hashlib.sha256(plain.encode()).hexdigest()[:16]


def _as_text(asked: object) -> str:
    if isinstance(asked, str):
        return asked
    try:
        return str(asked)
    except Exception:  # the search may still make sense of it
        return ""


def _checked(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in fields.keys() - _FIELDS:
        check_choice(name, sorted(_FIELDS), f"a logged query has no field '{name}'")
    if "traffic" in fields:
        kind_of(fields["traffic"])
    return fields


def _text_parameter(function: Callable[..., Any], text: str | None) -> tuple[str, int]:
    """Return the name and the place of the parameter that holds the query's text."""
    names = list(inspect.signature(function).parameters)
    if text not in (None, *names):
        raise InputError(f"{function.__name__} has no parameter '{text}'; it has {', '.join(names) or 'none'}")
    usual = [name for name in _TEXTS if name in names] or [name for name in names if name not in ("self", "cls")]
    found = usual if text is None else [text]
    if not found:
        raise InputError(f"{function.__name__} takes no query; name the parameter with its text: @log.search(text=…)")
    return found[0], names.index(found[0])
