"""The contenders of the retrieval benchmarks, each in a process of its own that waits for calls.

``python benchmarks/retrieve_tools.py KIND FOLDER`` reads one call per line from its input, ``{"call": …, "arguments": {…}}``,
and answers each with a line: the result, the processor time it took and the peak memory so far.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import Failure
from retrieve_files import SEED, STOP_WORDS, TITLE, documents, words

K = 10
"""Hits per query."""
FTS5_DOCUMENTS = 500
NOTE_WORDS = 50
"""Words of a document in the fts5 part: it stands for the notes of an agent's memory, whose bodies are cut before indexing."""
SIZE = 384
PRODUCTS = 20
"""Dense queries per round."""
LENGTHS = {"40 tokens": (40, 192), "200 tokens": (200, 48)}
"""Tokens of a text on average, and texts per round."""


def work(kind: str, folder: str) -> None:
    """Answer the calls of a Worker until there are no more."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as reply:
        os.dup2(2, 1)  # whatever a library prints is not an answer
        contender = KINDS[kind](Path(folder))
        for line in sys.stdin:
            request, cpu = json.loads(line), time.process_time()
            result = getattr(contender, request["call"])(**request["arguments"])
            answer = {"result": result, "cpu": time.process_time() - cpu, "peak_mb": _peak_mb()}
            reply.write(json.dumps(answer) + "\n")
            reply.flush()


def _peak_mb() -> float:
    status = Path("/proc/self/status")
    if status.exists():  # of this program alone, where getrusage also counts what forked it
        lines = status.read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


# ── contenders: words ───────────────────────────────────────────────────────────────────────────────────────────────


class Contender:
    """Something that builds an index in a folder, opens it and answers queries; the rest is the same for all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.queries: list[Any] = []

    def open(self, corpus: str, queries: str) -> None:
        self.queries = json.loads(Path(queries).read_text(encoding="utf-8"))["queries"]
        self.ids = [document["id"] for document in documents(corpus)] if self.wants_ids else []
        self.load()

    wants_ids = True
    """Whether the index knows documents by number only."""

    def build(self, corpus: str) -> dict[str, Any]:
        """Make the index from the file of documents; return the seconds, reading included, and the size."""
        start = time.perf_counter()
        steps = self.make(corpus)
        seconds = time.perf_counter() - start
        size = sum(file.stat().st_size for file in self.index().rglob("*") if file.is_file())
        count = sum(1 for _ in documents(corpus))
        return {"seconds": seconds, "documents": count, "index_mb": size / 1e6, **steps}

    def index(self) -> Path:
        return self.folder

    def make(self, corpus: str) -> dict[str, float]:
        raise NotImplementedError

    def load(self) -> None:
        raise NotImplementedError

    def search(self, query: Any) -> Any:
        """Answer one query in the tool's own form; only this is timed."""
        raise NotImplementedError

    def pairs(self, found: Any) -> list[list[Any]]:
        return [list(pair) for pair in found]

    def warm(self) -> None:
        for query in self.queries[:200]:
            self.search(query)

    def answers(self) -> list[list[list[Any]]]:
        return [self.pairs(self.search(query)) for query in self.queries]

    def round(self) -> dict[str, float]:
        """Return milliseconds per query."""
        search, clock, times = self.search, time.perf_counter_ns, []
        for query in self.queries:
            start = clock()
            search(query)
            times.append((clock() - start) / 1e6)
        times.sort()
        middle, late = times[len(times) // 2], times[len(times) * 99 // 100]
        return {"p50": middle, "p99": late, "mean": statistics.fmean(times)}


class Ringtrue(Contender):
    """The whole retriever: analysis, query, ties, hits that say where they come from."""

    wants_ids = False

    def index(self) -> Path:
        return self.folder / "indexes"

    def make(self, corpus: str) -> dict[str, float]:
        from ringtrue.records import Document
        from ringtrue.retrieve import Collection, build

        start = time.perf_counter()
        collection = Collection.create(self.folder)
        collection.ingest(Document(entry["id"], entry["text"], entry["title"]) for entry in documents(corpus))
        ingested = time.perf_counter()
        build("bm25", collection).search("", k=K)
        size = sum(file.stat().st_size for file in self.folder.iterdir() if file.is_file())
        return {"ingest_s": ingested - start, "index_s": time.perf_counter() - ingested, "documents_mb": size / 1e6}

    def load(self) -> None:
        from ringtrue.retrieve import Collection, build

        retriever = build("bm25", Collection(self.folder))
        self.search = lambda query: retriever.search(query, k=K)  # type: ignore[method-assign]

    def pairs(self, found: Any) -> list[list[Any]]:
        return [[hit.doc_id, hit.score] for hit in found]


class Tantivy(Contender):
    """What one writes by hand: the same analysis, one field, an OR of the query's terms, ids by a number in a fast field.

    The writer has the memory and threads that ringtrue gives it, so that both indexes have segments of the same size.
    """

    def _open(self) -> None:
        import tantivy

        builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.remove_long(100))
        builder = builder.filter(tantivy.Filter.lowercase()).filter(tantivy.Filter.stopword("english"))
        self.analyser = builder.filter(tantivy.Filter.stemmer("english")).build()
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("words", stored=False, tokenizer_name="english", index_option="freq")
        schema.add_integer_field("row", stored=False, indexed=False, fast=True)
        schema.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
        self.schema = schema.build()
        self.tantivy = tantivy.Index(self.schema, path=str(self.folder))
        self.tantivy.register_tokenizer("english", self.analyser)

    def make(self, corpus: str) -> dict[str, float]:
        import tantivy

        self._open()
        writer = self.tantivy.writer(128_000_000, min(4, os.cpu_count() or 1))
        for row, entry in enumerate(documents(corpus)):
            writer.add_document(tantivy.Document(words=words(entry), row=row, id=entry["id"]))
        writer.commit()
        writer.wait_merging_threads()
        return {}

    def load(self) -> None:
        self._open()
        self.searcher = self.tantivy.searcher()

    def search(self, query: str) -> list[tuple[str, float]]:
        from tantivy import Occur, Query

        terms = dict.fromkeys(self.analyser.analyze(query))
        parts = [(Occur.Should, Query.term_query(self.schema, "words", term, "freq")) for term in terms]
        hits = self.searcher.search(Query.boolean_query(parts), K, count=False).hits
        rows = self.searcher.fast_field_values("row", [address for _, address in hits])
        return [(self.ids[row], hit[0]) for row, hit in zip(rows, hits)]


