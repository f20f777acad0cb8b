"""The difference of two result lists: classes at their borders, the summary score, deltas and flags."""

from __future__ import annotations

import dataclasses
import math

import pytest

from ringtrue.errors import InputError
from ringtrue.stats import ranking_difference

TEN = [f"d{i}" for i in range(1, 11)]


def swapped(items: list[str], i: int, j: int) -> list[str]:
    copy = list(items)
    copy[i], copy[j] = copy[j], copy[i]
    return copy


def test_identical_lists_differ_in_nothing() -> None:
    change = ranking_difference(TEN, list(TEN))
    assert (change.tau, change.overlap, change.order_differences, change.top1_changed) == (1.0, 1.0, 0, False)
    assert (change.kind, change.score, change.flags) == ("identical", 0.0, ())


def test_two_empty_lists_are_identical() -> None:
    change = ranking_difference([], [])
    assert (change.kind, change.score, change.tau, change.top1_changed) == ("identical", 0.0, 1.0, False)


def test_one_swap_low_in_ten_is_minor() -> None:
    change = ranking_difference(TEN, swapped(TEN, 8, 9))
    assert change.tau == pytest.approx(1 - 2 / 45)
    assert (change.kind, change.order_differences, change.top1_changed) == ("minor", 2, False)
    assert change.score == pytest.approx(2 / 11)


def test_the_same_swap_at_the_top_is_major_and_weighs_more() -> None:
    change = ranking_difference(TEN, swapped(TEN, 0, 1))
    assert (change.kind, change.order_differences, change.top1_changed) == ("major", 2, True)
    assert change.score == pytest.approx(3 / 11)


def test_reversed_list_is_incompatible_though_it_holds_the_same_items() -> None:
    change = ranking_difference(TEN, TEN[::-1])
    assert (change.kind, change.tau, change.overlap) == ("incompatible", -1.0, 1.0)


def test_disjoint_lists_change_everything() -> None:
    change = ranking_difference(TEN, [f"x{i}" for i in range(10)])
    assert (change.kind, change.overlap, change.order_differences, change.score) == ("incompatible", 0.0, 10, 1.0)


def test_trap_42_one_shared_top_item_is_incompatible() -> None:
    assert ranking_difference(["a", "b", "c"], ["a", "x", "y"]).kind == "incompatible"


def test_empty_against_filled_is_incompatible_with_an_undefined_tau() -> None:
    change = ranking_difference([], ["a", "b"])
    assert math.isnan(change.tau)
    assert (change.kind, change.overlap, change.score, change.top1_changed) == ("incompatible", 0.0, 1.0, True)
    assert ranking_difference(["a"], []).kind == "incompatible"


def test_overlap_below_seventy_percent_is_at_least_major_even_with_a_tau_that_would_be_minor() -> None:
    items = [f"d{i}" for i in range(100)]
    lost_31, lost_30 = ranking_difference(items, items[:69], k=100), ranking_difference(items, items[:70], k=100)
    assert lost_31.tau >= 0.95
    assert (lost_31.overlap, lost_31.kind) == (0.69, "major")
    assert (lost_30.overlap, lost_30.kind) == (0.70, "minor")


def test_overlap_below_seventy_percent_does_not_soften_incompatible() -> None:
    change = ranking_difference(TEN, TEN[:3] + [f"x{i}" for i in range(7)])
    assert change.overlap < 0.70
    assert change.kind == "incompatible"


def test_identical_needs_both_the_order_and_ninety_five_percent_overlap() -> None:
    items = [f"d{i}" for i in range(100)]
    assert ranking_difference(items, items[:95], k=100).kind == "identical"
    assert ranking_difference(items, items[:94], k=100).kind == "minor"


def test_tau_of_exactly_ninety_five_percent_is_minor() -> None:
    # 16 items, 120 pairs: 3 discordant pairs give tau = 114/120 = 0.95.
    items = [f"d{i}" for i in range(16)]
    three_swaps = swapped(swapped(swapped(items, 2, 3), 6, 7), 10, 11)
    change = ranking_difference(items, three_swaps, k=16)
    assert (change.tau, change.kind) == (0.95, "minor")


def test_tau_of_exactly_eighty_five_percent_is_major() -> None:
    # 16 items, 120 pairs: 9 discordant pairs give tau = 102/120 = 0.85; the first item moves nine places down.
    items = [f"d{i}" for i in range(16)]
    change = ranking_difference(items, [*items[1:10], items[0], *items[10:]], k=16)
    assert (change.tau, change.kind) == (0.85, "major")
    assert ranking_difference(items, [*items[1:11], items[0], *items[11:]], k=16).kind == "incompatible"


def test_only_the_first_k_positions_count() -> None:
    assert ranking_difference([*TEN, "p"], [*TEN, "q"]).kind == "identical"
    assert ranking_difference([*TEN, "p"], [*TEN, "q"], k=11).order_differences == 1
    assert ranking_difference(["a", "b"], ["a", "c"], k=1).score == 0.0


def test_a_position_only_one_list_reaches_has_changed() -> None:
    change = ranking_difference(["a", "b", "c", "d"], ["a", "b"])
    assert change.order_differences == 2
    assert change.score == pytest.approx(2 / 5)


def test_an_item_that_is_none_differs_from_a_position_not_reached() -> None:
    assert ranking_difference(["a", None], ["a"]).order_differences == 1


def test_deltas_are_after_less_before_and_none_when_not_given() -> None:
    bare = ranking_difference(TEN, TEN)
    assert (bare.rr_delta, bare.ndcg_delta) == (None, None)
    change = ranking_difference(TEN, TEN, rr=(1.0, 0.5), ndcg=(0.25, 0.75))
    assert (change.rr_delta, change.ndcg_delta) == (-0.5, 0.5)


@pytest.mark.parametrize(("rr", "text"), [((1.0, 0.5), "fell by 0.500"), ((0.5, 0.54), "rose by 0.040")])
def test_reciprocal_rank_delta_beyond_three_hundredths_is_flagged_in_both_directions(
    rr: tuple[float, float], text: str
) -> None:
    flags = ranking_difference(TEN, TEN, rr=rr).flags
    assert len(flags) == 1
    assert text in flags[0]


@pytest.mark.parametrize("rr", [(0.50, 0.53), (0.53, 0.50), (0.1, 0.13), (0.5, 0.5)])
def test_reciprocal_rank_delta_of_exactly_three_hundredths_is_not_flagged(rr: tuple[float, float]) -> None:
    assert ranking_difference(TEN, TEN, rr=rr).flags == ()


def test_ndcg_delta_alone_is_not_flagged() -> None:
    assert ranking_difference(TEN, TEN, ndcg=(0.0, 1.0)).flags == ()


def test_an_undefined_measure_gives_an_undefined_delta_and_no_flag() -> None:
    change = ranking_difference(TEN, TEN, rr=(math.nan, 0.5))
    assert change.rr_delta is not None
    assert math.isnan(change.rr_delta)
    assert change.flags == ()


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match="ranking b holds 'a' more than once"):
        ranking_difference(["a"], ["a", "a"])
    with pytest.raises(InputError, match="k = 0"):
        ranking_difference(["a"], ["a"], k=0)
    with pytest.raises(InputError, match=r"ndcg = \(0.5, 1.31\) holds 1.31"):
        ranking_difference(["a"], ["a"], ndcg=(0.5, 1.31))


def test_the_record_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ranking_difference(["a"], ["a"]).tau = 0.0  # type: ignore[misc]
