"""``/v1/flags``: which feature reaches whom, and whether the evidence lets it go on."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from ringtrue.answers import FlagChange, FlagDecision, FlagPage, FlagState, ListedFlag, Status, Variant
from ringtrue.rollout import Decision, explain
from ringtrue.service.auth import Reader, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.hints import for_rest
from ringtrue.service.models import Line, Strict, record_from
from ringtrue.service.routes.queries import PathName
from ringtrue.service.work import rollout

router = APIRouter(prefix="/v1/flags", tags=["flags"], responses=ERRORS)


class FlagUpdate(Strict):
    """Changes to a flag; fields left out stay as they are. A new flag starts at 0 %."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"shadow": True, "min_samples": 200, "why": "a first look"}, {"rollout": 5}]}
    )
    rollout: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = None
    state: Status | None = None
    shadow: bool | None = None
    min_samples: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    graduation_threshold: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    measure: Annotated[str, Field(max_length=100)] | None = Field(None, description="Of the improvement; RR@10 at first.")
    stage_hours: Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)] | None = None
    description: Line | None = None
    why: Line = ""


class Step(Strict):
    """What a watch of one's own found."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}]})
    breaches: Annotated[list[Line], Field(max_length=50, description="Each rolls the feature back.")] = Field(
        default_factory=list
    )


class RollBack(Strict):
    """Why a feature is taken away."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"why": "complaints about missing bookings"}]})
    why: Annotated[str, Field(min_length=1, max_length=2_000, pattern=r"\S")]


@router.get("")
def list_flags(service: Here, caller: Reader) -> list[ListedFlag]:
    """List the flags by name, with those that only the server's environment sets."""
    return rollout.flags(service, caller)


def _decision(found: Decision) -> FlagDecision:
    checks = tuple(replace(check, says=for_rest(check.says)) for check in found.checks)
    return record_from(FlagDecision, found, why=for_rest(found.why), checks=checks, page=for_rest(explain(found)))


@router.get("/{name}")
def one(service: Here, caller: Reader, name: PathName) -> FlagPage:
    """Return a flag with its graduation checklist and its history; nothing changes."""
    found = rollout.checklist(service, caller, name)
    history = tuple(
        FlagChange(entry.at, entry.who, entry.what, str(entry.detail.get("why", "")))
        for entry in rollout.flag_history(service, caller, name)
    )
    return FlagPage(found.before, _decision(found), history)


@router.put("/{name}")
def change(service: Here, caller: Writer, name: PathName, given: FlagUpdate) -> FlagState:
    """Make a flag or change it; it is written down who did it."""
    changes = given.model_dump(exclude={"why"}, exclude_none=True)
    return rollout.set_flag(service, caller, name, why=given.why, **changes)


@router.post("/{name}/step")
def step(service: Here, caller: Writer, name: PathName, given: Step) -> FlagDecision:
    """Take a feature one stage further where the evidence allows it, back where a guardrail is broken; else say why not."""
    return _decision(rollout.step_flag(service, caller, name, breaches=given.breaches))


@router.post("/{name}/rollback")
def roll_back(service: Here, caller: Writer, name: PathName, given: RollBack) -> FlagState:
    """Take a feature away from everybody at once and pause it."""
    return rollout.roll_back_flag(service, caller, name, why=given.why.strip())


@router.get("/{name}/variant")
def variant(
    service: Here,
    caller: Reader,
    name: PathName,
    identity: Annotated[str, Query(min_length=1, max_length=200, description="A user, session or whoever gets the feature.")],
) -> Variant:
    """Say whether a feature is on for an identity; the same identity always gets the same."""
    flag, on, forced = rollout.variant(service, caller, name, identity)
    share = flag.rollout if forced is None else forced
    return Variant(flag=name, identity=identity, on=on, variant="treatment" if on else "control", rollout=share)
