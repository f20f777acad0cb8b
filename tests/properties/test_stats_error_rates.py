"""How often the tests err where nothing differs: a short run of the simulation, with fixed seeds.

A rate is compared with 0.05 within four standard errors of so many simulations. Where a test misses its level, the miss is
asserted too, so that this file says what is true of each: on skewed differences with few queries none of them holds it.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.stats import ErrorRate, error_rates, null_differences

SIMULATIONS = 1_500
Rates = dict[tuple[str, int, str], ErrorRate]


@pytest.fixture(scope="module")
def rates() -> Rates:
    found = error_rates(rng=np.random.default_rng(11), simulations=SIMULATIONS, resamples=1_999)
    return {(rate.shape, rate.n, rate.test): rate for rate in found}


ERROR = math.sqrt(0.05 * 0.95 / SIMULATIONS)
LOW, HIGH = 0.05 - 4 * ERROR, 0.05 + 4 * ERROR


def test_the_table_is_complete(rates: Rates) -> None:
    assert len(rates) == 4 * 3 * 6
    assert rates["gaussian", 15, "t"].standard_error == pytest.approx(ERROR)
    assert all(math.isnan(rate.coverage) for rate in rates.values() if rate.test in ("wilcoxon", "sign-flip", "verdict"))


@pytest.mark.parametrize("n", [15, 30, 100])
@pytest.mark.parametrize("test", ["t", "wilcoxon", "sign-flip"])
def test_gaussian_differences_give_one_false_alarm_in_twenty(rates: Rates, test: str, n: int) -> None:
    assert LOW < rates["gaussian", n, test].false_positives < HIGH


@pytest.mark.parametrize("n", [15, 30, 100])
def test_the_t_interval_of_gaussian_differences_holds_the_truth_as_often_as_it_says(rates: Rates, n: int) -> None:
    assert LOW < 1 - rates["gaussian", n, "t"].coverage < HIGH


@pytest.mark.parametrize("n", [15, 30, 100])
@pytest.mark.parametrize("shape", ["gaussian", "zero-inflated", "discrete"])
@pytest.mark.parametrize("test", ["t", "wilcoxon", "sign-flip", "verdict"])
def test_symmetric_differences_never_give_more_false_alarms_than_said(rates: Rates, test: str, shape: str, n: int) -> None:
    assert rates[shape, n, test].false_positives < HIGH


@pytest.mark.parametrize("shape", ["gaussian", "zero-inflated", "discrete"])
def test_from_100_queries_the_verdict_is_not_needlessly_shy(rates: Rates, shape: str) -> None:
    assert rates[shape, 100, "verdict"].false_positives > LOW - ERROR


@pytest.mark.parametrize(("n", "most"), [(15, 0.12), (30, 0.095), (100, HIGH)])
def test_bca_holds_the_truth_of_gaussian_differences_less_often_than_it_says_below_50(
    rates: Rates, n: int, most: float
) -> None:
    assert LOW < 1 - rates["gaussian", n, "bca"].coverage < most
    if n == 15:
        assert 1 - rates["gaussian", n, "bca"].coverage > HIGH  # hence the warning


def test_known_miss_bca_is_far_too_narrow_where_few_of_few_queries_change(rates: Rates) -> None:
    assert 1 - rates["zero-inflated", 15, "bca"].coverage > 0.12
    assert 1 - rates["zero-inflated", 100, "bca"].coverage < 0.10
    # The flips keep the verdict from following it.
    assert rates["zero-inflated", 15, "verdict"].false_positives < HIGH


def test_known_miss_no_test_holds_its_level_on_skewed_differences_of_15_queries(rates: Rates) -> None:
    for test in ("t", "wilcoxon", "sign-flip", "bca", "percentile", "verdict"):
        assert rates["skewed", 15, test].false_positives > HIGH, test


@pytest.mark.parametrize("n", [15, 30, 100])
def test_on_skewed_differences_the_verdict_errs_less_than_either_of_its_parts(rates: Rates, n: int) -> None:
    verdict = rates["skewed", n, "verdict"].false_positives
    assert verdict <= min(rates["skewed", n, part].false_positives for part in ("sign-flip", "bca"))
    assert verdict < {15: 0.16, 30: 0.11, 100: 0.085}[n]


def test_known_miss_wilcoxon_asks_another_question_and_gets_surer_with_more_skewed_queries(rates: Rates) -> None:
    found = [rates["skewed", n, "wilcoxon"].false_positives for n in (15, 30, 100)]
    assert found == sorted(found)
    assert found[-1] > 0.5


@pytest.mark.parametrize("shape", ["gaussian", "skewed", "zero-inflated", "discrete"])
def test_the_simulated_differences_have_a_true_mean_of_0(shape: str) -> None:
    data = null_differences(shape, 1_000, 400, np.random.default_rng(3))  # type: ignore[arg-type]
    assert abs(data.mean()) < 4.5 * data.std() / math.sqrt(data.size)


def test_the_same_rng_gives_the_same_table_and_an_unknown_shape_is_refused() -> None:
    options = {"simulations": 60, "shapes": ["discrete"], "sizes": [15], "resamples": 1_000}
    one, two = (error_rates(rng=np.random.default_rng(1), **options) for _ in range(2))  # type: ignore[arg-type]
    assert [rate.false_positives for rate in one] == [rate.false_positives for rate in two]
    with pytest.raises(InputError, match="'gaussian'"):
        null_differences("gausian", 5, 1, np.random.default_rng(1))  # type: ignore[arg-type]
