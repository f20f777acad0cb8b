"""Baselines, the standards of the gate: ``/v1/baselines``."""

from __future__ import annotations

from collections.abc import Iterator

from ringtrue.answers import BaselineItem, BaselineUpdate, BaselineVersion
from ringtrue.client.wire import Wire, given, segment


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
