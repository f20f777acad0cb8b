"""What happened and what it is worth: queries, feedback, judgments, results and shadow runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, Table, delete, select, tuple_

from ringtrue.answers import EventType, JudgmentSource
from ringtrue.errors import InputError, MissingInput
from ringtrue.store.base import Base, among, insert
from ringtrue.store.records import DEFAULT_PROJECT, FeedbackEvent, LoggedQuery, RunType, ShadowRun, StoredJudgment, StoredResult
from ringtrue.store.rows import FEEDBACK, JUDGMENT, QUERY, RESULT, SHADOW, Form, words
from ringtrue.store.times import timestamp
from ringtrue.traffic import Traffic

Record = TypeVar("Record")
Moment = str | datetime


class Events(Base):
    """The log and what is derived from it."""

    def add_queries(self, rows: Sequence[LoggedQuery]) -> int:
        """Add searches to the log in one transaction; return how many are new. A query id that is there already stays."""
        return self._add(QUERY, rows)

    def queries(
        self,
        *,
        project: str = DEFAULT_PROJECT,
        since: Moment | None = None,
        until: Moment | None = None,
        session_id: str | None = None,
        tool: str | None = None,
        query_ids: Sequence[str] | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
        prompt_id: str | None = None,
        traffic: Traffic | Literal["all"] = "user",
        limit: int | None = None,
        after: str | None = None,
        newest: bool = False,
    ) -> list[LoggedQuery]:
        """Return logged searches in the order of time, from ``since`` on and before ``until``.

        These are users' searches unless ``traffic`` says otherwise; searches named by ``query_ids`` are returned whoever made
        them. ``limit`` takes the first ones, or with ``newest`` the last ones. ``after`` continues after a query id, or after
        everything that happened at a time. Raises MissingInput if there is no such query.
        """
        table = QUERY.table
        found = self._among(table, project, query_id=query_ids)
        found += _equal(table, session_id=session_id, tool_name=tool, user_id=user_id, trace_id=trace_id, prompt_id=prompt_id)
        found += _between(table, since, until)
        if traffic != "all" and query_ids is None:
            found.append(table.c.traffic == traffic)
        with self._reading() as connection:
            if after is not None:
                found.append(_behind(connection, project, after))
            return _in_time(connection, QUERY, found, "query_id", limit=limit, newest=newest, few=query_ids is not None)

    def add_feedback(self, rows: Sequence[FeedbackEvent]) -> int:
        """Add events in one transaction; return how many are new. An event id that is there already stays."""
        return self._add(FEEDBACK, rows)

    def feedback(
        self,
        *,
        project: str = DEFAULT_PROJECT,
        since: Moment | None = None,
        until: Moment | None = None,
        session_id: str | None = None,
        query_ids: Sequence[str] | None = None,
        kinds: Sequence[EventType] | None = None,
        limit: int | None = None,
        newest: bool = False,
    ) -> list[FeedbackEvent]:
        """Return events in the order of time, from ``since`` on and before ``until``; ``limit`` as for queries."""
        table = FEEDBACK.table
        found = self._among(table, project, query_id=query_ids, event_type=kinds)
        found += _equal(table, session_id=session_id) + _between(table, since, until)
        with self._reading() as connection:
            return _in_time(connection, FEEDBACK, found, "event_id", limit=limit, newest=newest, few=query_ids is not None)

    def add_judgments(self, rows: Sequence[StoredJudgment]) -> int:
        """Add judgments in one transaction; one of the same query, item, source and annotator is replaced."""
        return self._add(JUDGMENT, rows, replace=True)

    def judgments(
        self,
        *,
        project: str = DEFAULT_PROJECT,
        query_ids: Sequence[str] | None = None,
        source: JudgmentSource | None = None,
        annotator: str | None = None,
        after: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[StoredJudgment]:
        """Return judgments by query, item, source and annotator, in the order that the database gives to texts.

        ``after`` goes on behind the judgment with these four, which need not be there any more.
        """
        table = JUDGMENT.table
        order = [table.c[name] for name in JUDGMENT.key if name != "project"]
        found = self._among(table, project, query_id=query_ids) + _equal(table, source=source, annotator=annotator)
        if after is not None:
            found.append(tuple_(*order) > tuple_(*map(words, after)))
        return self._all(JUDGMENT, select(table).where(*found).order_by(*order).limit(limit))

    def delete_judgments(
        self,
        *,
        project: str,
        source: JudgmentSource,
        annotator: str | None = None,
        query_ids: Sequence[str] | None = None,
    ) -> int:
        """Delete the judgments of one source; return how many there were."""
        table = JUDGMENT.table
        found = self._among(table, project, query_id=query_ids) + _equal(table, source=source, annotator=annotator)
        with self._writing() as connection:
            return int(connection.execute(delete(table).where(*found)).rowcount)

    def add_result(self, row: StoredResult) -> None:
        """Keep an evaluation's figures; raises InputError where the run id has others already."""
        new = RESULT.row(row)
        with self._writing() as connection:
            if insert(connection, RESULT.table, [new]):
                return
            found = [RESULT.table.c[name] == new[name] for name in RESULT.key]
            there = connection.execute(select(RESULT.table).where(*found)).mappings().one()
        if any(there[column] != value for column, value in new.items()):
            raise InputError(f"run {row.run_id!r} has other figures already; results are kept: give the run a new id")

    def results(
        self,
        *,
        project: str = DEFAULT_PROJECT,
        run_type: RunType | None = None,
        feature_id: str | None = None,
        since: Moment | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> list[StoredResult]:
        """Return evaluations, the newest first; ``before`` goes on behind a run id.

        Raises MissingInput where there is no such run.
        """
        table = RESULT.table
        found = [*_equal(table, run_type=run_type, feature_id=feature_id), *_between(table, since, None)]
        return self._newest(RESULT, "run_id", found, project=project, limit=limit, before=before)

    def result(self, run_id: str, *, project: str = DEFAULT_PROJECT) -> StoredResult | None:
        """Return the figures of one evaluation; None where there is none of that run id."""
        return self._one(RESULT, project=project, run_id=run_id)

    def add_shadow_runs(self, rows: Sequence[ShadowRun]) -> int:
        """Add shadow runs in one transaction; return how many are new. A query counts once for a candidate of a feature."""
        return self._add(SHADOW, rows)

    def shadow_runs(
        self,
        *,
        feature_id: str,
        project: str = DEFAULT_PROJECT,
        since: Moment | None = None,
        limit: int | None = None,
        newest: bool = False,
    ) -> list[ShadowRun]:
        """Return the shadow runs of a feature in the order of time; ``limit`` as for queries."""
        table = SHADOW.table
        found = [table.c.project == words(project), *_equal(table, feature_id=feature_id), *_between(table, since, None)]
        with self._reading() as connection:
            return _in_time(connection, SHADOW, found, "query_id", limit=limit, newest=newest)

    def shadow_features(self, *, project: str = DEFAULT_PROJECT) -> list[str]:
        """Return the features that have shadow runs, by name."""
        column = SHADOW.table.c
        with self._reading() as connection:
            return sorted(connection.scalars(select(column.feature_id).where(column.project == words(project)).distinct()))

    def _among(self, table: Table, project: str, **columns: Sequence[str] | None) -> list[ColumnElement[bool]]:
        """Return the conditions: this project, and for each column that was asked for one of its values."""
        kind = self.address.url.get_backend_name()
        chosen = [among(kind, table.c[name], values) for name, values in columns.items() if values is not None]
        return [table.c.project == words(project), *chosen]


def _equal(table: Table, **columns: str | None) -> list[ColumnElement[bool]]:
    return [table.c[name] == words(value) for name, value in columns.items() if value is not None]


def _between(table: Table, since: Moment | None, until: Moment | None) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if since is not None:
        found.append(table.c.created_at >= timestamp(since))
    if until is not None:
        found.append(table.c.created_at < timestamp(until))
    return found


def _behind(connection: Connection, project: str, after: str) -> ColumnElement[bool]:
    table = QUERY.table
    place = select(table.c.created_at).where(table.c.project == words(project), table.c.query_id == words(after))
    at = connection.execute(place).scalar()
    if at is not None:
        return tuple_(table.c.created_at, table.c.query_id) > tuple_(at, words(after))
    try:
        return table.c.created_at > timestamp(after)
    except InputError:
        raise MissingInput(f"the log of project {project!r} has no query {after!r} to go on after; give a time") from None


def _in_time(
    connection: Connection,
    form: Form[Record],
    found: Sequence[ColumnElement[bool]],
    name: str,
    *,
    limit: int | None,
    newest: bool,
    few: bool = False,
) -> list[Record]:
    """Return records in the order of time; equal times by ``name``, so that pages never overlap.

    A few that are named are put in order afterwards: SQLite would rather walk through a whole project than sort them.
    """
    statement: Select[Any] = select(form.table).where(*found)
    if few:
        ordered = sorted(connection.execute(statement).mappings(), key=lambda row: (row["created_at"], row[name]))
        chosen = ordered if limit is None else ordered[-limit:] if newest and limit else ordered[:limit]
        return [form.read(row) for row in chosen]
    columns = [form.table.c.created_at, form.table.c[name]]
    turned = newest and limit is not None
    statement = statement.limit(limit).order_by(*(column.desc() if turned else column for column in columns))
    records = [form.read(row) for row in connection.execute(statement).mappings()]
    return records[::-1] if turned else records
