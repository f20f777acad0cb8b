"""``/v1/golden``: golden sets of a project, version by version, and those that come with Ringtrue."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from ringtrue.golden import record_of, version_name
from ringtrue.service.auth import Reader, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import Answer, Cursor, Label, Limit, Page, Strict
from ringtrue.service.routes.evaluate import TEST_SET, Body, kind_of, read_set, request_body
from ringtrue.service.routes.jobs import wrong_cursor
from ringtrue.service.work import library
from ringtrue.service.work.library import KeptSet, Listed

router = APIRouter(prefix="/v1/golden", tags=["golden"], responses=ERRORS)
SetName = Annotated[str, Path(min_length=1, max_length=120, description="Name of a golden set.", examples=["hotel"])]
VersionText = Annotated[str, Path(min_length=1, max_length=120, examples=["1.0.0"])]


class GoldenItem(Answer):
    """A golden set, or one version of it."""

    name: str
    version: str = Field(description="The last saved one.")
    created_at: str | None = Field(description="null for a set that comes with Ringtrue.")
    versions: int
    shipped: bool


class ProblemAnswer(Answer):
    """One thing that validation found."""

    severity: Literal["error", "warning"]
    rule: str
    place: str = Field(description="A query, a document or a line; empty for the set as a whole.")
    message: str
    cure: str


class GoldenAnswer(Answer):
    """One version of a golden set, with what validation says of it."""

    name: str
    version: str
    version_name: str = Field(description="How results name it: hotel-v1.0.0.")
    created_at: str | None
    content_hash: str
    corpus_hash: str | None
    description: str
    profile: str
    provisional: bool = Field(description="True while no person confirmed a judgment.")
    confirmed: int = Field(description="How many judgments a person confirmed; `figures.judgments` is how many there are.")
    relevance_threshold: int
    scale: list[int]
    slices: list[str]
    figures: dict[str, Any]
    ok: bool = Field(description="True where validation found no error.")
    problems: list[ProblemAnswer]
    rules: list[str]
    new: bool = Field(description="After an upload: false where this version was there already, the same.")
    content: dict[str, Any] | None = Field(None, description="The whole set, where it was asked for.")


class Shipped(Strict):
    """A set that comes with Ringtrue."""

    name: Label = Field(examples=["hotel"])


class ChangesAnswer(Answer):
    """Ids that came, went, or stayed with another content."""

    added: list[str]
    removed: list[str]
    changed: list[str]


class JudgmentChangeAnswer(Answer):
    """A pair that is judged differently; a grade of null means not judged on that side."""

    query_id: str
    doc_id: str
    old: int | None
    new: int | None
    by: str | None


class DifferenceAnswer(Answer):
    """What changed from one version of a set to another."""

    queries: ChangesAnswer
    documents: ChangesAnswer
    judgments_added: list[JudgmentChangeAnswer]
    judgments_removed: list[JudgmentChangeAnswer]
    judgments_changed: list[JudgmentChangeAnswer]
    fields: list[str] = Field(description="What else about the set changed.")
    suggested: Literal["major", "minor", "patch", "none"] = Field(description="How far the version should move.")
    reason: str


def golden_item(one: Listed) -> GoldenItem:
    """Return a set as a list shows it."""
    return GoldenItem(**asdict(one))


def golden_answer(kept: KeptSet, *, content: bool = False) -> GoldenAnswer:
    """Return a version of a set as callers see it."""
    golden = kept.golden
    return GoldenAnswer(
        name=golden.id,
        version=golden.version,
        version_name=version_name(golden),
        created_at=kept.created_at,
        content_hash=kept.fingerprint,
        corpus_hash=golden.corpus_hash,
        description=golden.description,
        profile=golden.profile,
        provisional=golden.provisional,
        confirmed=golden.confirmed,
        relevance_threshold=golden.relevance_threshold,
        scale=list(golden.scale),
        slices=list(golden.slices),
        figures={name: _figure(value) for name, value in kept.report.figures.items()},
        ok=kept.report.ok,
        problems=[ProblemAnswer(**asdict(problem)) for problem in kept.report.problems],
        rules=list(kept.report.rules),
        new=kept.new,
        content=dict(record_of(golden)) if content else None,
    )


def _figure(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _figure(item) for key, item in value.items()}
    return None if isinstance(value, float) and value != value else value


UPLOAD = request_body(
    examples={"set": {"summary": "A set with its documents", "value": TEST_SET}},
    model=None,
    types=("application/yaml", "application/x-ndjson", "application/zip"),
)


@router.get("")
def list_golden(service: Here, caller: Reader, limit: Limit = 50, cursor: Cursor = None) -> Page[GoldenItem]:
    """List the golden sets by name, those that come with Ringtrue included."""
    return page_by_name(library.golden_sets(service, caller), limit, cursor)


def page_by_name(found: list[Listed], limit: int, cursor: str | None) -> Page[GoldenItem]:
    """Return the part of a list that follows a name; raises Refused (422) for a name that is not in it."""
    names = [one.name for one in found]
    if cursor is not None and cursor not in names:
        raise wrong_cursor(cursor)
    start = 0 if cursor is None else names.index(cursor) + 1
    shown = found[start : start + limit]
    return Page(items=[golden_item(one) for one in shown], next=shown[-1].name if start + limit < len(found) else None)


@router.post(
    "",
    status_code=201,
    openapi_extra=UPLOAD,
    responses={200: {"model": GoldenAnswer, "description": "It is there already, the same"}},
)
def upload_golden(service: Here, caller: Writer, body: Body, response: Response) -> GoldenAnswer:
    """Keep a golden set under the name and version that it has; a version never changes.

    JSON, YAML, JSON lines or a zip of files that belong together. What validation finds is in the answer; only what cannot be
    read is refused.
    """
    kind = kind_of(body, ("json", "yaml", "jsonl", "zip"))
    kept = library.keep_golden(service, caller, read_set(body.content, kind))
    response.status_code = 201 if kept.new else 200
    return golden_answer(kept)


@router.post("/shipped", status_code=201, responses={200: {"model": GoldenAnswer, "description": "It is there already"}})
def keep_shipped(service: Here, caller: Writer, request: Shipped, response: Response) -> GoldenAnswer:
    """Keep a copy of a set that comes with Ringtrue, so that versions of one's own can follow it."""
    kept = library.keep_shipped(service, caller, request.name)
    response.status_code = 201 if kept.new else 200
    return golden_answer(kept)


