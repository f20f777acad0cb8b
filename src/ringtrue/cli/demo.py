"""``ringtrue demo``: the main job in one go on shipped data: ingest, evaluate, compare, gate, report."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.compare import sentence
from ringtrue.cli.eval import record
from ringtrue.cli.options import Json, utc_now
from ringtrue.cli.search import progress_bar

RETRIEVERS = ("bm25", "dense", "hybrid")
SHOWN = ("nDCG@10", "nDCG@5", "R@5", "P@5", "RR")
FOLDER = Path("ringtrue-demo")
NEXT = """
Where to look next:
  {0}/report.html                              open it in a browser: the verdict, every question, both rankings
  ringtrue compare {0}/runs/bm25 {0}/runs/hybrid   the whole comparison, test by test
  ringtrue search 'quiet room' --in {0}/documents --explain   where every hit came from
  ringtrue init                                    the same for your own search, with CI files"""


def demo(
    folder: Annotated[Path, typer.Option("--out", "-o", help="Folder for documents, runs and the report.")] = FOLDER,
    json: Json = False,
) -> None:
    """Evaluate, compare, gate and report on sample data.

    Ingests the hotel set and evaluates three searches. Everything is written to one folder; running it again reuses it.

    Example: ringtrue demo
    """
    golden = lib.golden.load("hotel")
    baseline = lib.verdict.read_baseline(lib.golden.locate("hotel") / "runs" / "baseline.json")
    collection, seconds = _ingested(golden, folder / "documents", quiet=json)
    found: dict[str, lib.run.Evaluation] = {}
    for name in RETRIEVERS:
        made = lib.run.evaluate(name, golden, collection=collection, components=name == "hybrid")
        found[name] = lib.run.save(made, folder / "runs" / name)
    # The shipped baseline was recorded on another machine: its latency is not a yardstick here, the ceilings are.
    policy = lib.verdict.Policy(latency_increase=math.inf)
    report = lib.report.report_on(
        found["hybrid"],
        made_at=utc_now().isoformat(),
        other=found["bm25"],
        baseline=baseline,
        policy=policy,
        title="The hotel demo",
    )
    (folder / "report.html").write_text(lib.report.html(report), encoding="utf-8")
    (folder / "report.md").write_text(lib.report.markdown(report), encoding="utf-8")
    refused = lib.verdict.gate(found["dense"], policy, baseline=baseline)
    comparison, verdict = report.comparison, report.verdict
    assert comparison is not None  # the report has another run
    assert verdict is not None  # and a baseline
    one = comparison.measures[comparison.primary]
    runs = {name: record(evaluation) for name, evaluation in found.items()}
    told = {"verdict": comparison.verdict, **show.pick(one, "measure", "diff"), "ci": [one.low, one.high]}
    gates = {"gate": _judged(verdict), "gate_of_dense": _judged(refused)}
    rows: list[list[object]] = [[measure, *(side.metrics[measure] for side in found.values())] for measure in SHOWN]
    rows.append(["p95 latency", *(lib.report.milliseconds(side.latency.p95) for side in found.values())])
    parts = [part for part in lib.report.component_lines(report) if part.kind != "without"]
    components = [[part.label, part.values["nDCG@10"], lib.report.without_it(part)] for part in parts]
    cached = " (from the cache: nothing changed since the last time)" if all(side.cached for side in found.values()) else ""
    worst, value = found["hybrid"].scores.worst("nDCG@10", count=1)[0]
    show.result(
        json,
        {"folder": folder, "runs": runs, "comparison": told, **gates, "report": folder / "report.html"},
        f"1. Ingest: {len(collection)} documents of a seaside hotel, chunked, indexed and embedded in {seconds:.1f} s.",
        f"   The set asks {len(golden.queries)} questions about them; questions and judgments were written for this project.",
        f"\n2. How good are three searches?{cached}",
        show.Table(("measure", *found), rows),
        show.Table(("part of the hybrid", "nDCG@10", "change without it (95 % interval)"), components),
        f"\n3. Is the hybrid better than bm25 alone? {comparison.verdict.upper()}.\n   {sentence(comparison)}",
        f"   Better for {one.wins} questions, the same for {one.ties}, worse for {one.losses}; p = {one.p_adjusted:.2g}.",
        f"\n4. May it ship? The gate says {lib.report.headline(report)}; exit code {verdict.exit_code}.",
        f"   And a change back to dense alone? {lib.report.judged(refused)}; exit code {refused.exit_code}.",
        f"\nThe weakest question of the hybrid is {worst} ({value:.2f}): “{golden.query(worst).text}”",
        *(f"Recommendation {number}: {one.advice}" for number, one in enumerate(report.recommendations, 1)),
        NEXT.format(folder),
        notes=[check.message for check in verdict.checks if check.status == "advisory"],
    )


def _judged(one: lib.verdict.Verdict) -> dict[str, Any]:
    failures = [show.pick(check, "measure", "message", "queries") for check in one.failures]
    return {"verdict": one.word, "exit_code": one.exit_code, "failures": failures}


def _ingested(golden: lib.records.GoldenSet, folder: Path, *, quiet: bool) -> tuple[lib.retrieve.Collection, float]:
    began, collection = time.monotonic(), lib.retrieve.Collection.create(folder)
    collection.ingest(golden.documents, remove_missing=True)
    for index in lib.retrieve.indexes_of(lib.retrieve.build("hybrid", collection)):
        with progress_bar(f"indexing {index.folder.name.split('-')[0]}", 0 if quiet else index.pending()) as step:
            index.ready(progress=step)
    return collection, time.monotonic() - began
