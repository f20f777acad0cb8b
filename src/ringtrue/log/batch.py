"""What the SDK and the service do alike with a batch of rows on its way into the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from ringtrue.log.lines import Row
from ringtrue.store import USER_DELETED, LoggedQuery, timestamp, user_mark

if TYPE_CHECKING:
    from ringtrue.store import Store

Item = TypeVar("Item")


def write_apart(
    items: Sequence[Item],
    write: Callable[[Sequence[Item]], None],
    *,
    away: tuple[type[Exception], ...],
    refuse: Callable[[Item, Exception], None],
) -> None:
    """Write all of a batch in one transaction. If the database refuses what is in one of them, it spoils only itself.

    Halves are tried until it is found, and ``refuse`` is called with it. Raises what is in ``away``, and what ``refuse``
    raises: the database is to blame then, and the items that were not written may be written later.
    """
    parts = [items] if items else []
    while parts:
        part = parts.pop()
        try:
            write(part)
        except away:
            raise
        except Exception as problem:
            if len(part) == 1:
                refuse(part[0], problem)
            else:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]


def without_deleted_users(store: Store, rows: Sequence[Row]) -> list[Row]:
    """Return the rows without what deleted users did before they were deleted: a row that comes late must not bring it back."""
    deleted = _deletions(store, rows)
    if not deleted:
        return list(rows)

    def gone(row: Row) -> bool:
        at = deleted.get((row.project, row.user_id or ""))
        return at is not None and timestamp(row.created_at) <= at

    theirs = [row for row in rows if gone(row)]
    searches = {(row.project, row.query_id) for row in theirs if row.query_id is not None}
    visits = {(row.project, row.session_id) for row in theirs if row.session_id is not None}

    def follows(row: Row) -> bool:
        # As in the store: an event without a user is the user's if it belongs to the user's search or session.
        if isinstance(row, LoggedQuery) or row.user_id is not None:
            return False
        return (row.project, row.query_id) in searches or (row.project, row.session_id) in visits

    return [row for row in rows if not gone(row) and not follows(row)]


def _deletions(store: Store, rows: Sequence[Row]) -> Mapping[tuple[str, str], str]:
    """Return when users of these rows were last deleted, by project and user, if that is after a row of theirs."""
    first: dict[str, str] = {}
    users: dict[str, set[str]] = {}
    for row in rows:
        if row.user_id is not None:
            at = timestamp(row.created_at)
            first[row.project] = min(first.get(row.project, at), at)
            users.setdefault(row.project, set()).add(row.user_id)
    found: dict[tuple[str, str], str] = {}
    for project, since in first.items():
        # The newest come first, and the last deletion is the one that counts.
        last = {entry.subject: entry.at for entry in reversed(store.audit(project=project, what=USER_DELETED, since=since))}
        if last:
            marks = {user: user_mark(user, project) for user in users[project]}
            found |= {(project, user): last[mark] for user, mark in marks.items() if mark in last}
    return found
