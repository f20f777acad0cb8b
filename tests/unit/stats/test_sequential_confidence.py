"""The confidence sequence by betting, against a slow reference of its own."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.stats import ConfidenceSequence, SequentialPlan, candidate_means, first_decisions

PLAN = SequentialPlan()


def reference_capitals(differences: list[float], mean: float, plan: SequentialPlan) -> tuple[list[Fraction], list[Fraction]]:
    """Both gamblers' capital after every difference: products of exact fractions, sums taken afresh, no logarithms.

    The gambler knows the differences before; each stake follows the description in the head of the module.
    """
    up, down = [Fraction(1)], [Fraction(1)]
    for t, difference in enumerate(differences):
        past = [0.0, *differences[:t]]  # one difference of 0 as a first guess of the mean …
        centre = math.fsum(past) / len(past)
        spread = (math.fsum(value * value for value in past) + 0.25) / len(past) - centre**2  # … and a quarter of the spread
        aim = min(plan.delta, math.sqrt(2 * math.log(2 / plan.alpha) * spread / len(past)))
        bet = aim / (spread + aim**2)
        stakes = min(bet, 0.75 / (1 + mean)), min(bet, 0.75 / (1 - mean))
        up.append(up[-1] * (1 + Fraction(stakes[0]) * (Fraction(difference) - Fraction(mean))))
        down.append(down[-1] * (1 - Fraction(stakes[1]) * (Fraction(difference) - Fraction(mean))))
    return up[1:], down[1:]


def differences(seed: int, n: int, mean: float = 0.0, sd: float = 0.25) -> list[float]:
    return [float(value) for value in np.random.default_rng(seed).normal(mean, sd, n).clip(-1, 1)]


def fed(values: list[float], plan: SequentialPlan = PLAN) -> list[ConfidenceSequence]:
    states, state = [], ConfidenceSequence(plan)
    for value in values:
        state = state.add(value)
        states.append(state)
    return states


@pytest.mark.parametrize(("seed", "mean", "sd"), [(1, 0.0, 0.25), (2, 0.1, 0.1), (3, -0.2, 0.4)])
def test_capitals_are_those_of_the_reference(seed: int, mean: float, sd: float) -> None:
    values = differences(seed, 40, mean, sd)
    last = fed(values)[-1]
    for place, candidate in enumerate(candidate_means(PLAN.delta)):
        if place % 6 == 0 or candidate in (0.0, PLAN.delta):
            up, down = reference_capitals(values, candidate, PLAN)
            assert last.up[place] == pytest.approx(math.log(up[-1]), abs=1e-9)
            assert last.down[place] == pytest.approx(math.log(down[-1]), abs=1e-9)


def test_the_interval_is_what_the_reference_leaves() -> None:
    plan = SequentialPlan(delta=0.2)
    values = differences(5, 60, 0.25, 0.2)
    state = fed(values, plan)[-1]
    rich = 2 / Fraction(plan.alpha)
    means = candidate_means(plan.delta)
    ruled_out = [[max(side) >= rich for side in reference_capitals(values, mean, plan)] for mean in means]
    low = max((mean for place, mean in enumerate(means) if all(up for up, _ in ruled_out[: place + 1])), default=-1.0)
    high = min((mean for place, mean in enumerate(means) if all(down for _, down in ruled_out[place:])), default=1.0)
    assert (state.low, state.high) == (low, high)
    assert -1 < low < 0.25 < high < 1


def test_a_stake_never_depends_on_the_difference_it_is_placed_on() -> None:
    """Between two differences the capital is a straight line in the second: the stake was set before."""
    start = fed(differences(6, 25))[-1]
    capitals = [np.exp(np.array(start.add(value).up) - np.array(start.up)) for value in (-0.5, 0.0, 0.5)]
    assert capitals[0] + capitals[2] == pytest.approx(2 * capitals[1])


@pytest.mark.parametrize("shape", ["gaussian", "rare losses", "coin"])
def test_the_interval_holds_the_mean_at_every_look(shape: str) -> None:
    rng = np.random.default_rng(7)
    size = (100, 120)
    data = {
        "gaussian": rng.normal(0.0, 0.3, size).clip(-1, 1),
        "rare losses": np.where(rng.random(size) < 0.1 / 1.1, -1.0, 0.1),
        "coin": rng.choice((-1.0, 1.0), size),
    }[shape]
    missed = sum(1 for column in data if not (last := fed(column.tolist())[-1]).low <= 0 <= last.high)
    # The ends only ever move inwards, so that the last interval is the intersection of all looks.
    assert missed / len(data) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / len(data))


def test_the_ends_only_move_inwards_and_go_on_shrinking_below_delta() -> None:
    states = fed(differences(8, 3_000, 0.02, 0.1))
    assert all(before.low <= after.low and after.high <= before.high for before, after in pairwise(states))
    widths = [states[n - 1].high - states[n - 1].low for n in (100, 500, 3_000)]
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < PLAN.delta / 2


def test_all_at_once_decides_as_one_by_one() -> None:
    data = np.array([differences(seed, 250, (seed % 3) * 0.04) for seed in range(12)]).T
    codes, after = first_decisions(data, "confidence sequence")
    assert set(codes.tolist()) == {0, 1, 2}
    for column in range(data.shape[1]):
        states = fed(data[:, column].tolist())
        first = next((state for state in states if state.decision != "continue"), None)
        expected = ("continue", 250) if first is None else (first.decision, first.n)
        assert (("continue", "accept-treatment", "accept-control")[codes[column]], after[column]) == expected


def test_the_state_does_not_grow() -> None:
    states = fed(differences(9, 300))
    assert len({(len(state.up), len(state.down)) for state in states}) == 1


def test_before_the_first_difference_nothing_is_known() -> None:
    empty = ConfidenceSequence()
    assert (empty.low, empty.high, empty.evidence, empty.decision) == (-1.0, 1.0, 0.0, "continue")


@pytest.mark.parametrize("delta", [0.001, 0.05, 0.3, 0.9])
def test_the_candidate_means_hold_0_and_delta_and_stay_inside(delta: float) -> None:
    means = candidate_means(delta)
    assert {0.0, delta, -delta} <= set(means)
    assert list(means) == sorted(set(means))
    assert -1 < means[0] < means[-1] < 1


@pytest.mark.parametrize("difference", [1.01, -1.01, math.nan])
def test_differences_outside_their_range_are_refused(difference: float) -> None:
    with pytest.raises(InputError, match="−1 to 1"):
        ConfidenceSequence().add(difference)
