"""Keys over REST: the token is told once, a key opens one project, and what an admin did is written down."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from fastapi.testclient import TestClient

from rest_on_both import ON_ONE, Headers, examples_of, ok
from rest_on_both import client as client
from rest_on_both import keyed as keyed
from rest_service import problem
from ringtrue.errors import InputError
from ringtrue.service.auth import Access, Caller
from ringtrue.service.errors import Refused
from ringtrue.service.models import place_cursor
from ringtrue.service.routes.server import NewKey, create_key
from stores import kind as kind
from stores import url as url


@ON_ONE
def test_the_examples_run(client: TestClient) -> None:
    for example in examples_of(NewKey):
        assert ok(client.post("/v1/keys", json=example), 201)["token"].startswith("rt_")


def test_a_key_opens_what_its_scopes_say_until_it_is_revoked(keyed: tuple[TestClient, Headers]) -> None:
    client, key = keyed
    admin = key("root", ["admin"], "shop")
    made = ok(client.post("/v1/keys", json={"name": "app", "scopes": ["write", "write"]}, headers=admin), 201)
    assert made["scopes"] == ["write"]
    headers = {"authorization": f"Bearer {made['token']}"}
    search = {"query": "pool", "tool_name": "web"}
    ok(client.post("/v1/queries", json=search, headers=headers), 201)
    assert client.get("/v1/queries", headers=headers).status_code == 403
    assert len(ok(client.get("/v1/queries", headers=admin))["items"]) == 1  # it logged into the project of its maker
    listed = ok(client.get("/v1/keys", headers=admin))
    assert [row["name"] for row in listed] == ["root", "app"]
    assert made["token"] not in str(listed)
    assert ok(client.delete(f"/v1/keys/{made['key_id']}", headers=admin))["revoked_at"] is not None
    assert client.post("/v1/queries", json=search, headers=headers).status_code == 401  # at once, not a moment later
    assert client.delete(f"/v1/keys/{made['key_id']}", headers=admin).status_code == 404
    trail = ok(client.get("/v1/audit", headers=admin))["items"]
    assert [(entry["who"], entry["what"], entry["subject"]) for entry in trail] == [
        ("root", "key.revoke", made["key_id"]),
        ("root", "key.create", made["key_id"]),
    ]
    assert made["token"] not in str(trail)


def test_only_an_admin_and_only_of_the_own_project(keyed: tuple[TestClient, Headers]) -> None:
    client, key = keyed
    admin, other = key("root", ["admin"]), key("eve", ["admin"], "other")
    lesser = key("ada", ["read", "write", "review"])
    made = ok(client.post("/v1/keys", json={"name": "app", "scopes": ["read"]}, headers=admin), 201)
    assert client.get("/v1/keys", headers=lesser).status_code == 403
    assert client.post("/v1/keys", json={"name": "x", "scopes": ["read"]}, headers=lesser).status_code == 403
    assert client.delete(f"/v1/keys/{made['key_id']}", headers=lesser).status_code == 403
    assert client.get("/v1/audit", headers=lesser).status_code == 403
    assert client.delete(f"/v1/keys/{made['key_id']}", headers=other).status_code == 404
    assert [row["name"] for row in ok(client.get("/v1/keys", headers=other))] == ["eve"]
    assert ok(client.get("/v1/audit", headers=other))["items"] == []
    ok(client.get("/v1/queries", headers={"authorization": f"Bearer {made['token']}"}))


@ON_ONE
def test_no_key_grants_what_its_maker_may_not_do(client: TestClient) -> None:
    service = client.app.state.service  # type: ignore[attr-defined]
    maker = Access(service, Caller("default", "ada", ("write",), "key_1"))
    with pytest.raises(Refused, match="admin") as refused:
        create_key(maker, "more", ["write", "admin"])
    assert (refused.value.status, refused.value.code) == (403, "forbidden")
    assert ok(client.get("/v1/keys")) == []


@ON_ONE
def test_keys_that_could_open_nothing_are_refused(client: TestClient) -> None:
    for given in (
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["root"]},
        {"name": " ", "scopes": ["read"]},
        {"name": "x", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"},
        {"name": "x", "scopes": ["read"], "expires_at": "soon"},
        {"name": "x", "scopes": ["read"], "expires_at": "9999-12-31T23:59:59Z"},
        {"name": "x", "scopes": ["read"], "project": "other"},
    ):
        answer = client.post("/v1/keys", json=given)
        assert answer.status_code == 422, given
        problem(answer)
    assert ok(client.get("/v1/keys")) == []


def test_the_audit_trail_in_pages(client: TestClient) -> None:
    for number in range(9):
        ok(client.put(f"/v1/flags/f{number}", json={"why": str(number)}))
    seen, cursor = [], ""
    while cursor is not None:
        page = ok(client.get("/v1/audit", params={"limit": 4, **({"cursor": cursor} if cursor else {})}))
        seen += [entry["subject"] for entry in page["items"]]
        cursor = page["next"]
    assert seen == [f"f{number}" for number in range(8, -1, -1)]
    assert [entry["subject"] for entry in ok(client.get("/v1/audit", params={"subject": "f3"}))["items"]] == ["f3"]
    for cursor in ("x", place_cursor("2026-03-01T12:00:00.000000Z", -1), place_cursor("2026", 0)):
        answer = client.get("/v1/audit", params={"cursor": cursor})
        assert (answer.status_code, problem(answer)["code"]) == (422, "invalid_cursor")


def test_entries_of_one_moment_are_all_shown_once(client: TestClient, url: str) -> None:
    from ringtrue.store import AuditEntry, Store

    with Store.open(url) as store:
        for number in range(7):
            store.add_audit(AuditEntry("2026-03-01T12:00:00Z", "ada", "note", f"s{number}"))
    seen, cursor = [], ""
    while cursor is not None:
        page = ok(client.get("/v1/audit", params={"limit": 2, **({"cursor": cursor} if cursor else {})}))
        seen += [entry["subject"] for entry in page["items"]]
        cursor = page["next"]
    assert sorted(seen) == [f"s{number}" for number in range(7)]


@ON_ONE
def test_a_key_ends_after_90_days_unless_its_maker_says_otherwise(client: TestClient) -> None:
    made = ok(client.post("/v1/keys", json={"name": "app", "scopes": ["read"]}), 201)
    lasts = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert timedelta(days=89) < lasts <= timedelta(days=90, minutes=1)
    made_at = datetime.fromisoformat(made["created_at"])
    for days, status in ((3649, 201), (3651, 422)):
        end = (made_at + timedelta(days)).isoformat()
        answer = client.post("/v1/keys", json={"name": "app", "scopes": ["read"], "expires_at": end})
        assert answer.status_code == status, answer.text
    assert "lasts longer than 3,650 days" in problem(answer)["message"]


@ON_ONE
@pytest.mark.parametrize("name", ["evil\x1b[2J", "two\nlines", "c1\x9b", "mirrored \u202e", "zero\u200bwidth"])
def test_names_with_invisible_characters_are_refused(client: TestClient, name: str) -> None:
    told = problem(client.post("/v1/keys", json={"name": name, "scopes": ["read"]}))
    assert told["field"] == "body.name"
    assert "must not contain invisible characters" in told["message"]
    service = client.app.state.service  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"the name .* contains invisible characters"):
        service.store.create_key(name, ["read"], now=service.now())
    with pytest.raises(InputError, match=r"the project .* contains invisible characters"):
        service.store.create_key("app", ["read"], now=service.now(), project=name)
    with pytest.raises(InputError, match="has 201 characters; 200 at most"):
        service.store.create_key("a" * 201, ["read"], now=service.now())
