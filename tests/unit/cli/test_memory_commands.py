"""``ringtrue memory …``: what it prints, its JSON, its exit codes, and that nothing is lost."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from made_memories import store
from ringtrue.cli.memory import COMMANDS


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project as the current folder, with nothing of the machine around it."""
    home = tmp_path / "home"
    folder = tmp_path / "project"
    for path in (home, folder):
        path.mkdir()
    for name in ("RINGTRUE_MEMORY_ROOT", "CLAUDE_PROJECT_DIR", "EDITOR", "VISUAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(folder)
    return folder


def memory_file(name: str, category: str = "decision") -> dict[str, object]:
    return json.loads(Path(f".claude/memory/{category}/{name}.json").read_text())


ADD = ("memory", "add", "decision", "Sessions are JWT", "Signed with RS256.", "--tag", "auth", "--trigger", "sign in")


def test_the_first_screen_of_the_guide_works(ringtrue) -> None:
    added = ringtrue(*ADD)
    assert (added.code, added.out) == (0, "sessions-are-jwt: added (decision/sessions-are-jwt.json)\n")
    prompt = json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": "how are the sessions signed, JWT?"})
    said = ringtrue("memory", "hook", stdin=prompt.encode())
    assert said.code == 0
    assert "Sessions are JWT" in said.json["hookSpecificOutput"]["additionalContext"]
    found = ringtrue("memory", "search", "jwt sessions").out.splitlines()
    assert re.split(r"\s{2,}", found[0]) == ["category", "title", "tags", "changed", "path", "score"]
    assert re.split(r"\s{2,}", found[1])[:3] == ["decision", "Sessions are JWT", "auth"]


def test_bench_asks_questions_of_ones_own_over_ones_own_memory_folder(ringtrue, project) -> None:
    ringtrue(*ADD)
    ringtrue("memory", "add", "runbook", "Redis is full", "raise maxmemory")
    questions = project / "questions.jsonl"
    row = {"query": "how are sessions signed with JWT?", "expected_relevant": [".claude/memory/decision/sessions-are-jwt.json"]}
    questions.write_text(json.dumps(row), encoding="utf-8")
    bench = ("memory", "bench", "--golden", "questions.jsonl", "--strategy", "fts5_bm25")
    (fixed, null) = ringtrue(*bench, "--json").json["rows"]
    assert (fixed["queries"], fixed["measures"]["RR"], null["measures"]["RR"]) == (1, 1.0, 1.0)
    assert "Constitutional" not in ringtrue(*bench).out
    questions.write_text(json.dumps(row | {"expected_relevant": ["decision/session-are-jwt.json"]}), encoding="utf-8")
    refused = ringtrue(*bench)
    assert (refused.code, refused.err.strip()) == (
        2,
        "ringtrue: there is no memory 'session-are-jwt'; did you mean 'sessions-are-jwt'?",
    )
    (project / ".claude/memory/decision/torn.json").write_text("{", encoding="utf-8")
    assert "torn.json: the file is not JSON" in ringtrue(*bench).err


def test_every_command_has_help_with_an_example(ringtrue) -> None:
    for name in COMMANDS:
        outcome = ringtrue("memory", name, "--help")
        assert outcome.code == 0
        assert "Example:" in outcome.out, name


def test_json_is_one_object_for_every_command(ringtrue, tmp_path) -> None:
    ringtrue(*ADD)
    ringtrue("memory", "add", "constraint", "No card data in logs", "mask it")
    for words in (
        ("add", "preference", "Small commits", "one change each"),
        ("show", "sessions-are-jwt"),
        ("list",),
        ("search", "jwt"),
        ("search", "jwt", "--explain"),
        ("edit", "small-commits", "--set", "tags=git"),
        ("link", "small-commits", "supports", "sessions-are-jwt"),
        ("archive", "small-commits"),
        ("supersede", "no-card-data-in-logs", "sessions-are-jwt"),
        ("retire", "sessions-are-jwt"),
        ("export", tmp_path / "out.jsonl"),
        ("import", tmp_path / "out.jsonl"),
        ("doctor", "--words-only"),
    ):
        outcome = ringtrue("memory", *words, "--json")
        assert isinstance(outcome.json, dict), words
        assert outcome.code == 0, (words, outcome.err)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["list"], "no .claude/memory found here or in a folder above"),
        (["show", "x", "--root", "nowhere"], "no such folder"),
        (["add", "decision"], "needs a category and a title"),
        (["add", "decision", "x" * 121, "text"], "write at most 120"),
        (["add", "decision", "Title", "text", "--id", "Not Kebab"], "such as 'not-kebab'"),
        (["add", "decision", "Title", "text", "--set", "x"], "--set 'x' sets nothing"),
        (["add", "decision", "Title", "password=Tr0ub4dor3xyz"], "content.decision, characters 10 to 22: a password"),
        (["add", "decision", "Title", "t", "--record", "x.json"], "--record brings everything"),
        (["import", "nowhere"], "there is no such file"),
        (["import", "claude"], "claude keeps no memories"),
        (["export", "out.xml"], "the format is not known"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(ringtrue, words, says) -> None:
    outcome = ringtrue("memory", *words)
    assert outcome.code == 2
    assert says in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert outcome.out == ""


def test_nothing_is_overwritten_or_deleted_without_yes(ringtrue, tmp_path) -> None:
    ringtrue(*ADD)
    before = memory_file("sessions-are-jwt")
    assert ringtrue(*ADD).code == 2
    out = tmp_path / "out.json"
    assert ringtrue("memory", "export", out).code == 0
    kept = out.read_text()
    assert ringtrue("memory", "export", out).code == 2
    assert ringtrue("memory", "export", out, "--yes").code == 0
    out.write_text(kept.replace("RS256", "ES256"))
    assert "1 skipped" in ringtrue("memory", "import", out).out
    refused = ringtrue("memory", "import", out, "--on-conflict", "replace")
    assert (refused.code, "add --yes" in refused.err) == (2, True)
    assert memory_file("sessions-are-jwt") == before
    assert ringtrue("memory", "import", out, "--on-conflict", "replace", "--yes").code == 0
    assert memory_file("sessions-are-jwt")["content"] == {"decision": "Signed with ES256."}
    for name in ("retire", "archive"):
        assert ringtrue("memory", name, "sessions-are-jwt").code == 0
        assert memory_file("sessions-are-jwt")["content"] == {"decision": "Signed with ES256."}


def test_retired_memories_are_in_no_list_and_no_search(ringtrue) -> None:
    ringtrue(*ADD)
    ringtrue("memory", "retire", "sessions-are-jwt")
    assert "Sessions" not in ringtrue("memory", "list").out
    assert "Sessions" not in ringtrue("memory", "search", "jwt sessions").out
    assert "retired" in ringtrue("memory", "list", "--status", "all").out
    ringtrue("memory", "edit", "sessions-are-jwt", "--set", "record_status=active")
    assert "Sessions are JWT" in ringtrue("memory", "list").out


def test_edit_with_the_editor(ringtrue, tmp_path, monkeypatch) -> None:
    ringtrue(*ADD)
    assert "set EDITOR" in ringtrue("memory", "edit", "sessions-are-jwt").err
    editor = tmp_path / "my editor.sh"
    editor.write_text('#!/bin/sh\nsed -i.bak "s/RS256/ES256/" "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", f"'{editor}'")
    assert "changed" in ringtrue("memory", "edit", "sessions-are-jwt").out
    assert memory_file("sessions-are-jwt")["content"] == {"decision": "Signed with ES256."}
    assert "unchanged" in ringtrue("memory", "edit", "sessions-are-jwt").out
    editor.write_text('#!/bin/sh\necho "{" > "$1"\n')
    broken = ringtrue("memory", "edit", "sessions-are-jwt")
    assert broken.code == 2
    assert "your text is in" in broken.err
    left = Path(broken.err.rpartition(" in ")[2].strip())
    assert left.read_text() == "{\n"
    left.unlink()
    for refused in ("s/decision/nonsense/", "s/ES256/AKIAIOSFODNN7EXAMPLQ/"):  # it parses, but may not be written
        editor.write_text(f'#!/bin/sh\nsed -i.bak "{refused}" "$1"\n')
        outcome = ringtrue("memory", "edit", "sessions-are-jwt")
        assert outcome.code == 2
        left = Path(outcome.err.rpartition(" in ")[2].strip())
        assert refused.split("/")[2] in left.read_text(), "nothing that was typed is lost"
        left.unlink()
    editor.write_text("#!/bin/sh\nexit 3\n")
    assert "the editor ended with 3" in ringtrue("memory", "edit", "sessions-are-jwt").err


def test_search_explain_tells_words_places_and_what_the_hook_would_do(ringtrue) -> None:
    ringtrue(*ADD)
    ringtrue("memory", "add", "runbook", "Redis is full", "--set", 'steps=["raise maxmemory", "drain"]')
    out = ringtrue("memory", "search", "how are JWT sessions signed", "--explain").out
    assert "words: jwt, sessions, signed" in out
    assert "title: jwt sessions" in out
    assert "the hook shows sessions-are-jwt" in out
    found = ringtrue("memory", "search", "maxmemory", "--explain", "--json").json
    assert found["hits"][0]["found_in"] == {"body": ["maxmemory"]}
    assert set(found) == {"query", "strategy", "root", "hits", "words", "hook", "note"}


def test_search_by_strategy_gives_the_compact_list(ringtrue, project) -> None:
    root = project / ".claude" / "memory"
    store(root, 40)
    for strategy in ("fts5_bm25", "title_tags"):
        found = ringtrue("memory", "search", "cache token queue", "--strategy", strategy, "--json").json
        assert (found["strategy"], len(found["hits"])) == (strategy, 10)
        assert {"rank", "score", "id", "category", "title", "tags", "updated_at", "path"} <= set(found["hits"][0])
    assert ringtrue("memory", "search", "cache", "--strategy", "bm52").code == 2
    assert ringtrue("memory", "search", "zebra").err.startswith("note: nothing is above the level of chance")


def test_200_memories_are_listed_from_one_reading(ringtrue, project) -> None:
    root = project / ".claude" / "memory"
    store(root, 200)
    listed = ringtrue("memory", "list", "--json").json["memories"]
    assert len(listed) == 200
    assert len(ringtrue("memory", "list", "--category", "runbook").out.splitlines()) == 1 + sum(
        one["category"] == "runbook" for one in listed
    )
    assert ringtrue("memory", "list", "--write-index").code == 0
    assert (root / "index.md").read_text().count("\n- ") == 200


def test_doctor_exits_1_for_errors_and_with_strict_for_warnings(ringtrue) -> None:
    ringtrue(*ADD)
    good = ringtrue("memory", "doctor", "--words-only")
    assert good.code == 0
    assert "hook not installed" in good.out
    assert ringtrue("memory", "doctor", "--words-only", "--strict").code == 1
    Path(".claude/memory/decision/broken.json").write_text("{")
    bad = ringtrue("memory", "doctor", "--words-only", "--json")
    assert (bad.code, bad.json["healthy"]) == (1, False)
    assert bad.json["health"]["silent_rate"] is None
    assert {"level", "kind", "text", "cure", "ids", "path"} == set(bad.json["findings"][0])


def test_import_names_what_it_refuses_and_exits_1(ringtrue, tmp_path) -> None:
    (tmp_path / "in.jsonl").write_text(
        '{"id": "Bad Id", "category": "decision", "title": "x", "content": {"decision": "y"}}\nno\n'
    )
    outcome = ringtrue("memory", "import", tmp_path / "in.jsonl")
    assert outcome.code == 1
    assert "2 refused" in outcome.out
    assert "line 1: id 'Bad Id' is not kebab-case" in outcome.err


def test_a_near_repeat_is_added_and_pointed_out(ringtrue) -> None:
    ringtrue("memory", "add", "runbook", "Roll back a bad release", "Switch the load balancer to the previous colour.")
    again = ringtrue(
        "memory", "add", "runbook", "How to roll back a release", "Switch the load balancer to the previous colour."
    )
    assert "it seems to say the same as 'roll-back-a-bad-release'" in again.err


def test_text_comes_from_standard_input_and_a_record_from_a_file(ringtrue, tmp_path) -> None:
    assert ringtrue("memory", "add", "decision", "From a pipe", "-", stdin=b"long text\n").code == 0
    assert memory_file("from-a-pipe")["content"] == {"decision": "long text"}
    record = {"id": "whole", "category": "runbook", "title": "Whole", "content": {"steps": ["a", "b"]}}
    (tmp_path / "r.json").write_text(json.dumps(record))
    assert ringtrue("memory", "add", "--record", tmp_path / "r.json").code == 0
    assert memory_file("whole", "runbook")["content"] == {"steps": ["a", "b"]}


def test_codes_in_a_memory_do_not_reach_the_terminal(ringtrue) -> None:
    ringtrue(*ADD)
    path = Path(".claude/memory/decision/sessions-are-jwt.json")
    path.write_text(
        json.dumps({**memory_file("sessions-are-jwt"), "title": "A\x1b[2Jtitle", "content": {"decision": "b\x1b]0;x\x07c"}})
    )
    for words in (("show", "sessions-are-jwt"), ("list",), ("search", "title"), ("doctor", "--words-only")):
        outcome = ringtrue("memory", *words)
        assert "\x1b" not in outcome.out + outcome.err, words
        assert "\x07" not in outcome.out + outcome.err, words


def test_the_folder_is_made_in_the_checkout_and_found_from_below(ringtrue, project, monkeypatch) -> None:
    (project / ".git").mkdir()
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    ringtrue(*ADD)
    assert (project / ".claude" / "memory" / "decision" / "sessions-are-jwt.json").is_file()
    assert "Sessions are JWT" in ringtrue("memory", "list").out
    monkeypatch.setenv("RINGTRUE_MEMORY_ROOT", str(project / "elsewhere"))
    assert ringtrue("memory", "list").code == 2
    ringtrue("memory", "add", "decision", "Other", "text")
    assert (project / "elsewhere" / "decision" / "other.json").is_file()


def test_notes_of_others_are_listed_and_found_in_place(ringtrue, project, tmp_path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "zebra.md").write_text("---\nname: Zebra stripes\n---\nPaint them at night.")
    ringtrue(*ADD)
    Path(".claude/memory/memory-config.json").write_text(json.dumps({"retrieval": {"roots": [str(notes)]}}))
    found = ringtrue("memory", "search", "zebra stripes", "--json").json["hits"]
    assert (found[0]["title"], found[0]["source"]) == ("Zebra stripes", "note")
    assert ringtrue("memory", "retire", found[0]["id"]).code == 2


def test_install_and_uninstall_work_bare_in_a_project(ringtrue, project, monkeypatch) -> None:
    """--project is a folder here, and not the store's project, whatever that is set to."""
    monkeypatch.setenv("RINGTRUE_PROJECT", "shop")
    plugin = project / ".claude" / "skills" / "memory"
    looked = ringtrue("memory", "install", "--user", "--dry-run")
    assert (looked.code, "would be created" in looked.out) == (0, True), looked.err
    assert not plugin.exists()
    installed = ringtrue("memory", "install")
    assert (installed.code, (plugin / "install.json").is_file()) == (0, True), installed.err
    assert ringtrue("memory", "uninstall", "--user").code == 0
    removed = ringtrue("memory", "uninstall")
    assert (removed.code, plugin.exists()) == (0, False), removed.err


def test_only_the_stores_project_is_set_once_for_all_commands() -> None:
    from ringtrue.cli.lazy import Commands

    commands = Commands({"sync": "memory_health:sync_command", "install": "memory_hosts:install_command"})
    variables = {name: [one.envvar for one in commands[name].params if "--project" in one.opts] for name in commands}
    assert variables == {"sync": ["RINGTRUE_PROJECT"], "install": [None]}


def test_import_says_what_it_guessed_and_left_once(ringtrue, tmp_path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for number in range(30):
        (notes / f"n{number:02}.md").write_text(f"# Note {number}\ntext {number}")
    (notes / "x.txt").write_text("x")
    outcome = ringtrue("memory", "import", notes)
    assert outcome.code == 0
    assert "30 added" in outcome.out
    assert f"guessed: {notes / 'n00.md'} and 29 more: it names no category: taken for a decision" in outcome.err
    assert "skipped 1 that contain no memory" in outcome.err
    assert len(outcome.err.splitlines()) == 2
    (notes / "one.md").write_text("---\ncategory: idea\n---\n# One\ntext")
    found = ringtrue("memory", "import", notes / "one.md", "--json").json
    assert found["guessed"] == {str(notes / "one.md"): ["category is 'idea', which is none of ours: taken for a decision"]}


def test_499_records_with_the_same_fault_are_one_line(ringtrue, tmp_path) -> None:
    lines = [json.dumps({"category": "decision", "title": f"Title {number}"}) for number in range(499)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    outcome = ringtrue("memory", "import", tmp_path / "in.jsonl")
    assert outcome.code == 1
    assert "499 refused" in outcome.out
    (line,) = outcome.err.splitlines()
    assert "in.jsonl, line 1 and 498 more: content is empty" in line
    assert len(ringtrue("memory", "import", tmp_path / "in.jsonl", "--json").json["refused"]) == 499


def test_add_takes_a_tier_and_says_what_a_prompt_cannot_reach(ringtrue) -> None:
    assert ringtrue("memory", "add", "constraint", "No floats", "cents", "--tier", "critical").code == 0
    assert memory_file("no-floats", "constraint")["importance_tier"] == "critical"
    wrong = ringtrue("memory", "add", "constraint", "No tabs", "spaces", "--tier", "criticl")
    assert (wrong.code, "did you mean 'critical'" in wrong.err) == (2, True)
    long = ringtrue("memory", "add", "decision", "Long", "-", stdin=b"word " * 500)
    assert "the last 499 of its 2,499 characters are beyond engine.body_max_chars (2,000)" in long.err


def test_add_makes_no_id_from_a_secret_in_the_title(ringtrue) -> None:
    title = "Login password=Tr0ub4dor3xyz"
    refused = ringtrue("memory", "add", "decision", title, "text")
    assert refused.code == 2
    assert "tr0ub4dor3xyz" not in refused.err.lower()
    added = ringtrue("memory", "add", "decision", title, "text", "--redact")
    assert added.code == 0
    assert "tr0ub4dor3xyz" not in added.out.lower()


def test_sync_and_derive_run_where_hook_and_mcp_both_searched(ringtrue, project, tmp_path) -> None:
    from time import time

    from ringtrue.memory.hook.journal import record

    ringtrue(*ADD)
    root, now = str(project / ".claude" / "memory"), time() - 100
    hit = {"id": "sessions-are-jwt", "path": "", "rank": 1, "score": 2.0}
    facts = {"session_id": "s1", "query": "how are sessions signed", "strategy": "fts5_bm25"}
    assert record(root, {"at": now, "event": "prompt", "outcome": "injected", "injected": [hit], "threshold": "null", **facts})
    assert record(root, {"at": now + 1, "event": "read", "session_id": "s1", "id": hit["id"], "path": ""})
    assert record(root, {"at": now + 9, "event": "search", "tool": "memory_search", "results": [hit], **facts})
    where = ("--store", tmp_path / "store.sqlite")
    synced = ringtrue("memory", "sync", *where)
    assert "2 settings answered; derive judgments for each: ringtrue feedback derive --mixed separate" in synced.err
    assert ringtrue("feedback", "derive", *where).code == 3
    derived = ringtrue("feedback", "derive", "--mixed", "separate", *where, "--json")
    assert (derived.code, sum(derived.json["by_source"].values())) == (0, 1)
    assert ringtrue("feedback", "derive", "--retriever", "memory('fts5_bm25', threshold='null')", *where).code == 0


def test_sync_copies_finished_tasks_and_sessions_shows_their_outcome(ringtrue, project, tmp_path) -> None:
    from time import time

    from ringtrue.memory.hook.journal import record
    from ringtrue.memory.tasks import State, postflight, preflight

    ringtrue(*ADD)
    root, now = str(project / ".claude" / "memory"), time() - 100
    hit = {"id": "sessions-are-jwt", "path": "", "rank": 1, "score": 2.0}
    facts = {"session_id": "s1", "query": "how are sessions signed", "strategy": "fts5_bm25"}
    assert record(root, {"at": now, "event": "search", "tool": "memory_search", "results": [hit], **facts})
    preflight(root, session_id="s1", task_id="login", state=State(0.2, 0.8), now=now)
    postflight(root, session_id="s1", task_id="login", state=State(0.7, 0.4), now=now + 60)
    where = ("--store", tmp_path / "store.sqlite")
    for new in ("1", "0"):
        lines = [line.split() for line in ringtrue("memory", "sync", *where).out.splitlines()]
        assert ["finished", "tasks", "1", new] in lines
    (session,) = ringtrue("sessions", *where, "--json").json["sessions"]
    assert (session["session_id"], session["outcome"]["learning_index"]) == ("s1", 0.45)
    other = tmp_path / "tasks.jsonl"
    other.write_text('{"session_id": "s1", "learning_index": 0.1}', encoding="utf-8")
    (session,) = ringtrue("sessions", *where, "--outcomes", other, "--json").json["sessions"]
    assert session["outcome"]["learning_index"] == 0.1


def test_the_false_inject_rate_is_the_same_wherever_it_is_shown(ringtrue, project, tmp_path) -> None:
    from time import time

    from ringtrue.memory.hook.files import load
    from ringtrue.memory.hook.journal import record
    from ringtrue.memory.hook.settings import Settings
    from ringtrue.memory.tasks import validate

    ringtrue(*ADD)
    root, now = str(project / ".claude" / "memory"), time() - 100
    hit = {"id": "sessions-are-jwt", "path": "", "rank": 1, "score": 2.0}
    for number in range(4):
        facts = {"session_id": f"s{number}", "query": "sessions", "strategy": "fts5_bm25", "threshold": "null"}
        assert record(root, {"at": now + number, "event": "prompt", "outcome": "injected", "injected": [hit], **facts})
    known = load(root, Settings()).memories
    for number, useful in ((0, False), (1, True)):
        validate(root, {"sessions-are-jwt": useful}, memories=known, session_id=f"s{number}", now=now + 20)
    where = ("--store", tmp_path / "store.sqlite")
    synced = ringtrue("memory", "sync", *where, "--json").json["figures"]
    doctor = ringtrue("memory", "doctor", "--words-only", "--json").json["health"]
    health = ringtrue("health", *where, "--json").json["parts"]["memory"]
    assert synced["false_inject_rate"] == doctor["false_inject_rate"] == health["false_inject_rate"] == 0.5
    assert synced["judged"] == doctor["judged"] == health["judged"] == 2
