"""Golden sets without hand labels: rows that a method makes, written into a set beside everything else that is in it.

Every method has a source of its own (bootstrap, citation, implicit, synthetic). A re-run takes out what the method wrote before
and writes it anew; what other methods wrote stays, and a query that a person confirmed is not touched at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from ringtrue.answers import SearchFacts
from ringtrue.errors import nearest
from ringtrue.formats import Place, csv_rows, read_jsonl
from ringtrue.golden.likeness import normalise
from ringtrue.records import HUMAN_SOURCES, Document, GoldenSet, Judgment, Query

T = TypeVar("T")
SOURCE = "bootstrap"
GRADE = 3
"""The grade of a document that was cited."""
COLUMNS = ("doc_id", "cited_at", "query_id", "session_id", "cited_by")
CONFIRM = "No person has judged this set yet. After checking a judgment, set its source to manual (chair in a gold-jsonl row)."
"""How a set that a method made becomes its users' own; every new set says it of itself."""
Screen = Callable[[str], bool]
"""True for a text that may be kept: no personal data, no secret in it."""
FACTS = ("practice_area", "corpus")
"""Facts of documents that a query for them has, too."""


@dataclass(frozen=True)
class Row:
    """A query that a method made, and the grade of each document it knows of."""

    text: str
    grades: Mapping[str, int]
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Bootstrapped:
    """A set with the rows of one method, and what happened on the way.

    ``written`` counts the method's queries, ``judgments`` what it says of documents, ``kept`` the queries that were there
    before and are not its own; ``confirmed`` are the texts it left alone because a person vouches for that query.
    """

    golden: GoldenSet
    written: int
    judgments: int
    kept: int
    confirmed: tuple[str, ...]


def confirmed(golden: GoldenSet) -> frozenset[str]:
    """Return the ids of the queries that a person vouches for, by a judgment or as a whole.

    One judgment of a person's is enough: rewriting the rest of that query would change what they confirmed.
    """
    by_judgment = {judgment.query_id for judgment in golden.judgments if judgment.source in HUMAN_SOURCES}
    whole = {query.query_id for query in golden.queries if query.metadata.get("source") in HUMAN_SOURCES}
    return frozenset(by_judgment | whole)


