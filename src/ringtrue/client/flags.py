"""Which feature reaches whom, and whether the evidence lets it go on: ``/v1/flags``."""

from __future__ import annotations

from collections.abc import Sequence

from ringtrue.answers import FlagDecision, FlagPage, FlagState, ListedFlag, Variant
from ringtrue.client.reading import read
from ringtrue.client.wire import Wire, given, segment, several


class Flags:
    """The flags of the project."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def list(self) -> tuple[ListedFlag, ...]:
        """Return the flags by name, with those that only the server's environment sets."""
        return read(tuple[ListedFlag, ...], self._wire.get("/v1/flags"))

    def get(self, name: str) -> FlagPage:
        """Return a flag with its graduation checklist and its history; raises MissingInput."""
        return self._wire.get_as(FlagPage, self._path(name))

    def set(
        self,
        name: str,
        *,
        rollout: float | None = None,
        state: str | None = None,
        shadow: bool | None = None,
        min_samples: int | None = None,
        graduation_threshold: float | None = None,
        measure: str | None = None,
        stage_hours: float | None = None,
        description: str | None = None,
        why: str = "",
    ) -> FlagState:
        """Make a flag or change it, and return it; what is left out stays as it is."""
        body = given(
            {
                "rollout": rollout, "state": state, "shadow": shadow, "min_samples": min_samples, "why": why,
                "graduation_threshold": graduation_threshold, "measure": measure, "stage_hours": stage_hours,
                "description": description,
            }
        )  # fmt: skip
        return self._wire.write_as(FlagState, "PUT", self._path(name), body)

    def step(self, name: str, *, breaches: str | Sequence[str] = ()) -> FlagDecision:
        """Take a feature one stage further where the evidence allows it, back where a guardrail is broken; else say why not.

        Each of ``breaches``, found by a watch of one's own, rolls the feature back.
        """
        return self._wire.write_as(FlagDecision, "POST", f"{self._path(name)}/step", {"breaches": several(breaches)})

    def roll_back(self, name: str, *, why: str) -> FlagState:
        """Take a feature away from everybody at once, pause it, and return it."""
        return self._wire.write_as(FlagState, "POST", f"{self._path(name)}/rollback", {"why": why})

    def variant(self, name: str, identity: str) -> Variant:
        """Return whether a feature is on for an identity; the same identity always gets the same."""
        return self._wire.get_as(Variant, f"{self._path(name)}/variant", identity=identity)

    def _path(self, name: str) -> str:
        return f"/v1/flags/{segment(name, 'name')}"
