"""How much a percentile grew between two sides that were timed over the same queries, with an interval of that growth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.errors import InputError
from ringtrue.stats.columns import Floats, check_alpha, check_resamples

LEAST = 1e-6
"""A resampled percentile counts as at least this share of the one seen, so that no growth is infinite."""
BLOCK = 1 << 21
"""Values that are resampled at once: 16 MB a side."""


@dataclass(frozen=True)
class PercentileGrowth:
    """A percentile before and after, and its growth as a share: 0.2 is 20 %."""

    before: float
    after: float
    growth: float
    low: float
    high: float


def percentile_growth(
    before: ArrayLike,
    after: ArrayLike,
    *,
    rng: np.random.Generator,
    percentile: float = 95,
    alpha: float = 0.05,
    resamples: int = 2_000,
) -> PercentileGrowth:
    """Return the growth of a percentile over queries × passes, with its bootstrap interval at 1 - alpha.

    A resample draws queries, the same on both sides, and passes, on each side by itself: a side that was timed in a busy
    moment shows it in some of its passes. The same ``rng`` gives the same answer.

    Raises InputError if the two sides do not have the same queries, a time is negative or unknown, or the percentile was 0.

    >>> times = np.random.default_rng(1).gamma(5, 4, (50, 4))
    >>> found = percentile_growth(times, 1.5 * times, rng=np.random.default_rng(2))
    >>> round(found.growth, 3), found.low < 0.5 < found.high
    (0.5, True)
    """
    check_alpha(alpha)
    check_resamples(resamples, least=1_000)
    sides = [np.atleast_2d(np.asarray(side, np.float64)) for side in (before, after)]
    queries = len(sides[0])
    if len(sides[1]) != queries or not queries:
        raise InputError(f"cannot pair {queries} timed queries with {len(sides[1])}: time the same queries on both sides")
    seen = [float(np.percentile(side, percentile)) for side in sides]
    if not (all((side >= 0).all() for side in sides) and seen[0] > 0 and np.isfinite(seen).all()):
        raise InputError(f"a time is negative or unknown, or the percentile was {seen[0]:g}; write milliseconds")
    drawn: list[Floats] = []
    rows = max(1, BLOCK // max(side.size for side in sides))
    for start in range(0, resamples, rows):
        count = min(rows, resamples - start)
        chosen = rng.integers(0, queries, (count, queries, 1))
        ends = [
            np.percentile(side[chosen, rng.integers(0, side.shape[1], (count, 1, side.shape[1]))], percentile, axis=(1, 2))
            for side in sides
        ]
        drawn.append(ends[1] / np.maximum(ends[0], seen[0] * LEAST) - 1)
    low, high = np.quantile(np.concatenate(drawn), [alpha / 2, 1 - alpha / 2]).tolist()
    return PercentileGrowth(seen[0], seen[1], seen[1] / seen[0] - 1, low, high)
