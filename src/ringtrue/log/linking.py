"""Feedback events and the search each of them answers.

An event is linked to the search that showed its item: the one it names, else one with its prompt or trace id, else the newest
search of its session that showed the item within a window. It then carries the item's rank, and the retriever and flags of that
search, so that what was seen before a change and after it can always be told apart. Events that came without a link, as from a
live log or an import, are linked the same way by whatever reads them (``link_all``).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from ringtrue.answers import Actor, EventType
from ringtrue.errors import InputError, check_choice
from ringtrue.ids import check_id
from ringtrue.store import DEFAULT_PROJECT, FeedbackEvent, LoggedQuery, timestamp
from ringtrue.traffic import Traffic

if TYPE_CHECKING:
    from ringtrue.store import Store

Key = TypeVar("Key")
Value = TypeVar("Value")
WINDOW = timedelta(minutes=30)
"""How long after a search its session's events are taken to be about it."""
TRACED = timedelta(days=1)
"""How far back a search with the event's prompt or trace id is looked for outside its session."""
EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)
ACTORS = get_args(Actor)
NOT_SHOWN = -1
PAGE = 2_000
"""Searches read from the store, or rows written to it, at once."""


def instant(text: str) -> datetime:
    """Return an ISO 8601 text as a moment in UTC; raises InputError for anything else.

    >>> instant("2026-03-01T12:00:00+02:00").isoformat()
    '2026-03-01T10:00:00+00:00'
    """
    return datetime.fromisoformat(timestamp(text))


def by_time(one: LoggedQuery | FeedbackEvent) -> tuple[datetime, str]:
    """Return what searches or events are sorted by: their time, and of one moment their id."""
    return instant(one.created_at), one.query_id if isinstance(one, LoggedQuery) else one.event_id


def rank_in(query: LoggedQuery, item_id: str) -> int:
    """Return where a search showed an item, from 1; −1 if it did not."""
    return query.result_ids.index(item_id) + 1 if item_id in query.result_ids else NOT_SHOWN


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key, in their order.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def stable_id(*parts: str) -> str:
    """Return an event id that is the same for the same parts, so that finding an event twice keeps one."""
    return "ef_" + hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def check_event(event: FeedbackEvent) -> FeedbackEvent:
    """Return the event as it is; raises InputError for an unknown type or actor, an empty session, no time, or a dwell of none.

    A dwell says how long, as ``seconds`` in its metadata: a number from 0.
    """
    check_choice(str(event.event_type), EVENT_TYPES, f"there is no feedback type '{event.event_type}'")
    check_choice(str(event.actor), ACTORS, f"there is no actor '{event.actor}'")
    if not event.session_id.strip():
        raise InputError(f"event '{event.event_id}' has no session; feedback belongs to a session")
    if event.item_id is not None:
        check_id(event.item_id, "item_id", event.event_id)
    elif event.event_type != "re_search":
        raise InputError(f"event '{event.event_id}' ({event.event_type}) names no item; only re_search may do without")
    if event.event_type == "dwell":
        seconds = event.metadata.get("seconds")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
            raise InputError(f"event '{event.event_id}' (dwell) has seconds {seconds!r:.40}; write a number from 0")
    instant(event.created_at)
    return event


def link(event: FeedbackEvent, searches: Iterable[LoggedQuery], *, window: timedelta = WINDOW) -> FeedbackEvent:
    """Return the event with the search that showed its item, the rank there, and that search's retriever and flags.

    Where no search did, it comes back without a search and with rank −1. A search that the event names itself is kept, whether
    it showed the item or not: the rank tells.

    >>> shown = LoggedQuery("eq_1", "late checkout", "web", "2026-03-01T12:00:00Z", session_id="s", result_ids=("a", "b"))
    >>> click = FeedbackEvent("ef_1", "click", "s", "2026-03-01T12:01:00Z", item_id="b")
    >>> linked = link(click, [shown])
    >>> linked.query_id, linked.rank_in_results
    ('eq_1', 2)
    """
    return link_all([event], searches, window=window)[0]


def link_all(
    events: Sequence[FeedbackEvent], searches: Iterable[LoggedQuery], *, window: timedelta = WINDOW
) -> list[FeedbackEvent]:
    """Return every event linked as ``link`` does, in their order."""
    shelf = _Shelf(searches)
    return [_linked(event, shelf, window) for event in events]


def link_named(store: Store, events: Sequence[FeedbackEvent]) -> list[FeedbackEvent]:
    """Return the events, each that names a search in the store with the session of that search and the item's rank there."""
    named = grouped((event.project, event.query_id) for event in events if event.query_id is not None)
    shelf = _Shelf(one for project, ids in named.items() for one in store.queries(project=project, query_ids=sorted({*ids})))
    return [event if event.query_id is None else _linked(event, shelf, WINDOW) for event in events]


def record_feedback(store: Store, events: Sequence[FeedbackEvent], *, window: timedelta = WINDOW) -> list[FeedbackEvent]:
    """Link events to the searches in the store, write them, and return them so; raises InputError as check_event does."""
    found = linked(store, events, window=window)
    store.add_feedback(found)
    return found


