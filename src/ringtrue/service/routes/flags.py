"""``/v1/flags``: which feature reaches whom, and whether the evidence lets it go on (S-4, S-5)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from ringtrue.online import Check, Decision, explain
from ringtrue.service.auth import Reader, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.hints import for_rest
from ringtrue.service.models import Answer, Line, Strict
from ringtrue.service.routes.queries import PathName
from ringtrue.service.work import rollout
from ringtrue.store import ABStatus, Flag

router = APIRouter(prefix="/v1/flags", tags=["flags"], responses=ERRORS)


class FlagAnswer(Answer):
    """A feature that reaches a share of the traffic."""

    name: str
    rollout: float = Field(description="Percent of identities.")
    state: ABStatus
    shadow: bool
    min_samples: int
    graduation_threshold: float
    stage_since: str | None
    description: str
    metadata: dict[str, Any]

    @classmethod
    def of(cls, flag: Flag) -> FlagAnswer:
        return cls.model_validate(flag, from_attributes=True)


class ListedFlag(FlagAnswer):
    """A flag as the list shows it."""

    preset: bool = Field(description="True if only the server's environment sets it.")
    override: float | None = Field(description="The percentage that the server's environment sets, which wins there.")


class CheckAnswer(Answer):
    """One condition."""

    name: str
    holds: bool | None = Field(description="null where it is not known.")
    says: str

    @classmethod
    def of(cls, check: Check) -> CheckAnswer:
        return cls(name=check.name, holds=check.holds, says=for_rest(check.says))


class DecisionAnswer(Answer):
    """What becomes of a flag, and everything that was looked at."""

    action: Literal["advance", "graduate", "rollback", "reject", "wait", "done"]
    why: str
    moved: bool
    before: FlagAnswer
    flag: FlagAnswer
    checks: list[CheckAnswer]
    breaches: list[str]
    page: str = Field(description="The same in plain words, for people.")

    @classmethod
    def of(cls, found: Decision) -> DecisionAnswer:
        return cls(
            action=found.action,
            why=for_rest(found.why),
            moved=found.moved,
            before=FlagAnswer.of(found.before),
            flag=FlagAnswer.of(found.flag),
            checks=[CheckAnswer.of(check) for check in found.checks],
            breaches=list(found.breaches),
            page=for_rest(explain(found)),
        )


class Change(Answer):
    """Who changed a flag, when and why."""

    at: str
    who: str
    what: str
    why: str


class FlagPage(Answer):
    """A flag with its graduation checklist: what a step would do now."""

    flag: FlagAnswer
    next: DecisionAnswer
    history: list[Change] = Field(description="The newest first.")


class FlagChange(Strict):
    """Changes to a flag; fields left out stay as they are. A new flag starts at 0 %."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"shadow": True, "min_samples": 200, "why": "a first look"}, {"rollout": 5}]}
    )
    rollout: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = None
    state: ABStatus | None = None
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


class Variant(Answer):
    """What an identity gets."""

    flag: str
    identity: str
    on: bool
    variant: Literal["treatment", "control"]
    rollout: float = Field(description="Percent that decided it.")


@router.get("")
def list_flags(service: Here, caller: Reader) -> list[ListedFlag]:
    """List the flags by name, with those that only the server's environment sets."""
    return [
        ListedFlag(**FlagAnswer.of(found.flag).model_dump(), preset=found.preset, override=found.override)
        for found in rollout.flags(service, caller)
    ]


@router.get("/{name}")
def one(service: Here, caller: Reader, name: PathName) -> FlagPage:
    """Return a flag with its graduation checklist and its history; nothing changes."""
    found = rollout.checklist(service, caller, name)
    history = [
        Change(at=entry.at, who=entry.who, what=entry.what, why=str(entry.detail.get("why", "")))
        for entry in rollout.flag_history(service, caller, name)
    ]
    return FlagPage(flag=FlagAnswer.of(found.before), next=DecisionAnswer.of(found), history=history)


@router.put("/{name}")
def change(service: Here, caller: Writer, name: PathName, given: FlagChange) -> FlagAnswer:
    """Make a flag or change it; it is written down who did it."""
    changes = given.model_dump(exclude={"why"}, exclude_none=True)
    return FlagAnswer.of(rollout.set_flag(service, caller, name, why=given.why, **changes))


@router.post("/{name}/step")
def step(service: Here, caller: Writer, name: PathName, given: Step) -> DecisionAnswer:
    """Take a feature one stage further where the evidence allows it, back where a guardrail is broken; else say why not."""
    return DecisionAnswer.of(rollout.step_flag(service, caller, name, breaches=given.breaches))


@router.post("/{name}/rollback")
def roll_back(service: Here, caller: Writer, name: PathName, given: RollBack) -> FlagAnswer:
    """Take a feature away from everybody at once and pause it."""
    return FlagAnswer.of(rollout.roll_back_flag(service, caller, name, why=given.why.strip()))


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
