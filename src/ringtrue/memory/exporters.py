"""Sending memories out: one JSON object, JSONL, or a folder of Markdown notes; each can be imported again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ringtrue.errors import InputError, check_choice
from ringtrue.formats import write_whole
from ringtrue.memory.hook.guard import clean_title, title_of
from ringtrue.memory.hook.memory import CATEGORIES, LINKS, SCHEMA_VERSION, Memory, as_record
from ringtrue.memory.record_check import refuse_secrets, without_secrets

Record = dict[str, Any]


def as_json(records: Sequence[Record]) -> str:
    """Return all records as one object."""
    return json.dumps({"schema_version": SCHEMA_VERSION, "memories": list(records)}, ensure_ascii=False, indent=2) + "\n"


def as_jsonl(records: Sequence[Record]) -> str:
    """Return one record a line."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


TEXTS: dict[str, Callable[[Sequence[Record]], str]] = {"json": as_json, "jsonl": as_jsonl}
FORMATS = (*TEXTS, "markdown")


def as_markdown(record: Record) -> str:
    """Return a note: front matter, then each field of the content under its name.

    >>> print(as_markdown({"id": "tabs", "category": "preference", "title": "Tabs", "content": {"value": "no tabs"}}))
    ---
    id: "tabs"
    title: "Tabs"
    category: "preference"
    ---
    ## value
    <BLANKLINE>
    no tabs
    <BLANKLINE>
    """
    facts = {name: record.get(name) for name in ("id", "title", "category", "created_at", "updated_at", "record_status")}
    facts |= {name: record.get(name) for name in ("importance_tier", "confidence", "spec_folder")}
    facts |= {name: record.get(name) for name in ("tags", "trigger_phrases", "related_files", "supersedes")}
    facts |= {kind: record.get("links", {}).get(kind) for kind in LINKS}
    lines = ["---"]
    for name, value in facts.items():
        if isinstance(value, list):
            lines += [f"{name}:", *(f"- {_quoted(item)}" for item in value)] if value else []
        elif value not in (None, ""):
            lines.append(f"{name}: {_quoted(value) if isinstance(value, str) else value}")
    lines.append("---")
    for name, value in record.get("content", {}).items():
        if isinstance(value, list):
            text = "\n".join(f"- {item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)}" for item in value)
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines += [f"## {name}", "", text, ""]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return '"' + " ".join(text.split()) + '"'


def records_of(memories: Sequence[Memory], *, redact: bool = False) -> list[Record]:
    """Return the records to send; raises InputError for a secret unless it is to be redacted."""
    records = [as_record(memory) for memory in memories]
    if redact:
        return [without_secrets(record) for record in records]
    for record in records:
        refuse_secrets(record)
    return records


def send(records: Sequence[Record], target: Path, format: str, *, overwrite: bool = False) -> list[Path]:
    """Write records to a file, or as notes into a folder, and return what was written.

    Raises InputError if a file would be overwritten and that was not asked for, before anything is written.
    """
    check_choice(format, FORMATS, f"there is no format '{format}'")
    if format == "markdown":
        texts = {target / str(record["category"]) / f"{record['id']}.md": as_markdown(record) for record in records}
    else:
        texts = {target: TEXTS[format](records)}
    for path in texts:
        if path.is_dir():
            raise InputError(f"{path}: is a folder; name a file in it, or use --format markdown")
        if path.exists() and not overwrite:
            raise InputError(f"{path}: is there already; name another place, or use --yes to overwrite it")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(text, path)
    return list(texts)


NAME = "index.md"
MADE = "<!-- made by `ringtrue memory list --write-index`; change the memories, then make it again -->"


def index_page(memories: Iterable[Memory], root: str) -> str:
    """Return the page: the active memories by category, the newest first, then those that are no longer shown."""
    everything = sorted(memories, key=lambda memory: (memory.updated_at, memory.id), reverse=True)
    lines = ["# Memories", MADE]
    for category in CATEGORIES:
        mine = [memory for memory in everything if memory.category == category and memory.status == "active"]
        if mine:
            lines += ["", f"## {category} ({len(mine)})", "", *(_line(memory, root) for memory in mine)]
    hidden = [memory for memory in everything if memory.status != "active"]
    if hidden:
        lines += ["", f"## no longer shown ({len(hidden)})", ""]
        lines += [f"{_line(memory, root)} ({memory.status})" for memory in hidden]
    return "\n".join(lines) + "\n"


def _line(memory: Memory, root: str) -> str:
    path = Path(memory.path)
    place = path.relative_to(root) if path.is_relative_to(root) else path
    # A title is text, not Markdown: a bracket in it must not become a link to somewhere.
    title = "".join(f"\\{letter}" if letter in r"\`*_[]<>#|" else letter for letter in title_of(memory))
    facts = ", ".join(
        filter(None, (clean_title(memory.updated_at)[:10], " ".join(f"#{tag}" for tag in map(clean_title, memory.tags))))
    )
    return f"- [{title}]({quote(place.as_posix())})" + (f" – {facts}" if facts else "")


def write_index_page(memories: Iterable[Memory], root: str) -> Path:
    """Write the page into the root and return its path."""
    path = Path(root) / NAME
    aside = path.with_name(f".{NAME}.{os.getpid()}.tmp")
    aside.unlink(missing_ok=True)  # writing to a link that lies there would write elsewhere
    with aside.open("x", encoding="utf-8", errors="replace") as file:
        file.write(index_page(memories, root))
    aside.replace(path)
    return path
