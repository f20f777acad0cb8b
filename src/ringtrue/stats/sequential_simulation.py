"""How often sequential tests err when looked at after every query: accepted without a gain, missed with one.

Shapes of differences, all of them of one standard deviation and inside −1 to 1, with a true mean of 0 and then of delta. A
simulated test is a column. The methods are those that judge live tests and promise something; ``benchmarks/sequential.py``
sets others beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringtrue.errors import InputError, nearest
from ringtrue.stats import sequential
from ringtrue.stats.columns import Floats, check_resamples
from ringtrue.stats.sequential import DEFAULT_PLAN, SequentialPlan

SequentialShape = Literal["gaussian", "skewed gains", "skewed losses", "zero-inflated", "discrete", "rare gains", "rare losses"]
SEQUENTIAL_SHAPES: tuple[SequentialShape, ...] = get_args(SequentialShape)
Method = Literal["sprt", "confidence sequence"]
METHODS: tuple[Method, ...] = get_args(Method)
CONTINUE, TREATMENT, CONTROL = 0, 1, 2
"""Decisions in arrays of simulated tests."""
Decisions = tuple[NDArray[np.int8], NDArray[np.int64]]
"""Of every test: its decision, and after how many queries it fell; all of them if none fell."""
# Beta(0.2, 1.5): skewness 2.1, and at a standard deviation of 0.2 it still fits between −1 and 1.
_A, _B = 0.2, 1.5
_SKEWED_MEAN = _A / (_A + _B)
_SKEWED_SD = math.sqrt(_A * _B / (_A + _B + 1)) / (_A + _B)
CHANGED = 0.3
"""Share of the queries that change at all, of zero-inflated differences."""
STEP = 0.5
"""Discrete differences are −STEP, 0 or STEP."""
APART = 0.9
"""How far the two values of rare gains or losses lie apart."""
STANDARD_ERRORS = 3.0
"""So far above alpha a share may be found: a gambler's proof is sharp if losses are rare, and simulations are counted."""
# So many tests at a time keep the arrays in the processor's cache.
PART = 250


@dataclass(frozen=True, slots=True)
class SequentialRate:
    """How one method did on one shape, looked at after every query, up to ``most`` queries."""

    shape: SequentialShape
    method: str
    false_accept: float
    """Share of the tests without a gain that accepted the treatment."""
    power: float
    """Share of the tests with a gain of delta that accepted it."""
    missed: float
    """Share of those that accepted the control; the rest had not decided."""
    queries_without: float
    """Mean number of queries without a gain; a test that had not decided counts with all of them."""
    queries_with: float
    most: int
    simulations: int


def sequential_differences(
    shape: SequentialShape, mean: float, queries: int, count: int, rng: np.random.Generator, *, sd: float = 0.2
) -> Floats:
    """Return ``count`` columns of differences with that true mean and standard deviation, all in −1 to 1.

    ``gaussian``: normal, cut off at ±1 (five standard deviations away at 0.2). ``skewed gains``: mostly a little below, seldom
    far above (a shifted Beta(0.2, 1.5), skewness 2.1); ``skewed losses`` its mirror image. ``zero-inflated``: seven queries in
    ten do not change, the others uniformly. ``discrete``: −0.5, 0 or 0.5, as of scores 0, 0.5 and 1. ``rare losses``: mostly a
    little above the mean, seldom 0.85 below; ``rare gains`` its mirror image.

    Raises InputError if the shape is unknown or cannot have that mean and spread inside −1 to 1.

    >>> sequential_differences("discrete", 0.05, 100, 3, np.random.default_rng(1)).shape
    (100, 3)
    """
    size = (queries, count)
    sign = -1.0 if shape in ("skewed losses", "rare gains") else 1.0
    if shape == "gaussian":
        _check_fit(shape, mean, sd, fits=1 - abs(mean) >= 3 * sd)
        return np.clip(rng.normal(mean, sd, size), -1.0, 1.0)
    if shape in ("skewed gains", "skewed losses"):
        scale = sd / _SKEWED_SD
        _check_fit(shape, mean, sd, fits=scale * (1 - _SKEWED_MEAN) <= 1 - abs(mean))
        return np.asarray(mean + sign * scale * (rng.beta(_A, _B, size) - _SKEWED_MEAN))
    if shape == "zero-inflated":
        centre = mean / CHANGED
        half = math.sqrt(3 * max(0.0, (sd**2 + mean**2) / CHANGED - centre**2))
        _check_fit(shape, mean, sd, fits=half != 0 and abs(centre) + half <= 1)
        return np.where(rng.random(size) < CHANGED, rng.uniform(centre - half, centre + half, size), 0.0)
    if shape == "discrete":
        changed, tilt = (sd**2 + mean**2) / STEP**2, mean / STEP
        _check_fit(shape, mean, sd, fits=changed <= 1 and abs(tilt) <= changed)
        chances = ((changed - tilt) / 2, 1 - changed, (changed + tilt) / 2)
        return np.asarray(rng.choice((-STEP, 0.0, STEP), size, p=chances))
    if shape in ("rare gains", "rare losses"):
        rare = (1 - math.sqrt(max(0.0, 1 - (2 * sd / APART) ** 2))) / 2
        _check_fit(shape, mean, sd, fits=2 * sd <= APART and abs(mean) + APART * (1 - rare) <= 1)
        return np.asarray(mean + sign * APART * (rare - (rng.random(size) < rare)))
    raise InputError(f"cannot use shape = {shape!r}; write {nearest(str(shape), SEQUENTIAL_SHAPES)}")


