"""How good the built-in retrievers are with their defaults: nDCG@10 on test collections, beside the floors of R-8.

``ringtrue bench quality --check`` ingests every collection that is there, answers all its queries by each retriever as
``ringtrue search`` would, scores the answers, and exits 1 when a floor is missed or the hybrid lies more than 0.01 below its
better channel. Collections are the shipped golden sets and, where the folder of data is there, the BEIR folders in it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import BENCH, ROOT, Failure, add_common_options, finish, machine, say, table

MARKS = "<!-- bench:quality -->", "<!-- /bench:quality -->"
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 0, 1 when ``--check`` finds a floor missed, or 2 when it cannot be run."""
    parser = argparse.ArgumentParser(
        prog="ringtrue bench quality", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("collections", nargs="*", help="only these: names of shipped sets, of folders in --data, or paths")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder with the BEIR folders")
    parser.add_argument("--retriever", action="append", help="measure these retrievers, too; repeatable")
    add_common_options(parser, MARKS)
    options = parser.parse_args(argv)
    try:
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
    rows = [row for name in names for row in _collection(name, options.data, retrievers)]
    missing = [] if options.collections else [name for name in PUBLIC if not (options.data / name).is_dir()]
    say("")
    return {"rows": rows, "limits": _limits(rows), "machine": described, "missing": missing, "hybrid": _hybrid()}


def _hybrid() -> str:
    from ringtrue.retrieve.expression import HYBRID

    return HYBRID


def _collection(name: str, data: Path, retrievers: Sequence[str]) -> list[dict[str, Any]]:
    from ringtrue.errors import RingtrueError
    from ringtrue.golden import load
    from ringtrue.measures import score
    from ringtrue.records import Ranking
    from ringtrue.retrieve import Collection, build, kept, search_many

    place = data / name if (data / name).is_dir() else name
    try:
        golden = load(str(place))
    except RingtrueError as problem:
        raise Failure(str(problem)) from problem
    label = Path(name).name
    scope = golden.scope or SCOPES.get(label)
    collection = Collection.create(BENCH / "quality" / label)
    say(f"{label}: {len(golden.documents)} documents")
    collection.ingest(golden.documents, remove_missing=True)
    queries = [query for query in golden.queries if not query.negative]
    parts: dict[str | None, list[Any]] = {}
    for query in queries:
        parts.setdefault(str(query.metadata[scope]) if scope else None, []).append(query)
    rows = []
    for expression in retrievers:
        say(f"{label}: {expression}")
        retriever = build(expression, collection)
        for index in kept(retriever):
            index.ready()
        started = time.perf_counter()
        answers = []
        for part, asked in parts.items():
            within = {scope: part} if scope and part is not None else None
            found = search_many(retriever, [query.text for query in asked], k=100, scope=within)
            answers += [Ranking(query.query_id, tuple(hits)) for query, hits in zip(asked, found, strict=True)]
        seconds = time.perf_counter() - started
        values = score(answers, golden, list(MEASURES)).aggregate
        rows.append(
            {
                "collection": label,
                "retriever": expression,
                "documents": len(golden.documents),
                "queries": len(queries),
                "ms_per_query": 1000 * seconds / len(queries),
                **{measure: values[measure] for measure in MEASURES},
            }
        )
    return rows


def _limits(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = {(row["collection"], row["retriever"]): row["nDCG@10"] for row in rows}
    limits = []
    for (collection, retriever), floor in FLOORS.items():
        value = found.get((collection, retriever))
        shown = "not measured" if value is None else f"{value:.4f}"
        met = None if value is None else value >= floor
        limits.append({"name": f"{collection}, {retriever}", "wanted": f"≥ {floor:.2f}", "found": shown, "met": met})
    for collection in dict.fromkeys(row["collection"] for row in rows):
        best = max(found[collection, channel] for channel in CHANNELS)
        value = found[collection, "hybrid"]
        limits.append(
            {
                "name": f"{collection}, hybrid beside its better channel",
                "wanted": f"≥ {best - BEHIND:.4f}",
                "found": f"{value:.4f}",
                "met": value >= best - BEHIND,
            }
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
    verdict = {True: "met", False: "**missed**", None: "not measured"}
    limits = [(limit["name"], limit["wanted"], limit["found"], verdict[limit["met"]]) for limit in report["limits"]]
    described = report["machine"]
    parts = [
        f"nDCG@10 with the defaults; `hybrid` is `{report['hybrid']}`. † the defaults were chosen looking at this collection "
        "(and at SciFact's training queries); the others were first measured after that.",
        table(header, rows, text_columns=1),
        "R@100:",
        table(header, recall, text_columns=1),
        table(("limit (nDCG@10)", "wanted", "found", ""), limits, text_columns=1),
        *([f"**Not measured:** {', '.join(report['missing'])}: the folder is not there."] if report["missing"] else []),
        f"Machine: {described['cores']} cores, {described['cpu']}, {described['system']}, Python {described['python']}.",
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
