"""The review queue as a whole: how much waits, since when, where it comes from, and how fast it moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ringtrue.review.queue import STATES, ReviewQueue
from ringtrue.store import ReviewItem

WEEKS = 8


@dataclass(frozen=True, slots=True)
class BacklogRow:
    """A pair in the list."""

    item: ReviewItem
    ratings: int
    source: str
    """How it came into the queue."""
    golden: str
    """The set that it is judged for; empty where none is named."""

    @property
    def missing(self) -> int:
        """How many grades it still needs; a pair may want several people."""
        return max(0, self.item.wanted - self.ratings) if self.item.state == "pending_review" else 0


@dataclass(frozen=True, slots=True)
class Week:
    """How many pairs came in and how many grades were given in the seven days that end with ``until``."""

    until: datetime
    added: int
    judged: int


def backlog_rows(queue: ReviewQueue) -> list[BacklogRow]:
    """Return all pairs, the most urgent first."""
    counts, rows = queue.counts(), []
    for item in queue.items():
        golden = str(item.metadata.get("golden") or "")
        source = "refresh from the log" if "refresh" in item.metadata else "picked for a set" if golden else "without a set"
        rows.append(BacklogRow(item, counts.get(item.item_key, 0), source, golden))
    return rows


def weekly_flow(rows: Sequence[BacklogRow], judged_at: Sequence[str], *, now: datetime) -> list[Week]:
    """Return what came in and what was judged in each of the last weeks, the oldest first."""

    def weeks_ago(moments: Sequence[str]) -> Counter[int]:
        return Counter((now - datetime.fromisoformat(at)) // timedelta(weeks=1) for at in moments)

    added, judged = weeks_ago([row.item.created_at for row in rows]), weeks_ago(judged_at)
    return [Week(now - timedelta(weeks=back), added[back], judged[back]) for back in reversed(range(WEEKS))]


def grouped(rows: Sequence[BacklogRow], by: Callable[[BacklogRow], str]) -> list[tuple[str, Mapping[str, int], int]]:
    """Return for every name how many of its pairs are in each state, and how many there are; the largest first."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        found.setdefault(by(row), Counter(dict.fromkeys(STATES, 0)))[row.item.state] += 1
    return sorted(((name, counts, counts.total()) for name, counts in found.items()), key=lambda one: (-one[2], one[0]))


ORDERS: Mapping[str, Callable[[BacklogRow], Any]] = {
    "priority": lambda row: row.item.priority,
    "age": lambda row: row.item.created_at,
    "question": lambda row: row.item.query.casefold(),
    "grades": lambda row: row.ratings,
}


def chosen(
    rows: Sequence[BacklogRow], *, state: str = "", golden: str = "", text: str = "", sort: str = ""
) -> list[BacklogRow]:
    """Return the pairs that pass the filters, sorted; unless told otherwise what waits comes first, the most urgent before."""
    wanted = text.casefold().strip()
    found = [
        row
        for row in rows
        if (not state or row.item.state == state)
        and (not golden or row.golden == golden)
        and wanted in f"{row.item.query}\n{row.item.title}\n{row.item.doc_id}\n{row.item.item_key}".casefold()
    ]
    key = ORDERS.get(sort.removeprefix("-"))
    if key is None:
        return sorted(found, key=lambda row: STATES.index(row.item.state))
    return sorted(found, key=key, reverse=sort.startswith("-"))
