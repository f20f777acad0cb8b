"""Ringtrue's search beside bare tantivy, bm25s, SQLite FTS5 and NumPy: the speed floors, and other costs.

``python benchmarks/retrieve.py --check`` builds every index in a process of its own, opens it in another that stays warm, and
lets all of them answer the same queries in turn, round after round, so that a busy minute of the machine falls on all alike.
A ratio is the median of the rounds' ratios. Generated data lie in .bench/retrieve and are used again.

This script itself imports nothing heavy: what a contender needs, its process imports.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import (
    BENCH,
    Failure,
    add_common_options,
    busy_seconds,
    carry_out,
    limit,
    limits_table,
    machine,
    machine_line,
    marks,
    positive,
    say,
    source_environment,
    source_version,
    table,
)
from retrieve_files import FORM
from retrieve_tools import FTS5_DOCUMENTS, LENGTHS, NOTE_WORDS, PRODUCTS, SIZE, K

# The limits, meant for the default sizes and one machine that does nothing else.
FASTER_THAN_BM25S = 10.0  # queries per second of ringtrue ÷ those of bm25s, at least
SLOWER_THAN_TANTIVY = 1.5  # time per query of ringtrue ÷ that of bare tantivy, at most
SLOWER_THAN_PRODUCT = 1.3  # time of a dense search ÷ that of the bare matrix product, at most
FTS5_MS = 15.0  # 500 documents, from the collection on disk to the first answer
SAME_ANSWERS = 0.999  # of the top 10, ties at the cut-off aside, or ringtrue and bare tantivy did not do the same work

PARTS = ("lexical", "fts5", "dense", "encode")
GROWTH = (10_000, 100_000, 1_000_000)
KEPT_DOCUMENTS = 100_000  # larger generated files are deleted after use
DATA = BENCH / "retrieve"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 0, 1 when ``--check`` finds a limit missed, or 2 when it cannot be run."""
    options = _options(argv)
    return carry_out("retrieve", run, render, options)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="ringtrue bench retrieve", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=positive, default=100_000, help="documents of the word indexes (default 100000)")
    parser.add_argument("--queries", type=positive, default=1000, help="queries per round of the word indexes (default 1000)")
    parser.add_argument("--vectors", type=positive, default=1_000_000, help="vectors of the dense search (default 1000000)")
    parser.add_argument("--repeat", type=positive, default=5, help="rounds (default 5)")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, help="measure these parts alone")
    parser.add_argument("--growth", action="store_true", help="also show how bm25 grows, up to a million documents")
    add_common_options(parser, marks("retrieve"))
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return everything that was measured, and every limit with what was found."""
    here = machine()
    _require()
    DATA.mkdir(parents=True, exist_ok=True)
    others: list[float] = []
    with tempfile.TemporaryDirectory(prefix="ringtrue-", dir=DATA) as scratch:
        place = Path(scratch)
        parts = {
            "encode": lambda: _encode(options, place, others),  # first: it needs most to be installed
            "lexical": lambda: _lexical(options, place, others),
            "fts5": lambda: _fts5(options, place, others),
            "dense": lambda: _dense(options, others),
        }
        report: dict[str, Any] = {
            "input": {name: getattr(options, name) for name in ("documents", "queries", "vectors", "repeat")},
            "machine": here,
            **{part: measured() if part in options.only else None for part, measured in parts.items()},
            "growth": _grow(options, place, others) if options.growth else [],
            "others": others,
        }
    say("")
    return report | {"limits": limits(report)}


def _require() -> None:
    for module, distribution in (("tantivy", "tantivy"), ("bm25s", "bm25s"), ("Stemmer", "PyStemmer"), ("numpy", "numpy")):
        if importlib.util.find_spec(module) is None:
            raise Failure(f"{distribution} is not installed; run `{sys.executable} -m pip install {distribution}`")


def limits(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each limit with what was found; ``met`` is None if a part was not measured."""
    found: list[dict[str, Any]] = []

    def most(name: str, limit_: float, value: float | None, show: str = "{:.2f}×") -> None:
        text = "not measured" if value is None else show.format(value)
        found.append(limit(name, "≤ " + show.format(limit_), text, None if value is None else value <= limit_))

    def least(name: str, limit_: float, value: float | None, show: str) -> None:
        text = "not measured" if value is None else show.format(value)
        found.append(limit(name, "≥ " + show.format(limit_), text, None if value is None else value >= limit_))

    lexical, fts5, dense = report["lexical"], report["fts5"], report["dense"]
    ratios = {tool["name"]: tool["ratio"] for tool in lexical["tools"]} if lexical else {}
    bm25s = {name: ratio for name, ratio in ratios.items() if name.startswith("bm25s")}
    quickest = min(bm25s, key=bm25s.__getitem__, default="bm25s")
    least(f"bm25: queries/s, beside {quickest}", FASTER_THAN_BM25S, bm25s.get(quickest), "{:.1f}×")
    most("bm25: time per query, beside bare tantivy", SLOWER_THAN_TANTIVY, 1 / ratios["tantivy"] if ratios else None)
    same = lexical["agreement"]["same"] if lexical else None
    least("bm25: hits that bare tantivy has too, or ties", SAME_ANSWERS, same, "{:.4f}")
    most(  # of one fixed piece of work the fastest turn counts: whatever else the machine does can only add to it
        f"fts5: build + first query, {FTS5_DOCUMENTS} notes of {NOTE_WORDS} words, fastest turn",
        FTS5_MS,
        min(fts5["firsts_ms"]) if fts5 else None,
        "{:.1f} ms",
    )
    most("dense: time per query, beside NumPy's product", SLOWER_THAN_PRODUCT, dense["ratio"] if dense else None)
    return found


