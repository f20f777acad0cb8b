"""Advice about the questions and their judgments: what they cannot show yet, and where they are answered badly."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ringtrue.brief import counted
from ringtrue.measures import Measure
from ringtrue.report.formatting import number, portion, signed_span
from ringtrue.report.noise import unpaired
from ringtrue.report.records import Recommendation, Report
from ringtrue.report.sentences import POWER, comparison_of, primary, same, terms
from ringtrue.report.tables import slice_fields

ALPHA = 0.05
SLICE_QUERIES = 10
"""Below this a slice's mean says little, and its spread is unknown."""
SLICE_GAP = 0.10
"""15 questions a slice detect about this much."""
JUDGED_ENOUGH = 0.5
"""Below this most of what a reader sees was never judged, and measures describe the judges more than the search."""
JUDGED_GAP = 0.10
"""The better-judged of two systems is favoured by about its lead in judged documents."""
FEW_QUERIES = 50
"""A bootstrap interval of fewer queries is too narrow."""
WORTH_FINDING, USUAL_SPREAD = 0.05, 0.15
"""The difference a set should detect, and the usual spread of paired differences."""
OVERFIT_GAP = 0.05
"""The difference that matters, between the part that was tuned on and the part that was not."""


def weak_slice(report: Report) -> Iterator[Recommendation]:
    """A kind of question that is far below all others, beyond noise."""
    evaluation, name = report.evaluation, primary(report)
    scores = evaluation.scores
    values = scores.of(name)
    sign = -1.0 if Measure.parse(name).definition.lower_is_better else 1.0
    groups = []
    for field in slice_fields(evaluation):
        members: dict[str, list[int]] = {}
        for index, query_id in enumerate(scores.query_ids):
            value = scores.facts.get(query_id, {}).get(field)
            for one in value if isinstance(value, list | tuple | set | frozenset) else [value]:
                members.setdefault(str(one), []).append(index)
        groups += [(field, value, rows) for value, rows in members.items() if SLICE_QUERIES <= len(rows) < len(values)]
    for field, value, rows in groups:
        rest = np.setdiff1d(np.arange(len(values)), rows)
        # Every slice looked at is one more chance to be fooled.
        gap = unpaired(sign * values[rows], sign * values[rest], alpha=ALPHA / len(groups))
        if gap.mean <= -SLICE_GAP and gap.high < 0:
            here = float(np.nanmean(values[rows]))
            worst = sorted(rows, key=lambda row: math.inf if math.isnan(values[row]) else sign * values[row])
            yield Recommendation(
                "weak-slice",
                f"{field}={value} is far below the rest: {name} {number(here)} over {counted(len(rows), 'query')}, "
                f"{number(-gap.mean)} worse than all others. Look at these questions first: label more of them, or tune "
                "for them.",
                {"slice": f"{field}={value}", "queries": len(rows), name: here, "gap": gap.mean, "high": gap.high},
                tuple(scores.query_ids[row] for row in worst[:10]),
            )


def judge_more(report: Report) -> Iterator[Recommendation]:
    """Too few of the documents shown were ever judged, or fewer than on the other side."""
    evaluation, other = report.evaluation, report.other
    # If each question asks for one document, unjudged ones are known to be wrong.
    if evaluation.setup.golden.profile == "known-item":
        return
    share = evaluation.scores.judged_share
    lead = other.scores.judged_share - share if other is not None else math.nan
    if share < JUDGED_ENOUGH or lead >= JUDGED_GAP:
        evidence: dict[str, float | str] = {"Judged@10": share, "unjudged share": 1 - share}
        beside = ""
        if other is not None and lead >= JUDGED_GAP:
            evidence["Judged@10 of the other"] = other.scores.judged_share
            beside = f", for {other.name} it is {portion(1 - other.scores.judged_share)}, which favours that one"
        worst = [evaluation.scores.query_ids[row] for row in np.argsort(evaluation.scores.judged, kind="stable")[:10]]
        yield Recommendation(
            "judge-more",
            f"{portion(1 - share)} of the first ten documents were never judged and count as not relevant{beside}. "
            "Judge them (`ringtrue golden pool` lists them), else the measures punish what is new.",
            evidence,
            tuple(worst),
        )


