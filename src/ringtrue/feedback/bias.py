"""Position bias: what stands higher is looked at more often, so clicks say both "good" and "high up".

Clicks are modelled as examination × attractiveness: P(click) = θ(rank) · γ(query, item). Two methods estimate the curve θ,
which is 1 at the rank that is looked at most:

- ``clicks-over-expected`` (COEC): θ is the click rate of each rank over that of the best. It takes all ranks to show equally
  good items; a search that puts good items first makes the curve too steep, and what stands far down too good.
- ``position-based``: θ from items that were shown at several ranks, each compared with itself, so it does not matter what
  stands where. Expected clicks per rank and per item are brought to agree with the counted ones, in turn, until nothing moves.
  That is the Poisson likelihood with one effect per item and one per rank. It is right for any clicks whose mean is θ · γ,
  however many items have few clicks each. Expectation maximisation comes to much the same curve in a hundred times the steps;
  a prior on every item, which it is often given for few clicks, pulls the curve off, so items are drawn to the mean only after.

Nothing can tell θ from γ where every item keeps its rank: then only the first method is left, and the result says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Method = Literal["position-based", "clicks-over-expected", "none"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Pair = tuple[str, str]
"""Query text in one spelling, and item."""

ENOUGH_CLICKS = 20
"""Clicks that a rank needs for a figure of its own, which is then known to 1 ÷ √20, about 22 %; neighbours share otherwise."""
PRIOR = 4.0
"""How many examinations the mean of all items weighs against an item's own."""
SURE = 1.0
"""Standard errors below the estimate at which an item's confidence lies."""
STEPS = 1000
SETTLED = 1e-6


class Shown(NamedTuple):
    """One item in one answer, and whether it was selected there."""

    pair: Pair
    rank: int
    clicked: bool


@dataclass(frozen=True)
class Examination:
    """How often each rank is looked at, relative to the one looked at most, and how that is known."""

    method: Method
    by_rank: tuple[float, ...]
    """From rank 1; the last figure holds for all ranks below, too."""
    clicks: int
    shown: int
    why: str
    """Why no better method was used; empty for the position-based one."""

    def at(self, rank: int) -> float:
        return self.by_rank[min(rank, len(self.by_rank)) - 1] if self.by_rank else 1.0


@dataclass(frozen=True, slots=True)
class Attraction:
    """How often an item is selected by those who look at it."""

    clicks: int
    shown: int
    examined: float
    """Looks that its ranks are worth: the sum of θ over its appearances."""
    rate: float
    """Clicks per look, drawn towards the mean of all items by four looks."""
    sure: float
    """One standard error below the rate: what few looks support."""


@dataclass(frozen=True, eq=False)
class _Cells:
    """Appearances counted by pair and rank; ranks from 0."""

    pairs: tuple[Pair, ...]
    pair: Ints
    rank: Ints
    shown: Floats
    clicks: Floats
    ranks: int


def attractions(shown: Iterable[Shown]) -> tuple[Examination, dict[Pair, Attraction]]:
    """Return the examination curve of these appearances, and what every pair is worth when it is corrected for.

    >>> seen = [Shown(("q", "a"), 1, True), Shown(("q", "b"), 2, False)]
    >>> curve, found = attractions(seen)
    >>> curve.method, found["q", "a"].clicks, found["q", "a"].rate > found["q", "b"].rate
    ('none', 1, True)
    """
    cells = _count(shown)
    curve = _examination(cells)
    if not cells.pairs:
        return curve, {}
    theta = np.asarray([curve.at(rank) for rank in range(1, cells.ranks + 1)])
    size = len(cells.pairs)
    clicks = np.bincount(cells.pair, weights=cells.clicks, minlength=size)
    times = np.bincount(cells.pair, weights=cells.shown, minlength=size)
    looks: Floats = np.bincount(cells.pair, weights=cells.shown * theta[cells.rank], minlength=size).astype(np.float64)
    mean = min(1.0, float(clicks.sum() / looks.sum()))
    # An item may have more clicks than its ranks are worth looks; no rate is above 1.
    n = looks + PRIOR
    rate = np.minimum(1.0, (clicks + PRIOR * mean) / n)
    # Wilson (1927): the lower end of a share's interval, which stays above 0 and needs no large n.
    spread = SURE * np.sqrt(rate * (1 - rate) / n + SURE**2 / (4 * n * n))
    sure = np.maximum(0.0, (rate + SURE**2 / (2 * n) - spread) / (1 + SURE**2 / n))
    return curve, {
        pair: Attraction(int(clicks[i]), int(times[i]), float(looks[i]), float(rate[i]), float(sure[i]))
        for i, pair in enumerate(cells.pairs)
    }


