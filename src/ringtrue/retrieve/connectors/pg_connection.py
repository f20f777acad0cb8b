"""Connections to PostgreSQL: where the server is, how long it may take, and what its failures mean.

In: an address from the settings, a statement and its parameters; out: the rows within the timeout, or an error in our words
that shows no address. Questions run in a read-only transaction, and their connections wait for the next one; what is planted
is written in one transaction on a connection of its own.
"""

from __future__ import annotations

import math
import os
import re
import socket
import ssl
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Literal, TypeVar

from ringtrue.errors import AccessDenied, BadAnswer, InputError, MissingInput, RingtrueError, TimedOut, Unreachable
from ringtrue.retrieve.connectors.base import SecondsLeft
from ringtrue.retrieve.connectors.objects import within
from ringtrue.retrieve.connectors.writing import RecordConnector
from ringtrue.retrieve.library import library
from ringtrue.retrieve.protocol import Scope

GRACE = 0.2
"""Seconds beyond the timeout in which the server may end the statement itself, which keeps the connection usable."""
Result = TypeVar("Result")
_LOCAL = ("", "localhost", "127.0.0.1", "::1")


def psycopg() -> Any:
    """Return psycopg; raises MissingInput if it is not installed."""
    return library("psycopg", "postgres")


def name_of(*parts: str) -> str:
    """Return a name of the catalogue as it stands in a statement; a percent sign in it would pass for a placeholder."""
    psycopg()
    return str(import_module("psycopg.sql").Identifier(*(part.replace("%", "%%") for part in parts)).as_string(None))


def literal(value: Any) -> str:
    """Return a value of the settings as it stands in a statement."""
    return str(import_module("psycopg.sql").Literal(value).as_string(None)).replace("%", "%%")


Refusals = Sequence[tuple[str, type[RingtrueError], str]]
"""Pattern of an error's code or words → the error and its message; the first that fits holds."""
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
        statement: str,
        parameters: Mapping[str, Any],
        *,
        session: Mapping[str, Any],
        left: SecondsLeft | None = None,
        scope: Scope | None = None,
    ) -> list[dict[str, Any]]:
        """Run one statement within the timeout, or the seconds left, on a connection that waits or on a new one.

        ``session`` holds server settings for this statement; ``scope`` is named if its values are what failed.
        """

        def work(attempt: _Attempt) -> list[dict[str, Any]]:
            if idle := self._idle:
                waited = idle.pop()
                try:
                    return self._run(waited, attempt, statement, parameters, session)
                except psycopg().OperationalError:
                    # A connection may have died while it waited. Whether the server is there, only a new one tells.
                    if not waited.closed or attempt.over:
                        raise
            return self._run(attempt.connect(read_only=True), attempt, statement, parameters, session)

        return self._attempted(work, left or self.deadline(), REFUSALS, scope)

    def change(self, statements: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Run statements in one transaction within the timeout: all of them count, or none; raises InputError, SearchFailed."""

        def work(attempt: _Attempt) -> None:
            with attempt.connect(read_only=False) as connection:
                attempt.use(connection)
                attempt.limit({})
                for statement, parameters in statements:
                    connection.execute(statement, parameters)

        self._attempted(work, self.deadline(), WRITING_REFUSALS, None)

    def _attempted(
        self, work: Callable[[_Attempt], Result], left: SecondsLeft, refusals: Refusals, scope: Scope | None
    ) -> Result:
        """Return what ``work`` returns in the seconds left, its failures as our errors.

        It runs in a thread: psycopg can limit how long the server takes, but not how long a silent network does.
        """
        attempt = _Attempt(self._address(), left)

        def explained() -> Result:
            try:
                return work(attempt)
            except psycopg().Error as problem:
                # Not chained: the original names host, user and database.
                raise self._failure(problem, refusals, scope) from None

        try:
            return within(self.name, left() + GRACE, explained)
        except TimedOut:
            raise self.too_slow() from None
        finally:
            attempt.end()

    def too_slow(self) -> TimedOut:
        return TimedOut(f"{self.name} did not answer within {self.timeout:g} s; raise timeout=, or give the search an index")

    def _run(
        self, connection: Any, attempt: _Attempt, statement: str, parameters: Mapping[str, Any], session: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        try:
            attempt.use(connection)
            with connection.transaction():
                attempt.limit(session)
                cursor = connection.execute(statement, parameters)
                if cursor.description is None:
                    raise BadAnswer(f"{self.name}: the sql returns no rows; write a SELECT of id and score")
                columns = [column.name for column in cursor.description]
                return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
        finally:
            # Only a connection whose transaction ended well waits for the next question.
            if connection.closed or attempt.over or connection.info.transaction_status:
                connection.close()
            else:
                attempt.connection = None
                self._idle.append(connection)

    @property
    def _idle(self) -> list[Any]:
        """Open connections that wait for the next question: one for each thread that asks."""
        return self.kept(list, _close)

    def _address(self) -> dict[str, Any]:
        try:
            address: dict[str, Any] = psycopg().conninfo.conninfo_to_dict(self.secret(self.dsn_env) or "")
        except psycopg().ProgrammingError:
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
        address["connect_timeout"] = max(2, math.ceil(self.timeout))  # libpq knows nothing shorter; ``within`` does
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


def _close(connections: list[Any]) -> None:
    while connections:
        connections.pop().close()


class _Attempt:
    """One attempt, made in a thread that may be given up."""

    def __init__(self, address: Mapping[str, Any], left: SecondsLeft) -> None:
        self.address, self.left = address, left
        self.over = False
        self.connection: Any = None
        self._lock = threading.Lock()

    def connect(self, *, read_only: bool) -> Any:
        """Open a connection; nothing is committed by itself."""
        opened = psycopg().connect(**self.address, prepare_threshold=None)
        opened.read_only = read_only
        return opened

    def use(self, connection: Any) -> None:
        """Say which connection the attempt waits on from now on."""
        with self._lock:
            self.connection = connection
            if self.over:  # given up while the connection was made
                connection.close()

    def limit(self, session: Mapping[str, Any]) -> None:
        """Set what holds until the end of the transaction: the time limit, and settings of the server."""
        limit = max(1, math.ceil(self.left() * 1000))
        for name, value in {"statement_timeout": limit, **session}.items():
            self.connection.execute("SELECT set_config(%s::text, %s::text, true)", [name, str(value)])

    def end(self) -> None:
        """Cut a connection that is still in use, so that the thread that waits on it wakes up and closes it."""
        with self._lock, suppress(OSError):  # the other side was faster
            self.over = True
            if self.connection is not None and not self.connection.closed:
                with socket.socket(fileno=os.dup(self.connection.fileno())) as wire:
                    wire.shutdown(socket.SHUT_RDWR)
