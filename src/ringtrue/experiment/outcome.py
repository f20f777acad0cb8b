"""What a sweep found, as frozen values; what the two parts of the golden set say of its best; every trial as an experiment.

Is the best of many better, or only the luckiest? On the tuning queries the best of N trials was chosen because it looked
best there, so its p counts N times. On the held-out queries it is one claim, fixed before they were asked, and one test; only
the claims of other sweeps on the same part add to it: other winners, other measures, other scopes, also at other versions of
the set. What is better because it leaves queries unanswered, where the measure then has no value, is not confirmed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Literal

import numpy as np

from ringtrue.experiment.judging import describe
from ringtrue.experiment.ledger import Experiment
from ringtrue.experiment.space import Space, TrialPoint, Value
from ringtrue.golden import read_looks, record_look, version_name
from ringtrue.measures import Measure
from ringtrue.records import Floats, GoldenSet
from ringtrue.run import Evaluation
from ringtrue.stats import compare_paired, paired_t
from ringtrue.verdict import Comparison, compare, upside

Outcome = Literal["confirmed", "worse", "not enough evidence", "baseline"]
BINS = 6
"""Groups of neighbouring values that a range with many is shown in."""
_WORDS = {"confirmed": "ACCEPTED", "worse": "REJECTED", "not enough evidence": "UNDECIDED"}
WHO = "ringtrue sweep"
_RESAMPLES = 10_000
_FLAG = 0.05


@dataclass(frozen=True)
class Trial:
    """One point that was tried on the tuning queries."""

    number: int
    """In the order they were tried, from 1."""
    point: TrialPoint
    value: float
    """Mean of the measure."""
    per_query: Mapping[str, float] = field(repr=False)
    reused: bool = False
    """True if the values come from an earlier sweep."""

    @property
    def values(self) -> Mapping[str, Value]:
        """The parameters."""
        return self.point.values


@dataclass(frozen=True)
class Impossible:
    """A point that no retriever or chunker can be made of, and why."""

    point: TrialPoint
    reason: str


@dataclass(frozen=True)
class Undefined:
    """For how many queries of a part the measure has no value, such as the precision of an empty answer."""

    baseline: int
    best: int
    queries: int
    """All queries of the part."""

    @property
    def unfair(self) -> bool:
        """True if the best leaves more queries out of its mean than the baseline: the hard ones may be among them."""
        return self.best > self.baseline

    def sentence(self, measure: str, part: str) -> str:
        """Return the same in plain words; empty if every query has a value on both sides."""
        if not self.baseline and not self.best:
            return ""
        return (
            f"{measure} is not defined for {self.best} of {self.queries} {part} queries with the best and for "
            f"{self.baseline} with the baseline"
        )


@dataclass(frozen=True)
class _BesideBaseline:
    """The best trial against the baseline on one part of a golden set."""

    n: int
    baseline: float
    best: float
    diff: float
    p: float
    """Of one test, as if the best had been the only one tried."""
    p_corrected: float
    """Times the trials (tuning) or claims (held-out) so far: what 'the best of so many is better' may claim (Bonferroni)."""
    undefined: Undefined


@dataclass(frozen=True)
class Tuning(_BesideBaseline):
    """Best against baseline on the queries that chose the best."""

    tests: int
    """Trials other than the baseline."""


@dataclass(frozen=True)
class HeldOut(_BesideBaseline):
    """Best against baseline on queries that took no part in choosing it."""

    comparison: Comparison
    looks: int
    """How often anybody has looked at this part, in any version of the set, this time included."""
    earlier: int
    """How many of these looks were at other versions of the set."""
    confirmations: int
    """How many different claims (winner, baseline, measure, scope) were put to it by sweeps, this one included."""


@dataclass(frozen=True)
class Overfitting:
    """How much of the gain on the tuning queries is missing on the others."""

    tuning_gain: float
    held_out_gain: float
    gap: float
    p: float
    """Chance of a gap this large if both parts gained alike (Welch's t test, one-sided); nan if too few queries tell."""
    flagged: bool


@dataclass(frozen=True)
class Sweep:
    """All trials, the best of them, and what the held-out queries say about it."""

    space: Space
    method: str
    seed: int
    measure: str
    k: int
    trials: tuple[Trial, ...]
    """Best first."""
    impossible: tuple[Impossible, ...]
    baseline: TrialPoint
    best: Trial | None
    """None if no trial beat the baseline."""
    tuning: Tuning
    held_out: HeldOut | None
    """None if there was nothing that could be confirmed; the held-out part was then not looked at."""
    overfitting: Overfitting | None
    outcome: Outcome
    sentence: str
    """The outcome in plain words."""
    golden: str
    """Version of the tuning part."""
    corpus: str | None
    searches: int
    """Questions that were really put to a channel by the trials; the others were remembered."""
    notes: tuple[str, ...] = ()

    @property
    def lower_is_better(self) -> bool:
        """True if the best trial is the one with the lowest value."""
        return Measure.parse(self.measure).definition.lower_is_better


# ── what both parts say ─────────────────────────────────────────────────────────────────────────────────────────────


def on_tuning(
    baseline: Evaluation, best: Mapping[str, float], value: float, measure: str, *, tests: int, alpha: float, seed: int
) -> Tuning:
    """Return how the best trial stands against the baseline on the tuning queries, corrected for all that were tried."""
    before = _values(baseline, measure)
    gained = upside(measure) * np.array([best.get(query, math.nan) - then for query, then in before.items()])
    # So many resamples that even the corrected p could fall below alpha.
    resamples = max(_RESAMPLES, math.ceil(20 * max(1, tests) / alpha))
    found = compare_paired(
        gained[:, None], rng=np.random.default_rng(seed), alpha=alpha, correction="none", resamples=resamples
    )[0]
    then = baseline.metrics[measure]
    missing = Undefined(undefined(before.values()), undefined(best.values()), len(before))
    return Tuning(found.n, then, value, value - then, found.p, min(1.0, found.p * max(1, tests)), missing, tests)


def on_held_out(baseline: Evaluation, best: Evaluation, measure: str, *, looks: Looks, alpha: float, seed: int) -> HeldOut:
    """Return how the winner stands against the baseline on the held-out queries: one test."""
    found = compare(baseline, best, measures=[measure], primary=measure, alpha=alpha, seed=seed)
    main = found.measures[measure]
    then, now = _values(baseline, measure).values(), _values(best, measure).values()
    missing = Undefined(undefined(then), undefined(now), len(then))
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

    # From means and spreads: nearly equal values are no reason to warn.
    facts = [fact for part in parts for fact in (part.mean(), part.std(ddof=1), len(part))]
    return float(ttest_ind_from_stats(*facts, equal_var=False, alternative="greater").pvalue)


def gains(baseline: Evaluation, best: Evaluation, measure: str) -> Floats:
    """Return what the best gained on every query, above 0 if it is better."""
    then, now = _values(baseline, measure), _values(best, measure)
    return upside(measure) * np.array([now[query] - then[query] for query in then if query in now])


def _values(evaluation: Evaluation, measure: str) -> dict[str, float]:
    return dict(zip(evaluation.scores.query_ids, evaluation.scores.of(measure).tolist(), strict=True))


def outcome_of(found: HeldOut, measure: str, *, alpha: float) -> tuple[Outcome, str]:
    """Return the outcome of a confirmation, and the same in plain words."""
    numbers = f"{measure} {found.baseline:.4f} → {found.best:.4f} ({found.diff:+.4f}, p = {found.p:.2g})"
    word, on = found.comparison.verdict, f"on {found.n} held-out queries"
    missing = found.undefined.sentence(measure, "held-out")
    besides = f"; {missing}" if missing else ""
    if word == "worse":
        return "worse", f"refuted {on}: {numbers}; keep the baseline{besides}"
    if word != "better":
        why = f"not enough evidence, {found.comparison.reason}{besides}"
    elif found.undefined.unfair:
        why = f"{numbers}, but {missing}, so the best may only have left out the hard ones"
    elif found.p_corrected <= alpha:
        return "confirmed", f"confirmed {on}: {numbers}{besides}"
    else:
        claims = f"{found.confirmations} claims were put to these queries by now, and p counts for each"
        why = f"{numbers}, but {claims}: {found.p_corrected:.2g} > {alpha:g}{besides}"
    return "not enough evidence", f"not confirmed {on}: {why}"


# ── what each parameter did, and the trials as experiments ──────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Effect:
    """The trials at one value of a parameter, or between two."""

    label: str
    trials: int
    mean: float
    """Over all that the other parameters did meanwhile."""
    best: float
    low: float
    high: float
    """What the mean may be by chance: the 95 % interval of its distance from the mean of all trials, over the same queries."""


def effects(sweep: Sweep) -> dict[str, tuple[Effect, ...]]:
    """Return for every parameter what was reached at its values, in their order."""
    return {one.name: _effect(one.name, sweep.trials, upside(sweep.measure)) for one in sweep.space.parameters}


def _effect(parameter: str, trials: Sequence[Trial], up: float) -> tuple[Effect, ...]:
    values = dict.fromkeys(trial.values[parameter] for trial in trials)
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) < len(values):
        groups = [[value] for value in values]
    elif len(numbers) <= 2 * BINS:
        groups = [[value] for value in sorted(numbers)]
    else:
        groups = [part.tolist() for part in np.array_split(np.array(sorted(numbers), object), BINS)]
    found = []
    for group in groups:
        members = [trial for trial in trials if trial.values[parameter] in group]
        reached = [trial.value for trial in members]
        label = f"{group[0]}" if len(group) == 1 else f"{group[0]} … {group[-1]}"
        mean, best = float(np.mean(reached)), up * max(up * value for value in reached)
        low, high = _noise(members, trials, mean)
        found.append(Effect(label, len(reached), mean, best, low, high))
    return tuple(found)


