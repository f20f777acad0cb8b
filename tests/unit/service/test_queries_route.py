"""Searches go into the log over REST, are stored when they are answered, and are found again."""

from __future__ import annotations

import gzip
import json
from dataclasses import fields
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from rest_on_both import ON_ONE, Headers, ok
from rest_on_both import client as client
from rest_on_both import keyed as keyed
from rest_service import problem
from ringtrue.log.redact import DEPTH
from ringtrue.service.routes.log import EXAMPLES, SentSearch
from ringtrue.store import QUERY_LIST, LoggedQuery, Store, timestamp
from stores import kind as kind
from stores import url as url

ONE = {"query": "late checkout", "tool_name": "web", "result_ids": ["a", "b"], "scores": [0.9, 0.5], "total_latency_ms": 20}


def send(client: TestClient, body: Any) -> Any:
    return ok(client.post("/v1/queries", json=body), 201)


@ON_ONE
def test_the_examples_run(client: TestClient) -> None:
    said = client.get("/v1/openapi.json").json()["paths"]["/v1/queries"]["post"]["requestBody"]["content"]["application/json"]
    assert set(said["examples"]) == set(EXAMPLES)
    for example in said["examples"].values():
        count = len(example["value"]) if isinstance(example["value"], list) else 1
        found = send(client, example["value"])
        assert (found["accepted"], found["stored"], len(found["query_ids"])) == (count, count, count)


@ON_ONE
def test_rows_that_are_refused_as_invalid_are_counted(client: TestClient) -> None:
    negative, future = {**ONE, "total_latency_ms": -1}, {**ONE, "created_at": "2090-01-01T00:00:00Z"}
    for body, rows in (([ONE, negative], 2), (negative, 1), (future, 1)):
        before = client.app.state.service.intake.refused_of.get("default", 0)  # type: ignore[attr-defined]
        assert client.post("/v1/queries", json=body).status_code == 422
        after = client.app.state.service.intake.refused_of["default"]  # type: ignore[attr-defined]
        assert after == before + rows
    assert client.post("/v1/feedback", json={"event_type": "liked", "session_id": "s", "item_id": "a"}).status_code == 422
    assert client.app.state.service.intake.refused_of["default"] == after + 1  # type: ignore[attr-defined]


def test_requests_hold_what_the_log_holds() -> None:
    known = {field.name for field in fields(LoggedQuery)} - {"project"}
    assert set(SentSearch.model_fields) == known | {"result_count"}


@ON_ONE
def test_a_listed_search_can_be_sent_again(client: TestClient) -> None:
    send(client, [ONE, {"query": "from a list", "tool_name": QUERY_LIST}])
    listed = ok(client.get("/v1/queries"))["items"]
    assert [row["result_count"] for row in listed] == [None, 2]
    assert send(client, listed)["stored"] == 0, "they are there already"
    again = send(client, [{**row, "query_id": row["query_id"] + "-2"} for row in listed])
    copies = ok(client.get("/v1/queries"))["items"][:4]
    assert again["stored"] == 2
    assert sorted(row["result_count"] or 0 for row in copies) == [0, 0, 2, 2]
    refused = client.post("/v1/queries", json={**ONE, "result_count": 3})
    assert "differs from the number of result_ids" in problem(refused)["message"]


def test_ids_that_are_numbers_are_kept_as_text_in_searches_feedback_and_judgments(client: TestClient, url: str) -> None:
    search = {**ONE, "query_id": "eq_n", "session_id": "s", "result_ids": ["b", 17], "channel_contributions": {"bm25": [17]}}
    send(client, search)
    click = {"event_type": "click", "session_id": "s", "item_id": 17, "query_id": "eq_n"}
    (event,) = ok(client.post("/v1/feedback", json=click), 201)["events"]
    assert event["rank_in_results"] == 2
    ok(client.post("/v1/judgments", json={"judgments": [{"query_id": "eq_n", "item_id": 17, "relevance": 3}]}), 201)
    with Store.open(url) as store:
        (row,) = store.queries()
        assert (row.result_ids, dict(row.channel_contributions)) == (("b", "17"), {"bm25": ("17",)})
        assert [judgment.item_id for judgment in store.judgments()] == ["17"]
        assert [event.item_id for event in store.feedback()] == ["17"]
    refused = client.post("/v1/queries", json={**ONE, "result_ids": [1.5]})
    assert refused.status_code == 422


