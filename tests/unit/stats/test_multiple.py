"""Adjusted p-values and the levels that go with them; worked examples are in tests/reference."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ringtrue.stats import Correction, corrected

CORRECTIONS: tuple[Correction, ...] = ("holm", "benjamini-hochberg")


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_adjusted_values_keep_the_order_and_never_fall_below_p(correction: Correction) -> None:
    p = np.random.default_rng(1).random(20) ** 3
    found, _ = corrected(p, correction)
    assert (found >= p).all()
    assert (found <= 1).all()
    assert (np.diff(found[np.argsort(p)]) >= 0).all()
    assert (corrected(p, "benjamini-hochberg")[0] <= corrected(p, "holm")[0]).all()


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_a_test_that_was_not_made_stays_nan_and_does_not_count(correction: Correction) -> None:
    found, _ = corrected(np.array([0.01, math.nan, 0.04]), correction)
    assert math.isnan(found[1])
    assert found[[0, 2]].tolist() == corrected(np.array([0.01, 0.04]), correction)[0].tolist()
    assert corrected(np.array([]), correction)[0].tolist() == []
    assert corrected(np.array([0.3]), correction)[0].tolist() == [0.3]


def test_without_a_correction_nothing_changes() -> None:
    p = np.array([0.01, math.nan, 0.5])
    adjusted, levels = corrected(p, "none", alpha=0.1)
    np.testing.assert_array_equal(adjusted, p)
    assert levels.tolist() == [0.1] * 3


def test_a_p_is_at_most_its_level_exactly_if_its_adjusted_value_is_at_most_alpha() -> None:
    rng = np.random.default_rng(3)
    for size in (1, 2, 5, 9):
        for _ in range(200):
            p = rng.random(size) ** rng.choice([1, 3, 6])
            p[rng.random(size) < 0.1] = math.nan
            tested = ~np.isnan(p)
            for correction in CORRECTIONS:
                adjusted, level = corrected(p, correction, alpha=0.05)
                assert ((p <= level) == (adjusted <= 0.05))[tested].all()
                assert (level[~tested] == 0.05).all()
                assert (0.05 / size <= level + 1e-12).all()
                assert (level <= 0.05).all()
