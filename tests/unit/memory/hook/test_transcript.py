"""What the user said last, out of a file that is mostly not the user's."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ringtrue.memory.hook.transcript import MOST_BYTES, used_paths, user_turns

HOSTS = Path(__file__).parents[3] / "fixtures" / "hosts"


def turns(path: Path, max_turns: int = 3, tail_bytes: int = 8192) -> list[str]:
    return user_turns(str(path), max_turns=max_turns, tail_bytes=tail_bytes)


def user(text: Any, **more: Any) -> str:
    return json.dumps({"type": "user", "message": {"role": "user", "content": text}, **more})


def assistant(text: str) -> str:
    return json.dumps({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}})


def write(folder: Path, *lines: str) -> Path:
    path = folder / "session.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_only_what_the_user_typed_counts() -> None:
    assert turns(HOSTS / "claude-code-transcript.jsonl") == [
        "one of the partners says our webhook has been silent since Friday",
        "their endpoint got switched off after errors",
    ]


def test_the_latest_turns_come_last_and_no_more_than_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, *(user(f"turn number {place}") for place in range(6)))
    assert turns(path, max_turns=2) == ["turn number 4", "turn number 5"]
    assert turns(path, max_turns=0) == []


def test_trap_31_the_tail_grows_until_it_holds_turns_of_the_user(tmp_path: Path) -> None:
    path = write(tmp_path, user("rotate the signing keys"), *(assistant("x" * 1000) for _ in range(60)))
    assert turns(path, tail_bytes=8192) == ["rotate the signing keys"]


def test_trap_31_the_tail_ends_at_256_kilobytes(tmp_path: Path) -> None:
    path = write(tmp_path, user("far too long ago"), assistant("x" * (MOST_BYTES + 10)))
    assert turns(path) == []


def test_trap_33_lone_surrogates_and_lines_that_are_no_objects_are_survived(tmp_path: Path) -> None:
    path = write(
        tmp_path, "[1, 2]", '"text"', "null", "{not json", "[" * 100_000, '{"type":"user","message":"text"}',
        '{"type":"user","message":{"role":"user","content":"half \\ud83d of it"}}', '{"type":"user","message":{"role":"user"}}',
    )  # fmt: skip
    (text,) = turns(path, tail_bytes=200_000)
    assert text == "half  of it"
    text.encode("utf-8")


@pytest.mark.parametrize("mark", ["isSidechain", "isMeta", "isCompactSummary", "toolUseResult"])
def test_lines_marked_as_not_the_users_are_passed_over(tmp_path: Path, mark: str) -> None:
    assert turns(write(tmp_path, user("said by a machine", **{mark: True}), user("said by a person"))) == ["said by a person"]


@pytest.mark.parametrize(
    "text", ["<command-name>/model</command-name>", "<local-command-stdout>ok</local-command-stdout>", "  "]
)
def test_markup_of_commands_is_no_turn(tmp_path: Path, text: str) -> None:
    assert turns(write(tmp_path, user("deploy it"), user(text), user([{"type": "text", "text": text}]))) == ["deploy it"]


def test_recorded_transcripts_give_what_was_typed() -> None:
    assert turns(HOSTS / "claude-code-transcript-recorded.jsonl", tail_bytes=262_144) == [
        "how are our JWT sessions signed?", "should the price column be a float or integer cents?"
    ]  # fmt: skip
    assert turns(HOSTS / "codex-rollout-recorded.jsonl") == [
        "the helm deployment: rolling back failed yesterday", "rename the variable x to y in src/app.py"
    ]  # fmt: skip


def test_the_turns_of_an_older_codex_rollout_are_read(tmp_path: Path) -> None:
    line = json.dumps({"type": "event_msg", "payload": {"type": "user_message", "message": "why is the lock held"}})
    other = json.dumps({"type": "event_msg", "payload": {"type": "token_count", "message": "no"}})
    assert turns(write(tmp_path, line, other, '{"type":"event_msg","payload":[]}')) == ["why is the lock held"]


def test_a_transcript_that_cannot_be_read_gives_nothing(tmp_path: Path) -> None:
    assert turns(tmp_path / "missing.jsonl") == turns(tmp_path) == user_turns("a\0b", max_turns=3, tail_bytes=10) == []
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        assert turns(tmp_path / "pipe") == []  # and does not wait for a writer


def test_the_paths_of_the_last_uses_of_tools_are_found() -> None:
    path = str(HOSTS / "claude-code-transcript.jsonl")
    assert used_paths(path, most=5, tail_bytes=8192) == ["/projects/shop/src/webhooks/send.py"]


@pytest.mark.parametrize(
    "line",
    [
        user("<command-name>/clear</command-name>\n<command-message>clear</command-message>"),
        user([{"type": "text", "text": "<command-message>clear</command-message>\n<command-name>/clear</command-name>"}]),
        json.dumps({"type": "system", "subtype": "local_command", "content": "<command-name>/clear</command-name>"}),
    ],
)
def test_what_was_said_before_the_conversation_was_cleared_does_not_count(tmp_path: Path, line: str) -> None:
    assert turns(write(tmp_path, user("terraform lock"), line, user("paint the fence"))) == ["paint the fence"]
    assert turns(write(tmp_path, user("terraform lock"), line)) == []
    assert turns(write(tmp_path, user("say <command-name>/clear</command-name>"))) == [
        "say <command-name>/clear</command-name>"
    ]


def test_markup_that_hosts_do_not_use_is_the_users_own(tmp_path: Path) -> None:
    for text in ("<app-header> should use JWT", "<command-palette> opens twice", "<bash-runner/> hangs"):
        assert turns(write(tmp_path, user(text))) == [text]
