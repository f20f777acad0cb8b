"""The pages of the review: judging pairs one at a time and blind, the backlog, agreement, disputes, and publishing.

Every action is a plain form. Where scripts run they send the same form, ask for JSON, and have the next pair before it is
needed. The addresses with a word behind /review come first, which /review/KEY would take for keys.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from markupsafe import Markup, escape

from ringtrue.brief import counted
from ringtrue.errors import CannotDecide, InputError, MissingInput, RingtrueError
from ringtrue.golden import KAPPA, RULES, Rule, content_words, rater_name, version_name
from ringtrue.review import GUIDELINES, STATES, backlog_rows, chosen, grouped, in_words, weekly_flow
from ringtrue.review.refresh import RELEASED
from ringtrue.service import reviewing
from ringtrue.service.auth import LOCAL, Access, PageReader, PageReviewer, PageWriter
from ringtrue.service.errors import Refused, refused
from ringtrue.service.library import RunFilters, find_runs, kept_among
from ringtrue.service.models import Cursor
from ringtrue.service.pages.runs import part_of, run_words
from ringtrue.service.pages.shell import Choice, ChoiceField, TextField, Words, WordsField, fragment, page, wants_fragment
from ringtrue.service.reviewing import DEPTH, REVIEWERS, queue_unjudged
from ringtrue.store import ReviewItem

MEANINGS = ("about something else", "on the topic, no answer", "answers it in part", "answers it fully")
"""What each grade means, in a few words; the guidelines say more."""


def nameless(access: Access) -> bool:
    """True if a reader without a key has not said who they are."""
    return access.caller.key_id is None and access.who == LOCAL


def marked(text: str, question: str) -> Markup:
    """Return a text with the words of a question marked in it, whatever their ending.

    >>> str(marked("Late <b> checkouts", "a late checkout?"))
    '<mark>Late</mark> &lt;b&gt; <mark>checkouts</mark>'
    """
    wanted = frozenset(content_words(question))
    if not wanted:
        return escape(text)

    @cache
    def meant(word: str) -> bool:
        return not wanted.isdisjoint(content_words(word))

    # Split by what is captured: every second part is a word.
    parts = re.split(r"(\w+)", text)
    return Markup("").join(
        Markup("<mark>{}</mark>").format(part) if place % 2 and meant(part) else part for place, part in enumerate(parts)
    )


def shown_pair(item: ReviewItem) -> dict[str, Any]:
    """Return what the template of a pair is given."""
    return {"item": item, "text": marked(item.text, item.query), "title": marked(item.title or item.doc_id, item.query)}


router = APIRouter(include_in_schema=False)

LISTED = 200
RULE_WORDS: dict[Rule, str] = {
    "majority": "the grade that most gave; the lower of two given equally often",
    "max": "the highest grade that anybody gave",
    "newest": "the last grade that was given",
    "adjudicated": "what all agree on, else what the adjudicator says",
}


@router.get("/review/agreement")
def agreement(request: Request, access: PageReader) -> Response:
    """Show how far reviewers agree, over pairs that are judged completely."""
    found = reviewing.picture(access)
    return page(
        request, "review_agreement.html.jinja", picture=found, minimum=KAPPA, words=in_words, shown=LISTED,
        rater=rater_name, disputes=sum(one.settled is None and one.item.state == "approved" for one in found.disputes),
    )  # fmt: skip


@router.get("/review/adjudicate")
def dispute(request: Request, access: PageReviewer, settled: Annotated[int | None, Query(ge=0, le=3)] = None) -> Response:
    """Show the widest dispute that the reader may settle."""
    return _dispute(request, access, None, graded=settled)


@router.get("/review/adjudicate/{key}")
def one_dispute(request: Request, access: PageReviewer, key: str) -> Response:
    """Show one dispute."""
    return _dispute(request, access, key)


@router.post("/review/adjudicate/undo")
def unsettle(access: PageReviewer) -> Response:
    """Take back what the reader settled last."""
    key = reviewing.unsettle(access)
    return RedirectResponse("/review/adjudicate" + (f"/{key}" if key else ""), 303)


@router.post("/review/adjudicate/{key}")
def settle(access: PageReviewer, key: str, grade: Annotated[int, Form(ge=0, le=3)]) -> Response:
    """Settle a dispute and go on with the next."""
    if nameless(access):
        raise Refused(409, "nameless", "enter your name before you settle disputes; reload the page")
    reviewing.settle(access, key, grade)
    return RedirectResponse(f"/review/adjudicate?settled={grade}", 303)


def _dispute(request: Request, access: PageReviewer, key: str | None, *, graded: int | None = None) -> Response:
    if nameless(access):
        return page(request, "review_name.html.jinja", wanted=request.url.path)
    waiting = [one for one in reviewing.disputes(access) if one.settled is None]
    me = rater_name(access.who)
    mine = [one for one in waiting if me not in one.grades]
    if key is None:
        shown = mine[0] if mine else None
    else:
        shown = next((one for one in [*waiting, *reviewing.settled_by(access)] if one.item.item_key == key), None)
        if shown is None:
            raise MissingInput(f"no dispute '{key[:40]}' waits here; /review/adjudicate shows those that do")
    values = shown_pair(shown.item) if shown is not None else {}
    return page(
        request, "review_adjudicate.html.jinja", dispute=shown, left=len(mine), own=len(waiting) - len(mine),
        settled=reviewing.settled_by(access)[:10], meanings=MEANINGS, disputes=len(waiting),
        barred=shown is not None and me in shown.grades, graded=graded, **values,
    )  # fmt: skip


@router.get("/review/publish")
def preview(
    request: Request, access: PageWriter,
    golden: Words = "", rule: Choice = "majority",
    adjudicator: Words = "", done: Annotated[str, Query(max_length=300)] = "",
    pairs: Annotated[int | None, Query(ge=0)] = None,
) -> Response:  # fmt: skip
    """Show what would go into the next version of a set."""
    return _preview(request, access, golden, rule, adjudicator, done=done, pairs=pairs)


@router.post("/review/publish")
def publish(
    request: Request, access: PageWriter,
    golden: WordsField, version: WordsField,
    rule: ChoiceField = "majority", adjudicator: WordsField = "",
    force: Annotated[bool, Form()] = False, reason: TextField = "",
) -> Response:  # fmt: skip
    """Keep the next version of the set."""
    by = _rule(rule)
    try:
        made = reviewing.publish(
            access, golden, rule=by, adjudicator=adjudicator.strip() or None, version=version, force=force,
            reason=reason,
        )  # fmt: skip
    except (Refused, CannotDecide, InputError) as problem:
        known = refused(problem)
        return _preview(request, access, golden, rule, adjudicator, problem=known.message, status=409)
    done = {"golden": made.golden, "done": f"{made.golden}@{made.version}", "pairs": made.published}
    return RedirectResponse(f"/review/publish?{urlencode(done)}", 303)


def _rule(text: str) -> Rule:
    if text not in RULES:
        raise InputError(f"'{text[:40]}' is not a rule to derive judgments by; write {', '.join(RULES)}")
    return text


def _preview(
    request: Request, access: PageWriter, golden: str, rule: str, adjudicator: str, *, problem: str = "",
    status: int = 200, **values: Any,
) -> Response:  # fmt: skip
    approved = access.store.review_items(project=access.project, state="approved")
    released = {entry.detail["proposal"] for entry in access.store.audit(project=access.project, what=RELEASED)}
    # What a refresh left out when it was published stays approved, and blocks nothing.
    sets = Counter(str(item.metadata.get("golden") or "") for item in approved if item.metadata.get("refresh") not in released)
    loose = sets.pop("", 0)  # of no set, as those of a refresh
    choices = sorted(sets.items(), key=lambda one: (-one[1], one[0]))
    chosen = golden or (choices[0][0] if choices else "")
    disputes = reviewing.disputes(access)
    waiting = [one for one in disputes if one.settled is None]
    names = sorted({one.settled_by for one in disputes if one.settled_by})
    judge = adjudicator.strip() or (names[0] if names else access.who)
    found = None
    if chosen in sets:
        try:
            found = reviewing.preview(access, chosen, rule=_rule(rule), adjudicator=judge or None)
        except (InputError, CannotDecide) as why:
            problem = problem or str(why)
    version = version_name(found.publication.golden) if found and found.publication else ""
    return page(
        request, "review_publish.html.jinja", status=status, sets=choices, loose=loose, chosen=chosen, rule=rule,
        rules=RULE_WORDS, adjudicators=names, adjudicator_choices=[(name, name) for name in names], adjudicator=judge,
        found=found, problem=problem, next_version=version, minimum=KAPPA,
        words=in_words, shown=LISTED, disputes=len(waiting),
        open_here=[one for one in waiting if one.item.metadata.get("golden") == chosen], **{"done": "", "pairs": None} | values,
    )  # fmt: skip


MOST_PASSED = 200
"""Skipped pairs that a reader's address or script remembers."""

