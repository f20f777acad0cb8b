"""How good the built-in retrievers are with their defaults: nDCG@10 on test collections, beside their floors.

``ringtrue bench quality --check`` ingests every collection that is there, answers all its queries by each retriever as
``ringtrue search`` would, scores the answers, and exits 1 when a floor is missed or the hybrid lies more than 0.01 below its
better channel. Collections are the shipped golden sets and, where the folder of data is there, the BEIR folders in it.

``ringtrue bench quality --choose`` repeats how the default hybrid was chosen: a list of fusion rules on the collections that
may be looked at (SciFact's training queries, LoCoMo's first half, the shipped sets), ordered by the worst distance to the
better channel.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import (
    BENCH,
    ROOT,
    Failure,
    add_common_options,
    finish,
    limit,
    limits_table,
    machine,
    machine_line,
    marks,
    say,
    table,
)

RETRIEVERS = ("bm25", "dense", "hybrid", "rrf(bm25, dense)", "rm3", "fts5")
CHANNELS = ("bm25", "dense")
FLOORS = {
    ("scifact", "bm25"): 0.68,
    ("scifact", "dense"): 0.64,
    ("scifact", "hybrid"): 0.71,
    ("cranfield", "bm25"): 0.37,
    ("cranfield", "hybrid"): 0.40,
}
BEHIND = 0.01
SHIPPED = ("hotel", "clinical", "memory-bench", "agent-280", "precedents")
PUBLIC = ("scifact", "cranfield", "cacm", "locomo_dev", "locomo_sessions_dev")
SCOPES = {"locomo_dev": "conversation", "locomo_sessions_dev": "conversation"}
"""Collections whose questions are asked within one part of the documents, named by this metadata field."""
TUNED_ON = (*SHIPPED, "locomo_dev", "locomo_sessions_dev")
MEASURES = ("nDCG@10", "R@100")
MEMORY_SETS = ("locomo_sessions_dev", "locomo_dev", "memory-bench", "agent-280", "hotel")
MEMORY_RETRIEVERS = ("memory('fts5_bm25')", "hybrid", "memory")
MEMORY_MEASURES = ("Success@1", "nDCG@5", "nDCG@10", "R@10")
MEMORY_FLOORS = {
    ("locomo_sessions_dev", "Success@1"): 0.77,
    ("locomo_sessions_dev", "nDCG@5"): 0.84,
    ("locomo_sessions_dev", "R@10"): 0.95,
    ("locomo_dev", "R@10"): 0.76,
}
"""What the memory retriever reaches at least on LoCoMo, over all questions with evidence."""
NOT_APART = "all"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 0, 1 when ``--check`` finds a floor missed, or 2 when it cannot be run."""
    parser = argparse.ArgumentParser(
        prog="ringtrue bench quality", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("collections", nargs="*", help="only these: names of shipped sets, of folders in --data, or paths")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder with the BEIR folders")
    parser.add_argument("--choose", action="store_true", help="show how the default hybrid was chosen, instead")
    parser.add_argument("--memory", action="store_true", help="measure only the agent memory's retriever")
    parser.add_argument("--retriever", action="append", help="measure these retrievers, too; repeatable")
    add_common_options(parser, marks("quality"))
    options = parser.parse_args(argv)
    try:
        if options.choose:
            print(choose(options.data))
            return 0
        report = run(options)
    except Failure as problem:
        print(f"bench quality: {problem}", file=sys.stderr)
        return 2
    return finish("quality", report, render(report), options)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return every figure, and every limit with what was found."""
    described = machine()
    names = options.collections or [*(name for name in PUBLIC if (options.data / name).is_dir()), *SHIPPED]
    retrievers = [*RETRIEVERS, *(options.retriever or [])]
    rows = [] if options.memory else [row for name in names for row in _collection(name, options.data, retrievers)]
    remembered = [row for name in names if Path(name).name in MEMORY_SETS for row in _memory(name, options.data)]
    missing = [] if options.collections else [name for name in PUBLIC if not (options.data / name).is_dir()]
    say("")
    limits = [*_limits(rows, all_of_them=not options.memory), *_memory_limits(remembered)]
    return {
        "rows": rows, "memory": remembered, "limits": limits, "machine": described, "missing": missing, "hybrid": _hybrid(),
    }  # fmt: skip


def _hybrid() -> str:
    from ringtrue.retrieve import HYBRID

    return HYBRID


def _opened(name: str, data: Path) -> tuple[str, Any, Any]:
    """Return the label, the golden set and the collection with its documents."""
    from ringtrue.errors import RingtrueError
    from ringtrue.golden import load
    from ringtrue.retrieve import Collection

    place = data / name if (data / name).is_dir() else name
    try:
        golden = load(str(place))
    except RingtrueError as problem:
        raise Failure(str(problem)) from problem
    label = Path(name).name
    collection = Collection.create(BENCH / "quality" / label)
    say(f"{label}: {len(golden.documents)} documents")
    collection.ingest(golden.documents, remove_missing=True)
    return label, golden, collection


def _answers(expression: str, label: str, golden: Any, collection: Any) -> tuple[list[Any], float]:
    """Return the answers to all questions that have one, and the milliseconds of a question."""
    from ringtrue.retrieve import answer_all, build, indexes_of

    say(f"{label}: {expression}")
    retriever = build(expression, collection)
    for index in indexes_of(retriever):
        index.ready()
    asking = replace(golden, queries=tuple(query for query in golden.queries if not query.negative))
    started = time.perf_counter()
    answers = answer_all(retriever, asking, k=100, scope_field=SCOPES.get(label))
    return answers, 1000 * (time.perf_counter() - started) / len(asking.queries)


def _collection(name: str, data: Path, retrievers: Sequence[str]) -> list[dict[str, Any]]:
    from ringtrue.measures import score

    label, golden, collection = _opened(name, data)
    rows = []
    for expression in retrievers:
        answers, ms = _answers(expression, label, golden, collection)
        values = score(answers, golden, list(MEASURES)).aggregate
        rows.append(
            {
                "collection": label,
                "retriever": expression,
                "documents": len(golden.documents),
                "queries": len(answers),
                "ms_per_query": ms,
                **{measure: values[measure] for measure in MEASURES},
            }
        )
    return rows


def _memory(name: str, data: Path) -> list[dict[str, Any]]:
    """Return the figures of LoCoMo: over all questions, without the adversarial ones, and for each conversation."""
    from ringtrue.measures import score

    label, golden, collection = _opened(name, data)
    rows = []
    for expression in MEMORY_RETRIEVERS:
        answers, ms = _answers(expression, label, golden, collection)
        by_id = {answer.query_id: answer for answer in answers}
        for part, wanted in _parts(label, golden).items():
            mine = replace(
                golden,
                queries=tuple(query for query in golden.queries if query.query_id in wanted),
                judgments=tuple(judgment for judgment in golden.judgments if judgment.query_id in wanted),
            )
            found = [by_id[query.query_id] for query in mine.queries if query.query_id in by_id]
            values = score(found, mine, list(MEMORY_MEASURES)).aggregate
            rows.append(
                {"collection": label, "part": part, "retriever": expression, "queries": len(found), "ms_per_query": ms}
                | {measure: values[measure] for measure in MEMORY_MEASURES}
            )
    return rows


def _parts(label: str, golden: Any) -> dict[str, set[str]]:
    """Return which questions each row counts; those without evidence have nothing to be found."""
    judged = {judgment.query_id for judgment in golden.judgments if judgment.grade > 0}
    asked = [query for query in golden.queries if query.query_id in judged and not query.negative]
    parts = {NOT_APART: {query.query_id for query in asked}}
    if label in SCOPES:
        parts["without adversarial"] = {query.query_id for query in asked if not query.metadata.get("adversarial")}
        for query in asked:
            parts.setdefault(str(query.metadata[SCOPES[label]]), set()).add(query.query_id)
    return parts


def _memory_limits(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = {row["collection"]: row for row in rows if row["retriever"] == "memory" and row["part"] == NOT_APART}
    limits = []
    for (collection, measure), floor in MEMORY_FLOORS.items():
        value = found.get(collection, {}).get(measure)
        shown = "not measured" if value is None else f"{value:.4f}"
        met = None if value is None else value >= floor
        limits.append(limit(f"{collection}, memory, {measure}", f"≥ {floor:.2f}", shown, met))
    return limits


def choose(data: Path) -> str:
    """Return a table of fusion rules on the collections that may be looked at."""
    from ringtrue.retrieve import Collection
    from ringtrue.retrieve.learn import answers_of, reached

    sets = {name: _tuning_set(name, data) for name in ("scifact", *TUNED_ON) if name in SHIPPED or (data / name).is_dir()}
    rules: dict[str, tuple[int, str | None, float]] = {"rrf, k=60": (100, None, 0.5)}
    rules |= {
        f"{norm} of the first {depth}, dense {weight:g}": (depth, norm, weight)
        for norm in ("z", "minmax")
        for depth in (20, 50, 100, 1000)
        for weight in (0.4, 0.5, 0.6)
    }
    gains: dict[str, list[float]] = {rule: [] for rule in rules}
    for name, golden in sets.items():
        say(f"{name}: {len(golden.queries)} queries")
        collection = Collection.create(BENCH / "quality" / name)
        collection.ingest(golden.documents, remove_missing=True)
        answers = answers_of(CHANNELS, collection, golden, depth=1000)
        best = max(reached(answers, golden, weights, depth=1000) for weights in ((1.0, 0.0), (0.0, 1.0)))
        for rule, (depth, norm, weight) in rules.items():
            cut = {query_id: [hits[:depth] for hits in lists] for query_id, lists in answers.items()}
            value = (
                reached(cut, golden, None)
                if norm is None
                else reached(cut, golden, (1 - weight, weight), norm=norm, depth=depth)
            )
            gains[rule].append(value - best)
    rows = sorted(((min(found), sum(found) / len(found), rule) for rule, found in gains.items()), reverse=True)
    shown = [(rule, f"{worst:+.4f}", f"{mean:+.4f}", *(f"{gain:+.3f}" for gain in gains[rule])) for worst, mean, rule in rows]
    say("")
    return table(("nDCG@10 minus the better channel", "worst", "mean", *sets), shown, text_columns=1) + "\n"


def _tuning_set(name: str, data: Path) -> Any:
    from ringtrue.formats import read_qrels
    from ringtrue.golden import load
    from ringtrue.records import Judgment, Query

    golden = load(str(data / name) if (data / name).is_dir() else name)
    if name in SCOPES:
        golden = replace(golden, scope=SCOPES[name])
    if name == "scifact":  # its test queries are what the choice is measured with afterwards
        qrels = read_qrels(data / name / "qrels" / "train.tsv")
        lines = (data / name / "queries.jsonl").read_text(encoding="utf-8").splitlines()
        texts = {row["_id"]: row["text"] for row in map(json.loads, lines)}
        queries = tuple(Query(query_id, texts[query_id]) for query_id in qrels.query_ids)
        golden = replace(golden, queries=queries, judgments=tuple(Judgment(*row) for row in qrels))
    return golden


def _limits(rows: list[dict[str, Any]], *, all_of_them: bool) -> list[dict[str, Any]]:
    found = {(row["collection"], row["retriever"]): row["nDCG@10"] for row in rows}
    limits = []
    for (collection, retriever), floor in FLOORS.items() if all_of_them else ():
        value = found.get((collection, retriever))
        shown = "not measured" if value is None else f"{value:.4f}"
        met = None if value is None else value >= floor
        limits.append(limit(f"{collection}, {retriever}", f"≥ {floor:.2f}", shown, met))
    for collection in dict.fromkeys(row["collection"] for row in rows):
        best = max(found[collection, channel] for channel in CHANNELS)
        value = found[collection, "hybrid"]
        least = best - BEHIND
        limits.append(
            limit(f"{collection}, hybrid beside its better channel", f"≥ {least:.4f}", f"{value:.4f}", value >= least)
        )
    return limits


def render(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    names = list(dict.fromkeys(row["retriever"] for row in report["rows"]))
    by = {(row["collection"], row["retriever"]): row for row in report["rows"]}
    rows, recall = [], []
    for label in dict.fromkeys(row["collection"] for row in report["rows"]):
        first = by[label, names[0]]
        head = (label + (" †" if label in TUNED_ON else ""), f"{first['documents']:,}", f"{first['queries']:,}")
        rows.append((*head, *(f"{by[label, name]['nDCG@10']:.4f}" for name in names)))
        recall.append((*head, *(f"{by[label, name]['R@100']:.4f}" for name in names)))
    header = ("collection", "documents", "queries", *names)
    about = (
        f"nDCG@10 with the defaults; `hybrid` is `{report['hybrid']}`. † the defaults were chosen looking at this collection "
        "(and at SciFact's training queries: `ringtrue bench quality --choose`); the others took no part in the choice."
    )
    parts = [
        *([about] if rows else []),
        *([table(header, rows, text_columns=1), "R@100:", table(header, recall, text_columns=1)] if rows else []),
        *([_memory_table(report["memory"])] if report["memory"] else []),
        limits_table(report["limits"]),
        *([f"**Not measured:** {', '.join(report['missing'])}: the folder is not there."] if report["missing"] else []),
        machine_line(report["machine"]),
    ]
    return "\n\n".join(parts) + "\n"


def _memory_table(rows: list[dict[str, Any]]) -> str:
    shown = [
        (
            row["collection"],
            row["part"],
            row["retriever"],
            f"{row['queries']:,}",
            *(f"{row[measure]:.4f}" for measure in MEMORY_MEASURES),
            f"{row['ms_per_query']:.1f}",
        )
        for row in rows
    ]
    header = ("collection", "questions", "retriever", "number", *MEMORY_MEASURES, "ms a question")
    return (
        "The agent memory's retriever with its defaults, each conversation a store of its own. Its weights were chosen "
        "looking at these collections; LoCoMo's other five conversations took no part.\n\n"
        + table(header, shown, text_columns=3)
    )


if __name__ == "__main__":
    sys.exit(main())
