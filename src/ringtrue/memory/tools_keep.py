"""The MCP tools that write memories: save and link (A-7). Secrets never come in (A-8)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from ringtrue.errors import InputError
from ringtrue.memory import editing as keep
from ringtrue.memory import tool_results as answers
from ringtrue.memory.engine import constitutional, too_many_constitutional
from ringtrue.memory.escaping import links_of
from ringtrue.memory.hook.files import find
from ringtrue.memory.hook.memory import SCHEMA_VERSION, Memory, as_record, changed, from_record
from ringtrue.memory.record_check import kebab, secrets_in
from ringtrue.memory.tool_context import ToolContext
from ringtrue.memory.tool_results import Id, Words, answer, brief_of


class KeepTools:
    """The tools that write; see ``FindTools``."""

    def __init__(self, context: ToolContext) -> None:
        self.context = context

    def memory_save(
        self,
        category: Literal["decision", "constraint", "preference", "runbook", "tech_debt", "session_summary"],
        title: Annotated[str, Field(min_length=1, max_length=120)],
        content: Annotated[
            dict[str, Any],
            Field(description="What was learned, by the fields of the category, such as decision and rationale."),
        ],
        id: Annotated[Id, Field(description="Small letters, digits and '-'; made from the title if left out.")] = "",
        tags: Words = [],  # noqa: B006
        trigger_phrases: Annotated[Words, Field(description="Phrases that call this memory when a prompt holds them.")] = [],  # noqa: B006
        related_files: Words = [],  # noqa: B006
        importance_tier: Literal["constitutional", "critical", "important", "normal", "temporary"] = "normal",
        confidence: Annotated[float | None, Field(ge=0, le=1)] = None,
        spec_folder: Annotated[str, Field(max_length=1000)] = "",
        supersedes: Annotated[Words, Field(description="Ids of memories that this one replaces; they are retired.")] = [],  # noqa: B006
        replace: Annotated[bool, Field(description="True to write over the memory with this id.")] = False,
    ) -> Annotated[CallToolResult, answers.Saved]:
        """Save what will matter again as one memory file. Keys, tokens and passwords are refused, and an id that is taken too,
        unless replace is true."""
        now = self.context.stamp()
        given: dict[str, Any] = {
            "category": category,
            "id": id or kebab(title),
            "title": title,
            "tags": tags,
            "importance_tier": importance_tier,
            "confidence": confidence,
            "trigger_phrases": trigger_phrases,
            "related_files": related_files,
            "spec_folder": spec_folder,
            "content": content,
        }
        given = {name: value for name, value in given.items() if value not in (None, "", [])}
        if not given.get("id"):
            raise InputError(f"no id can be made from the title {title!r}; give an id")
        secrets = secrets_in(given)
        if secrets:
            raise InputError(f"the memory was not saved: {secrets[0]}; take it out and name the place where it is kept instead")
        for old in supersedes:
            if old == given["id"]:
                raise InputError(f"'{old}' cannot supersede itself; name the memory whose place it takes")
            keep.get(self.context.root, old)
        Path(self.context.root).mkdir(parents=True, exist_ok=True)
        exists = find(self.context.root, given["id"]) is not None
        if exists and not replace:
            free = keep.free_id(self.context.root, given["id"])
            raise InputError(f"there is a memory '{given['id']}' already; choose another id such as '{free}', or set replace")
        if exists:

            def edited(old: Memory) -> Memory:
                return changed(from_record({**as_record(old), **given}), path=old.path)

            memory = keep.change(self.context.root, given["id"], edited, now=now)
        else:
            dates = {"schema_version": SCHEMA_VERSION, "created_at": now, "updated_at": now, "record_status": "active"}
            memory = keep.add(self.context.root, {"tags": [], **given, **dates})
        for old in supersedes:
            keep.supersede(self.context.root, old, memory.id, now=now)
        warnings = [*self._constitutional_faults(), *_hidden(memory)]
        return answer({**brief_of(memory), "replaced": exists, "superseded": supersedes, "warnings": warnings})

    def memory_link(
        self,
        from_id: Annotated[Id, Field(min_length=1)],
        kind: Literal["caused_by", "leads_to", "supports", "contradicts"],
        to_id: Annotated[Id, Field(min_length=1)],
        remove: bool = False,
    ) -> Annotated[CallToolResult, answers.LinkAnswer]:
        """Add a causal link from one memory to another, or take it away; memory_context follows links in its deep mode."""
        memory = keep.link(self.context.root, from_id, kind, to_id, now=self.context.stamp(), take_away=remove)
        return answer({"id": memory.id, "links": links_of(memory)})

    def _constitutional_faults(self) -> list[str]:
        engine = self.context.engine(None)
        count = len(constitutional(engine.memories(self.context.clock())))
        fault = too_many_constitutional(count, engine.settings.search.max_results)
        return [fault] if fault else []


def _hidden(memory: Memory) -> list[str]:
    if memory.status == "active":
        return []
    return [f"'{memory.id}' is {memory.status} and stays so: no search shows it; save it under another id to have it shown"]
