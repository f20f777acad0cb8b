"""What the trials of a sweep share: what earlier ones asked, what earlier sweeps found, and the documents cut in other ways.

Trials that differ in weights, in RRF's k or in what follows ``>>`` ask the same channels the same questions. Each channel is
wrapped so that its lists are remembered by all that decides them: the channel with every default written out, the documents
and their chunker, the question, how many hits were asked for, and the scope. Reranking and MMR, which cost far more than a
fusion, are remembered by the hits they were given.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringtrue.experiment.space import TrialPoint
from ringtrue.golden import content_hash
from ringtrue.measures import score
from ringtrue.records import GoldenSet, Hit
from ringtrue.retrieve import (
    Collection,
    Fusion,
    Retriever,
    Scope,
    Staged,
    Step,
    answer_all,
    build,
    canonical,
    names_documents,
    search_many,
)
from ringtrue.retrieve.chunk import LIKE
from ringtrue.run import Evaluation, code_hash, evaluate, subject_of
from ringtrue.spec import Expression, Pipeline, parse

Values = Mapping[str, float]
"""Query → value; nan if it is not defined."""
CollectionFor = Callable[[str | None], Collection]
"""Chunker → the documents cut by it; None means as they are."""
MOST_HITS = 500_000
"""Hits that are remembered, about 300 MB; the answers not asked for longest go first."""
FOLDER = "chunked"
_COSTLY = ("rerank", "mmr")
_CACHES = ("vectors-*.sqlite", "splade-*.sqlite")


class AnswerMemory:
    """Answers by who gave them (channel and documents) and to what."""

    def __init__(self, most: int = MOST_HITS) -> None:
        self.most, self.hits = most, 0
        self.asked = 0
        """Questions that really were put to a channel."""
        self._known: OrderedDict[Hashable, Sequence[Hit]] = OrderedDict()

    def get(self, question: Hashable) -> Sequence[Hit] | None:
        """Return an answer; None if it is not known."""
        if question in self._known:
            self._known.move_to_end(question)
        return self._known.get(question)

    def add(self, question: Hashable, hits: Sequence[Hit]) -> None:
        """Remember an answer, and forget those not asked for longest if there are too many."""
        self._known[question] = hits
        self.hits += len(hits)
        while self.hits > self.most and len(self._known) > 1:
            self.hits -= len(self._known.popitem(last=False)[1])

    def build(self, text: str, collection: Collection | None) -> Retriever:
        """Return the retriever of an expression with everything below its fusion and stages remembered."""
        place = None if collection is None else (str(collection.folder), collection.chunks, collection.generations())
        return self._wrapped(build(text, collection), canonical(text), place)

    def _wrapped(self, retriever: Retriever, expression: Expression | Pipeline, place: Hashable) -> Retriever:
        if isinstance(retriever, Staged) and isinstance(expression, Pipeline):
            first, *rest = expression.stages
            retriever.base = self._wrapped(retriever.base, first, place)
            retriever.steps = [
                _RememberedStep(step, (str(stage), place), self) if stage.name in _COSTLY else step
                for step, stage in zip(retriever.steps, rest, strict=True)
            ]
            return retriever
        if isinstance(retriever, Fusion) and isinstance(expression, Expression):
            children = [child for child in expression.args if isinstance(child, Expression | Pipeline)]
            retriever.channels = [
                (name, self._wrapped(channel, child, place))
                for (name, channel), child in zip(retriever.channels, children, strict=True)
            ]
            return retriever
        return _RememberedChannel(retriever, (str(expression), place), self)


@dataclass(frozen=True, eq=False)
class _RememberedChannel:
    """A channel that is asked only what it has not answered yet."""

    inner: Retriever
    who: Hashable
    memory: AnswerMemory

    @property
    def parts(self) -> list[Retriever]:
        return [self.inner]

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> Sequence[Hit]:
        return self.search_many([text], k=k, scope=scope)[0]

    def search_many(self, texts: Sequence[str], *, k: int = 10, scope: Scope | None = None) -> list[Sequence[Hit]]:
        within = self.who, k, tuple(sorted((scope or {}).items()))
        known = {text: self.memory.get((text, within)) for text in texts}
        fresh = [text for text, hits in known.items() if hits is None]
        if fresh:
            self.memory.asked += len(fresh)
            for text, hits in zip(fresh, search_many(self.inner, fresh, k=k, scope=scope), strict=True):
                known[text] = hits
                self.memory.add((text, within), hits)
        return [known[text] or () for text in texts]


@dataclass(frozen=True, eq=False)
class _RememberedStep:
    """A stage that works on the same hits once."""

    inner: Step
    who: Hashable
    memory: AnswerMemory

    @property
    def name(self) -> str:
        return self.inner.name

    def depth(self, k: int) -> int:
        return self.inner.depth(k)

    def apply(self, text: str, hits: Sequence[Hit], *, k: int) -> list[Hit]:
        question = self.who, text, k, tuple((hit.doc_id, hit.score, hit.chunk) for hit in hits)
        found = self.memory.get(question)
        if found is None:
            found = tuple(self.inner.apply(text, hits, k=k))
            self.memory.add(question, found)
        return list(found)


class TrialJournal:
    """The trials in one file, so that an interrupted sweep goes on where it ended; ``path`` None remembers nothing.

    There is one file for each set of queries, documents, measure and program, and a line for each trial with the value of every
    query. A line is keyed by the fingerprint of its retriever, so that whatever the retriever is made of has to be the same.
    """

    def __init__(self, path: Path | None, *, fresh: bool = False) -> None:
        self.path = path
        if fresh and path is not None:
            path.unlink(missing_ok=True)
        self.known: dict[str, Values] = {} if path is None or not path.is_file() else _trials_in(path)

    def write(self, fingerprint: str, values: Values, **details: Any) -> None:
        """Add a trial; the details are for people who read the file."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        kept = {query: None if math.isnan(value) else value for query, value in values.items()}
        line = json.dumps({"fingerprint": fingerprint, **details, "per_query": kept}, ensure_ascii=False)
        # On a new line of its own: a process that was killed while writing left half a line, which must not swallow this one.
        with self.path.open("ab") as file:
            file.write(b"\n" + line.encode("utf-8", "replace") + b"\n")


