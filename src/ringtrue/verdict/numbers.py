"""Numbers of an evaluation: values by slice, measures scored afterwards, the best that is possible, and how checks show them.

What is scored afterwards is made from the evaluation's own questions and judgments. Two numbers that differ never look alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from ringtrue.errors import CannotDecide
from ringtrue.measures import Measure, Scores, average, score
from ringtrue.records import Floats, GoldenSet, Hit, Judgment, Ranking
from ringtrue.run import Evaluation


def values_of(scores: Scores, measure: str, queries: Sequence[str]) -> Floats:
    """Return the values of a measure for these queries, in their order; raises KeyError for one that was not scored."""
    place = {query: index for index, query in enumerate(scores.query_ids)}
    values: Floats = scores.of(measure)[[place[query] for query in queries]]
    return values


CURE = "name it among the measures of the evaluation (ringtrue eval --measure)"


def with_measures(evaluation: Evaluation, wanted: Iterable[str]) -> tuple[Evaluation, dict[str, str]]:
    """Return the evaluation with these measures scored as well, and why each of the others cannot be.

    They are computed from its rankings and judgments. A measure that reads facts about documents, such as Constitutional@10,
    needs them when the search is evaluated.
    """
    scores = evaluation.scores
    missing = [measure for measure in map(Measure.parse, dict.fromkeys(wanted)) if measure not in scores.measures]
    whole = evaluation
    problems: dict[str, str] = {}
    for measure in missing:
        known = whole.scores
        try:
            values = np.vstack([known.values, _computed(evaluation, measure)])
            whole = replace(whole, scores=replace(known, measures=(*known.measures, measure), values=values, upper=None))
        except CannotDecide as problem:
            problems[str(measure)] = str(problem)
    return whole, problems


def reachable(evaluation: Evaluation, measure: str | Measure, *, queries: Collection[str] | None = None) -> float:
    """Return the mean that the best possible answers would have, given the judgments.

    nan if that cannot be told: for measures that read more than the grades of the documents shown, and for those where
    lower is better.
    """
    wanted = measure if isinstance(measure, Measure) else Measure.parse(measure)
    definition = wanted.definition
    if definition.lists or definition.lower_is_better or not definition.bounded:
        return math.nan
    golden = _golden(evaluation)
    # The grade from which a document does this measure any good; others would only dilute the ideal answer.
    asked = wanted.option("rel") if "rel" in definition.options else None
    if asked is None and definition.threshold:
        asked = golden.relevance_threshold
    lowest = max(1, asked or 1)
    ideal: dict[str, list[tuple[int, str]]] = {query.query_id: [] for query in golden.queries}
    for judgment in golden.judgments:
        if judgment.grade >= lowest:
            ideal[judgment.query_id].append((-judgment.grade, judgment.doc_id))
    answers = [Ranking(query, tuple(Hit(doc_id) for _, doc_id in sorted(docs))) for query, docs in ideal.items()]
    best = _score(answers, golden, [wanted], evaluation)
    chosen = [queries is None or query in queries for query in best.query_ids]
    return average(wanted, best.of(wanted)[chosen])


def _computed(evaluation: Evaluation, measure: Measure) -> Floats:
    """Return one value per scored query; raises CannotDecide if the evaluation does not hold what it takes."""
    if measure.definition.lists:
        raise CannotDecide(f"{measure} was not scored and needs facts about documents; {CURE}")
    known = [other for other in evaluation.scores.measures if not other.definition.lists]
    answers = [ranking for ranking in evaluation.rankings if ranking.error is None]
    if not answers:
        raise CannotDecide(f"{measure} was not scored and no query has an answer; evaluate again")
    found = _score(answers, _golden(evaluation), [measure, *known], evaluation)
    place = {query: index for index, query in enumerate(found.query_ids)}
    order = [place[query] for query in evaluation.scores.query_ids]
    for other in known:
        # Facts that a run does not keep, such as a scope, may have taken part when it was scored.
        if not np.allclose(found.of(other)[order], evaluation.scores.of(other), atol=1e-9, equal_nan=True):
            raise CannotDecide(f"{measure} was not scored, and the run's answers do not reproduce its {other}; {CURE}")
    values: Floats = found.of(measure)[order]
    return values


def _golden(evaluation: Evaluation) -> GoldenSet:
    """Return the questions that were scored, with their judgments, as a set."""
    origin, scored = evaluation.setup.golden, set(evaluation.scores.query_ids)
    return GoldenSet(
        origin.id,
        origin.version,
        tuple(query for query in evaluation.queries if query.query_id in scored),
        tuple(Judgment(*row) for row in evaluation.qrels if row[0] in scored),
        relevance_threshold=origin.relevance_threshold,
        scale=origin.scale,
        equivalence_classes=evaluation.classes,
    )


def _score(answers: list[Ranking], golden: GoldenSet, measures: list[Measure], evaluation: Evaluation) -> Scores:
    zero = evaluation.scores.counted.zero_relevant
    return score(answers, golden, measures, zero_relevant=zero)  # type: ignore[arg-type]  # was one of the three when scored


EVEN = 1e-9
"""Differences up to this come from floating point and mean nothing: exactly 5 % is 5 %."""
SHOWN = 10
"""Queries that a check names."""


def two(one: float, other: float, *, digits: int = 4) -> tuple[str, str]:
    """Return both numbers, with as many digits as it takes to tell them apart.

    >>> two(0.79999, 0.8)
    ('0.79999', '0.80000')
    """
    return _apart(one, other, lambda value, more: f"{value:.{more}f}", digits)


def percent(share: float, beside: float, *, digits: int = 1) -> str:
    """Return a share in percent, with as many digits as it takes to tell it from the other one.

    >>> percent(0.061, 0.05), percent(0.0501, 0.05)
    ('6.1 %', '5.01 %')
    """
    return _apart(share, beside, lambda value, more: f"{100 * value:.{more}f} %", digits)[0]


def _apart(one: float, other: float, show: Callable[[float, int], str], digits: int) -> tuple[str, str]:
    while show(one, digits) == show(other, digits) and abs(one - other) > EVEN and digits < 12:
        digits += 1
    return show(one, digits), show(other, digits)


def upside(measure: str) -> int:
    """Return 1 where a higher value of the measure is better, −1 where a lower one is."""
    return -1 if Measure.parse(measure).definition.lower_is_better else 1


def some(names: list[str], *, count: int = 5) -> str:
    """Return the first few names.

    >>> some(["q1", "q2", "q3"], count=2)
    'q1, q2 …'
    """
    return ", ".join(names[:count]) + (" …" if len(names) > count else "")
