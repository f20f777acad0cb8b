"""SQLite's write-ahead log: brought to the disk, and kept from growing while somebody always reads.

SQLite moves the log into the file by itself, every thousand pages, and begins it anew once no reader needs it. If readers
overlap, that moment never comes; a checkpoint that waits for them makes it come.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from contextlib import closing
from pathlib import Path

WAL_BYTES = 16 * 1024 * 1024
"""Size of the log from which on readers are waited for."""
PATIENCE_S = 0.05
"""How long they are waited for; it is tried again the next time."""
_SYNC = getattr(os, "fdatasync", os.fsync)


def sync(file: Path) -> None:
    """Bring the log of a store's file to the disk, and shorten one that is too long; raises OSError if the disk fails."""
    try:
        descriptor = os.open(file.with_name(file.name + "-wal"), os.O_RDWR)
    except FileNotFoundError:  # nothing was written yet
        return
    try:
        _SYNC(descriptor)
        size = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    if size > WAL_BYTES:
        # Whatever is wrong with the file, those who write to it are told.
        with contextlib.suppress(sqlite3.Error), closing(sqlite3.connect(file, timeout=PATIENCE_S)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
