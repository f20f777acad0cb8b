"""Learned sparse retrieval: a masked-language model gives every passage weights over its vocabulary, a query the same.

The score is the dot product of the two, the best passage counts for its document. Unlike a dense vector almost all weights are
zero, so that they are kept as postings by vocabulary entry and only those of the query are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringtrue.errors import InputError
from ringtrue.id_columns import Ints
from ringtrue.records import Floats, Hit
from ringtrue.retrieve.documents import DocumentStore, inside
from ringtrue.retrieve.encode.model import Model
from ringtrue.retrieve.encode.vectors import Cache
from ringtrue.retrieve.index import Progress, StoredIndex
from ringtrue.retrieve.protocol import Scope, check_k, from_channel, plain, ranked

PASSAGE = np.dtype([("row", "<i8"), ("number", "<i4"), ("entries", "<i4")])
"""A line of passages.bin: the document's row, the passage's number, how many lines of weights.bin are its own."""
ENTRY = np.dtype([("token", "<i4"), ("weight", "<f4")])
BLOCK = 4096


class Postings:
    """A loaded index: which passages have which vocabulary entry, with its weight. It never changes."""

    def __init__(self, table: NDArray[Any], entries: NDArray[Any], ids: Mapping[int, str]) -> None:
        self.ids = ids
        self.rows, self.numbers = table["row"].copy(), table["number"].copy()
        # The entries ordered by token; those of token t stand from first[t] to first[t + 1].
        order = np.argsort(entries["token"], kind="stable")
        self.posted = np.repeat(np.arange(len(table), dtype=np.int32), table["entries"])[order]
        self.weights = entries["weight"][order]
        self.first = np.concatenate(([0], np.cumsum(np.bincount(entries["token"], minlength=1))))
        # Passages of a document stand side by side.
        self.starts = np.flatnonzero(np.diff(self.rows, prepend=-1))
        self.ends = np.append(self.starts[1:], len(self.rows))

    def scores(self, query: NDArray[Any]) -> Floats:
        """Return the dot product of every passage with a query."""
        scores = np.zeros(len(self.rows))
        for token, weight in query.tolist():
            if token + 1 < len(self.first):
                part = slice(self.first[token], self.first[token + 1])
                scores[self.posted[part]] += self.weights[part] * float(weight)  # a passage has a token once
        return scores

    def answer(
        self, scores: Floats, k: int, name: str, scope: Mapping[str, str], metadata: Mapping[str, Mapping[str, Any]]
    ) -> list[Hit]:
        """Return the best documents by their best passage."""
        best = np.maximum.reduceat(scores, self.starts)
        places = self._inside(np.flatnonzero(best > 0), scope, metadata)
        if len(places) > k:
            # All that tie with the last place stay: their ids decide, not their order in the index.
            cut = np.partition(best[places], len(places) - k)[len(places) - k]
            places = places[best[places] >= cut]
        at = {self.ids[int(self.rows[self.starts[place]])]: place for place in places.tolist()}
        found = ranked(((doc_id, float(best[place])) for doc_id, place in at.items()), k=k)
        chunks: dict[str, str] = {}
        for doc_id, _ in found:
            start, end = self.starts[at[doc_id]], self.ends[at[doc_id]]
            chunks[doc_id] = f"{doc_id}:chunk:{int(self.numbers[start + int(scores[start:end].argmax())])}"
        return from_channel(name, found, chunks)

    def _inside(self, places: Ints, scope: Mapping[str, str], metadata: Mapping[str, Mapping[str, Any]]) -> Ints:
        """Return the documents that are still there, and within the scope where there is one."""
        ids = [self.ids.get(row) for row in self.rows[self.starts[places]].tolist()]
        kept = [doc_id is not None and (not scope or inside(metadata.get(doc_id, {}), scope)) for doc_id in ids]
        return places[np.array(kept, np.bool_)]


class Splade(StoredIndex[Postings]):
    """The sparse vectors of a collection's passages under one model; ``model`` is a folder or a name."""

    def __init__(self, collection: DocumentStore, *, model: str | Path, name: str = "splade") -> None:
        if not str(model):
            raise InputError("splade has no model of its own; name one: splade(model='folder or name')")
        self.model = Model.named(str(model))
        super().__init__(collection, f"splade-{self.model.key}")
        self.name = name

    @cached_property
    def cache(self) -> Cache:
        """The weights of every passage ever seen: what was encoded once is never encoded again."""
        if self.model.head != "sparse":
            raise InputError(f"{self.model.folder}: is not a learned sparse encoder; name one with a masked-language head")
        return Cache(self.collection.folder / "splade", self.model.key, self._encode)

    def _encode(self, texts: Sequence[str]) -> Iterable[bytes]:
        return (_entries(row).tobytes() for row in self.model.run(texts))

    def holds(self, place: Path, count: int) -> bool:
        try:
            return self._end(place, count) * ENTRY.itemsize <= (place / "weights.bin").stat().st_size
        except (FileNotFoundError, ValueError):
            return False

    def _end(self, place: Path, count: int) -> int:
        """Return how many entries the first ``count`` passages have; raises ValueError when there are fewer passages."""
        table = np.fromfile(place / "passages.bin", PASSAGE, count)
        if len(table) < count:
            raise ValueError(place)
        return int(table["entries"].sum(dtype=np.int64))

    def fill(self, place: Path, *, since: int, before: int, progress: Progress | None) -> int:
        end = self._end(place, before) if before else 0
        source = self.collection.passages(since=since)
        count = before
        with (place / "passages.bin").open("ab") as table, (place / "weights.bin").open("ab") as weights:
            table.truncate(before * PASSAGE.itemsize)  # what a killed process left behind the last whole state
            weights.truncate(end * ENTRY.itemsize)
            while block := list(islice(source, BLOCK)):
                texts = (f"{title}\n{text}".strip() for _, title, _, text in block)
                rows = [row for part in self.cache.stream(texts, progress=progress) for row in part]
                weights.write(b"".join(rows))
                lines = [(at, number, len(row) // ENTRY.itemsize) for (at, _, number, _), row in zip(block, rows, strict=True)]
                table.write(np.array(lines, PASSAGE).tobytes())
                count += len(block)
        return count

    def load(self, place: Path, count: int, ids: Mapping[int, str]) -> Postings:
        table = np.fromfile(place / "passages.bin", PASSAGE, count)
        wanted = int(table["entries"].sum(dtype=np.int64))
        entries = np.fromfile(place / "weights.bin", ENTRY, wanted)
        if (len(table), len(entries)) != (count, wanted):
            raise ValueError(f"{len(table)} passages with {len(entries)} weights instead of {count} with {wanted}")
        return Postings(table, entries, ids)

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        check_k(k)
        postings = self.ready()
        wanted = self.collection.check_scope(scope)
        if not plain(text).strip() or not len(postings.rows):
            return []
        (row,) = self.model.run([text])
        metadata = self.metadata() if wanted else {}
        return postings.answer(postings.scores(_entries(row)), k, self.name, wanted, metadata)


def _entries(row: NDArray[np.float32]) -> NDArray[Any]:
    """Return the entries of a row that are not zero, by token."""
    tokens = np.flatnonzero(row > 0)
    entries = np.empty(len(tokens), ENTRY)
    entries["token"], entries["weight"] = tokens, row[tokens]
    return entries
