"""The shapes of what the MCP tools return; the server publishes them as output schemas (A-7)."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from mcp_types import CallToolResult, TextContent
from pydantic import Field
from typing_extensions import TypedDict  # pydantic reads nested ones of this kind only, below Python 3.12

from ringtrue.memory.hook.guard import title_of, visible_line
from ringtrue.memory.hook.memory import Memory

LONGEST_TEXT = 20_000
Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
Id = Annotated[str, Field(max_length=200)]
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
