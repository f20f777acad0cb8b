"""Markdown, HTML and PDF → a document each. In: one file; out: its text, its title and what it says about itself."""

from __future__ import annotations

import math
import re
from collections import Counter
from contextlib import suppress
from html.parser import HTMLParser
from io import BufferedReader
from itertools import chain, islice, pairwise
from typing import Any

from ringtrue.errors import MissingInput
from ringtrue.formats.text import Place, one_line, parse_yaml, usable_id
from ringtrue.records import Document
from ringtrue.retrieve.chunk import Block, blocks
from ringtrue.retrieve.library import library
from ringtrue.retrieve.protocol import plain
from ringtrue.retrieve.sources.files import File
from ringtrue.retrieve.sources.opening import Empty
from ringtrue.retrieve.sources.records import METADATA, TAGS, TITLES, Fields, id_of, shown, tags_of, usual_field, with_metadata

_RULE = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)
_LONGEST_FRONT = 1 << 16
_HIDDEN = frozenset({"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "canvas"})
_INLINE = frozenset({
    "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "label",
    "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
})  # fmt: skip


def markdown_document(file: File, text: str, place: Place, fields: Fields) -> Document:
    """Return a Markdown file; its front matter gives title, tags and metadata, else its first heading the title."""
    facts, start = _front_matter(text, place)
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


def _front_matter(text: str, place: Place) -> tuple[dict[str, Any], int]:
    """Return the YAML between two lines of ``---`` at the top, as JSON would hold it, and where the text goes on."""
    opening = _RULE.match(text)
    closing = _RULE.search(text, opening.end(), opening.end() + _LONGEST_FRONT) if opening else None
    if opening is None or closing is None:
        return {}, 0
    cure = "mend the YAML between the lines of ---, or begin the file with a blank line"
    found = parse_yaml(text[opening.end() : closing.start()], place, scalar=_scalar, first_line=2, cure=cure)
    if found is None or isinstance(found, dict):
        return found or {}, closing.end()
    return {}, 0  # text between two rules


def _scalar(node: Any, place: Place) -> Any:
    """Return a value of front matter; what reads otherwise than it looks (010, 12:30, no) and dates stay text."""
    kind, written = node.tag.rpartition(":")[2], node.value
    if kind == "null":
        return None
    if kind == "bool" and written.lower() in ("true", "false"):
        return written.lower() == "true"
    with suppress(ValueError):
        number = int(written) if kind == "int" else float(written) if kind == "float" else None
        if number is not None and str(number) == written and math.isfinite(number):
            return number
    return written


def _first_heading(text: str) -> str:
    """Return the words of the first heading, '' if there is none."""
    found = islice(pairwise(chain(blocks(text), [Block(len(text), "")])), 1_000)
    lines = next((text[one.start : after.start].strip().split("\n") for one, after in found if one.kind == "heading"), [""])
    if len(lines) > 1:  # underlined
        return " ".join(" ".join(lines[:-1]).split())
    words = lines[0].strip().lstrip("#").strip()
    bare = words.rstrip("#")
    return bare.strip() if not bare or bare[-1].isspace() else words


class _HtmlText(HTMLParser):
    """Collects what a reader of an HTML page sees: its text, a line a block, its first title and its first heading."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.first: dict[str, list[str]] = {"title": [], "h1": []}
        self.open: Counter[str] = Counter()
        self.begun: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[tag] += 1
        self.begun[tag] += 1
        if tag not in _INLINE:
            self.parts.append(" " if tag in ("td", "th") else "\n")

    def handle_endtag(self, tag: str) -> None:
        if self.open[tag]:
            self.open[tag] -= 1
        if tag not in _INLINE and tag not in ("td", "th"):
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if any(self.open[tag] for tag in _HIDDEN):
            return
        for tag, words in self.first.items():
            if self.open[tag] and self.begun[tag] == 1:
                words.append(data)
        if not self.open["title"]:
            self.parts.append(data if self.open["pre"] else data.replace("\n", " "))


def html_document(file: File, text: str, place: Place) -> Document:
    """Return an HTML page; raises Empty if it shows nothing."""
    page = _HtmlText()
    try:
        page.feed(text)
        page.close()
    except AssertionError as problem:  # how the parser says that a <![…]> is unknown to it
        raise place.on(page.getpos()[0]).error(f"not readable HTML: {problem}", "mend or remove the mark there") from problem
    lines = (" ".join(line.split()) for line in "".join(page.parts).split("\n"))
    visible = "\n".join(line for line in lines if line)
    if not visible:
        raise Empty("there is no visible text in it", "save the page as the browser shows it, with its text")
    title, heading = (" ".join("".join(words).split()) for words in page.first.values())
    return Document(usable_id(file.doc_id, place), plain(visible), plain(title or heading))


def pypdf(file: File) -> Any:
    """Return the library that reads a PDF; raises MissingInput with the command that installs it."""
    try:
        return library("pypdf", "pdf")
    except MissingInput as problem:
        raise MissingInput(one_line(f"{file.path}: {problem}")) from problem


def pdf_document(file: File, content: BufferedReader, place: Place) -> Document:
    """Return a PDF; raises Empty if its pages hold no text."""
    package = pypdf(file)
    try:
        reader = package.PdfReader(content)
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
