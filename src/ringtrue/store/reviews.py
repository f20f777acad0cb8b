"""Pairs to be judged by people, and what each of them said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

from sqlalchemy import and_, func, or_, select, tuple_

from ringtrue.answers import ReviewState
from ringtrue.errors import MissingInput
from ringtrue.store.base import Base, Moment, insert
from ringtrue.store.records import DEFAULT_PROJECT, ReviewItem, StoredRating
from ringtrue.store.rows import words
from ringtrue.store.tables import RATING, REVIEW
from ringtrue.store.times import timestamp


class ReviewStore(Base):
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
        table = REVIEW.table.c
        where = self._where(REVIEW, project, state=state)
        if after is not None:
            priority, created_at, key = after
            behind = tuple_(table.created_at, table.item_key) > tuple_(words(created_at), words(key))
            where.append(or_(table.priority < priority, and_(table.priority == priority, behind)))
        return self._all(REVIEW, where, table.priority.desc(), table.created_at, table.item_key, limit=limit)

    def update_review_item(
        self, item_key: str, change: Callable[[ReviewItem], ReviewItem | None], *, project: str = DEFAULT_PROJECT
    ) -> ReviewItem | None:
        """Change a pair in one transaction, so that two reviewers cannot reserve it at once; return what it became.

        ``change`` returns None to leave it as it is. Raises MissingInput if the queue has no such pair.
        """
        return self._change(REVIEW, project, change, _missing(project, item_key), item_key=item_key)

    def add_rating(
        self, item_key: str, reviewer: str, grade: int, at: Moment, *, project: str = DEFAULT_PROJECT, note: str = ""
    ) -> None:
        """Keep what a reviewer said; said again, it replaces what the same reviewer said before.

        Raises MissingInput if the queue has no such pair.
        """
        rating = StoredRating(item_key, reviewer, grade, timestamp(at), note, project)
        with self._writing() as connection:
            where = self._where(REVIEW, project, item_key=item_key)
            if connection.execute(select(REVIEW.table.c.id).where(*where)).first() is None:
                raise MissingInput(_missing(project, item_key))
            insert(connection, RATING.table, [RATING.row(rating)], key=RATING.key, replace=True)

    def delete_rating(self, item_key: str, reviewer: str, *, project: str = DEFAULT_PROJECT) -> bool:
        """Take back what a reviewer said; return whether there was anything."""
        return bool(self._delete(RATING.table, *self._where(RATING, project, item_key=item_key, reviewer=reviewer)))

    def ratings(self, *, project: str = DEFAULT_PROJECT, item_keys: Sequence[str] | None = None) -> list[StoredRating]:
        """Return what everybody said, by pair and reviewer."""
        table = RATING.table.c
        return self._all(RATING, self._where(RATING, project, item_key=item_keys), table.item_key, table.reviewer)

    def backlog(self, *, project: str = DEFAULT_PROJECT) -> dict[str, Any]:
        """Return how many pairs are in each state, all of them as ``total``, and since when the oldest one waits."""
        table = REVIEW.table.c
        found = select(table.state, func.count(), func.min(table.created_at)).where(*self._where(REVIEW, project))
        with self._reading() as connection:
            states = {state: (count, oldest) for state, count, oldest in connection.execute(found.group_by(table.state))}
        counts = {state: states.get(state, (0, None))[0] for state in get_args(ReviewState)}
        oldest = states.get("pending_review", (0, None))[1]
        return {**counts, "total": sum(counts.values()), "oldest_pending_at": oldest}


def _missing(project: str, item_key: str) -> str:
    return f"the review queue of project {project!r} has no item {item_key!r}"
