"""The store: everything the platform remembers, behind one name."""

from __future__ import annotations

from sqlalchemy import column, func, select, table, update

from ringtrue.store import schema
from ringtrue.store.copying import BackupStore
from ringtrue.store.events import EventStore
from ringtrue.store.forget import UserDeletion
from ringtrue.store.library import LibraryStore, ReviewStore, TrialStore
from ringtrue.store.operations import HistoryStore, JobStore, KeyStore
from ringtrue.store.tables import TABLES


class Store(EventStore, TrialStore, ReviewStore, LibraryStore, JobStore, HistoryStore, KeyStore, UserDeletion, BackupStore):
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
        row = table(schema.VERSION_TABLE, column("version_num"))
        with self._writing() as connection:
            # SQLite writes nothing for a value that does not change. Several pages, as rows need: a full disk may hold one.
            more = " " * (48 * 1024 if self.address.sqlite is not None else 1)
            connection.execute(update(row).values(version_num=row.c.version_num + more))
            connection.execute(update(row).values(version_num=func.rtrim(row.c.version_num)))

    def schema_version(self) -> str:
        """Return the version of the schema."""
        with self._reading() as connection:
            return schema.version(connection) or "none"
