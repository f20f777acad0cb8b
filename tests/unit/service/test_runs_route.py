"""``/v1/runs``: what was evaluated, down to every hit and every loss; runs made elsewhere; reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_service import client as client
from rest_service import problem, serving
from ringtrue.golden import load
from ringtrue.run import evaluate
from ringtrue.service.routes.evaluate import TEST_SET

MEASURES = ["nDCG@10", "R@10"]


def evaluated(client: TestClient, **body: Any) -> dict[str, Any]:
    answer = client.post("/v1/evaluate", json={"golden": "hotel", "measures": MEASURES, **body})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.fixture(scope="module")
def runs(client: TestClient) -> list[str]:
    return four_runs(client)


def four_runs(client: TestClient) -> list[str]:
    """Make four runs and return their ids, oldest first."""
    first = [evaluated(client, retriever=text)["run_id"] for text in ("bm25", "fts5", "rrf(bm25, fts5)")]
    return [*first, client.post("/v1/evaluate", json=TEST_SET).json()["run_id"]]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, client: TestClient) -> Iterator[TestClient]:
    """A server with the same cache to which no other test adds a run."""
    with serving(tmp_path_factory.mktemp("alone")) as found:
        yield found


@pytest.fixture(scope="module")
def its_runs(alone: TestClient) -> list[str]:
    return four_runs(alone)


def test_runs_are_listed_page_by_page_the_newest_first(alone: TestClient, its_runs: list[str]) -> None:
    seen: list[str] = []
    cursor = None
    while True:
        page = alone.get("/v1/runs", params={"limit": 3, **({"cursor": cursor} if cursor else {})}).json()
        seen += [item["run_id"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == its_runs[::-1]


def test_runs_are_filtered(alone: TestClient, its_runs: list[str]) -> None:
    def listed(**params: Any) -> list[str]:
        return [item["run_id"] for item in alone.get("/v1/runs", params=params).json()["items"]]

    assert listed(golden="front-desk") == [its_runs[3]]
    assert listed(golden="hotel-v1.0.0", limit=2) == [its_runs[2], its_runs[1]]
    assert listed(retriever="fts5", golden="hotel") == [its_runs[1]]
    assert listed(golden="hot") == []
    assert listed(since="2999-01-01T00:00:00Z") == []


@pytest.mark.parametrize("params", [{"cursor": "nothing"}, {"limit": 0}, {"limit": 1000}, {"since": "yesterday"}])
def test_a_list_that_cannot_be_asked_for(client: TestClient, runs: list[str], params: dict[str, Any]) -> None:
    answer = client.get("/v1/runs", params=params)
    assert answer.status_code == 422, answer.text
    problem(answer)


def test_a_run_says_what_its_evaluation_answered(client: TestClient) -> None:
    made = evaluated(client)
    found = client.get(f"/v1/runs/{made['run_id']}").json()
    assert found["evaluation"] == {**made, "cached": False}
    assert found["run"]["metrics"] == made["metrics"]
    assert found["run"]["kept"] is True
    assert found["intervals"] == made["intervals"]


@pytest.mark.parametrize("path", ["", "/queries", "/queries/q1", "/report"])
def test_a_run_that_is_not_there(client: TestClient, path: str) -> None:
    answer = client.get(f"/v1/runs/full-nothing{path}")
    assert answer.status_code == 404
    assert problem(answer)["code"] == "not_found"


def test_queries_are_listed_by_id_and_the_worst_first(client: TestClient, runs: list[str]) -> None:
    def listed(**params: Any) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = client.get(f"/v1/runs/{runs[0]}/queries", params={**params, **({"cursor": cursor} if cursor else {})}).json()
            items += page["items"]
            cursor = page["next"]
            if cursor is None:
                return items

    ids = sorted(query.query_id for query in load("hotel").queries)
    assert [item["query_id"] for item in listed(limit=30)] == ids
    worst = listed(sort="worst", limit=50)
    values = [item["scores"]["ndcg_at_10"] for item in worst]
    assert values == sorted(values)
    assert len(worst) == 72
    assert client.get(f"/v1/runs/{runs[0]}/queries", params={"cursor": "nothing"}).status_code == 422


def test_one_query_tells_every_hit_its_grade_its_way_and_what_was_lost(client: TestClient, runs: list[str]) -> None:
    own = evaluate("rrf(bm25, fts5)", "hotel", measures=MEASURES, cache=False)
    loss = own.losses[0]
    found = client.get(f"/v1/runs/{runs[2]}/queries/{loss.query_id}").json()
    ranking = own.ranking(loss.query_id)
    assert [hit["doc_id"] for hit in found["hits"]] == [hit.doc_id for hit in ranking.hits]
    grades = load("hotel").qrels.to_dict()[loss.query_id]
    assert [hit["grade"] for hit in found["hits"]] == [grades.get(hit.doc_id) for hit in ranking.hits]
    assert found["hits"][0]["stages"][-1]["name"].startswith("rrf")
    lost = {one["doc_id"]: one for one in found["losses"]}
    assert lost[loss.doc_id]["stage"] == loss.stage
    assert lost[loss.doc_id]["ranks"] == dict(loss.ranks)
    assert {one["doc_id"]: one["grade"] for one in found["judged"]} == grades
    assert client.get(f"/v1/runs/{runs[2]}/queries/nothing").status_code == 404


def test_a_run_made_elsewhere_is_scored_like_any_other(client: TestClient) -> None:
    own = evaluate("bm25", "hotel", measures=MEASURES, cache=False)
    answers = {one.query_id: {hit.doc_id: 1000.0 - rank for rank, hit in enumerate(one.hits)} for one in own.rankings}
    params: dict[str, Any] = {"golden": "hotel", "name": "elsewhere", "measure": MEASURES}
    as_json = client.post("/v1/runs", json=answers, params=params)
    assert as_json.status_code == 201, as_json.text
    lines = [f"{q} Q0 {d} {rank} {score} tag" for q, docs in answers.items() for rank, (d, score) in enumerate(docs.items(), 1)]
    plain = client.post("/v1/runs", content="\n".join(lines), params=params, headers={"content-type": "text/plain"})
    assert plain.status_code == 201, plain.text
    for found in (as_json.json(), plain.json()):
        assert found["metrics"] == pytest.approx({"ndcg_at_10": own.metrics["nDCG@10"], "recall_at_10": own.metrics["R@10"]})
        assert found["name"] == "elsewhere"
        assert found["latency_ms"]["p50"] is None
    assert client.get(f"/v1/runs/{plain.json()['run_id']}").json()["run"]["kept"] is True


def test_queries_that_a_run_made_elsewhere_lacks_are_failures(client: TestClient) -> None:
    some = {query.query_id: {"entity-pool-page": 1.0} for query in load("hotel").queries[:3]}
    params = {"golden": "hotel", "allow": ["depth"]}
    found = client.post("/v1/runs", json=some, params=params)
    assert found.status_code == 201, found.text
    assert len(found.json()["details"]["failures"]) == 69
    assert "/tmp" not in found.text


@pytest.mark.parametrize(
    ("content", "kind", "golden", "status"),
    [
        (b"q1 Q0 d1 1 high tag", "text/plain", "hotel", 422),
        (b"q1 Q0", "text/plain", "hotel", 422),
        (b"", "text/plain", "hotel", 422),
        (b"[]", "application/json", "hotel", 422),
        (b'{"q1": {"d1": "high"}}', "application/json", "hotel", 422),
        (b'{"q1": 3}', "application/json", "hotel", 422),
        (b"{", "application/json", "hotel", 400),
        (b"{}", "application/zip", "hotel", 415),
        (b"{}", "application/json", "nothing", 404),
        (b"{}", "application/json", "hotel", 422),
    ],
)
def test_runs_that_cannot_be_scored(client: TestClient, content: bytes, kind: str, golden: str, status: int) -> None:
    answer = client.post("/v1/runs", content=content, params={"golden": golden}, headers={"content-type": kind})
    assert answer.status_code == status, answer.text
    assert "ringtrue-" not in problem(answer)["message"]
    assert "/tmp" not in problem(answer)["message"]


def _many(kind: str, *, queries: int, documents: int) -> tuple[bytes, str]:
    if kind == "trec":
        lines = [f"q{n} Q0 d{m} {m + 1} {documents - m} x" for n in range(queries) for m in range(documents)]
        return "\n".join(lines).encode(), "text/plain"
    answer = {f"d{m}": documents - m for m in range(documents)}
    return json.dumps({f"q{n}": answer for n in range(queries)}).encode(), "application/json"


@pytest.mark.parametrize(
    ("kind", "queries", "documents", "says"),
    [
        ("json", 2, 10_001, "query 'q0' is answered with 10,001 documents; 10,000 are read"),
        ("trec", 2, 10_001, "query 'q0' is answered with 10,001 documents; 10,000 are read"),
        ("json", 201, 1_000, "the run has 201,000 documents; as JSON 200,000 are read: send it as TREC"),
    ],
)
def test_a_run_with_more_documents_than_are_read_is_refused_at_once(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, kind: str, queries: int, documents: int, says: str
) -> None:
    monkeypatch.setattr("ringtrue.service.evaluating.evaluate", None)  # it is never come to
    content, named = _many(kind, queries=queries, documents=documents)
    answer = client.post("/v1/runs", params={"golden": "hotel"}, content=content, headers={"content-type": named})
    told = problem(answer)
    assert (answer.status_code, told["code"]) == (413, "too_large")
    assert says in told["message"]


def test_a_run_of_as_many_documents_as_are_read_is_scored(client: TestClient) -> None:
    golden = load("hotel")
    ours = [document.doc_id for document in golden.documents]
    answer = {doc_id: 20_000 - n for n, doc_id in enumerate([*ours, *(f"d{m}" for m in range(10_000 - len(ours)))])}
    found = client.post("/v1/runs", params={"golden": "hotel", "allow": ["documents", "ids"]}, json={"q001": answer})
    assert found.status_code == 201, found.text


def test_reports_in_three_forms(client: TestClient, runs: list[str]) -> None:
    page = client.get(f"/v1/runs/{runs[0]}/report")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    own = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page.text)
    assert own is not None
    assert policy.startswith(own[1].replace("&#39;", "'"))
    assert "sandbox" in policy
    assert "allow-same-origin" not in policy
    assert "unsafe" not in policy
    assert "bm25" in client.get(f"/v1/runs/{runs[0]}/report", params={"format": "md"}).text
    told = client.get(f"/v1/runs/{runs[1]}/report", params={"format": "json", "against": runs[0]}).json()
    assert told["comparison"]["verdict"] in ("better", "worse", "not enough evidence")
    assert client.get(f"/v1/runs/{runs[0]}/report", params={"format": "pdf"}).status_code == 422
    assert client.get(f"/v1/runs/{runs[0]}/report", params={"baseline": "nothing"}).status_code == 404
