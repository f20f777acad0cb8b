"""Adding and changing memories: each change reads and writes while nobody else does, and nothing is ever deleted."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError, MissingInput, check_choice, nearest
from ringtrue.memory.hook.files import find, load, locked, remove, write
from ringtrue.memory.hook.memory import (
    BODY_FIELDS,
    CATEGORIES,
    FIELDS,
    ID_LIMIT,
    LINKS,
    Memory,
    MemoryFault,
    as_record,
    changed,
    from_record,
)
from ringtrue.memory.hook.settings import Settings, read_settings
from ringtrue.memory.record_check import id_problem, kebab, problems, refuse_secrets, title_problem, without_secrets

Record = Mapping[str, Any]
MAIN_FIELD = {
    "decision": "decision",
    "constraint": "rule",
    "preference": "value",
    "runbook": "steps",
    "tech_debt": "description",
    "session_summary": "outcome",
}
"""Where a text goes that names no field."""
LISTS = ("tags", "related_files", "trigger_phrases", "supersedes")
SETTABLE = ("title", "category", "tags", "record_status", "importance_tier", "confidence", "related_files", "trigger_phrases",
            "supersedes", "spec_folder", "created_at")  # fmt: skip
_NOT_HERE = {
    "id": "an id stays, since others name it; add a memory with the new id and supersede this one",
    "updated_at": "it is written with every change",
    "schema_version": "it is written with every change",
    "links": "use `ringtrue memory link`",
}


@contextmanager
def faults_explained() -> Iterator[None]:
    """Turn what the quick half refuses into InputError."""
    try:
        yield
    except MemoryFault as fault:
        raise InputError(str(fault)) from None


def get(root: str, memory_id: str, settings: Settings | None = None) -> Memory:
    """Return a memory by its id, from the further folders too; raises MissingInput with the nearest ids."""
    memory = find(root, memory_id)
    if memory is not None:
        return memory
    known = {one.id: one for one in load(root, settings or read_settings(root)[0]).memories}
    if memory_id in known:
        return known[memory_id]
    cure = "see `ringtrue memory list`" if known else "add one with `ringtrue memory add`"
    near = near_ids(memory_id, known)
    raise MissingInput(f"there is no memory '{memory_id}' in {root}; {f'did you mean {near}?' if near else cure}")


def near_ids(memory_id: str, known: Collection[str]) -> str:
    """Return the ids that somebody may have meant, as ``'a' or 'b'``; nothing if none is near.

    >>> near_ids("session-are-jwt", ["sessions-are-jwt", "redis-is-full"]), near_ids("jwt", ["sessions-are-jwt"])
    ("'sessions-are-jwt'", "'sessions-are-jwt'")
    """
    words = set(memory_id.lower().split("-"))
    holding = sorted(name for name in known if words <= set(name.split("-")))[:3]
    # Of long ids half is soon the same: 'prices-are-stored-as-cents' is not 'sessions-are-stored-in-redis'.
    close = difflib.get_close_matches(memory_id.lower(), known, n=3, cutoff=0.75 if len(memory_id) > 8 else 0.6) or holding
    return nearest(memory_id, close) if close else ""


def draft(
    *,
    category: str,
    title: str,
    now: str,
    text: str = "",
    memory_id: str | None = None,
    values: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the record of a new memory; ``text`` is its main field, ``values`` further fields as ``edit`` takes them.

    Raises InputError for a category, a field or a value that does not exist.

    >>> made = draft(category="preference", title="Small commits", text="one change each", now="2026-03-01T12:00:00Z")
    >>> made["id"], made["content"]
    ('small-commits', {'value': 'one change each'})
    """
    check_choice(category, CATEGORIES, f"category is {category!r}")
    problem = title_problem(title) or (id_problem(memory_id) if memory_id is not None else None)
    if problem:
        raise InputError(problem)
    memory = Memory(
        id=kebab(title) if memory_id is None else memory_id,
        category=category,
        title=title,
        body="",
        created_at=now,
        updated_at=now,
        content={MAIN_FIELD[category]: text} if text else {},
    )
    if not memory.id:
        raise InputError(f"no id can be made from the title {title!r}; name one with --id")
    return as_record(_with(memory, values or {}))


def with_id(record: Record) -> dict[str, Any]:
    """Return the record of a memory with an id: its own, else one made from its title.

    >>> with_id({"title": "Small commits"})["id"]
    'small-commits'
    """
    title = record.get("title")
    if record.get("id") not in (None, "") or not isinstance(title, str) or not kebab(title):
        return dict(record)
    return {**record, "id": kebab(title)}


