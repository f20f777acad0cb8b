"""What people really ask: logged searches → distinct questions, a varied choice of them, and how much of them a set covers.

A search is whatever has the attributes of ``Search``; the log's records do. Nothing here knows where they are kept.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ringtrue.golden.duplicates import NEAR, jaccard, near_duplicates, normalise
from ringtrue.golden.overlap import content_words
from ringtrue.golden.slices import NO_VALUE
from ringtrue.records import GoldenSet

CLOSE = 0.5
CONSIDERED = 4000
"""Questions that a choice looks at, the most asked ones; choosing costs this times what is chosen and what is there."""
Screen = Callable[[str], bool]
"""True for a text that may be kept: no personal data, no secret in it."""


class Search(Protocol):
    """A search as a log keeps it."""

    @property
    def query_id(self) -> str: ...

    @property
    def query(self) -> str: ...

    @property
    def intent(self) -> str | None: ...

    @property
    def session_id(self) -> str | None: ...

    @property
    def created_at(self) -> str: ...

    @property
    def result_ids(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Question:
    """Something that was asked: commonest wording, intent, how often, and the documents that were shown, best rank first."""

    text: str
    intent: str
    count: int
    shown: tuple[str, ...] = ()
    asked_at: str = ""
    """When it was asked last, ISO 8601 in UTC; empty where nobody knows."""


@dataclass(frozen=True)
class Asked:
    """The distinct questions of a stretch of log, the most asked first, and the searches that made none."""

    questions: tuple[Question, ...]
    searches: int
    screened: int
    """Searches left out because their text may not be kept."""
    empty: int
    """Searches without a word."""


def questions(searches: Iterable[Search], *, screen: Screen | None = None, near: float = NEAR) -> Asked:
    """Return the distinct questions: spellings that normalise alike, and wordings that share ``near`` of their words, are one.

    ``screen`` says which texts may be kept. A question is dropped as a whole where its text may not be, and counted: what is
    left after taking a name out is not what anybody asked.
    """
    total = screened = empty = 0
    wordings: dict[str, list[Search]] = {}
    allowed: dict[str, bool] = {}
    for search in searches:
        total += 1
        if not search.query.strip():
            empty += 1
            continue
        if search.query not in allowed:
            allowed[search.query] = screen is None or screen(search.query)
        if not allowed[search.query]:
            screened += 1
            continue
        wordings.setdefault(normalise(search.query), []).append(search)
    texts = sorted(wordings, key=lambda text: (-len(wordings[text]), text))
    leader = list(range(len(texts)))
    for first, second, _ in near_duplicates(texts, threshold=near):
        leader[_root(leader, second)] = _root(leader, first)
    groups: dict[int, list[Search]] = {}
    for place, text in enumerate(texts):
        groups.setdefault(_root(leader, place), []).extend(wordings[text])
    found = sorted(map(_question, groups.values()), key=lambda question: (-question.count, question.text))
    return Asked(tuple(found), total, screened, empty)


def _root(leader: list[int], place: int) -> int:
    while leader[place] != place:
        leader[place] = leader[leader[place]]
        place = leader[place]
    return place


def _question(searches: Sequence[Search]) -> Question:
    best: dict[str, int] = {}
    for search in searches:
        for rank, doc_id in enumerate(search.result_ids, 1):
            best[doc_id] = min(rank, best.get(doc_id, rank))
    shown = tuple(sorted(best, key=lambda doc_id: (best[doc_id], doc_id)))
    text = _commonest(" ".join(search.query.split()) for search in searches)
    intent = _commonest(search.intent or NO_VALUE for search in searches)
    return Question(text, intent, len(searches), shown, max(search.created_at for search in searches))


def _commonest(values: Iterable[str]) -> str:
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))


def choose(asked: Sequence[Question], count: int, *, against: Sequence[str] = ()) -> tuple[Question, ...]:
    """Return ``count`` questions spread over the intents and unlike each other and ``against``; fewer where there are no more.

    Every intent gets one place where there are enough, the others go by traffic (Sainte-Laguë). Within an intent each place
    goes to the question that is farthest from all chosen so far, times the logarithm of how often it was asked: a slip of the
    keyboard is far from everything, too.

    >>> asked = [Question("late checkout fee", "buy", 9), Question("late checkout cost", "buy", 8), Question("pool", "ask", 1)]
    >>> [question.text for question in choose(asked, 2)]
    ['late checkout fee', 'pool']
    """
    pool: dict[str, list[Question]] = {}
    for question in heapq.nlargest(CONSIDERED, asked, key=lambda question: question.count):
        pool.setdefault(question.intent, []).append(question)
    seats = _seats(pool, count)
    words = {question.text: frozenset(content_words(question.text)) for group in pool.values() for question in group}
    there = [frozenset(content_words(text)) for text in against]
    distance = {text: min((1 - jaccard(mine, other) for other in there), default=1.0) for text, mine in words.items()}
    chosen: list[Question] = []
    # In turns, so that no intent takes what another one needed first.
    for turn in range(max(seats.values(), default=0)):
        for intent in (intent for intent, wanted in seats.items() if wanted > turn):
            best = min(pool[intent], key=lambda q: (-distance[q.text] * math.log2(1 + q.count), -q.count, q.text))
            pool[intent].remove(best)
            chosen.append(best)
            for text, mine in words.items():
                distance[text] = min(distance[text], 1 - jaccard(mine, words[best.text]))
    return tuple(chosen)


def _seats(pool: Mapping[str, Sequence[Question]], count: int) -> dict[str, int]:
    traffic = {intent: sum(question.count for question in group) for intent, group in pool.items()}
    order = sorted(pool, key=lambda intent: (-traffic[intent], intent))
    seats = {intent: int(place < count) for place, intent in enumerate(order)}
    for _ in range(count - sum(seats.values())):
        free = [intent for intent in order if seats[intent] < len(pool[intent])]
        if not free:
            break
        seats[max(free, key=lambda intent: traffic[intent] / (2 * seats[intent] + 1))] += 1
    return seats


@dataclass(frozen=True)
class Coverage:
    """The share of searches that a set represents; None where there was no search to represent."""

    searches: int
    same: float | None
    """Asked in the same words, or nearly."""
    close: float | None
    """At least half of the content words of both are shared."""


def coverage(golden: GoldenSet, asked: Asked) -> Coverage:
    """Return the share of the searches whose question the set asks, too: in the same words, and in half of them.

    >>> from ringtrue.records import Query
    >>> golden = GoldenSet("inn", "1.0.0", (Query("q", "late checkout fee"),), ())
    >>> coverage(golden, Asked((Question("Late checkout, fee?", "", 3), Question("pool", "", 1)), 4, 0, 0)).same
    0.75
    """
    sets = [(frozenset(normalise(q.text).split()), frozenset(content_words(q.text))) for q in golden.queries]
    holders: dict[str, list[int]] = {}
    for place, (_, content) in enumerate(sets):
        for word in content:
            holders.setdefault(word, []).append(place)
    exact = {normalise(query.text) for query in golden.queries}
    same = close = total = 0
    for question in asked.questions:
        total += question.count
        words, content = frozenset(normalise(question.text).split()), frozenset(content_words(question.text))
        rivals = {place for word in content for place in holders.get(word, ())}
        is_same = normalise(question.text) in exact or any(jaccard(words, sets[place][0]) >= NEAR for place in rivals)
        same += question.count * is_same
        close += question.count * (is_same or any(jaccard(content, sets[place][1]) >= CLOSE for place in rivals))
    if not total:
        return Coverage(0, None, None)
    return Coverage(total, same / total, close / total)
