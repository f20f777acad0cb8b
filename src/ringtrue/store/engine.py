"""Addresses and connections: where the store is, and how each database is opened."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, InvalidatePoolError

from ringtrue.config import store_url
from ringtrue.errors import InputError
from ringtrue.extras import install_command
from ringtrue.store.confine import confine
from ringtrue.store.wal import WAL_BYTES

BUSY_S = 10
"""How long a writer waits for another on SQLite, and a connection for PostgreSQL."""
RESTED_S = 1.0
RESTING = "ringtrue_resting"
"""Since when a connection is not used."""
WRITES = "ringtrue_writes"
"""The execution option of a connection that will write."""


@dataclass(frozen=True)
class Address:
    """Where a store is."""

    url: URL

    @cached_property
    def kind(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self.url.get_backend_name()

    @property
    def sqlite(self) -> Path | None:
        """The file of a store on SQLite; None on PostgreSQL."""
        return Path(self.url.database or "") if self.kind == "sqlite" else None

    def __str__(self) -> str:
        return str(self.sqlite) if self.sqlite else self.url.render_as_string(hide_password=True)


def address(given: str | Path | None = None) -> Address:
    """Return the address of a store: a path, ``sqlite:///…``, ``postgresql://…``; unless given, what is configured.

    Raises InputError for anything else; a password is never repeated.

    >>> str(address("postgresql://ann:secret@db/ringtrue"))
    'postgresql+psycopg://ann:***@db/ringtrue'
    """
    if given is None:
        given = store_url()
    text = str(given)
    if "://" not in text:
        if not text or text == ":memory:":
            raise InputError(f"cannot keep a store in {text!r}; name a file or postgresql://…")
        return Address(URL.create("sqlite", database=str(Path(text).expanduser().absolute())))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise InputError(
            "cannot read the address of the store; write it like postgresql://user:password@host/database"
        ) from None
    if url.drivername == "sqlite":
        if url.database in (None, "", ":memory:"):
            raise InputError("a store in memory would be lost at the end; name a file: sqlite:///store.sqlite")
        return Address(url.set(database=str(Path(url.database or "").absolute())))
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return Address(url.set(drivername="postgresql+psycopg"))
    raise InputError(f"a store cannot be kept in {url.drivername!r}; use a file, sqlite:///… or postgresql://…")


def connect(place: Address) -> Engine:
    """Return an engine with the settings each database needs; nothing is opened yet.

    Of several connections the one used last is taken: what it and the database behind it have read and prepared is at hand.
    """
    if place.sqlite is not None:
        engine = create_engine(place.url, connect_args={"timeout": BUSY_S}, pool_use_lifo=True)
        event.listen(engine, "connect", _sqlite_settings)
        event.listen(engine, "begin", _sqlite_begin)
        confine(engine)
        return engine
    try:
        import psycopg  # noqa: F401
    except ImportError as problem:
        raise InputError(f"a store on PostgreSQL needs psycopg; {install_command('postgres')}") from problem
    # A cable that is cut says nothing; these make the operating system give up on it.
    watched = {"connect_timeout": BUSY_S, "tcp_user_timeout": 20_000, "keepalives_idle": 10, "keepalives_interval": 5}
    arguments: dict[str, Any] = {name: value for name, value in watched.items() if name not in place.url.query}
    arguments["application_name"] = "ringtrue"
    engine = create_engine(place.url, connect_args=arguments, pool_use_lifo=True)
    event.listen(engine, "checkin", _rest)
    event.listen(engine, "checkout", partial(_wake, engine))
    confine(engine)
    return engine


def _rest(_: Any, record: Any) -> None:
    record.info[RESTING] = time.monotonic()


def _wake(engine: Engine, connection: Any, record: Any, _: Any) -> None:
    """Ask a connection that was not used for a while whether it is still there; another is opened where it is not."""
    since = record.info.get(RESTING)
    if since is None or time.monotonic() - since < RESTED_S:  # to ask each time is a trip more
        return
    try:
        engine.dialect.do_ping(connection)
    except Exception as problem:
        raise InvalidatePoolError from problem


def _sqlite_settings(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # the driver would begin by itself, and not immediately
    limit = f"journal_size_limit = {WAL_BYTES}"  # it shrinks to that once a checkpoint has emptied it
    for setting in ("journal_mode = WAL", limit, "synchronous = NORMAL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")


def _sqlite_begin(connection: Connection) -> None:
    # A transaction that reads first and then writes fails where another wrote in between; one that writes from the start waits.
    immediate = connection.get_execution_options().get(WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


class Engines:
    """One engine per process: a connection that was opened before a fork belongs to the parent, and is not even closed here."""

    def __init__(self, place: Address) -> None:
        self.place = place
        self._inherited: list[Engine] = []
        self._of: tuple[int, Engine] | None = (os.getpid(), connect(place))

    def get(self) -> Engine:
        """Return this process's engine; raises InputError where the store was closed."""
        if self._of is None:
            raise InputError(f"store {self.place}: was closed; open it again")
        process, engine = self._of
        if process != os.getpid():
            self._inherited.append(engine)  # kept: to collect it would close the parent's connections
            engine = connect(self.place)
            self._of = (os.getpid(), engine)
        return engine

    def close(self) -> None:
        """Close this process's connections."""
        if self._of is not None and self._of[0] == os.getpid():
            self._of[1].dispose()
        elif self._of is not None:
            self._inherited.append(self._of[1])
        self._of = None
