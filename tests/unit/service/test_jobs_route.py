"""``/v1/jobs``: watched as events, cancelled, listed, and seen by their own project alone."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_service import client as client
from rest_service import problem
from ringtrue.service.auth import Caller
from ringtrue.service.context import Service
from ringtrue.service.jobs import JobProgress
from ringtrue.store import StoredJob


@pytest.fixture
def service(client: TestClient) -> Service:
    found: Service = client.app.state.service  # type: ignore[attr-defined]
    return found


class Held:
    """Work that goes on when it is told to."""

    def __init__(self) -> None:
        self.go, self.running = threading.Event(), threading.Event()

    def __call__(self, progress: JobProgress) -> dict[str, Any]:
        progress.start("counting", 3)
        self.running.set()
        for _ in range(3):
            self.go.wait(20)
            progress.step()
        return {"answer": 42}


@pytest.fixture
def held() -> Iterator[Held]:
    work = Held()
    yield work
    work.go.set()


def begun(service: Service, work: Held, project: str = "default") -> StoredJob:
    job = service.jobs.start("count", Caller(project, "somebody", ("write",)), {"to": 3}, work)
    assert work.running.wait(20)
    return job


def events(text: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def test_a_job_is_watched_until_it_ends(
    client: TestClient, service: Service, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = begun(service, held)
    watch = service.jobs.watch

    async def watched(*asked: str) -> AsyncIterator[StoredJob | None]:
        async for one in watch(*asked):
            yield one
            held.go.set()  # once somebody has seen it at work, it may go on

    monkeypatch.setattr(service.jobs, "watch", watched)
    answer = client.get(f"/v1/jobs/{job.job_id}/events", headers={"last-event-id": "7"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    told = events(answer.text)
    assert told[0][0] == "progress"
    assert (told[0][1]["says"], told[0][1]["total"]) == ("counting", 3)
    kinds = [kind for kind, _ in told]
    assert kinds.count("end") == 1
    assert kinds[-1] == "end"
    assert told[-1][1]["result"] == {"answer": 42}
    assert client.get(f"/v1/jobs/{job.job_id}").json() == told[-1][1]
    # Who comes late is told the end at once.
    assert [kind for kind, _ in events(client.get(f"/v1/jobs/{job.job_id}/events").text)] == ["end"]


def test_a_job_is_cancelled(client: TestClient, service: Service, held: Held) -> None:
    job = begun(service, held)
    assert client.post(f"/v1/jobs/{job.job_id}/cancel").status_code == 200
    held.go.set()
    assert events(client.get(f"/v1/jobs/{job.job_id}/events").text)[-1][1]["state"] == "cancelled"
    again = client.post(f"/v1/jobs/{job.job_id}/cancel").json()
    assert again["state"] == "cancelled"
    assert again["result"] is None


def test_a_job_that_fails_says_why(client: TestClient, service: Service) -> None:
    from ringtrue.errors import InputError

    def broken(progress: JobProgress) -> dict[str, Any]:
        raise InputError("there is nothing to count")

    def bug(progress: JobProgress) -> dict[str, Any]:
        raise ZeroDivisionError("secret detail")

    caller = Caller("default", "somebody", ("write",))
    told = service.jobs.start("count", caller, {}, broken)
    end = events(client.get(f"/v1/jobs/{told.job_id}/events").text)[-1][1]
    assert (end["state"], end["error"]["message"]) == ("failed", "there is nothing to count")
    silent = service.jobs.start("count", caller, {}, bug)
    end = events(client.get(f"/v1/jobs/{silent.job_id}/events").text)[-1][1]
    assert (end["state"], end["error"]["code"]) == ("failed", "internal")
    assert "secret" not in json.dumps(end)


def test_jobs_are_listed_page_by_page_and_by_state(client: TestClient, service: Service, held: Held) -> None:
    job = begun(service, held)
    running = client.get("/v1/jobs", params={"state": "running"}).json()["items"]
    assert [item["job_id"] for item in running] == [job.job_id]
    first = client.get("/v1/jobs", params={"limit": 1}).json()
    assert first["items"][0]["job_id"] == job.job_id
    assert client.get("/v1/jobs", params={"cursor": "job_nothing"}).status_code == 422
    assert client.get("/v1/jobs", params={"state": "tired"}).status_code == 422


def test_another_projects_job_is_not_there(client: TestClient, service: Service, held: Held) -> None:
    job = begun(service, held, project="other")
    for method, path in (("get", ""), ("get", "/events"), ("post", "/cancel")):
        answer = client.request(method, f"/v1/jobs/{job.job_id}{path}")
        assert answer.status_code == 404
        assert problem(answer)["message"] == problem(client.get("/v1/jobs/" + job.job_id))["message"]
    assert job.job_id not in client.get("/v1/jobs").text
    held.go.set()
    while service.jobs.get(job.job_id, "other").state == "running":
        pass
    assert service.jobs.get(job.job_id, "other").state == "done"
