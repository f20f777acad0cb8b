"""Bringing memories in: JSON, JSONL, Markdown notes, and the folders in which Claude and Codex keep theirs.

What is there already is never overwritten unasked, what is wrong is refused one by one, and the source is only read.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ringtrue.errors import InputError, MissingInput, check_choice
from ringtrue.memory.editing import MAIN_FIELD, faults_explained, numbered, refuse_problems, with_id
from ringtrue.memory.hook.files import LARGEST, load, locked, write
from ringtrue.memory.hook.memory import (
    BODY_FIELDS,
    LINKS,
    TIERS,
    TITLE_LIMIT,
    Memory,
    MemoryFault,
    as_record,
    changed,
    from_record,
)
from ringtrue.memory.hook.notes import category_of, from_note, front_end, front_faults, front_matter, note_id
from ringtrue.memory.hook.settings import Settings, read_settings
from ringtrue.memory.record_check import kebab, refuse_secrets, without_secrets

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
            guesses.append(f"confidence is {facts['confidence']!r:.60}, which is not a number: left out")
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
    """Return what is wrong with the front matter of a note, and the cure; nothing if it can be read.

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


Conflict = Literal["skip", "rename", "replace"]
CONFLICTS: tuple[Conflict, ...] = ("skip", "rename", "replace")
NAMED = ("claude", "codex")
ENDINGS = (".json", ".jsonl", ".md")
_LONGEST_FOLDER = 200


@dataclass(frozen=True)
class ImportResult:
    """What an import did, by id; ``renamed`` is old id → new id.

    By place: ``refused`` says why, ``left`` names files that hold no memory, ``guessed`` what was decided for a memory that
    does not say it. ``cut`` are the memories of which the hook does not search the end, with the length of their text.
    """

    added: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)
    guessed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cut: Mapping[str, int] = field(default_factory=dict)
    dry_run: bool = False


