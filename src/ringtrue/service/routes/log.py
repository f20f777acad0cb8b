"""``/v1/queries`` and ``/v1/feedback``: the log of searches, and what people and agents did with results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Path, Query, Request
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo
from starlette.concurrency import run_in_threadpool

from ringtrue.answers import Actor, Event, EventType, LinkedEvent, Logged, LoggedSearch, LogStats, StageLogged, Step, Taken
from ringtrue.errors import InputError, MissingInput
from ringtrue.log import event_name, quality_proxy, query_name
from ringtrue.log.capture import iso
from ringtrue.log.linking import linked
from ringtrue.log.redact import ERROR
from ringtrue.service.auth import Access, Reader, Writer
from ringtrue.service.errors import ERRORS, Refused
from ringtrue.service.idempotency import name_once
from ringtrue.service.models import (
    JSON_ONLY,
    Cursor,
    Free,
    Id,
    Limit,
    Line,
    Moment,
    Name,
    Page,
    Strict,
    Text,
    as_list,
    body_size,
    named_examples,
    numbered,
    one_or_many,
    paged,
    place_cursor,
    place_in,
    record_from,
)
from ringtrue.store import FeedbackEvent, LoggedQuery, timestamp
from ringtrue.traffic import HEADER, Traffic, kind_of

MOST = 1_000
"""Searches of one request."""
MOST_RESULTS = 1_000
CLOCK_SKEW = timedelta(minutes=5)
"""How far the sender's clock may be ahead of this one."""
UNREACHABLE = frozenset([".", "..", "stats"])
"""What leads elsewhere behind ``/v1/queries/``; a search of any other name has its address there."""


def _readable(moment: str) -> str:
    try:
        return timestamp(moment)
    except InputError as problem:
        raise ValueError(str(problem)) from None


def _within_reach(query_id: str) -> str:
    if query_id in UNREACHABLE or "\n" in query_id:  # which no address takes
        raise ValueError("must not be a reserved path segment or contain line breaks")
    return query_id


def _happened(moment: str) -> str:
    if moment > timestamp(datetime.now(UTC) + CLOCK_SKEW):
        raise ValueError("is in the future; check the sender's clock")
    return moment


def _ids_as_text(ids: Any) -> Any:
    return list(map(numbered, ids)) if isinstance(ids, list) else ids


def _as_many_as_listed(count: int, others: ValidationInfo) -> int:
    if count != len(others.data.get("result_ids", ())):
        raise ValueError("differs from the number of result_ids; leave it out")
    return count


