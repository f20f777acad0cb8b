"""``/v1/flags``: which feature reaches whom, and whether the evidence lets it go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from ringtrue.answers import FlagChange, FlagDecision, FlagPage, FlagState, ListedFlag, Status, Variant
from ringtrue.measures import Measure
from ringtrue.rollout import (
    Decision,
    change_flag,
    decide,
    existing_flag,
    explain,
    gather,
    is_on,
    only_forced,
    overrides,
    roll_back,
    step,
)
from ringtrue.service.auth import Caller, Reader, Writer
from ringtrue.service.context import Here, Service
from ringtrue.service.errors import ERRORS, Refused
from ringtrue.service.hints import for_rest
from ringtrue.service.models import Line, Strict, record_from
from ringtrue.service.routes.queries import PathName
from ringtrue.store import AuditEntry, Flag

router = APIRouter(prefix="/v1/flags", tags=["flags"], responses=ERRORS)


class FlagUpdate(Strict, examples=[{"shadow": True, "min_samples": 200, "why": "a first look"}, {"rollout": 5}]):
    """Changes to a flag; fields left out stay as they are. A new flag starts at 0 %."""

    rollout: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = None
    state: Status | None = None
    shadow: bool | None = None
    min_samples: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    graduation_threshold: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    measure: Annotated[str, Field(max_length=100)] | None = Field(None, description="Of the improvement; RR@10 at first.")
    stage_hours: Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)] | None = None
    description: Line | None = None
    why: Line = ""


class FlagStep(Strict, examples=[{}]):
    """What a watch of one's own found."""

    breaches: Annotated[list[Line], Field(max_length=50, description="Each rolls the feature back.")] = Field(
        default_factory=list
    )


class RollBack(Strict, examples=[{"why": "complaints about missing bookings"}]):
    """Why a feature is taken away."""

    why: Annotated[str, Field(min_length=1, max_length=2_000, pattern=r"\S")]


@router.get("")
def list_flags(service: Here, caller: Reader) -> list[ListedFlag]:
    """List the flags by name, with those that only the server's environment sets."""
    there, forced = service.of(caller).flags(project=caller.project), overrides()
    found = [(flag, False) for flag in there] + [(flag, True) for flag in only_forced(there, forced, project=caller.project)]
    return [
        record_from(ListedFlag, flag, preset=unset, override=forced.get(flag.name))
        for flag, unset in sorted(found, key=lambda one: one[0].name)
    ]


def _decision(found: Decision) -> FlagDecision:
    checks = tuple(replace(check, says=for_rest(check.says)) for check in found.checks)
    return record_from(FlagDecision, found, why=for_rest(found.why), checks=checks, page=for_rest(explain(found)))


@router.get("/{name}")
def one(service: Here, caller: Reader, name: PathName) -> FlagPage:
    """Return a flag with its graduation checklist and its history; nothing changes."""
    found = checklist(service, caller, name)
    history = flag_history(service, caller, name)
    changes = (FlagChange(entry.at, entry.who, entry.what, str(entry.detail.get("why", ""))) for entry in history)
    return FlagPage(found.before, _decision(found), tuple(changes))


@router.put("/{name}")
def change(service: Here, caller: Writer, name: PathName, given: FlagUpdate) -> FlagState:
    """Make a flag or change it; it is written down who did it."""
    changes = given.model_dump(exclude={"why"}, exclude_none=True)
    return set_flag(service, caller, name, why=given.why, **changes)


@router.post("/{name}/step")
def step_on(service: Here, caller: Writer, name: PathName, given: FlagStep) -> FlagDecision:
    """Take a feature one stage further where the evidence allows it, back where a guardrail is broken; else say why not."""
    return _decision(step_flag(service, caller, name, breaches=given.breaches))


@router.post("/{name}/rollback")
def take_back(service: Here, caller: Writer, name: PathName, given: RollBack) -> FlagState:
    """Take a feature away from everybody at once and pause it."""
    return roll_back_flag(service, caller, name, why=given.why.strip())


@router.get("/{name}/variant")
def variant(
    service: Here,
    caller: Reader,
    name: PathName,
    identity: Annotated[str, Query(min_length=1, max_length=200, description="A user, session or whoever gets the feature.")],
) -> Variant:
    """Say whether a feature is on for an identity; the same identity always gets the same."""
    flag = existing_flag(service.of(caller), name, project=caller.project)
    forced = overrides().get(name)
    on, share = is_on(flag, identity, override=forced), flag.rollout if forced is None else forced
    return Variant(flag=name, identity=identity, on=on, variant="treatment" if on else "control", rollout=share)


# ── for routes and pages alike ──────────────────────────────────────────────────────────────────────────────────────


def checklist(service: Service, caller: Caller, name: str) -> Decision:
    """Return what would become of a flag now, and every check behind it; nothing changes. Raises MissingInput."""
    store, now = service.of(caller), service.now()
    flag = existing_flag(store, name, project=caller.project)
    return decide(flag, gather(store, flag, now=now), now)


def set_flag(service: Service, caller: Caller, name: str, *, why: str = "", **changes: Any) -> Flag:
    """Make a flag or change what is given of it; ``measure`` and ``stage_hours`` are kept in its metadata."""
    store = service.of(caller)
    facts = {field: changes.pop(field) for field in ("measure", "stage_hours") if field in changes}
    if facts:
        if "measure" in facts:
            facts["measure"] = str(Measure.parse(facts["measure"]))
        old = store.flag(name, project=caller.project)
        changes["metadata"] = {**(old.metadata if old is not None else {}), **facts}
    return change_flag(store, name, who=caller.who, now=service.now(), why=why, project=caller.project, **changes)


def make_flag(service: Service, caller: Caller, name: str, *, why: str) -> Flag:
    """Make a flag that reaches nobody yet; raises Refused (409) where somebody has set one of this name."""
    if service.of(caller).flag(name, project=caller.project) is not None:
        raise Refused(409, "conflict", f"there is a flag '{name}' already; open it, or choose another name", field="name")
    return set_flag(service, caller, name, why=why)


def resume_flag(service: Service, caller: Caller, name: str, *, why: str) -> Flag:
    """Let the evidence move a paused flag again; raises MissingInput, and Refused (409) for one that is not paused."""
    flag = existing_flag(service.of(caller), name, project=caller.project)
    if flag.state != "paused":
        raise Refused(409, "conflict", f"flag '{name}' is {flag.state}, not paused; there is nothing to resume")
    return set_flag(service, caller, name, why=f"resumed: {why}", state="running")


def step_flag(service: Service, caller: Caller, name: str, *, breaches: Sequence[str] = ()) -> Decision:
    """Take a flag one stage further, or back, as the evidence says; return the decision."""
    store = service.of(caller)
    return step(store, name, now=service.now(), who=caller.who, breaches=breaches, project=caller.project)


def roll_back_flag(service: Service, caller: Caller, name: str, *, why: str) -> Flag:
    """Take a feature away from everybody at once and pause it."""
    return roll_back(service.of(caller), name, now=service.now(), who=caller.who, why=why, project=caller.project)


def flag_history(service: Service, caller: Caller, name: str, *, limit: int = 50) -> list[AuditEntry]:
    """Return who changed a flag, the newest first."""
    return service.of(caller).audit(project=caller.project, subject=name, limit=limit)
