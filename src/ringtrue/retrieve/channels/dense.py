"""Dense retrieval: passages and queries as vectors of one encoder, exact search, the best passage counts for its document.

The matrix product finds candidates; their scores are then added up in double precision, row by row. How the product is cut into
blocks and threads can so move nothing: the same documents give the same hits, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringtrue.errors import InputError, nearest
from ringtrue.id_columns import Ints
from ringtrue.records import Hit
from ringtrue.retrieve.chunk import fixed
from ringtrue.retrieve.documents import DocumentStore, inside
from ringtrue.retrieve.encode import DEFAULT_MODEL, Matrix, Vectors, encoder
from ringtrue.retrieve.index import Progress, StoredIndex
from ringtrue.retrieve.library import library
from ringtrue.retrieve.protocol import Scope, check_k, from_channel, plain, ranked

FIELDS = ("title", "content", "tags")
STORAGE: dict[str, type[np.generic]] = {"float32": np.float32, "float16": np.float16, "int8": np.int8}
BLOCK = 2048
_WIDE = 65_536
_MASKS = 64
_TOGETHER = 32
"""Queries of one matrix product: their scores for a million passages fill 128 MB."""
_NOISE = 1e-4
"""By how much single precision may be wrong about a cosine, with a wide margin."""
_TITLE_ROOM = 24
"""Tokens of an encoder's window that are left to the title."""
_HNSW_LINKS, _HNSW_WIDTH = 32, 128


class LoadedVectors:
    """A loaded index: one row of ``matrix`` for each vector, vectors of a document side by side. It never changes."""

    def __init__(self, matrix: NDArray[Any], table: NDArray[np.int64], ids: Mapping[int, str], near: Any) -> None:
        self.matrix, self.ids, self.near = matrix, ids, near
        self.rows, self.numbers = np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])
        self.starts = np.flatnonzero(np.diff(self.rows, prepend=-1)) if len(table) else np.zeros(0, np.int64)
        self.ends = np.append(self.starts[1:], len(table))
        self.document_rows = self.rows[self.starts]
        self.single = len(self.starts) == len(table)
        known = np.isin(self.document_rows, np.fromiter(ids, np.int64, len(ids)))
        self.gone = None if known.all() else ~known  # removed since this index was made
        self.masks: dict[Any, NDArray[np.bool_]] = {}

    @cached_property
    def place_of(self) -> dict[str, int]:
        """Where each document's vectors begin, as a place in ``starts``."""
        return {self.ids[row]: place for place, row in enumerate(self.document_rows.tolist()) if row in self.ids}

    def outside(self, scope: Mapping[str, str], metadata: Mapping[str, Mapping[str, Any]]) -> NDArray[np.bool_]:
        """Return which documents a scope leaves out."""
        key = tuple(sorted(scope.items())), id(metadata)
        mask = self.masks.get(key)
        if mask is None:
            kept = {row for row, doc_id in self.ids.items() if inside(metadata.get(doc_id, {}), scope)}
            mask = ~np.isin(self.document_rows, np.fromiter(kept, np.int64, len(kept)))
            if len(self.masks) >= _MASKS:
                self.masks.clear()
            self.masks[key] = mask
        return mask


