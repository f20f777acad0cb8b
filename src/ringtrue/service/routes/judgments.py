"""``/v1/judgments``: which result answers which query how well, and who says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from ringtrue.answers import Deleted, JudgmentSource, KeptJudgment
from ringtrue.feedback.precedence import QUERY
from ringtrue.service.auth import Admin, Reader, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import Id, Label, Limit, Line, Name, Page, Strict
from ringtrue.service.work.judging import delete_judgments, judge_by_hand, judgments_after
from ringtrue.store import StoredJudgment, timestamp

router = APIRouter(prefix="/v1/judgments", tags=["judgments"], responses=ERRORS)
MOST = 1_000


class Said(Strict):
    """One judgment by hand."""

    query_id: Name
    item_id: Id
    relevance: Annotated[int, Field(ge=0, le=3, description="3 answers it, 2 in part, 1 is on the topic, 0 is not.")]
    annotator: Label | None = Field(None, description="Who judged; the caller unless given.")
    query: Line | None = Field(None, description="The words of the query; from the log unless given.")
    note: Line = ""


class SaidAll(Strict):
    """Judgments by hand. What the same annotator said before of the same query and item is replaced."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"judgments": [{"query_id": "eq_a1", "item_id": "faq-12", "relevance": 3, "note": "in its first line"}]}
            ]
        }
    )
    judgments: Annotated[list[Said], Field(min_length=1, max_length=MOST)]


JudgmentCursor = Annotated[str | None, Query(max_length=5_000, description="`next` of the page before.")]


@router.get("")
def list_judgments(
    service: Here,
    caller: Reader,
    query_id: Annotated[str | None, Query(max_length=200)] = None,
    source: Annotated[JudgmentSource | None, Query()] = None,
    annotator: Annotated[str | None, Query(max_length=200)] = None,
    limit: Limit = 50,
    cursor: JudgmentCursor = None,
) -> Page[KeptJudgment]:
    """List judgments by query, item, source and annotator."""
    rows, behind = judgments_after(
        service, caller, limit=limit, after=cursor, query_id=query_id, source=source, annotator=annotator
    )
    return Page(items=rows, next=behind)


@router.post("", status_code=201)
def judge(service: Here, caller: Writer, said: SaidAll) -> Sequence[KeptJudgment]:
    """Judge by hand. A judgment by hand counts before all that was derived from feedback."""
    now = timestamp(service.now())
    rows = [
        StoredJudgment(
            query_id=one.query_id,
            item_id=one.item_id,
            relevance=one.relevance,
            source="manual",
            created_at=now,
            project=caller.project,
            annotator=one.annotator or caller.who,
            metadata={**({"note": one.note} if one.note else {}), **({QUERY: one.query} if one.query is not None else {})},
        )
        for one in said.judgments
    ]
    return judge_by_hand(service, caller, rows)


@router.delete("")
def delete(
    service: Here,
    caller: Admin,
    source: Annotated[JudgmentSource, Query(description="Whose judgments go.")],
    annotator: Annotated[str | None, Query(max_length=200)] = None,
    query_id: Annotated[str | None, Query(max_length=200)] = None,
) -> Deleted:
    """Delete the judgments of a source, or only those of one annotator or query. It is written down who did it."""
    return Deleted(deleted=delete_judgments(service, caller, source=source, annotator=annotator, query_id=query_id))