# ── the parts ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _lexical(options: argparse.Namespace, scratch: Path, others: list[float]) -> dict[str, Any]:
    corpus, queries = generate(options.documents, options.queries)
    numba = importlib.util.find_spec("numba") is not None
    contenders = {
        "ringtrue": ("Ringtrue", source_version()),
        "tantivy": ("Tantivy", _version("tantivy")),
        "tantivy, parsed": ("TantivyParsed", _version("tantivy")),
        **({"bm25s, numba": ("Bm25sNumba", f"{_version('bm25s')}, numba {_version('numba')}")} if numba else {}),
        "bm25s, numpy": ("Bm25s", _version("bm25s")),
        "fts5": ("Fts5", sqlite3.sqlite_version),
    }
    tools = [
        {"name": name, "version": version} | _build(kind, scratch / name, corpus, others)
        for name, (kind, version) in contenders.items()
        if kind != "TantivyParsed"  # another way to ask the same index
    ]
    tools.insert(2, {**tools[1], "name": "tantivy, parsed"})
    workers = {
        name: Worker(kind, scratch / ("tantivy" if kind == "TantivyParsed" else name), others)
        for name, (kind, _) in contenders.items()
    }
    try:
        answers = {}
        for name, worker in workers.items():
            say(f"bm25: opening and warming up {name}")
            worker.ask("open", corpus=str(corpus), queries=str(queries))
            answers[name] = worker.ask("answers") if name in ("ringtrue", "tantivy") else worker.ask("warm")
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in workers}
        for turn in range(1, options.repeat + 1):
            for name, worker in workers.items():
                if name != "fts5" or turn == 1:  # a hundred times slower, and under no limit
                    say(f"bm25: round {turn} of {options.repeat}: {name}")
                    rounds[name].append(worker.ask("round"))
        for tool in tools:
            tool |= _speed(rounds[tool["name"]], rounds["ringtrue"]) | {"peak_mb": workers[tool["name"]].peak_mb}
        batch = {
            name: [worker.ask("batch") for _ in range(min(3, options.repeat))]
            for name, worker in workers.items()
            if name.startswith("bm25s")
        }
    finally:
        for worker in workers.values():
            worker.close()
    return {
        "tools": tools,
        "batch_per_second": {name: statistics.median(values) for name, values in batch.items()},
        "agreement": agreement(answers["ringtrue"], answers["tantivy"]),
        "skipped": {} if numba else {"bm25s with its numba backend": "numba is not installed"},
        "words": json.loads(queries.read_text(encoding="utf-8"))["words"],
    }


def _build(kind: str, folder: Path, corpus: Path, others: list[float]) -> dict[str, Any]:
    say(f"bm25: building {folder.name}")
    folder.mkdir()
    with Worker(kind, folder, others) as worker:
        built = worker.ask("build", corpus=str(corpus))
        return {**built, "per_second": built["documents"] / built["seconds"], "build_peak_mb": worker.peak_mb}


def _speed(rounds: list[dict[str, float]], ours: list[dict[str, float]]) -> dict[str, Any]:
    """Return the medians of the rounds; ``ratio`` is this tool's time ÷ ringtrue's."""
    median = {name: statistics.median(values[name] for values in rounds) for name in ("p50", "p99", "mean")}
    ratio = statistics.median(theirs["mean"] / mine["mean"] for theirs, mine in zip(rounds, ours))
    return {**median, "queries_per_second": 1000 / median["mean"], "ratio": ratio}


