"""Documents by their passages: words and meaning together, each passage in its context, statistics within the scope (A-10).

What a document is worth is its best passage, where words and meaning must meet, and its whole thread. Each hit says what words
alone and meaning alone made of it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringtrue.errors import InputError
from ringtrue.memory.hook.words import STOP_WORDS
from ringtrue.records import Floats, Hit, Ints, Stage
from ringtrue.retrieve.channels.bm25 import MAX_TERMS, analyser
from ringtrue.retrieve.channels.passages import PassageVectors, is_active, passages_of, place_of, thread_of
from ringtrue.retrieve.channels.threads import Postings, Threads, standard
from ringtrue.retrieve.documents import DocumentStore, inside
from ringtrue.retrieve.index import CachedView
from ringtrue.retrieve.observe import notes
from ringtrue.retrieve.protocol import Scope, check_k, from_channel, plain, ranked

WORDS, MEANING = (0.3, 0.3), (0.5, 0.7)
"""What a reading of (a passage, its whole thread) counts by words and by meaning. Chosen on LoCoMo's first half and the shipped
sets, where the figures are flat: ``ringtrue bench quality --memory`` measures them."""
TITLE = 2
"""How often a word of the title or of a tag counts."""
PARTS = ("words", "meaning")
_SCOPES = 64
_RECENT = 128


Key = tuple[tuple[str, str], ...]
Answer = tuple[list[tuple[str, float]], list[Floats], dict[str, int]]
"""Documents with their scores, best first; what words and meaning say of each; and its place there."""


@dataclass(frozen=True)
class _Documents:
    """All that is searched: documents, their passages and words. It never changes."""

    ids: tuple[str, ...]
    metadata: Mapping[str, Mapping[str, Any]]
    document_of: Ints
    thread_of: Ints
    lengths: Floats
    vectors: NDArray[np.float32]
    postings: Postings
    scopes: dict[Key, tuple[Threads, list[str]] | None]
    answers: dict[tuple[str, Key], Answer]
    """What was asked last, since several channels start from the same answer."""


class Context:
    """Documents by their passages: words and meaning together, in their context, statistics within the scope."""

    name = "passages"

    def __init__(
        self,
        collection: DocumentStore,
        *,
        model: str,
        language: str = "english",
        group: Sequence[str] = (),
        words: float = 1.0,
        meaning: float = 1.0,
    ) -> None:
        for option, value in (("words", words), ("meaning", meaning)):
            if not 0 <= value <= 1000:
                raise InputError(f"memory cannot have {option}={value!r}; use a weight from 0")
        if not words and not meaning:
            raise InputError("memory cannot have words=0 and meaning=0; leave one of them above 0")
        self.collection, self.group = collection, tuple(group)
        self.shares = words, meaning
        self.index = PassageVectors(collection, model=model)
        self.analyser = analyser(language)
        self._stopped = {stem for word in STOP_WORDS for stem in self.analyser.analyze(word)}
        self._known: dict[str, list[str]] = {}
        self._documents = CachedView(collection, self._read)
        self._encode = lru_cache(64)(self._encoded)
        self._lock = threading.Lock()

    @property
    def parts(self) -> list[PassageVectors]:
        """The index it keeps."""
        return [self.index]

    def ready(self) -> None:
        """Bring everything up to the collection."""
        self._documents()

    def _read(self) -> _Documents:
        loaded = self.index.ready()
        at = {key: place for place, key in enumerate(zip(loaded.rows.tolist(), loaded.numbers.tolist(), strict=True))}
        entries = []
        for row, document in self.collection.documents():
            passages = passages_of(document)
            if passages and is_active(document.metadata):
                thread = thread_of(document, passages, group=self.group)
                entries.append((thread, place_of(document), row, document, passages))
        entries.sort(key=lambda entry: entry[:2])  # the order is that of the documents, however they came in
        threads: dict[tuple[str, ...], int] = {}
        known: dict[str, list[str]] = {}
        places: dict[str, list[int]] = {}
        often: dict[str, list[int]] = {}
        of_document: list[int] = []
        of_thread: list[int] = []
        lengths: list[int] = []
        rows: list[int] = []
        for number, (thread, _, row, document, passages) in enumerate(entries):
            for place, text in enumerate(passages):
                heavy = place == 0 and bool(document.title.strip())
                said = f"{text}\n{' '.join(document.tags)}" if place == 0 else text
                words = known[said] = self._known.get(said) or known.get(said) or self.analyser.analyze(plain(said))
                for word, count in Counter(words).items():
                    places.setdefault(word, []).append(len(rows))
                    often.setdefault(word, []).append(count * TITLE if heavy else count)
                lengths.append(len(words) * (TITLE if heavy else 1))
                of_document.append(number)
                of_thread.append(threads.setdefault(thread, len(threads)))
                rows.append(at.get((row, place), -1))
        self._known = known
        taken = np.array(rows, np.int64)
        vectors = np.zeros((len(rows), self.index.encoder.size), np.float32)
        vectors[taken >= 0] = loaded.matrix[taken[taken >= 0]]
        return _Documents(
            tuple(entry[3].doc_id for entry in entries),
            {entry[3].doc_id: entry[3].metadata for entry in entries},
            np.array(of_document, np.int64),
            np.array(of_thread, np.int64),
            np.array(lengths, np.float64),
            vectors,
            {word: (np.array(found, np.int64), np.array(often[word], np.float64)) for word, found in places.items()},
            {},
            {},
        )

    def metadata(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the metadata of every document that may be shown, by id."""
        return self._documents().metadata

    def _within(self, documents: _Documents, scope: Mapping[str, str]) -> tuple[Threads, list[str]] | None:
        key = tuple(sorted(scope.items()))
        with self._lock:
            if key not in documents.scopes:
                if len(documents.scopes) >= _SCOPES:
                    documents.scopes.clear()
                documents.scopes[key] = self._cut(documents, scope)
            return documents.scopes[key]

    @staticmethod
    def _cut(documents: _Documents, scope: Mapping[str, str]) -> tuple[Threads, list[str]] | None:
        kept = np.array([not scope or inside(documents.metadata[doc_id], scope) for doc_id in documents.ids], np.bool_)
        if not kept.any():
            return None
        passages = np.flatnonzero(kept[documents.document_of])
        of_document = np.unique(documents.document_of[passages], return_inverse=True)[1]
        of_thread = np.unique(documents.thread_of[passages], return_inverse=True)[1]
        threads = Threads(passages, of_document, of_thread, documents.lengths[passages], documents.vectors[passages])
        return threads, [doc_id for doc_id, mine in zip(documents.ids, kept.tolist(), strict=True) if mine]

    def terms(self, text: str) -> list[str]:
        """Return the words of a question that can find something; what stands in any question only where there is no other."""
        words = list(dict.fromkeys(self.analyser.analyze(plain(text))))[:MAX_TERMS]
        return [word for word in words if word not in self._stopped] or words

    def _encoded(self, text: str) -> NDArray[np.float32]:
        return np.asarray(self.index.encoder.encode([text], query=True)[0], np.float32)

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        return self.search_many([text], k=k, scope=scope)[0]

    def search_many(self, texts: Sequence[str], *, k: int = 10, scope: Scope | None = None) -> list[list[Hit]]:
        """Return the answers to several questions."""
        check_k(k)
        wanted = self.collection.check_scope(scope)
        documents = self._documents()
        noted = notes()
        found = [self._hits(self._answer(documents, text, wanted), k) for text in texts]
        if noted is not None:
            for part, name in enumerate(PARTS):
                noted.ask(name, _Part(self, part), texts, k=k, scope=scope)
            noted.fused(self, self.name, texts, [[hit.doc_id for hit in hits] for hits in found], found)
        return found

    def _answer(self, documents: _Documents, text: str, scope: Mapping[str, str]) -> Answer:
        key = text, tuple(sorted(scope.items()))
        known = documents.answers.get(key)
        if known is None:
            within = self._within(documents, scope)
            if within is None or not plain(text).strip():
                return [], [], {}
            threads, ids = within
            words, meaning = self.evidence(documents, threads, text)
            scores = standard(threads.by_document(words[0] + meaning[0], words[1] + meaning[1]))
            alone = [standard(threads.by_document(*part)) for part in (words, meaning)]
            best = ranked(zip(ids, scores.tolist(), strict=True), k=len(ids))
            known = best, alone, {doc_id: place for place, doc_id in enumerate(ids)}
            if len(documents.answers) >= _RECENT:
                documents.answers.clear()
            documents.answers[key] = known
        return known

    def _hits(self, answer: Answer, k: int) -> list[Hit]:
        best, alone, place = answer
        ranks = [_ranks(values) for values in alone]
        hits = []
        for rank, (doc_id, score) in enumerate(best[:k], 1):
            at = place[doc_id]
            said = [Stage(name, int(of[at]), float(values[at])) for name, of, values in zip(PARTS, ranks, alone, strict=True)]
            hits.append(Hit(doc_id, score, None, {self.name: rank}, None, (*said, Stage(self.name, rank, score))))
        return hits

    def evidence(
        self, documents: _Documents, threads: Threads, text: str
    ) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Return what (passages, whole threads) have to say by words and by meaning."""
        by_words = by_meaning = np.zeros(len(threads)), np.zeros(int(threads.thread_of_document.max()) + 1)
        words, meaning = self.shares
        if words:
            passages, whole = threads.words(self.terms(text), documents.postings)
            by_words = words * WORDS[0] * passages, words * WORDS[1] * whole
        if meaning:
            passages, whole = threads.meaning(self._encode(text))
            by_meaning = meaning * MEANING[0] * passages, meaning * MEANING[1] * whole
        return by_words, by_meaning

    def alone(self, part: int, text: str, *, k: int, scope: Scope | None) -> list[Hit]:
        """Return what the words (0) or the meaning (1) alone would find."""
        _, alone, place = self._answer(self._documents(), text, self.collection.check_scope(scope))
        if not alone or not self.shares[part]:
            return []
        return from_channel(PARTS[part], ranked(zip(place, alone[part].tolist(), strict=True), k=k))


def _ranks(values: Floats) -> Ints:
    ranks = np.empty(len(values), np.int64)
    ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return ranks


class _Part:
    """Words or meaning alone, for whoever observes."""

    def __init__(self, passages: Context, part: int) -> None:
        self.passages, self.part = passages, part

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        return self.passages.alone(self.part, text, k=k, scope=scope)
