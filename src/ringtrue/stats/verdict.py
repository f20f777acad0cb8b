"""Is it better? Every paired test of many measures at once, and a verdict for each in three words (C-1, C-2).

A verdict is **better** or **worse** only if two tests agree: the sign-flip test, and the interval of the mean, whose p is the
smallest alpha at which it excludes 0. So the p that decides is the larger of the two; of columns that are judged together it is
adjusted. The interval that stands beside a word is at the level at which that p decided, and holds 0 whenever the word is
**not enough evidence**. The sign-flip test holds its level whatever the scores look like, as long as the two systems are
exchangeable if they are equal; the interval must agree because it does not take the differences for symmetric. Wilcoxon's
test, BCa and the posterior are for the reader. ``simulate`` measures how often each of them errs.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.errors import InputError, nearest
from ringtrue.stats.bayes import Posterior, posterior
from ringtrue.stats.bootstrap import Bootstrap, bootstrap_interval
from ringtrue.stats.columns import Floats, Ints, check_alpha
from ringtrue.stats.interval import Interval, mean_interval
from ringtrue.stats.multiple import benjamini_hochberg, deciding_levels, holm
from ringtrue.stats.paired import Effect, PairedT, paired_effect, paired_t
from ringtrue.stats.power import MOST_PAIRS, minimum_detectable_effect, paired_power, paired_sample_size
from ringtrue.stats.signflip import SignFlip, sign_flip
from ringtrue.stats.wilcoxon import Wilcoxon, wilcoxon

Word = Literal["better", "worse", "not enough evidence"]
Correction = Literal["holm", "benjamini-hochberg", "none"]


@dataclass(frozen=True)
class PairedVerdict:
    """What the differences of one column allow to say."""

    word: Word
    reason: str
    n: int
    excluded: int
    mean: float
    low: float
    high: float
    """The interval that decided: of the mean at 1 - level (``mean_interval``), ending at 0 if only the sign flips hold 0."""
    p: float
    """Of the sign-flip test."""
    adjusted_p: float
    """The p that decides: the larger of ``p`` and ``interval_p``, adjusted for the tests it was judged with."""
    interval_p: float
    """The smallest alpha at which the interval of the mean excludes 0."""
    level: float
    """Alpha, or the share of it that the correction left to this column."""
    tests: int
    """How many tests this one was corrected for; 1: it stands alone."""
    detectable: float
    """The smallest true difference these queries find with the power asked for, at alpha ÷ tests.

    nan if no spread is seen; inf if they cannot show any difference that is possible.
    """
    more_queries: int | None
    """How many more settle it if the true difference is the one seen; 0 if it is settled, None if that cannot be told."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class PairedComparison:
    """Every test of every column, and the verdicts."""

    t: PairedT
    wilcoxon: Wilcoxon
    sign_flip: SignFlip
    interval: Interval
    bca: Bootstrap
    effect: Effect
    posterior: Posterior
    verdicts: tuple[PairedVerdict, ...]
    alpha: float
    power: float
    correction: Correction


def compare_paired(
    differences: ArrayLike,
    *,
    rng: np.random.Generator,
    alpha: float = 0.05,
    power: float = 0.80,
    resamples: int = 10_000,
    correction: Correction = "holm",
    families: Sequence[int] | None = None,
    widest: ArrayLike = math.inf,
    rope: float = 0.01,
) -> PairedComparison:
    """Return all tests and a verdict for every column of queries × measures.

    A column is one measure of one system against the baseline. Columns with the same number in ``families`` are judged
    together and corrected for one another; without it all of them are. ``widest`` is the largest difference that is possible,
    one for all columns or one each. The same ``rng`` gives the same answer.

    Raises InputError if a difference is infinite or no number, an option is unusable, or the resamples are too few for any
    adjusted p to reach alpha.

    >>> rng = np.random.default_rng(7)
    >>> found = compare_paired(rng.normal([0.05, 0.0], 0.1, size=(60, 2)), rng=rng)
    >>> [verdict.word for verdict in found.verdicts]
    ['better', 'not enough evidence']
    """
    check_alpha(alpha)
    if correction not in get_args(Correction):
        raise InputError(f"cannot use correction = {correction!r}; write {nearest(str(correction), get_args(Correction))}")
    t = paired_t(differences, alpha=alpha)
    group = np.zeros(len(t.n), np.int64) if families is None else np.asarray(families, np.int64)
    tests = np.ones(len(t.n), np.int64)
    if correction != "none":
        tests = np.array([max(1, int((t.n[group == one] > 1).sum())) for one in group.tolist()], np.int64)
    if 2 * (most := int(tests.max(initial=1))) / (resamples + 1) > alpha:
        least = math.ceil(2 * most / alpha)
        raise InputError(f"{resamples} resamples cannot show any of {most} columns below alpha = {alpha}; use at least {least}")
    flips = sign_flip(differences, rng=rng, resamples=resamples)
    drawn_again = copy.deepcopy(rng)
    interval = mean_interval(differences, rng=rng, alpha=alpha, resamples=resamples)
    bca = bootstrap_interval(differences, rng=rng, alpha=alpha, resamples=resamples)
    adjusted, levels = _corrected(np.maximum(flips.p, interval.p), group, correction, alpha)
    if (levels < alpha).any():
        interval = mean_interval(differences, rng=drawn_again, alpha=levels, resamples=resamples)
    ends = np.broadcast_to(np.asarray(widest, np.float64), t.n.shape)
    return PairedComparison(
        t=t,
        wilcoxon=wilcoxon(differences),
        sign_flip=flips,
        interval=interval,
        bca=bca,
        effect=paired_effect(differences),
        posterior=posterior(differences, rope=rope),
        verdicts=tuple(
            _verdict(
                column,
                t,
                interval,
                p=(float(flips.p[column]), float(adjusted[column])),
                level=float(levels[column]),
                tests=int(tests[column]),
                widest=float(ends[column]),
                terms=(alpha, power),
            )
            for column in range(len(t.n))
        ),
        alpha=alpha,
        power=power,
        correction=correction,
    )


