"""``fill``: a month of a simulated hotel, step by step in the order of its simulated time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from ringtrue.answers import JobError, JobState
from ringtrue.errors import InputError, RingtrueError
from ringtrue.feedback import derive_into
from ringtrue.rollout import step
from ringtrue.run import evaluate
from ringtrue.service.demo.guests import DAYS, GRADUATED, ROLLED_BACK, RUNNING, Feature, Guests, Rollouts
from ringtrue.service.demo.hotel import BM25, DENSE, FIRST, HYBRID, LOPSIDED, OPERATOR, SECOND, SHIPPED, Hotel, Reviewers
from ringtrue.service.errors import refused
from ringtrue.service.evaluating import keys_of, renamed
from ringtrue.service.settings import Settings
from ringtrue.store import DEFAULT_PROJECT, Store, StoredJob, timestamp

BEGUN, ENDED = "demo.begun", "demo.filled"
"""The audit entries when filling begins and ends."""
SIMULATED = "guests, their clicks, reviewers, dates and the milliseconds of the log are simulated"
REAL = "searches, evaluations, comparisons, gates, agreement, tests, rollouts and the sweep are computed from them"
TOO_SHORT = "hybrid >> top(5)"
"""What the failed job evaluates: its answers end above the cut-off of the measures."""

Timeline = Sequence[tuple[float, str, Callable[[datetime], object]]]
"""Days before the end, what to tell, and what happens then; before each step the guests search up to its moment."""


def demo_settings(folder: Path, **given: Any) -> Settings:
    """Return the settings of a server of the demonstration, its store in ``folder``; ``given`` are further ones."""
    return Settings(store=str(folder / "store.sqlite"), golden=SHIPPED, retriever=HYBRID, demo=True, **given)


def fill(
    store: Store, *, now: datetime, project: str = DEFAULT_PROJECT, tell: Callable[[str], None] = lambda said: None
) -> bool:
    """Fill a project of a store with a month that ends now; leave one that is filled already as it is, and return False.

    The same ``now`` gives the same month, except for the milliseconds of evaluations, which are measured. Raises InputError if
    the project holds other data or was filled only in part.
    """
    before = store.audit(project=project, what=ENDED, limit=1)
    if before:
        tell(f"the store was filled at {before[0].at} and is left as it is; delete it for a month that ends today")
        return False
    _check_empty(store, project)
    hotel = Hotel(store, now, project)
    hotel.note(hotel.ago(30.5), BEGUN, project)
    tell(f"filling a store with a month of a hotel: {SIMULATED}; {REAL}")
    guests = Guests(hotel)
    for days, says, happens in _timeline(hotel, Reviewers(hotel), Rollouts(hotel, guests)):
        while len(guests.days) < DAYS and DAYS - 1 - len(guests.days) >= days:
            if len(guests.days) % 4 == 0:
                tell(f"guests search, day {len(guests.days) + 1} of {DAYS}")
            guests.pass_day()
        if says:
            tell(says)
        happens(hotel.ago(days))
    derive_into(store, now=timestamp(now), since=timestamp(hotel.ago(7)), project=project, mixed="separate")
    hotel.note(now, ENDED, project, simulated=SIMULATED, real=REAL)
    tell(f"filled: {store.count_queries(project=project):,} searches, {len(hotel.results)} evaluations")
    return True


def _check_empty(store: Store, project: str) -> None:
    if store.audit(project=project, what=BEGUN, limit=1):
        raise InputError(f"store {store.address}: filling it was stopped half-way; delete it and start again")
    if store.results(project=project, limit=1) or store.queries(project=project, limit=1) or store.flags(project=project):
        raise InputError(f"project '{project}' holds data of its own, which the demonstration would mix with; use a new store")


def _timeline(hotel: Hotel, reviewers: Reviewers, rollouts: Rollouts) -> Timeline:
    """Return what happens in the month: two weeks in which searches are measured, and two of guests and three features."""

    def move(feature: Feature) -> Callable[[datetime], object]:
        return lambda at: step(hotel.store, feature.name, now=at, project=hotel.project)

    return (
        (30, "golden set hotel", partial(hotel.keep, hotel.golden)),
        (29, "evaluating bm25", partial(hotel.record, BM25)),
        (28.9, "baseline 1.0.0", partial(hotel.keep_baseline, BM25, "1.0.0", reason="what the site has today")),
        (26, "evaluating dense", partial(hotel.record, DENSE)),
        (23, "evaluating hybrid", partial(hotel.record, HYBRID, against=BM25)),
        (22.9, "experiments", partial(hotel.try_out, BM25, DENSE, "vectors alone in place of keywords")),
        (22.9, "", partial(hotel.try_out, BM25, HYBRID, "keywords and vectors together")),
        (16, "two reviewers judge", partial(reviewers.judge, FIRST)),
        (15, "evaluating hybrid again", partial(hotel.record, HYBRID)),
        (14.5, "the next version of hotel", reviewers.publish),
        (14, "feature hybrid-search", partial(rollouts.begin, GRADUATED, HYBRID)),
        (13, "its shadow", partial(rollouts.shadow, GRADUATED, 0)),
        (12.6, "evaluating bm25 on the next version", partial(hotel.record, BM25)),
        (12.5, "evaluating hybrid on the next version", partial(hotel.record, HYBRID)),
        (12.4, "its sequential test", partial(rollouts.on_golden, GRADUATED)),
        (12, "its rollout", move(GRADUATED)),
        (12, "", partial(rollouts.set, GRADUATED, 25.0, why="one in a hundred guests is nobody here")),
        *((day, "", move(GRADUATED)) for day in (11, 10, 9)),
        (8.9, "baseline 2.0.0", partial(hotel.keep_baseline, HYBRID, "2.0.0", reason="hybrid-search has graduated")),
        (8.5, "a sweep of 30 trials", hotel.sweep),
        (7, "feature diverse-results", partial(rollouts.begin, ROLLED_BACK, "hybrid >> mmr(0.5)")),
        (7, "", partial(rollouts.set, ROLLED_BACK, 25.0, why="tried on a quarter of the guests before any test")),
        (6, "", move(ROLLED_BACK)),
        (5.95, "gating a fusion with wrong weights", partial(hotel.judge, LOPSIDED)),
        (5.9, "", partial(hotel.try_out, HYBRID, LOPSIDED, "vectors count nineteen times as much as keywords")),
        (5, "feature tuned-fusion", lambda at: rollouts.begin(RUNNING, hotel.tuned, at)),
        (4.5, "more pairs to review", partial(reviewers.judge, SECOND)),
        (4, "its shadow", partial(rollouts.shadow, RUNNING, 9)),
        (3.5, "its sequential test", partial(rollouts.on_golden, RUNNING)),
        (3, "", partial(rollouts.set, RUNNING, 10.0, why="while its test goes on")),
        (2.9, "evaluating hybrid", partial(hotel.record, HYBRID)),
        (0.8, "", reviewers.begin_unjudged),
        (0.2, "gating hybrid", partial(hotel.judge, HYBRID)),
        (0.19, "", partial(_add_jobs, hotel)),
        (0, "judgments from what guests did in the last week", move(RUNNING)),
    )


def _add_jobs(hotel: Hotel, at: datetime) -> None:
    """One job that was done and one that failed."""
    golden, newest = hotel.golden, hotel.results[-1]
    metrics = renamed(newest.metrics, keys_of(list(newest.metrics)))
    result = {"run_id": newest.run_id, "location": f"/v1/runs/{newest.run_id}", "metrics": metrics}
    done = {"done": newest.query_count, "total": newest.query_count, "says": "asking", "result": result}
    try:
        evaluate(TOO_SHORT, golden, collection=hotel.corpus, cache=False, now=at)
    except RingtrueError as problem:
        error = JobError(refused(problem).code, refused(problem).message)
    jobs: tuple[tuple[JobState, str, dict[str, Any]], ...] = (("done", HYBRID, done), ("failed", TOO_SHORT, {"error": error}))
    for number, (state, expression, ended) in enumerate(jobs, 1):
        begun = at + timedelta(hours=number)
        request = {
            "golden": f"{golden.id}@{golden.version}", "queries": len(golden.queries), "uploaded": False,
            "retriever": expression, "measures": [], "split": "all", "sample": 1.0,
        }  # fmt: skip
        moments = timestamp(begun), timestamp(begun + timedelta(seconds=2))
        job = StoredJob(f"job_demo{number}", "evaluate", state, *moments, OPERATOR, request, project=hotel.project, **ended)
        hotel.store.add_job(job)
