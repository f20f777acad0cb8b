"""How often the tests of this room err: false alarms where nothing differs, and intervals that miss the truth.

Differences with a true mean of 0 are drawn in four shapes, thousands of times, and every test is asked. A simulated
comparison is a column, so that all of them go through the very functions that judge real ones. ``skewed`` is a null of the
mean alone: the two systems are not exchangeable there, and no test for few queries holds its level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ringtrue.errors import InputError, nearest
from ringtrue.stats.bootstrap import bootstrap_interval
from ringtrue.stats.columns import Bools, Floats, check_alpha, check_resamples
from ringtrue.stats.paired import paired_t
from ringtrue.stats.signflip import sign_flip
from ringtrue.stats.wilcoxon import wilcoxon

Shape = Literal["gaussian", "skewed", "zero-inflated", "discrete"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
SIZES = (15, 30, 100)
# Simulations of one part share the signs and resamples drawn; a new part draws new ones, so that no luck is shared by all.
PART = 250


@dataclass(frozen=True)
class ErrorRate:
    """How one test did on one shape and number of queries."""

    shape: Shape
    n: int
    test: str
    false_positives: float
    """Share of the simulations in which it found a difference, at alpha; for an interval, in which that left out 0."""
    coverage: float
    """Share of the simulations whose interval held the true mean, 0; nan for a test without an interval."""
    simulations: int
    alpha: float

    @property
    def standard_error(self) -> float:
        """The standard error of a share that is truly alpha, over so many simulations.

        >>> ErrorRate("gaussian", 15, "t", 0.05, 0.95, 1900, 0.05).standard_error
        0.005
        """
        return math.sqrt(self.alpha * (1 - self.alpha) / self.simulations)


def null_differences(shape: Shape, n: int, count: int, rng: np.random.Generator) -> Floats:
    """Return ``count`` columns of n differences whose true mean is 0.

    ``gaussian``: sd 0.15. ``skewed``: lognormal (sigma 1) less its mean. ``zero-inflated``: 0 for seven queries in ten,
    else gaussian. ``discrete``: the difference of two scores from 0, 0.5 and 1, as of short lists.

    Raises InputError if the shape is unknown.

    >>> null_differences("discrete", 15, 3, np.random.default_rng(1)).shape
    (15, 3)
    """
    size = (n, count)
    if shape == "gaussian":
        return rng.normal(0.0, 0.15, size)
    if shape == "skewed":
        return rng.lognormal(0.0, 1.0, size) - math.exp(0.5)
    if shape == "zero-inflated":
        return np.where(rng.random(size) < 0.7, 0.0, rng.normal(0.0, 0.15, size))
    if shape == "discrete":
        scores, chances = (0.0, 0.5, 1.0), (0.3, 0.3, 0.4)
        return np.asarray(rng.choice(scores, size, p=chances) - rng.choice(scores, size, p=chances))
    raise InputError(f"cannot use shape = {shape!r}; write {nearest(str(shape), SHAPES)}")


def error_rates(
    *,
    rng: np.random.Generator,
    simulations: int = 2_000,
    shapes: Sequence[Shape] = SHAPES,
    sizes: Sequence[int] = SIZES,
    alpha: float = 0.05,
    resamples: int = 2_000,
) -> tuple[ErrorRate, ...]:
    """Return the error rates of every test for every shape and number of queries.

    The tests are ``t``, ``wilcoxon``, ``sign-flip``, ``bca``, ``percentile`` and ``verdict``, which finds a difference only
    where sign-flip and BCa agree, as ``compare_paired`` does for a single column.

    Raises InputError if an option is unusable.

    >>> rates = error_rates(rng=np.random.default_rng(1), simulations=250, shapes=["gaussian"], sizes=[15], resamples=1000)
    >>> [rate.test for rate in rates]
    ['t', 'wilcoxon', 'sign-flip', 'bca', 'percentile', 'verdict']
    """
    check_alpha(alpha)
    check_resamples(simulations, least=1)
    rates = []
    for shape in shapes:
        for n in sizes:
            found: dict[str, list[tuple[Bools, Bools | None]]] = {}
            for start in range(0, simulations, PART):
                differences = null_differences(shape, n, min(PART, simulations - start), rng)
                for test, outcome in _outcomes(differences, rng, alpha, resamples).items():
                    found.setdefault(test, []).append(outcome)
            for test, outcomes in found.items():
                alarms = np.concatenate([alarm for alarm, _ in outcomes])
                covers = [cover for _, cover in outcomes if cover is not None]
                coverage = float(np.concatenate(covers).mean()) if covers else math.nan
                rates.append(ErrorRate(shape, n, test, float(alarms.mean()), coverage, simulations, alpha))
    return tuple(rates)


def _outcomes(
    differences: Floats, rng: np.random.Generator, alpha: float, resamples: int
) -> dict[str, tuple[Bools, Bools | None]]:
    """Per test and column: whether it found a difference, and whether its interval held 0."""
    t = paired_t(differences, alpha=alpha)
    flips = sign_flip(differences, rng=rng, resamples=resamples).p <= alpha
    bca = bootstrap_interval(differences, rng=rng, alpha=alpha, resamples=resamples)
    percentile = bootstrap_interval(differences, rng=rng, alpha=alpha, resamples=resamples, method="percentile")
    holds = {name: (found.low <= 0) & (found.high >= 0) for name, found in (("bca", bca), ("percentile", percentile))}
    return {
        "t": (t.p <= alpha, (t.low <= 0) & (t.high >= 0)),
        "wilcoxon": (wilcoxon(differences).p <= alpha, None),
        "sign-flip": (flips, None),
        "bca": (~holds["bca"], holds["bca"]),
        "percentile": (~holds["percentile"], holds["percentile"]),
        "verdict": (flips & ~holds["bca"], None),
    }
