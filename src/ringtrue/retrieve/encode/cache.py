"""What an encoder made of a text, on disk: only what is new is encoded, and what was made once survives an interruption.

One SQLite file per model; a row is keyed by a hash of the text. New texts are encoded and committed 256 at a time, so that a
killed process loses at most that many. Several processes may read and write at once; a text that two of them encode is kept
once.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np

from ringtrue.errors import InputError
from ringtrue.retrieve.encode import Encoder, Matrix
from ringtrue.retrieve.protocol import plain

COMMIT = 256
WINDOW = 4096
"""Texts that are looked up together and lie in memory at once."""
PATIENCE = 60.0
"""Seconds to wait for another process that writes."""
_FLOAT = np.dtype("<f4")
Progress = Callable[[int], None]


def text_key(text: str) -> bytes:
    """Return the key of a text."""
    return hashlib.sha256(plain(text).encode()).digest()[:16]


class Cache:
    """Bytes by text, made by ``make`` where they are not there yet; ``path`` is completed by the key of the model."""

    def __init__(self, path: Path, key: str, make: Callable[[Sequence[str]], Iterable[bytes]]) -> None:
        self.file = path.with_name(f"{path.stem}-{key}.sqlite")
        self.make = make

    def stream(self, texts: Iterable[str], *, progress: Progress | None = None) -> Iterator[list[bytes]]:
        """Yield what belongs to the texts, in their order, one window of them after the other."""
        source = iter(texts)
        with self._open() as table:
            while window := list(islice(source, WINDOW)):
                keys = [text_key(text) for text in window]
                known = self._known(table, keys)
                fresh = {key: text for key, text in zip(keys, window, strict=True) if key not in known}
                if progress is not None:
                    progress(len(keys) - len(fresh))
                known |= self._made(table, fresh, progress)
                yield [known[key] for key in keys]

    def _known(self, table: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, bytes]:
        known: dict[bytes, bytes] = {}
        for start in range(0, len(keys), COMMIT):
            part = keys[start : start + COMMIT]
            marks = ",".join("?" * len(part))
            known.update(table.execute(f"SELECT key, value FROM made WHERE key IN ({marks})", part))
        return known

    def _made(self, table: sqlite3.Connection, fresh: dict[bytes, str], progress: Progress | None) -> dict[bytes, bytes]:
        made: dict[bytes, bytes] = {}
        keys = list(fresh)
        for start in range(0, len(keys), COMMIT):
            part = keys[start : start + COMMIT]
            rows = list(zip(part, self.make([fresh[key] for key in part]), strict=True))
            with table:
                table.executemany("INSERT OR IGNORE INTO made (key, value) VALUES (?, ?)", rows)
            made.update(rows)
            if progress is not None:
                progress(len(part))
        return made

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        table = sqlite3.connect(self.file, timeout=PATIENCE)
        try:
            _prepare(table)
            yield table
        except sqlite3.OperationalError as problem:  # locked, full, read-only: the file itself may be whole
            raise InputError(
                f"{self.file}: cannot be written ({problem}); look for another process or a full disk"
            ) from problem
        except sqlite3.DatabaseError as problem:
            raise InputError(f"{self.file}: cannot be used ({problem}); remove it, it is made again") from problem
        finally:
            table.close()


def _prepare(table: sqlite3.Connection) -> None:
    """Make the table where there is none."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            table.execute("PRAGMA journal_mode = WAL")
            # Values of a kilobyte stay out of the tree of keys, which keeps looking up and adding fast.
            table.execute("CREATE TABLE IF NOT EXISTS made (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
            return
        except sqlite3.OperationalError as problem:
            # Two processes that make the file at once: SQLite refuses the change of mode at once instead of waiting.
            if "locked" not in str(problem) or time.monotonic() > until:
                raise
            time.sleep(0.02)


class Vectors:
    """The vectors of passages under one encoder; a file per encoder lies beside ``file``."""

    def __init__(self, file: Path, encoder: Encoder) -> None:
        self.encoder = encoder
        self.cache = Cache(file, encoder.key, self._encode)

    def _encode(self, texts: Sequence[str]) -> Iterable[bytes]:
        return (row.tobytes() for row in self.encoder.encode(texts).astype(_FLOAT, copy=False))

    def stream(self, texts: Iterable[str], *, progress: Progress | None = None) -> Iterator[Matrix]:
        """Yield matrices of one row per text, in order, for more texts than should lie in memory."""
        for rows in self.cache.stream(texts, progress=progress):
            if any(len(row) != self.encoder.size * _FLOAT.itemsize for row in rows):
                raise InputError(f"{self.cache.file}: holds vectors of another size; remove it, it is made again")
            yield np.frombuffer(b"".join(rows), _FLOAT).reshape(len(rows), -1)

    def of(self, texts: Sequence[str], *, progress: Progress | None = None) -> Matrix:
        """Return one vector per text, encoding those that are new; ``progress`` is told how many are done."""
        found = np.empty((len(texts), self.encoder.size), np.float32)
        start = 0
        for block in self.stream(texts, progress=progress):
            found[start : start + len(block)] = block
            start += len(block)
        return found
