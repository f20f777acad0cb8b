"""``/v1/queries``: the log of searches, written thousands of times a second and read now and then (L-1, W-3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import AfterValidator, Field

from ringtrue.errors import InputError
from ringtrue.service.auth import Reader, allowed, caller_of
from ringtrue.service.context import Here, Service
from ringtrue.service.direct import Direct, OneOrMany
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import Answer, Cursor, Free, Limit, Line, Moment, Name, Page, Strict, Text, paged
from ringtrue.service.work.logging_in import Step, log_stats, newest_searches, one_search, search_row
from ringtrue.store import LoggedQuery, timestamp

router = APIRouter(prefix="/v1/queries", tags=["queries"], responses=ERRORS)
MOST = 1_000
"""Searches of one request."""
MOST_RESULTS = 1_000


def _readable(moment: str) -> str:
    try:
        return timestamp(moment)
    except InputError as problem:
        raise ValueError(str(problem)) from None


At = Annotated[Moment, AfterValidator(_readable), Field(json_schema_extra={"format": "date-time"})]
PathName = Annotated[str, Path(min_length=1, max_length=300)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e300, le=1e300)]
Milliseconds = Annotated[float, Field(allow_inf_nan=False, ge=0, le=1e12)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Ids = Annotated[tuple[Name, ...], Field(max_length=MOST_RESULTS)]


class Stage(Strict):
    """What one stage of a search took in and gave out."""

    name: Name
    input: Count
    output: Count
    ms: Milliseconds


class Search(Strict):
    """One search as it happened. Only `query` and `tool_name` must be there; what is not known is left out."""

    query: Text
    tool_name: Name
    query_id: Name | None = Field(None, description="Given where it is missing. Sent twice, the first one stays.")
    created_at: At | None = Field(None, description="When it was searched; now where it is missing.")
    intent: Line | None = None
    mode: Name | None = None
    session_id: Name | None = None
    user_id: Name | None = None
    result_ids: Ids = ()
    scores: Annotated[tuple[Number, ...], Field(max_length=MOST_RESULTS)] = ()
    channel_contributions: Annotated[dict[Name, Ids], Field(max_length=50)] = Field(
        default_factory=dict, description="Channel → ids it had."
    )
    total_latency_ms: Milliseconds | None = None
    stage_latency_ms: Annotated[dict[Name, Milliseconds], Field(max_length=50)] = Field(default_factory=dict)
    stages: Annotated[tuple[Stage, ...], Field(max_length=50)] = ()
    fusion_weights: Annotated[dict[Name, Number], Field(max_length=50)] = Field(default_factory=dict)
    quality_proxy_score: Number | None = Field(None, description="A health figure, not quality; made of scores and latency.")
    trace_id: Name | None = None
    prompt_id: Name | None = None
    retriever: Name | None = Field(None, description="Fingerprint of the retriever that answered.")
    fallback: Line | None = Field(None, description="Why a fallback was triggered.")
    degraded: bool = False
    mode_override: Name | None = None
    token_pressure_level: Name | None = None
    token_pressure_ratio: Number | None = None
    boost_delta: Number | None = None
    extraction_count: Count | None = None
    flags: Annotated[Free, Field(max_length=200)] = Field(
        default_factory=dict, description="Flags in force and their variants."
    )
    is_eval_corpus: bool = False
    eval_category: Name | None = None


class LoggedSearch(Answer):
    """One search of the log."""

    query_id: str
    query: str
    tool_name: str
    created_at: str
    intent: str | None
    mode: str | None
    session_id: str | None
    user_id: str | None
    result_ids: list[str]
    scores: list[float]
    channel_contributions: dict[str, list[str]]
    total_latency_ms: float | None
    stage_latency_ms: dict[str, float]
    stages: list[Stage]
    fusion_weights: dict[str, float]
    quality_proxy_score: float | None
    trace_id: str | None
    prompt_id: str | None
    retriever: str | None
    fallback: str | None
    degraded: bool
    mode_override: str | None
    token_pressure_level: str | None
    token_pressure_ratio: float | None
    boost_delta: float | None
    extraction_count: int | None
    flags: dict[str, Any]
    is_eval_corpus: bool
    eval_category: str | None

    @classmethod
    def of(cls, row: LoggedQuery) -> LoggedSearch:
        return cls.model_validate(row, from_attributes=True)


class Logged(Answer):
    """What became of searches that were sent: those accepted are in the store, those stored are new there."""

    accepted: int
    stored: int
    query_ids: list[str] = Field(description="In the order in which they were sent; feedback names them.")


class Bucket(Answer):
    """The searches of one step of time."""

    at: str
    searches: int
    empty: int
    degraded: int
    mean_ms: float | None
    mean_proxy: float | None


class Stats(Answer):
    """The log in numbers."""

    since: str
    until: str
    step: Step
    searches: int
    tools: list[str]
    buckets: list[Bucket]


EXAMPLES: dict[str, Any] = {
    "one": {
        "query": "late checkout",
        "tool_name": "hotel-app",
        "session_id": "s-17",
        "result_ids": ["faq-12", "policy-3"],
        "scores": [0.91, 0.4],
        "total_latency_ms": 23.5,
    },
    "several": [
        {"query": "pool opening hours", "tool_name": "hotel-app", "query_id": "eq_a1", "created_at": "2026-01-31T12:00:00Z"},
        {"query": "parking", "tool_name": "hotel-app", "degraded": True, "fallback": "dense did not answer"},
    ],
}
BODY = OneOrMany(Search, most=MOST)
_json = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


async def log_searches(request: Request) -> Response:
    """Log one search, or up to 1,000 at once. The answer comes when they are stored, and they survive whatever follows."""
    caller = allowed(await caller_of(request), "write")
    searches, size = await BODY.read(request)
    return Response(await stored(request.app.state.service, caller.project, searches, size), 201, media_type="application/json")


async def stored(service: Service, project: str, searches: Sequence[Search], size: int) -> bytes:
    """Store searches and return the answer's body."""
    fresh = all(search.query_id is None for search in searches)
    rows = [search_row(dict(search.__dict__), project) for search in searches]
    new = await service.intake.queries(rows, size=size, fresh=fresh)
    for row in rows:
        if row.total_latency_ms is not None:
            service.telemetry.observe_search(project, row.total_latency_ms / 1000)
    return _json({"accepted": len(rows), "stored": new, "query_ids": [row.query_id for row in rows]}).encode()


