"""What the platform remembers, as frozen values: one record per table. Times are ISO 8601 in UTC and sort; ids are texts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from ringtrue import answers
from ringtrue.answers import (
    Event,
    EvidencePoint,
    FlagState,
    Job,
    KeptJudgment,
    KeyState,
    ReviewState,
    Scope,
    SearchFacts,
    Status,
)
from ringtrue.errors import InputError
from ringtrue.ids import ids_as_text, keep_as_text

_AS_KEPT = re.compile(r"....-..-..T........\.......Z").fullmatch


def timestamp(moment: datetime | str) -> str:
    """Return a moment as the store keeps it: UTC, six digits of the second, ``Z``. One without a zone is UTC.

    Raises InputError for a text that is not an ISO 8601 time, and for one that UTC has no year for.

    >>> timestamp("2026-03-01T12:00:00+02:00")
    '2026-03-01T10:00:00.000000Z'
    """
    if not isinstance(moment, datetime):
        try:
            parsed = datetime.fromisoformat(moment)
        except (ValueError, TypeError) as problem:
            raise InputError(f"cannot read the time {moment!r}; write it like 2026-03-01T12:00:00Z") from problem
        if _AS_KEPT(moment):
            return moment  # is so already, as most are
        moment = parsed
    try:
        # Naive first: astimezone() would take it for local time.
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as problem:
        raise InputError(f"the time {moment.isoformat()} lies outside the years 1 to 9999 in UTC; correct it") from problem
    return moment.isoformat(timespec="microseconds")[:26] + "Z"


DEFAULT_PROJECT = "default"
MOST_KEY_DAYS = 3650
"""A key that has an end ends within ten years."""

RunType = Literal["full", "shadow", "regression", "ab_test"]
USER_DELETED = "user.deleted"
"""What the audit trail calls the deletion of a user, whose mark is the entry's subject."""

QUERY_LIST = "query list"
"""The tool of searches that came from a plain list of queries: what they found is unknown, which is not nothing."""


@dataclass(frozen=True, slots=True)
class LoggedQuery(SearchFacts):
    """One search as it happened (table eval_queries)."""

    project: str = DEFAULT_PROJECT

    def __post_init__(self) -> None:
        keep_as_text(self, "query_id", "session_id", "user_id", "trace_id", "prompt_id")
        object.__setattr__(self, "result_ids", ids_as_text(self.result_ids))
        if self.channel_contributions and isinstance(self.channel_contributions, Mapping):
            channels = {name: ids_as_text(ids) for name, ids in self.channel_contributions.items()}
            object.__setattr__(self, "channel_contributions", channels)

    @property
    def result_count(self) -> int | None:
        """How many results the search had; None if that is unknown, as for an imported list of queries."""
        return None if self.tool_name == QUERY_LIST else len(self.result_ids)


@dataclass(frozen=True, slots=True)
class FeedbackEvent(Event):
    """Something that a person or an agent did with a result (table eval_feedback; its column memory_id is ``item_id``)."""

    project: str = DEFAULT_PROJECT

    def __post_init__(self) -> None:
        keep_as_text(self, "event_id", "session_id", "query_id", "item_id", "user_id")


@dataclass(frozen=True, slots=True)
class StoredJudgment(KeptJudgment):
    """A graded judgment with where it comes from (table eval_judgments); unique by query, item, source and annotator."""

    project: str = DEFAULT_PROJECT


