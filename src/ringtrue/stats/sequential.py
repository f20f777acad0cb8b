"""Tests that may be looked at after every query: Wald's test with a proof, a confidence sequence, a Beta-Binomial reading.

A difference is treatment less control on one query; scores lie in 0 to 1, so that a difference lies in −1 to 1. Wald's test
weighs "no gain" against "a gain of delta": LLR += (delta / sigma²)(d − delta / 2), until it leaves the bounds.

**What an estimated sigma costs.** Wald's ratio needs the true sigma. If losses are rare and large, the first queries show
neither the losses nor the spread they bring: the ratio is far too sure of itself, and a worthless treatment is accepted up to
twice as often as alpha allows. No estimate mends that, because nothing was seen that could be estimated from.

So if sigma is estimated, a decision needs a second proof beside the ratio. A gambler bets on each difference that there is a
gain, with the same delta / sigma² as the stake, sigma from the differences before; another bets that it is less than delta.
Who bets that differences lie above m multiplies the capital by 1 + stake · (difference − m). If the mean is at most m the
capital is expected never to grow, however the stakes are chosen from what was seen before, so that it ever reaches 1 / alpha
with a chance of alpha at most (Ville's inequality). Nothing else is assumed: no spread, no shape, no number of looks.
A treatment is accepted only once the first gambler has had 1 / alpha times the money, the control only once the second has had
1 / beta times it: false accepts stay within alpha and misses within beta for *every* shape of differences in −1 to 1 whose
mean, given the past, is the same, however often one looks. A gambler who got there stops.

A sigma that is known is taken as it is and nobody bets; then the promise is Wald's, alpha / (1 − beta), for normal differences.

**The confidence sequence** is an interval of the mean difference that holds at every look at once:
Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting" (2023). Against each value m that the mean
might have, a gambler bets that differences lie above m, another that they lie below. If the mean is at most m, the first
gambler's capital is expected never to grow, so that it reaches 2 / alpha with a chance of alpha / 2 at most, however long and
often one looks (Ville). A value whose gambler got that rich is out; the interval is what is left. Nothing is assumed but that
differences lie in −1 to 1 and that their mean, given the past, stays the same.

A bet may depend on what was seen before, never on the difference it is placed on. It aims at a gain of delta; past the
number of queries that should settle that, at what those queries can tell apart, so that the interval goes on shrinking.

The values m are a fixed grid, dense around 0 and ``delta``. The lower end is the last value up to which *all* were ruled out:
that the true mean lies below it needs the one gambler just above the mean to get rich, so that no chances add up.

**The Beta-Binomial reading** says how likely the treatment succeeds more often than the control, from a flat prior. It is no
test: whoever decides at 0.95 and looks after every query accepts a worthless treatment far more often than once in twenty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.errors import InputError
from ringtrue.stats.columns import Bools, Floats

Decision = Literal["accept-treatment", "accept-control", "continue"]
BURN_IN = 30
"""Differences before the first estimate of sigma."""
# Share of the capital that the worst difference may take: a gambler who can lose everything never comes back.
STAKE = 0.75


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
    """Known beforehand; None if it is estimated from the differences."""
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
            bet = sprt_bet(self.n, self.total, self.squares, self.plan)
            gain += float(growth(bet, difference, 0.0)) if gain < rich[0] else 0.0
            none += float(growth(bet, -difference, -self.plan.delta)) if none < rich[1] else 0.0
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
        """The sigma that the ratio uses; None while burning in."""
        if self.sigma is not None:
            return self.sigma
        if self.n < BURN_IN:
            return None
        return float(np.sqrt(variance_so_far(self.n, self.total, self.squares)))

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
        """How many more differences before there is a ratio; 0 if sigma is known."""
        return 0 if self.sigma is not None else max(0, BURN_IN - self.n)

    @property
    def unproven(self) -> tuple[float, float] | None:
        """The gambler's capital and what it takes, if the ratio has left its bounds and the proof is missing; else None."""
        if self.sigma is not None or self.bounds[1] < self.llr < self.bounds[0]:
            return None
        place = 0 if self.llr >= self.bounds[0] else 1
        capital, rich = (self.gain, self.none)[place], rich_gamblers(self.plan)[place]
        return None if capital >= rich else (math.exp(capital), math.exp(rich))

    @property
    def decision(self) -> Decision:
        """What the ratio says now, if it is proven. The first decision of a test is the one that counts."""
        return "continue" if self.unproven is not None else _said(self.llr, self.bounds)


def _said(evidence: float, bounds: tuple[float, float]) -> Decision:
    """Return what evidence says that may have left its bounds."""
    upper, lower = bounds
    return "accept-treatment" if evidence >= upper else "accept-control" if evidence <= lower else "continue"


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