def add(root: str, record: Record, *, redact: bool = False) -> Memory:
    """Write a new memory and return it; one without an id gets it from its title.

    Raises InputError for an id that is taken, for every problem of the record, and for a secret unless it is to be redacted.
    """
    record = without_secrets(record) if redact else record
    refuse_secrets(record)
    record = with_id(record)  # afterwards: a secret in the title must not come back in the id
    refuse_problems(record)
    with faults_explained(), locked(root):
        taken = find(root, str(record["id"]))
        if taken is not None:
            raise InputError(
                f"memory '{taken.id}' already exists ({taken.title!r}, {taken.status}); "
                f"edit that one, or choose another id with --id {free_id(root, taken.id)}"
            )
        memory = from_record(dict(record))
        return changed(memory, path=write(root, memory, new=True))


def free_id(root: str, memory_id: str) -> str:
    """Return an id like this one, with a number behind it, that no memory of the folder has."""
    taken = {memory.id for memory in load(root, Settings()).memories}
    return next(name for name in numbered(memory_id) if name not in taken)


def numbered(memory_id: str) -> Iterator[str]:
    """Yield an id with 2, 3 and so on behind it, each within the limit.

    >>> next(numbered("small-commits"))
    'small-commits-2'
    """
    return (f"{memory_id[: ID_LIMIT - len(str(number)) - 1].rstrip('-')}-{number}" for number in count(2))


def edit(root: str, memory_id: str, values: Mapping[str, str], *, now: str, redact: bool = False) -> Memory:
    """Set fields of a memory, each given as text, and return the memory as it is now.

    A name is a field, ``content.NAME``, or a field of the category's content; a value that begins like JSON is read as such,
    lists of tags and the like may be separated by commas, and an empty one takes the field away.
    """
    return change(root, memory_id, lambda memory: _with(memory, values), now=now, redact=redact)


def replace(root: str, memory_id: str, record: Record, *, was: Record, now: str, redact: bool = False) -> Memory:
    """Write a whole record that somebody edited; raises InputError if the memory has changed since it ``was`` read."""

    def swap(memory: Memory) -> Memory:
        if as_record(memory) != dict(was):
            raise InputError(f"'{memory_id}' was changed by somebody else during your edit; nothing was written, edit it again")
        if record.get("id") != memory_id:
            raise InputError(f"the id became {record.get('id')!r}; {_NOT_HERE['id']}")
        with faults_explained():
            return changed(from_record(dict(record)), path=memory.path)

    return change(root, memory_id, swap, now=now, redact=redact)


def change(root: str, memory_id: str, make: Callable[[Memory], Memory], *, now: str, redact: bool = False) -> Memory:
    """Read a memory, write what ``make`` returns for it, and return that, while nobody else changes anything.

    Nothing is written where nothing changes. Raises InputError for what ``make`` made wrong that was right before.
    """
    with faults_explained(), locked(root):
        return _changed(root, _own(root, memory_id), make, now=now, redact=redact)


def set_status(root: str, memory_id: str, status: str, *, now: str) -> Memory:
    """Retire, archive or bring back a memory; its file stays. Returns it as it is now."""
    return change(root, memory_id, lambda memory: changed(memory, status=status), now=now)


def supersede(root: str, old_id: str, new_id: str, *, now: str) -> tuple[Memory, Memory]:
    """Say that one memory took the place of another: the old one is retired and the new one names it. Returns (old, new)."""
    if old_id == new_id:
        raise InputError(f"'{old_id}' cannot supersede itself; name the memory that took its place")
    with faults_explained(), locked(root):
        old, new = _own(root, old_id), _own(root, new_id)
        if new.status != "active":
            raise InputError(f"'{new_id}' is {new.status}; a memory that is not shown cannot take the place of another")
        if new_id in old.supersedes:
            raise InputError(f"'{old_id}' supersedes '{new_id}' already; take that back with edit {old_id} --set supersedes=")
        # The new one first: where this is cut short, both are shown and doctor says so; the other way round none would be.
        names = tuple(dict.fromkeys((*new.supersedes, old_id)))
        after = _changed(root, new, lambda memory: changed(memory, supersedes=names), now=now)
        return _changed(root, old, lambda memory: changed(memory, status="retired"), now=now), after


