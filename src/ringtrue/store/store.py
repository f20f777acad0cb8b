"""The store as a whole: everything the platform remembers, behind one name, with backup, restore and moving between databases.

A move is rows in, the same rows out, counted and compared. A backup is such a move to a SQLite file: a store that opens, can be
upgraded, and restores on either database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, LargeBinary, Table, TableClause, column, delete, func, select, text, update

from ringtrue.errors import InputError, MissingInput
from ringtrue.store import schema
from ringtrue.store.base import Base
from ringtrue.store.engine import explained
from ringtrue.store.events import EventStore
from ringtrue.store.forget import UserDeletion
from ringtrue.store.library import LibraryStore
from ringtrue.store.operations import OperationsStore
from ringtrue.store.retention import new_file
from ringtrue.store.tables import TABLES

BATCH = 500
FEW = 8
"""Rows at a time where each may be several megabytes."""
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

    def backup(self, path: str | Path, *, overwrite: bool = False) -> dict[str, int]:
        """Write a backup, a store in a SQLite file, while others write; return the rows of each table.

        The file appears when it is whole. Raises InputError if it cannot be written, is there already and may not be
        overwritten, or is the store itself.
        """
        file, own = Path(path), self.address.sqlite
        if own is not None and file.resolve() in [own.with_name(own.name + end).resolve() for end in ("", "-wal", "-shm")]:
            raise InputError(f"{file}: is the store itself; name another file for the backup")
        if file.exists() and not overwrite:
            raise InputError(f"{file}: exists already; choose another name, or overwrite it (--overwrite, overwrite=True)")
        try:
            with new_file(file) as part:
                with type(self).open(part) as target:
                    counts = target.copy_from(self)
                if part.with_name(f"{part.name}-wal").exists():
                    raise InputError(f"{file}: SQLite cannot bring its log into the backup; check the free space of the disk")
                return counts
        except OSError as problem:
            raise InputError(f"{file}: the backup cannot be written: {problem.strerror}; choose another place") from problem

    def restore(self, path: str | Path, *, replace: bool = False) -> dict[str, int]:
        """Take over a backup, all of it or nothing, and return the rows of each table.

        Raises InputError if the store holds rows already and they are not to be replaced, for a backup of another schema,
        which ``upgrade`` mends, and for one that is damaged.
        """
        with type(self).open(self.check_backup(path)) as source:
            return self.copy_from(source, replace=replace)

    @staticmethod
    def check_backup(path: str | Path) -> Path:
        """Return the file of a backup; raises MissingInput or InputError for what is not a backup at all."""
        file = Path(path)
        if not file.is_file():
            raise MissingInput(f"{file}: there is no backup here; name a file that ringtrue store backup has written")
        with file.open("rb") as opened:
            head = opened.read(32)
        if not head.startswith(b"SQLite"):
            raise InputError(f"{file}: is not a backup; name a file that ringtrue store backup has written")
        # SQLite itself reads a page that is cut off as if it ended with zeros.
        if file.stat().st_size < int.from_bytes(head[16:18]) * int.from_bytes(head[28:32]):
            raise InputError(f"{file}: is cut off; take another copy of the backup")
        return file

    def copy_from(self, source: Base, *, replace: bool = False) -> dict[str, int]:
        """Take over all rows of another store, all of them or nothing, and return the rows of each table.

        The source is seen as it was at the beginning. Every table is read again afterwards and compared. Raises InputError
        if this store holds rows already and they are not to be replaced.
        """
        if source.address == self.address:
            raise InputError(f"store {self.address} cannot be copied to itself; name another")
        with source._reading() as reading, self._writing() as connection:
            for table in reversed(TABLES):
                if replace:
                    connection.execute(delete(table))
                elif connection.execute(select(func.count()).select_from(table)).scalar_one():
                    cure = "take an empty one, or replace them with --replace"
                    raise InputError(f"store {self.address} has rows in {table.name}; {cure}")
            counts = {table.name: _fill(connection, table, _rows(reading, table, str(source.address))) for table in TABLES}
            if connection.dialect.name == "postgresql":
                connection.execute(text("ANALYZE " + ", ".join(counts)))
            return counts


_COLUMNS = {table: [column.name for column in table.columns if column.name != "id"] for table in TABLES}
"""The columns that mean something elsewhere: a row's number does not."""


def _rows(connection: Connection, table: Table, place: str) -> Iterator[Values]:
    """Yield the rows of a table in the order in which they were written."""
    size = _batch(table)
    streamed = {"stream_results": True, "max_row_buffer": size}
    found = select(*(table.c[name] for name in _COLUMNS[table])).order_by(table.c.id)
    with explained(place), connection.execute(found, execution_options=streamed) as result:
        for part in result.partitions(size):
            yield from map(tuple, part)


def _batch(table: Table) -> int:
    return FEW if any(isinstance(column.type, LargeBinary) for column in table.columns) else BATCH


def _fill(connection: Connection, table: Table, rows: Iterator[Values]) -> int:
    """Insert rows and compare what is there afterwards with what came."""
    came, there, count = hashlib.sha256(), hashlib.sha256(), 0
    while batch := list(islice(rows, _batch(table))):
        came.update("".join(map(repr, batch)).encode())
        count += len(batch)
        connection.execute(table.insert(), [dict(zip(_COLUMNS[table], row, strict=True)) for row in batch])
    for row in _rows(connection, table, "here"):
        there.update(repr(row).encode())
    if there.digest() != came.digest():
        raise InputError(f"table {table.name} reads back differently than it was written; nothing was kept")
    return count
