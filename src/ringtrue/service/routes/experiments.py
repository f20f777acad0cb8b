"""``/v1/experiments``: what was tried, what came of it, and whether it was kept (X-1)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.experiment import Experiment, ExperimentTable
from ringtrue.formats import Place
from ringtrue.service.auth import Caller, Reader, Writer
from ringtrue.service.context import Here, Service
from ringtrue.service.errors import ERRORS, Refused
from ringtrue.service.models import Cursor, Label, Limit, Line, Page, Strict, paged_after
from ringtrue.service.routes.queries import PathName
from ringtrue.service.work.library import check_address
from ringtrue.store import timestamp

router = APIRouter(prefix="/v1/experiments", tags=["experiments"], responses=ERRORS)
MOST = 1_000
MOST_LETTERS = 100_000
"""Of one experiment, as JSON."""
UNNAMED = "exp-000"
"""Stands for an id while a row without one is read; the table gives the next number."""


class ExperimentJson(BaseModel):
    """One experiment, as a row of `experiments.json`; fields that somebody else wrote are kept as they are."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    id: Label | None = Field(None, description="Like exp-001; default: the next number.")
    date: Annotated[str, Field(max_length=40, description="ISO 8601, at least the day.")]
    description: Line
    config_changes: Annotated[dict[str, Any], Field(max_length=500)] = Field(
        default_factory=dict, description="What was set to what."
    )
    results: Annotated[dict[str, float | None], Field(max_length=500)] = Field(
        default_factory=dict, description="By measure; null: not defined."
    )
    verdict: Line = Field("", description="Like ACCEPTED (all metrics improved).")

    @classmethod
    def of(cls, experiment: Experiment) -> ExperimentJson:
        return cls.model_validate(experiment.as_dict())


class NewExperiment(ExperimentJson):
    """A new experiment; a number that JSON does not have could not be read again."""

    @model_validator(mode="after")
    def _modest(self) -> NewExperiment:
        try:
            size = len(json.dumps(self.model_dump(), allow_nan=False, ensure_ascii=False).encode())
        except UnicodeEncodeError:
            raise ValueError("holds half of a surrogate pair, which is not a character") from None
        except ValueError:
            raise ValueError("holds NaN or an infinite number; write null if a figure is not defined") from None
        if size > MOST_LETTERS:
            raise ValueError(f"must be shorter than {MOST_LETTERS:,} letters of JSON")
        return self


class NewExperiments(
    Strict,
    examples=[
        {
            "experiments": [
                {
                    "date": "2026-01-31",
                    "description": "smaller chunks",
                    "config_changes": {"chunking.max_tokens": 256},
                    "results": {"recall_at_5": 0.82, "mrr": 0.71},
                    "verdict": "ACCEPTED (all metrics improved)",
                }
            ]
        }
    ],
):
    """Experiments, as the file `experiments.json` has them."""

    experiments: Annotated[list[NewExperiment], Field(min_length=1, max_length=MOST)]


@router.get("")
def list_experiments(service: Here, caller: Reader, limit: Limit = 50, cursor: Cursor = None) -> Page[ExperimentJson]:
    """List experiments, the newest first."""
    newest = list(table_of(service, caller).all())[::-1]
    shown, behind = paged_after(newest, cursor, limit, "id")
    return Page[ExperimentJson](items=[ExperimentJson.of(one) for one in shown], next=behind)


@router.get("/{experiment_id}")
def one(service: Here, caller: Reader, experiment_id: PathName) -> ExperimentJson:
    """Return one experiment."""
    return ExperimentJson.of(one_experiment(service, caller, experiment_id))


@router.post("", status_code=201)
def add(service: Here, caller: Writer, given: NewExperiments) -> list[ExperimentJson]:
    """Add experiments, all of them or none; one without an id gets the next number."""
    rows = [row.model_dump(exclude_unset=True) for row in given.experiments]
    return [ExperimentJson.of(one) for one in import_experiments(service, caller, rows)]


def table_of(service: Service, caller: Caller) -> ExperimentTable:
    """Return the experiments of the caller's project."""
    return ExperimentTable(service.of(caller), timestamp(service.now()), caller.project)


def one_experiment(service: Service, caller: Caller, experiment_id: str) -> Experiment:
    """Return one experiment; raises MissingInput with the nearest ids."""
    row = service.of(caller).experiment(experiment_id, project=caller.project)
    if row is not None:
        return Experiment.of(row.content, Place(f"experiment {row.experiment_id}"))
    known = [one.id for one in table_of(service, caller).all()]
    cure = f"did you mean {nearest(experiment_id, known)}?" if known else "there is none yet, add some"
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
    store = service.of(caller)
    try:
        added = table_of(service, caller).add(given)
    except InputError:
        for number, one in enumerate(given):
            if one.id and store.experiment(one.id, project=caller.project) is not None:
                said = f"there is an experiment '{one.id}' already; give another id, or none to get the next number"
                raise Refused(409, "conflict", said, field=f"body.experiments.{number}.id") from None
        raise
    detail = {"experiments": [one.id for one in added][:100], "count": len(added)}
    service.note(caller, "experiments.import", added[0].id, detail)
    return added
