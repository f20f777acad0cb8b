"""How different two result lists of one query are: the numbers, a class in one word and a summary score."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from ringtrue.errors import InputError
from ringtrue.stats.rank import checked_tops, jaccard, ranking_tau_b

RankingDifferenceKind = Literal["identical", "minor", "major", "incompatible"]

IDENTICAL_TAU, IDENTICAL_OVERLAP = 0.99, 0.95
MINOR_TAU = 0.95
MAJOR_TAU = 0.85
MAJOR_OVERLAP = 0.70
TOP1_WEIGHT = 2.0
RR_DELTA_FLAG = 0.03
# 0.53 - 0.50 is 0.030000000000000027 in floating point; a delta of exactly the limit is not beyond it.
ROUNDING = 1e-12

_NOTHING = object()


@dataclass(frozen=True)
class RankingDifference:
    """What changed from ranking a to ranking b within the first k positions.

    ``tau`` is tau-b over the union (nan if exactly one list is empty); ``overlap`` the Jaccard overlap;
    ``order_differences`` the number of positions whose item differs; the deltas are b - a, None when not given and nan
    when either value is; ``score`` runs from 0 (same lists) to 1 (every position changed), the first position counting
    twice; ``flags`` are sentences for a reader.
    """

    tau: float
    overlap: float
    order_differences: int
    top1_changed: bool
    rr_delta: float | None
    ndcg_delta: float | None
    kind: RankingDifferenceKind
    score: float
    flags: tuple[str, ...]


def ranking_difference(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    *,
    k: int = 10,
    rr: tuple[float, float] | None = None,
    ndcg: tuple[float, float] | None = None,
) -> RankingDifference:
    """Return the difference between the first k items of two rankings, a before and b after.

    ``rr`` and ``ndcg`` are the pairs (value of a, value of b) of those measures, for the deltas; a reciprocal rank that
    moves by more than 0.03 is flagged.

    Raises InputError if an id is repeated within a list, k is not a whole number from 1, or a measure lies outside
    0 to 1.

    >>> change = ranking_difference(["a", "b", "c"], ["b", "a", "c"], rr=(1.0, 0.5))
    >>> change.kind, change.order_differences, change.top1_changed, change.score
    ('incompatible', 2, True, 0.75)
    >>> change.flags
    ('reciprocal rank fell by 0.500, more than 0.03',)
    """
    top_a, top_b = checked_tops(a, b, k)
    tau, overlap = ranking_tau_b(top_a, top_b), jaccard(top_a, top_b)
    # A position that only one list reaches has changed; one that neither reaches does not exist.
    changed = [x != y for x, y in zip_longest(top_a, top_b, fillvalue=_NOTHING)]
    top1_changed = bool(changed) and changed[0]
    weight_changed = sum(changed) + (TOP1_WEIGHT - 1.0) * top1_changed
    rr_delta = _delta(rr, "rr")
    return RankingDifference(
        tau=tau,
        overlap=overlap,
        order_differences=sum(changed),
        top1_changed=top1_changed,
        rr_delta=rr_delta,
        ndcg_delta=_delta(ndcg, "ndcg"),
        kind=_kind(tau, overlap, top1_changed=top1_changed),
        score=weight_changed / (len(changed) - 1.0 + TOP1_WEIGHT),
        flags=_flags(rr_delta),
    )


def _kind(tau: float, overlap: float, *, top1_changed: bool) -> RankingDifferenceKind:
    # An undefined tau (nan) fails every comparison and so ends as incompatible: one list is empty, the other is not.
    if tau >= IDENTICAL_TAU and overlap >= IDENTICAL_OVERLAP:
        return "identical"
    if tau >= MINOR_TAU and not top1_changed and overlap >= MAJOR_OVERLAP:
        return "minor"
    if tau >= MAJOR_TAU:
        return "major"
    return "incompatible"


def _delta(pair: tuple[float, float] | None, name: str) -> float | None:
    if pair is None:
        return None
    for value in pair:
        if value < 0 or value > 1:
            raise InputError(f"{name} = {pair!r} holds {value!r}; both values must lie from 0 to 1, or be nan if undefined")
    before, after = pair
    return after - before


def _flags(rr_delta: float | None) -> tuple[str, ...]:
    if rr_delta is None or not abs(rr_delta) > RR_DELTA_FLAG + ROUNDING:
        return ()
    way = "fell" if rr_delta < 0 else "rose"
    return (f"reciprocal rank {way} by {abs(rr_delta):.3f}, more than {RR_DELTA_FLAG}",)
