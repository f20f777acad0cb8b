"""``/v1/judgments``: which result answers which query how well, and who says so.

Which judgment counts is decided where they are used; a person's always wins.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from ringtrue.answers import Deleted, JudgmentSource, KeptJudgment
from ringtrue.feedback import KEY, QUERY, text_key
from ringtrue.service.auth import Admin, Reader, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import Id, Label, Limit, Line, Name, Page, Strict, paged, wrong_cursor
from ringtrue.store import StoredJudgment, timestamp

router = APIRouter(prefix="/v1/judgments", tags=["judgments"], responses=ERRORS)
MOST = 1_000


class ManualJudgment(Strict):
    """One judgment by hand."""

    query_id: Name
    item_id: Id
    relevance: Annotated[int, Field(ge=0, le=3, description="3 answers it, 2 in part, 1 is on the topic, 0 is not.")]
    annotator: Label | None = Field(None, description="Who judged; the caller unless given.")
    query: Line | None = Field(None, description="The words of the query; from the log unless given.")
    note: Line = ""


class ManualJudgments(
    Strict, examples=[{"judgments": [{"query_id": "eq_a1", "item_id": "faq-12", "relevance": 3, "note": "in its first line"}]}]
):
    """Judgments by hand. What the same annotator said before of the same query and item is replaced."""

    judgments: Annotated[list[ManualJudgment], Field(min_length=1, max_length=MOST)]


JudgmentCursor = Annotated[str | None, Query(max_length=5_000, description="`next` of the page before.")]
Annotator = Annotated[str | None, Query(max_length=200)]
OneQuery = Annotated[str | None, Query(max_length=200)]


@router.get("")
def list_judgments(
    service: Here,
    caller: Reader,
    query_id: OneQuery = None,
    source: Annotated[JudgmentSource | None, Query()] = None,
    annotator: Annotator = None,
    limit: Limit = 50,
    cursor: JudgmentCursor = None,
) -> Page[KeptJudgment]:
    """List judgments by query, item, source and annotator."""
    found = service.of(caller).judgments(
        project=caller.project,
        query_ids=None if query_id is None else [query_id],
        source=source,
        annotator=annotator,
        after=None if cursor is None else _place(cursor),
        limit=limit + 1,
    )
    shown, behind = paged(found, limit, _cursor)
    return Page(items=shown, next=behind)


def _cursor(row: StoredJudgment) -> str:
    place = (row.query_id, row.item_id, row.source, row.annotator)
    return base64.urlsafe_b64encode(json.dumps(place, ensure_ascii=False, separators=(",", ":")).encode()).decode()


def _place(cursor: str) -> tuple[str, str, str, str]:
    try:
        query_id, item_id, source, annotator = found = json.loads(base64.urlsafe_b64decode(cursor))
    except (ValueError, TypeError):
        raise wrong_cursor() from None
    if not isinstance(found, list) or not all(isinstance(part, str) for part in found):
        raise wrong_cursor()
    return query_id, item_id, source, annotator


@router.post("", status_code=201)
def judge(service: Here, caller: Writer, given: ManualJudgments) -> Sequence[KeptJudgment]:
    """Judge by hand. A judgment by hand counts before all that was derived from feedback."""
    store, now = service.of(caller), timestamp(service.now())
    silent = sorted({one.query_id for one in given.judgments if one.query is None})
    asked = {one.query_id: one.query for one in (store.queries(project=caller.project, query_ids=silent) if silent else ())}
    rows = []
    for one in given.judgments:
        metadata = {"note": one.note} if one.note else {}
        text = one.query if one.query is not None else asked.get(one.query_id)
        if text is not None:  # so it outlives the log, and counts for all searches with the same words
            metadata |= {QUERY: text, KEY: text_key(text)}
        by: dict[str, Any] = {"project": caller.project, "annotator": one.annotator or caller.who}
        rows.append(StoredJudgment(one.query_id, one.item_id, one.relevance, "manual", now, **by, metadata=metadata))
    store.add_judgments(rows)
    return rows


@router.delete("")
def delete(
    service: Here,
    caller: Admin,
    source: Annotated[JudgmentSource, Query(description="Whose judgments go.")],
    annotator: Annotator = None,
    query_id: OneQuery = None,
) -> Deleted:
    """Delete the judgments of a source, or only those of one annotator or query. It is written down who did it."""
    count = service.of(caller).delete_judgments(
        project=caller.project, source=source, annotator=annotator, query_ids=None if query_id is None else [query_id]
    )
    service.note(caller, "judgments.delete", source, {"annotator": annotator, "query_id": query_id, "judgments": count})
    return Deleted(deleted=count)
