"""Runs as a reader looks at them: one query with its answer, and two runs side by side."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from ringtrue.errors import MissingInput
from ringtrue.records import Query
from ringtrue.report.sentences import lower_is_better
from ringtrue.report.tables import RankedDocument, Way, judged_for, places_in
from ringtrue.run import Evaluation
from ringtrue.verdict import Comparison

DEEPEST = 50
"""Hits of an answer that are shown."""
SHOWN = 20
"""Hits of either answer that are shown side by side."""


@dataclass(frozen=True)
class QueryRow:
    """A query of a run as a list shows it."""

    query_id: str
    text: str
    value: float | None
    """By the measure of the list; None if it is undefined, or the query failed."""
    values: dict[str, float | None]
    ms: float | None
    error: str | None
    lost: int
    """Relevant documents that are missing among the first hits."""


@dataclass(frozen=True)
class QuerySeen:
    """One query of a run with its answer."""

    query: Query
    values: dict[str, float | None]
    ms: float | None
    error: str | None
    hits: tuple[RankedDocument, ...]
    more: int
    """Hits that are not shown."""
    judged: tuple[RankedDocument, ...]
    lost: tuple[RankedDocument, ...]
    k: int
    """Among how many hits a relevant document is not lost."""
    before: str | None
    after: str | None
    """The queries beside it, from the worst to the best."""
    position: int
    count: int


def primary_of(evaluation: Evaluation, measure: str | None = None) -> str:
    """Return a measure that the run has: the one asked for, else its first."""
    scored = [str(one) for one in evaluation.scores.measures]
    return measure if measure in scored else scored[0]


def query_lines(evaluation: Evaluation, measure: str, *, sort: str = "worst", text: str = "") -> list[QueryRow]:
    """Return the queries of a run that hold a text: the failed and worst first, or 'best', 'id', 'slow' or 'lost' first."""
    lost = Counter(loss.query_id for loss in evaluation.losses)
    lines = []
    for query in evaluation.queries:
        if text.casefold() in f"{query.query_id} {query.text}".casefold():
            values, ranking = _values(evaluation, query.query_id), evaluation.ranking(query.query_id)
            ms, error = known(ranking.latency_ms), ranking.error
            lines.append(QueryRow(query.query_id, query.text, values.get(measure), values, ms, error, lost[query.query_id]))
    return sorted(lines, key=_order(measure, sort))


def known(value: float | None) -> float | None:
    """Return a number, or None if it is undefined: JSON has no word for that but null."""
    return None if value is None or not math.isfinite(value) else float(value)


def _values(evaluation: Evaluation, query_id: str) -> dict[str, float | None]:
    scores = evaluation.scores.per_query.get(query_id, {})
    return {str(one): known(scores.get(str(one))) for one in evaluation.scores.measures}


def _order(measure: str, sort: str) -> Any:
    better = -1 if lower_is_better(measure) else 1
    if sort == "id":
        return lambda line: line.query_id
    if sort == "slow":
        return lambda line: (line.ms is None, -(line.ms or 0.0), line.query_id)
    if sort == "lost":
        return lambda line: (-line.lost, line.query_id)
    way = -better if sort == "best" else better
    # A query that failed is the worst there is; one whose score is undefined is neither good nor bad and comes last.
    return lambda line: (
        (line.error is None) != (sort == "best"),
        line.value is None,
        way * (line.value or 0.0),
        line.query_id,
    )


def query_seen(evaluation: Evaluation, query_id: str, measure: str) -> QuerySeen:
    """Return one query of a run with its answer, its judgments and what was lost; raises MissingInput."""
    query = next((one for one in evaluation.queries if one.query_id == query_id), None)
    if query is None:
        raise MissingInput(f"the run has no query '{query_id:.120}'; its page lists those there are")
    ranking, places = evaluation.ranking(query_id), places_in(evaluation, query_id)
    order = [line.query_id for line in query_lines(evaluation, measure)]
    position = order.index(query_id)
    return QuerySeen(
        query=query,
        values=_values(evaluation, query_id),
        ms=known(ranking.latency_ms),
        error=ranking.error,
        hits=tuple(places.values())[:DEEPEST],
        more=max(0, len(places) - DEEPEST),
        judged=judged_for(evaluation, query_id, places),
        lost=lost_of(evaluation, query_id),
        k=depth_of_loss(evaluation),
        before=order[position - 1] if position else None,
        after=order[position + 1] if position + 1 < len(order) else None,
        position=position + 1,
        count=len(order),
    )


def lost_of(evaluation: Evaluation, query_id: str) -> tuple[RankedDocument, ...]:
    """Return the relevant documents that are missing among the first hits of an answer, the best judged first."""
    losses = [loss for loss in evaluation.losses if loss.query_id == query_id]
    titles = evaluation.titles
    return tuple(
        RankedDocument(one.doc_id, titles.get(one.doc_id, ""), one.grade, one.rank, tuple(one.ranks.items()), one.stage)
        for one in sorted(losses, key=lambda loss: (-loss.grade, loss.doc_id))
    )


def depth_of_loss(*evaluations: Evaluation) -> int:
    """Return among how many hits a relevant document is not lost."""
    return next((loss.k for one in evaluations for loss in one.losses), 10)


@dataclass(frozen=True)
class QueryChange:
    """What became of one query from run a to run b."""

    query_id: str
    text: str
    a: float | None
    b: float | None
    diff: float
    lost: tuple[RankedDocument, ...]
    """Relevant documents that a had among the first hits and b has not."""


@dataclass(frozen=True)
class Beside:
    """One query on both sides."""

    a: tuple[RankedDocument, ...]
    b: tuple[RankedDocument, ...]
    lost: tuple[RankedDocument, ...]
    """Relevant documents that a had among the first k and b has not, with what b says about them."""
    found: tuple[RankedDocument, ...]
    """The other way round: relevant documents that only b has there."""
    missing: tuple[RankedDocument, ...]
    """Relevant documents that neither has there."""
    k: int


def changes(before: Evaluation, after: Evaluation, found: Comparison) -> list[QueryChange]:
    """Return every query of a comparison, the one that lost most by its primary measure first."""
    better = -1 if lower_is_better(found.primary) else 1
    texts = {query.query_id: query.text for query in after.queries}
    values = (before.scores.per_query, after.scores.per_query)
    rows = []
    for query_id, delta in found.measures[found.primary].deltas.items():
        a, b = (known(side.get(query_id, {}).get(found.primary)) for side in values)
        rows.append(QueryChange(query_id, texts.get(query_id, ""), a, b, delta, ()))
    return sorted(rows, key=lambda row: (row.diff * better, row.query_id))


def lost_between(before: Evaluation, after: Evaluation, query_id: str) -> tuple[RankedDocument, ...]:
    """Return the relevant documents that the first run had among the first hits and the second has not."""
    had = {one.doc_id for one in lost_of(before, query_id)}
    return tuple(one for one in lost_of(after, query_id) if one.doc_id not in had)


def beside(before: Evaluation, after: Evaluation, query_id: str) -> Beside:
    """Return the answers of two runs to one query, every document marked with how it moved."""
    left, right = places_in(before, query_id), places_in(after, query_id)
    lost, gone = lost_of(after, query_id), lost_of(before, query_id)
    had, still = {one.doc_id for one in gone}, {one.doc_id for one in lost}
    return Beside(
        a=_moved(left, right, absent="gone"),
        b=_moved(right, left, absent="new"),
        lost=lost_between(before, after, query_id),
        found=tuple(right.get(one.doc_id, one) for one in gone if one.doc_id not in still),
        missing=tuple(one for one in lost if one.doc_id in had),
        k=depth_of_loss(after, before),
    )


def _moved(mine: dict[str, RankedDocument], theirs: dict[str, RankedDocument], *, absent: Way) -> tuple[RankedDocument, ...]:
    """Return an answer with how its documents moved, told from the first run to the second on either side."""
    found = []
    for place in list(mine.values())[:SHOWN]:
        other = theirs.get(place.doc_id)
        if other is None or other.rank is None or place.rank is None:
            found.append(replace(place, way=absent))
            continue
        steps = (place.rank - other.rank) * (1 if absent == "gone" else -1)
        found.append(replace(place, way="same" if steps == 0 else "up" if steps > 0 else "down", steps=abs(steps)))
    return tuple(found)
