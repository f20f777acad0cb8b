"""Runs as a reader looks at them: one query with its answer, and two runs side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ringtrue.errors import MissingInput
from ringtrue.report.sentences import lower_is_better
from ringtrue.report.tables import QueryLine, RankedDocument, Way
from ringtrue.run import Evaluation
from ringtrue.verdict import Comparison

SHOWN = 20
"""Hits of either answer that are shown side by side."""


def primary_of(evaluation: Evaluation, measure: str | None = None) -> str:
    """Return a measure that the run has: the one asked for, else its first."""
    scored = [str(one) for one in evaluation.scores.measures]
    return measure if measure in scored else scored[0]


def known(value: float | None) -> float | None:
    """Return a number, or None if it is undefined: JSON has no word for that but null."""
    return None if value is None or not math.isfinite(value) else float(value)


def query_of(evaluation: Evaluation, query_id: str) -> QueryLine:
    """Return one query of a run with its answer, its judgments and what was lost; raises MissingInput."""
    query = next((one for one in evaluation.queries if one.query_id == query_id), None)
    if query is None:
        raise MissingInput(f"the run has no query '{query_id:.120}'; its page lists those there are")
    return QueryLine(query, evaluation, tuple(loss for loss in evaluation.losses if loss.query_id == query_id))


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
    had = {loss.doc_id for loss in before.losses if loss.query_id == query_id}
    return tuple(one for one in query_of(after, query_id).lost if one.doc_id not in had)


def beside(before: Evaluation, after: Evaluation, query_id: str) -> Beside:
    """Return the answers of two runs to one query, every document marked with how it moved."""
    left, right = query_of(before, query_id), query_of(after, query_id)
    had, still = ({one.doc_id for one in side.lost} for side in (left, right))
    return Beside(
        a=_moved(left.places, right.places, absent="gone"),
        b=_moved(right.places, left.places, absent="new"),
        lost=tuple(one for one in right.lost if one.doc_id not in had),
        found=tuple(right.places.get(one.doc_id, one) for one in left.lost if one.doc_id not in still),
        missing=tuple(one for one in right.lost if one.doc_id in had),
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
