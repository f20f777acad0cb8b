"""The rules that look back: a measure that fell against the baseline, and a latency that grew."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np

from ringtrue.measures import Measure, average, latency
from ringtrue.records import Floats
from ringtrue.run import Evaluation
from ringtrue.stats import PercentileGrowth, fewest_queries, percentile_growth
from ringtrue.verdict.completeness import UPDATE, comparable
from ringtrue.verdict.floors import too_few_answers
from ringtrue.verdict.policy import Policy
from ringtrue.verdict.records import Baseline, Check, CheckStatus, Comparison, MeasureComparison, Rule
from ringtrue.verdict.slices import members, values_of
from ringtrue.verdict.wording import EVEN, SHOWN, percent, two, upside


@dataclass(frozen=True, eq=False)
class BaselineComparison:
    """An evaluation beside the baseline it is held against."""

    evaluation: Evaluation
    baseline: Baseline
    policy: Policy
    comparison: Comparison | None
    """None if no query can be paired: the baseline has no scores per query, or is of another golden set."""

    @cached_property
    def shared(self) -> list[str]:
        """The queries that both have, in the order of the run."""
        return [query for query in self.evaluation.scores.query_ids if query in self.baseline.per_query]

    def values(self, measure: str, queries: Sequence[str]) -> tuple[Floats, Floats]:
        """Return the values of a measure then and now, for the same queries."""
        return values_of(self.baseline.scores, measure, queries), values_of(self.evaluation.scores, measure, queries)

    def means(self, measure: str, queries: Sequence[str]) -> tuple[float, float]:
        """Return the measure then and now, over the same queries; as recorded if the baseline has no scores per query."""
        if not self.baseline.per_query:
            return self.baseline.metrics[measure], self.evaluation.scores[measure]
        then, now = self.values(measure, queries)
        both = ~np.isnan(then) & ~np.isnan(now)
        parsed = Measure.parse(measure)
        return average(parsed, then[both]), average(parsed, now[both])

    def fallen(self, measure: str, queries: Sequence[str]) -> tuple[str, ...]:
        """Return the queries that lost most, most first; equal losses in order of their ids."""
        if not queries:
            return ()
        then, now = self.values(measure, queries)
        lost = (upside(measure) * (then - now)).tolist()
        guilty = sorted((-loss, query) for loss, query in zip(lost, queries, strict=True) if loss > EVEN)
        return tuple(query for _, query in guilty[:SHOWN])

    def slices(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the name and the shared queries of every slice that the policy compares, however small."""
        for field in self.evaluation.setup.golden.slices if self.policy.slice_drop else ():
            for value, queries in members(self.evaluation.scores.facts, field, self.shared).items():
                yield f"{field}={value}", queries

    def small_slices(self) -> list[str]:
        """Return the slices that have too few queries to be tested."""
        return [f"{name} ({len(queries)})" for name, queries in self.slices() if len(queries) < self.policy.slice_minimum]

    def tested(self, measure: str, name: str | None) -> MeasureComparison | None:
        """Return what the paired tests say about a measure, in all or in one slice; None if it was not tested."""
        if self.comparison is None:
            return None
        if name is None:
            return self.comparison.measures.get(measure)
        field, _, value = name.partition("=")
        return self.comparison.slices.get(field, {}).get(value, {}).get(measure)


def drop_checks(against: BaselineComparison, problems: Mapping[str, str]) -> Iterator[Check]:
    """Yield a check for every measure that is compared, and for every slice if the policy asks for it.

    If the baseline was made of other things, a drop proves nothing, and all of them are advisory.
    """
    fair = comparable(against.evaluation, against.baseline, against.policy)
    for check in _drops(against, problems):
        yield check if fair else replace(check, status="advisory", message=f"{check.message} (informational only)")


