"""Files ⇄ the log: spans, UBI lines and plain lists of queries come in, our own lines come in and go out, tables go out."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from ringtrue.answers import EventType
from ringtrue.errors import InputError, nearest
from ringtrue.formats import ListedQuery, Place, is_query_list, open_duckdb, queries_in, read_jsonl, read_query_list, write_rows
from ringtrue.log.capture import imported_id, iso
from ringtrue.log.importers import ACTIONS, is_spans, is_ubi, queries_in_spans, rows_in_ubi, time_of
from ringtrue.log.linking import PAGE
from ringtrue.log.redact import Redactor
from ringtrue.log.rows import Row, data_of, line_of, row_of
from ringtrue.store import DEFAULT_PROJECT, QUERY_LIST, FeedbackEvent, LoggedQuery, timestamp

if TYPE_CHECKING:
    from ringtrue.store import Store

Source = Literal["auto", "spans", "ubi", "ringtrue", "queries"]
SOURCES: tuple[Source, ...] = get_args(Source)
ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}
MOST_LISTED = 1_000_000
"""Searches that a file of plain queries may stand for; each becomes a row of the log."""
WITH_CLICKS = (
    "to import results and clicks, write JSON lines: a search has query_id, query, tool_name, created_at, session_id and "
    "result_ids, a click event_id, event_type, session_id, query_id, item_id and created_at; or write OpenSearch UBI"
)


@dataclass(frozen=True)
class Imported:
    """What files held, and how much of it was new to the log."""

    queries: int = 0
    new_queries: int = 0
    feedback: int = 0
    new_feedback: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Spans and actions that are neither searches nor feedback, by their kind."""
    notes: tuple[str, ...] = ()
    """What was decided where files leave it open."""


