"""Is it better? Every paired test of many measures at once, and a verdict for each in three words.

A verdict is **better** or **worse** only if two tests agree: the sign-flip test, and the interval of the mean, whose p is the
smallest alpha at which it excludes 0. So the p that decides is the larger of the two; of columns that are judged together it is
adjusted. The interval that stands beside a word is at the level at which that p decided, and holds 0 whenever the word is
**not enough evidence**. The sign-flip test holds its level whatever the scores look like, as long as the two systems are
exchangeable if they are equal; the interval must agree because it does not take the differences for symmetric. Wilcoxon's
test, BCa and the posterior are for the reader. ``make simulate`` measures how often each of them errs.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringtrue.errors import InputError, nearest
from ringtrue.stats import paired
from ringtrue.stats.columns import check_alpha
from ringtrue.stats.paired import Correction
from ringtrue.stats.power import MOST_PAIRS, minimum_detectable_effect, paired_power, paired_sample_size
from ringtrue.stats.resample import bootstrap_interval, sign_flip

OUT_OF_REACH = 10
"""More queries than so many times those there are no advice."""
Word = Literal["better", "worse", "not enough evidence"]
POWER = 0.80
"""The power at which differences are called detectable and further queries are planned."""
FEW = 50
"""Below this many queries an interval of strongly skewed differences is narrower than it says."""
_FEW_QUERIES = "with fewer than 50 queries, intervals may be too narrow if differences are strongly skewed"


@dataclass(frozen=True, kw_only=True)
class PairedVerdict:
    """What the differences of one column allow to say; nan for what was not tested or cannot be told."""

    n: int
    diff: float
    low: float = math.nan
    high: float = math.nan
    """The interval of the mean that decided, at 1 − level: it excludes 0 exactly if the word is better or worse."""
    p: float = math.nan
    """Of the randomisation (sign-flip) test, two-sided."""
    p_adjusted: float = math.nan
    """The p that decides: the larger of ``p`` and ``interval_p``, adjusted if the column is judged with others."""
    interval_p: float = math.nan
    """The smallest alpha at which the interval excludes 0, before any correction."""
    t: float = math.nan
    t_p: float = math.nan
    wilcoxon_p: float = math.nan
    bca: tuple[float, float] = (math.nan, math.nan)
    """The BCa bootstrap interval, for readers who want that one; the word rests on ``low`` and ``high``."""
    effect: float = math.nan
    """Cohen's d_z: mean ÷ standard deviation of the differences."""
    prob_better: float = math.nan
    """Bayesian P(the true mean is better than 0)."""
    wins: int
    ties: int
    losses: int
    """Queries on which the second side is better, equal, worse."""
    word: Word = "not enough evidence"
    reason: str
    detectable: float = math.nan
    """The smallest true difference that so many queries find with a power of 80 %.

    nan if no spread is seen; inf if so few queries cannot show any difference that is possible.
    """
    more_queries: int | None = None
    """How many more would settle it if the true difference is the one seen; 0 if it is settled, None if that cannot be told."""
    tests: int = 1
    """How many tests ``p_adjusted``, the interval and the word are corrected for."""
    level: float = 0.05
    """Alpha, or the share of it that the correction left to this column."""
    warnings: tuple[str, ...] = ()

    @property
    def certainty(self) -> str:
        """Return the interval and the p that decided: ``95 % interval +0.0124 to +0.1100, p = 0.012``."""
        name = "adjusted p" if self.tests > 1 else "p"
        ends = f"{self.low:+.4f} to {self.high:+.4f}".replace("-", "−")
        return f"{100 * (1 - self.level):.4g} % interval {ends}, {name} = {self.p_adjusted:.2g}"


def compare_paired(
    differences: ArrayLike,
    *,
    rng: np.random.Generator,
    alpha: float = 0.05,
    resamples: int = 10_000,
    correction: Correction = "holm",
    families: Sequence[int] | None = None,
    widest: ArrayLike = math.inf,
) -> tuple[PairedVerdict, ...]:
    """Return the verdict of every column of queries × measures.

    A column is one measure of one system against the baseline. Columns with the same number in ``families`` are judged
    together and corrected for one another; without it all of them are. ``widest`` is the largest difference that is possible,
    one for all columns or one each. The same ``rng`` gives the same answer.

    Raises InputError if a difference is infinite or not a number, an option is unusable, or the resamples are too few for any
    adjusted p to reach alpha.

    >>> rng = np.random.default_rng(7)
    >>> [verdict.word for verdict in compare_paired(rng.normal([0.05, 0.0], 0.1, size=(60, 2)), rng=rng)]
    ['better', 'not enough evidence']
    """
    check_alpha(alpha)
    if correction not in get_args(Correction):
        raise InputError(f"cannot use correction = {correction!r}; write {nearest(str(correction), get_args(Correction))}")
    t = paired.paired_t(differences, alpha=alpha)
    group = np.zeros(len(t.n), np.int64) if families is None else np.asarray(families, np.int64)
    tests = np.ones(len(t.n), np.int64)
    if correction != "none":
        tests = np.array([max(1, int((t.n[group == one] > 1).sum())) for one in group.tolist()], np.int64)
    if 2 * (most := int(tests.max(initial=1))) / (resamples + 1) > alpha:
        least = math.ceil(2 * most / alpha)
        raise InputError(f"{resamples} resamples cannot show any of {most} columns below alpha = {alpha}; use at least {least}")
    flips = sign_flip(differences, rng=rng, resamples=resamples)
    drawn_again = copy.deepcopy(rng)
    interval = paired.mean_interval(differences, rng=rng, alpha=alpha, resamples=resamples)
    bca = bootstrap_interval(differences, rng=rng, alpha=alpha, resamples=resamples)
    deciding = np.maximum(flips, interval.p)
    adjusted, levels = np.empty_like(deciding), np.empty_like(deciding)
    for one in np.unique(group):
        adjusted[group == one], levels[group == one] = paired.corrected(deciding[group == one], correction, alpha=alpha)
    if (levels < alpha).any():
        interval = paired.mean_interval(differences, rng=drawn_again, alpha=levels, resamples=resamples)
    ends = np.broadcast_to(np.asarray(widest, np.float64), t.n.shape)
    effect = paired.paired_effect(differences)
    found: dict[str, NDArray[Any]] = {
        "n": t.n, "diff": t.mean, "low": np.maximum(interval.low, -ends), "high": np.minimum(interval.high, ends),
        "p": flips, "p_adjusted": adjusted, "interval_p": interval.p, "tests": tests, "level": levels,
        "t": t.t, "t_p": t.p, "wilcoxon_p": paired.wilcoxon(differences),
        "prob_better": paired.probability_above_zero(differences),
        "effect": effect.dz, "wins": effect.wins, "ties": effect.ties, "losses": effect.losses,
    }  # fmt: skip
    verdicts = []
    for column in range(len(t.n)):
        values: dict[str, Any] = {name: array[column].item() for name, array in found.items()}
        untold = PairedVerdict(**values, bca=(bca.low[column].item(), bca.high[column].item()), reason="")
        sd = None if t.constant[column] else float(t.sd[column])
        verdicts.append(_decided(untold, sd, alpha=alpha, widest=float(ends[column])))
    return tuple(verdicts)


