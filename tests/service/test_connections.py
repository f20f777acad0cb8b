"""Connections that bring nothing take nothing from others, and whatever is refused is refused in the one shape."""

from __future__ import annotations

import json
import resource
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from ringtrue.service import connections
from ringtrue.service.connections import for_server
from ringtrue.service.server import KEPT_FREE, _connections
from ringtrue.store import Store
from running_service import running
from service_process import serving_alone

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
BODY_TO_COME = b"POST /v1/feedback HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
PROMPT_S = 60.0
"""Within so long everything here happens that does not wait for the server's own limit."""
Connect = Callable[[], socket.socket]


@contextmanager
def server(folder: Path, **limits: int) -> Iterator[Connect]:
    """Serve with connections as ``ringtrue serve`` has them; yields what makes one."""
    with running(folder, connections=lambda _: for_server(**limits)) as found, ExitStack() as opened:  # type: ignore[arg-type]
        port = int(found.url.rpartition(":")[2])
        yield lambda: opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PROMPT_S))


def answered(line: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of the next answer."""
    got = b""
    while b"\r\n\r\n" not in got:
        part = line.recv(65_536)
        assert part, "hung up without a word"
        got += part
    head, _, body = got.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(one.split(": ", 1) for one in lines)
    while len(body) < int(headers["content-length"]):
        body += line.recv(65_536)
    return int(first.split()[1]), headers, body


def ask(line: socket.socket, request: bytes = HEALTH) -> int:
    line.sendall(request)
    return answered(line)[0]


def over(line: socket.socket) -> bool:
    """True if the server has hung up, without a word."""
    if not select.select([line], [], [], 0)[0]:
        return False
    try:
        return line.recv(1) == b""
    except ConnectionResetError:
        return True


def eventually(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + PROMPT_S
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def told(answer: tuple[int, dict[str, str], bytes], status: int, code: str) -> None:
    """The answer is a refusal in the one shape, with the headers of all answers."""
    found, headers, body = answer
    problem = json.loads(body)["error"]
    assert (found, problem["code"]) == (status, code)
    assert set(problem) == {"code", "message", "field", "request_id"}
    assert problem["request_id"] == headers["x-request-id"]
    assert headers["content-type"] == "application/json"
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"


def test_a_connection_that_brings_no_head_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 5.0)
    with server(tmp_path) as connect:
        kept, again, behind = connect(), connect(), connect()
        assert ask(kept) == ask(again) == 200
        assert ask(behind, BODY_TO_COME.replace(b": 9", b": 999999999")) == 413
        silent, half = connect(), connect()
        half.sendall(b"GET /healthz HTTP/1.1\r\nHost")
        assert eventually(lambda: over(silent))
        told(answered(half), 408, "too_slow")
        assert over(half)
        again.sendall(b"GET /heal")
        told(answered(again), 408, "too_slow")
        assert eventually(partial(_dripped, behind, b"x")), "the rest of a body that nobody wanted"
        assert not over(kept), "between two requests there is more time"
        assert ask(kept) == 200
        assert eventually(partial(_dripped, kept, b"\r\n")), "empty lines are not a head"


def _dripped(line: socket.socket, letters: bytes) -> bool:
    """Send a little more; return whether the server has hung up."""
    try:
        line.sendall(letters)
    except OSError:
        return True
    time.sleep(0.05)
    return over(line)


def test_a_request_that_is_whole_may_take_longer_than_its_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.5)
    monkeypatch.setattr(Store, "flags", lambda self, **given: time.sleep(1.5) or [])
    with server(tmp_path) as connect:
        assert ask(connect(), HEALTH.replace(b"/healthz", b"/v1/flags")) == 200
        late = connect()
        late.sendall(BODY_TO_COME)
        time.sleep(1.0)
        assert ask(late, b'{"a": 1 }') == 422, "nor is its body bound by that"


def test_silent_connections_give_way_to_those_that_ask(tmp_path: Path) -> None:
    with server(tmp_path, most=20) as connect:
        asking = connect()
        assert ask(asking) == 200
        silent = [connect() for _ in range(60)]
        assert ask(connect()) == 200
        assert eventually(lambda: sum(map(over, silent)) >= 41)
        assert not over(silent[-1]), "the newest stays"
        assert over(silent[0])


def test_requests_that_do_not_arrive_give_way_to_those_that_do(tmp_path: Path) -> None:
    with server(tmp_path, most=5) as connect:
        slow = [connect() for _ in range(20)]
        for one in slow:
            one.sendall(BODY_TO_COME)
        assert eventually(lambda: sum(map(over, slow)) >= 14)
        assert ask(connect()) == 200
        assert ask(slow[-1], b'{"a": 1 }') == 422, "the newest goes on"


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x02\x00", b"GET / HTTP/9\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n"])
def test_what_is_no_http_is_told_so_in_the_one_shape(tmp_path: Path, garbage: bytes) -> None:
    with server(tmp_path) as connect:
        line = connect()
        line.sendall(garbage)
        told(answered(line), 400, "bad_request")
        assert eventually(lambda: over(line))


def test_a_head_that_does_not_end_is_not_collected(tmp_path: Path) -> None:
    with server(tmp_path) as connect:
        line = connect()
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        for n in range(80):
            if over_or_told(line):
                break
            line.sendall(b"x-%d: %s\r\n" % (n, b"y" * 1_000))
            time.sleep(0.005)
        told(answered(line), 431, "too_large")


def over_or_told(line: socket.socket) -> bool:
    return bool(select.select([line], [], [], 0)[0])


def test_a_thousand_silent_connections_take_nothing_from_others(tmp_path: Path) -> None:
    """As it was found: 1,010 connections without a key or a word, and nobody else was answered."""
    given, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    if highest != resource.RLIM_INFINITY and highest < 2_000:
        pytest.skip(f"only {highest} files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(given, 2_000), highest))
    try:
        with serving_alone(tmp_path, keys=True) as alone, ExitStack() as opened:
            for _ in range(1_100):
                opened.enter_context(socket.create_connection(("127.0.0.1", alone.port), timeout=PROMPT_S))
            key = {"Authorization": f"Bearer {alone.key('read')}"}
            for _ in range(3):
                with urlopen(Request(f"{alone.url}/v1/flags", headers=key), timeout=PROMPT_S) as answer:
                    assert answer.status == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (given, highest))


def test_there_are_no_more_connections_than_files(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [1_024, 2_000]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", lambda _, given: limits.__setitem__(slice(None), given))
    assert _connections(500) == 500
    assert limits[0] == 1_024, "enough"
    assert _connections(4_000) == 2_000 - KEPT_FREE
    assert limits == [2_000, 2_000], "as many as may be had"