def _check_fit(shape: str, mean: float, sd: float, *, fits: bool) -> None:
    if not fits:
        said = f"mean {mean:g} and standard deviation {sd:g} leave −1 to 1"
        raise InputError(f"{shape} differences with {said}; use a smaller sd")


def first_decisions(differences: ArrayLike, method: Method, *, plan: SequentialPlan = DEFAULT_PLAN) -> Decisions:
    """Return what a method decides about every column, looked at after each row.

    The same decisions as ``Sprt`` and ``ConfidenceSequence`` make one by one.

    >>> codes, after = first_decisions(np.full((60, 2), [0.3, -0.3]), "sprt")
    >>> codes.tolist(), after.tolist()
    ([1, 2], [30, 30])
    """
    values = np.asarray(differences, dtype=np.float64)
    queries, count = values.shape
    codes, after = np.full(count, CONTINUE, dtype=np.int8), np.full(count, queries, dtype=np.int64)
    rich = sequential.rich_gamblers(plan) if method == "sprt" else (sequential.rich_from(plan),) * 2
    stake = sequential.sprt_bet if method == "sprt" else sequential.sequence_bet
    upper, lower = sequential.wald_bounds(plan)
    still = np.arange(count)
    total, squares, gain, none = (np.zeros(count) for _ in range(4))
    for row in range(queries):
        seen = values[row, still]
        bet = stake(row, total, squares, plan)
        gain = np.where(gain < rich[0], gain + sequential.growth(bet, seen, 0.0), gain)
        none = np.where(none < rich[1], none + sequential.growth(bet, -seen, -plan.delta), none)
        total += seen
        squares += seen * seen
        accepted, refused = gain >= rich[0], none >= rich[1]
        if method == "sprt":
            variance = sequential.variance_so_far(row + 1, total, squares)
            ratio = plan.delta / variance * (total - (row + 1) * plan.delta / 2)
            burnt_in = row + 1 >= sequential.BURN_IN
            accepted, refused = accepted & (ratio >= upper) & burnt_in, refused & (ratio <= lower) & burnt_in
        done = accepted | refused
        if done.any():
            codes[still[done]] = np.where(accepted[done], TREATMENT, CONTROL)
            after[still[done]] = row + 1
            still = still[~done]
            total, squares, gain, none = (array[~done] for array in (total, squares, gain, none))
            if not still.size:
                break
    return codes, after


def sequential_rates(
    *,
    seed: int = 0,
    simulations: int = 2_000,
    most: int = 2_000,
    shapes: Sequence[SequentialShape] = SEQUENTIAL_SHAPES,
    plan: SequentialPlan = DEFAULT_PLAN,
    sd: float = 0.2,
    others: Mapping[str, Callable[[Floats], Decisions]] | None = None,
) -> tuple[SequentialRate, ...]:
    """Return the error rates of every method on every shape; each shape draws from a generator of its own.

    ``others`` are further ways to decide about the columns, by name. Raises InputError if an option is unusable.

    >>> rates = sequential_rates(simulations=100, most=400, shapes=["discrete"])
    >>> [rate.method for rate in rates]
    ['sprt', 'confidence sequence']
    """
    check_resamples(simulations, least=1)
    check_resamples(most, least=1)
    rates = []
    methods: dict[str, Callable[[Floats], Decisions]] = {
        method: lambda values, method=method: first_decisions(values, method, plan=plan)  # type: ignore[misc]
        for method in METHODS
    }
    methods |= others or {}
    for shape in shapes:
        found: dict[tuple[str, bool], list[Decisions]] = {}
        rng = np.random.default_rng([seed, SEQUENTIAL_SHAPES.index(shape) if shape in SEQUENTIAL_SHAPES else 0])
        for start in range(0, simulations, PART):
            count = min(PART, simulations - start)
            for gain in (False, True):
                differences = sequential_differences(shape, plan.delta if gain else 0.0, most, count, rng, sd=sd)
                for method, decide in methods.items():
                    found.setdefault((method, gain), []).append(decide(differences))
        for method in methods:
            null, null_after = (np.concatenate(part) for part in zip(*found[method, False]))
            codes, after = (np.concatenate(part) for part in zip(*found[method, True]))
            false, power, missed, without, with_gain = (
                float(found.mean()) for found in (null == TREATMENT, codes == TREATMENT, codes == CONTROL, null_after, after)
            )
            rates.append(SequentialRate(shape, method, false, power, missed, without, with_gain, most, simulations))
    return tuple(rates)


def allowed_share(plan: SequentialPlan, simulations: int) -> float:
    """Return the share of false accepts up to which so many simulations do not speak against alpha.

    >>> round(allowed_share(DEFAULT_PLAN, 2_000), 4)
    0.0646
    """
    return plan.alpha + STANDARD_ERRORS * math.sqrt(plan.alpha * (1 - plan.alpha) / simulations)


def broken_promises(rates: Sequence[SequentialRate], plan: SequentialPlan = DEFAULT_PLAN) -> tuple[str, ...]:
    """Return, in words, where a method that promises alpha and beta did not keep them; empty if all did.

    >>> rates = sequential_rates(simulations=100, most=600, shapes=["gaussian"])
    >>> broken_promises(rates)
    ()
    """
    broken = []
    for rate in (rate for rate in rates if rate.method in METHODS):
        where = f"{rate.method}, {rate.shape}"
        if rate.false_accept > allowed_share(plan, rate.simulations):
            broken.append(f"{where}: {100 * rate.false_accept:.3g} % false accepts, at most {100 * plan.alpha:.3g} % wanted")
        if rate.power < 1 - plan.beta:
            broken.append(f"{where}: {100 * rate.power:.3g} % power, at least {100 * (1 - plan.beta):.3g} % wanted")
    return tuple(broken)
