"""``/v1/reviews``: pairs of question and document that people judge, blind to each other, until a set is published."""

from __future__ import annotations

import math
from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from ringtrue.answers import AddedPairs, Agreement, Backlog, NextPair, Pair, Published, ReviewState, Standing, Undone
from ringtrue.answers import Reviewer as ReviewerAnswer
from ringtrue.golden import Rule, rater_name
from ringtrue.review import GUIDELINES, RESERVED, key_of, said_by_raters
from ringtrue.service.auth import Reader, Reviewer, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import Cursor, Limit, Line, Name, Page, Strict, Text, paged, record_from, wrong_cursor
from ringtrue.service.routes.queries import PathName
from ringtrue.service.work.reviewing import COMPLETE, queue_of
from ringtrue.service.work.reviewing import backlog as review_backlog
from ringtrue.service.work.reviewing import next_pair as reserve_next
from ringtrue.service.work.reviewing import publish as publish_pairs
from ringtrue.service.work.reviewing import skip as skip_pair
from ringtrue.store import ReviewItem, timestamp

router = APIRouter(prefix="/v1/reviews", tags=["reviews"], responses=ERRORS)
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


@router.get("")
def list_pairs(
    service: Here,
    caller: Reader,
    state: Annotated[ReviewState | None, Query()] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[Pair]:
    """List pairs, the most urgent first. Grades are not shown: reviewers are blind."""
    place = None if cursor is None else _place(cursor)
    found = service.of(caller).review_items(project=caller.project, state=state, after=place, limit=limit + 1)
    shown, behind = paged(found, limit, lambda last: f"{last.priority!r}~{last.created_at}~{last.item_key}")
    return Page(items=list(map(_pair, shown)), next=behind)


def _place(cursor: str) -> tuple[float, str, str]:
    """Return priority, time and key of the last pair that was shown."""
    priority, _, rest = cursor.partition("~")
    created_at, mark, key = rest.partition("~")
    try:
        number = float(priority)
    except ValueError:
        raise wrong_cursor() from None
    if not mark or not math.isfinite(number):
        raise wrong_cursor()
    return number, created_at, key


def _pair(item: ReviewItem) -> Pair:
    golden = item.metadata.get("golden")
    return record_from(Pair, item, key=item.item_key, golden=None if golden is None else str(golden))


@router.get("/backlog")
def backlog(service: Here, caller: Reader) -> Backlog:
    """Count the pairs in each state, and say how long the oldest waits."""
    return review_backlog(service, caller)


@router.get("/standing")
def standing(
    service: Here,
    caller: Reader,
    adjudicator: Annotated[str | None, Query(max_length=200, description="Who settles disputes and is no rater.")] = None,
) -> Standing:
    """Return who judged how much, how far they agree, and where they do not; over pairs that are judged completely."""
    queue = queue_of(service, caller)
    found = queue.standing(adjudicator=adjudicator)
    complete = [item for item in queue.items() if item.state in COMPLETE]
    # Whoever is still to judge a pair must not be able to tell what the others said of it, not even from counts.
    grades: dict[str, Counter[int]] = {}
    for rating in said_by_raters(complete, queue.said(complete)):
        if rating.rater != rater_name(adjudicator or ""):
            grades.setdefault(rating.rater, Counter())[rating.grade] += 1
    raters = [
        ReviewerAnswer(
            one.name, one.ratings, {str(grade): count for grade, count in sorted(grades.get(one.name, Counter()).items())}
        )
        for one in found.raters
    ]
    agreed = None if found.agreement is None else record_from(Agreement, found.agreement)
    return Standing(review_backlog(service, caller), tuple(raters), agreed, found.disputes)


@router.post("", status_code=201)
def add(service: Here, caller: Writer, given: NewPairs) -> AddedPairs:
    """Put pairs into the queue."""
    now = timestamp(service.now())
    items = [
        ReviewItem(
            **pair.model_dump(),
            item_key=key_of(pair.query_id, pair.doc_id),
            created_at=now,
            project=caller.project,
            wanted=given.wanted,
            metadata={} if given.golden is None else {"golden": given.golden},
        )
        for pair in given.pairs
    ]
    new = queue_of(service, caller).add(items)
    return AddedPairs(len(items), new, tuple(item.item_key for item in items))


@router.post("/next")
def next_pair(service: Here, caller: Reviewer, wanted: WantNext) -> NextPair:
    """Get a pair to judge, kept for the caller for a while. Who has one already gets the same again."""
    item = reserve_next(service, caller, passing=wanted.passing, minutes=wanted.minutes)
    return NextPair(
        pair=None if item is None else _pair(item),
        reserved_until=None if item is None else item.reserved_until,
        waiting=len(queue_of(service, caller).waiting(caller.who)),
        guidelines=GUIDELINES,
    )


@router.post("/undo")
def undo(service: Here, caller: Reviewer) -> Undone:
    """Take back the last thing that the caller said; what is published stays."""
    item = queue_of(service, caller).undo(caller.who)
    return Undone(pair=None if item is None else _pair(item))


@router.post("/publish", status_code=201)
def publish(service: Here, caller: Writer, wanted: Publish) -> Published:
    """Keep the next version of a golden set, with the judgments of its approved pairs.

    Where two or more judged the same pairs, their agreement must exceed 0.6, or nothing is published (`cannot_decide`).
    """
    return publish_pairs(service, caller, **wanted.model_dump())


@router.post("/{key}/judge")
def judge(service: Here, caller: Reviewer, key: PathName, said: Grade) -> Pair:
    """Judge a pair. Said again, the newest counts, until the pair is published."""
    queue, now = queue_of(service, caller), service.now()
    return _pair(queue.judge(key, said.grade, reviewer=caller.who, now=now, note=said.note))


@router.post("/{key}/skip")
def skip(service: Here, caller: Reviewer, key: PathName) -> Pair:
    """Give a pair back for others to judge; name its key in `passing` to get another."""
    return _pair(skip_pair(service, caller, key))


@router.post("/{key}/reject")
def reject(service: Here, caller: Reviewer, key: PathName, said: Why) -> Pair:
    """Take a pair out that nobody should judge."""
    return _pair(queue_of(service, caller).reject(key, reviewer=caller.who, now=service.now(), why=said.why))
