"""``/v1/golden``, ``/v1/baselines`` and ``/v1/experiments``: golden sets, the standards of the gate, and what was tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ringtrue.answers import (
    BaselineItem,
    BaselineUpdate,
    BaselineVersion,
    GoldenDifference,
    GoldenItem,
    GoldenVersion,
)
from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.experiment import Experiment, ExperimentTable
from ringtrue.formats import Place
from ringtrue.golden import diff, record_of, version_name
from ringtrue.service import library
from ringtrue.service.auth import Access, Reader, Writer
from ringtrue.service.errors import ERRORS, Refused
from ringtrue.service.evaluating import keys_of, renamed
from ringtrue.service.library import KeptSet, answers_of, check_address
from ringtrue.service.models import (
    Cursor,
    Label,
    Limit,
    Line,
    Name,
    Page,
    Strict,
    bounded_json,
    paged_after,
    plain,
    record_from,
)
from ringtrue.service.routes.evaluate import TEST_SET, Body, kind_of, read_set, request_body
from ringtrue.service.routes.log import PathName
from ringtrue.service.routes.verdicts import AFTER
from ringtrue.store import timestamp

golden_routes = APIRouter(prefix="/v1/golden", tags=["golden"], responses=ERRORS)
SetName = Annotated[str, Path(min_length=1, max_length=120, description="Name of a golden set.", examples=["hotel"])]
VersionText = Annotated[str, Path(min_length=1, max_length=120, examples=["1.0.0"])]


class Shipped(Strict):
    """A set that comes with Ringtrue."""

    name: Label = Field(examples=["hotel"])


def golden_answer(kept: KeptSet, *, content: bool = False) -> GoldenVersion:
    """Return a version of a set as callers see it."""
    golden = kept.golden
    return record_from(
        GoldenVersion,
        kept,
        kept.report,
        golden,
        name=golden.id,
        version_name=version_name(golden),
        content_hash=kept.fingerprint,
        slices=tuple(golden.slices),
        figures=plain(kept.report.figures),
        content=dict(record_of(golden)) if content else None,
    )


UPLOAD = request_body(
    examples={"set": {"summary": "A set with its documents", "value": TEST_SET}},
    model=None,
    types=("application/yaml", "application/x-ndjson"),
)


@golden_routes.get("")
def list_golden(access: Reader, limit: Limit = 50, cursor: Cursor = None) -> Page[GoldenItem]:
    """List the golden sets by name, those that come with Ringtrue included."""
    return paged_after(library.golden_sets(access), cursor, limit, "name")


@golden_routes.post(
    "",
    status_code=201,
    openapi_extra=UPLOAD,
    responses={200: {"model": GoldenVersion, "description": "It is there already, the same"}},
)
def upload_golden(access: Writer, body: Body, response: Response) -> GoldenVersion:
    """Keep a golden set under the name and version that it has; a version never changes.

    JSON, YAML or JSON lines. What validation finds is in the answer; only what cannot be read is refused.
    """
    kind = kind_of(body, ("json", "yaml", "jsonl"))
    kept = library.keep_golden(access, read_set(body.content, kind))
    response.status_code = 201 if kept.new else 200
    return golden_answer(kept)


@golden_routes.post(
    "/shipped", status_code=201, responses={200: {"model": GoldenVersion, "description": "It is there already"}}
)
def keep_shipped(access: Writer, request: Shipped, response: Response) -> GoldenVersion:
    """Keep a copy of a set that comes with Ringtrue, so that versions of one's own can follow it."""
    kept = library.keep_shipped(access, request.name)
    response.status_code = 201 if kept.new else 200
    return golden_answer(kept)


Whole = Annotated[bool, Query(description="Also the whole set.")]


@golden_routes.get("/{name}")
def get_golden(access: Reader, name: SetName, content: Whole = False) -> GoldenVersion:
    """Return the last saved version of a golden set."""
    return golden_answer(library.golden_kept(access, library.named(name)[0]), content=content)


@golden_routes.get("/{name}/versions")
def golden_versions(access: Reader, name: SetName) -> Page[GoldenItem]:
    """List the versions of a golden set, the last saved first."""
    return Page(items=library.golden_versions(access, name), next=None)


@golden_routes.get("/{name}/diff")
def golden_diff(
    access: Reader,
    name: SetName,
    old: Annotated[str, Query(alias="from", min_length=1, max_length=120, examples=["1.0.0"])],
    new: Annotated[
        str | None, Query(alias="to", min_length=1, max_length=120, description="The last saved unless given.")
    ] = None,
) -> GoldenDifference:
    """Tell what changed from one version of a set to another, and how far the version should have moved."""
    after = library.golden_named(access, name if new is None else f"{name}@{new}")
    found = diff(library.golden_named(access, f"{name}@{old}"), after)
    return record_from(GoldenDifference, found, fields=tuple(found.fields))


