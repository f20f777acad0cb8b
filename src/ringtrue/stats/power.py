"""Planning a paired comparison: how many queries, what power, which smallest difference.

All three answers come from the noncentral t distribution of the two-sided paired t test. The normal approximation is
too hopeful for small n: for sd 0.15 and difference 0.05 it asks for 71 queries, the t test needs 73 (a seed claims 72).
"""

from __future__ import annotations

import math
import operator

import numpy as np

from ringtrue.errors import InputError

# Beyond this one more pair changes the power by less than its rounding error, so no "smallest n" can be told.
MOST_PAIRS = 10**9
HUGE = 3e4
"""In standard errors: a shift from which SciPy's noncentral t loses digits, and beside which one more or less is nothing."""
# Far below this scipy's quantile of t is infinite, with the wrong sign, for some n.
SMALLEST_ALPHA = 1e-100


def paired_power(*, n: int, sd: float, difference: float, alpha: float = 0.05) -> float:
    """Return the chance that a two-sided paired t test over n pairs finds a true mean difference, in [0, 1].

    ``sd`` is the standard deviation of the paired differences. A difference of 0 gives alpha, the rate of false alarms.

    Raises InputError if n < 2, sd is not above 0, difference is not finite, or alpha is not from 1e-100 to below 1.

    >>> round(paired_power(n=73, sd=0.15, difference=0.05), 3)
    0.802
    """
    _check(alpha=alpha, sd=sd, difference=difference)
    pairs = _checked_n(n)
    return _power(pairs, abs(difference) / sd * math.sqrt(pairs), alpha)


def paired_sample_size(*, sd: float, difference: float, alpha: float = 0.05, power: float = 0.80) -> int:
    """Return the smallest number of pairs with which a two-sided paired t test has the power asked for.

    ``sd`` is the standard deviation of the paired differences; the sign of ``difference`` does not matter.

    Raises InputError if sd is not above 0, difference is 0 or not finite, alpha is not from 1e-100 to below 1, power is
    not between alpha and 1, or more than 10^9 pairs would be needed.

    >>> paired_sample_size(sd=0.15, difference=0.05)
    73
    """
    _check(alpha=alpha, sd=sd, difference=difference, power=power)
    if difference == 0:
        raise InputError("no number of pairs can detect a difference of 0; give the smallest difference that matters")
    effect = abs(difference) / sd
    enough = 2
    while _power(enough, effect * math.sqrt(enough), alpha) < power:
        if enough == MOST_PAIRS:
            raise InputError(
                f"a difference of {difference} with sd {sd} needs more than {MOST_PAIRS:,} pairs; ask for a larger one"
            )
        enough = min(2 * enough, MOST_PAIRS)
    # The power grows with n, so the last doubling holds the answer.
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if _power(middle, effect * math.sqrt(middle), alpha) < power:
            too_few = middle
        else:
            enough = middle
    return enough


def minimum_detectable_effect(*, n: int, sd: float, alpha: float = 0.05, power: float = 0.80) -> float:
    """Return the smallest true mean difference that a two-sided paired t test over n pairs finds with that power.

    ``sd`` is the standard deviation of the paired differences.

    Raises InputError if n < 2, sd is not above 0, alpha is not from 1e-100 to below 1, or power is not between alpha
    and 1.

    >>> round(minimum_detectable_effect(n=15, sd=0.15), 3)
    0.117
    """
    from scipy import optimize  # type: ignore[import-untyped, unused-ignore]

    pairs = _checked_n(n)
    _check(alpha=alpha, sd=sd, power=power)
    if _power(pairs, 0.0, alpha) >= power:
        # Only a power that exceeds alpha by no more than a rounding error comes here.
        return 0.0
    far = 1.0
    while _power(pairs, far, alpha) < power:
        far *= 2
    shift = optimize.brentq(lambda shift: _power(pairs, shift, alpha) - power, 0.0, far, xtol=1e-13, rtol=1e-13)
    return float(shift) / math.sqrt(pairs) * sd


def _power(n: int, shift: float, alpha: float) -> float:
    """Power with n pairs where ``shift`` is the true mean difference in standard errors.

    It is the chance that a noncentral t variable leaves ±critical. Above HUGE only the sample's spread matters; a tail that is
    too small for SciPy's function is nan, and none.
    """
    from scipy import special  # type: ignore[import-untyped, unused-ignore]

    freedom = n - 1
    critical = -float(special.stdtrit(freedom, alpha / 2))
    if shift > HUGE:
        return float(special.gammainc(freedom / 2, freedom / 2 * min(shift / critical, 1e8) ** 2))
    tails = special.nctdtr(freedom, np.array([-shift, shift]), -critical)
    return min(1.0, float(np.nan_to_num(tails).sum()))


def _checked_n(n: int) -> int:
    try:
        pairs = operator.index(n)
    except TypeError:
        raise InputError(f"cannot use n = {n!r}: write a whole number of pairs") from None
    if pairs < 2:
        raise InputError(f"cannot use n = {n}: a single pair has no spread to judge its difference by; write 2 or more")
    return pairs


def _check(*, alpha: float, sd: float, difference: float = 0.0, power: float | None = None) -> None:
    if not SMALLEST_ALPHA <= alpha < 1:
        raise InputError(f"cannot use alpha = {alpha}: write a number from {SMALLEST_ALPHA} to below 1, such as 0.05")
    if power is not None and not alpha < power < 1:
        raise InputError(f"cannot use power = {power}: write a number between alpha ({alpha}) and 1, such as 0.8")
    if not (math.isfinite(sd) and sd > 0):
        raise InputError(f"cannot use sd = {sd}: write the standard deviation of the paired differences, above 0")
    if not math.isfinite(difference):
        raise InputError(f"cannot use difference = {difference}: write a finite number such as 0.05")