def own_notes(name: str, *, project: Path, home: Path) -> Path:
    """Return the folder in which an agent keeps its own memories of a project; raises MissingInput if there is none.

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
    """Return what a file, a folder or ``-`` (``stdin``) holds; raises MissingInput if there is nothing of the name.

    ``now`` dates what has no date. A file that cannot be read is an Incoming with a fault.
    """
    if source == "-":
        text = sys.stdin.read() if stdin is None else stdin
        return [_dated(one, now) for one in _from_json("standard input", text)]
    path = Path(source)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if _visible(file, path))
        if not any(file.suffix in ENDINGS for file in files):
            raise MissingInput(f"{path}: holds no .json, .jsonl or .md file; name the folder of the memories")
        return [_dated(one, now) for file in files for one in _from_file(file)]
    if not path.is_file():
        raise MissingInput(f"{path}: there is no such file or folder")
    if path.suffix not in ENDINGS:
        raise InputError(f"{path}: is neither .json, .jsonl nor .md; rename it, or pipe it in as -")
    return [_dated(one, now) for one in _from_file(path)]


def _visible(file: Path, top: Path) -> bool:
    """True for a file to look at: no settings, nothing generated, no hidden name."""
    inner = file.relative_to(top)
    hidden = any(part.startswith(".") for part in inner.parts)
    made = inner.as_posix() in ("index.md", "memory-config.json")
    return not hidden and not made and (file.is_symlink() or file.is_file())


def _from_file(path: Path) -> Iterator[Incoming]:
    if path.is_symlink() or path.suffix not in ENDINGS:
        why = (
            "it is a link, which is not followed" if path.is_symlink() else f"it is no {', '.join(ENDINGS[:2])} or {ENDINGS[2]}"
        )
        yield Incoming(str(path), None, left=why)
        return
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
        if only_links(text):
            yield Incoming(str(path), None, left="it only lists other notes")
        else:
            yield from_markdown(path, text)
    else:
        yield from _from_json(str(path), text)


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
    except ValueError:  # its first line is not an object either: one broken JSON file rather than many
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
            place, None, f"it holds {record!r:.40}, not a memory; write an object with 'category', 'title' and 'content'"
        )
    return Incoming(place, record)


def _dated(one: Incoming, now: str) -> Incoming:
    if one.record is None or one.record.get("created_at"):
        return one
    record = {**one.record, "created_at": one.record.get("updated_at") or now}
    return replace(one, record=record, made=one.made | {"created_at"})


def bring(
    root: str,
    incoming: Sequence[Incoming],
    *,
    conflict: Conflict = "skip",
    redact: bool = False,
    now: str,
    dry_run: bool = False,
) -> ImportResult:
    """Write what comes in and return what became of each.

    A memory without an id gets one from its title. One whose id is taken is skipped, unless ``conflict`` says to give it
    another id or to replace the one that is there. One with a problem or a secret is refused, and the others still come in.
    """
    check_choice(conflict, CONFLICTS, f"there is no way '{conflict}' with an id that is taken")
    most = read_settings(root)[0].body_max_chars
    refused: dict[str, str] = {}
    guessed: dict[str, tuple[str, ...]] = {}
    cut: dict[str, int] = {}
    with faults_explained(), locked(root):
        known = {memory.id: memory for memory in load(root, Settings()).memories}
        work = _Import(root, conflict, redact, now, dry_run, known)
        for one in incoming:
            try:
                memory = None if one.left else work.take(one)
            except (MemoryFault, InputError) as error:
                refused[one.place] = str(error)
                continue
            if memory is not None and one.guesses:
                guessed[one.place] = one.guesses
            if memory is not None and len(memory.body) > most:
                cut[memory.id] = len(memory.body)
    ids = {name: tuple(found) for name, found in work.done.items()}
    left = {one.place: one.left for one in incoming if one.left}
    return ImportResult(**ids, renamed=work.renamed, refused=refused, left=left, guessed=guessed, cut=cut, dry_run=dry_run)


@dataclass
class _Import:
    """An import under way: the memories that are there by now, and what became of those that came."""

    root: str
    conflict: Conflict
    redact: bool
    now: str
    dry_run: bool
    known: dict[str, Memory]
    here: set[str] = field(default_factory=set)
    """Ids that came with this import."""
    renamed: dict[str, str] = field(default_factory=dict)
    done: dict[str, list[str]] = field(default_factory=lambda: {"added": [], "unchanged": [], "skipped": [], "replaced": []})

    def take(self, one: Incoming) -> Memory | None:
        """Write a memory and return it; None if it is left as it is. Raises InputError or MemoryFault."""
        record, made = _acceptable(one, redact=self.redact)
        memory = from_record(record)
        if "id" in made:
            memory = changed(memory, id=_own_id(memory, one, self.known, self.here, made))
        self.here.add(memory.id)
        there, old = self.known.get(memory.id), memory.id
        if there is not None and (_same(there, memory, made) or self.conflict == "skip"):
            self.done["unchanged" if _same(there, memory, made) else "skipped"].append(old)
            return None
        if there is not None and self.conflict == "rename":
            memory = changed(memory, id=next(name for name in numbered(old) if name not in self.known))
            self._write(memory, new=True)
            self.renamed[old] = memory.id
        elif there is not None:
            if there.category != memory.category:
                raise InputError(f"'{old}' is a {there.category} here and a {memory.category} there; edit the category first")
            memory = changed(memory, path=there.path, updated_at=self.now)
            self._write(memory)
            self.done["replaced"].append(old)
        else:
            self._write(memory, new=True)
            self.done["added"].append(old)
        return memory

    def _write(self, memory: Memory, *, new: bool = False) -> None:
        path = memory.path if self.dry_run else write(self.root, memory, new=new)
        self.known[memory.id] = changed(memory, path=path)


def _acceptable(one: Incoming, *, redact: bool) -> tuple[dict[str, Any], frozenset[str]]:
    """Return a record that can be stored and the fields that were made for it; raises InputError."""
    if one.record is None:
        raise InputError(one.fault)
    made = one.made if one.record.get("id") else one.made | {"id"}
    record = {name: value for name, value in one.record.items() if name != "id" or "id" not in made}
    record = without_secrets(record) if redact else record
    refuse_secrets(record)
    record = with_id(record)  # afterwards: a secret in the title must not come back in the id
    if one.other_id and not record.get("id"):
        record["id"] = one.other_id
    refuse_problems(record, any_content=True)
    return record, made


def _own_id(memory: Memory, one: Incoming, known: Mapping[str, Memory], here: Collection[str], made: Collection[str]) -> str:
    """Return the id of a memory that brought none: by its title, and where another of this import has that, by its path.

    A note that came in by its path before keeps that, and what has to be numbered finds its number again.
    """
    if one.other_id in known:
        return one.other_id
    there = known.get(memory.id)
    if memory.id not in here or (there is not None and _same(there, memory, made)):
        return memory.id
    if one.other_id and one.other_id not in here:
        return one.other_id
    names = numbered(memory.id)
    return next(one for one in names if one not in known or _same(known[one], changed(memory, id=one), made))


def _same(here: Memory, there: Memory, made: Collection[str]) -> bool:
    """True for two memories that say the same; when they were made counts only where the source says it."""
    aside = ("updated_at", "created_at") if "created_at" in made else ("updated_at",)
    one, other = ({name: value for name, value in as_record(side).items() if name not in aside} for side in (here, there))
    return one == other
