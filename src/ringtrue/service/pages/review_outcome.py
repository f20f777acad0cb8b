"""What becomes of grades: how far reviewers agree, disputes that somebody settles, and the version that is published (G-8)."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse, Response

from ringtrue.errors import CannotDecide, InputError, MissingInput
from ringtrue.golden import KAPPA, RULES, Rule, rater_name, version_name
from ringtrue.review import in_words
from ringtrue.review.refresh import RELEASED
from ringtrue.service.auth import PageReader, PageReviewer, PageWriter
from ringtrue.service.context import Here
from ringtrue.service.errors import Refused, refused
from ringtrue.service.pages.pairs import MEANINGS, nameless, shown_pair
from ringtrue.service.pages.shell import page
from ringtrue.service.work import agreeing, reviewing

router = APIRouter(include_in_schema=False)

SHOWN = 200
RULE_WORDS: dict[Rule, str] = {
    "majority": "the grade that most gave; the lower of two given equally often",
    "max": "the highest grade that anybody gave",
    "newest": "the last grade that was given",
    "adjudicated": "what all agree on, else what the adjudicator says",
}


@router.get("/review/agreement")
def agreement(request: Request, service: Here, caller: PageReader) -> Response:
    """Show how far reviewers agree, over pairs that are judged completely."""
    found = agreeing.picture(service, caller)
    return page(
        request, caller, "review_agreement.html.jinja", picture=found, minimum=KAPPA, words=in_words, shown=SHOWN,
        rater=rater_name, disputes=sum(one.settled is None and one.item.state == "approved" for one in found.disputes),
    )  # fmt: skip


@router.get("/review/adjudicate")
def dispute(
    request: Request, service: Here, caller: PageReviewer, settled: Annotated[int | None, Query(ge=0, le=3)] = None
) -> Response:
    """Show the widest dispute that the reader may settle."""
    return _dispute(request, service, caller, None, graded=settled)


@router.get("/review/adjudicate/{key}")
def one_dispute(request: Request, service: Here, caller: PageReviewer, key: str) -> Response:
    """Show one dispute."""
    return _dispute(request, service, caller, key)


@router.post("/review/adjudicate/undo")
def unsettle(service: Here, caller: PageReviewer) -> Response:
    """Take back what the reader settled last."""
    key = agreeing.unsettle(service, caller)
    return RedirectResponse("/review/adjudicate" + (f"/{key}" if key else ""), 303)


@router.post("/review/adjudicate/{key}")
def settle(service: Here, caller: PageReviewer, key: str, grade: Annotated[int, Form(ge=0, le=3)]) -> Response:
    """Settle a dispute and go on with the next."""
    if nameless(caller):
        raise Refused(409, "nameless", "say who you are before you settle anything; load the page again")
    agreeing.settle(service, caller, key, grade)
    return RedirectResponse(f"/review/adjudicate?settled={grade}", 303)


def _dispute(request: Request, service: Here, caller: PageReviewer, key: str | None, *, graded: int | None = None) -> Response:
    if nameless(caller):
        return page(request, caller, "review_name.html.jinja", wanted=request.url.path)
    waiting = [one for one in agreeing.disputes(service, caller) if one.settled is None]
    me = rater_name(caller.who)
    mine = [one for one in waiting if me not in one.grades]
    if key is None:
        shown = mine[0] if mine else None
    else:
        shown = next((one for one in [*waiting, *agreeing.settled_by(service, caller)] if one.item.item_key == key), None)
        if shown is None:
            raise MissingInput(f"no dispute '{key[:40]}' waits here; /review/adjudicate shows those that do")
    values = shown_pair(shown.item) if shown is not None else {}
    return page(
        request, caller, "review_adjudicate.html.jinja", dispute=shown, left=len(mine), own=len(waiting) - len(mine),
        settled=agreeing.settled_by(service, caller)[:10], meanings=MEANINGS, disputes=len(waiting),
        barred=shown is not None and me in shown.grades, graded=graded, **values,
    )  # fmt: skip


@router.get("/review/publish")
def preview(
    request: Request, service: Here, caller: PageWriter,
    golden: Annotated[str, Query(max_length=200)] = "", rule: Annotated[str, Query(max_length=20)] = "majority",
    adjudicator: Annotated[str, Query(max_length=200)] = "", done: Annotated[str, Query(max_length=300)] = "",
    pairs: Annotated[int | None, Query(ge=0)] = None,
) -> Response:  # fmt: skip
    """Show what would go into the next version of a set."""
    return _preview(request, service, caller, golden, rule, adjudicator, done=done, pairs=pairs)


@router.post("/review/publish")
def publish(
    request: Request, service: Here, caller: PageWriter,
    golden: Annotated[str, Form(max_length=200)], version: Annotated[str, Form(max_length=200)],
    rule: Annotated[str, Form(max_length=20)] = "majority", adjudicator: Annotated[str, Form(max_length=200)] = "",
    force: Annotated[bool, Form()] = False, reason: Annotated[str, Form(max_length=2_000)] = "",
) -> Response:  # fmt: skip
    """Keep the next version of the set."""
    by = _rule(rule)
    try:
        made = reviewing.publish(
            service, caller, golden, rule=by, adjudicator=adjudicator.strip() or None, version=version, force=force,
            reason=reason,
        )  # fmt: skip
    except (Refused, CannotDecide, InputError) as problem:
        known = refused(problem)
        return _preview(request, service, caller, golden, rule, adjudicator, problem=known.message, status=409)
    done = {"golden": made.golden, "done": f"{made.golden}@{made.version}", "pairs": made.published}
    return RedirectResponse(f"/review/publish?{urlencode(done)}", 303)


def _rule(text: str) -> Rule:
    if text not in RULES:
        raise InputError(f"'{text[:40]}' is no rule to derive judgments by; write {', '.join(RULES)}")
    return text


def _preview(
    request: Request, service: Here, caller: PageWriter, golden: str, rule: str, adjudicator: str, *, problem: str = "",
    status: int = 200, **values: Any,
) -> Response:  # fmt: skip
    approved = service.of(caller).review_items(project=caller.project, state="approved")
    released = {entry.detail["proposal"] for entry in service.of(caller).audit(project=caller.project, what=RELEASED)}
    # What a refresh left out when it was published stays approved, and blocks nothing.
    sets = Counter(str(item.metadata.get("golden") or "") for item in approved if item.metadata.get("refresh") not in released)
    loose = sets.pop("", 0)  # of no set, as those of a refresh
    choices = sorted(sets.items(), key=lambda one: (-one[1], one[0]))
    chosen = golden or (choices[0][0] if choices else "")
    disputes = agreeing.disputes(service, caller)
    waiting = [one for one in disputes if one.settled is None]
    names = sorted({one.settled_by for one in disputes if one.settled_by})
    judge = adjudicator.strip() or (names[0] if names else caller.who)
    found = None
    if chosen in sets:
        try:
            found = agreeing.preview(service, caller, chosen, rule=_rule(rule), adjudicator=judge or None)
        except (InputError, CannotDecide) as why:
            problem = problem or str(why)
    version = version_name(found.publication.golden) if found and found.publication else ""
    return page(
        request, caller, "review_publish.html.jinja", status=status, sets=choices, loose=loose, chosen=chosen, rule=rule,
        rules=RULE_WORDS, adjudicators=names, adjudicator_choices=[(name, name) for name in names], adjudicator=judge,
        found=found, problem=problem, next_version=version, minimum=KAPPA,
        words=in_words, shown=SHOWN, disputes=len(waiting),
        open_here=[one for one in waiting if one.item.metadata.get("golden") == chosen], **{"done": "", "pairs": None} | values,
    )  # fmt: skip
