"""Evaluations, comparisons and verdicts. A number that is not known is None, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ringtrue.answers.record import Record

Figures = Mapping[str, float | None]
"""Figures by the key of their measure, such as ``recall_at_10``."""
Word = Literal["better", "worse", "not enough evidence"]
Outcome = Literal["pass", "fail", "undecided"]


@dataclass(frozen=True, slots=True)
class ComponentScores(Record):
    """One part of a fused retriever, scored alone."""

    kind: Literal["channel", "fusion", "stage", "without"]
    metrics: Figures


@dataclass(frozen=True, slots=True)
class Details(Record):
    """What a reader should know before trusting a mean."""

    unjudged_at: int
    """How far down unjudged documents are listed."""
    unjudged: Mapping[str, tuple[str, ...]]
    """By query: documents among the first hits that nobody judged."""
    failures: Mapping[str, str]
    """By query: why there is no answer."""
    missing: tuple[str, ...]
    """Judged queries that were not answered."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evaluated(Record):
    """A retriever on a golden set. An undefined number is null, never 0."""

    run_id: str
    name: str
    golden: str
    """Like hotel-v1.0.0."""
    retriever: str
    """With every default written out."""
    fingerprint: str
    recorded_at: str
    k: int
    split: str
    queries: int
    measures: Mapping[str, str]
    """What each key of `metrics` measures: recall_at_10 is R@10."""
    metrics: Figures
    intervals: Mapping[str, tuple[float | None, ...]]
    """95 % interval of each mean."""
    per_query_type: Mapping[str, Figures]
    """Means by the value of `per_query_type_field`."""
    per_query_type_field: str | None
    components: Mapping[str, ComponentScores]
    latency_ms: Figures
    judged_at_10: float | None
    details: Details
    cached: bool


@dataclass(frozen=True, slots=True)
class MeasureDifference(Record):
    """One measure of b against a, over the queries that both have."""

    measure: str
    n: int
    a: float | None
    b: float | None
    diff: float | None
    ci: tuple[float | None, ...]
    """The interval of the mean difference that decided, at 1 − level."""
    p: float | None
    """Of the randomisation test."""
    p_adjusted: float | None
    """The p that decides: the larger of p and interval_p, corrected."""
    interval_p: float | None
    """The smallest alpha at which the interval excludes 0."""
    decides: bool
    """False for a measure that is informational only."""
    tests: int
    """How many tests p_adjusted, ci and verdict are corrected for."""
    level: float
    effect: float | None
    prob_better: float | None
    wins: int
    ties: int
    losses: int
    verdict: Word
    reason: str
    more_queries: int | None
    """How many more would settle it; null if no number does."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LatencyDifference(Record):
    """Milliseconds of a and b over the same queries."""

    n: int
    mean_diff: float | None
    ci: tuple[float | None, ...]
    p50: tuple[float | None, ...]
    """Of a and of b."""
    p95: tuple[float | None, ...]
    p99: tuple[float | None, ...]
    comparable: bool
    """False if the two were measured on different machines."""


@dataclass(frozen=True, slots=True)
class Compared(Record):
    """Is b better than a? The verdict is the word of the primary measure."""

    verdict: Word
    reason: str
    a: str
    b: str
    primary: str
    measures: Mapping[str, MeasureDifference]
    per_query: Figures
    """b − a of the primary measure, by query."""
    slices: Mapping[str, Mapping[str, Mapping[str, MeasureDifference]]]
    """field → value → measure; explorative."""
    latency_ms: LatencyDifference | None
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    alpha: float
    correction: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GateCheck(Record):
    """One rule applied to one number."""

    rule: str
    measure: str
    status: Literal["pass", "degraded", "fail", "advisory", "undecided"]
    message: str
    current: float | None
    threshold: float | None
    baseline: float | None
    degradation: float | None
    """Fall against the baseline as a share: 0.05 is 5 %."""
    interval: tuple[float | None, ...] | None
    slice: str | None
    queries: tuple[str, ...]
    """The queries behind a failure, the guiltiest first."""


@dataclass(frozen=True, slots=True)
class Gated(Record):
    """Pass, fail or undecided, with every check; ``exit_code`` is that of ``ringtrue gate``."""

    run_id: str
    """Under which the verdict is kept."""
    verdict: Outcome
    exit_code: Literal[0, 1, 3]
    name: str
    golden: str
    baseline: str | None
    """Version of the baseline."""
    mode: str
    checks: tuple[GateCheck, ...]
    failures: tuple[GateCheck, ...]
    notes: tuple[str, ...]