def test_a_search_is_in_the_store_when_it_is_answered(client: TestClient, url: str) -> None:
    found = send(client, ONE)
    assert (found["accepted"], found["stored"]) == (1, 1)
    with Store.open(url) as store:
        row = store.queries()[0]
    assert [row.query_id] == found["query_ids"]
    assert row.query_id.startswith("eq_2")
    assert (row.query, row.result_ids, row.scores, row.quality_proxy_score) == (
        "late checkout",
        ("a", "b"),
        (0.9, 0.5),
        0.729231,
    )


def test_everything_that_can_be_logged_comes_back_as_it_was_sent(client: TestClient) -> None:
    whole: dict[str, Any] = {
        **ONE, "query_id": "eq_1", "created_at": "2026-03-01T12:00:00+02:00", "intent": "book", "mode": "hybrid",
        "session_id": "s", "user_id": "u", "channel_contributions": {"bm25": ["b", "a"]}, "stage_latency_ms": {"fusion": 1.5},
        "stages": [{"name": "fusion", "input": 4, "output": 2, "ms": 1.5}], "fusion_weights": {"bm25": 0.5},
        "quality_proxy_score": 0.4, "trace_id": "t", "prompt_id": "p", "retriever": "r", "fallback": "no dense",
        "degraded": True, "mode_override": "bm25", "token_pressure_level": "high", "token_pressure_ratio": 0.9,
        "boost_delta": -0.1, "extraction_count": 3, "flags": {"multi-vector": "on"}, "is_eval_corpus": True,
        "eval_category": "smoke", "traffic": "test", "result_count": 2,
    }  # fmt: skip
    assert set(whole) == set(SentSearch.model_fields)
    send(client, whole)
    assert ok(client.get("/v1/queries/eq_1")) == {**whole, "created_at": "2026-03-01T10:00:00.000000Z"}


def test_sent_again_the_first_one_stays(client: TestClient) -> None:
    send(client, {**ONE, "query_id": "eq_1"})
    found = send(client, [{**ONE, "query_id": "eq_1", "query": "another"}, {**ONE, "query_id": "eq_2"}])
    assert (found["accepted"], found["stored"], found["query_ids"]) == (2, 1, ["eq_1", "eq_2"])
    assert ok(client.get("/v1/queries/eq_1"))["query"] == "late checkout"


def test_a_thousand_at_once_and_no_more(client: TestClient) -> None:
    found = send(client, [{**ONE, "query": f"question {n}"} for n in range(1_000)])
    assert (found["stored"], len(set(found["query_ids"]))) == (1_000, 1_000)
    for many in ([], [ONE] * 1_001):
        answer = client.post("/v1/queries", json=many)
        assert answer.status_code == 422
        assert "1 to 1,000" in problem(answer)["message"]


WRONG: list[tuple[Any, str]] = [
    ({"tool_name": "web"}, "query"),
    ({**ONE, "project": "other"}, "project"),
    ({**ONE, "query": 7}, "query"),
    ({**ONE, "scores": ["0.9"]}, "scores.0"),
    ({**ONE, "total_latency_ms": -1}, "total_latency_ms"),
    ({**ONE, "created_at": "yesterday"}, "created_at"),
    ({**ONE, "created_at": "0001-01-01T00:00:00+02:00"}, "created_at"),
    ({**ONE, "degraded": "yes"}, "degraded"),
    ({**ONE, "query_id": ""}, "query_id"),
    ([ONE, {**ONE, "result_ids": [None]}], "1.result_ids.0"),
    (None, ""),
    ("late checkout", ""),
]
JSON = {"content-type": "application/json"}


@ON_ONE
def test_what_is_wrong_is_named_and_nothing_is_stored(client: TestClient) -> None:
    for body, field in WRONG:
        answer = client.post("/v1/queries", content=json.dumps(body), headers=JSON)
        assert answer.status_code == 422, body
        said = problem(answer)
        assert said["code"] == "invalid_input"
        assert said["field"].removeprefix("body").lstrip(".") == field
    assert ok(client.get("/v1/queries"))["items"] == []