Passing = Annotated[str, Query(alias="pass", max_length=8_000)]
Passed = Annotated[str, Form(alias="pass", max_length=8_000)]
Note = TextField


@router.get("/review")
def desk_page(request: Request, access: PageReviewer, passing: Passing = "", rename: str = "") -> Response:
    """Show the pair that is next for the reader."""
    if nameless(access) or (rename and access.caller.key_id is None):
        return page(request, "review_name.html.jinja", wanted="/review")
    keys = _keys(passing)
    return _desk(request, access, reviewing.next_pair(access, passing=keys), passing=keys)


@router.post("/review/next")
def another(request: Request, access: PageReviewer, passing: Passed = "") -> Response:
    """Keep another pair for the reader, for a script that asks before it is needed."""
    return _answer(request, access, lambda: None, passing)


@router.post("/review/undo")
def undo(request: Request, access: PageReviewer, passing: Passed = "") -> Response:
    """Take back the last thing that the reader said, and show its pair again."""
    if not _by_script(request):
        item = reviewing.undo(access)
        return RedirectResponse("/review" if item is None else f"/review/{item.item_key}", 303)
    return _answer(request, access, lambda: reviewing.undo(access), passing, again=True)


@router.get("/review/{key}")
def one(request: Request, access: PageReviewer, key: str) -> Response:
    """Show one pair, to judge it or to change what the reader said of it."""
    if nameless(access):
        return page(request, "review_name.html.jinja", wanted=f"/review/{key}")
    try:
        item, problem = reviewing.hold(access, key), ""
    except Refused as found:
        if found.status != 409:
            raise
        item, problem = reviewing.queue_of(access).find(key), found.message
    return _desk(request, access, item, problem=problem)


