"""An SQLite file with an FTS5 table that somebody else fills. It is opened for each question anew, and only to be read unless
documents are planted in it."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple
from urllib.parse import quote

from ringtrue.errors import AccessDenied, BadAnswer, InputError, MissingInput, SearchFailed, TimedOut, Unreachable, nearest
from ringtrue.retrieve.connectors.settings import Number, Text
from ringtrue.retrieve.connectors.writing import Mark, Planted, RecordConnector, one_each
from ringtrue.retrieve.protocol import Scope, plain

MAX_WORDS = 256
"""Different words of a question that are searched; a thousand take most of a second on 20,000 documents."""
MOST = 2**63 - 1
"""The largest number that SQLite holds."""
_FTS5 = re.compile(r"\busing\s+[\"'\[`]?fts5\b", re.IGNORECASE)
_CONTENT = re.compile(r"\bcontent\s*=", re.IGNORECASE)
_STEPS = 2000
"""Steps of SQLite between two looks at the clock."""

FAILURES: Sequence[tuple[tuple[int, ...], type[SearchFailed], str]] = (
    (
        (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
        TimedOut,
        ": {file} stayed locked for {timeout:g} s; raise timeout=, or end who writes to it",
    ),
    ((sqlite3.SQLITE_INTERRUPT,), TimedOut, " did not answer within {timeout:g} s; raise timeout=, or ask shorter questions"),
    (
        (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY),
        Unreachable,
        ": {file} cannot be opened or read ({why}); check the file and its folder",
    ),
    ((sqlite3.SQLITE_AUTH, sqlite3.SQLITE_PERM), AccessDenied, ": {file} may not be read ({why}); check its permissions"),
    ((sqlite3.SQLITE_NOTADB,), BadAnswer, ": {file} is not an SQLite file, or an encrypted one; name a plain SQLite file"),
)
"""SQLite's codes → the error and its message."""
FAILED = BadAnswer, ": SQLite says '{why:.120}'; check {file} with PRAGMA integrity_check"


