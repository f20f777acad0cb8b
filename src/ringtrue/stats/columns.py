"""Paired differences of many measures at once: a row per query, a column per measure (of every system compared).

A difference is new less old, turned so that above 0 is better. A nan is a query that a measure has no value for: it is left
out of that column alone, and counted. Every test of this room over paired differences reads them through ``columns``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringtrue.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Array = TypeVar("Array", bound=NDArray[Any])

# Equal differences of equal scores come out of a subtraction apart by rounding; a spread this small beside them is none.
SAME = 1e-9
# A probability below the smallest normal number is shown as that number: p = 0 would claim a certainty nothing can give.
SMALLEST_P = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Columns:
    """The differences with what every test needs of them; each array has one value per column, but the first two."""

    values: Floats
    """As given, with 0 in the place of nan."""
    valid: Bools
    n: Ints
    excluded: Ints
    mean: Floats
    """nan if n = 0."""
    sd: Floats
    """With n - 1; nan if n < 2."""
    constant: Bools
    """Two or more values, all of them equal but for rounding."""


def columns(differences: ArrayLike) -> Columns:
    """Return a queries × measures table as checked columns; one sequence is one column.

    Raises InputError if the table holds anything but numbers, an infinite value, or has more than two dimensions.

    >>> found = columns([[0.1, 0.2], [0.3, float("nan")]])
    >>> found.n.tolist(), found.excluded.tolist(), found.mean.round(2).tolist()
    ([2, 1], [0, 1], [0.2, 0.2])
    """
    table = _table(differences)
    valid = ~np.isnan(table)
    values = np.where(valid, table, 0.0)
    n = valid.sum(axis=0).astype(np.int64)
    mean = np.full(len(n), np.nan)
    np.divide(values.sum(axis=0), n, out=mean, where=n > 0)
    centred = np.where(valid, values - np.where(n > 0, mean, 0.0), 0.0)
    furthest = np.abs(centred).max(axis=0, initial=0.0)
    variance = np.full(len(n), np.nan)
    # In units of the furthest, whose square neither overflows nor vanishes.
    np.divide((in_units(centred, furthest) ** 2).sum(axis=0), n - 1, out=variance, where=n > 1)
    sd = furthest * np.sqrt(variance)
    constant = (n > 1) & (furthest <= SAME * np.abs(values).max(axis=0, initial=0.0))
    arrays = (values, valid, n, len(table) - n, mean, sd, constant)
    return Columns(*map(fixed, arrays))


def in_units(values: Floats, unit: Floats) -> Floats:
    """Return every column divided by its unit, unchanged if that is 0.

    >>> in_units(np.array([[2.0, 0.0]]), np.array([4.0, 0.0])).tolist()
    [[0.5, 0.0]]
    """
    return np.asarray(values / np.where(unit > 0, unit, 1.0))


def fixed(array: Array) -> Array:
    """Return the array, made read-only: a record that holds it is frozen all the way down.

    >>> fixed(np.zeros(2)).flags.writeable
    False
    """
    array.flags.writeable = False
    return array


def check_alpha(alpha: float | Floats) -> None:
    """Raise InputError unless alpha, or every one of several, lies strictly between 0 and 1.

    >>> check_alpha(0.05)
    """
    if not np.all((np.asarray(alpha) > 0) & (np.asarray(alpha) < 1)):
        raise InputError(f"cannot use alpha = {alpha}: write a number strictly between 0 and 1, such as 0.05")


def check_resamples(resamples: int, *, least: int) -> None:
    """Raise InputError unless ``resamples`` is a whole number from ``least``.

    >>> check_resamples(10_000, least=1_000)
    """
    if isinstance(resamples, bool) or not isinstance(resamples, int | np.integer) or resamples < least:
        raise InputError(f"cannot use resamples = {resamples!r}: write a whole number from {least:,}, such as 10000")


def _table(differences: ArrayLike) -> Floats:
    try:
        table = np.asarray(differences, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("differences must be numbers, with the same number of columns in every row") from None
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        raise InputError(f"differences must have a row per query and a column per measure; the shape is {table.shape}")
    wrong = np.argwhere(np.isinf(table))
    if len(wrong):
        row, column = (int(place) for place in wrong[0])
        shown = math.copysign(math.inf, table[row, column])
        raise InputError(f"row {row}, column {column} holds {shown}; write a finite difference, or nan for a query without one")
    return table
