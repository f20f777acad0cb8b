"""``/v1/baselines``: the standards that the gate holds a search to, changed on purpose and never by a gate."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from ringtrue.answers import BaselineItem, BaselineUpdate, BaselineVersion, Movement
from ringtrue.service.auth import Reader, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import Cursor, Label, Limit, Line, Name, Page, Strict, paged_after, record_from
from ringtrue.service.routes.compare import AFTER
from ringtrue.service.work import library
from ringtrue.service.work.evaluating import keys_of, renamed
from ringtrue.service.work.library import answers_of

router = APIRouter(prefix="/v1/baselines", tags=["baselines"], responses=ERRORS)
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


@router.get("")
def list_baselines(service: Here, caller: Reader, limit: Limit = 50, cursor: Cursor = None) -> Page[BaselineItem]:
    """List the project's baselines by name."""
    shown, behind = paged_after(library.baselines(service, caller), cursor, limit, "name")
    return Page(items=shown, next=behind)


@router.post("", status_code=201)
def update_baseline(service: Here, caller: Writer, request: BaselineRequest) -> BaselineUpdate:
    """Take a run as the new standard. One that is worse is refused (409) unless forced with a reason."""
    evaluation = answers_of(service, caller, request.run)
    kept = library.keep_baseline(service, caller, evaluation, run_id=request.run, **request.model_dump(exclude={"run"}))
    moves = {move.measure: Movement(move.old, move.new, move.change) for move in kept.moves}
    return record_from(BaselineUpdate, kept, kept.baseline, measures=moves)


@router.get("/{name}")
def get_baseline(service: Here, caller: Reader, name: BaselineName) -> BaselineVersion:
    """Return a baseline by `name`, its last version, or by `name@version`."""
    plain = library.named(name)[0]
    found = library.baseline_named(service, caller, name)
    return record_from(
        BaselineVersion,
        found,
        name=plain,
        golden=found.golden.version,
        metrics=renamed(found.metrics, keys_of(list(found.metrics))),
        latency_ms=found.latency,
        queries=len(found.per_query),
        versions=tuple(one.version for one in library.baseline_versions(service, caller, plain)),
    )
