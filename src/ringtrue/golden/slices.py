"""The ways a set divides its queries: the fields it declares, or those of the usual names that it has."""

from __future__ import annotations

from ringtrue.records import GoldenSet, Query

USUAL = ("query_type", "category", "dimension", "intent", "practice_area", "corpus", "kind")
NO_VALUE = "(none)"


def slice_fields(golden: GoldenSet) -> tuple[str, ...]:
    """Return the metadata fields by which the set's queries are divided, the most telling first."""
    if golden.slices:
        return golden.slices
    return tuple(name for name in USUAL if any(isinstance(query.metadata.get(name), str) for query in golden.queries))


def slice_of(query: Query, field: str) -> str:
    """Return the slice that a query belongs to in one division."""
    value = query.metadata.get(field)
    return NO_VALUE if value is None else str(value)
