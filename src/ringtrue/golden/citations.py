"""Judgments from citations (G-7b): a result that a final document cites was the right one for the queries that showed it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ringtrue.errors import nearest
from ringtrue.formats.table import csv_rows
from ringtrue.formats.text import Place, read_jsonl
from ringtrue.golden.bootstrap import Row
from ringtrue.golden.duplicates import normalise
from ringtrue.golden.traffic import Screen, Search

SOURCE = "citation"
PREFIX = "cited"
GRADE = 3
COLUMNS = ("doc_id", "cited_at", "query_id", "session_id", "cited_by")


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


def cited(searches: Iterable[Search], citations: Iterable[Citation], *, screen: Screen | None = None) -> Cited:
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


def _led_to(search: Search, citation: Citation) -> bool:
    if citation.query_id is not None:
        if citation.query_id != search.query_id:
            return False
    elif citation.session_id is not None and citation.session_id != search.session_id:
        return False
    return citation.at is None or _moment(search.created_at) <= _moment(citation.at)


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
            raise place.error(f"'{name}' is no column of citations", f"write {nearest(name, COLUMNS)}")
    said = {name: str(row.get(name) or "").strip() for name in COLUMNS}
    if not said["doc_id"]:
        raise place.error("the column 'doc_id' is missing or empty", "write the id of the document that was cited")
    if said["cited_at"]:
        try:
            _moment(said["cited_at"])
        except ValueError:
            problem = f"'{said['cited_at']}' is no time"
            raise place.at("cited_at").error(problem, "write it like 2026-11-15 or 2026-11-15T09:00:00Z") from None
    return Citation(
        said["doc_id"], said["cited_at"] or None, said["query_id"] or None, said["session_id"] or None, said["cited_by"]
    )
