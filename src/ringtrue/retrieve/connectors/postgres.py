"""PostgreSQL as a search system: its full text search (``Postgres``) and pgvector (``Pgvector``).

Both only read: every question runs in a read-only transaction with a time limit. Question and scope are only ever parameters;
names from the settings are quoted as identifiers. Who has a statement of his own gives it as ``sql``.
"""

from __future__ import annotations

import math
import os
import re
import socket
import ssl
import threading
import time
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeVar
from uuid import UUID

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
from ringtrue.retrieve.connectors.base import Connector, hidden
from ringtrue.retrieve.encode import DEFAULT_MODEL, encoder
from ringtrue.retrieve.protocol import Scope, plain

SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
LETTERS = ("A", "B", "C", "D")
DEFAULT_WEIGHTS = {"A": 1.0, "B": 0.4, "C": 0.2, "D": 0.1}
"""PostgreSQL's own weights of the four classes of a tsvector."""
METRICS = {"cosine": ("<=>", "1 - ({})"), "l2": ("<->", "-({})"), "inner_product": ("<#>", "-({})")}
"""Metric → pgvector's operator, which gives a distance, and the score made of it, where higher is better."""
GRACE = 0.2
"""Seconds beyond the timeout in which the server may end the statement itself, which keeps the connection usable."""
Result = TypeVar("Result")
_PLACEHOLDER = re.compile(r"%(?:%|\(([^)]*)\)s|.?)", re.DOTALL)
_LOCAL = ("", "localhost", "127.0.0.1", "::1")


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as problem:
        raise MissingInput("psycopg is not installed; pip install 'ringtrue[postgres]'") from problem
    return psycopg


