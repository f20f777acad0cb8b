"""Tests that may be looked at after every query: the plan, Wald's sequential test, and the seed's formula it replaces (S-2).

A difference is treatment less control on one query; scores lie in 0 to 1, so that a difference lies in −1 to 1. Wald's test
weighs "no gain" against "a gain of delta": LLR += (delta / sigma²)(d − delta / 2), until it leaves the bounds.

**What an estimated sigma costs.** Wald's ratio needs the true sigma. Where losses are rare and large, the first queries show
neither the losses nor the spread they bring: the ratio is far too sure of itself, and a worthless treatment is accepted up to
twice as often as alpha allows. No estimate mends that, because nothing was seen that could be estimated from.

So where sigma is estimated, a decision needs a second proof beside the ratio. A gambler bets on each difference that there is
a gain, with the same delta / sigma² as his stake, sigma from the differences before; another bets that it is less than delta.
Differences lie in −1 to 1, so that an unseen loss cannot cost more than 1, and the stakes are small enough to survive it. A
treatment is accepted only once the first gambler has had 1 / alpha times his money, the control only once the second has had
1 / beta times his. Without a gain the first gets there with a chance of alpha at most, with a gain of delta the second with
one of beta at most (``sequential_betting``): false accepts stay within alpha and misses within beta for *every* shape of
differences in −1 to 1 whose mean, given the past, is the same, however often one looks. A gambler who got there stops.

A sigma that is known is taken as it is and nobody bets; then the promise is Wald's, alpha / (1 − beta), for normal differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringtrue.errors import InputError
from ringtrue.stats.columns import Floats
from ringtrue.stats.sequential_betting import growth, variance_before

Decision = Literal["accept-treatment", "accept-control", "continue"]
BURN_IN = 30
"""Differences before the first estimate of sigma."""
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
    gain: float = 0.0
    """Log capital of the gambler who bets on a gain; he stops at ln(1 / alpha)."""
    none: float = 0.0
    """Log capital of the one who bets on less than a gain of delta; he stops at ln(1 / beta)."""

    def __post_init__(self) -> None:
        if self.sigma is not None and not 0 < self.sigma <= 1:
            raise InputError(f"cannot use sigma = {self.sigma!r}; differences of scores spread by more than 0 and at most 1")

    def add(self, difference: float) -> Sprt:
        """Return the test one query later; raises InputError for a difference outside −1 to 1."""
        check_difference(difference)
        gain, none = self.gain, self.none
        if self.sigma is None:
            rich = rich_gamblers(self.plan)
            grown = _grown(self.n, self.total, self.squares, difference, self.plan)
            gain += float(grown[0]) if gain < rich[0] else 0.0
            none += float(grown[1]) if none < rich[1] else 0.0
        return replace(
            self,
            n=self.n + 1,
            total=self.total + difference,
            squares=self.squares + difference * difference,
            gain=gain,
            none=none,
        )

    @property
    def sigma_used(self) -> float | None:
        """The sigma the ratio is reckoned with; None while burning in."""
        if self.sigma is not None:
            return self.sigma
        if self.n < BURN_IN:
            return None
        return float(np.sqrt(_variance(self.n, self.total, self.squares)))

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
        """Wald's bounds: the treatment can be accepted from the first on, the control from the second down."""
        return wald_bounds(self.plan)

    @property
    def burn_in_left(self) -> int:
        """How many more differences before there is a ratio; 0 where sigma is known."""
        return 0 if self.sigma is not None else max(0, BURN_IN - self.n)

    @property
    def unproven(self) -> tuple[float, float] | None:
        """Where the ratio has left its bounds and the proof is missing: the gambler's capital, and what he needs; else None."""
        if self.sigma is not None or self.bounds[1] < self.llr < self.bounds[0]:
            return None
        place = 0 if self.llr >= self.bounds[0] else 1
        capital, rich = (self.gain, self.none)[place], rich_gamblers(self.plan)[place]
        return None if capital >= rich else (math.exp(capital), math.exp(rich))

    @property
    def decision(self) -> Decision:
        """What the ratio says now, where it is proven; whoever keeps the test must keep its first decision."""
        upper, lower = self.bounds
        ratio = self.llr
        if lower < ratio < upper or self.unproven is not None:
            return "continue"
        return "accept-treatment" if ratio >= upper else "accept-control"


def rich_gamblers(plan: SequentialPlan = DEFAULT_PLAN) -> tuple[float, float]:
    """Return the log capitals that prove a gain, and that there is less than delta.

    >>> [round(capital, 4) for capital in rich_gamblers()]  # ln 20 and ln 5
    [2.9957, 1.6094]
    """
    return math.log(1 / plan.alpha), math.log(1 / plan.beta)