def agreement(ours: list[list[list[Any]]], theirs: list[list[list[Any]]]) -> dict[str, Any]:
    """Return the share of documents that two tools' answers have in common, and the share when ties count as shared.

    A document that only one of them has is a tie when it scores what the other's last place scores.
    """
    common = total = apart = 0
    for mine, other in zip(ours, theirs, strict=True):
        here, there = dict(mine), dict(other)
        common, total = common + len(here.keys() & there.keys()), total + max(len(here), len(there))
        apart += max(_no_ties(here, other), _no_ties(there, mine))
    return {"documents": total, "shared": common / total, "same": 1 - apart / total}


def _no_ties(scores: dict[str, float], other: list[list[Any]]) -> int:
    known = {doc_id for doc_id, _ in other}
    last = other[-1][1] if other else 0.0
    # Both add the same single-precision numbers, perhaps in another order.
    return sum(doc_id not in known and abs(score - last) > 1e-5 * abs(last) for doc_id, score in scores.items())


def _fts5(options: argparse.Namespace, scratch: Path, others: list[float]) -> dict[str, Any]:
    corpus, queries = generate(options.documents, options.queries)
    with Worker("Fts5Channel", scratch / "fts5-channel", others) as worker:
        say(f"fts5: {FTS5_DOCUMENTS} documents")
        count = worker.ask("prepare", corpus=str(corpus), queries=str(queries))
        worker.ask("first")  # imports
        turns = [(worker.ask("first"), worker.ask("bare")) for _ in range(2 * options.repeat)]
        firsts, bare = map(list, zip(*turns))
        rounds = [worker.ask("round") for _ in range(options.repeat)]
        median = {name: statistics.median(values[name] for values in rounds) for name in ("p50", "p99")}
        first, least = statistics.median(firsts), statistics.median(bare)
        return {"documents": count, "first_ms": first, "firsts_ms": firsts, "bare_ms": least, **median}


def _dense(options: argparse.Namespace, others: list[float]) -> dict[str, Any]:
    folder = DATA / f"dense-{FORM}-{options.vectors}x{SIZE}"
    workers = {"ringtrue": Worker("DenseChannel", folder, others), "numpy": Worker("Product", folder, others)}
    try:
        say(f"dense: {options.vectors:,} vectors; made once", keep=not folder.exists())
        workers["ringtrue"].ask("prepare", vectors=options.vectors)
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in workers}
        for worker in workers.values():
            worker.ask("open")
        for turn in range(1, options.repeat + 1):
            for name, worker in workers.items():
                say(f"dense: round {turn} of {options.repeat}: {name}")
                rounds[name].append(worker.ask("round"))
        speed = {name: _speed(values, rounds["numpy"]) for name, values in rounds.items()}
        peaks = {f"{name}_peak_mb": worker.peak_mb for name, worker in workers.items()}
        return {"vectors": options.vectors, "ratio": speed["ringtrue"]["ratio"], **peaks, **speed}
    finally:
        for worker in workers.values():
            worker.close()


def _encode(options: argparse.Namespace, scratch: Path, others: list[float]) -> dict[str, Any]:
    kinds = {
        "ringtrue, float32": "Float32",
        "ringtrue, int8": "Int8",
        "sentence-transformers, 2 threads": "SentenceTransformers",
        "wordllama": "WordLlama",
    }
    skipped = {}
    for name, module in (("sentence-transformers, 2 threads", "sentence_transformers"), ("wordllama", "wordllama")):
        if importlib.util.find_spec(module) is None:
            skipped[name] = f"{module} is not installed"
            del kinds[name]
    folder = scratch / "encode"
    folder.mkdir()
    with Worker("Texts", folder, others) as worker:
        worker.ask("write")
    workers = {name: Worker(kind, folder, others) for name, kind in kinds.items()}
    try:
        same = {}
        for name, worker in workers.items():
            say(f"encoding: loading {name}")
            same[name] = worker.ask("open")
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in workers}
        for turn in range(1, min(3, options.repeat) + 1):
            for name, worker in workers.items():
                say(f"encoding: round {turn}: {name}")
                rounds[name].append(worker.ask("round"))
        rows = [
            {
                "name": name,
                "per_second": {length: statistics.median(values[length] for values in rounds[name]) for length in LENGTHS},
                "cosine": same[name],
                "peak_mb": workers[name].peak_mb,
            }
            for name in workers
        ]
    finally:
        for worker in workers.values():
            worker.close()
    return {"encoders": rows, "skipped": skipped}


