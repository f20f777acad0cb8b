"""What every reader and writer of golden sets shares: checked access to the fields of one record, and the set being read.

A key that no format names is kept as metadata, because nothing may vanish. A key that is *nearly* one of the named
ones, while the named one is missing, is taken for a slip of the pen and refused.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError, nearest
from ringtrue.formats import Located, Place, field_of, json_records, required
from ringtrue.ids import id_text
from ringtrue.memory.hook.intents import INTENTS
from ringtrue.records import HUMAN_SOURCES, Document, GoldenSet, Judgment, Query

Record = dict[str, Any]
METADATA = "metadata"
NEGATIVE = "negative"
SOURCES = ("bootstrap", *sorted(HUMAN_SOURCES), "citation", "implicit", "synthetic")
"""Who made a judgment, in the words that mean something here; other words are allowed, misspelt ones are not."""
_AGENT_SOURCES = ("bootstrapped", "validated")
CATEGORIES = (
    "trigger-match", "semantic-search", "causal-query", "cross-folder", "intent-specific", "cold-start", "multi-concept",
    "edge-case",
)  # fmt: skip
"""Kinds of queries of an agent's memory."""
_ALIKE = 0.8


@dataclass(frozen=True)
class Complaint:
    """One record that could not be understood."""

    place: str
    message: str


@dataclass
class Complaints:
    """A reader wraps each record in ``with complaints.about(place):`` so that one broken record hides no other.

    Errors are raised at once when a set is loaded, and collected when a file is validated.
    """

    collect: bool = False
    found: list[Complaint] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What a reader decided by a rule where the file leaves it open, one line each."""

    @contextmanager
    def about(self, place: Place) -> Iterator[None]:
        """Raise what goes wrong inside, or keep it and go on with the next record."""
        try:
            yield
        except InputError as problem:
            if not self.collect:
                raise
            self.found.append(Complaint(problem.place or str(place), str(problem)))


def alike(key: str, names: Iterable[str]) -> str | None:
    """Return the name that ``key`` is nearly, but not exactly, spelled like.

    >>> alike("relevence_threshold", ["relevance_threshold", "scale"])
    'relevance_threshold'
    """
    by_lowercase = {name.lower(): name for name in names}
    close = difflib.get_close_matches(key.lower(), by_lowercase, n=1, cutoff=_ALIKE)
    return by_lowercase[close[0]] if close else None


def check_keys(record: Mapping[str, Any], known: Collection[str], place: Place) -> None:
    """Raise InputError for a key that is nearly one of the known keys which this record lacks."""
    absent = [name for name in known if name not in record]
    for key in record:
        meant = None if key in known else alike(key, absent)
        if meant is not None:
            raise place.error(f"the field '{key}' is not known", f"did you mean '{meant}'?")


def facts_of(record: Mapping[str, Any], structure: Collection[str], place: Place, *, named: Collection[str] = ()) -> Record:
    """Return what the format's ``structure`` does not consume, flat and nested under 'metadata', as one mapping."""
    check_keys(record, {*structure, *named, METADATA}, place)
    facts = {key: value for key, value in record.items() if key not in structure and key != METADATA}
    nested = field_of(record, METADATA, dict, place, default={})
    twice = sorted(facts.keys() & nested.keys())
    if twice:
        raise place.at(METADATA).error(f"'{twice[0]}' is given here and beside it", "keep one of the two")
    return facts | dict(nested)


def spread(facts: Mapping[str, Any], structure: Collection[str], *, named: Collection[str] = ()) -> Record:
    """Return metadata as record fields; a key that a reader would take for another field goes under 'metadata'."""
    reserved = {*structure, METADATA}
    taken = {key for key in facts if key in reserved or (key not in named and alike(key, {*reserved, *named}) is not None)}
    flat = {key: value for key, value in facts.items() if key not in taken}
    return flat | said(metadata={key: value for key, value in facts.items() if key in taken})


USUAL_NAMES = (("id", "query_id", "queryId", "qid"), ("query", "query_text", "question", "text"))
"""Names that people give to the id and the text of a query; a format takes each for its own if that is missing."""


