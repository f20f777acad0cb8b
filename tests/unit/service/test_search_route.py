"""``/v1/search`` answers what an evaluation was answered, logs it before it answers, and reaches nothing else."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_service import client as client
from rest_service import problem, serving
from ringtrue.errors import InputError, Unreachable
from ringtrue.golden import load
from ringtrue.retrieve import Collection
from ringtrue.service.context import Service
from ringtrue.service.errors import Refused, hide, refused
from ringtrue.service.searches import MOST, MOST_INDEXES, Searches
from ringtrue.service.settings import Settings
from ringtrue.store import LoggedQuery


def asked(client: TestClient, query: str = "quiet room with a pool", **body: Any) -> dict[str, Any]:
    answer = client.post("/v1/search", json={"query": query, **body})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def logged(client: TestClient, query_id: str) -> LoggedQuery | None:
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    return next(iter(service.store.queries(query_ids=[query_id])), None)


def test_the_answer_is_that_of_the_evaluation(client: TestClient) -> None:
    made = client.post("/v1/evaluate", json={"golden": "hotel", "retriever": "rrf(bm25, fts5)", "k": 20}).json()
    query = load("hotel").queries[7]
    evaluated = client.get(f"/v1/runs/{made['run_id']}/queries/{query.query_id}").json()
    found = asked(client, query.text, k=20, retriever="rrf(bm25, fts5)", explain=True)
    assert [(hit["doc_id"], hit["stages"]) for hit in found["hits"]] == [
        (hit["doc_id"], hit["stages"]) for hit in evaluated["hits"]
    ]
    assert found["fingerprint"] == made["fingerprint"]


def test_a_search_is_in_the_log_when_it_is_answered(client: TestClient) -> None:
    found = asked(client, "pool for max@example.com", k=3, session_id="s1", user_id="ann", tool="kiosk")
    row = logged(client, found["query_id"])
    assert row is not None
    assert row.result_ids == tuple(hit["doc_id"] for hit in found["hits"])
    assert (row.tool_name, row.session_id, row.retriever) == ("kiosk", "s1", found["fingerprint"])
    assert row.user_id == "ann"
    assert "max@example.com" not in row.query
    assert row.channel_contributions == {"bm25": row.result_ids}
    assert row.total_latency_ms == pytest.approx(found["latency_ms"])
    assert [stage.name for stage in row.stages] == []  # one channel has no stages to tell apart


def test_a_marked_search_is_logged_as_what_it_is(client: TestClient) -> None:
    answer = client.post("/v1/search", json={"query": "pool"}, headers={"Ringtrue-Traffic": "evaluation"})
    row = logged(client, answer.json()["query_id"])
    assert row is not None
    assert row.traffic == "evaluation"
    assert client.post("/v1/search", json={"query": "pool"}, headers={"Ringtrue-Traffic": "x"}).status_code == 422


def test_a_search_that_is_not_to_be_logged_is_not(client: TestClient) -> None:
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    before = len(service.store.queries())
    found = asked(client, log=False)
    assert found["query_id"] is None
    assert len(service.store.queries()) == before


def test_hits_tell_title_text_channels_and_on_request_stages(client: TestClient) -> None:
    plain, explained = asked(client, k=1, log=False), asked(client, k=1, log=False, explain=True)
    hit = plain["hits"][0]
    document = next(one for one in load("hotel").documents if one.doc_id == hit["doc_id"])
    assert hit["title"] == document.title
    assert hit["text"].rstrip("…") in " ".join(document.text.split())
    assert (hit["rank"], hit["channels"], hit["stages"]) == (1, {"bm25": 1}, None)
    assert explained["hits"][0]["stages"][0]["name"] == "bm25"


def test_a_scope_admits_only_documents_with_its_values(client: TestClient) -> None:
    kinds = {document.doc_id: document.metadata["entity_type"] for document in load("hotel").documents}
    wanted = kinds[asked(client, k=1, log=False)["hits"][0]["doc_id"]]
    found = asked(client, k=10, scope={"entity_type": wanted}, log=False)["hits"]
    assert found
    assert {kinds[hit["doc_id"]] for hit in found} == {wanted}
    answer = client.post("/v1/search", json={"query": "pool", "scope": {"colour": "red"}})
    assert answer.status_code == 422
    assert "no document has the metadata field 'colour'" in problem(answer)["message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"query": ""}, 422),
        ({"query": "x" * 10_001}, 422),
        ({"query": "pool", "k": 0}, 422),
        ({"query": "pool", "k": 201}, 422),
        ({"query": "pool", "retriever": "dense('/etc')"}, 422),
        ({"query": "pool", "retriever": "connect('shop')"}, 422),
        ({"query": "pool", "retriever": "splade"}, 422),
        ({"query": "pool", "retriever": "bm25(title=99)"}, 422),
        ({"query": 3}, 422),
        ({"query": "pool", "colour": "red"}, 422),
    ],
)
def test_what_cannot_be_asked(client: TestClient, body: Any, status: int) -> None:
    answer = client.post("/v1/search", json=body)
    assert answer.status_code == status, answer.text
    problem(answer)


def test_there_is_no_get(client: TestClient) -> None:
    assert client.get("/v1/search", params={"query": "pool"}).status_code == 405


def test_a_search_that_fails_is_told_and_logged(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(self: Searches, *args: Any, **options: Any) -> None:
        raise Unreachable("shop: cannot be reached")

    monkeypatch.setattr(Searches, "ask", away)
    answer = client.post("/v1/search", json={"query": "lost search", "tool": "broken"})
    assert answer.status_code == 502
    assert problem(answer)["code"] == "search_unreachable"
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    row = next(row for row in service.store.queries() if row.tool_name == "broken")
    assert row.degraded
    assert row.fallback is not None
    assert "Unreachable" in row.fallback


def test_a_server_without_documents_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    with serving(tmp_path, golden=None) as bare:
        answer = bare.post("/v1/search", json={"query": "pool"})
        assert answer.status_code == 404
        assert "--golden" in problem(answer)["message"]
        assert bare.post("/v1/evaluate", json={"golden": "memory-bench", "measures": ["R@5"]}).status_code == 200


def test_a_key_that_only_reads_searches_without_a_log_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    with serving(tmp_path, keys=True) as shared:
        service: Service = shared.app.state.service  # type: ignore[attr-defined]
        _, token = service.store.create_key("reader", ["read"], now=service.now(), project="other")
        headers = {"authorization": f"Bearer {token}"}
        refused = shared.post("/v1/search", json={"query": "pool"}, headers=headers)
        assert refused.status_code == 403
        assert "log: false" in problem(refused)["message"]
        assert shared.post("/v1/search", json={"query": "pool", "log": False}, headers=headers).status_code == 200
        assert shared.post("/v1/search", json={"query": "pool", "log": False}).status_code == 401


# ── the retrievers that are kept open ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("documents")
    Collection.create(place).ingest(load("hotel").documents[:20])
    return place


def test_a_retriever_is_built_once_for_all_threads(folder: Path) -> None:
    searches = Searches(Settings(folder=folder, retriever="bm25"))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: searches.retriever("rrf( bm25,fts5 )"), range(32)))
    assert len(set(map(id, found))) == 1
    assert searches.retriever("rrf(bm25, fts5)") is found[0]
    searches.close()
    with pytest.raises(Refused, match="stopping"):
        searches.retriever()


def test_only_so_many_retrievers_are_kept_open(folder: Path) -> None:
    searches = Searches(Settings(folder=folder, retriever="bm25"))
    first = searches.retriever("rrf(bm25, fts5, k=1)")
    for k in range(2, MOST + 3):
        searches.retriever(f"rrf(bm25, fts5, k={k})")
    assert len(searches._kept) == MOST
    assert searches.retriever("rrf(bm25, fts5, k=1)") is not first
    searches.close()


def test_requests_cannot_fill_the_disk_with_indexes(folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(folder, tmp_path / "own")
    searches = Searches(Settings(folder=folder, retriever="bm25(title=20)"))
    for number in range(MOST_INDEXES):
        (folder / "indexes" / f"other-{number}").mkdir(parents=True, exist_ok=True)
    with pytest.raises(Refused, match="needs a new index") as refusal:
        searches.ask("pool", k=1, retriever="bm25(title=7)")
    assert refusal.value.status == 409
    assert searches.ask("pool", k=1).hits  # the operator's own goes on
    searches.close()


def test_messages_do_not_say_where_the_documents_lie(folder: Path) -> None:
    hide(folder)
    assert refused(InputError(f"{folder}: there is no document 'x'")).message == "…: there is no document 'x'"
