"""Programs that log searches over connections that they keep: in pieces, in a row, without a key, too often, until the end."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from ringtrue.service import Settings
from ringtrue.service.app import create_app
from ringtrue.service.connections import for_server
from ringtrue.store import Store

ONE = {"query": "late checkout", "tool_name": "web", "result_ids": ["a", "b"], "scores": [0.9, 0.5], "total_latency_ms": 20}
NAMED = {**ONE, "query_id": "eq_named"}


class Answer:
    """One answer as it came over the wire."""

    def __init__(self, head: bytes, body: bytes) -> None:
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = dict(line.split(": ", 1) for line in lines[1:])
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """A connection on which requests are written letter by letter."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.rest = b""

    def request(self, body: bytes, *, path: str = "/v1/queries", key: str | None = None, **more: str) -> bytes:
        headers = {"Host": f"127.0.0.1:{self.port}", "Content-Type": "application/json", "Content-Length": str(len(body))}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body

    def answer(self) -> Answer:
        while b"\r\n\r\n" not in self.rest:
            self.rest += self._more()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 100 "):
            return self.answer()
        length = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
        while len(self.rest) < length:
            self.rest += self._more()
        body, self.rest = self.rest[:length], self.rest[length:]
        return Answer(head, body)

    def _more(self) -> bytes:
        got = self.socket.recv(65536)
        assert got, "the server closed the connection"
        return got

    def ask(self, body: Any, **more: Any) -> Answer:
        self.socket.sendall(self.request(body if isinstance(body, bytes) else json.dumps(body).encode(), **more))
        return self.answer()

    @property
    def closed(self) -> bool:
        return self.socket.recv(1) == b""


class Running:
    """A server with the connections of ``ringtrue serve``."""

    def __init__(self, server: Any, store: Path) -> None:
        self.server, self.store = server, store
        self.port = server.servers[0].sockets[0].getsockname()[1]
        self.wires: list[Wire] = []

    def wire(self) -> Wire:
        self.wires.append(Wire(self.port))
        return self.wires[-1]

    def stop(self) -> None:
        """Tell the server to stop."""
        self.server.should_exit = True

    def hang_up(self) -> None:
        while self.wires:
            self.wires.pop().socket.close()

    def stored(self) -> list[str]:
        with Store.open(self.store) as store:
            return [row.query_id for row in store.queries()]


@contextmanager
def serving(folder: Path, **settings: Any) -> Iterator[Running]:
    chosen = Settings(store=str(folder / "store.sqlite"), **settings)
    app = create_app(chosen)
    server = uvicorn.Server(uvicorn.Config(app, http=for_server(), port=0, log_level="error", server_header=False))
    ready = threading.Event()
    startup = server.startup

    async def announced(sockets: Any = None) -> None:
        await startup(sockets)
        ready.set()

    server.startup = announced
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert ready.wait(60)
        found = Running(server, folder / "store.sqlite")
        yield found
    finally:
        found.hang_up()
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("log")) as found:
        yield found


@pytest.fixture
def server(shared: Running) -> Iterator[Running]:
    yield shared
    shared.hang_up()


def test_one_connection_serves_many_and_a_body_may_come_in_pieces(server: Running) -> None:
    wire = server.wire()
    for _ in range(3):
        assert wire.ask(ONE).status == 201
    message = wire.request(json.dumps(ONE).encode())
    for place in range(0, len(message), 40):
        wire.socket.sendall(message[place : place + 40])
        time.sleep(0.002)
    assert wire.answer().status == 201
    other = wire.request(b"", path="/healthz").replace(b"POST", b"GET", 1)
    wire.socket.sendall(other)
    assert wire.answer().json == {"status": "ok"}
    assert wire.ask(ONE).status == 201


def test_requests_in_a_row_are_answered_in_their_order(server: Running) -> None:
    wire = server.wire()
    names = [f"eq_row_{number}" for number in range(6)]
    bodies = [json.dumps({**ONE, "query_id": name}).encode() for name in names]
    health = wire.request(b"", path="/healthz").replace(b"POST", b"GET", 1)
    wire.socket.sendall(b"".join(wire.request(body) for body in bodies[:3]) + health + b"".join(map(wire.request, bodies[3:])))
    found = [wire.answer() for _ in range(7)]
    assert found[3].json == {"status": "ok"}
    assert [one.json["query_ids"] for one in found[:3] + found[4:]] == [[name] for name in names]
    assert set(names) <= set(server.stored())


