"""Is the best of many better, or only the luckiest? Tests on both parts of a golden set (X-2).

On the tuning queries the best of N trials was chosen because it looked best there, so its p counts N times. On the held-out
queries it is one claim, fixed before they were asked, and one test; only the claims of other sweeps on the same part add to it:
other winners, other measures, other scopes, also at other versions of the set. What is better because it leaves queries
unanswered, where the measure then has no value, is not confirmed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ringtrue.experiment.outcome import HeldOut, Outcome, Overfitting, Tuning, Undefined
from ringtrue.golden import read_looks, record_look, version_name
from ringtrue.records import Floats, GoldenSet
from ringtrue.run import Evaluation
from ringtrue.stats import compare_paired
from ringtrue.verdict import compare, upside

WHO = "ringtrue sweep"
_RESAMPLES = 10_000
_FLAG = 0.05


def on_tuning(
    baseline: Evaluation, best: Mapping[str, float], value: float, measure: str, *, tests: int, alpha: float, seed: int
) -> Tuning:
    """Return how the best trial stands against the baseline on the tuning queries, corrected for all that were tried."""
    before = dict(zip(baseline.scores.query_ids, baseline.scores.of(measure).tolist(), strict=True))
    gains = upside(measure) * np.array([best.get(query, math.nan) - then for query, then in before.items()])
    # So many resamples that even the corrected p could fall below alpha.
    resamples = max(_RESAMPLES, math.ceil(20 * max(1, tests) / alpha))
    found = compare_paired(
        gains[:, None], rng=np.random.default_rng(seed), alpha=alpha, correction="none", resamples=resamples
    )[0]
    then = baseline.metrics[measure]
    missing = Undefined(undefined(before.values()), undefined(best.values()), len(before))
    return Tuning(found.n, then, value, value - then, found.p, min(1.0, found.p * max(1, tests)), missing, tests)


def on_held_out(baseline: Evaluation, best: Evaluation, measure: str, *, looks: Looks, alpha: float, seed: int) -> HeldOut:
    """Return how the winner stands against the baseline on the held-out queries: one test."""
    found = compare(baseline, best, measures=[measure], primary=measure, alpha=alpha, seed=seed)
    main = found.measures[measure]
    values = [evaluation.scores.of(measure).tolist() for evaluation in (baseline, best)]
    missing = Undefined(undefined(values[0]), undefined(values[1]), len(values[0]))
    corrected = min(1.0, main.p * looks.claims)
    return HeldOut(
        main.n, main.a, main.b, main.diff, main.p, corrected, missing, found, looks.count, looks.earlier, looks.claims
    )


def undefined(values: Iterable[float]) -> int:
    """Return for how many queries a measure has no value."""
    return sum(math.isnan(value) for value in values)


@dataclass(frozen=True)
class Looks:
    """What the ledger says about a held-out part."""

    count: int
    """Looks at any version of it, this one included."""
    earlier: int
    """Those of them at other versions."""
    claims: int
    """The different claims of sweeps among them."""


def look(ledger: Path, claim: str, *, when: str, golden: GoldenSet) -> Looks:
    """Record a look at the held-out part before it is taken; return all looks there were at this part.

    The same claim again is the same test again, not another chance. A new version of the set has most queries of the old one,
    so what was tried on that counts on.
    """
    version = version_name(golden)
    record_look(ledger, who=WHO, what=claim, when=when, version=version)
    seen = [one for one in read_looks(ledger) if not one.version or one.version.startswith(f"{golden.id}-v")]
    earlier = sum(one.version not in ("", version) for one in seen)
    return Looks(len(seen), earlier, len({one.what for one in seen if one.who == WHO}))


def overfitting(tuning: Floats, held_out: Floats) -> Overfitting:
    """Return how far the gain on held-out queries falls behind that on tuning queries, and whether chance explains it.

    >>> overfitting(np.full(20, 0.2) + np.linspace(-0.01, 0.01, 20), np.linspace(-0.01, 0.01, 20)).flagged
    True
    """
    parts = [values[~np.isnan(values)] for values in (tuning, held_out)]
    means = [float(part.mean()) if len(part) else math.nan for part in parts]
    gap = means[0] - means[1]
    p = _welch(gap, parts)
    return Overfitting(means[0], means[1], gap, p, p <= _FLAG)


def _welch(gap: float, parts: Sequence[Floats]) -> float:
    if any(len(part) < 2 for part in parts):
        return math.nan
    if not any(part.std() for part in parts):
        return math.nan if gap > 0 else 1.0  # without any spread nothing says what chance would do
    from scipy.stats import ttest_ind_from_stats

    described = [(float(part.mean()), float(part.std(ddof=1)), len(part)) for part in parts]
    return float(ttest_ind_from_stats(*described[0], *described[1], equal_var=False, alternative="greater").pvalue)


def gains(baseline: Evaluation, best: Evaluation, measure: str) -> Floats:
    """Return what the best gained on every query, above 0 if it is better."""
    then = dict(zip(baseline.scores.query_ids, baseline.scores.of(measure).tolist(), strict=True))
    now = dict(zip(best.scores.query_ids, best.scores.of(measure).tolist(), strict=True))
    return upside(measure) * np.array([now[query] - then[query] for query in then if query in now])


def outcome_of(found: HeldOut, measure: str, *, alpha: float) -> tuple[Outcome, str]:
    """Return the outcome of a confirmation, and the same in plain words."""
    numbers = f"{measure} {found.baseline:.4f} → {found.best:.4f} ({found.diff:+.4f}, p = {found.p:.2g})"
    word, on = found.comparison.verdict, f"on {found.n} held-out queries"
    missing = found.undefined.sentence(measure, "held-out")
    besides = f"; {missing}" if missing else ""
    if word == "better" and found.undefined.unfair:
        return (
            "not enough evidence",
            f"not confirmed {on}: {numbers}, but {missing}, so the best may only have left out the hard ones",
        )
    if word == "better" and found.p_corrected <= alpha:
        return "confirmed", f"confirmed {on}: {numbers}{besides}"
    if word == "better":
        return "not enough evidence", (
            f"not confirmed {on}: {numbers}, but {found.confirmations} claims were put to these queries by now, "
            f"and p counts for each: {found.p_corrected:.2g} > {alpha:g}{besides}"
        )
    if word == "worse":
        return "worse", f"refuted {on}: {numbers}; keep the baseline{besides}"
    return "not enough evidence", f"not confirmed {on}: not enough evidence, {found.comparison.reason}{besides}"
