"""The paired tests beside SciPy's, and adjusted p-values beside published and statsmodels' ones.

Live oracles: scipy.stats.ttest_rel, wilcoxon, permutation_test, bootstrap and false_discovery_control; statsmodels'
``multipletests`` and ``TTestPower``. Written down: the fifteen p-values of Benjamini and Hochberg (1995), section 4.1, with
their adjusted values.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from scipy import stats as scipy_stats

from ringtrue.stats import (
    bootstrap_interval,
    corrected,
    minimum_detectable_effect,
    paired_power,
    paired_sample_size,
    paired_t,
    sign_flip,
    wilcoxon,
)
from ringtrue.stats.resample import _bias_and_acceleration

CORRECTIONS: tuple[Literal["holm", "benjamini-hochberg"], ...] = ("holm", "benjamini-hochberg")


def scores(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two systems and six measures: smooth ones, ones from few values, ones that mostly tie."""
    rng = np.random.default_rng(seed)
    smooth = rng.beta(2, 2, (2, n, 2))
    few = rng.choice([0.0, 0.5, 1.0], (2, n, 2))
    same = rng.beta(2, 2, (n, 2))
    tied = np.stack([same, np.where(rng.random((n, 2)) < 0.4, rng.beta(2, 2, (n, 2)), same)])
    both = np.concatenate([smooth, few, tied], axis=2)
    return both[0], both[1]


