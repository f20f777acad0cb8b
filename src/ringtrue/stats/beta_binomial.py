"""How likely the treatment succeeds more often than the control, from a flat prior (S-2 c).

A reading, not a test: whoever decides at 0.95 and looks after every query accepts a worthless treatment far more often than
once in twenty. ``peeking_rate`` measures how often.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ringtrue.errors import InputError
from ringtrue.stats.sequential import Decision

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
        upper, lower = self.bounds
        evidence = self.evidence
        return "accept-treatment" if evidence >= upper else "accept-control" if evidence <= lower else "continue"


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
