"""Which search and golden set a project's quality is told of."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ringtrue.retrieve import canonical, same_search
from ringtrue.rollout.health import SearchOnSet, production_pair, set_name
from ringtrue.store import Store, StoredBaseline, StoredResult, timestamp

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
HYBRID = str(canonical("hybrid"))
HUGE = f"hotel-v{'9' * 5_000}.0.0"
"""A text that a caller may send as a set's name, and more digits than an int is made of."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "s.sqlite") as opened:
        yield opened


def evaluate(store: Store, *pairs: tuple[str, str], **changes: Any) -> None:
    """Add an evaluation of each pair of search and set, one a minute after the other."""
    begun = len(store.results())
    for n, (retriever, golden) in enumerate(pairs, begun):
        at = timestamp(NOW + timedelta(minutes=n))
        store.add_result(StoredResult(f"r{n}", "full", at, 50, {"nDCG@10": 0.8}, retriever=retriever, golden=golden, **changes))


def keep(store: Store, name: str, retriever: str, golden: str, *, minute: int = 0) -> None:
    content = {"retriever": retriever, "golden": {"version": golden}}
    store.save_baseline(StoredBaseline(name, "1.0.0", content, timestamp(NOW + timedelta(minutes=minute))))


def test_nothing_was_evaluated(store: Store) -> None:
    keep(store, "production", HYBRID, "hotel-v1.0.0")
    assert production_pair(store, served="hybrid") is None


def test_it_is_what_is_served_on_the_set_of_the_baseline_however_much_is_tried_after(store: Store) -> None:
    evaluate(store, (HYBRID, "hotel-v1.0.0"), ("bm25", "hotel-v1.0.0"))
    keep(store, "production", "bm25", "hotel-v1.0.0")
    evaluate(store, *[("bm25", "memory-bench-v1.0.0")] * 3, *[(HYBRID, "clinical-v1.0.0")] * 3)
    assert production_pair(store, served="hybrid") == SearchOnSet("hybrid", "hotel")


def test_the_baselines_own_search_where_what_is_served_was_never_evaluated_on_its_set(store: Store) -> None:
    keep(store, "production", "bm25", "hotel-v1.0.0")
    evaluate(store, ("bm25", "hotel-v1.0.0"), (HYBRID, "clinical-v1.0.0"), (HYBRID, "clinical-v1.0.0"))
    for served in ("hybrid", None):
        assert production_pair(store, served=served) == SearchOnSet("bm25", "hotel")


def test_of_several_baselines_that_of_what_is_served_else_the_last_one(store: Store) -> None:
    keep(store, "main", HYBRID, "hotel-v1.0.0", minute=1)
    keep(store, "trial", "bm25", "clinical-v1.0.0", minute=2)
    evaluate(store, (HYBRID, "hotel-v1.0.0"), ("bm25", "clinical-v1.0.0"), (HYBRID, "clinical-v1.0.0"))
    assert production_pair(store, served="hybrid") == SearchOnSet("hybrid", "hotel")
    assert production_pair(store) == SearchOnSet("bm25", "clinical")


def test_without_a_baseline_what_is_served_on_its_most_evaluated_set(store: Store) -> None:
    evaluate(store, *[(HYBRID, "hotel-v1.0.0")] * 2, *[("bm25", "hotel-v1.0.0")] * 3, (HYBRID, "clinical-v1.0.0"))
    assert production_pair(store, served="hybrid") == SearchOnSet(HYBRID, "hotel")
    assert production_pair(store) == SearchOnSet("bm25", "hotel")
    assert production_pair(store, served="splade") == SearchOnSet("bm25", "hotel")


def test_of_equals_the_last(store: Store) -> None:
    evaluate(store, ("bm25", "hotel-v1.0.0"), ("dense", "hotel-v1.0.0"))
    assert production_pair(store) == SearchOnSet("dense", "hotel")


def test_candidates_are_not_looked_at(store: Store) -> None:
    evaluate(store, ("bm25", "hotel-v1.0.0"))
    evaluate(store, *[("dense", "hotel-v1.0.0")] * 3, feature_id="try-out")
    assert production_pair(store) == SearchOnSet("bm25", "hotel")


def test_a_baseline_of_means_alone_names_no_pair(store: Store) -> None:
    store.save_baseline(StoredBaseline("plain", "1", {"version": "1", "metrics": {"R@10": 0.8}}, timestamp(NOW)))
    evaluate(store, ("bm25", "hotel-v1.0.0"))
    assert production_pair(store) == SearchOnSet("bm25", "hotel")


def test_one_search_is_one_however_it_is_written() -> None:
    assert same_search("hybrid", HYBRID)
    assert same_search("", "")
    assert not same_search("hybrid", "bm25")
    assert not same_search("hybrid", "")
    assert not same_search("searchers.best", "hybrid")
    assert same_search("searchers.best", "searchers.best")


@pytest.mark.parametrize(
    ("golden", "name"), [("hotel-v2.0.0", "hotel"), ("hotel", "hotel"), (None, ""), ("", ""), (HUGE, HUGE)]
)
def test_the_name_of_a_set_is_without_its_version(golden: str | None, name: str) -> None:
    assert set_name(golden) == name
