"""Documents on disk: the truth from which every index is derived.

One SQLite file holds documents and passages; each write belongs to a generation. An index (Tantivy, vectors …) remembers the
generation it was made from and catches up by itself, see ``kept``. SQLite's write-ahead log lets others read meanwhile; one
lock, which the system releases however a process ends, lets one process write at a time.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Self

from ringtrue.errors import CannotDecide, InputError, MissingInput, nearest
from ringtrue.ids import check_id
from ringtrue.records import Document
from ringtrue.retrieve.chunk import LIKE, Chunker, Span, chunker
from ringtrue.retrieve.protocol import Scope, plain, scope_of
from ringtrue.spec import Expression, parse

FORMAT = "1"
"""Of the SQLite file; raised when a table changes."""
BATCH = 500
PATIENCE = 30.0
"""Seconds to wait for another writer."""
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


class DocumentStore:
    """A folder with documents and the indexes over them."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.file = self.folder / "documents.sqlite"
        if not self.file.is_file():
            raise MissingInput(f"{folder}: holds no documents; run `ringtrue ingest PATH… --into {folder}` first")
        self._write_lock, self._watch_lock = threading.RLock(), threading.Lock()
        self._holding = False
        self._known_fields: tuple[int, frozenset[str]] | None = None
        found = self._facts()
        if found.get("format") != FORMAT:
            raise InputError(
                f"{folder}: was written in format {found.get('format', 'unknown')}, this version reads {FORMAT}; ingest again"
            )

    @classmethod
    def create(cls, folder: Path | str, *, chunks: str | None = None) -> Self:
        """Return the collection in a folder, made where there is none; raises InputError when it is chunked otherwise."""
        folder = Path(folder)
        expression = parse(chunks or DEFAULT_CHUNKS, like=LIKE)
        if not isinstance(expression, Expression):
            raise InputError(f"cannot chunk by '{chunks}'; write one chunker like fixed(tokens=512, overlap=50)")
        chunker(expression)  # refuses a wrong one before anything is written
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder}: is a file; name a folder for the documents")
        folder.mkdir(parents=True, exist_ok=True)
        _prepare(folder, str(expression))
        found = cls(folder)
        if chunks is not None and found.chunks != str(expression):
            raise InputError(f"{folder}: is chunked by {found.chunks}, not by {expression}; use another folder or that chunker")
        return found

    def connect(self) -> AbstractContextManager[sqlite3.Connection]:
        """Open the truth."""
        return connected(self.file)

    def _facts(self) -> dict[str, str]:
        with explained(self.file), self._watch_lock:
            return dict(self._watch.execute("SELECT name, value FROM facts").fetchall())

    @property
    def unfinished(self) -> bool:
        """True after an ingest that did not come to its end: what it would have brought is missing."""
        return "ingesting" in self._facts()

    @property
    def chunks(self) -> str:
        """The chunker every document here went through."""
        return self._facts()["chunks"]

    @cached_property
    def _watch(self) -> sqlite3.Connection:
        connection = opened(self.file, isolation_level=None, check_same_thread=False)
        weakref.finalize(self, connection.close)
        return connection

    def version(self) -> int:
        """Return a number that moves when somebody wrote; it takes microseconds, so that every search can ask."""
        with self._watch_lock:
            return int(self._watch.execute("PRAGMA data_version").fetchone()[0])

    def generations(self) -> tuple[int, int]:
        """Return the generation of the last write, and of the last that changed or removed; later ones only added."""
        facts = self._facts()
        return int(facts["generation"]), int(facts["rewritten"])

    @contextmanager
    def writing(self, *, wait: float = PATIENCE) -> Iterator[bool]:
        """Hold the lock of the folder; yields False when another thread or process still has it after ``wait`` seconds."""
        if not (self._write_lock.acquire(timeout=wait) if wait else self._write_lock.acquire(blocking=False)):
            yield False
            return
        try:
            if self._holding:
                yield True
                return
            with locked(self.folder, wait=wait) as mine:
                self._holding = mine
                try:
                    yield mine
                finally:
                    self._holding = False
        finally:
            self._write_lock.release()

    @cached_property
    def _chunk(self) -> Chunker:
        return chunker(self.chunks)

    def ingest(
        self,
        documents: Iterable[Document],
        *,
        remove_missing: bool = False,
        progress: Callable[[int], None] | None = None,
        wait: float = PATIENCE,
    ) -> Ingested:
        """Add and change documents, batch by batch; what was interrupted is taken up by calling it again.

        ``remove_missing`` removes documents that do not come. Raises InputError for what is not a usable document or an id that
        comes twice, and CannotDecide when another process is still writing after ``wait`` seconds.
        """
        if isinstance(documents, str | bytes) or not isinstance(documents, Iterable):
            raise InputError(f"{documents!r:.60} is not a list of documents; pass Document records")
        added = changed = unchanged = removed = 0
        seen: set[str] = set()
        source = iter(documents)
        with self.writing(wait=wait) as mine:
            if not mine:
                raise CannotDecide(f"{self.folder}: another process is writing; wait for it or stop it")
            with explained(self.file), self.connect() as connection:
                connection.execute("INSERT OR REPLACE INTO facts VALUES ('ingesting', 'true')")
                while batch := list(islice(source, BATCH)):
                    for document in batch:
                        check_document(document)
                        if document.doc_id in seen:
                            raise InputError(f"document '{document.doc_id}' comes twice; give each document its own id")
                        seen.add(document.doc_id)
                    new, other = self._write(connection, batch)
                    added, changed, unchanged = added + new, changed + other, unchanged + len(batch) - new - other
                    if progress is not None:
                        progress(len(batch))
                if remove_missing:
                    removed = self._remove(connection, seen)
                connection.execute("DELETE FROM facts WHERE name = 'ingesting'")
        return Ingested(added, changed, unchanged, removed)

    def _write(self, connection: sqlite3.Connection, batch: list[Document]) -> tuple[int, int]:
        marks = ",".join("?" * len(batch))
        found = connection.execute(f"SELECT id, row, hash FROM documents WHERE id IN ({marks})", [d.doc_id for d in batch])
        known = {doc_id: (row, digest) for doc_id, row, digest in found}
        fresh: list[tuple[int, Document, bytes]] = []
        # A row is never given again: an index that still has a removed document must not take another one for it.
        (last,) = connection.execute("SELECT value FROM facts WHERE name = 'row'").fetchone()
        row = int(last)
        for document in batch:
            digest = document_hash(document)
            place, before = known.get(document.doc_id, (0, b""))
            if digest != before:
                row += not place
                fresh.append((place or row, document, digest))
        if not fresh:
            return 0, 0
        # A document of a title alone still has a passage: the title stands in it.
        passages = [(row, list(self._chunk(plain(d.text))) or [Span(0, 0)]) for row, d, _ in fresh]
        spans = [(row, number, span.start, span.end) for row, found in passages for number, span in enumerate(found)]
        rewritten = [(row,) for row, document, _ in fresh if document.doc_id in known]
        with transaction(connection):
            generation = self._next(connection, rewrites=bool(rewritten))
            connection.execute("UPDATE facts SET value = ? WHERE name = 'row'", (str(row),))
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

    def _remove(self, connection: sqlite3.Connection, kept: set[str]) -> int:
        gone = [(doc_id,) for (doc_id,) in connection.execute("SELECT id FROM documents") if doc_id not in kept]
        if gone:
            with transaction(connection):
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
                # Most documents have neither; decoding nothing half a million times is worth leaving out.
                facts = json.loads(metadata) if metadata != "{}" else {}
                yield row, Document(doc_id, text, title, facts, tuple(json.loads(tags)) if tags != "[]" else ())

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

    def hashes(self) -> dict[str, bytes]:
        """Return every document's ``document_hash`` by its id."""
        with self.connect() as connection:
            return dict(connection.execute("SELECT id, hash FROM documents"))

    def content_hash(self) -> str:
        """Return a hash of all documents, whatever the order they came in."""
        digest = hashlib.sha256()
        for doc_id, of_document in sorted(self.hashes().items()):
            digest.update(doc_id.encode() + b"\0" + of_document)
        return digest.hexdigest()

    def titles(self, doc_ids: Iterable[str]) -> dict[str, str]:
        """Return the titles of those documents that are here, by id."""
        return {doc_id: title for doc_id, title, _ in self._titles_and_texts(doc_ids)}

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
        return {doc_id: f"{title}\n{text}".strip() for doc_id, title, text in self._titles_and_texts(doc_ids)}

    def _titles_and_texts(self, doc_ids: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        wanted = iter(doc_ids)
        with self.connect() as connection:
            while part := list(islice(wanted, BATCH)):
                marks = ",".join("?" * len(part))
                yield from connection.execute(f"SELECT id, title, text FROM documents WHERE id IN ({marks})", part)

    def metadata(self) -> dict[str, Mapping[str, Any]]:
        """Return every document's metadata by its id."""
        with self.connect() as connection:
            found = connection.execute("SELECT id, metadata FROM documents ORDER BY row")
            return {doc_id: json.loads(metadata) for doc_id, metadata in found}

    def check_scope(self, scope: Scope | None) -> dict[str, str]:
        """Return a scope as texts; raises InputError for one that cannot be, or a field that no document has."""
        wanted = scope_of(scope)
        if wanted:
            fields = self._fields()
            unknown = next((name for name in wanted if name not in fields), None)
            if unknown is not None and len(self):
                cure = f"did you mean {nearest(unknown, sorted(fields))}?" if fields else "ingest documents with metadata"
                raise InputError(f"no document has the metadata field '{unknown}'; {cure}")
        return wanted

    def _fields(self) -> frozenset[str]:
        version = self.version()
        known = self._known_fields
        if known is None or known[0] != version:
            with self.connect() as connection:
                found = connection.execute("SELECT DISTINCT key FROM documents, json_each(documents.metadata)")
                known = version, frozenset(name for (name,) in found)
            self._known_fields = known
        return known[1]

    def __len__(self) -> int:
        with self.connect() as connection:
            (count,) = connection.execute("SELECT count(*) FROM documents").fetchone()
        return int(count)


def document_hash(document: Document) -> bytes:
    """Return a hash of all that a document says."""
    parts = [document.title, document.text, dict(document.metadata), list(document.tags)]
    return hashlib.sha256(_json(parts).encode()).digest()


def check_document(document: Any) -> None:
    """Raise InputError, naming the document and the part, for what could not be stored or indexed later."""
    if not isinstance(document, Document):
        raise InputError(f"{document!r:.60} is not a document; pass Document(doc_id, text, title, metadata, tags)")
    name = check_id(document.doc_id, "document id")
    if plain(name) != name:
        raise InputError(f"document id {name!r} cannot be stored; use an id without NUL or surrogates")
    for part in ("title", "text"):
        value = getattr(document, part)
        if not isinstance(value, str):
            raise InputError(f"document '{name}': the {part} is {value!r:.40}, which is not text; write one, or ''")
    tags = document.tags
    if not isinstance(tags, Sequence) or isinstance(tags, str) or not all(isinstance(tag, str) for tag in tags):
        raise InputError(f"document '{name}': the tags are {tags!r:.40}; write a tuple of texts")
    try:
        if not isinstance(document.metadata, Mapping) or not all(isinstance(key, str) for key in document.metadata):
            raise TypeError("it is not a mapping with texts as names")
        _json(dict(document.metadata))
    except (TypeError, ValueError, RecursionError) as problem:
        cure = "use texts, finite numbers and lists of them"
        raise InputError(f"document '{name}': the metadata cannot be stored ({problem}); {cure}") from None


def scope_values(value: Any) -> list[str]:
    """Return the texts a metadata value is found under: itself, or each member of a list; a table has none."""
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, str | int | float):
        return [str(value)]
    if isinstance(value, list | tuple):
        return [text for member in value if not isinstance(member, list | tuple) for text in scope_values(member)]
    return []