def _drops(against: BaselineComparison, problems: Mapping[str, str]) -> Iterator[Check]:
    policy, baseline = against.policy, against.baseline
    rule: Rule = "drop" if policy.mode == "relative" else "significant drop"
    for measure in policy.drop_measures:
        if measure in problems:
            yield Check(rule, measure, "undecided", problems[measure], math.nan)
        elif measure not in baseline.metrics:
            # A file of means alone was written elsewhere and cannot be asked for more; our own can be recorded again.
            status: CheckStatus = "undecided" if baseline.per_query else "advisory"
            message = f"{baseline.name} has no {measure}, so it is not compared; record it with {UPDATE}"
            yield Check(rule, measure, status, message, against.evaluation.scores[measure])
        else:
            yield _drop(against, rule, measure, None, against.shared)
            for name, queries in against.slices():
                if len(queries) >= policy.slice_minimum:
                    yield _drop(against, "slice", measure, name, queries)


def _drop(against: BaselineComparison, rule: Rule, measure: str, name: str | None, queries: Sequence[str]) -> Check:
    then, now = against.means(measure, queries)
    tested = against.tested(measure, name)
    label = measure if name is None else f"{measure} of {name}"
    fall = upside(measure) * (then - now)
    degradation = fall / abs(then) if then and not math.isnan(fall) else None
    if math.isnan(fall):
        where = "this run" if math.isnan(now) else against.baseline.name
        status: CheckStatus = "undecided"
        message = f"{label} is not defined in {where}, so it cannot be compared"
    elif against.policy.mode == "relative":
        status, message = _relative(label, then, now, fall, degradation, against)
    else:
        status, message = _statistical(label, then, now, fall, tested, against)
    return Check(
        rule,
        measure,
        status,
        message,
        now,
        _lowest(measure, then, against.policy),
        baseline=then,
        degradation=degradation,
        interval=None if tested is None else (tested.low, tested.high),
        slice=name,
        queries=against.fallen(measure, queries) if status in ("degraded", "fail") else (),
    )


def _lowest(measure: str, then: float, policy: Policy) -> float | None:
    """Return the lowest value that passes whatever chance says; if lower is better, the highest."""
    if math.isnan(then):
        return None
    return then - upside(measure) * (policy.max_drop * abs(then) if policy.mode == "relative" else policy.min_effect)


def _relative(
    label: str, then: float, now: float, fall: float, degradation: float | None, against: BaselineComparison
) -> tuple[CheckStatus, str]:
    name, allowed = against.baseline.name, against.policy.max_drop
    moved = " → ".join(two(then, now))
    if abs(fall) <= EVEN:
        return "pass", f"{label} is what it was in {name} ({now:.4f})"
    if degradation is None:
        status: CheckStatus = "fail" if fall > 0 else "pass"
        return status, f"{label} was 0 in {name}, of which there is no percentage ({moved})"
    # "fell" tells what the number did, "worse" what that means if lower is better.
    verb = "fell" if now < then else "rose"
    if degradation < 0:
        return "pass", f"{label} {verb} by {percent(-degradation, 0)} against {name} ({moved})"
    message = f"{label} {verb} by {percent(degradation, allowed)} against {name} ({moved}; {100 * allowed:g} % allowed)"
    return ("fail" if degradation > allowed + EVEN else "degraded"), message


def _statistical(
    label: str, then: float, now: float, fall: float, tested: MeasureComparison | None, against: BaselineComparison
) -> tuple[CheckStatus, str]:
    policy, name = against.policy, against.baseline.name
    moved, verb = " → ".join(two(then, now)), "fell" if now < then else "rose"
    if tested is None:
        why = f"{name} has no scores per query to pair with this run"
        return "undecided", f"{why}: whether {label} fell ({moved}) cannot be tested; record it again with {UPDATE}"
    if fall <= policy.min_effect + EVEN:
        if fall <= EVEN:
            change = "is what it was in" if fall >= -EVEN else f"{verb} against"
            return "pass", f"{label} {change} {name} ({moved})"
        return (
            "degraded",
            f"{label} {verb} against {name} ({moved}) by no more than {policy.min_effect:g}, which is allowed",
        )
    said = f"{label} {verb} against {name} ({moved})"
    least = fewest_queries(policy.alpha / tested.tests)
    if tested.n < least:
        return "undecided", (
            f"{said}, but {tested.n} queries are too few: no fall over fewer than {least} can be significant; "
            "add queries, or use mode relative"
        )
    if tested.word == "worse":
        return "fail", (f"{said}: significant ({tested.certainty} ≤ {policy.alpha:g}) and more than {policy.min_effect:g}")
    known = math.isfinite(tested.detectable)
    power = f"; {tested.n} queries can detect a difference of {tested.detectable:.3g} (80 % power)" if known else ""
    return "degraded", f"{said}, which may be chance ({tested.certainty}){power}"


