"""The randomisation test of paired differences, by flipping signs, for many measures in one pass.

If it does not matter which of two systems gave which score, every difference could as well have had the other sign. The p is
the share of all such signs under which the mean is as far from 0 as it was. Nothing is assumed about the shape of the
scores. Fisher (1935); Smucker, Allan and Carterette (2007) recommend it for search.

With few differences all signs are tried. Otherwise signs are drawn, the same for all columns of a draw, as rows of a matrix
whose product with the differences holds all sums: BLAS does the work, in blocks that fit into the cache.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.stats.columns import Floats, Ints, check_resamples, columns, in_units
from ringtrue.stats.resample import BLOCK, Singles, block_rows, product, random_bytes

# Up to 2^15 sums per column (the other half mirrors them), which is less work than the usual number of draws.
EXACT_UP_TO = 16
# Sums closer than this, in standard deviations of a sum, count as equal. Ties decide among few distinct scores, and 32 bits
# tear them apart by up to 1e-6. Counting a little too many as extreme is the safe side: it moves a p near 0.05 by 1e-6.
TIED = 1e-5
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
    bound = (np.abs(values.sum(axis=0) / scale) - TIED).astype(np.float32)
    table = _signs_of_bytes()
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


def _signs_of_bytes() -> Singles:
    """The eight signs that each byte stands for."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    return (1 - 2 * bits.astype(np.float32)).astype(np.float32)
