"""Wald's test with variance, a formula without, and the Beta-Binomial reading."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.stats import (
    BetaBinomial,
    SequentialPlan,
    Sprt,
    first_decisions,
    probability_better,
)
from ringtrue.stats.sequential import BURN_IN, wald_bounds

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
from sequential_rates import by_wald_alone

PLAN = SequentialPlan()


def fed(test: Sprt, differences: list[float]) -> Sprt:
    for difference in differences:
        test = test.add(difference)
    return test


def test_the_bounds_and_defaults_are_walds() -> None:
    assert (PLAN.alpha, PLAN.beta, PLAN.delta) == (0.05, 0.20, 0.05)
    assert wald_bounds() == (pytest.approx(math.log(0.8 / 0.05)), pytest.approx(math.log(0.2 / 0.95)))


def test_with_a_known_sigma_the_ratio_is_the_sum_of_the_formula() -> None:
    differences = np.random.default_rng(1).normal(0.02, 0.2, 50).clip(-1, 1).tolist()
    summed = 0.0
    for difference in differences:
        summed += (0.05 / 0.2**2) * (difference - 0.05 / 2)
    found = fed(Sprt(sigma=0.2), differences)
    assert found.llr == found.evidence == pytest.approx(summed, abs=1e-12)
    assert found.sigma_used == 0.2
    assert found.burn_in_left == 0


def test_an_estimated_sigma_is_never_below_the_one_seen_and_comes_close_to_it() -> None:
    differences = np.random.default_rng(3).normal(0.0, 0.2, 20_000).clip(-1, 1)
    for n, most in ((BURN_IN, 2.5), (200, 1.3), (20_000, 1.05)):
        seen = float(differences[:n].std())
        test = Sprt(n=n, total=float(differences[:n].sum()), squares=float((differences[:n] ** 2).sum()))
        assert test.sigma_used is not None
        assert seen < test.sigma_used < most * seen


def test_nothing_is_decided_while_burning_in() -> None:
    test = fed(Sprt(), [1.0] * (BURN_IN - 1))
    assert (test.sigma_used, test.llr, test.decision, test.burn_in_left) == (None, 0.0, "continue", 1)
    assert test.add(1.0).decision == "accept-treatment"


def test_equal_sides_are_decided_for_the_control_and_no_division_fails() -> None:
    test = fed(Sprt(), [0.0] * 200)
    assert test.decision == "accept-control"


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.10])
@pytest.mark.parametrize("delta", [0.01, 0.05, 0.20])
def test_losses_not_yet_seen_are_reckoned_with(alpha: float, delta: float) -> None:
    """A steady gain with rare losses of 1 and a mean of 0: the chance to accept before the first loss stays below alpha."""
    plan = SequentialPlan(alpha=alpha, delta=delta)
    for gain in delta * np.linspace(0.55, 6, 60):
        if gain >= 1:
            continue
        chance_of_loss = gain / (1 + gain)
        codes, after = first_decisions(np.full((5_000, 1), gain), "sprt", plan=plan)
        if codes[0] == 1:
            assert (1 - chance_of_loss) ** after[0] < alpha


@pytest.mark.parametrize("sigma", [None, 0.2])
@pytest.mark.parametrize("mean", [0.0, 0.05])
def test_decisions_one_by_one_and_all_at_once_agree(mean: float, sigma: float | None) -> None:
    differences = np.random.default_rng(9).normal(mean, 0.2, (400, 12)).clip(-1, 1)
    codes, after = first_decisions(differences, "sprt") if sigma is None else by_wald_alone(differences, sd=sigma)
    for column in range(12):
        test = Sprt(sigma=sigma)
        while test.decision == "continue" and test.n < 400:
            test = test.add(float(differences[test.n, column]))
        assert (("continue", "accept-treatment", "accept-control")[codes[column]], after[column]) == (test.decision, test.n)


def test_a_ratio_beyond_its_bound_decides_nothing_until_unseen_losses_cannot_explain_it() -> None:
    """Thirty small steady gains: Wald's ratio is sure, but a loss of 1 in fifty queries would show the same for as long."""
    test = fed(Sprt(SequentialPlan(delta=0.02)), [0.05] * 80)
    while test.llr < test.bounds[0]:
        test = test.add(0.05)
    assert test.decision == "continue"
    assert test.unproven is not None
    capital, wanted = test.unproven
    assert capital < wanted == pytest.approx(20)
    while test.decision == "continue":
        test = test.add(0.05)
    assert test.unproven is None
    # A mean of 0 would hide losses of 1 in a share of 0.05 / 1.05, and keep them hidden so long with less than alpha.
    assert (1 - 0.05 / 1.05) ** test.n < 0.05


