"""Markdown notes of others, read in place and never written: front matter, then text (A-1).

The front matter is read as lines ``name: value`` and lists, which is what such notes hold; this is no YAML reader.
"""

from __future__ import annotations

import os
import re

from .memory import CATEGORIES, ID_LIMIT, STATUSES, TIERS, TITLE_LIMIT, Memory, MemoryFault, checked_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SOURCE = "note"
KINDS = {"user": "preference", "feedback": "preference", "project": "decision", "reference": "runbook"}
"""What the types of an agent's own notes are among our categories."""
OTHERWISE = "decision"
"""What a note is taken for that says nothing about it; not a session_summary, which is shown for some weeks only."""


def from_note(text: str, path: str) -> Memory:
    """Return the note in a text as a memory; raises MemoryFault for one without a word.

    >>> text = "---\\nname: Small commits\\ntype: feedback\\ntags: [git]\\n---\\nOne change each."
    >>> note = from_note(text, "/notes/commits.md")
    >>> note.id, note.category, note.title, note.tags, note.body
    ('note-notes-commits', 'preference', 'Small commits', ('git',), 'One change each.')
    """
    facts, body = front_matter(text)
    body = body.strip()
    title = _one(facts, "title") or _one(facts, "name") or _heading(body) or _stem(path)
    description = _one(facts, "description")
    if not body and not description:
        raise MemoryFault("the note holds no text; write some, or delete it")
    changed = _one(facts, "updated_at") or _one(facts, "modified") or _one(facts, "updated") or _one(facts, "date")
    status, tier = _one(facts, "record_status") or "active", _one(facts, "importance_tier")
    if status not in STATUSES:  # taken for active, a note that somebody retired would be shown
        raise MemoryFault(f"record_status is {status!r:.60}; write one of {', '.join(STATUSES)}")
    return Memory(
        id=checked_id(_one(facts, "id") or note_id(path)),
        category=category_of(facts, body, path)[0],
        title=title[:TITLE_LIMIT],
        body=f"{description}\n{body}" if description else body,
        tags=_many(facts, "tags"),
        created_at=_one(facts, "created_at") or _one(facts, "created"),
        updated_at=changed,
        trigger_phrases=_many(facts, "trigger_phrases"),
        related_files=_many(facts, "related_files"),
        status=status,
        tier=tier if tier in TIERS else "normal",
        path=path,
        source=SOURCE,
        extra=facts,
    )


def category_of(facts: dict[str, Any], body: str, path: str) -> tuple[str, str]:
    """Return the category of a note, and what it was guessed from; nothing where the note itself says it.

    >>> category_of({"category": "Tech Debt"}, "", "/n/x.md"), category_of({}, "1. stop\\n2. start", "/n/x.md")
    (('tech_debt', ''), ('runbook', 'its numbered steps'))
    """
    for name in ("category", "type"):
        found = _category(_one(facts, name), KINDS)
        if found:
            return found, ""
    folder = os.path.basename(os.path.dirname(path))
    found = _category(folder, {"adr": "decision"})
    if found:
        return found, f"its folder {folder}/"
    if re.search(r"^1[.)] ", body, re.M) and re.search(r"^2[.)] ", body, re.M):
        return "runbook", "its numbered steps"
    return OTHERWISE, "nothing"


def _category(text: str, kinds: dict[str, str]) -> str:
    name = re.sub(r"[\s-]+", "_", text.strip().lower())
    for one in (name, name.removesuffix("s")):
        if one in CATEGORIES or one in kinds:
            return kinds.get(one, one)
    return ""


def _heading(body: str) -> str:
    for line in body.split("\n"):
        marks = len(line) - len(line.lstrip("#"))
        if 1 <= marks <= 6 and line[marks : marks + 1].isspace():
            title = line[marks:].strip().rstrip("#").rstrip()
            if title:
                return title
    return ""


def note_id(path: str) -> str:
    """Return an id from the last two parts of a path: the same wherever the folder above lies."""
    folder = os.path.basename(os.path.dirname(path))
    name = re.sub(r"[^a-z0-9]+", "-", f"note-{folder}-{_stem(path)}".lower()).strip("-")
    return name[:ID_LIMIT].rstrip("-")


def front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the facts between two lines ``---`` at the beginning, and the text after them."""
    lines = text.split("\n")
    if lines[0].strip() != "---":
        return {}, text
    facts: dict[str, Any] = {}
    name = ""
    for number, line in enumerate(lines[1:], 1):
        if line.strip() == "---":
            return facts, "\n".join(lines[number + 1 :])
        bare = line.strip()
        if bare.startswith("- ") and name:
            if not isinstance(facts.get(name), list):
                facts[name] = _list(facts.get(name))
            facts[name].append(_plain(bare[2:]))
        elif ":" in bare and not bare.startswith("#"):
            # Nested facts count as their own: the notes of an agent keep theirs under ``metadata``.
            name, _, value = bare.partition(":")
            name, value = name.strip(), value.strip()
            if value.startswith("[") and value.endswith("]"):
                facts[name] = [_plain(item) for item in value[1:-1].split(",") if item.strip()]
            else:
                facts[name] = _plain(value)
    return {}, text  # never closed: the line was a rule, not front matter


def _plain(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value] if value else []


def _one(facts: dict[str, Any], name: str) -> str:
    value = facts.get(name)
    return value if isinstance(value, str) else ""


def _many(facts: dict[str, Any], name: str) -> tuple[str, ...]:
    value = facts.get(name)
    items = [part.strip() for part in value.split(",")] if isinstance(value, str) else _list(value)
    return tuple(item for item in items if item)


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]
