"""``/v1/gate`` judges and keeps the verdict, ``/v1/baselines`` alone changes a baseline."""

from __future__ import annotations

import html
import time
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_service import client as client
from rest_service import problem

GOOD, BAD = "bm25", "fts5(title=0, tags=0)"
CALM = {"latency": {}, "latency_increase": 1e6}


@pytest.fixture(scope="module")
def runs(client: TestClient) -> dict[str, str]:
    return {
        text: client.post("/v1/evaluate", json={"golden": "hotel", "retriever": text}).json()["run_id"] for text in (GOOD, BAD)
    }


@pytest.fixture(scope="module")
def recorded(client: TestClient, runs: dict[str, str]) -> str:
    """A baseline of the good run."""
    answer = client.post("/v1/baselines", json={"run": runs[GOOD], "name": "main"})
    assert answer.status_code == 201, answer.text
    assert (answer.json()["version"], answer.json()["previous"]) == ("1.0.0", None)
    return "main"


def kept(client: TestClient) -> list[tuple[str, str]]:
    return [(item["name"], item["version"]) for item in client.get("/v1/baselines").json()["items"]]


def test_the_same_run_passes_and_the_verdict_is_kept(client: TestClient, runs: dict[str, str], recorded: str) -> None:
    policy = {**CALM, "floors": {}}
    found = client.post("/v1/gate", json={"run": runs[GOOD], "baseline": recorded, "policy": policy}).json()
    assert (found["verdict"], found["exit_code"], found["failures"]) == ("pass", 0, [])
    assert found["baseline"] == "1.0.0"
    assert client.get(f"/v1/runs/{found['run_id']}").json()["run"]["gate"] == "pass"


def test_a_worse_run_fails_with_the_queries_behind_it(client: TestClient, runs: dict[str, str], recorded: str) -> None:
    before = kept(client)
    body = {"run": runs[BAD], "baseline": f"{recorded}@1.0.0", "policy": {**CALM, "floors": {}, "max_drop": 0.001}}
    found = client.post("/v1/gate", json=body).json()
    assert (found["verdict"], found["exit_code"]) == ("fail", 1)
    assert found["failures"]
    assert all(check["status"] == "fail" for check in found["failures"])
    assert any(check["queries"] for check in found["failures"])
    later = client.get(f"/v1/runs/{found['run_id']}").json()
    assert later["run"]["gate"] == "fail"
    assert later["verdict"] == found, "why it said so is kept"
    assert kept(client) == before  # a gate never writes a baseline
    page = client.get(f"/runs/{found['run_id']}").text
    for check in found["failures"]:
        assert html.escape(check["message"]).replace("&#x27;", "&#39;") in page.replace("<code>", "`").replace("</code>", "`")
    assert "by baseline <bdi>main</bdi> 1.0.0" in page
    assert client.get(f"/v1/runs/{runs[BAD]}").json()["verdict"] is None, "it was not judged itself"


def test_an_evaluation_is_made_and_judged(client: TestClient, recorded: str) -> None:
    body = {
        "evaluate": {"golden": "hotel", "retriever": GOOD},
        "baseline": recorded,
        "policy": {**CALM, "floors": {"R@10": 0.99}},
    }
    found = client.post("/v1/gate", json=body).json()
    assert (found["verdict"], found["exit_code"]) == ("fail", 1)
    assert [check["measure"] for check in found["failures"]] == ["R@10"]


@pytest.mark.parametrize("wait", [None, False])
def test_a_candidate_is_evaluated_and_judged_as_one(client: TestClient, recorded: str, wait: bool | None) -> None:
    asked = {"golden": "hotel", "retriever": BAD, "feature_id": "no-titles"} | ({} if wait is None else {"wait": wait})

    def done(path: str, body: dict[str, Any]) -> str:
        answer = client.post(path, json=body)
        if answer.status_code == 200:
            return str(answer.json()["run_id"])
        place = f"/v1/jobs/{answer.json()['job_id']}"
        while (job := client.get(place).json())["state"] in ("queued", "running"):
            time.sleep(0.02)
        assert job["request"]["feature_id"] == "no-titles"
        return str(job["result"]["run_id"])

    alone = done("/v1/evaluate", asked)
    judged = done("/v1/gate", {"evaluate": asked, "baseline": recorded})
    again = done("/v1/gate", {"run": alone, "baseline": recorded})
    for run_id in (alone, judged, again):
        assert client.get(f"/v1/runs/{run_id}").json()["run"]["feature_id"] == "no-titles"
    evaluation = next(part for part in client.get("/v1/health").json()["parts"] if part["name"] == "evaluation")
    assert BAD not in evaluation["says"], "a candidate's figures are not production's"


def test_without_a_baseline_a_gate_is_undecided_unless_floors_are_to_decide_alone(
    client: TestClient, runs: dict[str, str]
) -> None:
    policy = {**CALM, "floors": {"R@10": 0.5}}
    found, alone = (
        client.post("/v1/gate", json={"run": runs[GOOD], "baseline": None, "policy": {**policy, **more}}).json()
        for more in ({}, {"require_baseline": False})
    )
    assert (found["verdict"], found["exit_code"]) == ("undecided", 3)
    assert any("no baseline" in check["message"] for check in found["checks"])
    assert (alone["verdict"], alone["exit_code"]) == ("pass", 0)


