"""Feedback goes in over REST, finds the search it answers, and is listed from the newest on."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient

from rest_on_both import ON_ONE, Headers, ok
from rest_on_both import client as client
from rest_on_both import keyed as keyed
from rest_service import problem
from ringtrue.log import record_feedback
from ringtrue.service.models import place_cursor
from ringtrue.service.routes.log import EVENT_EXAMPLES
from ringtrue.store import FeedbackEvent, LoggedQuery, Store
from stores import kind as kind
from stores import url as url

SEARCH = {"query": "late checkout", "tool_name": "web", "session_id": "s", "result_ids": ["a", "b"], "retriever": "fp"}
CLICK = {"event_type": "click", "session_id": "s", "item_id": "b", "created_at": "2026-03-01T12:01:00Z"}


def send(client: TestClient, body: Any) -> Any:
    return ok(client.post("/v1/feedback", json=body), 201)


@ON_ONE
def test_the_examples_run(client: TestClient) -> None:
    for example in EVENT_EXAMPLES.values():
        count = len(example) if isinstance(example, list) else 1
        assert send(client, example)["stored"] == count


def test_an_event_is_linked_as_the_library_links_it(client: TestClient, url: str) -> None:
    at = {"created_at": "2026-03-01T12:00:00Z"}
    searches = [
        {**SEARCH, **at, "query_id": "eq_1"},
        {**SEARCH, **at, "query_id": "eq_2", "session_id": "other", "trace_id": "t1"},
        {**SEARCH, **at, "query_id": "eq_3", "result_ids": ["c"]},
    ]
    ok(client.post("/v1/queries", json=searches), 201)
    events = [
        {**CLICK, "event_id": "ef_session"},
        {**CLICK, "event_id": "ef_trace", "metadata": {"trace_id": "t1"}},
        {**CLICK, "event_id": "ef_named", "query_id": "eq_3"},
        {**CLICK, "event_id": "ef_nowhere", "item_id": "z"},
    ]
    found = send(client, events)["events"]
    assert [(one["query_id"], one["rank_in_results"]) for one in found] == [("eq_1", 2), ("eq_2", 2), ("eq_3", -1), (None, -1)]
    with Store.open(url) as store:
        kept = {event.event_id: event for event in store.feedback()}
        # The same events through the library, into another project with the same searches.
        store.add_queries(
            [
                LoggedQuery(
                    row.query_id, row.query, row.tool_name, row.created_at, project="again", session_id=row.session_id,
                    result_ids=row.result_ids, retriever=row.retriever, trace_id=row.trace_id,
                )
                for row in store.queries()
            ]
        )  # fmt: skip
        own = record_feedback(store, [FeedbackEvent(**{"project": "again", **event}) for event in events])  # type: ignore[arg-type]
    for event in own:
        there = kept[event.event_id]
        assert (there.query_id, there.rank_in_results, there.metadata) == (
            event.query_id,
            event.rank_in_results,
            event.metadata,
        )
    assert kept["ef_session"].metadata == {"linked_by": "session", "retriever": "fp"}


def test_sent_again_the_first_one_stays(client: TestClient) -> None:
    assert send(client, {**CLICK, "event_id": "ef_1"})["stored"] == 1
    assert send(client, [{**CLICK, "event_id": "ef_1", "item_id": "z"}, CLICK])["stored"] == 1
    items = ok(client.get("/v1/feedback"))["items"]
    assert sorted(row["item_id"] for row in items) == ["b", "b"]


@ON_ONE
def test_what_is_no_feedback_is_refused_and_nothing_is_stored(client: TestClient) -> None:
    wrong: list[Any] = [
        {**CLICK, "event_type": "clack"},
        {**CLICK, "session_id": " "},
        {**CLICK, "item_id": None},
        {**CLICK, "event_type": "dwell"},
        {**CLICK, "event_type": "dwell", "metadata": {"seconds": -1}},
        {**CLICK, "rank_in_results": 1},
        {**CLICK, "created_at": "soon"},
        [CLICK, {"event_type": "click"}],
        [],
    ]
    for body in wrong:
        answer = client.post("/v1/feedback", json=body)
        assert answer.status_code == 422, body
        problem(answer)
    assert ok(client.get("/v1/feedback"))["items"] == []


def test_pages_and_filters(client: TestClient) -> None:
    # Many share one moment: the place in the list is not the time alone.
    events = [{**CLICK, "event_id": f"ef_{n:02}", "created_at": f"2026-03-01T12:00:{n // 8:02}Z"} for n in range(30)]
    events.append({"event_type": "re_search", "session_id": "t", "event_id": "ef_re", "created_at": "2026-03-01T11:00:00Z"})
    send(client, events)
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = ok(client.get("/v1/feedback", params={"limit": 7, **({"cursor": cursor} if cursor else {})}))
        seen += [row["event_id"] for row in page["items"]]
        cursor = page["next"]
    assert seen == [*(f"ef_{n:02}" for n in range(29, -1, -1)), "ef_re"]
    last = place_cursor("9999-12-31T23:59:59.999999Z", "x")
    assert ok(client.get("/v1/feedback", params={"cursor": last}))["items"][0]["event_id"] == seen[0]
    for filters in ({"event_type": "re_search"}, {"session_id": "t"}, {"until": "2026-03-01T11:30:00Z"}):
        assert [row["event_id"] for row in ok(client.get("/v1/feedback", params=filters))["items"]] == ["ef_re"], filters
    for cursor in ("nobody gave this", place_cursor("2026-03-01", "x"), place_cursor("2026-03-01T12:00:00.000000Z")):
        answer = client.get("/v1/feedback", params={"cursor": cursor})
        assert (answer.status_code, problem(answer)["code"]) == (422, "invalid_cursor")


def test_feedback_stays_in_its_project(keyed: tuple[TestClient, Headers]) -> None:
    client, key = keyed
    mine, other = key(scopes=["read", "write"]), key(scopes=["read", "write"], project="other")
    ok(client.post("/v1/queries", json={**SEARCH, "query_id": "eq_1"}, headers=mine), 201)
    # Another project cannot learn from a link whether the search is there.
    found = ok(client.post("/v1/feedback", json={**CLICK, "query_id": "eq_1"}, headers=other), 201)["events"][0]
    assert (found["query_id"], found["rank_in_results"]) == ("eq_1", -1)
    assert ok(client.get("/v1/feedback", headers=mine))["items"] == []
    assert client.post("/v1/feedback", json=CLICK, headers=key(scopes=["read"])).status_code == 403
