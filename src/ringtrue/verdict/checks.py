"""The rules of a gate: completeness, floors and ceilings, and falls against the baseline.

Completeness comes first: before a verdict means anything, every query must be answered and the baseline made of the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np

from ringtrue.errors import nearest
from ringtrue.measures import Measure, Scores, average, latency, members
from ringtrue.records import Floats
from ringtrue.run import Evaluation, Origin
from ringtrue.stats import fewest_queries, percentile_growth
from ringtrue.verdict.baseline import baseline_of
from ringtrue.verdict.numbers import EVEN, SHOWN, percent, reachable, some, two, upside, values_of
from ringtrue.verdict.records import (
    LATENCY_ANSWERS,
    Baseline,
    Check,
    CheckStatus,
    Comparison,
    MeasureComparison,
    Policy,
    Rule,
    UsualFloor,
    split_slice,
)

UPDATE = "`ringtrue baseline update`"


def completeness_checks(evaluation: Evaluation, baseline: Baseline | None, policy: Policy) -> Iterator[Check]:
    """Yield an undecided check for everything that is missing; nothing if all is there."""
    asked, failed, scored = len(evaluation.queries), evaluation.failures, len(evaluation.scores.query_ids)
    for first, why in list(failed.items())[:1]:
        message = f"{len(failed)} of {asked} queries got no answer, such as {first} ({why}); fix the search and evaluate again"
        yield _missing("queries", message, asked - len(failed), asked, failed)
    if scored < policy.minimum_queries:
        message = (
            f"{scored} scored queries are too few for a verdict, {policy.minimum_queries} are needed; add queries to the set, "
            "or lower minimum_queries under [gate]"
        )
        yield _missing("queries", message, scored, policy.minimum_queries)
    if baseline is None:
        return
    if other_golden(evaluation, baseline):
        now, then = (f"{one.version} ({one.split} queries)" for one in (evaluation.setup.golden, baseline.golden))
        which = f"{then}, this run is of {now}" if now != then else f"another state or selection of {then}"
        message = (
            f"{baseline.name} was recorded on {which}: the two cannot be compared; evaluate on the same set, "
            f"or take this one as the new standard with {UPDATE}, which compares the queries that did not change"
        )
        yield _missing("golden set", message)
        return
    if policy.same_corpus and other_corpus(evaluation, baseline):
        message = (
            f"{baseline.name} searched other documents "
            f"(corpus {str(baseline.corpus)[:8]}, now {str(evaluation.setup.corpus)[:8]}); "
            f"search the same, record them with {UPDATE}, or set same_corpus = false under [gate]"
        )
        yield _missing("corpus", message)
    lacking = lacking_queries(evaluation, baseline)
    if lacking:
        known = len(baseline.per_query)
        message = (
            f"{len(lacking)} of the {known} queries of {baseline.name} are not in this run: {some(lacking)}; "
            f"evaluate all of them, or record the new selection with {UPDATE}"
        )
        yield _missing("queries", message, known - len(lacking), known, lacking)


def no_baseline_checks(evaluation: Evaluation, policy: Policy, *, failed: bool) -> Iterator[Check]:
    """Yield an undecided check if the policy has rules that compare with a baseline: what was not compared has not passed.

    A run that ``failed`` its floors or ceilings is not offered as the baseline.
    """
    rules = list(policy.drop_measures) + ([] if math.isinf(policy.latency_increase) else ["the growth of p95"])
    if policy.require_baseline and rules:
        run = f" --run {evaluation.run_dir}" if evaluation.run_dir is not None else ""
        failing = "this run breaks a floor or ceiling: fix that first, or record a run that passes with"
        cure = (
            f"{failing} `ringtrue baseline update --run FOLDER`"
            if failed
            else f"record one with `ringtrue baseline update{run}`"
        )
        message = (
            f"no baseline, so {', '.join(rules)} cannot be compared; {cure}, or decide by floors and ceilings alone "
            "with require_baseline = false under [gate]"
        )
        yield _missing("baseline", message)


def undefined_checks(evaluation: Evaluation, baseline: Baseline, policy: Policy) -> Iterator[Check]:
    """Yield an undecided check for every gated measure that lost its value for queries: their mean is over easier ones now.

    A share of an empty answer, for one, is not a number; a search that falls silent would seem to get better.
    """
    for name in policy.measures:
        if name not in baseline.metrics or name not in evaluation.metrics:
            continue
        now = dict(zip(evaluation.scores.query_ids, evaluation.scores.of(name).tolist(), strict=True))
        had = [query for query, values in baseline.per_query.items() if not math.isnan(values.get(name, math.nan))]
        lost = [query for query in had if query in now and math.isnan(now[query])]
        if lost:
            message = (
                f"{name} has no value for {len(lost)} queries that have one in {baseline.name}, such as {some(lost)}; "
                "see why they got no answer, or gate a measure that counts an empty one"
            )
            yield _missing(name, message, len(had) - len(lost), len(had), lost)


def other_golden(evaluation: Evaluation, baseline: Baseline) -> bool:
    """True if both name their golden set and the contents differ."""
    return _differ(evaluation.setup.golden, baseline.golden)


def _differ(now: Origin, then: Origin) -> bool:
    return bool(then.content_hash) and then.content_hash != now.content_hash


def paired_queries(old: Baseline, new: Baseline) -> list[str]:
    """Return the queries over which two baselines can be compared: those of both, with the same text and judgments."""
    shared = [query for query in new.per_query if query in old.per_query]
    if not _differ(new.golden, old.golden):
        return shared
    if not old.judged and old.golden.id == new.golden.id:
        return shared  # recorded before the file kept what was judged
    return [query for query in shared if old.judged.get(query) == new.judged[query]]


def pairing_note(old: Baseline, new: Baseline) -> str:
    """Return over which queries the two are compared; '' if over all of both."""
    paired, changed = len(paired_queries(old, new)), _differ(new.golden, old.golden)
    if not old.per_query or (not changed and paired == len(old.per_query)):
        return ""
    over = f"compared over {paired} of the {len(old.per_query)} queries of {old.name}"
    if not changed:
        return f"{over}: those that this run answered, too; what was recorded over all is in `ringtrue baseline show`"
    return f"the golden set changed since {old.name}; {over}: those in both sets" + (", unchanged" if old.judged else "")


def other_corpus(evaluation: Evaluation, baseline: Baseline) -> bool:
    """True if both know their documents and these differ."""
    now = evaluation.setup.corpus
    return None not in (now, baseline.corpus) and now != baseline.corpus


def comparable(evaluation: Evaluation, baseline: Baseline, policy: Policy) -> bool:
    """True if a drop against the baseline can only come from the search."""
    return not other_golden(evaluation, baseline) and not (policy.same_corpus and other_corpus(evaluation, baseline))


def lacking_queries(evaluation: Evaluation, baseline: Baseline) -> list[str]:
    """Return the queries of a baseline that were not asked in this run."""
    there = {*evaluation.scores.query_ids, *evaluation.failures}
    return [query for query in baseline.per_query if query not in there]


def _missing(
    what: str, message: str, current: float = math.nan, wanted: float | None = None, queries: Iterable[str] = ()
) -> Check:
    return Check("completeness", what, "undecided", message, current, wanted, queries=tuple(queries)[:SHOWN])


HICCUPS = 0.01
"""So improbable must many slow answers be for few timed answers to prove that a percentile is above its ceiling."""


def floor_checks(evaluation: Evaluation, policy: Policy, problems: Mapping[str, str]) -> Iterator[Check]:
    """Yield a check for every floor; ``problems`` says why a measure could not be scored."""
    for measure, floor in policy.floors.items():
        rule: Rule = "constitutional" if Measure.parse(measure).name == "Constitutional" else "floor"
        yield _floor(evaluation, measure, floor, problems, rule=rule)
    for name, floors in policy.slices.items():
        field, value = split_slice(name)
        slices = members(evaluation.scores.facts, field, evaluation.scores.query_ids)
        for measure, floor in floors.items():
            if value in slices:
                yield _floor(evaluation, measure, floor, problems, rule="slice", name=name, queries=slices[value])
            else:
                known = [f"{field}={one}" for one in slices]
                message = f"no query is in the slice {name}; did you mean {nearest(name, known)}?"
                yield Check("slice", measure, "undecided", message, math.nan, floor, slice=name)


def _floor(
    evaluation: Evaluation,
    measure: str,
    floor: float,
    problems: Mapping[str, str],
    *,
    rule: Rule,
    name: str | None = None,
    queries: Sequence[str] | None = None,
) -> Check:
    label = measure if name is None else f"{measure} of {name}"
    if measure in problems:
        return Check(rule, measure, "undecided", problems[measure], math.nan, floor, slice=name)
    scores = evaluation.scores
    asked = list(scores.query_ids if queries is None else queries)
    values = values_of(scores, measure, asked)
    current = average(Measure.parse(measure), values)
    sign = upside(measure)
    interval = evaluation.intervals.get(measure) if queries is None else None

    def check(status: CheckStatus, message: str, guilty: Sequence[str] = ()) -> Check:
        return Check(rule, measure, status, message, current, floor, interval=interval, slice=name, queries=tuple(guilty))

    if math.isnan(current):
        return check("undecided", f"{label} is not defined for any query, so nothing can be said about its floor of {floor:g}")
    if sign * (current - floor) >= -EVEN:
        words, than = ("at or above its floor", " ≥ ") if sign > 0 else ("at or below its ceiling", " ≤ ")
        return check("pass", f"{label} {words}: {than.join(two(current, floor))}")
    best = reachable(evaluation, measure, queries=None if queries is None else set(queries))
    if best < floor - EVEN:
        most, wanted = two(best, floor)
        if isinstance(floor, UsualFloor):
            message = (
                f"{label} cannot reach the default floor of {wanted}: the judgments allow at most {most} (now {current:.4f})"
            )
            return check("advisory", f"{message}; write floors of your own under [gate.floors]")
        return check(
            "undecided",
            f"{label} cannot reach its floor of {wanted}: the judgments allow at most {most} (now {current:.4f}); "
            "lower the floor, take it out of [gate.floors], or judge more documents",
        )
    short = [(sign * value, query) for value, query in zip(values.tolist(), asked, strict=True) if sign * (value - floor) < 0]
    words, than = ("below its floor", " < ") if sign > 0 else ("above its ceiling", " > ")
    message = f"{label} {words}: {than.join(two(current, floor))}"
    return check("fail", message, [query for _, query in sorted(short)[:SHOWN]])


def latency_checks(evaluation: Evaluation, policy: Policy) -> Iterator[Check]:
    """Yield a check for every ceiling; if no latency was measured, one that says so.

    With few timed answers a single hiccup moves a percentile. Then a ceiling fails only if more answers are slower than it
    than chance explains (1 in 100); otherwise the check is advisory.
    """
    if policy.latency and not evaluation.latencies:
        yield Check("latency", "latency", "advisory", "no latency was measured, so no ceiling was checked", math.nan)
        return
    times = list(chain.from_iterable(evaluation.timings.values()))
    for percentile, ceiling in policy.latency.items():
        current = float(getattr(evaluation.latency, percentile))
        numbers = two(current, ceiling, digits=1)
        if current <= ceiling:
            message = f"{percentile} at or below its ceiling: {numbers[0]} ms ≤ {numbers[1]} ms"
            yield Check("latency", percentile, "pass", message, current, ceiling)
            continue
        message = f"{percentile} above its ceiling: {numbers[0]} ms > {numbers[1]} ms"
        over = sum(value > ceiling for value in times)
        few = _too_few_answers(len(times), len(evaluation.latencies))
        # How probable so many slow answers are if the true percentile is at its ceiling.
        share, counts = 1 - float(percentile[1:]) / 100, range(over, len(times) + 1)
        chance = sum(math.comb(len(times), n) * share**n * (1 - share) ** (len(times) - n) for n in counts) if few else 0.0
        if chance >= HICCUPS:
            yield Check("latency", percentile, "advisory", f"{message}, but only {over} were slower ({few})", current, ceiling)
            continue
        slow = sorted((-value, query) for query, value in evaluation.latencies.items() if value > ceiling)
        queries = tuple(query for _, query in slow[:SHOWN])
        yield Check("latency", percentile, "fail", message, current, ceiling, queries=queries)


def _too_few_answers(answers: int, queries: int) -> str:
    """Return why so many timed answers do not decide about a percentile, with the cure; '' if they do."""
    if answers >= LATENCY_ANSWERS:
        return ""
    passes = math.ceil(LATENCY_ANSWERS / queries)
    return f"{answers} timed answers; {LATENCY_ANSWERS} needed to decide: --passes {passes}"


def paired_means(then: Scores, now: Scores, measure: str, queries: Sequence[str]) -> tuple[float, float]:
    """Return a measure on both sides, over those of the queries that have a value on both."""
    sides = values_of(then, measure, queries), values_of(now, measure, queries)
    both = ~np.isnan(sides[0]) & ~np.isnan(sides[1])
    parsed = Measure.parse(measure)
    return average(parsed, sides[0][both]), average(parsed, sides[1][both])


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
        """The queries that both have with the same judgments, in order of their ids."""
        return paired_queries(self.baseline, baseline_of(self.evaluation))

    def values(self, measure: str, queries: Sequence[str]) -> tuple[Floats, Floats]:
        """Return the values of a measure then and now, for the same queries."""
        return values_of(self.baseline.scores, measure, queries), values_of(self.evaluation.scores, measure, queries)

    def means(self, measure: str, queries: Sequence[str]) -> tuple[float, float]:
        """Return the measure then and now, over the same queries; as recorded if the baseline has no scores per query."""
        if not self.baseline.per_query:
            return self.baseline.metrics[measure], self.evaluation.scores[measure]
        return paired_means(self.baseline.scores, self.evaluation.scores, measure, queries)

    def fallen(self, measure: str, queries: Sequence[str]) -> tuple[str, ...]:
        """Return the queries that lost most, most first; equal losses in order of their ids."""
        then, now = self.values(measure, queries)
        lost = (upside(measure) * (then - now)).tolist()
        guilty = sorted((-loss, query) for loss, query in zip(lost, queries, strict=True) if loss > EVEN)
        return tuple(query for _, query in guilty[:SHOWN])

    def slices(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the name and the shared queries of every slice that the policy compares, however small."""
        for field in self.evaluation.setup.golden.slices if self.policy.slice_drop else ():
            for value, queries in members(self.evaluation.scores.facts, field, self.shared).items():
                yield f"{field}={value}", queries

    def tested(self, measure: str, name: str | None) -> MeasureComparison | None:
        """Return what the paired tests say about a measure, in all or in one slice; None if it was not tested."""
        if self.comparison is None:
            return None
        field, _, value = (name or "").partition("=")
        return (self.comparison.slices.get(field, {}).get(value, {}) if name else self.comparison.measures).get(measure)


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
    # The lowest value that passes whatever chance says; if lower is better, the highest.
    allowed = against.policy.max_drop * abs(then) if against.policy.mode == "relative" else against.policy.min_effect
    return Check(
        rule,
        measure,
        status,
        message,
        now,
        None if math.isnan(then) else then - upside(measure) * allowed,
        baseline=then,
        degradation=degradation,
        interval=None if tested is None else (tested.low, tested.high),
        slice=name,
        queries=against.fallen(measure, queries) if status in ("degraded", "fail") else (),
    )


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
    said = f"{label} {verb} against {name} ({moved})"
    if fall <= EVEN:
        return "pass", said if fall < -EVEN else f"{label} is what it was in {name} ({moved})"
    if fall <= policy.min_effect + EVEN:
        return "degraded", f"{said} by no more than {policy.min_effect:g}, which is allowed"
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
    slack = f", which is latency_slack = {against.policy.latency_slack:g} ms" if allowed > limit else ""
    words = f"p95 {'grew' if increase > 0 else 'shrank'} by {percent(abs(increase), limit)} against {baseline.name} ({moved}"
    why = _undecidable(against, [sum(map(len, side)) for side in sides])
    interval = None
    status: CheckStatus = "advisory"
    if not why:
        # Over the passes that every query of a side has.
        before, after = (np.array([times[: min(map(len, side))] for times in side]) for side in sides)
        found = percentile_growth(before, after, rng=np.random.default_rng(0), alpha=against.policy.alpha)
        interval = then * found.low, then * found.high
        status = "pass" if increase < allowed - EVEN else "fail" if found.low > allowed else "degraded"
        why = f"{100 * (1 - against.policy.alpha):.4g} % interval {100 * found.low:+.0f} % to {100 * found.high:+.0f} %"
    # Those that grew slower by most; the slowest if the baseline has no latency of single queries.
    grown = {query: value - baseline.latencies.get(query, 0.0) for query, value in evaluation.latencies.items()}
    slowed = sorted((-value, query) for query, value in grown.items() if value > 0) if status == "fail" else []
    yield Check(
        "latency increase",
        "p95",
        status,
        f"{words}; {why}; {100 * allowed:.3g} % allowed{slack})",
        now,
        (1 + allowed) * then,
        baseline=then,
        degradation=increase,
        interval=interval,
        queries=tuple(query for _, query in slowed[:SHOWN]),
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
    return _too_few_answers(min(answers), len(evaluation.latencies))
