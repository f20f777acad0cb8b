"""A file on disk → what can be read of it. In: a path; out: its bytes (unpacked where they are gzip), its lines, or its text.

Wrong bytes raise Unreadable with line and offset; ``Meter`` tells how far reading has come.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

from ringtrue.errors import InputError
from ringtrue.formats import Place

_GZIP = b"\x1f\x8b"
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_STEP, _HEAD = 1 << 16, 1 << 12


class Empty(Exception):
    """A file that holds no document: an error where the file was named, a report where it lay in a folder."""

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
    """Raise Unreadable for a file that is no text, whatever its name says; nothing of it is used up."""
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
