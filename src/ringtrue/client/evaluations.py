"""Evaluations, comparisons and verdicts, as a service answers them. A number that is not known is None, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Figures = Mapping[str, float | None]
"""Figures by the key of their measure, such as ``recall_at_10``."""


@dataclass(frozen=True, slots=True)
class Component:
    """One part of a fused retriever, scored alone."""

    kind: str
    metrics: Figures


@dataclass(frozen=True, slots=True)
class Details:
    """What a reader should know before trusting a mean."""

    unjudged_at: int
    unjudged: Mapping[str, tuple[str, ...]]
    """By query: documents among the first ``unjudged_at`` hits that nobody judged."""
    failures: Mapping[str, str]
    """By query: why there is no answer."""
    missing: tuple[str, ...]
    """Judged queries that were not answered."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A retriever on a golden set; kept by the service under ``run_id``."""

    run_id: str
    name: str
    golden: str
    retriever: str
    fingerprint: str
    recorded_at: str
    k: int
    split: str
    queries: int
    measures: Mapping[str, str]
    """What each key of ``metrics`` measures: recall_at_10 is R@10."""
    metrics: Figures
    intervals: Mapping[str, tuple[float | None, ...]]
    """The 95 % interval of each mean."""
    per_query_type: Mapping[str, Figures]
    per_query_type_field: str | None
    components: Mapping[str, Component]
    latency_ms: Figures
    judged_at_10: float | None
    details: Details
    cached: bool


@dataclass(frozen=True, slots=True)
class MeasureDifference:
    """One measure of b against a, over the queries that both have."""

    measure: str
    n: int
    a: float | None
    b: float | None
    diff: float | None
    ci: tuple[float | None, ...]
    """The interval of the mean difference that decided, at 1 − level."""
    p: float | None
    p_adjusted: float | None
    interval_p: float | None
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
    verdict: str
    reason: str
    more_queries: int | None
    """How many more would settle it; None where no number does."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LatencyDifference:
    """Milliseconds of a and b over the same queries; a pair is (a, b)."""

    n: int
    mean_diff: float | None
    ci: tuple[float | None, ...]
    p50: tuple[float | None, ...]
    p95: tuple[float | None, ...]
    p99: tuple[float | None, ...]
    comparable: bool
    """False where the two were measured on different machines."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Is b better than a? The verdict is the word of the primary measure: better, worse, or not enough evidence."""

    verdict: str
    reason: str
    a: str
    b: str
    primary: str
    measures: Mapping[str, MeasureDifference]
    per_query: Figures
    """b − a of the primary measure, by query."""
    slices: Mapping[str, Mapping[str, Mapping[str, MeasureDifference]]]
    latency_ms: LatencyDifference | None
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    alpha: float
    correction: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """One rule of the gate applied to one number."""

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
class Gated:
    """Pass, fail or undecided, with every check; ``exit_code`` is that of ``ringtrue gate``."""

    run_id: str
    verdict: Literal["pass", "fail", "undecided"]
    exit_code: int
    name: str
    golden: str
    baseline: str | None
    mode: str
    checks: tuple[Check, ...]
    failures: tuple[Check, ...]
    notes: tuple[str, ...]
