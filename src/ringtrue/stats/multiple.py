"""Many tests at once: adjusted p-values over all measures of all systems.

Twenty measures at 0.05 find one difference where there is none. Holm keeps the chance of a single false finding below alpha;
Benjamini and Hochberg keep the share of false ones among the findings below it, and find more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.errors import InputError
from ringtrue.stats.columns import Floats


def holm(p: ArrayLike) -> Floats:
    """Return Holm's adjusted p-values, in the shape given; a nan is a test that was not made, and stays nan.

    They hold however the tests depend on one another. Holm (1979).

    Raises InputError if a value is no number from 0 to 1.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    given, shape, order = _ordered(p)
    count = len(order)
    adjusted = np.maximum.accumulate(given[order] * np.arange(count, 0, -1))
    return _placed(given, shape, order, adjusted)


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Return Benjamini and Hochberg's adjusted p-values, in the shape given; a nan is a test that was not made, and stays nan.

    They hold for tests that are independent or rise and fall together, as measures of the same ranking do. Benjamini and
    Hochberg (1995); Benjamini and Yekutieli (2001).

    Raises InputError if a value is no number from 0 to 1.

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    given, shape, order = _ordered(p)
    count = len(order)
    scaled = given[order] * (count / np.arange(1, count + 1))
    adjusted = np.minimum.accumulate(scaled[::-1])[::-1]
    return _placed(given, shape, order, adjusted)


def deciding_levels(p: ArrayLike, adjusted: ArrayLike, *, alpha: float, step_up: bool = False) -> Floats:
    """Return the level at which each test was decided, so that an interval at 1 - level tells what the adjusted p tells.

    ``adjusted`` are Holm's values of these p, or with ``step_up`` those of Benjamini and Hochberg. A p is at most its level
    exactly if its adjusted value is at most alpha: the levels are those of the procedure's steps, and all tests that were not
    rejected share the level of the first that was not (Holm), or of the next one (Benjamini and Yekutieli, 2005). A test that
    was not made has the level alpha.

    >>> deciding_levels([0.01, 0.04, 0.03], holm([0.01, 0.04, 0.03]), alpha=0.06).round(3).tolist()
    [0.02, 0.06, 0.03]
    """
    given, shape, order = _ordered(p)
    count = len(order)
    level = np.full_like(given, alpha)
    if count:
        rejected = int((np.asarray(adjusted, np.float64).reshape(-1)[order] <= alpha).sum())
        if step_up:
            level[order[:rejected]] = alpha * (rejected / count)
            level[order[rejected:]] = alpha * ((rejected + 1) / count)
        else:
            level[order] = alpha / np.maximum(count - np.minimum(np.arange(count), rejected), 1)
    return level.reshape(shape)


def _ordered(p: ArrayLike) -> tuple[Floats, tuple[int, ...], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    try:
        table = np.asarray(p, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("p-values must be numbers, with the same number of columns in every row") from None
    given = table.reshape(-1)
    wrong = given[(given < 0) | (given > 1)]
    if len(wrong):
        raise InputError(f"cannot adjust p = {float(wrong[0])}: write numbers from 0 to 1, or nan for a test not made")
    tested = np.flatnonzero(~np.isnan(given))
    return given, table.shape, tested[np.argsort(given[tested], kind="stable")]


def _placed(
    given: Floats, shape: tuple[int, ...], order: np.ndarray[tuple[int], np.dtype[np.int64]], adjusted: Floats
) -> Floats:
    placed = np.full_like(given, np.nan)
    placed[order] = np.minimum(adjusted, 1.0)
    return placed.reshape(shape)
