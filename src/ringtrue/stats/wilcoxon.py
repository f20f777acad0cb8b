"""Wilcoxon's signed-rank test, for many measures at once.

It asks whether the differences lie symmetrically around 0, not whether their mean is 0: skewed differences with mean 0 are
found significant ever more surely as n grows. It is shown beside the others and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.stats.columns import SMALLEST_P, Alternative, Bools, Floats, Ints, check_alternative, columns, fixed

# Up to here the exact distribution is used where nothing is tied; beyond, the normal one differs in no digit that matters.
EXACT_UP_TO = 50
NORMAL = "approx"
"""SciPy's name for the normal distribution, in all versions that we support."""
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
    from scipy import stats  # type: ignore[import-untyped, unused-ignore]

    check_alternative(alternative)
    data = columns(differences)
    values = _in_full_decimals(data.values)
    size = np.sort(np.abs(values), axis=0)
    n = (size > 0).sum(axis=0)
    tied = ((np.diff(size, axis=0) == 0) & (size[1:] > 0)).any(axis=0)
    exact = (n > 0) & (n <= EXACT_UP_TO) & ~tied
    p, positive = np.ones(len(n)), np.zeros(len(n))
    for method, chosen in (("exact", exact), (NORMAL, (n > 0) & ~exact)):
        if chosen.any():
            test = partial(stats.wilcoxon, values[:, chosen], correction=True, method=method, axis=0)
            p[chosen] = test(alternative=alternative).pvalue
            positive[chosen] = test(alternative="greater").statistic
    negative = n * (n + 1) / 2 - positive
    if alternative == "two-sided":
        p[np.abs(positive - negative) <= 1] = 1.0  # within the correction for continuity
    p = np.clip(p, SMALLEST_P, 1.0)
    p, positive, negative = (fixed(np.where(data.n > 1, value, np.nan)) for value in (p, positive, negative))
    return Wilcoxon(fixed(n), fixed(data.n - n), data.excluded, positive, negative, p, fixed(exact & (data.n > 1)), alternative)


def _in_full_decimals(values: Floats) -> Floats:
    """Return the differences rounded to DECIMALS of the largest in their column."""
    largest = np.abs(values).max(axis=0, initial=0.0)
    # A power of two changes no digit of what it divides.
    return np.asarray(np.round(values / np.exp2(np.ceil(np.log2(np.where(largest > 0, largest, 1.0)))), DECIMALS))
