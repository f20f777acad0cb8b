"""Sequential tests, flags and the audit trail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from types import EllipsisType

from sqlalchemy import delete, select, update

from ringtrue.errors import InputError
from ringtrue.store.base import Base, Moment, change_row, insert
from ringtrue.store.records import DEFAULT_PROJECT, ABTest, AuditEntry, Flag, TestPoint
from ringtrue.store.rows import words
from ringtrue.store.tables import AUDIT, FLAG, POINT, TEST, ab_counted
from ringtrue.store.times import timestamp

ALL_POINTS = 200
"""So many queries of a test leave a point each."""


class TrialStore(Base):
    """What is being tried, on whom, and who decided it."""

    def create_test(self, state: ABTest) -> None:
        """Start a sequential test; raises InputError if the feature has one already."""
        if not self._add(TEST, [state]):
            raise InputError(f"feature {state.feature_id!r} has a test already; look at it: ringtrue test status")

    def test(self, feature_id: str, *, project: str = DEFAULT_PROJECT) -> ABTest | None:
        """Return a feature's test as far as it has come; None if there is none."""
        return self._one(TEST, project, feature_id=feature_id)

    def tests(self, *, project: str = DEFAULT_PROJECT) -> list[ABTest]:
        """Return the tests of a project by feature."""
        return self._all(TEST, self._where(TEST, project), TEST.table.c.feature_id)

    def update_test(
        self,
        feature_id: str,
        query_id: str,
        change: Callable[[ABTest], ABTest],
        *,
        project: str = DEFAULT_PROJECT,
        point: Callable[[ABTest], TestPoint | None] | None = None,
    ) -> ABTest | None:
        """Count one query in a test and return the new state; None if the query was counted before.

        Reading, ``change`` and writing are one transaction that holds the test: whoever else updates it waits, and sees this
        state. ``point`` makes a point of the test's path from the new state; it is asked at every query at first, ever more
        seldom later, and at the decision. A test that begins anew loses its path. If ``change`` raises, nothing is counted.
        Raises MissingInput if there is no such test.
        """
        counted = {"project": words(project), "feature_id": words(feature_id), "query_id": words(query_id)}
        before: list[ABTest] = []
        with self._writing() as connection:

            def advance(state: ABTest) -> ABTest | None:
                before.append(state)
                return change(state) if insert(connection, ab_counted, [counted]) else None

            missing = f"project {project!r} has no test of feature {feature_id!r}; start it: ringtrue test create"
            new = change_row(connection, TEST, self._where(TEST, project, feature_id=feature_id), advance, missing)
            if new is None:
                return None
            if new.started_at != before[0].started_at:
                connection.execute(delete(POINT.table).where(*self._where(POINT, project, feature_id=feature_id)))
            if point is not None and (_is_due(new.sample_count) or new.decision != before[0].decision):
                made = point(new)
                if made is not None:
                    insert(connection, POINT.table, [POINT.row(made)], key=POINT.key, replace=True)
            return new

    def test_points(self, feature_id: str, *, project: str = DEFAULT_PROJECT) -> list[TestPoint]:
        """Return the path of a feature's test in the order of its queries, as far as it was kept."""
        return self._all(POINT, self._where(POINT, project, feature_id=feature_id), POINT.table.c.sample_count)

    def set_flag(self, flag: Flag, *, who: str, at: Moment, why: str = "", expected: Flag | EllipsisType | None = ...) -> bool:
        """Set a flag and write down who did it, when, why, and what it was before; return True.

        If ``expected`` is given and the flag is another by now (None: if it is there), nothing changes and False is returned:
        two who change a flag at once cannot undo each other's change unseen.
        """
        row, table = FLAG.row(flag), FLAG.table
        where = self._where(FLAG, flag.project, name=flag.name)
        with self._writing() as connection:
            before: Flag | None = None
            made = insert(connection, table, [row]) if expected is None or expected is ... else 0
            if not made:
                found = connection.execute(select(table).where(*where).with_for_update()).mappings().first()
                before = None if found is None else FLAG.read(found)
                if before is None or expected is None or (expected is not ... and before != FLAG.read(FLAG.row(expected))):
                    return False
                connection.execute(update(table).where(*where).values(row))
            detail = {"before": None if before is None else asdict(before), "after": asdict(flag), "why": why}
            entry = AuditEntry(timestamp(at), who, "set flag", flag.name, detail, flag.project)
            insert(connection, AUDIT.table, [AUDIT.row(entry)])
            return True

    def flag(self, name: str, *, project: str = DEFAULT_PROJECT) -> Flag | None:
        """Return a flag; None if there is none of that name."""
        return self._one(FLAG, project, name=name)

    def flags(self, *, project: str = DEFAULT_PROJECT) -> list[Flag]:
        """Return the flags of a project by name."""
        return self._all(FLAG, self._where(FLAG, project), FLAG.table.c.name)

    def add_audit(self, entry: AuditEntry) -> None:
        """Write down who changed what; entries are never changed."""
        self._add(AUDIT, [entry])

    def audit(
        self,
        *,
        project: str = DEFAULT_PROJECT,
        subject: str | None = None,
        what: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> list[AuditEntry]:
        """Return who changed what, the newest first: all, of one subject, of one kind, from a time on, up to a time."""
        table = AUDIT.table.c
        where = self._where(AUDIT, project, since=since, subject=subject, what=what)
        if until is not None:
            where.append(table.at <= timestamp(until))
        return self._all(AUDIT, where, table.at.desc(), table.id.desc(), limit=limit)


def _is_due(samples: int) -> bool:
    """True for every query up to 200, later for about one in every half per cent more: a path of any length stays short."""
    return samples % max(1, samples // ALL_POINTS) == 0
