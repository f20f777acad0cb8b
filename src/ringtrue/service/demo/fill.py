"""``fill``: a month of a simulated hotel, event by event in the order of its simulated time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from ringtrue.answers import JobError
from ringtrue.errors import InputError, RingtrueError
from ringtrue.feedback import derive_into
from ringtrue.run import evaluate
from ringtrue.service.demo.golden_sets import BM25, DENSE, HYBRID, LOPSIDED, SHIPPED, Shelf
from ringtrue.service.demo.guests import DAYS, Guests
from ringtrue.service.demo.reviewing import Reviewing
from ringtrue.service.demo.rollouts import GRADUATED, ROLLED_BACK, RUNNING, Rollouts
from ringtrue.service.demo.scene import OPERATOR, Scene
from ringtrue.service.demo.trials import Trials, weights_of
from ringtrue.service.errors import refused
from ringtrue.service.settings import Settings
from ringtrue.service.work.evaluating import keys_of, renamed
from ringtrue.store import DEFAULT_PROJECT, Store, StoredJob, timestamp

BEGUN, ENDED = "demo.begun", "demo.filled"
"""What the audit trail says when filling begins and ends."""
SIMULATED = "guests, their clicks, reviewers, dates and the milliseconds of the log are simulated"
REAL = "searches, evaluations, comparisons, gates, agreement, tests, rollouts and the sweep are computed from them"
TOO_SHORT = "hybrid >> top(5)"
"""What the failed job was asked to evaluate: answers that end before the measures stop looking."""

Event = tuple[float, str, Callable[[datetime], Any]]
"""Days before the end, what is told of it, and what happens."""


def demo_settings(folder: Path, **given: Any) -> Settings:
    """Return the settings of a server of the demonstration, its store in ``folder``; ``given`` are further ones."""
    return Settings(store=str(folder / "store.sqlite"), golden=SHIPPED, retriever=HYBRID, demo=True, **given)


def fill(
    store: Store, *, now: datetime, project: str = DEFAULT_PROJECT, tell: Callable[[str], None] = lambda said: None
) -> bool:
    """Fill a project of a store with a month that ends now; leave one that is filled already as it is, and return False.

    The same ``now`` gives the same month, but for the milliseconds of evaluations, which are measured. Raises InputError if the
    project holds something else, or was filled only in part.
    """
    before = store.audit(project=project, what=ENDED, limit=1)
    if before:
        tell(f"the store was filled at {before[0].at} and is left as it is; delete it for a month that ends today")
        return False
    _check_empty(store, project)
    scene = Scene(store, now, project)
    scene.note(scene.ago(30.5), BEGUN, project)
    tell(f"filling a store with a month of a hotel: {SIMULATED}; {REAL}")
    _play(scene, tell)
    scene.note(now, ENDED, project, simulated=SIMULATED, real=REAL)
    runs = sum(one.run_type in ("full", "regression") for one in store.results(project=project))
    tried = len(store.experiments(project=project))
    tell(f"filled: {store.count_queries(project=project):,} searches, {runs} evaluations, {tried} experiments")
    return True


def _check_empty(store: Store, project: str) -> None:
    if store.audit(project=project, what=BEGUN, limit=1):
        raise InputError(f"store {store.address}: filling it was stopped half-way; delete it and begin anew")
    there = store.results(project=project, limit=1) or store.queries(project=project, limit=1) or store.flags(project=project)
    if there:
        raise InputError(
            f"project '{project}' holds data of its own, and the demonstration would mix with it; give a new store"
        )


def _play(scene: Scene, tell: Callable[[str], None]) -> None:
    """Let everything happen."""
    shelf = Shelf(scene)
    reviewing, trials = Reviewing(scene, shelf), Trials(scene, shelf)
    for event in _before_guests(shelf, reviewing, trials):
        _happen(scene, event, tell)
    guests = Guests(scene, shelf)
    rollouts = Rollouts(scene, shelf, guests)
    events = [*_with_guests(shelf, reviewing, trials, guests, rollouts), *_jobs(scene, shelf)]
    for event in sorted(events, key=lambda event: -event[0]):
        _happen(scene, event, tell)
    tell("judgments from what guests did in the last week")
    week = timestamp(scene.ago(7))
    derive_into(scene.store, now=timestamp(scene.now), since=week, project=scene.project, mixed="separate")


def _happen(scene: Scene, event: Event, tell: Callable[[str], None]) -> None:
    days, says, happens = event
    if says:
        tell(says)
    happens(scene.ago(days))


def _before_guests(shelf: Shelf, reviewing: Reviewing, trials: Trials) -> Iterable[Event]:
    """Two weeks in which searches are measured and a golden set is reviewed."""
    yield 30.0, "golden set hotel", shelf.keep_shipped
    yield 29.0, "evaluating bm25", partial(shelf.record, BM25)
    yield 28.9, "baseline 1.0.0", lambda at: shelf.keep_baseline(BM25, "1.0.0", at, reason="what the site has today")
    yield 26.0, "evaluating dense", partial(shelf.record, DENSE)
    yield 25.0, "a provisional golden set", shelf.keep_drafted
    yield 23.0, "evaluating hybrid", partial(shelf.record, HYBRID, against=BM25, parts=True)
    yield 22.9, "an experiment", trials.first
    yield 17.0, "two reviewers", reviewing.ask_first
    yield 16.0, "two reviewers judge", reviewing.judge
    yield 15.0, "evaluating hybrid again", partial(shelf.record, HYBRID)
    yield 14.5, "the next version of hotel", reviewing.publish


def _with_guests(shelf: Shelf, reviewing: Reviewing, trials: Trials, guests: Guests, rollouts: Rollouts) -> Iterable[Event]:
    """Two weeks of guests, in which three features are tried."""
    searches: dict[int, Any] = {}

    def pass_day(number: int, at: datetime) -> None:
        searches[number] = guests.day(number)

    for number in range(DAYS):
        # A day is written down when it is over, before anything is decided on it.
        says = f"guests search, day {number + 1} of {DAYS}" if number % 4 == 0 else ""
        yield DAYS - number - 0.999, says, partial(pass_day, number)

    yield 14.0, "feature hybrid-search", partial(rollouts.begin, GRADUATED)
    yield 13.0, "its shadow", lambda at: rollouts.shadow(GRADUATED, searches[0], at)
    yield 12.6, "evaluating bm25 on the next version", partial(shelf.record, BM25)
    yield 12.5, "evaluating hybrid on the next version", partial(shelf.record, HYBRID)
    yield 12.4, "its sequential test", partial(rollouts.on_golden, GRADUATED)
    yield 12.0, "its rollout", partial(rollouts.step, GRADUATED)
    yield 12.0, "", lambda at: rollouts.set(GRADUATED, 25.0, at, why="one in a hundred guests is nobody here")
    for days in (11.0, 10.0, 9.0):
        yield days, "", partial(rollouts.step, GRADUATED)
    yield 8.9, "baseline 2.0.0", lambda at: shelf.keep_baseline(HYBRID, "2.0.0", at, reason="hybrid-search has graduated")

    yield 8.5, "a sweep of 30 trials", lambda at: guests.tuned(RUNNING, *weights_of(trials.sweep(at)))
    yield 7.0, "feature diverse-results", partial(rollouts.begin, ROLLED_BACK)
    yield 7.0, "", lambda at: rollouts.set(ROLLED_BACK, 25.0, at, why="tried on a quarter of the guests before any test")
    yield 6.0, "", partial(rollouts.step, ROLLED_BACK)
    yield 5.95, "gating a fusion with wrong weights", partial(shelf.gated, LOPSIDED)
    yield 5.9, "", trials.second
    yield 5.0, "feature tuned-fusion", partial(rollouts.begin, RUNNING)
    yield 4.0, "its shadow", lambda at: rollouts.shadow(RUNNING, searches[9], at)
    yield 3.5, "its sequential test", partial(rollouts.on_golden, RUNNING)
    yield 3.0, "", lambda at: rollouts.set(RUNNING, 10.0, at, why="while its test goes on")
    yield 2.9, "evaluating hybrid", partial(shelf.record, HYBRID)
    yield 0.2, "gating hybrid", partial(shelf.gated, HYBRID)
    yield 0.0, "", partial(rollouts.step, RUNNING)

    yield 4.6, "more pairs to review", reviewing.ask_second
    yield 4.5, "", reviewing.judge

    for part, days in enumerate((3.2, 2.6, 2.0, 1.4)):
        yield days, "", partial(reviewing.ask_unjudged, part, 4)
    yield 0.8, "", reviewing.begin


def _jobs(scene: Scene, shelf: Shelf) -> Iterable[Event]:
    """One job that was done and one that failed."""

    def request(expression: str) -> dict[str, Any]:
        asked = {"golden": f"{shelf.golden.id}@{shelf.golden.version}", "queries": len(shelf.golden.queries)}
        return {**asked, "uploaded": False, "retriever": expression, "measures": [], "split": "all", "sample": 1.0}

    def add(number: int, at: datetime, expression: str, **ended: Any) -> None:
        job = StoredJob(
            f"job_demo{number}",
            "evaluate",
            "done",
            timestamp(at),
            timestamp(at + timedelta(seconds=2)),
            project=scene.project,
            who=OPERATOR,
            request=request(expression),
        )
        scene.store.add_job(replace(job, **ended))

    def done(at: datetime) -> None:
        newest = shelf.results[-1]
        total = newest.query_count
        metrics = renamed(newest.metrics, keys_of(list(newest.metrics)))
        result = {"run_id": newest.run_id, "location": f"/v1/runs/{newest.run_id}", "metrics": metrics}
        add(1, at, HYBRID, done=total, total=total, says="asking", result=result)

    def failed(at: datetime) -> None:
        try:
            evaluate(TOO_SHORT, shelf.golden, collection=shelf.corpus, cache=False, now=at)
        except RingtrueError as problem:
            known = refused(problem)
            add(2, at, TOO_SHORT, state="failed", error=JobError(known.code, known.message))

    yield 0.19, "", done
    yield 0.1, "", failed
