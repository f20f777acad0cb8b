"""Connections to PostgreSQL: where the server is, how long it may take, and what its failures mean.

In: an address from the settings, a statement and its parameters; out: the rows within the timeout, or an error in our words
that shows no address. Questions run in a read-only transaction, and their connections wait for the next one; what is planted
is written in one transaction on a connection of its own.
"""

from __future__ import annotations

import math
import os
import socket
import ssl
import threading
import time
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from ringtrue.errors import (
    AccessDenied,
    BadAnswer,
    InputError,
    MissingInput,
    RingtrueError,
    TimedOut,
    Unreachable,
    nearest,
)
from ringtrue.extras import install_command
from ringtrue.retrieve.connectors.base import hidden
from ringtrue.retrieve.connectors.writing import Store
from ringtrue.retrieve.protocol import Scope

SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
GRACE = 0.2
"""Seconds beyond the timeout in which the server may end the statement itself, which keeps the connection usable."""
Result = TypeVar("Result")
_LOCAL = ("", "localhost", "127.0.0.1", "::1")


def library() -> Any:
    """Return psycopg; raises MissingInput where it is not installed."""
    try:
        import psycopg
    except ImportError as problem:
        raise MissingInput(f"psycopg is not installed; {install_command('postgres')}") from problem
    return psycopg


