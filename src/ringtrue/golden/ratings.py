"""What raters said of pairs of question and document: how far they agree, and the one grade that follows by a named rule."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from ringtrue.errors import CannotDecide, InputError, nearest
from ringtrue.records import Judgment

if TYPE_CHECKING:
    from ringtrue.stats import Agreement

Rule = Literal["majority", "max", "newest", "adjudicated"]
RULES: tuple[Rule, ...] = get_args(Rule)
Pair = tuple[str, str]
KAPPA = 0.6
_SHOWN = 5
_ROUNDING = 1e-9
"""A coefficient of exactly 0.6 may come out of the division a hair above it."""


@dataclass(frozen=True, slots=True)
class Rating:
    """The grade that one rater gave to one document for one query, and when (ISO 8601 in UTC)."""

    query_id: str
    doc_id: str
    rater: str
    grade: int
    at: str = ""


@dataclass(frozen=True)
class RaterDispute:
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


def disputes(ratings: Iterable[Rating]) -> tuple[RaterDispute, ...]:
    """Return the pairs on which raters differ, the widest gaps first."""
    found = [
        RaterDispute(*pair, {rater: rating.grade for rater, rating in sorted(said.items())})
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


def disagreement(found: Agreement, minimum: float = KAPPA) -> str:
    """Return why an agreement is not enough, in words; '' if it exceeds the minimum."""
    if not found.defined:
        why = "every pair has one and the same grade" if found.items else "no pair was judged by two people"
        return f"{found.name} is not defined: {why}"
    if found.coefficient > minimum + _ROUNDING:
        return ""
    return f"{found.name} is {found.coefficient:.3f}, not above {minimum:g}"
