"""Is it better? Every paired test of many measures at once, and a verdict for each in three words (C-1, C-2).

A verdict is **better** or **worse** only if two things agree, each adjusted for all columns: the p of the sign-flip test, and
that of the interval of the mean, the smallest alpha at which it leaves out 0. Anything else is **not enough evidence**, with
what the queries at hand could have found and how many more would settle it. The sign-flip test decides because it holds its
level whatever the scores look like, as long as the two systems are exchangeable where they are equal; the interval must agree
because it does not take the differences for symmetric. Wilcoxon's test, BCa and the posterior stand beside them for the
reader. ``simulate`` measures how often each of them errs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ringtrue.errors import InputError, nearest
from ringtrue.stats.bayes import Posterior, posterior
from ringtrue.stats.bootstrap import Bootstrap, bootstrap_interval
from ringtrue.stats.columns import Floats, check_alpha, fixed
from ringtrue.stats.interval import Interval, mean_interval
from ringtrue.stats.multiple import benjamini_hochberg, holm
from ringtrue.stats.paired import Effect, PairedT, paired_effect, paired_t
from ringtrue.stats.power import MOST_PAIRS, minimum_detectable_effect, paired_power, paired_sample_size
from ringtrue.stats.signflip import SignFlip, sign_flip
from ringtrue.stats.wilcoxon import Wilcoxon, wilcoxon

Word = Literal["better", "worse", "not enough evidence"]
Correction = Literal["holm", "benjamini-hochberg", "none"]
_CORRECTIONS: dict[str, Callable[[ArrayLike], Floats]] = {
    "holm": holm,
    "benjamini-hochberg": benjamini_hochberg,
    "none": lambda p: np.asarray(p, dtype=np.float64),
}


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
    """The interval of the mean, see ``mean_interval``; where all differences are equal, that of the sign-flip test."""
    p: float
    """Of the sign-flip test."""
    adjusted_p: float
    """Of the sign-flip test, adjusted for all columns."""
    interval_p: float
    """Of the interval, adjusted likewise; both must be at most alpha."""
    detectable: float
    """The smallest true difference these queries find with the power asked for; nan where no spread is seen.

    At alpha ÷ columns, the strictest level a correction asks for.
    """
    more_queries: int | None
    """How many more settle it if the true difference is the one seen; 0 where it is settled, None where no number does."""
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
    adjusted_p: Floats
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
    rope: float = 0.01,
) -> PairedComparison:
    """Return all tests and a verdict for every column of queries × measures.

    A column is one measure of one system against the baseline, turned so that above 0 is better: the correction is over
    all of them. The same ``rng`` gives the same answer.

    Raises InputError if a difference is infinite or no number, an option is unusable, or the resamples are too few for any
    adjusted p to reach alpha.

    >>> rng = np.random.default_rng(7)
    >>> found = compare_paired(rng.normal([0.05, 0.0], 0.1, size=(60, 2)), rng=rng)
    >>> [verdict.word for verdict in found.verdicts]
    ['better', 'not enough evidence']
    """
    check_alpha(alpha)
    if correction not in _CORRECTIONS:
        raise InputError(f"cannot use correction = {correction!r}; write {nearest(str(correction), _CORRECTIONS)}")
    t = paired_t(differences, alpha=alpha)
    tests = 1 if correction == "none" else max(1, int((t.n > 1).sum()))
    if 2 * tests / (resamples + 1) > alpha:
        least = math.ceil(2 * tests / alpha)
        raise InputError(
            f"{resamples} resamples cannot show any of {tests} columns below alpha = {alpha}; use at least {least}"
        )
    flips = sign_flip(differences, rng=rng, resamples=resamples)
    interval = mean_interval(differences, rng=rng, alpha=alpha, resamples=resamples)
    bca = bootstrap_interval(differences, rng=rng, alpha=alpha, resamples=resamples)
    adjusted, interval_p = (fixed(_CORRECTIONS[correction](p)) for p in (flips.p, interval.p))
    verdicts = tuple(
        _verdict(column, t, flips, interval, (adjusted, interval_p), alpha=alpha, power=power, tests=tests)
        for column in range(len(t.n))
    )
    return PairedComparison(
        t=t,
        wilcoxon=wilcoxon(differences),
        sign_flip=flips,
        interval=interval,
        bca=bca,
        effect=paired_effect(differences),
        posterior=posterior(differences, rope=rope),
        adjusted_p=adjusted,
        verdicts=verdicts,
        alpha=alpha,
        power=power,
        correction=correction,
    )


def queries_to_settle(
    *, n: int, sd: float, difference: float, alpha: float = 0.05, power: float = 0.80, tests: int = 1
) -> int | None:
    """Return how many queries beyond n are needed to find a true mean difference with that power; at least 1.

    None where no number of queries would: a difference of 0, or one that needs more than 10^9. It is planned for the
    strictest level that Holm may ask of the smallest of ``tests`` p-values. A difference taken from the same queries is
    itself uncertain, and so is this number.

    Raises InputError if sd is not above 0, difference is not finite, or alpha or power is unusable.

    >>> queries_to_settle(n=15, sd=0.15, difference=0.05)
    58
    """
    strict = alpha / tests
    # However large a difference is, n queries have a p of 2^(1 - n) at best.
    least = 1 + math.ceil(-math.log2(strict))
    if difference == 0 or paired_power(n=MOST_PAIRS, sd=sd, difference=difference, alpha=strict) < power:
        return None
    needed = max(least, paired_sample_size(sd=sd, difference=difference, alpha=strict, power=power))
    return max(1, needed - n)


def _verdict(
    column: int,
    t: PairedT,
    flips: SignFlip,
    interval: Interval,
    adjusted: tuple[Floats, Floats],
    *,
    alpha: float,
    power: float,
    tests: int,
) -> PairedVerdict:
    n, mean, sd = int(t.n[column]), float(t.mean[column]), float(t.sd[column])
    constant = bool(t.constant[column])
    low, high = float(interval.low[column]), float(interval.high[column])
    p, (adjusted_p, interval_p) = float(flips.p[column]), (float(values[column]) for values in adjusted)
    detectable = math.nan
    if n > 1 and not constant:
        detectable = minimum_detectable_effect(n=n, sd=sd, alpha=alpha / tests, power=power)
    word: Word = "not enough evidence"
    if adjusted_p <= alpha and interval_p <= alpha and (low > 0 or high < 0):
        word = "better" if low > 0 else "worse"
    more: int | None = 0
    if word == "not enough evidence":
        more = _more(n, mean, sd, constant, alpha=alpha, power=power, tests=tests)
    warnings = []
    if n > 1 and bool(interval.few[column]):
        warnings.append(f"{n} queries are few: below 50 an interval of strongly skewed differences is narrower than it says")
    reason = _reason(word, n, mean, low, high, adjusted_p, interval_p, detectable, more, alpha=alpha, power=power)
    return PairedVerdict(
        word=word,
        reason=reason,
        n=n,
        excluded=int(t.excluded[column]),
        mean=mean,
        low=low,
        high=high,
        p=p,
        adjusted_p=adjusted_p,
        interval_p=interval_p,
        detectable=detectable,
        more_queries=more,
        warnings=tuple(warnings),
    )


def _more(n: int, mean: float, sd: float, constant: bool, *, alpha: float, power: float, tests: int) -> int | None:
    if n < 2:
        return None  # no spread is known, so nothing can be planned
    if constant:
        # More of the same value: only the number of flips is missing.
        return max(1, 1 + math.ceil(-math.log2(alpha / tests)) - n) if mean != 0 else None
    return queries_to_settle(n=n, sd=sd, difference=mean, alpha=alpha, power=power, tests=tests)


def _reason(
    word: Word,
    n: int,
    mean: float,
    low: float,
    high: float,
    adjusted_p: float,
    interval_p: float,
    detectable: float,
    more: int | None,
    *,
    alpha: float,
    power: float,
) -> str:
    if n < 2:
        seen = "no query was scored on both sides" if n == 0 else "1 query has no spread to judge its difference by"
        return f"cannot decide: {seen}"
    level = f"{100 * (1 - alpha):.4g} % interval {low:+.4g} to {high:+.4g}"
    if word != "not enough evidence":
        surest = max(adjusted_p, interval_p)
        return f"{mean:+.4g} on average over {n} queries; {level} leaves out 0, adjusted p = {surest:.2g} ≤ {alpha:g}"
    if mean == 0 and math.isnan(detectable):
        return f"all {n} differences are 0"
    missing = []
    if low <= 0 <= high:
        missing.append(f"{level} holds 0")
    if adjusted_p > alpha:
        missing.append(f"adjusted p = {adjusted_p:.2g} > {alpha:g}")
    elif low > 0 or high < 0:
        missing.append(f"{level} would hold 0 once adjusted for all that was compared (its p = {interval_p:.2g} > {alpha:g})")
    text = f"{mean:+.4g} on average over {n} queries; " + ", ".join(missing)
    if not math.isnan(detectable):
        text += f"; {n} queries find {detectable:.3g} with {100 * power:.3g} % power"
    if more is not None:
        text += f"; about {more:,} more would settle a true difference of {mean:+.3g}"
    return text
