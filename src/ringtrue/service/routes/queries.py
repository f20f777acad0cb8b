"""``/v1/queries``: the log of searches."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Path, Query, Request

from ringtrue.answers import Logged, LoggedSearch, LogStats, Step
from ringtrue.service.auth import Reader, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.idempotency import name_once, sent_with_key
from ringtrue.service.incoming import EXAMPLES, At, Search, Searches, logged_rows
from ringtrue.service.models import JSON_ONLY, Cursor, Limit, Page, as_list, body_size, named_examples, paged, record_from
from ringtrue.service.work.logging_in import log_stats, newest_searches, one_search, search_cursor, sent_traffic
from ringtrue.traffic import Traffic

router = APIRouter(prefix="/v1/queries", tags=["queries"], responses=ERRORS, strict_content_type=False)
PathName = Annotated[str, Path(min_length=1, max_length=300)]


@router.post("", status_code=201, dependencies=JSON_ONLY)
async def log_searches(
    request: Request, service: Here, caller: Writer, body: Annotated[Searches, Body(openapi_examples=named_examples(EXAMPLES))]
) -> Logged:
    """Log one search, or up to 1,000 at once. The answer comes when they are stored, and they survive whatever follows.

    The header `Ringtrue-Traffic` (evaluation, gate, shadow, test) marks searches that are not users'.
    """
    searches: list[Search] = as_list(body)
    name = partial(name_once, request, "eq") if sent_with_key(request) else None
    rows = logged_rows(searches, caller.project, name=name, traffic=sent_traffic(request))
    fresh = all(search.query_id is None for search in searches)
    stored = await service.intake.queries(rows, size=body_size(request), fresh=fresh)
    service.telemetry.observe_searches(
        caller.project,
        (row.total_latency_ms / 1000 for row in rows if row.traffic == "user" and row.total_latency_ms is not None),
    )
    return Logged(accepted=len(rows), stored=stored, query_ids=tuple(row.query_id for row in rows))


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
