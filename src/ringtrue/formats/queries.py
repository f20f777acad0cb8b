"""Plain lists of queries: one a line, CSV ``query[,count[,time]]``, JSON lines ``{"query": …}``. Texts come out, no answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringtrue.formats.table import Row, csv_rows
from ringtrue.formats.text import Place, lines, read_jsonl

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "query": ("query", "query_text"),
    "count": ("count", "frequency"),
    "time": ("time", "timestamp"),
}
"""What a list may say of a query, and the names that are understood without being told."""
_TABLES, _TEXTS = (".csv", ".tsv"), (".txt", "")


@dataclass(frozen=True, slots=True)
class ListedQuery:
    """A query that somebody asked: how often, and when if that is known, as it was written."""

    text: str
    count: int
    time: str | None
    place: Place


def is_query_list(path: str | Path) -> bool:
    """True for a file that is a table or text by its ending; JSON may be anything, and is told by its fields."""
    return _ending(path) in _TABLES or _ending(path) == ".txt"


def read_query_list(path: str | Path, *, columns: Mapping[str, str] | None = None) -> tuple[list[ListedQuery], tuple[str, ...]]:
    """Return the queries in a file, and the names of columns that were not used.

    ``columns`` says what columns are called: ``{"query": "term"}``. Raises InputError with line, field and cure.
    """
    ending = _ending(path)
    if ending in _TEXTS and not columns:
        found = ((text.strip(), Place(str(path), number)) for number, text in lines(path))
        return [ListedQuery(text, 1, None, place) for text, place in found if text], ()
    rows = csv_rows(Path(path), least=1) if ending in _TABLES else read_jsonl(path)
    unused: dict[str, None] = {}
    return list(queries_in(rows, columns=columns, unused=unused)), tuple(unused)


def _ending(path: str | Path) -> str:
    return Path(str(path).removesuffix(".gz")).suffix.lower()


def queries_in(
    rows: Iterable[Row], *, columns: Mapping[str, str] | None = None, unused: dict[str, None] | None = None
) -> Iterator[ListedQuery]:
    """Yield the queries in rows of named values; ``unused`` collects the names of other columns."""
    said = columns or {}
    for place, row in rows:
        names = {ours: _name(row, ours, said, place) for ours in COLUMNS}
        if unused is not None:
            unused.update(dict.fromkeys(name for name in row if name not in names.values()))
        text = row[names["query"] or "query"]
        if not isinstance(text, str) or not text.strip():
            raise place.at(names["query"] or "query").error(f"{text!r:.60} is not a query", "write its text, or remove the row")
        time = row.get(names["time"]) if names["time"] else None
        yield ListedQuery(text.strip(), _count(row, names["count"], place), None if time in (None, "") else str(time), place)


def _name(row: Mapping[str, Any], ours: str, said: Mapping[str, str], place: Place) -> str | None:
    """Return what a row calls a column; None if it does not have it."""
    others = (said[ours],) if ours in said else COLUMNS[ours]
    found = [name for name in others if name in row]
    if not found and (ours in said or ours == "query"):
        cure = f"name it with --columns {ours}=NAME (the file has {', '.join(map(repr, row)):.200})"
        raise place.error(f"there is no column '{others[0]}'", cure)
    return found[0] if found else None


def _count(row: Mapping[str, Any], name: str | None, place: Place) -> int:
    value = 1 if name is None else row.get(name)
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9]{1,9}\s*", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise place.at(str(name)).error(f"{value!r:.60} is not a count", "write how often it was asked, from 1")
    return value
