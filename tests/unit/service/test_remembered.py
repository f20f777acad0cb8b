"""V-3: figures that are slow to read are shown as they were a moment ago, and read again meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from ringtrue.service.work.caches import FigureCache


class Source:
    """Counts how often it was read."""

    def __init__(self) -> None:
        self.times = 0
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self) -> int:
        assert self.gate.wait(30)
        self.times += 1
        return self.times


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_what_is_fresh_is_not_read_again_and_what_is_old_is() -> None:
    clock = [0.0]
    kept, source = FigureCache(fresh=5, shown=60, now=lambda: clock[0]), Source()
    assert kept.get("a", source) == 1
    clock[0] = 4.9
    assert kept.get("a", source) == 1
    assert kept.get("b", source) == 2, "another key is read for itself"
    clock[0] = 64.9
    assert kept.get("a", source) == 1, "it is still shown"
    until(lambda: source.times == 3)
    until(lambda: kept.get("a", source) == 3)
    clock[0] = 129.9
    assert kept.get("a", source) == 4, "nobody asked for so long that whoever does waits"


def test_in_between_nobody_waits_and_it_is_read_once() -> None:
    clock = [0.0]
    kept, source = FigureCache(fresh=5, shown=60, now=lambda: clock[0]), Source()
    kept.get("a", source)
    clock[0] = 10.0
    source.gate.clear()  # reading takes as long as it likes
    assert [kept.get("a", source) for _ in range(5)] == [1] * 5
    source.gate.set()
    until(lambda: kept.get("a", source) == 2)
    assert source.times == 2


def test_a_failure_beside_is_told_once_nothing_else_can_be_shown() -> None:
    clock = [0.0]
    kept, source = FigureCache(fresh=5, shown=60, now=lambda: clock[0]), Source()
    kept.get("a", source)
    tries = []

    def away() -> int:
        tries.append(1)
        raise OSError("away")

    clock[0] = 10.0
    assert kept.get("a", away) == 1
    until(lambda: len(tries) == 1)
    until(lambda: kept.get("a", away) == 1 and len(tries) >= 2)
    clock[0] = 65.0
    with pytest.raises(OSError, match="away"):
        kept.get("a", away)


def test_what_takes_long_to_read_is_read_seldom() -> None:
    clock = [0.0]

    def slow() -> float:
        clock[0] += 0.1
        return clock[0]

    kept = FigureCache(fresh=5, shown=10, now=lambda: clock[0])
    first = kept.get("a", slow)
    clock[0] = 49.9
    assert kept.get("a", slow) == first, "500 times as long as it took"
    clock[0] = 60.2
    assert kept.get("a", slow) == pytest.approx(60.3), "it was fresh for 50 s and shown for 10 more"


def test_however_long_it_takes_nothing_is_fresh_for_ever() -> None:
    clock = [0.0]

    def endless() -> float:
        clock[0] += 100
        return clock[0]

    kept = FigureCache(fresh=5, shown=10, now=lambda: clock[0])
    assert kept.get("a", endless) == 100
    clock[0] = 159.9
    assert kept.get("a", endless) == 100
    clock[0] = 170.1
    assert kept.get("a", endless) > 170