@dataclass(frozen=True, kw_only=True)
class Sqlite(RecordConnector):
    """A full-text table of an SQLite file, ranked by its BM25."""

    PATHS: ClassVar[tuple[str, ...]] = ("file",)
    ASKS_BLANK: ClassVar[bool] = True

    file: Text | Path
    """The SQLite file."""
    table: Text
    """The FTS5 table."""
    id: Text = "id"
    """Column that holds the document id; 'rowid' for the number of the row."""
    columns: Sequence[str] = ()
    """Columns to search; all indexed ones when empty."""
    weights: Mapping[str, Number] | None = None
    """How much a column counts, ``{title = 5}``; 1 for those not named."""
    chunk: str | None = None
    """Column that names the passage, where a document has several rows."""
    content: str | None = None
    """Table that holds id, chunk and scope columns, where the FTS5 table does not; joined by rowid."""
    match: Literal["any", "all"] = "any"
    """'any' finds rows with at least one word of the question, 'all' only those with every word."""

    def ask(self, text: str, *, k: int, scope: Scope | None) -> Iterable[Any]:
        """Return the best rows, with minus SQLite's bm25 as score; a question without words finds nothing."""
        words = self._words(text)
        with self._reading() as database:
            statement, values = self._statement(self._tables(database), words, k, scope)
            return _first(database.execute(statement, values), k) if words else []

    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        with self._reading() as database:
            tables, wanted = self._tables(database), self.marking()
            self._check_columns("plant", wanted, tables.held, tables.holder)
            rows = self._stored(database, tables, ids, wanted)
            return one_each((row[0], self.mark_of(dict(zip(wanted, row[2:], strict=True)))) for row in rows)

    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        with self._writing() as (database, tables, beside):
            for document in documents:
                self._delete(database, tables, beside, [document.id], document.tenant)
                row = self.record(document, self.id, self.chunk, scalars=True)
                made = _insert(database, tables.holder, {name: row[name] for name in row if name in tables.held})
                if beside:
                    words = {name: row[name] for name in row if name in tables.columns}
                    _insert(database, tables.table, {"rowid": made, **words})

    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        with self._writing() as (database, tables, beside):
            self._delete(database, tables, beside, ids, tenant)

    def _stored(
        self, database: sqlite3.Connection, tables: _Tables, ids: Sequence[str], names: Sequence[str]
    ) -> Iterable[tuple[Any, ...]]:
        """Return (id, rowid, further columns) of the rows with these ids."""
        columns = "".join(f", {_quoted(name)}" for name in names)
        statement = (
            f"SELECT CAST({_quoted(self.id)} AS TEXT), rowid{columns} FROM {_quoted(tables.holder)} "
            f"WHERE CAST({_quoted(self.id)} AS TEXT) IN ({', '.join('?' * len(ids))})"
        )
        return database.execute(statement, list(ids)).fetchall()

    def _delete(
        self, database: sqlite3.Connection, tables: _Tables, beside: bool, ids: Sequence[str], tenant: str | None
    ) -> None:
        """Delete the rows of these ids that bear our marks."""
        names = self.marking()
        for row in self._stored(database, tables, ids, names):
            if self.mark_of(dict(zip(names, row[2:], strict=True))).proves(row[0], tenant):
                for table in [tables.holder, tables.table] if beside else [tables.holder]:
                    database.execute(f"DELETE FROM {_quoted(table)} WHERE rowid = ?", [row[1]])

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        end = time.monotonic() + self.timeout
        try:
            with closing(self._open()) as database:
                database.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
                yield database
        except sqlite3.Error as problem:
            raise self._failed(problem) from problem

    @contextmanager
    def _writing(self) -> Iterator[tuple[sqlite3.Connection, _Tables, bool]]:
        """Open the file to be written in one transaction: what fails leaves nothing behind.

        Yields the connection, the tables, and whether the FTS5 table must be written beside the holder.
        """
        try:
            with closing(self._open(mode="rw")) as database:
                database.execute("BEGIN IMMEDIATE")
                try:
                    tables = self._tables(database)
                    yield database, tables, self._beside(database, tables)
                except BaseException:
                    database.rollback()
                    raise
                database.execute("COMMIT")
        except sqlite3.IntegrityError as problem:
            raise InputError(
                f"{self.name}: SQLite refuses what plant makes ('{problem}'); fill what the table asks for"
            ) from problem
        except sqlite3.Error as problem:
            raise self._failed(problem) from problem

    def _beside(self, database: sqlite3.Connection, tables: _Tables) -> bool:
        """Return whether no trigger fills the FTS5 table; raises InputError if what is written would not be found."""
        if self.id.lower() == "rowid":
            raise InputError(f"{self.name}: ids of planted documents are texts, and id = 'rowid' holds numbers; name a column")
        (made,) = database.execute("SELECT sql FROM sqlite_master WHERE name = ?", [tables.table]).fetchone()
        elsewhere = bool(_CONTENT.search(made))
        if self.content is None and elsewhere:
            raise InputError(
                f"{self.name}: the rows of '{tables.table}' lie in another table; name that with content= to write"
            )
        triggers = database.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", [tables.holder])
        fed = any(tables.table.lower() in (sql or "").lower() for (sql,) in triggers)
        if elsewhere and not fed:
            raise InputError(
                f"{self.name}: no trigger of '{tables.holder}' keeps '{tables.table}' up to date, so nothing written would be "
                "found; make the triggers that SQLite's page on FTS5 shows"
            )
        beside = self.content is not None and not fed
        known = [*tables.held, *(tables.columns if beside else ())]
        self._check_columns("plant", self.plant or (), known, tables.holder)
        return beside

    def _open(self, mode: str = "ro") -> sqlite3.Connection:
        path = Path(self.file)
        # It is not opened: closing it would release the locks that a user's own connection in this process holds.
        if path.is_dir():
            raise MissingInput(f"{self.name}: {path} is a folder; name the SQLite file in it")
        if not path.exists():
            raise MissingInput(f"{self.name}: there is no file {path}; check file=")
        if not os.access(path, os.R_OK):
            raise AccessDenied(f"{self.name}: {path} may not be read; check its permissions")
        # Never immutable=1: another program may be writing, and SQLite must see its locks.
        address = f"file:{quote(str(path.resolve()))}?mode={mode}"
        return sqlite3.connect(address, uri=True, timeout=self.timeout, isolation_level=None)

    def _words(self, text: str) -> str:
        """Return the question as words in quotes: nothing in it is an operator; the table's tokenizer splits further."""
        words = list(dict.fromkeys(text.split()))
        if self.match == "all":  # a word without a letter has no token, and no row has that
            words = [word for word in words if any(sign.isalnum() for sign in word)]
        quoted = ('"' + word.replace('"', '""') + '"' for word in words[:MAX_WORDS])
        return (" OR " if self.match == "any" else " AND ").join(quoted)

    def _statement(self, tables: _Tables, words: str, k: int, scope: Scope | None) -> tuple[str, list[Any]]:
        table, columns, holder, held = tables
        self._check_columns("columns", self.columns, columns, table)
        self._check_columns("weights", self.weights or (), columns, table)
        if self.chunk and self.chunk.lower() != "rowid":
            self._check_columns("chunk", [self.chunk], held, holder)
        for column in scope or ():
            if column not in held:
                raise InputError(f"{self.name} cannot be searched within '{column}'; {_these(held, holder)}")
        at, fts = _quoted(holder), _quoted(table)
        doc_id, chunk = f"{at}.{_quoted(self.id)}", f"{at}.{_quoted(self.chunk)}" if self.chunk else "NULL"
        weights = [float((self.weights or {}).get(column, 1.0)) for column in columns]
        conditions = "".join(f" AND CAST({at}.{_quoted(column)} AS TEXT) = ?" for column in scope or ())
        # Where several rows may be one document, k rows may be too few.
        limit = min(k, MOST) if not self.chunk and self.duplicates == "error" else -1
        statement = (
            f"SELECT {doc_id}, {chunk}, -bm25({fts}.{fts}, {', '.join('?' * len(weights))}) "
            f"FROM {fts}{f' JOIN {at} ON {at}.rowid = {fts}.rowid' if self.content else ''} "
            f"WHERE {fts}.{fts} MATCH ?{conditions} ORDER BY 3 DESC, CAST({doc_id} AS TEXT) DESC LIMIT ?"
        )
        within = f"{{{' '.join(map(_quoted, self.columns))}}} : ({words})" if self.columns else words
        return statement, [*weights, within, *(plain(str(value)) for value in (scope or {}).values()), limit]

    def _tables(self, database: sqlite3.Connection) -> _Tables:
        """Return the tables that the settings name; raises InputError naming those there are."""
        listed = database.execute("SELECT name, sql, type FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
        known = [name for name, sql, _ in listed if _FTS5.search(sql or "")]
        table = next((name for name in known if name.lower() == self.table.lower()), None)
        if table is None:
            there = any(name.lower() == self.table.lower() for name, _, _ in listed)
            problem = (
                f"the table '{self.table}' of {self.file} is no FTS5 table"
                if there
                else f"{self.file} has no table '{self.table}'"
            )
            cure = f"its FTS5 tables: {', '.join(map(repr, known))}" if known else "it has no FTS5 table at all, make one first"
            raise InputError(f"{self.name}: {problem}; {cure}")
        holder = table
        if self.content is not None:
            names = [name for name, _, kind in listed if kind == "table"]
            holder = next((name for name in names if name.lower() == self.content.lower()), "")
            if not holder:
                raise InputError(
                    f"{self.name}: {self.file} has no table '{self.content}'; did you mean {nearest(self.content, names)}?"
                )
        columns, held = (
            [row[1] for row in database.execute(f"PRAGMA table_info({_quoted(name)})")] for name in (table, holder)
        )
        if self.id.lower() != "rowid":
            self._check_columns("id", [self.id], held, holder)
        return _Tables(table, columns, holder, held)

    def _check_columns(self, setting: str, wanted: Iterable[str], known: Sequence[str], table: str) -> None:
        # SQLite takes an unknown name in double quotes for a text, so it would not complain by itself.
        for column in wanted:
            if column not in known:
                raise InputError(f"{self.name}: {setting} names the column '{column}'; {_these(known, table)}")

    def _failed(self, problem: sqlite3.Error) -> SearchFailed:
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        kind, message = next(((kind, message) for codes, kind, message in FAILURES if code in codes), FAILED)
        facts = {"file": self.file, "timeout": self.timeout, "why": f"{problem}".replace("\n", " ")}
        return kind(f"{self.name}{message.format(**facts)}")


class _Tables(NamedTuple):
    """The FTS5 table, and the table that holds id, chunk and scope: another one with content=, else the same."""

    table: str
    columns: list[str]
    holder: str
    held: list[str]
    """The columns of the holder."""


def _insert(database: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    names, marks = ", ".join(map(_quoted, row)), ", ".join("?" * len(row))
    made = database.execute(f"INSERT INTO {_quoted(table)} ({names}) VALUES ({marks})", list(row.values()))
    return int(made.lastrowid or 0)


def _first(found: Iterable[tuple[Any, Any, float]], k: int) -> list[dict[str, Any]]:
    """Return rows until they name ``k`` documents; the rest need not even be read."""
    rows: list[dict[str, Any]] = []
    documents: set[Any] = set()
    for doc_id, chunk, score in found:
        rows.append({"doc_id": doc_id, "chunk": chunk, "score": score})
        documents.add(doc_id)
        if len(documents) == k:
            break
    return rows


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _these(columns: Sequence[str], table: str) -> str:
    return f"'{table}' has the columns {', '.join(map(repr, columns)) or 'none'}"
