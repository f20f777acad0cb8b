"""What one server keeps of what it has read: figures for a moment, and what never changes as long as there is room."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
FRESH_S, SHOWN_S = 5.0, 25.0
SELDOM = 500
"""What took a second to read is fresh for so many: whoever looks all the time costs the store a five-hundredth of it."""
OLDEST_S = 60.0
"""But nothing is fresh for longer than that."""


class WeightedCache(Generic[Value]):
    """The values that were asked for last, within a weight."""

    def __init__(self, most: int) -> None:
        self._most, self._weight = most, 0
        self._values: OrderedDict[Hashable, tuple[int, Value]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], tuple[int, Value]]) -> Value:
        """Return the value of a key; ``make`` makes it, with its weight, where it is not there."""
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


@dataclass
class _Figure:
    value: Any
    at: float
    took: float
    refreshing: bool = False


class FigureCache:
    """Figures that take a look at a large part of the store, by key.

    For ``fresh`` seconds, longer if reading takes long, a figure is shown as it is. For ``shown`` seconds more it is still
    shown and read again meanwhile, so that nobody waits for it; after that the caller waits.
    """

    def __init__(self, *, fresh: float = FRESH_S, shown: float = SHOWN_S, now: Callable[[], float] = time.monotonic) -> None:
        self._fresh, self._shown, self._now = fresh, shown, now
        self._known: dict[Hashable, _Figure] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, read: Callable[[], Value]) -> Value:
        """Return what ``read`` returns, or returned a moment ago."""
        with self._lock:
            found = self._known.get(key)
            if found is None or self._overdue(found) >= self._shown:
                found = None
            elif self._overdue(found) >= 0 and not found.refreshing:
                found.refreshing = True
                threading.Thread(target=self._refresh, args=(key, read, found), name="ringtrue-reading", daemon=True).start()
        value: Value = self._read(key, read) if found is None else found.value
        return value

    def _overdue(self, found: _Figure) -> float:
        """Return for how many seconds a figure is not fresh any more."""
        return self._now() - found.at - max(self._fresh, min(SELDOM * found.took, OLDEST_S))

    def _read(self, key: Hashable, read: Callable[[], Value]) -> Value:
        begun = self._now()
        value = read()
        with self._lock:
            self._known = {name: one for name, one in self._known.items() if self._overdue(one) < self._shown}
            self._known[key] = _Figure(value, self._now(), self._now() - begun)
        return value

    def _refresh(self, key: Hashable, read: Callable[[], Any], found: _Figure) -> None:
        try:
            self._read(key, read)
        except Exception:  # raised to the caller who has to wait, if it lasts
            found.refreshing = False