@ON_ONE
@pytest.mark.parametrize("innermost", [1, True, None, "text"])
def test_flags_are_kept_as_deep_as_they_are_taken(client: TestClient, innermost: Any) -> None:
    def nested(levels: int) -> Any:
        found: Any = innermost
        for level in range(levels):
            found = {"a": found} if level % 2 else [found]
        return found

    flags = {"deep": nested(DEPTH - 1)}
    [name] = send(client, {**ONE, "flags": flags})["query_ids"]
    assert ok(client.get(f"/v1/queries/{name}"))["flags"] == flags
    for levels in (DEPTH, 150):
        answer = client.post("/v1/queries", json={**ONE, "flags": {"deep": nested(levels)}})
        assert (answer.status_code, problem(answer)["field"]) == (422, "body.flags")
        event = {"event_type": "click", "session_id": "s", "item_id": "a", "metadata": {"deep": nested(levels)}}
        assert client.post("/v1/feedback", json=event).status_code == 422


@ON_ONE
def test_what_is_no_json_is_refused(client: TestClient) -> None:
    for content in (b"", b"{", b"[", b"nonsense", b'{"query": NaN, "tool_name": "w"}', b"\xff\xfe", b'{"a":"\\ud800"}'):
        answer = client.post("/v1/queries", content=content, headers=JSON)
        assert answer.status_code in (400, 422), content
        problem(answer)


@ON_ONE
def test_numbers_that_are_none_are_refused(client: TestClient) -> None:
    for number in ("NaN", "Infinity", "1e999"):
        content = json.dumps(ONE).replace("0.9", number)
        answer = client.post("/v1/queries", content=content, headers=JSON)
        assert answer.status_code in (400, 422), number


@ON_ONE
def test_another_kind_of_content_is_refused_and_gzip_is_read(client: TestClient) -> None:
    answer = client.post("/v1/queries", content=json.dumps(ONE), headers={"content-type": "text/plain"})
    assert (answer.status_code, problem(answer)["code"]) == (415, "unsupported_type")
    packed = {"content-type": "application/json; charset=utf-8", "content-encoding": "gzip"}
    ok(client.post("/v1/queries", content=gzip.compress(json.dumps(ONE).encode()), headers=packed), 201)


@ON_ONE
def test_secrets_do_not_reach_the_store(client: TestClient) -> None:
    send(client, {**ONE, "query": "mail ada@example.org", "intent": "reach ada@example.org"})
    found = ok(client.get("/v1/queries"))["items"][0]
    assert (found["query"], found["intent"]) == ("mail [email]", "reach [email]")


def test_pages_go_from_the_newest_to_the_oldest_without_gaps(client: TestClient) -> None:
    # Two of each moment: the place in the list is not the time alone.
    send(client, [{**ONE, "query_id": f"eq_{n}", "created_at": f"2026-03-01T12:00:{n // 2:02}Z"} for n in range(25)])
    seen, cursor, pages = [], None, 0
    while cursor is not None or not pages:
        page = ok(client.get("/v1/queries", params={"limit": 10} | ({"cursor": cursor} if cursor else {})))
        seen += [row["query_id"] for row in page["items"]]
        cursor, pages = page["next"], pages + 1
    assert pages == 3
    assert len(seen) == len(set(seen)) == 25
    times = [ok(client.get(f"/v1/queries/{name}"))["created_at"] for name in seen]
    assert times == sorted(times, reverse=True)
    for wrong in ("nobody gave this", "eq_1", "~", "~eq_1", "2026-03-01T12:00:00.000000Z~", "2026-03-01~eq_1", "now~eq_1"):
        answer = client.get("/v1/queries", params={"cursor": wrong})
        assert (answer.status_code, problem(answer)["code"]) == (422, "invalid_cursor"), wrong


def test_the_next_page_follows_also_where_the_last_search_of_this_one_was_deleted(client: TestClient, url: str) -> None:
    rows = [{"query_id": f"eq~{n}", "created_at": f"2026-03-01T12:00:{n:02}Z", "user_id": f"u{n}"} for n in range(9)]
    send(client, [{**ONE, **row} for row in rows])
    first = ok(client.get("/v1/queries", params={"limit": 4}))
    assert [row["query_id"] for row in first["items"]][-1] == "eq~5"
    with Store.open(url) as store:
        assert store.delete_user("u5") == 1
    for path in ("/v1/queries", "/queries"):
        assert client.get(path, params={"cursor": first["next"]}).status_code == 200
    second = ok(client.get("/v1/queries", params={"limit": 4, "cursor": first["next"]}))
    assert [row["query_id"] for row in second["items"]] == ["eq~4", "eq~3", "eq~2", "eq~1"]


