"""What a server keeps of what it has read: values that never change, and figures that are fresh for some seconds."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar, cast

Value = TypeVar("Value")
FRESH_S = 5.0
SELDOM = 500
"""What took a second to read is fresh for so many: whoever looks all the time costs the store a five-hundredth of it."""
OLDEST_S = 60.0
"""But nothing is fresh for longer than that, unless its reader says so."""


class WeightedCache(Generic[Value]):
    """The values that were asked for last, within a weight."""

    def __init__(self, most: int) -> None:
        self._most, self._weight = most, 0
        self._values: OrderedDict[Hashable, tuple[int, Value]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], tuple[int, Value]]) -> Value:
        """Return the value of a key; ``make`` makes it, with its weight, if it is not there."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][1]
        weight, value = make()
        with self._lock:
            if key not in self._values and weight <= self._most:
                self._values[key] = (weight, value)
                self._weight += weight
                while self._weight > self._most:
                    self._weight -= self._values.popitem(last=False)[1][0]
        return value


class FigureCache:
    """Figures that take a look at a large part of the store, by key: read again after some seconds, later if that is slow."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._known: dict[Hashable, tuple[float, float, Any]] = {}
        """When each figure was read, for how many seconds it is fresh, and the figure."""

    def get(self, key: Hashable, read: Callable[[], Value], *, fresh: float | None = None, again: bool = False) -> Value:
        """Return what ``read`` returns, or returned up to ``fresh`` seconds ago; with ``again`` it is read in any case."""
        at, seconds, value = self._known.get(key, (0.0, 0.0, None))
        begun = self._now()
        if again or not 0 <= begun - at < seconds:
            value = read()
            at = self._now()
            seconds = max(FRESH_S, min(SELDOM * (at - begun), OLDEST_S)) if fresh is None else fresh
            left = {name: one for name, one in self._known.items() if 0 <= at - one[0] < one[1]}
            self._known = {**left, key: (at, seconds, value)}  # a new one: other threads may be reading the old one
        return cast("Value", value)

    def clear(self) -> None:
        """Believe nothing any more."""
        self._known = {}
