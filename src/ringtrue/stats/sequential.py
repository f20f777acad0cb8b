"""Tests that may be looked at after every query: the plan, Wald's sequential test, and the seed's formula it replaces (S-2).

A difference is treatment less control on one query; scores lie in 0 to 1, so that a difference lies in −1 to 1. Wald's test
weighs "no gain" against "a gain of delta": LLR += (delta / sigma²)(d − delta / 2), until it leaves the bounds.

**What an estimated sigma costs.** With the sigma of a short burn-in the test accepts a worthless treatment too often: where
losses are rare and large, the first queries show neither the losses nor the spread they bring. So sigma² follows every
difference seen, and is held too high rather than too low in two ways, each of which has a reason:

- *losses not yet seen*: (2/3) ln(1/alpha) differences of 1, the largest there is, are added to the squares. Whatever steady
  gain hides losses of 1, the chance to accept before the first loss is about alpha with (1/2) ln(1/alpha) of them.
- *Wald's bounds* promise alpha / (1 − beta) only; sigma² times ln(alpha) / ln(alpha / (1 − beta)) makes that alpha.

A sigma that is known is taken as it is; then the promise is Wald's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringtrue.errors import InputError
from ringtrue.stats.columns import Floats

Decision = Literal["accept-treatment", "accept-control", "continue"]
BURN_IN = 30
"""Differences before the first estimate of sigma; the guard above does the rest."""
# Codes of decisions in arrays of simulated tests.
CONTINUE, TREATMENT, CONTROL = 0, 1, 2
Codes = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class SequentialPlan:
    """What a sequential test promises: alpha, beta and the smallest gain worth finding. Raises InputError if unusable.

    >>> SequentialPlan(delta=0.02).alpha
    0.05
    """

    alpha: float = 0.05
    """At most this often a treatment without gain is accepted."""
    beta: float = 0.20
    """At most this often a gain of delta is missed."""
    delta: float = 0.05

    def __post_init__(self) -> None:
        for name, value, most in (("alpha", self.alpha, 0.5), ("beta", self.beta, 0.5), ("delta", self.delta, 1.0)):
            if not 0 < value < most:
                raise InputError(f"cannot use {name} = {value!r}; write a number above 0 and below {most:g}")


DEFAULT_PLAN = SequentialPlan()


@dataclass(frozen=True, slots=True)
class Sprt:
    """Wald's test of a mean paired difference as far as it has come; ``add`` returns the next state.

    >>> test = Sprt(sigma=0.2)
    >>> for difference in (0.3, 0.1, 0.2):
    ...     test = test.add(difference)
    >>> round(test.llr, 6), test.decision  # (0.05 / 0.04) · (0.6 − 3 · 0.025)
    (0.65625, 'continue')
    """

    plan: SequentialPlan = DEFAULT_PLAN
    sigma: float | None = None
    """Known beforehand; None where it is estimated from the differences."""
    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    def __post_init__(self) -> None:
        if self.sigma is not None and not 0 < self.sigma <= 1:
            raise InputError(f"cannot use sigma = {self.sigma!r}; differences of scores spread by more than 0 and at most 1")

    def add(self, difference: float) -> Sprt:
        """Return the test one query later; raises InputError for a difference outside −1 to 1."""
        check_difference(difference)
        return replace(self, n=self.n + 1, total=self.total + difference, squares=self.squares + difference * difference)

    @property
    def sigma_used(self) -> float | None:
        """The sigma the ratio is reckoned with; None while burning in."""
        if self.sigma is not None:
            return self.sigma
        if self.n < BURN_IN:
            return None
        return float(np.sqrt(_cautious_variance(self.n, self.total, self.squares, self.plan)))

    @property
    def llr(self) -> float:
        """The log likelihood ratio of a gain of delta to none; 0 while burning in."""
        sigma = self.sigma_used
        if sigma is None:
            return 0.0
        return self.plan.delta / sigma**2 * (self.total - self.n * self.plan.delta / 2)

    @property
    def evidence(self) -> float:
        """The ratio, under the name that every method has for what its bounds hold."""
        return self.llr

    @property
    def bounds(self) -> tuple[float, float]:
        """Wald's bounds: the treatment is accepted from the first on, the control from the second down."""
        return wald_bounds(self.plan)

    @property
    def burn_in_left(self) -> int:
        """How many more differences before there is a ratio; 0 where sigma is known."""
        return 0 if self.sigma is not None else max(0, BURN_IN - self.n)

    @property
    def decision(self) -> Decision:
        """What the ratio says now; whoever keeps the test must keep its first decision."""
        upper, lower = self.bounds
        ratio = self.llr
        return "accept-treatment" if ratio >= upper else "accept-control" if ratio <= lower else "continue"


