"""Two runs beside each other: which queries changed most, and where each document of an answer went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ringtrue.report.page.words import lower_is_better
from ringtrue.service.work.evaluating import known
from ringtrue.service.work.reading_runs import LostDocument, RankedDocument, lost_of, places_in

if TYPE_CHECKING:
    from ringtrue.run import Evaluation
    from ringtrue.verdict import Comparison

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
