"""Gauges over time, kept in the store: trends without Prometheus.

Series have the canonical names of the catalogue, whatever they are called outside. A value that changes is written down at
once, one that stays every hour; those that a rule looks at every few minutes, since for rules a point holds no longer than
``LOOKBACK``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ringtrue.service.gauges import WHOLE, Reading
from ringtrue.store import HistoryPoint, timestamp

if TYPE_CHECKING:
    from ringtrue.store import Store

LOOKBACK = timedelta(minutes=5)
"""How long a point holds for a rule, as in Prometheus."""
WATCHED = timedelta(minutes=3)
"""How often a value is written down that does not change and that a rule looks at."""
UNWATCHED = timedelta(hours=1)
"""The same for the others."""
MOST_SERIES = 400
"""Series of one project that are kept."""
MOST_POINTS = 500
"""Points of a trend, unless told otherwise."""
UNKEPT = frozenset({"ringtrue_build_info", "ringtrue_evaluation_latency_seconds", "ringtrue_jobs"})
"""What no trend and no rule is about."""

Labels = tuple[tuple[str, str], ...]
"""Labels as a value that compares and sorts."""
Trend = list[tuple[datetime, float]]


class Recorder:
    """Decides which readings are new enough to be written down; ``watched`` says which a rule looks at."""

    def __init__(self, watched: Callable[[Reading], bool]) -> None:
        self._watched = watched
        self._last: dict[tuple[str, str, Labels], tuple[datetime, float]] = {}

    def points(self, project: str, readings: Iterable[Reading], *, at: datetime) -> list[HistoryPoint]:
        """Return the points to add for a project, and remember them as added."""
        found: list[HistoryPoint] = []
        kept = [one for one in readings if one.metric not in UNKEPT and math.isfinite(one.value)]
        # Where there are too many, slices give way first: the whole is what rules and trends are about.
        kept.sort(key=lambda one: one.labels.get("slice", WHOLE) != WHOLE)
        for one in kept[:MOST_SERIES]:
            key = (project, one.metric, labels_key(one.labels))
            before = self._last.get(key)
            every = WATCHED if self._watched(one) else UNWATCHED
            if before is None or before[1] != one.value or at - before[0] >= every:
                self._last[key] = (at, one.value)
                found.append(HistoryPoint(timestamp(at), one.metric, one.value, dict(one.labels), project))
        return found


def labels_key(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))


def trends(
    store: Store,
    project: str,
    series: str,
    labels: Mapping[str, str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    *,
    most: int = MOST_POINTS,
) -> dict[Labels, Trend]:
    """Return every stored series of a metric with these labels, and perhaps more, as (time, value) in the order of time.

    Of more than ``most`` points the last of each stretch of time stands for the others.
    """
    found: dict[Labels, Trend] = {}
    for point in store.history(series, project=project, labels=labels, since=since, until=until):
        found.setdefault(labels_key(point.labels), []).append((datetime.fromisoformat(point.at), point.value))
    return {key: _thinned(trend, most) for key, trend in sorted(found.items())}


def _thinned(points: Trend, most: int) -> Trend:
    if len(points) <= most:
        return points
    first, last = points[0][0], points[-1][0]
    width = (last - first) / most
    kept = {min(int((at - first) / width), most - 1): (at, value) for at, value in points}
    return list(kept.values())
