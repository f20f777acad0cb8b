"""The rows of a report's tables as values, which every format lays out in its own way."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from ringtrue.measures import Contribution, Latency, Measure, Scores
from ringtrue.records import Floats, Query
from ringtrue.report.formatting import PERCENTILES, portion, signed, signed_span
from ringtrue.report.records import Report
from ringtrue.report.sentences import (
    BY_WEIGHT,
    against_baseline,
    comparison_of,
    depth,
    lower_is_better,
    place,
    primary,
    same_golden,
    says,
)
from ringtrue.run import NOT_CACHED, REPLAYED, Evaluation, Loss
from ringtrue.verdict import Check


@dataclass(frozen=True)
class Difference:
    """How much better one side is than the other, with the interval of the mean; nan if it cannot be known."""

    n: int
    mean: float
    low: float
    high: float


def paired(before: Scores, after: Scores, measure: str, *, alpha: float = 0.05) -> Difference | None:
    """Return how much better ``after`` is over shared queries, above 0 being better; None if either lacks the measure."""
    wanted = Measure.parse(measure)
    if wanted not in before.measures or wanted not in after.measures:
        return None
    from ringtrue.stats import paired_t

    a, b = (dict(zip(scores.query_ids, scores.of(wanted).tolist(), strict=True)) for scores in (before, after))
    gains = np.array([b[query_id] - a[query_id] for query_id in a if query_id in b], np.float64)
    gains = gains[~np.isnan(gains)]
    if len(gains) < 2:
        return Difference(len(gains), math.nan, math.nan, math.nan)
    if wanted.definition.lower_is_better:
        gains = -gains
    test = paired_t(gains, alpha=alpha)
    return Difference(len(gains), float(test.mean[0]), float(test.low[0]), float(test.high[0]))


def unpaired(one: Floats, other: Floats, *, alpha: float = 0.05) -> Difference:
    """Return the mean of ``one`` − that of ``other`` with Welch's interval: two groups of queries may differ in spread."""
    one, other = one[~np.isnan(one)], other[~np.isnan(other)]
    n = len(one) + len(other)
    if min(len(one), len(other)) < 2:
        return Difference(n, math.nan, math.nan, math.nan)
    from scipy import special  # type: ignore[import-untyped, unused-ignore]

    mean = float(one.mean() - other.mean())
    errors = [float(group.var(ddof=1)) / len(group) for group in (one, other)]
    error = math.sqrt(sum(errors))
    if error == 0:
        return Difference(n, mean, mean, mean)
    freedom = sum(errors) ** 2 / sum(part**2 / (len(group) - 1) for part, group in zip(errors, (one, other), strict=True))
    reach = -float(special.stdtrit(freedom, alpha / 2)) * error
    return Difference(n, mean, mean - reach, mean + reach)


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


WHY_LOST = {
    "not in corpus": "the index does not hold it",
    "not in any list": "not among the hits asked for",
    "below k": "found, but further down than k",
    "cut by fusion": "a channel has it in its list, but fusion not among the first k",
    "demoted by rerank": "the reranker moved it out of the first k",
    "cut by threshold": "its score fell below the threshold",
    "wrong chunk": "another passage of its document answered",
}
"""Where a relevant document can be lost, in the order in which it passes the stages."""
STAGES = tuple(WHY_LOST)
WELL_JUDGED = 0.8
"""Below this share of judged hits the next step is to judge more."""
Way = Literal["same", "up", "down", "new", "gone"]
QUALITY = ("floor", "drop", "significant drop", "constitutional")
"""The rules that look at a measure as a whole."""


@dataclass(frozen=True)
class MeasureLine:
    """One measure or latency percentile with its checks and its comparison."""

    measure: str
    current: float
    interval: tuple[float, float] | None
    baseline: float | None
    threshold: float | None
    status: str | None
    """The gravest status of its checks; None if no rule applies to it."""
    word: str | None
    """The word of the comparison, if there is one."""
    diff_interval: tuple[float, float] | None
    says: str | None = None
    """The word for people."""

    @property
    def diff(self) -> float:
        """Current − baseline; nan without a baseline."""
        return math.nan if self.baseline is None else self.current - self.baseline

    @property
    def change(self) -> float:
        """The difference as a share of the baseline; nan if that is 0 or unknown."""
        return self.diff / self.baseline if self.baseline else math.nan


