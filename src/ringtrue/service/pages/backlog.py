"""The backlog: how much waits to be judged, since when, where it comes from, and how fast it moves (G-8)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse, Response

from ringtrue.brief import counted
from ringtrue.errors import InputError
from ringtrue.review import STATES, backlog_rows, chosen, grouped, weekly_flow
from ringtrue.service.auth import PageReader, PageWriter
from ringtrue.service.context import Here
from ringtrue.service.models import Cursor
from ringtrue.service.pages.runs import part_of, run_words
from ringtrue.service.pages.shell import fragment, page, wants_fragment
from ringtrue.service.work import reviewing
from ringtrue.service.work.finding_runs import RunFilters, find_runs, kept_among
from ringtrue.service.work.reviewing import DEPTH, REVIEWERS, queue_unjudged

router = APIRouter(include_in_schema=False)

SHOWN, RUNS = 50, 50
WORDS = {
    "pending_review": ("Pending review", "unsure"),
    "approved": ("Approved", "plain"),
    "published": ("Published", "good"),
    "rejected": ("Rejected", "soft"),
}
LATE_DAYS = 7
"""After so long the oldest pair is late: the alert rules say the same."""


@router.get("/backlog")
def overview(
    request: Request, service: Here, caller: PageReader, state: Annotated[str, Query(max_length=20)] = "",
    golden: Annotated[str, Query(max_length=200)] = "", q: Annotated[str, Query(max_length=200)] = "",
    sort: Annotated[str, Query(max_length=20)] = "", cursor: Cursor = None,
    run: Annotated[str, Query(max_length=200)] = "", queued: Annotated[str, Query(max_length=40)] = "",
) -> Response:  # fmt: skip
    """Show the queue as a whole, and its pairs."""
    if state and state not in STATES:
        raise InputError(f"there is no state '{state}'; choose {', '.join(STATES)}, or leave it out")
    found = backlog_rows(reviewing.queue_of(service, caller))
    rows = chosen(found, state=state, golden=golden, text=q, sort=sort)
    shown, behind, part = part_of(rows, [row.item.item_key for row in rows], cursor, SHOWN)
    values: dict[str, Any] = {
        "rows": shown, "next": behind, "cursor": cursor, "sort": sort, "state": state, "golden": golden, "q": q,
        "words": WORDS, "total": len(found), "shown": part,
    }  # fmt: skip
    if wants_fragment(request):
        return fragment(request, caller, "backlog.html.jinja", "rows", **values)
    runs = find_runs(service, caller, RunFilters(), limit=RUNS).rows if caller.may("write") else []
    kept = kept_among(service, caller, runs)
    judged_at = [one.at for one in service.of(caller).ratings(project=caller.project)]
    weeks = weekly_flow(found, judged_at, now=service.now())
    return page(
        request, caller, "backlog.html.jinja", **values, counts=reviewing.backlog(service, caller), late_days=LATE_DAYS,
        missing=sum(row.missing for row in found), weeks=weeks,
        stamps=[int(one.until.timestamp()) for one in weeks],
        by_golden=grouped(found, lambda row: row.golden), by_source=grouped(found, lambda row: row.source),
        runs=[(row.run_id, run_words(row, kept)) for row in runs if row.run_id in kept], run=run, told=_told(queued),
    )  # fmt: skip


def _told(queued: str) -> str:
    """Return what became of the documents of a run: how many there were, are in the queue now, and are new there."""
    numbers = queued.split("-")
    if len(numbers) != 3 or not all(number.isdecimal() and len(number) < 8 for number in numbers):
        return ""
    unjudged, taken, new = map(int, numbers)
    if not unjudged:
        return f"Everything among its first {DEPTH} hits is judged already."
    said = f"{counted(unjudged, 'unjudged document')} among the first {DEPTH} hits; {taken:,} of them"
    return f"{said} {'is' if taken == 1 else 'are'} in the queue now, {new:,} new."


@router.post("/backlog/runs")
def queue_run(
    service: Here,
    caller: PageWriter,
    run: Annotated[str, Form(max_length=200)],
    against: Annotated[str, Form(max_length=200)] = "",
    reviewers: Annotated[str, Form(max_length=4)] = str(REVIEWERS),
) -> Response:
    """Put the unjudged documents of a run into the queue."""
    if not (reviewers.isdecimal() and 1 <= int(reviewers) <= 20):
        raise InputError(f"'{reviewers}' is no number of people; write one from 1 to 20")
    made = queue_unjudged(service, caller, run, against=against or None, wanted=int(reviewers))
    return RedirectResponse(f"/backlog?queued={made.unjudged}-{made.queued}-{made.new}", 303)
