"""``/v1/queries``: the log of searches."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Path, Query, Request

from ringtrue.answers import Logged, LoggedSearch, LogStats, Step
from ringtrue.errors import MissingInput
from ringtrue.service.auth import Caller, Reader, Writer
from ringtrue.service.context import Here, Service
from ringtrue.service.errors import ERRORS, Refused
from ringtrue.service.idempotency import name_once, sent_with_key
from ringtrue.service.incoming import EXAMPLES, At, Searches, SentSearch, log_place, logged_rows, sent_traffic
from ringtrue.service.models import JSON_ONLY, Cursor, Limit, Page, as_list, body_size, named_examples, paged, record_from
from ringtrue.store import LoggedQuery, timestamp
from ringtrue.traffic import Traffic

router = APIRouter(prefix="/v1/queries", tags=["queries"], responses=ERRORS, strict_content_type=False)
STEPS: dict[Step, timedelta] = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
MOST_BUCKETS = 2_000
PathName = Annotated[str, Path(min_length=1, max_length=300)]


@router.post("", status_code=201, dependencies=JSON_ONLY)
async def log_searches(
    request: Request, service: Here, caller: Writer, body: Annotated[Searches, Body(openapi_examples=named_examples(EXAMPLES))]
) -> Logged:
    """Log one search, or up to 1,000 at once. The answer comes when they are stored, and they survive whatever follows.

    The header `Ringtrue-Traffic` (evaluation, gate, shadow, test) marks searches that are not users'.
    """
    searches: list[SentSearch] = as_list(body)
    name = partial(name_once, request, "eq") if sent_with_key(request) else None
    rows = logged_rows(searches, caller.project, name=name, traffic=sent_traffic(request))
    fresh = all(search.query_id is None for search in searches)
    stored = await service.intake.add(rows, size=body_size(request), fresh=fresh)
    for row in rows:
        if row.traffic == "user" and row.total_latency_ms is not None:
            service.telemetry.durations.search(caller.project, row.total_latency_ms / 1000)
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
    filters: dict[str, Any] = {"text": text, "tool": tool, "session_id": session_id, "since": since, "until": until}
    filters |= {"trouble": trouble, "slower_than": slower_than, "traffic": traffic}
    rows = newest_searches(service, caller, limit=limit + 1, before=cursor, **filters)
    shown, behind = paged(rows, limit, search_cursor)
    return Page(items=[record_from(LoggedSearch, row) for row in shown], next=behind)


def newest_searches(
    service: Service, caller: Caller, *, limit: int, before: str | None = None, **filters: Any
) -> list[LoggedQuery]:
    """Return the newest searches of the log that fit; ``before`` is a ``search_cursor``, raises Refused for any other text."""
    place = None if before is None else log_place(before)
    return service.of(caller).newest_queries(project=caller.project, limit=limit, before=place, **filters)


def search_cursor(row: LoggedQuery) -> str:
    """Return what stands for a search's place in a list, also when the search is deleted."""
    return f"{row.created_at}~{row.query_id}"


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


def log_stats(
    service: Service,
    caller: Caller,
    *,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    step: Step | None = None,
) -> LogStats:
    """Return the log of a time in numbers, the last day unless said otherwise; steps are as fine as the time allows.

    Raises InputError for a time that cannot be read, Refused for one that has no end after its beginning or too many steps.
    """
    end = datetime.fromisoformat(timestamp(until or service.now()))
    try:
        begin = datetime.fromisoformat(timestamp(since)) if since is not None else end - timedelta(days=1)
    except OverflowError:
        begin = end  # there is no day before the first one of the calendar
    if begin >= end:
        raise Refused(422, "invalid_input", "since must be before until", field="query.since")
    span = end - begin
    chosen: Step = step or ("minute" if span <= timedelta(hours=3) else "hour" if span <= timedelta(days=7) else "day")
    if span / STEPS[chosen] > MOST_BUCKETS:
        said = f"that is more than {MOST_BUCKETS:,} steps of a {chosen}; ask for a shorter time or a longer step"
        raise Refused(422, "invalid_input", said, field="query.step")
    store, project = service.of(caller), caller.project
    buckets = tuple(store.log_volume(project=project, since=begin, until=end, step=chosen))
    searches, tools = sum(bucket.searches for bucket in buckets), tuple(store.tools(project=project))
    return LogStats(timestamp(begin), timestamp(end), chosen, searches, tools, buckets)


@router.get("/{query_id:path}")
def one(service: Here, caller: Reader, query_id: PathName) -> LoggedSearch:
    """Return one search of the log."""
    return record_from(LoggedSearch, one_search(service, caller, query_id))


def one_search(service: Service, caller: Caller, query_id: str) -> LoggedQuery:
    """Return a search of the log; raises MissingInput where there is none of that id."""
    found = service.of(caller).queries(project=caller.project, query_ids=[query_id], limit=1)
    if not found:
        raise MissingInput(f"the log has no search '{query_id}'; GET /v1/queries lists the newest")
    return found[0]
