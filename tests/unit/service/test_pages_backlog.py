"""The unjudged documents of a run go into the review queue from the page, as from ``ringtrue review add``."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from made import answers, evaluation, golden_set
from rest_service import client as client
from ringtrue.golden import worth_judging
from ringtrue.records import Run
from ringtrue.rollout import record_evaluation
from ringtrue.service.auth import Access, Caller
from ringtrue.service.context import Service
from ringtrue.service.library import keep_golden

CALLER = Caller("default", "tester", ("admin",))


@pytest.fixture(scope="module")
def service(client: TestClient) -> Service:
    found: Service = client.app.state.service  # type: ignore[attr-defined]
    return found


def send(client: TestClient, **form: str) -> Any:
    token = re.search(r'<meta name="csrf-token" content="([^"]+)"', client.get("/backlog").text)
    assert token is not None
    return client.post("/backlog/runs", data={"csrf": token[1], **form}, follow_redirects=False)


def test_unjudged_documents_of_runs_are_queued_those_worth_most_first(client: TestClient, service: Service) -> None:
    assert 'action="/backlog/runs"' not in client.get("/backlog").text, "there is no run yet"
    golden = golden_set(20)
    keep_golden(Access(service, CALLER), golden)
    rankings = [answers(golden, seed=seed) for seed in (1, 2)]
    made = [evaluation(golden, one, name=f"system {place}") for place, one in enumerate(rankings)]
    first, second = (record_evaluation(service.store, one, now=service.now()).run_id for one in made)
    assert 'action="/backlog/runs"' in client.get("/backlog").text

    answer = send(client, run=first, against=second, reviewers="3")
    assert answer.status_code == 303
    runs = [Run.from_rankings(one, name=name) for one, name in zip(rankings, (first, second), strict=True)]
    worth = worth_judging(golden, runs, k=10)
    items = service.store.review_items(project="default")
    assert {(one.query_id, one.doc_id): one.priority for one in items} == {
        (one.query_id, one.doc_id): pytest.approx(one.weight) for one in worth[:100]
    }
    assert {(one.wanted, one.metadata["golden"]) for one in items} == {(3, golden.id)}
    told = client.get(answer.headers["location"]).text
    assert f"{len(worth):,} unjudged documents among the first 10 hits; {len(items)} of them are in the queue now" in told
    again = client.get(send(client, run=first, against=second).headers["location"]).text
    assert "are in the queue now, 0 new." in again


@pytest.mark.parametrize(("form", "status"), [({"run": "nothing"}, 404), ({"run": "x", "reviewers": "no"}, 422)])
def test_what_cannot_be_queued_is_said(client: TestClient, form: dict[str, str], status: int) -> None:
    assert send(client, **form).status_code == status


def test_an_address_that_somebody_wrote_tells_nothing(client: TestClient) -> None:
    assert "in the queue now" not in client.get("/backlog?queued=1-2-<b>").text


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_a_state_that_is_none_is_said_and_does_not_show_everything(client: TestClient, headers: dict[str, str]) -> None:
    answer = client.get("/backlog?state=bogus", headers=headers)
    assert answer.status_code == 422
    assert "there is no state &#39;bogus&#39;; choose pending_review, approved, rejected, published" in answer.text
    assert client.get("/backlog?state=approved").status_code == client.get("/backlog?state=").status_code == 200
