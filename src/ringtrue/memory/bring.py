"""Bringing memories in: JSON, JSONL, Markdown notes, and the folders in which Claude and Codex keep theirs (A-2).

What is there already is never overwritten unasked, what is wrong is refused one by one, and the source is only read.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.memory.check import kebab
from ringtrue.memory.keep import MAIN_FIELD, faults_explained, refuse_problems
from ringtrue.memory.secrets import refuse_secrets, without_secrets
from ringtrue.recall.files import LARGEST, load, locked, write
from ringtrue.recall.memory import BODY_FIELDS, ID_LIMIT, LINKS, MemoryFault, as_record, changed, from_record
from ringtrue.recall.notes import from_note
from ringtrue.recall.settings import Settings

Conflict = Literal["skip", "rename", "replace"]
CONFLICTS: tuple[Conflict, ...] = ("skip", "rename", "replace")
NAMED = ("claude", "codex")
_HEADING = re.compile(r"^## ([a-z_]+)$", re.M)
_LONGEST_FOLDER = 200


@dataclass(frozen=True)
class Incoming:
    """One memory of a source: where it was read, and its record, or what is wrong with it."""

    place: str
    record: Mapping[str, Any] | None
    fault: str = ""


@dataclass(frozen=True)
class Brought:
    """What an import did, by id; ``renamed`` is old id → new id, ``refused`` is place → why."""

    added: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False


def own_notes(name: str, *, project: Path, home: Path) -> Path:
    """Return the folder in which an agent keeps its own memories of a project; raises MissingInput where there is none.

    Claude's is ``~/.claude/projects/<path of the project>/memory``, every sign of the path but letters and digits a ``-``.
    """
    if name == "codex":
        folder = home / ".codex" / "memories"
    else:
        slug = re.sub(r"[^A-Za-z0-9]", "-", str(project))
        projects = home / ".claude" / "projects"
        folder = projects / slug / "memory"
        if len(slug) > _LONGEST_FOLDER:  # the host cuts the name and adds a hash of its own
            likely = sorted(projects.glob(f"{slug[:_LONGEST_FOLDER]}*/memory"))
            folder = likely[0] if len(likely) == 1 else folder
    if not folder.is_dir():
        raise MissingInput(f"{folder}: there is no such folder, so {name} keeps no memories of {project}; name a path instead")
    return folder


def read_source(source: str, *, now: str, stdin: str | None = None) -> list[Incoming]:
    """Return what a file, a folder or ``-`` (``stdin``) holds; raises MissingInput where there is nothing of the name.

    ``now`` dates what has no date. A file that cannot be read is an Incoming with a fault.
    """
    if source == "-":
        text = sys.stdin.read() if stdin is None else stdin
        return [_dated(one, now) for one in _from_json("standard input", text)]
    path = Path(source)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix in (".json", ".jsonl", ".md") and _visible(file, path))
        if not files:
            raise MissingInput(f"{path}: holds no .json, .jsonl or .md file; name the folder of the memories")
        return [_dated(one, now) for file in files for one in _from_file(file)]
    if not path.is_file():
        raise MissingInput(f"{path}: there is no such file or folder")
    if path.suffix not in (".json", ".jsonl", ".md"):
        raise InputError(f"{path}: is neither .json, .jsonl nor .md; rename it, or pipe it in as -")
    return [_dated(one, now) for one in _from_file(path)]


def _visible(file: Path, top: Path) -> bool:
    """True for a file to look at: no settings, nothing generated, no hidden name, and no link that leads elsewhere."""
    inner = file.relative_to(top)
    hidden = any(part.startswith(".") for part in inner.parts)
    made = inner.as_posix() in ("index.md", "memory-config.json")
    return file.is_file() and not file.is_symlink() and not hidden and not made


def _from_file(path: Path) -> Iterator[Incoming]:
    try:
        if path.stat().st_size > LARGEST and path.suffix == ".md":
            raise InputError(f"the file is larger than {LARGEST:,} bytes")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        yield Incoming(str(path), None, f"the file is not UTF-8 at byte {error.start}; save it as UTF-8")
        return
    except (OSError, InputError) as error:
        yield Incoming(str(path), None, f"the file cannot be read: {error}")
        return
    if path.suffix == ".md":
        if not _only_links(text):
            yield _from_markdown(path, text)
    else:
        yield from _from_json(str(path), text)


def _only_links(text: str) -> bool:
    """True for the page on which an agent lists its other notes, such as MEMORY.md: headings and links, nothing to learn."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return bool(lines) and all(re.match(r"[-*]\s*\[[^\]]+\]\([^)]+\.md\)", line) for line in lines)


