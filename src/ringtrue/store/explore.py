"""The log as somebody looks through it: the newest first, filtered, counted and by the minute."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy import ColumnElement, and_, case, func, or_, select, tuple_

from ringtrue.answers import LogStep, Step
from ringtrue.errors import InputError, nearest
from ringtrue.store.base import Base, Moment
from ringtrue.store.records import DEFAULT_PROJECT, QUERY_LIST, LoggedQuery
from ringtrue.store.rows import words
from ringtrue.store.tables import QUERY
from ringtrue.store.times import timestamp
from ringtrue.traffic import Traffic

STEPS: dict[str, tuple[timedelta, int]] = {
    "minute": (timedelta(minutes=1), 16),
    "hour": (timedelta(hours=1), 13),
    "day": (timedelta(days=1), 10),
}
"""How long each is, and how many characters of a time say in which one it lies."""
MOST = 10_000
"""Steps that are counted at once; nobody sees more on a screen."""


class LogStore(Base):
    """The log, read from its end."""

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
        whose = None if traffic == "all" else traffic
        where = self._where(QUERY, project, since=since, until=until, tool_name=tool, traffic=whose)
        with self._reading() as connection:
            return int(connection.execute(select(func.count()).select_from(QUERY.table).where(*where)).scalar_one())

    def newest_queries(
        self,
        *,
        project: str = DEFAULT_PROJECT,
        text: str | None = None,
        tool: str | None = None,
        session_id: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        trouble: bool = False,
        slower_than: float | None = None,
        traffic: Traffic | Literal["all"] = "user",
        limit: int = 50,
        before: tuple[Moment, str] | None = None,
    ) -> list[LoggedQuery]:
        """Return searches of users, or of another ``traffic``, newest first; ``before`` continues after a time and query id.

        Whether that query is still there does not matter. ``text`` is part of what was searched for, in upper or lower case.
        ``trouble`` takes those that found nothing, fell back or were degraded; ``slower_than`` is in milliseconds.
        """
        log = QUERY.table.c
        asked = {"tool_name": tool, "session_id": session_id, "traffic": None if traffic == "all" else traffic}
        where = self._where(QUERY, project, since=since, until=until, **asked)
        if text:
            where.append(self._contains(text))
        if trouble:
            where.append(or_(_found_nothing(), log.degraded == 1, log.fallback.is_not(None)))
        if slower_than is not None:
            where.append(log.total_latency_ms > float(slower_than))
        if before is not None:
            where.append(tuple_(log.created_at, log.query_id) < tuple_(timestamp(before[0]), words(before[1])))
        return self._all(QUERY, where, log.created_at.desc(), log.query_id.desc(), limit=limit)

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

    def _contains(self, text: str) -> ColumnElement[bool]:
        column, part = QUERY.table.c.query, words(text)
        # LIKE of SQLite knows no case of ASCII's letters; to have every query turned to lower case would double its work. Of
        # other letters neither database knows it in every locale: they get the usual ways to write them.
        forms = {part} if part.isascii() else {part, part.lower(), part.upper(), part.capitalize(), part.title()}
        has = column.contains if self.address.sqlite else column.icontains
        return or_(*(has(form, autoescape=True) for form in sorted(forms)))


def _found_nothing() -> ColumnElement[bool]:
    log = QUERY.table.c
    return and_(log.result_count == 0, log.tool_name != QUERY_LIST)
