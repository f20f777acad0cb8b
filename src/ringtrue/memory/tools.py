"""The tools of the MCP server: find, load, save, link and judge memories. What they return is marked as data."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from ringtrue import traffic
from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.feedback import Confidence
from ringtrue.memory import editing as keep
from ringtrue.memory import tasks
from ringtrue.memory import tool_context as answers
from ringtrue.memory.context import (
    MODES,
    NOTICE,
    block,
    build_context,
    choose_mode,
    element,
    linked,
    links_of,
    paths_of,
    summary,
    tokens_of,
    visible,
)
from ringtrue.memory.doctor import check_up
from ringtrue.memory.engine import MemoryAnswer, Snapshot, constitutional, guaranteed, too_many_constitutional
from ringtrue.memory.health import TIMELY, project_figures
from ringtrue.memory.hook.files import find, load
from ringtrue.memory.hook.guard import clean_title, hide_secrets, inside, lines_of
from ringtrue.memory.hook.index import MemoryHit
from ringtrue.memory.hook.intents import intent_of
from ringtrue.memory.hook.memory import SCHEMA_VERSION, Memory, as_record, changed, from_record
from ringtrue.memory.hook.settings import read_settings
from ringtrue.memory.record_check import kebab, secrets_in, without_secrets
from ringtrue.memory.tool_context import (
    Count,
    Files,
    Fresh,
    Id,
    Places,
    Session,
    SessionId,
    Share,
    Strategy,
    Text,
    ToolContext,
    Words,
    answer,
    brief_of,
)
from ringtrue.retrieve import words_of

LONGEST_BODY = 20_000
"""Characters of a memory that memory_load returns; hosts warn at 10,000 tokens."""
QUERY_KEPT = 500
"""Characters of a query that the journal keeps."""
_LONGEST_DATE = 40
_OF_SHOWN = ("why", "given", "rank", "score")


class MemoryTools:
    """The tools of the MCP server; each method is one, its arguments are the schema and its docstring the description."""

    def __init__(self, context: ToolContext) -> None:
        self.context = context

    def memory_search(
        self,
        query: Text,
        k: Places = None,
        strategy: Strategy = None,
        summaries: bool = True,
        session_id: SessionId = "",
        files: Files = [],  # noqa: B006  # pydantic copies defaults
        resend: Fresh = False,
    ) -> Annotated[CallToolResult, answers.SearchAnswer]:
        """Search the memories. Returns a ranked list with id, category, title, path, tags, date and a summary of about 150
        tokens; constitutional memories are always in it. Use memory_load for the whole of one."""
        began, now = time.perf_counter(), self.context.clock()
        engine, session = self.context.engine(strategy), self.context.session(session_id, resend)
        most = engine.settings.search.max_results if k is None else k
        hits, answered = self._find(engine.snapshot(), query, most, now, session, files)
        found = {hit.memory.id for hit in answered.hits}
        results, saved = [], 0
        for hit in hits:
            text = summary(hit.memory) if summaries else None
            given = bool(text and session is not None and session.has(hit.memory, text))
            if text and session is not None:
                session.send(hit.memory, text)
                saved += tokens_of(text) if given else 0
            told = {"summary": None if given else text, "already_given": given, "tags": lines_of(hit.memory.tags)}
            told |= {"updated_at": clean_title(hit.memory.updated_at)[:_LONGEST_DATE], "tier": hit.memory.tier}
            score = hit.score if hit.memory.id in found else None
            results.append({"rank": hit.rank, **brief_of(hit.memory), "score": score, **told})
        if session is not None:
            session.spare(saved)
            session.use(query)
        how = {"strategy": answered.strategy, "intent": intent_of(query)}
        self._note_search("memory_search", query, how, hits, session, now, began)
        return answer({"notice": NOTICE, "note": answered.note, **how, "results": results, "tokens_saved": saved})

    def memory_context(
        self,
        prompt: Text,
        mode: Annotated[
            Literal["quick", "focused", "deep"] | None,
            Field(description="How far to look; chosen by the pressure if left out."),
        ] = None,
        tokens_used: Annotated[Count, Field(description="Tokens of the model's window in use.")] = None,
        tokens_window: Annotated[Count, Field(description="Size of the model's window.")] = None,
        budget: Annotated[
            int | None, Field(ge=100, le=20_000, description="Tokens of the text; the mode's if left out.")
        ] = None,
        strategy: Strategy = None,
        session_id: SessionId = "",
        files: Files = [],  # noqa: B006
        resend: Fresh = False,
    ) -> Annotated[CallToolResult, answers.ContextAnswer]:
        """Return what earlier work says about a prompt as one text within a budget of tokens, constitutional memories first.
        Modes: quick (5 memories), focused (10), deep (15 and what is causally linked)."""
        began, now = time.perf_counter(), self.context.clock()
        name, pressure = choose_mode(mode or "", used=tokens_used, window=tokens_window)
        chosen = MODES[name]
        engine, session = self.context.engine(strategy), self.context.session(session_id, resend)
        view = engine.snapshot()
        hits, answered = self._find(view, prompt, chosen.k, now, session, files)
        found = {hit.memory.id for hit in answered.hits}
        also = linked(hits, view.memories(now)) if chosen.linked else []
        made = build_context(self.context.root, hits, found=found, also=also, budget=budget or chosen.budget, session=session)
        if session is not None:
            session.use(prompt)
        memories = [
            {**brief_of(one.memory), "tier": one.memory.tier, **{name: getattr(one, name) for name in _OF_SHOWN}}
            for one in made.shown
        ]
        how = {"strategy": answered.strategy, "intent": intent_of(prompt)}
        self._note_search("memory_context", prompt, how, hits, session, now, began)
        costs = {"budget": made.budget, "tokens": made.tokens, "tokens_saved": made.saved, "left_out": made.left_out}
        chose = {"mode": name, "pressure": pressure, **how}
        return answer({"notice": NOTICE, "note": answered.note, **chose, **costs, "memories": memories, "text": made.text})

    def memory_match_triggers(
        self, prompt: Text, k: Places = None, session_id: SessionId = ""
    ) -> Annotated[CallToolResult, answers.TriggerAnswer]:
        """Return the memories one of whose trigger phrases stands in the prompt, in whole words, the longest phrase first."""
        now = self.context.clock()
        engine = self.context.engine(None)
        most = engine.settings.search.max_results if k is None else k
        matches = called(prompt, engine.memories(now))[:most]
        session = self.context.session(session_id, False)
        if session is not None:
            session.use(prompt)
        found = [{**brief_of(memory), "phrases": lines_of(phrases)} for memory, phrases in matches]
        return answer({"notice": NOTICE, "matches": found})

    def memory_load(
        self,
        id: Id = "",
        path: Annotated[str, Field(max_length=4096, description="A path inside the memory folder, in place of the id.")] = "",
        session_id: SessionId = "",
    ) -> Annotated[CallToolResult, answers.WholeMemory]:
        """Return the whole of one memory, by its id or by its path. Retired and archived memories are not returned."""
        if bool(id) == bool(path):
            raise InputError(
                "give either an id or a path, not both" if id else "neither id nor path is given; give one of them"
            )
        now = self.context.clock()
        memory = self._by_id(id, now) if id else self._by_path(path, now)
        session = self.context.session(session_id, False)
        event = {"at": now, "event": "read", "id": memory.id, "path": memory.path, "tool": "memory_load"}
        if session is not None:
            session.use(memory.id)
            event["session_id"] = session.session_id
        self.context.note(event)
        lines = {"tags": lines_of(memory.tags), "trigger_phrases": lines_of(memory.trigger_phrases)}
        named = {"related_files": paths_of(memory.related_files), "supersedes": paths_of(memory.supersedes)}
        facts = {"tier": memory.tier, "source": memory.source, "confidence": memory.confidence, "links": links_of(memory)}
        changed = {"updated_at": clean_title(memory.updated_at)[:_LONGEST_DATE]}
        text = block(self.context.root, [element(memory, _whole(memory))])
        return answer({"notice": NOTICE, **brief_of(memory), **facts, **changed, **lines, **named, "text": text})

    def _find(
        self, view: Snapshot, text: str, k: int, now: float, session: Session | None, files: Sequence[str]
    ) -> tuple[list[MemoryHit], MemoryAnswer]:
        """Return at most ``k`` hits, the constitutional among them, and what the search itself returned."""
        found = view.search(text, k=k, now=now, session=session.used() if session is not None else (), files=files)
        always = constitutional(view.memories(now))
        return guaranteed(found.hits, always, k=k), found

    def _note_search(
        self, tool: str, query: str, how: dict[str, str], hits: Sequence[MemoryHit], session: Session | None,
        now: float, began: float,
    ) -> None:  # fmt: skip
        event: dict[str, Any] = {"at": now, "event": "search", "tool": tool, **how}
        if session is not None:
            event["session_id"] = session.session_id
        if traffic.current() != "user":
            event["traffic"] = traffic.current()
        event["query"] = without_secrets({"query": query})["query"][:QUERY_KEPT]
        event["results"] = [{"id": hit.memory.id, "rank": hit.rank, "score": round(hit.score, 6)} for hit in hits]
        self.context.note({**event, "ms": round((time.perf_counter() - began) * 1000, 1)})

    def _by_id(self, name: str, now: float) -> Memory:
        shown = {memory.id: memory for memory in self.context.engine(None).memories(now)}
        if name in shown:
            return shown[name]
        hidden = next(
            (one for one in load(self.context.root, read_settings(self.context.root)[0]).memories if one.id == name), None
        )
        if hidden is not None:
            state = hidden.status if hidden.status != "active" else "past its retention"
            raise InputError(f"memory '{name}' is {state} and no longer shown; search for its replacement")
        cure = f"did you mean {nearest(name, shown)}?" if shown else "the folder holds none yet"
        raise MissingInput(f"there is no memory '{name}'; {cure}")

    def _by_path(self, path: str, now: float) -> Memory:
        settings = read_settings(self.context.root)[0]
        whole = os.path.normpath(Path(self.context.root, path))
        if "\0" in path or not any(inside(folder, whole) for folder in (self.context.root, *settings.roots)):
            raise InputError(f"path {path!r:.100} leads out of the memory folder; give one that memory_search returned")
        for memory in load(self.context.root, settings).memories:
            if os.path.normpath(memory.path) == whole:
                return self._by_id(memory.id, now)
        raise MissingInput(f"there is no memory at {path!r:.100}; give a path that memory_search returned")

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
            raise InputError(f"memory '{given['id']}' already exists; choose another id such as '{free}', or set replace")
        if exists:
            memory = keep.change(self.context.root, given["id"], lambda old: _with(old, given), now=now)
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
            raise InputError("no vote given; give id and useful, or verdicts such as {'an-id': true}")
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


def _whole(memory: Memory) -> str:
    """Return the content field by field, cut where it is longer than a model should have to read."""
    lines = [f"{name}: {_said(value)}" for name, value in memory.content.items()] or [memory.body]
    text = hide_secrets("\n".join(lines))
    return text if len(text) <= LONGEST_BODY else text[:LONGEST_BODY] + f"\n… (cut; the whole is in {memory.path})"


def _said(value: Any) -> str:
    if isinstance(value, list):
        return "".join(f"\n- {_said(item)}" for item in value)
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_said(item)}" for name, item in value.items())
    return str(value)


def called(prompt: str, memories: Iterable[Memory]) -> list[tuple[Memory, list[str]]]:
    """Return the memories that are called and the phrases that call them, in the order of the channel ``trigger``.

    The longest phrase comes first, then more words in all phrases found, then the id, descending.

    >>> one = Memory(id="vat", category="constraint", title="VAT", body="", trigger_phrases=("vat id", "tax number"))
    >>> [(memory.id, phrases) for memory, phrases in called("Where is the VAT-ID kept?", [one])]
    [('vat', ['vat id'])]
    """
    words = words_of(prompt)
    found = []
    for memory in memories:
        phrases: dict[tuple[str, ...], str] = {}
        for phrase in memory.trigger_phrases:
            run = tuple(words_of(phrase))
            if run and any(tuple(words[start : start + len(run)]) == run for start in range(len(words) - len(run) + 1)):
                phrases.setdefault(run, phrase)
        if phrases:
            lengths = [len(run) for run in phrases]
            found.append(((max(lengths), sum(lengths), memory.id), memory, list(phrases.values())))
    found.sort(key=lambda one: one[0], reverse=True)
    return [(memory, phrases) for _, memory, phrases in found]


def _hidden(memory: Memory) -> list[str]:
    if memory.status == "active":
        return []
    return [f"'{memory.id}' is {memory.status} and stays so: no search shows it; save it under another id to have it shown"]


FINDINGS = 50
"""Findings that memory_health lists, errors first; the doctor lists all."""
LONGEST_FINDING = 500
"""Characters of a finding; it may quote what a file holds."""
REPORTED = ("stale", "never retrieved")


def _with(memory: Memory, given: dict[str, Any]) -> Memory:
    return changed(from_record({**as_record(memory), **given}), path=memory.path)
