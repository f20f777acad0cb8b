"""``ringtrue compare``: is one run better than another, and is that certain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.cli import show
from ringtrue.cli.eval import count_look
from ringtrue.cli.options import Json
from ringtrue.cli.score import judgments_in
from ringtrue.errors import UNDECIDED, InputError, nearest

if TYPE_CHECKING:
    from ringtrue.measures import Scores
    from ringtrue.records import GoldenSet, Qrels
    from ringtrue.run import Evaluation
    from ringtrue.verdict import Arm, ScoredRun


def compare_command(
    runs: Annotated[list[str], typer.Argument(help="Two or more run folders or names; or run files, with --golden.")],
    golden: Annotated[
        str | None,
        typer.Option("--golden", "--qrels", "-g", help="Score the runs against this golden set or file of judgments."),
    ] = None,
    measures: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help="Compare and decide by this measure, like nDCG@10; repeatable. By default, compare all that both runs have.",
        ),
    ] = None,
    primary: Annotated[str | None, typer.Option(help="The measure that decides (the first -m, else nDCG@10).")] = None,
    correction: Annotated[
        str | None,
        typer.Option(
            help="Let all measures decide, with this correction: holm (default for several -m), benjamini-hochberg or none."
        ),
    ] = None,
    by: Annotated[list[str] | None, typer.Option(help="Also per value of this query field.")] = None,
    alpha: Annotated[float, typer.Option(help="Significance level: chance of a winner between equal rankings.")] = 0.05,
    resamples: Annotated[int, typer.Option(help="Draws of the randomisation test and the bootstrap.")] = 10_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same answer.")] = 0,
    queries: Annotated[int, typer.Option(min=0, help="List the N queries that moved most.")] = 5,
    allow_different_sets: Annotated[bool, typer.Option("--allow-different-sets", help="Compare across golden sets.")] = False,
    tests: Annotated[bool, typer.Option("--tests", help="Also show other tests and what is detectable.")] = False,
    json: Json = False,
) -> None:
    """Tell whether later runs are better or worse than the first. Without enough evidence it says so.

    One measure decides (--primary); the others are informational. With several -m or --correction, several decide. Queries are
    paired by id; a query that one run lacks is ignored. Exit code 0 whatever the verdict, 3 if nothing can be decided. To fail
    a build on a regression, use ringtrue gate.

    Example: ringtrue compare runs/bm25 runs/hybrid --by query_type

    Example: ringtrue compare old.run new.run --qrels qrels.txt -m R@100
    """
    from ringtrue.cli.show_comparison import print_comparison, print_overview, record, remarks
    from ringtrue.verdict import ComparisonOptions, compare_all

    if len(runs) < 2:
        raise InputError(f"only one run is named ({runs[0]}); name two or more, the first is what the others are compared with")
    arms = _arms(runs, golden, measures or ())
    _check_fields(by or (), arms)
    options = ComparisonOptions(
        measures=measures or None,
        primary=primary,
        alpha=alpha,
        correction=correction,  # type: ignore[arg-type]  # compare_paired checks it and names the legal ones
        resamples=resamples,
        seed=seed,
        slices=tuple(by or ()),
        allow_different_sets=allow_different_sets,
    )
    found = compare_all(arms, options)
    pairs = list(zip(found, arms[1:], strict=True))
    if json:
        records = [record(one, arms[0], other, queries) for one, other in pairs]
        show.as_json(records[0] | ({"comparisons": records} if len(records) > 1 else {}))
    else:
        if len(found) > 1:
            print_overview(found)
        for one, other in pairs:
            if len(found) > 1:
                print(f"\n── {one.b} against {one.a} ──")
            print_comparison(one, arms[0], other, queries, tests=tests)
        for remark in dict.fromkeys(remark for one in found for remark in remarks(one)):
            show.note(remark)
    if all(one.measures[one.primary].n < 2 for one in found):
        raise typer.Exit(UNDECIDED)


# ── the runs ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _arms(runs: Sequence[str], golden: str | None, measures: Sequence[str]) -> list[Arm]:
    if runs.count("-") + (golden == "-") > 1:
        raise InputError("only one file can come from standard input; name files for the others")
    if golden is None:
        found: list[Arm] = [_opened(run, measures) for run in runs]
    else:
        judgments = judgments_in(golden)
        count_look(judgments, golden, who="ringtrue compare", what=" ".join(runs))
        found = [_scored(run, judgments, measures) for run in runs]
    names = [arm.name for arm in found]
    # Two runs of one retriever have one name; then what was typed tells them apart.
    return [
        replace(arm, name=f"{run}: {arm.name}") if names.count(arm.name) > 1 else arm  # type: ignore[type-var]  # both kinds are dataclasses
        for arm, run in zip(found, runs, strict=True)
    ]


def _opened(run: str, measures: Sequence[str]) -> Evaluation:
    """Return the evaluation in a folder, with measures that it did not score but holds the answers for."""
    from ringtrue.run import open_run
    from ringtrue.verdict import with_measures

    if run == "-" or (Path(run).is_file() and Path(run).name != "run.json"):
        raise InputError(f"{run}: is a run file, which has answers and no scores; add --golden with the judgments")
    return with_measures(open_run(run), measures)[0]


def _scored(run: str, judgments: Qrels | GoldenSet, measures: Sequence[str]) -> ScoredRun:
    """Return the scores of a run against judgments; queries that it lacks are absent, not 0."""
    from ringtrue.formats import read_run
    from ringtrue.measures import check_documents, score
    from ringtrue.records import GoldenSet
    from ringtrue.run import DEFAULT_MEASURES, Origin, open_run, run_folder
    from ringtrue.verdict import ScoredRun

    run = str(run_folder(run))
    answers = read_run(run)
    scores: Scores = score(answers, judgments, measures or DEFAULT_MEASURES, average_over="common")
    check_documents(answers, judgments, scores)
    origin = Origin.of(judgments) if isinstance(judgments, GoldenSet) else None
    if (Path(run) / "run.json").is_file():
        measured = open_run(run)
        return ScoredRun(measured.name, scores, measured.timings, measured.setup.machine, origin)
    return ScoredRun(Path(run).name, scores, golden=origin)


def _check_fields(fields: Sequence[str], arms: Sequence[Arm]) -> None:
    known = sorted({name for arm in arms for facts in arm.scores.facts.values() for name in facts})
    for name in fields:
        if name not in known:
            cure = f"did you mean {nearest(name, known)}?" if known else "score against a golden set that declares it"
            raise InputError(f"no query has the field '{name}'; {cure}")
