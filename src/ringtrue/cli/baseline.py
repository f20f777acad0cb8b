"""``ringtrue baseline``: the standard that the gate holds a search to."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import BASELINE, BaselineFile, Json, command_group
from ringtrue.config import load_config
from ringtrue.errors import REGRESSION, InputError

if TYPE_CHECKING:
    from ringtrue.config import Config

app = command_group("Show or update the baseline file that gates compare with.")


@app.command("show")
def show_baseline(baseline: BaselineFile = BASELINE, json: Json = False) -> None:
    """Show what the baseline holds: version, retriever, golden set, measures, latency.

    Example: ringtrue baseline show
    """
    found = lib.verdict.read_baseline(baseline)
    names = (
        "version",
        "reason",
        "retriever",
        "config",
        "fingerprint",
        "golden",
        "corpus",
        "recorded_at",
        "machine",
        "metrics",
    )
    more = {"latency_ms": found.latency, "queries": len(found.per_query)}
    show.end_if_json(json, {"file": baseline, **show.pick(found, *names), **more})
    print(f"baseline {found.version} ({baseline})")
    facts = {
        "recorded": found.recorded_at,
        "retriever": found.retriever,
        **{name: value if isinstance(value, str) else json_text.dumps(value) for name, value in found.config.items() if value},
        "golden set": found.golden.version + (f", {found.golden.split} queries" if found.golden.split != "all" else ""),
        "queries": str(len(found.per_query)) if found.per_query else "no scores per query: mode statistical needs them",
        "machine": found.machine,
        "reason": found.reason,
    }
    for name, value in facts.items():
        if value:
            print(f"  {name}: {value}")
    print()
    rows = [[name, value] for name, value in found.metrics.items()]
    rows += [[f"{name} (ms)", show.number(value, 1)] for name, value in found.latency.items()]
    show.table(["measure", "value"], rows)


@app.command()
def update(
    run: Annotated[Path | None, typer.Option(help="The run, a folder or name; default: newest in .ringtrue/runs.")] = None,
    baseline: BaselineFile = BASELINE,
    force: Annotated[bool, typer.Option("--force", help="Take a worse run; needs --reason.")] = False,
    reason: Annotated[str, typer.Option(help="Why a worse run is right; kept in the file.")] = "",
    version: Annotated[
        str | None, typer.Option(help="The new version; default: next minor, or patch if nothing moved.")
    ] = None,
    json: Json = False,
) -> None:
    """Take a run as the new standard, after showing what moves. A worse run is refused (exit 1) without --force --reason.

    Example: ringtrue baseline update --run runs/today
    Example: ringtrue baseline update --run runs/today --force --reason "smaller model, half the cost"
    """
    if force and not reason.strip():
        raise InputError('--force needs a reason that others can read later; add --reason "…"')
    config = load_config()
    policy = lib.verdict.Policy.configured(config)
    folder = run or lib.run.newest_run()
    evaluation = lib.run.open_run(folder)
    if run is None:
        _check_golden(evaluation, config)
    whole, _ = lib.verdict.with_measures(evaluation, policy.measures)
    old = lib.verdict.read_baseline(baseline) if baseline.is_file() else None
    taken = lib.verdict.baseline_of(whole)
    moves = lib.verdict.movements(old, taken)
    note = "" if old is None else lib.verdict.pairing_note(old, taken)
    against = lib.verdict.objections(evaluation, old, policy)
    accepted = force or not against
    new = old.version if old is not None else None
    if accepted:
        new = version or ("1.0.0" if old is None else lib.verdict.next_version(old.version, moved=lib.verdict.has_moved(moves)))
        lib.verdict.write_baseline(lib.verdict.baseline_of(whole, version=new, reason=reason.strip()), baseline)
    if json:
        show.as_json(
            {
                "updated": accepted, "file": baseline, "run_dir": folder, "version": new,
                "previous": None if old is None else old.version, "objections": list(against),
                "notes": [note] if note else [],
                "measures": {move.measure: {"old": move.old, "new": move.new, "diff": move.change} for move in moves},
            }
        )  # fmt: skip
    else:
        _print_update(moves, against, old=old, new=new, file=baseline, folder=folder, accepted=accepted)
        show.notes(filter(None, [note]))
    if not accepted:
        raise typer.Exit(REGRESSION)


def _check_golden(evaluation: lib.run.Evaluation, config: Config) -> None:
    """Refuse a run that nobody named if it measured another golden set than ``[eval]`` names."""
    wanted = config.commands.get("eval", {}).get("golden")
    options = evaluation.setup.arguments
    measured = options[options.index("--golden") + 1] if "--golden" in options else wanted
    if wanted and measured and Path(wanted).resolve() != Path(measured).resolve():
        raise InputError(
            f"the newest run, {evaluation.run_dir}, measured {measured}, but [eval] golden in {config.file} is {wanted}; "
            f"evaluate that first, or name the run: --run {evaluation.run_dir}"
        )


def _print_update(
    moves: tuple[lib.verdict.BaselineMovement, ...],
    against: tuple[str, ...],
    *,
    old: lib.verdict.Baseline | None,
    new: str | None,
    file: Path,
    folder: Path,
    accepted: bool,
) -> None:
    if accepted:
        before = "recorded" if old is None else f"{old.version} →"
        print(f"{file}: baseline {before} {new}, from {folder}")
    else:
        than = "" if old is None else f" than baseline {old.version}"
        print(f"REFUSED: {folder} is no better standard{than}; {file} stays as it is")
    rows = []
    for move in moves:
        digits = 1 if move.measure in ("p50", "p95", "p99") else 4
        values = [show.number(value, digits) for value in (move.old, move.new)]
        rows.append([move.measure, *values, show.signed(move.change, digits)])
    print()
    show.table(["measure", "old", "new", "Δ"], rows)
    if against:
        print("\naccepted in spite of:" if accepted else "\nagainst it:")
        for text in against:
            print(f"  {text}")
    if not accepted:
        print('\nTo take it all the same: add --force --reason "…". The reason stays in the file.')
