"""Tables of judgments, one row a (query, document) pair: CSV, TSV and Parquet.

Columns: ``query_id, doc_id, grade`` and, if wanted, ``query_text, source, negative, doc_title, doc_text``. The usual other
names (``query, docid, relevance …``) are understood; ``columns`` maps any others. Without a column of ids a query is known by
its words. Any other column is metadata: of the query if it has one value per query throughout the table, else (or if it is
called ``judgment.NAME``) of the judgment. A row without document and grade names a query that has no judgment. A table of
questions and documents without a column of grades lists what is relevant.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError
from ringtrue.formats import (
    DOCUMENT,
    GRADE,
    QUERY,
    Place,
    csv_rows,
    field_of,
    open_duckdb,
    parquet_rows,
    read_bytes,
)
from ringtrue.golden.formats import fields
from ringtrue.golden.formats.fields import Complaints, Draft, Record
from ringtrue.golden.formats.folders import judged, write_text
from ringtrue.records import Document, GoldenSet, Judgment, Query

REQUIRED = ("query_id", "doc_id", "grade")
OPTIONAL = ("query_text", "source", "negative", "doc_title", "doc_text")
OF_JUDGMENT = "judgment."
RELEVANT = 1
"""The grade of every row of a table without grades."""
OTHERS = {
    "query_id": tuple(name for name in QUERY if name != "query"),
    "query_text": ("query", "question"),
    "doc_id": DOCUMENT,
    "grade": tuple(name for name in GRADE if name != "score"),
}
"""What other tools call these columns; a score may be a search's, so it is a grade only for who says so."""
_CONVERT = "say what it is called: ringtrue golden convert {} gold.json --columns {}"
_WHOLE = re.compile(r"([-+]?\d{1,9})(?:\.0+)?")
"""A whole number; data frames write 2 as 2.0 if the column had an empty cell."""
_NUMBER = re.compile(r"\s*[-+]?\d+([.,]\d+)?\s*")
_TRUTH = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}


Columns = Mapping[str, str]
"""Our name of a column by its name in a file: ``{"sku": "doc_id"}``."""


def read(path: Path, complaints: Complaints, *, columns: Columns | None = None) -> GoldenSet:
    """Return the set in a Parquet file, or in one separated by commas, tabs or semicolons."""
    rows = list(_rows(path, columns or {}))
    if not rows:
        raise InputError(f"{path}: holds no row below its header; write one for each judgment: query_id, doc_id, grade")
    if not any("query_id" in row for _, row in rows):
        rows = [(place, {"query_id": row["query_text"], **row} if "query_text" in row else row) for place, row in rows]
    records = [record for _, record in rows]
    per_query = _constant_columns(records)
    draft = Draft(complaints)
    _check_ungraded(path, records)
    for place, record in rows:
        with complaints.about(place):
            _read_row(record, place, per_query, draft)
    draft.note_ungraded(RELEVANT)
    return draft.finish_table(path.stem)


def is_parquet(path: Path) -> bool:
    """True for a Parquet file, whatever its name ends in."""
    return read_bytes(path)[:4] == b"PAR1"


def columns_from(given: Mapping[str, str]) -> Columns:
    """Return a mapping of columns as a reader takes it, from ``{ours: theirs}``; raises InputError for a name that is not ours.

    >>> columns_from({"doc_id": "sku"})
    {'sku': 'doc_id'}
    """
    named = {"query_text" if ours == "query" else ours: theirs for ours, theirs in given.items()}
    for name in named:
        if name not in (*REQUIRED, *OPTIONAL):
            raise InputError(f"a golden set has no column '{name}'; name one of {', '.join((*REQUIRED, *OPTIONAL))}")
    return {theirs: ours for ours, theirs in named.items()}


def _rows(path: Path, mapping: Columns) -> Iterator[tuple[Place, Record]]:
    columns: list[str] = []
    # An empty cell is no value: CSV cannot tell it from an empty text.
    found, empty = (parquet_rows(path), None) if is_parquet(path) else (csv_rows(path, quoted=True), "")
    for place, row in found:
        columns = columns or _named(list(row), Place(str(path)).on(None if empty is None else 1), mapping)
        cells = zip(columns, row.values(), strict=True)
        yield place, _ungraded(columns) | {name: _value(cell) for name, cell in cells if cell is not None and cell != empty}


