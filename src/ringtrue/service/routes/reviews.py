"""``/v1/reviews``: pairs of question and document that people judge, blind to each other, until a set is published (G-8)."""

from __future__ import annotations

import math
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from ringtrue.golden import Rule
from ringtrue.online.review import GUIDELINES, RESERVED, Disputed, key_of
from ringtrue.service.auth import Reader, Reviewer, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import Answer, Cursor, Limit, Line, Name, Page, Strict, Text
from ringtrue.service.routes.queries import PathName
from ringtrue.service.work import reviewing
from ringtrue.stats import Agreement
from ringtrue.store import ReviewItem, ReviewState, timestamp

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


class NewPairs(Strict):
    """Pairs for the queue; one that is there keeps its state and its grades."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
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
            ]
        }
    )
    pairs: Annotated[list[NewPair], Field(min_length=1, max_length=MOST)]
    wanted: Annotated[int, Field(ge=1, le=20, description="How many people judge each, blind.")] = 1
    golden: Name | None = Field(None, description="The golden set that the judgments are for.")


class Pair(Answer):
    """A pair as anybody may see it: nobody's grade, and not who has it."""

    key: str
    query_id: str
    query: str
    doc_id: str
    title: str
    text: str
    priority: float
    state: ReviewState
    wanted: int
    created_at: str
    golden: str | None

    @classmethod
    def of(cls, item: ReviewItem) -> Pair:
        golden = item.metadata.get("golden")
        return cls(
            key=item.item_key,
            query_id=item.query_id,
            query=item.query,
            doc_id=item.doc_id,
            title=item.title,
            text=item.text,
            priority=item.priority,
            state=item.state,
            wanted=item.wanted,
            created_at=item.created_at,
            golden=None if golden is None else str(golden),
        )


class Backlog(Answer):
    """How much waits to be judged, and for how long."""

    pending_review: int
    approved: int
    rejected: int
    published: int
    total: int
    oldest_pending_at: str | None
    oldest_seconds: float | None

    @classmethod
    def of(cls, found: reviewing.Backlog) -> Backlog:
        return cls(
            **found.states, total=found.total, oldest_pending_at=found.oldest_pending_at, oldest_seconds=found.oldest_seconds
        )


class Added(Answer):
    """Pairs that were sent: how many, how many of them are new, and the key of each."""

    accepted: int
    new: int
    keys: list[str]


class WantNext(Strict):
    """Which pair is wanted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}, {"passing": ["bcd664c26d"], "minutes": 5}]})
    passing: Annotated[list[Name], Field(max_length=10_000, description="Keys to pass over.")] = Field(default_factory=list)
    minutes: Annotated[float, Field(gt=0, le=24 * 60, description="How long it is kept for you.")] = RESERVED


class Next(Answer):
    """A pair that is kept for the caller; null where nothing is left for them."""

    pair: Pair | None
    reserved_until: str | None
    waiting: int = Field(description="How many pairs the caller could still judge, this one too.")
    guidelines: str


class Grade(Strict):
    """What a reviewer says of a pair."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"grade": 3, "note": "answers it in the first line"}]})
    grade: Annotated[int, Field(ge=0, le=3)]
    note: Line = ""


class Why(Strict):
    """Why nobody should judge a pair."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"why": "holds a guest's name"}]})
    why: Line = ""


class Undone(Answer):
    """The pair whose grade was taken back; null where there was none."""

    pair: Pair | None


class RaterAnswer(Answer):
    """What one reviewer did."""

    name: str
    ratings: int
    grades: dict[int, int] = Field(description="How often each grade, over pairs that are judged completely.")


class AgreementAnswer(Answer):
    """How far reviewers agree, over pairs that are judged completely."""

    name: str
    coefficient: float | None = Field(description="null where it is not defined: everybody always said the same.")
    items: int
    raters: int
    observed: float | None
    expected: float | None

    @classmethod
    def of(cls, found: Agreement) -> AgreementAnswer:
        coefficient, observed, expected = (
            None if math.isnan(value) else value for value in (found.coefficient, found.observed, found.expected)
        )
        return cls(
            name=found.name,
            coefficient=coefficient,
            items=found.items,
            raters=found.raters,
            observed=observed,
            expected=expected,
        )


class DisputeAnswer(Answer):
    """A completely judged pair on which reviewers differ, and how it was settled, if it was."""

    key: str
    query_id: str
    query: str
    doc_id: str
    grades: dict[str, int]
    settled_by: str | None = Field(description="Who settled it and is no rater of it; null while nobody has.")
    settled: int | None = Field(description="The grade that counts under the rule 'adjudicated'.")

    @classmethod
    def of(cls, found: Disputed) -> DisputeAnswer:
        return cls.model_validate(found, from_attributes=True)


class StandingAnswer(Answer):
    """Where the queue stands."""

    backlog: Backlog
    raters: list[RaterAnswer]
    agreement: AgreementAnswer | None = Field(description="null below two reviewers of the same pairs.")
    disputes: list[DisputeAnswer]


class Publish(Strict):
    """Which set gets the judgments of its approved pairs, and how several grades become one."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"golden": "hotel", "rule": "majority"}]})
    golden: Name
    rule: Rule = "majority"
    adjudicator: Name | None = Field(
        None, description="Who settles disputes, with rule 'adjudicated'; unless given, whoever settled each on its page."
    )
    force: bool = Field(False, description="Publish although reviewers agree too little; needs `reason`.")
    reason: Line = Field("", description="Why too little agreement is passed over; it stays in the audit trail.")


