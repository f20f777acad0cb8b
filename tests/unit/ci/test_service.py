"""The service under test: ready, stopped with its children, and never mistaken for another server."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ringtrue.ci.service import AskedServers, RunningService, ServiceCommands, check_addresses, free_port, listens, running
from ringtrue.config import with_port
from ringtrue.errors import CannotDecide, InputError

SERVER = f"{sys.executable} -m http.server --bind 127.0.0.1 {{port}}"


@pytest.fixture
def start(tmp_path):
    """Start a service in an empty folder; yields it while it runs."""

    @contextmanager
    def started(serve: str, **settings: Any) -> Iterator[RunningService]:
        service = ServiceCommands(serve, **settings)
        port = service.port or free_port()
        environment = {**os.environ, "PORT": str(port)}
        with running(RunningService(service, port, tmp_path, environment, tmp_path / "log"), lambda line: None) as found:
            yield found

    return started


def alive(pid: int) -> bool:
    """Whether a process runs; a dead one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "settings",
    [{}, {"ready": "http://127.0.0.1:{port}/"}, {"ready": 'test -e ready && test -n "$PORT"'}],
    ids=["port", "url", "command"],
)
def test_a_service_is_ready_when_its_settings_say_so(start, settings, tmp_path) -> None:
    with start(f"touch ready; exec {SERVER}", **settings) as found:
        assert settings.get("ready", "").startswith("test") or listens(found.port)
    assert not listens(found.port)


def test_the_environment_names_the_port_and_a_shell_keeps_its_own_variables(start, tmp_path) -> None:
    with start(f'port=mine; echo "$PORT ${{port}}" > said; exec {SERVER}') as found:
        assert (tmp_path / "said").read_text() == f"{found.port} mine\n"


def test_the_children_of_a_service_end_with_it_also_those_that_ignore_the_signal(start, tmp_path) -> None:
    with start(f"(trap '' TERM; sleep 600) & echo $! > child; {SERVER}") as found:
        child = int((tmp_path / "child").read_text())
        assert alive(child)
    end = time.monotonic() + 60
    while alive(child) and time.monotonic() < end:
        time.sleep(0.01)
    assert not alive(child)
    assert found.process.returncode is not None


def test_a_service_in_the_background_is_ended_by_its_stop(start, tmp_path) -> None:
    serve = f"setsid {SERVER} & echo $! > pid"
    with start(serve, stop='kill "$(cat pid)"') as found:
        assert listens(found.port)
        assert found.ended() == ""
    assert not listens(found.port)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux shows the environment of processes")
def test_processes_that_leave_the_group_end_with_the_service(start, tmp_path) -> None:
    with start(f"setsid sleep 600 & echo $! > child; setsid {SERVER} & wait") as found:
        child = int((tmp_path / "child").read_text())
        assert alive(child)
    assert not alive(child)
    assert not listens(found.port)


def test_a_service_that_cannot_be_stopped_is_told(start, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("ringtrue.ci.service.PATIENCE", 0.5)
    try:
        with (
            pytest.raises(CannotDecide, match="still listens on port"),
            start(f"env -i setsid {SERVER} & echo $! > pid", stop="true"),
        ):
            pass
    finally:
        os.kill(int((tmp_path / "pid").read_text()), 9)


def test_a_service_that_ends_before_it_is_ready_is_told_with_its_last_words(start) -> None:
    with (
        pytest.raises(CannotDecide, match=r"ended with 4: no index \(before it was ready\); fix serve"),
        start("echo no index; exit 4"),
    ):
        pass


@pytest.mark.parametrize(
    ("ready", "says"),
    [
        ("", r"nothing listens; serve does not contain \{port\}"),
        ("http://127.0.0.1:{port}/", "refused"),
        ("false", "the command ended with 1"),
        ("sleep 60", "did not finish"),
    ],
)
def test_a_service_that_is_not_ready_in_time_is_told(start, ready, says) -> None:
    before = time.monotonic()
    with (
        pytest.raises(CannotDecide, match=rf"not ready after 0.3 s: .*{says}"),
        start("sleep 600", ready=ready, ready_timeout=0.3),
    ):
        pass
    assert time.monotonic() - before < 60


def test_an_error_of_the_ready_address_is_named(start) -> None:
    with (
        pytest.raises(CannotDecide, match="HTTP 404"),
        start(f"exec {SERVER}", ready="http://127.0.0.1:{port}/healthz", ready_timeout=2),
    ):
        pass


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()


@pytest.fixture
def other_server() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Healthy) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_a_server_that_was_there_before_is_never_measured(start, other_server, tmp_path) -> None:
    with (
        pytest.raises(CannotDecide, match=f"already listens on port {other_server}"),
        start("touch started", port=other_server),
    ):
        pass
    ready = f"http://127.0.0.1:{other_server}/"
    with pytest.raises(CannotDecide, match="succeeded before the service was started"), start("touch started", ready=ready):
        pass
    assert not (tmp_path / "started").exists()


