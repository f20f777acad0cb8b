"""Runs down to every query, and what a search finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ringtrue.answers.evaluations import Evaluated, Figures, Gated, Outcome
from ringtrue.answers.record import Record


@dataclass(frozen=True, slots=True)
class RunItem(Record):
    """A run in a list."""

    run_id: str
    name: str | None
    """What `--name` or the branch and commit called it; null if its answers are not kept."""
    run_type: Literal["full", "shadow", "regression", "ab_test"]
    created_at: str
    golden: str | None
    retriever: str | None
    queries: int
    metrics: Figures
    gate: Outcome | None
    """The verdict, where it was gated."""
    feature_id: str | None
    kept: bool
    """Whether its answers are kept, not only its figures."""


@dataclass(frozen=True, slots=True)
class RunFigures(Record):
    """The figures of a run, and what an evaluation answers where its answers are kept."""

    run: RunItem
    intervals: Mapping[str, tuple[float | None, ...]]
    latency_ms: Figures
    control_run_id: str | None
    deltas: Figures
    p_value: float | None
    is_significant: bool | None
    evaluation: Evaluated | None
    verdict: Gated | None
    """What `/v1/gate` or the page said of it, with every check."""


@dataclass(frozen=True, slots=True)
class QueryItem(Record):
    """One query of a run."""

    query_id: str
    text: str
    scores: Figures
    latency_ms: float | None
    error: str | None
    hits: int
    lost: int
    """Relevant documents that are missing among the first hits."""


@dataclass(frozen=True, slots=True)
class StageRank(Record):
    """What one step of the retriever said about a document."""

    name: str
    rank: int
    score: float | None


@dataclass(frozen=True, slots=True)
class RunHit(Record):
    """A document that was found; its grade is null if nobody judged it."""

    rank: int
    doc_id: str
    title: str | None
    score: float | None
    grade: int | None
    channels: Mapping[str, int]
    stages: tuple[StageRank, ...]


@dataclass(frozen=True, slots=True)
class Judged(Record):
    """A judged document and where it was found."""

    doc_id: str
    title: str | None
    grade: int
    rank: int | None


@dataclass(frozen=True, slots=True)
class Lost(Judged):
    """A relevant document that is missing, and the stage that lost it."""

    stage: str
    k: int
    ranks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class QueryOfRun(Record):
    """One query of a run with its ranking, its judgments and what was lost."""

    query_id: str
    text: str
    metadata: Mapping[str, Any]
    negative: bool
    scores: Figures
    latency_ms: float | None
    error: str | None
    hits: tuple[RunHit, ...]
    judged: tuple[Judged, ...]
    losses: tuple[Lost, ...]


@dataclass(frozen=True, slots=True)
class FoundDocument(Record):
    """A document that was found."""

    rank: int
    doc_id: str
    score: float | None
    title: str | None
    text: str | None
    """How the document begins; null if it lies elsewhere."""
    chunk: str | None
    channels: Mapping[str, int]
    """Its rank in every channel that found it."""
    stages: tuple[StageRank, ...] | None
    """Every stage's rank and score, where that was asked for."""


@dataclass(frozen=True, slots=True)
class Found(Record):
    """Documents, the best first."""

    query_id: str | None
    """Of the entry in the log, for feedback; null if it is not logged."""
    retriever: str
    fingerprint: str
    latency_ms: float
    hits: tuple[FoundDocument, ...]
