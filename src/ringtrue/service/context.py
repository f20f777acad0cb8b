"""What a running server is made of, opened and closed together, and what it keeps of what it has read."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, cast

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from ringtrue.config import cache_folder
from ringtrue.service.auth import EVERYTHING, LOCAL, Caller, Keyring, SessionCookies
from ringtrue.service.errors import hide
from ringtrue.service.intake import MOST_ROWS, Intake, Readiness
from ringtrue.service.jobs import JobRunner
from ringtrue.service.middleware import RateLimits
from ringtrue.service.searches import Searches
from ringtrue.service.settings import Settings
from ringtrue.service.telemetry import Queue, Telemetry
from ringtrue.store import Store

if TYPE_CHECKING:
    from ringtrue.report import Report
    from ringtrue.run import Evaluation
    from ringtrue.service.library import KeptSet
    from ringtrue.verdict import Comparison

Value = TypeVar("Value")
FRESH_S = 5.0
SELDOM = 500
"""What took a second to read is fresh for so many: whoever looks all the time costs the store a five-hundredth of it."""
OLDEST_S = 60.0
"""But nothing is fresh for longer than that."""


class WeightedCache(Generic[Value]):
    """The values that were asked for last, within a weight."""

    def __init__(self, most: int) -> None:
        self._most, self._weight = most, 0
        self._values: OrderedDict[Hashable, tuple[int, Value]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], tuple[int, Value]]) -> Value:
        """Return the value of a key; ``make`` makes it, with its weight, where it is not there."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][1]
        weight, value = make()
        with self._lock:
            if key not in self._values and weight <= self._most:
                self._values[key] = (weight, value)
                self._weight += weight
                while self._weight > self._most:
                    self._weight -= self._values.popitem(last=False)[1][0]
        return value


class FigureCache:
    """Figures that take a look at a large part of the store, by key: read again after some seconds, more if that is slow."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._known: dict[Hashable, tuple[float, Any]] = {}
        """Until when each figure is fresh, and the figure."""

    def get(self, key: Hashable, read: Callable[[], Value]) -> Value:
        """Return what ``read`` returns, or returned a moment ago."""
        until, value = self._known.get(key, (0.0, None))
        begun = self._now()
        if begun >= until:
            value = read()
            ended = self._now()
            self._known = {name: one for name, one in self._known.items() if one[0] > ended}
            self._known[key] = (ended + max(FRESH_S, min(SELDOM * (ended - begun), OLDEST_S)), value)
        return cast("Value", value)


MOST_BYTES = 8_000_000
"""Of packed runs that are kept open; open they take about ten times as much."""
MOST_COMPARISONS = 16
MOST_JUDGMENTS = 80_000
"""Of golden sets that are kept open."""


class Opened:
    """What one server keeps open."""

    def __init__(self) -> None:
        self.runs: WeightedCache[Evaluation] = WeightedCache(MOST_BYTES)
        self.comparisons: WeightedCache[Comparison] = WeightedCache(MOST_COMPARISONS)
        self.reports: WeightedCache[Report] = WeightedCache(MOST_COMPARISONS)
        self.sets: WeightedCache[KeptSet] = WeightedCache(MOST_JUDGMENTS)


class Service:
    """The parts of one server; every route and every page works through these."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = Store.open(settings.store)
        """The operator's view of all projects; requests go through ``Access``."""
        file = self.store.address.sqlite
        hide(settings.folder, cache_folder(), None if file is None else file.parent)
        self.started_at = self.now()
        self.local = Caller(settings.project, LOCAL, EVERYTHING)
        self.keyring = Keyring(self.store)
        self.sessions = SessionCookies(settings.secret)
        self.rates = RateLimits(settings.rates)
        self.intake = Intake(self.store)
        self.jobs = JobRunner(self.store, now=self.now, most=settings.jobs)
        self.searches = Searches(settings)
        self.readiness = Readiness(self.store, self.intake)
        self.telemetry = Telemetry(settings, self.store, queue=self._queue, readiness=self.readiness, now=self.now)
        self.opened, self.figures = Opened(), FigureCache()
        self.stopping = False

    def now(self) -> datetime:
        """Return the time, read here and nowhere below."""
        return datetime.now(UTC)

    def _queue(self) -> Queue:
        return Queue(self.intake.figures.waiting, MOST_ROWS, self.intake.refused_of)

    async def start(self) -> None:
        """Begin what runs in the background."""
        # What was at work when a server died is at work no more.
        await run_in_threadpool(self.store.interrupt_jobs, now=self.now())
        await run_in_threadpool(self.store.drop_claims)
        self.intake.start()
        self.telemetry.start()

    def drain(self) -> None:
        """Prepare to stop: /readyz says so."""
        self.stopping = True

    async def close(self) -> None:
        """Stop: running jobs are interrupted, and everything that was accepted is written before the store closes."""
        self.stopping = True
        await run_in_threadpool(self.jobs.close)
        await run_in_threadpool(self.telemetry.stop)
        await run_in_threadpool(self.intake.close)
        await run_in_threadpool(self.searches.close)
        await run_in_threadpool(self.store.close)


async def here(request: Request) -> Service:
    """Return the server that answers a request."""
    service: Service = request.app.state.service
    return service


Here = Annotated[Service, Depends(here)]
