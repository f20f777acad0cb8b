"""The hook as hosts run it: their payloads in, what they document out, never an error, never a delay."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from host_payloads import RECORDED, host_payload
from ringtrue.memory.hook import respond as respond_module
from ringtrue.memory.hook.hook import main
from ringtrue.memory.hook.journal import events
from ringtrue.memory.hook.respond import enriched, quoted_words
from ringtrue.memory.hook.settings import Settings, TranscriptContext

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "src" / "ringtrue" / "memory" / "hook"
MEMORIES = ROOT / "src" / "ringtrue" / "golden" / "sets" / "memory-bench" / "memories"
REDIS = "redis-broker-out-of-memory"


class Project:
    """A scratch project with a memory folder, and a way to send it events."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / ".claude" / "memory"

    def payload(self, name: str, **more: Any) -> dict[str, Any]:
        return host_payload(name, **{"cwd": str(self.folder), "transcript_path": "", **more})

    def send(self, payload: Any, *argv: str) -> str:
        out = io.StringIO()
        text = payload if isinstance(payload, str) else json.dumps(payload)
        assert main(argv, io.StringIO(text), out, {}) == 0
        return out.getvalue()

    def context(self, payload: Any) -> str:
        return str(json.loads(self.send(payload))["hookSpecificOutput"]["additionalContext"])

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in events(str(self.root)) if event["event"] == kind]

    def settings(self, **retrieval: Any) -> None:
        (self.root / "memory-config.json").write_text(json.dumps({"retrieval": retrieval}))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    shutil.copytree(MEMORIES, tmp_path / ".claude" / "memory")
    return Project(tmp_path)


PROMPTS = ("claude-code-user-prompt-submit", "codex-user-prompt-submit", "legacy-user-prompt")


@pytest.mark.parametrize("name", PROMPTS)
def test_trap_24_the_prompt_is_read_under_the_key_each_host_sends(project: Project, name: str) -> None:
    assert REDIS in project.context(project.payload(name))
    (event,) = project.events("prompt")
    assert event["outcome"] == "injected"
    assert event["injected"][0]["id"] == REDIS
    assert event["injected"][0]["rank"] == 1


def test_trap_24_a_prompt_under_no_key_is_noted_as_empty(project: Project) -> None:
    payload = project.payload("claude-code-user-prompt-submit")
    payload["userPrompt"] = payload.pop("prompt")
    assert project.send(payload) == ""
    assert [event["outcome"] for event in project.events("prompt")] == ["empty"]