def test_the_list_can_be_narrowed(client: TestClient) -> None:
    rows = [
        {**ONE, "query_id": "eq_slow", "total_latency_ms": 900, "created_at": "2026-03-01T12:00:00Z"},
        {**ONE, "query_id": "eq_bad", "degraded": True, "created_at": "2026-03-01T13:00:00Z"},
        {
            **ONE,
            "query_id": "eq_pool",
            "query": "pool hours",
            "tool_name": "app",
            "session_id": "s",
            "created_at": "2026-03-01T14:00:00Z",
        },
    ]
    send(client, rows)

    def found(**filters: Any) -> list[str]:
        return [row["query_id"] for row in ok(client.get("/v1/queries", params=filters))["items"]]

    assert found(slower_than=500) == ["eq_slow"]
    assert found(trouble=True) == ["eq_bad"]
    assert found(text="pool") == found(tool="app") == found(session_id="s") == ["eq_pool"]
    assert found(since="2026-03-01T12:30:00Z", until="2026-03-01T13:30:00Z") == ["eq_bad"]
    assert client.get("/v1/queries", params={"since": "never"}).status_code == 422
    assert client.get("/v1/queries", params={"slower_than": "nan"}).status_code == 422


@ON_ONE
def test_one_that_is_not_there(client: TestClient) -> None:
    answer = client.get("/v1/queries/eq_none")
    assert (answer.status_code, problem(answer)["code"]) == (404, "not_found")


@ON_ONE
@pytest.mark.parametrize("query_id", ["a/b", "ü/ß", "../x", "/", "a/", "/v1/queries", "stats/", "100%", "a?b#c", "...", "x\r"])
def test_a_search_is_found_under_any_id(client: TestClient, query_id: str) -> None:
    assert send(client, {**ONE, "query_id": query_id})["query_ids"] == [query_id]
    assert ok(client.get(f"/v1/queries/{quote(query_id, safe='')}"))["query_id"] == query_id
    assert client.get(f"/queries/{quote(query_id, safe='')}").status_code == 200


@ON_ONE
@pytest.mark.parametrize("query_id", ["stats", ".", "..", "x\n", "x\ny"])
def test_an_id_whose_address_leads_elsewhere_is_refused(client: TestClient, query_id: str) -> None:
    answer = client.post("/v1/queries", json=[ONE, {**ONE, "query_id": query_id}])
    assert (answer.status_code, problem(answer)["field"]) == (422, "body.1.query_id")
    assert ok(client.get("/v1/queries"))["items"] == []


def test_the_log_in_numbers(client: TestClient) -> None:
    send(client, [{**ONE, "created_at": f"2026-03-01T{hour:02}:30:00Z"} for hour in (10, 10, 11)])
    send(client, {"query": "nothing", "tool_name": "app", "created_at": "2026-03-01T11:45:00Z"})
    window = {"since": "2026-03-01T10:00:00Z", "until": "2026-03-01T12:00:00Z"}
    found = ok(client.get("/v1/queries/stats", params={**window, "step": "hour"}))
    assert (found["searches"], found["tools"]) == (4, ["app", "web"])
    assert [(row["searches"], row["empty"], row["mean_ms"]) for row in found["buckets"]] == [(2, 0, 20.0), (2, 1, 20.0)]
    assert ok(client.get("/v1/queries/stats", params=window))["step"] == "minute"
    assert ok(client.get("/v1/queries/stats"))["searches"] == 0
    wrong = [
        {"since": window["until"], "until": window["since"]},
        {"since": "2020-01-01T00:00:00Z", "step": "minute"},
        {"until": "0001-01-01T00:00:00Z"},
        {"step": "year"},
    ]
    for given in wrong:
        assert client.get("/v1/queries/stats", params=given).status_code == 422, given


