"""Measures of the list: they read who is in the answer, not only at which rank a judged document stands.

They need facts about documents and queries (importance tier, folder, status, causal chain, forbidden answers) beside the
judgments. Like the ranked measures they return one float per query, nan if the value is not defined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ringtrue.brief import brief
from ringtrue.errors import CannotDecide
from ringtrue.records import Floats, GoldenSet

TIER_WEIGHTS: Mapping[str, float] = {
    "constitutional": 4.0,
    "critical": 3.0,
    "important": 2.0,
    "normal": 1.0,
    "temporary": 0.5,
}
_ID_LISTS = ("chain", "forbidden")
OUT_OF_USE = frozenset({"retired", "archived", "superseded"})


@dataclass(frozen=True)
class Facts:
    """What is known about documents and queries beyond the judgments: their metadata, by id."""

    documents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    queries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    __repr__ = brief

    @classmethod
    def of(cls, golden: GoldenSet) -> Facts:
        """Return the facts a golden set carries; what its judgments forbid becomes a fact of the query."""
        barred: dict[str, list[str]] = {}
        for judgment in golden.judgments:
            if judgment.metadata.get("forbidden"):
                barred.setdefault(judgment.query_id, []).append(judgment.doc_id)
        queries = {query.query_id: query.metadata for query in golden.queries}
        queries |= {name: {**queries[name], "forbidden": ids} for name, ids in barred.items() if name in queries}
        return cls({document.doc_id: document.metadata for document in golden.documents}, queries)

    def under_one_name(self, name_of: Mapping[str, str]) -> Facts:
        """Return the facts with interchangeable documents renamed to their class; the first to declare a field keeps it."""
        documents: dict[str, Mapping[str, Any]] = {}
        for doc_id, metadata in self.documents.items():
            name = name_of.get(doc_id, doc_id)
            documents[name] = {**metadata, **documents.get(name, {})}

        def renamed(query: Mapping[str, Any]) -> Mapping[str, Any]:
            lists = {name: [name_of.get(str(doc), str(doc)) for doc in query[name]] for name in _ID_LISTS if query.get(name)}
            first = query.get("top_1_chunk")
            return {**query, **lists, "top_1_chunk": first if first is None else name_of.get(str(first), str(first))}

        return Facts(documents, {query_id: renamed(query) for query_id, query in self.queries.items()})

    def tier(self, doc_id: str) -> str:
        return str(self.documents.get(doc_id, {}).get("importance_tier", "normal"))

    def out_of_use(self, doc_id: str) -> bool:
        return self.documents.get(doc_id, {}).get("record_status") in OUT_OF_USE

    def ids(self, query_id: str, name: str) -> tuple[str, ...]:
        """Return a list of document ids that a query declares, such as its chain."""
        return tuple(map(str, self.queries.get(query_id, {}).get(name) or ()))

    def require(self, holds: bool, measure: str, what: str) -> None:
        """Raise CannotDecide when the facts that a measure is made of were not given."""
        if not holds:
            raise CannotDecide(
                f"{measure} needs {what}; score against a golden set that declares it (in Python also: facts=Facts(…))"
            )


@dataclass(frozen=True)
class JudgedAnswer:
    """One query's answer with its judgments."""

    query_id: str
    shown: Sequence[str]
    grades: Mapping[str, int]
    chunk: str | None = None
    """The passage behind the first document; None if the search names none."""

    def optimistic(self, depth: int | None, top_grade: int) -> JudgedAnswer:
        """Return the same answer as if every unjudged document down to ``depth`` had the highest grade."""
        unjudged = {doc_id: top_grade for doc_id in self.shown[:depth] if self.grades.get(doc_id, -1) < 0}
        return replace(self, grades={**self.grades, **unjudged})


def _each(answers: Sequence[JudgedAnswer], value: Callable[[JudgedAnswer], float]) -> Floats:
    return np.array([value(answer) for answer in answers], np.float64)


def share(part: float, whole: float) -> float:
    """Return part ÷ whole, nan if the whole is 0."""
    return part / whole if whole else np.nan


def diversity(answers: Sequence[JudgedAnswer], facts: Facts, *, k: int, by: str) -> Floats:
    known = any(by in metadata for metadata in facts.documents.values())
    facts.require(known, "Diversity", f"the document field '{by}'")

    def value(answer: JudgedAnswer) -> float:
        shown = answer.shown[:k]
        # A document without the field is a group of its own: nothing says that it resembles another.
        values = {doc_id: facts.documents.get(doc_id, {}).get(by) for doc_id in shown}
        # The text of a value, because a field may hold a list.
        groups = {(False, doc_id) if value is None else (True, repr(value)) for doc_id, value in values.items()}
        return 1.0 - len(groups) / len(shown) if shown else np.nan

    return _each(answers, value)


