"""Ranges, symmetries and invariances that hold for every input of the statistics room."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringtrue.stats import (
    cohen_kappa,
    jaccard,
    kendall_tau_b,
    krippendorff_alpha,
    minimum_detectable_effect,
    paired_power,
    paired_sample_size,
    ranking_difference,
    ranking_spearman,
    ranking_tau_b,
    rbo,
    spearman_rho,
)

rankings = st.lists(st.integers(0, 14), unique=True, max_size=12)
number_pairs = st.lists(st.tuples(st.integers(-5, 5), st.floats(-3, 3, width=16)), max_size=25)
grades = st.one_of(st.none(), st.integers(0, 3))
label_pairs = st.lists(st.tuples(grades, grades), max_size=25)
measures = st.floats(-1e6, 1e6)
levels = st.sampled_from(["nominal", "ordinal", "interval"])


def same(x: float, y: float) -> bool:
    return x == pytest.approx(y, abs=1e-9, nan_ok=True)


@given(number_pairs)
def test_correlations_stay_in_range_are_symmetric_and_change_sign_with_the_order(
    pairs: list[tuple[int, float]],
) -> None:
    x, y = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    for coefficient in (kendall_tau_b, spearman_rho):
        value = coefficient(x, y)
        assert math.isnan(value) or -1 <= value <= 1
        assert same(value, coefficient(y, x))
        assert same(value, -coefficient([-v for v in x], y))
        assert same(coefficient(x, x), 1.0 if len(set(x)) > 1 else math.nan)


@given(rankings, rankings)
def test_ranking_coefficients_stay_in_range_and_are_symmetric(a: list[int], b: list[int]) -> None:
    for coefficient in (ranking_tau_b, ranking_spearman):
        value = coefficient(a, b)
        assert math.isnan(value) == ((not a) != (not b))
        assert math.isnan(value) or -1 <= value <= 1
        assert same(value, coefficient(b, a))
    for overlap in (rbo, jaccard):
        assert 0 <= overlap(a, b) <= 1
        assert same(overlap(a, b), overlap(b, a))


@given(rankings, rankings)
def test_trap_42_tau_is_one_only_for_identical_lists_or_a_list_one_item_shorter(a: list[int], b: list[int]) -> None:
    # One item missing at the very end is tied with nothing and still comes last: the same order over the union.
    short, long = sorted((a, b), key=len)
    expected = a == b or (len(short) > 0 and long[:-1] == short)
    assert (ranking_tau_b(a, b) == 1.0) == expected


@given(rankings, st.floats(0.01, 0.99))
def test_every_agreement_of_a_list_with_itself_is_exactly_one(a: list[int], p: float) -> None:
    assert ranking_tau_b(a, a) == ranking_spearman(a, a) == rbo(a, a, p=p) == jaccard(a, a) == 1.0


@given(rankings, rankings, st.integers(1, 12))
def test_ranking_difference_is_symmetric_in_range_and_zero_only_for_the_same_list(a: list[int], b: list[int], k: int) -> None:
    change, back = ranking_difference(a, b, k=k), ranking_difference(b, a, k=k)
    assert 0 <= change.score <= 1
    assert (change.score == 0) == (a[:k] == b[:k])
    assert (change.kind, change.score, change.order_differences) == (back.kind, back.score, back.order_differences)
    assert change.overlap >= 0.70 or change.kind in ("major", "incompatible")
    assert change.top1_changed == (a[:1] != b[:1])


@given(label_pairs, st.sampled_from([None, "linear", "quadratic"]))
def test_cohen_kappa_is_symmetric_and_at_most_one(pairs, weights) -> None:  # type: ignore[no-untyped-def]
    a, b = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    kappa, back = cohen_kappa(a, b, weights=weights), cohen_kappa(b, a, weights=weights)
    assert same(kappa.coefficient, back.coefficient)
    assert kappa.items == sum(x is not None and y is not None for x, y in pairs)
    if kappa.defined:
        assert -1 - 1e-12 <= kappa.coefficient <= 1
        assert (kappa.coefficient == 1) == all(x == y for x, y in pairs if x is not None and y is not None)


@given(st.lists(st.lists(grades, min_size=6, max_size=6), min_size=2, max_size=4), levels, st.randoms())
def test_krippendorff_alpha_is_at_most_one_and_blind_to_the_order_of_raters_and_items(  # type: ignore[no-untyped-def]
    ratings, level, random
) -> None:
    alpha = krippendorff_alpha(ratings, level=level)
    assert not alpha.defined or alpha.coefficient <= 1
    items = list(zip(*ratings, strict=True))
    random.shuffle(items)
    shuffled = [list(row) for row in zip(*items, strict=True)][::-1]
    assert same(alpha.coefficient, krippendorff_alpha(shuffled, level=level).coefficient)


@settings(max_examples=40)
@given(st.integers(2, 5000), st.floats(0.001, 0.2), st.floats(0.3, 0.99), st.floats(0.01, 10))
def test_the_three_planning_functions_invert_each_other(n: int, alpha: float, power: float, sd: float) -> None:
    effect = minimum_detectable_effect(n=n, sd=sd, alpha=alpha, power=power)
    assert paired_power(n=n, sd=sd, difference=effect, alpha=alpha) == pytest.approx(power, abs=1e-9)
    assert paired_sample_size(sd=sd, difference=effect * (1 + 1e-9), alpha=alpha, power=power) == n


@given(st.integers(2, 10**7), st.floats(0, 10), st.floats(1e-6, 0.5))
def test_power_lies_between_alpha_and_one_and_grows_with_the_difference(n: int, shift: float, alpha: float) -> None:
    power = paired_power(n=n, sd=1.0, difference=shift / math.sqrt(n), alpha=alpha)
    more = paired_power(n=n, sd=1.0, difference=(shift + 0.1) / math.sqrt(n), alpha=alpha)
    assert alpha * (1 - 1e-6) <= power <= more + 1e-12 <= 1 + 1e-12