def id_from_text(prefix: str, text: str) -> str:
    """Return the id of a query that has none of its own: the same for all spellings that normalise alike.

    >>> id_from_text("live", "Wi-Fi?") == id_from_text("live", "wi fi")
    True
    """
    return f"{prefix}-" + hashlib.sha256(normalise(text).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def rewrite(
    base: GoldenSet, rows: Iterable[Row], *, source: str, prefix: str, documents: Sequence[Document] = ()
) -> Bootstrapped:
    """Return the set with this method's rows, in place of those that it wrote before.

    A row whose query is in the set already adds its judgments there, except where a person vouches for that query; a pair that
    somebody else judged stays as it is. The set's number of the version is not changed.
    """
    before, base = base, _without(base, source)
    corpus = {document.doc_id: document for document in (*base.documents, *documents)}
    names = FACTS if base.scope is None else (*FACTS, base.scope)
    untouchable = confirmed(base)
    by_text = {normalise(query.text): query for query in base.queries}
    taken = {query.query_id for query in base.queries}
    judged = {(judgment.query_id, judgment.doc_id) for judgment in base.judgments}
    queries, judgments = list(base.queries), list(base.judgments)
    said, left = 0, []
    touched: set[str] = set()
    for row in rows:
        query = by_text.get(normalise(row.text))
        if query is None:
            query_id = id_from_text(prefix, row.text)
            if query_id in taken:  # a person reworded the query that this row once made
                left.append(row.text)
                continue
            facts = _facts([corpus[doc_id] for doc_id in row.grades if doc_id in corpus], names)
            query = by_text[normalise(row.text)] = Query(query_id, row.text.strip(), {**facts, **row.metadata})
            taken.add(query_id)
            queries.append(query)
        elif query.query_id in untouchable:
            left.append(row.text)
            continue
        touched.add(query.query_id)
        for doc_id, grade in row.grades.items():
            if (query.query_id, doc_id) not in judged:
                judged.add((query.query_id, doc_id))
                judgments.append(Judgment(query.query_id, doc_id, grade, source))
                said += 1
    golden = replace(
        base,
        # What was there before keeps its place, so that a re-run which changes nothing changes no line of a file either.
        queries=_in_place([query.query_id for query in before.queries], queries, lambda query: query.query_id),
        judgments=_in_place([(j.query_id, j.doc_id) for j in before.judgments], judgments, lambda j: (j.query_id, j.doc_id)),
        documents=tuple(corpus.values()),
        corpus_hash=base.corpus_hash if not corpus else None,
    )
    return Bootstrapped(golden, len(touched), said, len(base.queries), tuple(left))


def _facts(found: Sequence[Document], names: Sequence[str]) -> dict[str, Any]:
    """Return the facts that all documents of a query share: by them queries are routed and results are told apart."""
    shared = {name: found[0].metadata[name] for name in names if found and name in found[0].metadata}
    return {name: value for name, value in shared.items() if all(one.metadata.get(name) == value for one in found)}


def _in_place(before: Sequence[Hashable], after: Sequence[T], key: Callable[[T], Hashable]) -> tuple[T, ...]:
    places = {name: place for place, name in enumerate(before)}
    return tuple(sorted(after, key=lambda item: places.get(key(item), len(places))))


def _without(golden: GoldenSet, source: str) -> GoldenSet:
    """Return the set without what a method wrote in it before."""
    untouchable = confirmed(golden)
    own = [j for j in golden.judgments if j.source == source and j.query_id not in untouchable]
    others = [j for j in golden.judgments if j.source != source or j.query_id in untouchable]
    # A query that nobody else judged was the method's own; one without any judgment is somebody's work in progress.
    emptied = {j.query_id for j in own} - {j.query_id for j in others}
    kept = tuple(query for query in golden.queries if query.query_id not in emptied)
    return replace(golden, queries=kept, judgments=tuple(others))


@dataclass(frozen=True)
class KnownItems:
    """A bootstrapped set and what happened on the way: every document is in ``golden`` or counted in ``unnamed``."""

    golden: GoldenSet
    written: int
    kept: int
    unnamed: tuple[str, ...]
    shared: tuple[tuple[str, ...], ...]


def known_item(
    documents: Iterable[Document],
    *,
    existing: GoldenSet | None = None,
    name: Callable[[Document], str] = attrgetter("title"),
    id: str = "known-item",
    created_at: str | None = None,
) -> KnownItems:
    """Return a known-item set: one query per name, relevant to all documents that bear it.

    A re-run replaces the rows that an earlier run wrote in ``existing`` and leaves all others as they are: rows that a
    person confirmed, and rows from any other source. Documents without a name make no query and are reported. ``created_at``
    is the day that a new set was made.

    >>> found = known_item([Document("d1", "…", "Refund policy"), Document("d2", "…")])
    >>> [query.text for query in found.golden.queries], found.unnamed
    (['Refund policy'], ('d2',))
    """
    documents = tuple(documents)
    base = existing or GoldenSet(
        id, "0.1.0", (), (), description=CONFIRM, profile="known-item", relevance_threshold=1, created_at=created_at
    )
    bearers: dict[str, tuple[str, list[str]]] = {}
    for document in documents:
        bearers.setdefault(normalise(name(document)), (name(document), []))[1].append(document.doc_id)
    _, unnamed = bearers.pop("", ("", []))
    rows = [Row(text, dict.fromkeys(ids, base.relevance_threshold)) for text, ids in bearers.values()]
    made = rewrite(base, rows, source=SOURCE, prefix="known", documents=documents)
    shared = tuple(tuple(ids) for _, ids in bearers.values() if len(ids) > 1)
    return KnownItems(made.golden, made.written, made.kept, tuple(unnamed), shared)


@dataclass(frozen=True, slots=True)
class Citation:
    """A document that somebody cited.

    ``query_id`` or ``session_id`` say which search led to it; without both, every earlier search that showed the document did.
    Without ``at`` any time counts as later.
    """

    doc_id: str
    at: str | None = None
    query_id: str | None = None
    session_id: str | None = None
    cited_by: str = ""


@dataclass(frozen=True)
class Cited:
    """The rows that citations make, and the citations of which no search is known."""

    rows: tuple[Row, ...]
    searches: int
    """How many searches showed what was cited later."""
    unseen: tuple[str, ...]
    """Cited documents that no search showed before."""
    screened: int
    """Searches left out because their text may not be kept."""


def cited(searches: Iterable[SearchFacts], citations: Iterable[Citation], *, screen: Screen | None = None) -> Cited:
    """Return a row per question with grade 3 for each document that it showed and that was cited afterwards.

    Questions are the same when they normalise alike. A search counts only up to the moment of the citation: what was cited
    before it was shown was found some other way.

    >>> from types import SimpleNamespace as Made
    >>> search = Made(query_id="s1", query="Marsh quay?", session_id="case", created_at="2026-01-02", result_ids=("a", "b"))
    >>> [(row.text, row.grades) for row in cited([search], [Citation("b", "2026-01-09", session_id="case")]).rows]
    [('Marsh quay?', {'b': 3})]
    """
    by_document: dict[str, list[Citation]] = {}
    for citation in citations:
        by_document.setdefault(citation.doc_id, []).append(citation)
    found: dict[str, tuple[str, dict[str, int]]] = {}
    seen: set[str] = set()
    count = screened = 0
    for search in sorted(searches, key=lambda search: (search.created_at, search.query_id)):
        right = [doc_id for doc_id in search.result_ids if any(_led_to(search, c) for c in by_document.get(doc_id, ()))]
        if not right or not search.query.strip():
            continue
        seen |= set(right)
        if screen is not None and not screen(search.query):
            screened += 1
            continue
        count += 1
        _, grades = found.setdefault(normalise(search.query), (search.query, {}))
        grades.update(dict.fromkeys(right, GRADE))
    unseen = tuple(doc_id for doc_id in by_document if doc_id not in seen)
    return Cited(tuple(Row(text, grades) for text, grades in found.values()), count, unseen, screened)


def _led_to(search: SearchFacts, citation: Citation) -> bool:
    of_query = citation.query_id in (None, search.query_id)
    of_session = citation.query_id is not None or citation.session_id in (None, search.session_id)
    return of_query and of_session and (citation.at is None or _moment(search.created_at) <= _moment(citation.at))


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def read_citations(path: str | Path) -> tuple[Citation, ...]:
    """Return the citations in a CSV or JSON-lines file; raises InputError naming file, line and field.

    Columns are ``doc_id``, and where they are known ``cited_at``, ``query_id``, ``session_id`` and ``cited_by``.
    """
    path = Path(path)
    rows = csv_rows(path) if path.suffix.lower() in (".csv", ".tsv") else read_jsonl(path)
    return tuple(_citation(row, place) for place, row in rows)


def _citation(row: Mapping[str, object], place: Place) -> Citation:
    for name in row:
        if name not in COLUMNS:
            raise place.error(f"'{name}' is not a column of citations", f"write {nearest(name, COLUMNS)}")
    said = {name: str(row.get(name) or "").strip() or None for name in COLUMNS}
    if said["doc_id"] is None:
        raise place.error("the column 'doc_id' is missing or empty", "write the id of the document that was cited")
    if said["cited_at"]:
        try:
            _moment(said["cited_at"])
        except ValueError:
            cure = "write it like 2026-11-15 or 2026-11-15T09:00:00Z"
            raise place.at("cited_at").error(f"'{said['cited_at']}' is not a time", cure) from None
    return Citation(said["doc_id"], said["cited_at"], said["query_id"], said["session_id"], said["cited_by"] or "")
