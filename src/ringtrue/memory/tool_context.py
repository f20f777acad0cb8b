"""What the tools of the MCP server share: the folder, the clock, the engines, the sessions and the journal."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp_types import CallToolResult, TextContent
from pydantic import Field
from typing_extensions import TypedDict  # pydantic reads nested ones of this kind only, below Python 3.12

from ringtrue.errors import InputError
from ringtrue.memory.engine import Engine
from ringtrue.memory.hook.guard import title_of, visible_line
from ringtrue.memory.hook.journal import record
from ringtrue.memory.hook.memory import Memory
from ringtrue.memory.hook.settings import read_settings

MOST_SESSIONS = 256
LONGEST_ID = 200
"""Characters of an id of a session or a turn."""
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
        """True if this very text of a memory was sent before."""
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
        """Return the session of an id, begun where it is new; None if there is no id to know it by.

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


_TURN: ContextVar[tuple[str, str]] = ContextVar("ringtrue_memory_turn", default=("", ""))


@contextmanager
def turn_of(meta: Mapping[str, Any]) -> Iterator[None]:
    """Take the session and the turn of a call from its metadata, as far as the host tells them: Codex does, by the same ids as
    its hooks."""
    told = meta.get("x-codex-turn-metadata")
    told = told if isinstance(told, Mapping) else {}
    session, turn = (one if isinstance(one, str) else "" for one in (told.get("session_id"), told.get("turn_id")))
    token = _TURN.set((session[:LONGEST_ID], turn[:LONGEST_ID]))
    try:
        yield
    finally:
        _TURN.reset(token)


