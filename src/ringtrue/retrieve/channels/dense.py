"""Dense retrieval: passages and queries as vectors of one encoder, exact search, the best passage counts for its document.

The matrix product finds candidates; their scores are then added up in double precision, row by row. How the product is cut into
blocks and threads can so move nothing: the same documents give the same hits, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.records import Hit, Ints, Stage
from ringtrue.retrieve.chunk import fixed
from ringtrue.retrieve.collection import Collection, inside
from ringtrue.retrieve.encode import DEFAULT_MODEL, Matrix, encoder
from ringtrue.retrieve.encode.cache import Vectors
from ringtrue.retrieve.kept import Kept, Progress
from ringtrue.retrieve.protocol import Scope, check_k, plain

FIELDS = ("title", "content", "tags")
STORAGE: dict[str, type[np.generic]] = {"float32": np.float32, "float16": np.float16, "int8": np.int8}
BLOCK = 2048
_WIDE = 65_536
_TOGETHER = 32
"""Queries of one matrix product: their scores for a million passages fill 128 MB."""
_NOISE = 1e-4
"""By how much single precision may be wrong about a cosine, with a wide margin."""
_TITLE_ROOM = 24
"""Tokens of an encoder's window that are left to the title."""
_HNSW_LINKS, _HNSW_WIDTH = 32, 128


