"""The query log: what was searched, how it went, and one search with everything known of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from ringtrue.errors import InputError
from ringtrue.service.auth import PageReader
from ringtrue.service.context import Here
from ringtrue.service.models import Cursor, paged
from ringtrue.service.pages.shell import fragment, page, wants_fragment
from ringtrue.service.work.logging_in import log_stats, newest_searches, one_search
from ringtrue.store import FeedbackEvent, LoggedQuery

router = APIRouter(include_in_schema=False)
SHOWN = 50
SPANS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=30)}
SPAN_WORDS = (("hour", "the last hour"), ("day", "24 hours"), ("week", "7 days"), ("month", "30 days"), ("all", "all of it"))
STEPS = {"hour": "minute", "day": "hour", "week": "hour", "month": "day", "all": "day"}
EVER = timedelta(days=400)
"""Longer than any log is kept."""
BESIDE = 20
"""Searches of the same session that are shown beside one."""


@router.get("/queries")
def explorer(
    request: Request,
    service: Here,
    caller: PageReader,
    text: Annotated[str, Query(max_length=500)] = "",
    tool: Annotated[str, Query(max_length=200)] = "",
    session: Annotated[str, Query(max_length=200)] = "",
    span: Annotated[str, Query(max_length=10)] = "month",
    trouble: bool = False,
    slower: Annotated[str, Query(max_length=12)] = "",
    cursor: Cursor = None,
) -> Response:
    """Show the searches that fit, the newest first, and how many there were."""
    if span not in STEPS:
        raise InputError(f"there is no span '{span}'; choose {', '.join(STEPS)}")
    now = service.now()
    since = now - SPANS[span] if span in SPANS else None
    rows, following = paged(
        newest_searches(
            service,
            caller,
            limit=SHOWN + 1,
            before=cursor,
            text=text.strip() or None,
            tool=tool or None,
            session_id=session.strip() or None,
            since=since,
            trouble=trouble,
            slower_than=_milliseconds(slower),
        ),
        SHOWN,
        "query_id",
    )
    values: dict[str, Any] = {"rows": rows, "next": following, "cursor": cursor, "text": text}
    if wants_fragment(request):
        return fragment(request, caller, "queries.html.jinja", "rows", **values)
    stats = log_stats(service, caller, since=since or now - EVER, until=now, step=STEPS[span])  # type: ignore[arg-type]
    return page(
        request, caller, "queries.html.jinja", **values, stats=stats, volume=_volume(stats), tool=tool,
        tools=[(name, name) for name in stats.tools], session=session,
        span=span, spans=SPAN_WORDS, trouble=trouble, slower=slower, export=_rest(text, tool, session, trouble, slower),
    )  # fmt: skip


@dataclass(frozen=True)
class Shown:
    """One result of a search: what each channel made of it, and what was done with it."""

    rank: int
    doc_id: str
    score: float | None
    channels: tuple[tuple[str, int], ...]
    events: tuple[FeedbackEvent, ...]
    grade: int | None


@router.get("/queries/{query_id}")
def one(request: Request, service: Here, caller: PageReader, query_id: str) -> Response:
    """Show one search: its answer, where each result came from, what it cost and what was done with it."""
    row = one_search(service, caller, query_id)
    store = service.of(caller)
    events = store.feedback(project=caller.project, query_ids=[query_id], limit=500)
    judged = {one.item_id: one.relevance for one in store.judgments(project=caller.project, query_ids=[query_id])}
    beside = newest_searches(service, caller, limit=BESIDE, session_id=row.session_id) if row.session_id is not None else []
    return page(
        request,
        caller,
        "query.html.jinja",
        row=row,
        results=_results(row, events, judged),
        others=[event for event in events if event.item_id not in row.result_ids],
        beside=beside,
    )


def _results(row: LoggedQuery, events: list[FeedbackEvent], judged: dict[str, int]) -> list[Shown]:
    places = {name: {doc_id: rank for rank, doc_id in enumerate(ids, 1)} for name, ids in row.channel_contributions.items()}
    scores = row.scores if len(row.scores) == len(row.result_ids) else (None,) * len(row.result_ids)
    return [
        Shown(
            rank,
            doc_id,
            score,
            tuple((name, ranks[doc_id]) for name, ranks in places.items() if doc_id in ranks),
            tuple(event for event in events if event.item_id == doc_id),
            judged.get(doc_id),
        )
        for rank, (doc_id, score) in enumerate(zip(row.result_ids, scores, strict=True), 1)
    ]


def _milliseconds(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e12:
        raise InputError(f"slower than '{text:.20}' is no time; write milliseconds, like 200")
    return value


def _volume(stats: Any) -> dict[str, Any]:
    """Return the searches over time as a chart has them; a step without any is 0, because the log says so."""
    from datetime import datetime

    width = {"minute": 60, "hour": 3600, "day": 86_400}[stats.step]
    found = {int(datetime.fromisoformat(one.at).timestamp()) // width: one for one in stats.buckets}
    if not found:
        return {}
    places = range(min(found), max(found) + 1)

    def counted(name: str) -> list[int]:
        return [getattr(found[place], name) if place in found else 0 for place in places]

    return {
        "time": True,
        "x": [place * width for place in places],
        "series": [
            {"name": "searches", "values": counted("searches"), "tone": "plain"},
            {"name": "found nothing", "values": counted("empty"), "tone": "bad"},
        ],
        "unit": "",
        "from": 0,
    }


def _rest(text: str, tool: str, session: str, trouble: bool, slower: str) -> str:
    """Return the address under which programs get the same list."""
    given = {"text": text, "tool": tool, "session_id": session, "trouble": "true" if trouble else "", "slower_than": slower}
    chosen = urlencode({name: value for name, value in given.items() if value})
    return f"/v1/queries?{chosen}" if chosen else "/v1/queries"