def _ungraded(columns: list[str]) -> Record:
    """Return what each row of a table without grades holds, to tell it from an empty cell."""
    return {} if "grade" in columns else {"grade": None}


def _value(cell: Any) -> Any:
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return float(cell) if isinstance(cell, decimal.Decimal) else cell


def _named(given: list[str], place: Place, mapping: Columns) -> list[str]:
    """Return the columns under our names; raises InputError for one that is missing, misspelt or there twice."""
    names = [name.strip() for name in given]
    for name in mapping:
        if name not in names:
            raise place.error(f"no column '{name}' to read as '{mapping[name]}'", f"name one of {_listed(names)}")
    columns = [mapping.get(name) or _uncapitalised(name, names) for name in names]
    for name, others in OTHERS.items():
        found = [other for other in columns if other in others]
        if name not in columns and len(found) > 1:
            cure = _CONVERT.format(place.file, f"{name}={found[0]}")
            raise place.error(f"the columns {_listed(found)} may both be '{name}'", cure)
        if name not in columns and found:
            columns[columns.index(found[0])] = name
    _check_columns(columns, names, place)
    return columns


def _uncapitalised(name: str, names: list[str]) -> str:
    """Return ``doc_id`` for ``Doc_ID`` and the like, unless another column has that role; any other name as it is."""
    small = name.lower()
    roles = ({ours, *OTHERS.get(ours, ())} for ours in (*REQUIRED, *OPTIONAL))
    return small if any(small in role and role.isdisjoint(names) for role in roles) else name


def _check_columns(columns: list[str], given: list[str], place: Place) -> None:
    twice = next((name for name in columns if columns.count(name) > 1), None)
    if twice is not None:
        raise place.error(f"the column '{twice}' is given twice", "keep one of the two")
    others = [column for column in columns if column not in (*REQUIRED, *OPTIONAL)]
    for name in (*REQUIRED, *OPTIONAL):
        meant = None if name in columns else fields.alike(name, others)
        if meant is not None:
            raise place.error(f"the column '{meant}' is not known", f"did you mean '{name}'?")
        if name in REQUIRED and name not in columns and not (name != "doc_id" and "query_text" in columns):
            raise _missing(name, given, place)


def _missing(name: str, given: Iterable[str], place: Place) -> InputError:
    cure = f"add it, or {_CONVERT.format(place.file, f'{name}=NAME')} (the file has {_listed(given):.200})"
    return place.error(f"the column '{name}' is missing", cure)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _check_ungraded(path: Path, records: list[Record]) -> None:
    """Raise InputError if a table without grades has a column of numbers, which may be its grades under another name."""
    names = dict.fromkeys(name for record in records for name in record if name != "grade")
    if records and records[0].get("grade", 0) is None:
        for name in filter(_is_fact, names):
            if all(_NUMBER.fullmatch(str(record.get(name, ""))) for record in records):
                raise _missing("grade", names, Place(str(path)))


def _constant_columns(records: list[Record]) -> set[str]:
    """Return the columns that have one value (or none) per query throughout the table."""
    constant = {name for record in records for name in record}
    first: dict[str, Record] = {}
    for record in records:
        known = first.setdefault(str(record.get("query_id")), record)
        constant = {name for name in constant if known.get(name) == record.get(name)}
    return constant


def _read_row(record: Record, place: Place, per_query: set[str], draft: Draft) -> None:
    if "query_id" not in record:
        raise place.at("query_id").error("the cell is empty", "write the id of the query")
    query_id = fields.as_id(record["query_id"], place.at("query_id"))
    facts = {name: value for name, value in record.items() if _is_fact(name) and name in per_query}
    text = field_of(record, "query_text", str, place, default="")
    query = Query(query_id, text, facts, _truth(record.get("negative", False), place.at("negative")))
    known = draft.queries.get(query_id)
    if known is None:
        draft.add_query(query, place)
    elif (known.text, known.negative) != (query.text, query.negative):
        field = "query_text" if known.text != query.text else "negative"
        raise place.at(field).error(f"an earlier row differs for query '{query_id}'", "use one value on all its rows")
    if "doc_id" not in record and record.get("grade") is None:
        return
    for name in ("doc_id", "grade"):
        if name not in record:
            raise place.at(name).error("the cell is empty", f"write the {name} of this judgment")
    doc_id = fields.as_id(record["doc_id"], place.at("doc_id"))
    details = {name.removeprefix(OF_JUDGMENT): value for name, value in record.items() if name.startswith(OF_JUDGMENT)}
    details |= {name: value for name, value in record.items() if _is_fact(name) and name not in per_query}
    source = fields.source_of(record, "source", place) or None
    draft.listed(place, graded=record["grade"] is not None)
    value = RELEVANT if record["grade"] is None else _grade(record["grade"], place.at("grade"))
    draft.add_judgment(Judgment(query_id, doc_id, value, source, details), place)
    _read_document(record, doc_id, place, draft)


