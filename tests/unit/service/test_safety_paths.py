"""No path, address or hostile text in a request reaches the file system, the network or the database's nerves."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from rest_service import serving
from ringtrue.retrieve.connectors import KINDS
from service_routes import PAGES, REST, parameters
from stores import kind as kind
from stores import url as url

OUTSIDE = (
    "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "....%2f%2fetc%2fpasswd", "%2fetc%2fpasswd",
    "planted.yaml", ".%2fplanted.yaml", "file:%2f%2f%2fetc%2fpasswd", "C:%5cwindows%5cwin.ini", "planted.yaml%00.json", "%00",
    "%0d%0aset-cookie:%20a=b",
    "%ff%fe", "%ed%a0%80", "%c0%ae%c0%ae%2f", "%7e", "$(id)", "%7b%7b7*191%7d%7d", "%27%20OR%201=1--", "x" * 2_000, "-1",
    "1e999",
)  # fmt: skip
PLANTED = "planted words of another"


@pytest.fixture
def client(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted.yaml").write_text(f"queries:\n- {{id: q1, query: {PLANTED}, relevant_docs: [a]}}\n", encoding="utf-8")
    with serving(tmp_path, store=url) as found:
        yield found


def csrf(client: TestClient) -> str:
    found = re.search(r'<meta name="csrf-token" content="([^"]+)"', client.get("/settings").text)
    assert found is not None
    return found[1]


def test_trap_39_no_parameter_of_any_path_reaches_the_file_system(client: TestClient) -> None:
    headers, tried = {"x-csrf-token": csrf(client)}, 0
    for name, entry in {**REST, **PAGES}.items():
        method, path = name.split(" ")
        ask = entry.asks[0]
        given = {"headers": headers, "follow_redirects": False}
        if ask.json is not None:
            given["json"] = ask.json
        if ask.form is not None:
            given["data"] = ask.form
        for parameter in parameters(path):
            for payload in OUTSIDE:
                filled = re.sub(rf"\{{{parameter}(:path)?\}}", payload.replace("\\", "\\\\"), path)
                filled = re.sub(r"\{.*?\}", "x", filled)
                found = client.request(method, filled, params=ask.query, **given)  # type: ignore[arg-type]
                # A name that nobody has is not found; some kinds of things are made under a name when they are written to.
                assert found.status_code in (200, 201, 303, 404, 405, 409, 422), (method, filled, found.text)
                assert method != "GET" or found.status_code in (200, 303, 404, 422), (method, filled)
                text = found.text
                assert "root:" not in text, (method, filled)
                assert PLANTED not in text, (method, filled)
                assert "1337" not in text or "7*191" not in payload, (method, filled)
                assert "a=b" not in found.headers.get("set-cookie", ""), (method, filled)
                tried += 1
    assert tried > 900


HOSTILE = (
    "%00",
    "a%00b",
    "%ff",
    "%ed%a0%80",
    "'",
    "%25",
    "_",
    "%5c",
    "\u202e",
    "0001-01-01T00:00:00+14:00",
    "9" * 39,
    "nan",
    "-inf",
)


def test_no_parameter_of_any_query_upsets_the_server(client: TestClient) -> None:
    document, tried = client.get("/v1/openapi.json").json(), 0
    for path, operations in document["paths"].items():
        names = [one["name"] for one in operations.get("get", {}).get("parameters", ()) if one["in"] == "query"]
        for name in names:
            for value in HOSTILE:
                needed = "&series=ringtrue_log_rows&from=1.0.0&identity=a"
                found = client.get(f"{re.sub(r'{.*?}', 'x', path)}?{name}={value}{needed if name not in needed else ''}")
                assert found.status_code in (200, 404, 422), (path, name, value, found.text)
                tried += 1
    assert tried > 400


@contextmanager
def listening() -> Iterator[tuple[int, list[object]]]:
    """Listen on a port of this machine and note who comes."""
    came: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        over = threading.Event()

        def accept() -> None:
            while not over.is_set():
                try:
                    line, _ = server.accept()
                except TimeoutError:
                    continue
                came.append(line.recv(200))
                line.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1], came
        finally:
            over.set()
            thread.join(10)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_no_request_makes_the_server_connect_anywhere(client: TestClient) -> None:
    with listening() as (port, came):
        address = f"http://127.0.0.1:{port}/x"
        assert _reaches(port), "the trap works"
        came.clear()
        expressions = [
            *(f"{kind}(url='{address}')" for kind in KINDS), *(f"connect('{address}')" for _ in (1,)),
            f"connect(name='{address}')", f"connect(url='{address}')", f"bm25 >> rerank(connection='{address}')",
            f"bm25 >> rerank(model='{address}')", f"dense(model='{address}')", f"dense(model='//127.0.0.1:{port}/x')",
            f"rrf(bm25, splade(model='{address}'))", f"memory(model='{address}')", f"bm25 >> mmr(model='{address}')",
        ]  # fmt: skip
        for text in expressions:
            for path, body in (
                ("/v1/search", {"query": "pool", "retriever": text, "log": False}),
                ("/v1/evaluate", {"golden": "hotel", "retriever": text}),
                ("/v1/gate", {"evaluate": {"golden": "hotel", "retriever": text}, "baseline": None}),
            ):
                found = client.post(path, json=body)
                assert found.status_code == 422, (path, text, found.text)
            page = client.post(
                "/evaluate", data={"golden": "hotel", "retriever": text, "csrf": csrf(client)}, follow_redirects=False
            )
            assert page.status_code in (400, 422), (text, page.text)
        for name in (address, f"hotel@{address}", "file:///etc/passwd"):
            for path, body in (
                ("/v1/evaluate", {"golden": name}), ("/v1/golden/shipped", {"name": name}),
                ("/v1/gate", {"run": name, "baseline": name}), ("/v1/compare", {"a": name, "b": name}),
            ):  # fmt: skip
                assert client.post(path, json=body).status_code in (404, 422), (path, name)
        for upload in _sets(address):
            content = json.dumps(upload)
            for kind in ("application/json", "application/yaml"):
                for path in ("/v1/golden", "/v1/evaluate"):
                    found = client.post(path, content=content, headers={"content-type": kind})
                    assert found.status_code < 500, (path, upload, found.text)
        xml = f"<!DOCTYPE a [<!ENTITY b SYSTEM '{address}'>]><a>&b;</a>"
        assert client.post("/v1/golden", content=xml, headers={"content-type": "application/yaml"}).status_code == 422
        assert client.get("/login", params={"next": address}, follow_redirects=False).headers["location"] == "/"
    assert came == []


def _reaches(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), 10) as line:
        line.sendall(b"here\n")
        return line.recv(1) == b""


def _sets(address: str) -> Iterator[dict[str, object]]:
    """Yield golden sets that name an address wherever a set names something."""
    queries = [{"query_id": "q1", "query_text": address, "relevant_docs": [{"doc_id": address, "grade": 2}], "source": address}]
    for name in (
        "corpus",
        "documents",
        "corpus_file",
        "qrels",
        "include",
        "extends",
        "$ref",
        "url",
        "profile",
        "embedding",
        "model",
    ):
        yield {"id": "away", "version": "1.0.0", "queries": queries, name: address}
    yield {"id": "away", "version": "1.0.0", "queries": address}
    yield {"id": address, "version": address, "queries": queries, "entities": [{"entity_id": address, "content": address}]}
