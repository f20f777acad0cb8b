"""Health says what the library says without places of the machine; diagnostics are for admins and tell no secrets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from rest_on_both import ON_ONE, Headers, ok
from rest_on_both import client as client
from rest_on_both import keyed as keyed
from rest_service import problem, serving
from ringtrue.memory.health import project_figures
from ringtrue.store import ReviewItem, Store, StoredResult
from stores import kind as kind
from stores import url as url


def test_health_tells_every_part_with_200_whatever_the_state(client: TestClient, url: str) -> None:
    found = ok(client.get("/v1/health"))
    parts = {part["name"]: part for part in found["parts"]}
    assert found["state"] == "unknown"  # nothing was ever evaluated
    assert parts["schema"]["state"] == "ok"
    assert parts["log"]["state"] == "unknown"
    assert {"losses", "evaluation", "gate", "backlog", "shadow", "tests", "rollout", "index"} <= set(parts)
    assert not {"memory", "constitutional"} & set(parts)  # nobody uses a memory here
    ok(client.post("/v1/queries", json={"query": "pool", "tool_name": "web"}), 201)
    ok(client.put("/v1/flags/mv", json={"rollout": 5}))
    ok(client.post("/v1/flags/mv/rollback", json={"why": "complaints"}))
    after = ok(client.get("/v1/health"))
    parts = {part["name"]: part for part in after["parts"]}
    assert after["state"] == "wrong"
    assert parts["log"]["figures"]["last_24h"] == 1
    assert parts["rollout"]["state"] == "wrong"


@ON_ONE
def test_health_names_no_place_of_the_machine(url: str, tmp_path: Path) -> None:
    with serving(tmp_path, store=url, golden="hotel", folder=tmp_path / "not-there") as client:
        text = client.get("/v1/health").text
    assert str(tmp_path) not in text


def test_health_is_about_the_callers_project(keyed: tuple[TestClient, Headers]) -> None:
    client, key = keyed
    mine, other = key("ada", ["write", "read"]), key("eve", ["read"], "other")
    ok(client.post("/v1/queries", json={"query": "pool", "tool_name": "web"}, headers=mine), 201)
    ok(client.put("/v1/flags/secret-plan", json={"shadow": True}, headers=mine))
    found = client.get("/v1/health", headers=other)
    assert ok(found)["project"] == "other"
    assert "secret-plan" not in found.text
    assert next(part for part in found.json()["parts"] if part["name"] == "log")["figures"] == {"last_24h": 0, "last_at": None}


def test_diagnostics_are_for_admins_and_tell_no_secrets(url: str, tmp_path: Path) -> None:
    with serving(tmp_path, store=url, keys=True, secret="do not tell") as client, Store.open(url) as store:

        def headers(*scopes: str) -> dict[str, str]:
            token = store.create_key("ada", scopes, now="2026-03-01T12:00:00Z")[1]  # type: ignore[arg-type]
            return {"authorization": f"Bearer {token}"}

        admin = headers("admin")
        ok(client.post("/v1/queries", json=[{"query": "pool", "tool_name": "web"}] * 3, headers=admin), 201)
        answer = client.get("/v1/diagnostics", headers=admin)
        found = ok(answer)
        assert client.get("/v1/diagnostics", headers=headers("read", "write", "review")).status_code == 403
    assert (found["intake"]["accepted"], found["intake"]["stored"], found["intake"]["waiting"]) == (3, 3, 0)
    assert found["versions"]["ringtrue"]
    assert found["database_schema"] >= "0004"
    assert found["uptime_s"] >= 0
    assert found["backlog"] == {
        "pending_review": 0, "approved": 0, "rejected": 0, "published": 0, "total": 0, "oldest_pending_at": None,
    }  # fmt: skip
    assert (found["evaluation"], list(found["unknown"])) == (None, ["evaluation"])
    assert (found["settings"]["keys"], found["settings"]["serves_golden"]) == (True, True)
    for secret in ("do not tell", str(tmp_path), url, "@"):
        assert secret not in answer.text


def test_diagnostics_and_the_memorys_health_show_the_same_backlog_and_evaluation(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RINGTRUE_STORE", url)
    with serving(tmp_path, store=url) as client, Store.open(url) as store:
        store.add_review_items([ReviewItem("k1", "q1", "pool", "d1", "2026-03-01T12:00:00Z")])
        store.add_result(StoredResult("r1", "full", "2026-03-02T12:00:00Z", 60, {"nDCG@10": 0.8, "RR@10": 0.7}, mrr_at_10=0.7))
        shown = ok(client.get("/v1/diagnostics"))
    assert shown["backlog"]["pending_review"] == 1
    assert (shown["evaluation"]["mrr_at_10"], shown["evaluation"]["recall_at_10"], shown["unknown"]) == (0.7, None, {})
    assert {name: shown[name] for name in ("backlog", "evaluation", "unknown")} == project_figures()


def test_how_much_all_projects_log_is_told_to_who_runs_the_server_alone(url: str, tmp_path: Path) -> None:
    with serving(tmp_path, store=url, keys=True, project="ops") as client, Store.open(url) as store:

        def token(project: str) -> str:
            return store.create_key("ada", ("admin",), now="2026-03-01T12:00:00Z", project=project)[1]

        def shown(key: str) -> str:
            browser = TestClient(client.app, base_url="http://127.0.0.1:8080")
            form = re.search(r'name="csrf-token" content="([^"]+)"', browser.get("/login").text)
            assert form is not None
            return browser.post("/login", data={"key": key, "csrf": form[1], "next": "/settings"}).text

        ours, theirs = token("ops"), token("shop")
        ok(client.post("/v1/queries", json={"query": "q", "tool_name": "t"}, headers={"authorization": f"Bearer {ours}"}), 201)
        assert ok(client.get("/v1/diagnostics", headers={"authorization": f"Bearer {ours}"}))["intake"]["stored"] == 1
        refused = client.get("/v1/diagnostics", headers={"authorization": f"Bearer {theirs}"})
        assert refused.status_code == 403
        assert problem(refused)["code"] == "forbidden"
        assert "ops" not in refused.text, "nor are they told whose it is"
        assert "Last commit" in shown(ours)
        assert "Last commit" not in shown(theirs)
