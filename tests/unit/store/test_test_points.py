"""The path of a sequential test between its bounds, on both databases."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from ringtrue.store import ABTest, Store, TestPoint
from ringtrue.store.library import _is_due
from store_contents import LATER, TEST


def _counted(test: ABTest) -> ABTest:
    return replace(test, sample_count=test.sample_count + 1)


def _point(test: ABTest) -> TestPoint:
    return TestPoint(
        test.sample_count, test.updated_at, test.log_likelihood_ratio, feature_id=test.feature_id, project=test.project
    )


def _points(store: Store) -> list[int]:
    return [point.sample_count for point in store.test_points("rerank")]


def test_every_query_leaves_a_point_at_first_later_ever_fewer_do() -> None:
    due = [samples for samples in range(1, 100_001) if _is_due(samples)]
    assert due[:200] == list(range(1, 201))
    assert len(due) < 2_000
    gaps = [(later - earlier) / later for earlier, later in pairwise(due[200:])]
    assert max(gaps) <= 0.01


def test_points_are_thinned_and_the_deciding_one_is_kept(store: Store) -> None:
    store.create_test(replace(TEST, sample_count=1_000))
    for query in range(12):
        store.update_test("rerank", f"q{query}", _counted, point=_point)
    assert _points(store) == [1005, 1010]
    store.update_test("rerank", "deciding", lambda test: replace(_counted(test), decision="accept-treatment"), point=_point)
    assert _points(store) == [1005, 1010, 1013]


def test_what_counts_no_query_leaves_no_point_and_neither_does_what_fails(store: Store) -> None:
    store.create_test(TEST)
    store.update_test("rerank", "status", lambda test: replace(test, status="paused"))
    store.update_test("rerank", "silent", _counted, point=lambda test: None)

    def broken(test: ABTest) -> TestPoint:
        raise ValueError("no point")

    with pytest.raises(ValueError, match="no point"):
        store.update_test("rerank", "q", _counted, point=broken)
    assert _points(store) == []
    assert store.update_test("rerank", "q", _counted, point=_point) is not None  # it was not counted before
    assert (_points(store), store.test_points("rerank", project="shop"), store.test_points("other")) == ([4], [], [])


def test_a_test_that_begins_anew_loses_its_path(store: Store) -> None:
    store.create_test(TEST)
    store.update_test("rerank", "q1", _counted, point=_point)
    store.update_test("rerank", "anew", lambda test: replace(test, sample_count=0, started_at=LATER))
    assert _points(store) == []
    store.update_test("rerank", "q2", _counted, point=_point)
    assert _points(store) == [1]
