"""The signed-rank test at its edges; its numbers are compared with SciPy's in tests/reference."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from ringtrue.stats import wilcoxon


def test_the_exact_p_is_the_share_of_all_signs() -> None:
    data = np.array([0.3, -0.1, 0.25, 0.7, -0.2, 0.05])
    ranks = np.argsort(np.argsort(np.abs(data))) + 1
    seen = ranks[data > 0].sum()
    sums = np.array([sum(r for r, up in zip(ranks, signs) if up) for signs in itertools.product([0, 1], repeat=6)])
    assert wilcoxon(data)[0] == pytest.approx(min(1, 2 * min((sums >= seen).mean(), (sums <= seen).mean())))


def test_zeros_are_left_out() -> None:
    assert wilcoxon([0.1, 0.0, 0.3, 0.0, -0.2, math.nan])[0] == wilcoxon([0.1, 0.3, -0.2])[0]


def test_nothing_but_zeros_gives_p_1_and_one_query_gives_none() -> None:
    assert wilcoxon([0.0, 0.0, 0.0])[0] == 1.0
    assert math.isnan(wilcoxon([0.2])[0])
    assert math.isnan(wilcoxon([math.nan])[0])


def test_sizes_equal_but_for_rounding_are_tied() -> None:
    given = [0.3 - 0.2, -(0.9 - 0.8), 0.5, 1.0 - 0.9, 0.7]
    assert wilcoxon(given)[0] == wilcoxon([0.1, -0.1, 0.5, 0.1, 0.7])[0]
    normal = scipy_stats.wilcoxon([0.1, -0.1, 0.5, 0.1, 0.7], method="asymptotic", correction=True).pvalue
    assert wilcoxon(given)[0] == pytest.approx(normal)


def test_equal_differences_are_significant_if_there_are_enough() -> None:
    assert wilcoxon([0.1] * 30)[0] < 1e-5
