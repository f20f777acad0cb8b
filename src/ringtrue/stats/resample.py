"""Resampling for many measures at once: sign flips, bootstrap intervals of means, and the growth of a percentile.

All of it is matrix products of drawn weights with the differences of all columns. The same ``rng`` must give the same answer on
any machine, so block sizes are constants and not fitted to the machine.

**Sign flips.** If it does not matter which of two systems gave which score, every difference could as well have had the other
sign. The p is the share of all such signs under which the mean is as far from 0 as it was. Nothing is assumed about the shape
of the scores. Fisher (1935); Smucker, Allan and Carterette (2007) recommend it for search. With few differences all signs are
tried; otherwise signs are drawn, the same for all columns of a draw.

**Bootstrap.** A resample of n queries with replacement is how often each query was drawn, and its means are the product of
these counts with the differences. The counts are drawn several times faster than n indices: see ``draw_counts``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringtrue.errors import InputError
from ringtrue.stats.columns import Columns, Floats, Ints, check_alpha, check_resamples, columns, fixed, in_units

Singles = NDArray[np.float32]

BLOCK = 1 << 20
"""Weights per block: 4 MB. Another size would put other random bits into other places, so it is not a setting."""
# OpenBLAS starts threads above this many multiplications. For so few columns they save little, and where other processes
# keep the cores busy they wait for one another: ten times slower on a busy machine of two cores.
WITHOUT_THREADS = 1 << 18
LEAST_PART = 64


def random_bytes(rng: np.random.Generator, count: int) -> NDArray[np.uint8]:
    """Return that many random bytes; ``rng.bytes`` takes seven times as long.

    >>> len(random_bytes(np.random.default_rng(1), 5))
    5
    """
    words = rng.integers(0, 2**64, size=-(-count // 8), dtype=np.uint64)
    return words.view(np.uint8)[:count]


def block_rows(queries: int, width: int) -> int:
    """Return how many resamples of so many queries and columns make up a block.

    >>> block_rows(10_000, 10)
    104
    """
    return max(1, BLOCK // max(queries, width))


def product(weights: Singles, values: Singles) -> Singles:
    """Return the matrix product of resamples × queries with queries × columns, as a sum over stretches of the queries.

    Short stretches keep BLAS from starting threads, and sums of 32 bits from losing digits.

    >>> product(np.ones((2, 300), dtype=np.float32), np.ones((300, 1), dtype=np.float32)).tolist()
    [[300.0], [300.0]]
    """
    rows, queries = weights.shape
    width = values.shape[1]
    length = max(LEAST_PART, WITHOUT_THREADS // max(1, rows * width))
    parts = queries // length
    if parts < 2:
        return weights @ values
    end = parts * length
    stretches = weights[:, :end].reshape(rows, parts, length).transpose(1, 0, 2)
    total: Singles = (stretches @ values[:end].reshape(parts, length, width)).sum(axis=0)
    if end < queries:
        total += weights[:, end:] @ values[end:]
    return total


# Up to 2^15 sums per column (the other half mirrors them), which is less work than the usual number of draws.
EXACT_UP_TO = 16
# Sums closer than this, in standard deviations of a sum, count as equal. Ties decide among few distinct scores, and 32 bits
# tear them apart by up to 1e-6. Counting a little too many as extreme is the safe side: it moves a p near 0.05 by 1e-6.
TIED_SUMS = 1e-5
TIED_EXACT = 1e-12


def sign_flip(differences: ArrayLike, *, rng: np.random.Generator, resamples: int = 10_000) -> Floats:
    """Return the two-sided p of the sign-flip test for every column of queries × measures; nan for fewer than two values.

    All signs are tried if at most 16 differences are not 0: a difference of 0 has no sign to flip. Of m draws the p is
    (b + 1) ÷ (m + 1), the signs as they were being one draw more, so that it is never 0. The same ``rng`` gives the same p.

    Raises InputError if a difference is infinite or not a number, or there are fewer than 100 resamples.

    >>> sign_flip([0.1, 0.3, 0.2, 0.0, 0.4], rng=np.random.default_rng(1)).tolist()
    [0.125]
    """
    check_resamples(resamples, least=100)
    data = columns(differences)
    exact = (data.values != 0).sum(axis=0) <= EXACT_UP_TO
    p = np.empty(len(data.n))
    p[exact] = _exact(data.values[:, exact])
    if not exact.all():
        p[~exact] = (_drawn(data.values[:, ~exact], rng, resamples) + 1) / (resamples + 1)
    p[data.n < 2] = np.nan
    return p


def _exact(values: Floats) -> Floats:
    p = np.ones(values.shape[1])
    count = (values != 0).sum(axis=0)
    for size in np.unique(count[count > 0]).tolist():
        chosen = np.flatnonzero(count == size)
        # Stable: the values that are not 0 come first, in their order.
        order = np.argsort(values[:, chosen] == 0, axis=0, kind="stable")[:size]
        packed = np.take_along_axis(values[:, chosen], order, axis=0)
        signs = _all_signs(size)
        width = max(1, BLOCK // len(signs))
        for start in range(0, len(chosen), width):
            part = packed[:, start : start + width]
            sums, seen = signs @ part, part.sum(axis=0)
            near = TIED_EXACT * np.abs(part).sum(axis=0)
            p[chosen[start : start + width]] = (np.abs(sums) >= np.abs(seen) - near).sum(axis=0) / len(signs)
    return p


def _all_signs(size: int) -> Floats:
    """Every way to give signs to ``size`` values, the first being +; the other half is the same with all signs turned."""
    codes = np.arange(1 << (size - 1))[:, None]
    return np.asarray(1.0 - 2.0 * ((codes >> np.arange(size - 1, -1, -1)) & 1), dtype=np.float64)


def _drawn(values: Floats, rng: np.random.Generator, resamples: int) -> Ints:
    """Return how many of the drawn signs gave a sum at least as far from 0."""
    values = in_units(values, np.abs(values).max(axis=0))
    scale = np.sqrt((values**2).sum(axis=0))
    queries = -(-len(values) // 8) * 8
    unit = np.zeros((queries, values.shape[1]), dtype=np.float32)
    unit[: len(values)] = values / scale
    bound = (np.abs(values.sum(axis=0) / scale) - TIED_SUMS).astype(np.float32)
    # The eight signs that each byte stands for.
    table = 1 - 2 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32)
    extreme = np.zeros(values.shape[1], dtype=np.int64)
    rows = block_rows(*unit.shape)
    # One buffer for all blocks: fresh memory for each costs more than the product.
    buffer = np.empty((min(rows, resamples) * queries // 8, 8), dtype=np.float32)
    for start in range(0, resamples, rows):
        codes = random_bytes(rng, min(rows, resamples - start) * queries // 8)
        signs = table.take(codes, axis=0, mode="clip", out=buffer[: len(codes)])
        sums = product(signs.reshape(-1, queries), unit)
        extreme += (np.abs(sums, out=sums) >= bound).sum(axis=0)
    return extreme


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
    # The p counts the sample itself as one resample; so do the ends, or the two would disagree. 0.05 is not exact: rounded.
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


LEAST = 1e-6
"""A resampled percentile counts as at least this share of the one seen, so that no growth is infinite."""
RESAMPLED_AT_ONCE = 1 << 21
"""Values that are resampled at once: 16 MB a side."""


@dataclass(frozen=True)
class PercentileGrowth:
    """A percentile before and after, and its growth as a share: 0.2 is 20 %."""

    before: float
    after: float
    growth: float
    low: float
    high: float


def percentile_growth(
    before: ArrayLike,
    after: ArrayLike,
    *,
    rng: np.random.Generator,
    alpha: float = 0.05,
    resamples: int = 2_000,
) -> PercentileGrowth:
    """Return the growth of the 95th percentile over queries × passes, with its bootstrap interval at 1 - alpha.

    A resample draws queries, the same on both sides, and passes, on each side by itself: a side that was timed in a busy
    moment shows it in some of its passes. The same ``rng`` gives the same answer.

    Raises InputError if the two sides do not have the same queries, a time is negative or unknown, or the percentile was 0.

    >>> times = np.random.default_rng(1).gamma(5, 4, (50, 4))
    >>> found = percentile_growth(times, 1.5 * times, rng=np.random.default_rng(2))
    >>> round(found.growth, 3), found.low < 0.5 < found.high
    (0.5, True)
    """
    check_alpha(alpha)
    check_resamples(resamples, least=1_000)
    sides = [np.atleast_2d(np.asarray(side, np.float64)) for side in (before, after)]
    queries = len(sides[0])
    if len(sides[1]) != queries or not queries:
        raise InputError(f"cannot pair {queries} timed queries with {len(sides[1])}: time the same queries on both sides")
    seen = [float(np.percentile(side, 95)) for side in sides]
    if not (all((side >= 0).all() for side in sides) and seen[0] > 0 and np.isfinite(seen).all()):
        raise InputError(f"a time is negative or unknown, or the percentile was {seen[0]:g}; write milliseconds")
    drawn: list[Floats] = []
    rows = max(1, RESAMPLED_AT_ONCE // max(side.size for side in sides))
    for start in range(0, resamples, rows):
        count = min(rows, resamples - start)
        chosen = rng.integers(0, queries, (count, queries, 1))
        ends = [
            np.percentile(side[chosen, rng.integers(0, side.shape[1], (count, 1, side.shape[1]))], 95, axis=(1, 2))
            for side in sides
        ]
        drawn.append(ends[1] / np.maximum(ends[0], seen[0] * LEAST) - 1)
    low, high = np.quantile(np.concatenate(drawn), [alpha / 2, 1 - alpha / 2]).tolist()
    return PercentileGrowth(seen[0], seen[1], seen[1] / seen[0] - 1, low, high)
