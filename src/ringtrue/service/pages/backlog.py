"""The backlog: how much waits to be judged, since when, where it comes from, and how fast it moves (G-8)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from ringtrue.online.review import STATES
from ringtrue.service.auth import PageReader
from ringtrue.service.context import Here
from ringtrue.service.models import Cursor
from ringtrue.service.pages.shell import fragment, page, wants_fragment
from ringtrue.service.work import backlog as work

router = APIRouter(include_in_schema=False)

SHOWN = 50
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
) -> Response:  # fmt: skip
    """Show the queue as a whole, and its pairs."""
    found = work.snapshot(service, caller)
    rows = work.chosen(found, state=state if state in STATES else "", golden=golden, text=q, sort=sort)
    shown, first, behind = work.part(rows, after=cursor, limit=SHOWN)
    last = first + len(shown) - 1
    values: dict[str, Any] = {
        "rows": shown, "next": behind, "cursor": cursor, "sort": sort, "state": state, "golden": golden, "q": q,
        "words": WORDS, "total": len(found.rows), "shown": f"{first:,}–{last:,} of {len(rows):,}" if shown else "",
    }  # fmt: skip
    if wants_fragment(request):
        return fragment(request, caller, "backlog.html.jinja", "rows", **values)
    weeks = work.weeks(found, now=service.now())
    by_golden = work.grouped(found.rows, lambda row: row.golden)
    return page(
        request, caller, "backlog.html.jinja", **values, counts=work.oldest(service, caller), late_days=LATE_DAYS,
        missing=work.grades_missing(found), weeks=weeks,
        stamps=[int(one.until.timestamp()) for one in weeks],
        by_golden=by_golden, by_source=work.grouped(found.rows, lambda row: row.source),
    )  # fmt: skip