def test_too_few_queries_are_undecided(client: TestClient, runs: dict[str, str]) -> None:
    policy = {**CALM, "floors": {}, "minimum_queries": 1000}
    found = client.post("/v1/gate", json={"run": runs[GOOD], "baseline": None, "policy": policy}).json()
    assert (found["verdict"], found["exit_code"]) == ("undecided", 3)


def test_a_gate_that_need_not_be_waited_for_is_a_job(client: TestClient, recorded: str) -> None:
    body = {
        "evaluate": {"golden": "hotel", "retriever": GOOD, "wait": False},
        "baseline": recorded,
        "policy": {**CALM, "floors": {}},
    }
    answer = client.post("/v1/gate", json=body)
    assert answer.status_code == 202
    for _ in range(600):
        job = client.get(answer.headers["location"]).json()
        if job["state"] not in ("queued", "running"):
            break
        time.sleep(0.05)
    assert job["state"] == "done", job
    assert job["result"]["verdict"] == "pass"


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"baseline": None}, 422, "give one of run and evaluate"),
        ({"run": "nothing", "baseline": None}, 404, "there is no run"),
        ({"run": "GOOD"}, 422, "body.baseline"),
        ({"run": "GOOD", "baseline": "nothing"}, 404, "there is no baseline 'nothing'"),
        ({"run": "GOOD", "baseline": "main@9.0.0"}, 404, "has no version '9.0.0'"),
        ({"run": "GOOD", "baseline": "../main"}, 422, "is not a valid name"),
        ({"run": "GOOD", "baseline": None, "policy": {"flors": {}}}, 422, "did you mean 'floors'"),
        ({"run": "GOOD", "baseline": None, "policy": {"max_drop": "much"}}, 422, "max_drop"),
        ({"run": "GOOD", "baseline": None, "policy": {"floors": {"nDGC@10": 1}}}, 422, "nDCG"),
        ({"run": "GOOD", "baseline": None, "policy": {"floors": 3}}, 422, "floors"),
        ({"run": "GOOD", "baseline": None, "policy": {"slices": {"x": 3}}}, 422, ""),
        ({"run": "GOOD", "baseline": None, "policy": {"drop_measures": 3}}, 422, "drop_measures"),
        ({"evaluate": {"golden": "hotel"}, "baseline": "nothing"}, 404, "there is no baseline"),
    ],
)
def test_what_cannot_be_judged(
    client: TestClient, runs: dict[str, str], recorded: str, body: dict[str, Any], status: int, says: str
) -> None:
    given = {**body, "run": runs[GOOD]} if body.get("run") == "GOOD" else body
    answer = client.post("/v1/gate", json=given)
    assert answer.status_code == status, answer.text
    assert says in problem(answer)["message"]


def test_a_baseline_moves_on_purpose_only(client: TestClient, runs: dict[str, str]) -> None:
    def update(**body: Any) -> Any:
        return client.post("/v1/baselines", json={"name": "release", **body})

    assert update(run=runs[GOOD]).json()["version"] == "1.0.0"
    refused = update(run=runs[BAD])
    assert refused.status_code == 409
    assert problem(refused)["code"] == "worse_than_baseline"
    assert update(run=runs[BAD], force=True).status_code == 422
    forced = update(run=runs[BAD], force=True, reason="half the cost").json()
    assert (forced["version"], forced["previous"]) == ("1.1.0", "1.0.0")
    assert forced["objections"]
    assert forced["measures"]["R@10"]["diff"] < 0
    shown = client.get("/v1/baselines/release").json()
    assert (shown["version"], shown["reason"], shown["versions"]) == ("1.1.0", "half the cost", ["1.1.0", "1.0.0"])
    assert client.get("/v1/baselines/release@1.0.0").json()["version"] == "1.0.0"
    taken = update(run=runs[GOOD], version="1.1.0")
    assert taken.status_code == 409
    assert problem(taken)["code"] == "version_taken"
    service = client.app.state.service  # type: ignore[attr-defined]
    assert {"baseline.update"} == {entry.what for entry in service.store.audit(subject="release@1.1.0")}


def test_baselines_are_listed_page_by_page(client: TestClient, runs: dict[str, str], recorded: str) -> None:
    client.post("/v1/baselines", json={"run": runs[GOOD], "name": "another"})
    first = client.get("/v1/baselines", params={"limit": 1}).json()
    assert first["next"] == first["items"][0]["name"] == "another"
    second = client.get("/v1/baselines", params={"limit": 100, "cursor": first["next"]}).json()
    assert "main" in [item["name"] for item in second["items"]]
    assert second["next"] is None
    assert client.get("/v1/baselines", params={"cursor": "nothing"}).status_code == 422
    assert client.get("/v1/baselines/nothing").status_code == 404
