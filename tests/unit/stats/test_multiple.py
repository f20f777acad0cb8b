"""Adjusted p-values; worked examples are in tests/reference."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.stats import benjamini_hochberg, holm
from ringtrue.stats.multiple import deciding_levels


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_adjusted_values_keep_shape_order_and_never_fall_below_p(adjust: object) -> None:
    assert callable(adjust)
    p = np.random.default_rng(1).random((4, 5)) ** 3
    found = adjust(p)
    assert found.shape == (4, 5)
    assert (found >= p).all()
    assert (found <= 1).all()
    order = np.argsort(p, axis=None)
    assert (np.diff(found.reshape(-1)[order]) >= 0).all()
    assert (benjamini_hochberg(p) <= holm(p)).all()


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_a_test_that_was_not_made_stays_nan_and_does_not_count(adjust: object) -> None:
    assert callable(adjust)
    found = adjust([0.01, math.nan, 0.04])
    assert math.isnan(found[1])
    assert found[[0, 2]].tolist() == adjust([0.01, 0.04]).tolist()
    assert adjust([]).tolist() == []
    assert adjust([0.3]).tolist() == [0.3]


@pytest.mark.parametrize("wrong", [[-0.1, 0.2], [0.1, 1.5], ["a"], [[0.1], [0.2, 0.3]]])
def test_what_is_no_probability_is_refused(wrong: list[object]) -> None:
    for adjust in (holm, benjamini_hochberg):
        with pytest.raises(InputError):
            adjust(wrong)  # type: ignore[arg-type]


def test_a_p_is_at_most_its_level_exactly_if_its_adjusted_value_is_at_most_alpha() -> None:
    rng = np.random.default_rng(3)
    for size in (1, 2, 5, 9):
        for _ in range(200):
            p = rng.random(size) ** rng.choice([1, 3, 6])
            p[rng.random(size) < 0.1] = math.nan
            tested = ~np.isnan(p)
            for adjust, step_up in ((holm, False), (benjamini_hochberg, True)):
                adjusted = adjust(p)
                level = deciding_levels(p, adjusted, alpha=0.05, step_up=step_up)
                assert ((p <= level) == (adjusted <= 0.05))[tested].all()
                assert (level[~tested] == 0.05).all()
                assert (0.05 / size <= level + 1e-12).all()
                assert (level <= 0.05).all()
