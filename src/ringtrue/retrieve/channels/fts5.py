"""BM25 on the SQLite that comes with Python: no package to install, title and tags in columns with their own weights."""

from __future__ import annotations

import re
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from ringtrue.errors import InputError
from ringtrue.records import Hit
from ringtrue.retrieve.documents import DocumentStore, inside, opened
from ringtrue.retrieve.index import Progress, StoredIndex
from ringtrue.retrieve.protocol import Scope, check_k, finite_number, from_channel, plain, ranked

MAX_WORDS = 256
_WORD = re.compile(r"[^\W_]+")


class LoadedTable:
    """A loaded index: the open table, and the documents by their rows."""

    def __init__(self, file: Path, count: int, ids: Mapping[int, str]) -> None:
        self.ids = ids
        self.connection = opened(file, check_same_thread=False)
        weakref.finalize(self, self.connection.close)
        self._asking = threading.Lock()
        # This first reading opens the log files, which stay open when the folder is replaced.
        (held,) = self.connection.execute("SELECT count(*) FROM words_docsize").fetchone()
        self.connection.execute("SELECT rowid FROM words WHERE words MATCH 'a'").fetchone()
        if held != count:
            raise ValueError(f"{held} documents instead of {count}")

    def found(self, wanted: str, weights: tuple[float, ...]) -> list[tuple[str, float]]:
        """Return every document that has one of the words."""
        statement = "SELECT rowid, -bm25(words, ?, ?, ?) FROM words WHERE words MATCH ?"
        with self._asking:
            rows = self.connection.execute(statement, (*weights, wanted)).fetchall()
        return [(self.ids[row], score) for row, score in rows if row in self.ids]


class Fts5(StoredIndex[LoadedTable]):
    """An FTS5 table beside the collection."""

    def __init__(
        self, collection: DocumentStore, *, title: float = 5.0, tags: float = 3.0, body: float = 1.0, name: str = "fts5"
    ) -> None:
        given = (("title", title), ("tags", tags), ("body", body))
        self.weights = tuple(finite_number("fts5", option, weight, low=0, high=100) for option, weight in given)
        if not title and not tags and not body:
            raise InputError("fts5 cannot have title=0, tags=0 and body=0; leave one of them above 0")
        super().__init__(collection, "fts5")
        self.name = name

    def holds(self, place: Path, count: int) -> bool:
        try:
            with closing(sqlite3.connect(place / "fts5.sqlite")) as table:
                return bool(table.execute("SELECT count(*) FROM words_docsize").fetchone()[0] == count)
        except sqlite3.DatabaseError:
            return False

    def fill(self, place: Path, *, since: int, before: int, progress: Progress | None) -> int:
        table = sqlite3.connect(place / "fts5.sqlite", timeout=30)
        count = before

        def rows() -> Iterator[tuple[int, str, str, str]]:
            nonlocal count
            for row, document in self.collection.documents(since=since):
                count += 1
                if progress is not None:
                    progress(1)
                yield row, plain(document.title), plain(" ".join(document.tags)), plain(document.text)

        try:
            if not before:  # nobody reads it yet, and a torn one is thrown away
                table.execute("PRAGMA journal_mode = OFF")
                table.execute("PRAGMA synchronous = OFF")
            columns = "title, tags, body, content='', tokenize='porter unicode61'"
            table.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5({columns})")
            with table:
                table.executemany("INSERT INTO words (rowid, title, tags, body) VALUES (?, ?, ?, ?)", rows())
            table.execute("PRAGMA journal_mode = WAL")  # from now on it is read while it grows
        finally:
            table.close()
        return count

    def load(self, place: Path, count: int, ids: Mapping[int, str]) -> LoadedTable:
        file = place / "fts5.sqlite"
        if not file.is_file():
            raise FileNotFoundError(file)
        return LoadedTable(file, count, ids)

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        check_k(k)
        table = self.ready()
        wanted = self.collection.check_scope(scope)
        # Only letters and digits reach the query language, each word quoted: nothing typed can be an operator.
        words = list(dict.fromkeys(_WORD.findall(plain(text).casefold())))[:MAX_WORDS]
        if not words or not table.ids:
            return []
        found = table.found(" OR ".join(f'"{word}"' for word in words), self.weights)
        if wanted:
            metadata = self.metadata()
            found = [(doc_id, score) for doc_id, score in found if inside(metadata.get(doc_id, {}), wanted)]
        return from_channel(self.name, ranked(found, k=k))
