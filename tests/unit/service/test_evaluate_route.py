"""``POST /v1/evaluate``, the seed's request and response shapes, and everything that may not be evaluated."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient

from rest_service import client as client
from rest_service import problem, serving
from ringtrue.golden import load, record_of
from ringtrue.run import evaluate
from ringtrue.service.evaluating import keys_of
from ringtrue.service.routes.evaluate import TEST_SET, TEST_SET_YAML
from ringtrue.store import Store

FAST = ["R@10", "nDCG@10", "RR"]
YAML = {"content-type": "application/yaml"}


def test_the_answer_has_the_shape_of_the_seed(client: TestClient) -> None:
    answer = client.post("/v1/evaluate", json={"golden": "hotel", "measures": FAST})
    assert answer.status_code == 200
    found = answer.json()
    own = evaluate("bm25", "hotel", measures=FAST, cache=False)
    assert found["metrics"] == pytest.approx(
        {"recall_at_10": own.metrics["R@10"], "ndcg_at_10": own.metrics["nDCG@10"], "mrr": own.metrics["RR"]}
    )
    by_type = own.scores.by("query_type", "R@10")
    assert found["per_query_type_field"] == "query_type"
    assert {kind: row["recall_at_10"] for kind, row in found["per_query_type"].items()} == pytest.approx(
        {kind: one.mean for kind, one in by_type.items()}
    )
    assert found["measures"] == {"recall_at_10": "R@10", "ndcg_at_10": "nDCG@10", "mrr": "RR"}
    assert found["golden"] == "hotel-v1.0.0"
    assert found["details"]["failures"] == {}
    judged = load("hotel").qrels.to_dict()
    listed = found["details"]["unjudged"]
    assert listed
    assert all(doc not in judged[query] for query, docs in listed.items() for doc in docs)


def test_an_uploaded_json_set_is_evaluated_on_its_own_documents(client: TestClient) -> None:
    found = client.post("/v1/evaluate", json=TEST_SET).json()
    assert found["golden"] == "front-desk-v1.0.0"
    assert found["queries"] == 2
    assert set(found["per_query_type"]) == {"paraphrase", "exact_term"}
    assert found["per_query_type"]["exact_term"]["recall_at_10"] == 1.0


def test_an_uploaded_yaml_set_without_documents_is_asked_of_the_served_ones(client: TestClient) -> None:
    found = client.post("/v1/evaluate", content=TEST_SET_YAML, headers=YAML).json()
    assert found["golden"] == "swimming-v1.0.0"
    assert found["metrics"]["recall_at_10"] == 1.0


def test_a_json_set_in_the_yaml_shape_is_read_too(client: TestClient) -> None:
    found = client.post("/v1/evaluate", json=yaml.safe_load(TEST_SET_YAML))
    assert found.status_code == 200, found.text
    assert found.json()["metrics"]["recall_at_10"] == 1.0


def test_sets_that_nobody_named_are_named_by_their_content(client: TestClient) -> None:
    def called(*texts: str, **how: Any) -> str:
        queries = [
            {"query_id": f"q{n}", "query_text": text, "relevant_docs": [{"doc_id": "entity-pool-page", "grade": 3}]}
            for n, text in enumerate(texts)
        ]
        body = {"content": yaml.safe_dump({"queries": queries}), "headers": YAML} if how else {"json": {"queries": queries}}
        answer = client.post("/v1/evaluate", **body)
        assert answer.status_code == 200, answer.text
        assert "POST /v1/golden" in " ".join(answer.json()["details"]["notes"])
        return str(answer.json()["golden"])

    one, other = called("how warm is the pool"), called("is the pool heated")
    assert one.startswith("upload-")
    assert one != other
    assert called("how warm is the pool") == called("how warm is the pool", kind="yaml") == one


def test_an_uploaded_set_moves_neither_gauges_nor_health_nor_the_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    small = {
        "queries": [
            {
                "query_id": "q1",
                "query_text": "how warm is the water in the pool",
                "relevant_docs": [{"doc_id": "entity-pool-page", "grade": 3}],
            }
        ]
    }
    policy = {"baseline": None, "policy": {"floors": {"R@10": 0.99}}}
    uploads = [small, {"id": "hotel", "version": "1.0.0", **small}]

    def upload(client: TestClient) -> None:
        for body in uploads:
            made = client.post("/v1/evaluate", json=body)
            assert made.status_code == 200, made.text
            gated = client.post("/v1/gate", json={"evaluate": {"test_set": body}, **policy})
            assert gated.status_code == 200, gated.text
            again = client.post("/v1/gate", json={"run": made.json()["run_id"], **policy})
            assert again.status_code == 200, again.text

    def told(client: TestClient) -> tuple[list[str], Any]:
        client.app.state.service.telemetry.readings("default", refresh=True)  # type: ignore[attr-defined]  # now, not soon
        gauges = ("ringtrue_retrieval_", "ringtrue_gate", "ringtrue_evaluation_")
        lines = [line for line in client.get("/metrics").text.splitlines() if line.startswith(gauges)]
        parts = {part["name"]: part["says"] for part in client.get("/v1/health").json()["parts"]}
        return sorted(lines), (parts["evaluation"], parts["gate"])

    with serving(tmp_path) as client:
        upload(client)
        lines, (evaluation, gate) = told(client)
        assert lines == []
        assert "no evaluation yet" in evaluation
        assert "nothing was gated" in gate
        client.post("/v1/evaluate", json={"golden": "hotel", "measures": FAST})
        before = told(client)
        assert any(line.startswith("ringtrue_retrieval_recall_at_k") for line in before[0])
        upload(client)
        assert told(client) == before


def test_components_evaluates_one_channel_alone(client: TestClient) -> None:
    body = {"golden": "hotel", "retriever": "rrf(bm25, fts5, k=20) >> top(50)", "measures": FAST}
    whole = client.post("/v1/evaluate", json=body).json()
    alone = client.post("/v1/evaluate?components=bm25", json=body).json()
    plain = client.post("/v1/evaluate", json={"golden": "hotel", "retriever": "bm25", "measures": FAST}).json()
    assert alone["metrics"] == plain["metrics"] != whole["metrics"]
    assert whole["components"]["bm25"]["kind"] == "channel"
    both = client.post("/v1/evaluate?components=bm25,fts5", json=body).json()
    assert both["retriever"].startswith("rrf(bm25(")
    assert "top" not in both["retriever"]


@pytest.mark.parametrize("components", ["dense", "bm25,nothing", "", " , "])
def test_an_unknown_channel_is_refused_with_those_there_are(client: TestClient, components: str) -> None:
    answer = client.post("/v1/evaluate", params={"components": components}, json={"golden": "hotel"})
    assert answer.status_code == 422
    assert "bm25" in problem(answer)["message"]
    assert problem(answer)["field"] == "query.components"


def test_an_evaluation_is_kept_with_its_answers(client: TestClient) -> None:
    found = client.post("/v1/evaluate", json={"golden": "hotel", "measures": FAST}).json()
    with Store.open(client.app.state.service.settings.store) as store:  # type: ignore[attr-defined]
        row = store.result(found["run_id"])
        assert row is not None
        assert row.metrics["R@10"] == found["metrics"]["recall_at_10"]
        assert store.run(found["run_id"]) is not None


def waited_for(client: TestClient, location: str) -> dict[str, Any]:
    """Return a job once it has ended."""
    for _ in range(600):
        job = client.get(location).json()
        if job["state"] not in ("queued", "running"):
            found: dict[str, Any] = job
            return found
        time.sleep(0.05)
    raise AssertionError(job)


@pytest.mark.parametrize("how", ["wait", "prefer"])
def test_who_does_not_want_to_wait_gets_a_job(client: TestClient, how: str) -> None:
    body: dict[str, Any] = {"golden": "hotel", "measures": FAST}
    headers = {"prefer": "respond-async"} if how == "prefer" else {}
    answer = client.post("/v1/evaluate", json=body | ({"wait": False} if how == "wait" else {}), headers=headers)
    assert answer.status_code == 202
    started = answer.json()
    assert answer.headers["location"] == started["location"] == f"/v1/jobs/{started['job_id']}"
    job = waited_for(client, started["location"])
    assert job["state"] == "done", job
    assert client.get(job["result"]["location"]).json()["run"]["metrics"] == job["result"]["metrics"]
    assert job["request"]["golden"] == "hotel@1.0.0"


def test_a_set_above_the_limit_becomes_a_job(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    with serving(tmp_path, at_once=10) as small:
        assert small.post("/v1/evaluate", json={"golden": "hotel", "measures": FAST}).status_code == 202
        assert small.post("/v1/evaluate", json=TEST_SET).status_code == 200


def test_where_keys_part_projects_nothing_comes_from_a_shared_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    with serving(tmp_path) as alone:
        assert [alone.post("/v1/evaluate", json={"golden": "hotel"}).json()["cached"] for _ in range(2)] == [False, True]
        store = alone.app.state.service.store  # type: ignore[attr-defined]
        _, token = store.create_key("other", ["write"], now=alone.app.state.service.now(), project="other")  # type: ignore[attr-defined]
    with serving(tmp_path, keys=True) as shared:
        headers = {"authorization": f"Bearer {token}"}
        assert shared.post("/v1/evaluate", json={"golden": "hotel"}, headers=headers).json()["cached"] is False


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"golden": "hotle"}, 404, "did you mean 'hotel'"),
        ({"golden": "hotel@9.9.9"}, 404, "has no version '9.9.9'"),
        ({"golden": "../../etc/passwd"}, 422, "is not a valid name"),
        ({"golden": "hotel", "test_set": TEST_SET}, 422, "give one of them"),
        ({"golden": "hotel", "retriever": "splade('/etc')"}, 422, "may not be named here"),
        ({"golden": "hotel", "retriever": "connect('shop')"}, 422, "is not described on the server"),
        ({"golden": "hotel", "retriever": "rrf(bm25,"}, 422, "write it like bm25, rrf(bm25, dense) or hybrid >> mmr(0.5)"),
        ({"golden": "hotel", "measures": ["nDGC@10"]}, 422, "did you mean 'nDCG'"),
        ({"golden": "hotel", "measures": ["R@100000"]}, 422, "1000 is the last one"),
        ({"golden": "hotel", "k": 0}, 422, "body.k"),
        ({"golden": "hotel", "k": "10"}, 422, "body.k"),
        ({"golden": "hotel", "sample": 2}, 422, "body.sample"),
        ({"golden": "hotel", "colour": 1}, 422, "body.colour"),
        ({"golden": "hotel", "scope": "nothing"}, 422, "nothing"),
        ({"golden": "hotel", "retriever": "bm25 >> top(3)"}, 422, "top(3) cuts answers"),
        ({"test_set": {"queries": []}}, 422, ""),
        ({"queries": "none"}, 422, ""),
        ([], 422, ""),
        ("text", 422, ""),
    ],
)
def test_what_cannot_be_evaluated_is_refused_in_words(client: TestClient, body: Any, status: int, says: str) -> None:
    answer = client.post("/v1/evaluate", json=body)
    assert answer.status_code == status, answer.text
    assert says in problem(answer)["message"]


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"golden": NaN}', "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"{}", "text/plain", 415),
        (b"{}", "application/xml", 415),
        (b"a: &a [*a, *a]", "application/yaml", 422),
        (b"!!python/object/apply:os.system ['true']", "application/yaml", 422),
        (b"", "application/yaml", 422),
    ],
)
def test_bodies_that_nothing_here_reads(client: TestClient, content: bytes, kind: str, status: int) -> None:
    answer = client.post("/v1/evaluate", content=content, headers={"content-type": kind})
    assert answer.status_code == status, answer.text
    assert problem(answer)["message"]


def test_two_measures_never_share_a_key() -> None:
    names = ["nDCG@10", "R@10", "RR", "RR@5", "P@5", "Success@1", "IPrec@0.1", "P(rel=2)@5"]
    assert list(keys_of(names).values()) == [
        "ndcg_at_10", "recall_at_10", "mrr", "mrr_at_5", "precision_at_5", "success_at_1", "iprec_at_recall_at_0_1",
        "precision_rel_2_at_5",
    ]  # fmt: skip
    twins = ["Diversity(by='a b')@5", "Diversity(by='a_b')@5", "Diversity(by='a-b')@5", "R@5"]
    keys = keys_of(twins)
    assert len(set(keys.values())) == len(keys) == 4
    assert keys["R@5"] == "recall_at_5"


def test_an_undefined_number_is_null(client: TestClient) -> None:
    """A set whose only query has no relevant document has no recall, which is not 0."""
    body = {
        "id": "none",
        "version": "1.0.0",
        "queries": [{"query_id": "q1", "query_text": "pool", "relevant_docs": [{"doc_id": "entity-pool-page", "grade": 0}]}],
    }
    found = client.post("/v1/evaluate", json=body)
    assert found.status_code == 200, found.text
    assert found.json()["metrics"]["recall_at_10"] is None


def test_a_stored_set_is_named_with_its_version(client: TestClient) -> None:
    content = record_of(load("hotel")) | {"id": "own-hotel", "version": "2.0.0"}
    assert (
        client.post("/v1/golden", content=json.dumps(content), headers={"content-type": "application/json"}).status_code == 201
    )
    found = client.post("/v1/evaluate", json={"golden": "own-hotel@2.0.0", "measures": FAST, "sample": 0.2})
    assert found.json()["golden"] == "own-hotel-v2.0.0"


def test_looks_at_a_held_out_part_are_counted(client: TestClient) -> None:
    """Whoever measures on the held-out part is told how often that has happened."""
    body = {"golden": "precedents", "measures": ["R@10"], "split": "held_out"}
    notes = [client.post("/v1/evaluate", json=body).json()["details"]["notes"] for _ in range(2)]
    for number, told in enumerate(notes, 1):
        assert any(f"this was look {number} at the held-out part" in note for note in told)
    assert all("held-out" not in note for note in client.post("/v1/evaluate", json=TEST_SET).json()["details"]["notes"])
