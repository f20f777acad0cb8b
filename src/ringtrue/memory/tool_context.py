"""What the tools of the MCP server share: the folder, the clock, the engines, the sessions and the journal (A-7)."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError
from ringtrue.memory.engine import Engine
from ringtrue.memory.hook.journal import record
from ringtrue.memory.hook.memory import Memory
from ringtrue.memory.hook.settings import read_settings

MOST_SESSIONS = 256
MOST_USED = 50
"""Memories and texts a session is known by; the latest count."""


@dataclass
class Session:
    """One conversation: what it was sent, what it used and said, and the tokens it did not have to read again."""

    session_id: str
    saved: int = 0
    _sent: dict[str, int] = field(default_factory=dict)
    _used: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_USED))

    def has(self, memory: Memory, text: str) -> bool:
        """True where this very text of a memory was sent before."""
        return self._sent.get(memory.id) == _mark(memory, text)

    def send(self, memory: Memory, text: str) -> None:
        """Remember that a text of a memory is sent."""
        self._sent[memory.id] = _mark(memory, text)

    def spare(self, tokens: int) -> None:
        """Count tokens that did not have to be sent again."""
        self.saved += tokens

    def use(self, item: str) -> None:
        """Remember that a memory (its id) was used or a text said in this session."""
        with suppress(ValueError):  # it is the latest now
            self._used.remove(item)
        self._used.append(item)

    def used(self) -> Sequence[str]:
        """Return what the session used and said, the latest last: what the session boost of the hybrid goes by."""
        return tuple(self._used)

    def forget(self) -> None:
        """Take everything sent for lost; what was saved so far stays counted."""
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


class ToolContext:
    """One memory folder in service; threads share it."""

    def __init__(self, root: str, *, session_id: str = "", clock: Callable[[], float] = time.time) -> None:
        self.root, self.clock, self._own_session = str(Path(root).absolute()), clock, session_id
        self.sessions = Sessions()
        self._engines: dict[str, Engine] = {}
        self._lock = threading.Lock()

    def engine(self, strategy: str | None) -> Engine:
        """Return the engine of a strategy, else that of the settings, under the settings as they are now."""
        settings = read_settings(self.root)[0]
        chosen = strategy or settings.match_strategy
        with self._lock:
            engine = self._engines.get(chosen)
            if engine is None or engine.settings != settings:
                engine = self._engines[chosen] = Engine(self.root, settings, chosen)
            return engine

    def session(self, session_id: str, fresh: bool) -> Session | None:
        """Return the session of a call, the server's own where it names none; None where there is neither.

        A fresh one has been given nothing.
        """
        session = self.sessions.of(session_id or self._own_session)
        if session is not None and fresh:
            session.forget()
        return session

    def needed(self, session_id: str) -> str:
        """Return the id of a call's session; raises InputError where there is none."""
        if not (session_id or self._own_session):
            raise InputError("session_id is empty and this server has no session of its own; name the conversation")
        return session_id or self._own_session

    def note(self, event: dict[str, Any]) -> None:
        """Write down what was looked at; where there is no folder yet, looking makes none."""
        if Path(self.root).is_dir():
            record(self.root, event)

    def stamp(self) -> str:
        """Return the present time as memories write it."""
        return datetime.fromtimestamp(self.clock(), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