def test_searches_that_are_not_users_are_kept_apart(client: TestClient) -> None:
    for mark in ("evaluation", "Gate", "user"):
        headers = {"ringtrue-traffic": mark}
        ok(client.post("/v1/queries", json=[{**ONE, "query_id": f"eq_{mark}"}], headers=headers), 201)
    send(client, {**ONE, "query_id": "eq_test", "traffic": "test"})

    def listed(**filters: str) -> list[str]:
        return [row["query_id"] for row in ok(client.get("/v1/queries", params=filters))["items"]]

    assert listed() == ["eq_user"]
    assert listed(traffic="gate") == ["eq_Gate"]
    assert listed(traffic="all") == ["eq_test", "eq_user", "eq_Gate", "eq_evaluation"]
    assert ok(client.get("/v1/queries/stats"))["searches"] == 1
    assert ok(client.get("/v1/queries/eq_Gate"))["traffic"] == "gate"
    assert client.get("/v1/queries", params={"traffic": "bots"}).status_code == 422
    refused = client.post("/v1/queries", json=ONE, headers={"ringtrue-traffic": "evalation"})
    assert (refused.status_code, problem(refused)["message"]) == (
        422,
        "header Ringtrue-Traffic: unknown traffic 'evalation'; did you mean 'evaluation'?",
    )
    assert len(listed(traffic="all")) == 4


def test_the_duration_of_searches_counts_users_searches_only(client: TestClient) -> None:
    def counted() -> float:
        lines = client.get("/metrics").text.splitlines()
        found = [line for line in lines if line.startswith("ringtrue_search_latency_seconds_count")]
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)

    before = counted()
    send(client, ONE)
    ok(client.post("/v1/queries", json=ONE, headers={"ringtrue-traffic": "gate"}), 201)
    send(client, {**ONE, "traffic": "evaluation"})
    assert counted() == before + 1


def test_a_key_needs_the_scope_and_sees_its_own_project(keyed: tuple[TestClient, Headers]) -> None:
    client, key = keyed
    writer, reader, other = key(scopes=["write"]), key(scopes=["read"]), key(scopes=["read", "write"], project="other")
    assert client.post("/v1/queries", json=ONE).status_code == 401
    assert client.post("/v1/queries", json=ONE, headers=reader).status_code == 403
    assert client.get("/v1/queries", headers=writer).status_code == 403
    ok(client.post("/v1/queries", json={**ONE, "query_id": "eq_1"}, headers=writer), 201)
    assert [row["query_id"] for row in ok(client.get("/v1/queries", headers=reader))["items"]] == ["eq_1"]
    assert ok(client.get("/v1/queries", headers=other))["items"] == []
    assert client.get("/v1/queries/eq_1", headers=other).status_code == 404
    assert client.get("/v1/queries", params={"cursor": "eq_1"}, headers=other).status_code == 422
    # The same id in another project is another search, and new there.
    assert ok(client.post("/v1/queries", json={**ONE, "query_id": "eq_1"}, headers=other), 201)["stored"] == 1


def test_the_same_write_with_one_idempotency_key_is_carried_out_once(client: TestClient) -> None:
    answers = [client.post("/v1/queries", json=ONE, headers={"idempotency-key": "k1"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert len(ok(client.get("/v1/queries"))["items"]) == 1


@ON_ONE
def test_a_full_intake_says_when_to_come_again(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from ringtrue.service.errors import Refused

    async def busy(*_: Any, **__: Any) -> int:
        raise Refused(503, "busy", "later", headers={"Retry-After": "1"})

    monkeypatch.setattr(client.app.state.service.intake, "add", busy)  # type: ignore[attr-defined]
    answer = client.post("/v1/queries", json=ONE)
    assert (answer.status_code, answer.headers["retry-after"], problem(answer)["code"]) == (503, "1", "busy")


@ON_ONE
def test_what_happens_in_the_future_is_refused_but_clocks_may_differ(client: TestClient) -> None:
    service = client.app.state.service  # type: ignore[attr-defined]
    search, event = {"query": "pool", "tool_name": "web"}, {"event_type": "click", "session_id": "s", "item_id": "a"}
    for path, body in (("/v1/queries", search), ("/v1/feedback", event)):
        soon, later = (timestamp(service.now() + timedelta(minutes=minutes)) for minutes in (3, 10))
        ok(client.post(path, json={**body, "created_at": soon}), 201)
        told = problem(client.post(path, json={**body, "created_at": later}))
        assert told["field"] == "body.created_at"
        assert "is in the future; check the sender" in told["message"]