def wald_bounds(plan: SequentialPlan = DEFAULT_PLAN) -> tuple[float, float]:
    """Return the ratio from which the treatment, and the one down from which the control is accepted.

    >>> [round(bound, 4) for bound in wald_bounds()]
    [2.7726, -1.5581]
    """
    return math.log((1 - plan.beta) / plan.alpha), math.log(plan.beta / (1 - plan.alpha))


def sprt_ratios(differences: ArrayLike, *, plan: SequentialPlan = DEFAULT_PLAN, sigma: float | None = None) -> Floats:
    """Return the log likelihood ratio after every query (row) of many tests at once (columns); 0 while burning in.

    The same numbers as ``Sprt`` gives one by one. Where sigma is estimated they decide nothing alone: ``sprt_decisions``.

    >>> sprt_ratios([[0.3], [0.1], [0.2]], sigma=0.2).round(5).ravel().tolist()
    [0.34375, 0.4375, 0.65625]
    """
    values = np.asarray(differences, dtype=np.float64)
    n = np.arange(1, len(values) + 1, dtype=np.float64)[:, None]
    total = np.cumsum(values, axis=0)
    drift = total - n * plan.delta / 2
    if sigma is not None:
        return np.asarray(plan.delta / sigma**2 * drift)
    ratios = np.asarray(plan.delta / _variance(n, total, np.cumsum(values * values, axis=0)) * drift)
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


def sprt_decisions(differences: ArrayLike, *, plan: SequentialPlan = DEFAULT_PLAN) -> tuple[Codes, NDArray[np.int64]]:
    """Return per column the first decision (0 none, 1 treatment, 2 control) and after how many queries, sigma estimated.

    The same decisions as ``Sprt`` makes one by one.

    >>> codes, after = sprt_decisions(np.full((60, 1), 0.3))
    >>> codes.tolist(), after.tolist()
    ([1], [30])
    """
    values = np.asarray(differences, dtype=np.float64)
    queries, count = values.shape
    codes = np.zeros(count, dtype=np.int8)
    after = np.full(count, queries, dtype=np.int64)
    (upper, lower), rich = wald_bounds(plan), rich_gamblers(plan)
    still = np.arange(count)
    total, squares, gain, none = (np.zeros(count) for _ in range(4))
    for row in range(queries):
        seen = values[row, still]
        up, down = _grown(row, total, squares, seen, plan)
        gain = np.where(gain < rich[0], gain + up, gain)
        none = np.where(none < rich[1], none + down, none)
        total += seen
        squares += seen * seen
        if row + 1 < BURN_IN:
            continue
        ratio = plan.delta / _variance(row + 1, total, squares) * (total - (row + 1) * plan.delta / 2)
        accepted = (ratio >= upper) & (gain >= rich[0])
        done = accepted | ((ratio <= lower) & (none >= rich[1]))
        if done.any():
            ended = still[done]
            codes[ended] = np.where(accepted[done], TREATMENT, CONTROL)
            after[ended] = row + 1
            still = still[~done]
            total, squares, gain, none = (array[~done] for array in (total, squares, gain, none))
            if not still.size:
                break
    return codes, after


def check_difference(difference: float) -> None:
    """Raise InputError unless a difference lies in −1 to 1.

    >>> check_difference(-0.25)
    """
    if not -1 <= difference <= 1:
        raise InputError(f"cannot use a difference of {difference!r}; scores lie in 0 to 1, their differences in −1 to 1")


def _variance(n: ArrayLike, total: ArrayLike, squares: ArrayLike) -> Floats:
    """The variance of the differences, held a little too high: one of 1, the largest there is, is added to the squares."""
    count, sums = np.asarray(n, dtype=np.float64), np.asarray(total, dtype=np.float64)
    spread = np.maximum(np.asarray(squares, dtype=np.float64) - sums * sums / count, 0.0)
    return np.asarray((spread + 1.0) / count)


def _grown(n: int, total: ArrayLike, squares: ArrayLike, difference: ArrayLike, plan: SequentialPlan) -> tuple[Floats, Floats]:
    """What one difference adds to the log capital of both gamblers, whose stake knows only the n differences before."""
    variance = variance_before(n, total, squares)
    bet = plan.delta / (variance + plan.delta**2)  # delta / sigma², and the best stake where sigma is not small beside delta
    seen = np.asarray(difference, dtype=np.float64)
    return growth(bet, seen, 0.0), growth(bet, -seen, -plan.delta)
