"""Whether reviewers agree well enough for their grades to be published, and who is a rater at all (G-6, G-8).

Who settles a dispute is written down with the pair and is no rater of it. The bound holds wherever a version is published: on
the page, over REST and on the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringtrue.errors import CannotDecide, InputError
from ringtrue.golden import KAPPA, Rating, agreement, rater_name

if TYPE_CHECKING:
    from ringtrue.stats import Agreement
    from ringtrue.store import ReviewItem

ROUNDING = 1e-9
"""A coefficient of exactly 0.6 may come out of the division a hair above it."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether reviewers agree well enough to publish; ``passed`` is None where nothing was judged by two."""

    passed: bool | None
    says: str
    found: Agreement | None = None


def gate(ratings: Sequence[Rating]) -> Gate:
    """Return whether the agreement of these ratings exceeds what the project asks, as a refresh asks it (G-6).

    >>> said = [Rating(q, "d", who, grade) for q, pair in (("q1", (3, 0)), ("q2", (0, 3))) for who, grade in zip("ab", pair)]
    >>> gate(said).says
    "Cohen's kappa is -1.000 over 2 pairs, not above 0.6"
    """
    try:
        found = agreement(ratings)
    except CannotDecide:
        return Gate(None, "nobody but one person has judged these pairs, so agreement cannot be measured")
    if found.items == 0:
        return Gate(None, "no pair was judged by two people, so agreement cannot be measured", found)
    if not found.defined:
        return Gate(False, f"{found.name} is not defined: every pair has one and the same grade", found)
    value = f"{found.name} is {found.coefficient:.3f} over {found.items} pairs"
    if found.coefficient > KAPPA + ROUNDING:
        return Gate(True, f"{value}, above {KAPPA:g}", found)
    return Gate(False, f"{value}, not above {KAPPA:g}", found)


def require(found: Gate, *, force: bool = False, reason: str = "") -> str:
    """Return why low agreement is passed over, empty where it is not; raises CannotDecide where it is low and not forced.

    Raises InputError for force without a reason: others must be able to read it later.
    """
    if force and not reason.strip():
        raise InputError("force needs a reason that others can read later; add it")
    if found.passed is not False:
        return ""
    if not force:
        raise CannotDecide(f"{found.says}; let the reviewers judge the disputes again, or force it and say why")
    return reason.strip()


def judge_of(item: ReviewItem, raters: Mapping[str, object]) -> str | None:
    """Return who settled a pair among those who said something of it; a grade that was taken back settles nothing."""
    name = item.metadata.get("adjudicated_by")
    return str(name) if name in raters else None


def said_by_raters(
    items: Iterable[ReviewItem], said: Mapping[str, Mapping[str, Rating]], *, adjudicator: str | None = None
) -> list[Rating]:
    """Return the ratings of raters among what everybody ``said``, by key and name: those of adjudicators are none.

    A named ``adjudicator`` is a rater all the same of a pair that too few others have judged: nobody leaves the count by being
    called one.
    """
    named = rater_name(adjudicator or "")
    found = []
    for item in items:
        raters = said.get(item.item_key, {})
        judge = judge_of(item, raters)
        others = [name for name in raters if name not in (judge, named)]
        apart = {judge, named} if len(others) >= max(2, item.wanted) else {judge}
        found += [rating for name, rating in raters.items() if name not in apart]
    return found


def decided_by(
    items: Iterable[ReviewItem], said: Mapping[str, Mapping[str, Rating]], adjudicator: str
) -> dict[tuple[str, str], Rating]:
    """Return the rating that settles each pair: the named adjudicator's, else that of whom the pair itself names."""
    found = {}
    for item in items:
        raters = said.get(item.item_key, {})
        by = adjudicator if adjudicator in raters else judge_of(item, raters)
        if by is not None:
            found[item.query_id, item.doc_id] = raters[by]
    return found
