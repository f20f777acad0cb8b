"""Markdown, HTML and PDF → documents. In: the text or bytes of a file; out: one document, with title, tags and metadata."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from html.parser import HTMLParser
from io import BufferedReader
from itertools import chain, islice, pairwise
from typing import Any, cast

from ringtrue.formats import Place, usable_id
from ringtrue.records import Document
from ringtrue.retrieve.chunk import Block, blocks
from ringtrue.retrieve.protocol import plain
from ringtrue.retrieve.sources.files import Empty, File, pdf_reader
from ringtrue.retrieve.sources.records import METADATA, TAGS, TITLES, Fields, id_of, shown, tags_of, usual_field, with_metadata

_RULE = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)
_LONGEST_FRONT, _DEEPEST = 1 << 16, 100


def front_matter(text: str, place: Place) -> tuple[dict[str, Any], int]:
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


def html_document(file: File, text: str, place: Place) -> Document:
    """Return an HTML page; raises Empty if it shows nothing."""
    page = _Page()
    try:
        page.feed(text)
        page.close()
    except AssertionError as problem:  # how the parser says that a <![…]> is unknown to it
        raise place.on(page.getpos()[0]).error(f"not readable HTML: {problem}", "mend or remove the mark there") from problem
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
