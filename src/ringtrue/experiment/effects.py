"""How each parameter of a sweep moved the measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringtrue.experiment.outcome import Sweep, Trial
from ringtrue.experiment.space import Parameter
from ringtrue.stats import paired_t

BINS = 6
"""Groups of neighbouring values that a range with many is shown in."""


@dataclass(frozen=True)
class Effect:
    """The trials at one value of a parameter, or between two."""

    label: str
    trials: int
    mean: float
    """Over all that the other parameters did meanwhile."""
    best: float
    low: float
    high: float
    """What the mean may be by chance: the 95 % interval of its distance from the mean of all trials, over the same queries."""


def effects(sweep: Sweep) -> dict[str, tuple[Effect, ...]]:
    """Return for every parameter what was reached at its values, in their order."""
    up = -1 if sweep.lower_is_better else 1
    return {one.name: _of(one, sweep.trials, up) for one in sweep.space.parameters}


def _of(parameter: Parameter, trials: Sequence[Trial], up: int) -> tuple[Effect, ...]:
    values = dict.fromkeys(trial.values[parameter.name] for trial in trials)
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) < len(values):
        groups = [[value] for value in values]
    elif len(numbers) <= 2 * BINS:
        groups = [[value] for value in sorted(numbers)]
    else:
        groups = [part.tolist() for part in np.array_split(np.array(sorted(numbers), object), BINS)]
    found = []
    for group in groups:
        members = [trial for trial in trials if trial.values[parameter.name] in group]
        reached = [trial.value for trial in members]
        label = f"{group[0]}" if len(group) == 1 else f"{group[0]} … {group[-1]}"
        mean, best = float(np.mean(reached)), up * max(up * value for value in reached)
        low, high = _noise(members, trials, mean)
        found.append(Effect(label, len(reached), mean, best, low, high))
    return tuple(found)


def _noise(members: Sequence[Trial], trials: Sequence[Trial], mean: float) -> tuple[float, float]:
    """Return the interval around a mean, nan where too few queries tell; pairing by query takes out that some are harder."""
    queries = [query for query in trials[0].per_query if all(query in trial.per_query for trial in trials)]
    if len(queries) < 2:
        return math.nan, math.nan
    here, everywhere = (
        np.mean([[trial.per_query[query] for query in queries] for trial in group], axis=0) for group in (members, trials)
    )
    test = paired_t(here - everywhere)
    reach = float(test.high[0] - test.mean[0])
    return mean - reach, mean + reach