def queries_to_settle(
    *, n: int, sd: float, difference: float, alpha: float = 0.05, power: float = POWER, tests: int = 1
) -> int | None:
    """Return how many queries beyond n are needed to find a true mean difference with that power; at least 1.

    None if no number of queries would: a difference of 0, or one that needs more than 10^9. It is planned for the
    strictest level that Holm may ask of the smallest of ``tests`` p-values. A difference taken from the same queries is
    itself uncertain, and so is this number.

    Raises InputError if sd is not above 0, difference is not finite, or alpha or power is unusable.

    >>> queries_to_settle(n=15, sd=0.15, difference=0.05)
    58
    """
    strict = alpha / tests
    if difference == 0 or paired_power(n=MOST_PAIRS, sd=sd, difference=difference, alpha=strict) < power:
        return None
    needed = max(fewest_queries(strict), paired_sample_size(sd=sd, difference=difference, alpha=strict, power=power))
    return max(1, needed - n)


def fewest_queries(alpha: float) -> int:
    """Return how many queries it takes to find any difference: the p of n queries is 2^(1 - n) at best.

    >>> fewest_queries(0.05)
    6
    """
    return 1 + math.ceil(-math.log2(alpha))


def _decided(found: PairedVerdict, sd: float | None, *, alpha: float, widest: float) -> PairedVerdict:
    """Return the verdict with its word, reason and what it would take to settle it; ``sd`` is None without any spread."""
    n, low, high, strict = found.n, found.low, found.high, alpha / found.tests
    word: Word = "not enough evidence"
    if found.p_adjusted <= alpha and (low > 0 or high < 0):
        word = "better" if low > 0 else "worse"
    elif n > 1:
        # The sign flips do not exclude 0; an interval that did would contradict the word beside it.
        low, high = min(low, 0.0), max(high, 0.0)
    detectable, more = math.nan, None
    if n > 1 and sd is not None:
        enough = n >= fewest_queries(strict)
        detectable = minimum_detectable_effect(n=n, sd=sd, alpha=strict, power=POWER) if enough else math.inf
        detectable = detectable if detectable <= widest else math.inf
    if word != "not enough evidence":
        more = 0
    elif sd is None and found.diff != 0:
        more = max(1, fewest_queries(strict) - n)  # more of the same value: only the number of flips is missing
    elif sd is not None and math.isfinite(detectable):
        more = queries_to_settle(n=n, sd=sd, difference=found.diff, alpha=alpha, tests=found.tests)
    warnings = (_FEW_QUERIES,) if 1 < n < FEW else ()
    found = replace(found, word=word, low=low, high=high, detectable=detectable, more_queries=more, warnings=warnings)
    return replace(found, reason=_reason(found, alpha=alpha))


def _reason(found: PairedVerdict, *, alpha: float) -> str:
    n, mean = found.n, found.diff
    if n < 2:
        seen = "no query was scored on both sides" if n == 0 else "1 query has no spread to judge its difference by"
        return f"cannot decide: {seen}"
    if mean == 0 and math.isnan(found.detectable):
        return f"all {n} differences are 0"
    settled = found.word != "not enough evidence"
    p = f"{'adjusted ' if found.tests > 1 else ''}p = {found.p_adjusted:.2g} {'≤' if settled else '>'} {alpha:g}"
    interval = f"{100 * (1 - found.level):.4g} % interval {found.low:+.4f} to {found.high:+.4f}"
    text = f"{mean:+.4f} on average over {n} queries; {interval} {'excludes' if settled else 'includes'} 0, {p}"
    if settled:
        return text
    if math.isinf(found.detectable):
        return f"{text}; {n} queries are too few to show any difference"
    if not math.isnan(found.detectable):
        text += f"; {n} queries can detect a difference of {found.detectable:.3g} ({100 * POWER:.3g} % power)"
    if found.more_queries is not None and found.more_queries > OUT_OF_REACH * n:
        text += "; too small to confirm with a set of this size"
    elif found.more_queries is not None:
        text += f"; confirming {mean:+.4f} would take about {found.more_queries:,} more"
    return text
