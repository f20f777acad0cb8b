"""JSON and JSON lines → documents. In: the lines of a file; out: a document an object, with its line or place in the list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import IO, Any

from ringtrue.errors import InputError
from ringtrue.formats import Place, parse_json
from ringtrue.records import Document
from ringtrue.retrieve.sources.files import File
from ringtrue.retrieve.sources.opening import Empty, lines_of
from ringtrue.retrieve.sources.records import (
    IDS,
    TEXTS,
    Fields,
    Record,
    Rows,
    document_of,
    field_for,
    from_rows,
    no_field,
    shown,
    usual_field,
)

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
        raise place.error(f"{shown(value)} is no object", 'write {"_id": …, "text": …}')
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
