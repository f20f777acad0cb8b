"""Files and folders → documents, one after the other: JSON, JSON lines, CSV, TSV, Markdown, plain text, HTML and PDF.

Text formats may be gzipped. A file of records gives one document a record, told by its fields (``_id``, ``title``, ``text``
or ``content`` …, what is left becomes metadata); any other file is one document, called by its path inside the given folder.
JSON lines, CSV and TSV are streamed; the other formats are held in memory one file at a time. Nothing is left out in
silence: a file of a folder that is not read is reported with the reason, and what cannot be understood raises InputError
with file, line or record, field and cure.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import math
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib.util import find_spec
from io import BufferedReader
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import IO, Any, cast

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.formats.text import Place, one_line, parse_json, usable_id
from ringtrue.records import Document
from ringtrue.retrieve.chunk import Block, blocks
from ringtrue.retrieve.protocol import plain

KINDS = {
    ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".md": "markdown",
    ".markdown": "markdown", ".txt": "text", ".text": "text", ".html": "html", ".htm": "html", ".xhtml": "html", ".pdf": "pdf",
}  # fmt: skip
"""The formats by the ending of a file's name; all but PDF may have ``.gz`` after it."""
IDS = ("_id", "id", "doc_id", "docid", "docno", "document_id")
TITLES = ("title",)
TEXTS = ("text", "content", "contents", "body")
WRAPPER, METADATA, TAGS = "documents", "metadata", "tags"
_GZIP = b"\x1f\x8b"
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_RULE = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)
_LONGEST_FRONT, _DEEPEST = 1 << 16, 100
_LONGEST_CELL = (1 << 31) - 1  # what a C long holds everywhere
_STEP, _HEAD = 1 << 16, 1 << 12
_KNOWN = ", ".join(KINDS)
_OTHER_ID = "give each document its own id; files are called by their path in the folder given, so give the folder above both"

Record = Mapping[str, Any]
Rows = Iterator[tuple[Place, Record]]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that is not read, and why."""

    path: Path
    reason: str

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


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields that hold a document's parts, where they are not called as usual."""

    id_field: str | None = None
    title_field: str | None = None
    text_field: str | None = None


GUESSED = Fields()


