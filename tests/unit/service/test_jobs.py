"""Jobs are started, watched, cancelled, bounded, and survive neither silently nor half a stop of the server."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ringtrue.answers import ENDED, JobError
from ringtrue.errors import InputError, MissingInput, Unusable
from ringtrue.service.auth import Caller
from ringtrue.service.errors import Refused
from ringtrue.service.jobs import MOST_WAITING, JobProgress, JobRunner, unit_of
from ringtrue.store import Store, StoredJob

CALLER = Caller("default", "tester", ("admin",))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.sqlite") as opened:
        yield opened


@pytest.fixture
def jobs(store: Store) -> Iterator[JobRunner]:
    made = JobRunner(store, now=lambda: datetime.now(UTC), most=1)
    yield made
    made.close()


def watched(jobs: JobRunner, job_id: str) -> list[StoredJob]:
    async def all_of_it() -> list[StoredJob]:
        return [job async for job in jobs.watch(job_id, "default") if job is not None]

    return asyncio.run(asyncio.wait_for(all_of_it(), 30))


def test_a_job_tells_how_it_goes_and_what_came_of_it(jobs: JobRunner, store: Store) -> None:
    going = threading.Event()

    def work(progress: JobProgress) -> dict[str, int]:
        progress.start("counting", 3)
        progress.step()
        going.wait(20)
        progress.step(2)
        return {"counted": 3}

    job = jobs.start("count", CALLER, {"to": 3}, work)
    assert (job.state, job.who, job.request) == ("queued", "tester", {"to": 3})
    threading.Timer(0.5, going.set).start()
    seen = watched(jobs, job.job_id)
    assert ("running", 1, 3, "counting") in [(one.state, one.done, one.total, one.says) for one in seen]
    assert (seen[-1].state, seen[-1].result) == ("done", {"counted": 3})
    assert (seen[-1].done, seen[-1].total, seen[-1].says) == (3, 3, "done")
    assert store.job(job.job_id, project="default") == seen[-1], "and it is remembered"


def test_a_job_whose_result_was_known_already_is_seen_to_be_done(jobs: JobRunner) -> None:
    def work(progress: JobProgress) -> dict[str, int]:
        progress.start("preparing", 0)
        return {"from": 1}

    seen = watched(jobs, jobs.start("x", CALLER, {}, work).job_id)
    assert all(one.total is None for one in seen[:-1]), "nobody knew how much there was to do"
    assert (seen[-1].state, seen[-1].done, seen[-1].total, seen[-1].says) == ("done", 1, 1, "done")


def test_a_cancelled_job_says_at_once_that_it_stops(jobs: JobRunner) -> None:
    begun, going = threading.Event(), threading.Event()

    def work(progress: JobProgress) -> dict[str, int]:
        progress.start("walking", 10)
        begun.set()
        going.wait(20)
        progress.step()
        return {}

    job = jobs.start("walk", CALLER, {}, work)
    assert begun.wait(20)
    assert jobs.cancel(job.job_id, "default").says == "stopping…"
    assert (jobs.get(job.job_id, "default").state, jobs.get(job.job_id, "default").says) == ("running", "stopping…")
    going.set()
    ended = watched(jobs, job.job_id)[-1]
    assert (ended.state, ended.says) == ("cancelled", "stopped while walking")


@pytest.mark.parametrize(
    ("says", "unit"),
    [("stopped while indexing", "index entries"), ("searching", "queries"), ("stopped", ""), ("stopping…", ""), (None, "")],
)
def test_what_a_job_counts_is_known_by_what_it_was_at(jobs: JobRunner, says: str | None, unit: str) -> None:
    job = jobs.start("x", CALLER, {}, lambda progress: {})
    assert unit_of(replace(job, says=says)) == unit


def test_a_cancelled_job_stops_at_its_next_step(jobs: JobRunner) -> None:
    begun, going = threading.Event(), threading.Event()
    steps = 0

    def work(progress: JobProgress) -> dict[str, int]:
        nonlocal steps
        progress.start("walking", 1_000)
        while True:
            begun.set()
            going.wait(20)
            progress.step()
            steps += 1

    job = jobs.start("walk", CALLER, {}, work)
    assert begun.wait(20)
    jobs.cancel(job.job_id, "default")
    going.set()
    assert watched(jobs, job.job_id)[-1].state == "cancelled"
    assert steps == 0


def test_a_job_that_fails_says_why_and_one_that_breaks_says_nothing_of_itself(jobs: JobRunner) -> None:
    def wrong(progress: JobProgress) -> dict[str, int]:
        raise InputError("there is no such set; load it")

    def broken(progress: JobProgress) -> dict[str, int]:
        raise RuntimeError("secret words")

    told = watched(jobs, jobs.start("x", CALLER, {}, wrong).job_id)[-1]
    assert (told.state, told.error) == ("failed", JobError("invalid_input", "there is no such set; load it"))
    silent = watched(jobs, jobs.start("x", CALLER, {}, broken).job_id)[-1]
    assert silent.error is not None
    assert silent.error.code == "internal"
    assert "secret" not in silent.error.message


def test_a_project_can_only_have_so_many_and_others_still_can(jobs: JobRunner) -> None:
    going = threading.Event()

    def work(progress: JobProgress) -> dict[str, int]:
        going.wait(20)
        return {}

    for _ in range(MOST_WAITING):
        jobs.start("x", CALLER, {}, work)
    with pytest.raises(Refused) as refusal:
        jobs.start("x", CALLER, {}, work)
    assert refusal.value.status == 429
    jobs.start("x", Caller("other", "them", ("admin",)), {}, work)
    going.set()


def test_a_job_that_the_store_did_not_take_does_not_count(
    jobs: JobRunner, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(job: StoredJob) -> None:
        raise Unusable("store: locked; try again")

    with monkeypatch.context() as patched:
        patched.setattr(store, "add_job", away)
        for _ in range(MOST_WAITING + 1):
            with pytest.raises(Unusable):
                jobs.start("x", CALLER, {}, lambda progress: {})
    assert watched(jobs, jobs.start("x", CALLER, {}, lambda progress: {}).job_id)[-1].state == "done"


class Locked:
    """A store that takes no end of a job for a while."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.locked, self._save = True, store.save_job
        monkeypatch.setattr(store, "save_job", self.save)

    def save(self, job: StoredJob) -> None:
        if self.locked and job.state in ENDED:
            raise Unusable("store: secret place is locked; try again")
        self._save(job)


