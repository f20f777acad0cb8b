"""Paths → files to read. In: a file or folder as it was given; out: ``File`` with its format, or ``Skipped`` with the reason.

Nothing is opened here: a file's name tells its format, its place its document's id.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ringtrue.errors import MissingInput, nearest
from ringtrue.formats import Place, one_line

KINDS = {
    ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".md": "markdown",
    ".markdown": "markdown", ".txt": "text", ".text": "text", ".html": "html", ".htm": "html", ".xhtml": "html", ".pdf": "pdf",
}  # fmt: skip
"""The formats by the ending of a file's name; all but PDF may have ``.gz`` after it."""
KNOWN = ", ".join(KINDS)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that is not read, and why."""

    path: Path
    reason: str
    unreadable: bool = False
    """True where it was meant to be read and cannot be: which documents it would have given is then unknown."""

    def __str__(self) -> str:
        return one_line(f"{self.path}: {self.reason}")


@dataclass(frozen=True, slots=True)
class File:
    """A file to read: its format, its size on disk and the id of its document where it is one."""

    path: Path
    doc_id: str
    kind: str
    size: int
    named: bool
    """Given by name, not found in a folder: nothing in it then is an error, not a report."""


def kind_of(path: Path) -> str | None:
    """Return the format that a file's name tells, or None."""
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    if endings[-1:] != [".gz"]:
        return KINDS.get(endings[-1]) if endings else None
    kind = KINDS.get(endings[0])
    return None if kind == "pdf" else kind


def id_of_file(path: Path) -> str:
    """Return the id of a file's document: its path from the current folder, with forward slashes; absolute where it is outside.

    The same file has the same id whichever folder above it was given, and two files never share one.
    """
    here = Path.cwd()
    as_given = Path(os.path.normpath(here / path))
    # A link inside the current folder is called by its own name; a link that leads into it is followed.
    form = next((form for form in (as_given, path.resolve()) if form.is_relative_to(here)), None)
    return as_given.as_posix() if form is None else form.relative_to(here).as_posix()


def named_file(path: Path) -> File:
    """Return a file that was given by name; raises MissingInput or InputError where it cannot be read."""
    try:
        size = path.stat().st_size
    except OSError as problem:
        if not isinstance(problem, FileNotFoundError):
            raise Place(str(path)).error(f"cannot be read ({problem.strerror})", "check the path and its permissions") from None
        beside: list[str] = []
        with suppress(OSError):
            beside = sorted(item.name for item in path.parent.iterdir())[:500]
        cure = f"did you mean {nearest(path.name, beside)}?" if beside else "check the path"
        raise MissingInput(one_line(f"{path}: there is no such file or folder; {cure}")) from None
    kind = kind_of(path)
    if kind is None:
        ending = f"the ending '{path.suffix}' is not known" if path.suffix else "the name has no ending"
        raise Place(str(path)).error(ending, f"name the file by its format: {KNOWN}")
    return File(path, id_of_file(path), kind, size, named=True)


def walk(folder: Path, skipped: list[Skipped]) -> list[File]:
    """Return the readable files under a folder, in the order of their names at every level."""
    found: list[File] = []
    try:
        items = sorted(folder.iterdir(), key=lambda item: item.name)
    except OSError as problem:
        raise Place(str(folder)).error(f"cannot be read ({problem.strerror})", "check its permissions") from None
    for item in items:
        kind = kind_of(item)
        if item.name.startswith("."):
            skipped.append(Skipped(item, "is hidden"))
            continue
        try:
            facts = item.stat()
        except OSError as problem:
            skipped.append(Skipped(item, f"cannot be read ({problem.strerror})", unreadable=True))
            continue
        if stat.S_ISDIR(facts.st_mode):
            if item.is_symlink():
                skipped.append(Skipped(item, "is a link to a folder"))  # links may go in circles
            elif not os.access(item, os.R_OK | os.X_OK):
                skipped.append(Skipped(item, "cannot be read (Permission denied)", unreadable=True))
            else:
                found += walk(item, skipped)
        elif not stat.S_ISREG(facts.st_mode):
            skipped.append(Skipped(item, "is no regular file"))
        elif kind is None:
            skipped.append(
                Skipped(item, f"the ending '{item.suffix}' is not known" if item.suffix else "the name has no ending")
            )
        elif not facts.st_size:
            skipped.append(Skipped(item, "the file is empty"))
        else:
            found.append(File(item, id_of_file(item), kind, facts.st_size, named=False))
    return found
