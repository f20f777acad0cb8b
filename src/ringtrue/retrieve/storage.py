"""SQLite files and the lock of a folder, with errors in our words. Knows nothing of documents."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ringtrue.errors import CannotDecide, InputError

PATIENCE = 30.0
"""Seconds to wait for another writer."""


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
