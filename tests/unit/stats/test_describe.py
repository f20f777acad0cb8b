"""Summaries and percentiles: what is undefined stays out, is counted, and never becomes a number."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.stats import describe, percentiles

NAN = math.nan


def test_describe_of_plain_values() -> None:
    summary = describe([4.0, 1.0, 3.0, 2.0])
    assert (summary.count, summary.undefined) == (4, 0)
    assert (summary.mean, summary.median, summary.minimum, summary.maximum) == (2.5, 2.5, 1.0, 4.0)
    assert summary.std == pytest.approx(math.sqrt(5 / 3))


def test_describe_leaves_undefined_values_out_and_counts_them() -> None:
    summary = describe([NAN, 1.0, NAN, 0.0, NAN])
    assert (summary.count, summary.undefined, summary.mean) == (2, 3, 0.5)


@pytest.mark.parametrize(("values", "undefined"), [([], 0), ([NAN, NAN], 2)])
def test_trap_8_the_mean_of_nothing_is_not_zero(values: list[float], undefined: int) -> None:
    summary = describe(values)
    assert (summary.count, summary.undefined) == (0, undefined)
    for name in ("mean", "median", "std", "minimum", "maximum"):
        assert math.isnan(getattr(summary, name))


def test_trap_22_one_value_has_no_spread() -> None:
    summary = describe([0.7])
    assert (summary.count, summary.mean, summary.median) == (1, 0.7, 0.7)
    assert math.isnan(summary.std)


def test_equal_values_have_a_spread_of_exactly_zero() -> None:
    # numpy alone gives 1.7e-17 here: the rounding of the mean.
    assert describe([0.1] * 3).std == 0.0


def test_describe_reads_arrays_integers_and_none() -> None:
    assert describe(np.array([1, 2, 3])).mean == 2.0
    assert describe([None, 1.0]).undefined == 1  # type: ignore[arg-type]


def test_describe_does_not_change_its_input() -> None:
    values = np.array([3.0, 1.0, NAN])
    describe(values)
    percentiles(values)
    assert values[:2].tolist() == [3.0, 1.0]


@pytest.mark.parametrize("function", [describe, percentiles])
def test_values_that_cannot_be_described_are_refused(function) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="value 1 is inf"):
        function([0.0, math.inf])
    with pytest.raises(InputError, match="must be numbers"):
        function(["fast", 1.0])
    with pytest.raises(InputError, match="2 dimensions"):
        function([[1.0], [2.0]])
    with pytest.raises(InputError, match="0 dimensions"):
        function(1.0)


def test_percentiles_interpolate_linearly() -> None:
    values = list(range(1, 101))
    assert percentiles(values) == {50: 50.5, 95: pytest.approx(95.05), 99: pytest.approx(99.01)}
    assert percentiles([10.0, 20.0], (0, 25, 100)) == {0: 10.0, 25: 12.5, 100: 20.0}


def test_percentiles_leave_undefined_values_out() -> None:
    assert percentiles([NAN, 1.0, 3.0], (50,)) == {50: 2.0}


@pytest.mark.parametrize("values", [[], [NAN]])
def test_trap_8_the_percentiles_of_nothing_are_not_zero(values: list[float]) -> None:
    result = percentiles(values)
    assert list(result) == [50, 95, 99]
    assert all(math.isnan(value) for value in result.values())


@pytest.mark.parametrize("point", [-1, 100.5, NAN])
def test_percentiles_refuse_a_point_outside_zero_to_a_hundred(point: float) -> None:
    with pytest.raises(InputError, match="from 0 to 100"):
        percentiles([1.0], (50, point))


def test_the_summary_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        describe([1.0]).mean = 0.0  # type: ignore[misc]
