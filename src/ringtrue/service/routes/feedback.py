"""``/v1/feedback``: what people and agents did with results, linked to the searches that showed them."""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from ringtrue.answers import Actor, Event, EventType, LinkedEvent, Taken
from ringtrue.log import event_name
from ringtrue.log.linking import linked
from ringtrue.service.auth import Reader, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.idempotency import name_once
from ringtrue.service.incoming import At, Past, log_place
from ringtrue.service.models import (
    JSON_ONLY,
    Cursor,
    Free,
    Id,
    Limit,
    Name,
    Page,
    Strict,
    as_list,
    body_size,
    named_examples,
    one_or_many,
    paged,
)
from ringtrue.store import FeedbackEvent, timestamp

router = APIRouter(prefix="/v1/feedback", tags=["feedback"], responses=ERRORS, strict_content_type=False)
MOST = 1_000


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


EXAMPLES: dict[str, Any] = {
    "a click": {"event_type": "click", "session_id": "s-17", "item_id": "faq-12", "actor": "person"},
    "several": [
        {"event_type": "dwell", "session_id": "s-17", "item_id": "faq-12", "metadata": {"seconds": 41}},
        {"event_type": "re_search", "session_id": "s-17", "event_id": "ef_a1", "created_at": "2026-01-31T12:01:00Z"},
    ],
}
Events = one_or_many(NewEvent, most=MOST)


@router.post("", status_code=201, dependencies=JSON_ONLY)
async def take_feedback(
    request: Request,
    service: Here,
    caller: Writer,
    body: Annotated[Events, Body(openapi_examples=named_examples(EXAMPLES))],  # type: ignore[valid-type]
) -> Taken:
    """Record one event, or up to 1,000 at once; each is linked to the search that showed its item."""
    events: list[NewEvent] = as_list(body)
    now = timestamp(service.now())
    rows = [
        FeedbackEvent(
            **event.model_dump(exclude={"event_id", "created_at"}),
            event_id=event.event_id or name_once(request, "ef", place) or event_name(),
            created_at=event.created_at or now,
            project=caller.project,
        )
        for place, event in enumerate(events)
    ]
    found = await run_in_threadpool(linked, service.of(caller), rows)
    fresh = all(event.event_id is None for event in events)
    stored = await service.intake.add(found, size=body_size(request), fresh=fresh)
    told = tuple(LinkedEvent(row.event_id, row.query_id, row.rank_in_results) for row in found)
    return Taken(accepted=len(found), stored=stored, events=told)


@router.get("")
def list_feedback(
    service: Here,
    caller: Reader,
    query_id: Annotated[str | None, Query(max_length=200)] = None,
    session_id: Annotated[str | None, Query(max_length=200)] = None,
    event_type: Annotated[EventType | None, Query()] = None,
    since: Annotated[At | None, Query()] = None,
    until: Annotated[At | None, Query()] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[Event]:
    """List events, the newest first."""
    store, take = service.of(caller), limit + 1
    place = None if cursor is None else log_place(cursor)
    # The store limits by time; events of the same microsecond as the cursor's are left out here.
    ends = [] if until is None else [timestamp(until)]
    if place is not None:
        with contextlib.suppress(OverflowError):  # nothing comes after the last moment of the calendar
            ends.append(timestamp(datetime.fromisoformat(place[0]) + timedelta(microseconds=1)))
    while True:
        rows = store.feedback(
            project=caller.project,
            since=since,
            until=min(ends, default=None),
            session_id=session_id,
            query_ids=None if query_id is None else [query_id],
            kinds=None if event_type is None else [event_type],
            limit=take,
            newest=True,
        )
        older = [row for row in rows[::-1] if place is None or (row.created_at, row.event_id) < place]
        if len(older) > limit or len(rows) < take:
            break
        take *= 2
    shown, behind = paged(older, limit, lambda event: f"{event.created_at}~{event.event_id}")
    return Page(items=shown, next=behind)
