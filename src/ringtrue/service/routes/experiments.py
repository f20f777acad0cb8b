"""``/v1/experiments``: what was tried, what came of it, and whether it was kept (X-1)."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ringtrue.experiment import Experiment
from ringtrue.service.auth import Reader, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import Cursor, Label, Limit, Line, Page, Strict
from ringtrue.service.routes.queries import PathName
from ringtrue.service.work.experimenting import import_experiments, newest_experiments, one_experiment

router = APIRouter(prefix="/v1/experiments", tags=["experiments"], responses=ERRORS)
MOST = 1_000
MOST_LETTERS = 100_000
"""Of one experiment, as JSON."""


class Row(BaseModel):
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
    def of(cls, experiment: Experiment) -> Row:
        return cls.model_validate(experiment.as_dict())


class NewRow(Row):
    """One experiment that is brought in; a number that JSON does not have could not be read again."""

    @model_validator(mode="after")
    def _modest(self) -> NewRow:
        try:
            size = len(json.dumps(self.model_dump(), allow_nan=False, ensure_ascii=False).encode())
        except UnicodeEncodeError:
            raise ValueError("holds half of a surrogate pair, which is not a character") from None
        except ValueError:
            raise ValueError("holds NaN or an infinite number; write null if a figure is not defined") from None
        if size > MOST_LETTERS:
            raise ValueError(f"must be shorter than {MOST_LETTERS:,} letters of JSON")
        return self


class Rows(Strict):
    """Experiments, as the file `experiments.json` has them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
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
            ]
        }
    )
    experiments: Annotated[list[NewRow], Field(min_length=1, max_length=MOST)]


@router.get("")
def list_experiments(service: Here, caller: Reader, limit: Limit = 50, cursor: Cursor = None) -> Page[Row]:
    """List experiments, the newest first."""
    found, behind = newest_experiments(service, caller, limit=limit, after=cursor)
    return Page[Row](items=[Row.of(one) for one in found], next=behind)


@router.get("/{experiment_id}")
def one(service: Here, caller: Reader, experiment_id: PathName) -> Row:
    """Return one experiment."""
    return Row.of(one_experiment(service, caller, experiment_id))


@router.post("", status_code=201)
def bring_in(service: Here, caller: Writer, given: Rows) -> list[Row]:
    """Bring in experiments, all of them or none; one without an id gets the next number."""
    rows = [row.model_dump(exclude_unset=True) for row in given.experiments]
    return [Row.of(one) for one in import_experiments(service, caller, rows)]