@pytest.mark.parametrize("n", [2, 5, 15, 50, 1000])
def test_paired_t_equals_ttest_rel(n: int) -> None:
    old, new = scores(n, n)
    apart = (new - old).std(axis=0) > 0
    old, new = old[:, apart], new[:, apart]
    found = paired_t(new - old, alpha=0.1)
    expected = scipy_stats.ttest_rel(new, old, axis=0)
    ends = expected.confidence_interval(0.9)
    np.testing.assert_allclose(found.t, expected.statistic, rtol=1e-10)
    np.testing.assert_allclose(found.p, expected.pvalue, rtol=1e-9)
    np.testing.assert_allclose(found.low, ends.low, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(found.high, ends.high, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("n", [2, 5, 15, 50, 51, 400])
def test_wilcoxon_equals_scipy(n: int) -> None:
    old, new = scores(n, n + 1)
    found = wilcoxon(new - old)
    compared = 0
    for column, difference in enumerate((new - old).T):
        kept = difference[difference != 0]  # SciPy leaves zeros out as well, but counts them when it chooses a method
        if not len(kept):
            continue
        exact = len(kept) <= 50 and len(np.unique(np.abs(kept).round(12))) == len(kept)
        expected = scipy_stats.wilcoxon(kept, method="exact" if exact else "asymptotic", correction=not exact)
        if not exact and len(kept) * (len(kept) + 1) / 2 - 2 * expected.statistic <= 1:
            continue  # SciPy's correction then overshoots; ours stops at p = 1
        assert found[column] == pytest.approx(expected.pvalue, rel=1e-9), column
        compared += 1
    assert compared >= 3 or n == 2


def test_sign_flip_equals_permutation_test_over_all_signs() -> None:
    old, new = scores(12, 7)
    found = sign_flip(new - old, rng=np.random.default_rng(1))
    expected = scipy_stats.permutation_test((new - old,), np.mean, permutation_type="samples", axis=0, n_resamples=10_000)
    np.testing.assert_allclose(found, expected.pvalue, rtol=1e-12)


def test_sign_flip_by_drawing_agrees_with_permutation_test_by_drawing() -> None:
    old, new = scores(120, 8)
    found = sign_flip(new - old, rng=np.random.default_rng(1), resamples=50_000)
    expected = scipy_stats.permutation_test(
        (new - old,), np.mean, permutation_type="samples", axis=0, n_resamples=5_000, batch=100, rng=np.random.default_rng(2)
    )
    error = np.sqrt(found * (1 - found) * (1 / 5_000 + 1 / 50_000))
    assert (np.abs(found - expected.pvalue) < 4.5 * error).all()


@pytest.mark.parametrize("n", [10, 40, 300])
@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_bootstrap_agrees_with_scipy(n: int, method: Literal["bca", "percentile"]) -> None:
    """Both draw 40,000 resamples: the ends may differ by the error of drawing, some hundredths of a standard error."""
    rng = np.random.default_rng(n)
    data = np.stack([rng.normal(0.02, 0.15, n), rng.lognormal(0, 1, n), -rng.lognormal(0, 0.5, n)], axis=1)
    found = bootstrap_interval(data, rng=np.random.default_rng(1), resamples=40_000, method=method)
    name = {"bca": "BCa", "percentile": "percentile"}[method]
    ends = scipy_stats.bootstrap(
        (data,), np.mean, axis=0, n_resamples=40_000, batch=2_000, method=name, rng=np.random.default_rng(2)
    ).confidence_interval
    unit = data.std(axis=0) / math.sqrt(n)
    np.testing.assert_allclose((found.low - ends.low) / unit, 0, atol=0.08)
    np.testing.assert_allclose((found.high - ends.high) / unit, 0, atol=0.08)
    # The difference between the two methods is larger than that, so that one cannot pass for the other.
    rest = "BCa" if method == "percentile" else "percentile"
    other = scipy_stats.bootstrap(
        (data,), np.mean, axis=0, n_resamples=40_000, batch=2_000, method=rest, rng=np.random.default_rng(3)
    ).confidence_interval
    if n < 300:
        assert (np.abs(found.high - other.high) / unit)[1] > 0.15


def test_bca_acceleration_equals_a_jackknife_done_in_full() -> None:
    data = np.random.default_rng(3).lognormal(size=(25, 2))
    left_out = np.stack([np.delete(data, query, axis=0).mean(axis=0) for query in range(25)])
    gap = left_out.mean(axis=0) - left_out
    expected = (gap**3).sum(axis=0) / (6 * (gap**2).sum(axis=0) ** 1.5)
    _, acceleration = _bias_and_acceleration(np.zeros((1_000, 2), np.float32), data - data.mean(axis=0))
    np.testing.assert_allclose(acceleration, expected, rtol=1e-10)


PUBLISHED = [
    0.0001,
    0.0004,
    0.0019,
    0.0095,
    0.0201,
    0.0278,
    0.0298,
    0.0344,
    0.0459,
    0.3240,
    0.4262,
    0.5719,
    0.6528,
    0.7590,
    1.0,
]


def test_adjusted_p_values_of_a_published_example() -> None:
    """Benjamini and Hochberg (1995) reject four of these at 0.05, Bonferroni and Holm three."""
    by_holm, by_rate = (corrected(np.array(PUBLISHED), name)[0] for name in CORRECTIONS)
    assert (by_holm <= 0.05).sum() == 3
    assert (by_rate <= 0.05).sum() == 4
    expected_holm = [0.0015, 0.0056, 0.0247, 0.114, 0.2211, 0.278, 0.278, 0.278, 0.3213, 1, 1, 1, 1, 1, 1]
    expected_rate = [0.0015, 0.003, 0.0095, 0.035625, 0.0603, 0.0638571429, 0.0638571429, 0.0645, 0.0765, 0.486]
    expected_rate += [0.5811818182, 0.714875, 0.7532307692, 0.8132142857, 1.0]
    np.testing.assert_allclose(by_holm, expected_holm, rtol=1e-9)
    np.testing.assert_allclose(by_rate, expected_rate, rtol=1e-9)


@pytest.mark.parametrize("count", [1, 2, 7, 200])
def test_benjamini_hochberg_equals_scipy(count: int) -> None:
    p = np.round(np.random.default_rng(count).random(count) ** 2, 3)
    np.testing.assert_allclose(corrected(p, "benjamini-hochberg")[0], scipy_stats.false_discovery_control(p), rtol=1e-12)


@pytest.mark.parametrize("count", [1, 2, 7, 200, 1000])
def test_adjusted_p_values_equal_statsmodels(count: int) -> None:
    from statsmodels.stats.multitest import multipletests

    p = np.round(np.random.default_rng(count).random(count) ** 3, 4)
    for ours, name in zip(CORRECTIONS, ("holm", "fdr_bh")):
        np.testing.assert_allclose(corrected(p, ours)[0], multipletests(p, method=name)[1], rtol=1e-12)


@pytest.mark.parametrize("n", [2, 5, 15, 73, 400])
@pytest.mark.parametrize("effect", [0.1, 0.2, 1 / 3])
def test_power_equals_statsmodels(n: int, effect: float) -> None:
    from statsmodels.stats.power import TTestPower

    expected = TTestPower().power(effect_size=effect, nobs=n, alpha=0.05)
    assert paired_power(n=n, sd=0.15, difference=0.15 * effect) == pytest.approx(expected, abs=1e-9)


def test_trap_43_statsmodels_too_asks_for_73_queries_and_says_15_find_0_117() -> None:
    from statsmodels.stats.power import TTestPower

    needed = TTestPower().solve_power(effect_size=0.05 / 0.15, alpha=0.05, power=0.80)
    assert math.ceil(needed) == paired_sample_size(sd=0.15, difference=0.05) == 73
    effect = TTestPower().solve_power(nobs=15, alpha=0.05, power=0.80)
    assert minimum_detectable_effect(n=15, sd=0.15) == pytest.approx(0.15 * effect, abs=1e-8)
    assert round(0.15 * effect, 3) == 0.117
