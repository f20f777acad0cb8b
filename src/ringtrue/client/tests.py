"""Sequential tests, which may be looked at after every query: ``/v1/tests``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ringtrue.answers import RecordedScores, SequentialTest, SequentialTestPath, Status
from ringtrue.client.reading import read
from ringtrue.client.wire import Wire, given, segment


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
