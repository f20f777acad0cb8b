"""``ringtrue sweep`` and ``ringtrue learn``: try settings of a search, and confirm the best on queries that had no say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.experiment import FILE
from ringtrue.cli.options import Json, utc_now
from ringtrue.cli.search import DEFAULT_FOLDER, asks_others, check_judged, opened, progress_bar
from ringtrue.config import cache_folder
from ringtrue.errors import OK, REGRESSION, UNDECIDED

JOURNALS = Path(".ringtrue/sweeps")
CODES = {"confirmed": OK, "baseline": OK, "worse": REGRESSION, "not enough evidence": UNDECIDED}
_WIDTH = 40
"""Characters of the axis of effects."""


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
    """Try many settings of a search and confirm the best one. Trials use the tuning queries only.

    Exit code 0: confirmed, or nothing beats the baseline; 1: worse on the held-out queries; 3: not enough evidence. A sweep
    that was stopped goes on when it is started again.

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
        print_sweep(found, limit=None if show_all else 10)
        if ids:
            print(f"\n{ids[0]} to {ids[-1]} written to {file}")
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


def print_sweep(found: lib.experiment.Sweep, *, limit: int | None) -> None:
    """Print trials, effects, both parts, and the verdict last, where the eye rests."""
    names = [one.name for one in found.space.parameters]
    rows = [[one.number, *(str(one.values[name]) for name in names), one.value] for one in found.trials[:limit]]
    title = f"{show.counted(len(found.trials), 'trial')} on tuning queries, best first"
    show.table(["trial", *names, found.measure], rows, title=title)
    show.more(len(found.trials) - len(rows), "--all lists them")
    for name, steps in lib.experiment.effects(found).items():
        if len(steps) > 1:
            print(f"\n{name}: mean {found.measure} over the trials at each value, with what chance makes of it (95 %)")
            _print_effects(steps)
    told, held = found.tuning, found.held_out
    print()
    sides: dict[str, lib.experiment.Tuning | lib.experiment.HeldOut] = {"tuning": told} | (
        {} if held is None else {"held out": held}
    )
    shown = [_side(name, side) for name, side in sides.items()]
    heads = ["queries", "n", "baseline", "best", "Δ", "p", "p corrected"]
    if any(side.undefined.baseline or side.undefined.best for side in sides.values()):
        heads.append("undefined")
        shown = [
            [*row, f"{side.undefined.baseline} → {side.undefined.best}"]
            for row, side in zip(shown, sides.values(), strict=True)
        ]
    show.table(heads, shown)
    print(f"\nbaseline: {_told(found.baseline.retriever, found.baseline.chunks)}")
    if found.best is not None:
        print(f"best:     {_told(found.best.point.retriever, found.best.point.chunks)}")
    print(found.sentence)
    _notes(found)


def _side(name: str, side: lib.experiment.Tuning | lib.experiment.HeldOut) -> list[object]:
    means = [side.baseline, side.best, show.signed(side.diff)]
    return [name, side.n, *means, show.p_value(side.p), show.p_value(side.p_corrected)]


def _notes(found: lib.experiment.Sweep) -> None:
    told, held, over = found.tuning, found.held_out, found.overfitting
    if held is not None:
        show.note(
            f"the p on tuning queries is corrected for the {told.tests} settings that were tried (Bonferroni); the held-out "
            "queries were asked once, for one test"
        )
        show.note(f"this was look {held.looks} at the held-out part; each look makes it a little less held out")
    if over is not None and over.flagged:
        show.note(
            f"tuned to the tuning queries: a gain of {over.tuning_gain:+.4f} there, {over.held_out_gain:+.4f} on the others, "
            f"which chance explains with p = {over.p:.2g} only"
        )
    for one in found.impossible[:3]:
        values = ", ".join(f"{name}={value}" for name, value in one.point.values.items())
        show.note(f"{values} was left out: {one.reason}")
    if len(found.impossible) > 3:
        show.note(f"{len(found.impossible) - 3} more combinations were left out; --json lists them")
    show.notes(found.notes)


def _told(retriever: str, chunks: str | None) -> str:
    return retriever if chunks is None else f"{retriever} over {chunks}"


def _print_effects(steps: Sequence[lib.experiment.Effect]) -> None:
    """Dots with their intervals on one axis, whose ends are written below: no length stands for a value."""
    ends = [value for step in steps for value in (step.mean, step.low, step.high) if math.isfinite(value)]
    low, high = min(ends), max(ends)
    width = max(len(step.label) for step in steps)
    for step in steps:
        print(f"  {step.label.rjust(width)}  {step.mean:.4f}  {_dot(step, low, high)}".rstrip())
    if high > low:
        print(f"  {' ' * width}          {f'{low:.4f}':<{_WIDTH - 6}}{high:.4f}")


def _dot(step: lib.experiment.Effect, low: float, high: float) -> str:
    def place(value: float) -> int:
        return 0 if high == low else round((value - low) / (high - low) * (_WIDTH - 1))

    line = [" "] * _WIDTH
    if math.isfinite(step.low):
        left, right = place(step.low), place(step.high)
        line[left : right + 1] = "─" * (right - left + 1)
        line[left], line[right] = "├", "┤"
    line[place(step.mean)] = "●"
    return "".join(line)


def learn_command(
    golden: Annotated[str, typer.Argument(help="A golden set with judgments: a shipped name, a file or a BEIR folder.")],
    channels: Annotated[list[str] | None, typer.Option("--channel", "-c", help="A retriever; default: bm25 and dense.")] = None,
    folder: Annotated[Path, typer.Option("--in", help="Folder made by ringtrue ingest.")] = DEFAULT_FOLDER,
    held_out: Annotated[float, typer.Option(help="Share of the queries kept for confirmation.")] = 0.3,
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    json: Json = False,
) -> None:
    """Learn channel weights and confirm them on held-out queries.

    Example: ringtrue ingest hotel && ringtrue learn hotel
    """
    from ringtrue.retrieve.learn import MEASURE, answers_of, learn, reached

    names = channels or ["bm25", "dense"]
    whole = lib.golden.load(golden)
    tuning, rest = lib.golden.split(whole, held_out=held_out, seed=seed)
    collection = opened(folder)
    check_judged(whole, collection, certain=not any(map(asks_others, names)))
    answers = answers_of(names, collection, whole)
    learned = learn(names, answers, tuning)
    sides = {"tuning": tuning, "held_out": rest}
    parts = {
        side: {query.query_id: answers[query.query_id] for query in part.queries if query.query_id in answers}
        for side, part in sides.items()
    }
    even = [1 / len(names)] * len(names)
    rows = {"rrf": None, "equal weights": even, "learned": learned.weights}
    values = {name: {side: reached(parts[side], sides[side], weights) for side in sides} for name, weights in rows.items()}
    better = values["learned"]["held_out"] >= values["rrf"]["held_out"]
    show.end_if_json(
        json, {"expression": str(learned.expression), "measure": MEASURE, "values": values, "not_worse_than_rrf": better}
    )
    table = [(name, value["tuning"], value["held_out"]) for name, value in values.items()]
    counts = [f"{side.replace('_', ' ')} ({show.counted(len(part), 'query')})" for side, part in parts.items()]
    show.table([MEASURE, *counts], table)
    print(f"\nlearned: {learned.expression}")
    if better:
        print(
            "On the held-out queries it is not worse than RRF. A difference this small may be chance; compare before you ship."
        )
    else:
        print("On the held-out queries it is worse than RRF: keep RRF or the default hybrid.")
