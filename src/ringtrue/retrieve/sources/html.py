"""HTML → a document. In: the text of a page; out: what its reader sees of it, a line a block, and its title."""

from __future__ import annotations

from html.parser import HTMLParser

from ringtrue.formats import Place, usable_id
from ringtrue.records import Document
from ringtrue.retrieve.protocol import plain
from ringtrue.retrieve.sources.files import File
from ringtrue.retrieve.sources.opening import Empty


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
    """Return an HTML page; raises Empty where it shows nothing."""
    page = _Page()
    try:
        page.feed(text)
        page.close()
    except AssertionError as problem:  # how the parser says that a <![…]> is unknown to it
        raise place.on(page.getpos()[0]).error(f"not readable HTML: {problem}", "mend or remove the mark there") from problem
    if not page.text:
        raise Empty("there is no visible text in it", "save the page as the browser shows it, with its text")
    return Document(usable_id(file.doc_id, place), plain(page.text), plain(page.title))
