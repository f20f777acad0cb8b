"""The growth of a percentile over paired, repeated timings."""

from __future__ import annotations

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.stats import percentile_growth


def times(seed: int, queries: int = 28, passes: int = 8) -> np.ndarray:
    return 8 + np.random.default_rng(seed).lognormal(1.5, 0.8, (queries, passes))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_the_percentiles_are_those_of_all_times_of_a_side() -> None:
    before, after = times(1), times(2, passes=9)
    found = percentile_growth(before, after, rng=rng())
    assert (found.before, found.after) == (np.percentile(before, 95), np.percentile(after, 95))
    assert found.growth == pytest.approx(found.after / found.before - 1)
    assert found.low < found.growth < found.high
    assert found == percentile_growth(before, after, rng=rng())


def test_times_that_did_not_change_have_not_grown_and_doubled_ones_have() -> None:
    for seed in range(20):
        same = percentile_growth(times(seed), times(seed + 500), rng=rng())
        assert same.low < 0.2, "the allowed growth is not excluded"
        assert percentile_growth(times(seed), 2.5 * times(seed + 500), rng=rng()).low > 0.2


def test_the_interval_holds_the_true_growth_of_the_same_search_nine_times_in_ten() -> None:
    held = 0
    for seed in range(100):
        found = percentile_growth(times(seed), times(seed + 500), rng=rng(), resamples=1_000)
        held += found.low <= 0 <= found.high
    assert held >= 90


def test_a_few_long_queries_are_paired_with_themselves() -> None:
    """Ten queries always take long; unpaired, the resamples would draw more of them on one side than on the other."""
    base = np.where(np.arange(200) < 10, 100.0, 10.0)[:, None]
    noise = np.random.default_rng(1).normal(1, 0.01, (2, 200, 1))
    found = percentile_growth(base * noise[0], base * noise[1], rng=rng())
    assert -0.05 < found.low < found.high < 0.05


def test_many_queries_are_resampled_in_blocks() -> None:
    found = percentile_growth(times(1, 3_000, 1), times(2, 3_000, 1), rng=rng(), resamples=1_000)
    assert -0.2 < found.low < found.high < 0.2


def test_unusable_times_are_named() -> None:
    with pytest.raises(InputError, match="28 timed queries with 5"):
        percentile_growth(times(1), times(2, queries=5), rng=rng())
    with pytest.raises(InputError, match="negative"):
        percentile_growth(-times(1), times(2), rng=rng())
    with pytest.raises(InputError, match="percentile was 0"):
        percentile_growth(np.zeros((5, 2)), times(2, queries=5), rng=rng())
