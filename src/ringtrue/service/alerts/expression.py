"""Expressions over series: a tree that is evaluated at a moment of the past, as Prometheus would.

Two things differ from Prometheus: ``increase`` is what the points show, without extrapolation, and ranges are sampled once a
minute.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ringtrue.service.history import Labels

Vector = dict[Labels, float]
Value = float | Vector
Samples = NDArray[np.float64]
"""Values once a minute, the oldest first; nan where there is none."""

_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": lambda left, right: left / right if right else math.nan if not left else math.copysign(math.inf, left),
}  # fmt: skip
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
AGGREGATES: Mapping[str, Callable[[list[float]], float]] = {"max": max, "min": min, "sum": sum}


class Past(Protocol):
    """What expressions are evaluated over, as it was at one moment."""

    def time(self) -> float:
        """Return the moment in seconds since 1970."""
        ...

    def values(self, series: Series) -> Vector:
        """Return the value of every matching series."""
        ...

    def over(self, span: Range) -> dict[Labels, Samples]:
        """Return the values of every matching series over a stretch of time."""
        ...


class Node(Protocol):
    """One expression."""

    def at(self, past: Past) -> Value:
        """Return its value at a moment."""
        ...

    def parts(self) -> Iterator[Node]:
        """Yield the expressions it is made of."""
        ...


def ranges(node: Node) -> Iterator[Range]:
    """Yield everything an expression reads; a series by itself reads one moment."""
    if isinstance(node, Range):
        yield node
    elif isinstance(node, Series):
        yield Range(node, 0, 0)
    else:
        for part in node.parts():
            yield from ranges(part)


@dataclass(frozen=True)
class Number:
    value: float

    def at(self, past: Past) -> Value:
        return self.value

    def parts(self) -> Iterator[Node]:
        return iter(())


@dataclass(frozen=True)
class Time:
    def at(self, past: Past) -> Value:
        return past.time()

    def parts(self) -> Iterator[Node]:
        return iter(())


@dataclass(frozen=True)
class Series:
    """A metric, and the labels that its series must or must not have."""

    metric: str
    equal: tuple[tuple[str, str], ...] = ()
    unequal: tuple[tuple[str, str], ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(name, "") == value for name, value in self.equal) and all(
            labels.get(name, "") != value for name, value in self.unequal
        )

    def at(self, past: Past) -> Value:
        return past.values(self)

    def parts(self) -> Iterator[Node]:
        return iter(())


@dataclass(frozen=True)
class Range:
    """A series over so many seconds, that ended so many seconds ago."""

    series: Series
    seconds: float
    offset: float

    def at(self, past: Past) -> Value:
        raise AssertionError("a range is read by its function")

    def parts(self) -> Iterator[Node]:
        return iter(())


@dataclass(frozen=True)
class Increase:
    span: Range

    def at(self, past: Past) -> Value:
        found = {}
        for labels, samples in past.over(self.span).items():
            seen = samples[~np.isnan(samples)]
            if len(seen) > 1:
                steps = np.diff(seen)
                # A counter that falls began anew with its process: all of what it shows came since.
                found[labels] = float(np.where(steps < 0, seen[1:], steps).sum())
        return found

    def parts(self) -> Iterator[Node]:
        yield self.span


@dataclass(frozen=True)
class Quantile:
    share: float
    span: Range

    def at(self, past: Past) -> Value:
        found = {}
        for labels, samples in past.over(self.span).items():
            seen = samples[~np.isnan(samples)]
            if len(seen):
                found[labels] = float(np.quantile(seen, self.share))
        return found

    def parts(self) -> Iterator[Node]:
        yield self.span


@dataclass(frozen=True)
class Aggregate:
    how: str
    by: tuple[str, ...]
    inner: Node

    def at(self, past: Past) -> Value:
        value = self.inner.at(past)
        assert isinstance(value, dict)
        groups: dict[Labels, list[float]] = {}
        for labels, one in value.items():
            groups.setdefault(tuple((name, text) for name, text in labels if name in self.by), []).append(one)
        return {labels: float(AGGREGATES[self.how](values)) for labels, values in groups.items()}

    def parts(self) -> Iterator[Node]:
        yield self.inner


@dataclass(frozen=True)
class Binary:
    """Two sides; series meet where all their labels are equal, and a comparison keeps the left side's value."""

    sign: str
    left: Node
    right: Node

    def at(self, past: Past) -> Value:
        left, right = self.left.at(past), self.right.at(past)
        if self.sign == "and":
            assert isinstance(left, dict)
            assert isinstance(right, dict)
            return {labels: value for labels, value in left.items() if labels in right}
        if not isinstance(left, dict) and not isinstance(right, dict):
            return _ARITHMETIC[self.sign](left, right)
        both = _paired(left, right)
        if self.sign in COMPARISONS:
            holds = COMPARISONS[self.sign]
            # As in Prometheus: what is kept is the side that has labels, and the left where both have.
            kept = left if isinstance(left, dict) else right
            assert isinstance(kept, dict)
            return {labels: kept[labels] for labels, (one, other) in both.items() if holds(one, other)}
        return {labels: _ARITHMETIC[self.sign](one, other) for labels, (one, other) in both.items()}

    def parts(self) -> Iterator[Node]:
        yield from (self.left, self.right)


def is_number(node: Node) -> bool:
    """True for an expression whose value is one number, not one for every series."""
    if isinstance(node, Binary):
        return is_number(node.left) and is_number(node.right)
    return isinstance(node, Number | Time)


def _paired(left: Value, right: Value) -> dict[Labels, tuple[float, float]]:
    if not isinstance(left, dict):
        assert isinstance(right, dict)
        return {labels: (left, value) for labels, value in right.items()}
    if not isinstance(right, dict):
        return {labels: (value, right) for labels, value in left.items()}
    return {labels: (value, right[labels]) for labels, value in left.items() if labels in right}
