"""What sequential tests are set beside: Wald's test with a known sigma, a formula without variance, rare losses, and peeking.

``sequential.py`` writes the tables; nobody decides by these. A treatment whose steady small gain hides a rare large loss is
worthless, and nothing is harder to see through for a test that has to estimate the spread.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from ringtrue.stats import SequentialPlan, first_decisions, probability_better
from ringtrue.stats.columns import Floats
from ringtrue.stats.sequential import CERTAIN, DEFAULT_PLAN, wald_bounds
from ringtrue.stats.sequential_simulation import CONTINUE, CONTROL, METHODS, SEQUENTIAL_SHAPES, TREATMENT, Decisions

RARE_LOSSES = ((0.05, 0.10), (0.02, 0.05), (0.01, 0.02), (0.10, 0.10))
"""Worthless treatments: the delta a test looks for, and the steady gain g, paid for by a loss of 1 − g in a share g."""


@dataclass(frozen=True, slots=True)
class RareLossRate:
    """How one method did on a worthless treatment with a steady gain and a rare loss, looked at after every query."""

    delta: float
    """What the test looks for."""
    gain: float
    loss: float
    share: float
    """How often the loss comes."""
    method: str
    false_accept: float
    queries: float
    """Mean number; a test that had not decided counts with all of them."""
    most: int
    simulations: int


def by_wald_alone(differences: Floats, *, plan: SequentialPlan = DEFAULT_PLAN, sd: float | None = None) -> Decisions:
    """Return what Wald's ratio with the known sigma ``sd`` decides about every column, looked at after each row.

    Without ``sd`` it is what is left of the formula ``z = d / delta; LLR += z · delta − delta² / 2``: delta cancels out, and
    LLR += d − delta² / 2 wanders between the bounds by chance alone, so that a worthless treatment is accepted about once in
    three tests.
    """
    totals, n = np.cumsum(differences, axis=0), np.arange(1, len(differences) + 1)[:, None]
    ratios = totals - n * plan.delta**2 / 2 if sd is None else plan.delta / sd**2 * (totals - n * plan.delta / 2)
    upper, lower = wald_bounds(plan)
    beyond = (ratios >= upper) | (ratios <= lower)
    first = np.where(beyond.any(axis=0), beyond.argmax(axis=0), len(differences) - 1)
    last = ratios[first, np.arange(len(first))]
    codes = np.where(last >= upper, TREATMENT, np.where(last <= lower, CONTROL, CONTINUE)).astype(np.int8)
    return codes, first + 1


def rare_loss_rates(
    *, seed: int = 0, simulations: int = 2_000, most: int = 2_000, plan: SequentialPlan = DEFAULT_PLAN
) -> tuple[RareLossRate, ...]:
    """Return how often the methods that promise alpha accept a worthless treatment that seldom loses much.

    Alpha and beta are the plan's, delta is that of the cell.

    >>> [(rate.delta, rate.loss, rate.method) for rate in rare_loss_rates(simulations=10, most=100)[:2]]
    [(0.05, 0.9, 'sprt'), (0.05, 0.9, 'confidence sequence')]
    """
    rates = []
    for place, (delta, gain) in enumerate(RARE_LOSSES):
        rng = np.random.default_rng([seed, len(SEQUENTIAL_SHAPES) + 1 + place])
        differences = gain - (rng.random((most, simulations)) < gain)
        here = replace(plan, delta=delta)
        for method in METHODS:
            codes, after = first_decisions(differences, method, plan=here)
            accepted = float((codes == TREATMENT).mean())
            rates.append(RareLossRate(delta, gain, 1 - gain, gain, method, accepted, float(after.mean()), most, simulations))
    return tuple(rates)


def peeking_rate(*, seed: int = 0, simulations: int = 500, most: int = 300, success: float = 0.5) -> float:
    """Return how often the Beta-Binomial posterior, read after every query, takes an equal treatment for the better one.

    >>> peeking_rate(simulations=100, most=100) > 0.05
    True
    """
    rng = np.random.default_rng([seed, len(SEQUENTIAL_SHAPES)])
    hits = np.cumsum(rng.random((2, most, simulations)) < success, axis=1)
    undecided = np.ones(simulations, dtype=bool)
    accepted = 0
    for row in range(most):
        pairs, place = np.unique(hits[:, row, undecided], axis=1, return_inverse=True)
        chances = np.array([probability_better(control=(int(a), row + 1), treatment=(int(b), row + 1)) for a, b in pairs.T])[
            place.ravel()
        ]
        accepted += int((chances > CERTAIN).sum())
        undecided[undecided] = (chances <= CERTAIN) & (chances >= 1 - CERTAIN)
        if not undecided.any():
            break
    return accepted / simulations
