"""Every hostile case of ``tests/redteam`` against the tools of the MCP server, asked by the official client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp import Client

from redteam.plant import CONTROL, Planted, cases, check_block, hidden_in, name_of, plant, strict_json, texts
from ringtrue.memory.context import NOTICE
from ringtrue.memory.hook.files import load
from ringtrue.memory.hook.settings import read_settings
from ringtrue.memory.server import build_server

PROGRAM = Path(sys.executable).parent / "ringtrue"
ELEMENT = {"id", "category", "tier", "path", "tags", "why", "note"}
STORED = [case for case in cases(tool=False) if case["planted"] not in ("payload", "transcript line", "tool response")]
LONGEST_QUERY = 20_000
Ask = Callable[[Client], Awaitable[Any]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def with_server(here: Planted, ask: Ask) -> Any:
    async def run() -> Any:
        async with Client(build_server(str(here.root), session_id="own"), read_timeout_seconds=60) as client:
            return await asyncio.wait_for(ask(client), 60)

    return asyncio.run(run())


def checked(result: Any, here: Planted) -> Any:
    """Assert what holds for every answer, and return it: JSON for every parser, visible, the secrets of the case not in it."""
    text = result.content[0].text
    if result.is_error:
        assert "\n" not in text
        return None
    answer = strict_json(text)
    assert answer == result.structured_content
    for one in texts(answer):
        assert hidden_in(one) == []
        for never in here.case.get("never", ()) if here.case["kind"] == "secret" else ():
            assert never not in one
    return answer


@pytest.mark.parametrize("case", STORED, ids=name_of)
def test_what_the_tools_tell_is_marked_visible_and_leads_nowhere_else(case: dict[str, Any], home: Path) -> None:
    here = plant(case, home)
    query = here.prompt.encode("utf-8", "ignore").decode()[:LONGEST_QUERY]
    known = {memory.id: memory for memory in load(str(here.root), read_settings(str(here.root))[0]).memories}

    async def ask(client: Client) -> list[Any]:
        calls = [
            ("memory_search", {"query": query}),
            ("memory_context", {"prompt": query, "mode": "deep", "resend": True}),
            ("memory_match_triggers", {"prompt": query}),
            ("memory_load", {"id": here.memory_id[:200].encode("utf-8", "replace").decode()}),
            ("memory_load", {"id": "otters"}),
            ("memory_search", {"query": CONTROL, "resend": True}),
            ("memory_health", {}),
        ]
        return [checked(await client.call_tool(name, given), here) for name, given in calls]

    search, context, triggers, loaded, innocent, control, health = with_server(here, ask)
    assert None not in (search, context, triggers, innocent, control, health)
    for answer in (search, context, triggers, loaded, innocent):
        assert answer is None or answer["notice"] == NOTICE
    for answer in (context, loaded, innocent):
        if answer is not None and answer["text"]:
            check_block(answer["text"], here, attributes=ELEMENT)
    assert control["results"][0]["id"] == "otters"
    assert all(len(one["title"]) <= 200 and len(one["tags"]) <= 100 for one in search["results"])
    told = {one["id"] for one in (*search["results"], *context["memories"], *triggers["matches"])}
    assert told <= set(known)
    if case.get("hidden"):
        assert here.memory_id not in told
        assert loaded is None
    if case.get("shown"):
        assert here.memory_id in told
        assert loaded is not None
    if "fault" in case:
        assert any(case["fault"] in one["text"] for one in health["findings"])


@pytest.mark.parametrize("case", cases(tool=True), ids=name_of)
def test_hostile_arguments_are_refused_in_one_line_or_answered_as_data(case: dict[str, Any], home: Path) -> None:
    here = plant(case, home)
    before = sorted(home.rglob("*.json"))

    async def ask(client: Client) -> Any:
        return await client.call_tool(here.case["tool"], here.case["arguments"])

    result = with_server(here, ask)
    assert result.is_error == bool(case["refused"]), result.content
    checked(result, here)
    if case["refused"]:
        text = result.content[0].text
        assert re.search(case["refused"], text), text
        assert len(text) < 1000
        assert "Traceback" not in text
        assert "root:" not in text
        assert sorted(home.rglob("*.json")) == before
    assert not Path("/tmp/quokka-owned").exists()
    assert not Path("/tmp/quokka-owned.json").exists()


def test_a_server_that_is_sent_nonsense_still_answers(home: Path) -> None:
    here = plant({"id": "x"}, home)
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"memory_search","arguments":{"query":"%s"}}}'
    lines = [
        b"not json", b"[]", b"7", b"null", b"[" * 50_000, b'{"jsonrpc":"2.0","id":1,"method":7}', b"\xff\xfe", b'{"a":NaN}',
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": client}).encode(),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode(),
        (call % (3, "\\ud83d otters")).encode(), (call % (4, "otters ledger")).encode(),
    ]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RINGTRUE", "CLAUDE"))}
    process = subprocess.Popen(
        [PROGRAM, "memory", "mcp", "--root", here.root],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(b"\n".join(lines) + b"\n")
        process.stdin.flush()
        answer: Any = {}
        while answer.get("id") != 4:
            line = process.stdout.readline()
            assert line, "the server ended"
            answer = strict_json(line.decode())
        assert [one["id"] for one in answer["result"]["structuredContent"]["results"]] == ["otters"]
    finally:
        process.stdin.close()
        process.stdout.close()
        process.terminate()
        process.wait(30)
