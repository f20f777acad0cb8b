"""What a sweep found, as frozen values; how each parameter moved the measure; and every trial as an experiment (X-1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

import numpy as np

from ringtrue.experiment.judging import describe
from ringtrue.experiment.ledger import Experiment
from ringtrue.experiment.space import Point, Space, Value
from ringtrue.measures import Measure
from ringtrue.stats import paired_t
from ringtrue.verdict import Comparison

Outcome = Literal["confirmed", "worse", "not enough evidence", "baseline"]
BINS = 6
"""Groups of neighbouring values that a range with many is shown in."""
_WORDS = {"confirmed": "ACCEPTED", "worse": "REJECTED", "not enough evidence": "UNDECIDED"}


@dataclass(frozen=True)
class Trial:
    """One point that was tried on the tuning queries."""

    number: int
    """In the order they were tried, from 1."""
    point: Point
    value: float
    """Mean of the measure."""
    per_query: Mapping[str, float] = field(repr=False)
    reused: bool = False
    """True if the values come from an earlier sweep."""

    @property
    def values(self) -> Mapping[str, Value]:
        """The parameters."""
        return self.point.values


@dataclass(frozen=True)
class Impossible:
    """A point that no retriever or chunker can be made of, and why."""

    point: Point
    reason: str


@dataclass(frozen=True)
class Undefined:
    """For how many queries of a part the measure has no value, such as the precision of an empty answer."""

    baseline: int
    best: int
    queries: int
    """All queries of the part."""

    @property
    def unfair(self) -> bool:
        """True if the best leaves more queries out of its mean than the baseline: the hard ones may be among them."""
        return self.best > self.baseline

    def sentence(self, measure: str, part: str) -> str:
        """Return the same in plain words; empty if every query has a value on both sides."""
        if not self.baseline and not self.best:
            return ""
        return (
            f"{measure} is not defined for {self.best} of {self.queries} {part} queries with the best and for "
            f"{self.baseline} with the baseline"
        )


@dataclass(frozen=True)
class _BesideBaseline:
    """The best trial against the baseline on one part of a golden set."""

    n: int
    baseline: float
    best: float
    diff: float
    p: float
    """Of one test, as if the best had been the only one tried."""
    p_corrected: float
    """Times the trials (tuning) or claims (held-out) so far: what 'the best of so many is better' may claim (Bonferroni)."""
    undefined: Undefined


@dataclass(frozen=True)
class Tuning(_BesideBaseline):
    """Best against baseline on the queries that chose the best."""

    tests: int
    """Trials other than the baseline."""


@dataclass(frozen=True)
class HeldOut(_BesideBaseline):
    """Best against baseline on queries that took no part in choosing it."""

    comparison: Comparison
    looks: int
    """How often anybody has looked at this part, in any version of the set, this time included."""
    earlier: int
    """How many of these looks were at other versions of the set."""
    confirmations: int
    """How many different claims (winner, baseline, measure, scope) were put to it by sweeps, this one included."""


@dataclass(frozen=True)
class Overfitting:
    """How much of the gain on the tuning queries is missing on the others."""

    tuning_gain: float
    held_out_gain: float
    gap: float
    p: float
    """Chance of a gap this large if both parts gained alike (Welch's t test, one-sided); nan if too few queries tell."""
    flagged: bool


@dataclass(frozen=True)
class Sweep:
    """All trials, the best of them, and what the held-out queries say about it (X-2)."""

    space: Space
    method: str
    seed: int
    measure: str
    k: int
    trials: tuple[Trial, ...]
    """Best first."""
    impossible: tuple[Impossible, ...]
    baseline: Point
    best: Trial | None
    """None if no trial beat the baseline."""
    tuning: Tuning
    held_out: HeldOut | None
    """None if there was nothing that could be confirmed; the held-out part was then not looked at."""
    overfitting: Overfitting | None
    outcome: Outcome
    sentence: str
    """The outcome in plain words."""
    golden: str
    """Version of the tuning part."""
    corpus: str | None
    searches: int
    """Questions that were really put to a channel by the trials; the others were remembered."""
    notes: tuple[str, ...] = ()

    @property
    def lower_is_better(self) -> bool:
        """True if the best trial is the one with the lowest value."""
        return Measure.parse(self.measure).definition.lower_is_better


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
    names = [one.name for one in sweep.space.parameters]
    return {name: effect_of(name, sweep.trials, lower_is_better=sweep.lower_is_better) for name in names}


def effect_of(parameter: str, trials: Sequence[Trial], *, lower_is_better: bool) -> tuple[Effect, ...]:
    """Return what was reached at the values of one parameter, in their order."""
    up = -1 if lower_is_better else 1
    values = dict.fromkeys(trial.values[parameter] for trial in trials)
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) < len(values):
        groups = [[value] for value in values]
    elif len(numbers) <= 2 * BINS:
        groups = [[value] for value in sorted(numbers)]
    else:
        groups = [part.tolist() for part in np.array_split(np.array(sorted(numbers), object), BINS)]
    found = []
    for group in groups:
        members = [trial for trial in trials if trial.values[parameter] in group]
        reached = [trial.value for trial in members]
        label = f"{group[0]}" if len(group) == 1 else f"{group[0]} … {group[-1]}"
        mean, best = float(np.mean(reached)), up * max(up * value for value in reached)
        low, high = _noise(members, trials, mean)
        found.append(Effect(label, len(reached), mean, best, low, high))
    return tuple(found)


