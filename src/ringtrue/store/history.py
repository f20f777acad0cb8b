"""Figures over time, so that trends exist without Prometheus."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, func

from ringtrue.store.base import Base, Moment
from ringtrue.store.records import DEFAULT_PROJECT, HistoryPoint
from ringtrue.store.rows import words
from ringtrue.store.tables import HISTORY


class HistoryStore(Base):
    """Series of points; a series has a line for each set of labels."""

    def add_history(self, points: Sequence[HistoryPoint]) -> int:
        """Add points in one transaction; return how many are new. One of the same time, series and labels stays.

        Points whose value is NaN are left out.
        """
        return self._add(HISTORY, [point for point in points if point.value == point.value])

    def history(
        self,
        series: str,
        *,
        project: str = DEFAULT_PROJECT,
        labels: Mapping[str, str] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> list[HistoryPoint]:
        """Return the points of a series in the order of time, from ``since`` on and before ``until``.

        ``labels`` takes those that have all of these labels, whatever else they have. ``limit`` takes the last ones.
        """
        table = HISTORY.table.c
        labelled = (self._labelled(name, value) for name, value in (labels or {}).items())
        where = self._where(HISTORY, project, *labelled, since=since, until=until, series=series)
        return self._all(HISTORY, where, table.at.desc(), table.labels.desc(), limit=limit)[::-1]

    def _labelled(self, name: str, value: str) -> ColumnElement[bool]:
        # Inside a label's own text a quotation mark has a backslash before it, so that this is found as a whole label only.
        label = f"{json.dumps(words(name))}:{json.dumps(words(value))}"
        find = func.instr if self.address.sqlite is not None else func.strpos
        return find(HISTORY.table.c.labels, label) > 0
