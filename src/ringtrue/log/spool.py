"""Where events wait on disk while the database cannot be written to: one file of JSON lines a log, synced by the batch.

Lines that cannot be read are kept beside it, for a person or a later version to look at, and counted.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ringtrue.errors import InputError
from ringtrue.log.lines import Row, line_of, row_of

DAMAGED = ".damaged"


@dataclass(frozen=True, slots=True)
class Peeked:
    """The next rows of a spool."""

    rows: list[Row]
    damaged: list[bytes]
    """Lines among them that are no rows: cut by a disk, or of a version that knows more."""
    used: int
    """How many bytes all of it takes, for ``done``."""


class Spool:
    """Appends batches and gives them back in their order; a batch is in it whole or not at all."""

    def __init__(self, path: Path, *, limit: int) -> None:
        self.path, self.limit = path, limit
        self._size = path.stat().st_size if path.exists() else 0
        self._read = 0
        self.kept: str | None = None
        """The name of the file with the lines that could not be read."""

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

    def append(self, rows: Sequence[Row]) -> list[Row]:
        """Keep a batch; return the rows that cannot be kept, since they could not be read again.

        Raises OSError where the disk or the limit has no room, with nothing of the batch left behind.
        """
        lines, refused = [], []
        for row in rows:
            try:
                line = line_of(row).encode("utf-8", "replace") + b"\n"
                row_of(json.loads(line))
                lines.append(line)
            except Exception:  # whatever a value does when it is written
                refused.append(row)
        data = b"".join(lines)
        if self._size + len(data) > self.limit:
            raise OSError(f"{self.path}: the spool has reached its limit of {self.limit:,} bytes")
        if data:
            self._write(data)
        return refused

    def _write(self, data: bytes) -> None:
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
                    if self._size:
                        os.ftruncate(file, self._size)
                    else:
                        self.path.unlink()
                raise
            self._size += len(data)
        finally:
            os.close(file)

    def peek(self, count: int, *, cut: bool = False) -> Peeked:
        """Return the next rows, at most ``count`` lines.

        ``cut`` says that the last batch was cut off by a crash before it was acknowledged: a last line without an end then is
        no damage.
        """
        rows: list[Row] = []
        damaged: list[bytes] = []
        used = 0
        with self.path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if len(rows) + len(damaged) == count:
                    break
                used += len(line)
                if line.endswith(b"\n"):
                    try:
                        rows.append(row_of(json.loads(line)))
                    except (ValueError, InputError, TypeError, AttributeError):
                        damaged.append(line)
                elif not cut:
                    damaged.append(line + b"\n")
        return Peeked(rows, damaged, used)

    def put_by(self, damaged: Sequence[bytes]) -> str:
        """Keep lines that cannot be read in a file beside the spool; return what became of them, in words."""
        what = f"{len(damaged)} lines of the spool {self.path.name} cannot be read"
        path = self.path.with_suffix(DAMAGED)
        try:
            with open(path, "ab", opener=_private) as file:
                file.writelines(damaged)
        except OSError as problem:
            return f"{what}, nor be kept: {problem}"
        self.kept = path.name
        return f"{what} and are lost; they are kept in {path}"

    def done(self, used: int) -> None:
        """Go on after these bytes; a spool that has been read to its end is removed."""
        self._read += used
        if self._read >= self._size:
            self.path.unlink(missing_ok=True)  # also an empty file: its process was killed before the first write
            self._size = self._read = 0


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