def constitutional(answers: Sequence[JudgedAnswer], facts: Facts, *, k: int) -> Floats:
    _require_tiers(facts, "Constitutional")
    always = {doc for doc in facts.documents if facts.tier(doc) == "constitutional" and not facts.out_of_use(doc)}
    return _each(answers, lambda answer: float(always <= set(answer.shown[:k])) if always else np.nan)


def importance_recall(answers: Sequence[JudgedAnswer], facts: Facts, *, k: int, rel: int, tiers: tuple[str, ...]) -> Floats:
    _require_tiers(facts, "ImportanceRecall")

    def weight(doc_id: str) -> float:
        tier = facts.tier(doc_id)
        return TIER_WEIGHTS.get(tier, 1.0) if not tiers or tier in tiers else 0.0

    def value(answer: JudgedAnswer) -> float:
        relevant = [doc_id for doc_id, grade in answer.grades.items() if grade >= rel]
        shown = set(answer.shown[:k])
        return share(sum(weight(doc) for doc in relevant if doc in shown), sum(map(weight, relevant)))

    return _each(answers, value)


def tier_precision(answers: Sequence[JudgedAnswer], facts: Facts, *, k: int, rel: int, tier: str) -> Floats:
    _require_tiers(facts, "TierP")

    def value(answer: JudgedAnswer) -> float:
        shown = [doc_id for doc_id in answer.shown[:k] if facts.tier(doc_id) == tier]
        return share(sum(answer.grades.get(doc_id, 0) >= rel for doc_id in shown), len(shown))

    return _each(answers, value)


def chain_completeness(answers: Sequence[JudgedAnswer], facts: Facts, *, k: int) -> Floats:
    facts.require(any(query.get("chain") for query in facts.queries.values()), "ChainCompleteness", "queries with a 'chain'")

    def value(answer: JudgedAnswer) -> float:
        chain = facts.ids(answer.query_id, "chain")
        return share(len(set(chain) & set(answer.shown[:k])), len(set(chain)))

    return _each(answers, value)


def forbidden(answers: Sequence[JudgedAnswer], facts: Facts, *, k: int) -> Floats:
    known = any(query.get("forbidden") for query in facts.queries.values())
    facts.require(known, "Forbidden", "queries with 'forbidden' documents")

    def value(answer: JudgedAnswer) -> float:
        barred = facts.ids(answer.query_id, "forbidden")
        return float(not set(barred).isdisjoint(answer.shown[:k])) if barred else np.nan

    return _each(answers, value)


def stale(answers: Sequence[JudgedAnswer], facts: Facts, *, k: int) -> Floats:
    known = any("record_status" in metadata for metadata in facts.documents.values())
    facts.require(known, "Stale", "documents with a record_status")
    return _each(answers, lambda answer: share(sum(map(facts.out_of_use, answer.shown[:k])), len(answer.shown[:k])))


def false_inject(answers: Sequence[JudgedAnswer], facts: Facts, *, k: int, rel: int) -> Floats:
    return _each(answers, lambda answer: float(any(answer.grades.get(doc, 0) < rel for doc in answer.shown[:k])))


def silent(answers: Sequence[JudgedAnswer], facts: Facts) -> Floats:
    return _each(answers, lambda answer: float(not answer.shown))


def top_1_chunk(answers: Sequence[JudgedAnswer], facts: Facts) -> Floats:
    declared = {query_id: str(query["top_1_chunk"]) for query_id, query in facts.queries.items() if query.get("top_1_chunk")}
    facts.require(bool(declared), "Top1Chunk", "queries with a 'top_1_chunk'")
    chunked = any(answer.chunk is not None for answer in answers)
    # A run may consist of chunks, whose ids then are the documents of the run; the id of a judged document proves nothing.
    chunks = set(declared.values()).difference(*(answer.grades for answer in answers)) or set(declared.values())
    of_chunks = not chunked and any(not chunks.isdisjoint(answer.shown) for answer in answers)
    known = of_chunks or chunked

    def value(answer: JudgedAnswer) -> float:
        first = answer.shown[0] if of_chunks and answer.shown else answer.chunk
        if answer.query_id not in declared or not known or (answer.shown and first is None):
            return np.nan
        return float(first == declared[answer.query_id])

    return _each(answers, value)


def _require_tiers(facts: Facts, measure: str) -> None:
    known = any("importance_tier" in metadata for metadata in facts.documents.values())
    facts.require(known, measure, "documents with an importance_tier")