def measure_lines(report: Report) -> tuple[MeasureLine, ...]:
    """Return a line for every measure that was scored or judged, then the known latency percentiles."""
    evaluation = report.evaluation
    baseline = report.baseline if same_golden(report) else None
    checks: dict[str, list[Check]] = {}
    for check in report.verdict.checks if report.verdict else ():
        # A check of completeness, or of a latency that was not measured, has no line.
        if check.slice is None and (check.rule in QUALITY or check.measure in PERCENTILES):
            checks.setdefault(check.measure, []).append(check)
    latency = evaluation.latency
    current = {name: group[0].current for name, group in checks.items()} | evaluation.metrics
    current |= {name: getattr(latency, name) for name in PERCENTILES}
    order = [name for name in dict.fromkeys([*evaluation.metrics, *current]) if name not in PERCENTILES]
    order += [name for name in PERCENTILES if latency.count or name in checks]
    known = {**baseline.metrics, **baseline.latency} if baseline else {}
    return tuple(_line(name, current[name], checks.get(name, []), known, report) for name in order)


def _line(name: str, current: float, checks: list[Check], known: Mapping[str, float], report: Report) -> MeasureLine:
    comparison = against_baseline(report)
    found = comparison.measures.get(name) if comparison else None
    # The paired values come first: a query without an answer is missing from both sides there.
    before = [*(check.baseline for check in checks), found.a if found else None]
    if comparison and comparison.latency and name in PERCENTILES:
        before.append(getattr(comparison.latency, name)[0])
    before.append(known.get(name))
    limits = [check.threshold for check in checks if check.rule in ("floor", "latency", "constitutional")]
    statuses = {check.status for check in checks}
    return MeasureLine(
        measure=name,
        current=current,
        interval=report.evaluation.intervals.get(name),
        baseline=next((value for value in before if value is not None and not math.isnan(value)), None),
        threshold=next((limit for limit in limits if limit is not None), None),
        status=next((status for status in BY_WEIGHT if status in statuses), None),
        word=found.word if found else None,
        diff_interval=(found.low, found.high) if found else None,
        says=says(found) if found else None,
    )


@dataclass(frozen=True)
class RankedDocument:
    """A document in an answer, or missing from it: where it stands, how it was judged, and its ranks along the way."""

    doc_id: str
    title: str
    grade: int | None
    """None if nobody judged it."""
    rank: int | None
    """None if the answer does not hold it."""
    trail: tuple[tuple[str, int], ...] = ()
    stage: str = ""
    """Which stage lost it, if it is relevant and missing among the first hits."""
    way: Way = "same"
    """How it stands on the other side, if two answers are side by side."""
    steps: int = 0
    """How far it moved, if both sides have it."""

    @property
    def why(self) -> str:
        """What it means that this stage lost it."""
        return WHY_LOST[self.stage]


