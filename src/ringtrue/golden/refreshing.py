"""Refreshing a golden set from traffic: propose questions, let people judge them, make the next version.

A proposal names new questions and old queries that may go. Two people or more judge the new ones without seeing each other's
grades. Where they agree well enough the next version follows; where not, none does, and the disagreements are listed.

Logged searches become distinct questions, of which a varied choice is proposed, and which say how much of them a set covers.
Nothing here knows where they are kept.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from ringtrue.answers import SearchFacts
from ringtrue.errors import InputError
from ringtrue.golden.bootstrap import Screen, confirmed, id_from_text
from ringtrue.golden.likeness import content_words, jaccard, near_duplicates, normalise, places_of_words
from ringtrue.golden.planning import NO_VALUE
from ringtrue.golden.ratings import (
    KAPPA,
    RaterDispute,
    Rating,
    Rule,
    agreement,
    disagreement,
    disputes,
    rater_name,
    settle,
    settled_judgments,
)
from ringtrue.golden.version import diff, parse_version, version_name
from ringtrue.records import GoldenSet, Query

if TYPE_CHECKING:
    from ringtrue.stats import Agreement

CONSIDERED = 4000
"""Questions that a choice looks at, the most asked ones; choosing costs this times what is chosen and what is there."""
COUNT = 20
FIRST = 50
OLD = 90
PREFIX = "live"


# ── what was asked ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class AskedQuestion:
    """Something that was asked: commonest wording, intent, how often, and the documents that were shown, best rank first."""

    text: str
    intent: str
    count: int
    shown: tuple[str, ...] = ()
    asked_at: str = ""
    """When it was asked last, ISO 8601 in UTC; empty if nobody knows."""


@dataclass(frozen=True)
class AskedQuestions:
    """The distinct questions of a stretch of log, the most asked first, and the searches that made none."""

    questions: tuple[AskedQuestion, ...]
    searches: int
    screened: int
    """Searches left out because their text may not be kept."""
    empty: int
    """Searches without a word."""


def questions(searches: Iterable[SearchFacts], *, screen: Screen | None = None) -> AskedQuestions:
    """Return the distinct questions: spellings that normalise alike, and wordings that share 90 % of their words, are one.

    ``screen`` says which texts may be kept. A question is dropped as a whole where its text may not be, and counted: what is
    left after taking a name out is not what anybody asked.
    """
    searches = list(searches)
    asked_in_words = [search for search in searches if search.query.strip()]
    allowed = {text for text in {search.query for search in asked_in_words} if screen is None or screen(text)}
    kept = [search for search in asked_in_words if search.query in allowed]
    wordings: dict[str, list[SearchFacts]] = {}
    for search in kept:
        wordings.setdefault(normalise(search.query), []).append(search)
    texts = sorted(wordings, key=lambda text: (-len(wordings[text]), text))
    place_of = {text: place for place, text in enumerate(texts)}
    groups = [[text] for text in texts]
    for first, second, _ in near_duplicates(texts):
        if groups[first] is not groups[second]:
            larger, smaller = sorted((groups[first], groups[second]), key=len, reverse=True)
            larger += smaller
            for text in smaller:
                groups[place_of[text]] = larger
    distinct = {id(group): group for group in groups}.values()
    asked = (_question([search for text in group for search in wordings[text]]) for group in distinct)
    found = sorted(asked, key=lambda question: (-question.count, question.text))
    return AskedQuestions(tuple(found), len(searches), len(asked_in_words) - len(kept), len(searches) - len(asked_in_words))


def _question(searches: Sequence[SearchFacts]) -> AskedQuestion:
    ranks = sorted((rank, doc_id) for search in searches for rank, doc_id in enumerate(search.result_ids))
    shown = tuple(dict.fromkeys(doc_id for _, doc_id in ranks))
    text = _commonest(" ".join(search.query.split()) for search in searches)
    intent = _commonest(search.intent or NO_VALUE for search in searches)
    return AskedQuestion(text, intent, len(searches), shown, max(search.created_at for search in searches))


def _commonest(values: Iterable[str]) -> str:
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))


def choose(asked: Sequence[AskedQuestion], count: int, *, against: Sequence[str] = ()) -> tuple[AskedQuestion, ...]:
    """Return ``count`` questions spread over the intents and unlike each other and ``against``; fewer where there are no more.

    Every intent gets one place where there are enough, the others go by traffic (Sainte-Laguë). Within an intent each place
    goes to the question that is farthest from all chosen so far, times the logarithm of how often it was asked: a slip of the
    keyboard is far from everything, too.

    >>> rows = ("late checkout fee", "buy", 9), ("late checkout cost", "buy", 8), ("pool", "ask", 1)
    >>> asked = [AskedQuestion(*row) for row in rows]
    >>> [question.text for question in choose(asked, 2)]
    ['late checkout fee', 'pool']
    """
    pool: dict[str, list[AskedQuestion]] = {}
    for question in heapq.nlargest(CONSIDERED, asked, key=lambda question: question.count):
        pool.setdefault(question.intent, []).append(question)
    seats = _seats(pool, count)
    words = {question.text: frozenset(content_words(question.text)) for group in pool.values() for question in group}
    there = [frozenset(content_words(text)) for text in against]
    distance = {text: min((1 - jaccard(mine, other) for other in there), default=1.0) for text, mine in words.items()}
    chosen: list[AskedQuestion] = []
    # In turns, so that no intent takes what another one needed first.
    for turn in range(max(seats.values(), default=0)):
        for intent in (intent for intent, wanted in seats.items() if wanted > turn):
            best = min(pool[intent], key=lambda q: (-distance[q.text] * math.log2(1 + q.count), -q.count, q.text))
            pool[intent].remove(best)
            chosen.append(best)
            for text, mine in words.items():
                distance[text] = min(distance[text], 1 - jaccard(mine, words[best.text]))
    return tuple(chosen)


def _seats(pool: Mapping[str, Sequence[AskedQuestion]], count: int) -> dict[str, int]:
    traffic = {intent: sum(question.count for question in group) for intent, group in pool.items()}
    order = sorted(pool, key=lambda intent: (-traffic[intent], intent))
    seats = {intent: int(place < count) for place, intent in enumerate(order)}
    for _ in range(min(count, sum(map(len, pool.values()))) - sum(seats.values())):
        free = (intent for intent in order if seats[intent] < len(pool[intent]))
        seats[max(free, key=lambda intent: traffic[intent] / (2 * seats[intent] + 1))] += 1
    return seats


@dataclass(frozen=True)
class Coverage:
    """The share of searches that a set represents; None if there was no search to represent."""

    searches: int
    same: float | None
    """Asked in the same words, or nearly."""


def coverage(golden: GoldenSet, asked: AskedQuestions) -> Coverage:
    """Return the share of the searches whose question the set asks, too, in nearly the same words.

    >>> from ringtrue.records import Query
    >>> golden = GoldenSet("inn", "1.0.0", (Query("q", "late checkout fee"),), ())
    >>> asked = AskedQuestion("Late checkout, fee?", "", 3), AskedQuestion("pool", "", 1)
    >>> coverage(golden, AskedQuestions(asked, 4, 0, 0)).same
    0.75
    """
    found = {place for _, place in _same_words([query.text for query in golden.queries], asked.questions)}
    same, total = (sum(asked.questions[place].count for place in places) for places in (found, range(len(asked.questions))))
    return Coverage(total, same / total if total else None)


def _same_words(texts: Sequence[str], asked: Sequence[AskedQuestion]) -> Iterator[tuple[int, int]]:
    """Yield the places of a text and of a question that asks the same in nearly the same words."""
    for first, second, _ in near_duplicates([*texts, *(question.text for question in asked)]):
        if first < len(texts) <= second:
            yield first, second - len(texts)


@dataclass(frozen=True)
class Proposal:
    """New questions for a set, and the old queries that may go for them, the least asked first."""

    id: str
    golden: str
    """The version it was made for."""
    new: tuple[Query, ...]
    questions: tuple[AskedQuestion, ...]
    """What is known of each new query, in the same order."""
    retire: tuple[str, ...]


@dataclass(frozen=True)
class Refreshed:
    """What became of a proposal: the next version, or why there is none."""

    golden: GoldenSet | None
    refused: str
    """Why there is no next version; empty if there is one."""
    agreement: Agreement
    disputes: tuple[RaterDispute, ...]
    added: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """New queries for which no document was found relevant."""


def propose(
    golden: GoldenSet,
    asked: AskedQuestions,
    *,
    count: int = COUNT,
    left: Mapping[str, str] | None = None,
    fit: Callable[[AskedQuestion], bool] = lambda question: True,
) -> Proposal:
    """Return ``count`` questions that the set does not ask yet, varied and spread over intents, and what they may replace.

    ``left`` are texts that left the set with an earlier version, and when (ISO 8601 in UTC): one that nobody has asked since
    does not come back. ``fit`` says which questions can be judged at all; the others still count as asked. Never named for
    replacement: queries that a person confirmed, and those to be answered by silence, which no log can bring. Raises
    InputError for a count below 1.

    >>> questions = AskedQuestion("is there a pool", "find", 4), AskedQuestion("late checkout", "find", 2)
    >>> asked = AskedQuestions(questions, 6, 0, 0)
    >>> made = propose(GoldenSet("inn", "1.0.0", (Query("q1", "late checkout"), Query("q2", "breakfast")), ()), asked, count=1)
    >>> [query.text for query in made.new], made.retire
    (['is there a pool'], ('q2',))
    """
    if count < 1:
        raise InputError(f"cannot propose {count} new queries; propose 1 or more")
    fresh = [question for question in _unknown(golden, asked.questions, left or {}) if fit(question)]
    chosen = choose(fresh, count, against=[query.text for query in golden.queries])
    new = tuple(
        Query(id_from_text(PREFIX, one.text), one.text, {"intent": one.intent} if one.intent != NO_VALUE else {})
        for one in chosen
    )
    retire = _least_asked(golden, asked)[: len(new)]
    name = version_name(golden)
    made = "\0".join([name, *sorted(query.query_id for query in new), *sorted(retire)])
    return Proposal(f"{name}+{hashlib.sha256(made.encode()).hexdigest()[:8]}", name, new, chosen, retire)


def _unknown(golden: GoldenSet, asked: Sequence[AskedQuestion], left: Mapping[str, str]) -> list[AskedQuestion]:
    """Return the questions that no query of the set asks already, nor has asked and nobody since, in nearly the same words."""
    there = len(golden.queries)
    old = [query.text for query in golden.queries] + list(left)
    known = {place for text, place in _same_words(old, asked) if text < there or asked[place].asked_at <= left[old[text]]}
    return [question for place, question in enumerate(asked) if place not in known]


def _least_asked(golden: GoldenSet, asked: AskedQuestions) -> tuple[str, ...]:
    """Return the queries that may go, those first that were asked least; then by searches weighed by the words they share.

    What people ask in these words comes first: a query that nobody asks may share a word with everything that is asked.
    """
    theirs = [(frozenset(content_words(question.text)), question.count) for question in asked.questions]
    same: Counter[str] = Counter()
    for text, place in _same_words([query.text for query in golden.queries], asked.questions):
        same[golden.queries[text].query_id] += asked.questions[place].count
    holders = places_of_words(words for words, _ in theirs)
    kept = confirmed(golden)
    traffic: dict[str, tuple[int, float]] = {}
    for query in (query for query in golden.queries if query.query_id not in kept and not query.negative):
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

    The agreement of the raters must exceed ``minimum``; an adjudicator is not a rater. Judgments follow from the ratings by
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
    refused = disagreement(found, minimum)
    if refused:
        return Refreshed(None, refused, found, differing)
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
    """Return how old a set is; None if it does not say when it was made.

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
            f"golden set '{golden.id}' was made at '{golden.created_at}', which is not a date; write it like 2026-11-15"
        ) from None
    return (now.date() - made.date()).days


def age_warning(golden: GoldenSet, now: datetime) -> str | None:
    """Return what to say of a set's age: nothing up to 90 days."""
    days = age_in_days(golden, now)
    if days is None:
        return f"'{golden.id}' does not say when it was made, so nobody sees it grow old; give it created_at"
    if days > OLD:
        return f"'{golden.id}' is {days} days old and should be refreshed every {OLD}; run `ringtrue golden refresh`"
    return None
