"""Tables and columns as migrations write them: each row has a number and a project, which is part of its unique key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

Columns = list[sa.Column[Any]]


def text(*names: str, null: bool = False, default: str | None = None) -> Columns:
    """Return columns of text."""
    return _columns(names, sa.Text(), null, None if default is None else f"'{default}'")


def number(*names: str, null: bool = False, default: str | None = None) -> Columns:
    """Return columns of numbers in double precision: PostgreSQL's REAL has four bytes."""
    return _columns(names, sa.Double().with_variant(sa.REAL(), "sqlite"), null, default)


def integer(*names: str, null: bool = False, default: str | None = None) -> Columns:
    """Return columns of whole numbers."""
    return _columns(names, sa.Integer(), null, default)


def binary(name: str) -> Columns:
    """Return a column of bytes."""
    return _columns([name], sa.LargeBinary(), False, None)


def _columns(names: Sequence[str], of: Any, null: bool, default: str | None) -> Columns:
    return [sa.Column(name, of, nullable=null, server_default=None if default is None else sa.text(default)) for name in names]


def create_table(
    name: str,
    *columns: Columns,
    unique: Sequence[str] = (),
    checks: Mapping[str, str] | None = None,
    parent: tuple[str, str] | None = None,
    indexes: Mapping[str, Sequence[str]] | None = None,
    more: Sequence[sa.schema.SchemaItem] = (),
) -> None:
    """Create a table; ``unique`` are the columns that identify a row within its project, ``parent`` is a table and its key.

    ``checks`` are conditions by the column they are named after, ``indexes`` columns by the rest of the index's name.
    """
    rules = [sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{name}")), *more]
    if unique:
        key = ("project", *unique)
        rules.append(sa.UniqueConstraint(*key, name=op.f(f"uq_{name}_{'_'.join(key)}")))
    rules += [sa.CheckConstraint(rule, name=op.f(f"ck_{name}_{column}")) for column, rule in (checks or {}).items()]
    if parent is not None:
        table, column = parent
        referred = [f"{table}.project", f"{table}.{column}"]
        fk = op.f(f"fk_{name}_{table}")
        rules.append(sa.ForeignKeyConstraint(["project", column], referred, name=fk, ondelete="CASCADE"))
    op.create_table(
        name,
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        *text("project"),
        *(column for group in columns for column in group),
        *rules,
        sqlite_autoincrement=True,
    )
    for rest, names in (indexes or {}).items():
        op.create_index(f"idx_{rest}", name, list(names))


def create_partial_index(name: str, table: str, columns: Sequence[str], where: str) -> None:
    """Create an index of the rows for which a condition holds."""
    op.create_index(name, table, list(columns), sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def one_of(column: str, *values: str) -> str:
    """Return the condition that a column has one of these values."""
    listed = ", ".join(f"'{value}'" for value in values)
    return f"{column} IN ({listed})"
