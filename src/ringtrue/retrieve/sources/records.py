"""Records of JSON, JSON lines, CSV and TSV → documents. In: named values with the place where they stand; out: a document each.

The id, the title and the text are found by the usual names of fields, or by those that are given; ``tags`` become tags,
what is left becomes metadata. What cannot be understood is an InputError with the place.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, Any

from ringtrue.errors import InputError, nearest
from ringtrue.formats import Place, parse_json, usable_id
from ringtrue.records import Document
from ringtrue.retrieve.protocol import plain
from ringtrue.retrieve.sources.files import Empty, File, lines_of

IDS = ("_id", "id", "doc_id", "docid", "docno", "document_id")
TITLES = ("title",)
TEXTS = ("text", "content", "contents", "body")
METADATA, TAGS = "metadata", "tags"

Record = Mapping[str, Any]
Rows = Iterator[tuple[Place, Record]]


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields that hold a document's parts, where they are not called as usual."""

    id_field: str | None = None
    title_field: str | None = None
    text_field: str | None = None


GUESSED = Fields()


def from_rows(rows: Rows, fields: Fields, *, table: bool = False) -> Iterator[tuple[Place, Document]]:
    """Yield the documents in records; the first one decides which field is the id and which is the text."""
    columns: tuple[str, str] | None = None
    for place, row in rows:
        if columns is None:
            columns = field_for(row, "id", fields.id_field, IDS, place), field_for(row, "text", fields.text_field, TEXTS, place)
        if table:  # an empty cell is not a value: CSV cannot tell it from an empty text
            row = {name: cell for name, cell in row.items() if cell != "" or name in columns}
            if row.get(METADATA, "").lstrip().startswith("{"):
                row[METADATA] = parse_json(row[METADATA], place.at(METADATA))
        yield place, document_of(row, columns, fields, place)
    if columns is None:
        raise Empty("there is no document in it")


def field_for(row: Record, part: str, wanted: str | None, usual: Sequence[str], place: Place) -> str:
    """Return the field that holds a part of a document: the one that was named, else the first of the usual ones."""
    if wanted is not None:
        if wanted in row:
            return wanted
        seen = ", ".join(map(repr, row)) or "no field"
        close = f"did you mean {nearest(wanted, row, count=1)}?" if row else "add it"
        raise place.error(f"the field '{wanted}' ({_option(part)}) is missing among {seen:.300}", close)
    found = usual_field(row, usual)
    if found is not None:
        return found
    raise place.error(*no_field(row, part, usual))


def no_field(row: Record, part: str, usual: Sequence[str]) -> tuple[str, str]:
    """Return the problem and the cure where a record has none of the usual fields for a part."""
    seen = ", ".join(map(repr, row)) or "no field"
    return f"no field for the {part} among {seen:.300}", f"call it '{usual[0]}', or name it with {_option(part)}"


def _option(part: str) -> str:
    """Return what names a part's field, in Python and on the command line."""
    return f"{part}_field / --{part}-field"


def usual_field(row: Record, usual: Sequence[str]) -> str | None:
    """Return the first of the usual fields that a record has, in whatever case it is written, or None."""
    folded = {name.strip().casefold(): name for name in reversed(list(row))}
    return next((folded[name] for name in usual if name in folded), None)


def document_of(row: Record, columns: tuple[str, str], fields: Fields, place: Place, *, doc_id: str | None = None) -> Document:
    """Return one record as a document; ``doc_id`` names a record that needs no id of its own."""
    id_name, text_name = columns
    for part, name in (("id", id_name), ("text", text_name)):
        if name not in row and (part == "text" or doc_id is None):
            seen = ", ".join(map(repr, row)) or "no field"
            raise place.error(f"the field '{name}' is missing among {seen:.300}", f"every record needs its {part} there")
    title_name = usual_field(row, TITLES) if fields.title_field is None else fields.title_field
    title = row.get(title_name) if title_name is not None else None
    used = {id_name, text_name, title_name, METADATA, TAGS}
    facts = {name: value for name, value in row.items() if name not in used}
    return Document(
        id_of(row[id_name], place.at(id_name)) if id_name in row else usable_id(doc_id or "", place),
        plain(_string(row[text_name], place.at(text_name))),
        "" if title is None else plain(_string(title, place.at(title_name or ""))),
        _finite(with_metadata(facts, row, place), place),
        tags_of(row.get(TAGS), place.at(TAGS)),
    )


