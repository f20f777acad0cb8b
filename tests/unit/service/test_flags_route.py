"""Flags over REST: who is in, what graduation still waits for, and who changed what."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from rest_on_both import ON_ONE, Headers, examples_of, ok
from rest_on_both import client as client
from rest_on_both import keyed as keyed
from rest_service import problem
from ringtrue.rollout import is_on
from ringtrue.service.routes.rollouts import FlagStep, FlagUpdate, RollBack
from ringtrue.store import Flag
from stores import kind as kind
from stores import url as url


@ON_ONE
def test_the_examples_run(client: TestClient) -> None:
    for example in examples_of(FlagUpdate):
        ok(client.put("/v1/flags/late-checkout", json=example))
    for example in examples_of(FlagStep):
        assert ok(client.post("/v1/flags/late-checkout/step", json=example))["action"] == "wait"
    for example in examples_of(RollBack):
        found = ok(client.post("/v1/flags/late-checkout/rollback", json=example))
        assert (found["rollout"], found["state"]) == (0, "paused")


@ON_ONE
def test_flags_are_listed_once_somebody_or_the_environment_sets_them(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ok(client.get("/v1/flags")) == []
    found = ok(client.put("/v1/flags/multi-vector", json={"rollout": 5}))
    assert (found["rollout"], found["shadow"], found["min_samples"]) == (5, True, 100)  # as the preset has it
    monkeypatch.setenv("RINGTRUE_FLAG_GRAPH_SCORING", "25")
    listed = {flag["name"]: flag["preset"] for flag in ok(client.get("/v1/flags"))}
    assert listed == {"graph-scoring": True, "multi-vector": False}
    assert client.get("/v1/flags/graph-scoring").status_code == 404


def test_what_is_left_out_stays(client: TestClient) -> None:
    ok(client.put("/v1/flags/mv", json={"min_samples": 7, "measure": "nDCG@10", "stage_hours": 2}))
    found = ok(client.put("/v1/flags/mv", json={"rollout": 10, "stage_hours": 3}))
    assert (found["min_samples"], found["rollout"]) == (7, 10)
    assert found["metadata"] == {"measure": "nDCG@10", "stage_hours": 3}
    assert found["stage_since"] is not None


@ON_ONE
def test_what_cannot_be_is_refused(client: TestClient) -> None:
    for given in (
        {"rollout": 101},
        {"rollout": True},
        {"state": "gone"},
        {"measure": "nDCG@"},
        {"roll": 5},
        {"min_samples": 0},
    ):
        assert client.put("/v1/flags/mv", json=given).status_code == 422, given
    assert client.put("/v1/flags/Not A Name", json={}).status_code == 422
    assert client.post("/v1/flags/mv/step", json={}).status_code == 404
    ok(client.put("/v1/flags/mv", json={}))
    for why in ("", "  "):
        assert client.post("/v1/flags/mv/rollback", json={"why": why}).status_code == 422


def test_the_checklist_says_what_is_missing_and_changes_nothing(client: TestClient) -> None:
    ok(client.put("/v1/flags/mv", json={"shadow": True, "why": "a first look"}))
    page = ok(client.get("/v1/flags/mv"))
    checks = {check["name"]: check["holds"] for check in page["next"]["checks"]}
    assert page["next"]["action"] == "wait"
    assert checks["improvement"] is None
    assert checks["samples"] is False
    assert "It waits for" in page["next"]["page"]
    assert [(entry["who"], entry["why"]) for entry in page["history"]] == [("local", "a first look")]
    assert page["flag"] == ok(client.get("/v1/flags/mv"))["flag"]


@ON_ONE
def test_what_helps_is_told_as_a_request_and_not_as_a_command(client: TestClient) -> None:
    told = [problem(client.get("/v1/flags/nobody"))["message"], problem(client.get("/v1/tests/nobody"))["message"]]
    assert told[0].endswith("create it: PUT /v1/flags/{name}")
    assert told[1].endswith("start it: POST /v1/tests")
    for state, helps in (("paused", 'PUT /v1/flags/mv with "state": "running"'), ("rejected", "PUT /v1/flags/{name}")):
        ok(client.put("/v1/flags/mv", json={"state": state}))
        following = ok(client.get("/v1/flags/mv"))["next"]
        assert following["why"].endswith(helps)
        assert helps in following["page"]
        test = next(check for check in following["checks"] if check["name"] == "sequential test")
        assert test["says"] == "there is none; start it: POST /v1/tests"
        told.append(str(following))
    assert "ringtrue flag" not in " ".join(told)
    assert "ringtrue test" not in " ".join(told)


def test_a_breach_takes_the_feature_away(client: TestClient) -> None:
    ok(client.put("/v1/flags/mv", json={"rollout": 25}))
    found = ok(client.post("/v1/flags/mv/step", json={"breaches": ["error rate doubled"]}))
    assert (found["action"], found["moved"], found["flag"]["rollout"], found["flag"]["state"]) == (
        "rollback",
        True,
        0,
        "paused",
    )
    assert "error rate doubled" in ok(client.get("/v1/flags/mv"))["history"][0]["why"]


@ON_ONE
def test_an_identity_gets_what_the_library_gives_it(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    ok(client.put("/v1/flags/mv", json={"rollout": 40}))
    for number in range(12):
        found = ok(client.get("/v1/flags/mv/variant", params={"identity": f"user-{number}"}))
        assert found["on"] is is_on(Flag("mv", rollout=40), f"user-{number}")
        assert found["variant"] == ("treatment" if found["on"] else "control")
    monkeypatch.setenv("RINGTRUE_FLAG_MV", "on")
    assert ok(client.get("/v1/flags/mv/variant", params={"identity": "anybody"}))["rollout"] == 100
    answer = client.get("/v1/flags/none/variant", params={"identity": "x"})
    assert (answer.status_code, problem(answer)["code"]) == (404, "not_found")
    assert client.get("/v1/flags/mv/variant").status_code == 422


def test_flags_stay_in_their_project_and_need_a_writer(keyed: tuple[TestClient, Headers]) -> None:
    client, key = keyed
    mine, other = key("ada", ["write", "read"]), key("eve", ["write", "read"], "other")
    ok(client.put("/v1/flags/mv", json={"rollout": 5}, headers=mine))
    assert client.get("/v1/flags/mv", headers=other).status_code == 404
    assert client.post("/v1/flags/mv/rollback", json={"why": "x"}, headers=other).status_code == 404
    ok(client.put("/v1/flags/mv", json={"rollout": 90}, headers=other))
    assert ok(client.get("/v1/flags/mv", headers=mine))["flag"]["rollout"] == 5
    for scopes in (["read"], ["review"]):
        assert client.put("/v1/flags/mv", json={"rollout": 100}, headers=key(scopes=scopes)).status_code == 403  # type: ignore[arg-type]
