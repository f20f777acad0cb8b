"""Files → documents: records of JSON, JSON lines, CSV and TSV, a document each; Markdown, HTML and PDF, a document a file.

The id, the title and the text of a record are found by the usual names of fields, or by those that are given; ``tags`` become
tags, what is left becomes metadata. What cannot be understood is an InputError with the place.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser
from io import BufferedReader
from itertools import chain, islice, pairwise
from typing import IO, Any

from ringtrue.errors import InputError, nearest
from ringtrue.formats import Place, parse_json, parse_yaml, usable_id
from ringtrue.records import Document
from ringtrue.retrieve.chunk import Block, blocks
from ringtrue.retrieve.protocol import plain
from ringtrue.retrieve.sources.files import Empty, File, lines_of, pdf_reader

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
        raise place.on(start).error(f"not valid CSV: {problem}", "fix the quotes or line ends there") from problem


def _header(cells: list[str], place: Place) -> list[str]:
    names = [cell.strip() or f"column {number}" for number, cell in enumerate(cells, 1)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise place.error(f"the column '{twice}' is named twice", "give every column its own name")
    return names


_RULE = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)
_LONGEST_FRONT = 1 << 16


def front_matter(text: str, place: Place) -> tuple[dict[str, Any], int]:
    """Return the YAML between two lines of ``---`` at the top, and where the text goes on."""
    opening = _RULE.match(text)
    closing = _RULE.search(text, opening.end(), opening.end() + _LONGEST_FRONT) if opening else None
    if opening is None or closing is None:
        return {}, 0
    cure = "fix the YAML between the --- lines, or begin the file with a blank line"
    # The blank line stands for the first rule, so that errors name the line of the file.
    found = parse_yaml("\n" + text[opening.end() : closing.start()], place, scalar=_yaml_scalar, cure=cure)
    if found is None or isinstance(found, dict):
        return found or {}, closing.end()
    return {}, 0  # text between two rules


def _yaml_scalar(node: Any, loader: Any, here: Place) -> Any:
    """Return a YAML value as JSON would hold it; what reads otherwise than it looks (010, 12:30, no) and dates stay text."""
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


def markdown_document(file: File, text: str, place: Place, fields: Fields) -> Document:
    """Return a Markdown file; its front matter gives title, tags and metadata, else its first heading the title."""
    facts, start = front_matter(text, place)
    body = text[start:]
    doc_id = file.doc_id
    if fields.id_field is not None and fields.id_field in facts:
        doc_id = id_of(facts.pop(fields.id_field), place.at(fields.id_field))
    name = fields.title_field or usual_field(facts, TITLES)
    title = facts.pop(name, None) if name is not None else None
    tags = tags_of(facts.pop(TAGS, None), place.at(TAGS))
    metadata = {key: value for key, value in facts.items() if key != METADATA}
    if isinstance(title, bool) or not isinstance(title, str | int | float | None):
        raise place.at(name or "").error(f"{shown(title)} is not text", "write the title as text")
    return Document(
        usable_id(doc_id, place),
        plain(body),
        plain(_first_heading(body) if title is None else str(title)),
        with_metadata(metadata, facts, place),
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


class _Page(HTMLParser):
    """Collects what a reader of an HTML page sees, block by block."""

    hidden = frozenset({"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "canvas"})
    inline = frozenset({
        "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "label",
        "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
    })  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.inside: Counter[str] = Counter()
        self.parts: list[str] = []
        self.named: dict[str, list[str]] = {"title": [], "h1": []}
        """The text of every title and heading."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside[tag] += 1
        if tag in self.named:
            self.named[tag].append("")
        if tag not in self.inline:
            self.parts.append(" " if tag in ("td", "th") else "\n")

    def handle_endtag(self, tag: str) -> None:
        self.inside[tag] = max(0, self.inside[tag] - 1)
        if tag not in self.inline and tag not in ("td", "th"):
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if any(self.inside[tag] for tag in self.hidden):
            return
        for tag in [tag for tag in self.named if self.inside[tag]]:
            self.named[tag][-1] += data
        if not self.inside["title"]:
            self.parts.append(data if self.inside["pre"] else data.replace("\n", " "))

    @property
    def title(self) -> str:
        """The title of the page, else its first heading."""
        return " ".join([*self.named["title"], *self.named["h1"], ""][0].split())

    @property
    def text(self) -> str:
        """The visible text, a line a block."""
        lines = (" ".join(line.split()) for line in "".join(self.parts).split("\n"))
        return "\n".join(line for line in lines if line)


def html_document(file: File, text: str, place: Place) -> Document:
    """Return an HTML page; raises Empty if it shows nothing."""
    page = _Page()
    try:
        page.feed(text)
        page.close()
    except AssertionError as problem:  # how the parser says that a <![…]> is unknown to it
        raise place.on(page.getpos()[0]).error(f"not readable HTML: {problem}", "fix or remove the markup there") from problem
    if not page.text:
        raise Empty("there is no visible text in it", "save the page as the browser shows it, with its text")
    return Document(usable_id(file.doc_id, place), plain(page.text), plain(page.title))


def pdf_document(file: File, content: BufferedReader, place: Place) -> Document:
    """Return a PDF; raises Empty if its pages hold no text."""
    reading = pdf_reader(file.path)
    try:
        reader = reading(content)
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
        raise Empty("there is no text in the PDF (are its pages pictures?)", "run text recognition on it first")
    return Document(usable_id(file.doc_id, place), plain(text), plain(str(title or "").strip()), {"pages": len(pages)})
