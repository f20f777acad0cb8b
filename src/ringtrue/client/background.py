"""Searches sent in the background: the caller adds one to a queue, a thread sends many in a request."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from ringtrue.batching import BatchQueue
from ringtrue.client.wire import encoded, given
from ringtrue.errors import InputError, RingtrueError, TimedOut, Unreachable

AT_ONCE = 500
"""Searches of one request, half of what a service takes."""
EVERY_S = 0.1
"""Seconds that searches gather, unless a whole request is there before."""
MOST_SEARCHES = 50_000
MOST_BYTES = 64 * 1024 * 1024
PAUSE_S = 1.0
"""Before a service that does not answer is tried again."""
AT_EXIT_S = 30.0


class BackgroundLog:
    """Logs searches without making the caller wait; ``Client.queries.background()`` makes one.

    A search that was taken is sent again until the service has stored it, also over a restart of the service. What this process
    holds when it is killed is lost; the SDK, ``ringtrue.QueryLog``, also survives that. Close it, or use it with ``with``.
    """

    def __init__(self, send: Callable[[bytes], Any]) -> None:
        self._send = send
        self._queue: BatchQueue[bytes] = BatchQueue(
            "ringtrue-client-log", self._write,
            most_rows=MOST_SEARCHES, most_bytes=MOST_BYTES, batch=AT_ONCE, every=EVERY_S,
        )  # fmt: skip
        self._queue.start()
        self.stored = 0
        """Searches that the service has stored."""
        self.dropped = 0
        """Never taken: the queue was full, or the log closed."""
        self.refused = 0
        """Refused by the service, or not sent before the end."""
        self.problem: str | None = None
        """What last went wrong, though it may have passed."""

    def log(self, query: str, *, tool_name: str, query_id: str | None = None, **search: Any) -> str | None:
        """Take a search, with the fields of ``Client.log``, and return its id, which feedback names.

        Returns None if it was dropped, because the queue is full or closed. Raises InputError for what cannot be sent as JSON.
        """
        name = query_id or f"eq_{secrets.token_hex(12)}"  # given here: sent again, a search is stored once
        body = encoded(given({"query": query, "tool_name": tool_name, "query_id": name, **search}))
        if self._queue.put(body, size=len(body)):
            return name
        self.dropped += 1
        return None

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything taken so far is stored or refused; False if that took longer than ``timeout`` seconds."""
        return self._queue.flush(timeout)

    def close(self, timeout: float = AT_EXIT_S) -> bool:
        """Send what is left and end; False if not everything was stored."""
        return self._queue.close(timeout) and not self.refused

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _write(self, batch: list[bytes]) -> None:
        parts = [batch]
        while parts:
            part = parts.pop()
            try:
                self._send(b"[" + b",".join(part) + b"]")
                self.stored += len(part)
            except Exception as problem:
                self.problem = str(problem) if isinstance(problem, RingtrueError) else type(problem).__name__
                if isinstance(problem, Unreachable | TimedOut) and not self._queue.closed:
                    parts.append(part)  # the service is away or busy
                    self._queue.pause(PAUSE_S)
                elif isinstance(problem, InputError) and len(part) > 1:  # one of them is wrong, and spoils only itself
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]
                else:
                    self.refused += len(part)
