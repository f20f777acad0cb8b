"""How each parameter of a sweep moved the measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringtrue.experiment.outcome import Sweep, Trial
from ringtrue.experiment.space import Parameter

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
        reached = [trial.value for trial in trials if trial.values[parameter.name] in group]
        label = f"{group[0]}" if len(group) == 1 else f"{group[0]} … {group[-1]}"
        found.append(Effect(label, len(reached), float(np.mean(reached)), up * max(up * value for value in reached)))
    return tuple(found)