class Dense(StoredIndex[LoadedVectors]):
    """Exact search over the passages of a collection.

    ``fields`` gives a document a vector per field instead of one of title and passage together; ``store`` keeps vectors in half
    ('float16') or a quarter ('int8') of the memory; above ``hnsw`` passages candidates come from an approximate index (faiss).
    """

    def __init__(
        self,
        collection: DocumentStore,
        *,
        model: str = DEFAULT_MODEL,
        fields: Sequence[str] = (),
        int8: bool = False,
        store: str = "float32",
        hnsw: int = 0,
        name: str = "dense",
    ) -> None:
        for field in fields:
            if field not in FIELDS:
                raise InputError(f"dense cannot have fields=['{field}']; use {nearest(str(field), FIELDS)}")
        if hnsw < 0:
            raise InputError(f"dense cannot have hnsw={hnsw}; use a number of passages, or 0 for exact search")
        if store not in STORAGE:
            raise InputError(f"dense cannot have store='{store}'; use {nearest(store, STORAGE)}")
        self.encoder = encoder(model, int8=int8)
        variants = [*fields, *([store] if store != "float32" else []), *([f"hnsw{hnsw}"] if hnsw else [])]
        label = "-".join(["dense", self.encoder.key, *variants])
        super().__init__(collection, label)
        self.fields, self.type, self.hnsw, self.name = tuple(fields), STORAGE[store], hnsw, name

    @cached_property
    def vectors(self) -> Vectors:
        return Vectors(self.collection.folder / "vectors", self.encoder)

    # The index on disk: one row of vectors.bin and one of passages.bin (document row, passage number) for each passage.

    def holds(self, place: Path, count: int) -> bool:
        sizes = {"vectors.bin": self._row_bytes, "passages.bin": 16}
        return all((place / name).is_file() and (place / name).stat().st_size >= count * size for name, size in sizes.items())

    @cached_property
    def _row_bytes(self) -> int:
        return self.encoder.size * np.dtype(self.type).itemsize

    def fill(self, place: Path, *, since: int, before: int, progress: Progress | None) -> int:
        count = before
        entries = self._entries(since)
        with (place / "vectors.bin").open("ab") as vectors, (place / "passages.bin").open("ab") as passages:
            vectors.truncate(before * self._row_bytes)  # what a killed process left behind the last whole state
            passages.truncate(before * 16)
            while block := list(islice(entries, BLOCK)):
                found = self.vectors.of([text for _, _, text in block], progress=progress)
                vectors.write(self._packed(found).tobytes())
                passages.write(np.array([(row, number) for row, number, _ in block], np.int64).tobytes())
                count += len(block)
        if self.hnsw and count > self.hnsw:
            self._extend_hnsw(place, count)
        return count

    def steps(self, since: int) -> int:
        return sum(1 for _ in self._entries(since))

    def _entries(self, since: int) -> Iterator[tuple[int, int, str]]:
        """Yield (document row, passage number, text); fields other than the content have numbers below 0."""
        if not self.fields:
            for row, title, number, text in self.collection.passages(since=since):
                for part in self._windows(text):
                    if whole := f"{title}\n{part}".strip():  # what says nothing has no direction
                        yield row, number, whole
            return
        passages = self.collection.passages(since=since)
        ahead = next(passages, None)
        for row, document in self.collection.documents(since=since):
            others = {"title": document.title, "tags": ", ".join(document.tags)}
            texts = [(-1 - FIELDS.index(field), others[field]) for field in self.fields if field in others]
            while ahead is not None and ahead[0] == row:
                texts += [(ahead[2], part) for part in self._windows(ahead[3])] if "content" in self.fields else []
                ahead = next(passages, None)
            texts = [(number, text) for number, text in texts if text.strip()]
            # A document without any of the fields is still found by what it has.
            for number, text in texts or [(0, f"{document.title}\n{document.text}".strip())]:
                if text:
                    yield row, number, text

    def _windows(self, text: str) -> list[str]:
        """Return a passage in pieces that the encoder reads whole: what it would cut off could never be found."""
        size = max(16, self.encoder.length - _TITLE_ROOM)
        return [text[span.start : span.end] for span in fixed(text, tokens=size, overlap=size // 5)] or [text]

    def _packed(self, vectors: Matrix) -> NDArray[Any]:
        if self.type is np.int8:
            return np.rint(vectors * 127).astype(np.int8)
        return vectors.astype(self.type, copy=False)

    def _unpacked(self, stored: NDArray[Any], kind: Any = np.float32) -> NDArray[Any]:
        return stored.astype(kind) / 127 if self.type is np.int8 else stored.astype(kind, copy=False)

    def _extend_hnsw(self, place: Path, count: int) -> None:
        faiss = library("faiss", "faiss")
        file = place / "hnsw.faiss"
        index = faiss.read_index(str(file)) if file.is_file() else None
        if index is None or index.ntotal > count:
            index = faiss.IndexHNSWFlat(self.encoder.size, _HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
        stored = np.memmap(place / "vectors.bin", self.type, "r", shape=(count, self.encoder.size))
        for start in range(index.ntotal, count, _WIDE):
            index.add(np.ascontiguousarray(self._unpacked(stored[start : start + _WIDE])))
        scratch = place / "hnsw.faiss.new"
        faiss.write_index(index, str(scratch))
        scratch.replace(file)

    def load(self, place: Path, count: int, ids: Mapping[int, str]) -> LoadedVectors:
        matrix: NDArray[Any] = np.zeros((0, self.encoder.size), self.type)
        table = np.fromfile(place / "passages.bin", np.int64, count * 2)
        if len(table) != count * 2:
            raise ValueError(f"{len(table) // 2} passages instead of {count}")
        if count:
            matrix = np.memmap(place / "vectors.bin", self.type, "r", shape=(count, self.encoder.size)).view(np.ndarray)
        near = None
        if self.hnsw and count > self.hnsw:
            near = _read_hnsw(place / "hnsw.faiss", count)
        return LoadedVectors(matrix, table.reshape(count, 2), ids, near)

    def coverage(self) -> tuple[int, int]:
        """Return (passages with a vector, passages of the collection that have a text or a title)."""
        index = self.ready()
        passages = np.stack([index.rows, index.numbers])[:, index.numbers >= 0]
        statement = "SELECT count(*) FROM passages p JOIN documents d ON d.row = p.document"
        with self.collection.connect() as connection:
            (wanted,) = connection.execute(f"{statement} WHERE p.\"end\" > p.start OR trim(d.title) != ''").fetchone()
        return len(np.unique(passages, axis=1).T), int(wanted)

    # Searching

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        return self.search_many([text], k=k, scope=scope)[0]

    def search_many(self, texts: Sequence[str], *, k: int = 10, scope: Scope | None = None) -> list[list[Hit]]:
        """Return the answers to several questions, encoded together."""
        check_k(k)
        index = self.ready()
        wanted = self.collection.check_scope(scope)
        asked = [place for place, text in enumerate(texts) if plain(text).strip()] if len(index.starts) else []
        answers: list[list[Hit]] = [[] for _ in texts]
        if asked:
            queries = self.encoder.encode([texts[place] for place in asked], query=True)
            outside = index.outside(wanted, self.metadata()) if wanted else index.gone
            for start in range(0, len(asked), _TOGETHER):
                part = queries[start : start + _TOGETHER]
                if index.near is None or outside is not None:
                    found = self._candidates(index, part, k, outside)
                else:
                    found = _nearest(index, part, k)
                for place, query, candidates in zip(asked[start : start + _TOGETHER], part, found, strict=True):
                    answers[place] = self._answer(index, query, k, candidates)
        return answers

    def _answer(self, index: LoadedVectors, query: Matrix, k: int, candidates: Ints) -> list[Hit]:
        if not len(candidates):
            return []
        starts, ends = index.starts[candidates], index.ends[candidates]
        passages = np.concatenate([np.arange(start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])
        exact = (self._unpacked(index.matrix[passages], np.float64) * query.astype(np.float64)).sum(axis=1)
        offsets = np.concatenate(([0], np.cumsum(ends - starts)))
        scores, chunks = {}, {}
        for place, candidate in enumerate(candidates.tolist()):
            part = exact[offsets[place] : offsets[place + 1]]
            at = int(part.argmax())
            doc_id = index.ids[int(index.document_rows[candidate])]
            scores[doc_id], chunks[doc_id] = float(part[at]), _chunk(doc_id, int(index.numbers[starts[place] + at]))
        return from_channel(self.name, ranked(scores.items(), k=k), chunks)

    def _candidates(self, index: LoadedVectors, queries: Matrix, k: int, outside: NDArray[np.bool_] | None) -> list[Ints]:
        """Return for each query every document that may be among the best ``k``."""
        found = []
        for scores in self._products(index.matrix, queries):
            best = scores if index.single else np.maximum.reduceat(scores, index.starts)
            if outside is not None:
                best[outside] = -np.inf
            count = min(k, len(best))
            cut = np.partition(best, len(best) - count)[len(best) - count]
            found.append(np.flatnonzero(np.isfinite(best) if np.isneginf(cut) else best >= cut - _NOISE))
        return found

    def _products(self, matrix: NDArray[Any], queries: Matrix) -> Matrix:
        """Return the scores of all passages, one row per query."""
        if len(queries) == 1 and self.type is np.float32:
            return np.asarray(matrix @ queries[0])[None, :]
        found = np.empty((len(queries), len(matrix)), np.float32)
        for start in range(0, len(matrix), _WIDE):
            found[:, start : start + _WIDE] = queries @ self._unpacked(matrix[start : start + _WIDE]).T
        return found

    def document_vectors(self, doc_ids: Sequence[str]) -> Matrix:
        """Return one vector per document, the mean of its passages; raises InputError for a document that is not here."""
        index = self.ready()
        vectors = np.zeros((len(doc_ids), self.encoder.size), np.float32)
        for place, doc_id in enumerate(doc_ids):
            at = index.place_of.get(doc_id)
            if at is None:
                raise InputError(
                    f"{self.collection.folder}: has no vector of document '{doc_id}'; ingest it, or search it only"
                )
            mean = self._unpacked(index.matrix[index.starts[at] : index.ends[at]]).mean(axis=0)
            vectors[place] = mean / max(float(np.linalg.norm(mean)), 1e-12)
        return vectors


def _nearest(index: LoadedVectors, queries: Matrix, k: int) -> list[Ints]:
    """Return for each query the documents that the approximate index holds near."""
    wanted = min(len(index.matrix), 4 * k + _HNSW_WIDTH)  # several passages of one document may be near
    _, found = index.near.search(np.ascontiguousarray(queries), wanted)
    rows = [index.rows[passages[passages >= 0]] for passages in found]
    return [np.unique(np.searchsorted(index.document_rows, part)) for part in rows]


def _read_hnsw(file: Path, count: int) -> Any:
    if not file.is_file():
        raise FileNotFoundError(file)
    try:
        near = library("faiss", "faiss").read_index(str(file))
    except RuntimeError as problem:
        raise ValueError(str(problem)) from problem
    if near.ntotal != count:
        raise ValueError(f"{near.ntotal} vectors instead of {count}")
    near.hnsw.efSearch = _HNSW_WIDTH
    return near


def _chunk(doc_id: str, number: int) -> str:
    return f"{doc_id}:chunk:{number}" if number >= 0 else f"{doc_id}:{FIELDS[-1 - number]}"
