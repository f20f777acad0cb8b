"""The store as a whole: everything the platform remembers, behind one name, with backup, restore and moving between databases.

A move is rows in, the same rows out, counted and compared. A backup is one compressed file of JSON lines: a head, then for
each table its columns, its rows as lists, and how many they were with their digest, then an end. It reads on either database.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, LargeBinary, Table, TableClause, column, delete, func, select, text, update

from ringtrue.errors import InputError, MissingInput
from ringtrue.store import schema
from ringtrue.store.base import Base, Moment
from ringtrue.store.engine import explained
from ringtrue.store.events import EventStore
from ringtrue.store.forget import UserDeletion
from ringtrue.store.library import LibraryStore
from ringtrue.store.operations import OperationsStore
from ringtrue.store.records import timestamp
from ringtrue.store.retention import read_lines, replace_file
from ringtrue.store.tables import TABLES

FORMAT = 1
BATCH = 500
FEW = 8
"""Rows at a time where each may be several megabytes."""
PORTABLE = ".jsonl.gz"
Values = Sequence[Any]


class Store(EventStore, LibraryStore, OperationsStore, UserDeletion):
    """Records ⇄ SQL, on SQLite or PostgreSQL. Every call is one transaction; any thread, and a forked process, may call.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/store.sqlite") as store:
    ...     store.counts()["eval_queries"]
    0
    """

    def counts(self) -> dict[str, int]:
        """Return how many rows each table has, over all projects."""
        with self._reading() as connection:
            return {table.name: connection.execute(select(func.count()).select_from(table)).scalar_one() for table in TABLES}

    def check_writable(self) -> None:
        """Write something, and leave everything as it was; raises what a write raises if the database does not take it."""
        row = TableClause(schema.VERSION_TABLE, column("version_num"))
        with self._writing() as connection:
            # SQLite writes nothing for a value that does not change. Several pages, as rows need: a full disk may hold one.
            more = " " * (48 * 1024 if self.address.sqlite is not None else 1)
            connection.execute(update(row).values(version_num=row.c.version_num + more))
            connection.execute(update(row).values(version_num=func.rtrim(row.c.version_num)))

    def schema_version(self) -> str:
        """Return the version of the schema."""
        with self._reading() as connection:
            return schema.version(connection) or "none"

    def backup(self, path: str | Path, *, now: Moment, overwrite: bool = False) -> dict[str, int]:
        """Write a backup (``NAME.jsonl.gz``) while others write, and return the rows of each table.

        The file appears when it is whole, and restores on either database. Raises InputError if it cannot be written, has
        another ending, or is there already and may not be overwritten.
        """
        file, counts = Path(path), dict[str, int]()
        if not file.name.endswith(PORTABLE):
            raise InputError(f"{file}: a backup's name ends with {PORTABLE}; to copy a SQLite file: ringtrue store migrate")
        if file.exists() and not overwrite:
            raise InputError(f"{file}: exists already; choose another name, or overwrite it (--overwrite, overwrite=True)")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, self._dumped(timestamp(now), counts))
        except OSError as problem:
            raise InputError(f"{file}: the backup cannot be written: {problem.strerror}; choose another place") from problem
        return counts

    def restore(self, path: str | Path, *, replace: bool = False) -> dict[str, int]:
        """Take over a backup, all of it or nothing, and return the rows of each table.

        Raises InputError if the store holds rows already and they are not to be replaced, for a backup of another schema,
        and for one that is cut off or changed.
        """
        return self._take(_tables_in(self.check_backup(path)), replace=replace)

    @staticmethod
    def check_backup(path: str | Path) -> Path:
        """Return the file of a backup; raises MissingInput or InputError for what is no backup at all."""
        file = Path(path)
        if not file.is_file():
            raise MissingInput(f"{file}: there is no backup here; name a file that ringtrue store backup has written")
        with file.open("rb") as opened:
            start = opened.read(6)
        if start == b"SQLite":
            raise InputError(f"{file}: is a SQLite file; copy it with: ringtrue store migrate {file} TO")
        if not start.startswith(b"\x1f\x8b"):
            raise InputError(f"{file}: is no backup; name a file that ringtrue store backup has written")
        return file

    def copy_from(self, source: Base, *, replace: bool = False) -> dict[str, int]:
        """Take over all rows of another store, all of them or nothing, and return the rows of each table.

        The source is seen as it was at the beginning. Every table is read again afterwards and compared. Raises InputError
        where this store holds rows already and they are not to be replaced.
        """
        if source.address == self.address:
            raise InputError(f"store {self.address} cannot be copied to itself; name another")
        with source._reading() as connection:
            found = ((table, names, _rows(connection, table, names, str(source.address))) for table, names in _COLUMNS.items())
            return self._take(found, replace=replace)

    def _take(self, tables: Iterator[tuple[Table, Sequence[str], Iterator[Values]]], *, replace: bool) -> dict[str, int]:
        with self._writing() as connection:
            for table in reversed(TABLES):
                if replace:
                    connection.execute(delete(table))
                elif connection.execute(select(func.count()).select_from(table)).scalar_one():
                    cure = "take an empty one, or replace them with --replace"
                    raise InputError(f"store {self.address} has rows in {table.name}; {cure}")
            counts = {table.name: _fill(connection, table, names, rows) for table, names, rows in tables}
            if connection.dialect.name == "postgresql":
                connection.execute(text("ANALYZE " + ", ".join(counts)))
            return counts

    def _dumped(self, now: str, counts: dict[str, int]) -> Iterator[str]:
        with self._reading() as connection:
            yield json.dumps({"ringtrue store": FORMAT, "schema": schema.HEAD, "made_at": now})
            for table, names in _COLUMNS.items():
                yield json.dumps({"table": table.name, "columns": names})
                digest, counts[table.name] = hashlib.sha256(), 0
                for row in _rows(connection, table, names, str(self.address)):
                    line = _line(row)
                    digest.update(line.encode())
                    counts[table.name] += 1
                    yield line
                yield json.dumps({"rows": counts[table.name], "sha256": digest.hexdigest()})
            yield json.dumps({"end": now})


_COLUMNS = {table: [column.name for column in table.columns if column.name != "id"] for table in TABLES}
"""The columns that mean something elsewhere: a row's number does not."""