def linked(store: Store, events: Sequence[FeedbackEvent], *, window: timedelta = WINDOW) -> list[FeedbackEvent]:
    """Return events linked to the searches in the store; nothing is written. Raises InputError as check_event does."""
    named = link_named(store, [check_event(event) for event in events])
    return [
        link(event, _searches_for(store, event, window), window=window) if event.query_id is None else event for event in named
    ]


def _searches_for(store: Store, event: FeedbackEvent, window: timedelta) -> list[LoggedQuery]:
    """Return the searches an event may be about, without reading more of the log than that takes."""
    at = instant(event.created_at)
    # In the session an id may name a search older than the window.
    found = store.queries(project=event.project, session_id=event.session_id, since=timestamp(at - max(window, TRACED)))
    wanted = _ids(event.metadata)
    if wanted and not any(wanted & _ids_of(query) for query in found):
        nearby = store.queries(project=event.project, since=timestamp(at - TRACED), until=timestamp(at + TRACED))
        found += [query for query in nearby if wanted & _ids_of(query)]
    return found


def _ids(metadata: Mapping[str, Any]) -> set[tuple[str, str]]:
    return {(name, str(metadata[name])) for name in ("prompt_id", "trace_id") if metadata.get(name)}


def _ids_of(query: LoggedQuery) -> set[tuple[str, str]]:
    return _ids({"prompt_id": query.prompt_id, "trace_id": query.trace_id})


class _Shelf:
    """Searches where an event will look for them, oldest first."""

    def __init__(self, searches: Iterable[LoggedQuery]) -> None:
        self.by_id: dict[tuple[str, str], LoggedQuery] = {}
        self.by_key: dict[tuple[str, str, str], list[tuple[datetime, LoggedQuery]]] = {}
        for query in sorted(searches, key=by_time):
            if (query.project, query.query_id) in self.by_id:
                continue
            self.by_id[query.project, query.query_id] = query
            keys = _ids_of(query) | ({("session", query.session_id)} if query.session_id else set())
            for kind, value in keys:
                self.by_key.setdefault((query.project, kind, value), []).append((instant(query.created_at), query))

    def showing(self, item_id: str, project: str, kind: str, value: str) -> list[tuple[datetime, LoggedQuery]]:
        """Return the searches of a session, prompt or trace that showed an item, newest first."""
        rows = self.by_key.get((project, kind, value), [])
        return [row for row in reversed(rows) if item_id in row[1].result_ids]


def _linked(event: FeedbackEvent, shelf: _Shelf, window: timedelta) -> FeedbackEvent:
    if event.query_id is not None:
        named = shelf.by_id.get((event.project, event.query_id))
        return event if named is None else _about(event, named, "given")
    if event.item_id is None:
        return event
    at = instant(event.created_at)
    for kind, value in sorted(_ids(event.metadata)):  # the prompt before the trace
        rows = shelf.showing(event.item_id, event.project, kind, value)
        if rows:
            # The id is certain, clocks of two machines are not: a search that seems to come later still is the one.
            before = [query for moment, query in rows if moment <= at]
            return _about(event, before[0] if before else rows[-1][1], kind.removesuffix("_id"))
    for moment, query in shelf.showing(event.item_id, event.project, "session", event.session_id):
        if moment <= at <= moment + window:
            return _about(event, query, "session")
    return replace(event, rank_in_results=NOT_SHOWN)


def _about(event: FeedbackEvent, query: LoggedQuery, how: str) -> FeedbackEvent:
    if event.session_id == query.query_id and query.session_id:  # whoever told did not know the session
        event = replace(event, session_id=query.session_id)
    rank = NOT_SHOWN if event.item_id is None else rank_in(query, event.item_id)
    facts = {**event.metadata, "linked_by": event.metadata.get("linked_by", how), "retriever": query.retriever}
    if query.flags:
        facts["flags"] = setting(query.flags)
    return replace(event, query_id=query.query_id, rank_in_results=rank, metadata=facts)


def setting(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return flags without what was drawn for one impression: which test interleaved stays, its list and credits go.

    >>> setting({"rerank": True, "interleave": {"feature": "rerank-v2", "items": ["a", "b"], "credits": [-1.0, 1.0]}})
    {'rerank': True, 'interleave': {'feature': 'rerank-v2'}}
    """
    noted = flags.get("interleave")
    if not isinstance(noted, Mapping):
        return dict(flags)
    return {**flags, "interleave": {name: value for name, value in noted.items() if name not in ("items", "credits")}}


def queries_of(
    store: Store,
    *,
    project: str = DEFAULT_PROJECT,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    tool: str | None = None,
    traffic: Traffic | Literal["all"] = "user",
) -> Iterator[LoggedQuery]:
    """Yield the searches that users, or another ``traffic``, made in a time, in its order, a page at a time."""
    after: str | None = None
    while True:
        page = store.queries(project=project, since=since, until=until, tool=tool, traffic=traffic, limit=PAGE, after=after)
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].query_id
