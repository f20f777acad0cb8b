"""A golden set laid out for checking: its parts by id, without the assumption that ids are unique or known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ringtrue.golden.overlap import OverlapSummary, summarise
from ringtrue.records import Document, GoldenSet, Judgment, Query


@dataclass(frozen=True)
class Subject:
    """The set under validation and the sizes it has to reach."""

    golden: GoldenSet
    minimum_documents: int
    minimum_queries: int

    @cached_property
    def documents(self) -> dict[str, Document]:
        """Documents by id."""
        return {document.doc_id: document for document in self.golden.documents}

    @cached_property
    def queries(self) -> dict[str, Query]:
        """Queries by id."""
        return {query.query_id: query for query in self.golden.queries}

    @cached_property
    def judged(self) -> dict[str, list[Judgment]]:
        """Judgments by query id, of unknown queries too."""
        groups: dict[str, list[Judgment]] = {query_id: [] for query_id in self.queries}
        for judgment in self.golden.judgments:
            groups.setdefault(judgment.query_id, []).append(judgment)
        return groups

    def relevant(self, query_id: str) -> list[str]:
        """Return the documents that count as relevant."""
        return [j.doc_id for j in self.judged[query_id] if j.grade >= self.golden.relevance_threshold]

    def relevant_items(self, query_id: str) -> int:
        """Return how many relevant things there are; members of one equivalence class are one (M-3)."""
        return len({self._class_of.get(doc_id, doc_id) for doc_id in self.relevant(query_id)})

    @cached_property
    def _class_of(self) -> dict[str, str]:
        return {member: members[0] for members in self.golden.equivalence_classes for member in members}

    @cached_property
    def words(self) -> list[int]:
        """The length of each document in words."""
        return [len(document.text.split()) for document in self.golden.documents]

    @cached_property
    def overlap(self) -> OverlapSummary:
        """How much the queries borrow from their documents."""
        return summarise(self.golden)

    @cached_property
    def reachable_precision(self) -> float | None:
        """The best mean P@5 that the judgments allow; None when no query expects an answer."""
        best = [min(5, self.relevant_items(query.query_id)) / 5 for query in self.queries.values() if not query.negative]
        return sum(best) / len(best) if best else None
