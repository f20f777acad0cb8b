"""``/v1/queries``: the log of searches, written thousands of times a second and read now and then (L-1, W-3)."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from ringtrue.answers import Logged, LoggedSearch, LogStats, Step
from ringtrue.service.auth import Reader, allowed, caller_of
from ringtrue.service.context import Here, Service
from ringtrue.service.direct import Direct
from ringtrue.service.errors import ERRORS
from ringtrue.service.idempotency import name_once, sent_with_key
from ringtrue.service.incoming import BODY, EXAMPLES, At, Incoming
from ringtrue.service.models import Cursor, Limit, Page, paged, record_from
from ringtrue.service.work.logging_in import log_stats, newest_searches, one_search, search_cursor, sent_traffic
from ringtrue.traffic import Traffic

router = APIRouter(prefix="/v1/queries", tags=["queries"], responses=ERRORS)
PathName = Annotated[str, Path(min_length=1, max_length=300)]


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
    return Page(items=[record_from(LoggedSearch, row) for row in shown], next=behind)


@router.get("/stats")
def stats(
    service: Here,
    caller: Reader,
    since: Annotated[At | None, Query(description="A day ago unless given.")] = None,
    until: Annotated[At | None, Query(description="Now unless given.")] = None,
    step: Annotated[Step | None, Query(description="As fine as the time allows unless given.")] = None,
) -> LogStats:
    """Count the searches of a time, step by step: volume, empty answers, degraded ones, latency and proxy."""
    return log_stats(service, caller, since=since, until=until, step=step)


@router.get("/{query_id:path}")
def one(service: Here, caller: Reader, query_id: PathName) -> LoggedSearch:
    """Return one search of the log."""
    return record_from(LoggedSearch, one_search(service, caller, query_id))
