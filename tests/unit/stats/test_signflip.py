"""The sign-flip test: exact where it says so, never 0, the same for the same rng, one pass for all columns."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.stats import sign_flip


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def by_hand(values: np.ndarray) -> float:
    sums = np.array([np.dot(signs, values) for signs in itertools.product([1, -1], repeat=len(values))]) / np.abs(values).sum()
    return float((np.abs(sums) >= abs(values.sum() / np.abs(values).sum()) - 1e-12).mean())


@pytest.mark.parametrize("n", [2, 3, 7, 11])
def test_the_exact_p_is_the_share_of_all_signs(n: int) -> None:
    data = np.concatenate([rng(n).normal(0.05, 0.1, (n, 2)), rng(n).choice([-0.5, 0.5, 1.0], (n, 2))], axis=1)
    assert sign_flip(data, rng=rng()).tolist() == [by_hand(column) for column in data.T]


def test_zeros_have_no_sign_so_that_a_long_column_of_few_changes_is_exact() -> None:
    changed = np.array([0.1, 0.2, -0.05, 0.3])
    data = np.zeros(500)
    data[[3, 70, 71, 400]] = changed
    assert sign_flip(data, rng=rng())[0] == by_hand(changed)


def test_drawn_signs_agree_with_all_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.concatenate([rng(5).normal(0.03, 0.1, (13, 4)), rng(6).choice([0, 0.5, -0.5, 1], (13, 4))], axis=1)
    exact = sign_flip(data, rng=rng())
    monkeypatch.setattr("ringtrue.stats.resample.EXACT_UP_TO", 0)
    drawn = sign_flip(data, rng=rng(), resamples=100_000)
    assert drawn.tolist() != exact.tolist()
    error = np.sqrt(exact * (1 - exact) / 100_000) + 1e-5
    assert (np.abs(drawn - exact) < 4.5 * error).all()


def test_trap_20_the_drawn_p_is_never_0() -> None:
    found = sign_flip(np.ones((200, 3)), rng=rng(), resamples=999)
    assert found.tolist() == [1 / 1000] * 3


def test_trap_20_the_same_rng_gives_the_same_answer_and_no_global_state_is_touched() -> None:
    data = rng(2).normal(0, 1, (100, 3))
    state = str(np.random.get_state())
    first, again, other = (sign_flip(data, rng=rng(seed)) for seed in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()
    assert str(np.random.get_state()) == state


def test_a_missing_value_changes_nothing_for_the_others() -> None:
    data = rng(2).normal(0.02, 0.1, (12, 2))
    holes = np.vstack([data, [[math.nan, math.nan]]])
    assert sign_flip(holes, rng=rng()).tolist() == sign_flip(data, rng=rng()).tolist()


def test_trap_21_equal_differences_and_zeros() -> None:
    found = sign_flip(np.array([[0.1, -0.1, 0.0]] * 6), rng=rng())
    assert found.tolist() == [2 / 64, 2 / 64, 1.0]
    assert sign_flip(np.zeros(1000), rng=rng())[0] == 1.0


def test_fewer_than_two_queries_have_no_p() -> None:
    assert math.isnan(sign_flip([0.4], rng=rng())[0])
    assert math.isnan(sign_flip([], rng=rng())[0])
    assert sign_flip(np.empty((5, 0)), rng=rng()).tolist() == []


def test_scale_does_not_matter_however_small_or_large() -> None:
    data = rng(2).normal(0.02, 0.1, (60, 1))
    plain = sign_flip(data, rng=rng())[0]
    assert sign_flip(data * 1e-60, rng=rng())[0] == plain == sign_flip(data * 1e60, rng=rng())[0]


def test_blocks_and_a_last_part_block_count_every_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringtrue.stats.resample.BLOCK", 400)
    # Of 20 pairs that cancel out the mean is 0, which every draw is at least as far from: the count is the number of draws.
    assert sign_flip(np.array([[1.0], [-1.0]] * 20), rng=rng(), resamples=1003)[0] == 1.0


def test_too_few_resamples_are_refused() -> None:
    for resamples in (99, 0, 10.5, True):
        with pytest.raises(InputError, match="resamples"):
            sign_flip([0.1, 0.2], rng=rng(), resamples=resamples)  # type: ignore[arg-type]
