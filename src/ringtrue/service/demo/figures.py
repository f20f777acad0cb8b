"""The gauges of the last week, read from the store as it was at each moment of the simulated month (V-2)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import cast

from ringtrue.service import readings
from ringtrue.service.demo.scene import Scene
from ringtrue.service.gauges import Reading
from ringtrue.service.history import Recorder
from ringtrue.store import HistoryPoint, Store

SPAN, EVERY = timedelta(days=7), timedelta(minutes=15)
LOOKED = timedelta(hours=12)
WAITING = "ringtrue_review_oldest_pending_seconds"
UNNEEDED = frozenset({"ringtrue_retrieval_measure"})
"""Says again under another name what the gauges of single measures say."""
DRAWN = (*readings.GRAPHED.values(), "ringtrue_gate", "ringtrue_review_backlog")
"""What trends are drawn of: a point for every step, where others have one an hour."""
BATCH = 10_000


class Figures:
    """What the gauges said at a moment, remembered as the month passes."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._quality, self._whole = readings.Quality(), _WithoutSlices(scene.store)
        self._state: tuple[int, int] | None = None
        self._seen: list[tuple[datetime, list[Reading]]] = []

    def look(self, at: datetime, *, evaluations: int) -> None:
        """Read the gauges, unless the last week is far off or they were read lately and nothing was evaluated since."""
        state = (evaluations, (self.scene.now - at) // LOOKED)
        if at < self.scene.now - SPAN - timedelta(days=1) or state == self._state:
            return
        self._state = state
        store, project = self.scene.store, self.scene.project
        found = list(self._quality(cast("Store", self._whole), project, at))
        for part in (readings.review, readings.shadow, readings.trials, readings.flags):
            found += part(store, project, at)
        self._seen.append((at, [one for one in found if one.metric not in UNNEEDED]))

    def keep(self) -> int:
        """Write the history of the last week down; return how many points."""
        recorder = Recorder(lambda one: one.metric in DRAWN)
        points: list[HistoryPoint] = []
        at, place = self.scene.now - SPAN, 0
        while at < self.scene.now:
            while place + 1 < len(self._seen) and self._seen[place + 1][0] <= at:
                place += 1
            looked, found = self._seen[place]
            points += recorder.points(self.scene.project, [_at(one, at - looked) for one in found], at=at)
            at += EVERY
        return sum(self.scene.store.add_history(points[start : start + BATCH]) for start in range(0, len(points), BATCH))


class _WithoutSlices:
    """The store as the gauges of quality read it, without the answers of runs: by slice the history would be long to write."""

    def __init__(self, store: Store) -> None:
        self.results, self.baselines, self.baseline = store.results, store.baselines, store.baseline

    def run(self, run_id: str, *, project: str) -> None:
        return None


def _at(one: Reading, later: timedelta) -> Reading:
    """Return a reading as it is a while later: what waits waits longer."""
    return replace(one, value=one.value + later.total_seconds()) if one.metric == WAITING else one