def _from_json(place: str, text: str) -> Iterator[Incoming]:
    try:
        whole = json.loads(text)
    except RecursionError:
        yield Incoming(place, None, "it is nested too deeply to be a memory")
        return
    except ValueError as error:
        if "\n" not in text.strip():
            yield Incoming(place, None, f"it is not JSON: {error}")
            return
        yield from _from_lines(place, text, error)
        return
    if isinstance(whole, dict) and isinstance(whole.get("memories"), list):
        whole = whole["memories"]
    if isinstance(whole, list):
        for number, record in enumerate(whole, 1):
            yield _record(f"{place}, number {number}", record)
    else:
        yield _record(place, whole)


def _from_lines(place: str, text: str, whole: ValueError) -> Iterator[Incoming]:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    try:
        json.loads(lines[0][1])
    except ValueError:  # its first line is no object either: one broken JSON file rather than many
        yield Incoming(place, None, f"it is not JSON: {whole}")
        return
    for number, line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Incoming(f"{place}, line {number}", None, f"it is not JSON: {error}")
        else:
            yield _record(f"{place}, line {number}", record)


def _record(place: str, record: Any) -> Incoming:
    if not isinstance(record, dict):
        return Incoming(
            place, None, f"it holds {record!r:.40}, not a memory; write an object with 'id', 'category' and 'title'"
        )
    return Incoming(place, record)


def _from_markdown(path: Path, text: str) -> Incoming:
    try:
        note = from_note(text, str(path))
    except MemoryFault as fault:
        return Incoming(str(path), None, str(fault))
    facts = note.extra
    category = note.category
    record = as_record(changed(note, content=_sections(category, note.body), extra={}, id=kebab(note.id) or note.id))
    record["title"] = " ".join(note.title.split())
    if not note.updated_at:
        record["updated_at"] = datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for name in ("supersedes", *LINKS):
        value = facts.get(name)
        if value:
            record[name] = value if isinstance(value, list) else [value]
    if isinstance(facts.get("spec_folder"), str) and facts["spec_folder"]:
        record["spec_folder"] = facts["spec_folder"]
    try:
        record["confidence"] = float(facts["confidence"])
    except (KeyError, ValueError, TypeError):
        record.pop("confidence", None)
    return Incoming(str(path), record)


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


def _dated(one: Incoming, now: str) -> Incoming:
    if one.record is None:
        return one
    record = dict(one.record)
    record["created_at"] = record.get("created_at") or record.get("updated_at") or now
    return Incoming(one.place, record, one.fault)


def bring(
    root: str,
    incoming: Sequence[Incoming],
    *,
    conflict: Conflict = "skip",
    redact: bool = False,
    now: str,
    dry_run: bool = False,
) -> Brought:
    """Write what comes in and return what became of each.

    A memory whose id is taken is skipped, unless ``conflict`` says to give it another id or to replace the one that is there.
    One with a problem or a secret is refused, and the others still come in.
    """
    if conflict not in CONFLICTS:
        raise InputError(f"there is no way '{conflict}' with an id that is taken; did you mean {nearest(conflict, CONFLICTS)}?")
    added: list[str] = []
    unchanged: list[str] = []
    skipped: list[str] = []
    replaced: list[str] = []
    renamed: dict[str, str] = {}
    refused: dict[str, str] = {}
    with faults_explained(), locked(root):
        known = {memory.id: memory for memory in load(root, Settings()).memories}
        for one in incoming:
            try:
                record = _acceptable(one, redact=redact)
                memory = from_record(record)
                there = known.get(memory.id)
                if there is not None and _same(as_record(there), as_record(memory)):
                    unchanged.append(memory.id)
                    continue
                if there is not None and conflict == "skip":
                    skipped.append(memory.id)
                    continue
                old = memory.id
                if there is not None and conflict == "rename":
                    memory = changed(memory, id=_free(memory.id, known))
                elif there is not None:
                    if there.category != memory.category:
                        raise InputError(
                            f"'{old}' is a {there.category} here and a {memory.category} there; edit the category first"
                        )
                    memory = changed(memory, path=there.path, updated_at=now)
                path = memory.path if dry_run else write(root, memory, new=there is None or conflict == "rename")
            except (MemoryFault, InputError) as error:
                refused[one.place] = str(error)
                continue
            known[memory.id] = changed(memory, path=path)
            if there is None:
                added.append(memory.id)
            elif conflict == "rename":
                renamed[old] = memory.id
            else:
                replaced.append(memory.id)
    return Brought(tuple(added), tuple(unchanged), tuple(skipped), tuple(replaced), renamed, refused, dry_run)


def _acceptable(one: Incoming, *, redact: bool) -> dict[str, Any]:
    if one.record is None:
        raise InputError(one.fault)
    record = without_secrets(one.record) if redact else dict(one.record)
    refuse_secrets(record)
    refuse_problems(record, any_content=True)
    return record


def _same(here: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    return {**here, "updated_at": ""} == {**there, "updated_at": ""}


def _free(memory_id: str, known: Mapping[str, object]) -> str:
    number = 2
    while (name := f"{memory_id[: ID_LIMIT - len(str(number)) - 1].rstrip('-')}-{number}") in known:
        number += 1
    return name