class PublishedAnswer(Answer):
    """The version that was made."""

    golden: str
    version: str
    judgments: int = Field(description="New or changed judgments.")
    published: int = Field(description="Pairs that are published with it.")
    kept: list[str] = Field(description="Pairs that a person had judged in the set before; that judgment stays.")


@router.get("")
def list_pairs(
    service: Here,
    caller: Reader,
    state: Annotated[ReviewState | None, Query()] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[Pair]:
    """List pairs, the most urgent first. Grades are not shown: reviewers are blind."""
    items, behind = reviewing.pairs_after(service, caller, limit=limit, after=cursor, state=state)
    return Page[Pair](items=[Pair.of(item) for item in items], next=behind)


@router.get("/backlog")
def backlog(service: Here, caller: Reader) -> Backlog:
    """Count the pairs in each state, and say how long the oldest waits."""
    return Backlog.of(reviewing.backlog(service, caller))


@router.get("/standing")
def standing(
    service: Here,
    caller: Reader,
    adjudicator: Annotated[str | None, Query(max_length=200, description="Who settles disputes and is no rater.")] = None,
) -> StandingAnswer:
    """Return who judged how much, how far they agree, and where they do not; over pairs that are judged completely."""
    found = reviewing.standing(service, caller, adjudicator=adjudicator)
    return StandingAnswer(
        backlog=Backlog.of(reviewing.backlog(service, caller)),
        raters=[RaterAnswer.model_validate(one, from_attributes=True) for one in found.raters],
        agreement=None if found.agreement is None else AgreementAnswer.of(found.agreement),
        disputes=[DisputeAnswer.of(one) for one in found.disputes],
    )


@router.post("", status_code=201)
def add(service: Here, caller: Writer, given: NewPairs) -> Added:
    """Put pairs into the queue."""
    now = timestamp(service.now())
    items = [
        ReviewItem(
            item_key=key_of(pair.query_id, pair.doc_id),
            query_id=pair.query_id,
            query=pair.query,
            doc_id=pair.doc_id,
            created_at=now,
            project=caller.project,
            title=pair.title,
            text=pair.text,
            priority=pair.priority,
            wanted=given.wanted,
            metadata={} if given.golden is None else {"golden": given.golden},
        )
        for pair in given.pairs
    ]
    new = reviewing.add_pairs(service, caller, items)
    return Added(accepted=len(items), new=new, keys=[item.item_key for item in items])


@router.post("/next")
def next_pair(service: Here, caller: Reviewer, wanted: WantNext) -> Next:
    """Get a pair to judge, kept for the caller for a while. Who has one already gets the same again."""
    item = reviewing.next_pair(service, caller, passing=wanted.passing, minutes=wanted.minutes)
    return Next(
        pair=None if item is None else Pair.of(item),
        reserved_until=None if item is None else item.reserved_until,
        waiting=reviewing.left_for(service, caller),
        guidelines=GUIDELINES,
    )


@router.post("/undo")
def undo(service: Here, caller: Reviewer) -> Undone:
    """Take back the last thing that the caller said; what is published stays."""
    item = reviewing.undo(service, caller)
    return Undone(pair=None if item is None else Pair.of(item))


@router.post("/publish", status_code=201)
def publish(service: Here, caller: Writer, wanted: Publish) -> PublishedAnswer:
    """Keep the next version of a golden set, with the judgments of its approved pairs.

    Where two or more judged the same pairs, their agreement must exceed 0.6, or nothing is published (`cannot_decide`).
    """
    found = reviewing.publish(
        service,
        caller,
        wanted.golden,
        rule=wanted.rule,
        adjudicator=wanted.adjudicator,
        force=wanted.force,
        reason=wanted.reason,
    )
    return PublishedAnswer.model_validate(found, from_attributes=True)


@router.post("/{key}/judge")
def judge(service: Here, caller: Reviewer, key: PathName, said: Grade) -> Pair:
    """Judge a pair. Said again, the newest counts, until the pair is published."""
    return Pair.of(reviewing.judge(service, caller, key, said.grade, note=said.note))


@router.post("/{key}/skip")
def skip(service: Here, caller: Reviewer, key: PathName) -> Pair:
    """Give a pair back for others to judge; name its key in `passing` to get another."""
    return Pair.of(reviewing.skip(service, caller, key))


@router.post("/{key}/reject")
def reject(service: Here, caller: Reviewer, key: PathName, said: Why) -> Pair:
    """Take a pair out that nobody should judge."""
    return Pair.of(reviewing.reject(service, caller, key, why=said.why))
