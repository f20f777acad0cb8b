"""Experiments in the store: a ledger for those who share a database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringtrue.experiment.ledger import numbered
from ringtrue.experiment.record import Experiment
from ringtrue.formats.text import Place
from ringtrue.store import DEFAULT_PROJECT, StoredExperiment

if TYPE_CHECKING:
    from ringtrue.store import Store


@dataclass(frozen=True)
class ExperimentTable:
    """Experiments of one project in a store; each is kept as its row in ``experiments.json`` would be."""

    store: Store
    now: str
    """When experiments are added, ISO 8601."""
    project: str = DEFAULT_PROJECT

    def all(self) -> tuple[Experiment, ...]:
        """Return every experiment, oldest first."""
        return tuple(_experiment(row) for row in self.store.experiments(project=self.project))

    def add(self, experiments: Iterable[Experiment]) -> tuple[Experiment, ...]:
        """Keep experiments, and return them with the ids they got; raises InputError for an id that is taken."""
        given = tuple(experiments)

        def rows(taken: Sequence[str]) -> list[StoredExperiment]:
            return [
                StoredExperiment(one.id, one.description, one.as_dict(), self.now, self.project)
                for one in numbered(given, taken)
            ]

        return tuple(_experiment(row) for row in self.store.add_experiments(rows, project=self.project))


def _experiment(row: StoredExperiment) -> Experiment:
    return Experiment.of(row.content, Place(f"experiment {row.experiment_id}"))