def _noise(members: Sequence[Trial], trials: Sequence[Trial], mean: float) -> tuple[float, float]:
    """Return the interval around a mean, nan if too few queries tell; pairing by query takes out that some are harder."""
    queries = [query for query in trials[0].per_query if all(query in trial.per_query for trial in trials)]
    if len(queries) < 2:
        return math.nan, math.nan
    here, everywhere = (
        np.mean([[trial.per_query[query] for query in queries] for trial in group], axis=0) for group in (members, trials)
    )
    test = paired_t(here - everywhere)
    reach = float(test.high[0] - test.mean[0])
    return mean - reach, mean + reach


def tracked(sweep: Sweep, *, on: date, commit: str | None = None) -> tuple[Experiment, ...]:
    """Return the trials as experiments without ids, in the order they were made; the results are those on tuning queries."""
    return tuple(_experiment(sweep, trial, on, commit) for trial in sorted(sweep.trials, key=lambda trial: trial.number))


def _experiment(sweep: Sweep, trial: Trial, on: date, commit: str | None) -> Experiment:
    point = trial.point
    extra = {"sweep": {"trial": trial.number, "of": len(sweep.trials), "method": sweep.method, "retriever": point.retriever}}
    if point.chunks is not None:
        extra["sweep"]["chunks"] = point.chunks
    return Experiment(
        "",
        on.isoformat(),
        f"sweep, trial {trial.number} of {len(sweep.trials)}: {describe(trial.values)}",
        dict(trial.values),
        {sweep.measure: trial.value},
        _verdict(sweep, trial),
        commit=commit,
        golden=sweep.golden,
        corpus=sweep.corpus,
        baseline=sweep.baseline.retriever,
        extra=extra,
    )


def _verdict(sweep: Sweep, trial: Trial) -> str:
    if sweep.best is None:
        return f"REJECTED (not better than the baseline's {sweep.measure} of {sweep.tuning.baseline:.4f} on the tuning queries)"
    if trial is sweep.best:
        return f"{_WORDS[sweep.outcome]} ({sweep.sentence})"
    reached = f"trial {sweep.best.number} reached {sweep.measure} {sweep.best.value:.4f}"
    return f"REJECTED ({reached} on the tuning queries, this one {trial.value:.4f})"