def test_a_server_on_another_kind_of_address_is_seen_too() -> None:
    with socket.socket(socket.AF_INET6) as server:
        try:
            server.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
        server.listen()
        assert listens(server.getsockname()[1])


# ── which server each side asks ─────────────────────────────────────────────────────────────────────────────────────

STARTED = ServiceCommands("serve")


def http(url: str, **more: Any) -> dict[str, Any]:
    return {"kind": "http", "url": url, **more}


@pytest.mark.parametrize(
    ("head", "base"),
    [
        (http("http://localhost:8000/find"), http("http://127.0.0.1:8000/search?x=1")),
        (http("http://127.0.1.1:8000/find"), http("http://127.0.0.1:8000/find")),
        (http("https://shop.example.com/find"), http("https://SHOP.example.com:443/find")),
        (http("http://localhost:{port}/find", port=8000), http("http://localhost:8000/find")),
        ({"kind": "milvus", "uri": "http://m:19530"}, {"kind": "milvus", "uri": "http://m:19530"}),
        ({"kind": "pgvector", "dsn_env": "DSN"}, {"kind": "postgres", "dsn_env": "DSN"}),
        ({"kind": "chroma", "collection": "a"}, http("http://localhost:8000")),
    ],
)
def test_one_address_for_both_sides_is_refused_unless_it_is_shared(head, base) -> None:
    sides = AskedServers({"search": head}), AskedServers({"other": base})
    with pytest.raises(CannotDecide, match=r"connection 'search' asks .* on both sides"):
        check_addresses(*sides, shared=False)
    check_addresses(*sides, shared=True)
    check_addresses(sides[0], None, shared=False)


@pytest.mark.parametrize(
    ("head", "base"),
    [
        (http("http://localhost:8000/find"), http("http://localhost:8001/find")),
        ({"kind": "command", "command": ["find"]}, {"kind": "command", "command": ["find"]}),
        ({"kind": "sqlite", "file": "a"}, {"kind": "sqlite", "file": "a"}),
        ({"kind": "mcp", "command": ["serve"]}, {"kind": "mcp", "command": ["serve"]}),
    ],
)
def test_servers_and_programs_of_their_own_are_fine(head, base) -> None:
    check_addresses(AskedServers({"search": head}), AskedServers({"search": base}), shared=False)


def test_a_service_that_is_started_for_each_side_is_fine_and_must_be_asked() -> None:
    ours, theirs = http("http://localhost:{port}/find"), http("https://vectors.example.com")
    side = AskedServers({"search": ours}, STARTED)
    check_addresses(side, side, shared=False)
    fixed = AskedServers({"search": http("http://localhost:80")}, ServiceCommands("serve", port=80))
    check_addresses(fixed, fixed, shared=False)
    both = AskedServers({"search": ours, "vectors": theirs}, STARTED)
    check_addresses(both, None, shared=False)
    with pytest.raises(CannotDecide, match=r"'vectors' asks vectors\.example\.com:443 on both sides"):
        check_addresses(both, both, shared=False)
    with pytest.raises(CannotDecide, match="not the service that"):
        check_addresses(AskedServers({"vectors": theirs}, STARTED), None, shared=False)


def test_the_port_of_a_connection_comes_from_the_environment_or_from_the_setting_beside_it(monkeypatch) -> None:
    settings = {"url": "http://localhost:{port}/find", "lookup": {"url": "http://localhost:{port}/{id}"}, "port": 8000}
    monkeypatch.delenv("RINGTRUE_PORT", raising=False)
    assert with_port(settings, "connection 'a'") == {
        "url": "http://localhost:8000/find",
        "lookup": {"url": "http://localhost:8000/{id}"},
    }
    monkeypatch.setenv("RINGTRUE_PORT", "9000")
    assert with_port(settings, "connection 'a'")["url"] == "http://localhost:9000/find"
    monkeypatch.setenv("RINGTRUE_PORT", "http")
    with pytest.raises(InputError, match="'http' is not a port"):
        with_port(settings, "connection 'a'")
    monkeypatch.delenv("RINGTRUE_PORT")
    with pytest.raises(InputError, match=r"connection 'a': no port for \{port\}; add port = 8000"):
        with_port({"url": "http://localhost:{port}"}, "connection 'a'")
    assert with_port({"kind": "postgres", "port": 5432}, "x") == {"kind": "postgres", "port": 5432}
