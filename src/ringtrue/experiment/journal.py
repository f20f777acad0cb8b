"""Trials that were made before: an interrupted sweep goes on where it ended.

One file per set of queries, documents, measure and program; a line per trial with the value of every query. A line is keyed by
the fingerprint of its retriever, so that whatever the retriever is made of has to be the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Values = Mapping[str, float]
"""Query → value; nan where it is not defined."""


class Journal:
    """The trials in one file; ``path`` None remembers nothing."""

    def __init__(self, path: Path | None, *, fresh: bool = False) -> None:
        self.path = path
        if fresh and path is not None:
            path.unlink(missing_ok=True)
        self.known: dict[str, Values] = {} if path is None or not path.is_file() else _read(path)

    def write(self, fingerprint: str, values: Values, **told: Any) -> None:
        """Add a trial; the other fields are for people who read the file."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        kept = {query: None if math.isnan(value) else value for query, value in values.items()}
        line = json.dumps({"fingerprint": fingerprint, **told, "per_query": kept}, ensure_ascii=False)
        with self.path.open("a+b") as file:
            # A process that was killed while writing left half a line, which must not swallow this one.
            file.seek(0, 2)
            whole = file.tell() == 0 or _last(file) == b"\n"
            file.write((b"" if whole else b"\n") + line.encode("utf-8", "replace") + b"\n")


def _last(file: Any) -> bytes:
    file.seek(-1, 2)
    return bytes(file.read(1))


def _read(path: Path) -> dict[str, Values]:
    known: dict[str, Values] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            row = json.loads(line)
            values = {str(query): math.nan if value is None else float(value) for query, value in row["per_query"].items()}
            known[str(row["fingerprint"])] = values
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # half a line: that trial is made again
    return known
