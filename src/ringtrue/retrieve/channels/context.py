"""Documents by their passages: words and meaning together, each passage in its context, statistics within the scope.

A passage is the title or a line of the text; a line that is too long is cut where sentences end. A thread is what belongs
together in order: the passages of one document, or, if documents are no longer than one passage and say which session or thread
they are part of, those of all its documents. So a chat is read alike whether its turns are documents or its sessions.

A word is as rare, and a direction of the vectors as common, as it is in the scope that is asked. A passage is read alone, with
its neighbours, and in its whole thread; every reading is brought to the same scale (its distance from the mean in standard
deviations), so that they can be added up. What a document is worth is its best passage, where words and meaning must meet, and
its whole thread. Each hit says what words alone and meaning alone made of it.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringtrue.errors import InputError
from ringtrue.id_columns import Ints
from ringtrue.memory.hook.words import STOP_WORDS
from ringtrue.records import Document, Floats, Hit, Stage
from ringtrue.retrieve.channels.bm25 import MAX_TERMS, analyser
from ringtrue.retrieve.channels.dense import Dense
from ringtrue.retrieve.chunk import sentences
from ringtrue.retrieve.documents import DocumentStore, inside, scope_values
from ringtrue.retrieve.encode import DEFAULT_MODEL
from ringtrue.retrieve.index import CachedView
from ringtrue.retrieve.observe import Fused, Listed, is_observed, tell
from ringtrue.retrieve.protocol import Scope, check_k, finite_number, from_channel, plain, ranked

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
LONGEST = 96
"""Tokens of a passage: a long turn of a talk, a short paragraph."""
TOGETHER = ("conversation", "conversation_id", "thread", "thread_id", "session", "session_id")
"""Metadata fields that say what a short document is part of; if it has several, together."""
DATES = ("created_at", "date")
"""Metadata fields that order the documents of a thread, before their ids do."""
_SAYS = re.compile(r"\w")
_NUMBER = re.compile(r"(\d+)")
Thread = tuple[str, ...]
Place = tuple[Any, ...]
Postings = Mapping[str, tuple[Ints, Floats]]
"""Word → the passages that have it, and how often."""
NEAR, WIDE = 1, 3
"""Passages before and after that are read with one."""
SATURATION, LENGTH = 0.9, 0.4
"""k1 and b of BM25, as is usual for short texts (Trotman, Puurula and Burgess 2014)."""
EVENED = 3.0
"""How far the directions of the vectors are evened out: a direction's variance counts beside this many times the mean one."""
BESIDE = 0.5
"""What a neighbour's meaning counts."""


# Documents in passages, passages in threads


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

    def __init__(self, collection: DocumentStore, *, model: str) -> None:
        super().__init__(collection, model=model, name="passages")
        self.folder = self.folder.with_name(f"passages-{self.encoder.key}")

    def _entries(self, since: int) -> Iterator[tuple[int, int, str]]:
        for row, document in self.collection.documents(since=since):
            for number, text in enumerate(passages_of(document)):
                yield row, number, text


def is_active(metadata: Mapping[str, Any]) -> bool:
    """Tell whether a document may be shown: one that was retired or archived never is."""
    return metadata.get("record_status", "active") not in ("retired", "archived")


# A scope as arrays


