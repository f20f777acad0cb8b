"""Columns of document ids, in memory or in a file, as runs and judgments hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[np.int64] | NDArray[np.int32]
"""Positions in a list of ids; large runs keep them in half the memory."""
Keys = NDArray[np.uint64]


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
