"""Where experiments are kept: ``experiments.json``, in the form that the first such files had (X-1).

A file is changed under a lock and replaced in one step, so that two processes that add at once lose nothing and a killed one
leaves the file as it was.
"""

from __future__ import annotations

import fcntl
import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from ringtrue.errors import CannotDecide, InputError, MissingInput, nearest
from ringtrue.experiment.record import Experiment
from ringtrue.formats.text import Place, read_json, write_whole

PATIENCE = 30.0
"""Seconds to wait for another process that writes."""
_NUMBERED = re.compile(r"exp-(\d+)")


class Ledger(Protocol):
    """A place for experiments."""

    def all(self) -> tuple[Experiment, ...]:
        """Return every experiment, oldest first."""

    def add(self, experiments: Iterable[Experiment]) -> tuple[Experiment, ...]:
        """Keep experiments, and return them with the ids they got where they had none."""


def find(ledger: Ledger, experiment_id: str) -> Experiment:
    """Return one experiment; raises MissingInput with the nearest ids."""
    everything = ledger.all()
    for experiment in everything:
        if experiment.id == experiment_id:
            return experiment
    if not everything:
        raise MissingInput(f"there is no experiment '{experiment_id}', and no other; add one with `ringtrue experiment add`")
    raise MissingInput(
        f"there is no experiment '{experiment_id}'; did you mean {nearest(experiment_id, [e.id for e in everything])}?"
    )


@dataclass(frozen=True)
class ExperimentFile:
    """Experiments in one JSON file. One that is not there yet holds none."""

    path: Path

    def all(self) -> tuple[Experiment, ...]:
        return tuple(experiment for _, experiment in self._read()[1])

    def add(self, experiments: Iterable[Experiment]) -> tuple[Experiment, ...]:
        """Append experiments; raises InputError for an id that is taken."""
        with self._locked():
            document, known = self._read()
            taken = [experiment.id for _, experiment in known]
            added = numbered(experiments, taken)
            # Rows that were there are written back as they were read, whatever they hold.
            document["experiments"] = [row for row, _ in known] + [experiment.as_dict() for experiment in added]
            write_document(document, self.path)
        return added

    def _read(self) -> tuple[dict[str, Any], list[tuple[dict[str, Any], Experiment]]]:
        if not self.path.exists():
            return {"experiments": []}, []
        document = read_json(self.path)
        return document, rows_of(document, Place(str(self.path)))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.path.with_name(f".{self.path.name}.lock")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = lock.open("w")
        except OSError as problem:
            raise InputError(f"{lock}: cannot be written ({problem.strerror}); check the folder and its permissions") from None
        with file:
            end = time.monotonic() + PATIENCE
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise CannotDecide(f"{self.path}: another process holds {lock.name}; wait for it") from None
                    time.sleep(0.02)
            yield


def numbered(experiments: Iterable[Experiment], taken: Sequence[str]) -> tuple[Experiment, ...]:
    """Return experiments with ids: ``exp-`` and the number after the highest; raises InputError for one that comes twice.

    >>> [e.id for e in numbered([Experiment("", "2026-01-06", "third")], ["exp-001", "exp-002"])]
    ['exp-003']
    """
    ids = set(taken)
    highest = max((int(found[1]) for name in ids if (found := _NUMBERED.fullmatch(name))), default=0)
    named = []
    for experiment in experiments:
        if not experiment.id:
            highest += 1
            experiment = replace(experiment, id=f"exp-{highest:03}")
        if experiment.id in ids:
            raise InputError(f"there is an experiment '{experiment.id}' already; leave the id out, or give another")
        ids.add(experiment.id)
        found = _NUMBERED.fullmatch(experiment.id)
        highest = max(highest, int(found[1])) if found else highest
        named.append(experiment)
    return tuple(named)


def rows_of(document: Any, place: Place) -> list[tuple[dict[str, Any], Experiment]]:
    """Return the rows of a file as they are, each with the experiment it means; raises InputError with the place."""
    if not isinstance(document, dict) or not isinstance(document.get("experiments"), list):
        raise place.error("holds no experiments", 'write {"experiments": [{"id": "exp-001", …}]}')
    rows, seen = [], set()
    for number, row in enumerate(document["experiments"]):
        here = place.at("experiments").at(number)
        experiment = Experiment.of(row, here)
        if experiment.id in seen:
            raise here.error(f"the id '{experiment.id}' comes twice", "give each experiment its own")
        seen.add(experiment.id)
        rows.append((row, experiment))
    return rows


def write_document(document: dict[str, Any], path: Path) -> None:
    """Write a JSON file in one step; raises InputError for what JSON cannot hold, and where nothing can be written."""
    try:
        text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as problem:
        raise InputError(f"{path}: cannot be written, {problem}; keep only texts, finite numbers, lists and objects") from None
    write_whole(text, path)
