"""Sending memories out: one JSON object, JSONL, or a folder of Markdown notes; each can be imported again (A-2)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError, nearest
from ringtrue.formats import write_whole
from ringtrue.memory.hook.memory import LINKS, SCHEMA_VERSION, Memory, as_record
from ringtrue.memory.secrets import refuse_secrets, without_secrets

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

    Raises InputError where a file would be overwritten and that was not asked for, before anything is written.
    """
    if format not in FORMATS:
        raise InputError(f"there is no format '{format}'; did you mean {nearest(format, FORMATS)}?")
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
