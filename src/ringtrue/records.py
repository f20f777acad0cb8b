"""The nouns of Ringtrue as frozen values. They hold data and its own consistency, and nothing else.

``Qrels`` and ``Run`` are columnar: one row per (query, document) pair, the query as an index into ``query_ids``. Seven
million rows then cost arrays instead of seven million objects, and every later step is a vector operation.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringtrue.brief import brief
from ringtrue.errors import InputError
from ringtrue.id_columns import Codes, DocIds, IdList, Ints
from ringtrue.ids import check_id, keep_as_text, keyed_by_text

Floats = NDArray[np.float64]
HUMAN_SOURCES = frozenset({"chair", "manual", "human", "adjudicated"})


@dataclass(frozen=True, slots=True)
class Query:
    """A question with its facts: ``metadata`` carries type, category, intent, corpus, chain and whatever else a set declares.

    ``negative`` marks a question to which the right answer is silence.
    """

    query_id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    negative: bool = False

    __repr__ = brief

    def __post_init__(self) -> None:
        keep_as_text(self, "query_id")


@dataclass(frozen=True, slots=True)
class Document:
    """A thing that can be found."""

    doc_id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()

    __repr__ = brief

    def __post_init__(self) -> None:
        keep_as_text(self, "doc_id")


@dataclass(frozen=True, slots=True)
class Judgment:
    """What somebody or something said about one document for one query."""

    query_id: str
    doc_id: str
    grade: int
    source: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    __repr__ = brief

    def __post_init__(self) -> None:
        keep_as_text(self, "query_id", "doc_id")


class Stage(NamedTuple):
    """What one step of a retriever said about a document: ``Stage("bm25", rank=1, score=12.3)``."""

    name: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One entry of an answer, with where it came from.

    ``channels`` is its rank in every channel that found it; ``stages`` are all steps it went through in their order (channels,
    fusion, rerank …) with rank and score; ``chunk`` names the passage that answered.
    """

    doc_id: str
    score: float = math.nan
    chunk: str | None = None
    channels: Mapping[str, int] = field(default_factory=dict)
    confidence: float | None = None
    stages: tuple[Stage, ...] = ()

    __repr__ = brief


@dataclass(frozen=True, slots=True)
class Ranking:
    """The answer to one query, best first. The order given is the truth; scores are information."""

    query_id: str
    hits: tuple[Hit, ...]
    latency_ms: float | None = None
    error: str | None = None

    __repr__ = brief

    def __post_init__(self) -> None:
        keep_as_text(self, "query_id")


def _index(names: Iterable[str]) -> tuple[tuple[str, ...], Ints]:
    """Return the distinct names in order of first appearance, and every row's position among them."""
    position: dict[str, int] = {}
    rows = [position.setdefault(name, len(position)) for name in names]
    return tuple(position), np.asarray(rows, np.int64)


