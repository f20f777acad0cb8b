"""``/v1/golden``: uploads in every form, versions that never change, differences, and what strangers may not send."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_service import client as client
from rest_service import problem
from ringtrue.golden import content_hash, load, shipped
from ringtrue.service.routes.evaluate import TEST_SET, TEST_SET_YAML

JSON = {"content-type": "application/json"}


def sent(client: TestClient, record: Any, **changes: Any) -> Any:
    return client.post("/v1/golden", content=json.dumps({**record, **changes}), headers=JSON)


def test_a_set_is_kept_once_and_told_what_is_wrong_with_it(client: TestClient) -> None:
    first = sent(client, TEST_SET, id="once")
    assert first.status_code == 201, first.text
    found = first.json()
    assert (found["name"], found["version"], found["new"]) == ("once", "1.0.0", True)
    assert found["ok"] is False
    assert {"minimum-queries"} <= {one["rule"] for one in found["problems"] if one["severity"] == "error"}
    again = sent(client, TEST_SET, id="once")
    assert (again.status_code, again.json()["new"]) == (200, False)
    shown = client.get("/v1/golden/once", params={"content": True}).json()
    assert shown["content"]["id"] == "once"
    assert len(shown["content"]["entities"]) == 2
    assert sent(client, shown["content"]).json()["new"] is False, "its content can be uploaded again"
    service = client.app.state.service  # type: ignore[attr-defined]
    assert [entry.what for entry in service.store.audit(subject="once@1.0.0")] == ["golden.upload"]


def test_a_version_never_changes(client: TestClient) -> None:
    assert sent(client, TEST_SET, id="fixed").status_code == 201
    other = deepcopy(TEST_SET)
    other["queries"][0]["query_text"] = "something else"
    answer = sent(client, other, id="fixed")
    assert answer.status_code == 409
    assert problem(answer)["code"] == "version_taken"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": "x" * 121}, "each of at most 120 characters"),
        ({"version": "1." + "0" * 200}, "version '1.0000000000000000000000000000'; use"),
        ({"id": "a/b"}, "use a name without / @ ? # %"),
    ],
)
def test_a_name_that_cannot_be_kept_is_told_why(client: TestClient, changes: dict[str, str], said: str) -> None:
    answer = sent(client, TEST_SET, **changes)
    assert answer.status_code == 422
    assert said in problem(answer)["message"]
    assert sent(client, TEST_SET, id="x" * 120).status_code in (200, 201)


def test_versions_and_their_difference(client: TestClient) -> None:
    sent(client, TEST_SET, id="moving")
    later = deepcopy(TEST_SET)
    later["queries"][0]["expected_results"]["relevance_labels"]["pool"] = 2
    later["queries"].pop()
    sent(client, later, id="moving", version="2.0.0")
    listed = client.get("/v1/golden/moving/versions").json()
    assert [item["version"] for item in listed["items"]] == ["2.0.0", "1.0.0"]
    assert client.get("/v1/golden/moving").json()["version"] == "2.0.0"
    assert client.get("/v1/golden/moving/1.0.0").json()["figures"]["queries"] == 2
    found = client.get("/v1/golden/moving/diff", params={"from": "1.0.0", "to": "2.0.0"}).json()
    assert found["queries"]["removed"] == ["q2"]
    assert [(one["old"], one["new"]) for one in found["judgments_changed"]] == [(3, 2)]
    assert found["suggested"] == "major"
    assert client.get("/v1/golden/moving/diff", params={"from": "1.0.0"}).json() == found
    assert client.get("/v1/golden/moving/diff", params={"from": "9.9.9"}).status_code == 404
    assert client.get("/v1/golden/moving/diff").status_code == 422


def test_shipped_sets_are_there_without_being_stored(client: TestClient) -> None:
    listed = {item["name"]: item for item in client.get("/v1/golden", params={"limit": 200}).json()["items"]}
    assert set(shipped()) <= set(listed)
    assert listed["precedents"]["shipped"] is True
    found = client.get("/v1/golden/precedents").json()
    assert found["content_hash"] == content_hash(load("precedents"))
    assert found["created_at"] is None


def test_a_shipped_set_can_be_kept(client: TestClient) -> None:
    answer = client.post("/v1/golden/shipped", json={"name": "memory-bench"})
    assert answer.status_code == 201, answer.text
    assert answer.json()["content_hash"] == content_hash(load("memory-bench"))
    assert client.post("/v1/golden/shipped", json={"name": "memory-bench"}).status_code == 200
    assert client.get("/v1/golden/memory-bench").json()["created_at"] is not None
    assert client.post("/v1/golden/shipped", json={"name": "../hotel"}).status_code == 404


def test_lists_go_on_with_a_cursor(client: TestClient) -> None:
    names: list[str] = []
    cursor = None
    while True:
        page = client.get("/v1/golden", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        names += [item["name"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert names == sorted(set(names))
    assert set(shipped()) <= set(names)
    assert client.get("/v1/golden", params={"cursor": "nothing"}).status_code == 422


def test_yaml_and_lines_are_read_too(client: TestClient) -> None:
    yaml = client.post("/v1/golden", content=TEST_SET_YAML, headers={"content-type": "application/yaml"})
    assert (yaml.status_code, yaml.json()["name"]) == (201, "swimming")
    lines = b'{"id": "q1", "query": "swim", "relevant_ids": ["d1"]}\n'
    found = client.post("/v1/golden", content=lines, headers={"content-type": "application/x-ndjson"})
    assert (found.status_code, found.json()["figures"]["queries"]) == (201, 1)


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 422),
        (b"{}", "text/html", 415),
        (b"", "application/json", 422),
        (b"[" * 200_000, "application/json", 422),
        (b'{"id": "a/b", "version": "1.0.0", "entities": [], "queries": []}', "application/json", 422),
        (b"a: &a [x]\nb: [*a, *a, *a]", "application/yaml", 422),
        (b"PK\x03\x04", "application/zip", 415),
    ],
    ids=["cut", "html", "empty", "deep", "slash", "anchors", "zip"],
)
def test_uploads_that_are_refused(client: TestClient, content: bytes, kind: str, status: int) -> None:
    answer = client.post("/v1/golden", content=content, headers={"content-type": kind})
    assert answer.status_code == status, answer.text
    assert "/tmp" not in problem(answer)["message"]


@pytest.mark.parametrize("name", ["nothing", "..%2Fhotel", "hotel@2.0.0", "%00", "a" * 200])
def test_a_set_that_is_not_there(client: TestClient, name: str) -> None:
    answer = client.get(f"/v1/golden/{name}")
    assert answer.status_code in (404, 422) or (name == "hotel@2.0.0" and answer.status_code == 200)
    if answer.status_code != 200:
        problem(answer)
