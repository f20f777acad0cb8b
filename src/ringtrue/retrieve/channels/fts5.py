"""BM25 on the SQLite that comes with Python: no package to install, title and tags in columns with their own weights."""

from __future__ import annotations

import re
import sqlite3
import threading
import weakref
from contextlib import closing
from pathlib import Path

from ringtrue.errors import InputError
from ringtrue.records import Hit
from ringtrue.retrieve.collection import Collection, inside
from ringtrue.retrieve.kept import Followed, Kept, Progress
from ringtrue.retrieve.protocol import Scope, check_k, from_channel, plain, ranked

MAX_WORDS = 256
_WORD = re.compile(r"[^\W_]+")


class Fts5(Kept):
    """An FTS5 table beside the collection."""

    def __init__(
        self, collection: Collection, *, title: float = 5.0, tags: float = 3.0, body: float = 1.0, name: str = "fts5"
    ) -> None:
        for option, weight in (("title", title), ("tags", tags), ("body", body)):
            if not 0 <= weight <= 100:
                raise InputError(f"fts5 cannot have {option}={weight!r}; use a weight from 0 to 100")
        super().__init__(collection, "fts5")
        self.weights, self.name = (float(title), float(tags), float(body)), name
        self._asking = threading.Lock()
        self._metadata = Followed(collection, collection.metadata)

    def holds(self, place: Path, count: int) -> bool:
        try:
            with closing(sqlite3.connect(place / "fts5.sqlite")) as table:
                return bool(table.execute("SELECT count(*) FROM words_docsize").fetchone()[0] == count)
        except sqlite3.DatabaseError:
            return False

    def fill(self, place: Path, *, since: int, before: int, progress: Progress | None) -> int:
        table = sqlite3.connect(place / "fts5.sqlite", timeout=30)
        try:
            table.execute("PRAGMA journal_mode = WAL")
            columns = "title, tags, body, content='', tokenize='porter unicode61'"
            table.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5({columns})")
            count = before
            with table:
                for row, document in self.collection.documents(since=since):
                    texts = (document.title, " ".join(document.tags), document.text)
                    table.execute("INSERT INTO words (rowid, title, tags, body) VALUES (?, ?, ?, ?)", (row, *map(plain, texts)))
                    count += 1
                    if progress is not None:
                        progress(1)
        finally:
            table.close()
        return count

    def load(self, place: Path, count: int) -> None:
        file = place / "fts5.sqlite"
        if not file.is_file():
            raise FileNotFoundError(file)
        self.table = sqlite3.connect(file, timeout=30, check_same_thread=False)
        weakref.finalize(self, self.table.close)

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        check_k(k)
        self.ready()
        # Only letters and digits reach the query language, each word quoted: nothing typed can be an operator.
        words = list(dict.fromkeys(_WORD.findall(plain(text).casefold())))[:MAX_WORDS]
        if not words or not self.ids:
            return []
        wanted = " OR ".join(f'"{word}"' for word in words)
        with self._asking:
            found = self.table.execute(
                "SELECT rowid, -bm25(words, ?, ?, ?) FROM words WHERE words MATCH ?", (*self.weights, wanted)
            ).fetchall()
        documents = ((self.ids[row], score) for row, score in found if row in self.ids)
        if scope:
            metadata = self._metadata()
            documents = ((doc_id, score) for doc_id, score in documents if inside(metadata[doc_id], scope))
        return from_channel(self.name, ranked(documents, k=k))