class TantivyParsed(Tantivy):
    """As in tantivy's tutorial: the query parsed, matches counted, ids from stored documents."""

    def search(self, query: str) -> list[tuple[str, float]]:
        found = self.searcher.search(self.tantivy.parse_query(query, ["words"]), K)
        return [(self.searcher.doc(address)["id"][0], score) for score, address in found.hits]


class Bm25s(Contender):
    """bm25s with stemmer and stop words, one query at a time, on one thread."""

    backend = "numpy"

    def _tokens(self, texts: list[str]) -> Any:
        import bm25s
        import Stemmer

        if not hasattr(self, "stemmer"):
            self.stemmer = Stemmer.Stemmer("english")
        return bm25s.tokenize(texts, stopwords="en", stemmer=self.stemmer, show_progress=False)

    def make(self, corpus: str) -> dict[str, float]:
        import bm25s

        index = bm25s.BM25(backend=self.backend)
        index.index(self._tokens([words(entry) for entry in documents(corpus)]), show_progress=False)
        index.save(str(self.folder))
        return {}

    def load(self) -> None:
        import bm25s

        self.bm25s = bm25s.BM25.load(str(self.folder))

    def search(self, query: str) -> list[tuple[str, float]]:
        rows, scores = self.bm25s.retrieve(self._tokens([query]), k=min(K, len(self.ids)), show_progress=False)
        return [(self.ids[row], score) for row, score in zip(rows[0].tolist(), scores[0].tolist())]

    def batch(self) -> float:
        """Return queries per second when all of them come at once."""
        start = time.perf_counter()
        self.bm25s.retrieve(self._tokens(self.queries), k=min(K, len(self.ids)), show_progress=False)
        return len(self.queries) / (time.perf_counter() - start)


class Bm25sNumba(Bm25s):
    backend = "numba"


class Fts5(Contender):
    """SQLite's FTS5 with its Porter stemmer; stop words are left out of the query, as the others leave them out."""

    def make(self, corpus: str) -> dict[str, float]:
        table = sqlite3.connect(self.folder / "fts5.sqlite")
        table.execute("CREATE VIRTUAL TABLE docs USING fts5(title, text, content='', tokenize='porter unicode61')")
        with table:
            rows = ((row, entry["title"], entry["text"]) for row, entry in enumerate(documents(corpus)))
            table.executemany("INSERT INTO docs (rowid, title, text) VALUES (?, ?, ?)", rows)
            table.execute(f"INSERT INTO docs (docs, rank) VALUES ('rank', 'bm25({TITLE}.0, 1.0)')")
            table.execute("INSERT INTO docs (docs) VALUES ('optimize')")
        table.close()
        return {}

    def load(self) -> None:
        self.table = sqlite3.connect(self.folder / "fts5.sqlite")
        self.left_out = frozenset(STOP_WORDS)

    def warm(self) -> None:
        for query in self.queries[:20]:
            self.search(query)

    def search(self, query: str) -> list[tuple[str, float]]:
        wanted = " OR ".join(f'"{word}"' for word in query.split() if word not in self.left_out)
        found = self.table.execute(f"SELECT rowid, rank FROM docs WHERE docs MATCH ? ORDER BY rank LIMIT {K}", (wanted,))
        return [(self.ids[row], -rank) for row, rank in found]


