"""Figures that take a look at a large part of the store, shown as they were a moment ago while they are read again."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

Value = TypeVar("Value")


class Remembered(Generic[Value]):
    """What was read, for each server and key.

    For ``fresh`` seconds it is shown as it is. For ``shown`` seconds it is still shown, and read again meanwhile, so that
    nobody waits for it; after that whoever asks does.
    """

    def __init__(self, *, fresh: float, shown: float, now: Callable[[], float] = time.monotonic) -> None:
        self._fresh, self._shown, self._now = fresh, shown, now
        self._known: WeakKeyDictionary[Any, dict[Hashable, tuple[float, Value]]] = WeakKeyDictionary()
        self._reading: WeakKeyDictionary[Any, set[Hashable]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self, service: Any, key: Hashable, read: Callable[[], Value]) -> Value:
        """Return what ``read`` returns, or returned a moment ago."""
        with self._lock:
            known = self._known.setdefault(service, {})
            reading = self._reading.setdefault(service, set())
            found = known.get(key)
            age = float("inf") if found is None else self._now() - found[0]
            again = found is not None and self._fresh <= age < self._shown and key not in reading
            if again:
                reading.add(key)
        if found is None or age >= self._shown:
            value = read()
            with self._lock:
                for old in [one for one, (at, _) in known.items() if self._now() - at >= self._shown]:
                    del known[old]
                known[key] = (self._now(), value)
            return value
        if again:
            threading.Thread(target=self._again, args=(known, reading, key, read), name="ringtrue-reading", daemon=True).start()
        return found[1]

    def _again(
        self, known: dict[Hashable, tuple[float, Value]], reading: set[Hashable], key: Hashable, read: Callable[[], Value]
    ) -> None:
        # What goes wrong here is told to whoever asks when it is no longer shown.
        with contextlib.suppress(Exception):
            value = read()
            with self._lock:
                known[key] = (self._now(), value)
        reading.discard(key)
