"""The schema's version: read, created and upgraded. The migrations are the one truth; a fresh database is made by them, too."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, column, inspect, select, table, text

from ringtrue.errors import InputError
from ringtrue.store.tables import METADATA

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0005"
"""The version this Ringtrue reads and writes: the newest migration."""
VERSION_TABLE = "ringtrue_schema"
MIGRATIONS = Path(__file__).parent / "migrations"
_ONE_AT_A_TIME = threading.Lock()  # Alembic keeps the running migration in a global
_LOCK = 0x52696E67  # PostgreSQL's advisory lock of the schema: two processes may open a fresh database at once


def version(connection: Connection) -> str | None:
    """Return the version of a database; None if it has no table of Ringtrue."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.execute(select(column("version_num")).select_from(table(VERSION_TABLE))).scalar()
    return None if found is None else str(found)


def prepare(connection: Connection, place: str) -> None:
    """Create the tables of a fresh database; raises InputError for another version, with the cure."""
    found = version(connection)
    if found is None:
        upgrade(connection, place)
    elif found != HEAD:
        wrong = f"which is newer than this Ringtrue's {HEAD}; install a newer Ringtrue"
        if found in known_versions():
            wrong = f"this Ringtrue writes {HEAD}; copy the database, then run: ringtrue store upgrade"
        raise InputError(f"store {place} has schema {found}, {wrong}")


def upgrade(connection: Connection, place: str) -> tuple[str | None, str]:
    """Bring a database to this Ringtrue's schema, in one transaction; return the versions before and after."""
    _lock(connection)
    before = version(connection)
    if before is not None and before not in known_versions():
        raise InputError(f"store {place} has schema {before}, which this Ringtrue does not know; install a newer one")
    taken = [] if before else sorted(set(inspect(connection).get_table_names()) & set(METADATA.tables))
    if taken:
        raise InputError(
            f"store {place} already has tables that are not Ringtrue's ({', '.join(taken[:5])}); "
            "give Ringtrue a database of its own"
        )
    if before != HEAD:
        migrate(connection)
    return before, HEAD


def _lock(connection: Connection) -> None:
    """Let one process at a time change the schema, until the transaction ends; on SQLite one that writes is alone anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})


def migrate(connection: Connection) -> None:
    """Run the migrations up to HEAD inside the connection's transaction."""
    from alembic import command

    config = alembic_config()
    config.attributes["connection"] = connection
    with _ONE_AT_A_TIME:
        command.upgrade(config, HEAD)


def known_versions() -> list[str]:
    """Return the versions that this Ringtrue can upgrade from, and its own."""
    from alembic.script import ScriptDirectory

    return [script.revision for script in ScriptDirectory.from_config(alembic_config()).walk_revisions()]


def alembic_config() -> Config:
    """Return Alembic's settings: the migrations lie inside the package, there is no file."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
