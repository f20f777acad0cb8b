"""Figures that take a look at a large part of the store, shown as they were a moment ago while they are read again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

Value = TypeVar("Value")
SELDOM = 500
"""What took a second to read is fresh for so many: whoever looks all the time costs the store a five-hundredth of it."""
OLDEST_S = 60.0
"""But nothing is fresh for longer than that."""


@dataclass
class _Figure(Generic[Value]):
    value: Value
    at: float
    took: float
    refreshing: bool = False


class FigureCache(Generic[Value]):
    """What was read, for each server and key.

    For ``fresh`` seconds, longer if reading takes long, it is shown as it is. For ``shown`` seconds more it is still shown and
    read again meanwhile, so that nobody waits for it; after that the caller waits.
    """

    def __init__(self, *, fresh: float, shown: float, now: Callable[[], float] = time.monotonic) -> None:
        self._fresh, self._shown, self._now = fresh, shown, now
        self._known: WeakKeyDictionary[Any, dict[Hashable, _Figure[Value]]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self, service: Any, key: Hashable, read: Callable[[], Value]) -> Value:
        """Return what ``read`` returns, or returned a moment ago."""
        with self._lock:
            known = self._known.setdefault(service, {})
            found = known.get(key)
            if found is not None and self._overdue(found) < self._shown:
                if self._overdue(found) >= 0 and not found.refreshing:
                    found.refreshing = True
                    arguments = (known, key, read, found)
                    threading.Thread(target=self._refresh, args=arguments, name="ringtrue-reading", daemon=True).start()
                return found.value
        return self._read(known, key, read)

    def _overdue(self, found: _Figure[Value]) -> float:
        """Return for how many seconds a figure is not fresh any more."""
        return self._now() - found.at - max(self._fresh, min(SELDOM * found.took, OLDEST_S))

    def _read(self, known: dict[Hashable, _Figure[Value]], key: Hashable, read: Callable[[], Value]) -> Value:
        begun = self._now()
        value = read()
        with self._lock:
            for old in [one for one, kept in known.items() if self._overdue(kept) >= self._shown]:
                del known[old]
            known[key] = _Figure(value, self._now(), self._now() - begun)
        return value

    def _refresh(
        self, known: dict[Hashable, _Figure[Value]], key: Hashable, read: Callable[[], Value], found: _Figure[Value]
    ) -> None:
        try:
            self._read(known, key, read)
        except Exception:  # raised to the caller who has to wait, if it lasts
            found.refreshing = False