@dataclass(frozen=True, eq=False)
class QueryLine:
    """One query of a run: what came back, what should have, and what it scored."""

    query: Query
    evaluation: Evaluation = field(repr=False)
    losses: tuple[Loss, ...]
    """Relevant documents that are missing among the first hits."""
    delta: float | None = None
    """What the comparison's first measure gained on this query; None without a comparison."""

    @property
    def query_id(self) -> str:
        return self.query.query_id

    @property
    def text(self) -> str:
        return self.query.text

    @property
    def values(self) -> Mapping[str, float]:
        """Its scores; empty if it got no answer, and nan where a measure is undefined."""
        return self.evaluation.scores.per_query.get(self.query_id, {})

    @property
    def latency_ms(self) -> float | None:
        return self.evaluation.ranking(self.query_id).latency_ms

    @property
    def error(self) -> str | None:
        return self.evaluation.ranking(self.query_id).error

    @cached_property
    def places(self) -> dict[str, RankedDocument]:
        """The documents of the answer in their order, each once, at its best rank."""
        grades, titles = self.evaluation.grades.get(self.query_id, {}), self.evaluation.titles
        found: dict[str, RankedDocument] = {}
        for hit in self.evaluation.ranking(self.query_id).hits:
            if hit.doc_id not in found:
                # The channels come first, then what was done with their lists.
                trail = {**hit.channels, **{stage.name: stage.rank for stage in hit.stages}}
                title, grade = titles.get(hit.doc_id, ""), grades.get(hit.doc_id)
                found[hit.doc_id] = RankedDocument(hit.doc_id, title, grade, len(found) + 1, tuple(trail.items()))
        return found

    @cached_property
    def retrieved(self) -> tuple[RankedDocument, ...]:
        return tuple(self.places.values())

    @cached_property
    def judged(self) -> tuple[RankedDocument, ...]:
        """The judged documents, the highest grade first; rank None if not returned."""
        grades = sorted(self.evaluation.grades.get(self.query_id, {}).items(), key=lambda pair: (-pair[1], pair[0]))
        titles = self.evaluation.titles
        return tuple(self.places.get(doc) or RankedDocument(doc, titles.get(doc, ""), grade, None) for doc, grade in grades)

    @property
    def expected(self) -> tuple[RankedDocument, ...]:
        """The relevant ones among the judged documents."""
        least = self.evaluation.setup.golden.relevance_threshold
        return tuple(one for one in self.judged if one.grade is not None and one.grade >= least)

    @cached_property
    def lost(self) -> tuple[RankedDocument, ...]:
        """The losses as documents, the best judged first, each with the stage that lost it."""
        titles = self.evaluation.titles
        return tuple(
            RankedDocument(one.doc_id, titles.get(one.doc_id, ""), one.grade, one.rank, tuple(one.ranks.items()), one.stage)
            for one in sorted(self.losses, key=lambda loss: (-loss.grade, loss.doc_id))
        )


def query_lines(
    evaluation: Evaluation,
    measure: str,
    *,
    sort: str = "worst",
    text: str = "",
    deltas: Mapping[str, float] = MappingProxyType({}),
) -> tuple[QueryLine, ...]:
    """Return the queries that hold a text: the failed and worst first, or 'best', 'id', 'slow' or 'lost' first."""
    losses: dict[str, list[Loss]] = {}
    for loss in evaluation.losses:
        losses.setdefault(loss.query_id, []).append(loss)
    lines = [
        QueryLine(query, evaluation, tuple(losses.get(query.query_id, ())), deltas.get(query.query_id))
        for query in evaluation.queries
        if text.casefold() in f"{query.query_id} {query.text}".casefold()
    ]
    return tuple(sorted(lines, key=_order(measure, sort)))


def _order(measure: str, sort: str) -> Callable[[QueryLine], tuple[Any, ...]]:
    way = -1 if lower_is_better(measure) != (sort == "best") else 1

    def by_value(line: QueryLine) -> tuple[Any, ...]:
        # A query that failed is the worst there is; one whose score is undefined is neither good nor bad and comes last.
        value = line.values.get(measure, math.nan)
        undefined = math.isnan(value)
        return (line.error is None) != (sort == "best"), undefined, 0.0 if undefined else way * value, line.query_id

    keys: dict[str, Callable[[QueryLine], tuple[Any, ...]]] = {
        "id": lambda line: (line.query_id,),
        "slow": lambda line: (line.latency_ms is None, -(line.latency_ms or 0.0), line.query_id),
        "lost": lambda line: (-len(line.losses), line.query_id),
    }
    return keys.get(sort, by_value)


def report_lines(report: Report) -> tuple[QueryLine, ...]:
    """Return the queries of a report's run, the worst by its primary measure first, with what each of them gained."""
    name, comparison = primary(report), comparison_of(report)
    compared = comparison.measures.get(name) if comparison else None
    return query_lines(report.evaluation, name, deltas=compared.deltas if compared else {})


