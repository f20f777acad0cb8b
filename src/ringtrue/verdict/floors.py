"""The absolute rules: a mean below its floor, in all or in one slice; a latency above its ceiling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from ringtrue.errors import nearest
from ringtrue.measures import Measure, average
from ringtrue.run import Evaluation
from ringtrue.verdict.policy import LATENCY_ANSWERS, Policy, split_slice
from ringtrue.verdict.reachable import reachable
from ringtrue.verdict.records import Check, CheckStatus, Rule
from ringtrue.verdict.slices import members, values_of
from ringtrue.verdict.wording import EVEN, SHOWN, two, upside

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
        few = too_few_answers(len(times), len(evaluation.latencies))
        if few and _chance(over, len(times), 1 - float(percentile[1:]) / 100) >= HICCUPS:
            yield Check("latency", percentile, "advisory", f"{message}, but only {over} were slower ({few})", current, ceiling)
            continue
        slow = sorted((-value, query) for query, value in evaluation.latencies.items() if value > ceiling)
        queries = tuple(query for _, query in slow[:SHOWN])
        yield Check("latency", percentile, "fail", message, current, ceiling, queries=queries)


def too_few_answers(answers: int, queries: int) -> str:
    """Return why so many timed answers do not decide about a percentile, with the cure; '' if they do."""
    if answers >= LATENCY_ANSWERS:
        return ""
    passes = math.ceil(LATENCY_ANSWERS / queries)
    return f"{answers} timed answers; {LATENCY_ANSWERS} needed to decide: --passes {passes}"


def _chance(over: int, answers: int, share: float) -> float:
    """Return how probable so many slow answers are if the true percentile is at its ceiling."""
    return sum(
        math.comb(answers, count) * share**count * (1 - share) ** (answers - count) for count in range(over, answers + 1)
    )
