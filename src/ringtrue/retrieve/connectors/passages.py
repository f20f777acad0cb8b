"""What connectors to vector stores share: several records of one document, and metadata values that a scope names as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ringtrue.errors import BadAnswer
from ringtrue.retrieve.protocol import Scope

T = TypeVar("T")
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


def by_type(values: Iterable[object], *kinds: type) -> list[list[Any]]:
    """Return the readings of values, a list for each type that is there: systems compare with values of one type.

    >>> by_type(["a", "3"], str, int)
    [['a', '3'], [3]]
    """
    found = [reading for value in values for reading in readings(value)]
    lists = [[reading for reading in found if type(reading) is kind] for kind in kinds]
    return [part for part in lists if part]


def in_halves(ids: Sequence[str], fetch: Callable[[Sequence[str], int], list[T]], most: int) -> list[T]:
    """Return the records of documents by their ids; where there are more than ``fetch(ids, most)`` can return, in halves."""
    if len(ids) == 1:
        return fetch(ids, 1)  # one of its passages is enough
    found = fetch(ids, most)
    if len(found) < most:
        return found
    middle = len(ids) // 2
    return in_halves(ids[:middle], fetch, most) + in_halves(ids[middle:], fetch, most)


def passage_row(
    who: str, own: Any, metadata: Mapping[str, Any], score: Any, *, document: str | None, chunk: str | None = None
) -> Row:
    """Return a record as a row: ``own`` is its id, or that of a passage if a field of the metadata holds the document's."""
    row: Row = {"doc_id": own, "score": score}
    if document is not None:
        row |= {"doc_id": field_of(metadata, document, who, "document"), "chunk": own}
    if chunk is not None:
        row["chunk"] = field_of(metadata, chunk, who, "chunk")
    return row


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