def link(root: str, from_id: str, kind: str, to_id: str, *, now: str, take_away: bool = False) -> Memory:
    """Add a causal link, or take one away, and return the memory that holds it."""
    check_choice(kind, LINKS, f"there is no link '{kind}'")
    if from_id == to_id:
        raise InputError(f"'{from_id}' cannot be linked with itself; name another memory")
    if not take_away:
        get(root, to_id)

    def linked(memory: Memory) -> Memory:
        here = memory.links.get(kind, ())
        if take_away and to_id not in here:
            raise InputError(f"'{from_id}' has no link {kind} to '{to_id}'; see `ringtrue memory show {from_id}`")
        kept = tuple(one for one in here if one != to_id) if take_away else tuple(dict.fromkeys((*here, to_id)))
        return changed(memory, links={name: ids for name, ids in {**memory.links, kind: kept}.items() if ids})

    return change(root, from_id, linked, now=now)


def refuse_problems(record: Record, *, before: Record | None = None, any_content: bool = False) -> None:
    """Raise InputError for the problems of a record, less those it had before; for ``any_content`` see ``problems``."""
    old = set(problems(before)) if before is not None else set()
    found = [problem for problem in problems(record, any_content=any_content) if problem not in old]
    if found:
        more = f" (and {len(found) - 1} more: {'; '.join(found[1:3])})" if len(found) > 1 else ""
        raise InputError(f"{found[0]}{more}")


def _own(root: str, memory_id: str) -> Memory:
    memory = get(root, memory_id)
    if memory.source != "memory" or not Path(memory.path).resolve().is_relative_to(Path(root).resolve()):
        raise InputError(f"'{memory_id}' lies in {memory.path}, which is only read; bring it in with `ringtrue memory import`")
    return memory


def _changed(root: str, memory: Memory, make: Callable[[Memory], Memory], *, now: str, redact: bool = False) -> Memory:
    before = as_record(memory)
    after = make(memory)
    if redact:
        after = changed(from_record(without_secrets(as_record(after))), path=after.path)
    if as_record(after) == before:
        return memory
    after = changed(after, updated_at=now)
    record = as_record(after)
    refuse_secrets(record, before=before)
    refuse_problems(record, before=before)
    if after.category == memory.category:
        write(root, after)
        return after
    # Another category is another folder. The new file is there before the old one goes.
    moved = changed(after, path="")
    path = write(root, moved, new=True)
    remove(root, memory)
    return changed(moved, path=path)


def _with(memory: Memory, values: Mapping[str, str]) -> Memory:
    record = as_record(memory)
    content = dict(record["content"])
    if "category" in values:  # the fields that follow are those of the new one
        record["category"] = _value("category", values["category"])
        if record["category"] not in CATEGORIES:
            raise InputError(f"category is {values['category']!r}; did you mean {nearest(values['category'], CATEGORIES)}?")
    fields = BODY_FIELDS[record["category"]]
    for name, text in values.items():
        if name in _NOT_HERE:
            raise InputError(f"{name} cannot be set; {_NOT_HERE[name]}")
        inner = name.removeprefix("content.")
        target, key = (record, name) if name in SETTABLE else (content, inner)
        if target is content and inner not in fields and inner not in content:
            raise InputError(f"there is no field '{name}'; did you mean {nearest(inner, (*fields, *SETTABLE))}?")
        value = _value(key if target is record else "", text)
        if value in ("", []) and key not in ("title", "category"):
            target.pop(key, None)
        else:
            target[key] = value
    record["content"] = content
    record.setdefault("tags", [])
    with faults_explained():
        return changed(from_record(record), path=memory.path)


def _value(name: str, text: str) -> Any:
    """Return what a text on the command line stands for."""
    import json

    bare = text.strip()
    if bare[:1] in ("[", "{") and name not in ("title", "spec_folder"):
        try:
            return json.loads(bare)
        except ValueError as error:
            if name in LISTS or bare[:1] == "{":
                raise InputError(f'{bare!r:.60} is not JSON: {error}; write a list such as ["one", "two"]') from None
            return text
    if name in LISTS:
        return [part.strip() for part in bare.split(",") if part.strip()]
    if name == "confidence" and bare:
        try:
            return float(bare)
        except ValueError:
            raise InputError(f"confidence is {bare!r}; write a number from 0 to 1") from None
    return bare if name else text.strip()


assert set(SETTABLE) | set(_NOT_HERE) == set(FIELDS) - {"content"}  # a new field must be given its place here
