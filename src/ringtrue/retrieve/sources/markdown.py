"""Markdown → a document. In: a file's text; out: the text below its front matter, with title, tags and metadata from there."""

from __future__ import annotations

from itertools import chain, islice, pairwise

from ringtrue.formats import Place, usable_id
from ringtrue.records import Document
from ringtrue.retrieve.chunk import Block, blocks
from ringtrue.retrieve.protocol import plain
from ringtrue.retrieve.sources.files import File
from ringtrue.retrieve.sources.front_matter import front_matter
from ringtrue.retrieve.sources.records import METADATA, TAGS, TITLES, Fields, id_of, shown, tags_of, usual_field, with_metadata


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
