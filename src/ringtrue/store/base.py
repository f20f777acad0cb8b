"""What every part of the store builds on: transactions, and the few statements that differ between the databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Table,
    Text,
    any_,
    bindparam,
    delete,
    func,
    literal,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from ringtrue.errors import InputError, MissingInput
from ringtrue.store import schema
from ringtrue.store.engine import EVERY, PROJECT, WRITES, Address, Engines, address, explained, make_folder, sync_wal
from ringtrue.store.records import DEFAULT_PROJECT, timestamp
from ringtrue.store.tables import Form, Row, structure, words

Record = TypeVar("Record")
Moment = str | datetime


class Base:
    """An open database. Every call is a transaction of its own, so that any thread may use the store."""

    def __init__(self, place: Address) -> None:
        self.address = place
        self._engines = Engines(place)
        self._project = EVERY

    @staticmethod
    def place(url_or_path: str | Path | None = None) -> Address:
        """Return where ``open`` would look; nothing is opened."""
        return address(url_or_path)

    @classmethod
    def open(cls, url_or_path: str | Path | None = None) -> Self:
        """Return the store at an address, created where there is none; unless given, the configured one.

        A path, ``sqlite:///…`` or ``postgresql://…``; else ``RINGTRUE_STORE``, ``url`` under ``[store]``, or
        ``.ringtrue/store.sqlite``. Raises InputError for an address that cannot be used or a schema of another version,
        AccessDenied for refused credentials, Unreachable for a database that does not answer.
        """
        store = cls(address(url_or_path))
        try:
            make_folder(store.address)
            with store._reading() as connection:
                ready = schema.version(connection) == schema.HEAD
            if not ready:
                with store._writing() as connection:
                    schema.prepare(connection, str(store.address))
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def upgrade(cls, url_or_path: str | Path | None = None) -> tuple[str | None, str]:
        """Bring a store to this Ringtrue's schema, all of it or nothing; return the versions before and after.

        None stands for a database that had no tables. Raises InputError for a schema that this Ringtrue does not know.
        """
        store = cls(address(url_or_path))
        try:
            make_folder(store.address)
            with store._writing() as connection:
                return schema.upgrade(connection, str(store.address))
        finally:
            store.close()

    def only(self, project: str) -> Self:
        """Return the same store as one project sees it: calls for another project, or for all, raise InputError.

        It shares the connections of this one; closing it closes nothing. Raises InputError if this store is for another
        project already, and for a name that no project can have.
        """
        name = words(project)
        if name in ("", EVERY):
            raise InputError(f"{project!r} is not a valid project name; use one such as {DEFAULT_PROJECT!r}")
        if self._project not in (EVERY, name):
            raise InputError(f"this store is for project {self._project!r} only, not for {name!r}; use the store of all")
        one = copy(self)
        one._project = name
        return one

    def close(self) -> None:
        """Close the connections; a closed store answers nothing. A store of one project leaves them to the store of all."""
        if self._project == EVERY:
            self._engines.close()

    def sync(self) -> None:
        """Bring what was committed to the disk, which SQLite leaves for later; on PostgreSQL every commit has done so.

        Raises OSError if the disk fails.
        """
        if self._project != EVERY:  # SQL would be refused by itself
            raise InputError(f"this store is for project {self._project!r} only, and the call is for all; use the store of all")
        if self.address.sqlite is not None:
            sync_wal(self.address.sqlite)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """One transaction that sees one state of the database."""
        with explained(self.address), self._engines.get().connect() as connection:
            connection.execution_options(**{PROJECT: self._project})
            if connection.dialect.name == "postgresql":
                connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """One transaction that may write: all of it or nothing."""
        with explained(self.address), self._engines.get().connect() as connection:
            connection.execution_options(**{WRITES: True, PROJECT: self._project})
            with connection.begin():
                yield connection

    def _where(
        self,
        form: Form[Any],
        project: str,
        *more: ColumnElement[bool],
        since: Moment | None = None,
        until: Moment | None = None,
        **columns: str | Sequence[str] | None,
    ) -> list[ColumnElement[bool]]:
        """Return the conditions: this project, a time from ``since`` on and before ``until``, and values of columns.

        A column must equal a text, or one of several; None asks nothing of it.
        """
        table = form.table.c
        found = [table.project == words(project), *more]
        at = table.created_at if "created_at" in table else table.at if "at" in table else None
        if at is not None and since is not None:
            found.append(at >= timestamp(since))
        if at is not None and until is not None:
            found.append(at < timestamp(until))
        for name, value in columns.items():
            if isinstance(value, str):
                found.append(table[name] == words(value))
            elif value is not None:
                found.append(among(self.address.kind, table[name], value))
        return found

    def _all(
        self, form: Form[Record], where: Sequence[ColumnElement[bool]], *order: ColumnElement[Any], limit: int | None = None
    ) -> list[Record]:
        with self._reading() as connection:
            found = connection.execute(select(form.table).where(*where).order_by(*order).limit(limit))
            return [form.read(row) for row in found.mappings()]

    def _one(self, form: Form[Record], project: str, **key: str) -> Record | None:
        """Return the record that these columns name; None if there is none."""
        return next(iter(self._all(form, self._where(form, project, **key))), None)

    def _in_time(
        self, form: Form[Record], where: Sequence[ColumnElement[bool]], *, limit: int | None, newest: bool, few: bool = False
    ) -> list[Record]:
        """Return records in the order of time and of their keys, so that pages never overlap: the first or the newest ones.

        A few that are named are sorted by an expression: SQLite would rather walk through a whole project in its index.
        """
        at, name = form.table.c.created_at, form.table.c["query_id" if "query_id" in form.key else form.key[-1]]
        order = (at.concat("") if few else at, name)
        if not newest or limit is None:
            return self._all(form, where, *order, limit=limit)
        return self._all(form, where, *(column.desc() for column in order), limit=limit)[::-1]

    def _newest(
        self,
        form: Form[Record],
        where: Sequence[ColumnElement[bool]],
        *,
        project: str,
        limit: int | None,
        before: str | None,
    ) -> list[Record]:
        """Return records, the newest first; ``before`` goes on behind the one with this key."""
        table, name = form.table.c, form.key[-1]
        order = (table.created_at, table.id)
        if before is not None:
            with self._reading() as connection:
                place = connection.execute(select(*order).where(*self._where(form, project, **{name: before}))).first()
            if place is None:
                raise MissingInput(f"project {project!r} has no {name} {before!r} to continue after; start from the first page")
            where = [*where, tuple_(*order) < tuple_(*place)]
        return self._all(form, where, *(column.desc() for column in order), limit=limit)

    def _count(self, table: Table, where: Sequence[ColumnElement[bool]]) -> int:
        with self._reading() as connection:
            return int(connection.execute(select(func.count()).select_from(table).where(*where)).scalar_one())

    def _distinct(self, column: ColumnElement[str], where: Sequence[ColumnElement[bool]]) -> list[str]:
        with self._reading() as connection:
            return sorted(connection.scalars(select(column).where(*where).distinct()))

    def _add(self, form: Form[Record], records: Sequence[Record], *, replace: bool = False) -> int:
        """Add records in one transaction; return how many were written. One that is there stays, or is replaced."""
        if not records:
            return 0
        rows = form.rows(records)
        with self._writing() as connection:
            return insert(connection, form.table, rows, key=form.key, replace=replace)

    def _change(
        self, form: Form[Record], project: str, change: Callable[[Record], Record | None], missing: str, **key: str
    ) -> Record | None:
        """Change a record in one transaction, so that whoever else changes it waits; return what it became.

        ``change`` returns None to leave it as it is. Raises MissingInput (``missing``) if there is no such record.
        """
        with self._writing() as connection:
            return change_row(connection, form, self._where(form, project, **key), change, missing)

    def _delete(self, table: Table, *where: ColumnElement[bool]) -> int:
        """Delete rows; return how many there were."""
        with self._writing() as connection:
            return int(connection.execute(delete(table).where(*where)).rowcount)

    def _update(self, table: Table, *where: ColumnElement[bool], **values: Any) -> int:
        """Set columns of rows; return how many there were."""
        with self._writing() as connection:
            return int(connection.execute(update(table).where(*where).values(values)).rowcount)


def change_row(
    connection: Connection,
    form: Form[Record],
    where: Sequence[ColumnElement[bool]],
    change: Callable[[Record], Record | None],
    missing: str,
) -> Record | None:
    """Change a record, whose row nobody else can change before this transaction ends; return what it became, None if nothing.

    Raises MissingInput, saying what is ``missing``, if there is no such record, InputError if its key would change.
    """
    row = connection.execute(select(form.table).where(*where).with_for_update()).mappings().first()
    if row is None:
        raise MissingInput(missing)
    new = change(form.read(row))
    if new is None:
        return None
    written = form.row(new)
    for name in form.key:
        if written[name] != row[name]:
            raise InputError(f"the {name} of a row cannot change from {row[name]!r} to {written[name]!r}; add another row")
    connection.execute(update(form.table).where(form.table.c.id == row["id"], *where).values(written))
    return form.read(written)


def insert(connection: Connection, table: Table, rows: Sequence[Row], *, key: Sequence[str] = (), replace: bool = False) -> int:
    """Insert rows and return how many were written; one whose unique key is taken is passed over, or replaced by ``key``."""
    made = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(table)
    if replace:
        changed = {column: made.excluded[column] for column in rows[0] if column not in key}
        statement = made.on_conflict_do_update(index_elements=list(key), set_=changed)
    else:
        statement = made.on_conflict_do_nothing()
    result = connection.execute(statement, list(rows), execution_options={"preserve_rowcount": True})
    return int(result.rowcount)


def among(kind: str, column: ColumnElement[Any], values: Sequence[str] | Sequence[int]) -> ColumnElement[bool]:
    """Return the condition that a column is one of any number of texts or whole numbers, which travel as one parameter."""
    given = [words(value) if isinstance(value, str) else value for value in values]
    if kind == "sqlite":
        each = func.json_each(bindparam(None, structure(given), Text, unique=True)).table_valued("value")
        return column.in_(select(each.c.value))
    return column == any_(literal(given, ARRAY(column.type)))
