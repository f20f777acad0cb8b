"""Installing and uninstalling: what each host gets, that others' files survive, and that the plugin has the documented form."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringtrue.errors import InputError, MissingInput
from ringtrue.extras import install_command
from ringtrue.memory import install as module
from ringtrue.memory.install import HOSTS, install, installed, library, python_of_hook, uninstall

PHRASES = (
    "search memories", "search memory", "find memory", "recall", "what did we decide", "what do we know about",
    "previous decision", "past session", "look up memory", "memory search",
)  # fmt: skip
# The fields of 09, sections 2, 5, 6 and 8.
PLUGIN_FIELDS = {
    "name",
    "displayName",
    "version",
    "description",
    "author",
    "homepage",
    "repository",
    "license",
    "keywords",
    "metadata",
    "defaultEnabled",
    "skills",
    "commands",
    "agents",
    "workflows",
    "hooks",
    "mcpServers",
    "outputStyles",
    "lspServers",
    "experimental",
    "userConfig",
    "channels",
    "dependencies",
}
HOOK_FIELDS = {"type", "command", "args", "timeout", "if", "statusMessage", "async", "asyncRewake", "shell"}
SKILL_FIELDS = {
    "name",
    "description",
    "when_to_use",
    "argument-hint",
    "arguments",
    "disable-model-invocation",
    "user-invocable",
    "allowed-tools",
    "disallowed-tools",
    "model",
    "effort",
    "context",
    "agent",
    "background",
    "hooks",
    "paths",
    "shell",
    "metadata",
    "license",
    "compatibility",
}
SERVER_FIELDS = {"type", "command", "args", "env", "url", "headers", "timeout", "alwaysLoad"}
CODEX_FIELDS = {"type", "command", "commandWindows", "timeout", "async", "statusMessage"}
FOREIGN = b'{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "notify-send done"}]}]},\n "other": 1}'
CONFIG = b'model = "x"  # mine\n\n[mcp_servers.docs]\ncommand = "docs"'


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every file and folder, with its bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "a project"
    (folder / ".codex").mkdir(parents=True)
    (folder / ".codex" / "hooks.json").write_bytes(FOREIGN)
    (folder / ".codex" / "config.toml").write_bytes(CONFIG)
    (folder / "opencode.json").write_bytes(b'{"theme": "dark"}')
    (folder / ".claude" / "memory" / "decision").mkdir(parents=True)
    (folder / ".claude" / "memory" / "decision" / "x.json").write_text("{}")
    return folder


def claude(project: Path) -> Path:
    install("claude", base=project)
    return project / ".claude" / "skills" / "memory"


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


# ── the plugin has the documented form ──────────────────────────────────────────────────────────────────────────────────


def test_the_manifest_has_documented_fields_and_a_kebab_name(project: Path) -> None:
    manifest = read(claude(project) / ".claude-plugin" / "plugin.json")
    assert manifest.keys() <= PLUGIN_FIELDS
    assert manifest["name"] == "memory"
    assert manifest["version"].count(".") == 2


def test_hooks_have_the_wrapper_the_exec_form_and_timeouts_in_seconds(project: Path) -> None:
    whole = read(claude(project) / "hooks" / "hooks.json")
    assert set(whole) == {"description", "hooks"}
    hooks = whole["hooks"]
    assert set(hooks) == {"UserPromptSubmit", "PostToolUse", "Stop", "SessionStart"}
    for event, groups in hooks.items():
        for group in groups:
            assert set(group) <= {"matcher", "hooks"}
            for hook in group["hooks"]:
                assert set(hook) <= HOOK_FIELDS
                assert hook["type"] == "command"
                assert Path(hook["command"]).is_file()
                assert hook["args"] == ["${CLAUDE_PLUGIN_ROOT}/lib/hook.sh", event]
                assert 1 <= hook["timeout"] <= 30


def test_trap_51_no_hook_is_async_since_hosts_drop_those_at_their_end(project: Path) -> None:
    hooks = read(claude(project) / "hooks" / "hooks.json")["hooks"]
    assert not any(hook.get("async") for groups in hooks.values() for group in groups for hook in group["hooks"])
    assert "matcher" not in hooks["UserPromptSubmit"][0]
    filters = {group["matcher"]: group["hooks"][0]["if"] for group in hooks["PostToolUse"]}
    assert filters == {"Read": "Read(**/.claude/memory/**)", "Bash": "Bash(*.claude/memory*)"}


def test_the_skill_has_documented_fields_and_the_ten_phrases(project: Path) -> None:
    _, front, text = (claude(project) / "skills" / "search" / "SKILL.md").read_text(encoding="utf-8").split("---\n", 2)
    fields = yaml.safe_load(front)
    assert set(fields) <= SKILL_FIELDS
    assert fields["name"] == "search"
    assert all(f'"{phrase}"' in fields["when_to_use"] for phrase in PHRASES)
    assert len(fields["description"]) + len(fields["when_to_use"]) <= 1536
    assert "Read" in fields["allowed-tools"]
    assert "up to 10" in text
    assert "@" not in text


def test_the_mcp_server_is_this_ringtrue(project: Path) -> None:
    (server,) = read(claude(project) / ".mcp.json")["mcpServers"].values()
    assert set(server) <= SERVER_FIELDS
    assert [server["command"], *server["args"]] == [sys.executable, "-P", "-m", "ringtrue.memory.mcp_start"]


def test_without_the_mcp_package_the_server_is_left_out_and_said_so(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_serves", lambda: False)
    before = (project / ".codex" / "config.toml").read_bytes()
    done = [install(host, base=project) for host in HOSTS]
    assert not (project / ".claude" / "skills" / "memory" / ".mcp.json").exists()
    assert (project / ".codex" / "config.toml").read_bytes() == before
    assert all(any(install_command("mcp") in note for note in one.notes) for one in done)


def test_the_copy_runs_without_ringtrue_and_without_packages(project: Path) -> None:
    folder = claude(project)
    hook = folder / "lib" / "hook" / "hook.py"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", str(hook)], input="{}", capture_output=True, text=True, cwd=folder
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "site-packages" not in done.stderr
    names = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert names - {"ringtrue_memory_hook", "imported package"} <= set(sys.stdlib_module_names)


def test_the_copy_is_the_whole_room_and_compiled(project: Path) -> None:
    folder = claude(project) / "lib" / "hook"
    assert {path.name for path in folder.iterdir() if path.is_file()} == {name for name, _ in library()}
    assert {path.name.split(".")[0] for path in (folder / "__pycache__").glob("*.pyc")} >= {"respond", "index", "threshold"}


def test_codex_gets_its_own_form(project: Path) -> None:
    install("codex", base=project)
    hooks = read(project / ".codex" / "hooks.json")["hooks"]
    assert hooks["Stop"][0]["hooks"][0]["command"] == "notify-send done"
    assert hooks["PostToolUse"][0]["matcher"] == "^Bash$"
    for event in ("UserPromptSubmit", "PostToolUse", "Stop", "SessionStart"):
        (handler,) = hooks[event][-1]["hooks"]
        assert set(handler) <= CODEX_FIELDS
        assert "async" not in handler  # Codex passes over hooks that are
        assert handler["timeout"] == 5
    config = tomllib.loads((project / ".codex" / "config.toml").read_text())
    assert config["mcp_servers"]["ringtrue-memory"]["args"] == ["-P", "-m", "ringtrue.memory.mcp_start"]
    assert config["mcp_servers"]["docs"] == {"command": "docs"}
    assert config["model"] == "x"


def test_codex_commands_run_in_a_shell_though_the_path_has_a_blank(project: Path) -> None:
    install("codex", base=project)
    command = read(project / ".codex" / "hooks.json")["hooks"]["SessionStart"][0]["hooks"][0]["command"]
    payload = json.dumps({"hook_event_name": "SessionStart", "cwd": str(project), "session_id": "s", "source": "startup"})
    done = subprocess.run(command, shell=True, input=payload, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert list((project / ".claude" / "memory" / ".ringtrue" / "journal").glob("*.jsonl"))


def test_opencode_gets_the_server_alone(project: Path) -> None:
    done = install("opencode", base=project)
    config = read(project / "opencode.json")
    assert config["theme"] == "dark"
    assert config["mcp"]["ringtrue-memory"]["type"] == "local"
    assert config["mcp"]["ringtrue-memory"]["command"][1:] == ["-P", "-m", "ringtrue.memory.mcp_start"]
    assert any("nothing is shown unasked" in note for note in done.notes)


# ── and out again ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("host", HOSTS)
def test_uninstall_restores_every_byte(project: Path, host: str) -> None:
    before = tree(project)
    done = install(host, base=project)
    assert {change.action for change in done.changes} <= {"create", "change"}
    assert tree(project) != before
    assert installed(project) == [host]
    assert uninstall(host, base=project) is not None
    assert tree(project) == before
    assert uninstall(host, base=project) is None


@pytest.mark.parametrize("host", HOSTS)
def test_where_nothing_was_before_nothing_is_left(tmp_path: Path, host: str) -> None:
    for user in (False, True):
        install(host, base=tmp_path, user=user)
        uninstall(host, base=tmp_path, user=user)
        assert tree(tmp_path) == {}


@pytest.mark.parametrize("host", HOSTS)
def test_installing_again_changes_nothing_and_still_restores(project: Path, host: str) -> None:
    before = tree(project)
    install(host, base=project)
    first = tree(project)
    again = install(host, base=project)
    assert again.changes == ()
    assert tree(project) == first
    uninstall(host, base=project)
    assert tree(project) == before


@pytest.mark.parametrize("host", HOSTS)
def test_a_dry_run_tells_and_does_nothing(project: Path, host: str) -> None:
    before = tree(project)
    told = install(host, base=project, dry_run=True).changes
    assert tree(project) == before
    assert install(host, base=project).changes == told
    there = tree(project)
    told_out = uninstall(host, base=project, dry_run=True)
    assert told_out is not None
    assert {change.action for change in told_out.changes} <= {"remove", "change"}
    assert tree(project) == there


def test_an_upgrade_replaces_old_files_of_ours(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(project)
    monkeypatch.setattr(module, "library", lambda: [("hook.py", b"old = 1\n"), ("gone.py", b"gone = 1\n")])
    folder = claude(project)
    monkeypatch.undo()
    install("claude", base=project)
    assert not (folder / "lib" / "hook" / "gone.py").exists()
    assert (folder / "lib" / "hook" / "respond.py").is_file()
    uninstall("claude", base=project)
    assert tree(project) == before


def test_edits_since_survive_and_only_our_entries_go(project: Path) -> None:
    install("codex", base=project)
    hooks = project / ".codex" / "hooks.json"
    edited = read(hooks)
    edited["hooks"]["UserPromptSubmit"][0]["hooks"].append({"type": "command", "command": "log-it"})
    edited["hooks"]["Stop"][-1]["hooks"][0]["timeout"] = 9  # ours, but changed
    edited["mine"] = True
    hooks.write_text(json.dumps(edited))
    config = project / ".codex" / "config.toml"
    config.write_text(config.read_text() + "\n[tui]\nnotifications = true\n")
    uninstall("codex", base=project)
    after = read(hooks)
    assert after["hooks"] == {
        "Stop": [{"hooks": [{"type": "command", "command": "notify-send done"}]}],
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "log-it"}]}],
    }
    assert after["mine"] is True
    assert config.read_text() == CONFIG.decode() + "\n[tui]\nnotifications = true\n"
    assert not (project / ".codex" / "ringtrue-memory").exists()


def test_a_file_that_only_looks_different_gets_its_old_bytes(project: Path) -> None:
    before = tree(project)
    for host, name in (("codex", ".codex/hooks.json"), ("opencode", "opencode.json")):
        install(host, base=project)
        path = project / name
        path.write_text(json.dumps(read(path), indent=8))
        uninstall(host, base=project)
    assert tree(project) == before


def test_a_file_of_ours_that_was_edited_stays_and_is_named(project: Path) -> None:
    folder = claude(project)
    (folder / "hooks" / "hooks.json").write_text('{"hooks": {}}')
    (folder / "notes.txt").write_text("mine")
    done = uninstall("claude", base=project)
    assert done is not None
    assert any("hooks.json was edited" in note for note in done.notes)
    assert (folder / "notes.txt").read_text() == "mine"
    assert (folder / "hooks" / "hooks.json").is_file()
    assert not (folder / ".claude-plugin").exists()


def test_git_leaves_out_the_files_that_name_this_machine(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "opencode.json").write_text('{"theme": "dark"}')
    exclude = tmp_path / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("*.mine")
    before = tree(tmp_path)
    notes = [note for host in HOSTS for note in install(host, base=tmp_path).notes]
    (warned,) = [note for note in notes if "do not commit" in note]
    assert warned.startswith("opencode.json:")
    said = subprocess.run(
        ["git", "status", "--short", "-uall"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert said.split() == ["??", "opencode.json"]
    exclude.write_text(exclude.read_text() + "*.later\n")
    for host in HOSTS:
        uninstall(host, base=tmp_path)
    assert exclude.read_text() == "*.mine\n*.later\n"
    exclude.write_text("*.mine")
    assert tree(tmp_path) == before


def test_memories_and_the_journal_are_never_touched(project: Path) -> None:
    claude(project)
    journal = project / ".claude" / "memory" / ".ringtrue" / "journal"
    journal.mkdir(parents=True)
    (journal / "2026-01.jsonl").write_text("{}\n")
    uninstall("claude", base=project)
    assert (journal / "2026-01.jsonl").is_file()
    assert (project / ".claude" / "memory" / "decision" / "x.json").is_file()


def test_a_linked_configuration_stays_a_link(project: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    path = project / ".codex" / "config.toml"
    path.rename(real)
    path.symlink_to(real)
    install("codex", base=project)
    assert path.is_symlink()
    assert b"ringtrue-memory" in real.read_bytes()
    uninstall("codex", base=project)
    assert (path.is_symlink(), real.read_bytes()) == (True, CONFIG)


def test_the_note_with_old_bytes_is_for_the_user_alone(project: Path) -> None:
    install("codex", base=project)
    assert (project / ".codex" / "ringtrue-memory" / "install.json").stat().st_mode & 0o077 == 0


# ── clear refusals, and then nothing has changed ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("host", "name", "text", "said"),
    [
        ("codex", ".codex/hooks.json", "{not json", "not plain JSON"),
        ("codex", ".codex/hooks.json", "[]", "not an object"),
        ("codex", ".codex/hooks.json", '{"hooks": []}', "hooks is a list"),
        ("codex", ".codex/hooks.json", '{"hooks": {"Stop": {}}}', "hooks.Stop is an object"),
        ("codex", ".codex/config.toml", "model = ", "not TOML"),
        ("codex", ".codex/config.toml", "mcp_servers = {}", "no table can be added"),
        ("codex", ".codex/config.toml", "[mcp_servers.ringtrue-memory]\ncommand = 'x'", "did not write"),
        ("codex", ".codex/config.toml", "\udcff", "not UTF-8"),
        ("opencode", "opencode.json", '{"theme": "dark"} // mine', "not plain JSON"),
        ("opencode", "opencode.json", '{"mcp": {"ringtrue-memory": {}}}', "did not write"),
        ("opencode", "opencode.json", '{"mcp": 1}', "mcp is 1"),
    ],
)
def test_what_cannot_be_read_is_refused_and_left(project: Path, host: str, name: str, text: str, said: str) -> None:
    (project / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    before = tree(project)
    with pytest.raises(InputError, match=said) as refusal:
        install(host, base=project)
    assert name.rpartition("/")[2] in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert tree(project) == before


def test_a_broken_file_stops_uninstalling_before_anything_happens(project: Path) -> None:
    install("codex", base=project)
    (project / ".codex" / "hooks.json").write_text("{broken")
    before = tree(project)
    with pytest.raises(InputError, match="not plain JSON"):
        uninstall("codex", base=project)
    assert tree(project) == before


def test_a_folder_of_somebody_else_is_not_taken(project: Path) -> None:
    other = project / ".claude" / "skills" / "memory"
    other.mkdir(parents=True)
    (other / "SKILL.md").write_text("mine")
    with pytest.raises(InputError, match="not from this program"):
        install("claude", base=project)
    assert uninstall("claude", base=project) is None
    assert (other / "SKILL.md").read_text() == "mine"


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"form": 1, "made": {"../../x": ""}, "changed": {}, "folders": [], "version": ""}']
)
def test_a_damaged_note_removes_nothing(project: Path, text: str) -> None:
    folder = claude(project)
    (folder / "install.json").write_text(text)
    before = tree(project)
    with pytest.raises(InputError, match="damaged"):
        uninstall("claude", base=project)
    assert tree(project) == before


def test_opencode_with_comments_is_left_to_its_owner(project: Path) -> None:
    (project / "opencode.json").rename(project / "opencode.jsonc")
    with pytest.raises(InputError, match="by hand"):
        install("opencode", base=project)


def test_a_python_that_cannot_run_the_hook_is_refused(project: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not run as a Python"):
        install("claude", base=project, python=tmp_path / "nowhere")
    old = tmp_path / "old-python"
    old.write_text("#!/bin/sh\necho 3 9 True True True\n")
    old.chmod(0o755)
    with pytest.raises(InputError, match=r"is Python 3\.9"):
        install("claude", base=project, python=old)
    assert not (project / ".claude" / "skills").exists()


def test_a_python_may_be_named(project: Path) -> None:
    install("claude", base=project, python=Path(sys.executable))
    assert python_of_hook(project, "claude") == sys.executable


def test_the_hook_runs_in_the_python_that_can_compare_meanings(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "missing_for_meaning", lambda python: ())
    assert not any("compares words" in note for note in install("claude", base=project).notes)
    assert python_of_hook(project, "claude") == sys.executable
    monkeypatch.setattr(module, "missing_for_meaning", lambda python: ("the weights",))
    assert any("the weights cannot be found" in note for note in install("claude", base=project).notes)
    assert python_of_hook(project, "claude") == str(Path(sys.executable).resolve())


def test_a_python_that_is_gone_is_replaced_by_another(project: Path) -> None:
    launcher = claude(project) / "lib" / "hook.sh"
    launcher.write_text(launcher.read_text().replace(python_of_hook(project, "claude"), "/nowhere/python"))
    payload = {"hook_event_name": "SessionStart", "source": "startup", "cwd": str(project)}
    environment = {"PATH": str(Path(sys.executable).parent)}  # with a python3
    command = ["/bin/sh", str(launcher), "SessionStart"]
    subprocess.run(command, input=json.dumps(payload), text=True, env=environment, cwd=project, check=True)
    assert "startup" in next((project / ".claude" / "memory" / ".ringtrue" / "journal").iterdir()).read_text()


@pytest.mark.parametrize(
    ("host", "user", "said"),
    [
        ("claude", True, "needs no question"),
        ("claude", False, "after you trusted this folder"),
        ("codex", True, "open /hooks"),
        ("codex", False, "whether you trust the project"),
        ("opencode", True, "asks nothing"),
    ],
)
def test_what_the_host_will_ask_is_said(project: Path, host: str, user: bool, said: str) -> None:
    assert any(said in note for note in install(host, base=project, user=user).notes)
    done = uninstall(host, base=project, user=user)
    assert done is not None
    assert "keeps" in done.notes[-1]


def test_two_installations_at_once_are_warned_of(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    install("claude", base=home, user=True)
    done = install("claude", base=project, home=home)
    assert any("answered twice" in note for note in done.notes)


def test_an_unknown_host_or_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'claude'"):
        install("cloude", base=tmp_path)
    with pytest.raises(MissingInput, match="no such folder"):
        install("claude", base=tmp_path / "nowhere")