@dataclass(frozen=True, eq=False)
class Qrels:
    """Graded judgments. A negative grade means pooled but not judged, as in trec_eval."""

    query_ids: tuple[str, ...]
    query: Ints
    doc_ids: tuple[str, ...]
    grade: Ints
    repeated: int = 0

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, int]]) -> Qrels:
        """Build from (query, document, grade) rows; raises InputError for an empty id or two grades for one pair.

        >>> Qrels.of([("q1", "d1", 3), ("q1", "d2", 0)]).to_dict()
        {'q1': {'d1': 3, 'd2': 0}}
        """
        grades: dict[tuple[str, str], int] = {}
        repeated = 0
        for query_id, doc_id, grade in rows:
            pair = check_id(query_id, "query id", doc_id), check_id(doc_id, "document id", query_id)
            known = grades.setdefault(pair, check_grade(grade, query_id, doc_id))
            if known != grade:
                raise InputError(
                    f"query '{query_id}' judges document '{doc_id}' twice, as {known} and as {grade}; keep one of the two"
                )
            repeated += 1
        query_ids, query = _index(query_id for query_id, _ in grades)
        return cls(
            query_ids,
            query,
            tuple(doc_id for _, doc_id in grades),
            np.fromiter(grades.values(), np.int64, len(grades)),
            repeated - len(grades),
        )

    @classmethod
    def from_dict(cls, judgments: Mapping[str, Mapping[str, int]]) -> Qrels:
        """Build from ``{query: {document: grade}}``; a query with no judgment at all is kept, and numbers are ids as text."""
        judgments = keyed_by_text(judgments)
        for query_id, documents in judgments.items():
            if not isinstance(documents, Mapping):
                raise InputError(f"the judgments of query '{query_id}' are {documents!r:.60}; write {{document: grade}}")
        rows = ((query_id, doc_id, grade) for query_id, docs in judgments.items() for doc_id, grade in docs.items())
        return cls.of(rows).with_queries(judgments)

    def with_queries(self, query_ids: Iterable[str]) -> Qrels:
        """Return the same judgments over at least these queries, so that a query without judgments still counts."""
        known = set(self.query_ids)
        extra = tuple(name for name in dict.fromkeys(query_ids) if name not in known)
        return replace(self, query_ids=self.query_ids + extra) if extra else self

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Return ``{query: {document: grade}}``."""
        judgments: dict[str, dict[str, int]] = {query_id: {} for query_id in self.query_ids}
        for query_id, doc_id, grade in self:
            judgments[query_id][doc_id] = grade
        return judgments

    def __repr__(self) -> str:
        return brief(self, queries=len(self.query_ids), judgments=len(self))

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        for query, doc_id, grade in zip(self.query.tolist(), self.doc_ids, self.grade.tolist(), strict=True):
            yield self.query_ids[query], doc_id, grade

    def __len__(self) -> int:
        return len(self.doc_ids)


@dataclass(frozen=True, eq=False)
class Order:
    """Which row stands at which place: as the rows are, or sorted by ``base``, but for the ``places`` of broken ties.

    Most files are written in rank order; what stays where it is then costs nothing, however long the run.
    """

    size: int
    base: Ints | None = None
    places: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    moved: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def row_at(self, places: Ints) -> Ints:
        """Return the rows that stand at these places."""
        rows = places.copy() if self.base is None else self.base[places]
        return _exchange(rows, places, self.places, self.moved)

    def place_of(self, rows: Ints) -> Ints:
        """Return the places at which these rows stand."""
        places = rows.copy()
        if self.base is not None:
            inverse = np.empty(self.size, np.int64)
            inverse[self.base] = np.arange(self.size)
            places = inverse[rows]
        by_row = np.argsort(self.moved, kind="stable")
        return _exchange(places, rows, self.moved[by_row], self.places[by_row])

    def rows(self) -> Ints:
        """Return all rows in their order."""
        return self.row_at(np.arange(self.size))


def _exchange(values: Ints, keys: Ints, known: Ints, instead: Ints) -> Ints:
    """Return ``values`` with another value wherever the key is among the sorted ``known``."""
    if len(known):
        spot = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        values = np.where(known[spot] == keys, instead[spot], values)
    return values


@dataclass(frozen=True, eq=False)
class Run:
    """The answers of one system to many queries.

    ``ordered=False`` (a run file or ``{query: {document: score}}``) ranks by score descending, then document id
    descending, as trec_eval does. ``ordered=True`` (a live answer) keeps the order in which the rows were given.
    """

    query_ids: tuple[str, ...]
    query: Codes
    docs: DocIds
    score: Floats
    ordered: bool = False
    name: str = "run"
    answered: frozenset[str] = frozenset()
    first_chunks: Mapping[str, str] = field(default_factory=dict)
    """The passage behind the first document of an answer, by query; only live answers name passages."""

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, float]], *, name: str = "run") -> Run:
        """Build from (query, document, score) rows; raises InputError for an empty id or a score that is not a number."""
        names: list[str] = []
        docs: list[str] = []
        scores: list[float] = []
        for query_id, doc_id, score in rows:
            names.append(check_id(query_id, "query id", doc_id))
            docs.append(check_id(doc_id, "document id", query_id))
            scores.append(check_score(score, query_id, doc_id))
        query_ids, query = _index(names)
        return cls(query_ids, query, IdList(docs), np.asarray(scores, np.float64), name=name)

    @classmethod
    def from_dict(cls, scores: Mapping[str, Mapping[str, float]], *, name: str = "run") -> Run:
        """Build from ``{query: {document: score}}``; an empty answer counts as an answer, not as a missing query.

        >>> Run.from_dict({"q1": {"a": 0.5, "b": 2.0}}).to_dict()
        {'q1': {'b': 2.0, 'a': 0.5}}
        """
        scores = keyed_by_text(scores)
        for query_id, answer in scores.items():
            if not isinstance(answer, Mapping):
                raise InputError(f"the answer to query '{query_id}' is {answer!r:.60}; write {{document: score}}")
        rows = ((query_id, doc_id, score) for query_id, docs in scores.items() for doc_id, score in docs.items())
        return cls.of(rows, name=name).with_empty_answers(scores)

    @classmethod
    def from_rankings(cls, rankings: Mapping[str, Sequence[str]] | Iterable[Ranking], *, name: str = "run") -> Run:
        """Build from answers whose order is the truth: ``{query: [document, …]}`` or Ranking records."""
        if isinstance(rankings, Mapping):
            for query_id, listed in rankings.items():
                if isinstance(listed, str | bytes) or not isinstance(listed, Sequence):
                    raise InputError(f"the answer to query '{query_id}' is {listed!r:.60}; write [document, …], best first")
            rankings = keyed_by_text(rankings)
            rankings = [Ranking(query, tuple(Hit(doc) for doc in docs)) for query, docs in rankings.items()]
        answers = [answer for answer in rankings if answer.error is None]
        for query_id, times in Counter(answer.query_id for answer in answers).items():
            if times > 1:
                raise InputError(f"query '{query_id}' is answered twice; keep one Ranking for each query")
        rows = (
            (answer.query_id, hit.doc_id, -float(rank) if math.isnan(hit.score) else hit.score)
            for answer in answers
            for rank, hit in enumerate(answer.hits, 1)
        )
        chunks = {answer.query_id: answer.hits[0].chunk for answer in answers if answer.hits and answer.hits[0].chunk}
        run = replace(cls.of(rows, name=name), ordered=True, first_chunks=chunks)
        return run.with_empty_answers(answer.query_id for answer in answers)

    def with_empty_answers(self, query_ids: Iterable[str]) -> Run:
        """Return the run with these queries known as answered, even where the answer was empty."""
        known = set(self.query_ids)
        extra = frozenset(name for name in query_ids if name not in known)
        return replace(self, answered=self.answered | extra) if extra else self

    def map_documents(self, name_of: Mapping[str, str]) -> Run:
        """Return the run with document ids replaced (chunks by their document, members by their class)."""
        ids = self.docs.take(np.arange(len(self.docs)))
        return replace(self, docs=IdList([name_of.get(doc_id, doc_id) for doc_id in ids]))

    @cached_property
    def order(self) -> Ints:
        """Row numbers sorted by query and then by rank, ties broken; duplicates are still in."""
        return self.order_where(np.ones(len(self), np.bool_)).rows()

    def order_where(self, matters: NDArray[np.bool_]) -> Order:
        """Like ``order``, but ties are broken only where a row of the tie matters: ids in a file are costly to read."""
        base = self._order_by_score()
        order = Order(len(self), base)
        if self.ordered:
            return order
        if base is None:
            query, score = self.query, self.score
        else:
            query, score, matters = self.query[base], self.score[base], matters[base]
        tied = np.flatnonzero(score[1:] == score[:-1])
        tied = tied[query[tied] == query[tied + 1]]
        ties = [(first, last) for first, last in _stretches(tied) if matters[first : last + 1].any()]
        if not ties:
            return order
        places = np.concatenate([np.arange(first, last + 1) for first, last in ties])
        rows = order.row_at(places)
        names = self.docs.take(rows)
        moved: list[int] = []
        start = 0
        for first, last in ties:
            end = start + last - first + 1
            # The sort is stable: of one document named twice the earlier row comes first.
            moved += sorted(range(start, end), key=names.__getitem__, reverse=True)
            start = end
        return replace(order, places=places, moved=rows[moved])

    def _order_by_score(self) -> Ints | None:
        grouped = bool((self.query[1:] >= self.query[:-1]).all())
        if self.ordered:
            return None if grouped else np.argsort(self.query, kind="stable")
        if grouped:
            rising = np.flatnonzero(self.score[1:] > self.score[:-1])
            if (self.query[rising] != self.query[rising + 1]).all():
                return None
        return np.lexsort((-self.score, self.query))

    def rankings(self, *, k: int | None = None) -> dict[str, list[str]]:
        """Return ``{query: [document, …]}`` best first, each document once, at most ``k`` of them."""
        answers: dict[str, list[str]] = {query_id: [] for query_id in (*self.query_ids, *sorted(self.answered))}
        seen: set[tuple[int, str]] = set()
        order = self.order
        for query, doc_id in zip(self.query[order].tolist(), self.docs.take(order), strict=True):
            answer = answers[self.query_ids[query]]
            if (k is None or len(answer) < k) and (query, doc_id) not in seen:
                seen.add((query, doc_id))
                answer.append(doc_id)
        return answers

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return ``{query: {document: score}}`` best first; of a repeated document the best score stays."""
        scores: dict[str, dict[str, float]] = {query_id: {} for query_id in (*self.query_ids, *sorted(self.answered))}
        for query_id, doc_id, score in self:
            scores[query_id].setdefault(doc_id, score)
        return scores

    def __repr__(self) -> str:
        return brief(self, name=self.name, queries=len(self.query_ids) + len(self.answered), hits=len(self))

    def __iter__(self) -> Iterator[tuple[str, str, float]]:
        order = self.order
        columns = self.query[order].tolist(), self.docs.take(order), self.score[order].tolist()
        for query, doc_id, score in zip(*columns, strict=True):
            yield self.query_ids[query], doc_id, score

    def __len__(self) -> int:
        return len(self.docs)


