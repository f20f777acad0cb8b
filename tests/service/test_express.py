"""W-3: a plain search is taken from the connection itself, which nobody can tell; anything else goes the usual way."""

from __future__ import annotations

import json
import os
import re
import signal
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
from ringtrue.service.express import for_server
from ringtrue.service.plain import LARGEST, read_head
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
    def by(self) -> str:
        """Which process answered: each has its own beginning of request ids."""
        return self.headers.get("x-request-id", "").partition("-")[0]

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
    """A server as ``ringtrue serve`` runs it, with its writer in a process of its own."""

    def __init__(self, server: Any, app: Any, store: Path) -> None:
        self.server, self.app, self.store = server, app, store
        self.port = server.servers[0].sockets[0].getsockname()[1]
        self.wires: list[Wire] = []
        health = self.wire()
        health.socket.sendall(health.request(b"", path="/healthz").replace(b"POST", b"GET", 1))
        self.main = health.answer().by

    def short(self, answer: Answer) -> bool:
        """True where an answer came from the process that writes."""
        return answer.by not in ("", self.main)

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
    chosen = Settings(store=str(folder / "store.sqlite"), **{"writer": "process", **settings})
    app = create_app(chosen)
    server = uvicorn.Server(uvicorn.Config(app, http=for_server(app), port=0, log_level="error", server_header=False))
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
        found = Running(server, app, folder / "store.sqlite")
        yield found
    finally:
        found.hang_up()
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("express")) as found:
        yield found


@pytest.fixture
def server(shared: Running) -> Iterator[Running]:
    yield shared
    shared.hang_up()


def test_w3_a_plain_search_takes_the_short_way_and_is_stored_when_it_is_answered(server: Running) -> None:
    found = server.wire().ask(ONE)
    assert found.status == 201
    assert (found.json["accepted"], found.json["stored"]) == (1, 1)
    assert found.json["query_ids"][0] in server.stored()
    assert server.short(found)


def _plain(answer: Answer) -> tuple[int, str, set[str]]:
    """An answer without what is drawn anew each time."""
    text = re.sub(r"eq_\d+_\w+|\"request_id\":\"[\w-]+\"|\"stored\":\d", "", answer.body.decode())
    return answer.status, text, set(answer.headers)


def test_a_marked_search_takes_the_usual_way_and_is_no_users_search(server: Running) -> None:
    wire = server.wire()
    marked = wire.ask({**ONE, "query_id": "eq_marked"}, Ringtrue_Traffic="evaluation")
    assert (marked.status, server.short(marked)) == (201, False)
    short = server.wire().ask({**ONE, "query_id": "eq_marked_in_its_body", "traffic": "gate"})
    assert (short.status, server.short(short)) == (201, True)
    assert not {"eq_marked", "eq_marked_in_its_body"} & set(server.stored())
    with Store.open(server.store) as store:
        assert [row.traffic for row in store.queries(query_ids=["eq_marked", "eq_marked_in_its_body"])] == [
            "evaluation",
            "gate",
        ]


