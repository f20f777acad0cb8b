"""``/v1/reviews`` and ``/v1/judgments``: pairs that people judge, blind to each other, until a set is published; and judgments.

Which judgment counts is decided where they are used; a person's always wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from ringtrue import answers
from ringtrue.feedback import KEY, QUERY, text_key
from ringtrue.golden import Rule
from ringtrue.review import GUIDELINES, RESERVED, key_of
from ringtrue.service import reviewing
from ringtrue.service.auth import Admin, Reader, Reviewer, Writer
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import (
    Cursor,
    Id,
    Label,
    Limit,
    Line,
    Name,
    Page,
    Strict,
    Text,
    paged,
    place_cursor,
    place_in,
    record_from,
)
from ringtrue.service.routes.log import PathName
from ringtrue.store import ReviewItem, StoredJudgment, timestamp

reviews_routes = APIRouter(prefix="/v1/reviews", tags=["reviews"], responses=ERRORS)
MOST = 1_000


class NewPair(Strict):
    """A question and a document that somebody should judge."""

    query_id: Name
    query: Line
    doc_id: Name
    title: Line = ""
    text: Text = ""
    priority: Annotated[float, Field(ge=-1e9, le=1e9, allow_inf_nan=False)] = Field(0.0, description="The highest come first.")


class NewPairs(
    Strict,
    examples=[
        {
            "golden": "hotel",
            "wanted": 2,
            "pairs": [
                {
                    "query_id": "q-1",
                    "query": "late checkout",
                    "doc_id": "faq-12",
                    "title": "Checking out",
                    "text": "Rooms can be kept until 14:00 on request.",
                    "priority": 0.8,
                }
            ],
        }
    ],
):
    """Pairs for the queue; one that is there keeps its state and its grades."""

    pairs: Annotated[list[NewPair], Field(min_length=1, max_length=MOST)]
    wanted: Annotated[int, Field(ge=1, le=20, description="How many people judge each, blind.")] = 1
    golden: Name | None = Field(None, description="The golden set that the judgments are for.")


class WantNext(Strict, examples=[{}, {"passing": ["bcd664c26d"], "minutes": 5}]):
    """Which pair is wanted."""

    passing: Annotated[list[Name], Field(max_length=10_000, description="Keys to pass over.")] = Field(default_factory=list)
    minutes: Annotated[float, Field(gt=0, le=24 * 60, description="How long it is kept for you.")] = RESERVED


class Grade(Strict, examples=[{"grade": 3, "note": "answers it in the first line"}]):
    """What a reviewer says of a pair."""

    grade: Annotated[int, Field(ge=0, le=3)]
    note: Line = ""


class Why(Strict, examples=[{"why": "holds a guest's name"}]):
    """Why nobody should judge a pair."""

    why: Line = ""


class Publish(Strict, examples=[{"golden": "hotel", "rule": "majority"}]):
    """Which set gets the judgments of its approved pairs, and how several grades become one."""

    golden: Name
    rule: Rule = "majority"
    adjudicator: Name | None = Field(
        None, description="Who settles disputes, with rule 'adjudicated'; unless given, whoever settled each on its page."
    )
    force: bool = Field(False, description="Publish although reviewers agree too little; needs `reason`.")
    reason: Line = Field("", description="Why too little agreement is passed over; it stays in the audit trail.")


@reviews_routes.get("")
def list_pairs(
    access: Reader, state: Annotated[answers.ReviewState | None, Query()] = None, limit: Limit = 50, cursor: Cursor = None
) -> Page[answers.Pair]:
    """List pairs, the most urgent first. Grades are not shown: reviewers are blind."""
    place = None if cursor is None else place_in(cursor, float, datetime, str)
    found = access.store.review_items(project=access.project, state=state, after=place, limit=limit + 1)
    return paged(found, limit, lambda last: place_cursor(float(last.priority), last.created_at, last.item_key), _pair)


def _pair(item: ReviewItem) -> answers.Pair:
    golden = item.metadata.get("golden")
    return record_from(answers.Pair, item, key=item.item_key, golden=None if golden is None else str(golden))


@reviews_routes.get("/backlog")
def backlog(access: Reader) -> answers.Backlog:
    """Count the pairs in each state, and say how long the oldest waits."""
    return reviewing.backlog(access)


@reviews_routes.get("/standing")
def standing(
    access: Reader,
    adjudicator: Annotated[str | None, Query(max_length=200, description="Who settles disputes and is not a rater.")] = None,
) -> answers.ReviewStanding:
    """Return who judged how much, how far they agree, and where they do not; over pairs that are judged completely."""
    found = reviewing.queue_of(access).standing(adjudicator=adjudicator)
    agreed = None if found.agreement is None else record_from(answers.ReviewAgreement, found.agreement)
    return answers.ReviewStanding(reviewing.backlog(access), found.raters, agreed, found.disputes)


@reviews_routes.post("", status_code=201)
def add(access: Writer, given: NewPairs) -> answers.AddedPairs:
    """Put pairs into the queue."""
    now = timestamp(access.now())
    items = [
        ReviewItem(
            **pair.model_dump(),
            item_key=key_of(pair.query_id, pair.doc_id),
            created_at=now,
            project=access.project,
            wanted=given.wanted,
            metadata={} if given.golden is None else {"golden": given.golden},
        )
        for pair in given.pairs
    ]
    new = reviewing.queue_of(access).add(items)
    return answers.AddedPairs(len(items), new, tuple(item.item_key for item in items))


@reviews_routes.post("/next")
def next_pair(access: Reviewer, wanted: WantNext) -> answers.NextPair:
    """Get a pair to judge, kept for the caller for a while. Who has one already gets the same again."""
    item = reviewing.next_pair(access, passing=wanted.passing, minutes=wanted.minutes)
    return answers.NextPair(
        pair=None if item is None else _pair(item),
        reserved_until=None if item is None else item.reserved_until,
        waiting=len(reviewing.queue_of(access).waiting(access.who)),
        guidelines=GUIDELINES,
    )


@reviews_routes.post("/undo")
def undo(access: Reviewer) -> answers.Undone:
    """Take back the last thing that the caller said; what is published stays."""
    item = reviewing.queue_of(access).undo(access.who)
    return answers.Undone(pair=None if item is None else _pair(item))


@reviews_routes.post("/publish", status_code=201)
def publish(access: Writer, wanted: Publish) -> answers.Published:
    """Keep the next version of a golden set, with the judgments of its approved pairs.

    Where two or more judged the same pairs, their agreement must exceed 0.6, or nothing is published (`cannot_decide`).
    """
    return reviewing.publish(access, **wanted.model_dump())


@reviews_routes.post("/{key}/judge")
def judge(access: Reviewer, key: PathName, said: Grade) -> answers.Pair:
    """Judge a pair. If you judge it again, the latest grade counts, until the pair is published."""
    queue, now = reviewing.queue_of(access), access.now()
    return _pair(queue.judge(key, said.grade, reviewer=access.who, now=now, note=said.note))


@reviews_routes.post("/{key}/skip")
def skip(access: Reviewer, key: PathName) -> answers.Pair:
    """Give a pair back for others to judge; name its key in `passing` to get another."""
    return _pair(reviewing.skip(access, key))


@reviews_routes.post("/{key}/reject")
def reject(access: Reviewer, key: PathName, said: Why) -> answers.Pair:
    """Take a pair out that nobody should judge."""
    return _pair(reviewing.queue_of(access).reject(key, reviewer=access.who, now=access.now(), why=said.why))


judgments_routes = APIRouter(prefix="/v1/judgments", tags=["judgments"], responses=ERRORS)


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


Annotator = Annotated[str | None, Query(max_length=200)]
OneQuery = Annotated[str | None, Query(max_length=200)]


@judgments_routes.get("")
def list_judgments(
    access: Reader,
    query_id: OneQuery = None,
    source: Annotated[answers.JudgmentSource | None, Query()] = None,
    annotator: Annotator = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[answers.KeptJudgment]:
    """List judgments by query, item, source and annotator."""
    found = access.store.judgments(
        project=access.project,
        query_ids=None if query_id is None else [query_id],
        source=source,
        annotator=annotator,
        after=None if cursor is None else place_in(cursor, str, str, str, str),
        limit=limit + 1,
    )
    return paged(found, limit, lambda last: place_cursor(last.query_id, last.item_id, last.source, last.annotator))


@judgments_routes.post("", status_code=201, name="judge")
def judge_by_hand(access: Writer, given: ManualJudgments) -> Sequence[answers.KeptJudgment]:
    """Judge by hand. A judgment by hand counts before all that was derived from feedback."""
    store, now = access.store, timestamp(access.now())
    silent = sorted({one.query_id for one in given.judgments if one.query is None})
    asked = {one.query_id: one.query for one in (store.queries(project=access.project, query_ids=silent) if silent else ())}
    rows = []
    for one in given.judgments:
        metadata = {"note": one.note} if one.note else {}
        text = one.query if one.query is not None else asked.get(one.query_id)
        if text is not None:  # so it outlives the log, and counts for all searches with the same words
            metadata |= {QUERY: text, KEY: text_key(text)}
        by: dict[str, Any] = {"project": access.project, "annotator": one.annotator or access.who}
        rows.append(StoredJudgment(one.query_id, one.item_id, one.relevance, "manual", now, **by, metadata=metadata))
    store.add_judgments(rows)
    return rows


@judgments_routes.delete("")
def delete(
    access: Admin,
    source: Annotated[answers.JudgmentSource, Query(description="Whose judgments go.")],
    annotator: Annotator = None,
    query_id: OneQuery = None,
) -> answers.Deleted:
    """Delete the judgments of a source, or only those of one annotator or query. It is written down who did it."""
    count = access.store.delete_judgments(
        project=access.project, source=source, annotator=annotator, query_ids=None if query_id is None else [query_id]
    )
    access.note("judgments.delete", source, {"annotator": annotator, "query_id": query_id, "judgments": count})
    return answers.Deleted(deleted=count)
