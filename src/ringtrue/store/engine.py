"""Where the store is, how each database is opened and kept on disk, and what is said when it complains.

SQLite moves its write-ahead log into the file by itself, every thousand pages, and begins it anew once no reader needs it. If
readers overlap, that moment never comes; a checkpoint that waits for them makes it come.

What a database complains of is said so that a person knows what to do; no message shows a password or a stored value. A
complaint that may pass by itself (locked, full, gone) is Unreachable: a writer keeps what it has and tries again.

A store of one project runs no statement that is not confined to that project. On PostgreSQL the database itself shows and
takes the rows of that project alone: every transaction says which one it is for, and row-level security does the rest
(migration 0004). SQLite has nothing like it, so the statements themselves are looked at before they run: every table in them
must be asked for rows of this project. Both refuse the same calls in the same words.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import (
    URL,
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
    create_engine,
    event,
    make_url,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.elements import BooleanClauseList, ColumnElement

from ringtrue.config import store_url
from ringtrue.errors import AccessDenied, InputError, RingtrueError, Unreachable, Unusable
from ringtrue.extras import install_command

EVERY = "*"
"""What stands for all projects: the operator's view."""
PROJECT = "ringtrue_project"
"""The execution option of a connection that says which project its statements are for."""


_seen: WeakKeyDictionary[Any, list[str] | None] = WeakKeyDictionary()
"""What was found out about statements that SQLAlchemy keeps compiled."""


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
    """Return the parameters of a statement that name a project; None if one of its tables is not confined to any."""
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


BUSY_S = 10
"""How long a writer waits for another on SQLite, and a connection for PostgreSQL."""
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
    else:
        try:
            import psycopg  # noqa: F401
        except ImportError as problem:
            raise InputError(f"a store on PostgreSQL needs psycopg; {install_command('postgres')}") from problem
        # A cable that is cut says nothing; these make the operating system give up on it.
        watched = {"connect_timeout": BUSY_S, "tcp_user_timeout": 20_000, "keepalives_idle": 10, "keepalives_interval": 5}
        arguments: dict[str, Any] = {name: value for name, value in watched.items() if name not in place.url.query}
        arguments["application_name"] = "ringtrue"
        engine = create_engine(place.url, connect_args=arguments, pool_use_lifo=True, pool_pre_ping=True)
        event.listen(engine, "begin", _tell)
    event.listen(engine, "before_cursor_execute", _check)
    return engine


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
        self.place, self._closed = place, False
        # Those of parents are kept: to collect one would close the parent's connections.
        self._of = {os.getpid(): connect(place)}

    def get(self) -> Engine:
        """Return this process's engine; raises InputError if the store was closed."""
        if self._closed:
            raise InputError(f"store {self.place}: was closed; open it again")
        if os.getpid() not in self._of:
            self._of[os.getpid()] = connect(self.place)
        return self._of[os.getpid()]

    def close(self) -> None:
        """Close this process's connections."""
        if os.getpid() in self._of:
            self._of[os.getpid()].dispose()
        self._closed = True


PRIVATE = 0o600
"""The rights of files with what users asked: their owner may read and write them, nobody else."""
_CREATING = threading.Lock()


