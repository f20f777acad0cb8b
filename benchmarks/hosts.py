"""The memory in real coding agents: what the model is shown, and which events arrive, in headless runs against a stub model.

``python benchmarks/hosts.py --write docs/memory-install.md`` installs the plugin for the user into a private home folder, runs
Claude Code, Codex and OpenCode (fetched by ``tests/get_tools.sh hosts``) there, and counts for each host how often

- the model was shown the memory of a prompt, in which role, and nothing for an unrelated prompt;
- the journal holds a read by the host's own tool, a read by its shell, and a quotation;
- a short follow-up was searched with the turn before it;
- the first request had the tools of the MCP server, and how soon the server answered;
- the skill reached the model with the words it was called with;
- the uninstall left nothing of ours.

Everything stays on this machine: the hosts run with an empty environment but for a private HOME and a key that is none, and
talk to ``stub_models`` on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import ROOT, Failure, add_common_options, carry_out, limit, machine, machine_line, marks, positive, say, table
from stub_models import Record, Script, StubModels, tool_names

TOOLS = ROOT / "tests" / "get_tools.sh"
LIMIT = 120
"""Seconds after which a host is ended; on a quiet machine a run takes two."""
PROMPT = "how do we sign the JWT of a session?"
OFF_TOPIC = "write a haiku about autumn leaves"
TURN, FOLLOW_UP = "JWT now", "and by which public key?"
"""A turn too short to be searched, and one after it that tells little."""
MEMORY: Record = {
    "schema_version": "1.0", "category": "decision", "id": "sessions-are-jwt", "title": "Sessions are signed JWT",
    "created_at": "2026-11-01T00:00:00Z", "updated_at": "2026-11-01T00:00:00Z", "tags": ["auth", "jwt"],
    "record_status": "active",
    "content": {"decision": "Sign the JWT of a session with RS256, so that each service can check it by the public key alone."},
}  # fmt: skip
OTHERS = (
    ("constraint", "Invoices keep ten years", "The archive may not delete an invoice before the tax office allows it."),
    ("runbook", "Redis broker out of memory", "Raise maxmemory, then drain the dead letter queue of the broker."),
    ("decision", "Helm deploys the staging cluster", "Roll back with helm rollback, and tell the people on call."),
    ("preference", "Tests carry plain names", "Name a test after what users see, not after the function it calls."),
)
BACKGROUND = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
}


def programs() -> dict[str, Path]:
    """Return where each host is, fetched with npm unless it is there already; none if they cannot be had."""
    done = subprocess.run(["sh", str(TOOLS), "hosts"], capture_output=True, text=True, timeout=900, check=True)
    folder = Path(done.stdout.strip())
    if not done.stdout.strip():
        sys.stderr.write(done.stderr)
        return {}
    return {host: folder / host for host in ("claude", "codex", "opencode")}


@dataclass
class Sandbox:
    """A private home with a host in it, a project with memories, and the model it talks to."""

    host: str
    program: Path
    folder: Path
    model: StubModels
    scope: str = "--user"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def root(self) -> Path:
        return self.project / ".claude" / "memory"

    def environment(self) -> dict[str, str]:
        """Return all that a host gets of this machine: where programs are, its own home, and the stub in place of a model."""
        address = f"http://127.0.0.1:{self.model.port}"
        return {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "TERM": "dumb", "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": "no-key", "STUB_KEY": "no-key", **BACKGROUND,
        }  # fmt: skip

    def prepare(self) -> None:
        """Make the home and the project, with the host's own settings: a stub of a model, and trust in the project."""
        for category, title, text in OTHERS:
            name = re.sub(r"\W+", "-", title.lower())
            body = {"constraint": "rule", "runbook": "steps", "decision": "decision", "preference": "value"}[category]
            self._remember({**MEMORY, "category": category, "id": name, "title": title, "tags": [], "content": {body: text}})
        self._remember(MEMORY)
        address = f"http://127.0.0.1:{self.model.port}/v1"
        if self.host == "claude":
            key = {"approved": ["no-key"], "rejected": []}
            self._write(
                ".claude.json", json.dumps({"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": key})
            )
        elif self.host == "codex":
            provider = f'name = "stub"\nbase_url = "{address}"\nenv_key = "STUB_KEY"\nwire_api = "responses"\n'
            trusted = f'[projects."{self.project}"]\ntrust_level = "trusted"\n'
            text = f'model = "stub"\nmodel_provider = "stub"\n\n[model_providers.stub]\n{provider}\n{trusted}'
            self._write(".codex/config.toml", text)
        else:
            options = {"baseURL": address, "apiKey": "no-key"}
            provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"stub": {"tool_call": True}}}
            settings = {"provider": {"stub": provider}, "model": "stub/stub", "small_model": "stub/stub"}
            self._write(".config/opencode/opencode.json", json.dumps(settings))
        subprocess.run(["git", "init", "-q", str(self.project)], check=True, env=self.environment())

    def _remember(self, record: Record) -> None:
        path = self.root / record["category"] / f"{record['id']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=2), encoding="utf-8")

    def _write(self, name: str, text: str) -> None:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def trust(self) -> None:
        """Let Claude Code trust the project, as its dialog does."""
        path = self.home / ".claude.json"
        settings = json.loads(path.read_text(encoding="utf-8"))
        settings.setdefault("projects", {}).setdefault(str(self.project), {})["hasTrustDialogAccepted"] = True
        path.write_text(json.dumps(settings), encoding="utf-8")

    def ringtrue(self, *words: str, check: bool = True) -> str:
        """Run a command of ours in the private home and return what it prints; raises Failure if it fails."""
        command = [sys.executable, "-m", "ringtrue", "memory", *words]
        done = subprocess.run(command, env=self.environment(), cwd=self.project, capture_output=True, text=True, timeout=LIMIT)
        if done.returncode and check:
            raise Failure(f"{' '.join(words)} failed: {done.stderr.strip()}")
        return done.stdout + done.stderr

    def ask(self, prompt: str, *options: str, follow: bool = False, tools: bool = True) -> list[Record]:
        """Send a prompt headless and return the requests with tools that the model got; raises Failure if the host fails."""
        before, log = len(self.model.requests), self.folder / "debug.txt"
        program = str(self.program)
        if self.host == "claude":
            command = [program, "-p", prompt, "--debug-file", str(log), *(["--continue"] if follow else []), *options]
        elif self.host == "codex":
            resume = ["resume", "--last"] if follow else []
            command = [program, "exec", *resume, "--dangerously-bypass-hook-trust", "--skip-git-repo-check", *options, prompt]
        else:
            command = [program, "run", *(["--continue"] if follow else []), *options, prompt]
        done = subprocess.run(
            command, env=self.environment(), cwd=self.project, capture_output=True, text=True, timeout=LIMIT,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        found = [body for _, body in self.model.requests[before:] if body.get("tools") or not tools]
        if done.returncode or not found:
            raise Failure(f"{self.host} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}")
        return found

    def journal(self, event: str = "") -> list[Record]:
        """Return what the hooks and the server have noted so far, or the events of one kind."""
        files = sorted((self.root / ".ringtrue" / "journal").glob("*.jsonl"))
        found = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        return [one for one in found if event in ("", one["event"])]

    def left_of_ours(self) -> list[str]:
        """Return the files under the home and the project that still name us; what hosts and memories log is not meant.

        The folder of the sandbox must not do so itself.
        """
        found = []
        for top in (self.home, self.project):
            for path in sorted(top.rglob("*")):
                name = path.relative_to(top).as_posix()
                if LOGS.search(name) or not path.is_file() or path.is_symlink():
                    continue
                if "ringtrue" in name or b"ringtrue" in path.read_bytes():
                    found.append(name)
        return found


LOGS = re.compile(
    r"^(\.claude/(projects|debug|todos|statsig|shell-snapshots|sessions|jobs|telemetry|history\.jsonl|memory)"
    r"|\.codex/(sessions|log|history\.jsonl|.*\.sqlite|shell_snapshots)|\.local/share|\.local/state|\.cache)"
)
"""What hosts write about their sessions, and our memories with their journal: an uninstall leaves them."""
CHECKS = (
    "injection seen", "silence", "read by tool", "read by shell", "quotation", "short follow-up", "MCP in first request",
    "skill", "uninstall",
)  # fmt: skip
ROLE = {"claude": "system", "codex": "developer", "opencode": ""}
SERVER = {
    "claude": "mcp__plugin_memory_memory__memory_search",
    "codex": "mcp__ringtrue_memory::memory_search",
    "opencode": "ringtrue-memory_memory_search",
}
"""The name under which a host shows the model our search."""


def roles_of_memory(body: Record) -> set[str]:
    """Return the roles of the messages in a request that hold pointers to memories."""
    messages = [*(body.get("messages") or []), *(body.get("input") or []), {"role": "top", "content": body.get("system", "")}]
    return {one.get("role", "") for one in messages if "<memory-context" in json.dumps(one)}


def texts_of(body: Record) -> list[str]:
    """Return the texts of the messages in a request, each part for itself."""
    contents = [one.get("content") for one in (*(body.get("messages") or []), *(body.get("input") or []))]
    parts = [part for content in contents for part in (content if isinstance(content, list) else [{"text": content}])]
    return [part["text"] for part in parts if isinstance(part.get("text"), str)]


def _with_tool(path: str) -> tuple[str, Record]:
    return "Read", {"file_path": path}


def _with_shell(host: str, program: str) -> Callable[[str], tuple[str, Record]]:
    name, key = ("exec_command", "cmd") if host == "codex" else ("Bash", "command")
    extra = {} if host == "codex" else {"description": "Show a note"}
    return lambda path: (name, {key: f"{program} {path}", **extra})


def check_round(box: Sandbox, place: int) -> dict[str, bool]:
    """Run a host once through everything that applies to it, between an install and an uninstall."""
    found: dict[str, bool] = {}
    host = box.host
    box.ringtrue("install", "--host", host, box.scope)
    if host != "opencode":
        found |= _check_prompts(box, place)
    if host == "claude":
        box.model.script = Script()
        asked = json.dumps(box.ask("/memory:search JWT of a session")[0])
        found["skill"] = "A compact list first" in asked and "JWT of a session" in asked
    else:
        found["MCP in first request"] = SERVER[host] in tool_names(box.ask(PROMPT)[0])
    box.ringtrue("uninstall", "--host", host, *([box.scope] if box.scope == "--user" else []))
    silent = not any(map(roles_of_memory, box.ask(PROMPT)))
    found["uninstall"] = silent and not box.left_of_ours()
    return found


def _check_prompts(box: Sandbox, place: int) -> dict[str, bool]:
    """Check what the hooks do with prompts, reads and answers."""
    found, host = {}, box.host
    shell = _with_shell(host, ("cat", "head -n 40", "sed -n 1,40p")[place % 3])
    for name, tool in (("read by tool", _with_tool), ("read by shell", shell)):
        if host == "codex" and name == "read by tool":
            continue
        box.model.script = Script(tool=tool)
        before = {event: len(box.journal(event)) for event in ("read", "reference")}
        asked = box.ask(PROMPT)
        found["injection seen"] = found.get("injection seen", True) and roles_of_memory(asked[0]) == {ROLE[host]}
        found[name] = [one["id"] for one in box.journal("read")[before["read"] :]] == [MEMORY["id"]]
        quoted = box.journal("reference")[before["reference"] :]
        same = [[one["id"] for one in event["referenced"]] for event in quoted] == [[MEMORY["id"]]]
        found["quotation"] = found.get("quotation", True) and same
        if host == "claude":
            found["MCP in first request"] = found.get("MCP in first request", True) and SERVER[host] in tool_names(asked[0])
    box.model.script = Script()
    found["silence"] = not any(map(roles_of_memory, box.ask(OFF_TOPIC)))
    box.ask(TURN)
    roles = roles_of_memory(box.ask(FOLLOW_UP, follow=True)[0])
    found["short follow-up"] = roles == {ROLE[host]} and TURN in box.journal("prompt")[-1]["searched"]
    return found


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Run every host and return how often each check held."""
    places = programs()
    if not places:
        raise Failure("the hosts cannot be installed here: npm and its registry are needed")
    here = machine()
    counts: dict[str, dict[str, list[bool]]] = {}
    with tempfile.TemporaryDirectory(prefix="memory-hosts-") as folder, StubModels() as model:
        for host in options.hosts:
            box = Sandbox(host, places[host], Path(folder) / host, model)
            box.prepare()
            counts[host] = {name: [] for name in CHECKS}
            for place in range(options.runs):
                for name, held in check_round(box, place).items():
                    counts[host][name].append(held)
                say(f"{host}: {place + 1} of {options.runs}")
    limits = [
        limit(f"{host}: {name}", f"{len(held)} of {len(held)}", f"{sum(held)} of {len(held)}", all(held))
        for host, checks in counts.items()
        for name, held in checks.items()
        if held
    ]
    versions = {host: version(places[host]) for host in options.hosts}
    ready = sorted(server_ready() for _ in range(20))
    limits.append(limit("MCP server: tools listed, p50", f"≤ {READY_MS} ms", f"{ready[10]:.0f} ms", ready[10] <= READY_MS))
    return {"machine": here, "versions": versions, "counts": counts, "ready_ms": ready, "limits": limits}


READY_MS = 250


def server_ready() -> float:
    """Return the milliseconds from the start of a new MCP server to its list of tools."""
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    asked = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    began = time.perf_counter()
    command = [sys.executable, "-P", "-m", "ringtrue.memory.mcp_start"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tempfile.gettempdir()) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in asked:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            server.stdin.flush()
            if "id" in message:
                server.stdout.readline()
        took = 1000 * (time.perf_counter() - began)
        server.kill()
    return took


def version(program: Path) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": tempfile.gettempdir()}
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=LIMIT, env=environment, check=True)
    return re.search(r"\d+\.\d+\.\d+", done.stdout)[0]  # type: ignore[index]  # each prints one


def render(report: Mapping[str, Any]) -> str:
    """Return the table of a report."""
    rows = []
    for name in CHECKS:
        row = [name]
        for host in report["counts"]:
            held = report["counts"][host][name]
            row.append(f"{sum(held)} of {len(held)}" if held else "–")
        rows.append(row)
    heads = [f"{NAMES[host]} {report['versions'][host]}" for host in report["counts"]]
    ready = report["ready_ms"]
    server = f"A new MCP server listed its tools after {ready[10]:.0f} ms (median of 20; slowest {ready[-1]:.0f} ms)."
    return "\n\n".join((table(["", *heads], rows), server, machine_line(report["machine"]))) + "\n"


NAMES = {"claude": "Claude Code", "codex": "Codex", "opencode": "OpenCode"}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_common_options(parser, marks("hosts"))
    parser.add_argument("--runs", type=positive, default=10, help="rounds for each host (default: 10)")
    parser.add_argument("--hosts", nargs="+", choices=tuple(NAMES), default=list(NAMES), help="which hosts (default: all)")
    return carry_out("hosts", run, render, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
