"""How much memory a waiting event takes, so that the queue can be bounded in bytes: cheap, and rather more than less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import getsizeof
from typing import Any

from ringtrue.store import FeedbackEvent, LoggedQuery

_ROW = 1300
"""A record with its id, its time, its empty mappings and its place in the queue."""
_ID, _FLOAT = 8, 32


def weight(row: LoggedQuery | FeedbackEvent) -> int:
    """Return the bytes that a row occupies while it waits."""
    if isinstance(row, FeedbackEvent):
        return _ROW + _data(row.metadata)
    answer = answer_weight(row.query, row.result_ids, row.channel_contributions)
    rest = sum(map(_data, (row.flags, row.stage_latency_ms, row.fusion_weights, row.fallback, row.intent, row.user_id)))
    return answer + 150 * len(row.stages) + rest


def answer_weight(query: str, ids: Sequence[str], channels: Mapping[str, Sequence[str]]) -> int:
    """Return the bytes that a search with its answer occupies while it waits."""
    total = _ROW + getsizeof(query) + sum(map(getsizeof, ids)) + (_ID + _FLOAT) * len(ids)
    for listed in channels.values():
        total += 120 + _ID * len(listed)  # the ids are those of the results; a channel adds a place for each
    return total


def fields_weight(fields: Mapping[str, Any]) -> int:
    """Return the bytes of further fields of a search."""
    return sum(map(_data, fields.values()))


def _data(value: Any, depth: int = 0) -> int:
    if isinstance(value, Mapping) and depth < 8:
        return 240 + sum(100 + getsizeof(name) + _data(item, depth + 1) for name, item in value.items())
    if isinstance(value, list | tuple | set | frozenset) and depth < 8:
        return 120 + sum(16 + _data(item, depth + 1) for item in value)
    return getsizeof(value)