def missing(line: QueryLine, k: int) -> tuple[RankedDocument, ...]:
    """Return the relevant documents that are not among the first k."""
    return tuple(one for one in line.expected if one.rank is None or one.rank > k)


def moved(report: Report, lines: tuple[QueryLine, ...]) -> tuple[QueryLine, ...]:
    """Return the questions that got worse than on the other side, the deepest fall first."""
    sign = -1 if lower_is_better(primary(report)) else 1
    fallen = [line for line in lines if line.delta is not None and sign * line.delta < 0]
    return tuple(sorted(fallen, key=lambda line: (sign * (line.delta or 0.0), line.query_id)))


def failing(report: Report) -> dict[str, tuple[str, ...]]:
    """Return the questions that failed, with the reasons: no answer, nothing relevant, or behind a failed check."""
    found: dict[str, list[str]] = {query_id: [f"no answer: {error}"] for query_id, error in report.evaluation.failures.items()}
    blamed: dict[str, dict[str, list[str]]] = {}
    for check in report.verdict.failures if report.verdict else ():
        for query_id in check.queries:
            blamed.setdefault(query_id, {}).setdefault(place(check), []).append(check.rule)
    for query_id, checks in blamed.items():
        told = ", ".join(f"{what} ({', '.join(rules)})" for what, rules in checks.items())
        found.setdefault(query_id, []).append(f"behind the failed checks of {told}")
    k = depth(report)
    for line in report_lines(report):
        if line.error is None and line.expected and len(missing(line, k)) == len(line.expected):
            found.setdefault(line.query_id, []).append(f"none of its relevant documents in the first {k}")
    return {query_id: tuple(why) for query_id, why in found.items()}


@dataclass(frozen=True)
class ComponentLine:
    """A part of the retriever, and the effect of leaving it out."""

    name: str
    kind: str
    values: Mapping[str, float]
    contribution: Contribution | None
    latency: Latency | None
    without: Difference | None = None
    """How the first measure changes without the part, below 0 if the search gets worse; None if not known."""
    label: str = ""
    """The name for people."""


def component_lines(report: Report) -> tuple[ComponentLine, ...]:
    """Return the parts in their order; the effect of leaving out a channel is in the row of the channel."""
    evaluation = report.evaluation
    changes = effects_of_parts(evaluation, primary(report))
    return tuple(
        ComponentLine(
            part.name,
            part.kind,
            part.scores.aggregate,
            part.contribution,
            part.latency,
            changes.get(part.name),
            part_label(part.name, evaluation),
        )
        for part in evaluation.components
    )


def effects_of_parts(evaluation: Evaluation, measure: str, *, alpha: float = 0.05) -> dict[str, Difference | None]:
    """Return by part how much better the search is without it, below 0 if it is worse; None if that is not known.

    For a channel that is the search without it; without a later step the search is what came before it.
    """
    parts, whole = evaluation.components, whole_of(evaluation)
    channels = {part.name for part in parts if part.kind == "channel"}
    steps = [part for part in parts if part.kind in ("fusion", "stage")]
    found = {step.name: paired(step.scores, before.scores, measure, alpha=alpha) for before, step in pairwise(steps)}
    for part in parts:
        if part.kind == "without":
            channel = part.name.removeprefix("without ")
            change = paired(whole, part.scores, measure, alpha=alpha)
            found[channel if channel in channels else part.name] = change
    return found


def without_it(line: ComponentLine) -> str:
    """Return ``−0.0646 (−0.0868 to −0.0424)``; '' if not known."""
    change = line.without
    return f"{signed(change.mean)} ({signed_span(change.low, change.high)})" if change else ""


def part_label(name: str, evaluation: Evaluation) -> str:
    """Return a part's name with the one that the user wrote: ``hybrid (weighted)`` if the search is ``hybrid``."""
    written = evaluation.search.split(">>")[0].strip()
    fusion = next((part.name for part in evaluation.components if part.kind == "fusion"), None)
    if fusion is None or written == fusion or not written.isidentifier():
        return name
    fused = name == fusion or name.startswith(f"{fusion} >> ")
    return f"{written} ({fusion}){name.removeprefix(fusion)}" if fused else name


