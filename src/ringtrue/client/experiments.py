"""What was tried, what came of it, and whether it was kept: ``/v1/experiments``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from ringtrue.answers import ExperimentRow
from ringtrue.client.reading import read
from ringtrue.client.wire import Wire, segment


class Experiments:
    """The experiments of the project."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def list(self) -> Iterator[ExperimentRow]:
        """Yield experiments, the newest first."""
        return map(_row, self._wire.items(Mapping[str, Any], "/v1/experiments"))  # type: ignore[type-abstract]

    def get(self, experiment_id: str) -> ExperimentRow:
        """Return one experiment; raises MissingInput where there is none of that id."""
        return _row(self._wire.get(f"/v1/experiments/{segment(experiment_id, 'experiment_id')}"))

    def add(self, experiments: Iterable[Mapping[str, Any]]) -> tuple[ExperimentRow, ...]:
        """Bring in experiments, all of them or none, and return them as they are kept.

        One has ``date`` and ``description``, and may have ``config_changes``, ``results``, ``verdict`` and an ``id``; without
        one it gets the next number.
        """
        told = self._wire.write("POST", "/v1/experiments", {"experiments": [dict(one) for one in experiments]})
        return tuple(map(_row, told))


def _row(value: Any) -> ExperimentRow:
    known = {one.name for one in fields(ExperimentRow)} - {"other"}
    if not isinstance(value, Mapping):
        return read(ExperimentRow, value, place="experiment")
    other = {name: item for name, item in value.items() if name not in known}
    return read(ExperimentRow, {**{name: value[name] for name in known if name in value}, "other": other}, place="experiment")
