"""Refreshing a golden set from traffic (G-6): propose questions, let people judge them, make the next version.

A proposal names new questions and old queries that may go. Two people or more judge the new ones without seeing each other's
grades. Where they agree well enough the next version follows; where not, none does, and the disagreements are listed.

Logged searches become distinct questions, of which a varied choice is proposed, and which say how much of them a set covers. A
search is whatever has the attributes of ``Search``; the log's records do. Nothing here knows where they are kept.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from ringtrue.errors import InputError
from ringtrue.golden.bootstrap import Screen, Search, confirmed, id_from_text
from ringtrue.golden.likeness import NEAR, content_words, jaccard, near_duplicates, normalise, places_of_words
from ringtrue.golden.ratings import Dispute, Rating, Rule, agreement, disputes, rater_name, settle, settled_judgments
from ringtrue.golden.splitting import NO_VALUE
from ringtrue.golden.version import diff, parse_version, version_name
from ringtrue.records import GoldenSet, Query

if TYPE_CHECKING:
    from ringtrue.stats import Agreement

CLOSE = 0.5
CONSIDERED = 4000
"""Questions that a choice looks at, the most asked ones; choosing costs this times what is chosen and what is there."""
COUNT = 20
FIRST = 50
OLD = 90
KAPPA = 0.6
PREFIX = "live"
_ROUNDING = 1e-9
"""A coefficient of exactly 0.6 may come out of the division a hair above it."""


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
    holders = places_of_words(content for _, content in sets)
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


@dataclass(frozen=True)
class Proposal:
    """New questions for a set, and the old queries that may go for them, the least asked first."""

    id: str
    golden: str
    """The version it was made for."""
    new: tuple[Query, ...]
    questions: tuple[Question, ...]
    """What is known of each new query, in the same order."""
    retire: tuple[str, ...]


@dataclass(frozen=True)
class Refreshed:
    """What became of a proposal: the next version, or why there is none."""

    golden: GoldenSet | None
    refused: str
    """Why there is no next version; empty where there is one."""
    agreement: Agreement
    disputes: tuple[Dispute, ...]
    added: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """New queries for which no document was found relevant."""


def propose(
    golden: GoldenSet,
    asked: Asked,
    *,
    count: int = COUNT,
    left: Mapping[str, str] | None = None,
    fit: Callable[[Question], bool] = lambda question: True,
) -> Proposal:
    """Return ``count`` questions that the set does not ask yet, varied and spread over intents, and what they may replace.

    ``left`` are texts that left the set with an earlier version, and when (ISO 8601 in UTC): one that nobody has asked since
    does not come back. ``fit`` says which questions can be judged at all; the others still count as asked. Never named for
    replacement: queries that a person confirmed, and those to be answered by silence, which no log can bring. Raises
    InputError for a count below 1.

    >>> asked = Asked((Question("is there a pool", "find", 4), Question("late checkout", "find", 2)), 6, 0, 0)
    >>> made = propose(GoldenSet("inn", "1.0.0", (Query("q1", "late checkout"), Query("q2", "breakfast")), ()), asked, count=1)
    >>> [query.text for query in made.new], made.retire
    (['is there a pool'], ('q2',))
    """
    if count < 1:
        raise InputError(f"{count} new queries are none; propose 1 or more")
    fresh = [question for question in _unknown(golden, asked.questions, left or {}) if fit(question)]
    chosen = choose(fresh, count, against=[query.text for query in golden.queries])
    new = tuple(_query(question) for question in chosen)
    retire = _least_asked(golden, asked)[: len(new)]
    name = version_name(golden)
    made = "\0".join([name, *sorted(query.query_id for query in new), *sorted(retire)])
    return Proposal(f"{name}+{hashlib.sha256(made.encode()).hexdigest()[:8]}", name, new, chosen, retire)


def _query(question: Question) -> Query:
    facts = {"intent": question.intent} if question.intent != NO_VALUE else {}
    return Query(id_from_text(PREFIX, question.text), question.text, facts)


def _unknown(golden: GoldenSet, asked: Sequence[Question], left: Mapping[str, str]) -> list[Question]:
    """Return the questions that no query of the set asks already, nor has asked and nobody since, in nearly the same words."""
    there = len(golden.queries)
    old = [query.text for query in golden.queries] + list(left)
    known = {
        second - len(old)
        for first, second, _ in near_duplicates([*old, *(question.text for question in asked)], threshold=NEAR)
        if first < len(old) <= second and (first < there or asked[second - len(old)].asked_at <= left[old[first]])
    }
    return [question for place, question in enumerate(asked) if place not in known]


def _least_asked(golden: GoldenSet, asked: Asked) -> tuple[str, ...]:
    """Return the queries that may go, those first that were asked least; then by searches weighed by the words they share.

    What people ask in these words comes first: a query that nobody asks may share a word with everything that is asked.
    """
    theirs = [(frozenset(content_words(question.text)), question.count) for question in asked.questions]
    texts = [query.text for query in golden.queries] + [question.text for question in asked.questions]
    old = len(golden.queries)
    same: Counter[str] = Counter()
    for first, second, _ in near_duplicates(texts, threshold=NEAR):
        if first < old <= second:
            same[golden.queries[first].query_id] += asked.questions[second - old].count
    holders = places_of_words(words for words, _ in theirs)
    kept = confirmed(golden)
    traffic: dict[str, tuple[int, float]] = {}
    for query in golden.queries:
        if query.query_id in kept or query.negative:
            continue
        mine = frozenset(content_words(query.text))
        alike = {place for word in mine for place in holders.get(word, ())}
        near = sum(jaccard(mine, theirs[place][0]) * theirs[place][1] for place in sorted(alike))
        traffic[query.query_id] = (same[query.query_id], near)
    return tuple(sorted(traffic, key=lambda query_id: (traffic[query_id], query_id)))


def refresh(
    golden: GoldenSet,
    new: Iterable[Query],
    retire: Sequence[str],
    ratings: Iterable[Rating],
    *,
    minimum: float = KAPPA,
    rule: Rule = "majority",
    adjudicator: str | None = None,
    rejected: Collection[str] = (),
) -> Refreshed:
    """Return the next version with the new queries in place of as many old ones, or why there is none.

    The agreement of the raters must exceed ``minimum``; an adjudicator is no rater. Judgments follow from the ratings by
    ``rule`` and carry the source 'manual'. A new query that is ``rejected``, or for which no document is relevant, is left
    out. Queries that a person confirmed stay, even where ``retire`` names them. Applied again to its own result, it changes
    nothing. Raises CannotDecide where fewer than two people judged.
    """
    new, ratings = tuple(new), tuple(ratings)
    wanted = {query.query_id for query in new}
    ratings = tuple(rating for rating in ratings if rating.query_id in wanted)
    judge = rater_name(adjudicator or "")
    raters = [rating for rating in ratings if rater_name(rating.rater) != judge]
    found, differing = agreement(raters), disputes(raters)
    if not found.defined:
        why = "all pairs have one and the same grade" if found.items else "no pair was judged by two"
        return Refreshed(None, f"{found.name} over {found.items} pairs is not defined: {why}", found, differing)
    if not found.coefficient > minimum + _ROUNDING:
        return Refreshed(None, f"{found.name} is {found.coefficient:.3f}, not above {minimum:g}", found, differing)
    settled = settle(ratings, rule=rule, adjudicator=adjudicator)
    judgments = settled_judgments(settled, ratings, rule=rule).values()
    relevant = {j.query_id for j in judgments if j.grade >= golden.relevance_threshold} - set(rejected)
    there = {query.query_id for query in golden.queries}
    added = tuple(query for query in new if query.query_id in relevant and query.query_id not in there)
    left_out = tuple(query.query_id for query in new if query.query_id not in relevant)
    if not added:
        return Refreshed(golden, "", found, differing, left_out=left_out)
    safe = confirmed(golden)
    gone = [query_id for query_id in retire if query_id in there and query_id not in safe][: len(added)]
    adding = {query.query_id for query in added}
    said = [judgment for judgment in judgments if judgment.query_id in adding]
    made = replace(
        golden,
        queries=(*(query for query in golden.queries if query.query_id not in set(gone)), *added),
        judgments=(*(j for j in golden.judgments if j.query_id not in set(gone)), *said),
        # From the ratings and not from a clock, so that the same ratings make the same file on any day.
        created_at=max(rating.at for rating in ratings)[:10] or golden.created_at,
    )
    number = parse_version(golden.version).bump(diff(golden, made).suggested).number if golden.queries else "1.0.0"
    made = replace(made, version=number)
    return Refreshed(made, "", found, differing, tuple(query.query_id for query in added), tuple(gone), left_out)


def age_in_days(golden: GoldenSet, now: datetime) -> int | None:
    """Return how old a set is; None where it does not say when it was made.

    >>> from datetime import UTC
    >>> age_in_days(GoldenSet("inn", "1.0.0", (), (), created_at="2026-11-01"), datetime(2026, 11, 16, 9, tzinfo=UTC))
    15
    """
    if golden.created_at is None:
        return None
    try:
        made = datetime.fromisoformat(golden.created_at)
    except ValueError:
        raise InputError(
            f"golden set '{golden.id}' was made at '{golden.created_at}', which is no date; write it like 2026-11-15"
        ) from None
    return (now.date() - made.date()).days


def age_warning(golden: GoldenSet, now: datetime, *, old: int = OLD) -> str | None:
    """Return what to say of a set's age: nothing up to ``old`` days."""
    days = age_in_days(golden, now)
    if days is None:
        return f"'{golden.id}' does not say when it was made, so nobody sees it grow old; give it created_at"
    if days > old:
        return f"'{golden.id}' is {days} days old and should be refreshed every {old}; run `ringtrue golden refresh`"
    return None
