"""Many tests at once: adjusted p-values over all measures of all systems.

Twenty measures at 0.05 find one difference where there is none. Holm keeps the chance of a single false finding below alpha,
however the tests depend on one another (Holm, 1979). Benjamini and Hochberg keep the share of false ones among the findings
below it, and find more; this holds for tests that are independent or rise and fall together, as measures of the same ranking
do (Benjamini and Hochberg, 1995; Benjamini and Yekutieli, 2001).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ringtrue.stats.columns import Floats

Correction = Literal["holm", "benjamini-hochberg", "none"]


def corrected(p: Floats, correction: Correction, *, alpha: float = 0.05) -> tuple[Floats, Floats]:
    """Return the adjusted p-values and the level at which each test was decided.

    A p is at most its level exactly if its adjusted value is at most alpha, so that an interval at 1 - level tells what the
    adjusted p tells. The levels are those of the procedure's steps; all tests that were not rejected share the level of the
    first that was not (Holm), or of the next one (Benjamini and Yekutieli, 2005). A nan is a test that was not made: it stays
    nan, and its level is alpha.

    >>> [values.round(3).tolist() for values in corrected(np.array([0.01, 0.04, 0.03]), "holm", alpha=0.06)]
    [[0.03, 0.06, 0.06], [0.02, 0.06, 0.03]]
    """
    adjusted, levels = p.copy(), np.full_like(p, alpha)
    made = np.flatnonzero(~np.isnan(p))
    order = made[np.argsort(p[made], kind="stable")]
    count, place = len(order), np.arange(len(order))
    if correction == "holm":
        adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * (count - place)), 1.0)
        rejected = int((adjusted[order] <= alpha).sum())
        levels[order] = alpha / np.maximum(count - np.minimum(place, rejected), 1)
    elif correction == "benjamini-hochberg":
        scaled = p[order] * (count / (place + 1))
        adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
        rejected = int((adjusted[order] <= alpha).sum())
        levels[order] = alpha * ((rejected + (place >= rejected)) / max(count, 1))
    return adjusted, levels
