"""Records → files that diff well in git: UTF-8, LF, keys in a stable order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError
from ringtrue.formats import text as text_file
from ringtrue.records import GoldenSet, Judgment


def write_text(text: str, path: Path) -> None:
    """Write a text file, in a folder made where there is none; raises InputError for text that UTF-8 cannot hold."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text_file.write_text(text, path)


def write_json(value: Any, path: Path) -> None:
    """Write one JSON document, indented."""
    write_text(as_json(value, path, indent=2) + "\n", path)


def write_json_lines(rows: Iterable[Any], path: Path) -> None:
    """Write one JSON object a line."""
    write_text("".join(as_json(row, path) + "\n" for row in rows), path)


def as_json(value: Any, path: Path, *, indent: int | None = None) -> str:
    """Return JSON text; raises InputError for a value that JSON has no form for."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except (TypeError, ValueError) as problem:
        raise InputError(
            f"{path}: cannot be written, {problem}; keep only text, numbers, lists and objects as metadata"
        ) from None


def judged(golden: GoldenSet) -> dict[str, list[Judgment]]:
    """Return the judgments of each query of the set, in their order."""
    groups: dict[str, list[Judgment]] = {query.query_id: [] for query in golden.queries}
    for judgment in golden.judgments:
        if judgment.query_id in groups:
            groups[judgment.query_id].append(judgment)
    return groups