@dataclass(frozen=True)
class Source:
    """What the given paths hold: the files to read in their order, and what is not read."""

    files: tuple[File, ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def size(self) -> int:
        """The bytes on disk that reading will go through."""
        return sum(file.size for file in self.files)

    def documents(
        self,
        fields: Fields = GUESSED,
        *,
        progress: Callable[[int], None] | None = None,
        skipped: Callable[[Skipped], None] | None = None,
    ) -> Iterator[Document]:
        """Yield the documents; ``progress`` hears of bytes gone through since its last call, ``skipped`` of what is left out.

        Raises InputError for what cannot be understood, and for an id that comes twice.
        """
        report = skipped or (lambda _: None)
        for one in self.skipped:
            report(one)
        seen: dict[str, int | str] = {}
        for index, file in enumerate(self.files):
            meter = _Meter(progress)
            try:
                for place, document in _documents(file, fields, meter):
                    # Millions of lines are remembered as numbers; the few places without a line as they read.
                    here = str(place) if place.line is None else place.line * len(self.files) + index
                    first = seen.setdefault(document.doc_id, here)
                    if first is not here:
                        raise place.error(f"the id '{document.doc_id:.80}' is taken by {self._shown(first)}", _OTHER_ID)
                    yield document
                    meter.tell()
            except _Empty as nothing:
                if file.named:
                    raise Place(str(file.path)).error(nothing.reason, nothing.cure) from None
                report(Skipped(file.path, nothing.reason))
            meter.finish(file.size)

    def _shown(self, place: int | str) -> str:
        if isinstance(place, str):
            return place
        line, index = divmod(place, len(self.files))
        return str(Place(str(self.files[index].path), line))


def read_documents(
    paths: Sequence[Path | str] | Path | str,
    *,
    id_field: str | None = None,
    title_field: str | None = None,
    text_field: str | None = None,
    progress: Callable[[int], None] | None = None,
    skipped: Callable[[Skipped], None] | None = None,
) -> Iterator[Document]:
    """Yield the documents of files and folders; the fields are guessed where they are not named.

    Raises MissingInput at once when a path is not there, InputError while reading. ``find(paths)`` tells sizes beforehand.
    """
    return find(paths).documents(Fields(id_field, title_field, text_field), progress=progress, skipped=skipped)


def find(paths: Sequence[Path | str] | Path | str) -> Source:
    """Return what files and folders hold, folders to their depths in the order of names; raises MissingInput.

    Hidden files, links to folders and unknown endings are skipped in folders; a file given by name must be readable.
    """
    given = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    if not given:
        raise InputError("no file or folder of documents is given; name at least one")
    files: dict[str, File] = {}
    skipped: list[Skipped] = []
    for path in given:
        before = len(files), len(skipped)
        found = _walk(path, path, skipped) if path.is_dir() else [_named(path)]
        for file in found:
            known = files.setdefault(os.path.realpath(file.path), file)
            if known is not file:
                skipped.append(Skipped(file.path, f"is read as {known.path}"))
        if (len(files), len(skipped)) == before:
            raise MissingInput(one_line(f"{path}: the folder is empty; put documents into it ({_KNOWN})"))
        if len(files) == before[0] and not found:
            seen = f"{skipped[before[1]]}" + (f", and {more} more" if (more := len(skipped) - before[1] - 1) else "")
            raise MissingInput(one_line(f"{path}: no file in it can be read ({seen}); use {_KNOWN}"))
    if any(file.kind == "pdf" for file in files.values()) and find_spec("pypdf") is None:
        first = next(file.path for file in files.values() if file.kind == "pdf")
        raise MissingInput(one_line(f"{first}: pypdf is not installed; pip install 'ringtrue[pdf]'"))
    return Source(tuple(files.values()), tuple(skipped))


def kind_of(path: Path) -> str | None:
    """Return the format that a file's name tells, or None."""
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    if endings[-1:] != [".gz"]:
        return KINDS.get(endings[-1]) if endings else None
    kind = KINDS.get(endings[0])
    return None if kind == "pdf" else kind


def _named(path: Path) -> File:
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
        raise Place(str(path)).error(ending, f"name the file by its format: {_KNOWN}")
    return File(path, path.name, kind, size, named=True)


def _walk(folder: Path, root: Path, skipped: list[Skipped]) -> list[File]:
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
            skipped.append(Skipped(item, f"cannot be read ({problem.strerror})"))
            continue
        if stat.S_ISDIR(facts.st_mode):
            if item.is_symlink():
                skipped.append(Skipped(item, "is a link to a folder"))  # links may go in circles
            else:
                found += _walk(item, root, skipped)
        elif not stat.S_ISREG(facts.st_mode):
            skipped.append(Skipped(item, "is no regular file"))
        elif kind is None:
            skipped.append(
                Skipped(item, f"the ending '{item.suffix}' is not known" if item.suffix else "the name has no ending")
            )
        elif not facts.st_size:
            skipped.append(Skipped(item, "the file is empty"))
        else:
            found.append(File(item, item.relative_to(root).as_posix(), kind, facts.st_size, named=False))
    return found


class _Empty(Exception):
    """A file that holds no document: an error where the file was named, a report where it lay in a folder."""

    def __init__(self, reason: str = "the file is empty", cure: str = "write at least one document into it") -> None:
        super().__init__(reason)
        self.reason, self.cure = reason, cure


@dataclass
class _Meter:
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
def _opened(path: Path, meter: _Meter) -> Iterator[BufferedReader]:
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
        raise place.error(f"the gzip data is damaged ({problem})", "download or compress the file again") from problem
    except OSError as problem:
        raise place.error(f"cannot be read ({problem.strerror or problem})", "check its permissions") from problem


def _lines(file: IO[bytes], place: Place) -> Iterator[tuple[int, str]]:
    """Yield (line number, line with its end) of UTF-8 text; raises InputError with line and offset of a wrong byte."""
    offset = 0
    for number, line in enumerate(file, 1):
        if number == 1 and line.startswith(_WIDE):
            raise place.error("the file is UTF-16", "save it as UTF-8")
        try:
            text = line.decode()
        except UnicodeDecodeError as problem:
            wrong = f"byte 0x{line[problem.start]:02x} at offset {offset + problem.start} is not UTF-8"
            raise place.on(number).error(wrong, "save the file as UTF-8") from None
        if "\0" in text:
            wrong = f"a NUL character at offset {offset + line.index(0)}"
            raise place.on(number).error(wrong, "is this a binary file? Give text, or remove the character")
        yield number, text.removeprefix("\ufeff") if number == 1 else text
        offset += len(line)


def _text(file: IO[bytes], place: Place) -> str:
    """Return a whole file as text; line ends read alike whatever system wrote them."""
    text = "".join(line for _, line in _lines(file, place)).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise _Empty
    return text


def _documents(file: File, fields: Fields, meter: _Meter) -> Iterator[tuple[Place, Document]]:
    place = Place(str(file.path))
    with _opened(file.path, meter) as content:
        if file.kind == "pdf":
            yield place, _pdf(file, content, place)
            return
        _refuse_binary(content.peek(_HEAD)[:_HEAD], place)
        if file.kind in ("csv", "tsv"):
            yield from _from_rows(_table(content, place, tabs=file.kind == "tsv"), fields, table=True)
        elif file.kind == "jsonl":
            yield from _from_rows(_json_lines(_lines(content, place), place), fields)
        elif file.kind == "json":
            yield from _json(file, content, place, fields)
        elif file.kind == "markdown":
            yield place, _markdown(file, _text(content, place), place, fields)
        elif file.kind == "html":
            yield place, _html(file, _text(content, place), place)
        else:
            yield place, Document(usable_id(file.doc_id, place), _text(content, place))


def _refuse_binary(head: bytes, place: Place) -> None:
    if head.startswith(b"%PDF-"):
        raise place.error("the file is a PDF", "end its name in .pdf")
    if b"\0" in head and not head.startswith(_WIDE):
        raise place.error(f"the file is binary (NUL at offset {head.index(0)})", "give text saved as UTF-8")


# Files of records


def _from_rows(rows: Rows, fields: Fields, *, table: bool = False) -> Iterator[tuple[Place, Document]]:
    """Yield the documents in records; the first one decides which field is the id and which is the text."""
    columns: tuple[str, str] | None = None
    for place, row in rows:
        if columns is None:
            columns = _field(row, "id", fields.id_field, IDS, place), _field(row, "text", fields.text_field, TEXTS, place)
        if table:  # an empty cell is no value: CSV cannot tell it from an empty text
            row = {name: cell for name, cell in row.items() if cell != "" or name in columns}
            if row.get(METADATA, "").lstrip().startswith("{"):
                row[METADATA] = parse_json(row[METADATA], place.at(METADATA))
        yield place, _document(row, columns, fields, place)
    if columns is None:
        raise _Empty("there is no document in it")


def _field(row: Record, part: str, wanted: str | None, usual: Sequence[str], place: Place) -> str:
    """Return the field that holds a part of a document: the one that was named, else the first of the usual ones."""
    if wanted is not None:
        if wanted in row:
            return wanted
        seen = ", ".join(map(repr, row)) or "no field"
        close = f"did you mean {nearest(wanted, row, count=1)}?" if row else "add it"
        raise place.error(f"the field '{wanted}' ({part}_field) is missing among {seen:.300}", close)
    found = _usual(row, usual)
    if found is not None:
        return found
    seen = ", ".join(map(repr, row)) or "no field"
    raise place.error(f"no field for the {part} among {seen:.300}", f"call it '{usual[0]}', or name it with {part}_field")


def _usual(row: Record, usual: Sequence[str]) -> str | None:
    folded = {name.strip().casefold(): name for name in reversed(list(row))}
    return next((folded[name] for name in usual if name in folded), None)


def _document(row: Record, columns: tuple[str, str], fields: Fields, place: Place, *, doc_id: str | None = None) -> Document:
    """Return one record as a document; ``doc_id`` names a record that needs no id of its own."""
    id_name, text_name = columns
    for part, name in (("id", id_name), ("text", text_name)):
        if name not in row and (part == "text" or doc_id is None):
            seen = ", ".join(map(repr, row)) or "no field"
            raise place.error(f"the field '{name}' is missing among {seen:.300}", f"every record needs its {part} there")
    title_name = _usual(row, TITLES) if fields.title_field is None else fields.title_field
    title = row.get(title_name) if title_name is not None else None
    used = {id_name, text_name, title_name, METADATA, TAGS}
    facts = {name: value for name, value in row.items() if name not in used}
    return Document(
        _id(row[id_name], place.at(id_name)) if id_name in row else usable_id(doc_id or "", place),
        plain(_string(row[text_name], place.at(text_name))),
        "" if title is None else plain(_string(title, place.at(title_name or ""))),
        _finite(_with_metadata(facts, row, place), place),
        _tags(row.get(TAGS), place.at(TAGS)),
    )


def _id(value: Any, place: Place) -> str:
    # Stores number their records, and 12 and "12" name the same one (trap 11).
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise place.error(f"{_shown(value)} is no id", "write a non-blank text or a whole number")
    return usable_id(str(value), place)


def _string(value: Any, place: Place) -> str:
    if not isinstance(value, str):
        raise place.error(f"{_shown(value)} is not text", "write a text in quotes, or name the field that holds it")
    return value


def _shown(value: Any) -> str:
    return "null" if value is None else f"{value!r:.60}"


def _with_metadata(facts: dict[str, Any], row: Record, place: Place) -> dict[str, Any]:
    nested = row.get(METADATA)
    if nested is None:
        return facts
    if not isinstance(nested, Mapping):
        raise place.at(METADATA).error(f"{_shown(nested)} is no object", "write named values in braces, or rename the field")
    twice = sorted(facts.keys() & nested.keys())
    if twice:
        raise place.at(METADATA).error(f"'{twice[0]}' is given here and beside it", "keep one of the two")
    return facts | dict(nested)


def _finite(facts: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return metadata that JSON can hold; 1e999 reads as infinity, which it cannot."""
    waiting: list[Any] = [facts]
    while waiting:
        value = waiting.pop()
        if isinstance(value, float) and not math.isfinite(value):
            name = next((key for key, item in facts.items() if item is value), METADATA)
            raise place.at(name).error(f"{value!r} is no finite number", "write a smaller number or null")
        if isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return facts


def _tags(value: Any, place: Place) -> tuple[str, ...]:
    """Return tags from a list, or from a text with commas between them."""
    if value is None:
        return ()
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list) or not all(isinstance(tag, str | int) and not isinstance(tag, bool) for tag in value):
        raise place.error(f"{_shown(value)} is no list of tags", "write a list of texts")
    return tuple(plain(str(tag)).strip() for tag in value if str(tag).strip())


def _json_lines(lines: Iterable[tuple[int, str]], place: Place) -> Rows:
    filled = ((number, line) for number, line in lines if line.strip())
    number = None
    for number, line in filled:
        here = place.on(number)
        yield here, _object(parse_json(line.strip("\r\n"), here), here)
    if number is None:
        raise _Empty


def _object(value: Any, place: Place) -> Record:
    if not isinstance(value, dict):
        raise place.error(f"{_shown(value)} is no object", 'write {"_id": …, "text": …}')
    return value


def _json(file: File, content: IO[bytes], place: Place, fields: Fields) -> Iterator[tuple[Place, Document]]:
    """Yield the documents of a list, of a list under 'documents', of one object, or of objects line by line."""
    lines = _lines(content, place)
    first_two = list(islice((line for line in lines if line[1].strip()), 2))
    if len(first_two) == 2 and _is_object(first_two[0][1], place):
        yield from _from_rows(_json_lines(chain(first_two, lines), place), fields)
        return
    # Lines that were blank count for the numbers in complaints.
    text = _gathered(chain(first_two, lines))
    if not text.strip():
        raise _Empty
    value = parse_json(text, place)
    if isinstance(value, dict) and isinstance(value.get(WRAPPER), list):
        value, place = value[WRAPPER], place.at(WRAPPER)
    if isinstance(value, list):
        yield from _from_rows(((place.at(n), _object(item, place.at(n))) for n, item in enumerate(value)), fields)
    else:
        row = _object(value, place)
        id_name = _usual(row, IDS) if fields.id_field is None else _field(row, "id", fields.id_field, IDS, place)
        columns = id_name or IDS[0], _field(row, "text", fields.text_field, TEXTS, place)
        yield place, _document(row, columns, fields, place, doc_id=file.doc_id)


def _is_object(line: str, place: Place) -> bool:
    """Return whether a line is an object by itself; the first line of an indented document is none."""
    with suppress(InputError):
        return isinstance(parse_json(line, place), dict)
    return False


def _gathered(lines: Iterable[tuple[int, str]]) -> str:
    parts: list[str] = []
    expected = 1
    for number, line in lines:
        parts.append("\n" * (number - expected) + line)
        expected = number + 1
    return "".join(parts)


def _table(content: IO[bytes], place: Place, *, tabs: bool) -> Rows:
    """Yield the rows of CSV or TSV with a header; TSV knows no quotes."""
    lines = _lines(content, place)
    first = next((line for line in lines if line[1].strip()), None)
    if first is None:
        raise _Empty
    before, header = first[0] - 1, first[1]
    separator = "\t" if tabs else max(",;\t", key=header.count)
    # The limit of 128 KiB a cell is the module's, not the format's; documents are longer than that.
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(
        chain([header], (line for _, line in lines)),
        delimiter=separator,
        quoting=csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL,
        strict=True,
    )
    start = before + 1  # where a record begins: an open quote is found only at the end of the file, far from the line to mend
    names: list[str] = []
    try:
        for cells in reader:
            here, start = place.on(start), before + reader.line_num + 1
            if not names:
                names = _header(cells, here)
            elif len(cells) == len(names):
                yield here, dict(zip(names, cells, strict=True))
            elif cells:
                cure = "remove tabs and line breaks from cells" if tabs else "quote cells that hold the separator"
                raise here.error(f"{len(cells)} cell{'s' if len(cells) != 1 else ''} under {len(names)} columns", cure)
    except csv.Error as problem:
        raise place.on(start).error(f"not valid CSV: {problem}", "mend the quotes or line ends there") from problem


def _header(cells: list[str], place: Place) -> list[str]:
    names = [cell.strip() or f"column {number}" for number, cell in enumerate(cells, 1)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise place.error(f"the column '{twice}' is named twice", "give every column its own name")
    return names


# Files that are one document


def _markdown(file: File, text: str, place: Place, fields: Fields) -> Document:
    """Return a Markdown file; its front matter gives title, tags and metadata, else its first heading the title."""
    facts, start = _front_matter(text, place)
    body = text[start:]
    doc_id = file.doc_id
    if fields.id_field is not None and fields.id_field in facts:
        doc_id = _id(facts.pop(fields.id_field), place.at(fields.id_field))
    name = fields.title_field or _usual(facts, TITLES)
    title = facts.pop(name, None) if name is not None else None
    tags = _tags(facts.pop(TAGS, None), place.at(TAGS))
    metadata = {key: value for key, value in facts.items() if key != METADATA}
    if isinstance(title, bool) or not isinstance(title, str | int | float | None):
        raise place.at(name or "").error(f"{_shown(title)} is not text", "write the title as text")
    return Document(
        usable_id(doc_id, place),
        plain(body),
        plain(_first_heading(body) if title is None else str(title)),
        _with_metadata(metadata, facts, place),
        tags,
    )


def _first_heading(text: str) -> str:
    """Return the words of the first heading, '' where there is none."""
    found = islice(pairwise(chain(blocks(text), [Block(len(text), "")])), 1_000)
    lines = next((text[one.start : after.start].strip().split("\n") for one, after in found if one.kind == "heading"), [""])
    if len(lines) > 1:  # underlined
        return " ".join(" ".join(lines[:-1]).split())
    words = lines[0].strip().lstrip("#").strip()
    bare = words.rstrip("#")
    return bare.strip() if not bare or bare[-1].isspace() else words


def _front_matter(text: str, place: Place) -> tuple[dict[str, Any], int]:
    """Return the YAML between two lines of ``---`` at the top, and where the text goes on."""
    opening = _RULE.match(text)
    closing = _RULE.search(text, opening.end(), opening.end() + _LONGEST_FRONT) if opening else None
    if opening is None or closing is None:
        return {}, 0
    import yaml  # costs 20 ms that no other format needs

    content = text[opening.end() : closing.start()]
    try:
        depth = 0
        for event in yaml.parse(content, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            # Aliases allow a few lines to stand for gigabytes; the parser's time grows with the square of the depth.
            if isinstance(event, yaml.AliasEvent) or depth > _DEEPEST:
                found = f"the alias '*{event.anchor}'" if isinstance(event, yaml.AliasEvent) else "YAML nested too deeply"
                raise place.on(event.start_mark.line + 2).error(found, "write plain values in the front matter")
        node = yaml.compose(content, Loader=yaml.SafeLoader)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        reason = getattr(problem, "problem", None) or str(problem).split("\n")[0]
        cure = "mend the YAML between the lines of ---, or begin the file with a blank line"
        raise place.on(2 if mark is None else mark.line + 2).error(f"not valid YAML: {reason}", cure) from problem
    if node is None or isinstance(node, yaml.MappingNode):
        return ({} if node is None else cast("dict[str, Any]", _yaml_value(node, place))), closing.end()
    return {}, 0  # text between two rules


def _yaml_value(node: Any, place: Place) -> Any:
    """Return a YAML node as JSON would hold it; what reads otherwise than it looks (010, 12:30, no) and dates stay text."""
    import yaml

    if isinstance(node, yaml.SequenceNode):
        return [_yaml_value(item, place) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        record: dict[str, Any] = {}
        for key, item in node.value:
            here = place.on(key.start_mark.line + 2)
            if not isinstance(key, yaml.ScalarNode):
                raise here.error("a list or mapping stands as a key", "write a text before the colon")
            if key.value in record:
                raise here.error(f"the key '{key.value}' is given twice", "keep one of the two")
            record[key.value] = _yaml_value(item, place)
        return record
    kind, written = node.tag.rpartition(":")[2], node.value
    if kind == "null":
        return None
    if kind == "bool" and written.lower() in ("true", "false"):
        return written.lower() == "true"
    with suppress(ValueError):
        number = int(written) if kind == "int" else float(written) if kind == "float" else None
        if number is not None and str(number) == written:
            return number if math.isfinite(number) else written
    return written


class _Page(HTMLParser):
    """Collects what a reader of an HTML page sees, block by block."""

    hidden = frozenset({"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "canvas"})
    inline = frozenset({
        "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "label",
        "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
    })  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.titles: list[list[str]] = []
        self.first_heading: list[str] = []
        self.inside: dict[str, int] = {}
        self.headings = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.hidden or tag in ("title", "h1", "pre"):
            self.inside[tag] = self.inside.get(tag, 0) + 1
            self.headings += tag == "h1"
        if tag == "title":
            self.titles.append([])
        if tag not in self.inline:
            self.parts.append(" " if tag in ("td", "th") else "\n")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.inline:  # <svg/> and the like hide nothing after them
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if self.inside.get(tag):
            self.inside[tag] -= 1
        if tag not in self.inline and tag not in ("td", "th"):
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if any(self.inside.get(tag) for tag in self.hidden):
            return
        if self.inside.get("title"):
            self.titles[-1].append(data)
            return
        if self.inside.get("h1") and self.headings == 1:
            self.first_heading.append(data)
        self.parts.append(data if self.inside.get("pre") else data.replace("\n", " "))

    @property
    def title(self) -> str:
        """The title of the page, else its first heading."""
        return " ".join("".join(self.titles[0] if self.titles else self.first_heading).split())

    @property
    def text(self) -> str:
        """The visible text, a line a block."""
        lines = (" ".join(line.split()) for line in "".join(self.parts).split("\n"))
        return "\n".join(line for line in lines if line)


def _html(file: File, text: str, place: Place) -> Document:
    page = _Page()
    try:
        page.feed(text)
        page.close()
    except AssertionError as problem:  # how the parser says that a <![…]> is unknown to it
        raise place.on(page.getpos()[0]).error(f"not readable HTML: {problem}", "mend or remove the mark there") from problem
    if not page.text:
        raise _Empty("there is no visible text in it", "save the page as the browser shows it, with its text")
    return Document(usable_id(file.doc_id, place), plain(page.text), plain(page.title))


def _pdf(file: File, content: BufferedReader, place: Place) -> Document:
    try:
        from pypdf import PdfReader
    except ImportError as problem:
        raise MissingInput(one_line(f"{file.path}: pypdf is not installed; pip install 'ringtrue[pdf]'")) from problem
    try:
        reader = PdfReader(content)
        locked = reader.is_encrypted and not reader.decrypt("")
        pages = [] if locked else [page.extract_text().strip() for page in reader.pages]
        title = None if locked or reader.metadata is None else reader.metadata.title
    except Exception as problem:  # a damaged PDF makes its library fail in more ways than it has errors for
        reason = f"{type(problem).__name__}: {problem}".split("\n")[0]
        raise place.error(f"cannot be read as PDF ({reason:.120})", "open it and save it again") from problem
    if locked:
        raise place.error("the PDF asks for a password", "save it without one")
    text = "\n\n".join(page for page in pages if page)
    if not text:
        raise _Empty("there is no text in the PDF (are its pages pictures?)", "run text recognition on it first")
    return Document(usable_id(file.doc_id, place), plain(text), plain(str(title or "").strip()), {"pages": len(pages)})
