"""A first golden set without hand labels: each document's name is a query, and the document its answer (G-7a)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ringtrue.golden.duplicates import normalise
from ringtrue.records import HUMAN_SOURCES, Document, GoldenSet, Judgment, Query

SOURCE = "bootstrap"


def _title(document: Document) -> str:
    return document.title


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
    name: Callable[[Document], str] = _title,
    id: str = "known-item",
) -> KnownItems:
    """Return a known-item set: one query per name, relevant to all documents that bear it.

    A re-run replaces the rows that an earlier run wrote in ``existing`` and leaves all others as they are: rows that a
    person confirmed, and rows from any other source. Documents without a name make no query and are reported.

    >>> found = known_item([Document("d1", "…", "Refund policy"), Document("d2", "…")])
    >>> [query.text for query in found.golden.queries], found.unnamed
    (['Refund policy'], ('d2',))
    """
    documents = tuple(documents)
    base = existing or GoldenSet(id, "0.1.0", (), (), profile="known-item", relevance_threshold=1)
    kept, judgments = _rows_to_keep(base)
    taken = {query.query_id for query in kept} | {normalise(query.text) for query in kept}
    named: dict[str, list[Document]] = {}
    for document in documents:
        named.setdefault(normalise(name(document)), []).append(document)
    unnamed = tuple(document.doc_id for document in named.pop("", []))
    queries: list[Query] = []
    for key, bearers in named.items():
        query_id = "known-" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        if query_id in taken or key in taken:
            continue
        queries.append(Query(query_id, name(bearers[0]).strip()))
        judgments += [Judgment(query_id, document.doc_id, base.relevance_threshold, SOURCE) for document in bearers]
    corpus = {document.doc_id: document for document in (*base.documents, *documents)}
    golden = replace(
        base,
        queries=(*kept, *queries),
        judgments=tuple(judgments),
        documents=tuple(corpus.values()),
        corpus_hash=None,
    )
    shared = tuple(tuple(d.doc_id for d in bearers) for bearers in named.values() if len(bearers) > 1)
    return KnownItems(golden, len(queries), len(kept), unnamed, shared)


def _rows_to_keep(golden: GoldenSet) -> tuple[list[Query], list[Judgment]]:
    """Return the queries, with their judgments, that are not wholly the work of an earlier bootstrap."""
    sources: dict[str, set[str | None]] = {query.query_id: set() for query in golden.queries}
    for judgment in golden.judgments:
        sources.setdefault(judgment.query_id, set()).add(judgment.source)
    # A row is a person's when a single judgment in it is theirs: rewriting the rest would change what they confirmed.
    own = {query_id for query_id, said in sources.items() if said == {SOURCE}}
    own -= {query.query_id for query in golden.queries if query.metadata.get("source") in HUMAN_SOURCES}
    kept = [query for query in golden.queries if query.query_id not in own]
    return kept, [judgment for judgment in golden.judgments if judgment.query_id not in own]
