"""Counting a query leaves a point on the path of its test, on both databases."""

from __future__ import annotations

import pytest

from ringtrue.rollout import create_test, record_scores
from ringtrue.store import Store
from store_contents import LATER, NOON
from stores import kind as kind
from stores import store as store
from stores import url as url


@pytest.mark.parametrize("method", ["sprt", "confidence-sequence", "beta-binomial"])
def test_recorded_scores_leave_evidence_estimate_and_interval(store: Store, method: str) -> None:
    create_test(store, "rerank", now=NOON, method=method, measure="hit")
    for query in range(3):
        record_scores(store, "rerank", f"q{query}", control=0.0, treatment=1.0, now=LATER)
        record_scores(store, "rerank", f"q{query}", control=0.0, treatment=1.0, now=LATER)  # counted before
    found = store.test_points("rerank")
    test = store.test("rerank")
    assert test is not None
    assert [(point.sample_count, point.estimate, point.at) for point in found] == [
        (1, 1.0, LATER),
        (2, 1.0, LATER),
        (3, 1.0, LATER),
    ]
    assert found[-1].llr == test.log_likelihood_ratio
    interval = (test.sums["low"], test.sums["high"]) if method == "confidence-sequence" else (None, None)
    assert (found[-1].low, found[-1].high) == interval
