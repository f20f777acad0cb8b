"""``ringtrue gate``: is a search still good enough to ship."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.eval import Asked, ResultOptions, evaluated, settled
from ringtrue.cli.options import BASELINE, BaselineFile, Json
from ringtrue.cli.search import opened
from ringtrue.config import load_config
from ringtrue.traffic import marked


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
    latency_increase: Annotated[float | None, typer.Option(help="p95 may grow by less than this share; inf: no rule.")] = None
    latency_slack: Annotated[float | None, typer.Option(help="Milliseconds by which p95 may always grow.")] = None
    slice_drop: Annotated[
        bool | None, typer.Option("--slice-drop/--no-slice-drop", help="Compare every slice with the baseline, too.")
    ] = None
    minimum_queries: Annotated[int | None, typer.Option(help="Fewest scored queries a verdict may rest on.")] = None
    slice_minimum: Annotated[int | None, typer.Option(help="Fewest queries of a slice compared.")] = None
    same_corpus: Annotated[
        bool | None, typer.Option("--same-corpus/--any-corpus", help="Whether the documents must be the baseline's.")
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

    Exit code 0: pass; 1: a check failed; 2: usage or bad input; 3: could not decide. The policy stands under [gate] in
    ringtrue.toml; what is evaluated is taken from [eval] there, unless it is given here. A run (--run) that is not of this
    search, these documents and this golden set proves nothing about them: exit code 3. The verdict goes to the store where
    there is one.

    Example: ringtrue gate --golden hotel --retriever hybrid
    Example: ringtrue gate --run runs/today --mode statistical --floor 'R@5=0.85' --report gate.md --report junit.xml
    Example: ringtrue gate --run runs/committed --retriever "connect('shop')" --watch 'search/*.py'
    """
    from ringtrue.cli.show_verdict import print_verdict, record

    policy = rules.policy()
    writers = {path: lib.report.report_writer(path) for path in report or ()}  # a wrong ending fails before hours of evaluating
    without = rules.require_baseline is False and _given(context, "require_baseline")
    before = None if without else lib.verdict.find_baseline(baseline, named=_given(context, "baseline"))
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
        evaluation = lib.run.save(evaluation, out or lib.run.new_run_folder(evaluation, datetime.now(UTC)))
    verdict = lib.verdict.gate(evaluation, policy, baseline=before)
    if evaluation.cached:
        notes.append(f"answers from the cache, recorded at {evaluation.setup.recorded_at}; --no-cache asks again")
    verdict = lib.verdict.with_checks(verdict, extra, notes=notes)
    if writers:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        told = lib.report.report_on(evaluation, made_at=now, baseline=before, verdict=verdict)
    for path, write in writers.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(write(told), encoding="utf-8")
    kept = result.add(place, evaluation, verdict)
    if json:
        show.as_json(record(verdict, evaluation, before, list(writers)) | {"stored": kept.run_id})
    else:
        print_verdict(verdict, evaluation, before, verbose=verbose)
        if kept.run_id is not None:
            print(f"stored: {kept.run_id}")
    kept.tell()
    if verdict.exit_code:
        raise typer.Exit(verdict.exit_code)


def _given(context: typer.Context, name: str) -> bool:
    """True for an option on the command line or in the environment; what a settings file says is a habit, not a request."""
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
