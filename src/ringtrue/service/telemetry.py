"""What the service says about itself and its projects: ``/metrics`` for Prometheus, and history in the store.

Durations are counted in this process as they happen; everything else is read from the store, one part after the other, and kept
for a few seconds, so that a scrape costs next to nothing however large the log is. A part that fails is absent and counted, and
the others are still told. A project sees its own figures only.
"""

from __future__ import annotations

import logging
import platform
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING

from ringtrue.answers import AlertRule
from ringtrue.service import readings
from ringtrue.service.alerts import rule_states, watched
from ringtrue.service.caches import FRESH_S, FigureCache
from ringtrue.service.gauges import NOBODY, Durations, MetricNames, Reading, encoded, families
from ringtrue.service.history import LOOKBACK, Recorder
from ringtrue.service.intake import Readiness
from ringtrue.store import HistoryPoint

if TYPE_CHECKING:
    from ringtrue.service.settings import Settings
    from ringtrue.store import Store

_LOG = logging.getLogger("ringtrue.service")

SLOW_S = 180.0
"""How long parts that read large or many rows are taken for new; the background and evaluations made here read them sooner."""
PROJECTS_S = 600.0
"""How often the store is asked which projects there are."""
ALERTS_S = 15.0
OUTAGE_POINTS = 1_000
"""Readings taken while the store was away that are written down when it is back."""


@dataclass(frozen=True, slots=True)
class Queue:
    """How many rows wait to be written, how many may, and how many the service refused, by project."""

    waiting: int
    capacity: int
    refused_of: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _MetricSource:
    name: str
    read: readings.Read
    fresh: float = FRESH_S
    of_store: bool = True
    """It is read from the store, and so not at all while that is away."""


