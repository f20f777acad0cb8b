"""Jobs, and replies to writes that may be sent again, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ringtrue.errors import InputError, MissingInput
from ringtrue.store import Reply, Store, StoredJob, StoredResult
from store_contents import JOB, LATER, REPLY, RESULT


def _jobs() -> list[StoredJob]:
    """Five jobs, two of which were made in the same moment."""
    times = ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-03", "2026-03-04"]
    states = ["done", "queued", "running", "failed", "queued"]
    return [
        replace(JOB, job_id=f"j{i}", created_at=f"{day}T00:00:00.000000Z", state=states[i], result=None, error=None, total=None)  # type: ignore[arg-type]
        for i, day in enumerate(times)
    ]


def test_a_job_is_kept_changed_and_found(store: Store) -> None:
    queued = replace(JOB, state="queued", done=0, total=None, result=None, error=None)
    store.add_job(queued)
    assert store.job("job_1") == queued
    store.save_job(replace(JOB, done=7))
    assert store.job("job_1") == replace(JOB, done=7)
    assert (store.job("other"), store.job("job_1", project="shop")) == (None, None)
    with pytest.raises(InputError, match="job_1"):
        store.add_job(JOB)
    with pytest.raises(MissingInput, match="gone"):
        store.save_job(replace(JOB, job_id="gone"))
    with pytest.raises(InputError, match="state"):
        store.save_job(replace(JOB, state="lost"))  # type: ignore[arg-type]


def test_jobs_come_in_pages_the_newest_first(store: Store) -> None:
    for job in _jobs():
        store.add_job(job)
    assert [job.job_id for job in store.jobs()] == ["j4", "j3", "j2", "j1", "j0"]
    pages, before = [], None
    while page := store.jobs(limit=2, before=before):
        pages.append([job.job_id for job in page])
        before = page[-1].job_id
    assert pages == [["j4", "j3"], ["j2", "j1"], ["j0"]]
    assert [job.job_id for job in store.jobs(state="queued")] == ["j4", "j1"]
    assert [job.job_id for job in store.jobs(state="queued", before="j4")] == ["j1"]
    with pytest.raises(MissingInput, match="gone"):
        store.jobs(before="gone")
    with pytest.raises(MissingInput, match="j1"):
        store.jobs(before="j1", project="shop")


def test_what_was_under_way_is_interrupted_in_every_project(store: Store) -> None:
    for job in [*_jobs(), replace(JOB, state="running", project="shop")]:
        store.add_job(job)
    assert store.interrupt_jobs(now=LATER) == 4
    assert {job.job_id: job.state for job in store.jobs()} == {
        "j0": "done", "j1": "interrupted", "j2": "interrupted", "j3": "failed", "j4": "interrupted",
    }  # fmt: skip
    assert [(job.state, job.updated_at) for job in store.jobs(project="shop")] == [("interrupted", LATER)]
    assert store.interrupt_jobs(now=LATER) == 0


def test_the_key_of_a_write_is_claimed_once_then_answered(store: Store) -> None:
    claim = replace(REPLY, status=None, body=b"")
    assert store.claim_reply(claim) is None
    assert store.claim_reply(replace(claim, fingerprint="another")) == claim  # under way, and for whom
    store.keep_reply(REPLY)
    assert store.claim_reply(claim) == REPLY
    assert store.claim_reply(replace(claim, project="shop")) is None
    assert [store.drop_reply(REPLY.key), store.drop_reply(REPLY.key)] == [True, False]
    assert store.claim_reply(claim) is None


def test_of_many_who_claim_a_key_at_once_one_gets_it(store: Store) -> None:
    claims = [replace(REPLY, fingerprint=f"f{i}", status=None) for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        found: list[Reply | None] = list(pool.map(store.claim_reply, claims))
    assert found.count(None) == 1
    winner = claims[found.index(None)]
    assert {reply.fingerprint for reply in found if reply is not None} == {winner.fingerprint}


def _results() -> list[StoredResult]:
    return [replace(RESULT, run_id=f"r{i}", created_at=f"2026-03-0{1 + i // 2}T00:00:00.000000Z") for i in range(5)]


def test_results_come_in_pages_and_one_by_one(store: Store) -> None:
    for result in _results():
        store.add_result(result)
    assert [result.run_id for result in store.results(limit=2)] == ["r4", "r3"]
    assert [result.run_id for result in store.results(limit=2, before="r3")] == ["r2", "r1"]
    assert [result.run_id for result in store.results(before="r1")] == ["r0"]
    assert store.result("r2") == _results()[2]
    assert (store.result("gone"), store.result("r2", project="shop")) == (None, None)
    with pytest.raises(MissingInput, match="gone"):
        store.results(before="gone")
