"""SQLite's log of commits goes into the file in a thread of its own, so that no commit waits for the disk (W-3).

SQLite does that within a commit, every thousand pages, and then waits until the disk has everything: a few milliseconds as a
rule, a tenth of a second now and then. What is committed survives the death of the process either way.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

EVERY_S = 1.0
TRIES = 4
"""How often in a row the rest is moved that was committed meanwhile; once nothing is left, the log begins anew."""


@contextmanager
def checkpoints_beside(engine: Engine, file: Path) -> Iterator[None]:
    """Let the connections of an engine leave checkpoints to a thread until the end."""
    event.listen(engine, "connect", _never)
    engine.dispose()  # those that are open already would go on as before
    ended = threading.Event()
    thread = threading.Thread(target=_work, args=(file, ended), name="ringtrue-checkpoints", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        event.remove(engine, "connect", _never)
        engine.dispose()


def _never(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA wal_autocheckpoint = 0")


def _work(file: Path, ended: threading.Event) -> None:
    while not ended.wait(EVERY_S):
        # Whatever is wrong with the file, those who write to it are told; here it is tried again.
        with contextlib.suppress(sqlite3.Error), closing(sqlite3.connect(file, timeout=0.0)) as connection:
            for _ in range(TRIES):
                _, pages, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                if moved >= pages:
                    break