class Threads:
    """The passages of one scope, documents of a thread in order and passages of a document side by side. It never changes.

    ``passages`` are their places in the whole collection, ``documents`` and ``threads`` what each belongs to, counted from 0,
    ``lengths`` their words, ``vectors`` one row each.
    """

    def __init__(self, passages: Ints, documents: Ints, threads: Ints, lengths: Floats, vectors: NDArray[np.float32]) -> None:
        self.vectors = vectors
        self.place = passages
        self.document_starts = np.flatnonzero(np.diff(documents, prepend=-1))
        starts = np.flatnonzero(np.diff(threads, prepend=-1))
        ends = np.append(starts[1:], len(threads))
        here = np.arange(len(threads))
        self.thread_of_document = threads[self.document_starts]
        first, last = starts[threads], ends[threads]
        self._before, self._after = here > first, here < last - 1
        reach = [(np.maximum(first, here - beside), np.minimum(last, here + beside + 1)) for beside in (0, NEAR, WIDE)]
        self._readings = [*reach, (starts, ends)]
        total = np.concatenate(([0.0], np.cumsum(lengths)))
        self._lengths = [total[high] - total[low] for low, high in self._readings]

    def __len__(self) -> int:
        return len(self.place)

    def words(self, words: Sequence[str], postings: Postings) -> tuple[Floats, Floats]:
        """Return what the passages say in the words asked for, read alone, near and wide; and what whole threads say (BM25)."""
        counts = np.zeros((len(words), len(self) + 1))
        for place, word in enumerate(words):
            if word in postings:
                passages, often = postings[word]
                at = np.searchsorted(self._sorted, passages)
                at[at == len(self)] = 0
                mine = self._sorted[at] == passages
                counts[place, self._order[at[mine]] + 1] = often[mine]
        total = np.cumsum(counts, axis=1)
        found = [
            standard(_bm25(total[:, high] - total[:, low], lengths))
            for (low, high), lengths in zip(self._readings, self._lengths, strict=True)
        ]
        return found[0] + found[1] + found[2], found[3]

    @cached_property
    def _order(self) -> Ints:
        return np.argsort(self.place)

    @cached_property
    def _sorted(self) -> Ints:
        return self.place[self._order]

    def meaning(self, query: NDArray[np.float32]) -> tuple[Floats, Floats]:
        """Return how near the passages are to a question, alone and with their neighbours; and how near whole threads are.

        With neighbours, directions that are common count less: what all passages share, such as the names of two who talk,
        says nothing about one of them. That is to vectors what inverse document frequency is to words.
        """
        # einsum treats every row alike, which BLAS does not: equal passages get bitwise equal cosines.
        plain = np.einsum("ij,j->i", self.vectors, query).astype(np.float64)
        mean, turn, evened = self._evened
        asked = (query - mean) @ turn
        length = float(np.linalg.norm(asked))
        near = np.einsum("ij,j->i", evened, asked / length if length else asked).astype(np.float64)
        around = near.copy()
        around[1:] += BESIDE * near[:-1] * self._before[1:]
        around[:-1] += BESIDE * near[1:] * self._after[:-1]
        whole = np.einsum("ij,j->i", self._whole, query).astype(np.float64)
        return standard(plain) + standard(around), standard(whole)

    @cached_property
    def _whole(self) -> NDArray[np.float32]:
        """One vector for each thread: the mean of its passages."""
        total = np.add.reduceat(self.vectors, self._readings[-1][0], axis=0)
        lengths = np.linalg.norm(total, axis=1, keepdims=True)
        return np.asarray(total / np.where(lengths > 0, lengths, 1.0), np.float32)

    @cached_property
    def _evened(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        mean = self.vectors.mean(axis=0)
        centred = (self.vectors - mean).astype(np.float64)
        variances, directions = np.linalg.eigh(centred.T @ centred / max(1, len(centred)))
        common = float(variances.mean())
        turn = directions / np.sqrt(np.maximum(variances, 0.0) + EVENED * common) if common > 0 else directions
        evened = centred @ turn
        lengths = np.linalg.norm(evened, axis=1, keepdims=True)
        evened = evened / np.where(lengths > 0, lengths, 1.0)
        return mean, turn.astype(np.float32), evened.astype(np.float32)

    def by_document(self, passages: Floats, threads: Floats) -> Floats:
        """Return every document's score: its best passage, and the thread it is part of."""
        return np.maximum.reduceat(passages, self.document_starts) + threads[self.thread_of_document]


def _bm25(counts: Floats, lengths: Floats) -> Floats:
    """Return the BM25 score of every text, from how often it has each word."""
    mean = lengths.mean()
    norm = SATURATION * (1 - LENGTH + LENGTH * (lengths / mean if mean > 0 else 1.0))
    having = (counts > 0).sum(axis=1, keepdims=True)
    rare = np.log1p((counts.shape[1] - having + 0.5) / (having + 0.5))
    return np.asarray((rare * counts * (SATURATION + 1) / (counts + norm)).sum(axis=0))


def standard(values: Floats) -> Floats:
    """Return values as distances from their mean in standard deviations; all 0 if they are equal.

    >>> standard(np.array([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    spread = float(values.std()) if len(values) else 0.0
    return (values - values.mean()) / spread if spread > 1e-12 else np.zeros(len(values))


# The retriever


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


class PassageRetriever:
    """Documents by their passages: words and meaning together, in their context, statistics within the scope."""

    name = "passages"

    def __init__(
        self,
        collection: DocumentStore,
        *,
        model: str = DEFAULT_MODEL,
        language: str = "english",
        group: Sequence[str] = (),
        words: float = 1.0,
        meaning: float = 1.0,
    ) -> None:
        if not words and not meaning:
            raise InputError("memory cannot have words=0 and meaning=0; leave one of them above 0")
        self.collection, self.group = collection, tuple(group)
        self.shares = tuple(
            finite_number("memory", name, value, low=0) for name, value in (("words", words), ("meaning", meaning))
        )
        self.index = PassageVectors(collection, model=model)
        self.analyser = analyser(language)
        self._stopped = {stem for word in STOP_WORDS for stem in self.analyser.analyze(word)}
        self._documents = CachedView(collection, self._read)
        encoder = self.index.encoder
        self._encode = lru_cache(64)(lambda text: np.asarray(encoder.encode([text], query=True)[0], np.float32))
        self._lock = threading.Lock()

    @property
    def parts(self) -> list[PassageVectors]:
        """The index it keeps."""
        return [self.index]

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
                words = self.analyser.analyze(plain(said))
                for word, count in Counter(words).items():
                    places.setdefault(word, []).append(len(rows))
                    often.setdefault(word, []).append(count * TITLE if heavy else count)
                lengths.append(len(words) * (TITLE if heavy else 1))
                of_document.append(number)
                of_thread.append(threads.setdefault(thread, len(threads)))
                rows.append(at.get((row, place), -1))
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

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        return self.search_many([text], k=k, scope=scope)[0]

    def search_many(self, texts: Sequence[str], *, k: int = 10, scope: Scope | None = None) -> list[list[Hit]]:
        """Return the answers to several questions."""
        check_k(k)
        wanted = self.collection.check_scope(scope)
        documents = self._documents()
        start = time.perf_counter()
        answers = [self._answer(documents, text, wanted) for text in texts]
        found = [self._hits(answer, k) for answer in answers]
        if is_observed():
            trees, ms = [], (time.perf_counter() - start) * 1000 / max(1, len(texts))
            for text, answer, hits in zip(texts, answers, found, strict=True):
                alone = [Listed(name, tuple(self._alone(answer, part, k)), 0.0) for part, name in enumerate(PARTS)]
                trees.append(Fused.of(self.name, text, hits, alone, answer[0][:k], ms))
            tell(self, trees)
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
        # The place of each in the order: sorting the order gives it back.
        ranks = [np.argsort(np.argsort(-values, kind="stable"), kind="stable") + 1 for values in alone]
        hits = []
        for rank, (doc_id, score) in enumerate(best[:k], 1):
            at = place[doc_id]
            said = [Stage(name, int(of[at]), float(values[at])) for name, of, values in zip(PARTS, ranks, alone, strict=True)]
            hits.append(Hit(doc_id, score, None, {self.name: rank}, None, (*said, Stage(self.name, rank, score))))
        return hits

    def _alone(self, answer: Answer, part: int, k: int) -> list[Hit]:
        """Return what the words (0) or the meaning (1) alone would find."""
        _, alone, place = answer
        if not alone or not self.shares[part]:
            return []
        return from_channel(PARTS[part], ranked(zip(place, alone[part].tolist(), strict=True), k=k))

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
