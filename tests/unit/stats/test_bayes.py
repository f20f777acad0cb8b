"""The posterior of a mean difference."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from ringtrue.stats import probability_above_zero


def test_the_probability_is_that_of_student_and_agrees_with_simulated_means() -> None:
    data = np.random.default_rng(1).normal(0.03, 0.1, 20)
    # The same posterior by its two steps: a variance given the data, then a mean given that variance.
    rng, n = np.random.default_rng(2), 20
    variance = (n - 1) * data.var(ddof=1) / rng.chisquare(n - 1, 400_000)
    means = rng.normal(data.mean(), np.sqrt(variance / n))
    assert probability_above_zero(data)[0] == pytest.approx((means > 0).mean(), abs=4e-3)


def test_under_this_prior_it_is_1_less_the_one_sided_p() -> None:
    data = np.random.default_rng(1).normal(0.03, 0.1, (20, 3))
    one_sided = scipy_stats.ttest_1samp(data, 0, alternative="greater").pvalue
    np.testing.assert_allclose(probability_above_zero(data), 1 - one_sided, atol=1e-12)


def test_equal_differences_are_as_certain_as_their_number_allows() -> None:
    found = probability_above_zero(np.array([[0.1, -0.1, 0.0, 0.005]] * 4))
    assert found.tolist() == [1 - 2**-4, 2**-4, 0.5, 1 - 2**-4]


def test_fewer_than_two_queries_have_no_posterior() -> None:
    assert np.isnan(probability_above_zero(np.array([[0.3, math.nan]]))).all()
