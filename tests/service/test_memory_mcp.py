"""The MCP server as hosts run it: the installed program over stdio and over HTTP, asked by the official client."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from connectors.faults import free_port
from made_memories import memory, store
from ringtrue.memory.engine import documents_of
from ringtrue.memory.hook.cache import open_index
from ringtrue.memory.hook.files import load, write
from ringtrue.memory.hook.settings import Settings
from ringtrue.retrieve import Collection

PROGRAM = Path(sys.executable).parent / "ringtrue"
QUESTIONS = ("invoice refund", "cursor webhook timeouts", "how are tenant sessions cached", "rollback of a migration")
TOKEN = "a-token-made-for-this-test"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    store(folder / ".claude" / "memory", 60)
    return folder


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RINGTRUE", "CLAUDE"))}
    return {**kept, **more}


def over_stdio(folder: Path, ask: Callable[[Client], Awaitable[Any]], **more: str) -> Any:
    server = StdioServerParameters(
        command=str(PROGRAM), args=["memory", "mcp"], cwd=str(folder), env=environment(CLAUDE_PROJECT_DIR=str(folder), **more)
    )

    async def run() -> Any:
        async with Client(server, read_timeout_seconds=120) as client:
            return await ask(client)

    return asyncio.run(run())


@contextmanager
def listening(folder: Path, *options: str, host: str = "127.0.0.1", **more: str) -> Iterator[int]:
    """Run the server on a free port until the test is done; it must end when it is told to."""
    port = free_port()
    process = subprocess.Popen(
        [PROGRAM, "memory", "mcp", "--http", f"{host}:{port}", *options],
        cwd=folder, env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline, "the server does not listen"
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield port
    finally:
        process.send_signal(signal.SIGINT)
        try:
            out, _ = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
    assert out == ""


def over_http(port: int, ask: Callable[[Client], Awaitable[Any]], token: str = "") -> Any:
    async def run() -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx2.AsyncClient(headers=headers, timeout=120) as web:
            transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=web)
            async with Client(transport, read_timeout_seconds=120) as client:
                return await ask(client)

    return asyncio.run(run())


async def ranked(client: Client, text: str, **options: Any) -> list[tuple[str, float]]:
    result = await client.call_tool("memory_search", {"query": text, "k": 10, **options})
    assert not result.is_error, result.content
    return [(one["id"], one["score"]) for one in result.structured_content["results"]]


def post(port: int, *, host: str | None = None, **headers: str) -> int:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.putrequest("POST", "/mcp", skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{port}")
        for name, value in {"Accept": "application/json, text/event-stream", **headers}.items():
            connection.putheader(name, value)
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body.encode())
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_same_ranking_from_the_server_the_hooks_index_and_the_expression(project: Path, tmp_path: Path) -> None:
    root, now = str(project / ".claude" / "memory"), time.time()
    collection = Collection.create(tmp_path / "documents")
    collection.ingest(documents_of(load(root, Settings()).memories))
    pairs = [(strategy, text) for strategy in ("fts5_bm25", "title_tags", "hybrid") for text in QUESTIONS]
    expected = {
        (strategy, text): [(hit.doc_id, hit.score) for hit in collection.retriever(f"memory('{strategy}')").search(text, k=10)]
        for strategy, text in pairs
    }
    index = open_index(root, Settings())
    for strategy, text in pairs:
        if strategy != "hybrid":
            found = index.on_demand(text, k=10, now=now, strategy=strategy)
            assert [(one.memory.id, one.score) for one in found] == expected[strategy, text]

    async def ask(client: Client) -> dict[tuple[str, str], list[tuple[str, float]]]:
        # Each question in a session of its own: what was said before lifts what is near to it.
        return {pair: await ranked(client, pair[1], strategy=pair[0], session_id=" ".join(pair)) for pair in pairs}

    answers = over_stdio(project, ask)
    for strategy, text in pairs:
        hits = expected[strategy, text]
        assert [name for name, _ in answers[strategy, text]] == [name for name, _ in hits]
        assert [score for _, score in answers[strategy, text]] == pytest.approx([score for _, score in hits], abs=1e-6)


def test_a_whole_task_over_stdio_and_the_hosts_session_is_the_servers(tmp_path: Path) -> None:
    async def ask(client: Client) -> list[Any]:
        calls = [
            ("memory_save", {"category": "decision", "title": "Sessions are signed JWT", "content": {"decision": "stateless"}}),
            ("task_preflight", {"task_id": "login", "knowledge": 0.1, "uncertainty": 0.9}),
            ("memory_context", {"prompt": "how are sessions signed", "tokens_used": 10, "tokens_window": 100}),
            ("memory_load", {"id": "sessions-are-signed-jwt"}),
            ("task_postflight", {"task_id": "login", "knowledge": 0.6, "uncertainty": 0.2}),
            ("memory_validate", {"id": "sessions-are-signed-jwt", "useful": True}),
            ("memory_health", {}),
        ]
        return [(await client.call_tool(name, given)) for name, given in calls]

    results = over_stdio(tmp_path, ask, CLAUDE_CODE_SESSION_ID="host-session")
    assert [result.is_error for result in results] == [False] * 7
    saved, _, context, loaded, ended, said, health = (result.structured_content for result in results)
    assert Path(saved["path"]) == tmp_path / ".claude" / "memory" / "decision" / "sessions-are-signed-jwt.json"
    assert context["mode"] == "deep"
    assert [one["id"] for one in context["memories"]] == [saved["id"]] == [loaded["id"]] == ended["to_validate"]
    assert (ended["session_id"], ended["learning_index"]) == ("host-session", 0.6)
    assert said["memories"][0]["confidence"] == 0.6
    assert said["to_validate"] == []
    assert health["active"] == 1


async def many(client: Client, count: int) -> list[list[str]]:
    async def one(text: str) -> list[str]:
        # By words, which do not count what the session was given before.
        asked = {"query": text, "k": 3, "summaries": False, "strategy": "fts5_bm25"}
        result = await client.call_tool("memory_search", asked)
        return [hit["id"] for hit in result.structured_content["results"]]

    return await asyncio.gather(*(one(QUESTIONS[number % 4]) for number in range(count)))


def expected_of(project: Path, count: int) -> list[list[str]]:
    index, now = open_index(str(project / ".claude" / "memory"), Settings()), time.time()
    found = {text: [one.memory.id for one in index.search(text, k=3, now=now)] for text in QUESTIONS}
    return [found[QUESTIONS[number % 4]] for number in range(count)]


def test_one_thousand_searches_at_once_are_all_answered_right(project: Path) -> None:
    assert over_stdio(project, lambda client: many(client, 1000)) == expected_of(project, 1000)


@pytest.fixture(scope="module")
def port(project: Path) -> Iterator[int]:
    """A server of the project on a port of this machine."""
    with listening(project) as found:
        yield found


def test_a_hundred_searches_at_once_over_http_are_all_answered_right(project: Path, port: int) -> None:
    assert over_http(port, lambda client: many(client, 100)) == expected_of(project, 100)


def test_trap_39_a_page_under_another_name_or_origin_gets_no_answer(port: int) -> None:
    assert post(port) == 200
    assert post(port, Origin=f"http://127.0.0.1:{port}") == 200
    assert post(port, host=f"localhost:{port}") == 200
    assert post(port, host="evil.example:80") == 421
    assert post(port, host=f"127.0.0.1.evil.example:{port}") == 421
    assert post(port, Origin="http://evil.example") == 403
    assert post(port, Origin="null") == 403
    assert post(port, Origin=f"http://127.0.0.1:{port + 1}") == 403


def test_a_server_sees_what_another_process_saves(project: Path, port: int) -> None:
    async def find(client: Client) -> list[str]:
        return [name for name, _ in await ranked(client, "the otter rule")]

    assert "otter" not in over_http(port, find)
    write(str(project / ".claude" / "memory"), memory("otter", "The otter rule", "otters first", category="constraint"))
    assert over_http(port, find)[0] == "otter"


def test_trap_39_a_port_for_other_machines_answers_nobody_without_the_token(project: Path) -> None:
    async def ask(client: Client) -> list[tuple[str, float]]:
        return await ranked(client, "invoice refund")

    with listening(project, "--name", "memory.example", host="0.0.0.0", RINGTRUE_MEMORY_MCP_TOKEN=TOKEN) as port:
        assert post(port) == 401
        assert post(port, Authorization="Bearer wrong-token-wrong-token") == 401
        assert post(port, Authorization=TOKEN) == 401
        assert post(port, Authorization=f"Bearer {TOKEN}") == 200
        assert post(port, host="memory.example") == 401
        assert post(port, host="memory.example", Authorization=f"Bearer {TOKEN}") == 200
        assert post(port, host="other.example", Authorization=f"Bearer {TOKEN}") == 421
        assert over_http(port, ask, token=TOKEN)


def test_trap_39_a_port_for_other_machines_is_not_opened_without_a_token(ringtrue, tmp_path: Path) -> None:
    done = ringtrue("memory", "mcp", "--root", tmp_path, "--http", "0.0.0.0:18765")
    assert done.code == 2
    assert done.err.startswith("ringtrue: 0.0.0.0 can be reached from other machines; set a token")


def test_a_port_that_is_taken_is_one_line(ringtrue, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = ringtrue("memory", "mcp", "--root", tmp_path, "--http", address)
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith(f"ringtrue: cannot listen at {address}: Address already in use")
