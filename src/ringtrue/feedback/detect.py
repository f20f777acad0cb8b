"""What somebody did with a search, found from the log, from file reads and from answers (F-2).

Every finder returns events with ids made from what they say, so finding them again adds nothing.
"""

from __future__ import annotations

import math
import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal

from ringtrue.log.linking import WINDOW, instant, link, link_all, rank_in, setting, stable_id
from ringtrue.store import DEFAULT_PROJECT, FeedbackEvent, LoggedQuery

Actor = Literal["person", "agent", "unknown"]
Encode = Callable[[str], Sequence[float]]
"""A text → its vector, of any length but 0."""

OPENING = frozenset({"read_after_search", "selection", "click", "dwell", "reference", "cite"})
"""What nobody does with a result without opening it."""


@dataclass(frozen=True, kw_only=True)
class DetectionRules:
    """When something counts; the defaults are those of F-2."""

    cosine: float = 0.8
    overlap: float = 0.6
    """Shared words ÷ all words of two queries."""
    soon: timedelta = timedelta(minutes=10)
    """A query counts as a repetition only within this time."""
    span: int = 8
    """Words in a row that a reference must share with its item."""


DEFAULTS = DetectionRules()


def re_searches(
    searches: Iterable[LoggedQuery], *, encode: Encode | None = None, rules: DetectionRules = DEFAULTS
) -> list[FeedbackEvent]:
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

    events = []
    for session in _by_session(searches):
        dated = [(instant(query.created_at), _words(query.query), query) for query in session]
        for place, (at, words, query) in enumerate(dated):
            for moment, earlier_words, earlier in reversed(dated[:place]):
                if at - moment > rules.soon:
                    break
                if moment == at:
                    continue
                shared, close = _overlap(words, earlier_words), cosine(query, earlier)
                if shared >= rules.overlap or close >= rules.cosine:
                    events.append(_repetition(query, earlier, shared, close))
                    break
    return events


def scroll_pasts(
    searches: Iterable[LoggedQuery], events: Iterable[FeedbackEvent], *, window: timedelta = WINDOW
) -> list[FeedbackEvent]:
    """Return an event for every item shown above one that was opened, and not opened itself anywhere in the session.

    An item that the session opened from another search was known already, not passed over. Best called when the session is
    over: what is opened later is not known before. Events without a search are linked as ``link`` does.
    """
    searches = list(searches)
    opened: dict[str, dict[str, FeedbackEvent]] = {}
    known: dict[tuple[str, str], set[str]] = {}
    linked = link_all(list(events), searches, window=window)
    for event in sorted(linked, key=lambda event: (instant(event.created_at), event.event_id)):
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
            found.append(_passed(query, item_id, rank, below))
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
    rules: DetectionRules = DEFAULTS,
    window: timedelta = WINDOW,
) -> list[FeedbackEvent]:
    """Return an event for every item (id → text) of which the answer repeats at least ``rules.span`` words in a row.

    Case, punctuation and line breaks are ignored. An event says how many ``words`` its longest span has, and ``shared`` where
    every repeated span stands in another of the items too: then nobody can say which one was used. An item shorter than a span
    cannot be recognised.
    """
    searches = list(searches)
    said = set(_runs(word_list(answer), rules.span))
    if not said:
        return []
    texts = {item_id: word_list(text) for item_id, text in items.items()}
    repeated = {item_id: {run for run in _runs(words, rules.span) if run in said} for item_id, words in texts.items()}
    holders = Counter(run for runs in repeated.values() for run in runs)
    found = []
    for item_id, runs in repeated.items():
        if not runs:
            continue
        facts = {**(metadata or {}), "words": _longest(texts[item_id], said, rules.span)}
        if all(holders[run] > 1 for run in runs):
            facts["shared"] = True
        event_id = stable_id("reference", project, session_id, item_id, at)
        event = FeedbackEvent(
            event_id, "reference", session_id, at, project=project, item_id=item_id, actor=actor, metadata=facts
        )
        found.append(link(event, searches, window=window))
    return found


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
    window: timedelta = WINDOW,
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
    return link(event, searches, window=window)


# ── parts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _by_session(searches: Iterable[LoggedQuery]) -> Iterator[list[LoggedQuery]]:
    sessions: dict[tuple[str, str], list[LoggedQuery]] = {}
    for query in searches:
        if query.session_id:
            sessions.setdefault((query.project, query.session_id), []).append(query)
    for session in sessions.values():
        yield sorted(session, key=lambda query: (instant(query.created_at), query.query_id))


def _repetition(query: LoggedQuery, earlier: LoggedQuery, shared: float, close: float) -> FeedbackEvent:
    facts = {"repeats": earlier.query_id, "overlap": round(shared, 4)} | (
        {} if math.isnan(close) else {"cosine": round(close, 4)}
    )
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


def _passed(query: LoggedQuery, item_id: str, rank: int, below: FeedbackEvent) -> FeedbackEvent:
    return replace(
        below,
        event_id=stable_id("scroll_past", query.project, query.query_id, item_id),
        event_type="scroll_past",
        project=query.project,
        query_id=query.query_id,
        item_id=item_id,
        rank_in_results=rank,
        metadata={"opened_below": below.item_id} | _setting_of(query),
    )


def _setting_of(query: LoggedQuery) -> dict[str, Any]:
    return {"retriever": query.retriever} | ({"flags": setting(query.flags)} if query.flags else {})


def word_list(text: str) -> list[str]:
    """Return the words of a text as the trigger channel sees them."""
    from ringtrue.retrieve.channels.trigger import words_of

    return words_of(text)


def _words(text: str) -> frozenset[str]:
    # A query of signs alone ("???") still has to resemble itself.
    return frozenset(word_list(text) or text.split())


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    union = len(one | other)
    return len(one & other) / union if union else 0.0


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else math.nan


def _runs(words: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    for start in range(len(words) - length + 1):
        yield tuple(words[start : start + length])


def _longest(words: Sequence[str], said: set[tuple[str, ...]], span: int) -> int:
    """Return the longest stretch of an item whose every run of ``span`` words the answer has."""
    best = here = 0
    for run in _runs(words, span):
        here = here + 1 if run in said else 0
        best = max(best, here)
    return best + span - 1


def _path(path: str, root: str) -> str:
    plain = path.replace("\\", "/")
    return posixpath.normpath(posixpath.join(root.replace("\\", "/"), plain))
