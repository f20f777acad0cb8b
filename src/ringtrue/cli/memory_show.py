"""``ringtrue memory show · list · search``: looking at memories."""

from __future__ import annotations

import time
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringtrue.cli import show
from ringtrue.cli.memory import Root, brief, found_root, place_of, printable, settings_of
from ringtrue.cli.options import Json
from ringtrue.errors import check_choice
from ringtrue.memory.hook.files import load
from ringtrue.memory.hook.guard import hide_secrets, lines_of, title_of
from ringtrue.memory.hook.index import MemoryHit, shown_until, words_of
from ringtrue.memory.hook.memory import CATEGORIES, STATUSES, Memory, as_record
from ringtrue.memory.hook.rarity import stem
from ringtrue.memory.hook.settings import Settings
from ringtrue.memory.hook.words import match_expression, query_words

if TYPE_CHECKING:
    from ringtrue.memory.engine import MemoryAnswer


def show_command(
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="The memory's id.")], root: Root = None, json: Json = False
) -> None:
    """Show a whole memory.

    Example: ringtrue memory show sessions-are-jwt
    """
    from ringtrue.memory.editing import get

    folder = found_root(root)
    settings = settings_of(folder)
    memory = get(folder, memory_id, settings)
    expired = memory.status == "active" and time.time() > shown_until(memory, settings)
    show.end_if_json(
        json, {"memory": as_record(memory), "path": memory.path, "source": memory.source, "past_retention": expired}
    )
    state = ", past its retention and not shown" if expired else ""
    print(f"{title_of(memory)}\n{memory.category}, {memory.tier}, {memory.status}{state}\n{printable(memory.path)}")
    facts = {
        "changed": memory.updated_at,
        "tags": ", ".join(memory.tags),
        "triggers": "; ".join(memory.trigger_phrases),
        "files": ", ".join(memory.related_files),
        "confidence": "" if memory.confidence is None else f"{memory.confidence:g}",
        "supersedes": ", ".join(memory.supersedes),
        "spec folder": memory.spec_folder or "",
        **{kind: ", ".join(ids) for kind, ids in memory.links.items()},
    }
    for name, value in facts.items():
        if value:
            print(f"{printable(name)}: {_shown(value)}")
    if not memory.content:
        print(f"\n{_shown(memory.body)}")
    for name, value in memory.content.items():
        print(f"\n{printable(name)}")
        for line in value if isinstance(value, list) else [value]:
            text = line if isinstance(line, str) else dumps(line, ensure_ascii=False)
            print(f"  {'- ' if isinstance(value, list) else ''}{_shown(text)}")


def list_command(
    category: Annotated[str | None, typer.Option("--category", "-c", help="Only this category.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only memories with this tag.")] = None,
    status: Annotated[str, typer.Option(help="active, retired, archived or all.")] = "active",
    write_index: Annotated[
        bool, typer.Option("--write-index", help="Also write all memories into index.md, for people.")
    ] = False,
    root: Root = None,
    json: Json = False,
) -> None:
    """List the memories, the latest change first.

    Example: ringtrue memory list --category decision
    Example: ringtrue memory list --status all --write-index
    """

    for value, legal, name in ((category, CATEGORIES, "--category"), (status, (*STATUSES, "all"), "--status")):
        check_choice(value, legal, f"{name} is {value!r}")
    folder = found_root(root)
    loaded = load(folder, settings_of(folder))
    chosen = [memory for memory in loaded.memories if category in (None, memory.category) and status in ("all", memory.status)]
    chosen = [memory for memory in chosen if tag is None or tag in memory.tags]
    chosen.sort(key=lambda memory: (memory.updated_at, memory.id), reverse=True)
    page = None
    if write_index:
        from ringtrue.memory.exporters import write_index_page

        page = write_index_page(loaded.memories, folder)
    faults = [{"path": path, "fault": text} for path, text in loaded.faults]
    found: dict[str, Any] = {"root": folder, "memories": [brief(memory, folder) for memory in chosen], "unreadable": faults}
    show.end_if_json(json, found if page is None else {**found, "index": page})
    headers = ["category", "id", "title", "tags", "changed", *(["status"] if status == "all" else [])]
    rows = []
    for memory in chosen:
        tags, day = " ".join(lines_of(memory.tags)), printable(memory.updated_at[:10])
        rows.append([memory.category, memory.id, title_of(memory), tags, day, memory.status][: len(headers)])
    if rows:
        show.table(headers, rows, text_columns=len(headers))
    elif loaded.memories:
        show.note(f"no memory matches, of {len(loaded.memories)} in total")
    else:
        show.note("no memories yet; see `ringtrue memory add`")
    if page is not None:
        print(f"{page}: written")
    if faults:
        show.note(f"{show.counted(len(faults), 'file')} cannot be read; see `ringtrue memory doctor`")