def whole_of(evaluation: Evaluation) -> Scores:
    """Return what the search without a channel is compared with: the fusion, before any later step."""
    return next((part.scores for part in evaluation.components if part.kind == "fusion"), evaluation.scores)


@dataclass(frozen=True)
class BlameLine:
    """How many relevant documents one stage lost."""

    stage: str
    count: int
    share: float
    """Of all relevant documents of the answered questions."""


def blame_lines(evaluation: Evaluation) -> tuple[BlameLine, ...]:
    """Return the stages that lost something, in the order in which a document passes them."""
    counts: Counter[str] = Counter(loss.stage for loss in evaluation.losses)
    total = relevant_documents(evaluation) or math.nan
    return tuple(BlameLine(stage, counts[stage], counts[stage] / total) for stage in STAGES if counts[stage])


def lost_at(evaluation: Evaluation) -> str:
    """Return the cut-offs below which documents count as lost, such as ``10``."""
    return " or ".join(str(k) for k in sorted({loss.k for loss in evaluation.losses}))


def relevant_documents(evaluation: Evaluation) -> int:
    """Return how many relevant documents the answered questions have, counted from the judgments if a run does not say."""
    if evaluation.relevant is not None:
        return evaluation.relevant
    failed, least = evaluation.failures, evaluation.setup.golden.relevance_threshold
    return sum(grade >= least for query_id, _, grade in evaluation.qrels if query_id not in failed)


def slice_fields(evaluation: Evaluation) -> tuple[str, ...]:
    """Return the fields that divide the scored questions; a declared field that none of them has is left out."""
    known = ((name, value) for facts in evaluation.scores.facts.values() for name, value in facts.items())
    present = {name for name, value in known if value not in (None, "", [], ())}
    return tuple(name for name in evaluation.setup.golden.slices if name in present)


def shown_measures(report: Report, most: int = 4) -> list[str]:
    """Return the measures for narrow tables: the first, then the others in their order."""
    first = primary(report)
    return [first, *(name for name in report.evaluation.metrics if name != first)][:most]


def warnings(report: Report) -> tuple[str, ...]:
    """Return the notes that matter for a reader's next step, each once.

    How far people confirmed the judgments is not among them: every format shows it beside the golden set.
    """
    evaluation, comparison = report.evaluation, comparison_of(report)
    said = [*report.notes, *evaluation.notes, *evaluation.scores.counted.notes()]
    share = evaluation.scores.judged_share
    if share < WELL_JUDGED:
        said.append(f"only {portion(share)} of the first 10 hits are judged; the others count as not relevant, so judge more")
    said += report.verdict.notes if report.verdict else ()
    said += comparison.notes if comparison else ()
    if evaluation.cached:
        said.append(f"answers from the cache, recorded at {evaluation.setup.recorded_at}")
    made = (evaluation.setup.golden.reviewed, NOT_CACHED, REPLAYED)
    return tuple(dict.fromkeys(text for text in said if not any(one in text for one in made)))


def notes(report: Report) -> tuple[str, ...]:
    """Return the warnings, then how the numbers were made."""
    evaluation, first = report.evaluation, warnings(report)
    share = evaluation.scores.judged_share
    said = [*evaluation.scores.counted.gain, *(text for text in evaluation.notes if text in (NOT_CACHED, REPLAYED))]
    if WELL_JUDGED <= share < 1:
        said.append(f"Judged@10 is {share:.4f}; unjudged documents count as not relevant")
    said += [
        f"{one.name}: {one.status}{': ' if one.detail else ''}{one.detail}"
        for one in evaluation.setup.preconditions
        # Evaluation and gate report some of these in their own words.
        if one.status != "met" and not any(one.detail and one.detail in text for text in first)
    ]
    return tuple(dict.fromkeys([*first, *said]))
