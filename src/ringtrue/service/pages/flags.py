"""Flags: who gets a feature, and the checklist that says why it moved or why it waits (S-4, S-5)."""

from __future__ import annotations

import time
from typing import Annotated
from urllib.parse import quote
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse, Response

from ringtrue.errors import InputError, MissingInput, RingtrueError
from ringtrue.rollout import Decision
from ringtrue.rollout.graduate import STAGES
from ringtrue.service.auth import Caller, PageReader, PageWriter
from ringtrue.service.context import Here, Service
from ringtrue.service.errors import Refused, refused
from ringtrue.service.pages.shell import page
from ringtrue.service.routes import flags

router = APIRouter(include_in_schema=False)
TOLD = {
    "advance": "It moved one stage further.",
    "graduate": "It graduated.",
    "rollback": "It was rolled back and paused.",
    "reject": "It was rejected.",
    "wait": "Nothing moved: the evidence does not allow it yet.",
    "done": "Nothing moved: it has arrived where it stays.",
}
"""What a look at the evidence brought about, by its action."""
PAUSED = "Nothing moved: it is paused, whatever the evidence says. Resume it first."
REMEMBERED_S = 5.0
"""How old the evidence that a page shows may be: it is taken from thousands of live searches. A step looks anew."""
_seen: WeakKeyDictionary[Service, dict[tuple[str, str], tuple[float, Decision]]] = WeakKeyDictionary()


@router.get("/flags")
def overview(request: Request, service: Here, caller: PageReader) -> Response:
    """List the flags with their stage."""
    return _flags(request, service, caller)


def _flags(
    request: Request, service: Service, caller: Caller, *, name: str = "", why: str = "", problem: Refused | None = None
) -> Response:
    return page(
        request, caller, "flags.html.jinja", status=problem.status if problem else 200, problem=problem, name=name, why=why,
        rows=flags.list_flags(service, caller),
    )  # fmt: skip


@router.post("/flags")
def make(
    request: Request,
    service: Here,
    caller: PageWriter,
    name: Annotated[str, Form(max_length=200)],
    why: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Make a flag that reaches nobody yet; one that is there already stays as it is."""
    try:
        if not name.strip():
            raise InputError("a flag needs a name, like new-reranker")
        flags.make_flag(service, caller, name.strip(), why=why or "made on the page")
    except (RingtrueError, Refused) as problem:
        return _flags(request, service, caller, name=name, why=why, problem=refused(problem))
    return RedirectResponse(f"/flags/{quote(name.strip(), safe='')}", 303)


@router.get("/flags/{name}")
def one(
    request: Request, service: Here, caller: PageReader, name: str, stepped: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """Show a flag with its graduation checklist and what happened to it."""
    listed = next((one for one in flags.list_flags(service, caller) if one.name == name), None)
    if listed is None:
        raise MissingInput(f"there is no flag '{name}'; /flags lists those there are")
    decision = None if listed.preset else _checked(service, caller, name)
    history = flags.flag_history(service, caller, name)
    checks = decision.checks if decision is not None else ()
    here = [entry for entry in history if (entry.detail.get("after") or {}).get("stage_since") == listed.stage_since]
    return page(
        request, caller, "flag.html.jinja", listed=listed, flag=listed, decision=decision, stages=STAGES,
        told=PAUSED if stepped == "wait" and listed.state == "paused" else TOLD.get(stepped, ""),
        headline="" if decision is None else _headline(decision),
        missing=[check for check in checks if check.holds is not True], holding=[check for check in checks if check.holds],
        last=here[-1] if here else None, history=history,
    )  # fmt: skip


@router.post("/flags/{name}/step")
def further(service: Here, caller: PageWriter, name: str) -> Response:
    """Take a flag as far as the evidence allows, which may be back."""
    decision = flags.step_flag(service, caller, name)
    return RedirectResponse(f"/flags/{quote(name, safe='')}?stepped={decision.action}", 303)


@router.post("/flags/{name}/rollback")
def back(service: Here, caller: PageWriter, name: str, why: Annotated[str, Form(max_length=500)] = "") -> Response:
    """Take the feature away from everybody at once."""
    if not why.strip():
        raise InputError("say why it is rolled back; whoever looks at it later will want to know")
    flags.roll_back_flag(service, caller, name, why=why.strip())
    return RedirectResponse(f"/flags/{quote(name, safe='')}", 303)


@router.post("/flags/{name}/resume")
def resume(service: Here, caller: PageWriter, name: str, why: Annotated[str, Form(max_length=500)] = "") -> Response:
    """Let the evidence move a paused flag again."""
    if not why.strip():
        raise InputError("say why it is resumed; whoever paused it will want to know")
    flags.resume_flag(service, caller, name, why=why.strip())
    return RedirectResponse(f"/flags/{quote(name, safe='')}", 303)


@router.post("/flags/{name}/set")
def change(
    service: Here,
    caller: PageWriter,
    name: str,
    rollout_percent: Annotated[str, Form(max_length=8)],
    why: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Set the share by hand."""
    try:
        percent = float(rollout_percent)
    except ValueError:
        raise InputError(f"'{rollout_percent}' is no percentage; write a number from 0 to 100") from None
    if not why.strip():
        raise InputError("say why the share is set by hand; the audit trail keeps it")
    flags.set_flag(service, caller, name, why=why.strip(), rollout=percent)
    return RedirectResponse(f"/flags/{quote(name, safe='')}", 303)


def _checked(service: Service, caller: Caller, name: str) -> Decision:
    """Return what would become of a flag, as it was a few seconds ago at most; one that was changed is looked at anew."""
    known = _seen.setdefault(service, {})
    until, decision = known.get((caller.project, name), (0.0, None))
    flag = service.of(caller).flag(name, project=caller.project)
    if decision is None or decision.before != flag or time.monotonic() > until:
        decision = flags.checklist(service, caller, name)
        known[caller.project, name] = (time.monotonic() + REMEMBERED_S, decision)
    return decision


def _headline(decision: Decision) -> str:
    """Return in one sentence where a flag stands and what would become of it now."""
    at, missing = f"{decision.before.rollout:g} %", sum(check.holds is not True for check in decision.checks)
    checks = f"{missing} of {len(decision.checks)} checks {'does' if missing == 1 else 'do'} not hold yet"
    paused = f"It is paused: held at {at}, still served." if decision.before.rollout else f"It is paused at {at}."
    return {
        "wait": f"It waits at {at}: {checks}." if decision.before.state == "running" else paused,
        "advance": f"Every check holds: it may go on from {at} to {decision.flag.rollout:g} %.",
        "graduate": f"It reached everybody and every check holds: it may graduate at {at}.",
        "rollback": f"A guardrail broke: it is to be taken back from {at}.",
        "reject": "Its test found it no better than production: it is to be rejected.",
        "done": f"It is {decision.before.state}, at {at}; nothing moves it by itself any more.",
    }[decision.action]
