"""Pools, who brought what, and which run the judgments are unfair to."""

from __future__ import annotations

import pytest

from ringtrue.errors import InputError
from ringtrue.golden import pool
from ringtrue.records import Qrels, Run

A = Run.from_rankings({"q1": ["d1", "d2", "d3"], "q2": ["d1"]}, name="a")
B = Run.from_rankings({"q1": ["d2", "d4", "d5"]}, name="b")


def test_pool_is_the_union_of_the_tops_best_rank_first() -> None:
    found = pool([A, B], depth=2)
    assert found.pairs == {"q1": ("d1", "d2", "d4"), "q2": ("d1",)}
    assert len(found) == 4
    assert pool([A, B]).pairs["q1"] == ("d1", "d2", "d4", "d3", "d5")


def test_contribution_per_run() -> None:
    qrels = Qrels.from_dict({"q1": {"d1": 1, "d2": 0, "d4": -1}})
    first, second = pool([A, B], qrels, depth=2).contributions
    assert (first.run, first.total, first.unique) == ("a", 3, 2)
    assert first.unjudged_share == pytest.approx(1 / 3)
    assert (second.total, second.unique, second.unjudged_share) == (2, 1, 0.5), "a grade below 0 is pooled, not judged"


def test_trap_8_share_without_judgments_is_unknown() -> None:
    assert pool([A]).contributions[0].unjudged_share is None


def test_run_without_answers_is_warned_about() -> None:
    empty = Run.from_rankings({"q1": []}, name="empty")
    assert [text for text in pool([A, empty]).warnings if "'empty' contributed nothing" in text]


def test_run_whose_own_finds_nobody_judged_is_warned_about() -> None:
    qrels = Qrels.from_dict({"q1": {"d1": 1, "d2": 1, "d3": 0}, "q2": {"d1": 1}})
    (warning,) = pool([A, B], qrels).warnings
    assert "run 'b' contributed nothing to the judgments" in warning
    assert "none of the 2 documents" in warning
    assert pool([A, B]).warnings == ()


@pytest.mark.parametrize(
    ("runs", "depth", "told"),
    [([], 10, "at least one run"), ([A], 0, "depth 0"), ([A, A], 5, "two runs are called 'a'")],
)
def test_impossible_pools_are_refused(runs: list[Run], depth: int, told: str) -> None:
    with pytest.raises(InputError, match=told):
        pool(runs, depth=depth)
