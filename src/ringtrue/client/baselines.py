"""Baselines, the standards of the gate: ``/v1/baselines``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ringtrue.client.evaluations import Figures
from ringtrue.client.wire import Wire, given, segment


@dataclass(frozen=True, slots=True)
class BaselineItem:
    """A baseline and its last version, as a list shows it."""

    name: str
    version: str
    created_at: str | None
    versions: int


@dataclass(frozen=True, slots=True)
class BaselineVersion:
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
class Movement:
    """One number before and after."""

    old: float | None
    new: float | None
    diff: float | None


@dataclass(frozen=True, slots=True)
class BaselineUpdate:
    """What a new version of a baseline moved."""

    name: str
    version: str
    previous: str | None
    objections: tuple[str, ...]
    """What spoke against it, where it was forced."""
    measures: Mapping[str, Movement]


class Baselines:
    """The baselines of the project."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def list(self) -> Iterator[BaselineItem]:
        """Yield the baselines by name."""
        return self._wire.items(BaselineItem, "/v1/baselines")

    def get(self, name: str) -> BaselineVersion:
        """Return a baseline by ``name``, its last version, or by ``name@version``; raises MissingInput."""
        return self._wire.get_as(BaselineVersion, f"/v1/baselines/{segment(name, 'name')}")

    def update(
        self, name: str, run_id: str, *, version: str | None = None, force: bool = False, reason: str = ""
    ) -> BaselineUpdate:
        """Take a run as the new standard and return what that moved.

        Raises InputError for a run that is worse, unless forced with a reason, which stays with the baseline.
        """
        body = given({"run": run_id, "name": name, "version": version}) | {"force": force, "reason": reason}
        return self._wire.write_as(BaselineUpdate, "POST", "/v1/baselines", body)
