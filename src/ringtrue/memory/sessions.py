"""What a session has been given already (A-7): nothing is sent twice, and what that saves is counted.

Kept in the process, as the session is: a text that was sent stands in the conversation. A memory that has changed since is sent
again, and so is everything after ``forget``, for when the host has cut its conversation short.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from ringtrue.memory.hook.memory import Memory

MOST_SESSIONS = 256
MOST_USED = 50
"""Memories and texts a session is known by; the latest count."""


@dataclass
class Session:
    """One conversation: what it was sent, what it used and said, and the tokens it did not have to read again."""

    session_id: str
    saved: int = 0
    _sent: dict[str, int] = field(default_factory=dict)
    _used: dict[str, None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def has(self, memory: Memory, text: str) -> bool:
        """True where this very text of a memory was sent before."""
        with self._lock:
            return self._sent.get(memory.id) == _mark(memory, text)

    def send(self, memory: Memory, text: str) -> None:
        """Remember that a text of a memory is sent."""
        with self._lock:
            self._sent[memory.id] = _mark(memory, text)

    def spare(self, tokens: int) -> None:
        """Count tokens that did not have to be sent again."""
        with self._lock:
            self.saved += tokens

    def use(self, item: str) -> None:
        """Remember that a memory (its id) was used or a text said in this session."""
        with self._lock:
            self._used.pop(item, None)
            self._used[item] = None
            while len(self._used) > MOST_USED:
                del self._used[next(iter(self._used))]

    def used(self) -> Sequence[str]:
        """Return what the session used and said, the latest last: what the session boost of the hybrid goes by."""
        with self._lock:
            return tuple(self._used)

    def forget(self) -> None:
        """Take everything sent for lost; what was saved so far stays counted."""
        with self._lock:
            self._sent.clear()


def _mark(memory: Memory, text: str) -> int:
    return hash((memory.updated_at, memory.title, text))


class Sessions:
    """The sessions a server knows; the one not heard of for longest is dropped when there are too many."""

    def __init__(self, *, most: int = MOST_SESSIONS) -> None:
        self._most, self._lock = most, threading.Lock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def saved(self) -> int:
        """Return the tokens that all of them did not have to read again."""
        with self._lock:
            return sum(session.saved for session in self._sessions.values())

    def of(self, session_id: str) -> Session | None:
        """Return the session of an id, begun where it is new; None where there is no id to know it by.

        >>> sessions = Sessions()
        >>> sessions.of("s-1") is sessions.of("s-1"), sessions.of("")
        (True, None)
        """
        if not session_id:
            return None
        with self._lock:
            session = self._sessions.setdefault(session_id, Session(session_id))
            self._sessions.move_to_end(session_id)
            while len(self._sessions) > self._most:
                self._sessions.popitem(last=False)
            return session
