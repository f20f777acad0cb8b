"""A sequence of numbers in few: count, mean, median, spread, extremes, percentiles; nan means undefined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringtrue.errors import InputError


@dataclass(frozen=True)
class Summary:
    """What describes the defined values; every number is nan when there are none, ``std`` also when there is one."""

    count: int
    mean: float
    median: float
    std: float
    minimum: float
    maximum: float
    undefined: int


def describe(values: ArrayLike) -> Summary:
    """Return the summary of the values that are not nan; those that are get counted in ``undefined``.

    ``std`` is the standard deviation of the sample (n - 1). Nothing left means nan throughout: never 0.0.

    Raises InputError if a value is infinite or no number.

    >>> describe([1.0, 0.5, float("nan"), 0.0])
    Summary(count=3, mean=0.5, median=0.5, std=0.5, minimum=0.0, maximum=1.0, undefined=1)
    """
    given = _numbers(values)
    defined = given[~np.isnan(given)]
    count, undefined = len(defined), len(given) - len(defined)
    if count == 0:
        return Summary(0, math.nan, math.nan, math.nan, math.nan, math.nan, undefined)
    return Summary(
        count=count,
        mean=float(defined.mean()),
        median=float(np.median(defined)),
        std=_deviation(defined),
        minimum=float(defined.min()),
        maximum=float(defined.max()),
        undefined=undefined,
    )


def percentiles(values: ArrayLike, points: Sequence[float] = (50, 95, 99)) -> dict[float, float]:
    """Return the percentiles of the values that are not nan, by linear interpolation, keyed by the points asked for.

    Nothing left means nan for every point.

    Raises InputError if a point lies outside 0 to 100, or a value is infinite or no number.

    >>> percentiles([10.0, 20.0, 30.0], (50, 95))
    {50: 20.0, 95: 29.0}
    """
    for point in points:
        if not 0 <= point <= 100:
            raise InputError(f"cannot use the percentile {point}: write a number from 0 to 100, such as 95")
    given = _numbers(values)
    defined = given[~np.isnan(given)]
    if len(defined) == 0:
        return dict.fromkeys(points, math.nan)
    return {point: float(np.percentile(defined, point)) for point in points}


def _deviation(defined: NDArray[np.float64]) -> float:
    if len(defined) < 2:
        return math.nan
    if defined.min() == defined.max():
        # The mean of equal values is off by a rounding error, which must not pass for spread.
        return 0.0
    return float(defined.std(ddof=1))


def _numbers(values: ArrayLike) -> NDArray[np.float64]:
    try:
        given = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("the values must be numbers, or nan where undefined") from None
    if given.ndim != 1:
        raise InputError(f"the values must be one sequence; they have {given.ndim} dimensions")
    infinite = np.flatnonzero(np.isinf(given))
    if len(infinite):
        place = int(infinite[0])
        raise InputError(f"value {place} is {given[place]}; only finite numbers, or nan where undefined, can be described")
    return given
