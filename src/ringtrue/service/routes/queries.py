"""``/v1/queries``: the log of searches, written thousands of times a second and read now and then (L-1, W-3)."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from ringtrue.service.auth import Reader, allowed, caller_of
from ringtrue.service.context import Here, Service
from ringtrue.service.direct import Direct
from ringtrue.service.errors import ERRORS
from ringtrue.service.idempotency import name_once, sent_with_key
from ringtrue.service.incoming import BODY, EXAMPLES, At, Incoming, Stage
from ringtrue.service.models import Answer, Cursor, Limit, Page, paged
from ringtrue.service.work.logging_in import Step, log_stats, newest_searches, one_search, search_cursor, sent_traffic
from ringtrue.store import LoggedQuery
from ringtrue.traffic import Traffic

router = APIRouter(prefix="/v1/queries", tags=["queries"], responses=ERRORS)
PathName = Annotated[str, Path(min_length=1, max_length=300)]


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
    result_count: int | None = Field(
        description="Null if it is unknown, as for searches imported from a plain list of queries."
    )
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
    traffic: Traffic

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


async def log_searches(request: Request) -> Response:
    """Log one search, or up to 1,000 at once. The answer comes when they are stored, and they survive whatever follows.

    The header `Ringtrue-Traffic` (evaluation, gate, shadow, test) marks searches that are not users'.
    """
    caller = allowed(await caller_of(request), "write")
    service: Service = request.app.state.service
    body = await BODY.taken(request)
    traffic = sent_traffic(request)
    if sent_with_key(request) or traffic != "user":  # read here, where key and mark are known
        name = partial(name_once, request, "eq") if sent_with_key(request) else None
        found = Incoming.read(body, caller.project, name=name, traffic=traffic)
        logged = found.receipt(await service.intake.queries(found.rows, size=len(body), fresh=found.fresh))
    else:
        logged = await service.intake.log(body, caller.project)
    service.telemetry.observe_searches(caller.project, logged.spent)
    return Response(logged.body, 201, media_type="application/json")


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
    traffic: Annotated[Traffic | Literal["all"], Query(description="Whose searches.")] = "user",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[LoggedSearch]:
    """List logged searches, newest first: users' by default, other traffic, or all."""
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
        traffic=traffic,
    )
    shown, behind = paged(rows, limit, search_cursor)
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


@router.get("/{query_id:path}")
def one(service: Here, caller: Reader, query_id: PathName) -> LoggedSearch:
    """Return one search of the log."""
    return LoggedSearch.of(one_search(service, caller, query_id))
