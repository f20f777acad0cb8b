"""Connections to PostgreSQL: where the server is, how long it may take, and what its failures mean.

In: an address from the settings, a statement and its parameters; out: the rows within the timeout, or an error in our words
that shows no address. Questions run in a read-only transaction, and their connections wait for the next one; what is planted
is written in one transaction on a connection of its own.
"""

from __future__ import annotations

import math
import re
import socket
import ssl
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeVar

from ringtrue.errors import AccessDenied, BadAnswer, InputError, MissingInput, RingtrueError, TimedOut, Unreachable
from ringtrue.http_client import in_time
from ringtrue.retrieve.connectors.base import OpenResource, SecondsLeft
from ringtrue.retrieve.connectors.writing import RecordConnector
from ringtrue.retrieve.library import library
from ringtrue.retrieve.protocol import Scope

GRACE = 0.2
"""Seconds beyond the timeout in which the server may end the statement itself, which keeps the connection usable."""
Result = TypeVar("Result")
Refusals = Sequence[tuple[str, type[RingtrueError], str]]
"""Pattern of what went wrong → the error and its message; the first that fits holds."""
_LOCAL = ("", "localhost", "127.0.0.1", "::1")


def psycopg() -> Any:
    """Return psycopg; raises MissingInput if it is not installed."""
    return library("psycopg", "postgres")


REFUSALS: Refusals = (
    (r"57014|55P03|25P04", TimedOut, "did not answer within {timeout:g} s; raise timeout=, or give the search an index"),
    (r"42501|28...", AccessDenied, "refused access ({said}); grant its user SELECT on what is searched"),
    (r"(08|40|53|57|58)...", Unreachable, "broke off ({said}); try again later"),
    (r"25006", InputError, "can only be read ({said}); give a statement that only reads"),
    (r"42P01|42703|42704|3F000", MissingInput, "says: {said}; check {checked} in its settings, and the names in the scope"),
    (r"(42|3F|0A)...", InputError, "says: {said}; check {checked} in its settings, and the names in the scope"),
    (r".*", BadAnswer, "answered with an error ({said}, {state}); check what the statement meets in the table"),
)
"""By PostgreSQL's error codes (SQLSTATE)."""
WRITING_REFUSALS: Refusals = (
    (r"42501", AccessDenied, "refused to be written ({said}); grant its user INSERT and DELETE on the table"),
    (r"2[23]...", InputError, "refuses what plant makes ({said}); fill what the table asks for, in its types"),
    (r"42703|42804|428C9", InputError, "refuses what plant makes ({said}); name columns that can be written, in their types"),
    (r"25006", AccessDenied, "can only be read ({said}); name a server that takes writes"),
    *REFUSALS,
)
NO_CONNECTION: Refusals = (
    ("timeout expired", TimedOut, "did not answer within {timeout:g} s; raise timeout=, or give the search an index"),
    ("database .*does not exist", InputError, "has no database of that name; check dbname or the address"),
    ("certificate", Unreachable, "cannot be trusted (its TLS certificate); give ca_file=, or check the host's name"),
    ("ssl.*does not support|does not support.*ssl", Unreachable, "offers no TLS; have it offer some, or say sslmode='disable'"),
    ("expected authentication request|invalid response", BadAnswer, "does not speak PostgreSQL; check the port"),
    (
        "closed the connection|could not (receive|send)",
        Unreachable,
        "cannot be reached (it closed the connection); check that it runs",
    ),
    (
        "pg_hba|authentication|role .*does not exist|refused the password",
        AccessDenied,
        "refused the credentials; check the user, and the variable that holds the password",
    ),
    (
        "(?P<kind>connection refused|failed to resolve host|no such file)|.*",
        Unreachable,
        "cannot be reached ({kind}); check that it runs and the address is right",
    ),
)
"""By libpq's words, for which it has no codes. They show the address, and so are not repeated."""