def import_files(
    store: Store,
    paths: Sequence[str | Path],
    *,
    cleaner: Redactor,
    project: str = DEFAULT_PROJECT,
    source: Source = "auto",
    actions: Mapping[str, EventType] = ACTIONS,
    columns: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> Imported:
    """Read files into the log; doing it again adds nothing.

    ``columns`` names the columns of a list of queries: ``{"query": "term"}``; ``now`` is the time of those without one.

    Every file is read to its end before a row of it is written, so that a mistake in it, an InputError with line and field,
    leaves nothing half done. Rows are redacted like those of a live log.
    """
    counts: Counter[str] = Counter()
    skipped: dict[str, int] = {}
    notes: list[str] = []
    at = timestamp(now or datetime.now(UTC))
    for path in paths:
        if source == "queries" or columns or (source == "auto" and is_query_list(path)):
            listed, unused = read_query_list(path, columns=columns)
            rows: list[Row] = list(_searches(listed, unused, project, at, notes))
        else:
            lines = read_jsonl(path)
            first = list(islice(lines, 1))
            kind = _kind(first) if source == "auto" else source
            every = chain(first, lines)
            if kind == "queries":
                others: dict[str, None] = {}
                rows = list(_searches(list(queries_in(every, unused=others)), tuple(others), project, at, notes))
            elif kind == "spans":
                rows = list(queries_in_spans(every, project=project, skipped=skipped))
            elif kind == "ubi":
                rows = list(rows_in_ubi(every, project=project, actions=actions, skipped=skipped))
            else:
                rows = [replace(row_of(data, where), project=project) for where, data in every]
        queries = [cleaner.query(row) for row in rows if isinstance(row, LoggedQuery)]
        events = [cleaner.feedback(row) for row in rows if isinstance(row, FeedbackEvent)]
        counts["queries"] += len(queries)
        counts["feedback"] += len(events)
        for start in range(0, len(rows), PAGE):
            counts["new_queries"] += store.add_queries(queries[start : start + PAGE])
            counts["new_feedback"] += store.add_feedback(events[start : start + PAGE])
    return Imported(**counts, skipped=skipped, notes=tuple(notes))


def _searches(
    listed: Sequence[ListedQuery], unused: Sequence[str], project: str, at: str, notes: list[str]
) -> Iterator[LoggedQuery]:
    """Yield a search for every time that a listed query was asked; what it found is unknown.

    Ids come from the texts and times alone, so that the same list always gives the same searches.
    """
    total = sum(one.count for one in listed)
    if total > MOST_LISTED:
        cure = f"leave out the counts, or import parts of at most {MOST_LISTED:,}"
        raise listed[0].place.error(f"the list counts {total:,} searches", cure)
    notes += [f"ignored columns: {', '.join(unused)}"] * bool(unused)
    notes += [WITH_CLICKS] * any(re.match("session|result|click", name.lower()) for name in unused)
    untimed = [one for one in listed if one.time is None]
    if untimed:
        count = sum(one.count for one in untimed)
        notes.append(f"{count:,} searches have no time in the file; the time of the import is used")
    # Without times, only the whole list tells one import from the next.
    whole = hashlib.sha256(repr([(one.text, one.count) for one in untimed]).encode("utf-8", "surrogatepass")).hexdigest()
    seen: Counter[tuple[str, str | None]] = Counter()
    for one in listed:
        micros = 0 if one.time is None else time_of({"time": one.time}, ("time",), one.place)
        asked = at if one.time is None else iso(micros)
        for _ in range(one.count):
            seen[one.text, one.time] += 1
            parts = (project, one.text, whole if one.time is None else asked, str(seen[one.text, one.time]))
            yield LoggedQuery(imported_id("eq_", micros, *parts), one.text, QUERY_LIST, asked, project=project)


def _kind(first: Sequence[tuple[Place, Mapping[str, Any]]]) -> Source:
    """Return what a file holds, from its first line; one without lines may hold anything."""
    place, record = next(iter(first), (Place(""), {"query_id": ""}))
    kinds: dict[Source, bool] = {
        "spans": is_spans(record),
        "ubi": is_ubi(record),
        "ringtrue": "query_id" in record or "event_id" in record,
        "queries": "query" in record,
    }
    for kind, holds in kinds.items():
        if holds:
            return kind
    wrong = f"the line with {', '.join(list(record)[:6])} is not a span, a UBI record, a query or a Ringtrue record"
    raise place.error(wrong, "give its kind with --from")


def export_rows(rows: Iterable[Row], path: str | Path) -> int:
    """Write rows to a file of JSON lines, CSV or Parquet, seen from its ending; return how many.

    JSON lines hold everything and can be imported again; in CSV and Parquet structures are JSON texts. Raises InputError for
    another ending.
    """
    place = Path(path)
    kind = ENDINGS.get(place.suffix.lower())
    if kind is None:
        raise InputError(f"{path}: cannot write '{place.suffix or path}'; end the name with {nearest(place.suffix, ENDINGS)}")
    place.parent.mkdir(parents=True, exist_ok=True)
    if kind == "jsonl":
        with place.open("w", encoding="utf-8", errors="backslashreplace") as file:
            return sum(bool(file.write(line_of(row) + "\n")) for row in rows)
    # A cell is a text or a number: structures are JSON.
    table = [
        {
            name: json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict | list | tuple) else value
            for name, value in (
                data_of(row) | ({"result_count": row.result_count} if isinstance(row, LoggedQuery) else {})
            ).items()
        }
        for row in rows
    ]
    names = tuple(dict.fromkeys(name for row in table for name in row)) or ("query_id",)
    if kind == "csv":
        write_rows(names, [tuple(map(row.get, names)) for row in table], place, "csv")
    else:
        _parquet(names, table, place)
    return len(table)


def _parquet(names: Sequence[str], table: Sequence[Mapping[str, Any]], path: Path) -> None:
    columns = ", ".join(f"'{name}': '{_type(row.get(name) for row in table)}'" for name in names)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row, ensure_ascii=True) + "\n" for row in table)
        lines.flush()
        read = f"read_json(?, format='newline_delimited', columns={{{columns}}})"
        target = str(path).replace("'", "''")
        open_duckdb().execute(f"COPY (SELECT * FROM {read}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)", [lines.name])


def _type(values: Iterable[Any]) -> str:
    known = {type(value) for value in values if value is not None}
    if known == {bool}:
        return "BOOLEAN"
    if known == {int}:
        return "BIGINT"
    return "DOUBLE" if known and known <= {int, float} else "VARCHAR"
