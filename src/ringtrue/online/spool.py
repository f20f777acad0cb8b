"""Where events wait on disk while the database cannot be written to: one file of JSON lines a process, synced by the batch."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from ringtrue.errors import InputError
from ringtrue.online.lines import Row, line_of, row_of


class Spool:
    """Appends batches and gives them back in their order; a batch is in it whole or not at all."""

    def __init__(self, path: Path, *, limit: int) -> None:
        self.path, self.limit = path, limit
        self._size = path.stat().st_size if path.exists() else 0
        self._read = 0

    def __bool__(self) -> bool:
        return self._read < self._size

    @property
    def size(self) -> int:
        """Bytes that the file has."""
        return self._size

    def rows_from(self, place: int) -> int:
        """Return how many whole rows lie beyond so many bytes."""
        if place >= self._size:
            return 0
        with self.path.open("rb") as file:
            file.seek(place)
            return sum(line.endswith(b"\n") for line in file)

    def append(self, rows: Sequence[Row]) -> None:
        """Keep a batch; raises OSError where the disk or the limit has no room, with nothing of the batch left behind."""
        data = "".join(line_of(row) + "\n" for row in rows).encode("utf-8", "replace")
        if self._size + len(data) > self.limit:
            raise OSError(f"{self.path}: the spool has reached its limit of {self.limit:,} bytes")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(file, view) :]
                os.fsync(file)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(file, self._size)
                raise
            self._size += len(data)
        finally:
            os.close(file)

    def peek(self, count: int) -> tuple[list[Row], int]:
        """Return the next rows, at most ``count``, and how many bytes they take, for ``done``.

        A line without an end was cut off by a crash before it was acknowledged, and a line that is no row by a disk; both are
        left out.
        """
        rows: list[Row] = []
        used = 0
        with self.path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if len(rows) == count:
                    break
                used += len(line)
                if line.endswith(b"\n"):
                    with contextlib.suppress(ValueError, InputError, TypeError):
                        rows.append(row_of(json.loads(line)))
        return rows, used

    def done(self, used: int) -> None:
        """Go on after these bytes; a spool that is all read is emptied."""
        self._read += used
        if self._read >= self._size:
            self.path.unlink(missing_ok=True)
            self._size = self._read = 0
