"""Forgetting a user (L-3): everything that hangs on the user's searches, in the database and in the archives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, or_, select, update

from ringtrue.errors import InputError
from ringtrue.store.archive import remove_lines
from ringtrue.store.base import Base, among
from ringtrue.store.records import DEFAULT_PROJECT
from ringtrue.store.rows import words
from ringtrue.store.tables import archives, eval_feedback, eval_judgments, eval_queries, eval_shadow_runs, reviews


class Forgetting(Base):
    """The store as it forgets a user."""

    def delete_user(self, user_id: str, *, project: str = DEFAULT_PROJECT) -> int:
        """Delete a user's searches and events, and all that refers to them; return how many rows went, archived ones included.

        Judgments and review items of the user's searches go with them; the ids that a sequential test has counted stay, or
        they would count again. Raises InputError, after everything else is gone, naming the archives that may still hold the
        user because they are not there or cannot be changed.
        """
        held: list[str] = []
        queries, sessions, count = set[str](), set[str](), 0
        for path in self._archived(project):
            try:
                removed = remove_lines(path, lambda line: line["project"] == project and line["user_id"] == words(user_id))
            except (OSError, InputError):
                held.append(str(path))
                continue
            count += len(removed)
            queries |= {line["query_id"] for line in removed}
            sessions |= {line["session_id"] for line in removed if line["session_id"] is not None}
            if removed:
                self._shorten(path, len(removed))
        with self._writing() as connection:
            count += _delete(connection, words(project), words(user_id), queries, sessions)
        if held:
            raise InputError(
                f"{count} rows of the user were deleted, but these archives are missing or cannot be changed and may still "
                f"hold the user: {', '.join(held)}; bring them back, or where they are gone: ringtrue store prune --forget FILE"
            )
        return count

    def forget_archive(self, path: str | Path) -> bool:
        """Note that an archive no longer exists anywhere; return whether this store had written it."""
        with self._writing() as connection:
            return bool(connection.execute(delete(archives).where(archives.c.path == str(Path(path).absolute()))).rowcount)

    def _archived(self, project: str) -> list[Path]:
        with self._reading() as connection:
            found = connection.scalars(select(archives.c.path).where(archives.c.project == words(project)))
            return [Path(path) for path in found]

    def _shorten(self, path: Path, count: int) -> None:
        with self._writing() as connection:
            this = archives.c.path == str(path)
            connection.execute(update(archives).where(this).values(rows=archives.c.rows - count))


def _delete(connection: Connection, project: str, user_id: str, queries: set[str], sessions: set[str]) -> int:
    log, events = eval_queries.c, eval_feedback.c
    mine = and_(log.project == project, log.user_id == user_id)
    for query_id, session_id in connection.execute(select(log.query_id, log.session_id).where(mine)):
        queries.add(query_id)
        if session_id is not None:
            sessions.add(session_id)
    kind = connection.dialect.name

    def of(column: ColumnElement[Any], values: Sequence[str]) -> ColumnElement[bool]:
        return among(kind, column, values)

    theirs, visits = sorted(queries), sorted(sessions)
    found = [
        (eval_queries, log.user_id == user_id),
        # An event without a user is the user's where it belongs to one of the user's searches or sessions.
        (
            eval_feedback,
            or_(
                events.user_id == user_id,
                and_(events.user_id.is_(None), or_(of(events.query_id, theirs), of(events.session_id, visits))),
            ),
        ),
        *((table, of(table.c.query_id, theirs)) for table in (eval_shadow_runs, eval_judgments, reviews)),
    ]
    gone = [connection.execute(delete(table).where(table.c.project == project, where)) for table, where in found]
    return sum(result.rowcount for result in gone)
