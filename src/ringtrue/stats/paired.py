"""The paired t test and the size of an effect, for many measures at once.

Where a column has no spread, t says nothing: it is infinite, or 0 ÷ 0. The sign-flip test does not need a spread, so its p
stands there, and the interval is what that test cannot reject: the one value seen when there are enough queries to reject
all others, everything when there are not. Equal differences so never give p = 1, and two equal ones never a certainty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.stats.columns import (
    SMALLEST_P,
    Alternative,
    Bools,
    Columns,
    Floats,
    Ints,
    check_alpha,
    check_alternative,
    columns,
    fixed,
    flips_of_equal_differences,
)


@dataclass(frozen=True, eq=False)
class PairedT:
    """The paired t test; each array has one value per column, nan throughout where a column has fewer than two values."""

    n: Ints
    excluded: Ints
    mean: Floats
    sd: Floats
    t: Floats
    """±inf where all differences are equal, nan where all are 0."""
    p: Floats
    low: Floats
    high: Floats
    constant: Bools
    """All differences are equal: p and the interval are those of the sign-flip test."""
    alpha: float | Floats
    alternative: Alternative


@dataclass(frozen=True, eq=False)
class Effect:
    """How large a difference is beside its spread, and how often it goes which way; one value per column."""

    n: Ints
    dz: Floats
    """Cohen's d_z, mean ÷ sd; ±inf where all differences are equal, nan where all are 0 or n < 2."""
    hedges: Floats
    """d_z without its bias in small samples; nan where n < 3."""
    wins: Ints
    ties: Ints
    losses: Ints


def paired_t(differences: ArrayLike, *, alpha: float | Floats = 0.05, alternative: Alternative = "two-sided") -> PairedT:
    """Return the paired t test of every column of queries × measures, with the interval of the mean at 1 - alpha.

    A one-sided alternative has a one-sided interval: it ends at infinity on the side looked at.

    Raises InputError if a difference is infinite or no number, or alpha or the alternative is unusable.

    >>> found = paired_t([0.1, 0.3, 0.2, 0.0, 0.4])
    >>> [round(float(value[0]), 3) for value in (found.t, found.p, found.low, found.high)]
    [2.828, 0.047, 0.004, 0.396]
    """
    from scipy import special  # type: ignore[import-untyped, unused-ignore]

    check_alpha(alpha)
    check_alternative(alternative)
    data = columns(differences)
    decided = data.n > 1
    freedom = np.where(decided, data.n - 1, 1)
    error = data.sd / np.sqrt(np.maximum(data.n, 1))
    t = _ratio(data, error)
    tail = special.stdtr(freedom, {"two-sided": -np.abs(t), "greater": -t, "less": t}[alternative])
    p = np.clip(2 * tail if alternative == "two-sided" else tail, SMALLEST_P, 1.0)
    reach = -special.stdtrit(freedom, alpha / 2 if alternative == "two-sided" else alpha) * error
    flips = flips_of_equal_differences(data.n, data.mean, alternative)
    # A shifted value c - δ is constant as well, so that its p is the smallest these n can reach.
    smallest = np.ldexp(2.0 if alternative == "two-sided" else 1.0, -np.minimum(data.n, 2000))
    reach = np.where(data.constant, np.where(smallest <= alpha, 0.0, np.inf), reach)
    p = np.where(data.constant, flips, p)
    low = data.mean - reach if alternative != "less" else np.full_like(reach, -np.inf)
    high = data.mean + reach if alternative != "greater" else np.full_like(reach, np.inf)
    return PairedT(
        n=data.n,
        excluded=data.excluded,
        mean=data.mean,
        sd=data.sd,
        t=fixed(t),
        p=fixed(np.where(decided, p, np.nan)),
        low=fixed(np.where(decided, low, np.nan)),
        high=fixed(np.where(decided, high, np.nan)),
        constant=data.constant,
        alpha=alpha,
        alternative=alternative,
    )


def paired_effect(differences: ArrayLike, *, tie: float = 1e-9) -> Effect:
    """Return the effect size of every column and how many queries won, tied (within ``tie`` of 0) and lost.

    Raises InputError if a difference is infinite or no number.

    >>> found = paired_effect([0.1, 0.3, 0.2, 0.0, -0.1])
    >>> round(float(found.dz[0]), 3), round(float(found.hedges[0]), 3), int(found.wins[0]), int(found.ties[0])
    (0.632, 0.505, 3, 1)
    """
    from scipy import special  # type: ignore[import-untyped, unused-ignore]

    data = columns(differences)
    dz = _ratio(data, data.sd)
    freedom = np.maximum(data.n - 1, 2)
    # Hedges (1981), the exact factor, by logarithms: the gamma functions alone overflow at 340 queries.
    log_factor = special.gammaln(freedom / 2) - special.gammaln((freedom - 1) / 2) - np.log(freedom / 2) / 2
    hedges = np.where(data.n > 2, dz * np.exp(log_factor), np.nan)
    wins = ((data.values > tie) & data.valid).sum(axis=0)
    losses = ((data.values < -tie) & data.valid).sum(axis=0)
    return Effect(data.n, fixed(dz), fixed(hedges), fixed(wins), fixed(data.n - wins - losses), fixed(losses))


def _ratio(data: Columns, spread: Floats) -> Floats:
    """Mean ÷ spread, with an infinite answer where there is no spread."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return data.mean / np.where(data.constant, 0.0, spread)
