"""What resampling is made of: random bytes and the product of drawn weights with the differences of all columns.

The same ``rng`` must give the same answer on any machine, so block sizes are constants and not fitted to the machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