def _stretches(tied: Ints) -> list[tuple[int, int]]:
    """Return (first row, last row) of every tie, given the rows that tie with the row after them."""
    if not len(tied):
        return []
    breaks = np.flatnonzero(np.diff(tied) > 1)
    firsts = tied[np.concatenate(([0], breaks + 1))]
    lasts = tied[np.concatenate((breaks, [len(tied) - 1]))] + 1
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


@dataclass(frozen=True)
class GoldenSet:
    """Documents, queries and graded judgments, with everything a result must name to be repeatable."""

    id: str
    version: str
    queries: tuple[Query, ...]
    judgments: tuple[Judgment, ...]
    documents: tuple[Document, ...] = ()
    description: str = ""
    created_at: str | None = None
    profile: str = "general"
    relevance_threshold: int = 1
    scale: tuple[int, int] = (0, 3)
    provenance: str = ""
    scope: str | None = None
    slices: tuple[str, ...] = ()
    equivalence_classes: tuple[tuple[str, ...], ...] = ()
    corpus_hash: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    scale_taken: bool = field(default=False, compare=False)
    """True if a table that declares no scale was read: its grades made the scale, even if one is a slip."""

    @cached_property
    def qrels(self) -> Qrels:
        """The judgments as a table over every query of the set."""
        rows = ((judgment.query_id, judgment.doc_id, judgment.grade) for judgment in self.judgments)
        return Qrels.of(rows).with_queries(query.query_id for query in self.queries)

    @cached_property
    def confirmed(self) -> int:
        """How many judgments a person made or confirmed, as their source says."""
        return sum(judgment.source in HUMAN_SOURCES for judgment in self.judgments)

    @property
    def provisional(self) -> bool:
        """True while no person confirmed a single judgment."""
        return not self.confirmed

    @property
    def reviewed(self) -> str:
        """How far people confirmed the judgments, in words."""
        return share_confirmed(self.confirmed, len(self.judgments))

    __repr__ = brief

    def part(self, query_ids: Collection[str]) -> GoldenSet:
        """Return the set with these queries only, and their judgments."""
        queries = tuple(query for query in self.queries if query.query_id in query_ids)
        return replace(self, queries=queries, judgments=tuple(one for one in self.judgments if one.query_id in query_ids))

    def query(self, query_id: str) -> Query:
        """Return one query; raises InputError naming the set."""
        found = next((query for query in self.queries if query.query_id == query_id), None)
        if found is None:
            raise InputError(f"golden set '{self.id}' has no query '{query_id}'")
        return found


