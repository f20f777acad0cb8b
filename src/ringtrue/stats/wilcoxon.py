"""Wilcoxon's signed-rank test, for many measures at once.

It asks whether the differences lie symmetrically around 0, not whether their mean is 0: skewed differences with mean 0 are
found significant ever more surely as n grows. It is shown beside the others and decides nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.stats.columns import SMALLEST_P, Floats, columns

# Up to here the exact distribution is used if nothing is tied; beyond, the normal one differs in no digit that matters.
EXACT_UP_TO = 50
NORMAL = "approx"
"""SciPy's name for the normal distribution, in all versions that we support."""
# Differences that agree to this many decimals of the largest one are tied: the rest is rounding of the subtraction.
DECIMALS = 12


def wilcoxon(differences: ArrayLike) -> Floats:
    """Return the two-sided p of the signed-rank test for every column of queries × measures; nan for fewer than two values.

    Differences of 0 are left out, as Wilcoxon (1945) did; if there are no others, p = 1. The p is exact for up to 50
    differences with no two equal in size, else from the normal distribution with corrections for ties and continuity.

    Raises InputError if a difference is infinite or not a number.

    >>> wilcoxon([0.1, 0.3, 0.2, 0.0, -0.05]).tolist()
    [0.25]
    """
    from scipy import stats  # type: ignore[import-untyped, unused-ignore]

    data = columns(differences)
    values = _in_full_decimals(data.values)
    size = np.sort(np.abs(values), axis=0)
    n = (size > 0).sum(axis=0)
    tied = ((np.diff(size, axis=0) == 0) & (size[1:] > 0)).any(axis=0)
    exact = (n > 0) & (n <= EXACT_UP_TO) & ~tied
    p = np.ones(len(n))
    for method, chosen in (("exact", exact), (NORMAL, (n > 0) & ~exact)):
        if chosen.any():
            test = stats.wilcoxon(values[:, chosen], correction=True, method=method, axis=0)
            whole = n[chosen] * (n[chosen] + 1) / 2
            # The statistic is the smaller of the two sums of ranks. Within the correction for continuity nothing is certain.
            p[chosen] = np.where(whole - 2 * test.statistic <= 1, 1.0, test.pvalue)
    return np.where(data.n > 1, np.clip(p, SMALLEST_P, 1.0), np.nan)


def _in_full_decimals(values: Floats) -> Floats:
    """Return the differences rounded to DECIMALS of the largest in their column."""
    largest = np.abs(values).max(axis=0, initial=0.0)
    # A power of two changes no digit of what it divides.
    return np.asarray(np.round(values / np.exp2(np.ceil(np.log2(np.where(largest > 0, largest, 1.0)))), DECIMALS))
