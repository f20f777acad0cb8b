"""Write a TREC run file and a qrels file the size and shape of MS MARCO dev: ``python trec_files.py QUERIES DEPTH RUN QRELS``.

Every query has ``DEPTH`` different documents, best first, with scores of six decimals, so that some of them tie. One to
four documents a query are judged, 0 to 3; about half of them are in the run, most of those near the top. The numbers
come from a fixed seed. Lines are built as columns of bytes, since thirty million of them are wanted.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

SEED = 20_240_607
RETRIEVABLE, COLLECTION = 8_000_000, 8_841_823  # documents from RETRIEVABLE on are judged at most, never in the run
QUERIES = 1_200_000
AT_ONCE = 200  # queries a block
GRADES, GRADE_SHARE = (0, 1, 2, 3), (0.2, 0.5, 0.2, 0.1)
JUDGED, JUDGED_SHARE = (1, 2, 3, 4), (0.55, 0.25, 0.12, 0.08)


def write(queries: int, depth: int, run: Path, qrels: Path) -> None:
    """Write both files; each appears under its name only when it is whole."""
    rng = np.random.default_rng(SEED)
    query_ids = rng.choice(QUERIES, queries, replace=False)
    parts = run.with_suffix(".run.part"), qrels.with_suffix(".qrels.part")
    with parts[0].open("wb") as run_file, parts[1].open("w", encoding="ascii") as qrels_file:
        for first in range(0, queries, AT_ONCE):
            names = query_ids[first : first + AT_ONCE]
            documents = _documents(rng, len(names), depth)
            scores = -np.sort(-rng.integers(300_000, 900_000, documents.shape), axis=1)
            _write_run(run_file, names, documents, scores)
            for name, answer in zip(names.tolist(), documents, strict=True):
                qrels_file.writelines(f"{name} 0 {doc} {grade}\n" for doc, grade in _judgments(rng, answer).items())
            _progress(min(first + AT_ONCE, queries), queries, depth)
    parts[0].replace(run)
    parts[1].replace(qrels)


def _documents(rng: np.random.Generator, queries: int, depth: int) -> NDArray[np.int64]:
    """Return one row of different documents a query."""
    found = rng.integers(0, RETRIEVABLE, (queries, depth))
    while True:
        ordered = np.sort(found, axis=1)
        repeated = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if not len(repeated):
            return found
        found[repeated] = rng.integers(0, RETRIEVABLE, (len(repeated), depth))


def _judgments(rng: np.random.Generator, answer: NDArray[np.int64]) -> dict[int, int]:
    """Return ``{document: grade}`` of one query."""
    count = rng.choice(JUDGED, p=JUDGED_SHARE)
    found = {}
    for retrieved, near, grade in zip(rng.random(count) < 0.5, rng.random(count), rng.choice(GRADES, count, p=GRADE_SHARE)):
        # A power of a uniform number puts as many judged documents on ranks 1 to 10 as on 10 to 100 and 100 to 1,000.
        doc = answer[int(len(answer) ** near) - 1] if retrieved else rng.integers(RETRIEVABLE, COLLECTION)
        found[int(doc)] = int(grade)
    return found


def _write_run(file: BinaryIO, names: NDArray[np.int64], documents: NDArray[np.int64], scores: NDArray[np.int64]) -> None:
    rows, depth = documents.size, documents.shape[1]
    rank = np.tile(np.arange(1, depth + 1), len(names))
    fields = [
        _digits(np.repeat(names, depth)), _text(" Q0 ", rows), _digits(documents.ravel()), _text(" ", rows), _digits(rank),
        _text(" 0.", rows), _digits(scores.ravel()), _text(" bench\n", rows),
    ]  # fmt: skip
    block = np.concatenate(fields, axis=1)
    file.write(block[block != 0].tobytes())


def _text(text: str, rows: int) -> NDArray[np.uint8]:
    return np.broadcast_to(np.frombuffer(text.encode(), np.uint8), (rows, len(text)))


def _digits(values: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return whole numbers as rows of ASCII digits, right-aligned, with zero bytes where there is no digit."""
    width = len(str(int(values.max())))
    out = np.empty((len(values), width), np.uint8)
    rest = values.astype(np.uint32)
    for column in range(width - 1, -1, -1):
        higher = rest // 10
        out[:, column] = rest - higher * 10 + ord("0")
        if column < width - 1:
            out[rest == 0, column] = 0  # nothing is left: a leading zero
        rest = higher
    return out


def _progress(done: int, queries: int, depth: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == queries else ""
        print(f"\rwriting {queries:,} × {depth:,} rows: {done / queries:4.0%}", end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    write(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
