"""How probable it is that the new system is better: the posterior of the mean difference, for many measures at once.

The prior is Jeffreys': flat in the mean and in the logarithm of the spread, so that the data alone speak. The posterior of
the mean is then Student's t around the mean seen, with n - 1 degrees of freedom.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.stats.columns import Floats, columns


def probability_above_zero(differences: ArrayLike) -> Floats:
    """Return how probable it is that the true mean of each column is above 0; nan for fewer than two values.

    If all differences are equal, no posterior exists under this prior. In its place the value seen gets 1 - 2^(1 - n), the
    confidence of the sign-flip test, and the rest is split between both sides; with all differences 0 either sign is as
    probable.

    Raises InputError if a difference is infinite or not a number.

    >>> probability_above_zero([0.1, 0.3, 0.2, 0.0, 0.4]).round(3).tolist()
    [0.976]
    """
    from scipy import special  # type: ignore[import-untyped, unused-ignore]

    data = columns(differences)
    decided = data.n > 1
    scale = np.where(data.constant | ~decided, 1.0, data.sd * np.sqrt(1 / np.maximum(data.n, 1)))
    above = special.stdtr(np.where(decided, data.n - 1, 1), data.mean / scale)
    doubt = np.ldexp(2.0, -np.minimum(data.n, 1000))
    equal = (1 - doubt) * (1 + np.sign(data.mean)) / 2 + doubt / 2
    return np.where(decided, np.where(data.constant, equal, above), np.nan)
