"""The log and what is derived from it: queries, feedback, judgments, results and shadow runs; read in pages, or counted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy import ColumnElement, and_, case, func, or_, select, tuple_

from ringtrue.answers import EventType, JudgmentSource, LogStep, Step
from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.store.base import Base, Moment, insert
from ringtrue.store.records import (
    DEFAULT_PROJECT,
    QUERY_LIST,
    FeedbackEvent,
    LoggedQuery,
    RunType,
    ShadowRun,
    StoredJudgment,
    StoredResult,
    timestamp,
)
from ringtrue.store.tables import FEEDBACK, JUDGMENT, QUERY, RESULT, SHADOW, words
from ringtrue.traffic import Traffic

STEPS: dict[str, tuple[timedelta, int]] = {
    "minute": (timedelta(minutes=1), 16),
    "hour": (timedelta(hours=1), 13),
    "day": (timedelta(days=1), 10),
}
"""How long each is, and how many characters of a time say in which one it lies."""
MOST = 10_000
"""Steps that are counted at once; nobody sees more on a screen."""


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
        text: str | None = None,
        trouble: bool = False,
        slower_than: float | None = None,
        limit: int | None = None,
        after: str | None = None,
        before: tuple[Moment, str] | None = None,
        newest: bool = False,
    ) -> list[LoggedQuery]:
        """Return logged searches in the order of time, from ``since`` on and before ``until``.

        These are users' searches unless ``traffic`` says otherwise; searches named by ``query_ids`` are returned whoever made
        them. ``text`` is part of what was searched for, in upper or lower case. ``trouble`` takes those that found nothing,
        fell back or were degraded; ``slower_than`` is in milliseconds. ``limit`` takes the first ones, or with ``newest`` the
        last ones. ``after`` continues after a query id, or after everything that happened at a time; raises MissingInput if
        there is no such query. ``before`` takes those before a time and query id, whether that query is still there or not.
        """
        asked = {"session_id": session_id, "tool_name": tool, "user_id": user_id, "trace_id": trace_id, "prompt_id": prompt_id}
        whose = "all" if query_ids is not None else traffic
        where = self._where(QUERY, project, since=since, until=until, query_id=query_ids, traffic=_of(whose), **asked)
        log = QUERY.table.c
        if text:
            where.append(self._has(words(text)))
        if trouble:
            where.append(or_(_found_nothing(), log.degraded == 1, log.fallback.is_not(None)))
        if slower_than is not None:
            where.append(log.total_latency_ms > float(slower_than))
        if before is not None:
            where.append(tuple_(log.created_at, log.query_id) < tuple_(timestamp(before[0]), words(before[1])))
        if after is not None:
            there = self._all(QUERY, self._where(QUERY, project, query_id=after))
            if there:
                where.append(tuple_(log.created_at, log.query_id) > tuple_(there[0].created_at, words(after)))
            else:
                where.append(log.created_at > self._moment(project, after))
        return self._in_time(QUERY, where, limit=limit, newest=newest, few=query_ids is not None)

    def _has(self, part: str) -> ColumnElement[bool]:
        # LIKE of SQLite knows no case of ASCII's letters; to have every query turned to lower case would double its work.
        # Of other letters neither database knows it in every locale: they get the usual ways to write them.
        forms = {part} if part.isascii() else {part, part.lower(), part.upper(), part.capitalize(), part.title()}
        has = QUERY.table.c.query.contains if self.address.sqlite else QUERY.table.c.query.icontains
        return or_(*(has(form, autoescape=True) for form in sorted(forms)))

    def _moment(self, project: str, after: str) -> str:
        try:
            return timestamp(after)
        except InputError:
            raise MissingInput(f"the log of project {project!r} has no query {after!r} to start after; give a time") from None

    def count_queries(
        self,
        *,
        project: str = DEFAULT_PROJECT,
        since: Moment | None = None,
        until: Moment | None = None,
        tool: str | None = None,
        traffic: Traffic | Literal["all"] = "user",
    ) -> int:
        """Return how many searches of users, or of another ``traffic``, were logged from ``since`` on and before ``until``."""
        where = self._where(QUERY, project, since=since, until=until, tool_name=tool, traffic=_of(traffic))
        return self._count(QUERY.table, where)

    def log_volume(self, *, project: str = DEFAULT_PROJECT, since: Moment, until: Moment, step: Step) -> list[LogStep]:
        """Return the minutes, hours or days (UTC) in which users searched, in the order of time.

        Raises InputError for an unknown step, and for more than 10,000 of them.
        """
        if step not in STEPS:
            raise InputError(f"cannot count by {step!r}; write {nearest(step, STEPS)}")
        length, characters = STEPS[step]
        begin, end = (timestamp(moment) for moment in (since, until))
        count = (datetime.fromisoformat(end) - datetime.fromisoformat(begin)) // length
        if count > MOST:
            raise InputError(f"from {begin} to {end} there are {count:,} of {step!r}, more than {MOST:,}; take longer steps")
        log = QUERY.table.c
        start = func.substr(log.created_at, 1, characters)
        figures = (
            func.count(),
            func.sum(case((_found_nothing(), 1), else_=0)),
            func.sum(log.degraded),
            func.avg(log.total_latency_ms),
            func.avg(log.quality_proxy_score),
        )
        where = self._where(QUERY, project, since=begin, until=end, traffic="user")
        with self._reading() as connection:
            found = connection.execute(select(start, *figures).where(*where).group_by(start).order_by(start)).all()
        return [LogStep(at + "1970-01-01T00:00:00.000000Z"[characters:], *row) for at, *row in found]

    def tools(self, *, project: str = DEFAULT_PROJECT) -> list[str]:
        """Return the tools that have searched, by name."""
        return self._distinct(QUERY.table.c.tool_name, self._where(QUERY, project))

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
        before: tuple[Moment, str] | None = None,
    ) -> list[FeedbackEvent]:
        """Return events in the order of time, from ``since`` on and before ``until``; ``limit`` as for queries.

        ``before`` ends ahead of a time and event id.
        """
        asked = {"session_id": session_id, "query_id": query_ids, "event_type": kinds}
        where = self._where(FEEDBACK, project, since=since, until=until, **asked)
        if before is not None:
            table = FEEDBACK.table.c
            where.append(tuple_(table.created_at, table.event_id) < tuple_(timestamp(before[0]), words(before[1])))
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


def _of(traffic: Traffic | Literal["all"]) -> Traffic | None:
    return None if traffic == "all" else traffic


def _found_nothing() -> ColumnElement[bool]:
    log = QUERY.table.c
    return and_(log.result_count == 0, log.tool_name != QUERY_LIST)
