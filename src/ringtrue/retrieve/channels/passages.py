"""A document in passages, and passages in threads: what the memory retriever reads.

A passage is the title or a line of the text; a line that is too long is cut where sentences end. A thread is what belongs
together in order: the passages of one document, or, where documents are no longer than one passage and say which session or
thread they are part of, those of all its documents. So a chat is read alike whether its turns are documents or its sessions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ringtrue.records import Document
from ringtrue.retrieve.channels.dense import Dense
from ringtrue.retrieve.chunk import sentences
from ringtrue.retrieve.documents import DocumentStore, scope_values
from ringtrue.retrieve.encode import DEFAULT_MODEL

LONGEST = 96
"""Tokens of a passage: a long turn of a talk, a short paragraph."""
TOGETHER = ("conversation", "conversation_id", "thread", "thread_id", "session", "session_id")
"""Metadata fields that say what a short document is part of; where it has several, together."""
DATES = ("created_at", "date")
"""Metadata fields that order the documents of a thread, before their ids do."""
_SAYS = re.compile(r"\w")
_NUMBER = re.compile(r"(\d+)")
Thread = tuple[str, ...]
Place = tuple[Any, ...]


def passages_of(document: Document) -> list[str]:
    """Return the passages of a document, the title first.

    >>> passages_of(Document("d", "Ann: Hello.\\n\\nBen: Hi!", "8 May"))
    ['8 May', 'Ann: Hello.', 'Ben: Hi!']
    """
    found = [document.title.strip()] if _SAYS.search(document.title) else []
    for line in document.text.splitlines():
        if _SAYS.search(line):
            found += [part for span in sentences(line, tokens=LONGEST) if (part := line[span.start : span.end].strip())]
    return found


def thread_of(document: Document, passages: Sequence[str], *, group: Sequence[str]) -> Thread:
    """Return what a document is part of: itself, unless ``group``, or a field that is there for this, says more.

    >>> turn = Document("t1", "Ann: Hello.", metadata={"session": "s4"})
    >>> thread_of(turn, ["Ann: Hello."], group=())
    ('session', 's4')
    """
    if group or len(passages) == 1:
        parts = [(name, value) for name in group or TOGETHER for value in scope_values(document.metadata.get(name))]
        if parts:
            return tuple(text for part in parts for text in part)
    return ("", document.doc_id)


def place_of(document: Document) -> Place:
    """Return what orders the documents of a thread: their date, then their id, in which 2 comes before 10.

    >>> place_of(Document("D1:2", "")) < place_of(Document("D1:10", ""))
    True
    """
    date = next((str(document.metadata[name]) for name in DATES if document.metadata.get(name)), "")
    parts = _NUMBER.split(document.doc_id)
    return (date, [int(part) if place % 2 else part for place, part in enumerate(parts)], document.doc_id)


class PassageVectors(Dense):
    """The vectors of all passages, kept and brought up to the collection as those of the dense channel are."""

    def __init__(self, collection: DocumentStore, *, model: str = DEFAULT_MODEL, name: str = "passages") -> None:
        super().__init__(collection, model=model, name=name)
        self.folder = self.folder.with_name(f"passages-{self.encoder.key}")

    def _entries(self, since: int) -> Iterator[tuple[int, int, str]]:
        for row, document in self.collection.documents(since=since):
            for number, text in enumerate(passages_of(document)):
                yield row, number, text


def is_active(metadata: Mapping[str, Any]) -> bool:
    """Tell whether a document may be shown: one that was retired or archived never is."""
    return metadata.get("record_status", "active") not in ("retired", "archived")
