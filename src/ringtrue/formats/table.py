"""Qrels and runs in tables and documents: CSV, TSV, BEIR, Parquet, JSON, JSON lines, YAML.

All of them become the same thing first, rows of named values with a place, and one function turns rows into judgments or
answers. Column names of other tools are understood; a name that is nearly right is met with the right one.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError, nearest
from ringtrue.formats.text import Place, read_bytes, read_json, read_jsonl, read_text, read_yaml
from ringtrue.formats.trec import finite
from ringtrue.records import Qrels, Run

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
_LARGE = 32 << 20


def _dialect(separator: str) -> type[csv.Dialect]:
    """Return how values are written: quoted where needed, except in TSV, which knows no quotes."""

    class Dialect(csv.excel):
        delimiter = separator
        strict = True
        lineterminator = "\n"
        quoting = csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL

    return Dialect


def csv_rows(path: Path, *, delimiter: str | None = None) -> Iterator[Row]:
    """Yield the rows of a CSV or TSV file with a header line."""
    content = read_bytes(path)
    if len(content) > _LARGE and path.suffix != ".gz":
        yield from _duckdb_rows(path, "read_csv(?, header=true, all_varchar=true)")
        return
    text = read_text(path)
    header = text.split("\n", 1)[0]
    separator = delimiter or max(("\t", ",", ";"), key=header.count)
    reader = csv.reader(io.StringIO(text), _dialect(separator))
    place = Place(str(path))
    names: list[str] = []
    try:
        for fields in reader:
            here = place.on(reader.line_num)
            if not names:
                names = [name.strip() for name in fields]
                repeated = {name for name in names if names.count(name) > 1}
                if repeated:
                    raise here.error(f"the column {sorted(repeated)[0]!r} is named twice", "give every column its own name")
            elif fields:
                if len(fields) != len(names):
                    raise here.error(f"{len(fields)} values for {len(names)} columns", f"write {', '.join(names)}")
                yield here, dict(zip(names, fields, strict=True))
    except csv.Error as problem:
        raise place.on(reader.line_num).error(f"not valid CSV: {problem}", "mend the quotes there") from problem


def parquet_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a Parquet file."""
    yield from _duckdb_rows(path, "read_parquet(?)")


def _duckdb_rows(path: Path, source: str) -> Iterator[Row]:
    import duckdb

    place = Place(str(path))
    if not path.is_file():
        read_bytes(path)  # names a missing file and the similar ones beside it
    try:
        found = duckdb.connect().execute(f"SELECT * FROM {source}", [str(path)])
        names = [column[0] for column in found.description or ()]
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
            if isinstance(documents, Mapping):
                pairs: Iterable[tuple[str, Any]] = ((str(doc_id), grade) for doc_id, grade in documents.items())
                for doc_id, grade in pairs:
                    yield here.at(doc_id), {"query_id": str(query_id), "doc_id": doc_id, "score": grade}
                if not documents:
                    yield here, {"query_id": str(query_id)}
            elif isinstance(documents, Sequence) and not isinstance(documents, str):
                for rank, doc_id in enumerate(documents, 1):
                    yield here.at(rank - 1), {"query_id": str(query_id), "doc_id": doc_id, "rank": rank}
                if not documents:
                    yield here, {"query_id": str(query_id)}
            else:
                raise here.error(f"{documents!r:.60} is no answer", "write {document: number} or [document, …]")
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


def _identity(value: Any, place: Place) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise place.error(f"{value!r:.60} is not usable as an id", "write a text")
    text = str(value)
    if not text.strip():
        raise place.error("the id is blank", "write a non-blank text")
    return text


