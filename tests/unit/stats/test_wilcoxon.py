"""The signed-rank test at its edges; its numbers are compared with SciPy's in tests/reference."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ringtrue.stats import wilcoxon


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_exact_p_is_the_share_of_all_signs(alternative: str) -> None:
    data = np.array([0.3, -0.1, 0.25, 0.7, -0.2, 0.05])
    ranks = np.argsort(np.argsort(np.abs(data))) + 1
    seen = ranks[data > 0].sum()
    sums = np.array([sum(r for r, up in zip(ranks, signs) if up) for signs in itertools.product([0, 1], repeat=6)])
    at_least, at_most = (sums >= seen).mean(), (sums <= seen).mean()
    expected = {"greater": at_least, "less": at_most, "two-sided": min(1, 2 * min(at_least, at_most))}[alternative]
    found = wilcoxon(data, alternative=alternative)  # type: ignore[arg-type]
    assert found.exact[0]
    assert found.positive[0] == seen
    assert found.p[0] == pytest.approx(expected)


def test_zeros_are_left_out_and_counted() -> None:
    found = wilcoxon([0.1, 0.0, 0.3, 0.0, -0.2, math.nan])
    assert (found.n[0], found.zeros[0], found.excluded[0]) == (3, 2, 1)
    assert found.p[0] == wilcoxon([0.1, 0.3, -0.2]).p[0]


def test_nothing_but_zeros_gives_p_1_and_one_query_gives_none() -> None:
    assert wilcoxon([0.0, 0.0, 0.0]).p[0] == 1.0
    assert math.isnan(wilcoxon([0.2]).p[0])
    assert math.isnan(wilcoxon([math.nan]).p[0])


def test_equal_sizes_take_the_normal_distribution() -> None:
    found = wilcoxon([0.1, -0.1, 0.2, 0.3])
    assert not found.exact[0]
    assert found.positive[0] == 1.5 + 3 + 4


def test_sizes_equal_but_for_rounding_are_tied() -> None:
    given = [0.3 - 0.2, -(0.9 - 0.8), 0.5, 1.0 - 0.9, 0.7]
    assert wilcoxon(given).p[0] == wilcoxon([0.1, -0.1, 0.5, 0.1, 0.7]).p[0]
    assert not wilcoxon(given).exact[0]


def test_trap_21_equal_differences_are_significant_when_there_are_enough() -> None:
    assert wilcoxon([0.1] * 30).p[0] < 1e-5