@router.post("/review/{key}/judge")
def judge(
    request: Request, access: PageReviewer, key: str, grade: Annotated[int, Form(ge=0, le=3)],
    note: Note = "", passing: Passed = "",
) -> Response:  # fmt: skip
    """Keep a grade."""
    _named(access)
    return _answer(request, access, lambda: reviewing.judge_held(access, key, grade, note=note), passing)


@router.post("/review/{key}/skip")
def skip(request: Request, access: PageReviewer, key: str, passing: Passed = "") -> Response:
    """Give a pair back and go on with another."""
    _named(access)
    more = ",".join([*_keys(passing), key][-MOST_PASSED:])
    return _answer(request, access, lambda: reviewing.skip(access, key), more)


@router.post("/review/{key}/reject")
def reject(
    request: Request, access: PageReviewer, key: str, why: TextField = "",
    passing: Passed = "",
) -> Response:  # fmt: skip
    """Take a pair out that nobody should judge."""
    _named(access)
    return _answer(request, access, lambda: reviewing.reject_held(access, key, why=why), passing)


def _named(access: Access) -> None:
    if nameless(access):
        raise Refused(409, "nameless", "enter your name before you judge; reload the page")


def _keys(text: str) -> list[str]:
    return [key for key in text.split(",") if key][-MOST_PASSED:]


def _by_script(request: Request) -> bool:
    return request.headers.get("accept", "").startswith("application/json")


def _answer(
    request: Request, access: Access, act: Callable[[], ReviewItem | None], passing: str, *, again: bool = False
) -> Response:
    """Do what was asked; a script gets what came of it with the next pair, a reader without one the next page.

    ``again`` says that the pair which ``act`` returns is shown again.
    """
    if not _by_script(request):
        act()
        return RedirectResponse("/review" + (f"?{urlencode({'pass': passing})}" if passing else ""), 303)
    back: ReviewItem | None = None
    problem: dict[str, str] | None = None
    status = 200
    try:
        done = act()
        back = done if again else None
    except (Refused, RingtrueError) as found:
        known = refused(found)
        if known.status >= 500:
            raise
        problem, status = {"code": known.code, "message": known.message}, known.status
    keys = [*_keys(passing), *([back.item_key] if back else [])]
    following = reviewing.next_pair(access, passing=keys)
    progress, recent = reviewing.progress(access)
    body = {
        "error": problem,
        "back": _lain(request, access, back),
        "next": _lain(request, access, following),
        "progress": asdict(progress),
        "recent": _block(request, "recent", recent=recent),
    }
    return JSONResponse(body, status, {"Cache-Control": "no-store"})