class Fts5Channel(Contender):
    """Ringtrue's fts5 over few documents: from the collection on disk to the first answer, and the answers after it."""

    def prepare(self, corpus: str, queries: str) -> int:
        from ringtrue.records import Document
        from ringtrue.retrieve import Collection

        self.queries = json.loads(Path(queries).read_text(encoding="utf-8"))["queries"]
        entries = [entry for entry, _ in zip(documents(corpus), range(FTS5_DOCUMENTS))]
        texts = [" ".join(entry["text"].split()[:NOTE_WORDS]) for entry in entries]
        pairs = zip(entries, texts, strict=True)
        Collection.create(self.folder).ingest(Document(entry["id"], text, entry["title"]) for entry, text in pairs)
        self.rows = [(row, entry["title"], text) for row, (entry, text) in enumerate(zip(entries, texts, strict=True))]
        return len(entries)

    def bare(self) -> float:
        """Return the milliseconds that SQLite alone needs for a table in memory and one query: nothing can be faster."""
        wanted = " OR ".join(f'"{word}"' for word in self.queries[0].split())
        start = time.perf_counter_ns()
        table = sqlite3.connect(":memory:")
        table.execute("CREATE VIRTUAL TABLE docs USING fts5(title, text, content='', tokenize='porter unicode61')")
        with table:
            table.executemany("INSERT INTO docs (rowid, title, text) VALUES (?, ?, ?)", self.rows)
        table.execute(f"SELECT rowid, rank FROM docs WHERE docs MATCH ? ORDER BY rank LIMIT {K}", (wanted,)).fetchall()
        taken = (time.perf_counter_ns() - start) / 1e6
        table.close()
        return taken

    def first(self) -> float:
        """Return the milliseconds of opening, building and one query, in a process that has everything imported."""
        from ringtrue.retrieve import Collection, build

        shutil.rmtree(self.folder / "indexes", ignore_errors=True)
        start = time.perf_counter_ns()
        retriever = build("fts5", Collection(self.folder))
        retriever.search(self.queries[0], k=K)
        taken = (time.perf_counter_ns() - start) / 1e6
        self.search = lambda query: retriever.search(query, k=K)  # type: ignore[method-assign]
        return taken


# ── contenders: vectors ─────────────────────────────────────────────────────────────────────────────────────────────


class DenseChannel(Contender):
    """Ringtrue's dense over vectors that were drawn, not encoded; a stand-in for the encoder hands out prepared queries."""

    def prepare(self, vectors: int) -> None:
        import numpy as np

        if (self.folder / "done").is_file():
            return
        from ringtrue.records import Document
        from ringtrue.retrieve import Collection

        shutil.rmtree(self.folder, ignore_errors=True)
        collection = Collection.create(self.folder, chunks="none")
        collection.ingest(Document(f"d{row}", f"document {row}") for row in range(vectors))
        generation, _ = collection.generations()
        index = self._channel().folder
        place = index / f"g{generation}"
        place.mkdir(parents=True)
        rng = np.random.default_rng(SEED)
        with (place / "vectors.bin").open("wb") as file:
            for start in range(0, vectors, 50_000):
                block = rng.standard_normal((min(50_000, vectors - start), SIZE), np.float32)
                file.write((block / np.linalg.norm(block, axis=1, keepdims=True)).tobytes())
        with collection.connect() as connection:
            rows = [row for (row,) in connection.execute("SELECT row FROM documents ORDER BY row")]
        np.stack([np.array(rows, np.int64), np.zeros(vectors, np.int64)], axis=1).tofile(place / "passages.bin")
        state = {"place": place.name, "generation": generation, "count": vectors}
        (index / "state.json").write_text(json.dumps(state), encoding="utf-8")
        (self.folder / "done").touch()

    def _channel(self) -> Any:
        from ringtrue.retrieve import Collection, build
        from ringtrue.retrieve.channels import dense

        dense.encoder = lambda *_, **__: Prepared()  # type: ignore[attr-defined]
        return build("dense", Collection(self.folder))

    def open(self) -> None:  # type: ignore[override]
        import numpy as np

        channel = self._channel()
        vectors = np.memmap(_vectors_file(self.folder), np.float32, "r").reshape(-1, SIZE)
        wanted = np.random.default_rng(SEED + 1).integers(len(vectors), size=PRODUCTS).tolist()
        Prepared.vectors = {str(row): np.array(vectors[row]) for row in wanted}
        self.queries = list(Prepared.vectors)
        self.search = lambda query: channel.search(query, k=K)  # type: ignore[method-assign]
        for query in self.queries:
            found = self.search(query)
            if found[0].doc_id != f"d{query}":  # also where the files on disk are laid out otherwise by now
                raise Failure(f"dense found {found[0].doc_id} for the vector of d{query}; delete {self.folder} and run again")


