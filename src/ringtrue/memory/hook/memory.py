"""One memory as a value, and its JSON file. The file is the truth; everything else is made from it.

Classes are written by hand: ``dataclasses`` and ``typing`` alone would cost a hook as much time as reading a hundred memories.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SCHEMA_VERSION = "1.0"
BODY_FIELDS: dict[str, tuple[str, ...]] = {
    "decision": ("context", "decision", "rationale", "consequences", "alternatives"),
    "constraint": ("rule", "impact", "workarounds"),
    "preference": ("topic", "value", "reason"),
    "runbook": ("trigger", "symptoms", "steps", "verification", "root_cause", "environment"),
    "tech_debt": ("description", "reason_deferred", "impact", "suggested_fix", "acceptance_criteria"),
    "session_summary": ("goal", "outcome", "completed", "in_progress", "blockers", "next_actions", "key_changes"),
}
"""The fields of ``content`` that are searched, in their order; the categories stand in the order that breaks ties."""
CATEGORIES = tuple(BODY_FIELDS)
PRIORITY = {category: place for place, category in enumerate(CATEGORIES)}
TIERS = ("constitutional", "critical", "important", "normal", "temporary")
STATUSES = ("active", "retired", "archived")
LINKS = ("caused_by", "leads_to", "supports", "contradicts")
RETENTION_DAYS = {"session_summary": 90}
"""How long a category is shown after its last change; 0, and whatever is not named, is for ever."""
ID_LIMIT, TITLE_LIMIT = 80, 120
ID_READ, TITLE_READ = 200, 1200
"""Characters up to which an id and a title of a file are read all the same; doctor reports what is beyond the limits."""
FIELDS = (
    "schema_version", "category", "id", "title", "created_at", "updated_at", "tags", "record_status", "importance_tier",
    "confidence", "related_files", "trigger_phrases", "supersedes", "links", "spec_folder", "content",
)  # fmt: skip
_OURS = frozenset((*FIELDS, *LINKS))


class MemoryFault(ValueError):
    """A memory that cannot be used: what is wrong and the cure, in one line."""


class Memory:
    """What was learned once and should appear when it matters again.

    ``extra`` keeps the fields of the file that are not ours, so that writing a memory back loses nothing.
    """

    __slots__ = (
        "body", "category", "confidence", "content", "created_at", "extra", "id", "links", "path", "related_files", "source",
        "spec_folder", "status", "supersedes", "tags", "tier", "title", "trigger_phrases", "updated_at",
    )  # fmt: skip

    def __init__(
        self,
        *,
        id: str,
        category: str,
        title: str,
        body: str,
        tags: tuple[str, ...] = (),
        created_at: str = "",
        updated_at: str = "",
        content: Mapping[str, Any] | None = None,
        related_files: tuple[str, ...] = (),
        confidence: float | None = None,
        status: str = "active",
        tier: str = "normal",
        trigger_phrases: tuple[str, ...] = (),
        supersedes: tuple[str, ...] = (),
        links: Mapping[str, tuple[str, ...]] | None = None,
        spec_folder: str | None = None,
        path: str = "",
        source: str = "memory",
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.id, self.category, self.title, self.body, self.tags = id, category, title, body, tags
        self.created_at, self.updated_at, self.content = created_at, updated_at, content or {}
        self.related_files, self.confidence, self.status, self.tier = related_files, confidence, status, tier
        self.trigger_phrases, self.supersedes, self.links = trigger_phrases, supersedes, links or {}
        self.spec_folder, self.path, self.source, self.extra = spec_folder, path, source, extra or {}

    def __repr__(self) -> str:
        return f"Memory({self.category}/{self.id}: {self.title!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Memory) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # it holds mappings


def body_of(category: str, content: Mapping[str, Any]) -> str:
    """Return the searchable text of a memory: its content fields in the order of its category, one a line.

    >>> body_of("preference", {"reason": "plain diffs", "topic": "commits", "value": ["small", "imperative"]})
    'commits\\nsmall\\nimperative\\nplain diffs'
    """
    known = BODY_FIELDS.get(category, ())
    names = [name for name in known if name in content]
    if len(names) < len(content):
        names += [name for name in content if name not in known]
    lines: list[str] = []
    for name in names:
        value = content[name]
        if type(value) is str:
            if value:
                lines.append(value)
        else:
            _lines(value, lines)
    return "\n".join(lines)


def _lines(value: Any, lines: list[str]) -> None:
    if isinstance(value, list):
        for item in value:
            _lines(item, lines)
    elif isinstance(value, dict):
        for item in value.values():
            _lines(item, lines)
    elif value is not None and value != "":
        lines.append(str(value))


def from_record(record: Any, path: str = "") -> Memory:
    """Return the memory in the object of a file; raises MemoryFault for the first thing that makes it unusable.

    What a search needs is checked here, once, as cheaply as can be; ``problems`` in ``ringtrue.memory`` lists everything.
    """
    if type(record) is not dict:
        raise MemoryFault(f"the file holds {_shown(record)}, not a memory; write one object with 'id', 'category' and 'title'")
    content = record.get("content", {})
    if type(content) is not dict:
        raise MemoryFault(f"content is {_shown(content)}; write an object with the fields of the category")
    category = _one_of(record, "category", CATEGORIES, None)
    links = record.get("links")
    if links is None:
        links = {}
    elif type(links) is not dict:
        raise MemoryFault(f"links is {_shown(links)}; write an object such as {{'leads_to': ['another-id']}}")
    for kind in LINKS:  # the causal links may also stand beside the other fields
        if kind in record:
            links = {**links, kind: [*_texts(links, kind), *_texts(record, kind)]}
    confidence = record.get("confidence")
    if confidence is not None and (type(confidence) not in (int, float) or not 0 <= confidence <= 1):
        raise MemoryFault(f"confidence is {_shown(confidence)}; write a number from 0 to 1")
    supersedes = record.get("supersedes")
    return Memory(
        id=checked_id(_text(record, "id")),
        category=category,
        title=_title(record),
        body=body_of(category, content),
        tags=_texts(record, "tags"),
        created_at=_text(record, "created_at", ""),
        updated_at=_text(record, "updated_at", "") or _text(record, "created_at", ""),
        content=content,
        related_files=_texts(record, "related_files"),
        confidence=confidence,
        status=_one_of(record, "record_status", STATUSES, "active"),
        tier=_one_of(record, "importance_tier", TIERS, "normal"),
        trigger_phrases=_texts(record, "trigger_phrases"),
        supersedes=(supersedes,) if type(supersedes) is str else _texts(record, "supersedes"),
        links={kind: _texts(links, kind) for kind, ids in links.items() if ids},
        spec_folder=_text(record, "spec_folder", "") or None,
        path=path,
        extra={
            name: value
            for name, value in record.items()
            if name not in _OURS or (name == "schema_version" and value != SCHEMA_VERSION)
        },
    )


def checked_id(text: str) -> str:
    """Return an id; raises MemoryFault for one that nobody could name: too long, or with characters that cannot be seen.

    >>> checked_id("jwt\u202e-sessions")
    Traceback (most recent call last):
        ...
    ringtrue.memory.hook.memory.MemoryFault: id is 'jwt\\u202e-sessions'; write small letters, digits and '-', at most 80
    """
    bad = len(text) > ID_READ or not text.isprintable()
    if not bad and not text.isascii():
        from unicodedata import category

        bad = any(category(letter)[0] == "M" for letter in text)
    if bad:
        raise MemoryFault(f"id is {_shown(text)}; write small letters, digits and '-', at most {ID_LIMIT}")
    return text


def _title(record: Mapping[str, Any]) -> str:
    title = _text(record, "title")
    if len(title) > TITLE_READ:
        raise MemoryFault(f"title has {len(title)} characters; write at most {TITLE_LIMIT} and put the rest into content")
    return title


def as_record(memory: Memory) -> dict[str, Any]:
    """Return the object to write into the file, its fields always in the same order so that git merges line by line."""
    record: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "category": memory.category,
        "id": memory.id,
        "title": memory.title,
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
        "tags": list(memory.tags),
        "record_status": memory.status,
        "importance_tier": memory.tier,
    }
    optional = {
        "confidence": memory.confidence,
        "related_files": list(memory.related_files),
        "trigger_phrases": list(memory.trigger_phrases),
        "supersedes": list(memory.supersedes),
        "links": {
            kind: list(memory.links[kind])
            for kind in (*LINKS, *sorted(memory.links.keys() - set(LINKS)))
            if memory.links.get(kind)
        },
        "spec_folder": memory.spec_folder,
    }
    record.update((name, value) for name, value in optional.items() if value not in (None, [], {}))
    record.update(memory.extra)
    record["content"] = dict(memory.content)
    return record


def changed(memory: Memory, **changes: Any) -> Memory:
    """Return a memory with other values in some of its fields; the body follows the content.

    >>> old = Memory(id="x", category="preference", title="Tabs", body="tabs", content={"topic": "tabs"})
    >>> changed(old, content={"topic": "blanks"}).body, old.body
    ('blanks', 'tabs')
    """
    values = {name: getattr(memory, name) for name in Memory.__slots__} | changes
    if "body" not in changes and changes.keys() & {"content", "category"}:
        values["body"] = body_of(values["category"], values["content"])
    return Memory(**values)


_MISSING = object()


def _text(record: Mapping[str, Any], name: str, default: Any = _MISSING) -> str:
    value = record.get(name)
    if type(value) is str and (value.strip() or default is not _MISSING):
        return value
    if value is None and default is not _MISSING:
        return str(default)
    raise MemoryFault(f"{name} is {_shown(value)}; write a text")


def _texts(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = record.get(name)
    if not value and (value is None or type(value) is list):
        return ()
    if type(value) is list:
        for item in value:
            if type(item) is not str:
                break
        else:
            return tuple(value)
    raise MemoryFault(f"{name} is {_shown(value)}; write a list of texts")


def _one_of(record: Mapping[str, Any], name: str, allowed: tuple[str, ...], default: str | None) -> str:
    value = record.get(name)
    if value is None and default is not None:
        return default
    if type(value) is str and value in allowed:
        return value
    raise MemoryFault(f"{name} is {_shown(value)}; write one of {', '.join(allowed)}")


def _shown(value: object) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