@dataclass(frozen=True, kw_only=True)
class Database(Connector):
    """What both ways to search a PostgreSQL table share."""

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
    table: str | None = None
    """``table`` or ``schema.table``, spelled as in the catalogue."""
    id: str = "id"
    """Column with the document id."""
    chunk: str | None = None
    """Column with the passage's id, where a document has several rows; its best row counts."""
    metadata: str | None = None
    """JSON column in which a scope is looked up; without it a scope names columns."""
    sql: str | None = None
    """A statement of one's own with ``%(text)s`` or ``%(vector)s``, and ``%(k)s``; it returns id, score and perhaps chunk."""
    session: Mapping[str, Any] = field(default_factory=dict)
    """Server settings that hold for each question, such as ``{"hnsw.ef_search": 100}``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.dsn_env and not self.host:
            raise InputError(f"{self.name}: the settings name no server; give dsn_env='VARIABLE' or host='…'")
        if self.sslmode is not None and self.sslmode not in SSL_MODES:
            raise InputError(
                f"{self.name}: sslmode={self.sslmode!r} is not known; did you mean {nearest(str(self.sslmode), SSL_MODES)}?"
            )
        if (self.table is None) == (self.sql is None):
            raise InputError(
                f"{self.name}: has both or neither of table and sql; give a table to search, or a statement of your own"
            )
        for key, name in (("id", self.id), ("chunk", self.chunk), ("metadata", self.metadata)):
            if name is not None and not _is_name(name):
                raise InputError(f"{self.name}: {key}={name!r} is no name of a column; write it as in the catalogue")
        if self.table is not None and not all(map(_is_name, self._table())):
            raise InputError(f"{self.name}: table={self.table!r} is no name of a table; write it like hotels or shop.hotels")
        if not isinstance(self.session, Mapping):
            raise InputError(f"{self.name}: session={self.session!r} is no table; write it like {{'hnsw.ef_search': 100}}")
        if self.sql is not None:
            self._check_statement(self.sql)

    def _table(self) -> list[str]:
        return self.table.split(".", 1) if isinstance(self.table, str) else [""]

    def _check_statement(self, statement: str) -> None:
        named = {match[1] or match[0] for match in _PLACEHOLDER.finditer(statement)} - {"%%"}
        for name in sorted(named):
            if name not in (self.question, "k") and not name.startswith("scope."):
                raise InputError(
                    f"{self.name}: the sql holds {name!r:.40}, which is no placeholder; "
                    f"write %({self.question})s, %(k)s or %(scope.NAME)s, and %% for a percent sign"
                )
        for name in (self.question, "k"):
            if name not in named:
                raise InputError(
                    f"{self.name}: the sql never uses %({name})s; write it where it belongs, LIMIT %(k)s at the end"
                )

    @property
    @abstractmethod
    def question(self) -> str:
        """The placeholder of the question: ``text`` or ``vector``."""

    @abstractmethod
    def put(self, text: str) -> str | None:
        """Return the question as the parameter it becomes, or None where nothing is asked."""

    @abstractmethod
    def found(self, sql: Any) -> tuple[Any, Any]:
        """Return (score, condition) over the row ``document`` and the parameter of the question."""

    def ask(self, text: str, *, k: int, scope: Scope | None) -> list[dict[str, Any]]:
        _psycopg()
        asked = self.put(text)
        if asked is None:
            return []
        parameters: dict[str, Any] = {self.question: asked, "k": k}
        if self.sql is not None:
            statement: Any = self.sql
            parameters |= self._named_scope(self.sql, scope)
        else:
            statement = self._statement(scope, parameters)
        return [_plain_row(row) for row in self._fetch(statement, parameters, scope)]

    def _named_scope(self, statement: str, scope: Scope | None) -> dict[str, str | None]:
        """Return the scope for a statement of one's own; what the scope leaves open is NULL there."""
        wanted = {match[1] for match in _PLACEHOLDER.finditer(statement) if match[1] and match[1].startswith("scope.")}
        for name in scope or {}:
            if f"scope.{name}" not in wanted:
                raise InputError(
                    f"{self.name}: the sql takes no scope '{name}'; write %(scope.{name})s into it, or search without"
                )
        return {name: plain(str(scope[name[6:]])) if scope and name[6:] in scope else None for name in wanted}

    def _statement(self, scope: Scope | None, parameters: dict[str, Any]) -> Any:
        from psycopg import sql

        score, condition = self.found(sql)
        columns = [sql.SQL("document.{}::text AS doc_id").format(_named(self.id))]
        if self.chunk is not None:
            columns.append(sql.SQL("document.{}::text AS chunk").format(_named(self.chunk)))
        columns.append(sql.SQL("({})::float8 AS score").format(score))
        conditions = [condition]
        for place, (name, value) in enumerate((scope or {}).items()):
            parameters[f"field{place}"], parameters[f"value{place}"] = plain(str(name)), plain(str(value))
            if self.metadata is not None:
                template = f"(document.{{}}::jsonb ->> %(field{place})s::text) = %(value{place})s::text"
                conditions.append(sql.SQL(template).format(_named(self.metadata)))
            else:
                conditions.append(sql.SQL(f"document.{{}} = %(value{place})s").format(_named(plain(str(name)))))
        rows = sql.SQL("SELECT {} FROM {} AS document {} WHERE {}").format(
            sql.SQL(", ").join(columns), _named(*self._table()), self.beside(sql), sql.SQL(" AND ").join(conditions)
        )
        return self.ranked(sql, rows)

    def beside(self, sql: Any) -> Any:
        """Return what stands in FROM beside the table."""
        return sql.SQL("")

    def ranked(self, sql: Any, rows: Any) -> Any:
        """Return the best k of the rows, each document once where passages are known, ties by document id descending."""
        if self.chunk is not None:
            best = "SELECT DISTINCT ON (doc_id) * FROM ({}) AS passages WHERE score <> 'NaN' ORDER BY doc_id, score DESC, chunk"
            rows = sql.SQL(best).format(rows)
        # PostgreSQL puts NaN above every number; a vector of zeros has no angle to anything.
        order = "SELECT * FROM ({}) AS found WHERE score <> 'NaN' ORDER BY score DESC, doc_id COLLATE \"C\" DESC LIMIT %(k)s"
        return sql.SQL(order).format(rows)

    def _fetch(self, statement: Any, parameters: Mapping[str, Any], scope: Scope | None) -> list[dict[str, Any]]:
        """Run one statement within the timeout, on a connection that waits or on a new one."""
        psycopg = _psycopg()
        address = self._address()
        attempt = _Attempt()
        end = time.monotonic() + self.timeout

        def work() -> list[dict[str, Any]]:
            kept = self._idle.take()
            if kept is not None:
                try:
                    return self._run(kept, attempt, statement, parameters, end)
                except psycopg.OperationalError:
                    # A connection may have died while it waited. Whether the server is there, only a new one tells.
                    if not kept.closed or attempt.over:
                        raise
            opened = psycopg.connect(**address, autocommit=False, prepare_threshold=None)
            opened.read_only = True
            return self._run(opened, attempt, statement, parameters, end)

        try:
            return _within(self.timeout + GRACE, work, attempt.abandon)
        except TimeoutError:
            raise self._too_slow() from None
        except psycopg.Error as problem:
            # Not chained: the original names host, user and database.
            raise self._failure(problem, scope) from None

    def _run(
        self, connection: Any, attempt: _Attempt, statement: Any, parameters: Mapping[str, Any], end: float
    ) -> list[dict[str, Any]]:
        from psycopg.rows import dict_row

        try:
            with attempt.on(connection), connection.transaction():
                left = max(1, math.ceil((end - time.monotonic()) * 1000))
                for name, value in {"statement_timeout": left, **self.session}.items():
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
        psycopg = _psycopg()
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

    @property
    def checked(self) -> str:
        """The settings that a failing statement may be mended by."""
        return "sql" if self.sql is not None else "table, id, chunk"

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


