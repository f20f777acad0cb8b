"""``ringtrue demo``: the main job in one go on shipped data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ringtrue.golden import Report
    from ringtrue.measures import Scores
    from ringtrue.records import GoldenSet, Run

MEASURES = ("nDCG@5", "R@5", "P@5", "RR", "Success@1", "Judged@5")
RUNS = ("keyword", "boosted")


def demo(json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Validate the shipped hotel set, score two shipped runs against it and show where their rankings differ.

    Example: ringtrue demo
    """
    from ringtrue.cli import show
    from ringtrue.cli.diff import differences
    from ringtrue.golden import load, locate, validate_file
    from ringtrue.measures import score

    place = locate("hotel")
    report, golden = validate_file(place), load("hotel")
    runs = {name: _run(place, name) for name in RUNS}
    scores = {name: score(run, golden, MEASURES) for name, run in runs.items()}
    found, _ = differences(runs["keyword"], runs["boosted"], qrels="hotel", k=5)
    if json:
        record = {name: {"aggregate": values.aggregate, "notes": values.counted.notes()} for name, values in scores.items()}
        show.as_json({"golden": golden.id, "problems": report.problems, "runs": record, "differences": found})
        return
    _tell(golden, report, scores)
    from ringtrue.cli.diff import print_differences

    print("\n3. Where do the two rankings differ?\n")
    print_differences(found, k=5, limit=8)
    _conclude(golden, scores)


def _run(place: Path, name: str) -> Run:
    from ringtrue.formats import read_run

    return read_run(place / "runs" / f"{name}.run")


def _tell(golden: GoldenSet, report: Report, scores: dict[str, Scores]) -> None:
    from ringtrue.cli import show
    from ringtrue.cli.golden import print_report

    print("1. Is the golden set sound?\n")
    print_report(golden.id, report)
    print("\n2. How good are the two searches?\n")
    rows = []
    for measure in MEASURES:
        before, after = (scores[name][measure] for name in RUNS)
        rows.append([measure, show.number(before), show.number(after), f"{after - before:+.4f}"])
    show.table(["measure", *RUNS, "difference"], rows)
    counted = scores[RUNS[0]].counted
    print(f"\n{counted.queries} queries; relevant means grade {counted.rel} or more; nDCG uses linear gain, as trec_eval.")
    for name, values in scores.items():
        for remark in values.counted.notes():
            print(f"{name}: {remark}")
    print("\nnDCG@5 by kind of question:\n")
    slices = {name: values.by("query_type", "nDCG@5") for name, values in scores.items()}
    show.table(
        ["kind", "queries", *RUNS],
        [
            [kind, str(slices[RUNS[0]][kind].count), *(show.number(slices[name][kind].mean) for name in RUNS)]
            for kind in slices[RUNS[0]]
        ],
    )


def _conclude(golden: GoldenSet, scores: dict[str, Scores]) -> None:
    before, after = scores["keyword"], scores["boosted"]
    wins = int((after.of("nDCG@5") > before.of("nDCG@5")).sum())
    losses = int((after.of("nDCG@5") < before.of("nDCG@5")).sum())
    moved = after["nDCG@5"] - before["nDCG@5"]
    kinds = before.by("query_type", "nDCG@5")
    weakest = min(kinds, key=lambda kind: kinds[kind].mean)
    worst, value = before.worst("nDCG@5", count=1)[0]
    direction = "raised" if moved > 0 else "lowered"
    print(
        f"\nIn plain words: plain keyword search finds {before['R@5']:.0%} of the relevant documents in the first five. "
        f"Letting titles and tags\ncount more {direction} nDCG@5 by {abs(moved):.3f}: better for {wins} of "
        f"{before.counted.queries} questions, worse for {losses}, the same for {before.counted.queries - wins - losses}.\n"
        f"The weakest kind of question is {weakest} ({kinds[weakest].mean:.2f}), the worst single one {worst} ({value:.2f}): "
        f"“{golden.query(worst).text}”"
    )
    print(
        "\nWhere to look next:\n"
        f"  ringtrue golden show hotel --query {worst}      that question with its judged documents\n"
        "  ringtrue golden plan hotel                   what differences a set of this size can detect\n"
        "  ringtrue score QRELS RUN nDCG@10 R@100 -q    your own run against your own judgments\n"
        "  ringtrue diff BEFORE.run AFTER.run           how a change moved your rankings"
    )