def _grow(options: argparse.Namespace, scratch: Path, others: list[float]) -> list[dict[str, Any]]:
    rows = []
    for count in GROWTH:
        corpus, queries = generate(count, options.queries)
        folder = scratch / f"growth-{count}"
        row = _build("Ringtrue", folder, corpus, others)
        with Worker("Ringtrue", folder, others) as worker:
            worker.ask("open", corpus=str(corpus), queries=str(queries))
            worker.ask("warm")
            rounds = [worker.ask("round") for _ in range(options.repeat)]
            rows.append(row | _speed(rounds, rounds) | {"peak_mb": worker.peak_mb})
        shutil.rmtree(folder)
        if count > KEPT_DOCUMENTS:
            corpus.unlink()
            queries.unlink()
    return rows


def _version(distribution: str) -> str:
    return importlib.metadata.version(distribution)


def generate(count: int, queries: int) -> tuple[Path, Path]:
    """Return the generated documents and queries of this size, written where they are not there yet."""
    corpus = DATA / f"documents-{FORM}-{count}.jsonl"
    asked = DATA / f"queries-{FORM}-{count}-{queries}.json"
    if not (corpus.exists() and asked.exists()):
        say(f"writing {count:,} documents into {DATA}", keep=True)
        # In a process of its own, so that this one stays small.
        script = str(Path(__file__).with_name("retrieve_files.py"))
        subprocess.run([sys.executable, script, str(count), str(queries), str(corpus), str(asked)], check=True)
    return corpus, asked


# ── processes that stay ─────────────────────────────────────────────────────────────────────────────────────────────


