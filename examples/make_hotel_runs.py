"""Makes the two example runs of the hotel set with nothing but the SQLite that comes with Python.

``keyword``: BM25 over title, tags and text, all alike. ``boosted``: the same with titles counting five times and tags three
times, a change that many teams try.
Run ``python examples/make_hotel_runs.py [FOLDER]``; without a folder the shipped runs are written again.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from pathlib import Path

import ringtrue

DEPTH = 20
WEIGHTS = {"keyword": (1.0, 1.0, 1.0), "boosted": (5.0, 3.0, 1.0)}


def search(golden: ringtrue.GoldenSet, weights: tuple[float, float, float]) -> dict[str, dict[str, float]]:
    """Return the best documents per query from an in-memory FTS5 index, with these weights for title, tags and text."""
    index = sqlite3.connect(":memory:")
    index.execute("CREATE VIRTUAL TABLE documents USING fts5(id UNINDEXED, title, tags, body, tokenize='porter unicode61')")
    index.executemany(
        "INSERT INTO documents VALUES (?, ?, ?, ?)",
        [(document.doc_id, document.title, " ".join(document.tags), document.text) for document in golden.documents],
    )
    answers: dict[str, dict[str, float]] = {}
    for query in golden.queries:
        # Only letters and digits reach the query language, each word quoted: nothing a user types can be an operator.
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query.text.lower()))
        found = index.execute(
            "SELECT id, -bm25(documents, 0, ?, ?, ?) AS score FROM documents WHERE documents MATCH ? "
            "ORDER BY score DESC, id DESC LIMIT ?",
            (*weights, words, DEPTH),
        )
        answers[query.query_id] = {doc_id: round(score, 4) for doc_id, score in found}
    return answers


def main() -> None:
    """Write both runs."""
    shipped = Path(ringtrue.__file__).parent / "golden" / "sets" / "hotel" / "runs"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else shipped
    folder.mkdir(parents=True, exist_ok=True)
    golden = ringtrue.load("hotel")
    for name, weights in WEIGHTS.items():
        ringtrue.write_run(ringtrue.Run.from_dict(search(golden, weights), name=name), folder / f"{name}.run")
        print(folder / f"{name}.run")


if __name__ == "__main__":
    main()
