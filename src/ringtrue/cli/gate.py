"""``ringtrue gate``: is a search still good enough to ship."""

from __future__ import annotations

import json as json_text
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.eval import Asked, ResultOptions, evaluated, settled
from ringtrue.cli.options import BASELINE, BaselineFile, Json, command_group, utc_now
from ringtrue.cli.report import print_evaluation
from ringtrue.cli.search import opened
from ringtrue.config import load_config
from ringtrue.errors import OK, REGRESSION, InputError
from ringtrue.traffic import marked

if TYPE_CHECKING:
    from ringtrue.config import Config


@dataclass(frozen=True)
class PolicyOptions:
    """The rules that an option may set in place of ``[gate]``."""

    require_baseline: Annotated[
        bool | None,
        typer.Option(
            "--require-baseline/--no-baseline",
            help="Without a baseline: stay undecided, or decide by floors and ceilings alone.",
        ),
    ] = None
    mode: Annotated[str | None, typer.Option(help="relative (fail on any drop beyond --max-drop) or statistical.")] = None
    floor: Annotated[list[str] | None, typer.Option(help="A floor to add or change, R@5=0.8, or to remove, R@5=off.")] = None
    max_drop: Annotated[float | None, typer.Option(help="Largest relative drop allowed (relative mode); 0.05 is 5 %.")] = None
    drop_measures: Annotated[
        list[str] | None, typer.Option("--drop-measure", help="A measure to compare with the baseline.")
    ] = None
    min_effect: Annotated[float | None, typer.Option(help="Ignore drops smaller than this (statistical mode).")] = None
    alpha: Annotated[float | None, typer.Option(help="Significance level: the chance of a false alarm (statistical mode).")] = (
        None
    )
    latency_increase: Annotated[
        float | None, typer.Option(help="Largest relative increase of the p95 latency; inf turns the rule off.")
    ] = None
    latency_slack: Annotated[
        float | None, typer.Option(help="Increase of the p95 latency that is always allowed, in milliseconds.")
    ] = None
    slice_drop: Annotated[
        bool | None, typer.Option("--slice-drop/--no-slice-drop", help="Compare every slice with the baseline, too.")
    ] = None
    minimum_queries: Annotated[
        int | None, typer.Option(help="Minimum number of scored queries; with fewer, the gate is undecided.")
    ] = None
    slice_minimum: Annotated[int | None, typer.Option(help="Minimum number of queries for a slice to be compared.")] = None
    same_corpus: Annotated[
        bool | None, typer.Option("--same-corpus/--any-corpus", help="Whether to require the documents of the baseline.")
    ] = None

    def policy(self) -> lib.verdict.Policy:
        """Return the policy of ringtrue.toml with the given options in place of its settings; raises InputError."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "floor"}
        changed = {name: value for name, value in given.items() if value not in (None, [])}
        return lib.verdict.Policy.configured(load_config()).with_floors(self.floor or (), **changed)


def gate_command(
    *,
    context: typer.Context,
    run: Annotated[Path | None, typer.Option(help="Judge this run, a folder or a name, instead of evaluating.")] = None,
    asked: Asked,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder to write; .ringtrue/runs/… unless given.")] = None,
    baseline: BaselineFile = BASELINE,
    rules: PolicyOptions,
    report: Annotated[list[Path] | None, typer.Option(help="Write a report: .md .html .json .xml (JUnit) .sarif.")] = None,
    result: ResultOptions,
    verbose: Annotated[bool, typer.Option("--verbose", help="Also show informational checks and all failed queries.")] = False,
    json: Json = False,
) -> None:
    """Check a search against floors and its baseline, for CI. Never changes the baseline.

    Exit code 0: pass; 1: a check failed; 2: usage or bad input; 3: could not decide. The policy is under [gate] in
    ringtrue.toml; options that are not given come from [eval] there. A run (--run) of another search, other documents or
    another golden set proves nothing: exit code 3. If there is a store, the verdict is added to it.

    Example: ringtrue gate --golden hotel --retriever hybrid
    Example: ringtrue gate --run runs/today --mode statistical --floor 'R@5=0.85' --report gate.md --report junit.xml
    Example: ringtrue gate --run runs/committed --retriever "connect('shop')" --watch 'search/*.py'
    """

    policy = rules.policy()
    writers = {path: lib.report.report_writer(path) for path in report or ()}  # a wrong ending fails before hours of evaluating
    without = rules.require_baseline is False and is_given(context, "require_baseline")
    before = None if without else lib.verdict.find_baseline(baseline, named=is_given(context, "baseline"))
    asked = settled(asked, context)
    place = result.destination()
    extra: list[lib.verdict.Check] = []
    notes: list[str] = []
    if run is not None:
        evaluation = lib.run.open_run(run)
        extra, notes = committed(evaluation, asked)
    else:
        wanted = tuple(dict.fromkeys((*lib.run.usual_measures(asked.k), *policy.measures)))
        with marked("gate"):
            evaluation = evaluated(asked, measures=wanted, quiet=json)
        evaluation = lib.run.save(evaluation, out or lib.run.new_run_folder(evaluation, utc_now()))
    verdict = lib.verdict.gate(evaluation, policy, baseline=before)
    if evaluation.cached:
        notes.append(f"answers from the cache, recorded at {evaluation.setup.recorded_at}; --no-cache asks again")
    verdict = lib.verdict.with_checks(verdict, extra, notes=notes)
    told = lib.report.report_on(evaluation, made_at=utc_now().isoformat(timespec="seconds"), baseline=before, verdict=verdict)
    for path, write in writers.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(write(told), encoding="utf-8")
    stored = result.add(place, evaluation, verdict)  # before anything is printed: a pipe may be closed by then
    if not json:
        print_evaluation(told, verbose=verbose)
    show.result(
        json,
        record(verdict, evaluation, before, list(writers)) | {"stored": stored},
        f"\nrun: {evaluation.run_dir}" if evaluation.run_dir else "",
        f"stored: {stored}" if stored else "",
        code=verdict.exit_code,
    )


def is_given(context: typer.Context, name: str) -> bool:
    """Return True for an option on the command line or in the environment; a setting in a file is not a request."""
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")


def committed(evaluation: lib.run.Evaluation, asked: Asked) -> tuple[list[lib.verdict.Check], list[str]]:
    """Return what speaks against judging a run that was made earlier, and what could not be checked."""
    folder, search = asked.folder, None
    if asked.names_search:
        search = lib.run.subjects_named(
            asked.search(),
            golden=asked.golden,
            collection=None if folder is None else lambda: opened(folder),
            chunks=asked.chunk,
            route_by=asked.route_by,
            version=asked.version,
            watch=asked.watch or (),
        )
    golden = lib.golden.load(asked.golden) if asked.golden else None
    return lib.verdict.committed_checks(evaluation, search=search, golden=golden, place=asked.golden or "")


def record(
    verdict: lib.verdict.Verdict, evaluation: lib.run.Evaluation, baseline: lib.verdict.Baseline | None, reports: Sequence[Path]
) -> dict[str, Any]:
    """Return a verdict under the stable keys of ``--json``."""
    return {
        "verdict": verdict.word,
        "exit_code": verdict.exit_code,
        **show.pick(verdict, "failures", "checks", "name", "mode", "notes"),
        "baseline": None if baseline is None else show.pick(baseline, "version", "recorded_at", "retriever"),
        **show.pick(evaluation, "run_dir", "cached"),
        "golden": evaluation.setup.golden.version,
        "reports": reports,
    }


app = command_group("Show or update the baseline file that gates compare with.")


@app.command("show")
def show_baseline(baseline: BaselineFile = BASELINE, json: Json = False) -> None:
    """Show the baseline: version, retriever, golden set, measures, latency.

    Example: ringtrue baseline show
    """
    found = lib.verdict.read_baseline(baseline)
    more = {"latency_ms": found.latency, "queries": len(found.per_query)}
    made = show.pick(found, "version", "reason", "retriever", "config", "fingerprint", "golden", "corpus", "recorded_at")
    facts = {
        "recorded": found.recorded_at,
        "retriever": found.retriever,
        **{name: value if isinstance(value, str) else json_text.dumps(value) for name, value in found.config.items() if value},
        "golden set": found.golden.version + (f", {found.golden.split} queries" if found.golden.split != "all" else ""),
        "queries": str(len(found.per_query)) if found.per_query else "no scores per query: mode statistical needs them",
        "machine": found.machine,
        "reason": found.reason,
    }
    rows: list[list[object]] = [[name, value] for name, value in found.metrics.items()]
    rows += [[f"{name} (ms)", show.number(value, 1)] for name, value in found.latency.items()]
    show.result(
        json,
        {"file": baseline, **made, **show.pick(found, "machine", "metrics"), **more},
        f"baseline {found.version} ({baseline})",
        *(f"  {name}: {value}" for name, value in facts.items() if value),
        show.Table(("measure", "value"), rows),
    )


@app.command()
def update(
    run: Annotated[Path | None, typer.Option(help="The run, a folder or name; default: newest in .ringtrue/runs.")] = None,
    baseline: BaselineFile = BASELINE,
    force: Annotated[bool, typer.Option("--force", help="Accept a worse run; needs --reason.")] = False,
    reason: Annotated[str, typer.Option(help="Why the worse run is accepted; kept in the file.")] = "",
    version: Annotated[
        str | None, typer.Option(help="The new version; default: next minor, or patch if nothing moved.")
    ] = None,
    json: Json = False,
) -> None:
    """Make a run the new baseline and show what changes. A worse run is refused (exit 1) without --force and --reason.

    Example: ringtrue baseline update --run runs/today
    Example: ringtrue baseline update --run runs/today --force --reason "smaller model, half the cost"
    """
    if force and not reason.strip():
        raise InputError('--force needs a reason for the record; add --reason "…"')
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
    previous = None if old is None else old.version
    record = {"updated": accepted, "file": baseline, "run_dir": folder, "version": new, "previous": previous}
    record |= {"objections": list(against), "notes": [note] * bool(note), "measures": moves}
    before = "recorded" if previous is None else f"{previous} →"
    than = "" if previous is None else f" than baseline {previous}"
    said = f"REFUSED: {folder} is no better standard{than}; {baseline} stays as it is"
    show.result(
        json,
        record,
        f"{baseline}: baseline {before} {new}, from {folder}" if accepted else said,
        show.Table(("measure", "old", "new", "Δ"), [_movement(*move) for move in moves.items()]),
        ("\naccepted despite:" if accepted else "\nobjections:") if against else "",
        *(f"  {text}" for text in against),
        "" if accepted else '\nTo accept it anyway: add --force --reason "…". The reason is stored in the file.',
        notes=[note],
        code=OK if accepted else REGRESSION,
    )


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


def _movement(measure: str, move: lib.answers.Movement) -> list[str]:
    digits = 1 if measure in ("p50", "p95", "p99") else 4
    return [measure, show.number(move.old, digits), show.number(move.new, digits), show.signed(move.diff, digits)]
