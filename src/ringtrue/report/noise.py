"""Is a difference more than noise? The two questions that advice asks before it points anywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ringtrue.measures import Measure, Scores
from ringtrue.records import Floats


@dataclass(frozen=True)
class Difference:
    """How much better one side is than the other, with the interval of the mean; nan where it cannot be known."""

    n: int
    mean: float
    low: float
    high: float


def paired(before: Scores, after: Scores, measure: str, *, alpha: float = 0.05) -> Difference | None:
    """Return how much better ``after`` is over shared queries, above 0 being better; None where either lacks the measure."""
    wanted = Measure.parse(measure)
    if wanted not in before.measures or wanted not in after.measures:
        return None
    from ringtrue.stats import paired_t

    a, b = (dict(zip(scores.query_ids, scores.of(wanted).tolist(), strict=True)) for scores in (before, after))
    gains = np.array([b[query_id] - a[query_id] for query_id in a if query_id in b], np.float64)
    gains = gains[~np.isnan(gains)]
    if len(gains) < 2:
        return Difference(len(gains), math.nan, math.nan, math.nan)
    if wanted.definition.lower_is_better:
        gains = -gains
    test = paired_t(gains, alpha=alpha)
    return Difference(len(gains), float(test.mean[0]), float(test.low[0]), float(test.high[0]))


def unpaired(one: Floats, other: Floats, *, alpha: float = 0.05) -> Difference:
    """Return the mean of ``one`` − that of ``other`` with Welch's interval: two groups of queries may differ in spread."""
    one, other = one[~np.isnan(one)], other[~np.isnan(other)]
    n = len(one) + len(other)
    if min(len(one), len(other)) < 2:
        return Difference(n, math.nan, math.nan, math.nan)
    from scipy import special  # type: ignore[import-untyped, unused-ignore]

    mean = float(one.mean() - other.mean())
    errors = [float(group.var(ddof=1)) / len(group) for group in (one, other)]
    error = math.sqrt(sum(errors))
    if error == 0:
        return Difference(n, mean, mean, mean)
    freedom = sum(errors) ** 2 / sum(part**2 / (len(group) - 1) for part, group in zip(errors, (one, other), strict=True))
    reach = -float(special.stdtrit(freedom, alpha / 2)) * error
    return Difference(n, mean, mean - reach, mean + reach)