class Telemetry:
    """The metrics of one server. ``queue`` says how full the queue of the log is; ``now`` is the clock.

    Raises InputError for names of metrics that cannot be.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        queue: Callable[[], Queue] | None = None,
        readiness: Readiness | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings, self._store, self._now = settings, store, now
        self.queue = queue
        self._readiness = readiness or Readiness(store)
        self._every = timedelta(seconds=settings.history_seconds)
        self._about = {"version": version("ringtrue"), "python": platform.python_version()}
        self.names = MetricNames(prefix=settings.prefix, own=settings.gauges)
        self.durations = Durations()
        """How long requests and searches took; whoever answers them counts them there."""
        self._parts = (
            _MetricSource("queue", self._queue, of_store=False),
            _MetricSource("quality", readings.Quality(settings.retriever), SLOW_S),
            _MetricSource("review", readings.review),
            _MetricSource("log", readings.LogCounts()),
            _MetricSource("tests", readings.trials),
            _MetricSource("flags", readings.flags),
            _MetricSource("jobs", readings.jobs),
            _MetricSource("shadow", readings.shadow, SLOW_S),
        )
        self._figures = FigureCache(now=lambda: now().timestamp())
        self._errors: Counter[tuple[str, str]] = Counter()
        self._problem: str | None = None
        self._recorder = Recorder(watched)
        self._away: deque[HistoryPoint] = deque(maxlen=OUTAGE_POINTS)
        self._projects = {settings.project}
        self._due: deque[str] = deque()
        self._writing = threading.Lock()
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def evaluated(self, project: str) -> None:
        """Say that a project was evaluated or gated: its gauges are written down at once, by the background where it runs."""
        if self._thread is None:
            self.remember(project)
        else:
            self._due.append(project)
            self._wake.set()

    def scrape(self, project: str, accept: str | None = None, *, key_ends: datetime | None = None) -> tuple[bytes, str]:
        """Return the metrics of a project for Prometheus, with their content type: OpenMetrics if ``accept`` asks for it.

        ``key_ends`` is when the key of the scrape stops working.
        """
        found = self.readings(project)
        if key_ends is not None:
            found.append(Reading("ringtrue_scrape_key_expires_timestamp_seconds", key_ends.timestamp()))
        # The operator's own project sees the requests that came with nobody's key, too.
        seen = {project, NOBODY} if project == self._settings.project else {project}
        told = [*families(project, found, self.names), *self.durations.families(seen, self.names)]
        return encoded(told, accept)

    def readings(self, project: str, *, refresh: bool = False) -> list[Reading]:
        """Return what is known about a project now, at most a few seconds old; with ``refresh`` everything is read again."""
        now = self._now()
        self._projects.add(project)
        unreadable = self._readiness.read_problem()
        problem = unreadable or self._readiness.write_problem()
        if problem is not None and self._problem is None:
            _LOG.warning("the store is down: %s", problem)
        self._problem = problem
        if unreadable is not None:
            self._figures.clear()  # what it said before may not hold any more
        found = [Reading("ringtrue_build_info", 1.0, self._about), Reading("ringtrue_store_up", float(problem is None))]
        for part in self._parts:
            if unreadable is None or not part.of_store:
                found += self._of_part(project, part, now, refresh)
        errors = [(part, count) for (whose, part), count in list(self._errors.items()) if whose == project]
        return found + [Reading("ringtrue_collect_errors_total", float(count), {"part": part}) for part, count in errors]

    def alerts(self, project: str) -> list[AlertRule]:
        """Return the state of every shipped rule over the stored history of a project, at most some seconds old."""
        store, held = self._store.only(project), max(LOOKBACK, 2.5 * self._every)
        return self._figures.get(
            ("alerts", project), lambda: rule_states(store, project, now=self._now(), lookback=held), fresh=ALERTS_S
        )

    def _queue(self, store: Store, project: str, now: datetime) -> Iterator[Reading]:
        if self.queue is not None:
            queue = self.queue()
            yield Reading("ringtrue_log_queue_waiting", float(queue.waiting))
            yield Reading("ringtrue_log_queue_capacity", float(queue.capacity))
            yield Reading("ringtrue_log_dropped_total", float(queue.refused_of.get(project, 0)), {"why": "turned_away"})

    def _of_part(self, project: str, part: _MetricSource, now: datetime, refresh: bool) -> tuple[Reading, ...]:
        key = (project, part.name)
        self._errors.setdefault(key, 0)  # a counter must be seen at 0 before its first step counts

        def read() -> tuple[Reading, ...]:
            try:
                return tuple(part.read(self._store.only(project), project, now))
            except Exception as problem:  # whatever one part meets, the others are still told
                if self._errors[key] == 0:
                    _LOG.warning("the metrics of %s cannot be read: %s: %s", part.name, type(problem).__name__, problem)
                self._errors[key] += 1
                return ()

        return self._figures.get(key, read, fresh=part.fresh, again=refresh)

    # ── history ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Begin to write the gauges of every project down from time to time."""
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._work, name="ringtrue-telemetry", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End that; returns once nothing is being written any more."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        round_at = time.monotonic()
        while not self._stop.is_set():
            self._wake.clear()
            if time.monotonic() >= round_at:
                round_at = time.monotonic() + self._every.total_seconds()
                self._due.extend(self._known_projects())
            for project in dict.fromkeys(self._due.popleft() for _ in range(len(self._due))):
                if not self._stop.is_set():
                    self.remember(project)
            if not self._stop.is_set():
                self._wake.wait(max(0.0, round_at - time.monotonic()))

    def _known_projects(self) -> list[str]:
        try:
            self._projects |= self._figures.get("projects", lambda: set(self._store.projects()), fresh=PROJECTS_S)
        except Exception as problem:  # asked again with the next round
            _LOG.warning("the projects of the store cannot be listed: %s", problem)
        return sorted(self._projects)

    def remember(self, project: str) -> None:
        """Write down what has changed since the last time; what is read while the store is away follows when it is back."""
        found = self.readings(project, refresh=True)
        with self._writing:
            points = self._recorder.points(project, found, at=self._now())
            try:
                self._store.add_history([*self._away, *points])
                self._away.clear()
            except Exception as problem:
                _LOG.warning("the history of the gauges cannot be written: %s", problem)
                self._away.extend(points)
