"""Documents on disk: the truth from which every index is derived.

One SQLite file holds documents and passages; each write belongs to a generation. An index (Tantivy, vectors …) remembers the
generation it was made from and catches up by itself, see ``kept``. SQLite's write-ahead log lets others read meanwhile; one
lock, which the system releases however a process ends, lets one process write at a time.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from ringtrue.errors import CannotDecide, InputError, MissingInput
from ringtrue.records import Document, check_id
from ringtrue.retrieve.chunk import Chunker, chunker
from ringtrue.retrieve.protocol import Retriever, Scope, plain
from ringtrue.spec import Expression, parse

FORMAT = "1"
"""Of the SQLite file; raised when a table changes."""
BATCH = 500
DEFAULT_CHUNKS = "fixed(overlap=50, tokens=512)"
_SCHEMA = """
CREATE TABLE documents (
    row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, hash BLOB NOT NULL, generation INTEGER NOT NULL,
    title TEXT NOT NULL, text TEXT NOT NULL, metadata TEXT NOT NULL, tags TEXT NOT NULL
);
CREATE TABLE passages (
    document INTEGER NOT NULL REFERENCES documents(row) ON DELETE CASCADE,
    number INTEGER NOT NULL, start INTEGER NOT NULL, "end" INTEGER NOT NULL, PRIMARY KEY (document, number)
) WITHOUT ROWID;
CREATE INDEX documents_written ON documents(generation);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
_WRITE = """
INSERT INTO documents (row, id, hash, generation, title, text, metadata, tags) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (row) DO UPDATE SET hash = excluded.hash, generation = excluded.generation, title = excluded.title,
    text = excluded.text, metadata = excluded.metadata, tags = excluded.tags
"""


@dataclass(frozen=True)
class Ingested:
    """What an ingest did, counted in documents."""

    added: int
    changed: int
    unchanged: int
    removed: int


