"""Experiments, one at a time and where they are kept: ``experiments.json`` and a store.

A file is changed under a lock and replaced in one step, so that two processes that add at once lose nothing and a killed one
leaves the file as it was. It has the form that the first such files had.
"""

from __future__ import annotations

import fcntl
import json
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ringtrue.errors import CannotDecide, InputError, MissingInput, nearest
from ringtrue.formats import Place, field_of, read_json, usable_id, write_whole
from ringtrue.store import DEFAULT_PROJECT, StoredExperiment

if TYPE_CHECKING:
    from ringtrue.store import Store

PATIENCE = 30.0
"""Seconds to wait for another process that writes."""
_NUMBERED = re.compile(r"exp-(\d+)")
Decision = Literal["ACCEPTED", "REJECTED", "UNDECIDED"]
_VERDICT = re.compile(r"(ACCEPTED|REJECTED|UNDECIDED)\s*\((.+)\)\s*", re.DOTALL)
_TEXTS = {
    "commit": "commit",
    "golden_version": "golden",
    "corpus_hash": "corpus",
    "run_dir": "run",
    "baseline": "baseline",
}
"""Field in the file → attribute: what an experiment may know beside the six fields that every one has."""
FIELDS = ("id", "date", "description", "config_changes", "results", "verdict", *_TEXTS)


@dataclass(frozen=True)
class Experiment:
    """A change that was tried. ``Experiment.of`` reads one row of ``experiments.json``, ``as_dict`` writes it."""

    id: str
    """Like ``exp-001``; '' until a ledger has given it one."""
    date: str
    """ISO 8601, at least the day."""
    description: str
    config_changes: Mapping[str, Any] = field(default_factory=dict)
    """What was set to what: ``{"chunking.max_tokens": 256}``."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Called ``results`` in the file; nan stands for a value that is not defined."""
    verdict: str = ""
    """``ACCEPTED (all metrics improved)``; '' while nobody has decided."""
    commit: str | None = None
    """Git commit of the code, with ``-dirty`` where files were changed since."""
    golden: str | None = None
    """Exact version of the golden set, like ``hotel-v1.0.0``."""
    corpus: str | None = None
    """Hash of the documents that were searched."""
    run: str | None = None
    """Folder of the run, from the folder of the experiments' file."""
    baseline: str | None = None
    """Run folder or baseline file that it was compared with."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields that somebody else wrote; they are kept as they are."""

    @property
    def decision(self) -> Decision | None:
        """The first word of the verdict; None if it has another form."""
        word = self.verdict.split("(")[0].strip()
        return word if word in ("ACCEPTED", "REJECTED", "UNDECIDED") else None  # type: ignore[return-value]

    @property
    def reason(self) -> str:
        """What stands in the brackets of the verdict."""
        found = _VERDICT.fullmatch(self.verdict)
        return found[2] if found else ""

    def as_dict(self) -> dict[str, Any]:
        """Return the row of ``experiments.json``; what is not known is left out.

        >>> Experiment("exp-001", "2026-01-04", "wider", {"k": 20}, {"mrr": 0.7}, "REJECTED (slow)").as_dict()["results"]
        {'mrr': 0.7}
        """
        known = {name: getattr(self, attribute) for name, attribute in _TEXTS.items()}
        return {
            "id": self.id,
            "date": self.date,
            "description": self.description,
            "config_changes": dict(self.config_changes),
            "results": {name: None if math.isnan(value) else value for name, value in self.metrics.items()},
            "verdict": self.verdict,
            **{name: value for name, value in known.items() if value is not None},
            **self.extra,
        }

    @classmethod
    def of(cls, row: Any, place: Place) -> Experiment:
        """Return the experiment in a row; raises InputError naming the field, its value and the cure."""
        if not isinstance(row, dict):
            raise place.error(f"{row!r:.60} is not an experiment", 'write {"id": …, "date": …, "description": …, …}')
        known = {attribute: field_of(row, name, (str, type(None)), place, default=None) for name, attribute in _TEXTS.items()}
        return cls(
            id=usable_id(field_of(row, "id", str, place), place.at("id")),
            date=field_of(row, "date", str, place),
            description=field_of(row, "description", str, place),
            config_changes=field_of(row, "config_changes", dict, place, default={}),
            metrics=_metrics(row, place),
            verdict=field_of(row, "verdict", str, place, default=""),
            **known,
            # A field of ours that says null stays there as it is: leaving it out would change somebody's file.
            extra={name: value for name, value in row.items() if name not in FIELDS or (name in _TEXTS and value is None)},
        )


def _metrics(row: Mapping[str, Any], place: Place) -> dict[str, float]:
    given = field_of(row, "results", dict, place, default={})
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            cure = "write a number, or null if it is not known"
            raise place.at("results").at(name).error(f"{value!r:.60} is not a number", cure)
    # A whole number stays one, so that a file read and written is the same file.
    return {name: math.nan if value is None else value for name, value in given.items()}