def _count(shown: Iterable[Shown]) -> _Cells:
    codes: dict[Pair, int] = {}
    counted: dict[tuple[int, int], list[int]] = {}
    for pair, rank, clicked in shown:
        cell = counted.setdefault((codes.setdefault(pair, len(codes)), rank - 1), [0, 0])
        cell[0] += 1
        cell[1] += clicked
    places = np.asarray(list(counted), np.int64).reshape(-1, 2)
    sums = np.asarray(list(counted.values()), np.float64).reshape(-1, 2)
    ranks = int(places[:, 1].max()) + 1 if len(places) else 0
    return _Cells(tuple(codes), places[:, 0], places[:, 1], sums[:, 0], sums[:, 1], ranks)


def _examination(cells: _Cells) -> Examination:
    clicks, shown = int(cells.clicks.sum()), int(cells.shown.sum())

    def found(method: Method, curve: Iterable[float], why: str = "") -> Examination:
        return Examination(method, tuple(float(value) for value in curve), clicks, shown, why)

    # A pair that keeps its rank, or that nobody clicked, says nothing about ranks.
    moved = (np.bincount(cells.pair)[cells.pair] > 1) & (np.bincount(cells.pair, cells.clicks)[cells.pair] > 0)
    groups = _groups(cells, moved)
    if not groups.max(initial=0):
        why = f"items that were shown at several ranks have fewer than {ENOUGH_CLICKS} clicks at two ranks each"
    elif _joined(cells.pair[moved], groups[cells.rank[moved]]):
        return found("position-based", _position_based(cells, groups)[groups])
    else:
        why = "no item links the upper ranks with the lower ones"
    groups = _groups(cells, np.ones(len(cells.rank), np.bool_))
    if not groups.max(initial=0):
        return found("none", (1.0,), f"{clicks} clicks cannot tell ranks apart; it takes {ENOUGH_CLICKS} at each of two")
    rates = np.bincount(groups[cells.rank], cells.clicks) / np.bincount(groups[cells.rank], cells.shown)
    return found("clicks-over-expected", (rates / rates.max())[groups], why)


def _groups(cells: _Cells, which: NDArray[np.bool_]) -> Ints:
    """Number ranks so that neighbours share a number until it has enough clicks; a poor rest joins the last."""
    clicks = np.bincount(cells.rank[which], weights=cells.clicks[which], minlength=cells.ranks)
    groups, number, have = np.zeros(len(clicks), np.int64), 0, 0.0
    for rank, here in enumerate(clicks):
        if have >= ENOUGH_CLICKS and clicks[rank:].sum() >= ENOUGH_CLICKS:
            number, have = number + 1, 0.0
        groups[rank] = number
        have += here
    return groups


def _joined(pair: Ints, group: Ints) -> bool:
    """True if pairs that were shown in several groups link all groups with each other."""
    pairs, groups = int(pair.max()) + 1, int(group.max()) + 1
    links = coo_array((np.ones(len(pair)), (pair, pairs + group)), shape=(pairs + groups,) * 2)
    _, part = connected_components(links, directed=False)
    return len(set(part[pairs:].tolist())) == 1


def _position_based(cells: _Cells, groups: Ints) -> Floats:
    group, size = groups[cells.rank], len(cells.pairs)
    of_pair = np.bincount(cells.pair, weights=cells.clicks, minlength=size)
    of_group = np.bincount(group, weights=cells.clicks)
    theta = np.ones(len(of_group))
    for _ in range(STEPS):
        gamma = of_pair / np.bincount(cells.pair, weights=cells.shown * theta[group], minlength=size)
        moved = of_group / np.bincount(group, weights=cells.shown * gamma[cells.pair])
        moved /= moved.max()
        step, theta = float(np.abs(moved - theta).max()), moved
        if step < SETTLED:
            break
    return theta
