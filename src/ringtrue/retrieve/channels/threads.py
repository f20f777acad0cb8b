"""The passages of one scope as arrays, and what a question finds in them: words and meaning, with context.

Statistics are those of the scope: a word is as rare, and a direction of the vectors as common, as it is in the store that is
asked. A passage is read alone, with its neighbours, and in its whole thread; every reading is brought to the same scale (its
distance from the mean in standard deviations), so that they can be added up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ringtrue.records import Floats, Ints

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
    """Return values as distances from their mean in standard deviations; all 0 where they are equal.

    >>> standard(np.array([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    spread = float(values.std()) if len(values) else 0.0
    return (values - values.mean()) / spread if spread > 1e-12 else np.zeros(len(values))
