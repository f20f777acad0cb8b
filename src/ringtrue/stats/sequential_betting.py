"""Gamblers who bet on differences in −1 to 1: what their capital proves holds for every shape of the differences (S-2).

Whoever bets that differences lie above m multiplies his capital by 1 + stake · (difference − m). If the mean is at most m the
capital is expected never to grow, however the stakes are chosen from what was seen before, so that it ever reaches 1 / alpha
with a chance of alpha at most (Ville's inequality). Nothing else is assumed: no spread, no shape, no number of looks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.stats.columns import Floats

# Share of the capital that the worst difference may take: a gambler who can lose everything never comes back.
STAKE = 0.75


def variance_before(n: int, total: ArrayLike, squares: ArrayLike) -> Floats:
    """Return the variance of the n differences before; one of 0 is added to them, and a quarter to the squares, as a guess.

    >>> float(variance_before(0, 0.0, 0.0)), float(variance_before(3, 0.0, 0.15))
    (0.25, 0.1)
    """
    mean = np.asarray(total, dtype=np.float64) / (n + 1)
    spread = (np.asarray(squares, dtype=np.float64) + 0.25) / (n + 1) - mean * mean
    return np.asarray(np.maximum(spread, 1e-6))


def growth(bet: ArrayLike, difference: ArrayLike, mean: ArrayLike) -> Floats:
    """Return what one difference adds to the log capital of one who bets that differences lie above ``mean``.

    >>> round(float(growth(0.5, 0.2, 0.0)), 4)  # ln(1 + 0.5 · 0.2)
    0.0953
    """
    above = np.asarray(mean, dtype=np.float64)
    stake = np.minimum(bet, STAKE / (1 + above))  # the worst difference, −1, takes 1 + mean times the stake
    return np.asarray(np.log1p(stake * (np.asarray(difference, dtype=np.float64) - above)))
