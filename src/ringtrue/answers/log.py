"""Searches of the log, events of feedback, and judgments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ringtrue.answers.record import Record
from ringtrue.traffic import Traffic

Actor = Literal["person", "agent", "unknown"]
EventType = Literal[
    "read_after_search", "re_search", "scroll_past", "reference", "validate_useful", "validate_not_useful",
    "selection", "click", "dwell", "cite",
]  # fmt: skip
JudgmentSource = Literal["manual", "implicit", "bootstrapped", "validated"]
Step = Literal["minute", "hour", "day"]


@dataclass(frozen=True, slots=True)
class StageLogged(Record):
    """What one stage of a search took in and gave out."""

    name: str
    input: int
    output: int
    ms: float


@dataclass(frozen=True, slots=True)
class SearchFacts(Record):
    """What the log knows of a search."""

    query_id: str
    """`eq_` + time + hash, unless the sender gave one."""
    query: str
    tool_name: str
    """The tool or surface that searched."""
    created_at: str
    intent: str | None = None
    mode: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    """Hashed or as given; searches can be deleted by it."""
    result_ids: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    channel_contributions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Channel → ids it had, in its order."""
    total_latency_ms: float | None = None
    stage_latency_ms: Mapping[str, float] = field(default_factory=dict)
    """candidate, fusion, rerank, boost."""
    stages: tuple[StageLogged, ...] = ()
    fusion_weights: Mapping[str, float] = field(default_factory=dict)
    quality_proxy_score: float | None = None
    """A health figure, not quality."""
    trace_id: str | None = None
    prompt_id: str | None = None
    retriever: str | None = None
    """The retriever that answered: its whole expression, or a fingerprint."""
    fallback: str | None = None
    """Why a fallback was triggered; null if none was."""
    degraded: bool = False
    mode_override: str | None = None
    token_pressure_level: str | None = None
    token_pressure_ratio: float | None = None
    boost_delta: float | None = None
    extraction_count: int | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Flags in force and their variants."""
    is_eval_corpus: bool = False
    """Its query belongs to a golden set."""
    eval_category: str | None = None
    traffic: Traffic = "user"
    """Whose search it is; only users' searches count in figures, feedback and reviews."""


@dataclass(frozen=True, slots=True)
class LoggedSearch(SearchFacts):
    """One search of the log."""

    result_count: int | None = None
    """Null if it is unknown, as for searches imported from a plain list of queries."""


@dataclass(frozen=True, slots=True)
class Logged(Record):
    """What became of searches that were sent: those accepted are in the store, those stored are new there."""

    accepted: int
    stored: int
    query_ids: tuple[str, ...]
    """In the order in which they were sent; feedback names them."""


@dataclass(frozen=True, slots=True)
class LogStep(Record):
    """The searches of one step of time."""

    at: str
    """When it begins."""
    searches: int
    empty: int
    """Those that found nothing."""
    degraded: int
    mean_ms: float | None
    """null if no search says how long it took."""
    mean_proxy: float | None


@dataclass(frozen=True, slots=True)
class LogStats(Record):
    """The log in numbers."""

    since: str
    until: str
    step: Step
    searches: int
    tools: tuple[str, ...]
    buckets: tuple[LogStep, ...]


@dataclass(frozen=True, slots=True)
class Event(Record):
    """One event of feedback as the store has it."""

    event_id: str
    """Unique; adding the same event twice keeps one."""
    event_type: EventType
    session_id: str
    created_at: str
    query_id: str | None = None
    item_id: str | None = None
    rank_in_results: int = -1
    """From 1; -1 where it did not come from a search."""
    actor: Actor = "unknown"
    user_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LinkedEvent(Record):
    """One event that was sent, and the search it belongs to."""

    event_id: str
    query_id: str | None
    rank_in_results: int


@dataclass(frozen=True, slots=True)
class Taken(Record):
    """What became of events that were sent: those accepted are in the store, those stored are new there."""

    accepted: int
    stored: int
    events: tuple[LinkedEvent, ...]


@dataclass(frozen=True, slots=True)
class KeptJudgment(Record):
    """One judgment as the store has it."""

    query_id: str
    item_id: str
    relevance: int
    source: JudgmentSource
    """manual, validated, implicit or bootstrapped: in this order one counts before the other."""
    created_at: str
    annotator: str = ""
    confidence: float = 1.0
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deleted(Record):
    """How many judgments were deleted."""

    deleted: int
