"""Planning numbers: the spec's, published ones, and agreement with other ways to compute the same power."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import integrate, optimize, special
from scipy import stats as scipy_stats

from ringtrue.errors import InputError
from ringtrue.stats import minimum_detectable_effect, paired_power, paired_sample_size


def power_by_adaptive_integration(n: int, effect: float, alpha: float) -> float:
    """The average over the quantiles of the sample variance of the exact chance given that variance."""
    critical = scipy_stats.t.isf(alpha / 2, n - 1)

    def chance(quantile: float) -> float:
        spread = math.sqrt(2 * special.gammaincinv((n - 1) / 2, quantile) / (n - 1))
        shift = effect * math.sqrt(n)
        return float(special.ndtr(shift - critical * spread) + special.ndtr(-shift - critical * spread))

    return float(integrate.quad(chance, 0, 1, limit=200, epsabs=1e-10)[0])


def test_the_specs_set_size_is_73_queries_not_71_or_72() -> None:
    assert paired_sample_size(sd=0.15, difference=0.05) == 73
    assert paired_power(n=72, sd=0.15, difference=0.05) < 0.80 <= paired_power(n=73, sd=0.15, difference=0.05)
    # The normal approximation, for the record: too hopeful.
    z = scipy_stats.norm.isf(0.025) + scipy_stats.norm.isf(0.2)
    assert math.ceil((z * 0.15 / 0.05) ** 2) == 71


def test_trap_43_fifteen_queries_detect_0_117_not_0_10() -> None:
    assert minimum_detectable_effect(n=15, sd=0.15) == pytest.approx(0.117, abs=5e-4)
    assert paired_power(n=15, sd=0.15, difference=0.10) < 0.70
    assert paired_sample_size(sd=0.15, difference=0.10) == 20


@pytest.mark.parametrize(("effect", "n"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_sample_size_equals_gpower(effect: float, n: int) -> None:
    # G*Power 3.1, "difference between two dependent means", two tails, alpha 0.05, power 0.80, dz = 0.2, 0.5, 0.8.
    assert paired_sample_size(sd=1.0, difference=effect) == n


@pytest.mark.parametrize("n", [2, 3, 5, 15, 73, 1000, 100_000])
@pytest.mark.parametrize("shift", [0.0, 2.8, 5.0])
def test_power_equals_adaptive_integration(n: int, shift: float) -> None:
    effect = shift / math.sqrt(n)
    for alpha in (0.001, 0.05, 0.5):
        expected = power_by_adaptive_integration(n, effect, alpha)
        assert paired_power(n=n, sd=1.0, difference=effect, alpha=alpha) == pytest.approx(expected, abs=1e-7)


def test_power_equals_scipys_noncentral_t_where_that_has_a_value() -> None:
    rng = np.random.default_rng(5)
    compared = 0
    for _ in range(300):
        n, alpha, shift = int(2 + 10 ** rng.uniform(0, 7)), float(10 ** rng.uniform(-4, -0.1)), float(rng.uniform(0, 9))
        critical = scipy_stats.t.isf(alpha / 2, n - 1)
        expected = scipy_stats.nct.sf(critical, n - 1, shift) + scipy_stats.nct.cdf(-critical, n - 1, shift)
        if math.isfinite(expected):
            compared += 1
            got = paired_power(n=n, sd=1.0, difference=shift / math.sqrt(n), alpha=alpha)
            assert got == pytest.approx(expected, abs=1e-11)
    assert compared > 200


def test_power_has_a_value_where_scipys_noncentral_t_is_nan() -> None:
    # n = 2 at a shift of 8 standard errors, scipy/scipy#25470; the neighbours show what it must be.
    at, below, above = (paired_power(n=2, sd=1.0, difference=s / math.sqrt(2)) for s in (8.0, 7.999, 8.001))
    assert below < at < above
    assert at == pytest.approx(0.46978167, abs=1e-8)


def test_power_equals_simulated_t_tests() -> None:
    rng = np.random.default_rng(11)
    samples = rng.normal(0.1, 0.15, (40_000, 15))
    t = samples.mean(axis=1) / (samples.std(axis=1, ddof=1) / math.sqrt(15))
    share = float((np.abs(t) > scipy_stats.t.isf(0.025, 14)).mean())
    # Five standard errors of a share over 40,000 samples.
    assert paired_power(n=15, sd=0.15, difference=0.1) == pytest.approx(share, abs=0.0125)


def test_power_without_a_difference_is_the_rate_of_false_alarms() -> None:
    for n in (2, 15, 10**7):
        for alpha in (0.001, 0.05, 0.5):
            assert paired_power(n=n, sd=1.0, difference=0.0, alpha=alpha) == pytest.approx(alpha, rel=1e-9)


def test_the_sign_of_the_difference_does_not_matter() -> None:
    assert paired_power(n=20, sd=0.2, difference=-0.1) == paired_power(n=20, sd=0.2, difference=0.1)
    assert paired_sample_size(sd=0.2, difference=-0.1) == paired_sample_size(sd=0.2, difference=0.1)


@pytest.mark.parametrize("effect", [20.0, 8.0, 3.0, 1.0, 0.3, 0.05, 0.01, 0.001, 0.0009])
@pytest.mark.parametrize(("alpha", "power"), [(0.05, 0.8), (0.001, 0.95), (0.2, 0.5)])
def test_sample_size_is_the_smallest_that_reaches_the_power(effect: float, alpha: float, power: float) -> None:
    n = paired_sample_size(sd=1.0, difference=effect, alpha=alpha, power=power)
    assert paired_power(n=n, sd=1.0, difference=effect, alpha=alpha) >= power
    assert n == 2 or paired_power(n=n - 1, sd=1.0, difference=effect, alpha=alpha) < power


def test_sample_size_of_ten_million_equals_its_expansion() -> None:
    # For large n the t test needs z^2 / 2 pairs more than the z test, whose two tails give the power in closed form.
    z = float(special.ndtri(0.975))
    shift = optimize.brentq(lambda s: special.ndtr(s - z) + special.ndtr(-s - z) - 0.8, 0, 9, xtol=1e-15, rtol=1e-15)
    for effect in (0.01, 0.001, 0.0009, 0.0001):
        expansion = (shift / effect) ** 2 + z * z / 2
        assert abs(paired_sample_size(sd=1.0, difference=effect) - expansion) <= 1


def test_a_huge_difference_needs_two_pairs_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for difference in (1e3, 1e10, 1e300):
            assert paired_sample_size(sd=1.0, difference=difference) == 2
            assert paired_power(n=2, sd=1.0, difference=difference) == pytest.approx(1.0)
        assert paired_power(n=2, sd=1e-300, difference=1e300) == 1.0


def test_a_difference_too_small_to_plan_for_is_an_error_that_says_so() -> None:
    for difference in (1e-5, 1e-300):
        with pytest.raises(InputError, match="more than 1,000,000,000 pairs"):
            paired_sample_size(sd=1.0, difference=difference)


@pytest.mark.parametrize("n", [2, 3, 4, 15, 100, 10**4, 10**7])
@pytest.mark.parametrize(("alpha", "power"), [(0.05, 0.8), (0.05, 0.06), (1e-6, 0.99), (0.5, 0.9)])
def test_minimum_detectable_effect_has_exactly_the_power_asked_for(n: int, alpha: float, power: float) -> None:
    effect = minimum_detectable_effect(n=n, sd=0.15, alpha=alpha, power=power)
    assert paired_power(n=n, sd=0.15, difference=effect, alpha=alpha) == pytest.approx(power, abs=1e-9)


def test_minimum_detectable_effect_of_a_power_next_to_alpha_is_next_to_zero() -> None:
    for n in (2, 15, 10**6):
        assert 0 <= minimum_detectable_effect(n=n, sd=1.0, alpha=0.05, power=math.nextafter(0.05, 1)) < 1e-6


def test_minimum_detectable_effect_scales_with_the_spread_and_shrinks_with_n() -> None:
    one = minimum_detectable_effect(n=30, sd=1.0)
    assert minimum_detectable_effect(n=30, sd=0.25) == pytest.approx(one / 4)
    effects = [minimum_detectable_effect(n=n, sd=1.0) for n in (2, 3, 5, 10, 100, 1000)]
    assert effects == sorted(effects, reverse=True)


@pytest.mark.parametrize("n", [1, 0, -3])
def test_trap_22_a_single_pair_is_refused_with_the_reason(n: int) -> None:
    with pytest.raises(InputError, match="no spread to judge its difference by; write 2 or more"):
        minimum_detectable_effect(n=n, sd=0.15)
    with pytest.raises(InputError, match="no spread to judge its difference by; write 2 or more"):
        paired_power(n=n, sd=0.15, difference=0.05)


def test_n_must_be_a_whole_number_of_any_integer_type() -> None:
    assert paired_power(n=np.int32(73), sd=0.15, difference=0.05) == paired_power(n=73, sd=0.15, difference=0.05)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"n = 15\.5"):
        paired_power(n=15.5, sd=0.15, difference=0.05)  # type: ignore[arg-type]


@pytest.mark.parametrize("sd", [0.0, -0.1, math.nan, math.inf])
def test_a_spread_that_is_not_above_zero_is_refused(sd: float) -> None:
    for call in (
        lambda: paired_power(n=10, sd=sd, difference=0.1),
        lambda: paired_sample_size(sd=sd, difference=0.1),
        lambda: minimum_detectable_effect(n=10, sd=sd),
    ):
        with pytest.raises(InputError, match="cannot use sd"):
            call()


def test_a_difference_of_zero_or_no_number_cannot_be_planned_for() -> None:
    with pytest.raises(InputError, match="difference of 0"):
        paired_sample_size(sd=0.15, difference=0.0)
    for difference in (math.nan, math.inf):
        with pytest.raises(InputError, match="cannot use difference"):
            paired_sample_size(sd=0.15, difference=difference)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.5, math.nan])
def test_alpha_must_lie_between_zero_and_one(alpha: float) -> None:
    with pytest.raises(InputError, match="cannot use alpha"):
        paired_power(n=10, sd=0.15, difference=0.05, alpha=alpha)
    with pytest.raises(InputError, match="cannot use alpha"):
        paired_sample_size(sd=0.15, difference=0.05, alpha=alpha)


@pytest.mark.parametrize("power", [0.05, 0.01, 1.0, 1.2, math.nan])
def test_power_must_lie_between_alpha_and_one(power: float) -> None:
    with pytest.raises(InputError, match="between alpha"):
        paired_sample_size(sd=0.15, difference=0.05, power=power)
    with pytest.raises(InputError, match="between alpha"):
        minimum_detectable_effect(n=10, sd=0.15, power=power)


def test_the_smallest_alpha_still_has_an_answer_and_a_smaller_one_is_refused() -> None:
    for n in (2, 3, 4, 6, 11, 101, 10**6):
        effect = minimum_detectable_effect(n=n, sd=1.0, alpha=1e-100)
        assert paired_power(n=n, sd=1.0, difference=effect, alpha=1e-100) == pytest.approx(0.8, abs=1e-9)
    with pytest.raises(InputError, match="from 1e-100"):
        minimum_detectable_effect(n=4, sd=1.0, alpha=1e-300)
