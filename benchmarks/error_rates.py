"""How often the tests of ``ringtrue.stats`` err: false alarms, intervals that miss the truth, gains not found.

Differences with a true mean of 0 are drawn in six shapes, thousands of times, and every test is asked. A simulated
comparison is a column, so that all of them go through the functions that judge real ones. The last three shapes are nulls of
the mean alone: the two systems are not exchangeable there, so that tests of symmetry answer another question. Of the last two,
few queries do not show enough for any test to hold its level. ``simulate.py`` and the tests of the error rates use this file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ringtrue.stats import (
    Correction,
    bootstrap_interval,
    corrected,
    mean_interval,
    paired_t,
    sign_flip,
    wilcoxon,
)
from ringtrue.stats.columns import Bools, Floats

Shape = Literal["gaussian", "zero-inflated", "discrete", "skewed", "strongly skewed", "rare losses"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
SYMMETRIC: tuple[Shape, ...] = SHAPES[:3]
ASSUMED: dict[str, tuple[Shape, ...]] = {
    "t": ("gaussian",),
    "wilcoxon": SYMMETRIC,
    "sign-flip": SYMMETRIC,
    "interval": (*SYMMETRIC, "skewed"),
    "verdict": (*SYMMETRIC, "skewed"),
}
SIZES = (15, 30, 50, 100)
# Standard deviation of each shape, in whose units an effect is given.
SPREAD = {
    "gaussian": 0.15,
    "zero-inflated": 0.15 * math.sqrt(0.3),
    "discrete": math.sqrt(2 * (0.3 * 0.25 + 0.4 - 0.55**2)),
    "skewed": 1.0,
    "strongly skewed": math.sqrt((math.e - 1) * math.e),
    "rare losses": math.sqrt(0.15 * 0.1**2 + 0.05 * 0.3**2),
}
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
        """The standard error of a share that is truly alpha, over so many simulations."""
        return math.sqrt(self.alpha * (1 - self.alpha) / self.simulations)

    @property
    def claimed(self) -> bool:
        """Whether what the test assumes is true of this shape, so that it must hold its level there.

        The t test takes differences for normal, Wilcoxon's and the sign flips for symmetric; the interval and the verdict do
        neither, but few queries must show the skewness. A bootstrap interval alone promises something for very many only.
        """
        return self.shape in ASSUMED.get(self.test, ())


def null_differences(shape: Shape, n: int, count: int, rng: np.random.Generator) -> Floats:
    """Return ``count`` columns of n differences whose true mean is 0.

    ``gaussian``: sd 0.15. ``zero-inflated``: 0 for seven queries in ten, else gaussian. ``discrete``: the difference of two
    scores from 0, 0.5 and 1, as of short lists. ``skewed``: exponential less its mean (skewness 2). ``strongly skewed``:
    lognormal (sigma 1) less its mean (skewness 6). ``rare losses``: 0 for 80 % of the queries, +0.1 for 15 %, -0.3 for 5 %.
    """
    size = (n, count)
    if shape == "gaussian":
        return rng.normal(0.0, 0.15, size)
    if shape == "zero-inflated":
        return np.where(rng.random(size) < 0.7, 0.0, rng.normal(0.0, 0.15, size))
    if shape == "discrete":
        scores, chances = (0.0, 0.5, 1.0), (0.3, 0.3, 0.4)
        return np.asarray(rng.choice(scores, size, p=chances) - rng.choice(scores, size, p=chances))
    if shape == "skewed":
        return rng.exponential(1.0, size) - 1
    if shape == "strongly skewed":
        return rng.lognormal(0.0, 1.0, size) - math.exp(0.5)
    return np.asarray(rng.choice((0.0, 0.1, -0.3), size, p=(0.8, 0.15, 0.05)))


def error_rates(
    *,
    rng: np.random.Generator,
    simulations: int = 2_000,
    shapes: Sequence[Shape] = SHAPES,
    sizes: Sequence[int] = SIZES,
    alpha: float = 0.05,
    resamples: int = 1_999,
) -> tuple[ErrorRate, ...]:
    """Return the error rates of every test for every shape and number of queries.

    The tests are ``t``, ``wilcoxon``, ``sign-flip``, the intervals ``bca``, ``percentile`` and ``interval`` (the one that is
    reported), and ``verdict``, which finds a difference only where sign-flip and interval agree, as ``compare_paired`` does
    for a single column.
    """
    rates = []
    for shape in shapes:
        for n in sizes:
            found: dict[str, list[tuple[Bools, Bools | None]]] = {}
            for count in _parts(simulations):
                differences = null_differences(shape, n, count, rng)
                for test, outcome in _outcomes(differences, rng, alpha, resamples).items():
                    found.setdefault(test, []).append(outcome)
            for test, outcomes in found.items():
                alarms = np.concatenate([alarm for alarm, _ in outcomes])
                covers = [cover for _, cover in outcomes if cover is not None]
                coverage = float(np.concatenate(covers).mean()) if covers else math.nan
                rates.append(ErrorRate(shape, n, test, float(alarms.mean()), coverage, simulations, alpha))
    return tuple(rates)


def family_error_rates(
    shape: Shape,
    n: int,
    *,
    rng: np.random.Generator,
    measures: int = 5,
    simulations: int = 2_000,
    alpha: float = 0.05,
    resamples: int = 1_999,
) -> dict[str, float]:
    """Return, by correction, the share of comparisons of several measures without a difference in which any was found.

    The measures are independent of one another, where a correction has most to do.
    """
    alarms = {"none": 0, "holm": 0, "benjamini-hochberg": 0}
    for count in _parts(simulations):
        differences = null_differences(shape, n, count * measures, rng)
        flips = sign_flip(differences, rng=rng, resamples=resamples).reshape(count, measures)
        interval = mean_interval(differences, rng=rng, alpha=alpha, resamples=resamples).p.reshape(count, measures)
        for name in get_args(Correction):
            adjusted = [corrected(p, name, alpha=alpha)[0] for p in np.maximum(flips, interval)]
            alarms[name] += int((np.array(adjusted) <= alpha).any(axis=1).sum())
    return {name: count / simulations for name, count in alarms.items()}


def power_rates(
    shape: Shape,
    n: int,
    *,
    rng: np.random.Generator,
    effect: float = 0.4,
    simulations: int = 2_000,
    alpha: float = 0.05,
    resamples: int = 1_999,
) -> dict[str, float]:
    """Return, by test, the share of comparisons in which a true gain of ``effect`` standard deviations was found as one.

    The tests are those of ``error_rates`` and ``sign-flip and bca``, a verdict that would be content with BCa.
    """
    found: dict[str, int] = {}
    for count in _parts(simulations):
        differences = null_differences(shape, n, count, rng) + effect * SPREAD[shape]
        alarms = {test: alarm for test, (alarm, _) in _outcomes(differences, rng, alpha, resamples).items()}
        alarms["sign-flip and bca"] = alarms["sign-flip"] & alarms["bca"]
        up = differences.mean(axis=0) > 0
        for test, alarm in alarms.items():
            found[test] = found.get(test, 0) + int((alarm & up).sum())
    return {test: count / simulations for test, count in found.items()}


def _parts(simulations: int) -> Iterator[int]:
    return (min(PART, simulations - start) for start in range(0, simulations, PART))


def _outcomes(
    differences: Floats, rng: np.random.Generator, alpha: float, resamples: int
) -> dict[str, tuple[Bools, Bools | None]]:
    """Per test and column: whether it found a difference, and whether its interval held 0."""
    t = paired_t(differences, alpha=alpha)
    flips = sign_flip(differences, rng=rng, resamples=resamples) <= alpha
    bca = bootstrap_interval(differences, rng=rng, alpha=alpha, resamples=resamples)
    percentile = bootstrap_interval(differences, rng=rng, alpha=alpha, resamples=resamples, method="percentile")
    interval = mean_interval(differences, rng=rng, alpha=alpha, resamples=resamples)
    named = (("bca", bca), ("percentile", percentile), ("interval", interval))
    holds = {name: (found.low <= 0) & (found.high >= 0) for name, found in named}
    return {
        "t": (t.p <= alpha, (t.low <= 0) & (t.high >= 0)),
        "wilcoxon": (wilcoxon(differences) <= alpha, None),
        "sign-flip": (flips, None),
        **{name: (~held, held) for name, held in holds.items()},
        "verdict": (flips & ~holds["interval"], None),
    }
