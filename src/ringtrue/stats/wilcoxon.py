"""Wilcoxon's signed-rank test, for many measures at once.

It asks whether the differences lie symmetrically around 0, not whether their mean is 0: skewed differences with mean 0 are
found significant ever more surely as n grows. It is shown beside the others and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.stats.columns import SMALLEST_P, Alternative, Bools, Columns, Floats, Ints, check_alternative, columns, fixed

# Up to here the exact distribution is used where nothing is tied; beyond, the normal one differs in no digit that matters.
EXACT_UP_TO = 50
# Differences that agree to this many decimals of the largest one are tied: the rest is rounding of the subtraction.
DECIMALS = 12


@dataclass(frozen=True, eq=False)
class Wilcoxon:
    """The signed-rank test; one value per column, p and the sums nan where a column has fewer than two values."""

    n: Ints
    """Differences that were ranked: those that are not 0."""
    zeros: Ints
    """Differences of 0, which are left out as Wilcoxon (1945) did; with nothing else than these, p = 1."""
    excluded: Ints
    positive: Floats
    """Sum of the ranks of the differences above 0."""
    negative: Floats
    p: Floats
    exact: Bools
    """The exact distribution was used; else the normal one, with corrections for ties and for continuity."""
    alternative: Alternative


def wilcoxon(differences: ArrayLike, *, alternative: Alternative = "two-sided") -> Wilcoxon:
    """Return Wilcoxon's signed-rank test of every column of queries × measures.

    The p is exact for up to 50 differences with no two equal in size, else from the normal distribution.

    Raises InputError if a difference is infinite or no number, or the alternative is unknown.

    >>> found = wilcoxon([0.1, 0.3, 0.2, 0.0, -0.05])
    >>> float(found.positive[0]), float(found.p[0]), int(found.zeros[0]), bool(found.exact[0])
    (9.0, 0.25, 1, True)
    """
    from scipy import special  # type: ignore[import-untyped, unused-ignore]

    check_alternative(alternative)
    data = columns(differences)
    signed = _signed_ranks(data)
    n = (signed != 0).sum(axis=0)
    positive = np.where(signed > 0, signed, 0.0).sum(axis=0)
    negative = np.where(signed < 0, -signed, 0.0).sum(axis=0)
    squares = (signed**2).sum(axis=0)
    # Average ranks have a smaller sum of squares than the ranks 1 … n exactly if some are tied.
    exact = (n > 0) & (n <= EXACT_UP_TO) & (6 * squares == n * (n + 1.0) * (2 * n + 1.0))
    # Half the difference of the sums; its variance is a quarter of the squares, which has the correction for ties in it.
    gap = (positive - negative) / 2
    spread = np.where(n > 0, np.sqrt(squares) / 2, 1.0)
    if alternative == "two-sided":
        p = 2 * special.ndtr(-np.maximum(np.abs(gap) - 0.5, 0.0) / spread)
    else:
        p = special.ndtr((0.5 - (gap if alternative == "greater" else -gap)) / spread)
    for column in np.flatnonzero(exact):
        p[column] = _exact(int(n[column]), int(positive[column]), alternative)
    p = np.where(n == 0, 1.0, np.clip(p, SMALLEST_P, 1.0))
    p, positive, negative = (fixed(np.where(data.n > 1, value, np.nan)) for value in (p, positive, negative))
    return Wilcoxon(fixed(n), fixed(data.n - n), data.excluded, positive, negative, p, fixed(exact & (data.n > 1)), alternative)


def _signed_ranks(data: Columns) -> Floats:
    """Ranks by size, averaged where tied, with the sign of the difference; 0 where a difference is 0 or absent."""
    from scipy import stats  # type: ignore[import-untyped, unused-ignore]

    largest = np.abs(data.values).max(axis=0, initial=0.0)
    # A power of two changes no digit of what it divides.
    scale = np.exp2(np.ceil(np.log2(np.where(largest > 0, largest, 1.0))))
    values = np.round(data.values / scale, DECIMALS)
    if not len(values):
        return values
    zeros = (values == 0).sum(axis=0)
    ranks = stats.rankdata(np.abs(values), axis=0) - zeros
    return np.asarray(np.sign(values) * ranks)


def _exact(n: int, positive: int, alternative: Alternative) -> float:
    chances = _chances(n)
    at_least, at_most = float(chances[positive:].sum()), float(chances[: positive + 1].sum())
    if alternative == "two-sided":
        return min(1.0, 2 * min(at_least, at_most))
    return at_least if alternative == "greater" else at_most


@cache
def _chances(n: int) -> Floats:
    """The chance of every sum of ranks when each of 1 … n is in it or not, with a fair coin."""
    chances = np.zeros(n * (n + 1) // 2 + 1)
    chances[0] = 1.0
    for rank in range(1, n + 1):
        chances[rank:] = (chances[rank:] + chances[:-rank]) / 2
        chances[:rank] /= 2
    return fixed(chances)