def _noise(members: Sequence[Trial], trials: Sequence[Trial], mean: float) -> tuple[float, float]:
    """Return the interval around a mean, nan if too few queries tell; pairing by query takes out that some are harder."""
    queries = [query for query in trials[0].per_query if all(query in trial.per_query for trial in trials)]
    if len(queries) < 2:
        return math.nan, math.nan
    here, everywhere = (
        np.mean([[trial.per_query[query] for query in queries] for trial in group], axis=0) for group in (members, trials)
    )
    test = paired_t(here - everywhere)
    reach = float(test.high[0] - test.mean[0])
    return mean - reach, mean + reach


def tracked(sweep: Sweep, *, on: date, commit: str | None = None) -> tuple[Experiment, ...]:
    """Return the trials as experiments without ids, in the order they were made; the results are those on tuning queries."""
    return tuple(_experiment(sweep, trial, on, commit) for trial in sorted(sweep.trials, key=lambda trial: trial.number))


def _experiment(sweep: Sweep, trial: Trial, on: date, commit: str | None) -> Experiment:
    point = trial.point
    extra = {"sweep": {"trial": trial.number, "of": len(sweep.trials), "method": sweep.method, "retriever": point.retriever}}
    if point.chunks is not None:
        extra["sweep"]["chunks"] = point.chunks
    return Experiment(
        "",
        on.isoformat(),
        f"sweep, trial {trial.number} of {len(sweep.trials)}: {describe(trial.values)}",
        dict(trial.values),
        {sweep.measure: trial.value},
        _verdict(sweep, trial),
        commit=commit,
        golden=sweep.golden,
        corpus=sweep.corpus,
        baseline=sweep.baseline.retriever,
        extra=extra,
    )


def _verdict(sweep: Sweep, trial: Trial) -> str:
    if sweep.best is None:
        return f"REJECTED (not better than the baseline's {sweep.measure} of {sweep.tuning.baseline:.4f} on the tuning queries)"
    if trial is sweep.best:
        return f"{_WORDS[sweep.outcome]} ({sweep.sentence})"
    reached = f"trial {sweep.best.number} reached {sweep.measure} {sweep.best.value:.4f}"
    return f"REJECTED ({reached} on the tuning queries, this one {trial.value:.4f})"