def members(value: Any) -> Sequence[Any]:
    """Return the members of a metadata value: those of a list, the value itself, or none."""
    return value if isinstance(value, list | tuple) else [] if value in (None, "") else [value]


def inside(metadata: Mapping[str, Any], scope: Scope) -> bool:
    """Tell whether a document's metadata has every value of a scope.

    >>> inside({"city": "Bath", "year": 2024, "tags": ["spa"]}, {"city": "Bath", "tags": "spa"})
    True
    """
    return all(wanted in scope_values(metadata.get(name)) for name, wanted in scope.items())


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False)


def _prepare(folder: Path, chunks: str) -> None:
    """Make the tables where there are none yet, also where a process died before it had made them."""
    file = folder / "documents.sqlite"
    with explained(file):
        if file.is_file():
            with connected(file) as connection:
                if _has_tables(connection):
                    return
        with locked(folder, wait=PATIENCE) as mine:
            if not mine:
                raise CannotDecide(f"{folder}: another process is writing, or the folder is read-only; wait, or use another")
            with connected(file) as connection:
                if not _has_tables(connection):
                    connection.execute("PRAGMA journal_mode = WAL")
                    with transaction(connection):
                        for statement in _SCHEMA.split(";"):
                            connection.execute(statement)
                        facts = {"format": FORMAT, "chunks": chunks, "generation": "0", "rewritten": "0", "row": "0"}
                        connection.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone() is not None