At = Annotated[Moment, AfterValidator(_readable), Field(json_schema_extra={"format": "date-time"})]
Past = Annotated[At, AfterValidator(_happened)]
"""When something happened."""
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e300, le=1e300)]
Milliseconds = Annotated[float, Field(allow_inf_nan=False, ge=0, le=1e12)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Ids = Annotated[
    list[Name],
    # One call for the whole list: a search has many ids, and they are nearly always texts.
    BeforeValidator(_ids_as_text, json_schema_input_type=list[Name | int]),
    Field(max_length=MOST_RESULTS),
]


class SentStage(Strict):
    """What one stage of a search took in and gave out."""

    name: Name
    input: Count
    output: Count
    ms: Milliseconds


class SentSearch(Strict):
    """One search as it happened. Only `query` and `tool_name` must be there; what is not known is left out."""

    query: Text
    tool_name: Name
    query_id: Annotated[Name, AfterValidator(_within_reach)] | None = Field(
        None, description="Given where it is missing. Sent twice, the first one stays."
    )
    created_at: Past | None = Field(None, description="Time of the search; default: now. Not in the future.")
    intent: Line | None = None
    mode: Name | None = None
    session_id: Name | None = None
    user_id: Name | None = None
    result_ids: Ids = Field(default_factory=list)
    result_count: Annotated[Count, AfterValidator(_as_many_as_listed)] | None = Field(
        None, description="As in a listed search, so that it can be sent again; the number of `result_ids`."
    )
    scores: Annotated[list[Number], Field(max_length=MOST_RESULTS)] = Field(default_factory=list)
    channel_contributions: Annotated[dict[Name, Ids], Field(max_length=50)] = Field(
        default_factory=dict, description="Channel → ids it had."
    )
    total_latency_ms: Milliseconds | None = None
    stage_latency_ms: Annotated[dict[Name, Milliseconds], Field(max_length=50)] = Field(default_factory=dict)
    stages: Annotated[list[SentStage], Field(max_length=50)] = Field(default_factory=list)
    fusion_weights: Annotated[dict[Name, Number], Field(max_length=50)] = Field(default_factory=dict)
    quality_proxy_score: Number | None = Field(None, description="A health figure, not quality; made of scores and latency.")
    trace_id: Name | None = None
    prompt_id: Name | None = None
    retriever: Line | None = Field(None, description="Which retriever answered: its whole expression, or a fingerprint.")
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
    traffic: Traffic = Field("user", description="Whose search it is. Only users' searches count in figures and feedback.")


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
Searches = one_or_many(SentSearch, most=MOST)
"""The body of a request that logs searches."""


def logged_rows(
    searches: Sequence[SentSearch], project: str, *, name: Callable[[int], str | None], traffic: Traffic = "user"
) -> list[LoggedQuery]:
    """Return searches as the log keeps them; one without id, time or quality proxy gets them here.

    ``name`` gives an id to a search at a place that comes without one, the same whenever the body is sent. ``traffic`` is the
    mark of the request; it holds for every search that has no mark of its own.
    """
    rows = []
    for place, search in enumerate(searches):
        values = dict(search.__dict__)
        del values["result_count"]
        moment = query_name.tick()
        values["query_id"] = values["query_id"] or name(place) or query_name.name(moment, search.query)
        values["created_at"] = values["created_at"] or iso(moment.clock)
        values["traffic"] = traffic if search.traffic == "user" else search.traffic
        values["stages"] = tuple(StageLogged(one.name, one.input, one.output, one.ms) for one in search.stages)
        values["result_ids"], values["scores"] = ids, scores = tuple(search.result_ids), tuple(search.scores)
        raised = (search.fallback or "").startswith(ERROR)
        if values["quality_proxy_score"] is None and len(scores) == len(ids) and not raised:  # as in the SDK
            values["quality_proxy_score"] = quality_proxy(scores, search.total_latency_ms)
        rows.append(LoggedQuery(project=project, **values))
    return rows


def sent_traffic(request: Request) -> Traffic:
    """Return the mark of a request; raises Refused for an unknown one."""
    try:
        return kind_of(request.headers.get(HEADER) or "user")
    except InputError as problem:
        raise Refused(422, "invalid_input", f"header {HEADER}: {problem}", field="header") from None


queries_routes = APIRouter(prefix="/v1/queries", tags=["queries"], responses=ERRORS, strict_content_type=False)
STEPS: dict[Step, timedelta] = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
MOST_BUCKETS = 2_000
PathName = Annotated[str, Path(min_length=1, max_length=300)]


@queries_routes.post("", status_code=201, dependencies=JSON_ONLY)
async def log_searches(
    request: Request,
    access: Writer,
    body: Annotated[Searches, Body(openapi_examples=named_examples(EXAMPLES))],  # type: ignore[valid-type]
) -> Logged:
    """Log one search, or up to 1,000 at once. The answer comes when they are stored, and they survive whatever follows.

    The header `Ringtrue-Traffic` (evaluation, gate, shadow, test) marks searches that are not users'.
    """
    searches: list[SentSearch] = as_list(body)
    name = partial(name_once, request, "eq")
    rows = logged_rows(searches, access.project, name=name, traffic=sent_traffic(request))
    fresh = all(search.query_id is None for search in searches)
    stored = await access.service.intake.add(rows, size=body_size(request), fresh=fresh)
    for row in rows:
        if row.traffic == "user" and row.total_latency_ms is not None:
            access.service.telemetry.durations.search(access.project, row.total_latency_ms / 1000)
    return Logged(accepted=len(rows), stored=stored, query_ids=tuple(row.query_id for row in rows))


@queries_routes.get("")
def list_searches(
    access: Reader,
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
    rows = newest_searches(access, limit=limit + 1, before=cursor, **filters)
    return paged(rows, limit, search_cursor, partial(record_from, LoggedSearch))


def newest_searches(access: Access, *, limit: int, before: str | None = None, **filters: Any) -> list[LoggedQuery]:
    """Return the newest searches of the log that fit; ``before`` is a ``search_cursor``, raises Refused for any other text."""
    place = None if before is None else place_in(before, datetime, str)
    return access.store.queries(project=access.project, limit=limit, before=place, newest=True, **filters)[::-1]


def search_cursor(row: LoggedQuery) -> str:
    """Return what stands for a search's place in a list, also when the search is deleted."""
    return place_cursor(row.created_at, row.query_id)


@queries_routes.get("/stats")
def stats(
    access: Reader,
    since: Annotated[At | None, Query(description="A day ago unless given.")] = None,
    until: Annotated[At | None, Query(description="Now unless given.")] = None,
    step: Annotated[Step | None, Query(description="As fine as the time allows unless given.")] = None,
) -> LogStats:
    """Count the searches of a time, step by step: volume, empty answers, degraded ones, latency and proxy."""
    return log_stats(access, since=since, until=until, step=step)


def log_stats(
    access: Access, *, since: datetime | str | None = None, until: datetime | str | None = None, step: Step | None = None
) -> LogStats:
    """Return the log of a time in numbers, the last day unless said otherwise; steps are as fine as the time allows.

    Raises InputError for a time that cannot be read, Refused for one that has no end after its beginning or too many steps.
    """
    end = datetime.fromisoformat(timestamp(until or access.now()))
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
    store, project = access.store, access.project
    buckets = tuple(store.log_volume(project=project, since=begin, until=end, step=chosen))
    searches, tools = sum(bucket.searches for bucket in buckets), tuple(store.tools(project=project))
    return LogStats(timestamp(begin), timestamp(end), chosen, searches, tools, buckets)


@queries_routes.get("/{query_id:path}")
def one(access: Reader, query_id: PathName) -> LoggedSearch:
    """Return one search of the log."""
    return record_from(LoggedSearch, one_search(access, query_id))


def one_search(access: Access, query_id: str) -> LoggedQuery:
    """Return a search of the log; raises MissingInput if there is none of that id."""
    found = access.store.queries(project=access.project, query_ids=[query_id], limit=1)
    if not found:
        raise MissingInput(f"the log has no search '{query_id}'; GET /v1/queries lists the newest")
    return found[0]


feedback_routes = APIRouter(prefix="/v1/feedback", tags=["feedback"], responses=ERRORS, strict_content_type=False)


class NewEvent(Strict):
    """Something that somebody did with a result."""

    event_type: EventType
    session_id: Name
    item_id: Id | None = Field(None, description="The result; required except for re_search.")
    query_id: Name | None = Field(None, description="The search; found by prompt, trace or session where it is missing.")
    event_id: Name | None = Field(None, description="Given where it is missing. Sent twice, the first one stays.")
    created_at: Past | None = Field(None, description="Time of the event; default: now. Not in the future.")
    actor: Actor = "unknown"
    user_id: Name | None = None
    metadata: Annotated[Free, Field(max_length=100)] = Field(
        default_factory=dict, description="`seconds` of a dwell; `prompt_id` or `trace_id` to find the search by."
    )


EVENT_EXAMPLES: dict[str, Any] = {
    "a click": {"event_type": "click", "session_id": "s-17", "item_id": "faq-12", "actor": "person"},
    "several": [
        {"event_type": "dwell", "session_id": "s-17", "item_id": "faq-12", "metadata": {"seconds": 41}},
        {"event_type": "re_search", "session_id": "s-17", "event_id": "ef_a1", "created_at": "2026-01-31T12:01:00Z"},
    ],
}
Events = one_or_many(NewEvent, most=MOST)


@feedback_routes.post("", status_code=201, dependencies=JSON_ONLY)
async def take_feedback(
    request: Request,
    access: Writer,
    body: Annotated[Events, Body(openapi_examples=named_examples(EVENT_EXAMPLES))],  # type: ignore[valid-type]
) -> Taken:
    """Record one event, or up to 1,000 at once; each is linked to the search that showed its item."""
    events: list[NewEvent] = as_list(body)
    now = timestamp(access.now())
    rows = [
        FeedbackEvent(
            **event.model_dump(exclude={"event_id", "created_at"}),
            event_id=event.event_id or name_once(request, "ef", place) or event_name(),
            created_at=event.created_at or now,
            project=access.project,
        )
        for place, event in enumerate(events)
    ]
    found = await run_in_threadpool(linked, access.store, rows)
    fresh = all(event.event_id is None for event in events)
    stored = await access.service.intake.add(found, size=body_size(request), fresh=fresh)
    told = tuple(LinkedEvent(row.event_id, row.query_id, row.rank_in_results) for row in found)
    return Taken(accepted=len(found), stored=stored, events=told)


@feedback_routes.get("")
def list_feedback(
    access: Reader,
    query_id: Annotated[str | None, Query(max_length=200)] = None,
    session_id: Annotated[str | None, Query(max_length=200)] = None,
    event_type: Annotated[EventType | None, Query()] = None,
    since: Annotated[At | None, Query()] = None,
    until: Annotated[At | None, Query()] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[Event]:
    """List events, the newest first."""
    rows = access.store.feedback(
        project=access.project,
        since=since,
        until=until,
        session_id=session_id,
        query_ids=None if query_id is None else [query_id],
        kinds=None if event_type is None else [event_type],
        limit=limit + 1,
        newest=True,
        before=None if cursor is None else place_in(cursor, datetime, str),
    )
    return paged(rows[::-1], limit, lambda event: place_cursor(event.created_at, event.event_id))
