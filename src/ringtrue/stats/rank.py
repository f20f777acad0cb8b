"""How two rankings agree: correlations, rank-biased overlap, Jaccard, and their difference in figures and one word.

A ranking is a sequence of ids, best first, each id at most once. ``ranking_tau_b`` and ``ranking_spearman`` lay both lists over
the **union** of their items, an absent item tied with all other absent ones at rank k + 1. Over the common items alone, two
lists that share one item would agree perfectly.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringtrue.errors import InputError

Codes = NDArray[np.int64]


def kendall_tau_b(x: ArrayLike, y: ArrayLike) -> float:
    """Return Kendall's tau-b of two equally long sequences of numbers, in [-1, 1].

    It is nan if it is undefined: one side is constant, or there are fewer than two values.

    Raises InputError if the lengths differ, or a value is nan or not a number.

    >>> kendall_tau_b([1, 2, 3, 4], [1, 3, 2, 4])
    0.6666666666666666
    """
    x_codes, y_codes = _paired_codes(x, y)
    n = len(x_codes)
    if n < 2:
        return math.nan
    pairs = n * (n - 1) // 2
    x_untied = pairs - _tied_pairs(x_codes)
    y_untied = pairs - _tied_pairs(y_codes)
    if x_untied == 0 or y_untied == 0:
        return math.nan
    both = x_codes * (int(y_codes.max()) + 1) + y_codes
    # Sorted by x and, among equal x, by y, the discordant pairs are exactly the strict inversions left in y.
    discordant = _inversions(y_codes[np.argsort(both, kind="stable")])
    untied = x_untied + y_untied - pairs + _tied_pairs(np.unique(both, return_inverse=True)[1])
    # Python integers: exact, so that equal sides give exactly 1.0 and thresholds such as 0.95 are met exactly.
    tau = (untied - 2 * discordant) / math.sqrt(x_untied * y_untied)
    return max(-1.0, min(1.0, tau))


def spearman_rho(x: ArrayLike, y: ArrayLike) -> float:
    """Return Spearman's rho of two equally long sequences of numbers, in [-1, 1]; ties get their average rank.

    It is nan if it is undefined: one side is constant, or there are fewer than two values.

    Raises InputError if the lengths differ, or a value is nan or not a number.

    >>> spearman_rho([1, 2, 3, 4], [1, 3, 2, 4])
    0.8
    """
    x_codes, y_codes = _paired_codes(x, y)
    dx, dy = _centred_ranks(x_codes), _centred_ranks(y_codes)
    x_spread, y_spread = float(dx @ dx), float(dy @ dy)
    if x_spread == 0 or y_spread == 0:
        return math.nan
    return max(-1.0, min(1.0, float(dx @ dy) / math.sqrt(x_spread * y_spread)))


def ranking_tau_b(a: Sequence[Hashable], b: Sequence[Hashable], *, k: int | None = None) -> float:
    """Return Kendall's tau-b of two rankings over the union of their first k items, absent items tied at rank k + 1.

    ``k`` is the length of the longer list when not given. Identical lists, two empty ones too, give 1.0; disjoint lists
    what the formula gives (below 0). An empty list against a filled one ranks nothing: nan.

    Raises InputError if an id is repeated within a list or k is not a whole number from 1.

    >>> ranking_tau_b(["a", "b", "c"], ["a", "c", "b"])
    0.3333333333333333
    >>> ranking_tau_b(["a", "b", "c"], ["a", "x", "y"])
    0.0
    """
    top_a, top_b = _tops(a, b, k)
    return 1.0 if top_a == top_b else kendall_tau_b(*_union_ranks(top_a, top_b))


def ranking_spearman(a: Sequence[Hashable], b: Sequence[Hashable], *, k: int | None = None) -> float:
    """Return Spearman's rho of two rankings over the union of their first k items, absent items tied at rank k + 1.

    Identical lists, two empty ones too, give 1.0; an empty list against a filled one ranks nothing: nan.

    Raises InputError if an id is repeated within a list or k is not a whole number from 1.

    >>> ranking_spearman(["a", "b", "c"], ["a", "c", "b"])
    0.5
    """
    top_a, top_b = _tops(a, b, k)
    return 1.0 if top_a == top_b else spearman_rho(*_union_ranks(top_a, top_b))


def rbo(a: Sequence[Hashable], b: Sequence[Hashable], *, p: float = 0.9) -> float:
    """Return the extrapolated rank-biased overlap of two rankings, in [0, 1]; the lists may differ in length.

    ``p`` is the chance that a reader goes on to the next rank. It is RBO_EXT, equation 32 of Webber, Moffat and Zobel
    (2010), A similarity measure for indefinite rankings: the overlap seen is taken to go on below the end of the lists,
    so that a list and its own beginning give 1.0 (up to rounding). Two empty lists give 1.0, an empty one against a
    filled one 0.0, since at no depth they share anything.

    Raises InputError if an id is repeated within a list or p is not strictly between 0 and 1.

    >>> round(rbo(["a", "b", "c"], ["b", "a", "c"]), 6)
    0.9
    """
    if not 0 < p < 1:
        raise InputError(f"cannot use p = {p}: write a number strictly between 0 and 1, such as 0.9")
    short, long = sorted((_ranking(a, "a"), _ranking(b, "b")), key=len)
    if short == long:
        return 1.0
    end_short, end_long = len(short), len(long)
    if end_short == 0:
        return 0.0
    overlaps = [len(set(short[:depth]) & set(long[:depth])) for depth in range(1, end_long + 1)]
    shared_short, shared_long = overlaps[end_short - 1], overlaps[end_long - 1]
    total, weight = 0.0, 1.0 - p
    for depth, overlap in enumerate(overlaps, start=1):
        # Below its end the shorter list is taken to match the longer one at the rate seen so far.
        assumed = shared_short * max(0, depth - end_short) / end_short
        total += weight * (overlap + assumed) / depth
        weight *= p
    agreement = (shared_long - shared_short) / end_long + shared_short / end_short
    return max(0.0, min(1.0, total + agreement * p**end_long))


def jaccard(a: Collection[Hashable], b: Collection[Hashable]) -> float:
    """Return the share of items that two lists have in common among all they hold, in [0, 1]; both empty give 1.0.

    Raises InputError if an id is repeated within a list.

    >>> jaccard(["a", "b", "c"], ["b", "c", "d"])
    0.5
    """
    set_a, set_b = set(_ranking(a, "a")), set(_ranking(b, "b"))
    union = set_a | set_b
    return len(set_a & set_b) / len(union) if union else 1.0


def _ranking(ids: Collection[Hashable], name: str) -> list[Hashable]:
    """Return the ids of one ranking; raises InputError, which calls it ``name``, if an id is repeated or a text is given."""
    if isinstance(ids, str | bytes):
        # A text is a sequence of letters to Python; correlating those would look like an answer.
        raise InputError(f"ranking {name} is the text {ids!r}; write a list of ids such as [{ids!r}]")
    items = list(ids)
    if len(set(items)) < len(items):
        repeated = next(item for item, count in Counter(items).items() if count > 1)
        raise InputError(f"ranking {name} holds {repeated!r} more than once; keep only its best rank")
    return items


def _tops(a: Sequence[Hashable], b: Sequence[Hashable], k: int | None) -> tuple[list[Hashable], list[Hashable]]:
    """Return the first k items of both rankings, all of them if k is None; raises InputError for repeated ids and a wrong k."""
    if k is not None and (not isinstance(k, int | np.integer) or k < 1):
        raise InputError(f"cannot use k = {k!r}: write a whole number from 1, such as 10")
    return _ranking(a, "a")[:k], _ranking(b, "b")[:k]


def _union_ranks(a: list[Hashable], b: list[Hashable]) -> tuple[list[int], list[int]]:
    # Any rank below both lists serves as k + 1: only the order and the ties of the ranks enter the correlations.
    absent, union = max(len(a), len(b)), list(dict.fromkeys([*a, *b]))
    ranks_a, ranks_b = ({item: rank for rank, item in enumerate(ids)} for ids in (a, b))
    return [ranks_a.get(item, absent) for item in union], [ranks_b.get(item, absent) for item in union]


def _paired_codes(x: ArrayLike, y: ArrayLike) -> tuple[Codes, Codes]:
    x_codes, y_codes = _codes(x, "x"), _codes(y, "y")
    if len(x_codes) != len(y_codes):
        raise InputError(f"x has {len(x_codes)} values and y has {len(y_codes)}; they must describe the same items")
    return x_codes, y_codes


def _codes(values: ArrayLike, name: str) -> Codes:
    """Dense ranks from 0, equal values sharing one: all that a rank correlation needs to know."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{name} must be one sequence of numbers; it has {array.ndim} dimensions")
    if array.size and array.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold numbers only; it holds {array.dtype} values")
    if array.dtype.kind == "f" and np.isnan(array).any():
        place = int(np.flatnonzero(np.isnan(array))[0])
        raise InputError(f"{name}[{place}] is nan, which has no rank; leave that item out on both sides")
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def _tied_pairs(codes: Codes) -> int:
    counts = np.bincount(codes)
    return int((counts * (counts - 1) // 2).sum())


def _centred_ranks(codes: Codes) -> NDArray[np.float64]:
    """Twice the average ranks, less their mean: whole numbers, so that sums of usual size are exact."""
    counts = np.bincount(codes)
    doubled = 2 * np.cumsum(counts) - counts - len(codes)
    return doubled[codes].astype(np.float64)


def _inversions(codes: Codes) -> int:
    """Return the number of pairs i < j with codes[i] > codes[j]."""
    total = 0
    before: list[int] = []
    for count, code in enumerate(codes.tolist()):
        total += count - bisect_right(before, code)
        insort(before, code)
    return total


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
    top_a, top_b = _tops(a, b, k)
    tau, overlap = ranking_tau_b(top_a, top_b), jaccard(top_a, top_b)
    # A position that only one list reaches has changed; one that neither reaches does not exist.
    changed = [x != y for x, y in zip_longest(top_a, top_b, fillvalue=_NOTHING)]
    top1_changed = bool(changed) and changed[0]
    weight_changed = sum(changed) + (TOP1_WEIGHT - 1.0) * top1_changed
    rr_delta = _delta(rr, "rr")
    flags: tuple[str, ...] = ()
    if rr_delta is not None and abs(rr_delta) > RR_DELTA_FLAG + ROUNDING:
        way = "fell" if rr_delta < 0 else "rose"
        flags = (f"reciprocal rank {way} by {abs(rr_delta):.3f}, more than {RR_DELTA_FLAG}",)
    return RankingDifference(
        tau=tau,
        overlap=overlap,
        order_differences=sum(changed),
        top1_changed=top1_changed,
        rr_delta=rr_delta,
        ndcg_delta=_delta(ndcg, "ndcg"),
        kind=_kind(tau, overlap, top1_changed=top1_changed),
        score=weight_changed / (len(changed) - 1.0 + TOP1_WEIGHT),
        flags=flags,
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