def _corrected(p: Floats, group: Ints, correction: Correction, alpha: float) -> tuple[Floats, Floats]:
    """Return each column's adjusted p and the level at which it was decided."""
    adjusted, levels = p.copy(), np.full_like(p, alpha)
    if correction != "none":
        step_up = correction == "benjamini-hochberg"
        for one in np.unique(group):
            chosen = group == one
            adjusted[chosen] = (benjamini_hochberg if step_up else holm)(p[chosen])
            levels[chosen] = deciding_levels(p[chosen], adjusted[chosen], alpha=alpha, step_up=step_up)
    return adjusted, levels


def queries_to_settle(
    *, n: int, sd: float, difference: float, alpha: float = 0.05, power: float = 0.80, tests: int = 1
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


def _verdict(
    column: int,
    t: PairedT,
    interval: Interval,
    *,
    p: tuple[float, float],
    level: float,
    tests: int,
    widest: float,
    terms: tuple[float, float],
) -> PairedVerdict:
    n, mean, sd, constant = int(t.n[column]), float(t.mean[column]), float(t.sd[column]), bool(t.constant[column])
    alpha, power = terms
    low, high = max(float(interval.low[column]), -widest), min(float(interval.high[column]), widest)
    word: Word = "not enough evidence"
    if p[1] <= alpha and (low > 0 or high < 0):
        word = "better" if low > 0 else "worse"
    elif n > 1:
        # The sign flips do not exclude 0; an interval that did would contradict the word beside it.
        low, high = min(low, 0.0), max(high, 0.0)
    detectable, more = math.nan, None
    if n > 1 and not constant:
        enough = n >= fewest_queries(alpha / tests)
        detectable = minimum_detectable_effect(n=n, sd=sd, alpha=alpha / tests, power=power) if enough else math.inf
        detectable = detectable if detectable <= widest else math.inf
    if word != "not enough evidence":
        more = 0
    elif constant and mean != 0:
        more = max(1, fewest_queries(alpha / tests) - n)  # more of the same value: only the number of flips is missing
    elif not constant and math.isfinite(detectable):
        more = queries_to_settle(n=n, sd=sd, difference=mean, alpha=alpha, power=power, tests=tests)
    warnings = []
    if n > 1 and bool(interval.few[column]):
        warnings.append("with fewer than 50 queries, intervals may be too narrow if differences are strongly skewed")
    found = PairedVerdict(
        word=word,
        reason="",
        n=n,
        excluded=int(t.excluded[column]),
        mean=mean,
        low=low,
        high=high,
        p=p[0],
        adjusted_p=p[1],
        interval_p=float(interval.p[column]),
        level=level,
        tests=tests,
        detectable=detectable,
        more_queries=more,
        warnings=tuple(warnings),
    )
    return replace(found, reason=_reason(found, alpha=alpha, power=power))


def _reason(found: PairedVerdict, *, alpha: float, power: float) -> str:
    n, mean = found.n, found.mean
    if n < 2:
        seen = "no query was scored on both sides" if n == 0 else "1 query has no spread to judge its difference by"
        return f"cannot decide: {seen}"
    if mean == 0 and math.isnan(found.detectable):
        return f"all {n} differences are 0"
    settled = found.word != "not enough evidence"
    p = f"{'adjusted ' if found.tests > 1 else ''}p = {found.adjusted_p:.2g} {'≤' if settled else '>'} {alpha:g}"
    interval = f"{100 * (1 - found.level):.4g} % interval {found.low:+.4f} to {found.high:+.4f}"
    text = f"{mean:+.4f} on average over {n} queries; {interval} {'excludes' if settled else 'includes'} 0, {p}"
    if settled:
        return text
    if math.isinf(found.detectable):
        return f"{text}; {n} queries are too few to show any difference"
    if not math.isnan(found.detectable):
        text += f"; {n} queries can detect a difference of {found.detectable:.3g} ({100 * power:.3g} % power)"
    if found.more_queries is not None:
        text += f"; confirming {mean:+.4f} would take about {found.more_queries:,} more"
    return text
