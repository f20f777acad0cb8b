"""Figures that take a look at a large part of the store, shown as they were a moment ago while they are read again."""

from __future__ import annotations

import contextlib
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


@dataclass(frozen=True)
class _Read(Generic[Value]):
    value: Value
    at: float
    took: float


class Remembered(Generic[Value]):
    """What was read, for each server and key.

    For ``fresh`` seconds, longer where reading takes long, it is shown as it is. For ``shown`` seconds more it is still shown,
    and read again meanwhile, so that nobody waits for it; after that whoever asks does.
    """

    def __init__(self, *, fresh: float, shown: float, now: Callable[[], float] = time.monotonic) -> None:
        self._fresh, self._shown, self._now = fresh, shown, now
        self._known: WeakKeyDictionary[Any, dict[Hashable, _Read[Value]]] = WeakKeyDictionary()
        self._reading: WeakKeyDictionary[Any, set[Hashable]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self, service: Any, key: Hashable, read: Callable[[], Value]) -> Value:
        """Return what ``read`` returns, or returned a moment ago."""
        with self._lock:
            known = self._known.setdefault(service, {})
            reading = self._reading.setdefault(service, set())
            found = known.get(key)
            if found is not None and self._over(found) >= self._shown:
                found = None
            again = found is not None and self._over(found) >= 0 and key not in reading
            if again:
                reading.add(key)
        if found is None:
            made = self._read(read)
            with self._lock:
                for old in [one for one, kept in known.items() if self._over(kept) >= self._shown]:
                    del known[old]
                known[key] = made
            return made.value
        if again:
            threading.Thread(target=self._again, args=(known, reading, key, read), name="ringtrue-reading", daemon=True).start()
        return found.value

    def _over(self, found: _Read[Value]) -> float:
        """Return for how many seconds something is not fresh any more."""
        fresh = max(self._fresh, min(SELDOM * found.took, OLDEST_S))
        return self._now() - found.at - fresh

    def _read(self, read: Callable[[], Value]) -> _Read[Value]:
        begun = self._now()
        value = read()
        return _Read(value, self._now(), self._now() - begun)

    def _again(
        self, known: dict[Hashable, _Read[Value]], reading: set[Hashable], key: Hashable, read: Callable[[], Value]
    ) -> None:
        # What goes wrong here is told to whoever asks when it is no longer shown.
        with contextlib.suppress(Exception):
            made = self._read(read)
            with self._lock:
                known[key] = made
        reading.discard(key)