def check_difference(difference: float) -> None:
    """Raise InputError unless a difference lies in −1 to 1.

    >>> check_difference(-0.25)
    """
    if not -1 <= difference <= 1:
        raise InputError(f"cannot use a difference of {difference!r}; scores lie in 0 to 1, their differences in −1 to 1")


def variance_so_far(n: int, total: ArrayLike, squares: ArrayLike) -> Floats:
    """Return the variance of n differences, held a little too high: one of 1, the largest there is, is added to the squares.

    >>> float(variance_so_far(4, 0.0, 1.0))
    0.5
    """
    sums = np.asarray(total, dtype=np.float64)
    spread = np.maximum(np.asarray(squares, dtype=np.float64) - sums * sums / n, 0.0)
    return np.asarray((spread + 1.0) / n)


def variance_before(n: int, total: ArrayLike, squares: ArrayLike) -> Floats:
    """Return the variance of the n differences before; one of 0 is added to them, and a quarter to the squares, as a guess.

    >>> float(variance_before(0, 0.0, 0.0)), float(variance_before(3, 0.0, 0.15))
    (0.25, 0.1)
    """
    mean = np.asarray(total, dtype=np.float64) / (n + 1)
    spread = (np.asarray(squares, dtype=np.float64) + 0.25) / (n + 1) - mean * mean
    return np.asarray(np.maximum(spread, 1e-6))


def sprt_bet(n: int, total: ArrayLike, squares: ArrayLike, plan: SequentialPlan) -> Floats:
    """Return the stake of both gamblers per unit of difference, from the n differences before.

    It is delta / sigma², and the best stake if sigma is not small beside delta.

    >>> round(float(sprt_bet(0, 0.0, 0.0, DEFAULT_PLAN)), 4)
    0.198
    """
    return np.asarray(plan.delta / (variance_before(n, total, squares) + plan.delta**2))


def growth(bet: ArrayLike, difference: ArrayLike, mean: ArrayLike) -> Floats:
    """Return what one difference adds to the log capital of a gambler who bets that differences lie above ``mean``.

    >>> round(float(growth(0.5, 0.2, 0.0)), 4)  # ln(1 + 0.5 · 0.2)
    0.0953
    """
    above = np.asarray(mean, dtype=np.float64)
    stake = np.minimum(bet, STAKE / (1 + above))  # the worst difference, −1, takes 1 + mean times the stake
    return np.asarray(np.log1p(stake * (np.asarray(difference, dtype=np.float64) - above)))


# Points of the grid per delta, how far they reach, and how fast they spread out beyond.
FINE, NEAR, SPREAD = 5, 4, 1.25


@cache
def candidate_means(delta: float) -> tuple[float, ...]:
    """Return the values of the mean that are bet against: 0 and ±delta among them, every fifth of delta up to four deltas.

    >>> means = candidate_means(0.05)
    >>> len(means), 0.0 in means, 0.05 in means, means[-1] < 1
    (55, True, True, True)
    """
    above = [delta * (step / FINE) for step in range(1, NEAR * FINE + 1)]
    while above[-1] * SPREAD < 1:
        above.append(above[-1] * SPREAD)
    above = [mean for mean in above if mean < 1]
    return (*(-mean for mean in reversed(above)), 0.0, *above)


def _leading(flags: Bools) -> int:
    """Return how many of the first flags are set without a gap."""
    return int(np.argmin(np.append(flags, False)))


@dataclass(frozen=True, slots=True)
class ConfidenceSequence:
    """The interval as far as it has come; ``add`` returns the next state, whose size never grows.

    >>> sequence = ConfidenceSequence()
    >>> for _ in range(40):
    ...     sequence = sequence.add(0.3)
    >>> round(sequence.low, 2), sequence.high < 1, sequence.decision
    (0.14, True, 'accept-treatment')
    """

    plan: SequentialPlan = DEFAULT_PLAN
    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    low: float = -1.0
    high: float = 1.0
    up: tuple[float, ...] = field(default=(), repr=False)
    """Log capital of those who bet on more, by candidate mean; empty before the first difference."""
    down: tuple[float, ...] = field(default=(), repr=False)

    def add(self, difference: float) -> ConfidenceSequence:
        """Return the sequence one query later; raises InputError for a difference outside −1 to 1."""
        check_difference(difference)
        values = candidate_means(self.plan.delta)
        means = np.array(values)
        bet = sequence_bet(self.n, self.total, self.squares, self.plan)
        up = (np.array(self.up) if self.up else np.zeros(len(means))) + growth(bet, difference, means)
        down = (np.array(self.down) if self.down else np.zeros(len(means))) + growth(bet, -difference, -means)
        rich = rich_from(self.plan)
        # An end moves to the last value up to which all are out.
        low = max((self.low, *values[: _leading((means <= self.low) | (up >= rich))]))
        high = min((self.high, *values[len(values) - _leading(((means >= self.high) | (down >= rich))[::-1]) :]))
        return replace(
            self,
            n=self.n + 1,
            total=self.total + difference,
            squares=self.squares + difference * difference,
            low=low,
            high=high,
            up=tuple(up.tolist()),
            down=tuple(down.tolist()),
        )

    @property
    def evidence(self) -> float:
        """The larger log capital of the two who decide: against no gain, or, with a minus, against a gain of delta."""
        if not self.up:
            return 0.0
        means = candidate_means(self.plan.delta)
        gain, none = self.up[means.index(0.0)], self.down[means.index(self.plan.delta)]
        return gain if gain >= none else -none

    @property
    def bounds(self) -> tuple[float, float]:
        """The log capitals at which it decides."""
        rich = rich_from(self.plan)
        return rich, -rich

    @property
    def decision(self) -> Decision:
        """Treatment when no gain is ruled out, control when a gain of delta is; the first one counts.

        0 and delta are bet against on their own, so that a decision does not wait for the values beyond them.
        """
        return _said(self.evidence, self.bounds)


