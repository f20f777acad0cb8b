"""How probable it is that the new system is better: the posterior of the mean difference, for many measures at once.

The prior is Jeffreys': flat in the mean and in the logarithm of the spread, so that the data alone speak. The posterior of
the mean is then Student's t around the mean seen, with n - 1 degrees of freedom. A ``correlation`` between the differences,
as when queries are paraphrases of one another or scores come from overlapping folds, widens it: Nadeau and Bengio (2003),
as a Bayesian test by Corani and Benavoli (2015).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.errors import InputError
from ringtrue.stats.columns import Floats, Ints, columns, fixed


@dataclass(frozen=True, eq=False)
class Posterior:
    """Probabilities about the true mean difference; one value per column, nan where a column has fewer than two values."""

    n: Ints
    excluded: Ints
    mean: Floats
    scale: Floats
    """Of the Student posterior; 0 where all differences are equal."""
    better: Floats
    """P(the mean is above 0)."""
    above: Floats
    """P(the mean is above the region of practical equivalence)."""
    within: Floats
    below: Floats
    rope: float
    """Half the width of the region of practical equivalence around 0."""
    correlation: float


def posterior(differences: ArrayLike, *, rope: float = 0.01, correlation: float = 0.0) -> Posterior:
    """Return how probable it is that the mean of each column is above 0, and above, within or below ±rope.

    A difference within ``rope`` is taken to make none in practice: one point of a measure from 0 to 1, unless said
    otherwise. Where all differences are equal, no posterior exists under this prior. In its place the value seen gets
    1 - 2^(1 - n), the confidence of the sign-flip test, and the rest is split between far below and far above; with
    all differences 0 either sign is as probable.

    Raises InputError if a difference is infinite or no number, rope is below 0, or correlation is not from 0 to below 1.

    >>> found = posterior([0.1, 0.3, 0.2, 0.0, 0.4])
    >>> round(float(found.better[0]), 3), round(float(found.within[0]), 4)
    (0.976, 0.0068)
    """
    from scipy import special  # type: ignore[import-untyped, unused-ignore]

    if not (np.isfinite(rope) and rope >= 0):
        raise InputError(f"cannot use rope = {rope}: write the largest difference that does not matter, such as 0.01")
    if not 0 <= correlation < 1:
        raise InputError(f"cannot use correlation = {correlation}: write a number from 0 to below 1")
    data = columns(differences)
    decided = data.n > 1
    freedom = np.where(decided, data.n - 1, 1)
    scale = np.where(data.constant, 0.0, data.sd) * np.sqrt(1 / np.maximum(data.n, 1) + correlation / (1 - correlation))
    spread = np.where(data.constant | ~decided, 1.0, scale)
    better = special.stdtr(freedom, data.mean / spread)
    above = special.stdtr(freedom, (data.mean - rope) / spread)
    below = special.stdtr(freedom, (-rope - data.mean) / spread)
    doubt = np.ldexp(2.0, -np.minimum(data.n, 1000))
    sure = 1 - doubt
    better = np.where(data.constant, sure * (1 + np.sign(data.mean)) / 2 + doubt / 2, better)
    above = np.where(data.constant, sure * (data.mean > rope) + doubt / 2, above)
    below = np.where(data.constant, sure * (data.mean < -rope) + doubt / 2, below)
    return Posterior(
        n=data.n,
        excluded=data.excluded,
        mean=data.mean,
        scale=fixed(scale),
        better=fixed(np.where(decided, better, np.nan)),
        above=fixed(np.where(decided, above, np.nan)),
        within=fixed(np.where(decided, np.clip(1 - above - below, 0.0, 1.0), np.nan)),
        below=fixed(np.where(decided, below, np.nan)),
        rope=rope,
        correlation=correlation,
    )