def wald_bounds(plan: SequentialPlan = DEFAULT_PLAN) -> tuple[float, float]:
    """Return the ratio from which the treatment, and the one down from which the control is accepted.

    >>> [round(bound, 4) for bound in wald_bounds()]
    [2.7726, -1.5581]
    """
    return math.log((1 - plan.beta) / plan.alpha), math.log(plan.beta / (1 - plan.alpha))


def sprt_ratios(differences: ArrayLike, *, plan: SequentialPlan = DEFAULT_PLAN, sigma: float | None = None) -> Floats:
    """Return the log likelihood ratio after every query (row) of many tests at once (columns); 0 while burning in.

    The same numbers as ``Sprt`` gives one by one.

    >>> sprt_ratios([[0.3], [0.1], [0.2]], sigma=0.2).round(5).ravel().tolist()
    [0.34375, 0.4375, 0.65625]
    """
    values = np.asarray(differences, dtype=np.float64)
    n = np.arange(1, len(values) + 1, dtype=np.float64)[:, None]
    total = np.cumsum(values, axis=0)
    drift = total - n * plan.delta / 2
    if sigma is not None:
        return np.asarray(plan.delta / sigma**2 * drift)
    ratios = np.asarray(plan.delta / _cautious_variance(n, total, np.cumsum(values * values, axis=0), plan) * drift)
    ratios[: BURN_IN - 1] = 0.0
    return ratios


def variance_free_ratios(differences: ArrayLike, *, plan: SequentialPlan = DEFAULT_PLAN) -> Floats:
    """Return what a formula without variance makes of the differences: LLR += d − delta² / 2. Kept to show its error.

    It was shipped in an earlier system as ``z = d / delta; LLR += z · delta − delta² / 2``; delta cancels out, and what is
    left wanders between the bounds by chance alone: a worthless treatment is accepted about once in three tests.

    >>> variance_free_ratios([[0.3], [0.1], [0.2]]).round(5).ravel().tolist()
    [0.29875, 0.3975, 0.59625]
    """
    return np.asarray(np.cumsum(np.asarray(differences, dtype=np.float64) - plan.delta**2 / 2, axis=0))


def first_decisions(ratios: ArrayLike, *, plan: SequentialPlan = DEFAULT_PLAN) -> tuple[Codes, NDArray[np.int64]]:
    """Return per column the first decision (0 none, 1 treatment, 2 control) and after how many queries it fell.

    Where none fell, the number is that of all queries.

    >>> codes, after = first_decisions([[1.0, -2.0, 0.0], [3.0, 9.0, 0.0]])
    >>> codes.tolist(), after.tolist()
    ([1, 2, 0], [2, 1, 2])
    """
    values = np.asarray(ratios, dtype=np.float64)
    upper, lower = wald_bounds(plan)
    left = (values >= upper) | (values <= lower)
    decided = left.any(axis=0)
    first = np.where(decided, left.argmax(axis=0), len(values) - 1)
    there = values[first, np.arange(values.shape[1])]
    codes = np.where(decided, np.where(there >= upper, TREATMENT, CONTROL), CONTINUE).astype(np.int8)
    return codes, (first + 1).astype(np.int64)


def check_difference(difference: float) -> None:
    """Raise InputError unless a difference lies in −1 to 1.

    >>> check_difference(-0.25)
    """
    if not -1 <= difference <= 1:
        raise InputError(f"cannot use a difference of {difference!r}; scores lie in 0 to 1, their differences in −1 to 1")


def _cautious_variance(n: ArrayLike, total: ArrayLike, squares: ArrayLike, plan: SequentialPlan) -> Floats:
    """The variance of the differences, held too high as the head of this file says."""
    count, sums = np.asarray(n, dtype=np.float64), np.asarray(total, dtype=np.float64)
    unseen = 2 / 3 * math.log(1 / plan.alpha)
    raised = math.log(plan.alpha) / math.log(plan.alpha / (1 - plan.beta))
    spread = np.maximum(np.asarray(squares, dtype=np.float64) - sums * sums / count, 0.0)
    return np.asarray(raised * (spread + unseen) / count)
