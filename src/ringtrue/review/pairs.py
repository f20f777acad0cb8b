"""Pairs of question and document as reviewers see them: their keys, texts and disputes, and how the queue of them moves."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, get_args

from ringtrue.answers import Dispute, ReviewState
from ringtrue.golden import Candidate, RaterDispute
from ringtrue.records import GoldenSet
from ringtrue.store import DEFAULT_PROJECT, ReviewItem, timestamp

if TYPE_CHECKING:
    from ringtrue.review.queue import ReviewQueue
    from ringtrue.run import Evaluation


Passages = Mapping[str, tuple[str, str]]
"""Title and text of documents by id."""


def key_of(query_id: str, doc_id: str) -> str:
    """Return the key of a pair: short enough to be typed.

    >>> key_of("q1", "d1")
    'bcd664c26d'
    """
    return hashlib.sha256(f"{query_id}\0{doc_id}".encode("utf-8", "surrogatepass")).hexdigest()[:10]


def disputed(found: Iterable[RaterDispute], texts: Mapping[str, str]) -> tuple[Dispute, ...]:
    """Return disputes with their keys and the texts of their questions, by query id."""
    return tuple(
        Dispute(key_of(one.query_id, one.doc_id), one.query_id, texts.get(one.query_id, ""), one.doc_id, one.grades)
        for one in found
    )


def passages_of(runs: Iterable[Evaluation]) -> dict[str, tuple[str, str]]:
    """Return title and text of documents, as far as the searches of these runs told either."""
    found: dict[str, tuple[str, str]] = {}
    for run in runs:
        for doc_id in {**run.titles, **run.texts}:
            title, text = found.get(doc_id, ("", ""))
            found[doc_id] = (title or run.titles.get(doc_id, ""), text or run.texts.get(doc_id, ""))
    return found


def pairs_of(
    golden: GoldenSet,
    candidates: Iterable[Candidate],
    *,
    now: datetime,
    wanted: int = 1,
    project: str = DEFAULT_PROJECT,
    passages: Passages = {},  # noqa: B006  # never changed
    about: Mapping[str, Any] | None = None,
) -> list[ReviewItem]:
    """Return review items for the unjudged documents that ``golden.worth_judging`` names; their weight is the priority.

    ``passages`` have title and text of documents that the set does not bring. ``about`` is what a pair says of its origin,
    the set unless given.
    """
    texts = {query.query_id: query.text for query in golden.queries}
    known = {**passages, **{document.doc_id: (document.title, document.text) for document in golden.documents}}
    facts = about or {"golden": golden.id}
    return [
        ReviewItem(
            key_of(one.query_id, one.doc_id), one.query_id, texts[one.query_id], one.doc_id, timestamp(now), project,
            *known.get(one.doc_id, ("", "")), priority=one.weight, wanted=wanted, metadata=facts,
        )
        for one in candidates
    ]  # fmt: skip


# ── the queue as a whole ──────────────────────────────────────────────────────────────────────────────────────────────


STATES: tuple[ReviewState, ...] = get_args(ReviewState)
WEEKS = 8


@dataclass(frozen=True, slots=True)
class BacklogRow:
    """A pair in the list."""

    item: ReviewItem
    ratings: int
    source: str
    """How it came into the queue."""
    golden: str
    """The set that it is judged for; empty if none is named."""

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
