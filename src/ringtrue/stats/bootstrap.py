"""Bootstrap intervals of mean differences, for many measures in one pass: percentile, BCa and studentised.

A resample of n queries with replacement is how often each query was drawn, and its means are the product of these counts
with the differences: one matrix product for all columns, in blocks that fit into the cache. The counts are drawn several
times faster than n indices: see ``draw_counts``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.errors import InputError
from ringtrue.stats.columns import Columns, Floats, Ints, check_alpha, check_resamples, columns, fixed
from ringtrue.stats.resample import Singles, block_rows, product, random_bytes

Method = Literal["bca", "percentile", "studentised"]

LEAST_RESAMPLES = 1_000
# Means closer than this, in units of the column's largest difference from its mean, are equal but for rounding to 32 bits.
TIED = 1e-6
# A resample that misses the few queries that differ has no spread, and a studentised mean without end; if most differences
# are 0 that is one in twenty. Its spread is then taken to be this share of the sample's.
LEAST_SPREAD = 0.3
CODES = 1 << 16


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Bootstrap intervals of the mean; one value per column, nan if a column has fewer than two values."""

    low: Floats
    high: Floats
    p: Floats
    """Of the studentised bootstrap test that the mean is 0, two-sided and never 0; nan for the others, which have none."""


def bootstrap_interval(
    differences: ArrayLike,
    *,
    rng: np.random.Generator,
    alpha: float | Floats = 0.05,
    resamples: int = 10_000,
    method: Method = "bca",
) -> Bootstrap:
    """Return the bootstrap interval of the mean of every column of queries × measures, at 1 - alpha.

    ``alpha`` may be an array with one value per column. The same ``rng`` gives the same answer. Columns that lack the same
    queries share their resamples. BCa is Efron (1987), Better bootstrap confidence intervals. Studentised ("bootstrap-t",
    Efron 1982, Hall 1988) resamples mean ÷ standard error: it is wider if BCa is too narrow, above all for skewed
    differences, and excludes 0 exactly if its p is at most alpha.

    Raises InputError if a difference is infinite or not a number, alpha is unusable, or there are fewer than
    1,000 resamples or too few for the alpha of a studentised interval.

    >>> found = bootstrap_interval([0.1, 0.3, 0.2, 0.0, 0.4], rng=np.random.default_rng(1))
    >>> bool(found.low[0] < 0.2 < found.high[0])
    True
    """
    check_alpha(alpha)
    check_resamples(resamples, least=LEAST_RESAMPLES)
    least = float(np.min(alpha))
    if method == "studentised" and 2 / (resamples + 1) > least:
        raise InputError(
            f"{resamples} resamples are too few for an interval at alpha = {least}; use at least {math.ceil(2 / least)}"
        )
    data = columns(differences)
    levels = np.broadcast_to(np.asarray(alpha, np.float64), data.n.shape)
    low, high = np.full(len(data.n), np.nan), np.full(len(data.n), np.nan)
    p = np.full(len(data.n), np.nan)
    low[data.constant] = high[data.constant] = data.mean[data.constant]
    for chosen in _groups(data):
        values = data.values[data.valid[:, chosen[0]]][:, chosen]
        centred = values - data.mean[chosen]
        unit = np.abs(centred).max(axis=0)
        if method == "studentised":
            *found, p[chosen] = _studentised(centred / unit, data.mean[chosen], unit, rng, resamples, levels[chosen])
        else:
            means = _resampled_means(centred / unit, rng, resamples)
            bias, acceleration = _bias_and_acceleration(means, centred / unit) if method == "bca" else (0.0, 0.0)
            ends = _ends(bias, acceleration, levels[chosen])
            means.sort(axis=0)
            found = [data.mean[chosen] + unit * _quantile(means, end) for end in ends]
        # Resamples of zeros alone have a mean of exactly 0: whether an interval holds 0 must not hang on rounding.
        low[chosen], high[chosen] = (np.where(np.abs(end) <= TIED * unit, 0.0, end) for end in found)
    return Bootstrap(fixed(low), fixed(high), fixed(p))


def _groups(data: Columns) -> list[Ints]:
    """Return the columns with something to resample, those with the same queries together."""
    open_ = np.flatnonzero((data.n > 1) & ~data.constant)
    if not len(open_):
        return []
    packed = np.packbits(data.valid[:, open_], axis=0)
    same = np.unique(packed, axis=1, return_inverse=True)[1].reshape(-1)
    return [open_[same == group] for group in range(int(same.max()) + 1)]


