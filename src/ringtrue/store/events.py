"""What happened and what it is worth: queries, feedback, judgments, results and shadow runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlalchemy import ColumnElement, select, tuple_

from ringtrue.answers import EventType, JudgmentSource
from ringtrue.errors import InputError, MissingInput
from ringtrue.store.base import Base, Moment, insert
from ringtrue.store.records import DEFAULT_PROJECT, FeedbackEvent, LoggedQuery, RunType, ShadowRun, StoredJudgment, StoredResult
from ringtrue.store.rows import words
from ringtrue.store.tables import FEEDBACK, JUDGMENT, QUERY, RESULT, SHADOW
from ringtrue.store.times import timestamp
from ringtrue.traffic import Traffic


class EventStore(Base):
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
        asked = {"session_id": session_id, "tool_name": tool, "user_id": user_id, "trace_id": trace_id, "prompt_id": prompt_id}
        whose = None if traffic == "all" or query_ids is not None else traffic
        where = self._where(QUERY, project, since=since, until=until, query_id=query_ids, traffic=whose, **asked)
        if after is not None:
            where.append(self._behind(project, after))
        return self._in_time(QUERY, where, limit=limit, newest=newest, few=query_ids is not None)

    def _behind(self, project: str, after: str) -> ColumnElement[bool]:
        table = QUERY.table.c
        with self._reading() as connection:
            at = connection.scalar(select(table.created_at).where(*self._where(QUERY, project, query_id=after)))
        if at is not None:
            return tuple_(table.created_at, table.query_id) > tuple_(at, words(after))
        try:
            return table.created_at > timestamp(after)
        except InputError:
            raise MissingInput(f"the log of project {project!r} has no query {after!r} to go on after; give a time") from None

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
        asked = {"session_id": session_id, "query_id": query_ids, "event_type": kinds}
        where = self._where(FEEDBACK, project, since=since, until=until, **asked)
        return self._in_time(FEEDBACK, where, limit=limit, newest=newest, few=query_ids is not None)

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
        order = [JUDGMENT.table.c[name] for name in JUDGMENT.key if name != "project"]
        where = self._where(JUDGMENT, project, query_id=query_ids, source=source, annotator=annotator)
        if after is not None:
            where.append(tuple_(*order) > tuple_(*map(words, after)))
        return self._all(JUDGMENT, where, *order, limit=limit)

    def delete_judgments(
        self,
        *,
        project: str,
        source: JudgmentSource,
        annotator: str | None = None,
        query_ids: Sequence[str] | None = None,
    ) -> int:
        """Delete the judgments of one source; return how many there were."""
        where = self._where(JUDGMENT, project, query_id=query_ids, source=source, annotator=annotator)
        return self._delete(JUDGMENT.table, *where)

    def add_result(self, row: StoredResult) -> None:
        """Keep an evaluation's figures; raises InputError if the run id has others already."""
        new = RESULT.row(row)
        with self._writing() as connection:
            if insert(connection, RESULT.table, [new]):
                return
            where = self._where(RESULT, row.project, run_id=row.run_id)
            there = connection.execute(select(RESULT.table).where(*where)).mappings().one()
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

        Raises MissingInput if there is no such run.
        """
        where = self._where(RESULT, project, since=since, run_type=run_type, feature_id=feature_id)
        return self._newest(RESULT, where, project=project, limit=limit, before=before)

    def result(self, run_id: str, *, project: str = DEFAULT_PROJECT) -> StoredResult | None:
        """Return the figures of one evaluation; None if there is none of that run id."""
        return self._one(RESULT, project, run_id=run_id)

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
        where = self._where(SHADOW, project, since=since, feature_id=feature_id)
        return self._in_time(SHADOW, where, limit=limit, newest=newest)

    def shadow_features(self, *, project: str = DEFAULT_PROJECT) -> list[str]:
        """Return the features that have shadow runs, by name."""
        return self._distinct(SHADOW.table.c.feature_id, self._where(SHADOW, project))
