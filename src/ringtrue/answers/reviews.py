"""Pairs of question and document that people judge, blind to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ringtrue.answers.record import Record

ReviewState = Literal["pending_review", "approved", "rejected", "published"]


@dataclass(frozen=True, slots=True)
class Pair(Record):
    """A pair as anybody may see it: nobody's grade, and not who has it."""

    key: str
    query_id: str
    query: str
    doc_id: str
    title: str
    text: str
    priority: float
    state: ReviewState
    wanted: int
    created_at: str
    golden: str | None


@dataclass(frozen=True, slots=True)
class NextPair(Record):
    """A pair that is kept for the caller; null if nothing is left for them."""

    pair: Pair | None
    reserved_until: str | None
    waiting: int
    """How many pairs the caller could still judge, this one too."""
    guidelines: str


@dataclass(frozen=True, slots=True)
class Undone(Record):
    """The pair whose grade was taken back; null if there was none."""

    pair: Pair | None


@dataclass(frozen=True, slots=True)
class AddedPairs(Record):
    """Pairs that were sent: how many, how many of them are new, and the key of each."""

    accepted: int
    new: int
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Backlog(Record):
    """How much waits to be judged, and for how long."""

    pending_review: int
    approved: int
    rejected: int
    published: int
    total: int
    oldest_pending_at: str | None
    oldest_seconds: float | None


@dataclass(frozen=True, slots=True)
class Reviewer(Record):
    """What one reviewer did."""

    name: str
    ratings: int
    grades: Mapping[str, int]
    """How often each grade, over pairs that are judged completely."""


@dataclass(frozen=True, slots=True)
class ReviewAgreement(Record):
    """How far reviewers agree, over pairs that are judged completely."""

    name: str
    coefficient: float | None
    """null if it is not defined: everybody always said the same."""
    items: int
    raters: int
    observed: float | None
    expected: float | None


@dataclass(frozen=True, slots=True)
class Dispute(Record):
    """A completely judged pair on which reviewers differ, and how it was settled, if it was."""

    key: str
    query_id: str
    query: str
    doc_id: str
    grades: Mapping[str, int]
    settled_by: str | None = None
    """Who settled it and is not a rater of it; null while nobody has."""
    settled: int | None = None
    """The grade that counts under the rule 'adjudicated'."""


@dataclass(frozen=True, slots=True)
class ReviewStanding(Record):
    """Where the queue stands."""

    backlog: Backlog
    raters: tuple[Reviewer, ...]
    agreement: ReviewAgreement | None
    """null below two reviewers of the same pairs."""
    disputes: tuple[Dispute, ...]


@dataclass(frozen=True, slots=True)
class Published(Record):
    """The version that was made."""

    golden: str
    version: str
    judgments: int
    """New or changed judgments."""
    published: int
    """Pairs that are published with it."""
    kept: tuple[str, ...]
    """Pairs that a person had judged in the set before; that judgment stays."""
