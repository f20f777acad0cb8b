"""Qrels and runs in tables and documents: CSV, TSV, BEIR, Parquet, JSON, JSON lines, YAML.

All of them become the same thing first, rows of named values with a place, and one function turns rows into judgments or
answers. Column names of other tools are understood; a name that is nearly right is met with the right one. Plain lists of
queries are read here as well: one a line, CSV ``query[,count[,time]]``, JSON lines ``{"query": …}``.
"""

from __future__ import annotations

import csv
import glob
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringtrue.errors import nearest
from ringtrue.formats.text import (
    STDIN,
    Place,
    lines,
    read_bytes,
    read_json,
    read_jsonl,
    read_text,
    read_yaml,
    usable_id,
    write_text,
)
from ringtrue.formats.trec import finite, whole
from ringtrue.records import Qrels, Run

if TYPE_CHECKING:
    import duckdb

Row = tuple[Place, Mapping[str, Any]]
QUERY = ("query_id", "query-id", "qid", "q_id", "queryId", "topic", "query")
DOCUMENT = (
    "doc_id",
    "corpus-id",
    "corpus_id",
    "docid",
    "docno",
    "document_id",
    "documentId",
    "memoryId",
    "entity_id",
    "pid",
    "did",
)
GRADE = ("grade", "score", "relevance", "rel", "label", "judgment")
SCORE = ("score", "sim", "similarity", "relevance_score")
RANK = ("rank", "position")


def open_duckdb() -> duckdb.DuckDBPyConnection:
    """Return a connection that keeps standard output to itself: a progress bar there would spoil JSON."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    return connection


def _dialect(separator: str, *, quoted: bool = False, quote_all: bool = False) -> type[csv.Dialect]:
    """Return how values are written: quoted if needed, except in TSV, which has no quotes unless it is ``quoted``."""
    bare = separator == "\t" and not quoted

    class Dialect(csv.excel):
        delimiter = separator
        strict = True
        lineterminator = "\n"
        quotechar = None if bare else '"'
        quoting = csv.QUOTE_NONE if bare else csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL

    return Dialect


def csv_rows(path: Path, *, delimiter: str | None = None, least: int = 2, quoted: bool = False) -> Iterator[Row]:
    """Yield the rows of a CSV or TSV file with a header line, which names at least so many columns."""
    text = read_text(path)
    # The limit of 128 KiB a cell is the module's, not the format's; documents are longer than that.
    csv.field_size_limit(max(len(text), csv.field_size_limit()))
    header = text.lstrip("\r\n").split("\n", 1)[0]
    separator = delimiter or max(("\t", ",", ";"), key=header.count)
    reader = csv.reader((line[0] for line in re.finditer(r"[^\n]*\n|[^\n]+", text)), _dialect(separator, quoted=quoted))
    place = Place(str(path))
    names: list[str] = []
    start = 1  # where a record begins: an open quote is found only at the end of the file, far from the line to mend
    try:
        for fields in reader:
            here, start = place.on(start), reader.line_num + 1
            if fields and not names:
                names = [name.strip() for name in fields]
                _check_header(names, here, "tabs" if delimiter else "commas, semicolons or tabs", least=least)
            elif fields:
                if len(fields) != len(names):
                    found = f"{len(fields)} value{'s' if len(fields) != 1 else ''} ({separator.join(fields)!r:.60})"
                    cure = f"write {', '.join(names)}, and quote what holds the separator"
                    raise here.error(f"{found} for {len(names)} columns", cure)
                yield here, dict(zip(names, fields, strict=True))
    except csv.Error as problem:
        raise place.on(start).error(f"not valid CSV: {problem}", "fix the quotes or line ends there") from problem


def _check_header(names: Sequence[str], place: Place, separators: str = "", *, least: int = 2) -> None:
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise place.error(f"the column {sorted(repeated)[0]!r} is named twice", "give every column its own name")
    if len(names) < least:
        cure = "write query, document and a number" + (f", separated by {separators}" if separators else "")
        raise place.error(f"the only column is {names[0]!r:.60}", cure)


def parquet_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a Parquet file."""
    import duckdb

    place = Place(str(path))
    if str(path) == STDIN:
        raise place.error("Parquet cannot be read from standard input", "name the file")
    if not path.is_file():
        read_bytes(path)  # names a missing file and the similar ones beside it
    try:
        # A file name is not a pattern, and a folder called score=3 is not a column.
        source = glob.escape(str(path))
        found = open_duckdb().execute("SELECT * FROM read_parquet(?, hive_partitioning=false)", [source])
        names = [column[0] for column in found.description or ()]
        _check_header(names, place)
        number = 0
        while chunk := found.fetchmany(10_000):
            for values in chunk:
                number += 1
                yield place.at(f"row {number}"), dict(zip(names, values, strict=True))
    except duckdb.Error as problem:
        reason = str(problem).split("\n")[0]
        raise place.error(f"cannot be read ({reason})", "write the file again, or convert it to CSV") from problem


