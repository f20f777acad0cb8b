"""The posterior of a mean difference."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from ringtrue.errors import InputError
from ringtrue.stats import paired_t, posterior


def test_the_probabilities_are_those_of_student_and_agree_with_simulated_means() -> None:
    data = np.random.default_rng(1).normal(0.03, 0.1, 20)
    found = posterior(data, rope=0.02)
    # The same posterior by its two steps: a variance given the data, then a mean given that variance.
    rng, n = np.random.default_rng(2), 20
    variance = (n - 1) * data.var(ddof=1) / rng.chisquare(n - 1, 400_000)
    means = rng.normal(data.mean(), np.sqrt(variance / n))
    for probability, event in (
        (found.better, means > 0),
        (found.above, means > 0.02),
        (found.within, np.abs(means) <= 0.02),
        (found.below, means < -0.02),
    ):
        assert probability[0] == pytest.approx(event.mean(), abs=4e-3)


def test_under_this_prior_better_is_1_less_the_one_sided_p() -> None:
    data = np.random.default_rng(1).normal(0.03, 0.1, (20, 3))
    np.testing.assert_allclose(posterior(data).better, 1 - paired_t(data, alternative="greater").p, atol=1e-12)


def test_correlated_queries_are_less_certain_by_the_corrected_t() -> None:
    data = np.random.default_rng(1).normal(0.05, 0.1, 10)
    found = posterior(data, correlation=0.1)
    scale = data.std(ddof=1) * math.sqrt(1 / 10 + 0.1 / 0.9)
    assert found.better[0] == pytest.approx(scipy_stats.t.cdf(data.mean() / scale, 9))
    assert found.better[0] < posterior(data).better[0]


def test_trap_21_equal_differences_are_as_certain_as_their_number_allows() -> None:
    found = posterior(np.array([[0.1, -0.1, 0.0, 0.005]] * 4), rope=0.01)
    assert found.better.tolist() == [1 - 2**-4, 2**-4, 0.5, 1 - 2**-4]
    assert found.within.tolist() == pytest.approx([0.0, 0.0, 1 - 2**-3, 1 - 2**-3])
    np.testing.assert_allclose(found.above + found.within + found.below, 1.0)


def test_fewer_than_two_queries_have_no_posterior() -> None:
    found = posterior(np.array([[0.3, math.nan]]))
    assert np.isnan([found.better, found.above, found.within, found.below]).all()


@pytest.mark.parametrize("options", [{"rope": -0.1}, {"rope": math.inf}, {"correlation": 1.0}, {"correlation": -0.1}])
def test_unusable_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        posterior([0.1, 0.2], **options)
