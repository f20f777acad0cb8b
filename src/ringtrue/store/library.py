"""What evaluations are made with and lead to: golden sets, baselines, experiments and runs, each as its file would have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import select

from ringtrue.errors import InputError
from ringtrue.store.base import Base, insert
from ringtrue.store.records import DEFAULT_PROJECT, KeptVersion, StoredBaseline, StoredExperiment, StoredGoldenSet, StoredRun
from ringtrue.store.rows import Form, words
from ringtrue.store.tables import BASELINE, EXPERIMENT, GOLDEN_SET, RUN

Record = TypeVar("Record", StoredGoldenSet, StoredBaseline)


class LibraryStore(Base):
    """Golden sets, baselines, experiments and runs."""

    def save_golden_set(self, row: StoredGoldenSet) -> bool:
        """Keep a version of a golden set; return False if it is there already, the same.

        Raises InputError if that version holds something else: what was measured with it must stay what it was.
        """
        return self._save(GOLDEN_SET, row, _taken("golden set", row))

    def golden_set(self, name: str, version: str | None = None, *, project: str = DEFAULT_PROJECT) -> StoredGoldenSet | None:
        """Return a version of a golden set, the one that was saved last unless named; None if there is none."""
        return self._version(GOLDEN_SET, name, version, project)

    def golden_sets(self, *, project: str = DEFAULT_PROJECT, name: str | None = None) -> list[KeptVersion]:
        """Return the versions of one or of all golden sets by name, the last saved first."""
        return self._versions(GOLDEN_SET, project, name)

    def save_baseline(self, row: StoredBaseline) -> bool:
        """Keep a version of a baseline; return and raise as for golden sets."""
        return self._save(BASELINE, row, _taken("baseline", row))

    def baseline(self, name: str, version: str | None = None, *, project: str = DEFAULT_PROJECT) -> StoredBaseline | None:
        """Return a version of a baseline, the one that was saved last unless named; None if there is none."""
        return self._version(BASELINE, name, version, project)

    def baselines(self, *, project: str = DEFAULT_PROJECT, name: str | None = None) -> list[KeptVersion]:
        """Return the versions of one or of all baselines by name, the last saved first."""
        return self._versions(BASELINE, project, name)

    def add_experiments(
        self, make: Callable[[Sequence[str]], Sequence[StoredExperiment]], *, project: str = DEFAULT_PROJECT
    ) -> list[StoredExperiment]:
        """Add experiments, all of them or none, and return them.

        ``make`` is given the ids that are taken and returns what to add. Nobody else adds meanwhile, so that two who number
        experiments at once do not give the same number. Raises InputError for an id that is taken, or another project.
        """
        table = EXPERIMENT.table
        taken = select(table.c.experiment_id).where(*self._where(EXPERIMENT, project)).order_by(table.c.id)
        with self._writing() as connection:
            if connection.dialect.name == "postgresql":  # on SQLite one that writes is alone anyway
                connection.exec_driver_sql(f"LOCK TABLE {table.name} IN SHARE ROW EXCLUSIVE MODE")
            rows = [EXPERIMENT.row(experiment) for experiment in make(list(connection.scalars(taken)))]
            for row in rows:
                if row["project"] != words(project):
                    raise InputError(f"experiment {row['experiment_id']!r} is of project {row['project']!r}, not {project!r}")
                if not insert(connection, table, [row]):
                    raise InputError(f"there is an experiment {row['experiment_id']!r} already; give another id")
        return [EXPERIMENT.read(row) for row in rows]

    def experiment(self, experiment_id: str, *, project: str = DEFAULT_PROJECT) -> StoredExperiment | None:
        """Return one experiment; None if there is none of that id."""
        return self._one(EXPERIMENT, project, experiment_id=experiment_id)

    def experiments(self, *, project: str = DEFAULT_PROJECT, limit: int | None = None) -> list[StoredExperiment]:
        """Return experiments in the order they were added; ``limit`` takes the last ones."""
        return self._all(EXPERIMENT, self._where(EXPERIMENT, project), EXPERIMENT.table.c.id.desc(), limit=limit)[::-1]

    def save_run(self, row: StoredRun) -> bool:
        """Keep an evaluation with its rankings; return False if it is there already, the same.

        Raises InputError if the run id has other content: runs are kept as they were.
        """
        return self._save(RUN, row, f"run {row.run_id!r} has other content already; give the run a new id")

    def run(self, run_id: str, *, project: str = DEFAULT_PROJECT) -> StoredRun | None:
        """Return an evaluation with its rankings; None if there is none of that run id."""
        return self._one(RUN, project, run_id=run_id)

    def run_names(self, *, project: str = DEFAULT_PROJECT, among: Sequence[str] | None = None) -> dict[str, str]:
        """Return the names of the runs whose rankings are kept, by run id: all, or those among the given ids."""
        found = select(RUN.table.c.run_id, RUN.table.c.name).where(*self._where(RUN, project, run_id=among))
        with self._reading() as connection:
            return {row.run_id: row.name for row in connection.execute(found)}

    def _save(self, form: Form[Any], record: Any, refusal: str) -> bool:
        new = form.row(record)
        with self._writing() as connection:
            if insert(connection, form.table, [new]):
                return True
            this = [form.table.c[name] == new[name] for name in form.key]
            there = connection.execute(select(form.table).where(*this)).mappings().one()
        # Saved again later, or with its keys in another order, it is the same.
        if form.read(there) != form.read({**new, "created_at": there["created_at"]}):
            raise InputError(refusal)
        return False

    def _version(self, form: Form[Record], name: str, version: str | None, project: str) -> Record | None:
        where = self._where(form, project, name=name, version=version)
        return next(iter(self._all(form, where, form.table.c.id.desc(), limit=1)), None)

    def _versions(self, form: Form[Any], project: str, name: str | None) -> list[KeptVersion]:
        table = form.table.c
        columns = [table[column] for column in ("name", "version", "created_at", "project")]
        where = self._where(form, project, name=name)
        with self._reading() as connection:
            found = connection.execute(select(*columns).where(*where).order_by(table.name, table.id.desc()))
            return [KeptVersion(*row) for row in found]


def _taken(what: str, record: StoredGoldenSet | StoredBaseline) -> str:
    return f"{what} {record.name!r} has another version {record.version!r} already; give it a new version"