def document_rows(path: Path, value: Any) -> Iterator[Row]:
    """Yield the rows of a JSON or YAML document: a list of records, or ``{query: {document: value}}``."""
    place = Place(str(path))
    if isinstance(value, Mapping):
        for query_id, documents in value.items():
            here = place.at(str(query_id))
            rows: list[tuple[Place, Mapping[str, Any]]]
            if isinstance(documents, Mapping):
                rows = [(here.at(str(doc_id)), {"doc_id": str(doc_id), "score": score}) for doc_id, score in documents.items()]
            elif isinstance(documents, Sequence) and not isinstance(documents, str):
                rows = [(here.at(rank), {"doc_id": doc_id, "rank": rank + 1}) for rank, doc_id in enumerate(documents)]
            else:
                raise here.error(f"{documents!r:.60} is not an answer", "write {document: number} or [document, …]")
            yield from ((at, {"query_id": str(query_id), **row}) for at, row in rows or [(here, {})])
        return
    if not isinstance(value, list):
        raise place.error(f"the file holds {value!r:.60}", "write {query: {document: number}} or a list of records")
    for index, record in enumerate(value):
        here = place.at(index).on(getattr(record, "line", None))
        if not isinstance(record, Mapping):
            raise here.error(f"{record!r:.60} is not a record", "write an object with query_id, doc_id and a number")
        yield here, record


def _column(names: Iterable[str], wanted: tuple[str, ...], what: str, place: Place) -> str:
    known = list(names)
    for name in wanted:
        if name in known:
            return name
    raise place.error(
        f"no column for the {what} among {', '.join(map(repr, known)) or 'nothing'}",
        f"name it '{wanted[0]}'" + (f" (is {nearest(wanted[0], known, count=1)} meant?)" if known else ""),
    )


def _pair(row: Mapping[str, Any], place: Place) -> tuple[str, str | None]:
    """Return the ids of the query and document of a row; None for a query without documents."""
    query_id = _identity(row, QUERY, "query", place)
    return query_id, None if len(row) == 1 else _identity(row, DOCUMENT, "document", place)


def _identity(row: Mapping[str, Any], names: tuple[str, ...], what: str, place: Place) -> str:
    name = _column(row, names, what, place)
    value, here = row[name], place.at(name)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise here.error(f"{value!r:.60} is not usable as an id", "write a text")
    return usable_id(str(value), here)


