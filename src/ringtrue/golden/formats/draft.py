"""A golden set while it is being read: collects queries, documents and judgments, and refuses to hold one twice."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from ringtrue.formats.text import Place
from ringtrue.golden.formats.complaints import Complaints
from ringtrue.golden.formats.header import Header
from ringtrue.records import Document, GoldenSet, Judgment, Query


@dataclass
class Draft:
    """What was read so far, and where each thing stood, so that a repetition can name both places."""

    complaints: Complaints
    queries: dict[str, Query] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    judgments: dict[tuple[str, str], Judgment] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """Where documents lie that are files: document id → path below the folder of the corpus."""
    _places: dict[tuple[str, ...], Place] = field(default_factory=dict)
    _listed: dict[bool, Place] = field(default_factory=dict)
    """Where the first document with a grade (True) and the first without one (False) stood."""

    def add_query(self, query: Query, place: Place) -> None:
        """Keep a query; raises InputError when its id is taken."""
        self._claim(("query", query.query_id), f"the query id '{query.query_id}'", place)
        self.queries[query.query_id] = query

    def add_document(self, document: Document, place: Place) -> None:
        """Keep a document; raises InputError when its id is taken."""
        self._claim(("document", document.doc_id), f"the document id '{document.doc_id}'", place)
        self.documents[document.doc_id] = document

    def add_judgment(self, judgment: Judgment, place: Place) -> None:
        """Keep a judgment; raises InputError when the pair was judged before."""
        pair = judgment.query_id, judgment.doc_id
        known = self.judgments.get(pair)
        if known is not None:
            grades = f"as {known.grade} and as {judgment.grade}"
            problem = f"query '{judgment.query_id}' judges document '{judgment.doc_id}' twice, {grades}"
            raise place.error(problem, "keep one of the two")
        self.judgments[pair] = judgment

    def listed(self, place: Place, *, graded: bool) -> None:
        """Remember that a document was listed here, with or without a grade."""
        self._listed.setdefault(graded, place)

    def note_ungraded(self, relevant: int) -> None:
        """Say by which rule documents without a grade were graded; if only some have none, that is a complaint."""
        place, graded = self._listed.get(False), self._listed.get(True)
        if place is not None and graded is not None:
            with self.complaints.about(place):
                raise place.error(f"the document has no grade, but the one at {graded} has", "add its 'grade'")
        elif place is not None:
            said = f"the file gives no grades: every document that it lists counts as relevant, grade {relevant}"
            self.complaints.notes.append(said)

    def threshold(self, header: Header) -> int:
        """Return the declared relevance threshold, or the one that M-3 gives to a set that declares none."""
        if header.relevance_threshold is not None:
            return header.relevance_threshold
        graded = any(judgment.grade > 1 for judgment in self.judgments.values())
        return 2 if graded and header.scale == (0, 3) else 1

    def finish_table(self, name: str) -> GoldenSet:
        """Return the set of a table written by hand, which declares nothing."""
        return replace(self.finish_undeclared(Header(name)), scale_taken=True)

    def finish_undeclared(self, header: Header, declared: Collection[str] = ()) -> GoldenSet:
        """Return a set whose format has no place for profile and scale: a test set, on the scale that its grades show."""
        if "scale" not in declared:
            grades = [judgment.grade for judgment in self.judgments.values()]  # one below 0 says "pooled but not judged"
            header = replace(header, scale=(min([header.scale[0], *grades]), max([header.scale[1], *grades])))
        if "relevance_threshold" not in declared:
            header = replace(header, relevance_threshold=1)  # as bare qrels have it (M-3)
        return self.finish(header if "profile" in declared else replace(header, profile="test-set"))

    def finish(self, header: Header) -> GoldenSet:
        """Return the set that was read."""
        judgments = self.judgments.values()
        if header.judgment_source is not None:
            judgments_with_source = [_sourced(judgment, header.judgment_source) for judgment in judgments]
        else:
            judgments_with_source = list(judgments)
        return GoldenSet(
            id=header.id,
            version=header.version,
            queries=tuple(self.queries.values()),
            judgments=tuple(judgments_with_source),
            documents=tuple(self.documents.values()),
            description=header.description,
            created_at=header.created_at,
            profile=header.profile,
            relevance_threshold=self.threshold(header),
            scale=header.scale,
            provenance=header.provenance,
            scope=header.scope,
            slices=header.slices,
            equivalence_classes=header.equivalence_classes,
            corpus_hash=header.corpus_hash,
            metadata=header.metadata,
        )

    def _claim(self, key: tuple[str, ...], what: str, place: Place) -> None:
        first = self._places.setdefault(key, place)
        if first is not place:
            raise place.error(f"{what} is given twice, first at {first}", "give each its own id or remove one")


def _sourced(judgment: Judgment, source: str) -> Judgment:
    if judgment.source is not None:
        return judgment
    return Judgment(judgment.query_id, judgment.doc_id, judgment.grade, source, judgment.metadata)
