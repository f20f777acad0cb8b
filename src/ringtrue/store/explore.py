"""The log as somebody looks through it: the newest first, filtered, counted and by the minute (V-3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Literal

from sqlalchemy import ARRAY, ColumnElement, Text, and_, bindparam, case, cast, func, literal, or_, select, tuple_

from ringtrue.answers import LogStep, Step
from ringtrue.errors import InputError, nearest
from ringtrue.store.base import Base
from ringtrue.store.records import DEFAULT_PROJECT, QUERY_LIST, LoggedQuery
from ringtrue.store.rows import QUERY, structure, words
from ringtrue.store.times import timestamp
from ringtrue.traffic import Traffic

Moment = str | datetime
STEPS: dict[str, tuple[timedelta, int]] = {
    "minute": (timedelta(minutes=1), 16),
    "hour": (timedelta(hours=1), 13),
    "day": (timedelta(days=1), 10),
}
"""How long each is, and how many characters of a time say in which one it lies."""
MOST = 10_000
"""Steps that are counted at once; nobody sees more on a screen."""
MOMENT = len("2026-03-01T12:00:00.000000Z")


class Exploring(Base):
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
        found = _mine(project, since, until, traffic)
        if tool is not None:
            found.append(QUERY.table.c.tool_name == words(tool))
        counted = select(func.count()).select_from(QUERY.table).where(*found)
        with self._reading() as connection:
            return int(connection.execute(counted).scalar_one())

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
        found = _mine(project, since, until, traffic)
        if text:
            found.append(self._contains(text))
        if tool is not None:
            found.append(log.tool_name == words(tool))
        if session_id is not None:
            found.append(log.session_id == words(session_id))
        if trouble:
            found.append(or_(_found_nothing(), log.degraded == 1, log.fallback.is_not(None)))
        if slower_than is not None:
            found.append(log.total_latency_ms > float(slower_than))
        if before is not None:
            found.append(tuple_(log.created_at, log.query_id) < tuple_(timestamp(before[0]), words(before[1])))
        newest = select(QUERY.table).where(*found).order_by(log.created_at.desc(), log.query_id.desc()).limit(limit)
        with self._reading() as connection:
            return [QUERY.read(row) for row in connection.execute(newest).mappings()]

    def log_volume(self, *, project: str = DEFAULT_PROJECT, since: Moment, until: Moment, step: Step) -> list[LogStep]:
        """Return the minutes, hours or days (UTC) in which users searched, in the order of time.

        Raises InputError for a step that is none, and for more than 10,000 of them.
        """
        log, kind = QUERY.table.c, self.address.url.get_backend_name()
        spans = _spans(timestamp(since), timestamp(until), step)
        each = _rows_of(kind, spans)
        # One aggregate over a part of the index for every span: to group the rows instead, they would all have to be sorted.
        together = func.json_array if kind == "sqlite" else func.json_build_array
        figures = together(
            func.count(),
            func.sum(case((_found_nothing(), 1), else_=0)),
            func.sum(log.degraded),
            func.avg(log.total_latency_ms),
            func.avg(log.quality_proxy_score),
        )
        begin, end = func.substr(each.c.value, 1, MOMENT), func.substr(each.c.value, MOMENT + 1, MOMENT)
        ours = (log.project == words(project), log.traffic == "user", log.created_at >= begin, log.created_at < end)
        inside = select(cast(figures, Text)).where(*ours)
        with self._reading() as connection:
            found = connection.execute(select(each.c.value, inside.correlate(each).scalar_subquery()))
            counted = {span: json.loads(said) for span, said in found}
        return [LogStep(_start(span[:MOMENT], step), *counted[span]) for span in spans if counted[span][0]]

    def tools(self, *, project: str = DEFAULT_PROJECT) -> list[str]:
        """Return the tools that have searched, by name."""
        log = QUERY.table.c
        with self._reading() as connection:
            return sorted(connection.scalars(select(log.tool_name).where(log.project == words(project)).distinct()))

    def _contains(self, text: str) -> ColumnElement[bool]:
        column, part = QUERY.table.c.query, words(text)
        # LIKE of SQLite knows no case of ASCII's letters; to have every query turned to lower case would double its work. Of
        # other letters neither database knows it in every locale: they are told how people write them.
        forms = {part} if part.isascii() else {part, part.lower(), part.upper(), part.capitalize(), part.title()}
        has = column.contains if self.address.sqlite else column.icontains
        return or_(*(has(form, autoescape=True) for form in sorted(forms)))


def _found_nothing() -> ColumnElement[bool]:
    log = QUERY.table.c
    return and_(log.result_count == 0, log.tool_name != QUERY_LIST)


def _mine(
    project: str, since: Moment | None, until: Moment | None, traffic: Traffic | Literal["all"] = "user"
) -> list[ColumnElement[bool]]:
    log = QUERY.table.c
    found = [log.project == words(project)]
    if traffic != "all":
        found.append(log.traffic == traffic)
    if since is not None:
        found.append(log.created_at >= timestamp(since))
    if until is not None:
        found.append(log.created_at < timestamp(until))
    return found


def _spans(since: str, until: str, step: str) -> list[str]:
    """Return the parts of a time by step: when each begins and when it ends, in one text."""
    if step not in STEPS:
        raise InputError(f"cannot count by {step!r}; write {nearest(step, STEPS)}")
    length, _ = STEPS[step]
    begin, end = datetime.fromisoformat(_start(since, step)), datetime.fromisoformat(until)
    count = -((begin - end) // length)
    if count > MOST:
        raise InputError(f"from {since} to {until} there are {count:,} of {step!r}, more than {MOST:,}; take longer steps")
    edges = [since, *(timestamp(begin + number * length) for number in range(1, count)), until]
    return [first + last for first, last in pairwise(edges) if first < last]


def _start(moment: str, step: str) -> str:
    """Return when the step begins in which a moment lies."""
    return moment[: STEPS[step][1]] + "1970-01-01T00:00:00.000000Z"[STEPS[step][1] :]


def _rows_of(kind: str, values: Sequence[str]) -> Any:
    """Return texts as rows with the column ``value``; they travel as one parameter."""
    if kind == "sqlite":
        return func.json_each(bindparam(None, structure(list(values)), Text, unique=True)).table_valued("value")
    return func.unnest(literal(list(values), ARRAY(Text))).table_valued("value").render_derived()