def test_who_hangs_up_does_not_disturb_the_others(server: Running) -> None:
    for _ in range(20):
        wire = server.wire()
        wire.socket.sendall(wire.request(json.dumps(ONE).encode()))
        wire.socket.close()
        half = server.wire()
        half.socket.sendall(half.request(json.dumps(ONE).encode())[:-5])
        half.socket.close()
    assert server.wire().ask(ONE).status == 201


def test_keys_are_asked_for_and_a_revoked_one_stops_within_a_second(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.sqlite") as store:
        made, write = store.create_key("app", ["write"], project="shop", now="2026-03-01T12:00:00Z")
        _, read = store.create_key("eye", ["read"], project="shop", now="2026-03-01T12:00:00Z")
    with serving(tmp_path, keys=True) as server:
        wire = server.wire()
        assert wire.ask(ONE).status == 401
        assert wire.ask(ONE, key=read).status == 403
        assert wire.ask(ONE, key=read).status == 403
        asked = 0
        until = time.monotonic() + 2.5  # longer than a key is believed: it is looked up again meanwhile
        while time.monotonic() < until or asked <= 20:
            found = wire.ask(ONE, key=write)
            assert found.status == 201
            asked += 1
        with Store.open(tmp_path / "store.sqlite") as store:
            assert (len(store.queries(project="shop")), store.queries()) == (asked, [])
            assert store.revoke_key(made.key_id, project="shop", now="2026-03-01T12:00:00Z")
        time.sleep(1.1)
        assert wire.ask(ONE, key=write).status == 401


def test_too_many_are_told_so(tmp_path: Path) -> None:
    from ringtrue.service.settings import Rates

    with serving(tmp_path, rates=Rates(log=2.0)) as server:
        wire = server.wire()
        found = [wire.ask(ONE) for _ in range(40)]
        assert {one.status for one in found} == {201, 429}
        late = next(one for one in found if one.status == 429)
        assert int(late.headers["retry-after"]) >= 1
        assert late.json["error"]["code"] == "too_many_requests"


def test_the_end_answers_who_waits_and_hangs_up(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        idle, wires = server.wire(), [server.wire() for _ in range(8)]
        assert idle.ask(ONE).status == 201
        names = [f"eq_end_{number}" for number in range(8)]
        for wire, name in zip(wires, names, strict=True):
            wire.socket.sendall(wire.request(json.dumps({**ONE, "query_id": name}).encode()))
        server.stop()
        found = [wire.answer() for wire in wires]
        assert idle.closed
        told = {name for one, name in zip(found, names, strict=True) if one.status == 201}
        assert {one.status for one in found} <= {201, 503}
        assert told
        assert told <= set(server.stored())


def test_requests_and_searches_are_counted(tmp_path: Path) -> None:
    def counted(wire: Wire) -> tuple[float, float]:
        wire.socket.sendall(wire.request(b"", path="/metrics").replace(b"POST", b"GET", 1))
        text = wire.answer().body.decode()
        labels = r'[^}]*method="POST"[^}]*route="/v1/queries"[^}]*status="201"'
        requests = re.search(rf"ringtrue_http_request_duration_seconds_count\{{{labels}\}} ([\d.]+)", text)
        searches = re.search(r"ringtrue_search_latency_seconds_count\{[^}]*\} ([\d.]+)", text)
        return tuple(float(found[1]) if found else 0.0 for found in (requests, searches))  # type: ignore[return-value]

    with serving(tmp_path) as server:
        assert server.wire().ask(ONE).status == 201
        assert server.wire().ask([ONE, ONE, {**ONE, "total_latency_ms": None}]).status == 201
        wire, until = server.wire(), time.monotonic() + 60
        while counted(wire) != (2.0, 3.0) and time.monotonic() < until:
            time.sleep(0.05)
        assert counted(wire) == (2.0, 3.0)