class Worker:
    """A process that holds one contender and answers calls of its methods, one line of JSON each way."""

    def __init__(self, kind: str, folder: Path, others: list[float]) -> None:
        self.kind, self.others, self.peak_mb = kind, others, 0.0
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        # Words are counted on one thread by all; those who use more by nature (tantivy's writer, BLAS, encoders) may.
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("retrieve_tools.py")), kind, str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, encoding="utf-8",
            env=os.environ | source_environment(),
        )  # fmt: skip

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, call: str, **arguments: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        busy, start = busy_seconds(), time.perf_counter()
        with contextlib.suppress(BrokenPipeError):  # it has died; the empty answer says so
            self.process.stdin.write(json.dumps({"call": call, "arguments": arguments}) + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()  # until it has said why
            self.errors.seek(0)
            said = self.errors.read().decode(errors="replace").strip().rpartition("\n")[2]
            raise Failure(f"{self.kind} could not {call}: {said or 'the process ended'}")
        answer = json.loads(line)
        seconds, after = time.perf_counter() - start, busy_seconds()
        # The system counts in hundredths of a second: short calls would show nothing but rounding.
        if busy is not None and after is not None and seconds > 0.5:
            self.others.append(max(0.0, after - busy - answer["cpu"]) / seconds)
        self.peak_mb = answer["peak_mb"]
        return answer["result"]

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()  # the end of its work
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()


# ── showing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def render(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    parts = []
    for part, show in (("lexical", _show_lexical), ("fts5", _show_fts5), ("dense", _show_dense), ("encode", _show_encode)):
        if report[part]:
            parts += show(report[part], report["input"])
    if report["growth"]:
        parts += _show_growth(report["growth"])
    return "\n\n".join([*parts, limits_table(report["limits"]), machine_line(report["machine"], report["others"])]) + "\n"


def _show_lexical(found: dict[str, Any], given: dict[str, int]) -> list[str]:
    rows = [
        (
            tool["name"], tool["version"], f"{tool['seconds']:.1f}", f"{tool['per_second']:,.0f}", f"{tool['index_mb']:,.0f}",
            f"{tool['build_peak_mb']:,.0f}", f"{tool['p50']:.3f}", f"{tool['p99']:.3f}", f"{tool['queries_per_second']:,.0f}",
            f"{tool['ratio']:.2f}×", f"{tool['peak_mb']:,.0f}",
        )
        for tool in found["tools"]
    ]  # fmt: skip
    ours, words, same = found["tools"][0], found["words"], found["agreement"]
    batch = "; ".join(f"{name} {value:,.0f}" for name, value in found["batch_per_second"].items())
    return [
        f"**Words.** {given['documents']:,} generated documents of 60–200 words with a title; {given['queries']:,} queries, "
        f"one at a time, {K} hits each, {words['per_query']:.1f} words besides stop words, which stand in "
        f"{words['documents_share']:.1%} of the documents on average. Each tool in its own process, index opened and warm; "
        f"{given['repeat']} rounds in turn (fts5: one), medians; the ratio is a tool's time per query ÷ ringtrue's.",
        table(
            ("tool", "version", "build s", "documents/s", "index MB", "build peak MB",
             "p50 ms", "p99 ms", "queries/s", "ratio", "search peak MB"),
            rows,
        ),
        *(f"**Not measured:** {name}: {reason}." for name, reason in found["skipped"].items()),
        f"ringtrue's build is ingest, {ours['ingest_s']:.1f} s ({ours['documents'] / ours['ingest_s']:,.0f} documents/s into "
        f"{ours['documents_mb']:,.0f} MB of documents and passages), and the bm25 index, {ours['index_s']:.1f} s; the others "
        "keep no documents. All read the same file meanwhile. ringtrue answers with hits that carry provenance, and with ties "
        "decided by document id. 'tantivy' is what one writes by hand for speed: the same analysis and title weight, an OR of "
        "the query's terms, nothing counted, ids by a number in a fast field; 'tantivy, parsed' asks the same index as "
        "tantivy's tutorial does. bm25s has PyStemmer and English stop words; fts5 its Porter stemmer, an optimised index "
        f"and no stop words in its queries. All queries at once, queries/s: {batch}.",
        f"ringtrue and bare tantivy share {same['shared']:.2%} of {same['documents']:,} hits, {same['same']:.2%} when "
        "ties at the cut-off count as shared.",
    ]  # fmt: skip


def _show_fts5(found: dict[str, Any], given: dict[str, int]) -> list[str]:
    return [
        f"**fts5** over {found['documents']} notes of {NOTE_WORDS} words: {found['first_ms']:.1f} ms from the collection "
        f"on disk to the first answer, index built and written ({min(found['firsts_ms']):.1f}–{max(found['firsts_ms']):.1f} in "
        f"{len(found['firsts_ms'])} turns; SQLite alone, in memory, from texts at hand: "
        f"{found['bare_ms']:.1f}); then {found['p50']:.3f} ms a query (p99 {found['p99']:.3f}).",
    ]


def _show_dense(found: dict[str, Any], given: dict[str, int]) -> list[str]:
    rows = []
    for name, key in ((f"ringtrue dense, {K} hits", "ringtrue"), ("NumPy, matrix @ query", "numpy")):
        speed, peak = found[key], found[f"{key}_peak_mb"]
        rows.append((name, f"{speed['p50']:.1f}", f"{speed['p99']:.1f}", f"{speed['ratio']:.2f}×", f"{peak:,.0f}"))
    return [
        f"**Vectors.** Exact search over {found['vectors']:,} × {SIZE} in single precision, {PRODUCTS} queries a round, "
        "in turn. The vectors are drawn and written in the index's own form; a stand-in for the encoder hands out the queries' "
        "vectors, so no encoding is timed. NumPy's row is the product alone, without choosing the best.",
        table(("", "p50 ms", "p99 ms", "ratio", "peak MB"), rows, text_columns=1),
    ]


def _show_encode(found: dict[str, Any], given: dict[str, int]) -> list[str]:
    rows = [
        (
            entry["name"], *(f"{entry['per_second'][name]:,.0f}" for name in LENGTHS),
            "other vectors" if entry["cosine"] is None else f"{entry['cosine']:.6f}", f"{entry['peak_mb']:,.0f}",
        )
        for entry in found["encoders"]
    ]  # fmt: skip
    return [
        "**Encoding** all-MiniLM-L6-v2 (wordllama: its own static vectors): texts per second, cut from the shipped documents.",
        table(("encoder", *LENGTHS, "mean cosine to float32", "peak MB"), rows, text_columns=1),
        *(f"**Not measured:** {name}: {reason}." for name, reason in found["skipped"].items()),
    ]


def _show_growth(grown: list[dict[str, Any]]) -> list[str]:
    rows = [
        (
            f"{row['documents']:,}", f"{row['documents'] / row['ingest_s']:,.0f}", f"{row['documents'] / row['index_s']:,.0f}",
            f"{row['documents_mb']:,.0f}", f"{row['index_mb']:,.0f}", f"{row['build_peak_mb']:,.0f}", f"{row['p50']:.3f}",
            f"{row['p99']:.3f}", f"{row['peak_mb']:,.0f}",
        )
        for row in grown
    ]  # fmt: skip
    names = (
        "documents", "ingest/s", "index/s", "documents MB", "index MB", "build peak MB", "p50 ms", "p99 ms", "search peak MB",
    )  # fmt: skip
    return ["How bm25 grows:", table(names, rows, text_columns=0)]


if __name__ == "__main__":
    sys.exit(main())
