"""``/v1/baselines``: the standards that the gate holds a search to, changed on purpose and never by a gate."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field

from ringtrue.service.auth import Reader, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import Answer, Cursor, Label, Limit, Line, Name, Page, Strict
from ringtrue.service.routes.compare import AFTER
from ringtrue.service.routes.evaluate import Figures
from ringtrue.service.routes.jobs import wrong_cursor
from ringtrue.service.work import library
from ringtrue.service.work.evaluating import keys_of, known, renamed, run_named
from ringtrue.service.work.library import KeptBaseline, Listed
from ringtrue.verdict import Baseline

router = APIRouter(prefix="/v1/baselines", tags=["baselines"], responses=ERRORS)
BaselineName = Annotated[str, Path(min_length=1, max_length=120, examples=["hotel-search"])]


class BaselineItem(Answer):
    """A baseline and its last version."""

    name: str
    version: str
    created_at: str | None
    versions: int


class BaselineAnswer(Answer):
    """One version of a baseline, without its scores per query."""

    name: str
    version: str
    reason: str = Field(description="Why a worse run was accepted, when it was.")
    retriever: str
    fingerprint: str
    golden: str
    recorded_at: str
    metrics: Figures
    latency_ms: Figures
    queries: int
    versions: list[str] = Field(description="The last saved first.")


class BaselineRequest(Strict):
    """A run to be taken as the new standard."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"run": AFTER, "name": "hotel-search"}]})

    run: Name = Field(description="Id of a run.")
    name: Label
    version: Annotated[str, Field(max_length=40)] | None = Field(
        None, description="The next minor unless given, the next patch where nothing moved."
    )
    force: bool = Field(False, description="Take a worse run; needs a reason.")
    reason: Line = ""


class MovementAnswer(Answer):
    """One number before and after."""

    old: float | None
    new: float | None
    diff: float | None


class UpdateAnswer(Answer):
    """What a new version of a baseline moved."""

    name: str
    version: str
    previous: str | None
    objections: list[str] = Field(description="What spoke against it, where it was forced.")
    measures: dict[str, MovementAnswer]


def _item(one: Listed) -> BaselineItem:
    return BaselineItem(name=one.name, version=one.version, created_at=one.created_at, versions=one.versions)


def _answer(name: str, found: Baseline, versions: list[str]) -> BaselineAnswer:
    return BaselineAnswer(
        name=name,
        version=found.version,
        reason=found.reason,
        retriever=found.retriever,
        fingerprint=found.fingerprint,
        golden=found.golden.version,
        recorded_at=found.recorded_at,
        metrics=renamed(found.metrics, keys_of(list(found.metrics))),
        latency_ms={name: known(value) for name, value in found.latency.items()},
        queries=len(found.per_query),
        versions=versions,
    )


def _update(kept: KeptBaseline) -> dict[str, Any]:
    return {
        "name": kept.name,
        "version": kept.baseline.version,
        "previous": kept.previous,
        "objections": list(kept.objections),
        "measures": {
            move.measure: {"old": known(move.old), "new": known(move.new), "diff": known(move.change)} for move in kept.moves
        },
    }


@router.get("")
def list_baselines(service: Here, caller: Reader, limit: Limit = 50, cursor: Cursor = None) -> Page[BaselineItem]:
    """List the project's baselines by name."""
    found = library.baselines(service, caller)
    names = [one.name for one in found]
    if cursor is not None and cursor not in names:
        raise wrong_cursor(cursor)
    start = 0 if cursor is None else names.index(cursor) + 1
    shown = found[start : start + limit]
    return Page(items=[_item(one) for one in shown], next=shown[-1].name if start + limit < len(found) else None)


@router.post("", status_code=201)
def update_baseline(service: Here, caller: Writer, request: BaselineRequest) -> UpdateAnswer:
    """Take a run as the new standard. One that is worse is refused (409) unless forced with a reason."""
    kept = library.keep_baseline(
        service,
        caller,
        run_named(service, caller, request.run),
        name=request.name,
        version=request.version,
        force=request.force,
        reason=request.reason,
        run_id=request.run,
    )
    return UpdateAnswer.model_validate(_update(kept))


@router.get("/{name}")
def get_baseline(service: Here, caller: Reader, name: BaselineName) -> BaselineAnswer:
    """Return a baseline by `name`, its last version, or by `name@version`."""
    plain = library.named(name)[0]
    found = library.baseline_named(service, caller, name)
    return _answer(plain, found, [one.version for one in library.baseline_versions(service, caller, plain)])
