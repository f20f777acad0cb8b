"""What somebody did with a search, found from the log, from file reads and from answers (F-2).

Every finder returns events with ids made from what they say, so finding them again adds nothing.
"""

from __future__ import annotations

import math
import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from typing import Any

from ringtrue.answers import Actor
from ringtrue.log.linking import by_time, instant, link, link_all, rank_in, setting, stable_id
from ringtrue.retrieve import words_of
from ringtrue.store import DEFAULT_PROJECT, FeedbackEvent, LoggedQuery

Encode = Callable[[str], Sequence[float]]
"""A text → its vector, of any length but 0."""

OPENING = frozenset({"read_after_search", "selection", "click", "dwell", "reference", "cite"})
"""What nobody does with a result without opening it."""
VALIDATING = frozenset({"validate_useful", "validate_not_useful"})
COSINE = 0.8
OVERLAP = 0.6
"""Shared words ÷ all words of two queries."""
SOON = timedelta(minutes=10)
"""A query counts as a repetition only within this time."""
SPAN = 8
"""Words in a row that a reference must share with its item."""


def re_searches(searches: Iterable[LoggedQuery], *, encode: Encode | None = None) -> list[FeedbackEvent]:
    """Return an event for every search that repeats an earlier one of its session, by its words or by ``encode``'s cosine.

    The event names the later search; ``metadata["repeats"]`` the newest earlier one that it resembles. Two searches of the same
    moment are one question to two tools, not a repetition.

    >>> first = LoggedQuery("eq_1", "late checkout fee", "web", "2026-03-01T12:00:00Z", session_id="s")
    >>> again = LoggedQuery("eq_2", "fee for late checkout", "web", "2026-03-01T12:01:00Z", session_id="s")
    >>> [(event.query_id, event.metadata["repeats"]) for event in re_searches([first, again])]
    [('eq_2', 'eq_1')]
    """
    vectors: dict[str, Sequence[float]] = {}

    def cosine(one: LoggedQuery, other: LoggedQuery) -> float:
        if encode is None:
            return math.nan
        for text in (one.query, other.query):
            if text not in vectors:
                vectors[text] = encode(text)
        return _cosine(vectors[one.query], vectors[other.query])

    sessions: dict[tuple[str, str], list[LoggedQuery]] = {}
    for query in searches:
        if query.session_id:
            sessions.setdefault((query.project, query.session_id), []).append(query)
    events = []
    for session in sessions.values():
        # A query of signs alone ("???") still has to resemble itself.
        worded = [(frozenset(words_of(query.query) or query.query.split()), query) for query in sorted(session, key=by_time)]
        for place, (words, query) in enumerate(worded):
            for earlier_words, earlier in reversed(worded[:place]):
                gap = instant(query.created_at) - instant(earlier.created_at)
                if gap > SOON:
                    break
                if not gap:
                    continue
                shared = len(words & earlier_words) / max(1, len(words | earlier_words))
                close = cosine(query, earlier)
                if shared >= OVERLAP or close >= COSINE:
                    events.append(_repetition(query, earlier, shared, close))
                    break
    return events


def scroll_pasts(searches: Iterable[LoggedQuery], events: Iterable[FeedbackEvent]) -> list[FeedbackEvent]:
    """Return an event for every item shown above one that was opened, and not opened itself anywhere in the session.

    An item that the session opened from another search was known already, not passed over. Best called when the session is
    over: what is opened later is not known before. Events without a search are linked as ``link`` does.
    """
    searches = list(searches)
    opened: dict[str, dict[str, FeedbackEvent]] = {}
    known: dict[tuple[str, str], set[str]] = {}
    for event in sorted(link_all(list(events), searches), key=by_time):
        if event.event_type not in OPENING or event.item_id is None:
            continue
        known.setdefault((event.project, event.session_id), set()).add(event.item_id)
        if event.query_id is not None:
            opened.setdefault(event.query_id, {}).setdefault(event.item_id, event)
    found = []
    for query in searches:
        ranks = {rank: event for item, event in opened.get(query.query_id, {}).items() if (rank := rank_in(query, item)) > 0}
        if not ranks:
            continue
        last = ranks[max(ranks)]
        read = known.get((query.project, query.session_id or last.session_id), set())
        for rank, item_id in enumerate(query.result_ids[: max(ranks) - 1], 1):
            if item_id in read or rank_in(query, item_id) != rank:
                continue
            below = ranks[min(place for place in ranks if place > rank)]
            found.append(
                replace(
                    below,
                    event_id=stable_id("scroll_past", query.project, query.query_id, item_id),
                    event_type="scroll_past",
                    project=query.project,
                    query_id=query.query_id,
                    item_id=item_id,
                    rank_in_results=rank,
                    metadata={"opened_below": below.item_id} | _setting_of(query),
                )
            )
    return found


