"""How many events a process took on and what became of them, in a page of memory that a file backs.

A store to such a page costs no system call, and the page outlives its process: after a ``kill -9`` the next start reads how
many events had been accepted and how many of them were acknowledged, and can say how many were lost.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: no way to tell a dead process from a living one, so counts end with their process
    fcntl = None  # type: ignore[assignment]

FIELDS = ("accepted", "written", "spooled", "dropped", "refused", "told_dropped", "told_refused")
SIZE = mmap.PAGESIZE
_TEXT = 256
"""Where the page's text begins: the batch on its way into the database."""
ENDING, SPOOL = ".tally", ".spool"


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the events of one process."""

    accepted: int = 0
    """Taken into the queue."""
    written: int = 0
    """Committed to the database."""
    spooled: int = 0
    """Committed to the spool file, while the database could not be written to."""
    dropped: int = 0
    """Never accepted: the queue was full, or the log closed."""
    refused: int = 0
    """Could not be made into a row that a database holds, or be redacted."""
    told_dropped: int = 0
    """Of the dropped, those that the store's audit trail already tells of."""
    told_refused: int = 0

    @property
    def acknowledged(self) -> int:
        """Events that a crash can no longer take away."""
        return self.written + self.spooled

    @property
    def untold(self) -> dict[str, int]:
        """Dropped and refused events that the audit trail does not tell of yet."""
        return {"dropped": self.dropped - self.told_dropped, "refused": self.refused - self.told_refused}

    @property
    def waiting(self) -> int:
        """Accepted and neither acknowledged nor refused; what a crash now would lose."""
        return max(0, self.accepted - self.acknowledged - self.refused)


class Tally:
    """The counts of this process; with a folder also in a file that others can read while and after it lives."""

    def __init__(self, folder: Path | None) -> None:
        self.path: Path | None = None
        self._values = memoryview(bytearray(8 * len(FIELDS))).cast("Q")
        self._page: mmap.mmap | None = None
        self._file = -1
        if folder is not None and fcntl is not None:
            with contextlib.suppress(OSError):  # no room or no right: counts are then kept in memory only
                self._open(folder)

    def _open(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{os.getpid()}-{secrets.token_hex(6)}"
        new = folder / f"{name}.new"
        file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            # The page is written in full before it is mapped: a hole in a file would need room later, when there may be none.
            os.write(file, bytes(SIZE))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            page = mmap.mmap(file, SIZE)
            new.rename(new.with_suffix(ENDING))  # only now, locked, can others see it
        except OSError:
            os.close(file)
            new.unlink(missing_ok=True)
            raise
        self.path, self._file, self._page = new.with_suffix(ENDING), file, page
        self._values = memoryview(page)[: 8 * len(FIELDS)].cast("Q")

    def add(self, field: int, count: int = 1) -> None:
        """Count events; ``field`` is one of the constants below."""
        self._values[field] += count

    @property
    def counts(self) -> Counts:
        """The counts at this moment."""
        return Counts(*self._values)

    def begin(self, batch: Mapping[str, Any]) -> None:
        """Note which batch goes into the database now, so that after a crash one row tells whether all of it arrived."""
        if self._page is not None:
            text = json.dumps({**batch, "written": self._values[WRITTEN], "spooled": self._values[SPOOLED]}).encode()
            if len(text) < SIZE - _TEXT:
                self._page[_TEXT : _TEXT + len(text) + 1] = text + b"\0"

    def close(self, *, remove: bool = False) -> None:
        """Let go of the file; ``remove`` it where nothing is left to tell. A forked child leaves the file to its parent."""
        counts = self.counts
        self._values.release()
        self._values = memoryview(bytearray(8 * len(FIELDS))).cast("Q")
        for place, field in enumerate(FIELDS):
            self._values[place] = getattr(counts, field)
        if self._page is not None and self.path is not None:
            self._page.close()
            self._page = None
            if remove:
                self.path.unlink(missing_ok=True)
            os.close(self._file)


ACCEPTED, WRITTEN, SPOOLED, DROPPED, REFUSED, TOLD_DROPPED, TOLD_REFUSED = range(len(FIELDS))


def read(path: Path) -> tuple[Counts, dict[str, Any]]:
    """Return the counts in a file and the batch that was last on its way."""
    page = path.read_bytes()
    counts = Counts(*memoryview(page)[: 8 * len(FIELDS)].cast("Q"))
    text = page[_TEXT:].split(b"\0", 1)[0]
    try:
        return counts, json.loads(text) if text else {}
    except ValueError:  # killed while it was noted, so before the batch was sent
        return counts, {}


def living(folder: Path) -> tuple[list[Counts], list[Counts]]:
    """Return the counts of processes that log from this folder now, and of those that ended and are not settled yet."""
    alive: list[Counts] = []
    ended: list[Counts] = []
    for path in sorted(folder.glob(f"*{ENDING}")):
        with contextlib.suppress(OSError, ValueError, TypeError), of_the_dead(path) as dead:
            (ended if dead else alive).append(read(path)[0])
    return alive, ended


@contextlib.contextmanager
def of_the_dead(path: Path) -> Iterator[bool]:
    """Hold the tally of a process that is no more; yields False where it lives, or another process looks after it."""
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield os.fstat(file).st_nlink > 0  # somebody may have settled and removed it since it was listed
    finally:
        os.close(file)
