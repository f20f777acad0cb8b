"""What an encoder is, and what it made of a text, on disk: only what is new is encoded.

One SQLite file per model; a row is keyed by a hash of the text. New texts are encoded and committed 256 at a time, so that a
killed process loses at most that many. Several processes may read and write at once; a text that two of them encode is kept
once.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ringtrue.errors import InputError
from ringtrue.retrieve.protocol import plain

Matrix = NDArray[np.float32]
STATIC = "wordllama"
"""The name of the static vectors."""
COMMIT = 256
WINDOW = 4096
"""Texts that are looked up together and lie in memory at once."""
PATIENCE = 60.0
"""Seconds to wait for another process that writes."""
_FLOAT = np.dtype("<f4")
Progress = Callable[[int], None]


class Encoder(Protocol):
    """Anything that turns texts into vectors of length 1."""

    @property
    def key(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def length(self) -> int:
        """The most tokens of a text that are read."""

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Matrix:
        """Return one row per text, in the order given; ``query`` says that the texts are questions, not passages."""


def unit_rows(values: Matrix) -> Matrix:
    """Return rows of length 1. A row of zeros, which has no direction, gets the first axis: no index then divides by zero.

    >>> unit_rows(np.array([[3, 4], [0, 0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [1.0, 0.0]]
    """
    # In double precision neither tiny nor huge values lose their length.
    lengths = np.sqrt(np.square(values, dtype=np.float64).sum(axis=1, keepdims=True))
    rows = np.asarray(values / np.where(lengths > 0, lengths, 1.0), np.float32)
    rows[lengths[:, 0] == 0, :1] = 1.0
    return rows


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
            # Values of a kilobyte stay out of the tree of keys, which keeps looking up and adding fast.
            table.execute("CREATE TABLE IF NOT EXISTS made (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
            yield table
        except sqlite3.OperationalError as problem:  # locked, full, read-only: the file itself may be whole
            raise InputError(
                f"{self.file}: cannot be written ({problem}); look for another process or a full disk"
            ) from problem
        except sqlite3.DatabaseError as problem:
            raise InputError(f"{self.file}: cannot be used ({problem}); remove it, it is made again") from problem
        finally:
            table.close()


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
