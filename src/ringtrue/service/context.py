"""What a running server is made of, opened and closed together, and what it keeps of what it has read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, cast

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from ringtrue.config import cache_folder
from ringtrue.service.auth import EVERYTHING, LOCAL, Caller, Keyring, SessionCookies
from ringtrue.service.caches import FigureCache, WeightedCache
from ringtrue.service.errors import hide
from ringtrue.service.intake import MOST_ROWS, Intake, Readiness
from ringtrue.service.jobs import JobRunner
from ringtrue.service.middleware import RateLimits
from ringtrue.service.searches import Searches
from ringtrue.service.settings import Settings
from ringtrue.service.telemetry import Queue, Telemetry
from ringtrue.store import Store

if TYPE_CHECKING:
    from ringtrue.run import Evaluation
    from ringtrue.service.library import KeptSet
    from ringtrue.verdict import Comparison

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
    return cast("Service", request.app.state.service)


Here = Annotated[Service, Depends(here)]