def search_command(
    text: Annotated[str, typer.Argument(help="What to look for.")],
    strategy: Annotated[
        str | None, typer.Option(help="fts5_bm25, title_tags or hybrid; default: as in memory-config.json.")
    ] = None,
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="Number of memories; default: as in memory-config.json, 10.")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show the words used, where each hit contains them, and whether a prompt would show it."
        ),
    ] = False,
    root: Root = None,
    json: Json = False,
) -> None:
    """Search the memories by words and meaning. If no memory stands out from chance, none is shown, and that is said.

    Example: ringtrue memory search "how do we sign tokens"
    Example: ringtrue memory search "refund twice" --explain
    """
    from ringtrue.memory.engine import search_memories

    folder = found_root(root)
    settings = settings_of(folder)
    now = time.time()
    answer = search_memories(folder, text, now=now, strategy=strategy, k=k, settings=settings)
    reasons = _explained(folder, text, answer, settings, now=now) if explain else None
    hits = [{"rank": hit.rank, "score": hit.score, **brief(hit.memory, folder)} for hit in answer.hits]
    if reasons is not None:
        hits = [{**hit, **reasons["hits"][hit["id"]]} for hit in hits]
    found: dict[str, Any] = {"query": text, "strategy": answer.strategy, "note": answer.note, "root": folder, "hits": hits}
    show.end_if_json(json, found if reasons is None else {**found, "words": reasons["words"], "hook": reasons["hook"]})
    if answer.note or not answer.hits:
        show.note(answer.note or "nothing was found; use other words for the same thing")
    if answer.hits:
        rows = [_row(hit, folder) for hit in answer.hits]
        show.table(["category", "title", "tags", "changed", "path", "score"], rows, text_columns=5)
    if reasons is not None:
        _print_reasons(answer, reasons)


def _row(hit: MemoryHit, root: str) -> list[str]:
    memory = hit.memory
    tags, day = " ".join(lines_of(memory.tags)), printable(memory.updated_at[:10])
    return [memory.category, title_of(memory), tags, day, place_of(memory, root), show.score(hit.score)]


def _explained(root: str, text: str, answer: MemoryAnswer, settings: Settings, *, now: float) -> dict[str, Any]:
    from ringtrue.memory.engine import hook_view

    limit = settings.search.query_max_tokens
    words = query_words(text, limit)
    seen = hook_view(root, text, [hit.memory for hit in answer.hits], settings, now=now)
    decision = seen.decision
    sure = {hit.memory.id: level for hit, level in zip(decision.inject, decision.confidence, strict=True)}
    hits = {
        hit.memory.id: {
            "found_in": _found_in(words, hit.memory, settings.body_max_chars),
            "stages": [stage._asdict() for stage in hit.stages],
            "evidence": seen.evidence[hit.memory.id],
            "called_by": seen.phrases.get(hit.memory.id),
            "hook_confidence": sure.get(hit.memory.id),
        }
        for hit in answer.hits
    }
    injects = [hit.memory.id for hit in decision.inject]
    hook = {"words": list(seen.words), "injects": injects, "reason": decision.reason, "level": decision.level}
    return {"words": words, "expression": match_expression(text, limit), "hits": hits, "hook": hook}


def _found_in(words: list[str], memory: Memory, most: int) -> dict[str, list[str]]:
    """Return the words of a question that title, tags, trigger phrases and body have, as stems or beginnings."""

    found: dict[str, list[str]] = {}
    parts = {"title": memory.title, "tags": " ".join(memory.tags), "triggers": " ".join(memory.trigger_phrases)}
    for name, part in {**parts, "body": memory.body[:most]}.items():
        there = words_of(part)
        stems = {stem(word) for word in there}
        mine = [word for word in words if stem(word) in stems or any(one.startswith(word) for one in there)]
        if mine:
            found[name] = mine
    return found


def _print_reasons(answer: MemoryAnswer, reasons: dict[str, Any]) -> None:
    print(f"\nstrategy {answer.strategy}; words: {', '.join(reasons['words']) or 'none that tell something'}")
    rows = []
    for hit in answer.hits:
        why = reasons["hits"][hit.memory.id]
        places = "; ".join(f"{name}: {' '.join(words)}" for name, words in why["found_in"].items())
        stages = "; ".join(f"{stage['name']} rank {stage['rank']}" for stage in why["stages"])
        places += f"; called by: {_shown(why['called_by'])}" if why["called_by"] else ""
        rows.append([hit.rank, hit.memory.id, places, stages, why["hook_confidence"] or "—", f"{why['evidence']:.2f}"])
    if rows:
        show.table(["rank", "id", "found in", "stages", "the hook", "evidence"], rows, text_columns=5)
    hook = reasons["hook"]
    print(f"words the hook looks at: {', '.join(hook['words']) or 'none that tell something'}")
    level = "" if hook["level"] is None else f" (chance reaches {hook['level']:.2f} in this store)"
    done = f"shows {', '.join(hook['injects'])}" if hook["injects"] else "stays silent"
    print(f"with this text as a prompt the hook {done}: {hook['reason']}{level}")


def _shown(text: str) -> str:
    """Return a text of a memory as it is printed: no codes, no secrets."""
    return printable(hide_secrets(text))
