"""How often sequential tests err when looked at after every query: a short run of ``benchmarks/sequential.py``.

Rates are compared within three standard errors of so many simulations; docs/sequential.md holds the long run.
"""

from __future__ import annotations

import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.stats import (
    SequentialPlan,
    SequentialRate,
    allowed_share,
    broken_promises,
    first_decisions,
    sequential_rates,
)
from ringtrue.stats.sequential import BURN_IN, variance_so_far, wald_bounds
from ringtrue.stats.sequential_simulation import METHODS, SEQUENTIAL_SHAPES, sequential_differences

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from sequential_rates import by_wald_alone, peeking_rate, rare_loss_rates

SIMULATIONS = 600
PLAN = SequentialPlan()
Rates = dict[tuple[str, str], SequentialRate]


def by_cell(rates: tuple[SequentialRate, ...]) -> Rates:
    return {(rate.shape, rate.method): rate for rate in rates}


@pytest.fixture(scope="module")
def rates() -> Rates:
    others = {"sprt, sigma known": partial(by_wald_alone, sd=0.2), "no variance": by_wald_alone}
    return by_cell(sequential_rates(seed=11, simulations=SIMULATIONS, most=1_000, others=others))


def error(share: float) -> float:
    return 3 * math.sqrt(share * (1 - share) / SIMULATIONS)


def test_the_table_is_complete(rates: Rates) -> None:
    assert set(rates) == {
        (shape, method) for shape in SEQUENTIAL_SHAPES for method in (*METHODS, "sprt, sigma known", "no variance")
    }
    assert {"gaussian", "zero-inflated", "discrete"} < set(SEQUENTIAL_SHAPES)


@pytest.mark.parametrize("shape", SEQUENTIAL_SHAPES)
@pytest.mark.parametrize("method", METHODS)
def test_false_accepts_stay_within_alpha_and_power_reaches_what_beta_says(rates: Rates, shape: str, method: str) -> None:
    rate = rates[shape, method]
    assert rate.false_accept <= 0.05  # both are below it by more than chance moves 600 simulations
    assert rate.power >= 0.80
    assert rate.power + rate.missed <= 1
    assert 30 <= rate.queries_without < 250
    assert 30 <= rate.queries_with < 250


def test_trap_19_sprt_without_variance_accepts_a_null_treatment_a_third_of_the_time_and_ours_does_not(rates: Rates) -> None:
    found = {shape: rates[shape, "no variance"].false_accept for shape in SEQUENTIAL_SHAPES}
    assert 0.31 <= float(np.mean(list(found.values()))) <= 0.35
    assert all(0.29 - error(0.29) < share < 0.36 + error(0.36) for share in found.values()), found
    assert max(rates[shape, "sprt"].false_accept for shape in SEQUENTIAL_SHAPES) <= PLAN.alpha


def test_a_steady_gain_that_hides_a_rare_large_loss_keeps_alpha() -> None:
    rates = rare_loss_rates(seed=4, simulations=SIMULATIONS, most=1_500)
    assert {rate.method for rate in rates} == set(METHODS)
    assert all(rate.false_accept <= allowed_share(PLAN, SIMULATIONS) for rate in rates), rates


@pytest.mark.parametrize(("delta", "gain"), [(0.05, 0.10), (0.02, 0.05), (0.01, 0.02)])
def test_walds_ratio_alone_does_not_see_through_rare_losses_and_the_test_does(delta: float, gain: float) -> None:
    plan = SequentialPlan(delta=delta)
    differences = gain - (np.random.default_rng(8).random((1_500, 1_000)) < gain)
    n = np.arange(1, 1_501)[:, None]
    totals, squares = np.cumsum(differences, axis=0), np.cumsum(differences**2, axis=0)
    ratios = plan.delta / variance_so_far(n, totals, squares) * (totals - n * plan.delta / 2)
    upper, lower = wald_bounds(plan)
    beyond = ((ratios >= upper) | (ratios <= lower)) & (n >= BURN_IN)
    alone = ratios[beyond.argmax(axis=0), np.arange(1_000)] >= upper
    proven = first_decisions(differences, "sprt", plan=plan)[0]
    assert (alone & beyond.any(axis=0)).mean() > allowed_share(plan, 1_000)
    assert (proven == 1).mean() <= allowed_share(plan, 1_000)


def test_wider_differences_keep_alpha_too() -> None:
    shapes = ("gaussian", "discrete")
    wide = sequential_rates(seed=3, simulations=400, most=1_500, shapes=shapes, sd=0.3)
    assert all(rate.false_accept <= 0.05 + error(0.05) for rate in wide if rate.method in METHODS)
    assert all(rate.power >= 0.80 for rate in wide if rate.method in METHODS)


def test_a_known_sigma_saves_queries_and_its_promise_is_walds(rates: Rates) -> None:
    for shape in SEQUENTIAL_SHAPES:
        known = rates[shape, "sprt, sigma known"]
        assert known.queries_with < rates[shape, "sprt"].queries_with
    assert rates["gaussian", "sprt, sigma known"].false_accept <= 0.05 / 0.80 + error(0.0625)


def test_the_beta_binomial_reading_is_not_error_controlled_under_peeking() -> None:
    assert peeking_rate(seed=2, simulations=200, most=150) > 0.15


def test_the_same_seed_gives_the_same_table() -> None:
    options = {"simulations": 60, "most": 200, "shapes": ("discrete",)}
    assert sequential_rates(seed=5, **options) == sequential_rates(seed=5, **options)  # type: ignore[arg-type]
    assert sequential_rates(seed=5, **options) != sequential_rates(seed=6, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", SEQUENTIAL_SHAPES)
@pytest.mark.parametrize("mean", [0.0, 0.05])
def test_simulated_differences_have_the_mean_and_spread_they_say_and_stay_in_their_range(shape: str, mean: float) -> None:
    data = sequential_differences(shape, mean, 1_000, 300, np.random.default_rng(3))  # type: ignore[arg-type]
    assert abs(data).max() <= 1
    assert data.mean() == pytest.approx(mean, abs=4.5 * 0.2 / math.sqrt(data.size))
    assert data.std() == pytest.approx(0.2, rel=0.02)


@pytest.mark.parametrize("shape", SEQUENTIAL_SHAPES)
def test_a_spread_that_does_not_fit_between_minus_1_and_1_is_refused(shape: str) -> None:
    with pytest.raises(InputError, match="smaller sd"):
        sequential_differences(shape, 0.05, 10, 10, np.random.default_rng(1), sd=0.6)  # type: ignore[arg-type]


def test_a_broken_promise_is_named() -> None:
    bad = SequentialRate("gaussian", "sprt", 0.07, 0.7, 0.2, 50.0, 60.0, 1_000, 2_000)
    assert broken_promises([bad]) == (
        "sprt, gaussian: 7 % false accepts, at most 5 % wanted",
        "sprt, gaussian: 70 % power, at least 80 % wanted",
    )
    assert broken_promises([SequentialRate("gaussian", "no variance", 0.33, 0.9, 0.1, 50.0, 60.0, 1_000, 2_000)]) == ()
