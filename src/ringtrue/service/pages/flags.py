"""Flags: who gets a feature, and the checklist that says why it moved or why it waits (S-4, S-5)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from ringtrue.errors import InputError, MissingInput
from ringtrue.online import PRESETS
from ringtrue.online.graduate import STAGES
from ringtrue.service.auth import PageReader, PageWriter
from ringtrue.service.context import Here
from ringtrue.service.pages.shell import page
from ringtrue.service.work import rollout

router = APIRouter(include_in_schema=False)


@router.get("/flags")
def overview(request: Request, service: Here, caller: PageReader) -> Response:
    """List the flags with their stage."""
    return page(request, caller, "flags.html.jinja", rows=rollout.flags(service, caller), stages=STAGES)


@router.post("/flags")
def make(
    service: Here,
    caller: PageWriter,
    name: Annotated[str, Form(max_length=200)],
    why: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Make a flag that reaches nobody yet."""
    if not name.strip():
        raise InputError("a flag needs a name, like new-reranker")
    rollout.set_flag(service, caller, name.strip(), why=why or "made on the page")
    return RedirectResponse(f"/flags/{name.strip()}", 303)


@router.get("/flags/{name}")
def one(request: Request, service: Here, caller: PageReader, name: str) -> Response:
    """Show a flag with its graduation checklist and what happened to it."""
    return _one(request, service, caller, name)


@router.post("/flags/{name}/step")
def further(request: Request, service: Here, caller: PageWriter, name: str) -> Response:
    """Take a flag as far as the evidence allows, which may be back."""
    decision = rollout.step_flag(service, caller, name)
    return _one(request, service, caller, name, told=f"{decision.action}: {decision.why}")


@router.post("/flags/{name}/rollback")
def back(service: Here, caller: PageWriter, name: str, why: Annotated[str, Form(max_length=500)] = "") -> Response:
    """Take the feature away from everybody at once."""
    if not why.strip():
        raise InputError("say why it is rolled back; whoever looks at it later will want to know")
    rollout.roll_back_flag(service, caller, name, why=why.strip())
    return RedirectResponse(f"/flags/{name}", 303)


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
    rollout.set_flag(service, caller, name, why=why.strip(), rollout=percent)
    return RedirectResponse(f"/flags/{name}", 303)


def _one(request: Request, service: Here, caller: PageReader, name: str, *, told: str = "") -> Response:
    listed = next((one for one in rollout.flags(service, caller) if one.flag.name == name), None)
    if listed is None:
        raise MissingInput(f"there is no flag '{name}'; /flags lists those there are")
    decision: Any = None if listed.preset and name in PRESETS else rollout.checklist(service, caller, name)
    return page(
        request, caller, "flag.html.jinja", listed=listed, flag=listed.flag, decision=decision, stages=STAGES, told=told,
        history=rollout.flag_history(service, caller, name),
    )  # fmt: skip