def rich_from(plan: SequentialPlan = DEFAULT_PLAN) -> float:
    """Return the log capital at which a gambler has ruled a value out: each end of the interval has half of alpha.

    >>> round(rich_from(), 4)
    3.6889
    """
    return math.log(2 / plan.alpha)


def sequence_bet(n: int, total: ArrayLike, squares: ArrayLike, plan: SequentialPlan) -> Floats:
    """Return the stake per unit of difference, from the n differences before.

    >>> round(float(sequence_bet(0, 0.0, 0.0, DEFAULT_PLAN)), 4)
    0.198
    """
    variance = variance_before(n, total, squares)
    aim = np.minimum(plan.delta, np.sqrt(2 * rich_from(plan) * variance / (n + 1)))
    return np.asarray(aim / (variance + aim * aim))


CERTAIN = 0.95
"""Decide for the treatment at this probability, for the control at the rest of it."""


@dataclass(frozen=True, slots=True)
class BetaBinomial:
    """Successes of both sides on the same n queries; ``add`` returns the next state.

    >>> state = BetaBinomial(n=100, control=40, treatment=55)
    >>> round(state.probability, 3), state.decision
    (0.983, 'accept-treatment')
    """

    n: int = 0
    control: int = 0
    treatment: int = 0

    def add(self, control: float, treatment: float) -> BetaBinomial:
        """Return the state one query later; raises InputError unless both scores are 0 or 1."""
        if not {control, treatment} <= {0.0, 1.0}:
            raise InputError(f"beta-binomial counts successes: write 0 or 1, not {control!r} and {treatment!r}")
        return BetaBinomial(self.n + 1, self.control + int(control), self.treatment + int(treatment))

    @property
    def probability(self) -> float:
        """P(success rate of the treatment > that of the control)."""
        return probability_better(control=(self.control, self.n), treatment=(self.treatment, self.n))

    @property
    def evidence(self) -> float:
        """The log odds of that probability."""
        # Certainty beyond the last digit would have infinite odds.
        chance = min(max(self.probability, 1e-15), 1 - 1e-15)
        return math.log(chance / (1 - chance))

    @property
    def bounds(self) -> tuple[float, float]:
        """The log odds from which, and down from which, it decides."""
        odds = math.log(CERTAIN / (1 - CERTAIN))
        return odds, -odds

    @property
    def decision(self) -> Decision:
        """What the probability says now; not error-controlled when it is asked often."""
        return _said(self.evidence, self.bounds)


def probability_better(*, control: tuple[int, int], treatment: tuple[int, int]) -> float:
    """Return P(success rate of the treatment > that of the control); each side is (successes, tries), the prior Beta(1, 1).

    Exact: a sum with a term per success of the treatment, each made from the one before.

    Raises InputError if successes and tries are no such numbers.

    >>> probability_better(control=(5, 10), treatment=(5, 10))
    0.5
    >>> round(probability_better(control=(40, 100), treatment=(55, 100)), 4)
    0.9828
    """
    for name, (successes, tries) in (("control", control), ("treatment", treatment)):
        if not 0 <= successes <= tries:
            raise InputError(f"cannot use {successes} successes of {tries} tries of the {name}; at most all tries succeed")
    a, b = control[0] + 1, control[1] - control[0] + 1
    c, d = treatment[0] + 1, treatment[1] - treatment[0] + 1
    if (a, b) == (c, d):
        return 0.5
    start = _log_beta(a, b + d) - math.log(d) - _log_beta(1, d) - _log_beta(a, b)
    place = np.arange(c - 1, dtype=np.float64)
    ratios = np.log(a + place) + np.log(d + place) - np.log(a + b + d + place) - np.log1p(place)
    terms = start + np.concatenate([[0.0], np.cumsum(ratios)])
    return float(min(1.0, np.exp(terms).sum()))


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
