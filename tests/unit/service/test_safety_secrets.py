"""A token is shown once, to whom it was made for, and then nowhere: no log, no error, no audit trail, no metric."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from rest_service import serving
from ringtrue.store import Store
from service_process import serving_alone
from service_routes import PAGES, REST

SECRET = "a-session-secret-of-the-operator"


def secrets_of(client: TestClient) -> tuple[str, str]:
    store: Store = client.app.state.service.store  # type: ignore[attr-defined]
    token = store.create_key("tester", ("admin",), now=datetime.now(UTC))[1]
    made = client.post("/v1/keys", json={"name": "other", "scopes": ["read"]}, headers={"authorization": f"Bearer {token}"})
    assert made.status_code == 201
    return token, made.json()["token"]


def test_tokens_are_in_no_log_no_answer_and_no_table(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(tmp_path, keys=True, secret=SECRET) as client:
        tokens = secrets_of(client)
        texts, answered = [], 0
        for token in (*tokens, "rt_" + "x" * 40):
            for header in (f"Bearer {token}", f"Basic {token}", token, f"bearer  {token}"):
                for name, entry in REST.items():
                    method, path = name.split(" ")
                    if path.endswith("/events") or method == "DELETE":
                        continue
                    plain = entry.path.replace("{", "").replace("}", "")
                    body = {"name": token, "query": 1} if method != "GET" else None
                    found = client.request(method, plain, json=body, headers={"authorization": header})
                    # What was sent in the body may be shown as what is wrong with it; a header never is.
                    texts.append(f"{found.headers} {found.text}" if method == "GET" else str(found.headers))
                    answered += found.status_code == 200
        assert answered > 50
        for name in PAGES:
            method, path = name.split(" ")
            if method == "GET" and "{" not in path:
                found = client.get(path, headers={"authorization": f"Bearer {tokens[0]}"})
                texts.append(found.text)
        stored = b"".join(file.read_bytes() for file in tmp_path.glob("store.sqlite*"))
    for word in (*tokens, SECRET):
        assert not [text for text in texts if word in text]
        assert word not in caplog.text
        assert word.encode() not in stored
    assert len(caplog.records) > 0, "something is logged at this level"


def test_a_token_in_an_idempotent_request_is_not_kept(tmp_path: Path) -> None:
    with serving(tmp_path, keys=True) as client:
        token, _ = secrets_of(client)
        headers = {"authorization": f"Bearer {token}", "idempotency-key": "twice"}
        made = [
            client.post("/v1/keys", json={"name": "n", "scopes": ["read"]}, headers=headers).json()["token"] for _ in range(2)
        ]
        assert made[0] != made[1], "a key is made anew: its token is kept nowhere"
        stored = b"".join(file.read_bytes() for file in tmp_path.glob("store.sqlite*"))
    assert not [one for one in made if one.encode() in stored]


def test_a_server_process_prints_no_token(tmp_path: Path) -> None:
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    with serving_alone(tmp_path, keys=True, secret=SECRET) as server:
        token = server.key("admin")
        for path in ("/v1/health", "/v1/diagnostics", "/v1/keys", "/v1/audit", "/metrics", "/v1/nothing", f"/v1/runs/{token}"):
            for header in (f"Bearer {token}", f"Bearer {token}x", f"Basic {token}"):
                try:
                    with urlopen(Request(server.url + path, headers={"Authorization": header}), timeout=60) as answer:
                        text = answer.read().decode()
                except HTTPError as problem:
                    text = problem.read().decode()
                    problem.close()
                assert token not in text or path.endswith(token)
                assert SECRET not in text
        command = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        children = command.read_text(encoding="ascii").split() if command.exists() else []
        lines = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
        assert not [line for line in lines if str(tmp_path).encode() in line], (
            "what the writer may open is not in its arguments"
        )
    told = server.errors.read_text(encoding="utf-8")
    assert token not in told
    assert SECRET not in told