BODIES = [
    json.dumps(ONE), json.dumps(NAMED), json.dumps([ONE, {**ONE, "query_id": "eq_two"}]), "{", "[]", "{}", "null", '"a"',
    json.dumps({**ONE, "scores": [None]}), json.dumps({**ONE, "nobody": 1}), json.dumps({**ONE, "query_id": ""}),
    json.dumps([ONE] * 1001), json.dumps({**ONE, "created_at": "yesterday"}), json.dumps({**ONE, "query": "\ud800"}), "\x00",
    json.dumps({**ONE, "total_latency_ms": -1}), " " + json.dumps(ONE) + "\n",
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_both_ways_answer_alike(server: Running, body: str) -> None:
    wire = server.wire()
    short = wire.ask(body.encode())
    assert server.short(short)
    usual = wire.ask(body.encode(), X_Forwarded_Nothing="1")  # a header nobody knows is reason enough to look closer
    assert not server.short(usual)
    assert _plain(short) == _plain(usual)
    assert short.status in {201, 400, 422}


@pytest.mark.parametrize(
    "more",
    [
        {"path": "/v1/queries?x=1"}, {"path": "/v1/feedback"}, {"Content_Type": "text/plain"}, {"Content_Encoding": "gzip"},
        {"Idempotency_Key": "a"}, {"Origin": "http://evil.example"}, {"Host": "evil.example"}, {"Expect": "100-continue"},
        {"Connection": "close"}, {"X_Forwarded_For": "10.0.0.1"}, {"Cookie": "a=b"}, {"Transfer_Encoding": "identity"},
        {"Authorization": "Bearer rt_nobody"}, {"Authorization": "Basic YTpi"},
    ],
    ids=str,
)  # fmt: skip
def test_whatever_is_not_plain_goes_the_usual_way(server: Running, more: dict[str, str]) -> None:
    wire = server.wire()
    wire.socket.sendall(wire.request(json.dumps(ONE).encode(), **more))
    assert not server.short(wire.answer())


def test_a_large_body_goes_the_usual_way(server: Running) -> None:
    large = json.dumps([{**ONE, "query": "q" * 60_000}] * 6).encode()
    assert len(large) > LARGEST
    found = server.wire().ask(large)
    assert (found.status, server.short(found)) == (201, False)


def test_one_connection_serves_many_and_a_body_may_come_in_pieces(server: Running) -> None:
    wire = server.wire()
    for _ in range(3):
        assert server.short(wire.ask(ONE))
    message = wire.request(json.dumps(ONE).encode())
    for place in range(0, len(message), 40):
        wire.socket.sendall(message[place : place + 40])
        time.sleep(0.002)
    pieces = wire.answer()
    assert (pieces.status, server.short(pieces)) == (201, True)
    other = wire.request(b"", path="/healthz").replace(b"POST", b"GET", 1)
    wire.socket.sendall(other)
    assert wire.answer().json == {"status": "ok"}
    assert not server.short(wire.ask(ONE)), "once it did something else, a connection stays"


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


def test_v4_keys_are_asked_for_and_a_revoked_one_stops_within_a_second(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.sqlite") as store:
        made, write = store.create_key("app", ["write"], project="shop", now="2026-03-01T12:00:00Z")
        _, read = store.create_key("eye", ["read"], project="shop", now="2026-03-01T12:00:00Z")
    with serving(tmp_path, keys=True) as server:
        wire = server.wire()
        assert wire.ask(ONE).status == 401
        assert wire.ask(ONE, key=read).status == 403
        assert wire.ask(ONE, key=read).status == 403
        wire, asked = server.wire(), 0  # a connection that was given back stays
        until = time.monotonic() + 2.5  # longer than a key is believed: it is looked up again meanwhile
        while time.monotonic() < until or asked <= 20:
            found = wire.ask(ONE, key=write)
            assert (found.status, server.short(found)) == (201, True)
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
        assert server.short(late)
        assert late.json["error"]["code"] == "too_many_requests"


def test_a_writer_that_dies_takes_its_connections_along_and_another_takes_over(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        wire = server.wire()
        assert server.short(wire.ask(ONE))
        child = server.app.state.service.intake._child
        os.kill(child.pid, signal.SIGKILL)
        assert wire.closed
        until = time.monotonic() + 60
        while time.monotonic() < until:
            found = server.wire().ask(ONE)
            if found.status == 201 and server.short(found):
                break
            assert found.status in {201, 503}
            time.sleep(0.1)
        assert server.short(found)


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


def test_w3_a_page_or_a_job_that_computes_does_not_hold_up_those_who_log(server: Running) -> None:
    wire = server.wire()
    assert server.short(wire.ask(ONE))
    stuck, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        stuck.set()
        go_on.wait(60)

    loop = server.app.state.service.intake._loop
    loop.call_soon_threadsafe(hold)  # the server's own loop stands still
    try:
        assert stuck.wait(60)
        found = [wire.ask(ONE) for _ in range(5)]
    finally:
        go_on.set()
    assert [one.status for one in found] == [201] * 5


def test_v2_the_short_way_is_counted_like_the_usual_one(tmp_path: Path) -> None:
    def counted(wire: Wire) -> tuple[float, float]:
        wire.socket.sendall(wire.request(b"", path="/metrics").replace(b"POST", b"GET", 1))
        text = wire.answer().body.decode()
        labels = r'[^}]*method="POST"[^}]*route="/v1/queries"[^}]*status="201"'
        requests = re.search(rf"ringtrue_http_request_duration_seconds_count\{{{labels}\}} ([\d.]+)", text)
        searches = re.search(r"ringtrue_search_latency_seconds_count\{[^}]*\} ([\d.]+)", text)
        return tuple(float(found[1]) if found else 0.0 for found in (requests, searches))  # type: ignore[return-value]

    with serving(tmp_path) as server:
        assert server.short(server.wire().ask(ONE))
        assert server.short(server.wire().ask([ONE, ONE, {**ONE, "total_latency_ms": None}]))
        wire, until = server.wire(), time.monotonic() + 60
        while counted(wire) != (2.0, 3.0) and time.monotonic() < until:
            time.sleep(0.05)
        assert counted(wire) == (2.0, 3.0)


HEAD = b"POST /v1/queries HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2"


def test_v4_only_the_plainest_head_is_plain() -> None:
    ours = frozenset({"localhost"})
    found = read_head(HEAD, ours)
    assert found is not None
    assert (found.length, found.shown) == (2, None)
    keyed = read_head(HEAD + b"\r\nAuthorization: Bearer rt_x", ours)
    assert keyed is not None
    assert keyed.shown == "Bearer rt_x"
    for more in (
        b"Content-Length: 3", b"Transfer-Encoding: chunked", b" folded: 1", b"\tfolded", b"Cookie: a", b"nothing", b"", b": a",
        b"Accept : a", b"Accept: a\nX: b", b"Accept: a\rb", b"Accept: a\0b", b"Connection: close", b"Connection: upgrade",
        b"Authorization: Basic x", b"Authorization: bearer rt_x", b"Origin: null", b"Content-Encoding: gzip",
    ):  # fmt: skip
        assert read_head(HEAD + b"\r\n" + more, ours) is None, more
    for old, new in (
        (b"POST", b"GET"), (b"/v1/queries", b"/v1/queries/"), (b"HTTP/1.1", b"HTTP/1.0"), (b"localhost", b"evil.example"),
        (b"Length: 2", b"Length: +2"), (b"Length: 2", b"Length: 2 2"), (b"Length: 2", b"Length: "),
        (b"Length: 2", b"Length: 9999999"),
        (b"Length: 2", "Length: ²".encode()), (b"application/json", b"application/jsonp"), (b"Host: localhost\r\n", b""),
    ):  # fmt: skip
        assert read_head(HEAD.replace(old, new), ours) is None, new


def test_with_the_writer_in_a_thread_everything_goes_the_usual_way(tmp_path: Path) -> None:
    with serving(tmp_path, writer="thread") as server:
        found = server.wire().ask(ONE)
        assert (found.status, server.short(found)) == (201, False)
