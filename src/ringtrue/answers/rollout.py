"""Shadow runs, sequential tests and flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ringtrue.answers.record import Record

Status = Literal["running", "paused", "graduated", "rejected"]
ShadowSource = Literal["live", "log", "golden"]
Action = Literal["advance", "graduate", "rollback", "reject", "wait", "done"]


@dataclass(frozen=True, slots=True)
class ShadowSummary(Record):
    """What the runs of a candidate have shown; null if there is nothing to take a figure from."""

    queries: int
    failures: int
    """Queries to which the candidate gave no answer."""
    changed: float | None
    """Share of answers that differ in any place."""
    top_changed: float | None
    overlap: float | None
    """Mean Jaccard overlap."""
    tau: float | None
    """Mean rank correlation, where it exists."""
    judged: int
    mrr_delta: float | None
    """Candidate − production, over judged queries."""
    mrr_spread: float | None
    """Standard deviation of that difference from query to query."""
    ndcg_delta: float | None
    timed: int
    """Queries with both latencies, of the one source that these are taken from."""
    control_p95_ms: float | None
    treatment_p95_ms: float | None
    timed_source: ShadowSource | None
    """Where they were timed: `live` if that is enough, else `log` or `golden`; null if nobody said."""
    live: int
    """Queries of live systems, and those from before that was stored."""
    missing: int
    """Sampled queries of live systems of which nothing is stored."""
    missing_share: float | None
    """The part of the live sample that is missing; under load that is not a random part."""
    failure_share: float | None
    p95_increase: float | None
    """How much longer the candidate's slow answers take, as a share: 0.2 is 20 %."""


@dataclass(frozen=True, slots=True)
class ShadowFeature(Record):
    """A feature that runs in the shadow."""

    feature: str
    shadow: bool
    """Whether its candidate runs now."""
    rollout: float
    state: str
    summary: ShadowSummary


@dataclass(frozen=True, slots=True)
class ShadowRun(Record):
    """One query, answered by production and by the candidate."""

    query_id: str
    created_at: str
    control_result_ids: tuple[str, ...]
    treatment_result_ids: tuple[str, ...]
    rank_correlation: float | None = None
    set_overlap: float | None = None
    top_result_changed: bool | None = None
    order_differences: int | None = None
    mrr_delta: float | None = None
    ndcg_delta: float | None = None
    control_latency_ms: float | None = None
    treatment_latency_ms: float | None = None
    error: str | None = None
    """Why the candidate gave no answer; production's was returned all the same."""
    candidate: str = ""
    """What tells the candidates of a feature apart: a fingerprint, or since when it is what it is; '' if nobody said."""
    source: ShadowSource | None = None
    """Where it was asked: in a live system, from the log, or on a golden set; times of one are not those of another."""


@dataclass(frozen=True, slots=True)
class ShadowFeatureRuns(ShadowFeature):
    """A feature that runs in the shadow, with its newest runs."""

    runs: tuple[ShadowRun, ...]


@dataclass(frozen=True, slots=True)
class ShadowRecorded(Record):
    """What became of runs that were sent."""

    accepted: int
    stored: int
    """New ones: a query counts once for a candidate of a feature."""


@dataclass(frozen=True, slots=True)
class SequentialTest(Record):
    """A sequential test as far as it has come."""

    feature: str
    method: str
    status: Status
    decision: str
    decided_after: int | None
    samples: int
    min_samples: int
    mean_difference: float | None
    control: float | None
    treatment: float | None
    measure: str | None
    interval: tuple[float, ...] | None
    """Lower and upper end."""
    sigma: float | None
    evidence: float
    upper_bound: float
    lower_bound: float
    alpha: float
    beta: float
    delta: float
    error_controlled: bool
    """Whether looking after every query keeps alpha."""
    reason: str
    started_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class EvidencePoint(Record):
    """Where the test stood after so many queries."""

    sample_count: int
    at: str
    llr: float
    """The evidence, whatever the method calls it."""
    estimate: float | None = None
    """The mean difference."""
    low: float | None = None
    high: float | None = None
    """An interval that holds at every look; null if the method has none."""


@dataclass(frozen=True, slots=True)
class SequentialTestPath(SequentialTest):
    """A sequential test, with the path of its evidence between the bounds."""

    points: tuple[EvidencePoint, ...]


@dataclass(frozen=True, slots=True)
class CountedQuery(Record):
    """What became of one query."""

    query_id: str
    counted: bool
    why_not: str
    """Counted before, or the test is paused or over; empty if it was counted."""


@dataclass(frozen=True, slots=True)
class RecordedScores(Record):
    """What became of each query, and how the test stands now."""

    counted: int
    queries: tuple[CountedQuery, ...]
    test: SequentialTest


@dataclass(frozen=True, slots=True)
class FlagState(Record):
    """A feature that reaches a share of the traffic."""

    name: str
    rollout: float = 0.0
    """Percent of identities."""
    state: Status = "running"
    shadow: bool = False
    min_samples: int = 100
    graduation_threshold: float = 0.03
    stage_since: str | None = None
    description: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListedFlag(FlagState):
    """A flag as the list shows it."""

    preset: bool = False
    """True if only the server's environment sets it."""
    override: float | None = None
    """The percentage that the server's environment sets, which wins there."""


@dataclass(frozen=True, slots=True)
class Condition(Record):
    """One condition."""

    name: str
    holds: bool | None
    """null if it is not known."""
    says: str


@dataclass(frozen=True, slots=True)
class FlagDecision(Record):
    """What becomes of a flag, and everything that was looked at."""

    action: Action
    why: str
    moved: bool
    before: FlagState
    flag: FlagState
    checks: tuple[Condition, ...]
    breaches: tuple[str, ...]
    page: str
    """The same in plain words, for people."""


@dataclass(frozen=True, slots=True)
class FlagChange(Record):
    """Who changed a flag, when and why."""

    at: str
    who: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class FlagPage(Record):
    """A flag with its graduation checklist: what a step would do now."""

    flag: FlagState
    next: FlagDecision
    history: tuple[FlagChange, ...]
    """The newest first."""


@dataclass(frozen=True, slots=True)
class Variant(Record):
    """What an identity gets."""

    flag: str
    identity: str
    on: bool
    variant: Literal["treatment", "control"]
    rollout: float
    """Percent that decided it."""
