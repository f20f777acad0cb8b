"""Runs as a reader looks at them: one query with its answer, and two runs side by side."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ringtrue.errors import MissingInput
from ringtrue.report import WHY_LOST, lower_is_better
from ringtrue.service.errors import clean
from ringtrue.service.work.evaluating import known
from ringtrue.service.work.finding_runs import AT_A_TIME

if TYPE_CHECKING:
    from ringtrue.records import Hit, Query
    from ringtrue.run import Evaluation, Loss
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service
    from ringtrue.store import StoredResult
    from ringtrue.verdict import Comparison

DEEPEST = 50
"""Hits of an answer that are shown."""
OTHERS = 6
"""Other runs that are shown beside a query."""


@dataclass(frozen=True)
class QueryRow:
    """A query of a run as a list shows it."""

    query_id: str
    text: str
    value: float | None
    """By the measure of the list; None where it is undefined, or the query failed."""
    values: dict[str, float | None]
    ms: float | None
    error: str | None
    lost: int
    """Relevant documents that are missing among the first hits."""


@dataclass(frozen=True)
class RankedDocument:
    """A document in an answer: where it stands, how it was judged, and its ranks along the way."""

    doc_id: str
    title: str
    grade: int | None
    rank: int | None
    """None where the answer does not hold it."""
    trail: tuple[tuple[str, int], ...] = ()
    score: float | None = None


@dataclass(frozen=True)
class LostDocument:
    """A relevant document that is missing, the stage that lost it, and what that means."""

    place: RankedDocument
    stage: str
    why: str
    k: int


@dataclass(frozen=True)
class Elsewhere:
    """What another run reached with the same query."""

    row: StoredResult
    value: float | None


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
    lost: tuple[LostDocument, ...]
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
    names = [str(one) for one in evaluation.scores.measures]
    lines = []
    for query in evaluation.queries:
        if text and text.casefold() not in f"{query.query_id} {query.text}".casefold():
            continue
        scores = evaluation.scores.per_query.get(query.query_id, {})
        ranking = evaluation.ranking(query.query_id)
        lines.append(
            QueryRow(
                query.query_id,
                query.text,
                known(scores.get(measure)),
                {name: known(scores.get(name)) for name in names},
                known(ranking.latency_ms),
                None if ranking.error is None else clean(ranking.error),
                lost[query.query_id],
            )
        )
    return sorted(lines, key=_order(measure, sort))


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
    ranking = evaluation.ranking(query_id)
    grades = evaluation.qrels.to_dict().get(query_id, {})
    places = places_in(evaluation, query_id)
    order = [line.query_id for line in query_lines(evaluation, measure)]
    position = order.index(query_id)
    titles = evaluation.titles
    scores = evaluation.scores.per_query.get(query_id, {})
    return QuerySeen(
        query=query,
        values={str(one): known(scores.get(str(one))) for one in evaluation.scores.measures},
        ms=known(ranking.latency_ms),
        error=None if ranking.error is None else clean(ranking.error),
        hits=tuple(places.values())[:DEEPEST],
        more=max(0, len(places) - DEEPEST),
        judged=tuple(
            places.get(doc_id) or RankedDocument(doc_id, titles.get(doc_id, ""), grade, None)
            for doc_id, grade in sorted(grades.items(), key=lambda pair: (-pair[1], pair[0]))
        ),
        lost=lost_of(evaluation, query_id),
        before=order[position - 1] if position else None,
        after=order[position + 1] if position + 1 < len(order) else None,
        position=position + 1,
        count=len(order),
    )


def places_in(evaluation: Evaluation, query_id: str) -> dict[str, RankedDocument]:
    """Return the documents of an answer in their order, each once, at its best rank."""
    grades = evaluation.qrels.to_dict().get(query_id, {})
    found: dict[str, RankedDocument] = {}
    for hit in evaluation.ranking(query_id).hits:
        if hit.doc_id not in found:
            found[hit.doc_id] = RankedDocument(
                hit.doc_id,
                evaluation.titles.get(hit.doc_id, ""),
                grades.get(hit.doc_id),
                len(found) + 1,
                _trail(hit),
                known(hit.score),
            )
    return found


def _trail(hit: Hit) -> tuple[tuple[str, int], ...]:
    # The channels come first, then what was done with their lists.
    stages = {stage.name: stage.rank for stage in hit.stages}
    return tuple({**hit.channels, **stages}.items())


def lost_of(evaluation: Evaluation, query_id: str) -> tuple[LostDocument, ...]:
    """Return the relevant documents that are missing among the first hits of an answer, the best judged first."""
    losses = [loss for loss in evaluation.losses if loss.query_id == query_id]
    return tuple(_lost(evaluation, loss) for loss in sorted(losses, key=lambda loss: (-loss.grade, loss.doc_id)))


def _lost(evaluation: Evaluation, loss: Loss) -> LostDocument:
    title = evaluation.titles.get(loss.doc_id, "")
    place = RankedDocument(loss.doc_id, title, loss.grade, loss.rank, tuple(loss.ranks.items()))
    return LostDocument(place, loss.stage, WHY_LOST[loss.stage], loss.k)


def elsewhere(service: Service, caller: Caller, row: StoredResult, query_id: str, measure: str) -> list[Elsewhere]:
    """Return what the newest other runs on the same version of the golden set reached with a query."""
    rows = service.of(caller).results(project=caller.project, limit=AT_A_TIME)
    same = [one for one in rows if one.golden == row.golden and one.run_id != row.run_id and query_id in one.per_query]
    return [Elsewhere(one, known(one.per_query[query_id].get(measure, math.nan))) for one in same[:OTHERS]]


SHOWN = 20
"""Hits of either answer that are shown."""
Way = Literal["same", "up", "down", "new", "gone"]


@dataclass(frozen=True)
class QueryChange:
    """What became of one query from run a to run b."""

    query_id: str
    text: str
    a: float | None
    b: float | None
    diff: float
    lost: tuple[LostDocument, ...]
    """Relevant documents that a had among the first hits and b has not."""


@dataclass(frozen=True)
class Moved:
    """A document of an answer, and how it stands on the other side."""

    place: RankedDocument
    way: Way
    steps: int = 0
    """How far it moved, where both sides have it."""


@dataclass(frozen=True)
class Beside:
    """One query on both sides."""

    a: tuple[Moved, ...]
    b: tuple[Moved, ...]
    lost: tuple[LostDocument, ...]
    """Relevant documents that a had among the first k and b has not, with what b says about them."""
    found: tuple[RankedDocument, ...]
    """The other way round: relevant documents that only b has there."""
    missing: tuple[LostDocument, ...]
    """Relevant documents that neither has there."""
    k: int


def changes(before: Evaluation, after: Evaluation, found: Comparison) -> list[QueryChange]:
    """Return every query of a comparison, the one that lost most by its primary measure first."""
    better = -1 if lower_is_better(found.primary) else 1
    texts = {query.query_id: query.text for query in after.queries}
    values = (before.scores.per_query, after.scores.per_query)
    rows = [
        QueryChange(
            query_id,
            texts.get(query_id, ""),
            known(values[0].get(query_id, {}).get(found.primary)),
            known(values[1].get(query_id, {}).get(found.primary)),
            delta,
            (),
        )
        for query_id, delta in found.measures[found.primary].deltas.items()
    ]
    return sorted(rows, key=lambda row: (row.diff * better, row.query_id))


def lost_between(before: Evaluation, after: Evaluation, query_id: str) -> tuple[LostDocument, ...]:
    """Return the relevant documents that the first run had among the first hits and the second has not."""
    had = {one.place.doc_id for one in lost_of(before, query_id)}
    return tuple(one for one in lost_of(after, query_id) if one.place.doc_id not in had)


def beside(before: Evaluation, after: Evaluation, query_id: str) -> Beside:
    """Return the answers of two runs to one query, every document marked with how it moved."""
    left, right = places_in(before, query_id), places_in(after, query_id)
    lost, gone = lost_of(after, query_id), lost_of(before, query_id)
    had = {one.place.doc_id for one in gone}
    still = {one.place.doc_id for one in lost}
    return Beside(
        a=_moved(left, right, mark_gone=True),
        b=_moved(right, left, mark_gone=False),
        lost=tuple(one for one in lost if one.place.doc_id not in had),
        found=tuple(right.get(doc_id, one.place) for one in gone if (doc_id := one.place.doc_id) not in still),
        missing=tuple(one for one in lost if one.place.doc_id in had),
        k=(lost or gone)[0].k if lost or gone else 10,
    )


def _moved(mine: dict[str, RankedDocument], theirs: dict[str, RankedDocument], *, mark_gone: bool) -> tuple[Moved, ...]:
    found = []
    for place in list(mine.values())[:SHOWN]:
        other = theirs.get(place.doc_id)
        if other is None or other.rank is None or place.rank is None:
            found.append(Moved(place, "gone" if mark_gone else "new"))
            continue
        # Told from the first run to the second, on either side.
        steps = place.rank - other.rank if mark_gone else other.rank - place.rank
        found.append(Moved(place, "same" if steps == 0 else "up" if steps > 0 else "down", abs(steps)))
    return tuple(found)
