"""``ringtrue demo``: the main job in one go on shipped data: ingest, evaluate, compare, gate, report."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.eval import record
from ringtrue.cli.options import Json, utc_now
from ringtrue.cli.search import progress_bar

RETRIEVERS = ("bm25", "dense", "hybrid")
SHOWN = ("nDCG@10", "nDCG@5", "R@5", "P@5", "RR")
FOLDER = Path("ringtrue-demo")


def demo(
    folder: Annotated[Path, typer.Option("--out", "-o", help="Folder for documents, runs and the report.")] = FOLDER,
    json: Json = False,
) -> None:
    """Evaluate, compare, gate and report on sample data. Ingests the hotel set and evaluates three searches.

    Everything it writes lies in one folder; a second run takes what did not change from there and from the cache.

    Example: ringtrue demo
    """
    golden = lib.golden.load("hotel")
    baseline = lib.verdict.read_baseline(lib.golden.locate("hotel") / "runs" / "baseline.json")
    began = time.monotonic()
    collection = _ingested(golden, folder / "documents", quiet=json)
    ingesting = time.monotonic() - began
    found: dict[str, lib.run.Evaluation] = {}
    for name in RETRIEVERS:
        made = lib.run.evaluate(name, golden, collection=collection, components=name == "hybrid")
        found[name] = lib.run.save(made, folder / "runs" / name)
    now = utc_now().isoformat(timespec="seconds")
    # The shipped baseline was recorded on another machine: its latency is not a yardstick here, the ceilings are.
    policy = lib.verdict.Policy(latency_increase=math.inf)
    report = lib.report.report_on(
        found["hybrid"], made_at=now, other=found["bm25"], baseline=baseline, policy=policy, title="The hotel demo"
    )
    (folder / "report.html").write_text(lib.report.html(report), encoding="utf-8")
    (folder / "report.md").write_text(lib.report.markdown(report), encoding="utf-8")
    refused = lib.verdict.gate(found["dense"], policy, baseline=baseline)
    assert report.comparison is not None
    assert report.verdict is not None
    if json:
        _as_json(folder, found, report.comparison, report.verdict, refused)
        return
    _tell(golden, collection, ingesting, found, report)
    _judge(golden, report, report.comparison, report.verdict, refused)
    _conclude(folder, golden, found["hybrid"], report)


def _ingested(golden: lib.records.GoldenSet, folder: Path, *, quiet: bool) -> lib.retrieve.Collection:
    collection = lib.retrieve.Collection.create(folder)
    collection.ingest(golden.documents, remove_missing=True)
    for index in lib.retrieve.indexes_of(lib.retrieve.build("hybrid", collection)):
        with progress_bar(f"indexing {index.folder.name.split('-')[0]}", 0 if quiet else index.pending()) as step:
            index.ready(progress=step)
    return collection


def _tell(
    golden: lib.records.GoldenSet,
    collection: lib.retrieve.Collection,
    ingesting: float,
    found: dict[str, lib.run.Evaluation],
    report: lib.report.Report,
) -> None:
    print(f"1. Ingest: {len(collection)} documents of a seaside hotel, cut, indexed and embedded in {ingesting:.1f} s.")
    print(f"   The set asks {len(golden.queries)} questions about them; questions and judgments were written for this project.")
    cached = " (from the cache: nothing changed since the last time)" if all(one.cached for one in found.values()) else ""
    print(f"\n2. How good are three searches?{cached}\n")
    rows = []
    for measure in SHOWN:
        best = max(one.metrics[measure] for one in found.values())
        marks = {name: " *" if one.metrics[measure] == best else "  " for name, one in found.items()}
        rows.append([measure, *(show.number(one.metrics[measure], 3) + marks[name] for name, one in found.items())])
    rows.append(["p95 latency", *(f"{lib.report.milliseconds(one.latency.p95)}  " for one in found.values())])
    show.table(["measure", *(f"{name}  " for name in found)], rows)
    print("\n   * the best of the three; more is better, 1 is perfect.")
    print("\n   What each part of the hybrid is worth, from the same lists (nDCG@10):\n")
    parts = [part for part in lib.report.component_lines(report) if part.kind != "without"]
    rows = []
    for part in parts:
        without = lib.report.signed(part.without.mean, 3) if part.without else ""
        rows.append([part.label, show.number(part.values["nDCG@10"], 3), without])
    show.table(["part", "nDCG@10", "without it"], rows)


def _judge(
    golden: lib.records.GoldenSet,
    report: lib.report.Report,
    comparison: lib.verdict.Comparison,
    verdict: lib.verdict.Verdict,
    refused: lib.verdict.Verdict,
) -> None:
    one = comparison.measures[comparison.primary]
    print(f"\n3. Is the hybrid better than bm25 alone? {comparison.verdict.upper()}.")
    print(f"   {one.measure} {one.a:.3f} → {one.b:.3f}, by {one.diff:+.3f} (95 % interval {one.low:+.3f} to {one.high:+.3f});")
    print(f"   better for {one.wins} questions, the same for {one.ties}, worse for {one.losses}; p = {one.p_adjusted:.2g}.")
    if comparison.latency is not None:
        print(f"   It costs {comparison.latency.mean_diff:+.1f} ms a question.")
    passed = sum(check.status in ("pass", "degraded") for check in verdict.checks)
    print(f"\n4. May it ship? The gate says {verdict.word.upper()}: {passed} of {len(verdict.checks)} checks hold")
    print(f"   against {report.baseline.name if report.baseline else 'its floors'}, exit code {verdict.exit_code}.")
    dense = f"   And a change back to dense alone? {refused.word.upper()}, exit code {refused.exit_code}:"
    reasons, against = ([f"   - {check.message}" for check in one.failures] for one in (verdict, refused))
    print("\n".join((*reasons, dense, *against[:3])))
    guilty = next((check.queries for check in refused.failures if check.queries), ())
    if guilty:
        print(f"   The first guilty question: {guilty[0]} “{golden.query(guilty[0]).text}”")
    show.notes(check.message for check in verdict.checks if check.status == "advisory")


def _conclude(folder: Path, golden: lib.records.GoldenSet, hybrid: lib.run.Evaluation, report: lib.report.Report) -> None:
    worst, value = hybrid.scores.worst("nDCG@10", count=1)[0]
    first, ten = (f"{hybrid.metrics[name]:.0%}" for name in ("R@5", "R@10"))
    print(
        f"\nIn plain words: the hybrid puts {first} of the relevant documents into the first five hits and {ten} into the\n"
        f"first ten; {len(hybrid.losses)} are missing there, and the report says at which step each was lost. Its weakest\n"
        f"question is {worst} ({value:.2f}): “{golden.query(worst).text}”"
    )
    for number, advice in enumerate(report.recommendations, 1):
        print(f"Recommendation {number}: {advice.advice}")
    print(
        "\nWhere to look next:\n"
        f"  {folder / 'report.html'}                       open it in a browser: the verdict, every question, both rankings\n"
        f"  ringtrue compare {folder}/runs/bm25 {folder}/runs/hybrid   the whole comparison, test by test\n"
        f"  ringtrue search 'quiet room' --in {folder}/documents --explain   where every hit came from\n"
        "  ringtrue init                                    the same for your own search, with CI files"
    )


def _as_json(
    folder: Path,
    found: dict[str, lib.run.Evaluation],
    comparison: lib.verdict.Comparison,
    verdict: lib.verdict.Verdict,
    refused: lib.verdict.Verdict,
) -> None:
    def judged(one: lib.verdict.Verdict) -> dict[str, Any]:
        failures = [show.pick(check, "measure", "message", "queries") for check in one.failures]
        return {"verdict": one.word, "exit_code": one.exit_code, "failures": failures}

    one = comparison.measures[comparison.primary]
    runs = {name: record(evaluation) for name, evaluation in found.items()}
    told = {"verdict": comparison.verdict, **show.pick(one, "measure", "diff"), "ci": [one.low, one.high]}
    gates = {"gate": judged(verdict), "gate_of_dense": judged(refused)}
    show.as_json({"folder": folder, "runs": runs, "comparison": told, **gates, "report": folder / "report.html"})
