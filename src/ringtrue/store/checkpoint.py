"""SQLite's log of commits goes into the file in a thread of its own, so that no commit waits for the disk (W-3).

SQLite does that within a commit, every thousand pages, and then waits until the disk has everything: a few milliseconds as a
rule, a tenth of a second now and then. What is committed survives the death of the process either way, and that of the machine
after a second.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

EVERY_S = 20
"""Seconds between two checkpoints, unless the log grows large first: a page that is written again and again is moved once."""
WAL_BYTES = 128 * 1024 * 1024
"""Size of the log from which on a checkpoint is due; from twice that, commits make checkpoints themselves."""
PAGE_BYTES = 4096
FLUSHED_S = 1.0
"""So often what is in the log goes to the disk, in small parts; a checkpoint would have to wait for all of it at once."""
ROUNDS = 4
"""Each moves what came while the one before waited for the disk; what is left for the last moment is next to nothing."""
_LOG = logging.getLogger("ringtrue.store")
_SYNC = getattr(os, "fdatasync", os.fsync)
IN_NO_HURRY = 10
PATIENCE_S = 0.05
"""How long those who read may keep the log from beginning anew; it is tried again the next time."""


@contextmanager
def checkpoints_beside(engine: Engine, file: Path) -> Iterator[None]:
    """Let the connections of an engine leave checkpoints to a thread until the end."""
    ended = threading.Event()
    thread = threading.Thread(target=_work, args=(file, ended), name="ringtrue-checkpoints", daemon=True)
    with checkpoints_elsewhere(engine):
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@contextmanager
def checkpoints_elsewhere(engine: Engine) -> Iterator[None]:
    """Let the connections of an engine make no checkpoints until the end, unless the log has become too large."""
    event.listen(engine, "connect", _only_if_large)
    engine.dispose()  # those that are open already would go on as before
    try:
        yield
    finally:
        event.remove(engine, "connect", _only_if_large)
        engine.dispose()


def _only_if_large(connection: Any, _: Any) -> None:
    connection.execute(f"PRAGMA wal_autocheckpoint = {2 * WAL_BYTES // PAGE_BYTES}")


def _work(file: Path, ended: threading.Event) -> None:
    since = time.monotonic()
    while not ended.wait(FLUSHED_S):
        _flush(file.resolve())
        if time.monotonic() - since < EVERY_S and _log_bytes(file) <= WAL_BYTES:
            continue
        since = time.monotonic()
        moving = threading.Thread(target=_move, args=(file,), name="ringtrue-moving", daemon=True)
        moving.start()
        moving.join()
        # Without this the log would grow for as long as somebody writes, and never shrink: for a moment nobody may write.
        _checkpoint(file, "TRUNCATE")


def _log_bytes(file: Path) -> int:
    try:
        return file.with_name(file.name + "-wal").stat().st_size
    except OSError:
        return 0


def _flush(file: Path) -> None:
    """Bring the log to the disk, as far as it is written."""
    try:
        descriptor = os.open(file.with_name(file.name + "-wal"), os.O_RDWR)
        try:
            _SYNC(descriptor)
        finally:
            os.close(descriptor)
    except FileNotFoundError:  # nothing was written yet
        pass
    except OSError as problem:
        _LOG.error("the log of store %s does not reach the disk: %s", file, problem.strerror)


def _move(file: Path) -> None:
    """Move what is there, then what came meanwhile, while others write, and rather later than in their way."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), IN_NO_HURRY)  # of this thread alone, on Linux
    for _ in range(ROUNDS):
        _checkpoint(file, "PASSIVE")


def _checkpoint(file: Path, mode: str) -> None:
    """Whatever is wrong with the file, those who write to it are told; here it is tried again the next time."""
    with contextlib.suppress(sqlite3.Error), closing(sqlite3.connect(file, timeout=PATIENCE_S)) as connection:
        connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
