"""The columns that every paired test reads, the t test if it has no spread to go by, and effect sizes."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.stats import paired_effect, paired_t
from ringtrue.stats.columns import columns

NAN = math.nan


def test_a_missing_value_is_left_out_of_its_column_alone_and_counted() -> None:
    found = paired_t([[0.1, NAN, NAN], [0.2, 0.4, NAN], [0.6, 0.0, NAN]])
    alone = paired_t([0.4, 0.0])
    assert found.n.tolist() == [3, 2, 0]
    assert columns([[0.1, NAN], [0.2, 0.4]]).excluded.tolist() == [0, 1]
    assert (found.t[1], found.p[1]) == (alone.t[0], alone.p[0])
    assert math.isnan(found.p[2])


@pytest.mark.parametrize("values", [[], [0.3], [NAN, 0.3]])
def test_fewer_than_two_queries_have_no_p_and_no_interval(values: list[float]) -> None:
    found = paired_t(np.array(values))
    assert all(math.isnan(value[0]) for value in (found.p, found.low, found.high, found.sd))


@pytest.mark.parametrize("n", [2, 5, 6, 40])
def test_trap_21_equal_differences_have_the_p_of_the_sign_flips_and_never_1(n: int) -> None:
    found = paired_t([0.1] * n)
    assert found.t[0] == math.inf
    assert found.p[0] == 2.0 ** (1 - n)
    # Six queries are the fewest that can reject any other mean at 0.05.
    assert (found.low[0], found.high[0]) == ((pytest.approx(0.1), pytest.approx(0.1)) if n >= 6 else (-math.inf, math.inf))
    assert found.constant[0]
    worse = paired_t([-0.1] * n)
    assert (worse.t[0], worse.p[0]) == (-math.inf, found.p[0])


def test_trap_21_differences_equal_but_for_rounding_count_as_equal() -> None:
    found = paired_t([0.3 - 0.2, 0.9 - 0.8, 0.5 - 0.4, 1.0 - 0.9, 0.1, 0.7 - 0.6])
    assert found.constant[0]
    assert found.p[0] == 2.0**-5


def test_differences_that_are_all_zero_have_p_1() -> None:
    found = paired_t([0.0] * 20)
    assert (found.p[0], found.low[0], found.high[0]) == (1.0, 0.0, 0.0)
    assert math.isnan(found.t[0])


def test_trap_20_p_is_never_0_however_large_t_is() -> None:
    rng = np.random.default_rng(3)
    assert 0 < paired_t(1 + rng.normal(0, 1e-3, 5000)).p[0] < 1e-300
    assert paired_t([0.1] * 5000).p[0] > 0


def test_effect_sizes_of_a_worked_sample() -> None:
    found = paired_effect([0.1, 0.3, 0.2, 0.0, -0.1])
    assert found.dz[0] == pytest.approx(0.1 / math.sqrt(0.025))
    assert (found.wins[0], found.ties[0], found.losses[0]) == (3, 1, 1)


def test_effect_sizes_without_spread_or_queries() -> None:
    found = paired_effect(np.array([[0.1, 0.0, NAN], [0.1, 0.0, 0.5]]))
    assert found.dz[0] == math.inf
    assert math.isnan(found.dz[1])
    assert math.isnan(found.dz[2])
    assert found.ties.tolist() == [0, 2, 0]


def test_a_difference_of_rounding_is_a_tie() -> None:
    found = paired_effect([1e-17, -1e-17, 0.5])
    assert (found.wins[0], found.ties[0], found.losses[0]) == (1, 2, 0)


def test_records_cannot_be_changed() -> None:
    found = paired_t([0.1, 0.2])
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.p = found.t  # type: ignore[misc]
    for field in dataclasses.fields(found):
        with pytest.raises(ValueError, match="read-only"):
            getattr(found, field.name)[0] = 0


def test_input_is_not_changed() -> None:
    given = np.array([[0.1, NAN], [0.2, 0.3]])
    before = given.copy()
    columns(given)
    paired_t(given)
    np.testing.assert_array_equal(given, before)
    given[0, 0] = 5.0  # and stays writable


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0.1], [math.inf]], "row 1, column 0 holds inf"),
        ([["x"]], "must be numbers"),
        ([[0.1, 0.2], [0.3]], "same number of columns"),
        (np.zeros((2, 2, 2)), "a row per query"),
    ],
)
def test_unusable_differences_are_refused(values: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        columns(values)  # type: ignore[arg-type]


def test_unusable_options_are_refused() -> None:
    with pytest.raises(InputError, match="alpha = 0"):
        paired_t([0.1, 0.2], alpha=0)
