"""A bounded queue and the one thread that empties it, a batch at a time.

The SDK, the service and the client write through it: whoever has something to write only adds it, and what has gathered while
one batch was written is the next one. So batches grow with the load, and something that comes alone is written at once.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class BatchQueue(Generic[Item]):
    """Hands what was put into it to ``write``, in its order, from a thread of its own. ``write`` must not raise.

    An item counts as ``rows`` rows and ``size`` bytes until the batch that it belongs to is written. ``every`` is the time from
    the beginning of one batch to that of the next, unless a full one waits: a transaction costs as much as several rows.
    ``idle`` is called when nothing waits; it returns after how many seconds it wants to be called again, or None.
    ``written`` gets a batch once it does not count any more.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[list[Item]], None],
        *,
        most_rows: int,
        most_bytes: int,
        batch: int,
        every: float,
        idle: Callable[[], float | None] = lambda: None,
        written: Callable[[list[Item]], None] = lambda batch: None,
    ) -> None:
        self._name, self._write, self._idle, self._written = name, write, idle, written
        self._most_rows, self._most_bytes, self._batch, self._every = most_rows, most_bytes, batch, every
        self.reset()

    def reset(self) -> None:
        """Begin with nothing, as a forked child must: what is in the queue belongs to its parent."""
        self._items: deque[tuple[Item, int, int]] = deque()
        self._lock = threading.Lock()
        self._progress = threading.Condition(threading.Lock())
        self._wake, self._hurry, self._closing = threading.Event(), threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        # Each pair is changed by one side only, so that reading takes no lock: added by callers, done by the thread.
        self._added = self._added_rows = self._added_bytes = 0
        self._done = self._done_rows = self._done_bytes = 0
        self._last = float("-inf")
        self._writing_since: float | None = None

    def put(self, item: Item, *, size: int, rows: int = 1) -> bool:
        """Add an item; False if the queue has no room for it or is closed."""
        with self._lock:
            if self.closed or self.rows + rows > self._most_rows or self.bytes + size > self._most_bytes:
                return False
            self._added += 1
            self._added_rows += rows
            self._added_bytes += size
            self._items.append((item, rows, size))
        if not self._wake.is_set():
            self._wake.set()
        return True

    def start(self) -> None:
        """Begin to write; what was added before waits until then. A second call changes nothing."""
        with self._lock:
            if self._thread is not None or self.closed:
                return
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            with contextlib.suppress(RuntimeError):  # the interpreter is ending and starts no threads; close() writes
                thread.start()
                self._thread = thread

    @property
    def rows(self) -> int:
        """Rows that wait or are being written."""
        return self._added_rows - self._done_rows

    @property
    def bytes(self) -> int:
        """Bytes that wait or are being written."""
        return self._added_bytes - self._done_bytes

    @property
    def closed(self) -> bool:
        """True once nothing more is taken."""
        return self._closing.is_set()

    @property
    def started(self) -> bool:
        """True if the thread was started."""
        return self._thread is not None

    @property
    def alive(self) -> bool:
        """True while what is added will be written."""
        return self._thread is not None and self._thread.is_alive() and not self.closed

    @property
    def writing_for(self) -> float:
        """Seconds that the batch under way has taken so far; 0 if none is."""
        since = self._writing_since
        return 0.0 if since is None else time.monotonic() - since

    def pause(self, seconds: float) -> None:
        """Wait inside ``write`` before another try; ``close`` ends the wait."""
        self._closing.wait(max(0.0, seconds))

    def remaining(self) -> list[Item]:
        """Return the items that wait, for whoever closes while the thread hangs; they are not written any more."""
        found = [item for item, _, _ in self._items]
        self._items.clear()
        return found

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything added so far is written; False if that took longer than ``timeout`` seconds."""
        target = self._added
        until = None if timeout is None else time.monotonic() + timeout
        self._hurry.set()
        self._wake.set()
        with self._progress:
            while self._done < target:
                left = None if until is None else until - time.monotonic()
                if (left is not None and left <= 0) or self._thread is None or not self._thread.is_alive():
                    return False
                self._progress.wait(left)
        return True

    def close(self, timeout: float) -> bool:
        """Take nothing more and write what waits; False if that took longer than ``timeout`` seconds."""
        with self._lock:
            self._closing.set()
            thread = self._thread
        self._hurry.set()
        self._wake.set()
        if thread is None:
            while self._items:
                self._write_next()
        else:
            thread.join(timeout)
        return self._done == self._added

    # ── the thread's side ────────────────────────────────────────────────────────────────────────────────────────────

    def _work(self) -> None:
        while True:
            if not self._items:
                if self.closed:
                    return
                self._wake.wait(self._idle())
            self._wake.clear()
            if self._items:
                early = self._last + self._every - time.monotonic()
                if early > 0 and self.rows < self._batch and not self.closed:
                    self._hurry.wait(early)  # until the next batch is due, or somebody is in a hurry
                self._hurry.clear()
                self._write_next()

    def _write_next(self) -> None:
        batch: list[Item] = []
        rows = size = 0
        while self._items and (not batch or rows + self._items[0][1] <= self._batch):
            item, its_rows, its_size = self._items.popleft()
            batch.append(item)
            rows += its_rows
            size += its_size
        if not batch:
            return
        self._last = self._writing_since = time.monotonic()
        self._write(batch)
        self._writing_since = None
        self._done_rows += rows
        self._done_bytes += size
        with self._progress:
            self._done += len(batch)
            self._progress.notify_all()
        self._written(batch)