def more_queries(report: Report) -> Iterator[Recommendation]:
    """Too few questions to see a difference that matters."""
    comparison, evaluation = comparison_of(report), report.evaluation
    name = primary(report)
    found = comparison.measures.get(name) if comparison is not None else None
    if comparison is not None and found is not None and found.word == "not enough evidence" and not same(comparison):
        if found.n > 1 and found.detectable > WORTH_FINDING:
            yield _too_few(name, found.n, found.detectable, comparison.alpha, found.tests)
    elif comparison is None and 1 < (n := evaluation.scores.summary(name).count) < FEW_QUERIES:
        yield _too_few(name, n, None, ALPHA, 1)


def _too_few(name: str, n: int, detectable: float | None, alpha: float, tests: int) -> Recommendation:
    """Return the advice; ``detectable`` is what a comparison of these queries finds, None if none was made."""
    from ringtrue.stats import fewest_queries, minimum_detectable_effect, queries_to_settle

    unit = minimum_detectable_effect(n=n, sd=1.0, alpha=alpha / tests, power=POWER)
    # The spread is that of these very pairs: the one with which so many queries find so much.
    seen = detectable is not None and math.isfinite(detectable)
    spread, whose = (
        (detectable / unit, "the spread of differences seen here")
        if detectable is not None and seen
        else (USUAL_SPREAD, "a usual spread of differences")
    )
    if detectable is None:
        widest = 1.0 if Measure.parse(name).definition.bounded else math.inf
        detectable = unit * spread if n >= fewest_queries(alpha / tests) and unit * spread <= widest else math.inf
    more = queries_to_settle(n=n, sd=spread, difference=WORTH_FINDING, alpha=alpha, power=POWER, tests=tests)
    if math.isfinite(detectable):
        finds = f"can detect a difference in {name} of {number(detectable, 3)} or more, but {WORTH_FINDING} would matter"
    else:
        finds = f"are too few to show any difference in {name}; {WORTH_FINDING} would matter"
    return Recommendation(
        "more-queries",
        f"{counted(n, 'query')} {finds}. About {counted(more or 0, 'more query')} would show that ({terms(alpha, tests)}; with "
        f"{whose}, {number(spread, 3)}).",
        {
            "queries": n, "detectable": detectable, "more": more or 0, "spread": spread, "alpha": alpha, "power": POWER,
            "tests": tests,
        },
    )  # fmt: skip


def overfitting(report: Report) -> Iterator[Recommendation]:
    """The part that was tuned on does better than the part that was kept away."""
    if report.other is None:
        return
    sides = {run.setup.golden.split: run for run in (report.evaluation, report.other)}
    name = primary(report)
    if set(sides) != {"tuning", "held_out"}:
        return
    tuned, kept = sides["tuning"], sides["held_out"]
    same = tuned.setup.golden.id == kept.setup.golden.id and tuned.setup.fingerprint == kept.setup.fingerprint
    if not same or Measure.parse(name) not in tuned.scores.measures or Measure.parse(name) not in kept.scores.measures:
        return
    sign = -1.0 if Measure.parse(name).definition.lower_is_better else 1.0
    gap = unpaired(sign * tuned.scores.of(name), sign * kept.scores.of(name), alpha=ALPHA)
    if gap.mean >= OVERFIT_GAP and gap.low > 0:
        yield Recommendation(
            "overfitting",
            f"{name} is {number(tuned.metrics[name])} on the tuning part and {number(kept.metrics[name])} on the held-out "
            f"part, {number(gap.mean)} worse (interval {signed_span(gap.low, gap.high)}): the settings fit the "
            "questions they were tuned on. Trust the held-out number, and tune fewer parameters or on more questions.",
            {"tuning": tuned.metrics[name], "held-out": kept.metrics[name], "gap": gap.mean, "low": gap.low},
        )