@dataclass(frozen=True, kw_only=True)
class Postgres(Database):
    """PostgreSQL's full text search over columns, or over a tsvector column.

    The score is ``ts_rank_cd`` as PostgreSQL gives it: good for an order, not comparable between questions.
    """

    columns: Sequence[str] = ()
    """Columns to search, where there is no tsvector column; the whole table is read for each question."""
    vector: str | None = None
    """A tsvector column, which an index can serve."""
    language: str = "english"
    """Text search configuration (regconfig): it decides on stems and stop words, and must be that of the tsvector column."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weight of each column, at most four different ones; for a tsvector column, of each of its classes A, B, C, D."""
    match: str = "any"
    """'any': a document needs one word of the question; 'all': it needs every one."""
    rank: str = "ts_rank_cd"
    """'ts_rank_cd' (how close the words stand) or 'ts_rank' (how often they come)."""
    normalization: int = 0
    """How the length of a document counts, as PostgreSQL's ranking functions number it; 0: not at all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.columns, str) or not all(map(_is_name, self.columns)):
            raise InputError(f"{self.name}: columns={self.columns!r} is no list of columns; write it like ['title', 'body']")
        if self.table is not None and bool(self.columns) == (self.vector is not None):
            raise InputError(
                f"{self.name}: has both or neither of columns and vector; give columns to search, or a tsvector column"
            )
        if self.vector is not None and not _is_name(self.vector):
            raise InputError(f"{self.name}: vector={self.vector!r} is no name of a column; write it as in the catalogue")
        for key, value, known in (("match", self.match, ("any", "all")), ("rank", self.rank, ("ts_rank_cd", "ts_rank"))):
            if value not in known:
                raise InputError(f"{self.name}: {key}={value!r} is not known; write '{known[0]}' or '{known[1]}'")
        if isinstance(self.normalization, bool) or not isinstance(self.normalization, int) or not 0 <= self.normalization < 64:
            raise InputError(
                f"{self.name}: normalization={self.normalization!r} is none; write a sum of 1, 2, 4, 8, 16 and 32, or 0"
            )
        if not isinstance(self.language, str) or not self.language:
            raise InputError(
                f"{self.name}: language={self.language!r} is no text search configuration; write 'english' or 'simple'"
            )
        self._check_weights()

    def _check_weights(self) -> None:
        if not isinstance(self.weights, Mapping):
            raise InputError(f"{self.name}: weights={self.weights!r} is no table; write it like {{'title': 2, 'body': 1}}")
        legal = list(self.columns) or LETTERS
        for name, weight in self.weights.items():
            if name not in legal:
                raise InputError(
                    f"{self.name}: weights name '{name}', which is not searched; did you mean {nearest(name, legal)}?"
                )
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
                raise InputError(f"{self.name}: the weight {weight!r} of '{name}' is none; give a number of 0 or more")
        if self.columns and len(set(self._column_weights())) > len(LETTERS):
            raise InputError(f"{self.name}: the weights have more than four values; PostgreSQL tells only four apart")
        if self.weights and not any(self._classes()):
            raise InputError(f"{self.name}: all weights are 0; give at least one above 0")

    def _column_weights(self) -> list[float]:
        return [float(self.weights.get(name, 1.0)) for name in self.columns]

    def _classes(self) -> list[float]:
        """Return the weights of the classes A to D; PostgreSQL takes none above 1."""
        if self.columns:
            values = sorted(set(self._column_weights()), reverse=True)
            values += [0.0] * (len(LETTERS) - len(values))
        else:
            values = [float(self.weights.get(letter, DEFAULT_WEIGHTS[letter])) for letter in LETTERS]
        largest = max(*values, 0.0)
        return [value / largest for value in values] if largest > 1 or (self.columns and largest) else values

    @property
    def question(self) -> str:
        return "text"

    @property
    def checked(self) -> str:
        return "sql" if self.sql is not None else "table, id, chunk, columns, vector, language"

    def put(self, text: str) -> str:
        return text

    def found(self, sql: Any) -> tuple[Any, Any]:
        vector = self._vector(sql)
        weights = sql.Literal("{" + ",".join(repr(weight) for weight in reversed(self._classes())) + "}")
        score = sql.SQL("{}({}::float4[], {}, question.query, {})").format(
            _named("pg_catalog", self.rank), weights, vector, sql.Literal(self.normalization)
        )
        return score, sql.SQL("{} @@ question.query").format(vector)

    def _vector(self, sql: Any) -> Any:
        if self.vector is not None:
            return sql.SQL("document.{}").format(_named(self.vector))
        values = sorted(set(self._column_weights()), reverse=True)
        parts = [
            sql.SQL("setweight(to_tsvector({}::regconfig, coalesce(document.{}::text, '')), {})").format(
                _quoted(self.language), _named(name), sql.Literal(LETTERS[values.index(weight)])
            )
            for name, weight in zip(self.columns, self._column_weights(), strict=True)
        ]
        return sql.SQL("({})").format(sql.SQL(" || ").join(parts))

    def beside(self, sql: Any) -> Any:
        """Return the question as a tsquery, of which no part was read as an operator.

        ``websearch_to_tsquery`` and ``to_tsquery`` read operators from the question; ``plainto_tsquery`` reads none but wants
        every word. For any of the words, the question is cut into lexemes as a document is; each is quoted, and OR joins them.
        """
        if self.match == "all":
            query = "plainto_tsquery({}::regconfig, %(text)s::text)"
        else:
            quoted = r"'''' || replace(replace(word.lexeme, E'\\', E'\\\\'), '''', '''''') || ''''"
            query = f"string_agg({quoted}, ' | ')::tsquery"
            query = f"(SELECT {query} FROM unnest(to_tsvector({{}}::regconfig, %(text)s::text)) AS word)"
        return sql.SQL(f", (SELECT {query} AS query) AS question").format(_quoted(self.language))


@dataclass(frozen=True, kw_only=True)
class Pgvector(Database):
    """Nearest vectors of a pgvector column; the question becomes a vector by the model that made the column's.

    The score is the cosine, the negated distance (l2) or the inner product.
    """

    vector: str = "embedding"
    """Column of type vector or halfvec."""
    model: str = DEFAULT_MODEL
    """Encoder of the question: a name or a folder."""
    metric: str = "cosine"
    """'cosine', 'l2' or 'inner_product'."""
    exact: bool = True
    """True compares every row. False lets an index of the column answer, which may miss some."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _is_name(self.vector):
            raise InputError(f"{self.name}: vector={self.vector!r} is no name of a column; write it as in the catalogue")
        if self.metric not in METRICS:
            raise InputError(
                f"{self.name}: metric={self.metric!r} is not known; did you mean {nearest(str(self.metric), METRICS)}?"
            )
        if not isinstance(self.exact, bool):
            raise InputError(f"{self.name}: exact={self.exact!r} is neither true nor false; write one of them")
        if not self.exact and self.chunk is not None:
            raise InputError(
                f"{self.name}: exact=False cannot collapse passages; leave chunk or exact out, or give your own sql"
            )

    @property
    def question(self) -> str:
        return "vector"

    @property
    def checked(self) -> str:
        return "sql" if self.sql is not None else "table, id, chunk, vector, and that pgvector is installed there,"

    def put(self, text: str) -> str | None:
        if not text.strip():
            return None
        row = encoder(self.model).encode([text], query=True)[0]
        return "[" + ",".join(repr(float(value)) for value in row) + "]"

    def _distance(self, sql: Any) -> Any:
        # The parameter has no type of its own, so that it takes the column's: vector or halfvec.
        return sql.SQL(f"document.{{}} {METRICS[self.metric][0]} %(vector)s").format(_named(self.vector))

    def found(self, sql: Any) -> tuple[Any, Any]:
        score = sql.SQL(METRICS[self.metric][1]).format(self._distance(sql))
        return score, sql.SQL("document.{} IS NOT NULL").format(_named(self.vector))

    def ranked(self, sql: Any, rows: Any) -> Any:
        # An index answers only an order by the bare distance; by the score, every row is compared.
        if not self.exact:
            rows = sql.SQL("{} ORDER BY {} LIMIT %(k)s").format(rows, self._distance(sql))
        return super().ranked(sql, rows)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(name.strip()) and "\0" not in name


def _named(*parts: str) -> Any:
    """Return a name as it stands in a statement; a percent sign in it would pass for a placeholder."""
    from psycopg import sql

    return sql.Identifier(*(part.replace("%", "%%") for part in parts))


def _quoted(text: str) -> Any:
    from psycopg import sql

    return sql.Literal(text.replace("%", "%%"))


def _plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with numbers and ids as everybody writes them; PostgreSQL has types of its own for both."""
    plain_types: dict[type, Callable[[Any], Any]] = {Decimal: float, UUID: str}
    return {key: plain_types[type(value)](value) if type(value) in plain_types else value for key, value in row.items()}


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

    def __reduce__(self) -> tuple[type[_Idle], tuple[()]]:
        return _Idle, ()  # a copy in another process starts without connections


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
