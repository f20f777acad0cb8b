"""Judging pairs, one at a time and blind, for hours if need be (G-8).

Every action is a plain form. Where scripts run they send the same form, ask for JSON, and have the next pair before it is
needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from ringtrue.errors import RingtrueError
from ringtrue.review import GUIDELINES
from ringtrue.service.auth import Caller, PageReviewer
from ringtrue.service.context import Here, Service
from ringtrue.service.errors import Refused, refused
from ringtrue.service.pages import review_outcome
from ringtrue.service.pages.pairs import MEANINGS, nameless, shown_pair
from ringtrue.service.pages.shell import fragment, page
from ringtrue.service.work import agreeing, reviewing
from ringtrue.store import ReviewItem

router = APIRouter(include_in_schema=False)
# Before /review/KEY, which would take their addresses for keys.
router.include_router(review_outcome.router)

MOST_PASSED = 200
"""Skipped pairs that a reader's address or script remembers."""

Passing = Annotated[str, Query(alias="pass", max_length=8_000)]
Passed = Annotated[str, Form(alias="pass", max_length=8_000)]
Note = Annotated[str, Form(max_length=2_000)]


@router.get("/review")
def desk_page(request: Request, service: Here, caller: PageReviewer, passing: Passing = "", rename: str = "") -> Response:
    """Show the pair that is next for the reader."""
    if nameless(caller) or (rename and caller.key_id is None):
        return page(request, caller, "review_name.html.jinja", wanted="/review")
    keys = _keys(passing)
    return _desk(request, service, caller, reviewing.next_pair(service, caller, passing=keys), passing=keys)


@router.post("/review/next")
def another(request: Request, service: Here, caller: PageReviewer, passing: Passed = "") -> Response:
    """Keep another pair for the reader, for a script that asks before it is needed."""
    return _answer(request, service, caller, lambda: None, passing)


@router.post("/review/undo")
def undo(request: Request, service: Here, caller: PageReviewer, passing: Passed = "") -> Response:
    """Take back the last thing that the reader said, and show its pair again."""
    if not _by_script(request):
        item = reviewing.undo(service, caller)
        return RedirectResponse("/review" if item is None else f"/review/{item.item_key}", 303)
    return _answer(request, service, caller, lambda: reviewing.undo(service, caller), passing)


@router.get("/review/{key}")
def one(request: Request, service: Here, caller: PageReviewer, key: str) -> Response:
    """Show one pair, to judge it or to change what the reader said of it."""
    if nameless(caller):
        return page(request, caller, "review_name.html.jinja", wanted=f"/review/{key}")
    try:
        item, problem = reviewing.hold(service, caller, key), ""
    except Refused as found:
        if found.status != 409:
            raise
        item, problem = reviewing.queue_of(service, caller).find(key), found.message
    return _desk(request, service, caller, item, problem=problem)


@router.post("/review/{key}/judge")
def judge(
    request: Request, service: Here, caller: PageReviewer, key: str, grade: Annotated[int, Form(ge=0, le=3)],
    note: Note = "", passing: Passed = "",
) -> Response:  # fmt: skip
    """Keep a grade."""
    _named(caller)

    def act() -> None:
        reviewing.judge_held(service, caller, key, grade, note=note)

    return _answer(request, service, caller, act, passing)


@router.post("/review/{key}/skip")
def skip(request: Request, service: Here, caller: PageReviewer, key: str, passing: Passed = "") -> Response:
    """Give a pair back and go on with another."""
    _named(caller)
    more = ",".join([*_keys(passing), key][-MOST_PASSED:])

    def act() -> None:
        reviewing.skip(service, caller, key)

    return _answer(request, service, caller, act, more)


@router.post("/review/{key}/reject")
def reject(
    request: Request, service: Here, caller: PageReviewer, key: str, why: Annotated[str, Form(max_length=2_000)] = "",
    passing: Passed = "",
) -> Response:  # fmt: skip
    """Take a pair out that nobody should judge."""
    _named(caller)

    def act() -> None:
        reviewing.reject_held(service, caller, key, why=why)

    return _answer(request, service, caller, act, passing)


def _named(caller: Caller) -> None:
    if nameless(caller):
        raise Refused(409, "nameless", "say who you are before you judge; load the page again")


def _keys(text: str) -> list[str]:
    return [key for key in text.split(",") if key][-MOST_PASSED:]


def _by_script(request: Request) -> bool:
    return request.headers.get("accept", "").startswith("application/json")


def _answer(request: Request, service: Service, caller: Caller, act: Callable[[], ReviewItem | None], passing: str) -> Response:
    """Do what was asked; a script gets what came of it with the next pair, a reader without one the next page."""
    if not _by_script(request):
        act()
        return RedirectResponse("/review" + (f"?{urlencode({'pass': passing})}" if passing else ""), 303)
    back: ReviewItem | None = None
    problem: dict[str, str] | None = None
    status = 200
    try:
        back = act()
    except (Refused, RingtrueError) as found:
        known = refused(found)
        if known.status >= 500:
            raise
        problem, status = {"code": known.code, "message": known.message}, known.status
    keys = [*_keys(passing), *([back.item_key] if back else [])]
    following = reviewing.next_pair(service, caller, passing=keys)
    progress, recent = reviewing.progress(service, caller)
    body = {
        "error": problem,
        "back": _lain(request, service, caller, back),
        "next": _lain(request, service, caller, following),
        "progress": asdict(progress),
        "recent": _block(request, caller, "recent", recent=recent),
    }
    return JSONResponse(body, status, {"Cache-Control": "no-store"})


def _lain(request: Request, service: Service, caller: Caller, item: ReviewItem | None) -> dict[str, Any] | None:
    """Return a pair as a script lays it on the desk."""
    if item is None:
        return None
    html = _block(request, caller, "pair", **shown_pair(item))
    return {"key": item.item_key, "html": html, "until": item.reserved_until, "query": item.query, "title": item.title}


def _block(request: Request, caller: Caller, block: str, **values: Any) -> str:
    return bytes(fragment(request, caller, f"review_{block}.html.jinja", block, **values).body).decode()


def _desk(
    request: Request,
    service: Service,
    caller: Caller,
    item: ReviewItem | None,
    *,
    problem: str = "",
    passing: Sequence[str] = (),
) -> Response:
    own = reviewing.own_grade(service, caller, item.item_key) if item is not None else None
    progress, recent = reviewing.progress(service, caller)
    values: dict[str, Any] = {
        "item": item, "own": own, "problem": problem, "passing": list(passing), "guidelines": _guidelines(),
        "meanings": MEANINGS, "progress": progress, "recent": recent,
        "disputes": sum(one.settled is None for one in agreeing.disputes(service, caller)),
    }  # fmt: skip
    if item is not None:
        values |= shown_pair(item)
    return page(request, caller, "review.html.jinja", **values)


@cache
def _guidelines() -> tuple[str, tuple[tuple[str, str], ...], str]:
    """Return the guidelines as what comes before the grades, the grades, and what comes after."""
    lines = GUIDELINES.splitlines()
    grades = [(line[2], line[3:].strip()) for line in lines if re.match(r"  \d ", line)]
    places = [place for place, line in enumerate(lines) if re.match(r"  \d ", line)]
    return " ".join(lines[: places[0]]), tuple(grades), " ".join(lines[places[-1] + 1 :])