def _trials_in(path: Path) -> dict[str, Values]:
    known: dict[str, Values] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):  # half a line: that trial is made again
            row = json.loads(line)
            values = {str(query): math.nan if value is None else float(value) for query, value in row["per_query"].items()}
            known[str(row["fingerprint"])] = values
    return known


class Variants:
    """Collections of the documents of ``base`` by chunker, made on first use and kept in a folder within it.

    A passage that two chunkers cut alike, such as a document short enough for both, is encoded once: the caches of
    vectors that ``base`` has are the caches of its variants. Passages that differ, and the indexes, are each one's own.
    """

    def __init__(self, base: Collection) -> None:
        self.base = base
        self._open: dict[str, Collection] = {base.chunks: base}

    def __call__(self, chunks: str | None) -> Collection:
        """Return the documents cut by this chunker, those of the base if none is named; raises SpecError for a wrong one."""
        if chunks is None:
            return self.base
        text = str(parse(chunks, like=LIKE))
        if text not in self._open:
            self._open[text] = self._ingested(text)
        self._share_caches(self._open[text])
        return self._open[text]

    def _ingested(self, chunks: str) -> Collection:
        label = hashlib.sha256(chunks.encode()).hexdigest()[:16]
        found = Collection.create(self.base.folder / FOLDER / label, chunks=chunks)
        if found.unfinished or found.content_hash() != self.base.content_hash():
            found.ingest((document for _, document in self.base.documents()), remove_missing=True)
        return found

    def _share_caches(self, variant: Collection) -> None:
        if variant is self.base:
            return
        upwards = Path(*[".."] * len(variant.folder.relative_to(self.base.folder).parts))
        for cache in (file for pattern in _CACHES for file in self.base.folder.glob(pattern)):
            # If links cannot be made, or vectors were made here before, there is less sharing and nothing wrong.
            with contextlib.suppress(OSError):
                (variant.folder / cache.name).symlink_to(upwards / cache.name)


@dataclass
class Bench:
    """Where points are tried: the tuning queries, the documents, and what earlier trials have asked already."""

    tuning: GoldenSet
    measure: str
    collection_for: CollectionFor
    scope: str | None
    allow: tuple[str, ...]
    k: int = 0
    memory: AnswerMemory = field(default_factory=AnswerMemory)
    journal: TrialJournal = field(default_factory=lambda: TrialJournal(None))

    def documents(self, point: TrialPoint) -> Collection | None:
        return self.collection_for(point.chunks) if names_documents(point.retriever) else None

    def evaluate(self, point: TrialPoint, golden: GoldenSet) -> Evaluation:
        """Return the point evaluated as everything else is: the numbers that are reported come from here."""
        return evaluate(
            point.retriever,
            golden,
            measures=[self.measure],
            k=self.k or None,
            collection=self.documents(point),
            scope=self.scope,
            allow=self.allow,
        )

    def identity(self, first: Evaluation) -> str:
        """Return a hash of all that decides a trial's values, but for the retriever."""
        parts = [
            content_hash(self.tuning), self.tuning.relevance_threshold, self.measure, self.k, self.scope, first.setup.corpus,
            code_hash(),
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def values(self, point: TrialPoint) -> tuple[Values, bool]:
        """Return the measure of every tuning query at a point, and whether an earlier sweep knew it.

        What other points have asked is not asked again.
        """
        of_point = subject_of(point.retriever, collection=lambda: self.collection_for(point.chunks)).fingerprint
        if (known := self.journal.known.get(of_point)) is not None:
            return known, True
        retriever = self.memory.build(point.retriever, self.documents(point))
        found = score(answer_all(retriever, self.tuning, k=self.k, scope_field=self.scope), self.tuning, [self.measure])
        values = dict(zip(found.query_ids, found.of(self.measure).tolist(), strict=True))
        self.journal.write(of_point, values, retriever=point.retriever, chunks=point.chunks)
        return values, False