class Prepared:
    """Stands in for an encoder: the text of a query is the number of a vector."""

    key, size, length = "prepared", SIZE, 512
    vectors: dict[str, Any] = {}  # noqa: RUF012 - filled once, when the channel is opened

    def encode(self, texts: Sequence[str], **_: Any) -> Any:
        import numpy as np

        return np.stack([self.vectors[text] for text in texts])


class Product(Contender):
    """One matrix product in NumPy, single precision, everything in memory; no selection of the best."""

    def open(self) -> None:  # type: ignore[override]
        import numpy as np

        matrix = np.fromfile(_vectors_file(self.folder), np.float32).reshape(-1, SIZE)
        wanted = np.random.default_rng(SEED + 1).integers(len(matrix), size=PRODUCTS)
        self.queries = [matrix[row].copy() for row in dict.fromkeys(wanted.tolist())]
        self.search = lambda query: matrix @ query  # type: ignore[method-assign]
        for query in self.queries:
            self.search(query)


def _vectors_file(folder: Path) -> Path:
    (file,) = folder.glob("indexes/*/g*/vectors.bin")
    return file


class Texts(Contender):
    """Pieces of the documents that ringtrue ships, cut by the model's own tokens; not part of what is measured."""

    def write(self) -> None:
        import random

        from tokenizers import Tokenizer

        from ringtrue.golden import load, shipped
        from ringtrue.retrieve.encode import DEFAULT_MODEL
        from ringtrue.retrieve.encode.folder import find_model

        tokenizer = Tokenizer.from_file(str(find_model(DEFAULT_MODEL) / "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        whole = "\n".join(document.text for name in shipped() for document in load(name).documents)
        offsets = tokenizer.encode(whole, add_special_tokens=False).offsets
        rng = random.Random(SEED)

        def piece(size: int) -> str:
            length = rng.randint(size * 4 // 5, size * 6 // 5) - 2  # the model adds one token at either end
            first = rng.randrange(len(offsets) - length)
            return whole[offsets[first][0] : offsets[first + length - 1][1]]

        texts = {name: [piece(size) for _ in range(count)] for name, (size, count) in LENGTHS.items()}
        (self.folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")


class Float32(Contender):
    """Ringtrue's encoder, or another; ``open`` returns its mean cosine to the vectors of this one."""

    int8 = False

    def open(self) -> float | None:  # type: ignore[override]
        import numpy as np

        self.samples = json.loads((self.folder / "texts.json").read_text(encoding="utf-8"))
        self.encode = self.encoder()
        found = np.concatenate([self.encode(texts) for texts in self.samples.values()])
        file = self.folder / "float32.npy"
        if not file.exists():
            np.save(file, found)
        expected = np.load(file)
        return float((found.astype(np.float64) * expected).sum(axis=1).mean()) if found.shape == expected.shape else None

    def encoder(self) -> Any:
        from ringtrue.retrieve.encode import encoder

        return encoder(int8=self.int8).encode

    def round(self) -> dict[str, float]:
        """Return texts per second, by length."""
        found = {}
        for name, texts in self.samples.items():
            start = time.perf_counter()
            self.encode(texts)
            found[name] = len(texts) / (time.perf_counter() - start)
        return found


class Int8(Float32):
    int8 = True


class WordLlama(Float32):
    def encoder(self) -> Any:
        from ringtrue.retrieve.encode import STATIC, encoder

        return encoder(STATIC).encode


class SentenceTransformers(Float32):
    """The same weights in the usual library on PyTorch."""

    def encoder(self) -> Any:
        import torch
        from sentence_transformers import SentenceTransformer, models

        from ringtrue.retrieve.encode import DEFAULT_MODEL
        from ringtrue.retrieve.encode.folder import find_model

        torch.set_num_threads(2)
        words = models.Transformer(str(find_model(DEFAULT_MODEL)), max_seq_length=256)
        model = SentenceTransformer(modules=[words, models.Pooling(SIZE, "mean"), models.Normalize()], device="cpu")
        return lambda texts: model.encode(texts, show_progress_bar=False)


KINDS: dict[str, type[Contender]] = {
    kind.__name__: kind
    for kind in (
        Ringtrue, Tantivy, TantivyParsed, Bm25s, Bm25sNumba, Fts5, Fts5Channel, DenseChannel, Product, Texts, Float32, Int8,
        WordLlama, SentenceTransformers,
    )
}  # fmt: skip


if __name__ == "__main__":
    work(*sys.argv[1:3])