@pytest.mark.parametrize("name", PROMPTS)
def test_only_documented_keys_are_sent(project: Project, name: str) -> None:
    answer = json.loads(project.send(project.payload(name)))
    assert list(answer) == ["hookSpecificOutput"]
    assert set(answer["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    assert answer["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    assert len(answer["hookSpecificOutput"]["additionalContext"]) <= 10_000


def test_at_most_three_pointers_and_nothing_retired(project: Project) -> None:
    payload = project.payload(
        "claude-code-user-prompt-submit", prompt="sign access tokens: which signing keys, HS256 or RS256?"
    )
    block = project.context(payload)
    assert 1 <= block.count("<memory ") <= 3
    assert "shared-secret-token-signing" not in block


def test_trap_40_what_was_stored_is_marked_as_data(project: Project) -> None:
    block = project.context(project.payload("claude-code-user-prompt-submit"))
    assert block.startswith("<memory-context ")
    assert block.endswith("</memory-context>")
    assert 'content="data"' in block
    assert "not instructions" in block


def test_an_off_topic_prompt_gets_silence(project: Project) -> None:
    assert project.send(project.payload("claude-code-user-prompt-submit", prompt="write a haiku about autumn")) == ""
    (event,) = project.events("prompt")
    assert event["outcome"] == "silent"
    assert event["injected"] == []
    assert event["ms"] > 0


def test_trap_29_a_hint_goes_where_the_model_sees_it_and_only_when_asked_for(project: Project) -> None:
    project.settings(hint=True)
    block = project.context(project.payload("claude-code-user-prompt-submit", prompt="write a haiku about autumn"))
    assert block.count("<memory ") == 0
    assert "memory search" in block
    assert [event["outcome"] for event in project.events("prompt")] == ["silent"]


@pytest.mark.parametrize("prompt", ["redis", "go on", "  redis   \n\n\n\n\n"])
def test_prompts_under_ten_characters_are_skipped(project: Project, prompt: str) -> None:
    assert project.send(project.payload("claude-code-user-prompt-submit", prompt=prompt)) == ""
    assert [event["outcome"] for event in project.events("prompt")] == ["skipped"]


def test_retrieval_that_is_switched_off_is_silent(project: Project) -> None:
    project.settings(enabled=False)
    assert project.send(project.payload("claude-code-user-prompt-submit")) == ""


@pytest.mark.parametrize(
    "change",
    [
        {"agent_id": "a1", "agent_type": "general-purpose"},
        {"prompt": "<task-notification>\nthe broker redis is full and refuses new messages\n</task-notification>"},
        {"prompt": "<local-command-stdout>broker redis full</local-command-stdout>"},
    ],
)
def test_prompts_that_no_user_wrote_are_not_logged_as_queries(project: Project, change: dict[str, str]) -> None:
    assert project.send(project.payload("claude-code-user-prompt-submit", **change)) == ""
    (event,) = project.events("prompt")
    assert event["outcome"] == "skipped"
    assert "query" not in event


def transcript(folder: Path, *turns: str) -> str:
    path = folder / "session.jsonl"
    lines = [json.dumps({"type": "user", "message": {"role": "user", "content": turn}}) for turn in turns]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_a_short_prompt_is_understood_from_the_turns_before_it(project: Project) -> None:
    path = transcript(project.folder, "terraform plan refuses to start", "another run holds the lock, but nobody is deploying")
    payload = project.payload("claude-code-user-prompt-submit", prompt="is it safe to just force it?", transcript_path=path)
    assert "terraform-state-lock-left-behind" in project.context(payload)
    assert project.events("prompt")[0]["enriched"] is True
    assert project.send({**payload, "transcript_path": "/nowhere"}) == ""


def test_off_topic_after_a_topical_turn_is_silent_and_nothing_is_shown_twice_for_it(project: Project) -> None:
    path = transcript(project.folder, "terraform plan refuses to start", "another run holds the lock, but nobody is deploying")
    payload = project.payload("claude-code-user-prompt-submit", transcript_path=path)
    for prompt in ("tell me a joke", "write one about spring", "run the test suite"):
        assert project.send({**payload, "prompt": prompt}) == ""
    assert 'confidence="medium"' in project.context({**payload, "prompt": "is it safe to just force it?"})
    assert project.send({**payload, "prompt": "is it safe to just force it?"}) == ""
    assert project.events("prompt")[-1]["reason"] == "this session has seen it"
    assert project.context({**payload, "session_id": "another", "prompt": "is it safe to just force it?"})
    project.send({**project.payload("claude-code-session-start", source="compact"), "session_id": payload["session_id"]})
    assert project.context({**payload, "prompt": "is it safe to just force it?"})


def test_what_was_searched_with_a_short_prompt_is_kept(project: Project) -> None:
    path = transcript(project.folder, "terraform plan refuses to start", "another run holds the lock ghp_" + "a1B2" * 9)
    payload = project.payload("claude-code-user-prompt-submit", prompt="is it safe to just force it?", transcript_path=path)
    project.send(payload)
    project.send({**payload, "transcript_path": "/nowhere"})
    first, second = project.events("prompt")
    assert first["searched"].startswith("is it safe to just force it?\nanother run holds the lock")
    assert "ghp_" not in first["searched"]
    assert "searched" not in second
    assert first["query"] == second["query"]


def test_a_prompt_that_begins_with_the_users_own_markup_is_searched(project: Project) -> None:
    prompt = "<app-header> shows that the broker redis is full and refuses new messages"
    assert REDIS in project.context(project.payload("claude-code-user-prompt-submit", prompt=prompt))


def test_a_trigger_phrase_at_the_end_of_a_huge_paste_calls(project: Project) -> None:
    paste = "\n".join(f'File "/srv/app{number}/module.py", line {number}, in handler{number}' for number in range(20_000))
    prompt = f"{paste}\nResponseError: OOM command not allowed when used memory > maxmemory"
    block = project.context(project.payload("claude-code-user-prompt-submit", prompt=prompt))
    assert REDIS in block
    assert 'confidence="high"' in block


def test_a_prompt_that_tells_enough_is_not_diluted_with_earlier_turns(tmp_path: Path) -> None:
    path = transcript(tmp_path, "terraform state lock")
    long = "the broker redis is full and refuses messages"
    assert enriched(long, Settings(), path) == long


def test_the_latest_turns_come_first_and_the_prompt_itself_not_twice(tmp_path: Path) -> None:
    prompt = "and now that?"
    path = transcript(tmp_path, "zero", "one", "two", "three", prompt)
    assert enriched(prompt, Settings(), path) == f"{prompt}\nthree\ntwo\none"
    assert enriched(prompt, Settings(transcript_context=TranscriptContext(max_turns=1)), path) == f"{prompt}\nthree"
    assert enriched(prompt, Settings(transcript_context=TranscriptContext(enabled=False)), path) == prompt


def test_a_read_of_a_memory_is_joined_to_its_prompt(project: Project) -> None:
    project.send(project.payload("claude-code-user-prompt-submit"))
    path = str(project.root / "runbook" / f"{REDIS}.json")
    assert project.send(project.payload("claude-code-post-tool-use-read", tool_input={"file_path": path})) == ""
    (prompt,), (read,) = project.events("prompt"), project.events("read")
    assert (read["id"], read["prompt_id"], read["session_id"]) == (REDIS, prompt["prompt_id"], prompt["session_id"])


@pytest.mark.parametrize("host", ["claude-code", "codex"])
@pytest.mark.parametrize("command", ["cat {}", "bash -lc 'head -n 20 {} | grep steps'", "cd runbook && sed -n 1,9p {}"])
def test_a_read_by_shell_is_a_read(project: Project, host: str, command: str) -> None:
    project.send(project.payload(f"{host}-user-prompt-submit"))
    path = project.root / "runbook" / f"{REDIS}.json"
    name = path.name if command.startswith("cd") else str(path)
    event = project.payload("codex-post-tool-use-bash", cwd=str(project.root), tool_input={"command": command.format(name)})
    if host == "claude-code":  # calls the turn a prompt
        event["prompt_id"] = event.pop("turn_id")
    assert project.send(event) == ""
    (prompt,), (read,) = project.events("prompt"), project.events("read")
    assert (read["id"], read["prompt_id"], read["tool"]) == (REDIS, prompt["prompt_id"], "Bash")


def test_a_read_by_a_sub_agent_is_a_read(project: Project) -> None:
    event = project.payload("claude-code-post-tool-use-read")
    assert event["agent_type"] == "general-purpose"
    project.send({**event, "tool_input": {"file_path": str(project.root / "runbook" / f"{REDIS}.json")}})
    assert [read["id"] for read in project.events("read")] == [REDIS]


@pytest.mark.parametrize("name", RECORDED)
def test_every_recorded_payload_is_answered_without_an_error(project: Project, name: str) -> None:
    said = project.send(project.payload(name))
    assert bool(said) == name.endswith("user-prompt-submit")
    assert project.events("error") == []


@pytest.mark.parametrize(
    ("tool", "path"),
    [
        ("Read", "/etc/passwd"),
        ("Read", "../../secrets.json"),
        ("Write", "runbook/x.json"),
        ("Read", ""),
        ("Read", "missing.json"),
    ],
)
def test_other_reads_are_not_noted(project: Project, tool: str, path: str) -> None:
    given = {"file_path": str(project.root / path) if path and path[0] != "/" else path}
    assert project.send(project.payload("claude-code-post-tool-use-read", tool_name=tool, tool_input=given)) == ""
    assert project.events("read") == []


def test_an_answer_that_quotes_eight_words_of_a_shown_memory_references_it(project: Project) -> None:
    project.send(project.payload("claude-code-user-prompt-submit"))
    steps = json.loads((project.root / "runbook" / f"{REDIS}.json").read_text())["content"]["steps"]
    quote = next(step for step in steps if len(step.split()) >= 9)
    assert project.send(project.payload("claude-code-stop", last_assistant_message=f"I will do this: {quote}")) == ""
    (event,) = project.events("reference")
    assert [one["id"] for one in event["referenced"]] == [REDIS]
    assert event["referenced"][0]["words"] >= 8
    assert event["prompt_id"] == project.events("prompt")[0]["prompt_id"]


def test_less_than_eight_words_or_another_prompt_is_no_reference(project: Project) -> None:
    project.send(project.payload("claude-code-user-prompt-submit"))
    project.send(project.payload("claude-code-stop", last_assistant_message="Broker Redis is full and refuses, as you said."))
    title = "Broker Redis is full and refuses new messages " * 3
    project.send(project.payload("claude-code-stop", prompt_id="another", last_assistant_message=title))
    project.send(project.payload("claude-code-stop", last_assistant_message=None))
    assert project.events("reference") == []


def test_the_longest_shared_run_of_words_is_measured() -> None:
    text = "one two three four five six seven eight nine ten"
    assert quoted_words("so: ONE two, three four five six seven eight nine.", text) == 9
    assert quoted_words("one two three four five six seven", text) == 0
    assert quoted_words("", text) == quoted_words(text, "") == 0


def test_the_start_of_a_session_is_noted(project: Project) -> None:
    assert project.send(project.payload("claude-code-session-start")) == ""
    assert [event["source"] for event in project.events("session")] == ["startup"]


def test_secrets_in_a_prompt_are_not_kept(project: Project) -> None:
    secret = "ghp_" + "a1B2" * 9
    project.send(project.payload("claude-code-user-prompt-submit", prompt=f"why is the token {secret} refused by the broker?"))
    assert secret not in "".join(path.read_text() for path in (project.root / ".ringtrue" / "journal").iterdir())


def test_the_event_may_be_named_on_the_command_line(project: Project) -> None:
    payload = project.payload("claude-code-session-start")
    del payload["hook_event_name"]
    project.send(payload, "SessionStart")
    assert len(project.events("session")) == 1
    project.send({**payload, "hook_event_name": "PreCompact"})
    assert project.events("prompt") == []


@pytest.mark.parametrize("payload", ["", "{", "[]", '"x"', "null", "[" * 100_000, '{"prompt": 5}', '{"cwd": 7, "prompt": "x"}'])
def test_any_input_ends_well_and_in_silence(project: Project, payload: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.folder)
    assert project.send(payload) == ""


def test_trap_33_half_a_surrogate_pair_or_a_nul_in_a_prompt_is_survived(project: Project) -> None:
    prompt = "the broker redis \ud83d is full \0 and refuses new messages"
    assert REDIS in project.context(project.payload("claude-code-user-prompt-submit", prompt=prompt))
    assert REDIS in project.context("\ufeff" + json.dumps(project.payload("claude-code-user-prompt-submit")))
    assert project.events("error") == []


def test_an_error_is_silent_and_in_the_journal(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the disk is gone")

    monkeypatch.setattr(respond_module, "find", broken)
    assert project.send(project.payload("claude-code-user-prompt-submit")) == ""
    (event,) = project.events("error")
    assert event["kind"] == "error"
    assert "the disk is gone" in event["message"]
    assert event["during"] == "prompt"
    assert event["prompt_id"]


def test_a_damaged_memory_does_not_stop_the_others(project: Project) -> None:
    (project.root / "runbook" / "broken.json").write_text("{")
    assert REDIS in project.context(project.payload("claude-code-user-prompt-submit"))


def test_a_folder_that_cannot_be_written_is_searched_all_the_same(project: Project) -> None:
    (project.root / ".ringtrue").write_text("in the way")
    assert REDIS in project.context(project.payload("claude-code-user-prompt-submit"))


def test_a_strategy_that_needs_more_than_the_hook_has_falls_back_to_words(project: Project) -> None:
    project.settings(match_strategy="hybrid")
    assert REDIS in project.context(project.payload("claude-code-user-prompt-submit"))


def test_the_fixed_threshold_can_be_chosen(project: Project) -> None:
    prompt = "which bike lock holds up best against an angle grinder?"
    assert project.send(project.payload("claude-code-user-prompt-submit", prompt=prompt)) == ""
    project.settings(threshold="fixed")
    block = project.context(project.payload("claude-code-user-prompt-submit", prompt=prompt))
    assert "terraform-state-lock-left-behind" in block
    assert 'confidence="high"' not in block


def test_a_project_without_memories_is_silent_and_stays_untouched(tmp_path: Path) -> None:
    empty = Project(tmp_path)
    assert empty.send(empty.payload("claude-code-user-prompt-submit")) == ""
    assert list(tmp_path.iterdir()) == []


def start(folder: Path, payload: dict[str, Any], *, script: Path = FOLDER / "hook.py") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-I", "-S", str(script)],
        input=json.dumps(payload).encode(),
        capture_output=True,
        cwd=folder,
        timeout=120,
    )


def test_a_copy_of_the_folder_runs_as_a_script_without_any_package(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("a plugin.d") / "hook"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    project.send(
        project.payload("claude-code-user-prompt-submit")
    )  # the index is made, so that a busy machine cannot cut it short
    ended = start(project.folder, project.payload("claude-code-user-prompt-submit"), script=copy / "hook.py")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert REDIS in json.loads(ended.stdout)["hookSpecificOutput"]["additionalContext"]


def test_it_runs_as_a_module_too(project: Project) -> None:
    project.send(project.payload("claude-code-user-prompt-submit"))
    ended = subprocess.run(
        [sys.executable, "-m", "ringtrue.memory.hook.hook"],
        input=json.dumps(project.payload("claude-code-user-prompt-submit")).encode(),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        timeout=120,
    )
    assert ended.returncode == 0
    assert REDIS in json.loads(ended.stdout)["hookSpecificOutput"]["additionalContext"]


def test_trap_34_a_hook_that_hangs_ends_in_time_with_0_and_says_so_in_the_journal(project: Project, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    shutil.copytree(FOLDER, slow, ignore=shutil.ignore_patterns("__pycache__"))
    with (slow / "respond.py").open("a") as file:
        file.write("\n\ndef find(*_, **__):\n    time.sleep(60)\n")
    began = time.monotonic()
    ended = start(project.folder, project.payload("claude-code-user-prompt-submit"), script=slow / "hook.py")
    assert time.monotonic() - began < 20
    assert (ended.returncode, ended.stdout) == (0, b"")
    (event,) = project.events("error")
    assert event["kind"] == "timeout"
    assert event["during"] == "prompt"


def test_trap_34_a_host_that_never_ends_its_input_does_not_keep_the_hook(project: Project) -> None:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(FOLDER / "hook.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=project.folder,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.wait(60) == 0
        assert process.stdout.read() == b""
    finally:
        process.stdin.close()
        process.stdout.close()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to list processes")
def test_trap_35_no_process_is_left_behind(project: Project) -> None:
    before = _children()
    start(project.folder, project.payload("claude-code-user-prompt-submit"))
    assert _children() <= before


def _children() -> set[str]:
    mine = Path(f"/proc/self/task/{os.getpid()}/children")
    return set(mine.read_text().split()) if mine.exists() else set()


def test_trap_35_the_hook_starts_no_process() -> None:
    for path in FOLDER.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not any(
            word in text for word in ("subprocess", "os.fork", "os.system", "os.spawn", "os.popen", "multiprocessing")
        ), path


def test_a_trigger_phrase_in_the_middle_of_a_huge_paste_calls(project: Project) -> None:
    paste = "\n".join(f'File "/srv/app{number}/module.py", line {number}, in handler{number}' for number in range(3000))
    prompt = f"{paste}\nResponseError: OOM command not allowed when used memory > maxmemory\n{paste}"
    assert REDIS in project.context(project.payload("claude-code-user-prompt-submit", prompt=prompt))


def test_a_short_prompt_that_is_a_trigger_phrase_calls_and_other_short_ones_are_skipped(project: Project) -> None:
    release = {
        "schema_version": "1.0",
        "category": "runbook",
        "id": "release",
        "title": "Release by tag",
        "content": {"trigger": "a release", "steps": ["tag main"]},
        "created_at": "2026-05-04T08:00:00Z",
        "updated_at": "2026-05-04T08:00:00Z",
        "tags": ["release"],
        "record_status": "active",
        "trigger_phrases": ["ship it"],
    }
    folder = Path(project.root) / "runbooks"
    folder.mkdir(exist_ok=True)
    (folder / "release.json").write_text(json.dumps(release), encoding="utf-8")
    assert "Release by tag" in project.context(project.payload("claude-code-user-prompt-submit", prompt="Ship it!"))
    assert project.send(project.payload("claude-code-user-prompt-submit", prompt="ship now")) == ""
    assert project.events("prompt")[-1]["outcome"] == "skipped"
