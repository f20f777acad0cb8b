"""A write with an Idempotency-Key is carried out once, however often it is sent."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_service import problem, serving
from ringtrue.errors import Unreachable
from ringtrue.service import idempotency
from ringtrue.service.errors import Refused
from ringtrue.service.idempotency import ABANDONED
from ringtrue.store import Reply, Store, timestamp

KEY = {"idempotency-key": "a-1"}
SEARCH = {"query": "pool", "tool_name": "t", "result_ids": []}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with serving(tmp_path) as found:
        yield found


def stored(client: TestClient) -> int:
    return len(client.get("/v1/queries").json()["items"])


def test_sent_twice_carried_out_once_answered_twice(client: TestClient) -> None:
    first, second = (client.post("/v1/queries", json=SEARCH, headers=KEY) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert second.headers["idempotent-replayed"] == "true"
    assert stored(client) == 1
    assert client.post("/v1/queries", json=SEARCH).status_code == 201
    assert stored(client) == 2, "without a key it is another search"


def test_the_same_key_for_another_request_is_an_error(client: TestClient) -> None:
    client.post("/v1/queries", json=SEARCH, headers=KEY)
    for answer in (
        client.post("/v1/queries", json={**SEARCH, "query": "spa"}, headers=KEY),
        client.put("/v1/flags/x", json={"rollout": 1.0}, headers=KEY),
    ):
        assert answer.status_code == 422
        assert problem(answer)["code"] == "key_reused"
    assert stored(client) == 1


def test_a_refused_request_is_answered_the_same_and_may_be_mended_with_a_new_key(client: TestClient) -> None:
    wrong = {**SEARCH, "nonsense": 1}
    first, second = (client.post("/v1/queries", json=wrong, headers=KEY) for _ in range(2))
    assert first.status_code == second.status_code == 422
    assert first.json() == second.json()


def test_keys_of_one_project_are_not_those_of_another(tmp_path: Path) -> None:
    with serving(tmp_path, keys=True) as client:
        store: Store = client.app.state.service.store  # type: ignore[attr-defined]
        for project in ("a", "b"):
            _, token = store.create_key("k", ["admin"], now=datetime.now(UTC), project=project)
            headers = {**KEY, "authorization": f"Bearer {token}"}
            answer = client.post("/v1/queries", json=SEARCH, headers=headers)
            assert answer.status_code == 201
            assert "idempotent-replayed" not in answer.headers
        assert [store.count_queries(project=project) for project in ("a", "b")] == [1, 1]


def test_nobody_is_answered_what_another_asked(tmp_path: Path) -> None:
    with serving(tmp_path, keys=True) as client:
        store: Store = client.app.state.service.store  # type: ignore[attr-defined]
        tokens = {scope: store.create_key(scope, [scope], now=datetime.now(UTC))[1] for scope in ("write", "read")}  # type: ignore[list-item]
        first, second = (
            client.post("/v1/queries", json=SEARCH, headers={**KEY, "authorization": f"Bearer {tokens[scope]}"})
            for scope in ("write", "read")
        )
        assert first.status_code == 201
        assert second.status_code == 422
        assert "query_ids" not in second.text


def test_a_token_is_never_written_down(client: TestClient) -> None:
    store: Store = client.app.state.service.store  # type: ignore[attr-defined]
    made = client.post("/v1/keys", json={"name": "app", "scopes": ["read"]}, headers=KEY)
    assert made.status_code == 201
    assert store.counts()["replies"] == 0


def test_while_one_is_at_work_the_other_waits_its_turn(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on = threading.Event(), threading.Event()
    flags = Store.set_flag

    def slow(self: Store, *given: object, **more: object) -> bool:
        entered.set()
        assert go_on.wait(60)
        return flags(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "set_flag", slow)
    answers: list[int] = []
    body = {"rollout": 0.0}
    first = threading.Thread(target=lambda: answers.append(client.put("/v1/flags/x", json=body, headers=KEY).status_code))
    first.start()
    assert entered.wait(20)
    second = client.put("/v1/flags/x", json=body, headers=KEY)
    go_on.set()
    first.join(20)
    assert second.status_code == 409
    assert problem(second)["code"] == "in_progress"
    assert answers[0] < 300


def test_what_breaks_leaves_the_key_free(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object, *given: object, **more: object) -> None:
        raise RuntimeError

    quiet = TestClient(client.app, base_url="http://127.0.0.1:8080", raise_server_exceptions=False)
    with monkeypatch.context() as patched:
        patched.setattr(Store, "set_flag", broken)
        assert quiet.put("/v1/flags/x", json={"rollout": 0.0}, headers=KEY).status_code == 500
    assert quiet.put("/v1/flags/x", json={"rollout": 0.0}, headers=KEY).status_code < 300


def test_a_request_that_died_with_its_server_is_carried_out_again(client: TestClient) -> None:
    store: Store = client.app.state.service.store  # type: ignore[attr-defined]
    for key, age, status in (("dead", ABANDONED + timedelta(seconds=5), 201), ("alive", timedelta(seconds=5), 422)):
        store.claim_reply(Reply(key, "POST /v1/queries", "x", None, b"", timestamp(datetime.now(UTC) - age)))
        assert client.post("/v1/queries", json=SEARCH, headers={"idempotency-key": key}).status_code == status


def test_what_was_at_work_when_a_server_died_is_so_no_more(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        store: Store = client.app.state.service.store  # type: ignore[attr-defined]
        store.claim_reply(Reply("a-1", "POST /v1/queries", "x", None, b"", timestamp(datetime.now(UTC))))
        store.claim_reply(Reply("a-2", "POST /v1/queries", "x", 201, b"{}", timestamp(datetime.now(UTC))))
    with serving(tmp_path) as client:
        assert client.post("/v1/queries", json=SEARCH, headers=KEY).status_code == 201
        assert problem(client.post("/v1/queries", json=SEARCH, headers={"idempotency-key": "a-2"}))["code"] == "key_reused"


def test_work_that_outlives_its_request_is_carried_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 504 does not end what is at work in a thread: its key stays claimed, and its answer is for whoever asks again."""
    go_on, flags, done = threading.Event(), Store.set_flag, []

    def slow(self: Store, *given: object, **more: object) -> bool:
        assert go_on.wait(60)
        done.append(flags(self, *given, **more))  # type: ignore[arg-type]
        return done[-1]

    monkeypatch.setattr(Store, "set_flag", slow)
    with serving(tmp_path, time_limit=0.5) as client:

        def put() -> Any:
            return client.put("/v1/flags/x", json={"rollout": 0.0}, headers=KEY)

        assert put().status_code == 504
        assert problem(put())["code"] == "in_progress"
        go_on.set()
        answer = put()
        for _ in range(200):
            if answer.status_code not in (409, 504):  # 504: this request took too long itself
                break
            time.sleep(0.05)
            answer = put()
        assert answer.status_code < 300
        assert answer.headers["idempotent-replayed"] == "true"
    assert len(done) == 1


