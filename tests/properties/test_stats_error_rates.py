"""How often the tests err where nothing differs: a short run of ``make simulate``, with fixed seeds.

A rate is compared with 0.05 within four standard errors of so many simulations. Where a test misses its level, the miss is
asserted too, so that this file says what is true of each: strong skewness that few queries do not show defeats all of them.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from error_rates import (
    SHAPES,
    SIZES,
    SPREAD,
    SYMMETRIC,
    ErrorRate,
    error_rates,
    family_error_rates,
    null_differences,
    power_rates,
)

SIMULATIONS = 1_500
Rates = dict[tuple[str, int, str], ErrorRate]


@pytest.fixture(scope="module")
def rates() -> Rates:
    found = error_rates(rng=np.random.default_rng(11), simulations=SIMULATIONS)
    return {(rate.shape, rate.n, rate.test): rate for rate in found}


ERROR = math.sqrt(0.05 * 0.95 / SIMULATIONS)
LOW, HIGH = 0.05 - 4 * ERROR, 0.05 + 4 * ERROR


def test_the_table_is_complete(rates: Rates) -> None:
    assert len(rates) == 6 * 4 * 7
    assert rates["gaussian", 15, "t"].standard_error == pytest.approx(ERROR)
    assert all(math.isnan(rate.coverage) for rate in rates.values() if rate.test in ("wilcoxon", "sign-flip", "verdict"))


def test_no_test_gives_more_false_alarms_than_said_where_its_assumption_holds(rates: Rates) -> None:
    bound = [rate for rate in rates.values() if rate.claimed]
    assert {rate.test for rate in bound} == {"t", "wilcoxon", "sign-flip", "interval", "verdict"}
    assert {rate.shape for rate in bound if rate.test == "verdict"} == {*SYMMETRIC, "skewed"}
    assert [(rate.shape, rate.n, rate.test) for rate in bound if rate.false_positives > HIGH] == []


def test_the_reported_interval_holds_the_truth_in_94_of_100_cases(rates: Rates) -> None:
    tolerance = 3 * math.sqrt(0.94 * 0.06 / SIMULATIONS)
    bound = [rate for rate in rates.values() if rate.test == "interval" and rate.claimed]
    assert len(bound) == 4 * len(SIZES)
    assert [(rate.shape, rate.n) for rate in bound if rate.coverage < 0.94 - tolerance] == []
    # A test with so much room proves little for one cell; over all of them the mean has none to speak of.
    assert np.mean([rate.coverage for rate in bound]) > 0.95


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("test", ["t", "wilcoxon", "sign-flip"])
def test_gaussian_differences_give_one_false_alarm_in_twenty(rates: Rates, test: str, n: int) -> None:
    assert LOW < rates["gaussian", n, test].false_positives < HIGH


@pytest.mark.parametrize("n", SIZES)
def test_the_t_interval_of_gaussian_differences_holds_the_truth_as_often_as_it_says(rates: Rates, n: int) -> None:
    assert LOW < 1 - rates["gaussian", n, "t"].coverage < HIGH


@pytest.mark.parametrize("shape", SYMMETRIC)
def test_from_100_queries_the_verdict_is_not_needlessly_shy(rates: Rates, shape: str) -> None:
    assert rates[shape, 100, "verdict"].false_positives > LOW - ERROR


@pytest.mark.parametrize("n", [15, 30])
def test_below_50_queries_bca_is_too_narrow_and_the_reported_interval_is_not(rates: Rates, n: int) -> None:
    assert rates["zero-inflated", n, "bca"].coverage < 0.89
    assert rates["zero-inflated", n, "interval"].coverage > 0.94
    assert rates["skewed", n, "bca"].coverage < 0.94 < rates["skewed", n, "interval"].coverage


def test_known_miss_no_test_holds_its_level_on_strongly_skewed_differences_of_15_queries(rates: Rates) -> None:
    for test in ("t", "wilcoxon", "sign-flip", "bca", "percentile"):
        assert rates["strongly skewed", 15, test].false_positives > 0.12, test
    assert 0.05 < rates["strongly skewed", 15, "verdict"].false_positives < 0.11


@pytest.mark.parametrize(("n", "most"), [(30, 0.09), (50, 0.08), (100, HIGH)])
def test_the_more_strongly_skewed_queries_the_fewer_false_verdicts(rates: Rates, n: int, most: float) -> None:
    verdict = rates["strongly skewed", n, "verdict"].false_positives
    assert verdict < most
    assert verdict < rates["strongly skewed", n, "sign-flip"].false_positives - 0.02


def test_known_miss_losses_too_rare_to_have_been_seen_are_not_reckoned_with(rates: Rates) -> None:
    assert rates["rare losses", 30, "interval"].coverage < 0.90
    assert rates["rare losses", 100, "verdict"].false_positives < HIGH
    assert rates["rare losses", 30, "verdict"].false_positives < 0.11


def test_known_miss_wilcoxon_asks_another_question_and_gets_surer_with_more_skewed_queries(rates: Rates) -> None:
    found = [rates["strongly skewed", n, "wilcoxon"].false_positives for n in SIZES]
    assert found == sorted(found)
    assert found[-1] > 0.5


def test_corrections_keep_a_comparison_of_five_measures_at_its_level() -> None:
    for shape in ("gaussian", "skewed"):
        found = family_error_rates(shape, 30, rng=np.random.default_rng(5), simulations=1_000)
        assert found["none"] > 0.12
        assert found["holm"] <= found["benjamini-hochberg"] < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 1_000)


@pytest.mark.parametrize(("n", "least"), [(15, 0.22), (30, 0.50), (50, 0.73), (100, 0.95)])
def test_the_verdict_gives_away_little_power(n: int, least: float) -> None:
    found = power_rates("gaussian", n, rng=np.random.default_rng(5), simulations=1_000)
    assert found["verdict"] > least
    assert found["sign-flip and bca"] - found["verdict"] < 0.06


@pytest.mark.parametrize("shape", SHAPES)
def test_the_simulated_differences_have_a_true_mean_of_0_and_the_spread_written_down(shape: str) -> None:
    data = null_differences(shape, 1_000, 400, np.random.default_rng(3))  # type: ignore[arg-type]
    assert abs(data.mean()) < 4.5 * data.std() / math.sqrt(data.size)
    assert data.std() == pytest.approx(SPREAD[shape], rel=0.05)


def test_the_same_rng_gives_the_same_table() -> None:
    options = {"simulations": 60, "shapes": ["discrete"], "sizes": [15], "resamples": 1_000}
    one, two = (error_rates(rng=np.random.default_rng(1), **options) for _ in range(2))  # type: ignore[arg-type]
    assert [rate.false_positives for rate in one] == [rate.false_positives for rate in two]
