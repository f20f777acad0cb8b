"""How a check tells its numbers: two that differ never look alike."""

from __future__ import annotations

from collections.abc import Callable

from ringtrue.measures import Measure

EVEN = 1e-9
"""Differences up to this come from floating point and mean nothing: exactly 5 % is 5 %."""
SHOWN = 10
"""Queries that a check names."""


def two(one: float, other: float, *, digits: int = 4) -> tuple[str, str]:
    """Return both numbers, with as many digits as it takes to tell them apart.

    >>> two(0.79999, 0.8)
    ('0.79999', '0.80000')
    """
    return _apart(one, other, lambda value, more: f"{value:.{more}f}", digits)


def percent(share: float, beside: float, *, digits: int = 1) -> str:
    """Return a share in percent, with as many digits as it takes to tell it from the other one.

    >>> percent(0.061, 0.05), percent(0.0501, 0.05)
    ('6.1 %', '5.01 %')
    """
    return _apart(share, beside, lambda value, more: f"{100 * value:.{more}f} %", digits)[0]


def _apart(one: float, other: float, show: Callable[[float, int], str], digits: int) -> tuple[str, str]:
    while show(one, digits) == show(other, digits) and abs(one - other) > EVEN and digits < 12:
        digits += 1
    return show(one, digits), show(other, digits)


def upside(measure: str) -> int:
    """Return 1 where a higher value of the measure is better, −1 where a lower one is."""
    return -1 if Measure.parse(measure).definition.lower_is_better else 1


def some(names: list[str], *, count: int = 5) -> str:
    """Return the first few names.

    >>> some(["q1", "q2", "q3"], count=2)
    'q1, q2 …'
    """
    return ", ".join(names[:count]) + (" …" if len(names) > count else "")
