"""Golden sets: which there are, what is in a version, what is wrong with it, and what changed from one to the next."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import PurePath
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, File, Form, Path, Query, Request, UploadFile
from fastapi.responses import RedirectResponse, Response

from ringtrue.errors import MissingInput, RingtrueError
from ringtrue.golden import VersionDifference, diff, record_of, version_name
from ringtrue.records import GoldenSet
from ringtrue.report import DASH
from ringtrue.service.auth import Access, PageReader, PageWriter
from ringtrue.service.errors import Refused, refused
from ringtrue.service.library import golden_named, golden_sets, golden_versions, keep_golden, keep_shipped, named, set_opened
from ringtrue.service.models import Cursor
from ringtrue.service.pages.runs import neighbours, part_of
from ringtrue.service.pages.shell import ChoiceField, Words, fragment, page, wants_fragment
from ringtrue.service.routes.evaluate import Kind, read_set

router = APIRouter(include_in_schema=False)
SetName = Annotated[str, Path(min_length=1, max_length=120)]
VersionText = Annotated[str, Path(min_length=1, max_length=120)]
QUERIES, PROBLEMS, CHANGES = 50, 50, 200
KINDS: Mapping[str, Kind] = {
    ".json": "json", ".yaml": "yaml", ".yml": "yaml", ".jsonl": "jsonl", ".ndjson": "jsonl",
}  # fmt: skip
"""Endings of file names → what they hold."""


@router.get("/golden")
def set_list(request: Request, access: PageReader) -> Response:
    """List the golden sets."""
    return _sets(request, access)


def _sets(request: Request, access: Access, *, problem: Refused | None = None) -> Response:
    found = golden_sets(access)
    return page(
        request, "golden.html.jinja", status=problem.status if problem else 200, problem=problem,
        own=[one for one in found if not one.shipped], shipped=[one for one in found if one.shipped],
        limit=access.service.settings.body_limit // (1024 * 1024),
    )  # fmt: skip


@router.post("/golden")
def upload(request: Request, access: PageWriter, file: Annotated[UploadFile, File()]) -> Response:
    """Keep an uploaded golden set under the name and version that it has."""
    try:
        kind = KINDS.get(PurePath(file.filename or "").suffix.lower())
        if kind is None:
            sent = (file.filename or "the file")[:80]
            said = f"cannot read '{sent}'; send .json, .yaml or .jsonl (ringtrue golden convert SET gold.json makes one)"
            raise Refused(422, "unsupported_type", said, field="file")
        kept = keep_golden(access, read_set(file.file.read(), kind, name=_called(file.filename or "upload")))
    except (RingtrueError, Refused) as problem:
        return _sets(request, access, problem=refused(problem))
    return RedirectResponse(_place(kept.golden.id, kept.golden.version), 303)


def _called(file: str) -> str:
    """Return the name of a file without what the name of a set may not hold."""
    return " ".join(re.sub(r"[@?#%]+", "-", PurePath(file.replace("\\", "/")).name).split()) or "upload"


@router.post("/golden/shipped")
def use_shipped(
    request: Request, access: PageWriter, name: Annotated[str, Form(max_length=120)] = "hotel", next: ChoiceField = ""
) -> Response:
    """Keep a copy of a set that comes with Ringtrue, and go to it, or back to the first steps."""
    kept = keep_shipped(access, name)
    return RedirectResponse("/" if next == "/" else _place(kept.golden.id, kept.golden.version), 303)


def _place(name: str, version: str) -> str:
    return f"/golden/{quote(name, safe='')}/{quote(version, safe='')}"


@router.get("/golden/{name}")
def newest(access: PageReader, name: SetName) -> Response:
    """Lead to the last saved version of a set."""
    return RedirectResponse(_place(name, golden_versions(access, named(name)[0])[0].version), 303)


@router.get("/golden/{name}/diff")
def difference(
    request: Request,
    access: PageReader,
    name: SetName,
    old: Annotated[str, Query(alias="from", max_length=120)] = "",
    new: Annotated[str, Query(alias="to", max_length=120)] = "",
) -> Response:
    """Show what changed from one version of a set to another."""
    versions = [one.version for one in golden_versions(access, named(name)[0])]
    new = new or versions[0]
    if not old and len(versions) > 1:
        old = versions[min(versions.index(new) + 1, len(versions) - 1)] if new in versions else versions[-1]
    values: dict[str, Any] = {"name": name, "versions": [(one, one) for one in versions], "old": old, "new": new}
    if not old or old == new:
        return page(request, "golden_diff.html.jinja", **values, found=None)
    before, after = (golden_named(access, f"{named(name)[0]}@{one}") for one in (old, new))
    found = diff(before, after)
    return page(
        request, "golden_diff.html.jinja", **values, found=found, changed=_rewritten(found, before, after),
        texts={query.query_id: query.text for golden in (before, after) for query in golden.queries},
        titles={document.doc_id: document.title for golden in (before, after) for document in golden.documents},
        judgments=_judgments(found), most=CHANGES,
    )  # fmt: skip


def _rewritten(found: VersionDifference, before: GoldenSet, after: GoldenSet) -> list[tuple[str, str, str]]:
    """Return (id, text before, text now) of the queries that changed."""
    texts = [{query.query_id: query.text for query in golden.queries} for golden in (before, after)]
    return [(one, texts[0].get(one, ""), texts[1].get(one, "")) for one in found.queries.changed]


def _judgments(found: VersionDifference) -> list[tuple[str, Any]]:
    kinds = (("added", found.judgments_added), ("removed", found.judgments_removed), ("changed", found.judgments_changed))
    rows = [(kind, one) for kind, some in kinds for one in some]
    return sorted(rows, key=lambda row: (row[1].query_id, row[1].doc_id))


@router.get("/golden/{name}/{version}")
def set_page(
    request: Request,
    access: PageReader,
    name: SetName,
    version: VersionText,
    cursor: Cursor = None,
    q: Annotated[str, Query(max_length=500)] = "",
    kind: Words = "",
) -> Response:
    """Show a version of a golden set: its figures, what is wrong with it, and its queries."""
    kept = set_opened(access, name, version)
    golden = kept.golden
    field = next((one for one in ("query_type", *golden.slices) if any(one in query.metadata for query in golden.queries)), "")
    values_of = {str(query.metadata[field]) for query in golden.queries if field in query.metadata}
    text = q.strip().casefold()
    wanted = [
        query
        for query in golden.queries
        if (not text or text in f"{query.query_id} {query.text}".casefold())
        and (not kind or str(query.metadata.get(field)) == kind)
    ]
    shown, after, words = part_of(wanted, [query.query_id for query in wanted], cursor, QUERIES)
    counts = Counter(one.query_id for one in golden.judgments)
    relevant = Counter(one.query_id for one in golden.judgments if one.grade >= max(1, golden.relevance_threshold))
    values: dict[str, Any] = {
        "kept": kept, "golden": golden, "report": kept.report, "problems": kept.report.problems[:PROBLEMS],
        "queries": shown, "next": after, "cursor": cursor, "shown": words, "q": q, "kind": kind, "field": field,
        "kinds": [("", "all"), *((one, one) for one in sorted(values_of))],
        "counts": counts, "relevant": relevant, "here": _place(name, version), "version_name": version_name(golden),
    }  # fmt: skip
    if wants_fragment(request):
        return fragment(request, "golden_set.html.jinja", "rows", **values)
    values["versions"] = golden_versions(access, named(name)[0])
    figures = {one: _known(value) for one, value in kept.report.figures.items()}
    values["figures"] = figures
    for one in ("grades", "sources"):
        values[one] = ", ".join(f"{name}: {count:,}" for name, count in figures[one].items()) or DASH
    return page(request, "golden_set.html.jinja", **values)


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


@router.get("/golden/{name}/{version}/download")
def download(access: PageReader, name: SetName, version: VersionText) -> Response:
    """Send a version as a file: the golden-dataset JSON that the command line reads and that can be uploaded again."""
    golden = set_opened(access, name, version).golden
    content = json.dumps(record_of(golden), ensure_ascii=False, indent=1).encode("utf-8", "replace")
    file = re.sub(r"[^\w.-]+", "-", f"{golden.id}-{golden.version}.json")
    named = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(file)}"}
    return Response(content, media_type="application/json", headers=named)


@router.get("/golden/{name}/{version}/queries/{query_id:path}")
def set_query(request: Request, access: PageReader, name: SetName, version: VersionText, query_id: str) -> Response:
    """Show one query of a golden set with its judgments."""
    golden = set_opened(access, name, version).golden
    ids = [query.query_id for query in golden.queries]
    if query_id not in ids:
        raise MissingInput(f"golden set '{name}' {version} has no query '{query_id:.120}'; its page lists those there are")
    documents = {document.doc_id: document for document in golden.documents}
    judged = sorted((one for one in golden.judgments if one.query_id == query_id), key=lambda one: (-one.grade, one.doc_id))
    return page(
        request, "golden_query.html.jinja", golden=golden, query=golden.queries[ids.index(query_id)], judged=judged,
        documents=documents, here=_place(name, version), **neighbours(ids, query_id),
        threshold=max(1, golden.relevance_threshold),
    )  # fmt: skip
