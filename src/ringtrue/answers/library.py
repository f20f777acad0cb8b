"""Golden sets, baselines and experiments, version by version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ringtrue.answers.evaluations import Figures
from ringtrue.answers.record import Record


@dataclass(frozen=True, slots=True)
class BaselineItem(Record):
    """A baseline and its last version."""

    name: str
    version: str
    """The last saved one."""
    created_at: str | None
    """null for what comes with Ringtrue."""
    versions: int


@dataclass(frozen=True, slots=True)
class GoldenItem(BaselineItem):
    """A golden set, or one version of it."""

    shipped: bool = False


@dataclass(frozen=True, slots=True)
class GoldenProblem(Record):
    """One thing that validation found."""

    severity: Literal["error", "warning"]
    rule: str
    place: str
    """A query, a document or a line; empty for the set as a whole."""
    message: str
    cure: str

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{self.severity} [{self.rule}] {where}{self.message}; {self.cure}"


@dataclass(frozen=True, slots=True)
class GoldenVersion(Record):
    """One version of a golden set, with what validation says of it."""

    name: str
    version: str
    version_name: str
    """How results name it: hotel-v1.0.0."""
    created_at: str | None
    content_hash: str
    corpus_hash: str | None
    description: str
    profile: str
    provisional: bool
    """True while no person confirmed a judgment."""
    confirmed: int
    """How many judgments a person confirmed; `figures.judgments` is how many there are."""
    relevance_threshold: int
    scale: tuple[int, ...]
    slices: tuple[str, ...]
    figures: Mapping[str, Any]
    ok: bool
    """True where validation found no error."""
    problems: tuple[GoldenProblem, ...]
    rules: tuple[str, ...]
    new: bool
    """After an upload: false where this version was there already, the same."""
    content: Mapping[str, Any] | None = None
    """The whole set, where it was asked for."""


@dataclass(frozen=True, slots=True)
class Changes(Record):
    """Ids that came, went, or stayed with another content."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


@dataclass(frozen=True, slots=True)
class JudgmentChange(Record):
    """A pair that is judged differently; a grade of null means not judged on that side."""

    query_id: str
    doc_id: str
    old: int | None
    new: int | None
    by: str | None


@dataclass(frozen=True, slots=True)
class GoldenDifference(Record):
    """What changed from one version of a set to another."""

    queries: Changes
    documents: Changes
    judgments_added: tuple[JudgmentChange, ...]
    judgments_removed: tuple[JudgmentChange, ...]
    judgments_changed: tuple[JudgmentChange, ...]
    fields: tuple[str, ...]
    """What else about the set changed."""
    suggested: Literal["major", "minor", "patch", "none"]
    """How far the version should move."""
    reason: str


@dataclass(frozen=True, slots=True)
class BaselineVersion(Record):
    """One version of a baseline, without its scores per query."""

    name: str
    version: str
    reason: str
    """Why a worse run was accepted, when it was."""
    retriever: str
    fingerprint: str
    golden: str
    recorded_at: str
    metrics: Figures
    latency_ms: Figures
    queries: int
    versions: tuple[str, ...]
    """The last saved first."""


@dataclass(frozen=True, slots=True)
class Movement(Record):
    """One number before and after."""

    old: float | None
    new: float | None
    diff: float | None


@dataclass(frozen=True, slots=True)
class BaselineUpdate(Record):
    """What a new version of a baseline moved."""

    name: str
    version: str
    previous: str | None
    objections: tuple[str, ...]
    """What spoke against it, where it was forced."""
    measures: Mapping[str, Movement]


@dataclass(frozen=True, slots=True)
class ExperimentRow(Record):
    """One experiment, as a row of ``experiments.json``."""

    id: str
    date: str
    description: str
    config_changes: Mapping[str, Any]
    results: Mapping[str, float | None]
    """By measure; None if it is not defined."""
    verdict: str
    other: Mapping[str, Any] = field(default_factory=dict)
    """Fields that somebody else wrote, as they are."""
