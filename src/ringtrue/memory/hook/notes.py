"""Markdown notes of others, read in place and never written: front matter, then text.

The front matter is read as ``name: value``, with lists, quotations, wrapped values and blocks after ``|`` and ``>``, as such
notes have it; no YAML reader: anchors and tags are text, and of nested facts only those of ``metadata`` count, and links.
"""

from __future__ import annotations

import os
import re

from .memory import CATEGORIES, ID_LIMIT, LINKS, STATUSES, TIERS, TITLE_LIMIT, Memory, MemoryFault, checked_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SOURCE = "note"
KINDS = {"user": "preference", "feedback": "preference", "project": "decision", "reference": "runbook"}
"""What the types of an agent's own notes are among our categories."""
OTHERWISE = "decision"
"""What a note is taken for that says nothing about it; not a session_summary, which is shown for some weeks only."""
_TEXTS = ("id", "title", "name", "description", "category", "type", "tags", "record_status", "created_at", "updated_at")
"""Facts that others below them make no sense for."""
_BLOCK = re.compile(r"[|>](?:[+-]?([1-9])?|([1-9])[+-])(?:\s+#.*)?")
_NESTED = re.compile(r"""["']?[\w.-]+["']?:(?:\s|$)""")


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
        title=" ".join(title.split())[:TITLE_LIMIT],
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
    """Return the category of a note, and what it was guessed from; nothing if the note itself says it.

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
    """Return the facts between two lines ``---`` at the beginning, and the text after them.

    >>> front_matter('---\\ntags: ["a, b", c]\\ndescription: >-\\n  two\\n  lines\\n---\\ntext')
    ({'tags': ['a, b', 'c'], 'description': 'two lines'}, 'text')
    """
    lines = text.split("\n")
    end = front_end(lines)
    if not end:  # never closed: the line was a rule, not front matter
        return {}, text
    return _facts(lines[1:end])[0], "\n".join(lines[end + 1 :])


def front_faults(text: str) -> list[str]:
    """Return what in the front matter is read as it stands for want of better, by line and with the cure."""
    lines = text.split("\n")
    return [f"line {number} {fault}" for number, fault in sorted(_facts(lines[1 : front_end(lines)])[1])]


def front_end(lines: list[str]) -> int:
    """Return the place of the line that closes the front matter; 0 if there is none. An indented one is text in a block."""
    if lines[0].strip() != "---":
        return 0
    return next((place for place, line in enumerate(lines) if place and line.rstrip() == "---"), 0)


def _facts(lines: list[str]) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    facts, groups, faults = _level([(number, line.rstrip()) for number, line in enumerate(lines, 2)])
    for group, wanted in (("metadata", None), ("links", LINKS)):
        # The notes of an agent keep their facts under ``metadata``; what the note says by itself goes before them.
        inner, _, more = _level(groups.get(group, []))
        faults += more
        for name, value in inner.items():
            if not facts.get(name) and (wanted is None or name in wanted):
                facts[name] = value
    return facts, faults


def _level(
    lines: list[tuple[int, str]],
) -> tuple[dict[str, Any], dict[str, list[tuple[int, str]]], list[tuple[int, str]]]:
    """Return the facts of one indentation, the lines of the groups of facts below it, and the faults."""
    base = next((_indent(line) for _, line in lines if line and not line.lstrip().startswith("#")), 0)
    entries: list[tuple[int, str, list[tuple[int, str]]]] = []
    faults: list[tuple[int, str]] = []
    for number, line in lines:
        bare = line.strip()
        if not bare or _indent(line) > base or bare == "-" or bare.startswith(("- ", "]", "}")):
            if entries:
                entries[-1][2].append((number, line))
        elif ":" in bare and not bare.startswith("#"):
            entries.append((number, bare, []))
        elif not bare.startswith("#"):
            faults.append((number, f"is not a 'name: value': {bare!r:.60}; correct it, or take it out of the front matter"))
    facts: dict[str, Any] = {}
    groups: dict[str, list[tuple[int, str]]] = {}
    for number, bare, below in entries:
        name, _, value = bare.partition(":")
        name, value = _plain(name), value.strip()
        first = next((line.strip() for _, line in below if line and not _remark(line)), "")
        if not value and (first == "-" or first.startswith("- ")):
            facts[name] = []
            for place, head, rest in _items(below):
                faults += [(place, fault) for fault in _faults(head, rest, f"- {head}")]
                facts[name].append(_plain(_text(head, rest, base)))
        elif not value and _NESTED.match(first) and name not in _TEXTS:
            groups[name] = below
        else:
            rest = [line for _, line in below]
            if not value and _NESTED.match(first):
                faults.append(
                    (number, f"has facts below {name!r:.60}, which takes a text; write '{name}: |', or leave them out")
                )
            faults += [(number, fault) for fault in _faults(value, rest, bare)]
            facts[name] = _value(_text(value, rest, base), not _BLOCK.fullmatch(value))
    return facts, groups, faults


def _items(lines: list[tuple[int, str]]) -> list[tuple[int, str, list[str]]]:
    """Return the items of a list: the line, what stands after the dash, and the lines that belong to it."""
    items: list[tuple[int, str, list[str]]] = []
    depth = 0
    for number, line in lines:
        bare = line.strip()
        if (bare == "-" or bare.startswith("- ")) and (not items or _indent(line) <= depth):
            depth = _indent(line)
            items.append((number, bare[1:].strip(), []))
        elif items:
            items[-1][2].append(line)
    return items


def _text(value: str, below: list[str], base: int) -> str:
    """Return a value with the lines below it: as they are after ``|``, else as one line for each paragraph."""
    block = _BLOCK.fullmatch(value)
    if block is None:
        return _folded([line for line in (value, *(line.strip() for line in below)) if not _remark(line)])
    said = block[1] or block[2]
    depth = base + int(said) if said else next((_indent(line) for line in below if line), 0)
    lines = [line[min(depth, _indent(line)) :] for line in below]
    return (_folded(lines) if value[0] == ">" else "\n".join(lines)).strip("\n")


def _folded(lines: list[str]) -> str:
    parts: list[str] = []
    before, blank = "", 0
    for line in lines:
        if not line:
            blank += 1
            continue
        if parts:
            parts.append("\n" * (blank + (line[0].isspace() or before[0].isspace())) or " ")
        parts.append(line)
        before, blank = line, 0
    return "".join(parts)


def _value(text: str, flow: bool) -> str | list[str]:
    if not flow:
        return text
    if text.startswith("["):
        found = _members(text)
        if found and _ends(found[1]):
            return [_plain(item) for item in found[0] if item.strip()]
        if not found and text.endswith("]"):
            return [_plain(item) for item in text[1:-1].split(",") if item.strip()]
    return _plain(text)


def _faults(value: str, below: list[str], shown: str) -> list[str]:
    """Return why a value cannot be read as YAML would, and the cure."""
    if _BLOCK.fullmatch(value):
        return []
    text, quoted = _text(value, below, 0), "or put the value into quotes"
    found = _members(text) if text.startswith("[") else None
    if (text.startswith("[") and not found) or (text.startswith("{") and "}" not in text):
        kind, sign = ("a list", "]") if text[0] == "[" else ("an object", "}")
        return [f"opens {kind} that it does not close: {shown!r:.60}; close it with '{sign}', {quoted}"]
    if text[:1] in ('"', "'") and not _closing(text, 0) and (len(text) == 1 or text[-1] != text[0]):
        return [f"opens a quotation that it does not close: {shown!r:.60}; close it, or leave the quote out"]
    for one in found[0] if found and _ends(found[1]) else [text]:
        one = one.strip()
        if one[:1] in ("&", "*", "!") and one[1:2].strip():
            return [f"has an anchor, an alias or a tag, which are not read: {shown!r:.60}; write the value itself, {quoted}"]
    return []


def _members(text: str) -> tuple[list[str], str] | None:
    """Return the members of the list that a text begins with, and what follows it; None if it is not closed.

    >>> _members("['it''s, so', b] # two"), _members('["a, b]')
    ((["'it''s, so'", ' b'], ' # two'), None)
    """
    members: list[str] = []
    start = place = 1
    depth, fresh = 0, True  # quotes and brackets mean something at the start of a member only: it's, a[0]
    while place < len(text):
        sign = text[place]
        if fresh and sign in "\"'":
            place = _closing(text, place)
            if not place:
                return None
            fresh = False
        elif fresh and sign in "[{":
            depth += 1
        elif sign in "]}" and depth:
            depth, fresh = depth - 1, False
        elif sign == "]":
            return [*members, text[start:place]], text[place + 1 :]
        elif sign == ",":
            fresh = True
            if not depth:
                members.append(text[start:place])
                start = place + 1
        elif not sign.isspace():
            fresh = False
        place += 1
    return None


def _closing(text: str, start: int) -> int:
    """Return the place of the quote that closes the one at ``start``; 0 if none does."""
    quote, place = text[start], start + 1
    while place < len(text):
        if (quote == '"' and text[place] == "\\") or (quote == "'" and text[place : place + 2] == "''"):
            place += 1
        elif text[place] == quote:
            return place
        place += 1
    return 0


def _plain(value: str) -> str:
    value = value.strip()
    if value[:1] not in ('"', "'"):
        return value
    end = _closing(value, 0)
    if end and _ends(value[end + 1 :]):
        # Of the escapes only the quotes: an export writes a backslash as it is.
        return value[1:end].replace('\\"', '"') if value[0] == '"' else value[1:end].replace("''", "'")
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] else value


def _ends(rest: str) -> bool:
    """True if nothing but a remark follows."""
    return not rest.strip() or (rest[0].isspace() and rest.lstrip().startswith("#"))


def _remark(line: str) -> bool:
    bare = line.strip()
    return bare == "#" or bare.startswith("# ")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


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
