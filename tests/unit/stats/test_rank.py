"""Agreement of two rankings: against scipy, against the definitions, and on published examples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats as scipy_stats

from ringtrue.errors import InputError
from ringtrue.stats import jaccard, kendall_tau_b, ranking_spearman, ranking_tau_b, rbo, spearman_rho

RNG_SEED = 20240501


def tau_b_by_definition(x: Sequence[float], y: Sequence[float]) -> float:
    concordant = discordant = tied_x = tied_y = 0
    for i, j in itertools.combinations(range(len(x)), 2):
        product = (x[i] - x[j]) * (y[i] - y[j])
        concordant += product > 0
        discordant += product < 0
        tied_x += x[i] == x[j]
        tied_y += y[i] == y[j]
    pairs = len(x) * (len(x) - 1) // 2
    return (concordant - discordant) / math.sqrt((pairs - tied_x) * (pairs - tied_y))


def rbo_ext_by_summing_the_assumed_agreement(a: Sequence[str], b: Sequence[str], p: float) -> float:
    """The infinite sum itself, cut where its weights vanish, with the agreement the paper assumes below the lists."""
    short, long = sorted((list(a), list(b)), key=len)
    s, n = len(short), len(long)
    rate = len(set(short) & set(long[:s])) / s
    total = 0.0
    for depth in range(1, 4000):
        seen = min(depth, n)
        shared = len(set(short[:seen]) & set(long[:seen]))
        agreement = (shared + rate * max(0, seen - s)) / seen
        total += (1 - p) * p ** (depth - 1) * agreement
    return total


@pytest.mark.parametrize("values", [3, 10, 1000])
@pytest.mark.parametrize("n", [2, 3, 7, 64, 501])
def test_kendall_tau_b_equals_scipy_with_many_few_and_no_ties(n: int, values: int) -> None:
    rng = np.random.default_rng(RNG_SEED + n + values)
    for _ in range(10):
        x, y = rng.integers(0, values, n), rng.integers(0, values, n)
        expected = scipy_stats.kendalltau(x, y).statistic
        assert kendall_tau_b(x, y) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_kendall_tau_b_equals_the_definition_on_all_small_inputs() -> None:
    for x in itertools.product(range(3), repeat=3):
        for y in itertools.product(range(3), repeat=3):
            if len(set(x)) > 1 and len(set(y)) > 1:
                assert kendall_tau_b(x, y) == pytest.approx(tau_b_by_definition(x, y), abs=1e-14)


def test_kendall_tau_b_of_real_numbers_and_infinities_uses_only_their_order() -> None:
    assert kendall_tau_b([0.1, -math.inf, 7.5, math.inf], [2, 1, 3, 4]) == 1.0


def test_kendall_tau_b_stays_exact_where_pairs_outnumber_32_bits() -> None:
    n = 200_000
    order = np.arange(n)
    assert kendall_tau_b(order, order) == 1.0
    assert kendall_tau_b(order, order[::-1]) == -1.0
    rng = np.random.default_rng(RNG_SEED)
    x, y = rng.random(n), rng.integers(0, 50, n)
    assert kendall_tau_b(x, y) == pytest.approx(scipy_stats.kendalltau(x, y).statistic, abs=1e-12)


@pytest.mark.parametrize("coefficient", [kendall_tau_b, spearman_rho])
@pytest.mark.parametrize(("x", "y"), [([], []), ([1], [2]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [5, 5, 5])])
def test_correlation_with_a_constant_side_is_undefined_not_zero(coefficient, x, y) -> None:  # type: ignore[no-untyped-def]
    assert math.isnan(coefficient(x, y))


@pytest.mark.parametrize("coefficient", [kendall_tau_b, spearman_rho])
def test_correlation_refuses_what_has_no_order(coefficient) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="x has 2 values and y has 3"):
        coefficient([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match=r"y\[1\] is nan"):
        coefficient([1, 2], [1, math.nan])
    with pytest.raises(InputError, match="numbers only"):
        coefficient(["a", "b"], [1, 2])
    with pytest.raises(InputError, match="dimensions"):
        coefficient([[1, 2], [3, 4]], [1, 2])


def test_correlation_does_not_change_its_inputs() -> None:
    x, y = np.array([3.0, 1.0, 2.0]), np.array([1.0, 3.0, 2.0])
    kendall_tau_b(x, y)
    spearman_rho(x, y)
    assert x.tolist() == [3.0, 1.0, 2.0]
    assert y.tolist() == [1.0, 3.0, 2.0]


@pytest.mark.parametrize("values", [3, 1000])
@pytest.mark.parametrize("n", [2, 7, 64, 501])
def test_spearman_rho_equals_scipy_with_and_without_ties(n: int, values: int) -> None:
    rng = np.random.default_rng(RNG_SEED + n * values)
    for _ in range(10):
        x, y = rng.integers(0, values, n), rng.integers(0, values, n)
        if len(set(x.tolist())) > 1 and len(set(y.tolist())) > 1:
            assert spearman_rho(x, y) == pytest.approx(scipy_stats.spearmanr(x, y).statistic, abs=1e-12)


def test_spearman_rho_of_the_wikipedia_example_iq_and_hours_of_television() -> None:
    # Wikipedia, "Spearman's rank correlation coefficient", worked example: rho = -29/165.
    iq = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]
    hours = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]
    assert spearman_rho(iq, hours) == pytest.approx(-29 / 165, abs=1e-15)


def test_trap_42_one_shared_item_is_not_perfect_agreement() -> None:
    for coefficient in (ranking_tau_b, ranking_spearman):
        assert coefficient(["a", "b", "c"], ["a", "x", "y"]) < 0.5
        assert coefficient(["a", "b"], ["c", "a"]) < 0
        assert coefficient(["a", "b", "c", "d"], ["x", "y", "z", "d"]) < 0


def test_ranking_tau_b_ties_absent_items_below_the_list() -> None:
    # Union a b c d; absent is rank 4: a-side 1 2 3 4, b-side 1 4 2 3. Of 6 pairs 2 are discordant.
    assert ranking_tau_b(["a", "b", "c"], ["a", "c", "d"]) == pytest.approx(2 / 6)
    # Disjoint pairs: 4 cross pairs discordant, one pair tied on each side, 6 - 1 untied on each.
    assert ranking_tau_b(["a", "b"], ["c", "d"]) == pytest.approx(-4 / 5)


def test_ranking_correlations_equal_scipy_over_the_union() -> None:
    rng = np.random.default_rng(RNG_SEED)
    for _ in range(50):
        k = int(rng.integers(2, 12))
        a, b = rng.permutation(15)[:k].tolist(), rng.permutation(15)[: int(rng.integers(1, k + 1))].tolist()
        union = sorted(set(a) | set(b))
        ranks_a = [a.index(item) + 1 if item in a else k + 1 for item in union]
        ranks_b = [b.index(item) + 1 if item in b else k + 1 for item in union]
        assert ranking_tau_b(a, b) == pytest.approx(scipy_stats.kendalltau(ranks_a, ranks_b).statistic, abs=1e-12)
        assert ranking_spearman(a, b) == pytest.approx(scipy_stats.spearmanr(ranks_a, ranks_b).statistic, abs=1e-12)


@pytest.mark.parametrize("coefficient", [ranking_tau_b, ranking_spearman])
def test_ranking_correlation_of_identical_lists_is_exactly_one(coefficient) -> None:  # type: ignore[no-untyped-def]
    assert coefficient([], []) == 1.0
    assert coefficient(["a"], ["a"]) == 1.0
    assert coefficient(list(range(37)), list(range(37))) == 1.0


@pytest.mark.parametrize("coefficient", [ranking_tau_b, ranking_spearman])
def test_ranking_correlation_of_an_empty_and_a_filled_list_is_undefined(coefficient) -> None:  # type: ignore[no-untyped-def]
    assert math.isnan(coefficient([], ["a"]))
    assert math.isnan(coefficient(["a", "b", "c"], []))


@pytest.mark.parametrize("coefficient", [ranking_tau_b, ranking_spearman])
def test_ranking_correlation_cuts_both_lists_at_k(coefficient) -> None:  # type: ignore[no-untyped-def]
    a, b = ["a", "b", "c", "d"], ["a", "b", "d", "c"]
    assert coefficient(a, b) < 1.0
    assert coefficient(a, b, k=2) == 1.0
    assert coefficient(a, b, k=3) == coefficient(a[:3], b[:3])
    assert coefficient(a, b, k=99) == coefficient(a, b)
    assert coefficient(a, b, k=np.int64(2)) == 1.0


@pytest.mark.parametrize("k", [0, -1, 2.5, "3"])
def test_ranking_correlation_refuses_an_impossible_k(k) -> None:  # type: ignore[no-untyped-def]
    for coefficient in (ranking_tau_b, ranking_spearman):
        with pytest.raises(InputError, match="whole number from 1"):
            coefficient(["a"], ["a"], k=k)


@pytest.mark.parametrize("measure", [ranking_tau_b, ranking_spearman, rbo, jaccard])
def test_every_ranking_function_names_a_repeated_id_and_its_list(measure) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="ranking a holds 'd7' more than once"):
        measure(["d1", "d7", "d2", "d7"], ["d1"])
    with pytest.raises(InputError, match="ranking b holds 3 more than once"):
        measure([1], [3, 3])


@pytest.mark.parametrize("measure", [ranking_tau_b, ranking_spearman, rbo, jaccard])
def test_every_ranking_function_refuses_a_bare_text(measure) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="ranking b is the text 'd12'"):
        measure(["d1"], "d12")


def test_a_repeated_id_below_k_is_an_error_too() -> None:
    with pytest.raises(InputError, match="'a' more than once"):
        ranking_tau_b(["a", "b", "a"], ["a"], k=1)


@pytest.mark.parametrize(
    ("a", "b", "p", "expected"),
    [
        # README of b4ny4n/rankmeasures.
        (["1", "2", "3", "4", "5"], ["2", "3", "4", "1", "5"], 0.9, 0.828),
        # Doctest of dlukes/rbo.
        (list("abcdefg"), list("bacdefg"), 0.9, 0.9),
        # By hand: agreements 0, 1, 1, ... weigh 0.1, and the rest 0.9.
        (["a", "b"], ["b", "a"], 0.9, 0.9),
        # A list and its beginning agree as far as both are known.
        (list("abcdefghij"), list("abc"), 0.9, 1.0),
        (list("abcde"), list("fghij"), 0.9, 0.0),
        (["a"], ["b"], 0.5, 0.0),
    ],
)
def test_rbo_of_published_and_hand_made_examples(a: list[str], b: list[str], p: float, expected: float) -> None:
    assert rbo(a, b, p=p) == pytest.approx(expected, abs=5e-4)


def test_rbo_of_the_lists_in_figure_5_of_the_paper() -> None:
    # Webber, Moffat, Zobel (2010), figure 5: agreement at depths 1 to 7 of <a b c d e f g> and <z c a v w x y>.
    agreements = [0, 0, 2 / 3, 2 / 4, 2 / 5, 2 / 6, 2 / 7]
    p = 0.9
    expected = sum((1 - p) * p**d * agreement for d, agreement in enumerate(agreements)) + agreements[-1] * p**7
    assert rbo(list("abcdefg"), list("zcavwxy"), p=p) == pytest.approx(expected, abs=1e-14)


def test_rbo_equals_the_sum_it_stands_for_on_random_lists_of_uneven_length() -> None:
    rng = np.random.default_rng(RNG_SEED)
    for _ in range(60):
        items = [f"d{i}" for i in range(20)]
        a = [str(item) for item in rng.permutation(items)[: int(rng.integers(1, 15))]]
        b = [str(item) for item in rng.permutation(items)[: int(rng.integers(1, 15))]]
        p = float(rng.uniform(0.1, 0.98))
        assert rbo(a, b, p=p) == pytest.approx(rbo_ext_by_summing_the_assumed_agreement(a, b, p), abs=1e-10)


def test_rbo_of_empty_lists() -> None:
    assert rbo([], []) == 1.0
    assert rbo([], ["a"]) == 0.0
    assert rbo(["a"], []) == 0.0


def test_rbo_of_identical_lists_is_exactly_one_whatever_p() -> None:
    for p in (1e-300, 0.1, 0.9, 1 - 1e-16):
        assert rbo(list(range(50)), list(range(50)), p=p) == 1.0


def test_rbo_weighs_the_top_more_than_the_bottom() -> None:
    base = list("abcdefghij")
    assert rbo(base, list("bacdefghij")) < rbo(base, list("abcdefghji"))


@pytest.mark.parametrize("p", [0, 1, -0.1, 1.5, math.nan])
def test_rbo_refuses_a_p_outside_zero_to_one(p: float) -> None:
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        rbo(["a"], ["b"], p=p)


def test_jaccard_of_two_lists() -> None:
    assert jaccard([], []) == 1.0
    assert jaccard([], ["a"]) == 0.0
    assert jaccard(["a", "b"], ["b", "a"]) == 1.0
    assert jaccard({"a", "b"}, {"b", "c", "d"}) == 0.25