@dataclass(frozen=True, kw_only=True)
class Server(Store):
    """A PostgreSQL server: its settings, ``fetch``, which asks it, and ``change``, which writes to it."""

    ASIDE: ClassVar[frozenset[str]] = Store.ASIDE | {"host", "port", "user", "sslmode"}

    dsn_env: str | None = None
    """Environment variable with the address, ``postgresql://user:password@host/dbname`` or ``host=… dbname=…``."""
    host: str | None = hidden()
    """Instead of, or over, the address: host or socket folder, port, database, user."""
    port: int | None = hidden()
    dbname: str | None = hidden()
    user: str | None = hidden()
    password_env: str | None = None
    """Environment variable with the password."""
    sslmode: str | None = None
    """As libpq names them; 'verify-full' unless the address says otherwise or the server is on this machine."""
    ca_file: str | None = None
    """Certificates to trust instead of the system's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.dsn_env and not self.host:
            raise InputError(f"{self.name}: the settings name no server; give dsn_env='VARIABLE' or host='…'")
        if self.sslmode is not None and self.sslmode not in SSL_MODES:
            raise InputError(
                f"{self.name}: sslmode={self.sslmode!r} is not known; did you mean {nearest(str(self.sslmode), SSL_MODES)}?"
            )

    @property
    @abstractmethod
    def checked(self) -> str:
        """The settings that a failing statement may be mended by."""

    def fetch(
        self,
        statement: Any,
        parameters: Mapping[str, Any],
        *,
        session: Mapping[str, Any],
        end: float | None = None,
        scope: Scope | None = None,
    ) -> list[dict[str, Any]]:
        """Run one statement within the timeout, or until ``end``, on a connection that waits or on a new one.

        ``session`` holds server settings for this statement; ``scope`` is named where its values are what failed.
        """
        psycopg = library()
        address = self._address()
        attempt = _Attempt()
        last = time.monotonic() + self.timeout if end is None else end

        def work() -> list[dict[str, Any]]:
            kept = self._idle.take()
            if kept is not None:
                try:
                    return self._run(kept, attempt, statement, parameters, session, last)
                except psycopg.OperationalError:
                    # A connection may have died while it waited. Whether the server is there, only a new one tells.
                    if not kept.closed or attempt.over:
                        raise
            opened = psycopg.connect(**address, autocommit=False, prepare_threshold=None)
            opened.read_only = True
            return self._run(opened, attempt, statement, parameters, session, last)

        try:
            return _within(max(last - time.monotonic(), 0.0) + GRACE, work, attempt.abandon)
        except TimeoutError:
            raise self._too_slow() from None
        except psycopg.Error as problem:
            # Not chained: the original names host, user and database.
            raise self._failure(problem, scope) from None

    def change(self, statements: Sequence[tuple[Any, Mapping[str, Any]]]) -> None:
        """Run statements in one transaction within the timeout: all of them count, or none; raises InputError, SearchFailed."""
        psycopg = library()
        address = self._address()
        attempt = _Attempt()
        end = time.monotonic() + self.timeout

        def work() -> None:
            with psycopg.connect(**address, autocommit=False, prepare_threshold=None) as connection, attempt.on(connection):
                left = max(1, math.ceil((end - time.monotonic()) * 1000))
                connection.execute("SELECT set_config('statement_timeout', %s::text, true)", [str(left)])
                for statement, parameters in statements:
                    connection.execute(statement, parameters)

        try:
            _within(self.timeout + GRACE, work, attempt.abandon)
        except TimeoutError:
            raise self._too_slow() from None
        except psycopg.Error as problem:
            raise self._not_written(problem) from None

    def _not_written(self, problem: Any) -> RingtrueError:
        state = problem.sqlstate or ""
        said = " ".join((problem.diag.message_primary or type(problem).__name__).split()) if state else ""
        if state == "42501":
            return AccessDenied(f"{self.name} refused to be written ({said}); grant its user INSERT and DELETE on the table")
        if state.startswith("22") and "dimensions" in said:
            return InputError(f"{self.name}: {said}; name the model that made the vectors of the column")
        if state.startswith(("22", "23")):
            return InputError(f"{self.name} refuses what plant makes ({said}); fill what the table asks for, in its types")
        if state in ("42703", "42804", "428C9"):
            return InputError(
                f"{self.name} refuses what plant makes ({said}); name columns that can be written, in their types"
            )
        if state == "25006":
            return AccessDenied(f"{self.name} can only be read ({said}); name a server that takes writes")
        return self._failure(problem, None)

    def _run(
        self,
        connection: Any,
        attempt: _Attempt,
        statement: Any,
        parameters: Mapping[str, Any],
        session: Mapping[str, Any],
        end: float,
    ) -> list[dict[str, Any]]:
        from psycopg.rows import dict_row

        try:
            with attempt.on(connection), connection.transaction():
                left = max(1, math.ceil((end - time.monotonic()) * 1000))
                for name, value in {"statement_timeout": left, **session}.items():
                    connection.execute("SELECT set_config(%s::text, %s::text, true)", [name, str(value)])
                cursor = connection.cursor(row_factory=dict_row).execute(statement, parameters)
                if cursor.description is None:
                    raise BadAnswer(f"{self.name}: the sql returns no rows; write a SELECT of id and score")
                rows: list[dict[str, Any]] = cursor.fetchall()
        except BaseException:
            # Only a connection whose transaction ended well waits for the next question.
            if connection.closed or attempt.over or connection.info.transaction_status:
                connection.close()
            else:
                self._idle.give(connection)
            raise
        self._idle.give(connection)
        return rows

    @cached_property
    def _idle(self) -> _Idle:
        return _Idle()

    def close(self) -> None:
        """Close the connections that wait; the next search opens one again."""
        self._idle.close()

    def _address(self) -> dict[str, Any]:
        psycopg = library()
        try:
            address: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(self.secret(self.dsn_env) or "")
        except psycopg.ProgrammingError:
            raise InputError(
                f"{self.name}: what {self.dsn_env} holds is no address; write it like postgresql://user@host/dbname"
            ) from None
        own = {"host": self.host, "port": self.port, "dbname": self.dbname, "user": self.user, "sslmode": self.sslmode}
        own |= {"password": self.secret(self.password_env), "sslrootcert": self.ca_file}
        address |= {key: value for key, value in own.items() if value is not None}
        hosts = f"{address.get('host') or ''},{address.get('hostaddr') or ''}".split(",")
        if "sslmode" not in address and any(host not in _LOCAL and not host.startswith(("/", "@")) for host in hosts):
            address["sslmode"] = "verify-full"
        if address.get("sslmode") == "verify-full" and "sslrootcert" not in address:
            # The library inside psycopg's wheel may look for certificates where this system has none; Python knows the place.
            address["sslrootcert"] = ssl.get_default_verify_paths().cafile or "system"
        address["connect_timeout"] = max(2, math.ceil(self.timeout))  # libpq knows nothing shorter; _within does
        return {"application_name": "ringtrue", "client_encoding": "utf8"} | address

    def _too_slow(self) -> TimedOut:
        return TimedOut(f"{self.name} did not answer within {self.timeout:g} s; raise timeout=, or give the search an index")

    def _failure(self, problem: Any, scope: Scope | None) -> RingtrueError:
        """Return a failure in our words. What the server says of a statement is shown, what is said of a connection is not."""
        state = problem.sqlstate
        if not state:
            return self._no_connection(problem)
        said = " ".join((problem.diag.message_primary or type(problem).__name__).split())
        if state in ("57014", "55P03", "25P04"):
            return self._too_slow()
        if state == "42501" or state.startswith("28"):
            return AccessDenied(f"{self.name} refused access ({said}); grant its user SELECT on what is searched")
        if state.startswith(("08", "40", "53", "57", "58")):
            return Unreachable(f"{self.name} broke off ({said}); try again later")
        if state.startswith("22") and "vector dimensions" in said:
            return InputError(f"{self.name}: {said}; name the model that made the vectors of the column")
        if state.startswith("22") and scope:
            return InputError(
                f"{self.name}: the scope {dict(scope)} does not fit its column ({said}); write a value of its type"
            )
        if state == "25006":
            return InputError(f"{self.name}: {said}; give a statement that only reads")
        if state.startswith(("42", "3F", "0A")):
            kind = MissingInput if state in ("42P01", "42703", "42704", "3F000") else InputError
            return kind(f"{self.name}: {said}; check {self.checked} in its settings, and the names in the scope")
        return BadAnswer(f"{self.name} answered with an error ({said}, {state}); check what the statement meets in the table")

    def _no_connection(self, problem: Any) -> RingtrueError:
        """Read why no connection came about. libpq has no codes for it; its words show the address, and so are not repeated."""
        said = str(problem).lower()
        pgconn = getattr(problem, "pgconn", None)
        asked_password = pgconn is not None and (pgconn.used_password or pgconn.needs_password)
        if "timeout expired" in said:
            return self._too_slow()
        if "database" in said and "does not exist" in said:
            return InputError(f"{self.name}: the server has no database of that name; check dbname or the address")
        if "certificate" in said:
            return Unreachable(f"{self.name} cannot be trusted (its TLS certificate); give ca_file=, or check the host's name")
        if "ssl" in said and "does not support" in said:
            return Unreachable(f"{self.name} offers no TLS; have it offer some, or say sslmode='disable' where the net is safe")
        if "expected authentication request" in said or "invalid response" in said:
            return BadAnswer(f"{self.name} does not speak PostgreSQL; check the port")
        if "closed the connection" in said or "could not receive" in said or "could not send" in said:
            return Unreachable(f"{self.name} cannot be reached (it closed the connection); check that it runs")
        if asked_password or "pg_hba" in said or "authentication" in said or ("role" in said and "does not exist" in said):
            return AccessDenied(
                f"{self.name} refused the credentials; check the user, and the variable that holds the password"
            )
        kind = next(
            (words for words in ("connection refused", "failed to resolve host", "no such file") if words in said), None
        )
        kind = kind or type(problem).__name__
        return Unreachable(f"{self.name} cannot be reached ({kind}); check that it runs and the address is right")


class _Idle:
    """Open connections that wait for the next question: one for each thread that asks, and none for a forked process."""

    def __init__(self) -> None:
        self.waiting: dict[int, list[Any]] = {}
        weakref.finalize(self, _close, self.waiting)

    def take(self) -> Any | None:
        try:
            return self.waiting.setdefault(os.getpid(), []).pop()
        except IndexError:
            return None

    def give(self, connection: Any) -> None:
        self.waiting.setdefault(os.getpid(), []).append(connection)

    def close(self) -> None:
        _close(self.waiting)


def _close(waiting: dict[int, list[Any]]) -> None:
    own = waiting.get(os.getpid(), [])
    while own:
        own.pop().close()


class _Attempt:
    """One attempt that another thread makes, and that may be given up."""

    def __init__(self) -> None:
        self.over = False
        self.connection: Any = None
        self.lock = threading.Lock()

    @contextmanager
    def on(self, connection: Any) -> Iterator[None]:
        with self.lock:
            if self.over:  # given up while the connection was made
                raise TimeoutError
            self.connection = connection
        try:
            yield
        finally:
            with self.lock:
                self.connection = None

    def abandon(self) -> None:
        """End the connection, so that the thread that waits on it wakes up and closes it."""
        with self.lock:
            self.over = True
            if self.connection is None or self.connection.closed:
                return
            wire = socket.socket(fileno=self.connection.fileno())
            try:
                with suppress(OSError):  # the other side was faster
                    wire.shutdown(socket.SHUT_RDWR)
            finally:
                wire.detach()


def _within(seconds: float, work: Callable[[], Result], abandon: Callable[[], None]) -> Result:
    """Return what ``work`` returns; raises TimeoutError when it takes longer.

    It runs in a thread: psycopg can limit how long the server takes, but not how long a silent network does.
    """
    outcome: Future[Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as problem:
            outcome.set_exception(problem)

    threading.Thread(target=run, name="ringtrue-postgres", daemon=True).start()
    try:
        return outcome.result(seconds)
    except BaseException:  # an interrupt of the user too leaves nobody waiting
        if not outcome.done():
            abandon()
        raise
