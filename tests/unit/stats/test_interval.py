"""The reported interval: the wider of two, within bounds, with a p that says the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.stats import bootstrap_interval, mean_interval, paired_t
from ringtrue.stats.paired import WIDEST


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_each_end_is_the_wider_of_students_and_the_studentised_bootstraps() -> None:
    data = np.column_stack([rng(3).normal(0.1, 1, 40), rng(4).exponential(size=40), -rng(5).exponential(size=40)])
    found, t = mean_interval(data, rng=rng()), paired_t(data)
    drawn = bootstrap_interval(data, rng=rng(), method="studentised")
    assert found.low.tolist() == np.minimum(t.low, drawn.low).tolist()
    assert found.high.tolist() == np.maximum(t.high, drawn.high).tolist()
    # Neither is always the wider one, else one of them would do.
    assert found.low[1] == t.low[1] < drawn.low[1]
    assert found.high[1] == drawn.high[1] > t.high[1]


def test_the_interval_leaves_out_0_exactly_where_its_p_is_at_most_alpha() -> None:
    data = rng(7).normal(0.3, 1, (30, 400)) ** 3
    found = mean_interval(data, rng=rng(), resamples=1_999)
    outside = (found.low > 0) | (found.high < 0)
    assert (outside == (found.p <= 0.05)).all()
    assert 10 < outside.sum() < 390


def test_few_scores_with_many_ties_do_not_make_an_end_fly_off() -> None:
    """28 scores, most of them 1: the bootstrap alone would go twice as far as Student's interval."""
    scores = np.array([1.0] * 22 + [0.9, 0.8, 0.6, 0.5, 0.1, 0.0])
    found, t = mean_interval(scores, rng=rng()), paired_t(scores)
    drawn = bootstrap_interval(scores, rng=rng(), method="studentised")
    far = (t.mean[0] - t.low[0]) * WIDEST
    assert drawn.low[0] < t.mean[0] - far
    assert found.low[0] == pytest.approx(t.mean[0] - far)
    assert found.high[0] >= t.high[0]


@pytest.mark.parametrize("n", [2, 5, 6, 40])
def test_trap_21_equal_differences_have_the_interval_and_p_of_the_sign_flips(n: int) -> None:
    found = mean_interval([0.1] * n, rng=rng())
    assert found.p[0] == 2.0 ** (1 - n) < 1
    assert (found.low[0], found.high[0]) == ((pytest.approx(0.1), pytest.approx(0.1)) if n >= 6 else (-math.inf, math.inf))


def test_fewer_than_two_values_have_no_interval() -> None:
    one = mean_interval([0.3], rng=rng())
    assert math.isnan(one.low[0])
    assert math.isnan(one.p[0])


def test_trap_20_the_same_rng_gives_the_same_answer() -> None:
    data = rng(2).lognormal(size=(60, 2))
    first, again, other = (mean_interval(data, rng=rng(seed)).high.tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_too_few_resamples_are_refused() -> None:
    with pytest.raises(InputError, match="from 1,000"):
        mean_interval([0.1, 0.2], rng=rng(), resamples=500)
