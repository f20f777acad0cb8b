"""Which queries belong to which slice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ringtrue.golden.slices import NO_VALUE


def members(facts: Mapping[str, Mapping[str, Any]], field: str, queries: Iterable[str]) -> dict[str, list[str]]:
    """Return ``{value: queries}`` of one division, in order of the values; a query may carry several values (tags)."""
    found: dict[str, list[str]] = {}
    for query in queries:
        value = facts.get(query, {}).get(field)
        several = isinstance(value, list | tuple | set | frozenset)
        for one in (value or [None]) if several else [value]:
            found.setdefault(NO_VALUE if one is None else str(one), []).append(query)
    return dict(sorted(found.items()))
