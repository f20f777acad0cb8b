"""Sequential tests over REST decide as the library does, count a query once, and draw their path."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from rest_on_both import ON_ONE, Headers, examples_of, ok
from rest_on_both import client as client
from rest_on_both import keyed as keyed
from rest_service import problem
from ringtrue.rollout import create_test, record_scores, standing
from ringtrue.service.routes.rollouts import NewScores, NewStatus, NewTest
from ringtrue.store import Store
from stores import kind as kind
from stores import url as url


@ON_ONE
def test_the_examples_run(client: TestClient) -> None:
    for example in examples_of(NewTest):
        feature = ok(client.post("/v1/tests", json=example), 201)["feature"]
        for scores in examples_of(NewScores):
            assert ok(client.post(f"/v1/tests/{feature}/record", json=scores))["counted"] == 1
        for status in examples_of(NewStatus):
            assert ok(client.post(f"/v1/tests/{feature}/status", json=status))["status"] == status["status"]


def test_a_test_comes_to_what_the_library_comes_to(client: TestClient, url: str) -> None:
    ok(client.post("/v1/tests", json={"feature": "mv", "sigma": 0.2}), 201)
    scores = [{"query_id": f"eq_{n}", "control": 0.5, "treatment": 0.5 + (n % 3) / 10} for n in range(120)]
    found = ok(client.post("/v1/tests/mv/record", json={"scores": scores}))
    assert found["counted"] == 120
    assert ok(client.post("/v1/tests/mv/record", json={"scores": scores[:5]}))["queries"][0]["why_not"] == "counted before"
    with Store.open(url) as store:
        create_test(store, "own", now="2026-03-01T12:00:00Z", sigma=0.2)
        for one in scores:
            name, control, treatment = str(one["query_id"]), float(str(one["control"])), float(str(one["treatment"]))
            record_scores(store, "own", name, control=control, treatment=treatment, now="2026-03-01T12:00:00Z")
        test = store.test("own")
    assert test is not None
    own, said = standing(test), ok(client.get("/v1/tests/mv"))
    assert (said["decision"], said["decided_after"], said["evidence"]) == (own.decision, own.decided_after, own.evidence)
    assert said["decision"] == "accept-treatment"
    assert said["points"][-1]["sample_count"] == 120
    assert said["points"][-1]["llr"] == said["evidence"]
    assert [one["feature"] for one in ok(client.get("/v1/tests"))] == ["mv", "own"]


def test_nothing_is_counted_where_one_score_cannot_be(client: TestClient) -> None:
    ok(client.post("/v1/tests", json={"feature": "mv"}), 201)
    good = {"query_id": "eq_1", "control": 0.5, "treatment": 1}
    wrong = [
        {"query_id": "eq_2", "control": 0.5},
        {"query_id": "eq_2", "control": 0.5, "treatment": 1.5},
        {"query_id": "eq_2", "difference": 0.5, "control": 0.1, "treatment": 0.1},
        {"query_id": "eq_2", "difference": 0.5},
        {"query_id": "eq_1", "control": 0.1, "treatment": 0.1},
    ]
    for one in wrong:
        answer = client.post("/v1/tests/mv/record", json={"scores": [good, one]})
        assert (answer.status_code, problem(answer)["code"]) == (422, "invalid_input"), one
        assert ok(client.get("/v1/tests/mv"))["samples"] == 0, one


@ON_ONE
def test_differences_are_counted_where_the_test_is_of_them(client: TestClient) -> None:
    ok(client.post("/v1/tests", json={"feature": "mv", "measure": None}), 201)
    found = ok(client.post("/v1/tests/mv/record", json={"scores": [{"query_id": "eq_1", "difference": -0.5}]}))
    assert (found["test"]["samples"], found["test"]["mean_difference"], found["test"]["measure"]) == (1, -0.5, None)


def test_a_test_is_started_once_paused_and_begun_anew(client: TestClient) -> None:
    ok(client.post("/v1/tests", json={"feature": "mv"}), 201)
    answer = client.post("/v1/tests", json={"feature": "mv"})
    assert (answer.status_code, problem(answer)["code"], problem(answer)["field"]) == (409, "conflict", "body.feature")
    assert ok(client.post("/v1/tests/mv/status", json={"status": "paused", "why": "rebuild"}))["status"] == "paused"
    score = {"scores": [{"query_id": "eq_1", "control": 0, "treatment": 1}]}
    assert ok(client.post("/v1/tests/mv/record", json=score))["queries"][0]["why_not"] == "the test is paused"
    ok(client.post("/v1/tests", json={"feature": "mv", "again": True}), 201)
    assert ok(client.post("/v1/tests/mv/record", json=score))["counted"] == 1
    trail = ok(client.get("/v1/audit", params={"subject": "mv"}))["items"]
    assert [entry["what"] for entry in trail] == ["test begun anew", "test paused", "test.create"]
    wrong = [
        {"feature": "x", "alpha": 0},
        {"feature": " "},
        {"feature": "x", "method": "guess"},
        {"feature": "x", "measure": "a b"},
    ]
    for given in wrong:
        assert client.post("/v1/tests", json=given).status_code == 422, given


@ON_ONE
@pytest.mark.parametrize("feature", ["a/b", "ü/ß", "../x", "..", ".", "a?b", "50%", " a"])
def test_a_name_that_no_address_leads_to_is_refused(client: TestClient, feature: str) -> None:
    answer = client.post("/v1/tests", json={"feature": feature})
    assert (answer.status_code, problem(answer)["code"]) == (422, "invalid_input")
    assert "it cannot be used in a URL" in problem(answer)["message"]
    assert ok(client.get("/v1/tests")) == []


@ON_ONE
@pytest.mark.parametrize("feature", ["rerank v2", "ü&ß", "a@b", "...", "a.b", "x" * 200])
def test_a_test_is_found_under_its_name(client: TestClient, feature: str) -> None:
    ok(client.post("/v1/tests", json={"feature": feature}), 201)
    assert ok(client.get(f"/v1/tests/{quote(feature, safe='')}"))["feature"] == feature


def test_tests_stay_in_their_project(keyed: tuple[TestClient, Headers]) -> None:
    client, key = keyed
    mine, other = key("app", ["write", "read"]), key("eve", ["write", "read"], "other")
    ok(client.post("/v1/tests", json={"feature": "mv"}, headers=mine), 201)
    assert client.get("/v1/tests/mv", headers=other).status_code == 404
    score = {"scores": [{"query_id": "eq_1", "control": 0, "treatment": 1}]}
    assert client.post("/v1/tests/mv/record", json=score, headers=other).status_code == 404
    assert client.post("/v1/tests/mv/status", json={"status": "paused"}, headers=other).status_code == 404
    assert ok(client.get("/v1/tests", headers=other)) == []
    assert client.post("/v1/tests", json={"feature": "x"}, headers=key()).status_code == 403