def _keep_private(file: Path) -> None:
    """Create a SQLite file for its owner alone, and take the rights of others from one that everybody may read.

    SQLite gives the files beside it the same rights. A file that is shared with a group on purpose stays shared. A file that
    exists is not opened: closing it would release all locks that SQLite holds on it in this process.
    """
    if os.name != "posix":
        return
    try:
        with _CREATING, suppress(FileExistsError):
            os.close(os.open(file, os.O_RDONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
        for one in (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
            if one.exists() and one.stat().st_mode & stat.S_IRWXO:
                one.chmod(PRIVATE)
    except OSError:  # not ours, read-only, or no file at all; whoever opens it says so
        pass


OWN_FOLDER = ".ringtrue"


def make_folder(place: Address) -> None:
    """Make the folder of a store on SQLite, and its file for the owner alone; raises InputError if that is impossible."""
    if place.sqlite is not None:
        try:
            folder = place.sqlite.parent
            fresh = [one for one in (folder, *folder.parents) if one.name == OWN_FOLDER and not one.exists()]
            folder.mkdir(parents=True, exist_ok=True)
            _keep_private(place.sqlite)
            for own in fresh:  # the default lies in a project, and what users asked is not for git
                (own / ".gitignore").write_text("*\n", encoding="utf-8")
        except OSError as problem:
            raise InputError(f"store {place}: its folder cannot be made: {problem.strerror}; choose another place") from problem


WAL_BYTES = 16 * 1024 * 1024
"""Size of the log from which on readers are waited for."""
PATIENCE_S = 0.05
"""How long they are waited for; it is tried again the next time."""
_SYNC = getattr(os, "fdatasync", os.fsync)


def sync_wal(file: Path) -> None:
    """Bring the log of a store's file to the disk, and shorten one that is too long; raises OSError if the disk fails."""
    try:
        descriptor = os.open(file.with_name(file.name + "-wal"), os.O_RDWR)
    except FileNotFoundError:  # nothing was written yet
        return
    try:
        _SYNC(descriptor)
        size = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    if size > WAL_BYTES:
        # Whatever is wrong with the file, those who write to it are told.
        with contextlib.suppress(sqlite3.Error), closing(sqlite3.connect(file, timeout=PATIENCE_S)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


_SQLITE = {
    "database is locked": (Unreachable, "is locked by another program; wait until it ends, or move to PostgreSQL"),
    "database table is locked": (Unreachable, "is locked by another program; wait until it ends, or move to PostgreSQL"),
    "database or disk is full": (Unreachable, "cannot grow, the disk is full; free space, then try again"),
    "disk i/o error": (Unreachable, "cannot be read or written (disk I/O error); check the disk and its free space"),
    "attempt to write a readonly database": (Unusable, "is read-only; check the permissions of the file and its folder"),
    "unable to open database file": (Unusable, "cannot be opened; check that its folder exists and may be written"),
    "file is not a database": (Unusable, "is not an SQLite database; name another file"),
    "database disk image is malformed": (Unusable, "is damaged; restore a backup: ringtrue store restore FILE"),
}
_ACCESS = ("28000", "28P01")
_FULL = ("53100", "53200", "53300")
_GONE = ("08", "57P", "55P", "57014")
_NO_ANSWER = "PostgreSQL did not answer: {}; check that it runs, then try again"


@contextmanager
def explained(place: object) -> Iterator[None]:
    """Turn an error of the database at ``place`` (whose text has no password) into one of Ringtrue's."""
    try:
        yield
    except _errors() as problem:
        raise _explain(problem, str(place)) from _Quiet(problem)


def _errors() -> tuple[type[Exception], ...]:
    """Return what databases raise, by SQLAlchemy or by themselves; whoever has not loaded psycopg meets none of its errors."""
    psycopg = sys.modules.get("psycopg")
    return (SQLAlchemyError, sqlite3.Error) if psycopg is None else (SQLAlchemyError, sqlite3.Error, psycopg.Error)


class _Quiet(Exception):
    """The kind of the error behind; its text may hold the values that were to be stored."""

    def __init__(self, problem: Exception) -> None:
        origin = getattr(problem, "orig", None) or problem
        super().__init__(f"{type(problem).__name__} ({type(origin).__name__})")


def _is(problem: Exception, *kinds: str) -> bool:
    """True for one of PEP 249's kinds of errors, which every driver has under the same names, and SQLAlchemy too."""
    return any(kind.__name__ in kinds for kind in type(problem).__mro__)


def _explain(problem: Exception, place: str) -> RingtrueError:
    if isinstance(problem, PoolTimeout):
        return Unreachable(f"store {place}: every connection is in use; use fewer threads, or try again")
    origin = problem.orig if isinstance(problem, DBAPIError) else problem
    said = str(origin)
    if _is(problem, "IntegrityError"):
        return InputError(f"store {place}: a row breaks a rule of its table ({_rule(origin)}); nothing of it was stored")
    if isinstance(origin, sqlite3.Error):
        for text, (kind, advice) in _SQLITE.items():
            if text in said.lower():
                return kind(f"store {place} {advice}")
        return InputError(f"store {place}: SQLite says: {said}")
    state = getattr(origin, "sqlstate", None) or ""
    refused = state in _ACCESS or "password authentication failed" in said or "no password supplied" in said
    missing = state == "3D000" or ('database "' in said and "does not exist" in said)
    lost = _is(problem, "OperationalError", "InterfaceError") and not state
    for holds, kind, advice in (
        (
            state == "42501" and "row-level security" in said,
            InputError,
            "a row belongs to a project that this store is not for; nothing was stored",
        ),
        (
            state == "42501",
            AccessDenied,
            "PostgreSQL does not let this user do that; make the user the owner of a database of its own",
        ),
        (refused, AccessDenied, "PostgreSQL refused the user or the password; check both in the store's address"),
        (state in _FULL, Unreachable, "PostgreSQL has no room left (disk, memory or connections); make room, then try again"),
        (missing, InputError, "PostgreSQL has no such database; create it: createdb NAME"),
        (state.startswith("40"), Unreachable, _NO_ANSWER.format("it ended a transaction that met another")),
        (state == "25006", Unreachable, _NO_ANSWER.format("it takes no writes at the moment")),
        (state.startswith(_GONE) or lost, Unreachable, _NO_ANSWER.format("it cannot be reached or went away")),
    ):
        if holds:
            return kind(f"store {place}: {advice}")
    diagnosis = getattr(getattr(origin, "diag", None), "message_primary", None)
    return InputError(f"store {place}: PostgreSQL says: {diagnosis or type(origin).__name__}")


def _rule(origin: BaseException | None) -> str:
    """Return the name of the rule, without the values."""
    diagnosis = getattr(origin, "diag", None)
    if diagnosis is not None:
        named = (diagnosis.table_name, diagnosis.constraint_name or diagnosis.column_name)
        return ", ".join(str(part) for part in named if part) or str(diagnosis.message_primary)
    return str(origin)  # SQLite names the rule or the columns only
