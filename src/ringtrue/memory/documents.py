"""Memories as documents, the same as those the golden loader makes of the same files, so that a score means the same."""

from __future__ import annotations

from collections.abc import Iterable

from ringtrue.memory.hook.memory import Memory, as_record
from ringtrue.records import Document

OWN_PLACES = ("id", "title", "tags")
"""Fields of a memory that a document has a place for; all others are its metadata."""


def documents_of(memories: Iterable[Memory]) -> list[Document]:
    """Return a document for each memory: its id, title, body and tags, and every other field as metadata.

    >>> from ringtrue.memory.hook.memory import Memory
    >>> (found,) = documents_of([Memory(id="x", category="preference", title="Tabs", body="tabs", content={"topic": "tabs"})])
    >>> found.doc_id, found.text, found.metadata["category"], found.metadata["content"]
    ('x', 'tabs', 'preference', {'topic': 'tabs'})
    """
    return [
        Document(
            memory.id,
            memory.body,
            memory.title,
            {name: value for name, value in as_record(memory).items() if name not in OWN_PLACES},
            memory.tags,
        )
        for memory in memories
    ]
