"""The review queue over REST: reviewers are blind, reserve what they judge, and publish a version of a stored set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi.testclient import TestClient

from rest_on_both import ON_ONE, Headers, examples_of, ok
from rest_on_both import client as client
from rest_on_both import keyed as keyed
from rest_service import problem
from ringtrue.golden import golden_from, load
from ringtrue.service.models import place_cursor
from ringtrue.service.routes.reviews import Grade, NewPairs, Publish, WantNext, Why
from ringtrue.store import Store
from stores import kind as kind
from stores import url as url


def pairs(count: int = 3, *, wanted: int = 1, **facts: Any) -> dict[str, Any]:
    return {
        "wanted": wanted,
        "pairs": [{"query_id": f"q{n}", "query": f"question {n}", "doc_id": f"d{n}", "priority": n / 10} for n in range(count)],
        **facts,
    }


@ON_ONE
def test_the_examples_run(client: TestClient) -> None:
    golden = load("hotel")
    unjudged = _unjudged(1)
    key = ""
    for example in examples_of(NewPairs):
        known = {**example["pairs"][0], "query_id": unjudged[0][0], "doc_id": unjudged[0][1]}
        key = ok(client.post("/v1/reviews", json=example), 201)["keys"][0]
        ok(client.post("/v1/reviews", json={**example, "wanted": 1, "pairs": [known]}), 201)
    for example in examples_of(WantNext):
        assert ok(client.post("/v1/reviews/next", json=example))["pair"] is not None
    for example in examples_of(Grade):
        ok(client.post(f"/v1/reviews/{key}/judge", json=example))
    found = ok(client.post("/v1/reviews/next", json={}))["pair"]["key"]
    ok(client.post(f"/v1/reviews/{found}/judge", json={"grade": 2}))
    for example in examples_of(Publish):
        made = ok(client.post("/v1/reviews/publish", json=example), 201)
        assert made["golden"] == golden.id
        assert made["version"] > golden.version
    for example in examples_of(Why):
        assert ok(client.post(f"/v1/reviews/{key}/reject", json=example))["state"] == "rejected"


def _unjudged(count: int) -> list[tuple[str, str]]:
    golden = load("hotel")
    judged = {(one.query_id, one.doc_id) for one in golden.judgments}
    every = ((query.query_id, document.doc_id) for query in golden.queries for document in golden.documents)
    return [pair for pair in every if pair not in judged][:count]


def test_a_pair_without_a_text_gets_that_of_the_served_documents(client: TestClient) -> None:
    page = next(document for document in load("hotel").documents if document.text)
    told = {"pairs": [{"query_id": "q1", "query": "pool", "doc_id": page.doc_id}]}
    ok(client.post("/v1/reviews", json=told), 201)
    pair = ok(client.post("/v1/reviews/next", json={}))["pair"]
    assert (pair["title"], pair["text"][:40]) == (page.title, page.text[:40])
    assert [one["text"] for one in ok(client.get("/v1/reviews"))["items"]] == [pair["text"]]


def test_two_reviewers_judge_blind_and_see_each_other_only_when_both_have(keyed: tuple[TestClient, Headers]) -> None:
    client, key = keyed
    writer, ada, ben = key("app", ["write", "read"]), key("ada", ["review", "read"]), key("ben", ["review", "read"])
    added = ok(client.post("/v1/reviews", json=pairs(2, wanted=2), headers=writer), 201)
    assert (added["accepted"], added["new"]) == (2, 2)
    assert ok(client.post("/v1/reviews", json=pairs(2, wanted=2), headers=writer), 201)["new"] == 0
    first = ok(client.post("/v1/reviews/next", json={}, headers=ada))
    assert first["pair"]["key"] == added["keys"][1]  # the most urgent
    assert first["waiting"] == 2
    assert "answers it fully" in first["guidelines"]
    # It is kept for ada; ben gets the other one.
    assert ok(client.post("/v1/reviews/next", json={}, headers=ben))["pair"]["key"] == added["keys"][0]
    ok(client.post(f"/v1/reviews/{added['keys'][1]}/judge", json={"grade": 3, "note": "yes"}, headers=ada))
    before = ok(client.get("/v1/reviews/standing", headers=ben))
    assert before["raters"] == [{"name": "ada", "ratings": 1, "grades": {}}]  # how many, but not which grade
    assert (before["agreement"], before["disputes"]) == (None, [])
    for row in ok(client.get("/v1/reviews", headers=ben))["items"]:
        assert not {"grade", "grades", "reserved_by", "metadata"} & set(row)
    pair = ok(client.post(f"/v1/reviews/{added['keys'][1]}/judge", json={"grade": 0}, headers=ben))
    assert pair["state"] == "approved"
    after = ok(client.get("/v1/reviews/standing", headers=ben))
    assert [(one["name"], one["grades"]) for one in after["raters"]] == [("ada", {"3": 1}), ("ben", {"0": 1})]
    assert [(one["key"], one["grades"]) for one in after["disputes"]] == [(added["keys"][1], {"ada": 3, "ben": 0})]
    assert after["backlog"]["approved"] == 1


def test_skip_reject_and_undo(client: TestClient) -> None:
    keys = ok(client.post("/v1/reviews", json=pairs(3)), 201)["keys"]
    first = ok(client.post("/v1/reviews/next", json={}))["pair"]["key"]
    assert ok(client.post(f"/v1/reviews/{first}/skip"))["state"] == "pending_review"
    second = ok(client.post("/v1/reviews/next", json={"passing": [first]}))["pair"]["key"]
    assert second == keys[1]
    assert ok(client.post(f"/v1/reviews/{second}/judge", json={"grade": 1}))["state"] == "approved"
    assert ok(client.post("/v1/reviews/undo"))["pair"]["state"] == "pending_review"
    assert ok(client.post("/v1/reviews/undo"))["pair"] is None
    assert ok(client.post(f"/v1/reviews/{second}/reject", json={"why": "a guest's name"}))["state"] == "rejected"
    answer = client.post(f"/v1/reviews/{second}/judge", json={"grade": 1})
    assert (answer.status_code, problem(answer)["code"]) == (422, "invalid_input")
    assert client.post("/v1/reviews/nobody/judge", json={"grade": 1}).status_code == 404
    assert client.post("/v1/reviews/nobody/skip").status_code == 404
    for grade in (4, -1, True, "2", 1.5, None):
        assert client.post(f"/v1/reviews/{first}/judge", json={"grade": grade}).status_code == 422, grade


def test_pages_and_backlog(client: TestClient) -> None:
    ok(client.post("/v1/reviews", json=pairs(9)), 201)
    seen, cursor = [], ""
    while cursor is not None:
        page = ok(client.get("/v1/reviews", params={"limit": 4, **({"cursor": cursor} if cursor else {})}))
        seen += [row["doc_id"] for row in page["items"]]
        cursor = page["next"]
    assert seen == [f"d{n}" for n in range(8, -1, -1)]
    assert ok(client.get("/v1/reviews", params={"state": "approved"}))["items"] == []
    backlog = ok(client.get("/v1/reviews/backlog"))
    assert (backlog["pending_review"], backlog["total"]) == (9, 9)
    assert backlog["oldest_seconds"] >= 0
    for cursor in ("x", place_cursor(1.0, "2"), place_cursor(float("nan"), "2026-03-01T12:00:00.000000Z", "x")):
        answer = client.get("/v1/reviews", params={"cursor": cursor})
        assert (answer.status_code, problem(answer)["code"]) == (422, "invalid_cursor"), cursor


def test_publishing_keeps_a_new_version_and_says_who_did_it(keyed: tuple[TestClient, Headers], url: str) -> None:
    client, key = keyed
    writer, ada, admin = key("app", ["write"]), key("ada", ["review"]), key("root", ["admin"])
    (query_id, doc_id), golden = _unjudged(1)[0], load("hotel")
    pair = {"query_id": query_id, "query": "as the set has it", "doc_id": doc_id}
    added = ok(client.post("/v1/reviews", json={"pairs": [pair], "golden": golden.id}, headers=writer), 201)
    answer = client.post("/v1/reviews/publish", json={"golden": "hotel"}, headers=writer)
    assert (answer.status_code, problem(answer)["code"]) == (422, "cannot_decide")  # nobody has judged
    ok(client.post(f"/v1/reviews/{added['keys'][0]}/judge", json={"grade": 2}, headers=ada))
    assert client.post("/v1/reviews/publish", json={"golden": "hotel"}, headers=ada).status_code == 403
    made = ok(client.post("/v1/reviews/publish", json={"golden": "hotel"}, headers=writer), 201)
    assert (made["judgments"], made["published"], made["kept"]) == (1, 1, [])
    with Store.open(url) as store:
        row = store.golden_set(golden.id, made["version"])
        kept = store.judgments()
    assert row is not None
    new = {(one.query_id, one.doc_id): one.grade for one in golden_from(row.content, name=row.name).judgments}
    assert new[query_id, doc_id] == 2
    assert [(one.source, one.annotator, one.relevance) for one in kept] == [("manual", "ada", 2)]
    trail = ok(client.get("/v1/audit", params={"what": "review.publish"}, headers=admin))["items"]
    assert [(entry["who"], entry["detail"]["pairs"]) for entry in trail] == [("app", 1)]
    assert client.post("/v1/reviews/publish", json={"golden": "nowhere"}, headers=writer).status_code == 404


def test_grades_that_reviewers_do_not_agree_on_are_published_only_with_a_reason(
    keyed: tuple[TestClient, Headers], url: str
) -> None:
    client, key = keyed
    writer, admin = key("app", ["write", "read"]), key("root", ["admin"])
    reviewers = key("ada", ["review"]), key("ben", ["review"])
    given = [{"query_id": query_id, "query": "q", "doc_id": doc_id} for query_id, doc_id in _unjudged(3)]
    keys = ok(client.post("/v1/reviews", json={"pairs": given, "golden": "hotel", "wanted": 2}, headers=writer), 201)["keys"]
    for item, grades in zip(keys, [(3, 0), (0, 3), (1, 1)], strict=True):
        for headers, grade in zip(reviewers, grades, strict=True):
            ok(client.post(f"/v1/reviews/{item}/judge", json={"grade": grade}, headers=headers))
    answer = client.post("/v1/reviews/publish", json={"golden": "hotel"}, headers=writer)
    assert (answer.status_code, problem(answer)["code"]) == (422, "cannot_decide")
    assert "not above 0.6" in problem(answer)["message"]
    # Nor does it help to call one of the two the adjudicator.
    body = {"golden": "hotel", "rule": "adjudicated", "adjudicator": "ben"}
    assert problem(client.post("/v1/reviews/publish", json=body, headers=writer))["code"] == "cannot_decide"
    answer = client.post("/v1/reviews/publish", json={"golden": "hotel", "force": True}, headers=writer)
    assert (answer.status_code, problem(answer)["code"]) == (422, "invalid_input")
    with Store.open(url) as store:
        assert store.golden_sets(name="hotel") == []
        assert store.backlog()["published"] == 0
    forced = {"golden": "hotel", "force": True, "reason": "one of them was new"}
    assert ok(client.post("/v1/reviews/publish", json=forced, headers=writer), 201)["published"] == 3
    (entry,) = ok(client.get("/v1/audit", params={"what": "review.publish"}, headers=admin))["items"]
    assert (entry["who"], entry["detail"]["forced"]) == ("app", "one of them was new")


def test_the_standing_says_who_settled_a_dispute(keyed: tuple[TestClient, Headers], url: str) -> None:
    client, key = keyed
    reader = key("app", ["write", "read"])
    (item,) = ok(client.post("/v1/reviews", json=pairs(1, wanted=2), headers=reader), 201)["keys"]
    for name, grade in (("ada", 3), ("ben", 0)):
        ok(client.post(f"/v1/reviews/{item}/judge", json={"grade": grade}, headers=key(name, ["review"])))
    (open_one,) = ok(client.get("/v1/reviews/standing", headers=reader))["disputes"]
    assert (open_one["settled_by"], open_one["settled"]) == (None, None)
    with Store.open(url) as store:
        facts = {"adjudicated_by": "dora", "adjudicated_at": "2026-03-01T12:00:00Z"}
        store.update_review_item(item, lambda row: replace(row, metadata=facts), project="default")
        store.add_rating(item, "dora", 2, "2026-03-01T12:00:00Z", project="default")
    found = ok(client.get("/v1/reviews/standing", headers=reader))
    assert [(one["grades"], one["settled_by"], one["settled"]) for one in found["disputes"]] == [
        ({"ada": 3, "ben": 0}, "dora", 2)
    ]
    assert {one["name"]: one["grades"] for one in found["raters"]}["dora"] == {}


def test_the_queue_stays_in_its_project(keyed: tuple[TestClient, Headers]) -> None:
    client, key = keyed
    mine, other = key("ada", ["admin"]), key("eve", ["admin"], "other")
    added = ok(client.post("/v1/reviews", json=pairs(1), headers=mine), 201)["keys"][0]
    assert ok(client.get("/v1/reviews", headers=other))["items"] == []
    assert ok(client.post("/v1/reviews/next", json={}, headers=other))["pair"] is None
    for what, body in (("judge", {"grade": 1}), ("skip", None), ("reject", {"why": ""})):
        assert client.post(f"/v1/reviews/{added}/{what}", json=body, headers=other).status_code == 404
