"""The review queue as a whole: how much waits, since when, where it comes from, and how fast it moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ringtrue.golden import rater_name
from ringtrue.review.queue import STATES
from ringtrue.service.models import wrong_cursor
from ringtrue.store import ReviewItem

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service

WEEKS = 8
NO_SET = ""
REFRESH, PICKED, LOOSE = "refresh from the log", "picked for a set", "without a set"


@dataclass(frozen=True, slots=True)
class BacklogRow:
    """A pair in the list."""

    item: ReviewItem
    ratings: int
    source: str
    golden: str


@dataclass(frozen=True, slots=True)
class Week:
    """What came in and what was judged in seven days that end with ``until``."""

    since: datetime
    until: datetime
    added: int
    judged: int


@dataclass(frozen=True, slots=True)
class BacklogSnapshot:
    """All pairs at one moment."""

    rows: tuple[BacklogRow, ...]
    times: tuple[str, ...]
    """When ratings were given."""


def snapshot(service: Service, caller: Caller) -> BacklogSnapshot:
    """Return all pairs of the caller's project."""
    ratings = service.of(caller).ratings(project=caller.project)
    said: dict[str, set[str]] = {}
    for one in ratings:
        said.setdefault(one.item_key, set()).add(rater_name(one.reviewer))
    rows = tuple(
        BacklogRow(item, len(said.get(item.item_key, ())), source_of(item), golden_of(item))
        for item in service.of(caller).review_items(project=caller.project)
    )
    return BacklogSnapshot(rows, tuple(one.at for one in ratings))


def source_of(item: ReviewItem) -> str:
    """Return how a pair came into the queue."""
    return REFRESH if "refresh" in item.metadata else PICKED if item.metadata.get("golden") else LOOSE


def golden_of(item: ReviewItem) -> str:
    """Return the set that a pair is judged for; empty where none is named."""
    return str(item.metadata.get("golden") or NO_SET)


def grades_missing(found: BacklogSnapshot) -> int:
    """Return how many grades the pairs that wait still need; a pair may want several people."""
    return sum(max(0, row.item.wanted - row.ratings) for row in found.rows if row.item.state == "pending_review")


def weeks(found: BacklogSnapshot, *, now: datetime) -> list[Week]:
    """Return what came in and what was judged in each of the last weeks, the oldest first."""
    added = Counter(_week(row.item.created_at, now) for row in found.rows)
    judged = Counter(_week(at, now) for at in found.times)
    return [
        Week(now - timedelta(weeks=back + 1), now - timedelta(weeks=back), added[back], judged[back])
        for back in reversed(range(WEEKS))
    ]


def _week(at: str, now: datetime) -> int:
    return (now - datetime.fromisoformat(at)) // timedelta(weeks=1)


def grouped(rows: Sequence[BacklogRow], by: Callable[[BacklogRow], str]) -> list[tuple[str, Mapping[str, int], int]]:
    """Return for every name how many of its pairs are in each state, and how many there are; the largest first."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        found.setdefault(by(row), Counter())[row.item.state] += 1
    made: list[tuple[str, Mapping[str, int], int]] = [
        (name, {state: counts[state] for state in STATES}, counts.total()) for name, counts in found.items()
    ]
    return sorted(made, key=lambda one: (-one[2], one[0]))


SORTS: Mapping[str, Callable[[BacklogRow], Any]] = {
    "priority": lambda row: row.item.priority,
    "age": lambda row: row.item.created_at,
    "question": lambda row: row.item.query.casefold(),
    "grades": lambda row: row.ratings,
}


def chosen(found: BacklogSnapshot, *, state: str = "", golden: str = "", text: str = "", sort: str = "") -> list[BacklogRow]:
    """Return the pairs that pass the filters, sorted; unless told otherwise what waits comes first, the most urgent before."""
    wanted = text.casefold().strip()
    rows = [
        row
        for row in found.rows
        if (not state or row.item.state == state)
        and (not golden or row.golden == golden)
        and (not wanted or wanted in f"{row.item.query}\n{row.item.title}\n{row.item.doc_id}\n{row.item.item_key}".casefold())
    ]
    key = SORTS.get(sort.removeprefix("-"))
    if key is None:
        return sorted(rows, key=lambda row: STATES.index(row.item.state))
    return sorted(rows, key=key, reverse=sort.startswith("-"))


def part(rows: Sequence[BacklogRow], *, after: str | None, limit: int) -> tuple[Sequence[BacklogRow], int, str | None]:
    """Return the rows behind a cursor, the number of the first, and the cursor behind them where there are more."""
    start = 0
    if after is not None:
        places = [place for place, row in enumerate(rows) if row.item.item_key == after]
        if not places:
            raise wrong_cursor()
        start = places[0] + 1
    shown = rows[start : start + limit]
    return shown, start + 1, shown[-1].item.item_key if start + limit < len(rows) else None
