"""How far reviewers agree, whether that is enough for their grades to be published, and who is a rater at all.

Who settles a dispute is written down with the pair and is not a rater of it. The bound holds wherever a version is published:
on the page, over REST and on the command line.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ringtrue.errors import CannotDecide, InputError
from ringtrue.golden import KAPPA, Rating, agreement, by_pair, disagreement, rater_name
from ringtrue.stats import Agreement, cohen_kappa, krippendorff_alpha
from ringtrue.store import ReviewItem

GRADES = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether reviewers agree well enough to publish; ``passed`` is None if nothing was judged by two."""

    passed: bool | None
    says: str
    found: Agreement | None = None


def gate(ratings: Sequence[Rating]) -> Gate:
    """Return whether the agreement of these ratings exceeds what the project asks, as a refresh asks it.

    >>> said = [Rating(q, "d", who, grade) for q, pair in (("q1", (3, 0)), ("q2", (0, 3))) for who, grade in zip("ab", pair)]
    >>> gate(said).says
    "Cohen's kappa is -1.000, not above 0.6"
    """
    try:
        found = agreement(ratings)
    except CannotDecide:
        return Gate(None, "nobody but one person has judged these pairs, so agreement cannot be measured")
    if found.items == 0:
        return Gate(None, "no pair was judged by two people, so agreement cannot be measured", found)
    good = f"{found.name} is {found.coefficient:.3f} over {found.items} pairs, above {KAPPA:g}"
    return Gate(not (why := disagreement(found)), why or good, found)


def require(found: Gate, *, force: bool = False, reason: str = "") -> str:
    """Return why low agreement is passed over, empty if it is not; raises CannotDecide if it is low and not forced.

    Raises InputError for force without a reason: others must be able to read it later.
    """
    if force and not reason.strip():
        raise InputError("force needs a reason for the record; add reason")
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


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────

RESAMPLES = 2_000
SCALE = (
    (0.0, "no better than chance"), (0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"),
    (math.inf, "almost perfect"),
)  # fmt: skip
"""Landis and Koch (1977): up to which coefficient agreement is called what."""


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A measure of agreement with its 95 % bootstrap interval; None if there is none, ``why`` says."""

    name: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class RatingTable:
    """How often two raters said what: rows are the first's grades, columns the second's."""

    first: str
    second: str
    counts: tuple[tuple[int, ...], ...]
    items: int
    kappa: float | None
    """Cohen's; None if it is not defined."""

    @property
    def same(self) -> int:
        return sum(self.counts[grade][grade] for grade in GRADES)


def in_words(value: float) -> str:
    """Return what a coefficient means.

    >>> in_words(0.72), in_words(-0.1)
    ('substantial', 'no better than chance')
    """
    return next(word for most, word in SCALE if round(value, 3) <= most)  # as it is shown


def coefficients(ratings: Sequence[Rating]) -> tuple[Coefficient, ...]:
    """Return Krippendorff's alpha, and Cohen's kappa of two raters; nothing below two."""
    said = by_pair(ratings)
    raters = sorted({name for one in said.values() for name in one})
    if len(raters) < 2:
        return ()
    rows: list[list[int | None]] = [[one[name].grade if name in one else None for one in said.values()] for name in raters]
    counts = np.array([[sum(r.grade == grade for r in one.values()) for grade in GRADES] for one in said.values()], float)
    alpha = _with_interval("Krippendorff's α", krippendorff_alpha(rows), _alphas(counts[counts.sum(axis=1) > 1]))
    if len(raters) > 2:
        return (alpha,)
    kappa = _with_interval("Cohen's κ", cohen_kappa(*rows), _kappas(*rows, power=0))
    weighted = cohen_kappa(*rows, weights="quadratic")
    return kappa, _with_interval("Cohen's κ, quadratic weights", weighted, _kappas(*rows, power=2)), alpha


def _with_interval(name: str, found: Agreement, drawn: np.ndarray[Any, Any]) -> Coefficient:
    if found.items == 0:
        return Coefficient(name, why="no pair was judged by two people")
    if not found.defined:
        return Coefficient(name, why="not defined: every pair has one and the same grade")
    known = drawn[np.isfinite(drawn)]
    if found.items < 5 or len(known) < len(drawn) / 2:
        return Coefficient(name, found.coefficient, why="too few pairs for an interval")
    low, high = np.quantile(known, (0.025, 0.975))
    return Coefficient(name, found.coefficient, float(low), float(high))


def _kappas(first: Sequence[int | None], second: Sequence[int | None], *, power: int) -> np.ndarray[Any, Any]:
    """Return Cohen's kappa of as many pairs drawn again, many times; a gap counts by this power."""
    often = Counter(zip(first, second, strict=True))
    table = np.array([often[row, column] for row in GRADES for column in GRADES], float)
    if not table.sum():
        return np.array([])
    drawn = np.random.default_rng(0).multinomial(int(table.sum()), table / table.sum(), RESAMPLES)
    tables = drawn.reshape(-1, 4, 4) / table.sum()
    gap = np.abs(np.subtract.outer(GRADES, GRADES)).astype(float)
    distance = np.where(gap > 0, gap**power, 0.0)
    observed = (tables * distance).sum(axis=(1, 2))
    expected = np.einsum("ri,ij,rj->r", tables.sum(axis=2), distance, tables.sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1 - observed / expected)


def _alphas(counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return Krippendorff's nominal alpha of as many pairs drawn again, many times; ``counts`` has a row per pair."""
    if not len(counts):
        return np.array([])
    size = counts.sum(axis=1)
    differing = (size**2 - (counts**2).sum(axis=1)) / (size - 1)
    weights = np.random.default_rng(0).multinomial(len(counts), np.full(len(counts), 1 / len(counts)), RESAMPLES)
    totals = weights @ counts
    n = totals.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = (n**2 - (totals**2).sum(axis=1)) / (n - 1)
        return np.asarray(1 - (weights @ differing) / expected)


def equal_share(pairs: Sequence[Mapping[str, Rating]]) -> Coefficient:
    """Return the share of pairs on which all raters say the same, with Wilson's interval."""
    from scipy.stats import binomtest  # its import costs a second

    if not pairs:
        return Coefficient("Same grade", why="no pair was judged by two people")
    same = sum(len({rating.grade for rating in one.values()}) == 1 for one in pairs)
    interval = binomtest(same, len(pairs)).proportion_ci(method="wilson")
    return Coefficient("Same grade", same / len(pairs), float(interval.low), float(interval.high))


def rating_tables(ratings: Sequence[Rating]) -> tuple[RatingTable, ...]:
    """Return for every two raters who judged the same pairs what they said, those of most pairs first."""
    said = by_pair(ratings)
    found = []
    for first, second in combinations(sorted({name for one in said.values() for name in one}), 2):
        both = [(one[first].grade, one[second].grade) for one in said.values() if first in one and second in one]
        if both:
            often = Counter(both)
            counts = tuple(tuple(often[row, column] for column in GRADES) for row in GRADES)
            kappa = cohen_kappa(*zip(*both, strict=True))
            found.append(RatingTable(first, second, counts, len(both), kappa.coefficient if kappa.defined else None))
    return tuple(sorted(found, key=lambda one: -one.items))