@pytest.mark.parametrize(
    ("path", "body", "lists"),
    [
        ("/v1/queries", [SEARCH, SEARCH], "/v1/queries"),
        ("/v1/queries", [SEARCH, SEARCH, {**SEARCH, "query_id": "own"}], "/v1/queries"),
        ("/v1/feedback", [{"event_type": "click", "session_id": "s", "item_id": "a"}] * 2, "/v1/feedback"),
    ],
    ids=["searches", "one-with-an-id", "events"],
)
def test_rows_of_which_nobody_knows_whether_they_are_stored_are_stored_once(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, path: str, body: list[dict[str, Any]], lists: str
) -> None:
    """As where the writer dies between its commit and its answer, and the client does what it is told: send it again."""
    intake = client.app.state.service.intake  # type: ignore[attr-defined]
    real = intake.add

    async def dies(rows: Any, **more: Any) -> int:
        await real(rows, **more)
        raise Refused(503, "store_unavailable", "it is not certain that this is stored; send it again")

    with monkeypatch.context() as patched:
        patched.setattr(intake, "add", dies)
        assert client.post(path, json=body, headers=KEY).status_code == 503
    again = client.post(path, json=body, headers=KEY)
    # Whose ids were all made from the key is told what the first try would have been told.
    stored = len(body) if all("query_id" not in one for one in body) else 0
    assert (again.status_code, again.json()["accepted"], again.json()["stored"]) == (201, len(body), stored)
    assert len(client.get(lists).json()["items"]) == len(body)
    other = client.post(path, json=body, headers={"idempotency-key": "a-2"}).json()
    assert other["stored"] == len([one for one in body if "query_id" not in one]), "another key is another write"


def test_a_key_is_given_up_when_the_store_is_back(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "PAUSES", (0.05, 0.05))
    real, away = Store.drop_reply, [True, True]

    def drop(self: Store, *given: Any, **more: Any) -> bool:
        if away:
            away.pop()
            raise Unreachable("the database is away")
        return real(self, *given, **more)

    def broken(self: object, *given: object, **more: object) -> None:
        raise Unreachable("the database is away")

    monkeypatch.setattr(Store, "drop_reply", drop)
    with monkeypatch.context() as patched:
        patched.setattr(Store, "set_flag", broken)
        assert client.put("/v1/flags/x", json={"rollout": 0.0}, headers=KEY).status_code >= 500
    for _ in range(200):
        answer = client.put("/v1/flags/x", json={"rollout": 0.0}, headers=KEY)
        if answer.status_code != 409:
            break
        time.sleep(0.05)
    assert answer.status_code < 300
    assert not away


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there"])
def test_a_key_that_is_none_is_refused(client: TestClient, key: str) -> None:
    answer = client.post("/v1/queries", json=SEARCH, headers={"idempotency-key": key})
    assert answer.status_code == 422
    assert problem(answer)["field"] == "idempotency-key"
