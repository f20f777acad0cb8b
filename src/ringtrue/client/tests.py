"""Sequential tests, which may be looked at after every query: ``/v1/tests``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ringtrue.client.reading import read
from ringtrue.client.wire import Wire, given, segment

Status = Literal["running", "paused", "graduated", "rejected"]


@dataclass(frozen=True, slots=True)
class SequentialTest:
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
class EvidencePoint:
    """Where a test stood after so many queries."""

    sample_count: int
    at: str
    llr: float
    """The evidence, whatever the method calls it."""
    estimate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class SequentialTestPath(SequentialTest):
    """A sequential test, with the path of its evidence between the bounds."""

    points: tuple[EvidencePoint, ...]


@dataclass(frozen=True, slots=True)
class CountedQuery:
    """What became of one query."""

    query_id: str
    counted: bool
    why_not: str


@dataclass(frozen=True, slots=True)
class RecordedScores:
    """What became of each query, and how the test stands now."""

    counted: int
    queries: tuple[CountedQuery, ...]
    test: SequentialTest


class SequentialTests:
    """The sequential tests of the project."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def list(self) -> tuple[SequentialTest, ...]:
        """Return the tests by feature."""
        return read(tuple[SequentialTest, ...], self._wire.get("/v1/tests"))

    def get(self, feature: str) -> SequentialTestPath:
        """Return the test of a feature with the points of its boundary plot; raises MissingInput."""
        return self._wire.get_as(SequentialTestPath, f"/v1/tests/{segment(feature, 'feature')}")

    def start(self, feature: str, **options: Any) -> SequentialTest:
        """Start the test of a feature and return it.

        Options, each with the service's default: ``method`` ('sprt', 'confidence-sequence' or 'beta-binomial'), ``measure``,
        ``alpha``, ``beta``, ``delta``, ``sigma``, ``min_samples``, ``graduation_threshold``, and ``again`` to begin anew.
        Raises InputError for one that there is not, and where the feature has a test already.
        """
        return self._wire.write_as(SequentialTest, "POST", "/v1/tests", {"feature": feature, **options})

    def record(self, feature: str, scores: Iterable[Mapping[str, Any]]) -> RecordedScores:
        """Count the scores of both sides on queries, 1,000 at most, and return what became of each.

        One has ``query_id`` with ``control`` and ``treatment``, or with ``difference``. A query counts once.
        """
        body = {"scores": [given(one) for one in scores]}
        return self._wire.write_as(RecordedScores, "POST", f"/v1/tests/{segment(feature, 'feature')}/record", body)

    def set_status(self, feature: str, status: Status, *, why: str = "") -> SequentialTest:
        """Pause, resume, graduate or reject a test, and return it."""
        body = {"status": status, "why": why}
        return self._wire.write_as(SequentialTest, "POST", f"/v1/tests/{segment(feature, 'feature')}/status", body)