@dataclass(frozen=True, kw_only=True)
class Server(RecordConnector):
    """A PostgreSQL server: its settings, ``fetch``, which asks it, and ``change``, which writes to it."""

    ASIDE: ClassVar[frozenset[str]] = RecordConnector.ASIDE | {"host", "port", "user", "sslmode"}

    dsn_env: str | None = None
    """Environment variable with the address, ``postgresql://user:password@host/dbname`` or ``host=… dbname=…``."""
    host: str | None = field(default=None, repr=False)
    """Instead of, or over, the address: host or socket folder, port, database, user."""
    port: int | None = field(default=None, repr=False)
    dbname: str | None = field(default=None, repr=False)
    user: str | None = field(default=None, repr=False)
    password_env: str | None = None
    """Environment variable with the password."""
    sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] | None = None
    """As libpq names them; 'verify-full' unless the address says otherwise or the server is on this machine."""
    ca_file: str | None = None
    """Certificates to trust instead of the system's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.dsn_env and not self.host:
            raise InputError(f"{self.name}: the settings name no server; give dsn_env='VARIABLE' or host='…'")

    @property
    @abstractmethod
    def checked(self) -> str:
        """The settings that a failing statement may be mended by."""

    def fetch(
        self,
        statement: Any,
        parameters: Mapping[str, Any],
        *,
        session: Mapping[str, Any] = MappingProxyType({}),
        left: SecondsLeft | None = None,
        scope: Scope | None = None,
    ) -> list[dict[str, Any]]:
        """Run one statement within the timeout, or the seconds left, on a connection that waits or on a new one.

        ``session`` holds server settings for this statement; ``scope`` is named if its values are what failed.
        """
        last = left or self.deadline()
        idle = self._idle

        def work(attempt: _Attempt, connect: Callable[[], Any]) -> list[dict[str, Any]]:
            try:
                waiting = idle.pop()
            except IndexError:
                waiting = None
            if waiting is not None:
                try:
                    return self._run(waiting, attempt, statement, parameters, {"statement_timeout": _ms(last), **session})
                except psycopg().OperationalError:
                    # A connection may have died while it waited. Whether the server is there, only a new one tells.
                    if not waiting.closed or attempt.over:
                        raise
            opened = connect()
            opened.read_only = True
            return self._run(opened, attempt, statement, parameters, {"statement_timeout": _ms(last), **session})

        return self._attempted(work, last, REFUSALS, scope)

    def change(self, statements: Sequence[tuple[Any, Mapping[str, Any]]]) -> None:
        """Run statements in one transaction within the timeout: all of them count, or none; raises InputError, SearchFailed."""
        left = self.deadline()

        def work(attempt: _Attempt, connect: Callable[[], Any]) -> None:
            with connect() as connection, attempt.on(connection):
                connection.execute("SELECT set_config('statement_timeout', %s::text, true)", [str(_ms(left))])
                for statement, parameters in statements:
                    connection.execute(statement, parameters)

        self._attempted(work, left, WRITING_REFUSALS, None)

    def _attempted(
        self,
        work: Callable[[_Attempt, Callable[[], Any]], Result],
        left: SecondsLeft,
        refusals: Refusals,
        scope: Scope | None,
    ) -> Result:
        """Return what ``work`` returns in the seconds left, its failures as our errors."""
        attempt = _Attempt()
        connect = partial(psycopg().connect, **self._address(), autocommit=False, prepare_threshold=None)
        try:
            # In a thread: psycopg can limit how long the server takes, but not how long a silent network does.
            return in_time(left() + GRACE, lambda: work(attempt, connect), name="ringtrue-postgres", abandon=attempt.abandon)
        except TimeoutError:
            raise self.too_slow() from None
        except psycopg().Error as problem:
            # Not chained: the original names host, user and database.
            raise self._failure(problem, refusals, scope) from None

    def too_slow(self) -> TimedOut:
        return TimedOut(f"{self.name} did not answer within {self.timeout:g} s; raise timeout=, or give the search an index")

    def _run(
        self, connection: Any, attempt: _Attempt, statement: Any, parameters: Mapping[str, Any], session: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        from psycopg.rows import dict_row

        try:
            with attempt.on(connection), connection.transaction():
                for name, value in session.items():
                    connection.execute("SELECT set_config(%s::text, %s::text, true)", [name, str(value)])
                cursor = connection.cursor(row_factory=dict_row).execute(statement, parameters)
                if cursor.description is None:
                    raise BadAnswer(f"{self.name}: the sql returns no rows; write a SELECT of id and score")
                rows: list[dict[str, Any]] = cursor.fetchall()
        finally:
            # Only a connection whose transaction ended well waits for the next question.
            if connection.closed or attempt.over or connection.info.transaction_status:
                connection.close()
            else:
                self._idle.append(connection)
        return rows

    @property
    def _idle(self) -> list[Any]:
        """Open connections that wait for the next question: one for each thread that asks, and none for a forked process."""
        idle: OpenResource[list[Any]] = self.kept("idle", lambda held: [connection.close() for connection in held])
        return idle.get(list)

    def _address(self) -> dict[str, Any]:
        try:
            address: dict[str, Any] = psycopg().conninfo.conninfo_to_dict(self.secret(self.dsn_env) or "")
        except psycopg().ProgrammingError:
            raise InputError(
                f"{self.name}: what {self.dsn_env} holds is not an address; write it like postgresql://user@host/dbname"
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

    def _failure(self, problem: Any, refusals: Refusals, scope: Scope | None) -> RingtrueError:
        """Return a failure in our words. What the server says of a statement is shown, what is said of a connection is not."""
        state = problem.sqlstate or ""
        said = " ".join((problem.diag.message_primary or type(problem).__name__).split()) if state else ""
        if state.startswith("22") and "dimensions" in said:
            return InputError(f"{self.name}: {said}; name the model that made the vectors of the column")
        if state.startswith("22") and scope:
            return InputError(
                f"{self.name}: the scope {dict(scope)} does not fit its column ({said}); write a value of its type"
            )
        words = state
        if not state:
            pgconn = getattr(problem, "pgconn", None)
            asked_password = pgconn is not None and (pgconn.used_password or pgconn.needs_password)
            words = str(problem).lower() + (" refused the password" if asked_password else "")
        for pattern, kind, message in refusals if state else NO_CONNECTION:
            found = re.fullmatch(pattern, words) if state else re.search(pattern, words, re.DOTALL)
            if found:
                why = found.groupdict().get("kind") or type(problem).__name__
                facts = {"said": said, "state": state, "timeout": self.timeout, "checked": self.checked, "kind": why}
                return kind(f"{self.name} {message.format(**facts)}")
        raise AssertionError("the last pattern fits everything")


def _ms(left: SecondsLeft) -> int:
    return max(1, math.ceil(left() * 1000))


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

    def abandon(self, _: threading.Thread) -> None:
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