def check_verdict(text: str) -> str:
    """Return a verdict that somebody wrote by hand; raises InputError if decision or reason is missing.

    >>> check_verdict("rejected (too slow)")
    'REJECTED (too slow)'
    """
    word, bracket, rest = text.strip().partition("(")
    written = f"{word.strip().upper()} ({rest.strip()}" if bracket else text.strip()
    if not _VERDICT.fullmatch(written):
        raise InputError(f"verdict {text!r:.80} is not a decision with a reason; write 'ACCEPTED (why)' or 'REJECTED (why)'")
    return written


def find(ledger: ExperimentFile | ExperimentTable, experiment_id: str) -> Experiment:
    """Return one experiment; raises MissingInput with the nearest ids."""
    everything = {experiment.id: experiment for experiment in ledger.all()}
    if experiment_id in everything:
        return everything[experiment_id]
    if not everything:
        raise MissingInput(f"there is no experiment '{experiment_id}', and no other; add one with `ringtrue experiment add`")
    raise MissingInput(f"there is no experiment '{experiment_id}'; did you mean {nearest(experiment_id, everything)}?")


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
        document = read_json(self.path) if self.path.exists() else {"experiments": []}
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
    numbers = {name: int(found[1]) if (found := _NUMBERED.fullmatch(name)) else 0 for name in taken}
    highest = max(numbers.values(), default=0)
    named = []
    for experiment in experiments:
        experiment_id = experiment.id or f"exp-{highest + 1:03}"
        if experiment_id in numbers:
            raise InputError(f"experiment '{experiment_id}' already exists; leave the id out, or give another")
        numbers[experiment_id] = int(found[1]) if (found := _NUMBERED.fullmatch(experiment_id)) else 0
        highest = max(highest, numbers[experiment_id])
        named.append(replace(experiment, id=experiment_id))
    return tuple(named)


def rows_of(document: Any, place: Place) -> list[tuple[dict[str, Any], Experiment]]:
    """Return the rows of a file as they are, each with the experiment it means; raises InputError with the place."""
    if not isinstance(document, dict) or not isinstance(document.get("experiments"), list):
        raise place.error("holds no experiments", 'write {"experiments": [{"id": "exp-001", …}]}')
    found: dict[str, tuple[dict[str, Any], Experiment]] = {}
    for number, row in enumerate(document["experiments"]):
        here = place.at("experiments").at(number)
        experiment = Experiment.of(row, here)
        if experiment.id in found:
            raise here.error(f"the id '{experiment.id}' comes twice", "give each experiment its own")
        found[experiment.id] = row, experiment
    return list(found.values())


def write_document(document: dict[str, Any], path: Path) -> None:
    """Write a JSON file in one step; raises InputError for what JSON cannot hold, and where nothing can be written."""
    try:
        text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as problem:
        raise InputError(f"{path}: cannot be written, {problem}; keep only texts, finite numbers, lists and objects") from None
    write_whole(text, path)


@dataclass(frozen=True)
class ExperimentTable:
    """Experiments of one project in a store; each is kept as its row in ``experiments.json`` would be."""

    store: Store
    now: str
    """When experiments are added, ISO 8601."""
    project: str = DEFAULT_PROJECT

    def all(self) -> tuple[Experiment, ...]:
        """Return every experiment, oldest first."""
        return _stored(self.store.experiments(project=self.project))

    def add(self, experiments: Iterable[Experiment]) -> tuple[Experiment, ...]:
        """Keep experiments, and return them with the ids they got; raises InputError for an id that is taken."""
        given = tuple(experiments)

        def rows(taken: Sequence[str]) -> list[StoredExperiment]:
            named = numbered(given, taken)
            return [StoredExperiment(one.id, one.description, one.as_dict(), self.now, self.project) for one in named]

        return _stored(self.store.add_experiments(rows, project=self.project))


def _stored(rows: Iterable[StoredExperiment]) -> tuple[Experiment, ...]:
    return tuple(Experiment.of(row.content, Place(f"experiment {row.experiment_id}")) for row in rows)


def read_experiments(path: Path) -> tuple[Experiment, ...]:
    """Return the experiments in a JSON file; raises InputError with the place of what cannot be read."""
    return tuple(experiment for _, experiment in rows_of(read_json(path), Place(str(path))))


def write_experiments(experiments: Iterable[Experiment], path: Path) -> None:
    """Write experiments in the form of ``experiments.json``; raises InputError for an ending other than .json."""
    if path.suffix.lower() != ".json":
        raise InputError(f"{path}: experiments are written as JSON; name the file .json")
    write_document({"experiments": [experiment.as_dict() for experiment in experiments]}, path)