@dataclass(frozen=True)
class QueryFields:
    """What a format calls the parts of a query. ``others`` are fields that its reader takes; the rest is metadata."""

    id: str
    text: str
    others: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    """Metadata that the format names itself, so that it may be spelled nearly like another field."""

    @property
    def structure(self) -> tuple[str, ...]:
        """The fields that are not metadata."""
        return (self.id, self.text, *self.others, NEGATIVE)

    @property
    def keys(self) -> tuple[str, ...]:
        """All fields that the format names."""
        return (*self.structure, *self.named)

    def read(self, record: Record, place: Place, *, default_id: str | None = None) -> Query:
        """Return the query in a record; ``default_id`` is for formats whose queries may have none."""
        for own, usual in zip((self.id, self.text), USUAL_NAMES, strict=True):
            other = next((name for name in usual if name in record and name not in self.keys), None)
            if own not in record and other is not None:
                record = {own if name == other else name: value for name, value in record.items()}
        facts = facts_of(record, self.structure, place, named=self.named)
        text = field_of(record, self.text, str, place)
        named = {} if default_id is None else {self.id: default_id}
        negative = field_of(record, NEGATIVE, bool, place, default=False)
        return Query(id_of(named | record, self.id, place), text, facts, negative)

    def write(self, query: Query, facts: Mapping[str, Any] | None = None) -> Record:
        """Return the record of a query, with these facts in place of its metadata if they are given."""
        row: Record = {self.id: query.query_id, self.text: query.text}
        row |= spread(query.metadata if facts is None else facts, self.structure, named=self.named)
        return row | said(negative=query.negative)


def said(**fields: Any) -> Record:
    """Return the fields that say something; what is None, false or empty is left out.

    >>> said(source=None, tags=["a"], negative=False)
    {'tags': ['a']}
    """
    return {name: value for name, value in fields.items() if value not in (None, False, {}, [], "")}


def document_of(record: Record, place: Place, *, id: str, text: str = "content", named: Collection[str] = ()) -> Document:
    """Return the document in a record that calls its id and text so."""
    return Document(
        doc_id=id_of(record, id, place),
        text=field_of(record, text, str, place),
        title=field_of(record, "title", str, place, default=""),
        metadata=facts_of(record, (id, "title", text, "tags"), place, named=named),
        tags=tuple(ids_of(record, "tags", place, default=[])),
    )


def one_of(record: Mapping[str, Any], names: tuple[str, ...], place: Place, *, cure: str = "") -> str | None:
    """Return which of several names a record has; raises InputError for two, and for none if there is a ``cure``."""
    given = [name for name in names if name in record]
    if len(given) > 1:
        raise place.error(f"both '{given[0]}' and '{given[1]}' are given", "keep one of the two")
    if not given and cure:
        meant = next((key for key in record if alike(key, names)), None)
        missing = f"the field '{names[0]}' (or '{names[1]}') is missing"
        raise place.error(missing, f"rename '{meant}'" if meant else cure)
    return given[0] if given else None


def object_in(value: Any, place: Place, cure: str) -> Record:
    """Return what a file holds; raises InputError if that is not an object."""
    if isinstance(value, dict):
        return value
    raise place.error(f"the file holds {value!r:.40}, not an object", cure)


def optional_text(record: Mapping[str, Any], name: str, place: Place) -> str | None:
    """Return a field that holds text; None if it is missing or null."""
    return None if record.get(name) is None else field_of(record, name, str, place)


def id_of(record: Mapping[str, Any], name: str, place: Place) -> str:
    """Return a field that holds an id, as text."""
    return as_id(required(record, name, place), place.at(name))


def ids_of(record: Mapping[str, Any], name: str, place: Place, *, default: Any = ...) -> list[str]:
    """Return a field that holds a list of ids."""
    values = field_of(record, name, list, place, default=default)
    return [as_id(value, place.at(name).at(index)) for index, value in enumerate(values)]


def as_id(value: Any, place: Place) -> str:
    """Return an id as text: stores number their records, and 12 and "12" name the same one."""
    value = id_text(value)
    if isinstance(value, str) and value.strip():
        return value
    raise place.error(f"{value!r:.80} is not an id", "write a non-blank text or a whole number")


def as_number(value: Any) -> Any:
    """Return an id as the number it was stored as, where its text is one."""
    # int() also reads "٣" and "1_0"; only the plain spelling comes back from str() unchanged.
    plain = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19 and str(int(value)) == value
    return int(value) if plain else value


