"""``fill``: a month of a simulated hotel, step by step in the order of its simulated time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ringtrue.answers import JobError
from ringtrue.errors import InputError, RingtrueError
from ringtrue.feedback import derive_into
from ringtrue.run import evaluate
from ringtrue.service.demo.guests import DAYS, GRADUATED, ROLLED_BACK, RUNNING, Guests, Rollouts
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

Moment = Callable[..., datetime]
"""Days before the end, what to tell → the moment; the guests search until then."""


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
    guests: list[Guests] = []

    def at(days: float, says: str = "") -> datetime:
        while guests and len(guests[0].days) < DAYS and DAYS - 1 - len(guests[0].days) >= days:
            if len(guests[0].days) % 4 == 0:
                tell(f"guests search, day {len(guests[0].days) + 1} of {DAYS}")
            guests[0].pass_day()
        if says:
            tell(says)
        return hotel.ago(days)

    reviewers = Reviewers(hotel)
    _before_guests(hotel, reviewers, at)
    guests.append(Guests(hotel))
    _with_guests(hotel, reviewers, Rollouts(hotel, guests[0]), at)
    _add_jobs(hotel, at)
    since = timestamp(at(7, "judgments from what guests did in the last week"))
    derive_into(store, now=timestamp(now), since=since, project=project, mixed="separate")
    hotel.note(now, ENDED, project, simulated=SIMULATED, real=REAL)
    tell(f"filled: {store.count_queries(project=project):,} searches, {len(hotel.results)} evaluations")
    return True


def _check_empty(store: Store, project: str) -> None:
    if store.audit(project=project, what=BEGUN, limit=1):
        raise InputError(f"store {store.address}: filling it was stopped half-way; delete it and start again")
    if store.results(project=project, limit=1) or store.queries(project=project, limit=1) or store.flags(project=project):
        raise InputError(f"project '{project}' holds data of its own, which the demonstration would mix with; use a new store")


def _before_guests(hotel: Hotel, reviewers: Reviewers, at: Moment) -> None:
    """Two weeks in which searches are measured and a golden set is reviewed."""
    hotel.keep(hotel.golden, at(30, "golden set hotel"))
    hotel.record(BM25, at(29, "evaluating bm25"))
    hotel.keep_baseline(BM25, "1.0.0", at(28.9, "baseline 1.0.0"), reason="what the site has today")
    hotel.record(DENSE, at(26, "evaluating dense"))
    hotel.keep_drafted(at(25, "a provisional golden set"))
    hotel.record(HYBRID, at(23, "evaluating hybrid"), against=BM25)
    hotel.try_out(BM25, DENSE, "vectors alone in place of keywords", at(22.9, "experiments"))
    hotel.try_out(BM25, HYBRID, "keywords and vectors together", at(22.9))
    reviewers.judge(FIRST, at(16, "two reviewers judge"))
    hotel.record(HYBRID, at(15, "evaluating hybrid again"))
    reviewers.publish(at(14.5, "the next version of hotel"))


def _with_guests(hotel: Hotel, reviewers: Reviewers, rollouts: Rollouts, at: Moment) -> None:
    """Two weeks of guests, in which three features are tried."""
    days = rollouts.guests.days
    rollouts.begin(GRADUATED, HYBRID, at(14, "feature hybrid-search"))
    moment = at(13, "its shadow")
    rollouts.shadow(GRADUATED, days[0], moment)
    hotel.record(BM25, at(12.6, "evaluating bm25 on the next version"))
    hotel.record(HYBRID, at(12.5, "evaluating hybrid on the next version"))
    rollouts.on_golden(GRADUATED, at(12.4, "its sequential test"))
    rollouts.step(GRADUATED, at(12, "its rollout"))
    rollouts.set(GRADUATED, 25.0, at(12), why="one in a hundred guests is nobody here")
    for day in (11, 10, 9):
        rollouts.step(GRADUATED, at(day))
    hotel.keep_baseline(HYBRID, "2.0.0", at(8.9, "baseline 2.0.0"), reason="hybrid-search has graduated")

    tuned = hotel.sweep(at(8.5, "a sweep of 30 trials"))
    rollouts.begin(ROLLED_BACK, "hybrid >> mmr(0.5)", at(7, "feature diverse-results"))
    rollouts.set(ROLLED_BACK, 25.0, at(7), why="tried on a quarter of the guests before any test")
    rollouts.step(ROLLED_BACK, at(6))
    hotel.judge(LOPSIDED, at(5.95, "gating a fusion with wrong weights"))
    hotel.try_out(HYBRID, LOPSIDED, "vectors count nineteen times as much as keywords", at(5.9))
    rollouts.begin(RUNNING, tuned, at(5, "feature tuned-fusion"))
    reviewers.judge(SECOND, at(4.5, "more pairs to review"))
    moment = at(4, "its shadow")
    rollouts.shadow(RUNNING, days[9], moment)
    rollouts.on_golden(RUNNING, at(3.5, "its sequential test"))
    rollouts.set(RUNNING, 10.0, at(3), why="while its test goes on")
    hotel.record(HYBRID, at(2.9, "evaluating hybrid"))
    reviewers.begin_unjudged(at(0.8))
    hotel.judge(HYBRID, at(0.2, "gating hybrid"))
    rollouts.step(RUNNING, at(0))


def _add_jobs(hotel: Hotel, at: Moment) -> None:
    """One job that was done and one that failed."""
    golden, newest = hotel.golden, hotel.results[-1]

    def add(job_id: str, state: Any, moment: datetime, expression: str, **ended: Any) -> None:
        request = {
            "golden": f"{golden.id}@{golden.version}", "queries": len(golden.queries), "uploaded": False,
            "retriever": expression, "measures": [], "split": "all", "sample": 1.0,
        }  # fmt: skip
        hotel.store.add_job(
            StoredJob(
                job_id, "evaluate", state, timestamp(moment), timestamp(moment + timedelta(seconds=2)), project=hotel.project,
                who=OPERATOR, request=request, **ended,
            )
        )  # fmt: skip

    metrics = renamed(newest.metrics, keys_of(list(newest.metrics)))
    result = {"run_id": newest.run_id, "location": f"/v1/runs/{newest.run_id}", "metrics": metrics}
    total = newest.query_count
    add("job_demo1", "done", at(0.19), HYBRID, done=total, total=total, says="asking", result=result)
    try:
        evaluate(TOO_SHORT, golden, collection=hotel.corpus, cache=False, now=at(0.1))
    except RingtrueError as problem:
        known = refused(problem)
        add("job_demo2", "failed", at(0.1), TOO_SHORT, error=JobError(known.code, known.message))
