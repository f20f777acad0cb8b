"""One memory on its way in, and Markdown notes as such: what they say, what has to be guessed, and what is broken (A-2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ringtrue.memory.editing import MAIN_FIELD
from ringtrue.memory.hook.memory import BODY_FIELDS, LINKS, TIERS, TITLE_LIMIT, MemoryFault, as_record, changed
from ringtrue.memory.hook.notes import category_of, from_note, front_end, front_faults, front_matter, note_id
from ringtrue.memory.record_check import kebab

_HEADING = re.compile(r"^## ([a-z_]+)$", re.M)
_FACT = re.compile(r"(?:title|name|id|category|type|description|tags|created_at|updated_at|date|metadata):")


@dataclass(frozen=True)
class Incoming:
    """One memory of a source: where it was read, and its record, or what is wrong with it, or why it is left.

    ``guesses`` are what the source does not say and was decided for it, ``made`` the fields that it does not have, and
    ``other_id`` is the id of a note by its path, for where the one by its title is taken.
    """

    place: str
    record: Mapping[str, Any] | None
    fault: str = ""
    left: str = ""
    guesses: tuple[str, ...] = ()
    made: frozenset[str] = frozenset()
    other_id: str = ""


def only_links(text: str) -> bool:
    """True for the page on which an agent lists its other notes, such as MEMORY.md: headings and links, nothing to learn."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return bool(lines) and all(re.match(r"[-*]\s*\[[^\]]+\]\([^)]+\.md\)", line) for line in lines)


def from_markdown(path: Path, text: str) -> Incoming:
    """Return the note in a file; one that cannot be read, or only wrongly, has a fault."""
    broken = _broken(text)
    if broken:
        return Incoming(str(path), None, broken)
    try:
        note = from_note(text, str(path))
    except MemoryFault as fault:
        return Incoming(str(path), None, str(fault))
    facts, guesses = note.extra, []
    given = facts.get("id") if isinstance(facts.get("id"), str) else ""
    other_id = kebab(note_id(str(path)))
    name = (kebab(note.id) or note.id) if given else other_id
    record = as_record(changed(note, content=_sections(note.category, note.body), extra={}, id=name))
    record["title"] = " ".join(note.title.split())
    if not note.updated_at:
        record["updated_at"] = datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for field_name in ("supersedes", *LINKS):
        value = facts.get(field_name)
        if value:
            record[field_name] = value if isinstance(value, list) else [value]
    if isinstance(facts.get("spec_folder"), str) and facts["spec_folder"]:
        record["spec_folder"] = facts["spec_folder"]
    record.pop("confidence", None)
    if facts.get("confidence"):
        try:
            record["confidence"] = float(facts["confidence"])
        except (ValueError, TypeError):
            guesses.append(f"confidence is {facts['confidence']!r:.60}, which is no number: left out")
    guesses += _guesses(facts, front_matter(text)[1], str(path))
    return Incoming(str(path), record, guesses=tuple(guesses), made=frozenset(() if given else ("id",)), other_id=other_id)


def _guesses(facts: Mapping[str, Any], body: str, path: str) -> Iterator[str]:
    """Yield what was decided for a note that does not say it, or says what is none of ours."""
    category, by = category_of(dict(facts), body.strip(), path)
    said = facts.get("category") or facts.get("type") or ""
    if facts.get("category") and category_of({"category": facts["category"]}, "", "")[1]:
        by = by or f"its type {facts['type']}"
    if by:
        start = f"category is {said!r:.60}, which is none of ours" if said else "it names no category"
        yield f"{start}: taken for a {category} by {by}" if by != "nothing" else f"{start}: taken for a {category}"
    tier = facts.get("importance_tier")
    if tier and tier not in TIERS:
        yield f"importance_tier is {tier!r:.60}, which is none of ours: taken for normal"
    title = facts.get("title") or facts.get("name")
    if isinstance(title, str) and len(title) > TITLE_LIMIT:
        yield f"its title has more than {TITLE_LIMIT} characters: cut there"


def _broken(text: str) -> str:
    """Return what is wrong with the front matter of a note, and the cure; nothing where it can be read.

    Notes that are read in place are taken as they are; what is copied should be copied right.

    >>> _broken("---\\ntitle: [broken\\n---\\ntext")
    "line 2 opens a list that it does not close: 'title: [broken'; close it with ']', or put the value into quotes"
    """
    lines = text.split("\n")
    if lines[0].strip() != "---":
        return ""
    if not front_end(lines):
        opened = len(lines) > 1 and _FACT.match(lines[1])
        return "line 1 opens front matter that is never closed; add a line '---' after its last fact" if opened else ""
    return next(iter(front_faults(text)), "")


def _sections(category: str, body: str) -> dict[str, Any]:
    """Return the content in a note: the fields under their headings, as the export writes them, else all of it in one field."""
    parts = _HEADING.split(body)
    names = parts[1::2]
    if not names or parts[0].strip() or any(name not in BODY_FIELDS[category] for name in names):
        return {MAIN_FIELD[category]: body}
    content: dict[str, Any] = {}
    for name, text in zip(names, parts[2::2], strict=True):
        lines = text.strip().splitlines()
        items = [line[2:] for line in lines if line.startswith("- ")]
        content[name] = items if len(items) == len(lines) else text.strip()
    return content
