"""Agreement between raters beyond chance: Cohen's kappa and Krippendorff's alpha.

Both coefficients are 1 - observed disagreement ÷ disagreement expected by chance; they differ in what chance means and in how
far apart two labels are. If chance alone would always agree (every label is the same), no coefficient exists: it is nan and
``defined`` is False, however perfect the agreement looks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ringtrue.errors import InputError, nearest

Labels = Sequence[Hashable | None]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Agreement:
    """A coefficient with what it was made from; ``coefficient`` = (observed - expected) ÷ (1 - expected).

    ``items`` counts the items that entered (rated by two raters or more). ``observed`` and ``expected`` are shares of
    agreement; with weights or an ordered scale, an almost equal pair counts in part, the widest possible gap as 0.
    All three numbers are nan when no item entered.
    """

    coefficient: float
    name: str
    items: int
    raters: int
    observed: float
    expected: float

    @property
    def defined(self) -> bool:
        """Whether the coefficient exists.

        >>> cohen_kappa(["yes", "yes"], ["yes", "yes"]).defined
        False
        """
        return not math.isnan(self.coefficient)


def cohen_kappa(a: Labels, b: Labels, *, weights: Literal["linear", "quadratic"] | None = None) -> Agreement:
    """Return Cohen's kappa of two raters over the same items; a pair with None or nan is left out.

    Weighted, a disagreement counts by the gap between the two labels or its square. The labels must then be numbers and
    the gap is that of their values, so that a grade nobody used still counts as a step. Cohen (1960, 1968).

    Raises InputError if the lengths differ, ``weights`` is unknown, or weighted labels are not finite numbers.

    >>> kappa = cohen_kappa([0, 0, 1, 1, None], [0, 0, 1, 0, 1])
    >>> kappa.coefficient, kappa.items, kappa.observed, kappa.expected
    (0.5, 4, 0.75, 0.5)
    """
    if weights not in (None, "linear", "quadratic"):
        raise InputError(f"cannot use weights = {weights!r}; write None or {nearest(str(weights), ['linear', 'quadratic'])}")
    if len(a) != len(b):
        raise InputError(f"rater a has {len(a)} labels and rater b has {len(b)}; both must list the same items")
    pairs = Counter((x, y) for x, y in zip(a, b, strict=True) if not _missing(x) and not _missing(y))
    labels, items = _sorted({label for pair in pairs for label in pair}), pairs.total()
    name = "Cohen's kappa" if weights is None else f"Cohen's kappa ({weights} weights)"
    if items == 0:
        return Agreement(math.nan, name, 0, 2, math.nan, math.nan)
    counts = np.array([[pairs[row, column] for column in labels] for row in labels], dtype=np.float64)
    if weights is None:
        distance = 1.0 - np.eye(len(labels))
    else:
        distance = _gaps(_numbers(labels, f"{weights} weights")) ** (1 if weights == "linear" else 2)
    observed = float((counts * distance).sum()) / items
    expected = float(counts.sum(axis=1) @ distance @ counts.sum(axis=0)) / items**2
    return _agreement(name, items, 2, observed, expected)


def krippendorff_alpha(
    ratings: Sequence[Labels] | NDArray[Any], *, level: Literal["nominal", "ordinal", "interval"] = "nominal"
) -> Agreement:
    """Return Krippendorff's alpha of ratings with a row per rater and a column per item; None or nan is missing.

    Items with fewer than two ratings say nothing about agreement and do not enter. Krippendorff (2011), Computing
    Krippendorff's alpha-reliability.

    Raises InputError if ``level`` is unknown, there are fewer than two raters, the rows differ in length, or the labels
    of an ordinal or interval scale are not finite numbers.

    >>> round(krippendorff_alpha([[1, 2, 3, None], [1, 2, 2, 4], [1, 2, 3, 4]], level="ordinal").coefficient, 3)
    0.92
    """
    if level not in ("nominal", "ordinal", "interval"):
        raise InputError(f"cannot use level = {level!r}; write {nearest(str(level), ['nominal', 'ordinal', 'interval'])}")
    items = [item for item in _columns(ratings) if item.total() >= 2]
    name = f"Krippendorff's alpha ({level})"
    if not items:
        return Agreement(math.nan, name, 0, len(ratings), math.nan, math.nan)
    labels = _sorted({label for item in items for label in item})
    counts = np.array([[item[label] for label in labels] for item in items], dtype=np.float64)
    totals = counts.sum(axis=0)
    if level == "nominal":
        distance = 1.0 - np.eye(len(labels))
    elif level == "ordinal":
        _numbers(labels, "an ordinal scale")
        # Krippendorff's ordinal distance between two labels is the gap between their mean ranks.
        distance = _gaps(np.cumsum(totals) - totals / 2) ** 2
    else:
        distance = _gaps(_numbers(labels, "an interval scale")) ** 2
    # Each item weighs by its number of ratings: its pairs are divided by the ratings less one.
    coincidences = counts.T @ (counts / (counts.sum(axis=1, keepdims=True) - 1))
    n = float(totals.sum())
    observed = float((coincidences * distance).sum()) / n
    expected = float(totals @ distance @ totals) / (n * (n - 1))
    return _agreement(name, len(items), len(ratings), observed, expected)


def _agreement(name: str, items: int, raters: int, disagreement: float, by_chance: float) -> Agreement:
    coefficient = 1 - disagreement / by_chance if by_chance > 0 else math.nan
    return Agreement(coefficient, name, items, raters, 1 - disagreement, 1 - by_chance)


def _missing(label: object) -> bool:
    return label is None or (isinstance(label, float | np.floating) and math.isnan(label))


def _sorted(labels: Iterable[Any]) -> tuple[Hashable, ...]:
    try:
        return tuple(sorted(labels))
    except TypeError:
        return tuple(sorted(labels, key=lambda label: (type(label).__name__, str(label))))


def _numbers(labels: Sequence[Hashable], use: str) -> Floats:
    for label in labels:
        if not isinstance(label, Real) or not math.isfinite(label):
            raise InputError(f"label {label!r} has no place on a scale; {use} need numbers such as the grades 0 to 3")
    return np.array(labels, dtype=np.float64)


def _gaps(values: Floats) -> Floats:
    """Return the distances between all pairs of values, the widest being 1; scaling them changes no coefficient."""
    gaps = np.abs(values[:, None] - values[None, :])
    widest = float(gaps.max())
    return gaps / widest if widest > 0 else gaps


def _columns(ratings: Sequence[Labels] | NDArray[Any]) -> list[Counter[Hashable]]:
    """Return how often each label was given to each item."""
    if len(ratings) < 2:
        raise InputError(f"agreement needs at least 2 raters (rows), not {len(ratings)}")
    for place, row in enumerate(ratings):
        if len(row) != len(ratings[0]):
            raise InputError(f"rater {place} has {len(row)} items and rater 0 has {len(ratings[0])}; fill gaps with None")
    columns = zip(*ratings, strict=True)
    return [Counter(label for label in column if not _missing(label)) for column in columns]
