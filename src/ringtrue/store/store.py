"""The store as a whole: everything the platform remembers, behind one name, with backup, restore and moving between databases.

A move is rows in, the same rows out, counted and compared. A portable backup is one compressed file of JSON lines: a head, then
for each table its columns, its rows as lists, and how many they were with their digest, then an end. It reads on either
database. The other kind is a copy of the SQLite file, made while others write.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, LargeBinary, Table, TableClause, column, delete, func, select, text, update

from ringtrue.errors import InputError, MissingInput
from ringtrue.store import schema
from ringtrue.store.base import Base, Moment
from ringtrue.store.engine import PRIVATE, explained
from ringtrue.store.events import EventStore
from ringtrue.store.forget import UserDeletion
from ringtrue.store.library import LibraryStore
from ringtrue.store.operations import OperationsStore
from ringtrue.store.records import timestamp
from ringtrue.store.retention import read_lines, replace_file, sync_folder
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
        """Write a backup while others write, and return the rows of each table.

        A name that ends with ``.jsonl.gz`` gets the portable form, which restores on either database; any other gets a copy of
        the SQLite file. The file appears when it is whole. Raises InputError if it cannot be written, is there already and
        may not be overwritten, or is the store itself.
        """
        file, own = Path(path), self.address.sqlite
        if own is not None and file.resolve() in [own.with_name(own.name + end).resolve() for end in ("", "-wal", "-shm")]:
            raise InputError(f"{file}: is the store itself; name another file for the backup")
        if file.exists() and not overwrite:
            raise InputError(f"{file}: exists already; choose another name, or overwrite it (--overwrite, overwrite=True)")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            if file.name.endswith(PORTABLE):
                counts: dict[str, int] = {}
                replace_file(file, self._dumped(timestamp(now), counts))
                return counts
            return self._copy_file(file)
        except OSError as problem:
            raise InputError(f"{file}: the backup cannot be written: {problem.strerror}; choose another place") from problem

    def restore(self, path: str | Path, *, replace: bool = False) -> dict[str, int]:
        """Take over a backup of either kind, all of it or nothing, and return the rows of each table.

        Raises InputError if the store holds rows already and they are not to be replaced, for a backup of another schema,
        and for one that is cut off or changed.
        """
        file = Path(path)
        if self.is_portable(file):
            return self._take(_tables_in(file), replace=replace)
        with type(self).open(file) as source:
            return self.copy_from(source, replace=replace)

    @staticmethod
    def is_portable(path: str | Path) -> bool:
        """Return whether a backup is of the portable kind; raises MissingInput or InputError if it is not a backup."""
        file = Path(path)
        if not file.is_file():
            raise MissingInput(f"{file}: there is no backup here; name a file that ringtrue store backup has written")
        with file.open("rb") as opened:
            start = opened.read(16)
        if not start.startswith((b"SQLite format 3", b"\x1f\x8b")):
            raise InputError(f"{file}: is not a backup; name a file that ringtrue store backup has written")
        return start.startswith(b"\x1f\x8b")

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

    def _copy_file(self, file: Path) -> dict[str, int]:
        self._for_all()
        if self.address.sqlite is None:
            raise InputError(f"{file}: a backup of PostgreSQL needs a name that ends with {PORTABLE}")
        part = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
        try:
            part.touch(PRIVATE, exist_ok=False)
            with (
                explained(self.address),
                closing(sqlite3.connect(self.address.sqlite)) as source,
                closing(sqlite3.connect(part)) as target,
            ):
                source.backup(target)
                target.execute("PRAGMA journal_mode = DELETE")  # one file, which needs no other beside it
                found = target.execute("PRAGMA quick_check").fetchone()[0]
                if found != "ok":
                    raise InputError(f"store {self.address}: the copy is damaged ({found}); check the disk")
                count = "SELECT count(*) FROM "
                counts = {table.name: target.execute(count + table.name).fetchone()[0] for table in TABLES}
            with part.open("rb") as written:
                os.fsync(written.fileno())
            part.replace(file)
            sync_folder(file.parent)
            return counts
        finally:
            part.unlink(missing_ok=True)


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