def references(
    answer: str,
    items: Mapping[str, str],
    *,
    session_id: str,
    at: str,
    searches: Iterable[LoggedQuery] = (),
    actor: Actor = "agent",
    project: str = DEFAULT_PROJECT,
    metadata: Mapping[str, Any] | None = None,
) -> list[FeedbackEvent]:
    """Return an event for every item (id → text) of which the answer repeats at least eight words in a row.

    Case, punctuation and line breaks are ignored. An event says how many ``words`` its longest span has, and ``shared`` if
    every repeated span stands in another of the items too: then nobody can say which one was used. An item shorter than a span
    cannot be recognised.
    """
    said = set(_runs(answer))
    repeated = {item_id: [run in said for run in _runs(text)] for item_id, text in items.items()}
    holders = Counter(run for text in items.values() for run in said.intersection(_runs(text)))
    found = []
    for item_id, matches in repeated.items():
        if not any(matches):
            continue
        longest = max(len(list(run)) for repeats, run in groupby(matches) if repeats)
        facts = {**(metadata or {}), "words": longest + SPAN - 1}
        if all(holders[run] > 1 for run in said.intersection(_runs(items[item_id]))):
            facts["shared"] = True
        event_id = stable_id("reference", project, session_id, item_id, at)
        found.append(
            FeedbackEvent(event_id, "reference", session_id, at, project=project, item_id=item_id, actor=actor, metadata=facts)
        )
    return link_all(found, searches)


def file_read(
    path: str,
    items: Mapping[str, str],
    *,
    session_id: str,
    at: str,
    searches: Iterable[LoggedQuery] = (),
    root: str = "",
    actor: Actor = "agent",
    project: str = DEFAULT_PROJECT,
    metadata: Mapping[str, Any] | None = None,
) -> FeedbackEvent | None:
    """Return the event of a file being read (path → item id in ``items``), linked to its search; None for a file of no item.

    Paths are compared without ``.``, ``..`` and doubled slashes, relative ones below ``root``; the case of letters counts. A
    file that no search had shown gives an event without a search: it was read, but not found.
    """
    here = _path(path, root)
    item_id = items.get(path) or next((item for known, item in items.items() if _path(known, root) == here), None)
    if item_id is None:
        return None
    event = FeedbackEvent(
        stable_id("read", project, session_id, item_id, at),
        "read_after_search",
        session_id,
        at,
        project=project,
        item_id=item_id,
        actor=actor,
        metadata={**(metadata or {}), "path": path},
    )
    return link(event, searches)


# ── parts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _repetition(query: LoggedQuery, earlier: LoggedQuery, shared: float, close: float) -> FeedbackEvent:
    facts = {"repeats": earlier.query_id, "overlap": round(shared, 4)}
    facts |= {} if math.isnan(close) else {"cosine": round(close, 4)}
    return FeedbackEvent(
        stable_id("re_search", query.project, query.query_id),
        "re_search",
        query.session_id or "",
        query.created_at,
        project=query.project,
        query_id=query.query_id,
        user_id=query.user_id,
        metadata=facts | _setting_of(query),
    )


def _setting_of(query: LoggedQuery) -> dict[str, Any]:
    return {"retriever": query.retriever} | ({"flags": setting(query.flags)} if query.flags else {})


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else math.nan


def _runs(text: str) -> list[tuple[str, ...]]:
    """Return every run of eight words of a text, in their order."""
    words = words_of(text)
    return [tuple(words[start : start + SPAN]) for start in range(len(words) - SPAN + 1)]


def _path(path: str, root: str) -> str:
    plain = path.replace("\\", "/")
    return posixpath.normpath(posixpath.join(root.replace("\\", "/"), plain))
