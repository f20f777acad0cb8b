"""Experiments of a project: read, and brought in as rows of ``experiments.json`` (X-1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.experiment import Experiment, ExperimentTable
from ringtrue.formats.text import Place
from ringtrue.service.errors import Refused
from ringtrue.service.work.library import check_address
from ringtrue.service.work.logging_in import bad_cursor
from ringtrue.store import AuditEntry, timestamp

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service

UNNAMED = "exp-000"
"""Stands for an id while a row without one is read; the table gives the next number."""


def table_of(service: Service, caller: Caller) -> ExperimentTable:
    """Return the experiments of the caller's project."""
    return ExperimentTable(service.of(caller), timestamp(service.now()), caller.project)


def newest_experiments(
    service: Service, caller: Caller, *, limit: int, after: str | None = None
) -> tuple[list[Experiment], str | None]:
    """Return experiments, the newest first, and the cursor behind them where there are more."""
    found = list(table_of(service, caller).all())[::-1]
    if after is not None:
        places = [place for place, one in enumerate(found) if one.id == after]
        if not places:
            raise bad_cursor()
        found = found[places[0] + 1 :]
    shown = found[:limit]
    return shown, shown[-1].id if len(found) > limit else None


def one_experiment(service: Service, caller: Caller, experiment_id: str) -> Experiment:
    """Return one experiment; raises MissingInput with the nearest ids."""
    row = service.of(caller).experiment(experiment_id, project=caller.project)
    if row is not None:
        return Experiment.of(row.content, Place(f"experiment {row.experiment_id}"))
    known = [one.id for one in table_of(service, caller).all()]
    cure = f"did you mean {nearest(experiment_id, known)}?" if known else "there is none yet, bring some in"
    raise MissingInput(f"there is no experiment '{experiment_id}'; {cure}")


def import_experiments(service: Service, caller: Caller, rows: Sequence[Mapping[str, Any]]) -> tuple[Experiment, ...]:
    """Keep experiments, all of them or none, and return them with the ids they got.

    Raises InputError with the place, or for an id that no address leads to, and Refused (409) for an id that is taken.
    """
    given = []
    for number, row in enumerate(rows):
        named = row.get("id") is not None
        if named:
            check_address("an experiment", row["id"])
        read = Experiment.of({**row, "id": row["id"] if named else UNNAMED}, Place("body").at("experiments").at(number))
        given.append(read if named else replace(read, id=""))
    _free(service, caller, given)
    try:
        added = table_of(service, caller).add(given)
    except InputError:
        _free(service, caller, given)  # somebody else may have been quicker
        raise
    detail = {"experiments": [one.id for one in added][:100], "count": len(added)}
    entry = AuditEntry(timestamp(service.now()), caller.who, "experiments.import", added[0].id, detail, caller.project)
    service.of(caller).add_audit(entry)
    return added


def _free(service: Service, caller: Caller, given: Sequence[Experiment]) -> None:
    store = service.of(caller)
    for number, one in enumerate(given):
        if one.id and store.experiment(one.id, project=caller.project) is not None:
            said = f"there is an experiment '{one.id}' already; give another id, or none to get the next number"
            raise Refused(409, "conflict", said, field=f"body.experiments.{number}.id")