def test_a_gambler_who_got_rich_stops_so_that_what_was_proven_stays_proven() -> None:
    rich = fed(Sprt(), [0.3] * 40)
    assert rich.gain >= math.log(20)
    assert fed(rich, [-1.0] * 5).gain == rich.gain


def test_with_a_known_sigma_nobody_bets() -> None:
    test = fed(Sprt(sigma=0.2), [0.3] * 10)
    assert (test.gain, test.none, test.unproven, test.decision) == (0.0, 0.0, None, "accept-treatment")


@pytest.mark.parametrize("plan", [PLAN, SequentialPlan(delta=0.2)])
def test_without_a_variance_delta_cancels_out_and_the_spread_does_not_matter(plan: SequentialPlan) -> None:
    """The formula ``z = d / delta; llr += z * delta - delta**2 / 2`` is ``d - delta**2 / 2``, whatever the spread."""
    differences = np.random.default_rng(4).normal(0.0, 0.2, (300, 20))
    codes, after = by_wald_alone(differences, plan=plan)
    upper, lower = wald_bounds(plan)
    for column in range(20):
        llr, n = 0.0, 0
        while lower < llr < upper and n < 300:
            llr += differences[n, column] / plan.delta * plan.delta - 0.5 * plan.delta * plan.delta
            n += 1
        assert (codes[column], after[column]) == (1 if llr >= upper else 2 if llr <= lower else 0, n)


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"alpha": 0.5}, {"beta": 1.0}, {"delta": 0.0}, {"delta": math.nan}])
def test_an_unusable_plan_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        SequentialPlan(**options)


@pytest.mark.parametrize("difference", [1.01, -1.01, math.nan, math.inf])
def test_differences_outside_their_range_are_refused(difference: float) -> None:
    with pytest.raises(InputError, match="−1 to 1"):
        Sprt().add(difference)


@pytest.mark.parametrize("sigma", [0.0, -0.1, 1.5, math.nan])
def test_an_impossible_sigma_is_refused(sigma: float) -> None:
    with pytest.raises(InputError, match="sigma"):
        Sprt(sigma=sigma)


@pytest.mark.parametrize(
    ("control", "treatment"),
    [((0, 0), (0, 0)), ((3, 10), (7, 10)), ((7, 10), (3, 10)), ((90, 100), (95, 120)), ((0, 5), (5, 5))],
)
def test_the_beta_binomial_probability_is_that_of_an_integral(control: tuple[int, int], treatment: tuple[int, int]) -> None:
    from scipy import integrate, stats

    sides = [stats.beta(hits + 1, tries - hits + 1) for hits, tries in (control, treatment)]
    expected, _ = integrate.quad(lambda rate: sides[1].pdf(rate) * sides[0].cdf(rate), 0, 1)
    assert probability_better(control=control, treatment=treatment) == pytest.approx(expected, abs=1e-8)


def test_the_beta_binomial_decides_at_095_on_both_sides() -> None:
    state = BetaBinomial()
    for control, treatment in [(0, 1)] * 4:
        state = state.add(control, treatment)
    assert state.probability > 0.95
    assert state.decision == "accept-treatment"
    assert BetaBinomial(n=4, control=4).decision == "accept-control"
    assert BetaBinomial(n=1, treatment=1).decision == "continue"
    assert BetaBinomial(n=3_000, treatment=3_000).evidence < math.inf


def test_the_beta_binomial_takes_successes_only() -> None:
    with pytest.raises(InputError, match="0 or 1"):
        BetaBinomial().add(0.5, 1.0)
    with pytest.raises(InputError, match="6 successes of 5"):
        probability_better(control=(6, 5), treatment=(0, 5))
