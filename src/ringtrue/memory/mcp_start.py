"""The MCP server over stdin and stdout: the first answers of a host at once, the SDK behind them.

A host asks for the tools before its first request to the model and goes without those of a server that is late: Claude Code
left ours out in 20 of 28 runs. ``import mcp.server`` (mcp 2.3.0) takes 0.62 s of processor time, ``mcp_types`` in it 0.16 and
all that the tools need 0.9, so the SDK cannot list them within 250 ms. ``initialize``, ``server/discover`` and ``tools/list``
are therefore answered from ``mcp_answers.json``, which ``docs/generate.py`` writes from the server itself. Anything else goes
to the SDK, which is loaded meanwhile. On two cores that ten processes shared the list of tools came 77 ms after the start of
the process (p95 132 ms); the SDK's took 1,100 ms.
"""

from __future__ import annotations

import io
import json
import os
import signal
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from ringtrue.memory.server import StrictServer

ANSWERS = Path(__file__).with_name("mcp_answers.json")
MODERN, VERSION_KEY = "2026-07-28", "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
PATIENCE = 1.0
"""Seconds after which the SDK is loaded though nobody has asked for the tools yet."""


class FirstAnswers:
    """What can be answered without the SDK, and what it must still hear when it takes over.

    ``recorded`` holds the results of the server: ``initialize``, ``server/discover``, ``tools/list`` without and with what the
    newest protocol adds, and the versions that ``initialize`` may agree on.
    """

    def __init__(self, recorded: dict[str, Any]) -> None:
        self._recorded = recorded
        self.unheard: list[bytes] = []
        self.greeted: Any = None
        """The id of the ``initialize`` that was answered; the SDK hears it again, and its answer is dropped."""
        self.listed = False

    def to(self, line: bytes) -> bytes | None:
        """Return the answer to a line, empty if it needs none; None if the SDK must answer."""
        try:
            message = json.loads(line)
        except ValueError:
            return None
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return None
        if "id" not in message:
            self.unheard.append(line)
            return b""
        result = self._result(message)
        if result is None:
            return None
        if message["method"] == "initialize":
            self.unheard.append(line)
            self.greeted = message["id"]
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n"

    def _result(self, message: dict[str, Any]) -> dict[str, Any] | None:
        params, method = message.get("params") or {}, message.get("method")
        if not isinstance(params, dict):
            return None
        if method == "initialize" and self.greeted is None and _greets(params):
            wanted, versions = params["protocolVersion"], self._recorded["versions"]
            return {**self._recorded["initialize"], "protocolVersion": wanted if wanted in versions else versions[-1]}
        meta = params.get("_meta") or {}
        modern = isinstance(meta, dict) and meta.get(VERSION_KEY) == MODERN and isinstance(meta.get(CAPABILITIES_KEY), dict)
        if method == "server/discover" and modern and self.greeted is None:
            return dict(self._recorded["server/discover"])
        if method == "tools/list" and params.keys() <= {"_meta"} and modern != (self.greeted is not None):
            self.listed = True
            return {**(self._recorded["added"] if modern else {}), "tools": self._recorded["tools"]}
        return None


def _greets(params: dict[str, Any]) -> bool:
    """True if an ``initialize`` is complete; what is wrong with any other one the SDK can say."""
    who = params.get("clientInfo")
    known = isinstance(who, dict) and all(isinstance(who.get(name), str) for name in ("name", "version"))
    return known and isinstance(params.get("protocolVersion"), str) and isinstance(params.get("capabilities"), dict)


class _Loading(threading.Thread):
    """Builds the server in the background, when it is told to or after a while."""

    def __init__(self, build: Callable[[], StrictServer]) -> None:
        super().__init__(daemon=True)
        self._build, self._go = build, threading.Event()
        self._server: StrictServer | None = None
        self._problem: BaseException | None = None

    def begin(self) -> None:
        self._go.set()

    def run(self) -> None:
        self._go.wait(PATIENCE)
        try:
            self._server = self._build()
        except BaseException as problem:
            self._problem = problem

    def server(self) -> StrictServer:
        """Return the server as soon as it is there; raises what building it raised."""
        self.begin()
        self.join()
        if self._server is None:
            raise self._problem or RuntimeError("the server was not built")
        return self._server


class _Replay(io.TextIOBase):
    """Standard input, with the lines before it that were read already."""

    def __init__(self, lines: Iterable[bytes], wire: BinaryIO) -> None:
        self._lines, self._wire = list(lines), wire

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]  # a limit is never asked for
        line = self._lines.pop(0) if self._lines else self._wire.readline()
        return line.decode("utf-8", "replace")


class _Without(io.TextIOBase):
    """Standard output, without the answer to one request, which was given already."""

    def __init__(self, answered: Any, wire: BinaryIO) -> None:
        self._answered, self._wire = answered, wire

    def write(self, text: str, /) -> int:
        if self._answered is None or json.loads(text).get("id") != self._answered:
            self._wire.write(text.encode())
        else:
            self._answered = None
        return len(text)

    def flush(self) -> None:
        self._wire.flush()


def serve(build: Callable[[], StrictServer]) -> None:
    """Answer a host until it closes standard input or the process is told to stop; ``build`` makes the server."""
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, lambda number, _: os._exit(128 + number))  # a thread that waits for a line holds nothing else up
    # What a library prints must not get among the messages: from here on standard output is the log.
    reading, writing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    answers, loading = FirstAnswers(json.loads(ANSWERS.read_bytes())), _Loading(build)
    loading.start()
    while line := reading.readline():
        said = answers.to(line)
        if said is None:
            server = loading.server()
            import anyio

            anyio.run(server.run_between, _Replay([*answers.unheard, line], reading), _Without(answers.greeted, writing))
            break
        writing.write(said)
        writing.flush()
        if answers.listed:
            loading.begin()
    os._exit(0)  # loading may not have ended, and nothing is left to tidy up


def build(root: str = "", session: str = "") -> StrictServer:
    """Return the server of a folder and a session, else of those that the host's environment names."""
    from ringtrue.config import environment_without_tokens
    from ringtrue.memory.hook.files import usual_root
    from ringtrue.memory.server import build_server
    from ringtrue.memory.warm_hook import WarmHook

    environ = environment_without_tokens()
    # One process of a host serves one conversation, so a call that names none belongs to it.
    own = session or environ.get("CLAUDE_CODE_SESSION_ID") or f"stdio-{os.getpid()}"
    folder = root or usual_root(str(Path.cwd()), environ)
    server = build_server(folder, session_id=own)
    WarmHook(folder).start()
    return server


if __name__ == "__main__":
    serve(build)
