"""Figures over time, on both databases."""

from __future__ import annotations

import math

from ringtrue.store import HistoryPoint, Store

DAYS = [f"2026-03-0{day}T00:00:00.000000Z" for day in range(1, 6)]


def _points() -> list[HistoryPoint]:
    labels = [{"k": "10", "golden": "hotel"}, {"k": "5", "golden": "hotel"}]
    return [
        HistoryPoint(at, "recall_at_k", i / 10 + place, one) for i, at in enumerate(DAYS) for place, one in enumerate(labels)
    ]


def _values(points: list[HistoryPoint]) -> list[float]:
    return [point.value for point in points]


def test_a_series_comes_back_in_the_order_of_time(store: Store) -> None:
    assert store.add_history(_points()[::-1]) == 10
    assert store.history("recall_at_k") == _points()
    assert store.history("ndcg") == store.history("recall_at_k", project="shop") == []
    assert _values(store.history("recall_at_k", since=DAYS[1], until=DAYS[3])) == [0.1, 1.1, 0.2, 1.2]
    assert _values(store.history("recall_at_k", limit=3)) == [1.3, 0.4, 1.4]  # the last ones
    assert _values(store.history("recall_at_k", labels={"k": "5"}, limit=2)) == [1.3, 1.4]


def test_labels_are_compared_as_a_whole_whatever_is_in_them(store: Store) -> None:
    odd = ['10"', "1", "a%b", "é部", "10", 'k":"10', "A"]
    store.add_history([HistoryPoint(DAYS[0], "s", float(i), {"z": "1", "k": value}) for i, value in enumerate(odd)])
    for i, value in enumerate(odd):
        assert _values(store.history("s", labels={"k": value})) == [float(i)]
    assert (
        store.history("s", labels={"k": "0"})
        == store.history("s", labels={"k": "a"})
        == store.history("s", labels={"": "1"})
        == []
    )
    assert len(store.history("s", labels={"z": "1"})) == len(odd)
    assert store.history("s", labels={"k": "10", "z": "2"}) == []


def test_the_same_point_is_kept_once_in_whatever_order_its_labels_are(store: Store) -> None:
    point = HistoryPoint(DAYS[0], "s", 1.0, {"a": "1", "b": "2"})
    assert store.add_history([point]) == 1
    assert store.add_history([HistoryPoint(DAYS[0], "s", 2.0, {"b": "2", "a": "1"})]) == 0
    assert store.history("s") == [point]


def test_a_value_that_is_none_is_no_point(store: Store) -> None:
    points = [HistoryPoint(DAYS[0], "s", math.nan), HistoryPoint(DAYS[1], "s", 1.0), HistoryPoint(DAYS[2], "s", math.inf)]
    assert store.add_history(points) == 2
    assert _values(store.history("s")) == [1.0, math.inf]
    assert store.add_history([]) == 0
