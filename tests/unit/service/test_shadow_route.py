"""Results of a candidate that runs elsewhere come in over REST and are compared as anywhere."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient

from rest_on_both import ON_ONE, Headers, examples_of, ok
from rest_on_both import client as client
from rest_on_both import keyed as keyed
from ringtrue.rollout import summarise
from ringtrue.service.routes.rollouts import SentShadowRuns
from ringtrue.store import Store
from stores import kind as kind
from stores import url as url


def run(query_id: str, treatment: list[str], **facts: Any) -> dict[str, Any]:
    return {"query_id": query_id, "control_result_ids": ["a", "b", "c"], "treatment_result_ids": treatment, **facts}


@ON_ONE
def test_the_examples_run(client: TestClient) -> None:
    for example in examples_of(SentShadowRuns):
        found = ok(client.post("/v1/shadow/multi-vector/runs", json=example), 201)
        assert found == {"accepted": len(example["runs"]), "stored": len(example["runs"])}


def test_runs_are_compared_scored_and_summed_up(client: TestClient, url: str) -> None:
    ok(client.post("/v1/queries", json={"query": "Late checkout", "tool_name": "w", "query_id": "eq_1"}), 201)
    ok(client.post("/v1/queries", json={"query": "late checkout?", "tool_name": "w", "query_id": "eq_2"}), 201)
    ok(client.post("/v1/judgments", json={"judgments": [{"query_id": "eq_1", "item_id": "b", "relevance": 3}]}), 201)
    times = {"control_latency_ms": 10, "treatment_latency_ms": 12}
    runs = [
        run("eq_1", ["b", "a", "c"], **times),
        run("eq_2", ["a", "b", "c"], **times),
        run("eq_3", [], error="ada@example.org"),
    ]
    assert ok(client.post("/v1/shadow/mv/runs", json={"runs": runs}), 201)["stored"] == 3
    assert ok(client.post("/v1/shadow/mv/runs", json={"runs": runs}), 201)["stored"] == 0  # a query counts once
    found = ok(client.get("/v1/shadow/mv"))
    rows = {row["query_id"]: row for row in found["runs"]}
    # Both are judged: the words are the same.
    assert (rows["eq_1"]["mrr_delta"], rows["eq_2"]["mrr_delta"], rows["eq_3"]["mrr_delta"]) == (0.5, 0.0, None)
    assert (rows["eq_1"]["top_result_changed"], rows["eq_1"]["set_overlap"]) == (True, 1.0)
    assert rows["eq_3"]["error"] == "[email]"
    with Store.open(url) as store:
        own = summarise(store.shadow_runs(feature_id="mv"))
    summary = found["summary"]
    assert (summary["queries"], summary["failures"], summary["judged"]) == (own.queries, own.failures, own.judged) == (3, 1, 2)
    assert (summary["mrr_delta"], summary["timed_source"]) == (own.mrr_delta, "live")
    # It is listed although nobody set a flag of that name.
    assert [(one["feature"], one["summary"]["queries"]) for one in ok(client.get("/v1/shadow"))] == [("mv", 3)]
    ok(client.put("/v1/flags/mv", json={"shadow": True}))
    assert [(one["feature"], one["summary"]["queries"]) for one in ok(client.get("/v1/shadow"))] == [("mv", 3)]


def test_a_feature_of_another_project_is_not_there(keyed: tuple[TestClient, Headers]) -> None:
    client, key = keyed
    mine, other = key("app", ["write", "read"]), key("eve", ["write", "read"], "other")
    ok(client.post("/v1/shadow/mv/runs", json={"runs": [run("eq_1", ["a"])]}, headers=mine), 201)
    assert client.get("/v1/shadow/mv", headers=other).status_code == 404
    assert client.get("/v1/shadow/mv", headers=mine).status_code == 200
    assert client.post("/v1/shadow/mv/runs", json={"runs": []}, headers=mine).status_code == 422
    assert client.post("/v1/shadow/mv/runs", json={"runs": [run("q", ["a"])]}, headers=key()).status_code == 403
