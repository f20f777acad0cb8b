"""Paths → files to read, and a file → its bytes (unpacked if they are gzip), its lines, or its text.

A file's name tells its format, its place its document's id. What a folder holds but cannot be read is ``Skipped`` with the
reason. Wrong bytes raise Unreadable with line and offset; ``Meter`` tells how far reading has come.
"""

from __future__ import annotations

import codecs
import gzip
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.formats import Place, one_line
from ringtrue.retrieve.library import library

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
    """True if it was meant to be read and cannot be: which documents it would have given is then unknown."""

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
    """Return a file that was given by name; raises MissingInput or InputError if it cannot be read."""
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
    if kind == "pdf":
        pdf_reader(path)
    return File(path, id_of_file(path), kind, size, named=True)


def pdf_reader(path: Path) -> Any:
    """Return what reads PDF; raises MissingInput for the file that needs it if it is not installed."""
    try:
        return library("pypdf", "pdf").PdfReader
    except MissingInput as problem:
        raise MissingInput(one_line(f"{path}: {problem}")) from problem


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
            skipped.append(Skipped(item, "is not a regular file"))
        elif kind is None:
            skipped.append(
                Skipped(item, f"the ending '{item.suffix}' is not known" if item.suffix else "the name has no ending")
            )
        elif not facts.st_size:
            skipped.append(Skipped(item, "the file is empty"))
        else:
            found.append(File(item, id_of_file(item), kind, facts.st_size, named=False))
    return found


_GZIP = b"\x1f\x8b"
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_STEP, _HEAD = 1 << 16, 1 << 12


class Empty(Exception):
    """A file that holds no document: an error if the file was named, a report where it lay in a folder."""

    def __init__(self, reason: str = "the file is empty", cure: str = "write at least one document into it") -> None:
        super().__init__(reason)
        self.reason, self.cure = reason, cure


class Unreadable(InputError):
    """A file whose bytes are not what its name says: binary, not UTF-8, damaged, or refused by the system."""


@dataclass
class Meter:
    """Tells how far reading has come, in bytes on disk, now and then."""

    progress: Callable[[int], None] | None
    file: IO[bytes] | None = None
    told: int = 0

    def tell(self) -> None:
        if self.progress is not None and self.file is not None and not self.file.closed:
            self._advance(self.file.tell(), least=_STEP)

    def finish(self, size: int) -> None:
        self._advance(size, least=1)

    def _advance(self, place: int, *, least: int) -> None:
        if self.progress is not None and place - self.told >= least:
            self.progress(place - self.told)
            self.told = place


@contextmanager
def opened(path: Path, meter: Meter) -> Iterator[BufferedReader]:
    """Open a file, unpacked where it is gzip."""
    place = Place(str(path))
    try:
        with path.open("rb") as file:
            meter.file = file
            if not file.peek(2).startswith(_GZIP):
                yield file
                return
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield BufferedReader(cast("Any", unpacked))
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise _unreadable(place, f"the gzip data is damaged ({problem})", "download or compress the file again") from problem
    except OSError as problem:
        raise _unreadable(place, f"cannot be read ({problem.strerror or problem})", "check its permissions") from problem


def _unreadable(place: Place, problem: str, cure: str) -> Unreadable:
    return Unreadable(str(place.error(problem, cure)))


def refuse_binary(content: BufferedReader, place: Place) -> None:
    """Raise Unreadable for a file that is not text, whatever its name says; nothing of it is used up."""
    head = content.peek(_HEAD)[:_HEAD]
    if head.startswith(b"%PDF-"):
        raise _unreadable(place, "the file is a PDF", "end its name in .pdf")
    if b"\0" in head and not head.startswith(_WIDE):
        raise _unreadable(place, f"the file is binary (NUL at offset {head.index(0)})", "give text saved as UTF-8")


def lines_of(file: IO[bytes], place: Place) -> Iterator[tuple[int, str]]:
    """Yield (line number, line with its end) of UTF-8 text; raises Unreadable with line and offset of a wrong byte."""
    offset = 0
    for number, line in enumerate(file, 1):
        if number == 1 and line.startswith(_WIDE):
            raise _unreadable(place, "the file is UTF-16", "save it as UTF-8")
        try:
            text = line.decode()
        except UnicodeDecodeError as problem:
            wrong = f"byte 0x{line[problem.start]:02x} at offset {offset + problem.start} is not UTF-8"
            raise _unreadable(place.on(number), wrong, "save the file as UTF-8") from None
        if "\0" in text:
            wrong = f"a NUL character at offset {offset + line.index(0)}"
            raise _unreadable(place.on(number), wrong, "is this a binary file? Give text, or remove the character")
        yield number, text.removeprefix("\ufeff") if number == 1 else text
        offset += len(line)


def text_of(file: IO[bytes], place: Place) -> str:
    """Return a whole file as text; line ends read alike whatever system wrote them."""
    text = "".join(line for _, line in lines_of(file, place)).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise Empty
    return text