router.add_api_route(
    "",
    log_searches,
    methods=["POST"],
    status_code=201,
    response_model=Logged,
    route_class_override=Direct,
    openapi_extra=BODY.described(EXAMPLES),
)


@router.get("")
def list_searches(
    service: Here,
    caller: Reader,
    text: Annotated[str | None, Query(max_length=500, description="Words that the query holds.")] = None,
    tool: Annotated[str | None, Query(max_length=200)] = None,
    session_id: Annotated[str | None, Query(max_length=200)] = None,
    since: Annotated[At | None, Query()] = None,
    until: Annotated[At | None, Query()] = None,
    trouble: Annotated[bool, Query(description="Only those that failed, fell back or found nothing.")] = False,
    slower_than: Annotated[float | None, Query(ge=0, le=1e12, allow_inf_nan=False, description="Milliseconds.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[LoggedSearch]:
    """List searches of the log, the newest first."""
    rows = newest_searches(
        service,
        caller,
        limit=limit + 1,
        before=cursor,
        text=text,
        tool=tool,
        session_id=session_id,
        since=since,
        until=until,
        trouble=trouble,
        slower_than=slower_than,
    )
    shown, behind = paged(rows, limit, "query_id")
    return Page[LoggedSearch](items=[LoggedSearch.of(row) for row in shown], next=behind)


@router.get("/stats")
def stats(
    service: Here,
    caller: Reader,
    since: Annotated[At | None, Query(description="A day ago unless given.")] = None,
    until: Annotated[At | None, Query(description="Now unless given.")] = None,
    step: Annotated[Step | None, Query(description="As fine as the time allows unless given.")] = None,
) -> Stats:
    """Count the searches of a time, step by step: volume, empty answers, degraded ones, latency and proxy."""
    found = log_stats(service, caller, since=since, until=until, step=step)
    return Stats.model_validate(found, from_attributes=True)


@router.get("/{query_id}")
def one(service: Here, caller: Reader, query_id: PathName) -> LoggedSearch:
    """Return one search of the log."""
    return LoggedSearch.of(one_search(service, caller, query_id))
