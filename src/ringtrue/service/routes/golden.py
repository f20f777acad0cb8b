"""``/v1/golden``: golden sets of a project, version by version, and those that come with Ringtrue."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from ringtrue.answers import GoldenDifference, GoldenItem, GoldenVersion
from ringtrue.golden import diff, record_of, version_name
from ringtrue.service.auth import Reader, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import Cursor, Label, Limit, Page, Strict, paged_after, plain, record_from
from ringtrue.service.routes.evaluate import TEST_SET, Body, kind_of, read_set, request_body
from ringtrue.service.work import library
from ringtrue.service.work.library import KeptSet

router = APIRouter(prefix="/v1/golden", tags=["golden"], responses=ERRORS)
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
    types=("application/yaml", "application/x-ndjson", "application/zip"),
)


@router.get("")
def list_golden(service: Here, caller: Reader, limit: Limit = 50, cursor: Cursor = None) -> Page[GoldenItem]:
    """List the golden sets by name, those that come with Ringtrue included."""
    shown, behind = paged_after(library.golden_sets(service, caller), cursor, limit, "name")
    return Page(items=shown, next=behind)


@router.post(
    "",
    status_code=201,
    openapi_extra=UPLOAD,
    responses={200: {"model": GoldenVersion, "description": "It is there already, the same"}},
)
def upload_golden(service: Here, caller: Writer, body: Body, response: Response) -> GoldenVersion:
    """Keep a golden set under the name and version that it has; a version never changes.

    JSON, YAML, JSON lines or a zip of a BEIR folder. What validation finds is in the answer; only what cannot be
    read is refused.
    """
    kind = kind_of(body, ("json", "yaml", "jsonl", "zip"))
    kept = library.keep_golden(service, caller, read_set(body.content, kind))
    response.status_code = 201 if kept.new else 200
    return golden_answer(kept)


@router.post("/shipped", status_code=201, responses={200: {"model": GoldenVersion, "description": "It is there already"}})
def keep_shipped(service: Here, caller: Writer, request: Shipped, response: Response) -> GoldenVersion:
    """Keep a copy of a set that comes with Ringtrue, so that versions of one's own can follow it."""
    kept = library.keep_shipped(service, caller, request.name)
    response.status_code = 201 if kept.new else 200
    return golden_answer(kept)


Whole = Annotated[bool, Query(description="Also the whole set.")]


@router.get("/{name}")
def get_golden(service: Here, caller: Reader, name: SetName, content: Whole = False) -> GoldenVersion:
    """Return the last saved version of a golden set."""
    return golden_answer(library.golden_kept(service, caller, library.named(name)[0]), content=content)


@router.get("/{name}/versions")
def golden_versions(service: Here, caller: Reader, name: SetName) -> Page[GoldenItem]:
    """List the versions of a golden set, the last saved first."""
    return Page(items=library.golden_versions(service, caller, name), next=None)


@router.get("/{name}/diff")
def golden_diff(
    service: Here,
    caller: Reader,
    name: SetName,
    old: Annotated[str, Query(alias="from", min_length=1, max_length=120, examples=["1.0.0"])],
    new: Annotated[
        str | None, Query(alias="to", min_length=1, max_length=120, description="The last saved unless given.")
    ] = None,
) -> GoldenDifference:
    """Tell what changed from one version of a set to another, and how far the version should have moved."""
    after = library.golden_named(service, caller, name if new is None else f"{name}@{new}")
    found = diff(library.golden_named(service, caller, f"{name}@{old}"), after)
    return record_from(GoldenDifference, found, fields=tuple(found.fields))


@router.get("/{name}/{version}")
def get_golden_version(
    service: Here, caller: Reader, name: SetName, version: VersionText, content: Whole = False
) -> GoldenVersion:
    """Return one version of a golden set."""
    return golden_answer(library.golden_kept(service, caller, f"{name}@{version}"), content=content)