@golden_routes.get("/{name}/{version}")
def get_golden_version(access: Reader, name: SetName, version: VersionText, content: Whole = False) -> GoldenVersion:
    """Return one version of a golden set."""
    return golden_answer(library.golden_kept(access, f"{name}@{version}"), content=content)


baselines_routes = APIRouter(prefix="/v1/baselines", tags=["baselines"], responses=ERRORS)
BaselineName = Annotated[str, Path(min_length=1, max_length=120, examples=["hotel-search"])]


class BaselineRequest(Strict, examples=[{"run": AFTER, "name": "hotel-search"}]):
    """A run to be taken as the new standard."""

    run: Name = Field(description="Id of a run.")
    name: Label
    version: Annotated[str, Field(max_length=40)] | None = Field(
        None, description="The next minor unless given, the next patch where nothing moved."
    )
    force: bool = Field(False, description="Take a worse run; needs a reason.")
    reason: Line = ""


@baselines_routes.get("")
def list_baselines(access: Reader, limit: Limit = 50, cursor: Cursor = None) -> Page[BaselineItem]:
    """List the project's baselines by name."""
    return paged_after(library.baselines(access), cursor, limit, "name")


@baselines_routes.post("", status_code=201)
def update_baseline(access: Writer, request: BaselineRequest) -> BaselineUpdate:
    """Take a run as the new standard. One that is worse is refused (409) unless forced with a reason."""
    evaluation = answers_of(access, request.run)
    return library.keep_baseline(access, evaluation, run_id=request.run, **request.model_dump(exclude={"run"}))


@baselines_routes.get("/{name}")
def get_baseline(access: Reader, name: BaselineName) -> BaselineVersion:
    """Return a baseline by `name`, its last version, or by `name@version`."""
    plain = library.named(name)[0]
    found = library.baseline_named(access, name)
    return record_from(
        BaselineVersion,
        found,
        name=plain,
        golden=found.golden.version,
        metrics=renamed(found.metrics, keys_of(list(found.metrics))),
        latency_ms=found.latency,
        queries=len(found.per_query),
        versions=tuple(one.version for one in library.baseline_versions(access, plain)),
    )


experiments_routes = APIRouter(prefix="/v1/experiments", tags=["experiments"], responses=ERRORS)
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
    """A new experiment."""

    @model_validator(mode="after")
    def _modest(self) -> NewExperiment:
        bounded_json(self.model_dump(), MOST_LETTERS)
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


@experiments_routes.get("")
def list_experiments(access: Reader, limit: Limit = 50, cursor: Cursor = None) -> Page[ExperimentJson]:
    """List experiments, the newest first."""
    return paged_after(table_of(access).all()[::-1], cursor, limit, "id", ExperimentJson.of)


@experiments_routes.get("/{experiment_id}")
def one(access: Reader, experiment_id: PathName) -> ExperimentJson:
    """Return one experiment."""
    return ExperimentJson.of(one_experiment(access, experiment_id))


@experiments_routes.post("", status_code=201)
def add(access: Writer, given: NewExperiments) -> list[ExperimentJson]:
    """Add experiments, all of them or none; one without an id gets the next number."""
    rows = [row.model_dump(exclude_unset=True) for row in given.experiments]
    return [ExperimentJson.of(one) for one in import_experiments(access, rows)]


def table_of(access: Access) -> ExperimentTable:
    """Return the experiments of the caller's project."""
    return ExperimentTable(access.store, timestamp(access.now()), access.project)


def one_experiment(access: Access, experiment_id: str) -> Experiment:
    """Return one experiment; raises MissingInput with the nearest ids."""
    row = access.store.experiment(experiment_id, project=access.project)
    if row is not None:
        return Experiment.of(row.content, Place(f"experiment {row.experiment_id}"))
    known = [one.id for one in table_of(access).all()]
    cure = f"did you mean {nearest(experiment_id, known)}?" if known else "there is none yet, add some"
    raise MissingInput(f"there is no experiment '{experiment_id}'; {cure}")


def import_experiments(access: Access, rows: Sequence[Mapping[str, Any]]) -> tuple[Experiment, ...]:
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
    store = access.store
    try:
        added = table_of(access).add(given)
    except InputError:
        for number, one in enumerate(given):
            if one.id and store.experiment(one.id, project=access.project) is not None:
                said = f"experiment '{one.id}' already exists; give another id, or none to get the next number"
                raise Refused(409, "conflict", said, field=f"body.experiments.{number}.id") from None
        raise
    detail = {"experiments": [one.id for one in added][:100], "count": len(added)}
    access.note("experiments.import", added[0].id, detail)
    return added