def share_confirmed(confirmed: int, judgments: int) -> str:
    """Return how far people confirmed the judgments of a set, in the words that every report uses.

    >>> share_confirmed(3, 637), share_confirmed(0, 12)
    ('3 of 637 judgments confirmed by a person', 'provisional: 0 of 12 judgments confirmed by a person')
    """
    count = f"all {judgments:,}" if confirmed == judgments and judgments else f"{confirmed:,} of {judgments:,}"
    return f"{'' if confirmed else 'provisional: '}{count} judgments confirmed by a person"


def check_grade(value: object, query_id: str, doc_id: str) -> int:
    """Return ``value`` as a whole grade; raises InputError naming query and document otherwise."""
    whole = isinstance(value, int | np.integer | np.bool_)
    if whole or (isinstance(value, float | np.floating) and float(value).is_integer()):
        grade = int(value)  # type: ignore[call-overload]  # a number, as checked above
        if abs(grade) < 2**63:  # what a column of grades can hold
            return int(grade)
    raise InputError(f"grade {value!r} of document '{doc_id}' for query '{query_id}' is not a whole number; use 0, 1, 2 …")


def check_score(value: object, query_id: str, doc_id: str) -> float:
    """Return ``value`` as a finite score; raises InputError naming query and document otherwise."""
    with contextlib.suppress(OverflowError):  # a whole number too large to be a score
        if isinstance(value, int | float | np.number) and math.isfinite(value):
            return float(value)
    raise InputError(f"score {value!r} of document '{doc_id}' for query '{query_id}' is not a finite number; write one")
