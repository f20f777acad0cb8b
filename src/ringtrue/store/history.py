"""Figures over time (V-2), so that trends exist without Prometheus."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, func, select

from ringtrue.store.base import Base
from ringtrue.store.records import DEFAULT_PROJECT, HistoryPoint
from ringtrue.store.rows import HISTORY, words
from ringtrue.store.times import timestamp


class History(Base):
    """Series of points; a series has a line for each set of labels."""

    def add_history(self, points: Sequence[HistoryPoint]) -> int:
        """Add points in one transaction; return how many are new. One of the same time, series and labels stays.

        A value that is none (NaN) is no point, and is left out.
        """
        return self._add(HISTORY, [point for point in points if point.value == point.value])

    def history(
        self,
        series: str,
        *,
        project: str = DEFAULT_PROJECT,
        labels: Mapping[str, str] | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        limit: int | None = None,
    ) -> list[HistoryPoint]:
        """Return the points of a series in the order of time, from ``since`` on and before ``until``.

        ``labels`` takes those that have all of these labels, whatever else they have. ``limit`` takes the last ones.
        """
        table = HISTORY.table
        found = [table.c.project == words(project), table.c.series == words(series)]
        found += [self._labelled(name, value) for name, value in (labels or {}).items()]
        if since is not None:
            found.append(table.c.at >= timestamp(since))
        if until is not None:
            found.append(table.c.at < timestamp(until))
        newest = select(table).where(*found).order_by(table.c.at.desc(), table.c.labels.desc())
        return self._all(HISTORY, newest.limit(limit))[::-1]

    def _labelled(self, name: str, value: str) -> ColumnElement[bool]:
        # Inside a label's own text a quotation mark has a backslash before it, so that this is found as a whole label only.
        label = f"{json.dumps(words(name))}:{json.dumps(words(value))}"
        find = func.instr if self.address.sqlite is not None else func.strpos
        return find(HISTORY.table.c.labels, label) > 0
