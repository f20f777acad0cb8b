"""Figures about how answers came to be, on examples small enough to count by hand."""

from __future__ import annotations

import math

import pytest

from ringtrue.measures import (
    channel_contribution,
    error_rate,
    error_rate_by,
    expansion_impact,
    fusion_reorder_rate,
    latency,
)
from ringtrue.records import Hit, Ranking

FUSED = [
    Ranking(
        "q1", (Hit("a", channels={"bm25": 1, "dense": 3}), Hit("b", channels={"dense": 1}), Hit("c", channels={"bm25": 2}))
    ),
    Ranking("q2", (Hit("d", channels={"bm25": 1}),)),
]


def test_channels_are_counted_by_the_hits_they_brought_and_brought_alone() -> None:
    found = channel_contribution(FUSED)
    assert (found["bm25"].hits, found["bm25"].rate, found["bm25"].unique_rate) == (3, 3 / 4, 2 / 4)
    assert (found["dense"].hits, found["dense"].rate, found["dense"].unique_rate) == (2, 2 / 4, 1 / 4)


def test_only_the_first_k_hits_count_as_contribution() -> None:
    found = channel_contribution(FUSED, k=1)
    assert found["bm25"].rate == 1.0
    assert found["dense"].rate == 0.5
    assert found["dense"].unique_rate == 0.0


def test_no_answer_has_no_channels() -> None:
    assert channel_contribution([]) == {}


def test_reorder_rate_is_the_share_whose_rank_differs_from_its_best_channel_rank() -> None:
    # a: 1 against 1, b: 2 against 1, c: 3 against 2, d: 1 against 1.
    assert fusion_reorder_rate(FUSED) == 2 / 4
    assert fusion_reorder_rate(FUSED, k=1) == 0.0


def test_hits_without_channel_ranks_say_nothing_about_reordering() -> None:
    assert math.isnan(fusion_reorder_rate([Ranking("q", (Hit("a"),))]))


def test_expansion_impact_is_the_share_found_only_after_it() -> None:
    before, after = {"q1": ["a", "b"]}, {"q1": ["a", "c"], "q2": ["d"]}
    assert expansion_impact(before, after) == 2 / 3
    assert expansion_impact(before, after, relevant={"q1": {"a", "c"}}) == 1 / 2
    assert math.isnan(expansion_impact(before, after, relevant={}))


def test_latency_percentiles_interpolate_and_leave_unknown_ones_out() -> None:
    found = latency([None, *map(float, range(1, 101))])
    assert (found.count, found.mean, found.p50) == (100, 50.5, 50.5)
    assert (found.p95, found.p99) == (pytest.approx(95.05), pytest.approx(99.01))


def test_trap_08_latency_of_nothing_is_not_0() -> None:
    found = latency([None])
    assert found.count == 0
    assert all(math.isnan(value) for value in (found.mean, found.p50, found.p95, found.p99))


def test_error_rate_overall_and_per_intent() -> None:
    answers = [Ranking("a", ()), Ranking("b", (), error="timeout"), Ranking("c", (), error="refused"), Ranking("d", ())]
    facts = {"a": {"intent": "fix_bug"}, "b": {"intent": "fix_bug"}, "c": {"intent": "understand"}}
    assert error_rate(answers) == 0.5
    assert error_rate_by(answers, facts, "intent") == {"(none)": 0.0, "fix_bug": 0.5, "understand": 1.0}
    assert math.isnan(error_rate([]))
