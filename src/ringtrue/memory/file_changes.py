"""Changes to files that are gathered first, then told or made; and the note of what was there before, by which they are undone.

A note (``install.json``, in a folder of ours) names every file that was made with the hash of what was written, every file of
others that was changed with its old bytes, and every folder that was made. Undoing removes and restores exactly these.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ringtrue.errors import InputError

NOTE = "install.json"
FORM = 1
Action = Literal["create", "change", "remove"]


@dataclass(frozen=True)
class Change:
    """What happens to one file."""

    action: Action
    path: Path


@dataclass(frozen=True)
class Changed:
    """A file of somebody else with entries of ours in it: its bytes before, None if it was not there, and the hash after."""

    kind: str
    before: bytes | None
    after: str


@dataclass(frozen=True)
class Note:
    """What an installation did; paths are relative to the folder it was made in."""

    version: str
    made: Mapping[str, str] = field(default_factory=dict)
    """Path → hash of what was written."""
    changed: Mapping[str, Changed] = field(default_factory=dict)
    folders: tuple[str, ...] = ()


class Files:
    """Files as they are going to be. Nothing happens before ``apply``."""

    def __init__(self) -> None:
        self._wanted: dict[Path, bytes | None] = {}

    def read(self, path: Path) -> bytes | None:
        """Return a file as it is going to be; None if there is none. Raises InputError if it cannot be read."""
        path = _real(path)
        if path in self._wanted:
            return self._wanted[path]
        return _on_disk(path)

    def write(self, path: Path, data: bytes) -> None:
        self._wanted[_real(path)] = data

    def remove(self, path: Path) -> None:
        self._wanted[_real(path)] = None

    def changes(self) -> list[Change]:
        """Return what differs from the disk, in the order of the paths."""
        found = []
        for path, data in sorted(self._wanted.items()):
            there = _on_disk(path)
            if there != data:
                found.append(Change("remove" if data is None else "create" if there is None else "change", path))
        return found

    def apply(self) -> None:
        """Write every file whole, beside its place and then moved there; remove what is to go."""
        for change in self.changes():
            data = self._wanted[change.path]
            if data is None:
                change.path.unlink()
            else:
                _put(change.path, data)


def _real(path: Path) -> Path:
    """Follow links: configuration is often a link into a repository of dotfiles, and a rename would replace the link."""
    return Path(os.path.realpath(path))


def _on_disk(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise InputError(f"{path}: {problem.strerror}; nothing was changed") from None


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name[:40]}.{secrets.token_hex(6)}.tmp")
    # A note holds old bytes of others' files, which may be private.
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600 if path.name == NOTE else 0o666
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def hash_of(data: bytes) -> str:
    """Return the hash by which a file is known to be as it was written."""
    return hashlib.sha256(data).hexdigest()


def missing_folders(paths: Iterable[Path], base: Path) -> list[str]:
    """Return the folders under ``base`` that these files need and that are not there, relative to it."""
    found = {
        parent.relative_to(base).as_posix()
        for path in paths
        for parent in path.parents
        if parent != base and parent.is_relative_to(base) and not parent.exists()
    }
    return sorted(found)


def remove_empty(base: Path, folders: Iterable[str]) -> None:
    """Remove those of the folders that are empty, the deepest first."""
    for folder in sorted(folders, key=lambda name: (-name.count("/"), name)):
        with contextlib.suppress(OSError):  # something else lies in it, or it is gone
            (base / folder).rmdir()


# ── the note ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_note(path: Path) -> Note | None:
    """Return the note of an installation, None if there is none; raises InputError for one that cannot be understood."""
    data = _on_disk(path)
    if data is None:
        return None
    try:
        record = json.loads(data)
        if record["form"] != FORM:
            raise InputError(f"{path} was written by another Ringtrue (form {record['form']}); uninstall with that one")
        return Note(
            str(record["version"]),
            {_inner(name): str(value) for name, value in record["made"].items()},
            {_inner(name): _changed(value) for name, value in record["changed"].items()},
            tuple(_inner(name) for name in record["folders"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise InputError(
            f"{path} is damaged ({type(problem).__name__}), so what was installed is not known; remove {path.parent} by hand"
        ) from None


def _inner(name: str) -> str:
    """Return a relative path that stays inside; a note that names others is damaged."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(name)
    return name


def _changed(value: Mapping[str, Any]) -> Changed:
    before = value["before"]
    return Changed(str(value["kind"]), None if before is None else base64.b64decode(before), str(value["after"]))


def written(note: Note) -> bytes:
    """Return a note as its file has it."""
    changed = {
        name: {
            "kind": one.kind,
            "before": None if one.before is None else base64.b64encode(one.before).decode("ascii"),
            "after": one.after,
        }
        for name, one in sorted(note.changed.items())
    }
    record = {
        "form": FORM, "version": note.version, "made": dict(sorted(note.made.items())), "changed": changed,
        "folders": sorted(note.folders),
    }  # fmt: skip
    return (json.dumps(record, indent=1) + "\n").encode()


def undo(files: Files, note: Note, base: Path, strip: Callable[[str, str, bytes, bytes | None], bytes | None]) -> list[str]:
    """Take back what a note says, as changes to ``files``; return what was left alone and why, a line each.

    A file of others that is as it was written gets its old bytes back. One that was edited since loses our entries alone, by
    ``strip`` (its path, kind, bytes, and those before), which may raise InputError; then nothing has happened.
    """
    left = []
    for name, one in note.changed.items():
        path = base / name
        now = files.read(path)
        if now is None:
            continue
        back = one.before if hash_of(now) == one.after else strip(str(path), one.kind, now, one.before)
        if back is None:
            files.remove(path)
        elif back != now:
            files.write(path, back)
    for name, wrote in note.made.items():
        path = base / name
        now = files.read(path)
        if now is None:
            continue
        if hash_of(now) == wrote:
            files.remove(path)
        else:
            left.append(f"{path} was edited since it was installed; it stays")
    return left
