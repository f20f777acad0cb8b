"""Figures that are slow to read are shown as they were a moment ago."""

from __future__ import annotations

import pytest

from ringtrue.service.caches import FigureCache


class Source:
    """Counts how often it was read."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> int:
        self.times += 1
        return self.times


def test_what_is_fresh_is_not_read_again_and_what_is_old_is() -> None:
    clock = [1.0]
    kept, source = FigureCache(now=lambda: clock[0]), Source()
    assert kept.get("a", source) == 1
    clock[0] = 5.9
    assert kept.get("a", source) == 1
    assert kept.get("b", source) == 2, "another key is read for itself"
    clock[0] = 6.0
    assert kept.get("a", source) == 3


def test_a_failure_is_told_and_the_next_reader_tries_again() -> None:
    kept, source = FigureCache(now=lambda: 1.0), Source()

    def away() -> int:
        raise OSError("away")

    with pytest.raises(OSError, match="away"):
        kept.get("a", away)
    assert kept.get("a", source) == 1


def test_what_takes_long_to_read_is_read_seldom() -> None:
    clock = [1.0]

    def slow() -> float:
        clock[0] += 0.1
        return clock[0]

    kept = FigureCache(now=lambda: clock[0])
    first = kept.get("a", slow)
    clock[0] = 51.0
    assert kept.get("a", slow) == first, "500 times as long as it took"
    clock[0] = 51.2
    assert kept.get("a", slow) == pytest.approx(51.3)


def test_however_long_it_takes_nothing_is_fresh_for_ever() -> None:
    clock = [0.0]

    def endless() -> float:
        clock[0] += 100
        return clock[0]

    kept = FigureCache(now=lambda: clock[0])
    assert kept.get("a", endless) == 100
    clock[0] = 159.9
    assert kept.get("a", endless) == 100
    clock[0] = 160.1
    assert kept.get("a", endless) > 160
