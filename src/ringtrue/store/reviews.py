"""Pairs to be judged by people, and what each of them said (G-8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import and_, delete, func, or_, select, tuple_, update

from ringtrue.answers import ReviewState
from ringtrue.errors import InputError, MissingInput
from ringtrue.store.base import Base, among, insert
from ringtrue.store.records import DEFAULT_PROJECT, ReviewItem
from ringtrue.store.rows import REVIEW, words
from ringtrue.store.tables import REVIEW_STATES, ratings
from ringtrue.store.times import timestamp


class Rating(NamedTuple):
    """What one reviewer said about one pair."""

    item_key: str
    reviewer: str
    grade: int
    at: str
    note: str


class Reviews(Base):
    """The review queue."""

    def add_review_items(self, rows: Sequence[ReviewItem]) -> int:
        """Add pairs to the queue; return how many are new. One that is there keeps its state."""
        return self._add(REVIEW, rows)

    def review_items(
        self,
        *,
        project: str = DEFAULT_PROJECT,
        state: ReviewState | None = None,
        after: tuple[float, str, str] | None = None,
        limit: int | None = None,
    ) -> list[ReviewItem]:
        """Return pairs, the most urgent first, then the oldest; ``after`` goes on behind a priority, a time and a key."""
        table = REVIEW.table
        found = select(table).where(table.c.project == words(project)).limit(limit)
        if after is not None:
            priority, created_at, key = after
            behind = tuple_(table.c.created_at, table.c.item_key) > tuple_(words(created_at), words(key))
            found = found.where(or_(table.c.priority < priority, and_(table.c.priority == priority, behind)))
        if state is not None:
            found = found.where(table.c.state == state)
        return self._all(REVIEW, found.order_by(table.c.priority.desc(), table.c.created_at, table.c.item_key))

    def save_review_item(self, item: ReviewItem) -> None:
        """Replace a pair's state; raises MissingInput where the queue has no such pair."""
        self.update_review_item(item.item_key, lambda _: item, project=item.project)

    def update_review_item(
        self, item_key: str, change: Callable[[ReviewItem], ReviewItem | None], *, project: str = DEFAULT_PROJECT
    ) -> ReviewItem | None:
        """Change a pair in one transaction, so that two reviewers cannot reserve it at once; return what it became.

        ``change`` returns None to leave it as it is. Raises MissingInput where the queue has no such pair.
        """
        table = REVIEW.table
        this = (table.c.project == words(project), table.c.item_key == words(item_key))
        with self._writing() as connection:
            row = connection.execute(select(table).where(*this).with_for_update()).mappings().first()
            if row is None:
                raise MissingInput(f"the review queue of project {project!r} has no item {item_key!r}")
            new = change(REVIEW.read(row))
            if new is None:
                return None
            if (words(new.project), words(new.item_key)) != (row["project"], row["item_key"]):
                raise InputError(f"a review item keeps its key; {item_key!r} cannot become {new.item_key!r}")
            written = REVIEW.row(new)
            connection.execute(update(table).where(*this).values(written))
            return REVIEW.read(written)

    def add_rating(
        self, item_key: str, reviewer: str, grade: int, at: str | datetime, *, project: str = DEFAULT_PROJECT, note: str = ""
    ) -> None:
        """Keep what a reviewer said; said again, it replaces what the same reviewer said before.

        Raises MissingInput where the queue has no such pair.
        """
        row = {
            "project": words(project), "item_key": words(item_key), "reviewer": words(reviewer), "grade": int(grade),
            "at": timestamp(at), "note": words(note),
        }  # fmt: skip
        table = REVIEW.table
        this = select(table.c.id).where(table.c.project == row["project"], table.c.item_key == row["item_key"])
        with self._writing() as connection:
            if connection.execute(this).first() is None:
                raise MissingInput(f"the review queue of project {project!r} has no item {item_key!r}")
            insert(connection, ratings, [row], key=("project", "item_key", "reviewer"), replace=True)

    def delete_rating(self, item_key: str, reviewer: str, *, project: str = DEFAULT_PROJECT) -> bool:
        """Take back what a reviewer said; return whether there was anything."""
        this = (
            ratings.c.project == words(project),
            ratings.c.item_key == words(item_key),
            ratings.c.reviewer == words(reviewer),
        )
        with self._writing() as connection:
            return bool(connection.execute(delete(ratings).where(*this)).rowcount)

    def ratings(self, *, project: str = DEFAULT_PROJECT, item_keys: Sequence[str] | None = None) -> list[Rating]:
        """Return what everybody said, by pair and reviewer."""
        columns = [ratings.c[name] for name in Rating._fields]
        found = select(*columns).where(ratings.c.project == words(project)).order_by(ratings.c.item_key, ratings.c.reviewer)
        if item_keys is not None:
            found = found.where(among(self.address.url.get_backend_name(), ratings.c.item_key, item_keys))
        with self._reading() as connection:
            return [Rating(*row) for row in connection.execute(found)]

    def backlog(self, *, project: str = DEFAULT_PROJECT) -> dict[str, Any]:
        """Return how many pairs are in each state, all of them as ``total``, and since when the oldest one waits."""
        table = REVIEW.table
        found = select(table.c.state, func.count(), func.min(table.c.created_at)).where(table.c.project == words(project))
        with self._reading() as connection:
            states = {state: (count, oldest) for state, count, oldest in connection.execute(found.group_by(table.c.state))}
        counts = {state: states.get(state, (0, None))[0] for state in REVIEW_STATES}
        oldest = states.get("pending_review", (0, None))[1]
        return {**counts, "total": sum(counts.values()), "oldest_pending_at": oldest}