def grade(value: Any, place: Place) -> int:
    """Return a grade; raises InputError that says what a grade looks like."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise place.error(f"{value!r:.80} is not a grade", "write a whole number: 0, 1, 2 or 3")


def grade_of(record: Mapping[str, Any], name: str, place: Place) -> int:
    """Return a field that holds a grade."""
    return grade(required(record, name, place), place.at(name))


def source_of(record: Mapping[str, Any], name: str, place: Place) -> str | None:
    """Return a field that says who judged; raises InputError for a word that is nearly, but not exactly, a known one."""
    # 'chiar' must not make a row that a person confirmed look like one that nobody did.
    source = optional_text(record, name, place)
    check_spelling(source, (*SOURCES, *_AGENT_SOURCES), "source", place.at(name))
    return source


def check_kind(record: Mapping[str, Any], place: Place) -> None:
    """Raise InputError for a category or an intent of a query that is nearly, but not exactly, a known one."""
    for name, known in (("category", CATEGORIES), ("intent", INTENTS)):
        word = record.get(name)
        check_spelling(word if isinstance(word, str) else None, known, name, place.at(name))


def check_spelling(word: str | None, known: Collection[str], what: str, place: Place) -> None:
    """Raise InputError for a word that is nearly, but not exactly, a known one; words of a user's own are allowed."""
    meant = None if word is None or word in known else alike(word, known)
    if meant is not None:
        raise place.error(f"'{word}' is not a known {what}", f"did you mean '{meant}'?")


def legal(value: str, options: Collection[str], what: str, place: Place) -> str:
    """Return ``value`` when it is one of the options; raises InputError with the nearest ones."""
    if value in options:
        return value
    raise place.error(f"{value!r:.80} is not a {what}", f"write {nearest(value, options)}")


def objects(values: Iterable[Any], place: Place, complaints: Complaints) -> Iterator[tuple[Place, Record]]:
    """Yield (place, object) for each item of a list; an item that is not an object is a complaint."""
    for index, value in enumerate(values):
        here = place.at(index)
        if isinstance(value, Located):
            here = here.on(value.line)
        if isinstance(value, dict):
            yield here, value
            continue
        with complaints.about(here):
            raise here.error(f"{value!r:.80} is not an object", "write its named fields")


def json_lines(path: Path, complaints: Complaints) -> Iterator[tuple[Place, Record]]:
    """Yield (place, object) per object of a file; if complaints collect, it goes on after a broken one."""
    for place, read in json_records(path):
        record: Record | None = None
        with complaints.about(place):
            record = read()
        if record is not None:
            yield place, record


def json_rows(path: Path, complaints: Complaints, *, wrappers: Collection[str] = ()) -> Iterator[tuple[Place, Record]]:
    """Yield (place, object) as ``json_lines`` does; of a lone object, the list under one of ``wrappers``."""
    rows = list(json_lines(path, complaints))
    name = next((key for key in wrappers if isinstance(rows[0][1].get(key), list)), None) if len(rows) == 1 else None
    return iter(rows) if name is None else objects(rows[0][1][name], Place(str(path)).at(name), complaints)


# ── the set while it is being read ──────────────────────────────────────────────────────────────────────────────────

PROFILES: dict[str, str] = {
    "general": "a graded collection that stands for everything users ask, with every rule applied",
    "known-item": "each query looks for one particular document, often by its name",
    "memory": "the memory of an agent, with queries that should be answered by silence",
    "test-set": "a graded collection for one purpose, without the coverage rules",
}
"""The kinds of golden set there are. A set names its profile; the profile fixes which rules apply to it."""
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
    given, here = field_of(record, "equivalence_classes", list, place, default=[]), place.at("equivalence_classes")
    for index, members in enumerate(given):
        if not isinstance(members, list):
            cure = "write the ids of documents that are interchangeable"
            raise here.at(index).error(f"{members!r:.80} is not a list", cure)
    return tuple(tuple(as_id(member, here.at(index)) for member in members) for index, members in enumerate(given))


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
    _repeated: list[str] = field(default_factory=list)
    _listed: dict[bool, Place] = field(default_factory=dict)
    """Where the first document with a grade (True) and the first without one (False) stood."""
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
            what = "every document that it lists counts as relevant"
            self.complaints.notes.append(f"the file gives no grades: {what}, grade {relevant}")

    def threshold(self, header: Header) -> int:
        """Return the declared relevance threshold, or the usual one of a set that declares none."""
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
        threshold = header.threshold if header.threshold is not None else 1  # as bare qrels have it
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
