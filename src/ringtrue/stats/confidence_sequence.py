"""An interval of the mean paired difference that holds at every look at once.

Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting" (2023). Against each value m that the mean
might have, a gambler bets that differences lie above m, another that they lie below. If the mean is at most m, the first
gambler's capital is expected never to grow, so that it reaches 2 / alpha with a chance of alpha / 2 at most, however long and
often one looks (Ville). A value whose gambler got that rich is out; the interval is what is left. Nothing is assumed but that
differences lie in −1 to 1 and that their mean, given the past, stays the same.

A bet may depend on what was seen before, never on the difference it is placed on. It aims at a gain of delta; past the
number of queries that should settle that, at what those queries can tell apart, so that the interval goes on shrinking.

The values m are a fixed grid, dense around 0 and ``delta``. The lower end is the last value up to which *all* were ruled out:
that the true mean lies below it needs the one gambler just above the mean to get rich, so that no chances add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.stats.columns import Floats
from ringtrue.stats.sequential import DEFAULT_PLAN, Decision, SequentialPlan, check_difference, growth, variance_before

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
        means = np.array(candidate_means(self.plan.delta))
        bet = sequence_bet(self.n, self.total, self.squares, self.plan)
        up = (np.array(self.up) if self.up else np.zeros(len(means))) + growth(bet, difference, means)
        down = (np.array(self.down) if self.down else np.zeros(len(means))) + growth(bet, -difference, -means)
        rich = rich_from(self.plan)
        low, high = self.low, self.high
        for mean, capital in zip(means.tolist(), up.tolist()):
            if mean > low:
                if capital < rich:
                    break
                low = mean
        for mean, capital in zip(reversed(means.tolist()), reversed(down.tolist())):
            if mean < high:
                if capital < rich:
                    break
                high = mean
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
        upper, lower = self.bounds
        evidence = self.evidence
        return "accept-treatment" if evidence >= upper else "accept-control" if evidence <= lower else "continue"


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