def _lain(request: Request, access: Access, item: ReviewItem | None) -> dict[str, Any] | None:
    """Return a pair as a script lays it on the desk."""
    if item is None:
        return None
    html = _block(request, "pair", **shown_pair(item))
    return {"key": item.item_key, "html": html, "until": item.reserved_until, "query": item.query, "title": item.title}


def _block(request: Request, block: str, **values: Any) -> str:
    return bytes(fragment(request, f"review_{block}.html.jinja", block, **values).body).decode()


def _desk(
    request: Request, access: Access, item: ReviewItem | None, *, problem: str = "", passing: Sequence[str] = ()
) -> Response:
    own = reviewing.own_grade(access, item.item_key) if item is not None else None
    progress, recent = reviewing.progress(access)
    values: dict[str, Any] = {
        "item": item, "own": own, "problem": problem, "passing": list(passing), "guidelines": _guidelines(),
        "meanings": MEANINGS, "progress": progress, "recent": recent,
        "disputes": sum(one.settled is None for one in reviewing.disputes(access)),
    }  # fmt: skip
    if item is not None:
        values |= shown_pair(item)
    return page(request, "review.html.jinja", **values)


@cache
def _guidelines() -> tuple[str, tuple[tuple[str, str], ...], str]:
    """Return the guidelines as what comes before the grades, the grades, and what comes after."""
    lines = GUIDELINES.splitlines()
    grades = [(line[2], line[3:].strip()) for line in lines if re.match(r"  \d ", line)]
    places = [place for place, line in enumerate(lines) if re.match(r"  \d ", line)]
    return " ".join(lines[: places[0]]), tuple(grades), " ".join(lines[places[-1] + 1 :])


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
def backlog_page(
    request: Request, access: PageReader, state: Choice = "",
    golden: Words = "", q: Words = "",
    sort: Choice = "", cursor: Cursor = None,
    run: Words = "", queued: Annotated[str, Query(max_length=40)] = "",
) -> Response:  # fmt: skip
    """Show the queue as a whole, and its pairs."""
    if state and state not in STATES:
        raise InputError(f"there is no state '{state}'; choose {', '.join(STATES)}, or leave it out")
    found = backlog_rows(reviewing.queue_of(access))
    rows = chosen(found, state=state, golden=golden, text=q, sort=sort)
    shown, behind, part = part_of(rows, [row.item.item_key for row in rows], cursor, SHOWN)
    values: dict[str, Any] = {
        "rows": shown, "next": behind, "cursor": cursor, "sort": sort, "state": state, "golden": golden, "q": q,
        "words": WORDS, "total": len(found), "shown": part,
    }  # fmt: skip
    if wants_fragment(request):
        return fragment(request, "backlog.html.jinja", "rows", **values)
    runs = find_runs(access, RunFilters(), limit=RUNS).rows if access.may("write") else []
    kept = kept_among(access, runs)
    judged_at = [one.at for one in access.store.ratings(project=access.project)]
    weeks = weekly_flow(found, judged_at, now=access.now())
    return page(
        request, "backlog.html.jinja", **values, counts=reviewing.backlog(access), late_days=LATE_DAYS,
        missing=sum(row.missing for row in found), weeks=weeks,
        stamps=[int(one.until.timestamp()) for one in weeks],
        by_golden=grouped(found, lambda row: row.golden), by_source=grouped(found, lambda row: row.source),
        runs=[(row.run_id, run_words(row, kept)) for row in runs if row.run_id in kept], run=run, told=_queued_words(queued),
    )  # fmt: skip


def _queued_words(queued: str) -> str:
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
    access: PageWriter,
    run: WordsField,
    against: WordsField = "",
    reviewers: Annotated[str, Form(max_length=4)] = str(REVIEWERS),
) -> Response:
    """Put the unjudged documents of a run into the queue."""
    if not (reviewers.isdecimal() and 1 <= int(reviewers) <= 20):
        raise InputError(f"'{reviewers}' is not a number of people; write one from 1 to 20")
    made = queue_unjudged(access, run, against=against or None, wanted=int(reviewers))
    return RedirectResponse(f"/backlog?queued={made.unjudged}-{made.queued}-{made.new}", 303)
