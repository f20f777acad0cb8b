"""Refreshing a golden set from traffic: propose questions, let people judge them, make the next version.

A proposal names new questions and old queries that may go. Two people or more judge the new ones without seeing each other's
grades. Where they agree well enough the next version follows; where not, none does, and the disagreements are listed.

Several raters may judge the same pairs: how far they agree is measured, and one grade follows by a named rule.

Logged searches become distinct questions, of which a varied choice is proposed, and which say how much of them a set covers.
Nothing here knows where they are kept.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, get_args

from ringtrue.answers import SearchFacts
from ringtrue.errors import CannotDecide, InputError, nearest
from ringtrue.golden.bootstrap import Screen, confirmed, id_from_text
from ringtrue.golden.likeness import NEAR, content_words, jaccard, near_duplicates, normalise, places_of_words
from ringtrue.golden.planning import NO_VALUE
from ringtrue.golden.version import diff, parse_version, version_name
from ringtrue.records import GoldenSet, Judgment, Query

if TYPE_CHECKING:
    from ringtrue.stats import Agreement

Rule = Literal["majority", "max", "newest", "adjudicated"]
RULES: tuple[Rule, ...] = get_args(Rule)
Pair = tuple[str, str]
_SHOWN = 5
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


# ── what raters said ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Rating:
    """The grade that one rater gave to one document for one query, and when (ISO 8601 in UTC)."""

    query_id: str
    doc_id: str
    rater: str
    grade: int
    at: str = ""


@dataclass(frozen=True)
class Dispute:
    """A pair on which raters differ: ``grades`` by rater."""

    query_id: str
    doc_id: str
    grades: Mapping[str, int]


def rater_name(name: str) -> str:
    """Return a rater's name in one spelling, so that nobody agrees with themselves: case, width and spaces levelled.

    >>> rater_name("  Ada   LOVELACE ")
    'ada lovelace'
    """
    levelled = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    # Signs without a shape (zero-width spaces, marks of direction) make no second person either.
    return " ".join("".join(sign for sign in levelled if unicodedata.category(sign) != "Cf").split())


def by_pair(ratings: Iterable[Rating]) -> dict[Pair, dict[str, Rating]]:
    """Return ``{(query, document): {rater: rating}}``; of several ratings by one rater, however spelled, the newest counts.

    >>> said = by_pair([Rating("q", "d", "ada", 1, "2026-01-01"), Rating("q", "d", "ada", 3, "2026-01-02")])
    >>> said["q", "d"]["ada"].grade
    3
    """
    found: dict[Pair, dict[str, Rating]] = {}
    # Sorting keeps the given order where times are equal, so that the later of two counts there, too.
    for rating in sorted(ratings, key=lambda rating: rating.at):
        found.setdefault((rating.query_id, rating.doc_id), {})[rater_name(rating.rater)] = rating
    return found


def settle(ratings: Iterable[Rating], *, rule: Rule = "majority", adjudicator: str | None = None) -> dict[Pair, int]:
    """Return one grade per pair by a named rule.

    'majority': the grade that most gave, the lowest of those given equally often, so that doubt never makes a document better.
    'max': the highest. 'newest': the last one given. 'adjudicated': what all agree on, else what ``adjudicator`` said; raises
    CannotDecide naming the pairs that wait for them. Raises InputError for another rule, or no adjudicator where one is needed.

    >>> said = [Rating("q", "d", "ada", 2), Rating("q", "d", "ben", 3), Rating("q", "d", "cy", 3)]
    >>> settle(said), settle(said, rule="max"), settle(said, rule="adjudicated", adjudicator="ada")
    ({('q', 'd'): 3}, {('q', 'd'): 3}, {('q', 'd'): 2})
    """
    if rule not in RULES:
        raise InputError(f"'{rule}' is not a rule to derive judgments by; write {nearest(str(rule), RULES)}")
    judge = rater_name(adjudicator or "")
    if rule == "adjudicated" and not judge:
        raise InputError("the rule 'adjudicated' needs to know who decides; name the adjudicator")
    found: dict[Pair, int] = {}
    waiting: list[Pair] = []
    for pair, said in by_pair(ratings).items():
        grades = [rating.grade for rating in said.values()]
        if rule == "max":
            found[pair] = max(grades)
        elif rule == "newest":
            found[pair] = sorted(said.values(), key=lambda rating: rating.at)[-1].grade
        elif rule == "majority":
            found[pair] = min(grades, key=lambda grade: (-grades.count(grade), grade))
        elif judge in said:
            found[pair] = said[judge].grade
        elif len(set(grades)) == 1:
            found[pair] = grades[0]
        else:
            waiting.append(pair)
    if waiting:
        shown = ", ".join(f"{query_id} / {doc_id}" for query_id, doc_id in waiting[:_SHOWN])
        more = " …" if len(waiting) > _SHOWN else ""
        raise CannotDecide(f"{len(waiting)} disputed pairs wait for '{adjudicator}': {shown}{more}; let them judge these")
    return found


def settled_judgments(settled: Mapping[Pair, int], ratings: Iterable[Rating], *, rule: Rule) -> dict[Pair, Judgment]:
    """Return the judgments of settled pairs, by pair; they name the rule and everybody who rated."""
    said = by_pair(ratings)
    return {
        pair: Judgment(*pair, grade, "manual", {"annotator": " + ".join(sorted(said[pair])), "rule": rule})
        for pair, grade in sorted(settled.items())
    }


def disputes(ratings: Iterable[Rating]) -> tuple[Dispute, ...]:
    """Return the pairs on which raters differ, the widest gaps first."""
    found = [
        Dispute(*pair, {rater: rating.grade for rater, rating in sorted(said.items())})
        for pair, said in by_pair(ratings).items()
        if len({rating.grade for rating in said.values()}) > 1
    ]
    return tuple(sorted(found, key=lambda d: (min(d.grades.values()) - max(d.grades.values()), d.query_id, d.doc_id)))


def agreement(ratings: Iterable[Rating]) -> Agreement:
    """Return Cohen's kappa of two raters, Krippendorff's alpha (nominal) of more; raises CannotDecide for fewer than two.

    >>> said = [Rating(q, "d", who, grade) for q, pair in (("q1", (3, 3)), ("q2", (0, 0))) for who, grade in zip("ab", pair)]
    >>> agreement(said).coefficient
    1.0
    """
    from ringtrue.stats import cohen_kappa, krippendorff_alpha

    said = by_pair(ratings)
    raters = sorted({rater for grades in said.values() for rater in grades})
    if len(raters) < 2:
        who = f"only '{raters[0]}' has judged" if raters else "nobody has judged"
        raise CannotDecide(f"agreement needs two raters, but {who}; let two people judge the same pairs")
    table = [[grades[rater].grade if rater in grades else None for grades in said.values()] for rater in raters]
    return cohen_kappa(*table) if len(raters) == 2 else krippendorff_alpha(table)


# ── what was asked ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Question:
    """Something that was asked: commonest wording, intent, how often, and the documents that were shown, best rank first."""

    text: str
    intent: str
    count: int
    shown: tuple[str, ...] = ()
    asked_at: str = ""
    """When it was asked last, ISO 8601 in UTC; empty if nobody knows."""


@dataclass(frozen=True)
class Asked:
    """The distinct questions of a stretch of log, the most asked first, and the searches that made none."""

    questions: tuple[Question, ...]
    searches: int
    screened: int
    """Searches left out because their text may not be kept."""
    empty: int
    """Searches without a word."""


def questions(searches: Iterable[SearchFacts], *, screen: Screen | None = None) -> Asked:
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
    return Asked(tuple(found), len(searches), len(asked_in_words) - len(kept), len(searches) - len(asked_in_words))


def _question(searches: Sequence[SearchFacts]) -> Question:
    ranks = sorted((rank, doc_id) for search in searches for rank, doc_id in enumerate(search.result_ids))
    shown = tuple(dict.fromkeys(doc_id for _, doc_id in ranks))
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
    close: float | None
    """At least half of the content words of both are shared."""


def coverage(golden: GoldenSet, asked: Asked) -> Coverage:
    """Return the share of the searches whose question the set asks, too: in the same words, and in half of them.

    >>> from ringtrue.records import Query
    >>> golden = GoldenSet("inn", "1.0.0", (Query("q", "late checkout fee"),), ())
    >>> coverage(golden, Asked((Question("Late checkout, fee?", "", 3), Question("pool", "", 1)), 4, 0, 0)).same
    0.75
    """
    sets = [_word_sets(query.text) for query in golden.queries]
    holders = places_of_words(content for _, content in sets)
    exact = {normalise(query.text) for query in golden.queries}
    same = close = 0
    for question in asked.questions:
        words, content = _word_sets(question.text)
        rivals = [sets[place] for place in {place for word in content for place in holders.get(word, ())}]
        is_same = normalise(question.text) in exact or any(jaccard(words, theirs) >= NEAR for theirs, _ in rivals)
        same += question.count * is_same
        close += question.count * (is_same or any(jaccard(content, theirs) >= CLOSE for _, theirs in rivals))
    total = sum(question.count for question in asked.questions)
    return Coverage(total, same / total, close / total) if total else Coverage(0, None, None)


def _word_sets(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return all words of a text, and those that carry meaning."""
    return frozenset(normalise(text).split()), frozenset(content_words(text))


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
    """Why there is no next version; empty if there is one."""
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


def _unknown(golden: GoldenSet, asked: Sequence[Question], left: Mapping[str, str]) -> list[Question]:
    """Return the questions that no query of the set asks already, nor has asked and nobody since, in nearly the same words."""
    there = len(golden.queries)
    old = [query.text for query in golden.queries] + list(left)
    known = {
        second - len(old)
        for first, second, _ in near_duplicates([*old, *(question.text for question in asked)])
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
    for first, second, _ in near_duplicates(texts):
        if first < old <= second:
            same[golden.queries[first].query_id] += asked.questions[second - old].count
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
