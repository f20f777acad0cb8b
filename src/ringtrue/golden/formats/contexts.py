"""Passages that come without an id of their own, as evaluation rows of RAG tools carry them."""

from __future__ import annotations

import hashlib

from ringtrue.formats.text import Place
from ringtrue.golden.formats.draft import Draft
from ringtrue.records import Document


def context_id(text: str) -> str:
    """Return an id made from the passage itself, so that the same passage is the same document in every row.

    >>> context_id("Check-in is at three.")
    'ctx-ab5c77c71f20'
    """
    return "ctx-" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def add_context(document: Document, draft: Draft, place: Place) -> None:
    """Keep a passage; raises InputError when its id stands for another passage already."""
    known = draft.documents.get(document.doc_id)
    if known is None:
        draft.add_document(document, place)
    elif known.text != document.text:
        raise place.error(f"the id '{document.doc_id}' stands for another passage too", "give each passage its own id")
