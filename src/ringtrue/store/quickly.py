"""Rows go into the log by the driver itself: what SQLAlchemy does for a transaction costs more than a few rows (W-3).

Only where the store is for all projects; for a store of one each row is looked at. On SQLite it is one transaction, on
PostgreSQL one statement, which is all of it or nothing as well and goes there and back once.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    DefaultClause,
    Engine,
    PoolProxiedConnection,
    Table,
    bindparam,
    cast,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import psycopg

from ringtrue.store.confine import EVERY
from ringtrue.store.rows import Form

Record = TypeVar("Record")
Values = Sequence[Sequence[Any]]
STATEMENTS = 500
"""Texts of statements that are kept: one for each choice of columns that rows fill together."""
_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def add_quickly(engine: Engine, form: Form[Record], records: Sequence[Record]) -> int:
    """Add records, all or none, and return how many were written; one that is there stays.

    Raises what the driver raises.
    """
    values = sorted(map(form.values, records), key=form.order)
    columns = _filled(form.table, form.columns, values)
    with closing(engine.raw_connection()) as connection:
        return _INTO[engine.dialect.name](connection, form, columns, values)


def _into_sqlite(connection: PoolProxiedConnection, form: Form[Any], columns: tuple[str, ...], values: Values) -> int:
    text, order = _sqlite_statement(form.table, columns)
    rows = list(map(itemgetter(*map(form.columns.index, order)), values))
    cursor = connection.cursor()
    cursor.execute("BEGIN IMMEDIATE")
    try:
        cursor.executemany(text, rows)
        written = int(cursor.rowcount)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    return written


@lru_cache(STATEMENTS)
def _sqlite_statement(table: Table, columns: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the text of an INSERT and the order of its parameters."""
    dialect: Any = sqlite.dialect()
    made: Any = sqlite.insert(table).on_conflict_do_nothing().compile(dialect=dialect, column_keys=list(columns))
    return str(made), tuple(made.positiontup)


def numbered_statement(form: Form[Record], records: Sequence[Record]) -> tuple[str, str]:
    """Return the statement that adds records to PostgreSQL, and the text that is its one parameter, ``$1``."""
    values = sorted(map(form.values, records), key=form.order)
    columns = _filled(form.table, form.columns, values)
    return _postgres_statement(form.table, columns, "numeric_dollar"), _rows_text(form, columns, values)


def _into_postgres(connection: PoolProxiedConnection, form: Form[Any], columns: tuple[str, ...], values: Values) -> int:
    driver: Any = connection.driver_connection
    try:
        driver.autocommit = True  # of the driver alone; PostgreSQL is told nothing
        statement = _postgres_statement(form.table, columns, "pyformat")
        return int(driver.execute(statement, {"rows": _rows_text(form, columns, values)}).rowcount)
    finally:
        if driver.info.transaction_status:  # at work, or gone: nobody gets it again
            connection.invalidate()
        else:
            driver.autocommit = False


@lru_cache(STATEMENTS)
def _postgres_statement(table: Table, columns: tuple[str, ...], style: str) -> str:
    """Return the text of an INSERT that takes all rows in one text.

    To pass thirty values for each row costs twice as much here and in the database. PostgreSQL is told that the rows may be of
    any project where they come from, and so before the first of them is there to be looked at.
    """
    dialect: Any = psycopg.dialect(paramstyle=style)  # type: ignore[no-untyped-call]
    types = (Column(name, table.c[name].type) for name in columns)
    sent = func.json_to_recordset(cast(bindparam("rows"), postgresql.JSON)).table_valued(*types, name="sent")
    given = sent.render_derived(with_types=True)
    told = select(literal_column(f"set_config('ringtrue.project', '{EVERY}', true)").label("project")).subquery("told")
    each = select(*(given.c[name] for name in columns)).select_from(told).select_from(given)
    return str(postgresql.insert(table).from_select(list(columns), each).on_conflict_do_nothing().compile(dialect=dialect))


_INTO: Mapping[str, Callable[[PoolProxiedConnection, Form[Any], tuple[str, ...], Values], int]] = {
    "sqlite": _into_sqlite,
    "postgresql": _into_postgres,
}


def _filled(table: Table, columns: tuple[str, ...], rows: Values) -> tuple[str, ...]:
    """Return the columns that hold something else in one of the rows than by themselves; to pass that costs as much."""
    usual = _usual(table)
    held = zip(columns, zip(*rows, strict=True), strict=True)
    return tuple(name for name, values in held if name not in usual or any(value != usual[name] for value in values))


@cache
def _usual(table: Table) -> dict[str, Any]:
    """Return what columns hold where they are not named: nothing, or what the table says."""
    said = {column.name: _default(column) for column in table.c if isinstance(column.server_default, DefaultClause)}
    return {column.name: None for column in table.c if column.nullable} | said


def _default(column: Column[Any]) -> Any:
    clause: Any = column.server_default
    return ast.literal_eval(str(clause.arg))  # a number, or a text in quotes: SQL and Python write these alike


def _rows_text(form: Form[Any], columns: tuple[str, ...], values: Values) -> str:
    places = [(name, form.columns.index(name)) for name in columns]
    return _one_text([{name: row[place] for name, place in places} for row in values])


def _one_text(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as JSON; a number that is not finite goes as its name, which PostgreSQL reads."""
    try:
        return _json(rows)
    except ValueError:
        return _json([{name: str(value) if _endless(value) else value for name, value in row.items()} for row in rows])


def _endless(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
