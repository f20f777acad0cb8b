"""``ringtrue flag``: which feature reaches whom, and whether it may go on."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import StoreOptions, Who, command_group, has_store, person, utc_now
from ringtrue.errors import OK, REGRESSION, UNDECIDED, InputError

app = command_group("Roll features out in stages, guarded by evidence.")
Flagged = Annotated[str, typer.Argument(metavar="NAME", help="The feature, like new-ranking.")]


@app.command("set")
def set_flag(
    *,
    name: Flagged,
    rollout: Annotated[float | None, typer.Option(help="Percentage of users who get the feature.")] = None,
    state: Annotated[str | None, typer.Option(help="running, paused, graduated or rejected.")] = None,
    shadow: Annotated[
        bool | None,
        typer.Option("--shadow/--no-shadow", help="Run only beside production, unseen by users.", show_default=False),
    ] = None,
    min_samples: Annotated[int | None, typer.Option(help="Queries needed for a decision.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Improvement needed for graduation.")] = None,
    measure: Annotated[str | None, typer.Option(help="Measure of the improvement; default: RR@10.")] = None,
    stage_hours: Annotated[float | None, typer.Option(help="Minimum hours per stage; default: 24.")] = None,
    description: Annotated[str | None, typer.Option(help="What the feature does.")] = None,
    why: Annotated[str, typer.Option(help="The reason, for the audit trail.")] = "",
    who: Who = None,
    options: StoreOptions,
) -> None:
    """Create or change a flag. A new flag is off for everybody.

    RINGTRUE_FLAG_MULTI_VECTOR=on, off or a percentage overrides the store in that environment.

    Example: ringtrue flag set new-ranking --rollout 5 --why "first users"
    Example: ringtrue flag set new-ranking --min-samples 300 --threshold 0.02
    """
    if stage_hours is not None and stage_hours < 0:
        raise InputError(f"--stage-hours {stage_hours:g} is not a time; write hours from 0")
    facts = _given(measure=None if measure is None else str(lib.measures.Measure.parse(measure)), stage_hours=stage_hours)
    changes = _given(rollout=rollout, state=state, shadow=shadow, min_samples=min_samples, description=description)
    changes |= _given(graduation_threshold=threshold)
    with options.open() as opened:
        old = opened.flag(name, project=options.project)
        if facts:
            changes["metadata"] = {**(old.metadata if old is not None else {}), **facts}
        flag = lib.rollout.change_flag(
            opened, name, who=person(who), now=utc_now(), why=why, project=options.project, **changes
        )
    before = f" (was {old.rollout:g} %, {old.state})" if old is not None else ""
    said = f"{name}: {flag.rollout:g} %, {flag.state}, shadow {'on' if flag.shadow else 'off'}{before}"
    show.result(options.json, {"flag": flag, "before": old}, said, notes=_override(name))


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


@app.command("list")
def list_flags(
    *,
    audit: Annotated[str | None, typer.Option(metavar="NAME", help="Show the history of this flag, newest first.")] = None,
    options: StoreOptions,
) -> None:
    """List the flags and what the environment overrides.

    Example: ringtrue flag list
    Example: ringtrue flag list --audit new-ranking
    """
    forced = lib.rollout.overrides()
    flags: list[lib.store.Flag] = []
    trail: list[lib.store.AuditEntry] = []
    if audit is not None or has_store(options.store):  # looking makes no store
        with options.existing() as opened:
            if audit is not None:
                lib.rollout.existing_flag(opened, audit, project=options.project)
                trail = opened.audit(project=options.project, subject=audit)
            flags = opened.flags(project=options.project)
    known = {flag.name for flag in flags}
    shown = [*flags, *lib.rollout.only_forced(flags, forced, project=options.project)]
    more = {flag.name: {"preset": flag.name not in known, "override": forced.get(flag.name)} for flag in shown}
    listed = {flag.name: {**show.plain(flag), **more[flag.name]} for flag in shown}
    rows: list[list[object]] = []
    for flag in shown:
        state, shadow = flag.state if flag.name in known else "not set", "on" if flag.shadow else "off"
        share = f"{flag.rollout:g} %" + (f" (environment: {forced[flag.name]:g} %)" if flag.name in forced else "")
        rows.append([flag.name, state, shadow, share, flag.min_samples, f"{flag.graduation_threshold:g}"])
    table = show.Table(("flag", "state", "shadow", "rollout", "min samples", "threshold"), rows, 3)
    if audit is not None:
        changes = [[entry.at, entry.who, _change(entry.detail), entry.detail.get("why", "")] for entry in trail]
        table = show.Table(("at", "who", "change", "why"), changes, 4)
    missing = f"project '{options.project}' has no flag; create one: ringtrue flag set NAME"
    show.result(
        options.json,
        {"flags": listed, **({"audit": trail} if audit is not None else {})},
        table,
        notes=[missing] * (audit is None and not shown),
    )


@app.command()
def graduate(
    *,
    name: Annotated[str | None, typer.Argument(help="The feature.")] = None,
    everyone: Annotated[
        bool, typer.Option("--all", help="All flags that are running or paused; for use from a timer.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would happen, without changing anything.")] = False,
    breach: Annotated[
        list[str] | None, typer.Option(help="Roll back because of this problem, found by your own monitoring.")
    ] = None,
    who: Who = None,
    options: StoreOptions,
) -> None:
    """Move a feature one stage on if the evidence allows it, roll it back if a guardrail is broken, or say why it waits.

    Exit code 0: advanced or finished; 1: rolled back or rejected; 3: waiting. You can run it as often as you like.

    Example: ringtrue flag graduate new-ranking --dry-run
    Example: ringtrue flag graduate --all
    """
    if (name is None) == (not everyone):
        raise InputError("name one flag, or use --all")
    if breach and name is None:
        raise InputError("--breach is about one flag; name it")
    now, found = utc_now(), tuple(breach or ())

    def decided(store: lib.store.Store, one: str) -> lib.rollout.Decision:
        if not dry_run:
            return lib.rollout.step(store, one, now=now, who=person(who), breaches=found, project=options.project)
        flag = lib.rollout.existing_flag(store, one, project=options.project)
        return lib.rollout.decide(flag, lib.rollout.gather(store, flag, now=now, breaches=found), now)

    with options.existing() as opened:
        flags = opened.flags(project=options.project)
        names = [name] if name is not None else [flag.name for flag in flags if flag.state in ("running", "paused")]
        decisions = [decided(opened, one) for one in names]
    actions = {decision.action for decision in decisions}
    show.result(
        options.json,
        {"decisions": {decision.before.name: _facts(decision) for decision in decisions}, "dry_run": dry_run},
        "\n\n".join(map(lib.rollout.explain, decisions)),
        notes=[] if decisions else ["no flag is running"],
        code=REGRESSION if actions & {"rollback", "reject"} else UNDECIDED if "wait" in actions else OK,
    )


@app.command()
def rollback(
    *,
    name: Flagged,
    why: Annotated[str, typer.Option(help="The reason, for the audit trail.")],
    who: Who = None,
    options: StoreOptions,
) -> None:
    """Turn a feature off for everybody immediately and pause it.

    Example: ringtrue flag rollback new-ranking --why "complaints about missing bookings"
    """
    if not why.strip():
        raise InputError('--why is empty; give a reason for the audit trail, like --why "complaints"')
    with options.existing() as opened:
        flag = lib.rollout.roll_back(opened, name, now=utc_now(), who=person(who), why=why.strip(), project=options.project)
    said = f"{name}: 0 %, paused; resume with `ringtrue flag set {name} --state running`"
    show.result(options.json, {"flag": flag}, said, notes=_override(name))


def _facts(decision: lib.rollout.Decision) -> dict[str, Any]:
    return {
        **show.pick(decision, "action", "why", "breaches"),
        **show.pick(decision.flag, "rollout", "state"),
        "before": show.pick(decision.before, "rollout", "state"),
        "checks": [show.pick(check, "name", "holds", "says") for check in decision.checks],
        "page": lib.rollout.explain(decision),
    }


def _change(detail: Any) -> str:
    """Return in a few words what an entry of the audit trail changed."""
    before, after = detail.get("before") or {}, detail.get("after") or {}
    before, after = ({**side, **side.get("metadata", {})} for side in (before, after))
    changed = [field for field in after if before.get(field) != after[field] and field not in ("metadata", "stage_since")]
    words = [f"{field} {before.get(field, '—')} → {after[field]}" for field in changed]
    return ", ".join(words if before else [f"made at {after.get('rollout', 0):g} %"])


def _override(name: str) -> list[str]:
    return [
        f"the environment of this shell sets {name} to {share:g} %, which overrides the store here"
        for forced, share in lib.rollout.overrides().items()
        if forced == name
    ]
