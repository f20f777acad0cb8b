"""A store of its own for every test, on SQLite and on PostgreSQL: import the fixtures into a conftest."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postgres_server import PostgresServer
from ringtrue.store import Store
from ringtrue.store.schema import VERSION_TABLE

TEMPLATE = "ringtrue_template"
SHARED = "ringtrue_shared"
ROLE = "store_owner"
"""Who owns the databases: no superuser, for whom PostgreSQL would look away from row-level security."""
KINDS = ("sqlite", "postgresql")
Address = Callable[[str], str]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """The database a test runs on; each runs on both."""
    return str(request.param)


@pytest.fixture
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Address:
    """Return addresses of databases in which nothing is yet."""

    def address(kind: str) -> str:
        if kind == "sqlite":
            return str(tmp_path / f"{secrets.token_hex(4)}.sqlite")
        return _database(request.getfixturevalue("postgres"), f"t_{secrets.token_hex(6)}", template="template0")

    return address


@pytest.fixture
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Address:
    """Return addresses of stores with tables and no rows, which are copied: that is faster than to make them."""

    def address(kind: str) -> str:
        if kind == "sqlite":
            return str(_empty_file(request, tmp_path / f"{secrets.token_hex(4)}.sqlite"))
        server = request.getfixturevalue("postgres")
        return _database(server, f"t_{secrets.token_hex(6)}", template=_template(server))

    return address


@pytest.fixture
def url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store; on PostgreSQL tests take turns in one."""
    if kind == "sqlite":
        return str(_empty_file(request, tmp_path / "store.sqlite"))
    server = request.getfixturevalue("postgres")
    if not _has(server, SHARED):
        return _database(server, SHARED, template=_template(server))
    import psycopg

    with psycopg.connect(server.url(SHARED, user=ROLE), autocommit=True) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        names = ", ".join(name for (name,) in found if name != VERSION_TABLE)
        connection.execute("SET lock_timeout = '10s'")
        connection.execute(f"TRUNCATE {names} RESTART IDENTITY".encode())
    return server.url(SHARED, user=ROLE)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """An empty store."""
    with Store.open(url) as opened:
        yield opened


_made: dict[str, Path] = {}


def _empty_file(request: pytest.FixtureRequest, file: Path) -> Path:
    """Copy a SQLite store with tables and no rows to a file."""
    if "sqlite" not in _made:
        factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
        template = factory.mktemp("template") / "store.sqlite"
        Store.open(template).close()
        _made["sqlite"] = template
    return Path(shutil.copy(_made["sqlite"], file))


def _execute(server: PostgresServer, statement: str) -> list[tuple[object, ...]]:
    import psycopg

    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def _has(server: PostgresServer, name: str) -> bool:
    return bool(_execute(server, f"SELECT 1 FROM pg_database WHERE datname = '{name}'"))


def _database(server: PostgresServer, name: str, *, template: str) -> str:
    # Not dropped afterwards: the server goes as a whole, and every drop would make it write all it has to the disk.
    if not _execute(server, f"SELECT 1 FROM pg_roles WHERE rolname = '{ROLE}'"):
        _execute(server, f"CREATE ROLE {ROLE} LOGIN PASSWORD '{server.password}'")
    _execute(server, f"CREATE DATABASE {name} TEMPLATE {template} OWNER {ROLE}")
    return server.url(name, user=ROLE)


def _template(server: PostgresServer) -> str:
    """Return the name of a database with the tables and no rows."""
    if not _has(server, TEMPLATE):
        Store.open(_database(server, TEMPLATE, template="template0")).close()
    return TEMPLATE