def _read_document(record: Record, doc_id: str, place: Place, draft: Draft) -> None:
    if "doc_text" not in record and "doc_title" not in record:
        return
    text = field_of(record, "doc_text", str, place, default="")
    document = Document(doc_id, text, field_of(record, "doc_title", str, place, default=""))
    if draft.documents.setdefault(doc_id, document) != document:
        raise place.at("doc_text").error(f"an earlier row differs for document '{doc_id}'", "use one value on all its rows")


def _is_fact(name: str) -> bool:
    return name not in REQUIRED and name not in OPTIONAL and not name.startswith(OF_JUDGMENT)


def _truth(value: Any, place: Place) -> bool:
    known = _TRUTH.get(str(value).strip().lower())
    if known is None:
        raise place.error(f"{value!r:.60} is neither true nor false", "write true or false")
    return known


def _grade(value: Any, place: Place) -> int:
    whole = _WHOLE.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(whole[1]) if whole else fields.grade(value, place)


def _table(golden: GoldenSet) -> tuple[list[str], list[Record]]:
    documents = {document.doc_id: document for document in golden.documents}
    rows: list[Record] = []
    for query, judgments in judged(golden):
        facts = {key: value for key, value in query.metadata.items() if _is_fact(key)}
        start: Record = {"query_id": query.query_id, "query_text": query.text, "doc_id": None, "grade": None, **facts}
        start |= fields.said(negative=query.negative)
        for judgment in judgments:
            row = start | {"doc_id": judgment.doc_id, "grade": judgment.grade} | fields.said(source=judgment.source)
            row |= {OF_JUDGMENT + key: value for key, value in judgment.metadata.items()}
            document = documents.get(judgment.doc_id)
            rows.append(row | ({"doc_title": document.title, "doc_text": document.text} if document else {}))
        if not judgments:
            rows.append(start)
    return list(dict.fromkeys(["query_id", "query_text", "doc_id", "grade", *(name for row in rows for name in row)])), rows


def write_csv(golden: GoldenSet, path: Path) -> None:
    """Write a comma-separated file, or a tab-separated one where the path ends in .tsv."""
    columns, rows = _table(golden)
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter="\t" if path.suffix == ".tsv" else ",", lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in columns])
    write_text(out.getvalue(), path)


def _cell(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def write_parquet(golden: GoldenSet, path: Path) -> None:
    """Write a Parquet file; a metadata column of mixed or nested values is written as text."""
    import duckdb

    columns, rows = _table(golden)
    kinds = {name: _sql_type([row[name] for row in rows if row.get(name) is not None]) for name in columns}
    names = [name.replace('"', '""') for name in columns]
    named = ", ".join(f'"{name}" {kind}' for name, kind in zip(names, kinds.values(), strict=True))
    texts = {name for name, kind in kinds.items() if kind == "VARCHAR"}
    cells = [
        [_cell(row[name]) if name in texts and row.get(name) is not None else row.get(name) for name in columns] for row in rows
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_duckdb() as connection:
        try:
            connection.execute(f"CREATE TABLE judgments ({named})")
            if cells:
                connection.executemany(f"INSERT INTO judgments VALUES ({', '.join('?' for _ in columns)})", cells)
            target = str(path).replace("'", "''")
            connection.execute(f"COPY judgments TO '{target}' (FORMAT PARQUET)")
        except (duckdb.Error, UnicodeEncodeError) as problem:
            reason = str(problem).splitlines()[0]
            raise InputError(f"{path}: cannot be written as Parquet ({reason:.120}); use a JSON format") from problem


def _sql_type(values: list[Any]) -> str:
    kinds = {type(value) for value in values}
    return {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}.get(kinds.pop(), "VARCHAR") if len(kinds) == 1 else "VARCHAR"
