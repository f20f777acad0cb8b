"""Gauges over time in the store, so that trends exist without Prometheus."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ringtrue.service.gauges import Reading
from ringtrue.service.history import MOST_SERIES, Recorder, trends
from ringtrue.store import HistoryPoint, Store, timestamp
from stores import empty as empty
from stores import kind as kind
from stores import store as store
from stores import url as url

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
RECALL = "ringtrue_retrieval_recall_at_k"


def after(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def reading(value: float, **labels: str) -> Reading:
    return Reading(RECALL, value, {"k": "10", "slice": "all", **labels})


def written(recorder: Recorder, minutes: float, *readings: Reading, project: str = "default") -> list[float]:
    return [point.value for point in recorder.points(project, readings, at=after(minutes))]


def test_what_changes_is_written_at_once_and_what_stays_from_time_to_time() -> None:
    recorder = Recorder(lambda one: one.labels["slice"] == "all")
    watched, other = reading(0.8), reading(0.5, slice="intent=rare")
    assert written(recorder, 0, watched, other) == [0.8, 0.5]
    assert written(recorder, 1, watched, other) == []
    assert written(recorder, 2, reading(0.7), other) == [0.7]
    assert written(recorder, 4, reading(0.7), other) == []
    assert written(recorder, 5, reading(0.7), other) == [0.7], "rules need a point every few minutes"
    assert written(recorder, 60, other) == [0.5]
    assert written(recorder, 61, watched, project="another") == [0.8]


def test_the_number_of_series_is_bounded_and_the_whole_comes_before_its_slices() -> None:
    many = [reading(0.5, slice=f"intent={number}") for number in range(2 * MOST_SERIES)]
    points = Recorder(lambda _: True).points("default", [*many, reading(0.9)], at=NOW)
    assert len(points) == MOST_SERIES
    assert points[0].value == 0.9


def test_what_is_no_number_is_not_written() -> None:
    assert written(Recorder(lambda _: True), 0, reading(float("inf")), reading(float("nan"))) == []


def test_a_trend_is_read_from_the_store(store: Store) -> None:
    points = [
        HistoryPoint(timestamp(after(minute)), RECALL, minute / 100, {"k": k, "retriever": 'hyb"rid é'})
        for minute in range(30)
        for k in ("5", "10")
    ]
    store.add_history([*points, HistoryPoint(timestamp(after(1)), RECALL, 0.99, {"k": "10"}, "another")])
    (found,) = trends(store, "default", RECALL, {"k": "10", "retriever": 'hyb"rid é'}, since=after(20)).values()
    assert found == [(after(minute), minute / 100) for minute in range(20, 30)]
    assert [dict(labels)["k"] for labels in trends(store, "default", RECALL)] == ["10", "5"]
    assert list(trends(store, "another", RECALL).values()) == [[(after(1), 0.99)]]
    assert trends(store, "nobody", RECALL) == {}


@pytest.mark.parametrize("most", [1, 7, 100])
def test_a_long_trend_is_thinned_and_ends_with_the_newest(store: Store, most: int) -> None:
    store.add_history([HistoryPoint(timestamp(after(minute)), RECALL, float(minute)) for minute in range(500)])
    (found,) = trends(store, "default", RECALL, most=most).values()
    assert len(found) <= most
    assert len(found) > most * 0.9
    assert found[-1] == (after(499), 499.0)
    assert found == sorted(found)
