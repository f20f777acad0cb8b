"""Refreshing a golden set from traffic (G-6): propose questions, let people judge them, make the next version.

A proposal names new questions and old queries that may go. Two people or more judge the new ones without seeing each other's
grades. Where they agree well enough the next version follows; where not, none does, and the disagreements are listed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from ringtrue.errors import InputError
from ringtrue.golden.bootstrap import confirmed, id_from_text
from ringtrue.golden.duplicates import NEAR, jaccard, near_duplicates
from ringtrue.golden.overlap import content_words
from ringtrue.golden.ratings import Dispute, Rating, Rule, agreement, by_pair, disputes, rater_name, settle
from ringtrue.golden.slices import NO_VALUE
from ringtrue.golden.traffic import Asked, Question, choose
from ringtrue.golden.version import diff, parse_version, version_name
from ringtrue.records import GoldenSet, Judgment, Query

if TYPE_CHECKING:
    from ringtrue.stats import Agreement

COUNT = 20
FIRST = 50
OLD = 90
KAPPA = 0.6
PREFIX = "live"
_ROUNDING = 1e-9
"""A coefficient of exactly 0.6 may come out of the division a hair above it."""


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
    holders: dict[str, list[int]] = {}
    for place, (words, _) in enumerate(theirs):
        for word in words:
            holders.setdefault(word, []).append(place)
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
    judgments = _judgments(ratings, rule=rule, adjudicator=adjudicator)
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


def _judgments(ratings: Sequence[Rating], *, rule: Rule, adjudicator: str | None) -> list[Judgment]:
    said, settled = by_pair(ratings), settle(ratings, rule=rule, adjudicator=adjudicator)
    return [
        Judgment(*pair, grade, "manual", {"annotator": " + ".join(sorted(said[pair])), "rule": rule})
        for pair, grade in sorted(settled.items())
    ]


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
