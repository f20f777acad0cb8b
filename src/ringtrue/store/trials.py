"""Sequential tests, flags and the audit trail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from types import EllipsisType
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, delete, select, update

from ringtrue.errors import InputError, MissingInput
from ringtrue.store.base import Base, insert
from ringtrue.store.records import DEFAULT_PROJECT, ABTest, AuditEntry, Flag, TestPoint
from ringtrue.store.rows import AUDIT, FLAG, POINT, TEST, words
from ringtrue.store.tables import eval_ab_counted
from ringtrue.store.times import timestamp

ALL_POINTS = 200
"""So many queries of a test leave a point each."""


class Trials(Base):
    """What is being tried, on whom, and who decided it."""

    def create_test(self, state: ABTest) -> None:
        """Start a sequential test; raises InputError where the feature has one already."""
        with self._writing() as connection:
            if not insert(connection, TEST.table, [TEST.row(state)]):
                raise InputError(f"feature {state.feature_id!r} has a test already; look at it: ringtrue test status")

    def test(self, feature_id: str, *, project: str = DEFAULT_PROJECT) -> ABTest | None:
        """Return a feature's test as far as it has come; None where there is none."""
        return next(iter(self._all(TEST, _test(project, feature_id))), None)

    def tests(self, *, project: str = DEFAULT_PROJECT) -> list[ABTest]:
        """Return the tests of a project by feature."""
        table = TEST.table
        return self._all(TEST, select(table).where(table.c.project == words(project)).order_by(table.c.feature_id))

    def update_test(
        self,
        feature_id: str,
        query_id: str,
        change: Callable[[ABTest], ABTest],
        *,
        project: str = DEFAULT_PROJECT,
        point: Callable[[ABTest], TestPoint | None] | None = None,
    ) -> ABTest | None:
        """Count one query in a test and return the new state; None where the query was counted before.

        Reading, ``change`` and writing are one transaction that holds the test: whoever else updates it waits, and sees this
        state. ``point`` makes a point of the test's path from the new state; it is asked at every query at first, ever more
        seldom later, and at the decision. A test that begins anew loses its path. Where ``change`` raises, nothing is counted.
        Raises MissingInput where there is no such test.
        """
        with self._writing() as connection:
            state = _held(connection, project, feature_id)
            counted = {"project": words(project), "feature_id": words(feature_id), "query_id": words(query_id)}
            if not insert(connection, eval_ab_counted, [counted]):
                return None
            new = _write(connection, state, change(state))
            if new.started_at != state.started_at:
                connection.execute(delete(POINT.table).where(*_path(project, feature_id)))
            if point is not None and (_is_due(new.sample_count) or new.decision != state.decision):
                made = point(new)
                if made is not None:
                    insert(connection, POINT.table, [POINT.row(made)], key=POINT.key, replace=True)
            return new

    def test_points(self, feature_id: str, *, project: str = DEFAULT_PROJECT) -> list[TestPoint]:
        """Return the path of a feature's test in the order of its queries, as far as it was kept."""
        table = POINT.table
        return self._all(POINT, select(table).where(*_path(project, feature_id)).order_by(table.c.sample_count))

    def save_test(self, state: ABTest) -> None:
        """Replace a test's state, such as its status; raises MissingInput where there is no such test."""
        with self._writing() as connection:
            _write(connection, _held(connection, state.project, state.feature_id), state)

    def set_flag(
        self, flag: Flag, *, who: str, at: str | datetime, why: str = "", expected: Flag | EllipsisType | None = ...
    ) -> bool:
        """Set a flag and write down who did it, when, why, and what it was before; return True.

        Where ``expected`` is given and the flag is another by now (None: where it is there), nothing changes and False is
        returned: two who change a flag at once cannot undo each other's change unseen.
        """
        row, table = FLAG.row(flag), FLAG.table
        this = [table.c[name] == row[name] for name in FLAG.key]
        with self._writing() as connection:
            before: Flag | None = None
            made = insert(connection, table, [row]) if expected is None or expected is ... else 0
            if not made:
                found = connection.execute(select(table).where(*this).with_for_update()).mappings().first()
                before = None if found is None else FLAG.read(found)
                if before is None or expected is None or (expected is not ... and before != FLAG.read(FLAG.row(expected))):
                    return False
                connection.execute(update(table).where(*this).values(row))
            detail = {"before": None if before is None else asdict(before), "after": asdict(flag), "why": why}
            entry = AuditEntry(timestamp(at), who, "set flag", flag.name, detail, flag.project)
            insert(connection, AUDIT.table, [AUDIT.row(entry)])
            return True

    def flag(self, name: str, *, project: str = DEFAULT_PROJECT) -> Flag | None:
        """Return a flag; None where there is none of that name."""
        return next((flag for flag in self.flags(project=project) if flag.name == words(name)), None)

    def flags(self, *, project: str = DEFAULT_PROJECT) -> list[Flag]:
        """Return the flags of a project by name."""
        table = FLAG.table
        return self._all(FLAG, select(table).where(table.c.project == words(project)).order_by(table.c.name))

    def add_audit(self, entry: AuditEntry) -> None:
        """Write down who changed what; entries are never changed."""
        with self._writing() as connection:
            insert(connection, AUDIT.table, [AUDIT.row(entry)])

    def audit(
        self,
        *,
        project: str = DEFAULT_PROJECT,
        subject: str | None = None,
        what: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        limit: int | None = None,
    ) -> list[AuditEntry]:
        """Return who changed what, the newest first: all, of one subject, of one kind, from a time on, up to a time."""
        table = AUDIT.table
        found = select(table).where(table.c.project == words(project)).limit(limit)
        if subject is not None:
            found = found.where(table.c.subject == words(subject))
        if what is not None:
            found = found.where(table.c.what == words(what))
        if since is not None:
            found = found.where(table.c.at >= timestamp(since))
        if until is not None:
            found = found.where(table.c.at <= timestamp(until))
        return self._all(AUDIT, found.order_by(table.c.at.desc(), table.c.id.desc()))


def _test(project: str, feature_id: str) -> Select[Any]:
    table = TEST.table
    return select(table).where(table.c.project == words(project), table.c.feature_id == words(feature_id))


def _path(project: str, feature_id: str) -> list[ColumnElement[bool]]:
    table = POINT.table
    return [table.c.project == words(project), table.c.feature_id == words(feature_id)]


def _is_due(samples: int) -> bool:
    """True for every query up to 200, later for about one in every half per cent more: a path of any length stays short."""
    return samples % max(1, samples // ALL_POINTS) == 0


def _held(connection: Connection, project: str, feature_id: str) -> ABTest:
    """Return a test whose row nobody else can change before this transaction ends."""
    row = connection.execute(_test(project, feature_id).with_for_update()).mappings().first()
    if row is None:
        raise MissingInput(f"project {project!r} has no test of feature {feature_id!r}; start it: ringtrue test create")
    return TEST.read(row)


def _write(connection: Connection, old: ABTest, new: ABTest) -> ABTest:
    if (new.project, new.feature_id) != (old.project, old.feature_id):
        raise InputError(f"a test keeps its feature; {old.feature_id!r} cannot become {new.feature_id!r}")
    table, row = TEST.table, TEST.row(new)
    connection.execute(
        update(table).where(table.c.project == row["project"], table.c.feature_id == row["feature_id"]).values(row)
    )
    return TEST.read(row)