def qrels_from(rows: Iterable[Row], path: Path) -> Qrels:
    """Return judgments from rows of named values."""
    empty: list[str] = []

    def judgments() -> Iterator[tuple[str, str, int]]:
        grades: dict[tuple[str, str], int] = {}
        found = False
        for place, row in rows:
            found = True
            query_name = _column(row, QUERY, "query", place)
            query_id = _identity(row[query_name], place.at(query_name))
            if len(row) == 1:
                empty.append(query_id)
                continue
            doc_name, grade_name = _column(row, DOCUMENT, "document", place), _column(row, GRADE, "grade", place)
            doc_id = _identity(row[doc_name], place.at(doc_name))
            grade = _grade(row[grade_name], place.at(grade_name))
            if grades.setdefault((query_id, doc_id), grade) != grade:
                known = grades[query_id, doc_id]
                raise place.error(
                    f"query '{query_id}' judges document '{doc_id}' twice, as {known} and as {grade}", "keep one of the two"
                )
            yield query_id, doc_id, grade
        if not found:
            raise Place(str(path)).error("there is no judgment in it", "write at least one row")

    return Qrels.of(judgments()).with_queries(empty)


def _grade(value: Any, place: Place) -> int:
    try:
        number = float(value) if not isinstance(value, bool | None) else None
    except (TypeError, ValueError):
        number = None
    if number is None or not number.is_integer():
        raise place.error(f"{value!r:.60} is not a whole number", "write 0, 1, 2 …")
    return int(number)


def run_from(rows: Iterable[Row], path: Path) -> Run:
    """Return answers from rows of named values; without a score column the rank column gives the order."""
    answered: list[str] = []
    answers: list[tuple[str, str, float]] = []
    by_rank = False
    for place, row in rows:
        query_name = _column(row, QUERY, "query", place)
        query_id = _identity(row[query_name], place.at(query_name))
        answered.append(query_id)
        if len(row) == 1:
            continue
        doc_name = _column(row, DOCUMENT, "document", place)
        doc_id = _identity(row[doc_name], place.at(doc_name))
        has_score = any(name in row for name in SCORE)
        name = _column(row, SCORE if has_score else RANK, "score or rank", place)
        value = row[name]
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise place.at(name).error(f"{value!r:.60} is not a number", "write one like 12.5")
        number = finite(str(value).strip(), place.at(name), query_id, doc_id)
        by_rank = by_rank or not has_score
        answers.append((query_id, doc_id, number if has_score else -number))
    if not answered:
        raise Place(str(path)).error("there is no answer in it", "write at least one row")
    run = Run.of(answers, name=path.name.split(".")[0]).with_empty_answers(answered)
    if not by_rank:
        return run
    # Ranks are the truth here: sort once, then keep the order.
    ranked: dict[str, list[tuple[float, str]]] = {}
    for query_id, doc_id, number in answers:
        ranked.setdefault(query_id, []).append((-number, doc_id))
    lists = {query_id: [doc for _, doc in sorted(pairs, key=lambda pair: pair[0])] for query_id, pairs in ranked.items()}
    return Run.from_rankings(lists, name=run.name).with_empty_answers(answered)


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
        import json

        for row in rows:
            buffer.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n")
    else:
        writer = csv.writer(buffer, _dialect("\t" if kind == "tsv" else ","))
        try:
            writer.writerow(names)
            writer.writerows(rows)
        except csv.Error as problem:
            raise InputError(
                f"{path}: an id with a tab or line break cannot stand in TSV ({problem}); write CSV or JSON"
            ) from problem
    path.write_text(buffer.getvalue(), encoding="utf-8", newline="\n")


def _write_parquet(names: tuple[str, ...], rows: list[tuple[Any, ...]], path: Path) -> None:
    import duckdb
    import numpy as np

    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    values = {
        name: np.array(column, object if not column or isinstance(column[0], str) else None)
        for name, column in zip(names, columns, strict=True)
    }
    connection = duckdb.connect()
    connection.register("rows", values)
    connection.execute("COPY (SELECT * FROM rows) TO '" + str(path).replace("'", "''") + "' (FORMAT parquet)")
