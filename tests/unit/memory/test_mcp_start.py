"""The MCP server as a host starts it: the first answers at once, the others from the SDK, and an end when it is told to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from made_memories import memory
from ringtrue.memory.hook.files import write
from ringtrue.memory.hook.journal import events
from ringtrue.memory.mcp_start import ANSWERS, FirstAnswers

CLIENT = {"name": "test", "version": "1"}
GREETING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}
META = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": CLIENT,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
SEARCH = {"name": "memory_search", "arguments": {"query": "sessions"}}


def line(method: str, params: Any = None, **more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}, **more}).encode() + b"\n"


class Server:
    """A running server, spoken to line by line."""

    def __init__(self, project: Path, *command: str) -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": str(project), "CLAUDE_CODE_SESSION_ID": "the-session"}
        self.process = subprocess.Popen(
            [sys.executable, *command], cwd=project, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def say(self, method: str, params: Any = None) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line(method, params))
        self.process.stdin.flush()

    def ask(self, method: str, params: Any = None, name: Any = None) -> dict[str, Any]:
        """Return the whole answer; every line in between would be a second answer to something."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line(method, params, id=name or method))
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == (name or method)
        return dict(answer)


START = ("-P", "-m", "ringtrue.memory.mcp_start")
Start = Callable[..., Server]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    write(str(tmp_path / ".claude" / "memory"), memory("jwt", "Sessions are signed JWT", "stateless authentication"))
    running: list[Server] = []

    def begin(*command: str) -> Server:
        running.append(Server(tmp_path, *(command or START)))
        return running[-1]

    yield begin
    for server in running:
        server.process.kill()
        with server.process:  # closes its pipes
            pass


@pytest.mark.parametrize("command", [START, ("-m", "ringtrue", "memory", "mcp")])
def test_a_session_of_the_handshake_goes_on_where_the_first_answers_end(start: Start, tmp_path: Path, command: Any) -> None:
    server = start(*command)
    greeted = server.ask("initialize", GREETING)["result"]
    assert greeted["protocolVersion"] == "2025-06-18"
    assert greeted["capabilities"] == {"tools": {"listChanged": False}}
    server.say("notifications/initialized")
    tools = server.ask("tools/list")["result"]["tools"]
    found = server.ask("tools/call", SEARCH)["result"]["structuredContent"]
    assert [one["id"] for one in found["results"]] == ["jwt"]
    assert server.ask("tools/list", name="again")["result"]["tools"] == tools  # now from the SDK
    assert server.ask("prompts/list")["error"]["code"] == -32601
    assert [event["session_id"] for event in events(str(tmp_path / ".claude" / "memory"))] == ["the-session"]


def test_a_session_of_the_newest_protocol_does_so_too(start: Start) -> None:
    server = start()
    discovered = server.ask("server/discover", META)["result"]
    assert discovered["supportedVersions"] == ["2026-07-28"]
    assert discovered["capabilities"] == {"tools": {"listChanged": False}}
    first = server.ask("tools/list", META)["result"]
    found = server.ask("tools/call", {**SEARCH, **META})["result"]
    assert [one["id"] for one in found["structuredContent"]["results"]] == ["jwt"]
    assert server.ask("tools/list", META, name="again")["result"] == first
    assert server.ask("server/discover", META, name="more")["result"] == discovered


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("initialize", {}),
        ("initialize", {**GREETING, "clientInfo": None}),
        ("server/discover", {}),
        ("tools/list", {}),
        ("tools/list", {"cursor": "x"}),
        ("tools/list", []),
        ("ping", {}),
    ],
)
def test_what_is_unusual_is_left_to_the_sdk(method: str, params: Any) -> None:
    answers = FirstAnswers(json.loads(ANSWERS.read_bytes()))
    assert answers.to(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()) is None
    assert answers.to(b"{not json\n") is None
    assert answers.to(b'{"id": 1, "method": "ping"}\n') is None


def test_the_first_answers_need_neither_the_sdk_nor_pydantic() -> None:
    code = "import sys, ringtrue.memory.mcp_start; print(*{'mcp', 'mcp_types', 'pydantic', 'numpy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""


def test_the_tools_are_listed_within_250_ms_of_the_start(start: Start) -> None:
    took = []
    for _ in range(5):
        began = time.perf_counter()
        server = start()
        server.ask("initialize", GREETING)
        server.say("notifications/initialized")
        server.ask("tools/list")
        took.append(time.perf_counter() - began)
        server.process.kill()
    assert min(took) < 0.25, took


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("loaded", [False, True])
def test_a_signal_ends_it_while_it_waits_for_a_line(start: Start, number: int, loaded: bool) -> None:
    server = start()
    server.ask("initialize", GREETING)
    if loaded:
        server.ask("ping")
    server.process.send_signal(number)
    assert server.process.wait(30) == 128 + number


def test_the_end_of_the_input_ends_it(start: Start) -> None:
    for loaded in (False, True):
        server = start()
        server.ask("initialize", GREETING)
        if loaded:
            server.ask("ping")
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert server.process.wait(30) == 0


def test_a_module_in_the_project_is_not_taken_for_ours(start: Start, tmp_path: Path) -> None:
    for name in ("anyio", "json", "ringtrue"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('somebody else')")
    server = start()
    server.ask("initialize", GREETING)
    server.say("notifications/initialized")
    assert "result" in server.ask("tools/call", SEARCH)
