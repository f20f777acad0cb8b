"""Sizes with statistics, and the judgments that would settle most."""

from __future__ import annotations

import math

import pytest

from ringtrue.errors import InputError
from ringtrue.golden import plan, worth_judging
from ringtrue.records import GoldenSet, Judgment, Query, Run


def make(count: int, **metadata: str) -> GoldenSet:
    return GoldenSet("s", "1.0.0", tuple(Query(f"q{n}", "?", metadata) for n in range(count)), (Judgment("q0", "known", 1),))


def test_73_queries_detect_a_difference_of_5_points() -> None:
    assert plan(make(73)).overall.more == 0
    assert plan(make(72)).overall.more == 1
    assert plan(make(10)).overall.needed == 73


def test_trap_43_fifteen_queries_detect_0_117_not_0_10() -> None:
    detectable = plan(make(15)).overall.detectable
    assert detectable == pytest.approx(0.117, abs=0.0005)


def test_slices_are_planned_like_the_whole() -> None:
    queries = tuple(Query(f"q{n}", "?", {"query_type": "factual" if n < 15 else "sentiment"}) for n in range(16))
    sizes = {item.value: item.size for item in plan(GoldenSet("s", "1", queries, ())).slices}
    assert (sizes["factual"].queries, sizes["factual"].more) == (15, 58)
    assert sizes["sentiment"].detectable is None, "one query detects nothing, and that is not a number"


def test_queries_for_silence_do_not_count() -> None:
    queries = (*make(10).queries, Query("n", "?", negative=True))
    assert plan(GoldenSet("s", "1", queries, ())).overall.queries == 10


def test_impossible_options_are_refused() -> None:
    with pytest.raises(InputError):
        plan(make(10), difference=0)


def test_unjudged_documents_are_ranked_by_what_they_could_change() -> None:
    a = Run.from_rankings({"q0": ["new", "same", "known", "low"], "q9": ["x"]}, name="a")
    b = Run.from_rankings({"q0": ["other", "same", "known"]}, name="b")
    found = plan(make(1), runs=[a, b]).unjudged
    assert [(item.doc_id, round(item.weight, 3)) for item in found] == [
        ("new", 1.0),
        ("other", 1.0),
        ("low", 0.431),
        ("same", 0.0),
    ]
    assert found[3].ranks == {"a": 2, "b": 2}


def test_weight_is_the_difference_of_discounts_within_k() -> None:
    a = Run.from_rankings({"q0": ["x", "y"]}, name="a")
    b = Run.from_rankings({"q0": ["y", "x"]}, name="b")
    assert [item.weight for item in worth_judging(make(1), [a, b])] == pytest.approx(2 * [1 - 1 / math.log2(3)])
    assert [item.weight for item in worth_judging(make(1), [a, b], k=1)] == [1.0, 1.0]
    assert [item.weight for item in worth_judging(make(1), [a])] == pytest.approx([1.0, 1 / math.log2(3)])


def test_runs_of_one_name_are_refused() -> None:
    run = Run.from_rankings({"q0": ["x"]})
    with pytest.raises(InputError, match="two runs are called 'run'"):
        worth_judging(make(1), [run, run])
