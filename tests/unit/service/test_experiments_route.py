"""Experiments come in as rows of experiments.json, all or none, and come out the same."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_on_both import ON_ONE, Headers, examples_of, ok
from rest_on_both import client as client
from rest_on_both import keyed as keyed
from rest_service import problem
from ringtrue.service.routes.library import NewExperiments
from stores import kind as kind
from stores import url as url


def row(**facts: Any) -> dict[str, Any]:
    return {"date": "2026-01-31", "description": "smaller chunks", **facts}


@ON_ONE
def test_the_examples_run(client: TestClient) -> None:
    for example in examples_of(NewExperiments):
        assert [one["id"] for one in ok(client.post("/v1/experiments", json=example), 201)] == ["exp-001"]


def test_rows_come_out_as_they_went_in_with_what_others_wrote(client: TestClient) -> None:
    whole = row(
        id="exp-007", config_changes={"k": 20}, results={"mrr": 0.7, "ndcg": None}, verdict="REJECTED (slow)",
        commit="abc", golden_version="hotel-v1.0.0", reviewer={"name": "ben", "sure": True},
    )  # fmt: skip
    ok(client.post("/v1/experiments", json={"experiments": [whole, row()]}), 201)
    assert ok(client.get("/v1/experiments/exp-007")) == whole
    assert ok(client.get("/v1/experiments/exp-008"))["description"] == "smaller chunks"


def test_all_of_them_or_none(client: TestClient) -> None:
    ok(client.post("/v1/experiments", json={"experiments": [row(id="exp-001")]}), 201)
    wrong: list[list[Any]] = [
        [row(id="exp-005"), row(id="exp-005")],
        [row(), row(results={"mrr": "high"})],
        [row(), row(commit=7)],
        [row(), {"date": "2026-01-31"}],
        [],
    ]
    for rows in wrong:
        answer = client.post("/v1/experiments", json={"experiments": rows})
        assert answer.status_code == 422, rows
        problem(answer)
    taken = client.post("/v1/experiments", json={"experiments": [row(), row(id="exp-001")]})
    told = problem(taken)
    assert (taken.status_code, told["code"], told["field"]) == (409, "conflict", "body.experiments.1.id")
    assert len(ok(client.get("/v1/experiments"))["items"]) == 1


@ON_ONE
@pytest.mark.parametrize("name", ["a/b", "..", "a#b"])
def test_an_id_that_no_address_leads_to_is_refused(client: TestClient, name: str) -> None:
    answer = client.post("/v1/experiments", json={"experiments": [row(id="fine"), row(id=name)]})
    assert (answer.status_code, problem(answer)["code"]) == (422, "invalid_input")
    assert "it cannot be used in a URL" in problem(answer)["message"]
    assert ok(client.get("/v1/experiments"))["items"] == []


def test_pages_from_the_newest_on(client: TestClient) -> None:
    ok(client.post("/v1/experiments", json={"experiments": [row() for _ in range(7)]}), 201)
    first = ok(client.get("/v1/experiments", params={"limit": 5}))
    rest = ok(client.get("/v1/experiments", params={"limit": 5, "cursor": first["next"]}))
    assert [one["id"] for one in first["items"] + rest["items"]] == [f"exp-{n:03}" for n in range(7, 0, -1)]
    assert rest["next"] is None
    answer = client.get("/v1/experiments", params={"cursor": "x"})
    assert (answer.status_code, problem(answer)["code"]) == (422, "invalid_cursor")
    assert "exp-007" in problem(client.get("/v1/experiments/exp-07"))["message"]


def test_experiments_stay_in_their_project(keyed: tuple[TestClient, Headers]) -> None:
    client, key = keyed
    mine, other = key("ada", ["write", "read", "admin"]), key("eve", ["write", "read"], "other")
    for headers in (mine, other):  # each has its own numbers
        made = ok(client.post("/v1/experiments", json={"experiments": [row()]}, headers=headers), 201)
        assert made[0]["id"] == "exp-001"
    ok(client.post("/v1/experiments", json={"experiments": [row()]}, headers=mine), 201)
    answer = client.get("/v1/experiments/exp-002", headers=other)
    assert answer.status_code == 404
    assert "exp-002'?" not in answer.text
    trail = ok(client.get("/v1/audit", params={"what": "experiments.import"}, headers=mine))["items"]
    assert [entry["subject"] for entry in trail] == ["exp-002", "exp-001"]
    assert client.post("/v1/experiments", json={"experiments": [row()]}, headers=key()).status_code == 403
