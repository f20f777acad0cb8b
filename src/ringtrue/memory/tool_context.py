"""What the tools of the MCP server share: the folder, the clock, the engines, the sessions and the journal (A-7)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError
from ringtrue.memory.engine import Engine
from ringtrue.memory.hook.journal import record
from ringtrue.memory.hook.settings import read_settings
from ringtrue.memory.sessions import Session, Sessions


class Desk:
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