def latency_increase_checks(against: BaselineComparison) -> Iterator[Check]:
    """Yield the check of the 95th percentile: advisory unless both sides were measured alike and often enough to decide."""
    evaluation, baseline, limit = against.evaluation, against.baseline, against.policy.latency_increase
    if math.isinf(limit):
        return
    paired = [query for query in evaluation.timings if query in baseline.timings]
    sides = [[arm.timings[query] for query in paired] for arm in (baseline, evaluation)]
    then = latency(chain.from_iterable(sides[0])).p95 if paired else baseline.latency.get("p95", math.nan)
    now = latency(chain.from_iterable(sides[1])).p95 if paired else evaluation.latency.p95
    if math.isnan(then) or math.isnan(now):
        where = baseline.name if math.isnan(then) else "this run"
        yield Check("latency increase", "p95", "advisory", f"{where} has no latency, so p95 is not compared", now)
        return
    moved = " ms → ".join(two(then, now, digits=1)) + " ms"
    if then == 0:
        message = f"p95 was 0 ms in {baseline.name}, so its growth cannot be given in percent ({moved})"
        yield Check("latency increase", "p95", "advisory", message, now, baseline=then)
        return
    increase = (now - then) / then
    allowed = max(limit, against.policy.latency_slack / then)
    words = f"p95 {'grew' if increase > 0 else 'shrank'} by {percent(abs(increase), limit)} against {baseline.name} ({moved}"
    why = _undecidable(against, [sum(map(len, side)) for side in sides])
    interval = None
    status: CheckStatus = "advisory"
    if not why:
        found = _growth(sides, alpha=against.policy.alpha)
        interval = then * found.low, then * found.high
        status = "pass" if increase < allowed - EVEN else "fail" if found.low > allowed else "degraded"
        why = f"{100 * (1 - against.policy.alpha):.4g} % interval {100 * found.low:+.0f} % to {100 * found.high:+.0f} %"
    queries = _slowed(evaluation, baseline) if status == "fail" else ()
    yield Check(
        "latency increase",
        "p95",
        status,
        f"{words}; {why}; {100 * allowed:.3g} % allowed)",
        now,
        (1 + allowed) * then,
        baseline=then,
        degradation=increase,
        interval=interval,
        queries=queries,
    )


def _undecidable(against: BaselineComparison, answers: Sequence[int]) -> str:
    """Return why the growth of a percentile decides nothing here; '' if it can."""
    evaluation, baseline = against.evaluation, against.baseline
    here, there = evaluation.setup.machine, baseline.machine
    if not here or here != there:
        return f"measured on {there or 'an unknown machine'}, now on {here or 'an unknown one'}"
    if evaluation.cached:
        return f"answered from the cache, measured {evaluation.setup.recorded_at}: measure now with --no-cache"
    if evaluation.setup.workers != baseline.workers:
        return f"measured with --workers {baseline.workers}, now {evaluation.setup.workers}"
    if not comparable(evaluation, baseline, against.policy):
        return "the baseline is from another golden set or other documents"
    return too_few_answers(min(answers), len(evaluation.latencies))


def _growth(sides: Sequence[Sequence[tuple[float, ...]]], *, alpha: float) -> PercentileGrowth:
    """Return the growth of p95 over the passes that every query of a side has."""
    before, after = (np.array([times[: min(map(len, side))] for times in side]) for side in sides)
    return percentile_growth(before, after, rng=np.random.default_rng(0), alpha=alpha)


def _slowed(evaluation: Evaluation, baseline: Baseline) -> tuple[str, ...]:
    """Return the queries that grew slower by most; the slowest if the baseline has no latency of single queries."""
    grown = {query: value - baseline.latencies.get(query, 0.0) for query, value in evaluation.latencies.items()}
    order = sorted((-value, query) for query, value in grown.items() if value > 0)
    return tuple(query for _, query in order[:SHOWN])