def test_how_a_job_ended_is_told_while_the_store_is_locked_and_written_down_later(
    jobs: JobRunner, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ringtrue.service.jobs.SAVED_AGAIN_S", (0.05,) * 400)
    lock = Locked(store, monkeypatch)
    job = jobs.start("x", CALLER, {}, lambda progress: {"counted": 3})
    ended = watched(jobs, job.job_id)[-1]
    assert (ended.state, ended.result) == ("done", {"counted": 3})
    assert jobs.get(job.job_id, "default") == jobs.cancel(job.job_id, "default") == ended
    assert "Unusable" in caplog.text
    assert "secret" not in caplog.text
    lock.locked = False
    until = time.monotonic() + 20
    while (kept := store.job(job.job_id, project="default")) != ended and time.monotonic() < until:
        time.sleep(0.02)
    assert kept == ended
    assert jobs.get(job.job_id, "default") == ended


def test_what_the_store_did_not_take_is_written_down_with_the_next_end(
    jobs: JobRunner, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringtrue.service.jobs.SAVED_AGAIN_S", ())
    lock = Locked(store, monkeypatch)
    several = [jobs.start("x", CALLER, {}, lambda progress: {}).job_id for _ in range(MOST_WAITING)]
    assert {watched(jobs, job_id)[-1].state for job_id in several} == {"done"}
    lock.locked = False
    last = jobs.start("x", CALLER, {}, lambda progress: {}).job_id  # those that ended do not count as waiting
    watched(jobs, last)
    jobs.close()
    assert {job.state for job in store.jobs()} == {"done"}


def test_what_the_store_did_not_take_is_written_down_when_the_server_ends(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lock = Locked(store, monkeypatch)
    for stays_locked, state in ((False, "done"), (True, "running")):
        lock.locked = True
        jobs = JobRunner(store, now=lambda: datetime.now(UTC), most=1)
        job = jobs.start("x", CALLER, {}, lambda progress: {})
        assert watched(jobs, job.job_id)[-1].state == "done"
        lock.locked = stays_locked
        jobs.close()  # it does not wait for the pause to be over
        kept = store.job(job.job_id, project="default")
        assert kept is not None
        assert kept.state == state
        assert ("could not be written down" in caplog.text) is stays_locked


def test_a_job_of_another_project_is_not_there(jobs: JobRunner) -> None:
    going = threading.Event()
    job = jobs.start("x", CALLER, {}, lambda progress: {"waited": going.wait(20)})
    for look in (jobs.get, jobs.cancel):
        with pytest.raises(MissingInput):
            look(job.job_id, "other")
    going.set()
    assert watched(jobs, job.job_id)[-1].state == "done"


def test_a_server_that_stops_interrupts_its_jobs_and_says_so(store: Store) -> None:
    jobs = JobRunner(store, now=lambda: datetime.now(UTC), most=1)
    begun = threading.Event()

    def work(progress: JobProgress) -> dict[str, int]:
        begun.set()
        while True:
            threading.Event().wait(0.01)
            progress.check()

    running = jobs.start("x", CALLER, {}, work)
    waiting = jobs.start("x", CALLER, {}, work)
    assert begun.wait(20)
    jobs.close()
    for job in (running, waiting):
        found = store.job(job.job_id, project="default")
        assert found is not None
        assert found.state == "interrupted"
    with pytest.raises(Refused):
        jobs.start("x", CALLER, {}, work)


def test_jobs_of_a_server_that_died_are_interrupted_at_the_next_start(store: Store) -> None:
    store.add_job(StoredJob("job_1", "x", "running", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"))
    assert store.interrupt_jobs(now=datetime.now(UTC)) == 1
    found = store.job("job_1", project="default")
    assert found is not None
    assert found.state == "interrupted"
