"""What connectors to vector stores share: several records of one document, and metadata values that a scope names as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ringtrue.errors import BadAnswer
from ringtrue.retrieve.protocol import Scope

Row = dict[str, Any]
"""``{"doc_id": …, "score": …, "chunk": …}``, as ``as_hits`` reads it."""
MOST = 10_000
"""Records that are fetched at most to find enough documents."""


def _document(row: Row) -> Any:
    return str(row["doc_id"])


def enough(fetch: Callable[[int], list[Row]], k: int, *, document: Callable[[Row], Any] = _document) -> list[Row]:
    """Return the best records of at least ``k`` documents, or of all there are; ``fetch(n)`` returns the best ``n`` records.

    The best 10 records may be passages of 3 documents. Measuring recall at 10 on those 3 would blame the search for the cut.
    ``document`` returns whose record a row is.
    """
    count = k
    while True:
        rows = fetch(count)
        if len(rows) < count or len({document(row) for row in rows}) >= k or count >= MOST:
            return rows
        count = min(count * 4, max(MOST, k))


def readings(value: object) -> tuple[str | int | float | bool, ...]:
    """Return the stored values that read like a scope's value: metadata has types, a scope from a command line is text.

    >>> readings("3"), readings("en"), readings("true")
    (('3', 3, 3.0), ('en',), ('true', True))
    """
    if not isinstance(value, str):
        return (value,) if isinstance(value, int | float) else (str(value),)
    if value.lower() in ("true", "false"):
        return value, value.lower() == "true"
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        # 007 is a name, not a number: only what a number would be written as is read as one.
        if str(number) == value and number == number and abs(number) < 2**63:
            return (value, number, float(number)) if isinstance(number, int) else (value, number)
    return (value,)


def within_scope(metadata: Mapping[str, Any], scope: Scope | None) -> bool:
    """Return whether a record's metadata has the values of a scope, compared as text as everywhere in Ringtrue."""
    return all(
        name in metadata and any(str(metadata[name]) == str(reading) for reading in readings(value))
        for name, value in (scope or {}).items()
    )


def field_of(record: Mapping[str, Any], name: str, who: str, setting: str) -> Any:
    """Return a field of a record by its name or dotted path; raises BadAnswer naming the fields there are."""
    value: Any = record
    for part in (name,) if name in record else name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            there = ", ".join(f"'{key}'" for key in list(record)[:8]) or "none"
            raise BadAnswer(f"{who} answered a record without the field '{name}' that {setting}= names; its fields are {there}")
        value = value[part]
    return value