Whole = Annotated[bool, Query(description="Also the whole set.")]


@router.get("/{name}")
def get_golden(service: Here, caller: Reader, name: SetName, content: Whole = False) -> GoldenAnswer:
    """Return the last saved version of a golden set."""
    return golden_answer(library.golden_kept(service, caller, library.named(name)[0]), content=content)


@router.get("/{name}/versions")
def golden_versions(service: Here, caller: Reader, name: SetName) -> Page[GoldenItem]:
    """List the versions of a golden set, the last saved first."""
    return Page(items=[golden_item(one) for one in library.golden_versions(service, caller, name)], next=None)


@router.get("/{name}/diff")
def golden_diff(
    service: Here,
    caller: Reader,
    name: SetName,
    old: Annotated[str, Query(alias="from", min_length=1, max_length=120, examples=["1.0.0"])],
    new: Annotated[
        str | None, Query(alias="to", min_length=1, max_length=120, description="The last saved unless given.")
    ] = None,
) -> DifferenceAnswer:
    """Tell what changed from one version of a set to another, and how far the version should have moved."""
    found = library.golden_difference(service, caller, name, old, new)
    return DifferenceAnswer(
        queries=_changes(found.queries),
        documents=_changes(found.documents),
        judgments_added=[JudgmentChangeAnswer(**asdict(one)) for one in found.judgments_added],
        judgments_removed=[JudgmentChangeAnswer(**asdict(one)) for one in found.judgments_removed],
        judgments_changed=[JudgmentChangeAnswer(**asdict(one)) for one in found.judgments_changed],
        fields=list(found.fields),
        suggested=found.suggested,
        reason=found.reason,
    )


def _changes(found: Any) -> ChangesAnswer:
    return ChangesAnswer(added=list(found.added), removed=list(found.removed), changed=list(found.changed))


@router.get("/{name}/{version}")
def get_golden_version(
    service: Here, caller: Reader, name: SetName, version: VersionText, content: Whole = False
) -> GoldenAnswer:
    """Return one version of a golden set."""
    return golden_answer(library.golden_kept(service, caller, f"{name}@{version}"), content=content)