def opened(file: Path, **options: Any) -> sqlite3.Connection:
    """Open an SQLite file; one that lies where nothing can be written is read as it is, without its lock files."""
    if os.access(file.parent, os.W_OK):
        connection: sqlite3.Connection = sqlite3.connect(file, timeout=PATIENCE, **options)
    else:
        address = f"{file.absolute().as_uri()}?mode=ro&immutable=1"
        connection = sqlite3.connect(address, uri=True, timeout=PATIENCE, **options)
    return connection


@contextmanager
def connected(file: Path) -> Iterator[sqlite3.Connection]:
    """Open an SQLite file for a while, each statement its own transaction unless ``transaction`` says otherwise."""
    connection = opened(file, isolation_level=None)
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        yield connection
    finally:
        connection.close()


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def explained(file: Path) -> Iterator[None]:
    """Turn what SQLite raises into our errors: a locked or read-only file is not a damaged one."""
    try:
        yield
    except sqlite3.OperationalError as problem:
        said = str(problem)
        if "locked" in said:
            raise CannotDecide(f"{file}: another process holds it; try again when it is done") from problem
        if any(word in said for word in ("readonly", "unable to open", "full", "disk I/O")):
            raise InputError(f"{file}: cannot be used ({said}); check permissions and free space") from problem
        raise InputError(f"{file}: is not a collection ({said}); remove the folder and ingest again") from problem
    except sqlite3.DatabaseError as problem:
        raise InputError(f"{file}: is not a collection ({problem}); remove the folder and ingest again") from problem


@contextmanager
def locked(folder: Path, *, wait: float) -> Iterator[bool]:
    """Hold the folder's write lock, or yield False after ``wait`` seconds; the system lets go of it however a process dies."""
    try:
        file = (folder / "write.lock").open("w")
    except OSError:  # nobody may write here
        yield False
        return
    with file:
        end = time.monotonic() + wait
        mine = False
        while not mine:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                mine = True
            except BlockingIOError:
                if time.monotonic() >= end:
                    break
                time.sleep(0.02)
        yield mine