class Dense(Kept):
    """Exact search over the passages of a collection.

    ``fields`` gives a document a vector per field instead of one of title and passage together; ``store`` keeps vectors in half
    ('float16') or a quarter ('int8') of the memory; above ``hnsw`` passages candidates come from an approximate index (faiss).
    """

    def __init__(
        self,
        collection: Collection,
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
                    yield row, number, f"{title}\n{part}".strip()
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
        faiss = _faiss()
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

    def load(self, place: Path, count: int) -> None:
        shape = (count, self.encoder.size)
        self.matrix: NDArray[Any]
        if count:
            self.matrix = np.memmap(place / "vectors.bin", self.type, "r", shape=shape).view(np.ndarray)
            table = np.fromfile(place / "passages.bin", np.int64, count * 2).reshape(count, 2)
        else:
            self.matrix, table = np.zeros(shape, self.type), np.zeros((0, 2), np.int64)
        self.rows, self.numbers = np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])
        self.starts = np.flatnonzero(np.diff(self.rows, prepend=-1)) if count else np.zeros(0, np.int64)
        self.ends = np.append(self.starts[1:], count)
        self.document_rows = self.rows[self.starts]
        self.single = len(self.starts) == count
        self.near = None
        if self.hnsw and count > self.hnsw:
            self.near = _faiss().read_index(str(place / "hnsw.faiss"))
            self.near.hnsw.efSearch = _HNSW_WIDTH
        self._masks: dict[Any, NDArray[np.bool_]] = {}

    def ready(self, *, progress: Progress | None = None) -> None:
        before = self.ids
        super().ready(progress=progress)
        if self.ids is not before:
            self._masks = {}
            known = np.isin(self.document_rows, np.fromiter(self.ids, np.int64, len(self.ids)))
            self._gone = None if known.all() else ~known  # removed since this index was made

    def coverage(self) -> tuple[int, int]:
        """Return (passages with a vector, passages of the collection)."""
        self.ready()
        with self.collection.connect() as connection:
            (wanted,) = connection.execute("SELECT count(*) FROM passages").fetchone()
        held = len(np.unique(np.stack([self.rows, self.numbers])[:, self.numbers >= 0], axis=1).T)
        return held, int(wanted)

    # Searching

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        return self.search_many([text], k=k, scope=scope)[0]

    def search_many(self, texts: Sequence[str], *, k: int = 10, scope: Scope | None = None) -> list[list[Hit]]:
        """Return the answers to several questions, encoded together."""
        check_k(k)
        self.ready()
        asked = [index for index, text in enumerate(texts) if plain(text).strip()] if self.ids and len(self.starts) else []
        answers: list[list[Hit]] = [[] for _ in texts]
        if asked:
            queries = self.encoder.encode([texts[index] for index in asked], query=True)
            outside = self._outside(scope)
            for start in range(0, len(asked), _TOGETHER):
                part = queries[start : start + _TOGETHER]
                found = self._candidates(part, k, outside) if self.near is None or outside is not None else self._near(part, k)
                for index, query, candidates in zip(asked[start : start + _TOGETHER], part, found, strict=True):
                    answers[index] = self._answer(query, k, candidates)
        return answers

    def _outside(self, scope: Scope | None) -> NDArray[np.bool_] | None:
        if not scope:
            return self._gone
        key = tuple(sorted((name, str(value)) for name, value in scope.items()))
        if key not in self._masks:
            metadata = self.collection.metadata()
            kept = {row for row, doc_id in self.ids.items() if inside(metadata.get(doc_id, {}), scope)}
            self._masks[key] = ~np.isin(self.document_rows, np.fromiter(kept, np.int64, len(kept)))
        return self._masks[key]

    def _answer(self, query: Matrix, k: int, candidates: Ints) -> list[Hit]:
        if not len(candidates):
            return []
        passages = np.concatenate([np.arange(self.starts[index], self.ends[index]) for index in candidates.tolist()])
        exact = (self._unpacked(self.matrix[passages], np.float64) * query.astype(np.float64)).sum(axis=1)
        offsets = np.concatenate(([0], np.cumsum(self.ends[candidates] - self.starts[candidates])))
        found = []
        for place, index in enumerate(candidates.tolist()):
            part = exact[offsets[place] : offsets[place + 1]]
            at = int(part.argmax())
            doc_id = self.ids[int(self.document_rows[index])]
            found.append((float(part[at]), doc_id, int(self.numbers[self.starts[index] + at])))
        found.sort(key=lambda item: item[1], reverse=True)
        found.sort(key=lambda item: -item[0])
        return [
            Hit(doc_id, score, _chunk(doc_id, number), {self.name: rank}, None, (Stage(self.name, rank, score),))
            for rank, (score, doc_id, number) in enumerate(found[:k], 1)
        ]

    def _candidates(self, queries: Matrix, k: int, outside: NDArray[np.bool_] | None) -> list[Ints]:
        """Return for each query every document that may be among the best ``k``."""
        found = []
        for scores in self._products(queries):
            best = scores if self.single else np.maximum.reduceat(scores, self.starts)
            if outside is not None:
                best[outside] = -np.inf
            count = min(k, len(best))
            cut = np.partition(best, len(best) - count)[len(best) - count]
            found.append(np.flatnonzero(np.isfinite(best) if np.isneginf(cut) else best >= cut - _NOISE))
        return found

    def _products(self, queries: Matrix) -> Matrix:
        """Return the scores of all passages, one row per query."""
        if len(queries) == 1 and self.type is np.float32:
            return np.asarray(self.matrix @ queries[0])[None, :]
        found = np.empty((len(queries), len(self.matrix)), np.float32)
        for start in range(0, len(self.matrix), _WIDE):
            found[:, start : start + _WIDE] = queries @ self._unpacked(self.matrix[start : start + _WIDE]).T
        return found

    def _near(self, queries: Matrix, k: int) -> list[Ints]:
        assert self.near is not None
        wanted = min(len(self.matrix), 4 * k + _HNSW_WIDTH)  # several passages of one document may be near
        _, found = self.near.search(np.ascontiguousarray(queries), wanted)
        rows = [self.rows[passages[passages >= 0]] for passages in found]
        return [np.unique(np.searchsorted(self.document_rows, part)) for part in rows]

    def document_vectors(self, doc_ids: Sequence[str]) -> Matrix:
        """Return one vector per document, the mean of its passages, for those who compare documents with each other."""
        self.ready()
        row_of = {doc_id: row for row, doc_id in self.ids.items()}
        vectors = np.zeros((len(doc_ids), self.encoder.size), np.float32)
        for place, doc_id in enumerate(doc_ids):
            index = int(np.searchsorted(self.document_rows, row_of[doc_id]))
            mean = self._unpacked(self.matrix[self.starts[index] : self.ends[index]]).mean(axis=0)
            vectors[place] = mean / max(float(np.linalg.norm(mean)), 1e-12)
        return vectors


def _chunk(doc_id: str, number: int) -> str:
    return f"{doc_id}:chunk:{number}" if number >= 0 else f"{doc_id}:{FIELDS[-1 - number]}"


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as problem:
        raise MissingInput("faiss is not installed; pip install 'ringtrue[faiss]'") from problem
    return faiss
