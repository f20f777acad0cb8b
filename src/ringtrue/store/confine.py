"""A store of one project (V-4): a statement that is not confined to that project is not run.

On PostgreSQL the database itself shows and takes the rows of that project alone: every transaction says which one it is for,
and row-level security does the rest (migration 0004). SQLite has nothing like it, so the statements themselves are looked at
before they run: every table in them must be asked for rows of this project. Both refuse the same calls in the same words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import (
    Alias,
    BinaryExpression,
    BindParameter,
    CompoundSelect,
    Connection,
    Delete,
    Engine,
    FromClause,
    Insert,
    Join,
    Select,
    Table,
    TextClause,
    Update,
    event,
)
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.elements import BooleanClauseList, ColumnElement

from ringtrue.errors import InputError

EVERY = "*"
"""What stands for all projects: the operator's view."""
PROJECT = "ringtrue_project"
"""The execution option of a connection that says which project its statements are for."""


_seen: WeakKeyDictionary[Any, list[str] | None] = WeakKeyDictionary()
"""What was found out about statements that SQLAlchemy keeps compiled."""


def confine(engine: Engine) -> None:
    """Let connections of an engine run what is confined to their project alone, and tell PostgreSQL which one it is."""
    event.listen(engine, "before_cursor_execute", _check)
    if engine.dialect.name == "postgresql":
        event.listen(engine, "begin", _tell)


def _tell(connection: Connection) -> None:
    project = connection.get_execution_options().get(PROJECT)
    if project is not None:
        # Local: it ends with the transaction, and the next one to get this connection sees nothing until it says so itself.
        connection.exec_driver_sql("SELECT set_config('ringtrue.project', %s, true)", (project,))


def _check(connection: Connection, _cursor: Any, _statement: str, _parameters: Any, context: Any, _many: bool) -> None:
    project = connection.get_execution_options().get(PROJECT, EVERY)
    if project == EVERY or context.compiled is None:  # a text for the driver, such as the one that tells the project
        return
    if context.compiled not in _seen:
        _seen[context.compiled] = _project_parameters(context.compiled)
    names = _seen[context.compiled]
    if names is None:
        raise InputError(f"this store is for project {project!r} only, and the call is for all; use the store of all")
    for row in context.compiled_parameters:
        for name in names:
            if row.get(name) != project:
                raise InputError(
                    f"this store is for project {project!r} only, not for {row.get(name)!r}; use the store of that project"
                )


def _project_parameters(compiled: Any) -> list[str] | None:
    """Return the parameters of a statement that name a project; None where one of its tables is not confined to any."""
    if not isinstance(compiled.statement, Select | CompoundSelect | Insert | Update | Delete):
        return None
    names: list[str] = []
    for part in visitors.iterate(compiled.statement):
        if isinstance(part, TextClause):
            return None
        if isinstance(part, Insert) and "project" in part.table.c:
            names.append("project")
        if isinstance(part, Update) and "project" in compiled.binds:  # what it sets
            names.append("project")
        if isinstance(part, Select | Update | Delete):
            for table in _tables(part):
                found = [compiled.bind_names[bind] for bind in _asked(part.whereclause, table)]
                if not found:
                    return None
                names += found
    return names


def _tables(part: Select[Any] | Update | Delete) -> Iterator[FromClause]:
    """Yield the tables of projects that one SELECT, UPDATE or DELETE works on; what is nested in it is looked at by itself."""
    waiting = list(part.get_final_froms()) if isinstance(part, Select) else [part.table]
    while waiting:
        source = waiting.pop()
        if isinstance(source, Join):
            waiting += [source.left, source.right]
        elif isinstance(source.element if isinstance(source, Alias) else source, Table) and "project" in source.c:
            yield source


def _asked(where: ColumnElement[Any] | None, table: FromClause) -> Iterator[BindParameter[Any]]:
    """Yield the projects whose rows a condition is true for at most: what ``project`` must equal, whatever else holds."""
    if isinstance(where, BooleanClauseList) and where.operator is operators.and_:
        for clause in where.clauses:
            yield from _asked(clause, table)
    elif (
        isinstance(where, BinaryExpression)
        and where.operator is operators.eq
        and where.left is table.c.project
        and isinstance(where.right, BindParameter)
    ):
        yield where.right