def id_of(value: Any, place: Place) -> str:
    """Return a document's id as text; raises InputError if it is none."""
    # Stores number their records, and 12 and "12" name the same one.
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise place.error(f"{shown(value)} is not an id", "write a non-blank text or a whole number")
    return usable_id(str(value), place)


def _string(value: Any, place: Place) -> str:
    if not isinstance(value, str):
        raise place.error(f"{shown(value)} is not text", "write a text in quotes, or name the field that holds it")
    return value


def shown(value: Any) -> str:
    """Return a wrong value as a message shows it."""
    return "null" if value is None else f"{value!r:.60}"


def with_metadata(facts: dict[str, Any], row: Record, place: Place) -> dict[str, Any]:
    """Return the facts together with those under ``metadata``; raises InputError for a name that is in both."""
    nested = row.get(METADATA)
    if nested is None:
        return facts
    if not isinstance(nested, Mapping):
        raise place.at(METADATA).error(f"{shown(nested)} is not an object", "write named values in braces, or rename the field")
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
            raise place.at(name).error(f"{value!r} is not a finite number", "write a smaller number or null")
        if isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return facts


def tags_of(value: Any, place: Place) -> tuple[str, ...]:
    """Return tags from a list, or from a text with commas between them."""
    if value is None:
        return ()
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list) or not all(isinstance(tag, str | int) and not isinstance(tag, bool) for tag in value):
        raise place.error(f"{shown(value)} is not a list of tags", "write a list of texts")
    return tuple(plain(str(tag)).strip() for tag in value if str(tag).strip())


WRAPPER = "documents"


def json_lines(lines: Iterable[tuple[int, str]], place: Place) -> Rows:
    """Yield the objects of JSON lines; blank lines are passed over."""
    filled = ((number, line) for number, line in lines if line.strip())
    number = None
    for number, line in filled:
        here = place.on(number)
        yield here, _object(parse_json(line.strip("\r\n"), here), here)
    if number is None:
        raise Empty


def _object(value: Any, place: Place) -> Record:
    if not isinstance(value, dict):
        raise place.error(f"{shown(value)} is not an object", 'write {"_id": …, "text": …}')
    return value


def json_documents(file: File, content: IO[bytes], place: Place, fields: Fields) -> Iterator[tuple[Place, Document]]:
    """Yield the documents of a list, of a list under 'documents', of one object, or of objects line by line."""
    lines = lines_of(content, place)
    first_two = list(islice((line for line in lines if line[1].strip()), 2))
    if len(first_two) == 2 and _is_object(first_two[0][1], place):
        yield from from_rows(json_lines(chain(first_two, lines), place), fields)
        return
    # Lines that were blank count for the numbers in complaints.
    text = _gathered(chain(first_two, lines))
    if not text.strip():
        raise Empty
    value = parse_json(text, place)
    if isinstance(value, dict) and isinstance(value.get(WRAPPER), list):
        value, place = value[WRAPPER], place.at(WRAPPER)
    if isinstance(value, list):
        yield from from_rows(((place.at(n), _object(item, place.at(n))) for n, item in enumerate(value)), fields)
    else:
        row = _object(value, place)
        if fields.text_field is None and usual_field(row, TEXTS) is None:
            raise Empty(*no_field(row, "text", TEXTS))  # in a folder: the settings of some tool
        id_name = usual_field(row, IDS) if fields.id_field is None else field_for(row, "id", fields.id_field, IDS, place)
        columns = id_name or IDS[0], field_for(row, "text", fields.text_field, TEXTS, place)
        yield place, document_of(row, columns, fields, place, doc_id=file.doc_id)


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


_LONGEST_CELL = (1 << 31) - 1  # what a C long holds everywhere


def table_rows(content: IO[bytes], place: Place, *, tabs: bool) -> Rows:
    """Yield the rows of CSV or TSV with a header; TSV knows no quotes."""
    lines = lines_of(content, place)
    first = next((line for line in lines if line[1].strip()), None)
    if first is None:
        raise Empty
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