@dataclass(frozen=True, slots=True)
class StoredResult:
    """One evaluation run's figures (table eval_results)."""

    run_id: str
    run_type: RunType
    created_at: str
    query_count: int
    metrics: Mapping[str, float]
    """By measure: those that were asked for."""
    project: str = DEFAULT_PROJECT
    feature_id: str | None = None
    golden: str | None = None
    retriever: str | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    latency_ms: Mapping[str, float] = field(default_factory=dict)
    control_run_id: str | None = None
    deltas: Mapping[str, float] = field(default_factory=dict)
    p_value: float | None = None
    is_significant: bool | None = None
    gate: str | None = None
    """pass, fail or undecided, if it was gated."""
    per_query: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By query and measure; nothing for a query that was asked and not answered."""
    # The columns below are known whatever measures were asked for, or None.
    mrr_at_5: float | None = None
    mrr_at_10: float | None = None
    ndcg_at_5: float | None = None
    ndcg_at_10: float | None = None
    ndcg_at_20: float | None = None
    recall_at_5: float | None = None
    recall_at_10: float | None = None
    constitutional_surfacing_rate: float | None = None
    importance_weighted_recall: float | None = None
    cold_start_mrr: float | None = None
    session_personalization_lift: float | None = None
    causal_chain_completeness: float | None = None
    result_diversity_score: float | None = None
    channel_contribution: Mapping[str, Mapping[str, float]] | None = None
    """By channel: ``rate``, its share of the first ten hits, ``unique_rate``, of those that only it had, and ``hits``."""
    uploaded: bool = False
    """Its golden set came with the request and is kept nowhere; such a run says nothing about production."""

    @property
    def unanswered(self) -> int:
        """How many queries were asked and not answered; they count in no figure."""
        return sum(not values for values in self.per_query.values())


@dataclass(frozen=True, slots=True)
class ShadowRun(answers.ShadowRun):
    """One query answered by production and by a candidate beside it (table eval_shadow_runs)."""

    feature_id: str = field(kw_only=True)
    project: str = DEFAULT_PROJECT


@dataclass(frozen=True, slots=True)
class ABTest:
    """A sequential test as far as it has come (table eval_ab_tests)."""

    feature_id: str
    status: Status
    alpha: float
    beta: float
    delta: float
    started_at: str
    updated_at: str
    project: str = DEFAULT_PROJECT
    method: str = "sprt"
    sigma: float | None = None
    """Known, or estimated from the burn-in; None while burning in."""
    log_likelihood_ratio: float = 0.0
    upper_bound: float = 0.0
    lower_bound: float = 0.0
    sample_count: int = 0
    sums: Mapping[str, float] = field(default_factory=dict)
    """Running sums: control, treatment, differences and their squares, and what else a method keeps."""
    min_samples: int = 100
    graduation_threshold: float = 0.03
    decision: str | None = None
    graduated_at: str | None = None


@dataclass(frozen=True, slots=True)
class Flag(FlagState):
    """A feature that reaches a share of the traffic."""

    project: str = DEFAULT_PROJECT


@dataclass(frozen=True, slots=True)
class AuditEntry(answers.AuditRecord):
    """Who changed what, when and why."""

    project: str = DEFAULT_PROJECT


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A pair to be judged."""

    item_key: str
    """Unique: query and document."""
    query_id: str
    query: str
    doc_id: str
    created_at: str
    project: str = DEFAULT_PROJECT
    title: str = ""
    text: str = ""
    priority: float = 0.0
    state: ReviewState = "pending_review"
    wanted: int = 1
    """How many blind reviewers."""
    reserved_by: str | None = None
    reserved_until: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredRating:
    """What one reviewer said about one pair."""

    item_key: str
    reviewer: str
    grade: int
    at: str
    note: str = ""
    project: str = DEFAULT_PROJECT


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """One version of a golden set or a baseline, without what is in it."""

    name: str
    version: str
    created_at: str
    project: str = DEFAULT_PROJECT


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """One version of a golden set or a baseline, as its JSON file would have it; a version never changes."""

    name: str
    version: str
    content: Mapping[str, Any]
    created_at: str
    project: str = DEFAULT_PROJECT


@dataclass(frozen=True, slots=True)
class StoredGoldenSet(StoredVersion):
    """One version of a golden set."""

    fingerprint: str = ""
    """Hash of what is in it."""


@dataclass(frozen=True, slots=True)
class StoredBaseline(StoredVersion):
    """One version of a baseline."""

    reason: str = ""
    """Why a worse run was accepted, when it was."""


@dataclass(frozen=True, slots=True)
class StoredExperiment:
    """One experiment: ``content`` is its row in ``experiments.json``."""

    experiment_id: str
    name: str
    content: Mapping[str, Any]
    created_at: str
    project: str = DEFAULT_PROJECT


@dataclass(frozen=True, slots=True)
class ApiKey(KeyState):
    """A key to the service of one project; the token itself is nowhere but with its holder."""

    project: str = DEFAULT_PROJECT

    def allows(self, scope: Scope) -> bool:
        """True if the key may do this; 'admin' may do everything."""
        return scope in self.scopes or "admin" in self.scopes


@dataclass(frozen=True, slots=True)
class StoredRun:
    """An evaluation with its rankings, packed; beside its figures (StoredResult) under the same run id."""

    run_id: str
    name: str
    created_at: str
    content: bytes
    project: str = DEFAULT_PROJECT


@dataclass(frozen=True, slots=True)
class StoredJob(Job):
    """Work that the service does while a caller waits elsewhere."""

    project: str = DEFAULT_PROJECT


@dataclass(frozen=True, slots=True)
class Reply:
    """What the service answered to a write, kept so that the same write sent again gets the same answer."""

    key: str
    """The caller's Idempotency-Key."""
    route: str
    """Method and path."""
    fingerprint: str
    """Hash of what was sent."""
    status: int | None
    """None while the answer is being made."""
    body: bytes
    created_at: str
    project: str = DEFAULT_PROJECT


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One figure at one moment, so that trends exist without Prometheus."""

    at: str
    series: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    project: str = DEFAULT_PROJECT


@dataclass(frozen=True, slots=True)
class TestPoint(EvidencePoint):
    """Where a sequential test stood after so many queries: one point of its path between the bounds."""

    __test__: ClassVar[bool] = False  # no class of tests, whatever pytest makes of the name

    feature_id: str = field(kw_only=True)
    project: str = DEFAULT_PROJECT


def user_mark(user_id: str, project: str) -> str:
    """Return what stands for a deleted user, whose id must not be kept: a hash, another one in every project."""
    return hashlib.sha256(f"{project}\0{user_id}".encode("utf-8", "surrogatepass")).hexdigest()