def _digits(value: Any, place: Place, what: str, cure: str) -> str:
    """Return a number as it is written; raises InputError for a value that is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise place.error(f"{value!r:.60} is not {what}", cure)
    return str(value).strip()


def qrels_from(rows: Iterable[Row], path: Path) -> Qrels:
    """Return judgments from rows of named values."""
    queries: dict[str, None] = {}

    def judgments() -> Iterator[tuple[str, str, int]]:
        grades: dict[tuple[str, str], int] = {}
        for place, row in rows:
            query_id, doc_id = _pair(row, place)
            queries[query_id] = None
            if doc_id is None:
                continue
            name = _column(row, GRADE, "grade", place)
            # Tables made elsewhere write whole numbers as 2.0; the digits are read as they are: a float would round them.
            text = _digits(row[name], place.at(name), "a whole number", "write 0, 1, 2 …")
            grade = whole(re.sub(r"(?<=\d)\.0*$", "", text), place.at(name))
            known = grades.setdefault((query_id, doc_id), grade)
            if known != grade:
                problem = f"query '{query_id}' judges document '{doc_id}' twice, as {known} and as {grade}"
                raise place.error(problem, "keep one of the two")
            yield query_id, doc_id, grade
        if not queries:
            raise Place(str(path)).error("there is no judgment in it", "write at least one row")

    return Qrels.of(judgments()).with_queries(queries)


def run_from(rows: Iterable[Row], path: Path) -> Run:
    """Return answers from rows of named values; without a score column the rank column gives the order."""
    answered: list[str] = []
    answers: list[tuple[str, str, float]] = []
    number_name = ""
    for place, row in rows:
        query_id, doc_id = _pair(row, place)
        answered.append(query_id)
        if doc_id is None:
            continue
        name = _column(row, (*SCORE, *RANK), "score or rank", place)
        number_name = number_name or name
        if (name in RANK) != (number_name in RANK):
            raise place.error(f"this has a {name}, rows before it a {number_name}", "use one of the two for all queries")
        text = _digits(row[name], place.at(name), "a number", "write one like 12.5")
        answers.append((query_id, doc_id, finite(text, place.at(name), query_id, doc_id)))
    if not answered:
        raise Place(str(path)).error("there is no answer in it", "write at least one row")
    called = path.name.split(".")[0]
    if number_name not in RANK:
        return Run.of(answers, name=called).with_empty_answers(answered)
    # Ranks are the truth here: sort once, then keep the order.
    lists: dict[str, list[str]] = {query_id: [] for query_id, _, _ in answers}
    for query_id, doc_id, _ in sorted(answers, key=lambda answer: answer[2]):
        lists[query_id].append(doc_id)
    return Run.from_rankings(lists, name=called).with_empty_answers(answered)


def rows_of(path: Path, kind: str) -> Iterator[Row]:
    """Yield the rows of a file of one of the kinds 'csv', 'tsv', 'parquet', 'json', 'jsonl', 'yaml'."""
    if kind == "parquet":
        return parquet_rows(path)
    if kind == "jsonl":
        return ((place, record) for place, record in read_jsonl(path))
    if kind in ("csv", "tsv"):
        return csv_rows(path, delimiter="\t" if kind == "tsv" else None)
    return document_rows(path, read_yaml(path) if kind == "yaml" else read_json(path))


def write_rows(names: tuple[str, ...], rows: Iterable[tuple[Any, ...]], path: Path, kind: str) -> None:
    """Write rows of named values as 'csv', 'tsv', 'jsonl' or 'parquet'."""
    if kind == "parquet":
        _write_parquet(names, list(rows), path)
        return
    buffer = io.StringIO()
    if kind == "jsonl":
        for row in rows:
            # strict=False: a row may end early, {"query_id": …} being a query with no document.
            buffer.write(json.dumps(dict(zip(names, row, strict=False)), ensure_ascii=False) + "\n")
    else:
        table = list(rows)
        ids = "".join(f"{query_id}{doc_id}" for query_id, doc_id, *_ in table)
        unfit = re.search(r"[\t\r\n\0]" if kind == "tsv" else r"\0", ids)
        if unfit:
            raise Place(str(path)).error(f"an id with {unfit[0]!r} cannot stand in {kind.upper()}", "write JSON or Parquet")
        writer = csv.writer(buffer, _dialect("\t" if kind == "tsv" else ",", quote_all="\r" in ids))
        writer.writerow(names)
        writer.writerows(table)
    write_text(buffer.getvalue(), path)


def _write_parquet(names: tuple[str, ...], rows: list[tuple[Any, ...]], path: Path) -> None:
    import duckdb
    import numpy as np

    if path.suffix.lower() == ".gz":
        raise Place(str(path)).error("Parquet is compressed in itself", "name the file without .gz")
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    values = {
        name: np.array(column, object if not column or isinstance(column[0], str) else None)
        for name, column in zip(names, columns, strict=True)
    }
    connection = open_duckdb()
    try:
        connection.register("rows", values)
        connection.execute("COPY (SELECT * FROM rows) TO '" + str(path).replace("'", "''") + "' (FORMAT parquet)")
    except duckdb.Error as problem:
        reason = str(problem).split("\n")[0]
        raise Place(str(path)).error(f"cannot be written ({reason})", "check the ids and the folder") from problem


# ── lists of queries ────────────────────────────────────────────────────────────────────────────────────────────────

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