def _resampled_means(values: Floats, rng: np.random.Generator, resamples: int) -> Singles:
    """Return the means of the resamples (resamples × columns), of values centred at 0 and no further from it than 1.

    Centred and scaled before the 32 bits of the product, they lose nothing that shows.
    """
    n, width = values.shape
    small = values.astype(np.float32)
    means = np.empty((resamples, width), dtype=np.float32)
    pairs = _poisson_pairs(_base_rate(n))
    # Of few queries a whole block would be far more than asked for; one row in fifty is dropped again.
    rows, done = min(block_rows(n, width), resamples + resamples // 25 + 16), 0
    buffer = np.empty((rows, n + n % 2), dtype=np.float32)
    while done < resamples:
        counts = draw_counts(n, rng, pairs, buffer)
        sums = product(counts[: resamples - done], small)
        means[done : done + len(sums)] = sums
        done += len(sums)
    means /= np.float32(n)
    return means


def _studentised(
    centred: Floats, mean: Floats, unit: Floats, rng: np.random.Generator, resamples: int, alpha: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return low, high and p. Everywhere mean ÷ spread with n: the √(n - 1) that makes it a t is the same on both sides."""
    width = centred.shape[1]
    both = _resampled_means(np.hstack([centred, centred**2]), rng, resamples)
    means, squares = both[:, :width], both[:, width:]
    variance = (centred**2).mean(axis=0)
    least = (LEAST_SPREAD**2 * variance).astype(np.float32)
    ratios = means / np.sqrt(np.maximum(squares - means**2, least))
    ratios.sort(axis=0)
    spread = np.sqrt(variance)
    seen, near = mean / (unit * spread), TIED / spread
    above, below = (ratios >= seen - near).sum(axis=0), (ratios <= seen + near).sum(axis=0)
    p = np.minimum(1.0, 2 * (np.minimum(above, below) + 1) / (resamples + 1))
    # The p counts the sample itself as one resample; so do the ends, lest the two disagree. 0.05 is no binary number: rounded.
    outside = np.floor(np.round((resamples + 1) * alpha / 2, 9)).astype(np.int64)
    column = np.arange(width)
    low, high = ratios[resamples - outside, column], ratios[outside - 1, column]
    return mean - unit * spread * low, mean - unit * spread * high, p


def _bias_and_acceleration(means: Singles, centred: Floats) -> tuple[Floats, Floats]:
    """Return BCa's z0, by how much the resampled means lie to one side, and a, how the spread changes with the mean."""
    from scipy import special  # type: ignore[import-untyped, unused-ignore]

    # Means equal to the sample's count by half on either side, as with few distinct scores many are.
    below, above = (means < -TIED).sum(axis=0), (means > TIED).sum(axis=0)
    share = (len(means) + below - above) / (2 * len(means))
    # Were all resampled means on one side, z0 would be infinite; so much is not known from a finite number of them.
    bias = special.ndtri(np.clip(share, 0.5 / len(means), 1 - 0.5 / len(means)))
    # Leaving query i out moves the mean by -(d_i - mean) ÷ (n - 1), so that the jackknife needs no resampling.
    return bias, np.asarray((centred**3).sum(axis=0) / (6 * (centred**2).sum(axis=0) ** 1.5))


def _ends(bias: Floats | float, acceleration: Floats | float, alpha: Floats) -> tuple[Floats, Floats]:
    """Return the shares of the resampled means between which the interval lies."""
    from scipy import special  # type: ignore[import-untyped, unused-ignore]

    def end(share: Floats) -> Floats:
        z = bias + special.ndtri(share)
        room = 1 - acceleration * z
        # Past this pole the formula turns over to the other side; the last resample is then the best that can be said.
        return np.where(room > 0, special.ndtr(bias + z / np.where(room > 0, room, 1.0)), np.where(z > 0, 1.0, 0.0))

    return end(alpha / 2), end(1 - alpha / 2)


def _quantile(ordered: Singles, share: Floats) -> Floats:
    """Return the quantile of each column at its own share, between neighbours in proportion."""
    place = share * (len(ordered) - 1)
    left = np.floor(place).astype(np.int64)
    right = np.minimum(left + 1, len(ordered) - 1)
    column = np.arange(ordered.shape[1])
    at_left, at_right = ordered[left, column].astype(np.float64), ordered[right, column].astype(np.float64)
    return np.asarray(at_left + (place - left) * (at_right - at_left))


# ── drawing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class PoissonPairs(NamedTuple):
    """How a code of 16 bits becomes two independent Poisson counts; see ``draw_counts``."""

    table: Singles
    """The pair of each code below ``sure``."""
    sure: int
    rest: Singles
    """Pairs that whole codes could not give their full chance, with what is left of it, summed up."""
    rest_chance: Floats


def draw_counts(n: int, rng: np.random.Generator, pairs: PoissonPairs, buffer: Singles) -> Singles:
    """Return how often each of n items is drawn in n draws with replacement, a resample per row; at most as buffer has rows.

    Independent Poisson counts, given their sum s, are distributed as s draws with replacement, and s + r draws are s draws
    and r more. So all items get Poisson counts of a rate a little below 1, rows that hold more than n already are dropped
    (2 %: what is left is still s draws, for a smaller s), and the others get the draws they lack, one by one. Poisson
    counts come two at a time from a table by 16 random bits. Codes are whole, chances are not: each pair has as many codes
    as fit under its chance, and the codes left over stand for "draw from what is missing". The counts are exactly those of
    drawing with replacement, not an approximation of them.

    They lie in ``buffer``, whose width is n, or n + 1 if n is odd: fresh memory for every block costs more than drawing.

    >>> counts = draw_counts(7, np.random.default_rng(1), _poisson_pairs(_base_rate(7)), np.empty((4, 8), dtype=np.float32))
    >>> set(counts.sum(axis=1).tolist())
    {7.0}
    """
    rows, width = buffer.shape
    codes = random_bytes(rng, rows * width).view(np.uint16)
    flat = buffer.reshape(-1, 2)
    pairs.table.take(codes, axis=0, mode="clip", out=flat)
    unsure = np.flatnonzero(codes >= pairs.sure) if pairs.sure < CODES else np.empty(0, dtype=np.int64)
    flat[unsure] = pairs.rest[np.searchsorted(pairs.rest_chance, rng.random(len(unsure)), side="right")]
    buffer[:, n:] = 0
    # Whole numbers: a product with ones is exact, and faster than a sum.
    lacking = n - product(buffer, np.ones((width, 1), dtype=np.float32))[:, 0].astype(np.int64)
    kept = np.flatnonzero(lacking >= 0)
    # Rows from the end take the places of those dropped; copying all that is kept would cost more than it took to draw.
    free, moved = np.flatnonzero(lacking[: len(kept)] < 0), kept[kept >= len(kept)]
    buffer[free], lacking[free] = buffer[moved], lacking[moved]
    counts, lacking = buffer[: len(kept)], lacking[: len(kept)]
    row = np.repeat(np.arange(len(counts)) * width, lacking)
    np.add.at(counts.reshape(-1), row + rng.integers(0, n, size=len(row)), np.float32(1))
    return counts[:, :n]


def _base_rate(n: int) -> float:
    """Two standard deviations of the sum below 1 per item; 0, hence every draw one by one, for a handful of items."""
    return max(0.0, 1 - 2 / math.sqrt(n))


def _poisson_pairs(rate: float) -> PoissonPairs:
    # Beyond 24 the chance, at a rate of 1 at most, is below 1e-25.
    single = np.array([math.exp(-rate) * rate**count / math.factorial(count) for count in range(25)])
    chance = np.outer(single, single).reshape(-1)
    chance /= chance.sum()
    pair = np.stack(np.unravel_index(np.arange(len(chance)), (25, 25)), axis=1).astype(np.float32)
    codes = np.floor(chance * CODES).astype(np.int64)
    sure = int(codes.sum())
    table = np.zeros((CODES, 2), dtype=np.float32)
    table[:sure] = np.repeat(pair, codes, axis=0)
    missing = chance - codes / CODES
    kept = missing > 0
    rest_chance = np.cumsum(missing[kept]) / missing[kept].sum() if kept.any() else np.ones(1)
    rest_chance[-1] = 1.0
    return PoissonPairs(table, sure, pair[kept] if kept.any() else pair[:1], rest_chance)
