"""What happened, on its way into the log and out of it: searches and feedback."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from ringtrue.answers import EventType, LogStats, StageLogged, Step
from ringtrue.errors import InputError, MissingInput
from ringtrue.log import check_event, quality_proxy, record_feedback
from ringtrue.log.identify import iso, query_name
from ringtrue.log.linking import link_named
from ringtrue.log.redact import ERROR
from ringtrue.service.errors import Refused
from ringtrue.store import FeedbackEvent, LoggedQuery, timestamp
from ringtrue.traffic import HEADER, Traffic, kind_of

if TYPE_CHECKING:
    from fastapi import Request

    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service
    from ringtrue.store import Store

STEPS: dict[Step, timedelta] = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
MOST_BUCKETS = 2_000
DAY = timedelta(days=1)


def search_row(values: dict[str, Any], project: str) -> LoggedQuery:
    """Return a search as the log keeps it; one that came without id, time or quality proxy gets them here.

    ``values`` are the fields of LoggedQuery without the project, None for an id and a time that were not given.
    """
    if values["query_id"] is None or values["created_at"] is None:
        moment = query_name.tick()
        if values["query_id"] is None:
            values["query_id"] = query_name.name(moment, values["query"])
        if values["created_at"] is None:
            values["created_at"] = iso(moment.clock)
    if values["stages"]:
        values["stages"] = tuple(StageLogged(one.name, one.input, one.output, one.ms) for one in values["stages"])
    for name in ("result_ids", "scores"):
        values[name] = tuple(values[name])
    ids, scores, ms = values["result_ids"], values["scores"], values["total_latency_ms"]
    raised = (values["fallback"] or "").startswith(ERROR)
    if values["quality_proxy_score"] is None and len(scores) == len(ids) and not raised:  # as the log's own SDK has it
        values["quality_proxy_score"] = quality_proxy(scores, ms)
    return LoggedQuery(project=project, **values)


def sent_traffic(request: Request) -> Traffic:
    """Return the mark of a request; raises Refused for a word that is no traffic."""
    try:
        return kind_of(request.headers.get(HEADER) or "user")
    except InputError as problem:
        raise Refused(422, "invalid_input", f"header {HEADER}: {problem}", field="header") from None


def newest_searches(
    service: Service, caller: Caller, *, limit: int, before: str | None = None, **filters: Any
) -> list[LoggedQuery]:
    """Return the newest searches of the log that fit; ``before`` is a ``search_cursor``, raises Refused for none."""
    place = None if before is None else _place(before)
    return service.of(caller).newest_queries(project=caller.project, limit=limit, before=place, **filters)


def search_cursor(row: LoggedQuery) -> str:
    """Return what stands for a search's place in a list, also when the search is deleted."""
    return f"{row.created_at}~{row.query_id}"


def one_search(service: Service, caller: Caller, query_id: str) -> LoggedQuery:
    """Return a search of the log; raises MissingInput where there is none of that id."""
    found = service.of(caller).queries(project=caller.project, query_ids=[query_id], limit=1)
    if not found:
        raise MissingInput(f"the log has no search '{query_id}'; GET /v1/queries lists the newest")
    return found[0]


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
        begin = datetime.fromisoformat(timestamp(since)) if since is not None else end - DAY
    except OverflowError:
        begin = end  # there is no day before the first one of the calendar
    if begin >= end:
        raise Refused(422, "invalid_input", "since is not before until; turn them round", field="query.since")
    span = end - begin
    chosen: Step = step or ("minute" if span <= timedelta(hours=3) else "hour" if span <= timedelta(days=7) else "day")
    if span / STEPS[chosen] > MOST_BUCKETS:
        said = f"that are more than {MOST_BUCKETS:,} steps of a {chosen}; ask for a shorter time or a longer step"
        raise Refused(422, "invalid_input", said, field="query.step")
    store, project = service.of(caller), caller.project
    buckets = tuple(store.log_volume(project=project, since=begin, until=end, step=chosen))
    return LogStats(
        since=timestamp(begin),
        until=timestamp(end),
        step=chosen,
        searches=sum(bucket.searches for bucket in buckets),
        tools=tuple(store.tools(project=project)),
        buckets=buckets,
    )


def linked(service: Service, caller: Caller, events: Sequence[FeedbackEvent]) -> list[FeedbackEvent]:
    """Return events with the searches they answer, linked as ``online.record_feedback`` does; nothing is written.

    Raises InputError for an event that cannot be one.
    """
    store = service.of(caller)
    for event in events:
        check_event(event)
    # The searches that events name are read together.
    others = iter(record_feedback(cast("Store", _Unwritten(store)), [event for event in events if event.query_id is None]))
    return [next(others) if event.query_id is None else event for event in link_named(store, events)]


class _Unwritten:
    """A store as linking needs it; what it would write is left to the intake, which writes many requests at once."""

    def __init__(self, store: Store) -> None:
        self.queries = store.queries

    def add_feedback(self, rows: Sequence[FeedbackEvent]) -> int:
        return 0


def newest_feedback(
    service: Service,
    caller: Caller,
    *,
    limit: int,
    before: str | None = None,
    since: str | None = None,
    until: str | None = None,
    session_id: str | None = None,
    query_id: str | None = None,
    kinds: Sequence[EventType] | None = None,
) -> list[FeedbackEvent]:
    """Return the newest events that fit, one more than ``limit`` if there are more; ``before`` is an ``event_cursor``."""
    store, take = service.of(caller), limit + 1
    place = None if before is None else _place(before)
    # The database cuts at a time; events of the same microsecond as the cursor's are sorted out here.
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
            kinds=kinds,
            limit=take,
            newest=True,
        )
        older = [row for row in rows if place is None or (row.created_at, row.event_id) < place]
        if len(older) > limit or len(rows) < take:
            return older[::-1][: limit + 1]
        take *= 2


def event_cursor(event: FeedbackEvent) -> str:
    """Return what stands for an event's place in a list."""
    return f"{event.created_at}~{event.event_id}"


def _place(cursor: str) -> tuple[str, str]:
    at, mark, name = cursor.partition("~")
    if not mark or not name or not is_moment(at):
        raise bad_cursor()
    return at, name


def is_moment(text: str) -> bool:
    """True for a time as the store writes it."""
    try:
        return timestamp(text) == text
    except InputError:
        return False


def bad_cursor() -> Refused:
    """Return the refusal of a cursor that no list gave."""
    return Refused(
        422, "invalid_cursor", "there is no such place to go on from; begin again without cursor", field="query.cursor"
    )
