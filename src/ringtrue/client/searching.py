"""What a search through a service answers: ``/v1/search``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ringtrue.client.runs import StageRank


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document that was found."""

    rank: int
    doc_id: str
    score: float | None
    title: str | None
    text: str | None
    """How the document begins; None where it lies elsewhere."""
    chunk: str | None
    channels: Mapping[str, int]
    """Its rank in every channel that found it."""
    stages: tuple[StageRank, ...] | None
    """Every stage's rank and score, where that was asked for."""


@dataclass(frozen=True, slots=True)
class Found:
    """Documents, the best first."""

    query_id: str | None
    """Of the entry in the log, for feedback; None where it is not logged."""
    retriever: str
    fingerprint: str
    latency_ms: float
    hits: tuple[FoundDocument, ...]
