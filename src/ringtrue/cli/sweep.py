"""``ringtrue sweep``: try settings of a search, and confirm the best on queries that had no say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.experiment import FILE
from ringtrue.cli.options import Json, utc_now
from ringtrue.cli.search import opened, progress_bar
from ringtrue.config import cache_folder
from ringtrue.errors import OK, REGRESSION, UNDECIDED

JOURNALS = Path(".ringtrue/sweeps")
CODES = {"confirmed": OK, "baseline": OK, "worse": REGRESSION, "not enough evidence": UNDECIDED}


def sweep_command(
    golden: Annotated[str, typer.Option("--golden", "-g", help="A golden set: a file, a folder or a shipped name (hotel).")],
    retriever: Annotated[str, typer.Option("--retriever", "-r", help="Expression with parameters: 'rrf(bm25, dense, k={k})'.")],
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", help="Values to try: k=10,30,60 or w=0.1:0.9 or w=0:1:0.25 or k=1:500:log."),
    ] = None,
    chunk: Annotated[str | None, typer.Option(help="How to chunk documents: 'fixed(tokens={tokens}, overlap=25)'.")] = None,
    folder: Annotated[Path | None, typer.Option("--in", help="Folder made by ringtrue ingest; default: the set's own.")] = None,
    method: Annotated[str, typer.Option(help="grid (every combination), random, or model (Optuna).")] = "grid",
    trials: Annotated[
        int | None, typer.Option("--trials", "-n", min=1, help="Maximum number of trials; default: 20, grid: all.")
    ] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="Measure to optimise.")] = "nDCG@10",
    baseline: Annotated[str | None, typer.Option("--baseline", "-b", help="Retriever to beat; default: first listed.")] = None,
    held_out: Annotated[str | None, typer.Option(help="The held-out part, if the set is already a tuning part.")] = None,
    share: Annotated[float, typer.Option(help="Share of the queries to hold out.")] = 0.2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of random and model.")] = 0,
    alpha: Annotated[float, typer.Option(help="Significance level: the chance of a false confirmation.")] = 0.05,
    scope: Annotated[str | None, typer.Option(help="Search only documents with the query's value of this field.")] = None,
    allow: Annotated[list[str] | None, typer.Option(help="A precondition that is allowed to fail, such as cut-off.")] = None,
    track: Annotated[bool, typer.Option("--track", help="Record every trial as an experiment.")] = False,
    file: Annotated[Path, typer.Option("--file", "-f", help="The file of experiments for --track.")] = FILE,
    fresh: Annotated[bool, typer.Option("--fresh", help="Repeat every trial, even those of an interrupted sweep.")] = False,
    show_all: Annotated[bool, typer.Option("--all", help="List every trial, not only the ten best.")] = False,
    json: Json = False,
) -> None:
    """Try many settings of a search and confirm the best one.

    Trials use the tuning queries; held-out queries confirm the best. An interrupted sweep continues when you run it again. Exit
    code 0: confirmed, or nothing beats the baseline; 1: worse on the held-out queries; 3: not enough evidence.

    Example: ringtrue sweep --golden hotel --retriever "rrf(bm25(title={t}), dense, k={k})" --param t=1,3,5 --param k=10,60
    Example: ringtrue sweep -g hotel -r "weighted(bm25, dense, w=[{w}, 1])" -p w=0.1:10:log -b hybrid --method model --track
    Example: ringtrue sweep -g docs.yaml -r hybrid --chunk "fixed(tokens={tokens}, overlap=25)" -p tokens=128,256,512
    """
    space = lib.experiment.Space(retriever, tuple(lib.experiment.parameter(text) for text in param or ()), chunk)
    whole = lib.golden.load(golden)

    @cache  # asked for with the first trial: a connected system needs no documents of ours
    def variants() -> lib.experiment.Variants:
        own = lib.run.corpus_of(whole, cache_folder() / "corpora") if folder is None else opened(folder)
        return lib.experiment.Variants(own)

    now = utc_now()
    trying: dict[str, Any] = {"method": method, "trials": trials, "seed": seed, "fresh": fresh, "journal": JOURNALS}
    judging = {"measure": measure, "baseline": baseline, "alpha": alpha, "scope": scope, "allow": allow or ()}
    held: Any = share if held_out is None else lib.golden.load(held_out)
    ledger = lib.golden.ledger_beside(held_out or golden)
    confirming = {"held_out": held, "ledger": ledger, "when": now.isoformat(timespec="seconds")}
    with progress_bar("trying", 0 if json else lib.experiment.size(space, method, trials)) as step:
        found = lib.experiment.sweep(
            space, whole, lambda chunks: variants()(chunks), progress=step, **(trying | judging | confirming)
        )
    ids = _recorded(found, file, now) if track else []
    if json:
        show.as_json(record(found) | {"experiments": ids})
    else:
        print_sweep(found, limit=None if show_all else 10, ids=ids, file=file)
    raise typer.Exit(CODES[found.outcome])


def _recorded(found: lib.experiment.Sweep, file: Path, now: datetime) -> list[str]:
    """Record every trial as an experiment, and return their ids."""
    made = lib.experiment.tracked(found, on=now.date(), commit=lib.run.commit_of(Path.cwd(), beside=file))
    return [one.id for one in lib.experiment.ExperimentFile(file).add(made)]


def record(found: lib.experiment.Sweep) -> dict[str, Any]:
    """Return a sweep under the stable keys of ``--json``."""
    held = found.held_out
    return {
        "verdict": found.outcome,
        **show.pick(found, "sentence", "measure", "method", "seed"),
        "space": found.space.as_dict(),
        "best": None if found.best is None else _trial(found.best),
        "baseline": show.pick(found.baseline, "retriever", "chunks"),
        "tuning": found.tuning,
        "held_out": None
        if held is None
        else {
            **show.pick(held, "n", "baseline", "best", "diff", "p", "p_corrected", "looks"),
            "looks_at_other_versions": held.earlier,
            "winners_tested": held.confirmations,
            "undefined": held.undefined,
            "ci": [held.comparison.measures[found.measure].low, held.comparison.measures[found.measure].high],
            "verdict": held.comparison.verdict,
        },
        "overfitting": found.overfitting,
        "trials": [_trial(trial) for trial in found.trials],
        "impossible": [{"values": one.point.values, "reason": one.reason} for one in found.impossible],
        "effects": lib.experiment.effects(found),
        **show.pick(found, "searches", "golden", "corpus", "notes"),
    }


def _trial(trial: lib.experiment.Trial) -> dict[str, Any]:
    where = show.pick(trial.point, "retriever", "chunks")
    return {**show.pick(trial, "number", "values", "value", "reused"), **where}


def print_sweep(found: lib.experiment.Sweep, *, limit: int | None, ids: Sequence[str] = (), file: Path = FILE) -> None:
    """Print trials, effects, both parts, and the verdict last, where the eye rests."""
    names = [one.name for one in found.space.parameters]
    rows = [[one.number, *(str(one.values[name]) for name in names), one.value] for one in found.trials]
    title = f"{show.counted(len(found.trials), 'trial')} on tuning queries, best first"
    effects = [
        [name, step.label, step.mean, lib.report.span((step.low, step.high))]
        for name, steps in lib.experiment.effects(found).items()
        for step in steps
        if len(steps) > 1
    ]
    sides = [(name, side) for name, side in (("tuning", found.tuning), ("held out", found.held_out)) if side is not None]
    heads = ("queries", "n", "baseline", "best", "Δ", "p", "p corrected", "undefined")
    show.page(
        show.Table(("trial", *names, found.measure), rows, title=title, most=limit, how="--all lists them"),
        show.Table(("parameter", "value", f"mean {found.measure}", "95 % interval"), effects, 2),
        show.Table(heads, [_side(name, side) for name, side in sides]),
        f"\nbaseline: {_told(found.baseline.retriever, found.baseline.chunks)}",
        f"best:     {_told(found.best.point.retriever, found.best.point.chunks)}" if found.best is not None else "",
        found.sentence,
        f"\n{ids[0]} to {ids[-1]} written to {file}" if ids else "",
        notes=_notes(found),
    )


def _side(name: str, side: lib.experiment.Tuning | lib.experiment.HeldOut) -> list[object]:
    values = [side.baseline, side.best, show.signed(side.diff), show.p_value(side.p), show.p_value(side.p_corrected)]
    return [name, side.n, *values, f"{side.undefined.baseline} → {side.undefined.best}"]


def _notes(found: lib.experiment.Sweep) -> Iterator[str]:
    told, held, over = found.tuning, found.held_out, found.overfitting
    if held is not None:
        yield (
            f"the p on tuning queries is corrected for the {told.tests} settings that were tried (Bonferroni); the held-out "
            "queries were used for one test only"
        )
        yield f"this was look {held.looks} at the held-out part; each look makes it a little less held out"
    if over is not None and over.flagged:
        yield (
            f"overfitted to the tuning queries: a gain of {over.tuning_gain:+.4f} there and {over.held_out_gain:+.4f} on the "
            f"others; chance alone explains this with p = {over.p:.2g}"
        )
    for one in found.impossible[:3]:
        yield f"{', '.join(f'{name}={value}' for name, value in one.point.values.items())} was left out: {one.reason}"
    if len(found.impossible) > 3:
        yield f"{len(found.impossible) - 3} more combinations were left out; --json lists them"
    yield from found.notes


def _told(retriever: str, chunks: str | None) -> str:
    return retriever if chunks is None else f"{retriever} over {chunks}"
