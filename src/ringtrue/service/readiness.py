"""Whether the service can take work: known within seconds, also if the store or the writer hangs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ringtrue.errors import RingtrueError

if TYPE_CHECKING:
    from ringtrue.service.intake import Intake
    from ringtrue.store import Store

ANSWER_S = 2.0
"""Seconds that the store may take for the smallest question."""


class Readiness:
    """Asks the store and the writer of one server; without a writer, the store alone."""

    def __init__(self, store: Store, writer: Intake | None = None) -> None:
        self._store, self._writer = store, writer
        self._lock = threading.Lock()
        self._asking: _Question | None = None

    def read_problem(self) -> str | None:
        """Return why the store cannot be read; None if it can."""
        with self._lock:
            if self._asking is None or self._asking.answered.is_set():
                self._asking = _Question(self._store)
            asking = self._asking  # one that hangs is not asked again
        return asking.problem if asking.answered.wait(ANSWER_S) else "the store does not answer"

    def write_problem(self) -> str | None:
        """Return why nothing can be logged; None if it can."""
        return None if self._writer is None else self._writer.trouble


class _Question:
    """One look at the store, in a thread that may hang."""

    def __init__(self, store: Store) -> None:
        self.answered = threading.Event()
        self.problem: str | None = None
        threading.Thread(target=self._ask, args=(store,), name="ringtrue-readiness", daemon=True).start()

    def _ask(self, store: Store) -> None:
        try:
            store.schema_version()
        except RingtrueError:
            self.problem = "the store cannot be reached"
        except Exception as problem:
            self.problem = f"the store cannot be read: {type(problem).__name__}"
        finally:
            self.answered.set()
