"""Which queries belong to which slice, and the values of a measure for some of the queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ringtrue.golden.slices import NO_VALUE
from ringtrue.measures import Scores
from ringtrue.records import Floats


def members(facts: Mapping[str, Mapping[str, Any]], field: str, queries: Iterable[str]) -> dict[str, list[str]]:
    """Return ``{value: queries}`` of one division, in order of the values; a query may carry several values (tags)."""
    found: dict[str, list[str]] = {}
    for query in queries:
        value = facts.get(query, {}).get(field)
        several = isinstance(value, list | tuple | set | frozenset)
        for one in (value or [None]) if several else [value]:
            found.setdefault(NO_VALUE if one is None else str(one), []).append(query)
    return dict(sorted(found.items()))


def values_of(scores: Scores, measure: str, queries: Sequence[str]) -> Floats:
    """Return the values of a measure for these queries, in their order; raises KeyError for one that was not scored."""
    place = {query: index for index, query in enumerate(scores.query_ids)}
    values: Floats = scores.of(measure)[[place[query] for query in queries]]
    return values
