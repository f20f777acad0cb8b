"""The paired t test and the size of an effect, for many measures at once.

If a column has no spread, t says nothing: it is infinite, or 0 ÷ 0. The sign-flip test does not need a spread, so its p stands
there, and the interval is what that test cannot reject: the one value seen if there are enough queries to reject all others,
everything if there are not. Equal differences so never give p = 1, and two equal ones never a certainty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.stats.columns import SMALLEST_P, Bools, Columns, Floats, Ints, check_alpha, columns, fixed


@dataclass(frozen=True, eq=False)
class PairedT:
    """The two-sided paired t test; one value per column, nan if a column has fewer than two values."""

    n: Ints
    mean: Floats
    sd: Floats
    t: Floats
    """±inf if all differences are equal, nan if all are 0."""
    p: Floats
    low: Floats
    high: Floats
    """The interval of the mean at 1 - alpha."""
    constant: Bools
    """All differences are equal: p and the interval are those of the sign-flip test."""


@dataclass(frozen=True, eq=False)
class PairedEffect:
    """How large a difference is beside its spread, and how often it goes which way; one value per column."""

    dz: Floats
    """Cohen's d_z, mean ÷ sd; ±inf if all differences are equal, nan if all are 0 or n < 2."""
    wins: Ints
    ties: Ints
    losses: Ints


def paired_t(differences: ArrayLike, *, alpha: float | Floats = 0.05) -> PairedT:
    """Return the paired t test of every column of queries × measures, with the interval of the mean at 1 - alpha.

    Raises InputError if a difference is infinite or not a number, or alpha is unusable.

    >>> found = paired_t([0.1, 0.3, 0.2, 0.0, 0.4])
    >>> [round(float(value[0]), 3) for value in (found.t, found.p, found.low, found.high)]
    [2.828, 0.047, 0.004, 0.396]
    """
    from scipy import special  # type: ignore[import-untyped, unused-ignore]

    check_alpha(alpha)
    data = columns(differences)
    decided = data.n > 1
    freedom = np.where(decided, data.n - 1, 1)
    error = data.sd / np.sqrt(np.maximum(data.n, 1))
    t = _ratio(data, error)
    # Among the 2^n ways to give signs to n equal values only one has a sum as high, and one as low. A shifted value c - δ is
    # constant as well, so that its p is the smallest these n can reach.
    smallest = np.ldexp(2.0, -np.minimum(data.n, 2000))
    p = np.clip(2 * special.stdtr(freedom, -np.abs(t)), SMALLEST_P, 1.0)
    p = np.where(data.constant, np.where(data.mean != 0, np.maximum(smallest, SMALLEST_P), 1.0), p)
    reach = -special.stdtrit(freedom, np.asarray(alpha) / 2) * error
    reach = np.where(data.constant, np.where(smallest <= alpha, 0.0, np.inf), reach)
    p, low, high = (fixed(np.where(decided, value, np.nan)) for value in (p, data.mean - reach, data.mean + reach))
    return PairedT(data.n, data.mean, data.sd, fixed(t), p, low, high, data.constant)


def paired_effect(differences: ArrayLike, *, tie: float = 1e-9) -> PairedEffect:
    """Return the effect size of every column and how many queries won, tied (within ``tie`` of 0) and lost.

    Raises InputError if a difference is infinite or not a number.

    >>> found = paired_effect([0.1, 0.3, 0.2, 0.0, -0.1])
    >>> round(float(found.dz[0]), 3), int(found.wins[0]), int(found.ties[0])
    (0.632, 3, 1)
    """
    data = columns(differences)
    wins = ((data.values > tie) & data.valid).sum(axis=0)
    losses = ((data.values < -tie) & data.valid).sum(axis=0)
    return PairedEffect(fixed(_ratio(data, data.sd)), fixed(wins), fixed(data.n - wins - losses), fixed(losses))


def _ratio(data: Columns, spread: Floats) -> Floats:
    """Mean ÷ spread, with an infinite answer if there is no spread."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return data.mean / np.where(data.constant, 0.0, spread)