def _rows(connection: Connection, table: Table, names: Sequence[str], place: str) -> Iterator[Values]:
    """Yield the rows of a table in the order in which they were written."""
    size = _batch(table)
    streamed = {"stream_results": True, "max_row_buffer": size}
    found = select(*(table.c[name] for name in names)).order_by(table.c.id)
    with explained(place), connection.execute(found, execution_options=streamed) as result:
        for part in result.partitions(size):
            yield from map(tuple, part)


def _batch(table: Table) -> int:
    return FEW if any(isinstance(column.type, LargeBinary) for column in table.columns) else BATCH


def _line(row: Values) -> str:
    # Bytes become an object; no other value of a row is one.
    return json.dumps(row, separators=(",", ":"), default=lambda value: {"base64": base64.b64encode(value).decode()})


def _fill(connection: Connection, table: Table, names: Sequence[str], rows: Iterator[Values]) -> int:
    """Insert rows and compare what is there afterwards with what came."""
    came, count = hashlib.sha256(), 0
    while batch := list(islice(rows, _batch(table))):
        for row in batch:
            came.update(_line(row).encode())
        count += len(batch)
        connection.execute(table.insert(), [dict(zip(names, row, strict=True)) for row in batch])
    there = hashlib.sha256()
    for row in _rows(connection, table, names, "here"):
        there.update(_line(row).encode())
    if there.digest() != came.digest():
        raise InputError(f"table {table.name} does not read back as it was written; nothing was kept")
    return count


def _tables_in(file: Path) -> Iterator[tuple[Table, Sequence[str], Iterator[Values]]]:
    """Yield the tables of a portable backup with their rows; raises InputError for one that is cut off or changed."""
    lines = _values(file)
    _, head = next(lines, ("", None))
    if not isinstance(head, dict) or head.get("ringtrue store") != FORMAT:
        raise InputError(f"{file}: is not a backup of a store; name a file that ringtrue store backup has written")
    if head.get("schema") != schema.HEAD:
        raise InputError(
            f"{file}: has schema {head.get('schema')}, this Ringtrue writes {schema.HEAD}; restore it with the Ringtrue that "
            "wrote it, then run: ringtrue store upgrade"
        )
    for table, names in _COLUMNS.items():
        _, start = next(lines, ("", None))
        if not isinstance(start, dict) or start.get("table") != table.name or sorted(start.get("columns", ())) != sorted(names):
            raise _changed(file)
        yield table, start["columns"], _rows_in(file, lines)
    _, end = next(lines, ("", None))
    if not isinstance(end, dict) or "end" not in end:
        raise _changed(file)


def _rows_in(file: Path, lines: Iterator[tuple[str, Any]]) -> Iterator[Values]:
    digest = hashlib.sha256()
    for count, (line, value) in enumerate(lines):
        if isinstance(value, dict):
            if value != {"rows": count, "sha256": digest.hexdigest()}:
                break
            return
        digest.update(line.encode())
        try:
            row = [base64.b64decode(one["base64"], validate=True) if isinstance(one, dict) else one for one in value]
        except (ValueError, TypeError, KeyError):
            break
        yield row
    raise _changed(file)


def _values(file: Path) -> Iterator[tuple[str, Any]]:
    for line in read_lines(file):
        try:
            yield line, json.loads(line)
        except ValueError:
            raise _changed(file) from None


def _changed(file: Path) -> InputError:
    return InputError(f"{file}: is not a whole backup, or was changed; take another")