class Collection:
    """A folder with documents and the indexes over them."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.file = self.folder / "documents.sqlite"
        if not self.file.is_file():
            raise MissingInput(f"{folder}: holds no documents; run `ringtrue ingest PATH… --into {folder}` first")
        self._write_lock, self._watch_lock = threading.RLock(), threading.Lock()
        self._holding = 0
        found = self._facts()
        if found.get("format") != FORMAT:
            raise InputError(
                f"{folder}: was written in format {found.get('format', 'unknown')}, this version reads {FORMAT}; ingest again"
            )

    @classmethod
    def create(cls, folder: Path | str, *, chunks: str | None = None) -> Collection:
        """Return the collection in a folder, made where there is none; raises InputError when it is chunked otherwise."""
        folder = Path(folder)
        expression = parse(chunks or DEFAULT_CHUNKS)
        if not isinstance(expression, Expression):
            raise InputError(f"cannot chunk by '{chunks}'; write one chunker like fixed(tokens=512, overlap=50)")
        chunker(expression)  # refuses a wrong one before anything is written
        file = folder / "documents.sqlite"
        if not file.is_file():
            if folder.exists() and not folder.is_dir():
                raise InputError(f"{folder}: is a file; name a folder for the documents")
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder), _connected(file) as connection:
                if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone():
                    connection.execute("PRAGMA journal_mode = WAL")
                    with _transaction(connection):
                        for statement in _SCHEMA.split(";"):
                            connection.execute(statement)
                        facts = {"format": FORMAT, "chunks": str(expression), "generation": "0", "rewritten": "0"}
                        connection.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
        found = cls(folder)
        if chunks is not None and found.chunks != str(expression):
            raise InputError(f"{folder}: is chunked by {found.chunks}, not by {expression}; use another folder or that chunker")
        return found

    def retriever(self, expression: str | Mapping[str, Any] = "hybrid") -> Retriever:
        """Return the retriever an expression names over these documents: ``rrf(bm25, dense) >> mmr(0.7)``."""
        from ringtrue.retrieve.expression import build

        return build(expression, self)

    @contextmanager
    def connect(self) -> Iterator[sqlite3.Connection]:
        """Open the truth."""
        with _connected(self.file) as connection:
            yield connection

    def _facts(self) -> dict[str, str]:
        try:
            with self.connect() as connection:
                return dict(connection.execute("SELECT name, value FROM facts"))
        except sqlite3.DatabaseError as problem:
            raise InputError(f"{self.file}: is no collection ({problem}); remove the folder and ingest again") from problem

    @property
    def chunks(self) -> str:
        """The chunker every document here went through."""
        return self._facts()["chunks"]

    @cached_property
    def _watch(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.file, timeout=30, isolation_level=None, check_same_thread=False)
        weakref.finalize(self, connection.close)
        return connection

    def version(self) -> int:
        """Return a number that moves when another connection wrote; costs microseconds, so that every search can ask."""
        with self._watch_lock:
            return int(self._watch.execute("PRAGMA data_version").fetchone()[0])

    def generations(self) -> tuple[int, int]:
        """Return the generation of the last write, and of the last that changed or removed; later ones only added."""
        facts = self._facts()
        return int(facts["generation"]), int(facts["rewritten"])

    @contextmanager
    def writing(self, *, wait: bool = True) -> Iterator[bool]:
        """Hold the lock of the folder; yields False when another process has it and ``wait`` is not wanted."""
        with self._write_lock:
            if self._holding:
                self._holding += 1
                try:
                    yield True
                finally:
                    self._holding -= 1
                return
            with _locked(self.folder, wait=wait) as mine:
                self._holding = int(mine)
                try:
                    yield mine
                finally:
                    self._holding = 0

    @cached_property
    def _chunk(self) -> Chunker:
        return chunker(self.chunks)

    def ingest(
        self, documents: Iterable[Document], *, remove_missing: bool = False, progress: Callable[[int], None] | None = None
    ) -> Ingested:
        """Add and change documents, batch by batch; what was interrupted is taken up by calling it again.

        ``remove_missing`` removes documents that do not come. Raises InputError when a document id comes twice, and
        CannotDecide while another process is writing.
        """
        added = changed = unchanged = removed = 0
        seen: set[str] = set()
        source = iter(documents)
        with self.writing(wait=False) as mine, self.connect() as connection:
            if not mine:
                raise CannotDecide(f"{self.folder}: another process is writing; wait for it or stop it")
            while batch := list(islice(source, BATCH)):
                for document in batch:
                    check_id(document.doc_id, "document id")
                    if plain(document.doc_id) != document.doc_id:
                        raise InputError(
                            f"document id {document.doc_id!r} cannot be stored; use an id without NUL or surrogates"
                        )
                    if document.doc_id in seen:
                        raise InputError(f"document '{document.doc_id}' comes twice; give each document its own id")
                    seen.add(document.doc_id)
                new, other = self._write(connection, batch)
                added, changed, unchanged = added + new, changed + other, unchanged + len(batch) - new - other
                if progress is not None:
                    progress(len(batch))
            if remove_missing:
                removed = self._remove(connection, seen)
        return Ingested(added, changed, unchanged, removed)

    def _write(self, connection: sqlite3.Connection, batch: list[Document]) -> tuple[int, int]:
        marks = ",".join("?" * len(batch))
        found = connection.execute(f"SELECT id, row, hash FROM documents WHERE id IN ({marks})", [d.doc_id for d in batch])
        known = {doc_id: (row, digest) for doc_id, row, digest in found}
        fresh: list[tuple[int, Document, bytes]] = []
        (row,) = connection.execute("SELECT coalesce(max(row), 0) FROM documents").fetchone()
        for document in batch:
            digest = document_hash(document)
            place, before = known.get(document.doc_id, (0, b""))
            if digest != before:
                row += not place
                fresh.append((place or row, document, digest))
        if not fresh:
            return 0, 0
        spans = [
            (row, number, span.start, span.end) for row, d, _ in fresh for number, span in enumerate(self._spans(plain(d.text)))
        ]
        rewritten = [(row,) for row, document, _ in fresh if document.doc_id in known]
        with _transaction(connection):
            generation = self._next(connection, rewrites=bool(rewritten))
            connection.executemany("DELETE FROM passages WHERE document = ?", rewritten)
            connection.executemany(
                _WRITE,
                [
                    (row, d.doc_id, digest, generation, plain(d.title), plain(d.text), _json(d.metadata), _json(list(d.tags)))
                    for row, d, digest in fresh
                ],
            )
            connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", spans)
        return len(fresh) - len(rewritten), len(rewritten)

    def _spans(self, text: str) -> Iterator[Any]:
        spans = iter(self._chunk(text))
        first = next(spans, None)
        # A document of a title alone still has a passage: the title stands in it.
        yield first if first is not None else _Empty
        yield from spans

    def _remove(self, connection: sqlite3.Connection, kept: set[str]) -> int:
        gone = [(doc_id,) for (doc_id,) in connection.execute("SELECT id FROM documents") if doc_id not in kept]
        if gone:
            with _transaction(connection):
                self._next(connection, rewrites=True)
                connection.executemany("DELETE FROM documents WHERE id = ?", gone)
        return len(gone)

    def _next(self, connection: sqlite3.Connection, *, rewrites: bool) -> int:
        (value,) = connection.execute("SELECT value FROM facts WHERE name = 'generation'").fetchone()
        generation = int(value) + 1
        connection.execute("UPDATE facts SET value = ? WHERE name = 'generation'", (str(generation),))
        if rewrites:
            connection.execute("UPDATE facts SET value = ? WHERE name = 'rewritten'", (str(generation),))
        return generation

    def documents(self, *, since: int = 0) -> Iterator[tuple[int, Document]]:
        """Yield (row, document) in the order they were first added; ``since`` skips older generations."""
        with self.connect() as connection:
            found = connection.execute(
                "SELECT row, id, title, text, metadata, tags FROM documents WHERE generation > ? ORDER BY row", (since,)
            )
            for row, doc_id, title, text, metadata, tags in found:
                yield row, Document(doc_id, text, title, json.loads(metadata), tuple(json.loads(tags)))

    def passages(self, *, since: int = 0) -> Iterator[tuple[int, str, int, str]]:
        """Yield (document row, document title, passage number, passage text), by document."""
        with self.connect() as connection:
            yield from connection.execute(
                'SELECT d.row, d.title, p.number, substr(d.text, p.start + 1, p."end" - p.start) FROM documents d '
                "JOIN passages p ON d.row = p.document WHERE d.generation > ? ORDER BY d.row, p.number",
                (since,),
            )

    def ids(self) -> dict[int, str]:
        """Return every document's id by its row."""
        with self.connect() as connection:
            return dict(connection.execute("SELECT row, id FROM documents"))

    def texts(self, doc_ids: Iterable[str]) -> list[str]:
        """Return title and text of documents, in the order asked for; raises InputError for an id that is not here."""
        wanted = list(doc_ids)
        found = self.texts_known(wanted)
        missing = next((doc_id for doc_id in wanted if doc_id not in found), None)
        if missing is not None:
            raise InputError(f"{self.folder}: there is no document '{missing}'; ingest it, or search this collection only")
        return [found[doc_id] for doc_id in wanted]

    def texts_known(self, doc_ids: Iterable[str]) -> dict[str, str]:
        """Return title and text of those documents that are here, by id."""
        wanted = list(doc_ids)
        found: dict[str, str] = {}
        with self.connect() as connection:
            for start in range(0, len(wanted), BATCH):
                part = wanted[start : start + BATCH]
                marks = ",".join("?" * len(part))
                rows = connection.execute(f"SELECT id, title, text FROM documents WHERE id IN ({marks})", part)
                found |= {doc_id: f"{title}\n{text}".strip() for doc_id, title, text in rows}
        return found

    def metadata(self) -> dict[str, Mapping[str, Any]]:
        """Return every document's metadata by its id."""
        with self.connect() as connection:
            found = connection.execute("SELECT id, metadata FROM documents ORDER BY row")
            return {doc_id: json.loads(metadata) for doc_id, metadata in found}

    def __len__(self) -> int:
        with self.connect() as connection:
            (count,) = connection.execute("SELECT count(*) FROM documents").fetchone()
        return int(count)


class _Empty:
    start = end = 0


def document_hash(document: Document) -> bytes:
    """Return a hash of all that a document says."""
    parts = [document.title, document.text, _json(document.metadata), _json(list(document.tags))]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()


def scope_values(value: Any) -> list[str]:
    """Return the texts a metadata value is found under: itself, or each member of a list; a table has none."""
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, str | int | float):
        return [str(value)]
    if isinstance(value, list | tuple):
        return [text for member in value if not isinstance(member, list | tuple) for text in scope_values(member)]
    return []


def inside(metadata: Mapping[str, Any], scope: Scope) -> bool:
    """Tell whether a document's metadata has every value of a scope.

    >>> inside({"city": "Bath", "year": 2024, "tags": ["spa"]}, {"city": "Bath", "tags": "spa"})
    True
    """
    return all(scope_values(wanted)[0] in scope_values(metadata.get(name)) for name, wanted in scope.items())


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)


@contextmanager
def _connected(file: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(file, timeout=30, isolation_level=None)
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        yield connection
    finally:
        connection.close()


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def _locked(folder: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the folder's write lock; the system lets go of it when a process dies, however it dies."""
    with (folder / "write.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
