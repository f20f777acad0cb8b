"""What somebody did with a search, found from the log, file reads and answers, and how far items are trusted.

Every finder returns events with ids made from what they say, so finding them again adds nothing.

Trust comes from validations: useful adds 0.10, not useful takes 0.05, within [0, 1]. At 0.9 with five validations an item may
be promoted. A session has one vote on an item, its last: one agent that says it five times is one voice.
"""

from __future__ import annotations

import math
import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from typing import Any

from ringtrue.answers import Actor
from ringtrue.errors import InputError
from ringtrue.log.linking import NOT_SHOWN, by_time, grouped, instant, link, link_all, rank_in, setting, stable_id
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

    sessions = grouped(((query.project, query.session_id), query) for query in searches if query.session_id)
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
    linked = sorted(link_all(list(events), searches), key=by_time, reverse=True)
    acts = [(event, event.item_id) for event in linked if event.event_type in OPENING and event.item_id is not None]
    opened = grouped((event.query_id, (item_id, event)) for event, item_id in acts)
    known = grouped(((event.project, event.session_id), item_id) for event, item_id in acts)
    found = []
    for query in searches:
        # Of several events with an item the first counts: it comes last.
        ranks = {rank_in(query, item_id): event for item_id, event in opened.get(query.query_id, ())}
        ranks.pop(NOT_SHOWN, None)
        if not ranks:
            continue
        last = ranks[max(ranks)]
        read = known.get((query.project, query.session_id or last.session_id), [])
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


# ── confidence ────────────────────────────────────────────────────────────────────────────────────────────────────────


USEFUL = 0.10
NOT_USEFUL = -0.05
START = 0.5
PROMOTED_AT = 0.9
LEAST_VALIDATIONS = 5


@dataclass(frozen=True, slots=True)
class Confidence:
    """The trust in one item and how many sessions spoke about it."""

    value: float = START
    useful: int = 0
    not_useful: int = 0

    @property
    def validations(self) -> int:
        return self.useful + self.not_useful

    @property
    def promotion_eligible(self) -> bool:
        """True at 0.9 or more after five validations or more."""
        return self.value >= PROMOTED_AT and self.validations >= LEAST_VALIDATIONS

    def validated(self, useful: bool) -> Confidence:
        """Return the confidence after one more validation.

        >>> Confidence(0.97).validated(True).value, Confidence(0.5).validated(False).value
        (1.0, 0.45)
        """
        # Rounded: four steps of 0.10 from 0.5 are 0.9, not 0.8999999999999999.
        value = round(min(1.0, max(0.0, self.value + (USEFUL if useful else NOT_USEFUL))), 9)
        return Confidence(value, self.useful + useful, self.not_useful + (not useful))


def confidences(events: Iterable[FeedbackEvent], *, start: Mapping[str, float] | None = None) -> dict[str, Confidence]:
    """Return the confidence of every validated item: one vote a session, its last, in the order of their times.

    ``start`` is what items had before; 0.5 if it does not say. Raises InputError for a start outside [0, 1].
    """
    before = start or {}
    for item_id, value in before.items():
        if not 0.0 <= value <= 1.0:
            raise InputError(f"item '{item_id}' starts with confidence {value!r}; write a number from 0 to 1")
    votes: dict[tuple[str, str, str], FeedbackEvent] = {}
    for event in sorted(events, key=by_time):
        if event.event_type in VALIDATING and event.item_id is not None:
            votes[event.project, event.session_id, event.item_id] = event
    found: dict[str, Confidence] = {}
    for (_, _, item_id), event in sorted(votes.items(), key=lambda vote: by_time(vote[1])):
        now = found.get(item_id) or Confidence(before.get(item_id, START))
        found[item_id] = now.validated(event.event_type == "validate_useful")
    return found


def to_validate(events: Iterable[FeedbackEvent], session_id: str) -> list[str]:
    """Return the items a session opened and said nothing about, as they were opened: what to ask when a task ends."""
    mine = [event for event in events if event.session_id == session_id]
    said = {event.item_id for event in mine if event.event_type in VALIDATING}
    opened = dict.fromkeys(event.item_id for event in sorted(mine, key=by_time) if event.event_type in OPENING)
    return [item_id for item_id in opened if item_id is not None and item_id not in said]


def validate_batch(
    verdicts: Mapping[str, bool],
    *,
    session_id: str,
    at: str,
    searches: Iterable[LoggedQuery] = (),
    actor: Actor = "unknown",
    task_id: str = "",
    project: str = DEFAULT_PROJECT,
) -> list[FeedbackEvent]:
    """Return the events of a task's end, one per item (id → useful), linked to the searches that showed them.

    The ids come from session, task and item: handing in the same batch again, at whatever time, adds nothing.
    """
    events = [
        FeedbackEvent(
            stable_id("validate", project, session_id, task_id, item_id),
            "validate_useful" if useful else "validate_not_useful",
            session_id,
            at,
            project=project,
            item_id=item_id,
            actor=actor,
            metadata={"batch": True, **({"task_id": task_id} if task_id else {})},
        )
        for item_id, useful in verdicts.items()
    ]
    return link_all(events, searches)
