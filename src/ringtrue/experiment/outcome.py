"""What a sweep found, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ringtrue.experiment.space import Point, Space, Value
from ringtrue.measures import Measure
from ringtrue.verdict import Comparison

Outcome = Literal["confirmed", "worse", "not enough evidence", "baseline"]


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
    """True where the values come from an earlier sweep."""

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
        """True where the best leaves more queries out of its mean than the baseline: the hard ones may be among them."""
        return self.best > self.baseline

    def told(self, measure: str, part: str) -> str:
        """Return the same in plain words; empty where every query has a value on both sides."""
        if not self.baseline and not self.best:
            return ""
        return (
            f"{measure} is not defined for {self.best} of {self.queries} {part} queries with the best and for "
            f"{self.baseline} with the baseline"
        )


@dataclass(frozen=True)
class Tuning:
    """Best against baseline on the queries that chose the best."""

    n: int
    baseline: float
    best: float
    diff: float
    p: float
    """Of the sign-flip test, as if the best had been the only one tried."""
    p_corrected: float
    """Times the number of trials (Bonferroni): what 'the best of so many is better' may claim."""
    tests: int
    """Trials other than the baseline."""
    undefined: Undefined


@dataclass(frozen=True)
class HeldOut:
    """Best against baseline on queries that took no part in choosing it."""

    n: int
    baseline: float
    best: float
    diff: float
    p: float
    """Of the one test that is made here."""
    p_corrected: float
    """Times the different claims that sweeps have put to this part so far."""
    comparison: Comparison
    looks: int
    """How often anybody has looked at this part, in any version of the set, this time included."""
    earlier: int
    """How many of these looks were at other versions of the set."""
    confirmations: int
    """How many different claims (winner, baseline, measure, scope) were put to it by sweeps, this one included."""
    undefined: Undefined


@dataclass(frozen=True)
class Overfitting:
    """How much of the gain on the tuning queries is missing on the others."""

    tuning_gain: float
    held_out_gain: float
    gap: float
    p: float
    """Chance of a gap this large if both parts gained alike (Welch's t test, one-sided); nan where too few queries tell."""
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
    """None where no trial beat the baseline."""
    tuning: Tuning
    held_out: HeldOut | None
    """None where there was nothing that could be confirmed; the held-out part was then not looked at."""
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
        """True where the best trial is the one with the lowest value."""
        return Measure.parse(self.measure).definition.lower_is_better
