"""Every hostile case of ``tests/redteam`` against the hook, the commands and the doctor.

Nothing here is timed; a watchdog of a minute turns what would hang into a failure.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from redteam.plant import (
    CASES,
    CONTROL,
    Planted,
    cases,
    check_block,
    hidden_in,
    name_of,
    plant,
    strict_json,
    texts,
)
from ringtrue.memory.hook.cache import FILE as CACHE
from ringtrue.memory.hook.cache import open_index
from ringtrue.memory.hook.files import write
from ringtrue.memory.hook.guard import find_secrets
from ringtrue.memory.hook.hook import main
from ringtrue.memory.hook.memory import Memory, MemoryFault, changed
from ringtrue.memory.hook.settings import Settings

HOOK = Path(__file__).parents[4] / "src" / "ringtrue" / "memory" / "hook" / "hook.py"
PLACES = {
    "title", "tags", "body", "id", "path", "category folder", "trigger phrase", "config", "transcript line", "tool response",
    "journal", "Markdown front matter", "symlink", "file name", "MCP arguments", "prompt", "payload",
}  # fmt: skip
POINTER = {"category", "path", "tags", "confidence"}
IN_EVENTS = ("prompt", "payload", "transcript line", "tool response")
every_case = pytest.mark.parametrize("case", cases(tool=False), ids=name_of)
every_stored = pytest.mark.parametrize("case", [c for c in cases(tool=False) if c["planted"] not in IN_EVENTS], ids=name_of)
every_query = pytest.mark.parametrize("case", [c for c in cases(tool=False) if c["planted"] == "prompt"], ids=name_of)


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """What hangs fails instead."""

    def bark(*_: object) -> None:
        raise TimeoutError("this took a minute")

    before = signal.signal(signal.SIGALRM, bark)
    signal.setitimer(signal.ITIMER_REAL, 60)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("RINGTRUE_MEMORY_ROOT", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def asked(here: Planted, prompt: str, also: dict[str, Any] | None = None) -> str:
    payload = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt_id": "p", "cwd": str(here.project)}
    return sent(json.dumps({**payload, "prompt": prompt, **(also or {})}))


def sent(text: str) -> str:
    out = io.StringIO()
    assert main([], io.StringIO(text), out, {}) == 0
    return out.getvalue()


def context_in(out: str) -> str:
    """Return what goes to the model, of an answer that has the documented keys and nothing else; empty for silence."""
    if not out:
        return ""
    answer = strict_json(out)
    assert set(answer) == {"hookSpecificOutput"}
    inner = answer["hookSpecificOutput"]
    assert set(inner) == {"hookEventName", "additionalContext"}  # Codex refuses any other
    assert inner["hookEventName"] == "UserPromptSubmit"
    block = inner["additionalContext"]
    assert len(block) <= 10_000
    assert len(block.encode("utf-16-le")) <= 20_000
    return str(block)


def journal_of(here: Planted) -> str:
    folder = here.root / ".ringtrue" / "journal"
    plain = [path for path in folder.iterdir() if path.is_file() and not path.is_symlink()] if folder.is_dir() else []
    return "".join(path.read_text(errors="replace") for path in plain)


def test_the_set_holds_sixty_cases_of_every_kind_and_place() -> None:
    assert len(CASES) >= 60
    assert len({case["id"] for case in CASES}) == len(CASES)
    assert {case["planted"] for case in CASES} == PLACES
    assert all(case["tries"] and case["holds"] for case in CASES)
    assert min(Counter(case["kind"] for case in CASES).values()) >= 3


@every_case
def test_the_hook_stays_within_its_words(case: dict[str, Any], home: Path) -> None:
    here = plant(case, home)
    if "raw" in here.case:
        out = sent(here.case["raw"])
    elif "payload" in here.case:
        out = asked(here, "", here.case["payload"])
    else:
        out = asked(here, here.prompt)
    block = context_in(out)
    elements = check_block(block, here, attributes=POINTER) if block else []
    assert len(elements) <= 3
    assert all(element.attrib["confidence"] in ("high", "medium", "low") for element in elements)
    assert all(len(element.text or "") <= 120 for element in elements)
    if here.case.get("silent"):
        assert out == ""
    if "shown" in case:
        # Without any other memory about it, whatever leads to the hostile file is the hostile memory.
        hostile = [element for element in elements if not element.attrib["path"].endswith("otters.json")]
        assert bool(hostile) == case["shown"]
    for never in here.case.get("never", ()):
        assert never not in block
    secrets = [one for one in here.case.get("never", ()) if here.case["kind"] == "secret"]
    assert not any(secret in journal_of(here) for secret in secrets)
    assert list((here.outside).glob("*.jsonl")) == []


@every_stored
def test_an_innocent_memory_is_found_beside_it(case: dict[str, Any], home: Path) -> None:
    here = plant(case, home)
    block = context_in(asked(here, CONTROL))
    assert str(here.root / "decision" / "otters.json") in [
        one.attrib["path"] for one in check_block(block, here, attributes=POINTER)
    ]


@every_stored
def test_the_commands_print_no_codes_no_secrets_and_json_for_every_parser(case: dict[str, Any], home: Path, ringtrue) -> None:
    here = plant(case, home)
    commands = [["search", here.prompt], ["list", "--status", "all"]]
    if here.memory_id.isprintable():
        commands.append(["show", "--", here.memory_id])
    for command in commands:
        options = ["memory", command[0], "--root", str(here.root)]
        said = ringtrue(*options, *command[1:])
        assert said.code in (0, 2), said.err
        assert hidden_in(said.out + said.err) == []
        if command[0] != "search" and case["kind"] not in ("json", "hidden", "secret"):
            continue  # the same list as JSON differs where texts are odd
        told = ringtrue(*options, "--json", *command[1:])
        assert told.code == said.code
        for never in here.case.get("never", ()) if case["kind"] == "secret" else ():
            assert never not in said.out
            assert never not in told.out or command[0] == "show"  # which is the file, word for word
        if told.code or command[0] == "show":
            continue
        found = strict_json(told.out)
        shown = found["hits"] if command[0] == "search" else found["memories"]
        assert all(hidden_in(text) == [] for one in shown for text in (one["title"], *one["tags"]))
        assert command[0] != "search" or not case.get("hidden") or here.memory_id not in [one["id"] for one in shown]


@every_query
def test_a_search_takes_any_words(case: dict[str, Any], home: Path, ringtrue) -> None:
    here = plant(case, home)
    said = ringtrue("memory", "search", "--root", here.root, "--explain", "--json", "--", here.prompt)
    assert said.code == 0, said.err
    found = strict_json(said.out)
    assert {one["id"] for one in found["hits"]} <= {"otters"}
    assert "otters" in [one["id"] for one in found["hits"]] or "otters" not in here.prompt


@every_stored
def test_the_doctor_ends_and_says_what_it_found(case: dict[str, Any], home: Path, ringtrue) -> None:
    here = plant(case, home)
    said = ringtrue("memory", "doctor", "--words-only", "--all", "--root", here.root)
    assert said.code in (0, 1), said.err
    assert hidden_in(said.out) == []
    told = ringtrue("memory", "doctor", "--words-only", "--json", "--root", here.root)
    findings = strict_json(told.out)["findings"]
    if "fault" in case:
        assert any(case["fault"] in finding["text"] for finding in findings)
    if "finding" in case:
        assert any(finding["kind"] == case["finding"] and finding["level"] == "error" for finding in findings)
    for never in here.case.get("never", ()) if case["kind"] == "secret" else ():
        assert not any(never in text for text in texts(findings))
        assert never not in said.out


@pytest.mark.parametrize("case", [case for case in cases(tool=False) if case["id"] in (
    "pipe", "config-pipe", "journal-pipe", "transcript-pipe", "pipe-for-null-json", "prompt-key-like-run",
    "prompt-combining-run", "heading-with-blanks", "stop-endless-answer", "prompt-one-megabyte",
)], ids=name_of)  # fmt: skip
def test_trap_34_the_whole_process_ends_with_0_whatever_lies_there(case: dict[str, Any], home: Path) -> None:
    here = plant(case, home)
    payload = {
        "hook_event_name": "UserPromptSubmit",
        "cwd": str(here.project),
        "prompt": here.prompt,
        **here.case.get("payload", {}),
    }
    ended = subprocess.run(
        [sys.executable, "-I", "-S", str(HOOK)], input=json.dumps(payload).encode(), capture_output=True, timeout=120, cwd=home
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    context_in(ended.stdout.decode())


def test_trap_34_a_pattern_that_lets_no_thread_run_is_cut_short_too(home: Path) -> None:
    """A search for a pattern holds the interpreter; only a signal reaches it."""
    code = (
        "import sys, re; sys.path.insert(0, sys.argv[1]); import hook.hook as hook; import hook.respond as respond\n"
        "def stuck(*_): re.match(r'(a+)+$', 'a' * 64 + 'b'); yield ''\n"
        "respond.respond = stuck; sys.argv[1:] = []; hook.run(0.2)"
    )
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-I", "-c", code, str(HOOK.parents[1])], input=b"{}", capture_output=True, timeout=120, cwd=home
    )
    assert (ended.returncode, ended.stdout) == (0, b"")
    assert time.monotonic() - began < 20


def test_trap_35_nothing_is_left_running_after_a_host_that_never_ends_its_input(home: Path) -> None:
    process = subprocess.Popen([sys.executable, "-I", "-S", str(HOOK)], stdin=subprocess.PIPE, start_new_session=True, cwd=home)
    assert process.stdin is not None
    try:
        assert process.wait(60) == 0
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
    finally:
        process.stdin.close()


def test_a_cache_that_somebody_made_names_no_file_outside(home: Path) -> None:
    """A project may come with an index of its own, whose entries name any file of the machine."""
    import sqlite3

    here = plant({"id": "x", "many": 60}, home)
    secret = home / "outside" / "secret.json"
    secret.write_text(json.dumps({"id": "secret", "category": "decision", "title": "The quokka tunnel", "content": {}}))
    open_index(str(here.root), Settings()).close()
    path = here.root / ".ringtrue" / CACHE
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO entry VALUES (9999, 'secret', 0, 1e18, 1, ?, '')", (os.fsencode(secret),))
        db.execute("INSERT INTO memory(rowid, title, tags, body) VALUES (9999, 'quokka tunnel', '', '')")
    db.close()
    found = open_index(str(here.root), Settings()).search("quokka tunnel", k=5, now=0.0)
    assert [one.memory.id for one in found] == []
    with sqlite3.connect(path) as db:
        db.execute("UPDATE made SET key = replace(key, '1 ', '1 7')")
    db.close()
    assert [one.memory.id for one in open_index(str(here.root), Settings()).search("otters ledger", k=1, now=0.0)] == ["otters"]


def test_a_block_of_twenty_titles_of_emoji_fits_in_utf_16_too(home: Path) -> None:
    here = plant({"id": "x", "config": {"retrieval": {"auto_inject": {"max_results": 20}, "threshold": "fixed"}}}, home)
    for number in range(20):
        title = "quokka " + "\U0001f9a6" * 110
        memory = Memory(id=f"q-{number}", category="decision", title=title, body="quokka", tags=("\U0001f9a6" * 100,))
        write(str(here.root), memory)
    (here.root / "memory-config.json").write_text(
        json.dumps(
            {"retrieval": {"threshold": "fixed", "auto_inject": {"max_results": 20, "min_score_abs": 0, "relative_cutoff": 0}}}
        )
    )
    block = context_in(asked(here, "the quokka and where it lives"))
    assert 3 < block.count("<memory ") < 20


SLOW = (
    "sk-",
    "sk-a-",
    "eyJ-",
    "eyJaaaaaaaa.",
    "pass",
    "://a:",
    "authorization: ",
    "key=",
    "-----BEGIN PRIVATE KEY-----",
    "12345678:AA",
)


@pytest.mark.parametrize("part", SLOW)
def test_looking_for_secrets_takes_no_longer_than_the_text_is(part: str) -> None:
    """A hundred thousand characters in seconds on any machine; each of these once took minutes, or would have."""
    assert isinstance(find_secrets(part * (100_000 // len(part))), list)


def test_a_thousand_secrets_are_all_found_and_none_inside_another() -> None:
    found = find_secrets(" ".join(f"ghp_{number:036d}" for number in range(1000)))
    assert len(found) == 1000
    assert all(one[2] <= other[1] for one, other in pairwise(found))


def test_a_title_beyond_the_limit_is_refused_for_a_memory_that_has_a_file_too(tmp_path: Path) -> None:
    memory = Memory(id="x", category="decision", title="Short", body="")
    memory = changed(memory, path=write(str(tmp_path), memory))
    for title in ("x" * 121, " "):
        with pytest.raises(MemoryFault, match=r"title has \d+ characters; write 1 to 120"):
            write(str(tmp_path), changed(memory, title=title))
    record = json.loads(Path(memory.path).read_text())
    Path(memory.path).write_text(json.dumps({**record, "title": "x" * 200}))
    write(str(tmp_path), changed(memory, title="x" * 200, status="retired"))  # what somebody gave it by hand stays
    assert json.loads(Path(memory.path).read_text())["record_status"] == "retired"


def test_a_refused_secret_is_named_with_its_place(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    memory = Memory(id="x", category="runbook", title="Short", body="", content={"steps": ["one", f"use {secret}"]})
    with pytest.raises(MemoryFault, match=r"content\.steps\[1\] holds a token; take it out") as refused:
        write(str(tmp_path), memory)
    assert secret not in str(refused.value)
    with pytest.raises(MemoryFault, match=r"tags\[0\] holds a token"):
        write(str(tmp_path), changed(memory, content={}, tags=(secret,)))
    assert list(tmp_path.rglob("*.json")) == []
