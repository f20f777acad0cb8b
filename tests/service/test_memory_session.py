"""A session through the installed plugin, end to end: prompt → injection → read → answer → feedback → health.

The host is played by reading the installed hooks.json and running what it says, with the host's JSON on stdin. ``ringtrue``
itself is used only where a user would use it: to install, to bring the signals in, and to look.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from host_payloads import host_payload

ROOT = Path(__file__).parents[2]
MEMORIES = ROOT / "src" / "ringtrue" / "golden" / "sets" / "memory-bench" / "memories"
REDIS = "redis-broker-out-of-memory"
SESSION, PROMPT = "6f0c1c9e-2f55-4b0e-9d0c-6b2f6f1d7a10", "0b9c7f5a-8b1e-4d53-9a3e-3c1f3a7d2e44"


def ringtrue(*arguments: str, cwd: Path, code: int = 0) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RINGTRUE", "CLAUDE"))}
    environment |= {"HOME": str(cwd.parent / "home"), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "ringtrue", *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout


def be_patient(folder: Path) -> None:
    """Let an installed hook take a minute: it gives up after 0.9 s, which a busy machine may need for the same work."""
    [hook] = folder.rglob("hook.py")
    text = hook.read_text(encoding="utf-8")
    assert "\nBUDGET = 0.9\n" in text
    hook.write_text(text.replace("\nBUDGET = 0.9\n", "\nBUDGET = 60.0\n"), encoding="utf-8")


class Host:
    """Claude Code as far as hooks go: it reads the plugin's hooks.json and runs what matches an event."""

    def __init__(self, project: Path) -> None:
        self.project, self.plugin = project, project / ".claude" / "skills" / "memory"
        self.root = project / ".claude" / "memory"
        self.ran: list[tuple[str, bool]] = []

    def payload(self, name: str, **more: Any) -> dict[str, Any]:
        return host_payload(f"claude-code-{name}", **{"cwd": str(self.project), **more})

    def send(self, payload: dict[str, Any]) -> str:
        """Return what the hooks of an event printed."""
        event = payload["hook_event_name"]
        hooks = json.loads((self.plugin / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"]
        said = ""
        for group in hooks[event]:
            if "matcher" in group and not re.fullmatch(group["matcher"], payload.get("tool_name", "")):
                continue
            for hook in group["hooks"]:
                if "if" in hook and not self._applies(hook["if"], payload):
                    continue
                said += self._run(hook, payload)
                self.ran.append((event, hook.get("async", False)))
        return said

    def _applies(self, rule: str, payload: dict[str, Any]) -> bool:
        tool, pattern = re.fullmatch(r"(\w+)\((.*)\)", rule).groups()  # type: ignore[union-attr]
        given = payload["tool_input"]["command" if tool == "Bash" else "file_path"]
        return payload["tool_name"] == tool and fnmatch.fnmatch(given, pattern.replace("**", "*"))

    def _run(self, hook: dict[str, Any], payload: dict[str, Any]) -> str:
        command = [part.replace("${CLAUDE_PLUGIN_ROOT}", str(self.plugin)) for part in (hook["command"], *hook["args"])]
        # Nothing of this environment: neither PATH nor a package could help the hook.
        environment = {"CLAUDE_PROJECT_DIR": str(self.project), "CLAUDE_PLUGIN_ROOT": str(self.plugin)}
        done = subprocess.run(
            command, input=json.dumps(payload), capture_output=True, text=True, cwd=self.project, env=environment,
            timeout=max(hook["timeout"], 60), check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def context(self, payload: dict[str, Any]) -> str:
        return str(json.loads(self.send(payload))["hookSpecificOutput"]["additionalContext"])


@pytest.fixture
def host(tmp_path: Path) -> Host:
    project = tmp_path / "scratch project"
    (tmp_path / "home").mkdir()
    shutil.copytree(MEMORIES, project / ".claude" / "memory")
    ringtrue("memory", "install", "--project", str(project), cwd=tmp_path)
    return Host(project)


def test_a_session_from_the_prompt_to_the_health_figures(host: Host) -> None:
    be_patient(host.plugin)
    # The session begins; nothing is said.
    assert host.send(host.payload("session-start")) == ""

    # A prompt that a memory answers is shown a pointer to it.
    block = host.context(host.payload("user-prompt-submit"))
    paths = re.findall(r' path="([^"]+)"', block)
    assert paths[0] == str(host.root / "runbook" / f"{REDIS}.json")
    assert 1 <= len(paths) <= 3

    # The agent reads it. A read of anything else does not even start the hook.
    before = len(host.ran)
    assert host.send(host.payload("post-tool-use-read", tool_input={"file_path": str(host.project / "src" / "app.py")})) == ""
    assert len(host.ran) == before
    assert host.send(host.payload("post-tool-use-read", tool_input={"file_path": paths[0]})) == ""
    assert len(host.ran) == before + 1

    # Its answer quotes the memory.
    memory = json.loads(Path(paths[0]).read_text(encoding="utf-8"))
    steps = memory["content"]["steps"]
    quoted = " ".join((steps if isinstance(steps, str) else " ".join(steps)).split()[:20])
    assert host.send(host.payload("stop", last_assistant_message=f"From the runbook: {quoted}.")) == ""

    # Two further prompts: one nobody wrote a memory for, one nod.
    assert host.send(host.payload("user-prompt-submit", prompt="write a haiku about autumn", prompt_id="p-2")) == ""
    assert host.send(host.payload("user-prompt-submit", prompt="go on", prompt_id="p-3")) == ""

    # The host waits for the prompt's hook alone.
    assert dict(host.ran) == {"SessionStart": False, "UserPromptSubmit": False, "PostToolUse": False, "Stop": False}

    # The signals come into the store, once.
    store = str(host.project / "store.sqlite")
    brought = json.loads(ringtrue("memory", "sync", "--store", store, "--json", cwd=host.project))
    assert brought["brought"] == {
        "queries": 2, "new_queries": 2, "feedback": 2, "new_feedback": 2, "tasks": 0, "new_tasks": 0,
        "left": {"prompt skipped": 1},
    }  # fmt: skip
    again = json.loads(ringtrue("memory", "sync", "--store", store, "--json", cwd=host.project))
    assert (again["brought"]["new_queries"], again["brought"]["new_feedback"]) == (0, 0)
    searches = json.loads(ringtrue("log", "tail", "--tool", "memory_hook", "--store", store, "--json", cwd=host.project))
    first, second = searches["searches"]
    assert (first["session_id"], first["prompt_id"]) == (SESSION, PROMPT)
    assert first["result_ids"][0] == REDIS
    assert second["result_ids"] == []

    # From there it is feedback like any other: a read is a judgment.
    derived = json.loads(ringtrue("feedback", "derive", "--store", store, "--json", cwd=host.project))
    assert derived["by_source"] == {"implicit by agent": 1}

    # And the figures tell whether the memory works.
    health = json.loads(ringtrue("health", "--store", store, "--json", cwd=host.project, code=3))  # nothing was evaluated
    part = health["parts"]["memory"]
    assert part["state"] == "ok"
    assert (part["prompts"], part["injections"], part["silent"]) == (2, 1, 1)
    assert (part["silent_rate"], part["read_rate"], part["reference_rate"]) == (0.5, 1.0, 1.0)
    assert part["false"] == 0
    assert brought["figures"]["not_searched"] == {"skipped": 1}


def test_uninstalling_ends_it_and_leaves_memories_and_journal(host: Host) -> None:
    host.send(host.payload("user-prompt-submit"))
    kept = sorted(path for path in host.root.rglob("*") if path.is_file())
    ringtrue("memory", "uninstall", cwd=host.project)
    assert not (host.project / ".claude" / "skills").exists()
    assert sorted(path for path in host.root.rglob("*") if path.is_file()) == kept


def test_the_plugin_may_be_copied_elsewhere_and_its_ringtrue_be_gone(host: Host, tmp_path: Path) -> None:
    moved = tmp_path / "cache" / "memory"
    shutil.copytree(host.plugin, moved)
    ringtrue("memory", "uninstall", cwd=host.project)
    be_patient(moved)
    host.plugin = moved
    assert REDIS in host.context(host.payload("user-prompt-submit"))


def test_codex_runs_the_same_session_by_its_own_hooks(tmp_path: Path) -> None:
    project = tmp_path / "scratch"
    (tmp_path / "home").mkdir()
    shutil.copytree(MEMORIES, project / ".claude" / "memory")
    ringtrue("memory", "install", "--host", "codex", cwd=project)
    hooks = json.loads((project / ".codex" / "hooks.json").read_text())["hooks"]
    be_patient(project / ".codex")
    payload = host_payload("codex-user-prompt-submit")
    (handler,) = hooks["UserPromptSubmit"][0]["hooks"]
    done = subprocess.run(
        handler["command"], shell=True, input=json.dumps({**payload, "cwd": str(project)}), capture_output=True, text=True,
        cwd=project, env={}, timeout=max(handler["timeout"], 60), check=True,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert list(answer) == ["hookSpecificOutput"]
    assert set(answer["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}  # more is not in Codex's schema
    assert REDIS in answer["hookSpecificOutput"]["additionalContext"]
    store = str(project / "store.sqlite")
    ringtrue("memory", "sync", "--store", store, cwd=project)
    (row,) = json.loads(ringtrue("log", "tail", "--store", store, "--json", cwd=project))["searches"]
    assert row["prompt_id"] == payload["turn_id"]
