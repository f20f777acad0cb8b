"""The MCP tools that tell whether the memory helps: validate, health, and tasks before and after (A-7, F-3, F-6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from mcp_types import CallToolResult
from pydantic import Field

from ringtrue.errors import InputError
from ringtrue.feedback import Confidence
from ringtrue.memory import tasks
from ringtrue.memory import tool_results as answers
from ringtrue.memory.doctor import check_up
from ringtrue.memory.engine import constitutional
from ringtrue.memory.escaping import visible
from ringtrue.memory.health import TIMELY, project_figures
from ringtrue.memory.tool_context import ToolContext
from ringtrue.memory.tool_results import Id, SessionId, Share, Words, answer

FINDINGS = 50
"""Findings that memory_health lists, errors first; the doctor lists all."""
LONGEST_FINDING = 500
"""Characters of a finding; it may quote what a file holds."""
REPORTED = ("stale", "never retrieved")


class LearnTools:
    """The tools that ask whether it helped; see ``FindTools``."""

    def __init__(self, context: ToolContext) -> None:
        self.context = context

    def memory_validate(
        self,
        id: Id = "",
        useful: bool | None = None,
        verdicts: Annotated[dict[str, bool], Field(max_length=200, description="Several at once: id → whether useful.")] = {},  # noqa: B006
        session_id: SessionId = "",
        task_id: Id = "",
    ) -> Annotated[CallToolResult, answers.Validated]:
        """Say whether a memory was useful, or several at the end of a task. Useful adds 0.10 to its confidence, not useful
        takes 0.05, within 0 and 1; a session has one vote on a memory, its last."""
        if bool(id) != (useful is not None):
            raise InputError("id and useful belong together; give both, or verdicts such as {'an-id': true}")
        said = {**verdicts, **({id: useful} if id and useful is not None else {})}
        if not said:
            raise InputError("nothing was said; give id and useful, or verdicts such as {'an-id': true}")
        now, session = self.context.clock(), self.context.needed(session_id)
        trusted = tasks.validate(
            self.context.root,
            said,
            memories=self.context.engine(None).memories(now),
            session_id=session,
            now=now,
            task_id=task_id,
        )
        return answer(self._judged(session, trusted))

    def memory_health(self) -> Annotated[CallToolResult, answers.HealthAnswer]:
        """Return whether the memory works, in numbers: prompts, injections, silent, read and false-inject rates, memories that
        are stale or were never retrieved, tokens saved, everything the doctor found, and from the project's store the review
        backlog and the newest evaluation."""
        # Comparing meanings may load a model; the doctor on the command line has the time for it.
        found = check_up(self.context.root, now=self.context.clock(), home=Path.home(), meaning=False)
        ids = {kind: {name for one in found.findings if one.kind == kind for name in one.ids} for kind in REPORTED}
        figures = {name: value for name, value in asdict(found.health).items() if name not in ("shown", "read")}
        figures["last_error"] = visible(found.health.last_error)[:LONGEST_FINDING]
        findings = []
        for one in found.findings[:FINDINGS]:
            texts = {"text": visible(one.text)[:LONGEST_FINDING], "cure": visible(one.cure)[:LONGEST_FINDING]}
            findings.append({"level": one.level, "kind": one.kind, **texts, "ids": list(one.ids)[:FINDINGS]})
        engine = self.context.engine(None)
        return answer(
            {
                "ok": found.healthy,
                "findings": findings,
                "findings_left_out": max(0, len(found.findings) - FINDINGS),
                "memories": found.memories,
                "active": found.active,
                "constitutional": len(constitutional(engine.memories(self.context.clock()))),
                "stale": len(ids["stale"]),
                "never_retrieved": len(ids["never retrieved"]) if found.health.searched >= TIMELY else None,
                "strategy": engine.strategy,
                "figures": figures,
                "tokens_saved": self.context.sessions.saved(),
                **project_figures(),
            }
        )

    def task_preflight(
        self,
        task_id: Annotated[Id, Field(min_length=1)],
        knowledge: Annotated[Share, Field(description="How much is known about the task, 0 to 1.")],
        uncertainty: Annotated[Share, Field(description="How unsure the outcome is, 0 to 1.")],
        session_id: SessionId = "",
    ) -> Annotated[CallToolResult, answers.Begun]:
        """Say how a task begins: how much is known and how unsure it is. task_postflight tells what was learned from there."""
        session, state = self.context.needed(session_id), tasks.State(knowledge, uncertainty)
        again = tasks.preflight(self.context.root, session_id=session, task_id=task_id, state=state, now=self.context.clock())
        return answer({"session_id": session, "task_id": task_id, **asdict(state), "again": again})

    def task_postflight(
        self,
        task_id: Annotated[Id, Field(min_length=1)],
        knowledge: Annotated[Share, Field(description="How much is known now, 0 to 1 as in task_preflight.")],
        uncertainty: Annotated[Share, Field(description="How unsure the outcome is now, 0 to 1.")],
        useful: Annotated[Words, Field(description="Ids of memories that helped.")] = [],  # noqa: B006
        not_useful: Annotated[Words, Field(description="Ids of memories that did not.")] = [],  # noqa: B006
        session_id: SessionId = "",
    ) -> Annotated[CallToolResult, answers.Ended]:
        """Say how a task ended, and which memories helped. Returns knowledge delta, uncertainty reduction and their mean, the
        learning index, and the memories that were read and not judged yet."""
        both = sorted(set(useful) & set(not_useful))
        if both:
            raise InputError(f"'{both[0]}' is both useful and not useful; name it once")
        session, now = self.context.needed(session_id), self.context.clock()
        said = {**dict.fromkeys(useful, True), **dict.fromkeys(not_useful, False)}
        memories = self.context.engine(None).memories(now)
        tasks.check_known(said, memories)
        state = tasks.State(knowledge, uncertainty)
        outcome = tasks.postflight(self.context.root, session_id=session, task_id=task_id, state=state, now=now)
        trusted = tasks.validate(self.context.root, said, memories=memories, session_id=session, now=now, task_id=task_id)
        learned = {name: getattr(outcome, name) for name in tasks.FIGURES}
        return answer({**self._judged(session, trusted), "task_id": task_id, **learned})

    def _judged(self, session: str, trusted: Mapping[str, Confidence]) -> dict[str, Any]:
        """Return how far memories are trusted now, and which were read in a session and not judged."""
        facts = ("useful", "not_useful", "promotion_eligible")
        memories = [
            {"id": name, "confidence": one.value, **{fact: getattr(one, fact) for fact in facts}}
            for name, one in trusted.items()
        ]
        to_validate = tasks.to_validate(self.context.root, session_id=session)
        return {"session_id": session, "memories": memories, "to_validate": to_validate}
