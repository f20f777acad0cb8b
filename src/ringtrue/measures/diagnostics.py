"""Figures about how answers came to be (M-8): channels, fusion, expansion, latency, errors.

They take Ranking records, whose hits carry the channels they came from, and describe many answers at once. Where nothing
was observed there is no figure: the value is nan, never 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringtrue.records import Ranking


@dataclass(frozen=True)
class Contribution:
    """What one channel brought: its share of the final hits, and the share that no other channel had."""

    rate: float
    unique_rate: float
    hits: int


def channel_contribution(rankings: Iterable[Ranking], *, k: int | None = None) -> dict[str, Contribution]:
    """Return what each channel contributed to the final hits.

    >>> from ringtrue.records import Hit
    >>> hits = Hit("a", channels={"bm25": 1}), Hit("b", channels={"bm25": 2, "dense": 1})
    >>> found = channel_contribution([Ranking("q", hits)])
    >>> found["bm25"].rate, found["bm25"].unique_rate, found["dense"].rate
    (1.0, 0.5, 0.5)
    """
    total = 0
    seen: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    for ranking in rankings:
        for hit in ranking.hits[:k]:
            total += 1
            seen.update(list(hit.channels))
            if len(hit.channels) == 1:
                alone.update(list(hit.channels))
    return {name: Contribution(seen[name] / total, alone[name] / total, seen[name]) for name in sorted(seen)}


def fusion_reorder_rate(rankings: Iterable[Ranking], *, k: int | None = None) -> float:
    """Return the share of final hits whose final rank differs from their best channel rank; nan without channel ranks."""
    moved = [
        rank != min(hit.channels.values())
        for ranking in rankings
        for rank, hit in enumerate(ranking.hits[:k], 1)
        if hit.channels
    ]
    return sum(moved) / len(moved) if moved else math.nan


def expansion_impact(
    before: Mapping[str, Sequence[str]],
    after: Mapping[str, Sequence[str]],
    relevant: Mapping[str, Collection[str]] | None = None,
) -> float:
    """Return the share of documents found only after expansion; with ``relevant``, of the relevant documents found after it."""
    new = total = 0
    for query_id, documents in after.items():
        wanted = set(documents) if relevant is None else set(documents) & set(relevant.get(query_id, ()))
        total += len(wanted)
        new += len(wanted - set(before.get(query_id, ())))
    return new / total if total else math.nan


@dataclass(frozen=True)
class Latency:
    """Latency in milliseconds over the answers that have one."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float


def latency(values: Iterable[float | None]) -> Latency:
    """Return mean and percentiles of latencies; a stage is described by passing its own values.

    >>> latency([10.0, 20.0, None]).p50
    15.0
    """
    known = np.array([value for value in values if value is not None], np.float64)
    if not len(known):
        return Latency(0, math.nan, math.nan, math.nan, math.nan)
    p50, p95, p99 = (float(value) for value in np.percentile(known, [50, 95, 99]))
    return Latency(len(known), float(known.mean()), p50, p95, p99)


def error_rate(rankings: Iterable[Ranking]) -> float:
    """Return the share of queries that ended in an error; nan when nothing was asked."""
    failed = [ranking.error is not None for ranking in rankings]
    return sum(failed) / len(failed) if failed else math.nan


def error_rate_by(rankings: Iterable[Ranking], facts: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, float]:
    """Return the error rate for each value of a query fact, such as its intent."""
    groups: dict[str, list[Ranking]] = {}
    for ranking in rankings:
        value = facts.get(ranking.query_id, {}).get(name)
        groups.setdefault("(none)" if value is None else str(value), []).append(ranking)
    return {value: error_rate(members) for value, members in sorted(groups.items())}