class ToolContext:
    """One memory folder in service; threads share it."""

    def __init__(self, root: str, *, session_id: str = "", clock: Callable[[], float] = time.time) -> None:
        self.root, self.clock, self._own_session = str(Path(root).absolute()), clock, session_id
        self.sessions = Sessions()
        self._engines: dict[str | None, Engine] = {}
        self._lock = threading.Lock()

    def engine(self, strategy: str | None) -> Engine:
        """Return the engine of a strategy, else that of the settings, under the settings as they are now."""
        settings = read_settings(self.root)[0]
        with self._lock:
            engine = self._engines.get(strategy)
            if engine is None or engine.settings != settings:
                engine = self._engines[strategy] = Engine(self.root, settings, strategy)
            return engine

    def session(self, session_id: str, fresh: bool) -> Session | None:
        """Return the session of a call, the server's own where it names none; None if there is neither.

        A fresh one has been given nothing.
        """
        session = self.sessions.of(session_id or self._own)
        if session is not None and fresh:
            session.forget()
        return session

    def needed(self, session_id: str) -> str:
        """Return the id of a call's session; raises InputError if there is none."""
        if not (session_id or self._own):
            raise InputError("session_id is empty and this server has no session of its own; name the conversation")
        return session_id or self._own

    @property
    def _own(self) -> str:
        """The session that the host named with the call, else that of the server."""
        return _TURN.get()[0] or self._own_session

    def note(self, event: dict[str, Any]) -> None:
        """Write down what was looked at; where there is no folder yet, looking makes none."""
        if Path(self.root).is_dir():
            session, turn = _TURN.get()
            named = turn and event.get("session_id") == session
            record(self.root, {**event, "prompt_id": turn} if named else event)

    def stamp(self) -> str:
        """Return the present time as memories write it."""
        return datetime.fromtimestamp(self.clock(), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


LONGEST_TEXT = 20_000
Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
Id = Annotated[str, Field(max_length=LONGEST_ID)]
SessionId = Annotated[
    str,
    Field(max_length=200, description="The conversation; what it was given is not sent again. The server's own if left out."),
]
Places = Annotated[int | None, Field(ge=1, le=100, description="How many at most; the settings' number if left out.")]
Strategy = Annotated[
    Literal["fts5_bm25", "title_tags", "hybrid"] | None, Field(description="How to search; the settings' way if left out.")
]
Share = Annotated[float, Field(ge=0, le=1)]
Words = Annotated[list[Annotated[str, Field(min_length=1, max_length=1000)]], Field(max_length=50)]
Files = Annotated[
    list[Annotated[str, Field(max_length=4096)]],
    Field(max_length=50, description="Paths used last, the latest last; they count where related_files_boost is on."),
]
Fresh = Annotated[bool, Field(description="True when the conversation was cut short: everything is sent again.")]
Count = Annotated[int | None, Field(ge=0)]


class BriefMemory(TypedDict):
    """What tells a memory from others."""

    id: str
    category: str
    title: str
    path: str


class FoundMemory(BriefMemory):
    """One memory of a search."""

    rank: int
    tier: str
    score: float | None
    tags: list[str]
    updated_at: str
    summary: str | None
    already_given: bool


class SearchAnswer(TypedDict):
    """The hits of a search; a score is null for a constitutional memory that the query alone would not have found."""

    notice: str
    note: str
    strategy: str
    intent: str
    results: list[FoundMemory]
    tokens_saved: int


class InContext(BriefMemory):
    """One memory in a context."""

    tier: str
    why: str
    given: str
    rank: int | None
    score: float | None


class ContextAnswer(TypedDict):
    """A text within its budget, and the memories in it."""

    notice: str
    note: str
    mode: str
    pressure: float | None
    intent: str
    strategy: str
    budget: int
    tokens: int
    tokens_saved: int
    left_out: int
    memories: list[InContext]
    text: str


class Called(BriefMemory):
    """A memory that a prompt calls by its trigger phrases."""

    phrases: list[str]


class TriggerAnswer(TypedDict):
    """What a prompt calls, the longest phrase first."""

    notice: str
    matches: list[Called]


class Saved(BriefMemory):
    """A memory that was written."""

    replaced: bool
    superseded: list[str]
    warnings: list[str]


class WholeMemory(BriefMemory):
    """A whole memory."""

    notice: str
    tier: str
    updated_at: str
    source: str
    tags: list[str]
    trigger_phrases: list[str]
    related_files: list[str]
    links: dict[str, list[str]]
    supersedes: list[str]
    confidence: float | None
    text: str


class Trust(TypedDict):
    """How far a memory is trusted after what was said about it."""

    id: str
    confidence: float
    useful: int
    not_useful: int
    promotion_eligible: bool


class Validated(TypedDict):
    """The memories somebody spoke about, and those the session read and has said nothing about yet."""

    session_id: str
    memories: list[Trust]
    to_validate: list[str]


class LinkAnswer(TypedDict):
    """The links of a memory as they are now."""

    id: str
    links: dict[str, list[str]]


class Begun(TypedDict):
    """A task that begins; ``again`` where it had begun before and the earlier figures no longer count."""

    session_id: str
    task_id: str
    knowledge: float
    uncertainty: float
    again: bool


class Ended(Validated):
    """What a task taught, and the memories that were read in its session and not judged."""

    task_id: str
    knowledge_delta: float | None
    uncertainty_reduction: float | None
    learning_index: float | None


class ListedFinding(TypedDict):
    """Something the doctor found: how bad, of which kind, which memories, what it is, and what to do."""

    level: str
    kind: str
    text: str
    cure: str
    ids: list[str]


class HealthAnswer(TypedDict):
    """Whether the memory works, in numbers; null is what cannot be known."""

    ok: bool
    findings: list[ListedFinding]
    findings_left_out: int
    memories: int
    active: int
    constitutional: int
    stale: int
    never_retrieved: int | None
    strategy: str
    figures: dict[str, Any]
    tokens_saved: int
    backlog: dict[str, Any] | None
    evaluation: dict[str, Any] | None
    unknown: dict[str, str]


def brief_of(memory: Memory) -> BriefMemory:
    """Return what tells a memory from others, safe to show."""
    title, path = title_of(memory), visible_line(memory.path)
    return {"id": memory.id, "category": memory.category, "title": title, "path": path}


def answer(record: Any) -> CallToolResult:
    """Return a record as a tool's result: structured, and the same as compact JSON for hosts that only read text."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=record)
