"""Ids as text and as columns: stores number their records, and 12 and "12" name the same one (trap 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringtrue.errors import InputError

T = TypeVar("T")
Ints = NDArray[np.int64]
Codes = NDArray[np.int64] | NDArray[np.int32]
"""Positions in a list of ids; large runs keep them in half the memory."""
Keys = NDArray[np.uint64]


def id_text(value: Any) -> Any:
    """Return an id as text if it is a whole number, as stores number their records; anything else as it is.

    >>> id_text(12), id_text("d12")
    ('12', 'd12')
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)
    return str(int(value)) if whole else value


def keep_as_text(record: object, *names: str) -> None:
    """Turn fields of a new frozen record that hold ids into text."""
    for name in names:
        value = getattr(record, name)
        if type(value) is not str:
            object.__setattr__(record, name, id_text(value))


def check_id(value: object, what: str, beside: object = None) -> str:
    """Return ``value`` when it is a usable id; raises InputError naming its neighbour otherwise."""
    value = id_text(value)
    if isinstance(value, str) and value.strip():
        return value
    place = "" if beside is None else f" (beside '{beside}')"
    cure = "write a non-blank text" if isinstance(value, str) else f"write a text or a whole number, not {type(value).__name__}"
    raise InputError(f"{what} {value!r}{place} is not usable; {cure}")


def keyed_by_text(values: Mapping[Any, T]) -> dict[str, T]:
    """Return a mapping whose keys are ids, with numbers as text; raises InputError if 1 and "1" are both there."""
    found = {id_text(key): value for key, value in values.items()}
    if len(found) < len(values):
        keys = [id_text(key) for key in values]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"the id '{twice}' is given twice, as a number and as text; keep one of the two")
    return found


class DocIds(Protocol):
    """A column of document ids that may live in memory or in a file."""

    def __len__(self) -> int: ...

    def take(self, rows: Ints) -> list[str]:
        """Return the ids of these rows."""

    def pair_keys(self, query_ids: Sequence[str], query: Codes) -> Keys:
        """Return a 64-bit key per row; equal (query, document) pairs have equal keys."""

    def keys_of(self, queries: Sequence[str], documents: Sequence[str]) -> Keys:
        """Return the keys these pairs would have as rows of this column."""


@dataclass(frozen=True, eq=False)
class IdList:
    """Document ids in memory."""

    ids: Sequence[str]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Ints) -> list[str]:
        return [self.ids[row] for row in rows.tolist()]

    def pair_keys(self, query_ids: Sequence[str], query: Codes) -> Keys:
        return self.keys_of([query_ids[index] for index in query.tolist()], self.ids)

    def keys_of(self, queries: Sequence[str], documents: Sequence[str]) -> Keys:
        # Python's string hash is salted per process; keys never leave it, and every match is confirmed on the ids.
        hashes = np.fromiter(map(hash, zip(queries, documents, strict=True)), np.int64, len(documents))
        return hashes.view(np.uint64)
