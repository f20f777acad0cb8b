"""A golden set while it is being read: what it says about itself, and its queries, documents and judgments so far."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from ringtrue.formats import Place, field_of
from ringtrue.golden.formats.fields import (
    Complaints,
    Record,
    as_id,
    facts_of,
    grade,
    grade_of,
    ids_of,
    legal,
    optional_text,
    source_of,
    spread,
)
from ringtrue.records import Document, GoldenSet, Judgment, Query

PROFILES: dict[str, str] = {
    "general": "a graded collection that stands for everything users ask, with every rule applied",
    "known-item": "each query looks for one particular document, often by its name",
    "memory": "the memory of an agent, with queries that should be answered by silence",
    "test-set": "a graded collection for one purpose, without the coverage rules",
}
"""The kinds of golden set there are. A set names its profile; the profile fixes which rules apply to it (G-2)."""
UNVERSIONED = "0.0.0"
FACTS = (
    "id", "version", "created_at", "description", "profile", "relevance_threshold", "scale", "provenance", "scope", "slices",
    "equivalence_classes",
)  # fmt: skip
"""What a set says about itself, by the names of its fields."""
FIELDS = (*FACTS, "corpus_hash", "judgment_source")
_ALWAYS = ("id", "version", "description", "profile", "relevance_threshold")


@dataclass(frozen=True)
class Header:
    """What a set says about itself; None for a threshold or a source of judgments that it does not declare."""

    golden: GoldenSet
    threshold: int | None = None
    source: str | None = None


def undeclared(name: str, *, profile: str = "general", **facts: Any) -> Header:
    """Return the header of a set that says nothing about itself."""
    return Header(GoldenSet(name, UNVERSIONED, (), (), profile=profile, **facts))


def read_header(
    record: Record, place: Place, *, name: str, structure: tuple[str, ...] = (), profile: str = "general"
) -> Header:
    """Return the header in ``record``; ``structure`` names its other fields, ``name`` is the default id."""
    facts = facts_of(record, (*FIELDS, *structure), place)
    profile = field_of(record, "profile", str, place, default=profile)
    golden = GoldenSet(
        id=as_id(record["id"], place.at("id")) if "id" in record else name,
        version=field_of(record, "version", str, place, default=UNVERSIONED),
        queries=(),
        judgments=(),
        created_at=optional_text(record, "created_at", place),
        description=field_of(record, "description", str, place, default=""),
        profile=legal(profile, PROFILES, "profile", place.at("profile")),
        scale=_scale(record, place),
        provenance=field_of(record, "provenance", str, place, default=""),
        scope=optional_text(record, "scope", place),
        slices=tuple(ids_of(record, "slices", place, default=[])),
        equivalence_classes=_classes(record, place),
        corpus_hash=optional_text(record, "corpus_hash", place),
        metadata=facts,
    )
    threshold = grade_of(record, "relevance_threshold", place) if "relevance_threshold" in record else None
    return Header(golden, threshold, source_of(record, "judgment_source", place))


def write_header(golden: GoldenSet, *, structure: tuple[str, ...] = (), with_source: bool = False) -> Record:
    """Return the header of a set as a record, without what a reader would assume anyway.

    ``with_source`` is for formats whose judgments have no room for a source: one that all share is declared here.
    """
    blank = GoldenSet("", "", (), ())
    names = [name for name in FACTS if name in _ALWAYS or getattr(golden, name) != getattr(blank, name)]
    record: Record = {name: _as_lists(getattr(golden, name)) for name in names}
    if golden.corpus_hash is not None and not golden.documents:
        record["corpus_hash"] = golden.corpus_hash
    sources = {judgment.source for judgment in golden.judgments} if with_source else set()
    if len(sources) == 1 and None not in sources:
        record["judgment_source"] = sources.pop()
    return record | spread(golden.metadata, (*FIELDS, *structure))


def _as_lists(value: Any) -> Any:
    return [_as_lists(item) for item in value] if isinstance(value, tuple) else value


def _scale(record: Record, place: Place) -> tuple[int, int]:
    ends = field_of(record, "scale", list, place, default=[0, 3])
    here = place.at("scale")
    if len(ends) != 2:
        raise here.error(f"{ends!r:.80} is not a scale", "write the lowest and the highest grade, like [0, 3]")
    lowest, highest = (grade(end, here.at(index)) for index, end in enumerate(ends))
    if lowest >= highest:
        raise here.error(f"{ends!r:.80} does not rise", "write the lowest grade first, like [0, 3]")
    return lowest, highest


def _classes(record: Record, place: Place) -> tuple[tuple[str, ...], ...]:
    classes = []
    for index, members in enumerate(field_of(record, "equivalence_classes", list, place, default=[])):
        here = place.at("equivalence_classes").at(index)
        if not isinstance(members, list):
            raise here.error(f"{members!r:.80} is not a list", "write the ids of documents that are interchangeable")
        classes.append(tuple(as_id(member, here) for member in members))
    return tuple(classes)


def passage_id(text: str) -> str:
    """Return an id made from a passage itself, so that the same passage is the same document wherever it stands.

    >>> passage_id("Check-in is at three.")
    'ctx-ab5c77c71f20'
    """
    return "ctx-" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass
class Draft:
    """What was read so far, and where each thing stood, so that a repetition can name both places."""

    complaints: Complaints
    queries: dict[str, Query] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    judgments: dict[tuple[str, str], Judgment] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """Where documents lie that are files: document id → path below the folder of the corpus."""
    position: int = 0
    """The number of the query that is being read, from 1."""
    _listed: dict[bool, Place] = field(default_factory=dict)
    """Where the first document with a grade (True) and the first without one (False) stood."""
    _repeated: list[str] = field(default_factory=list)
    _places: dict[tuple[str, str], Place] = field(default_factory=dict)

    def add_query(self, query: Query, place: Place) -> None:
        """Keep a query; raises InputError when its id is taken."""
        self._claim("query", query.query_id, place)
        self.queries[query.query_id] = query

    def add_document(self, document: Document, place: Place) -> None:
        """Keep a document; raises InputError when its id is taken."""
        self._claim("document", document.doc_id, place)
        self.documents[document.doc_id] = document

    def add_passage(self, passage: Document, place: Place) -> None:
        """Keep a passage that may come again; raises InputError when its id stands for another one already."""
        known = self.documents.setdefault(passage.doc_id, passage)
        if known.text != passage.text:
            raise place.error(f"the id '{passage.doc_id}' stands for another passage too", "give each passage its own id")

    def add_judgment(self, judgment: Judgment, place: Place) -> None:
        """Keep a judgment; raises InputError when the pair was judged before, with another grade."""
        known = self.judgments.setdefault((judgment.query_id, judgment.doc_id), judgment)
        if known is not judgment and known.grade == judgment.grade:
            self._repeated.append(f"document '{judgment.doc_id}' of query '{judgment.query_id}' at {place}")
        elif known is not judgment:
            grades = f"as {known.grade} and as {judgment.grade}"
            problem = f"query '{judgment.query_id}' judges document '{judgment.doc_id}' twice, {grades}"
            raise place.error(problem, "keep one of the two")

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
        if header.threshold is not None:
            return header.threshold
        graded = any(judgment.grade > 1 for judgment in self.judgments.values())
        return 2 if graded and header.golden.scale == (0, 3) else 1

    def finish_undeclared(self, header: Header, declared: Collection[str] = ()) -> GoldenSet:
        """Return a set whose format has no place for profile and scale: a test set, on the scale that its grades show."""
        golden = self.finish(header)
        if "scale" not in declared:
            grades = [judgment.grade for judgment in self.judgments.values()]  # one below 0 says "pooled but not judged"
            golden = replace(golden, scale=(min([golden.scale[0], *grades]), max([golden.scale[1], *grades])))
        threshold = header.threshold if header.threshold is not None else 1  # as bare qrels have it (M-3)
        return replace(golden, relevance_threshold=threshold, profile=golden.profile if "profile" in declared else "test-set")

    def finish_table(self, name: str) -> GoldenSet:
        """Return the set of a table written by hand, which declares nothing."""
        return replace(self.finish_undeclared(undeclared(name)), scale_taken=True)

    def finish(self, header: Header) -> GoldenSet:
        """Return the set that was read."""
        if self._repeated:
            first = f"such as {self._repeated[0]}"
            self.complaints.notes.append(
                f"{len(self._repeated)} judgments are repeated with the same grade and count once, {first}"
            )
        judgments = tuple(self.judgments.values())
        if header.source is not None:
            judgments = tuple(one if one.source is not None else replace(one, source=header.source) for one in judgments)
        return replace(
            header.golden,
            queries=tuple(self.queries.values()),
            judgments=judgments,
            documents=tuple(self.documents.values()),
            relevance_threshold=self.threshold(header),
        )

    def _claim(self, kind: str, name: str, place: Place) -> None:
        first = self._places.setdefault((kind, name), place)
        if first is not place:
            raise place.error(f"the {kind} id '{name}' is given twice, first at {first}", "give each its own id or remove one")
