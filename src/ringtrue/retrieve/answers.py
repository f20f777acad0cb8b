"""A golden set's queries → a retriever's answers, in batches and each within its own scope."""

from __future__ import annotations

from collections.abc import Callable

from ringtrue.records import GoldenSet, Query, Ranking
from ringtrue.retrieve.protocol import Retriever, Scope, search_many

BATCH = 64


def answer_all(
    retriever: Retriever,
    golden: GoldenSet,
    *,
    k: int = 100,
    scope: Scope | None = None,
    scope_field: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Ranking]:
    """Return the answer to every query, in the order of the set.

    A set that declares a scope (``precedents``: the corpus) has each query asked only within its own; ``scope_field`` names the
    metadata field for a set that does not say so itself. ``scope`` holds for all queries.
    """
    field = scope_field or golden.scope
    parts: dict[tuple[tuple[str, str], ...], list[Query]] = {}
    for query in golden.queries:
        own = {field: str(query.metadata[field])} if field and field in query.metadata else {}
        parts.setdefault(tuple(sorted({**own, **(scope or {})}.items())), []).append(query)
    answers: dict[str, Ranking] = {}
    for within, queries in parts.items():
        for start in range(0, len(queries), BATCH):
            batch = queries[start : start + BATCH]
            found = search_many(retriever, [query.text for query in batch], k=k, scope=dict(within) or None)
            answers |= {query.query_id: Ranking(query.query_id, tuple(hits)) for query, hits in zip(batch, found, strict=True)}
            if progress is not None:
                progress(len(batch))
    return [answers[query.query_id] for query in golden.queries]
