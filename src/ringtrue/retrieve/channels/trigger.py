"""Exact trigger phrases: a document says which words call it, and a question that holds them finds it.

Words are runs of letters and digits with their marks, case-folded after Unicode NFKC; whatever stands between them is
ignored, so that ``user_id``, ``User-ID`` and ``user id`` are the same two words, and none of them is in "user identity". A
script written without spaces is one word up to the next punctuation. Signs are not words: ``C++`` is the word "c".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ringtrue.errors import InputError
from ringtrue.records import Hit
from ringtrue.retrieve.documents import DocumentStore, inside
from ringtrue.retrieve.index import CachedView
from ringtrue.retrieve.protocol import Scope, check_k, from_channel
from ringtrue.retrieve.words import words_of

Words = tuple[str, ...]


@dataclass(frozen=True)
class _Phrases:
    """Which documents each phrase calls, how long phrases are, and the metadata of the documents called."""

    documents: Mapping[Words, tuple[str, ...]]
    lengths: tuple[int, ...]
    metadata: Mapping[str, Mapping[str, Any]]


class Trigger:
    """Documents one of whose phrases (the metadata ``field``: a text or a list of texts) is in the question, in whole words.

    The score is the number of words of the longest phrase found; among equals, more words in all phrases found come first, then
    document ids descending. Every run of words of the question is looked up: the time does not depend on the number of phrases.
    """

    def __init__(self, collection: DocumentStore, *, field: str = "triggers", name: str = "trigger") -> None:
        self.collection, self.field, self.name = collection, field, name
        self._phrases = CachedView(collection, self._read)

    def _read(self) -> _Phrases:
        documents: dict[Words, list[str]] = {}
        called: dict[str, Mapping[str, Any]] = {}
        for doc_id, facts in self.collection.metadata().items():
            phrases = {tuple(words_of(phrase)) for phrase in _texts(facts.get(self.field), self.field, doc_id)}
            for phrase in phrases - {()}:  # one without a word, only signs, can never be found
                documents.setdefault(phrase, []).append(doc_id)
                called[doc_id] = facts
        lengths = tuple(sorted({len(phrase) for phrase in documents}))
        return _Phrases({phrase: tuple(ids) for phrase, ids in documents.items()}, lengths, called)

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        check_k(k)
        scope = self.collection.check_scope(scope)
        phrases = self._phrases()
        words = words_of(text)
        runs = {
            run
            for length in phrases.lengths
            for start in range(len(words) - length + 1)
            if (run := tuple(words[start : start + length])) in phrases.documents
        }
        longest: dict[str, int] = {}
        total: dict[str, int] = {}
        for run in runs:
            for doc_id in phrases.documents[run]:
                longest[doc_id] = max(longest.get(doc_id, 0), len(run))
                total[doc_id] = total.get(doc_id, 0) + len(run)
        found = [doc_id for doc_id in longest if not scope or inside(phrases.metadata[doc_id], scope)]
        found.sort(key=lambda doc_id: (longest[doc_id], total[doc_id], doc_id), reverse=True)
        return from_channel(self.name, ((doc_id, float(longest[doc_id])) for doc_id in found[:k]))


def _texts(value: Any, field: str, doc_id: str) -> list[str]:
    """Return the phrases of one document; a whole number counts as its digits, as YAML reads ``- 404``."""
    members = value if isinstance(value, list | tuple) else [] if value is None else [value]
    for member in members:
        if isinstance(member, bool) or not isinstance(member, str | int):
            raise InputError(f"trigger: the {field} of document '{doc_id}' hold {member!r:.60}; write a list of texts")
    return [str(member) for member in members]
