"""Judgments by hand over REST count before what was derived, and only an admin takes judgments back."""

from __future__ import annotations

from fastapi.testclient import TestClient

from rest_on_both import ON_ONE, Headers, examples_of, ok
from rest_on_both import client as client
from rest_on_both import keyed as keyed
from rest_service import problem
from ringtrue.feedback import qrels
from ringtrue.service.routes.reviews import ManualJudgments
from ringtrue.store import Store, StoredJudgment
from stores import kind as kind
from stores import url as url

NOON = "2026-03-01T12:00:00Z"


def said(query_id: str = "q1", item_id: str = "a", relevance: int = 3, **facts: object) -> dict[str, object]:
    return {"judgments": [{"query_id": query_id, "item_id": item_id, "relevance": relevance, **facts}]}


@ON_ONE
def test_the_examples_run(client: TestClient) -> None:
    for example in examples_of(ManualJudgments):
        assert len(ok(client.post("/v1/judgments", json=example), 201)) == len(example["judgments"])


def test_a_judgment_by_hand_wins_over_feedback_on_the_same_words(client: TestClient, url: str) -> None:
    ok(client.post("/v1/queries", json={"query": "Late checkout?", "tool_name": "w", "query_id": "eq_1"}), 201)
    with Store.open(url) as store:
        store.add_judgments(
            [StoredJudgment("eq_2", "a", 0, "implicit", NOON, confidence=1.0, metadata={"key": "late checkout"})]
        )
        found = ok(client.post("/v1/judgments", json=said("eq_1", note="in the first line")), 201)[0]
        assert found["metadata"] == {"note": "in the first line", "query": "Late checkout?", "key": "late checkout"}
        assert (found["source"], found["annotator"]) == ("manual", "local")
        best = qrels(store.judgments())
    assert [(one.source, one.grade) for one in best] == [("manual", 3)]


def test_said_again_the_newest_counts_for_the_same_annotator(client: TestClient) -> None:
    ok(client.post("/v1/judgments", json=said(relevance=1, annotator="ada")), 201)
    ok(client.post("/v1/judgments", json=said(relevance=2, annotator="ada")), 201)
    ok(client.post("/v1/judgments", json=said(relevance=3, annotator="ben")), 201)
    items = ok(client.get("/v1/judgments"))["items"]
    assert [(row["annotator"], row["relevance"]) for row in items] == [("ada", 2), ("ben", 3)]


@ON_ONE
def test_grades_are_whole_numbers_from_0_to_3(client: TestClient) -> None:
    for grade in (4, -1, 1.5, True, "3"):
        assert client.post("/v1/judgments", json=said(relevance=grade)).status_code == 422, grade  # type: ignore[arg-type]
    assert client.post("/v1/judgments", json={"judgments": []}).status_code == 422


def test_pages_and_filters(client: TestClient) -> None:
    rows = [{"query_id": f"q{n % 3}", "item_id": f"é{n}", "relevance": 1, "annotator": f"a{n % 2}"} for n in range(12)]
    ok(client.post("/v1/judgments", json={"judgments": rows}), 201)
    seen, cursor = [], ""
    while cursor is not None:
        page = ok(client.get("/v1/judgments", params={"limit": 5, **({"cursor": cursor} if cursor else {})}))
        seen += [(row["query_id"], row["item_id"]) for row in page["items"]]
        cursor = page["next"]
    assert seen == sorted((row["query_id"], row["item_id"]) for row in rows)
    assert len(ok(client.get("/v1/judgments", params={"query_id": "q1"}))["items"]) == 4
    assert len(ok(client.get("/v1/judgments", params={"annotator": "a1"}))["items"]) == 6
    assert ok(client.get("/v1/judgments", params={"source": "implicit"}))["items"] == []
    for cursor in ("x", "WzFd", "é"):
        answer = client.get("/v1/judgments", params={"cursor": cursor})
        assert (answer.status_code, problem(answer)["code"]) == (422, "invalid_cursor")


def test_an_admin_deletes_and_it_is_written_down(keyed: tuple[TestClient, Headers], url: str) -> None:
    client, key = keyed
    admin, writer, other = key("root", ["admin"]), key("app", ["write"]), key("eve", ["admin"], "other")
    ok(client.post("/v1/judgments", json=said(annotator="ada"), headers=writer), 201)
    ok(client.post("/v1/judgments", json=said(annotator="ben"), headers=writer), 201)
    manual = {"source": "manual"}
    assert client.delete("/v1/judgments", params=manual, headers=writer).status_code == 403
    assert ok(client.delete("/v1/judgments", params=manual, headers=other)) == {"deleted": 0}
    assert client.delete("/v1/judgments", headers=admin).status_code == 422
    assert ok(client.delete("/v1/judgments", params={**manual, "annotator": "ada"}, headers=admin)) == {"deleted": 1}
    assert [row["annotator"] for row in ok(client.get("/v1/judgments", headers=admin))["items"]] == ["ben"]
    entry = ok(client.get("/v1/audit", headers=admin))["items"][0]
    assert (entry["who"], entry["what"], entry["subject"], entry["detail"]["judgments"]) == (
        "root",
        "judgments.delete",
        "manual",
        1,
    )
