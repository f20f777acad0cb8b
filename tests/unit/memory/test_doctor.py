"""The doctor: each thing it promises to find is planted and found, and a good folder has nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from made_memories import memory, store
from made_secrets import planted
from ringtrue.memory import doctor
from ringtrue.memory.doctor import check_up, hosts_with_hook, slow_file_system
from ringtrue.memory.hook.files import write
from ringtrue.memory.hook.guard import find_secrets
from ringtrue.memory.hook.journal import record
from ringtrue.memory.hook.memory import as_record
from ringtrue.memory.hook.respond import CHOSEN, Question, answer
from ringtrue.memory.hook.settings import read_settings
from ringtrue.memory.install import install

NOW = 1_790_000_000.0
KINDS = (
    "schema",
    "settings",
    "secret",
    "title",
    "dangling link",
    "superseded but active",
    "known contradiction",
    "constitutional",
    "duplicate",
    "contradiction",
    "beyond the index",
    "stale",
    "empty prompts",
    "silent",
    "hook failures",
    "never retrieved",
    "slow file system",
    "hook not installed",
    "never ran",
    "untrusted",
    "no interpreter",
    "no meaning",
    "slow hook",
    "words only",
)
DATED = {"created_at": "2026-09-01T12:00:00Z", "updated_at": "2026-09-01T12:00:00Z"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / ".claude" / "memory"
    folder.mkdir(parents=True)
    (tmp_path / "project" / ".claude" / "settings.json").write_text('{"command": "python3 /x/recall/hook.py"}')
    return folder


def put(root: Path, *memories) -> None:
    for one in memories:
        write(str(root), one)


def examined(root: Path, **options):
    home = root.parents[1] / "home"
    return check_up(str(root), now=NOW, home=home, meaning=False, mounts="", **options)


def kinds(root: Path, **options) -> dict[str, tuple[str, ...]]:
    """Kind → ids of the first finding of it."""
    found: dict[str, tuple[str, ...]] = {}
    for finding in examined(root, **options).findings:
        found.setdefault(finding.kind, finding.ids)
        assert finding.kind in KINDS
        assert finding.cure
    return found


def raw(root: Path, name: str, **fields: object) -> Path:
    path = root / "decision" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**as_record(memory(name, name.title(), "text", **DATED)), **fields}))
    return path


def test_a_good_folder_has_nothing_to_look_at(root) -> None:
    put(root, memory("jwt", "Sessions are JWT", "signed with RS256", **DATED))
    put(root, memory("cents", "Money is integer cents", "no floats", **DATED))
    found = examined(root)
    assert (found.findings, found.healthy, found.memories, found.active) == ((), True, 2, 2)


def test_schema_errors_of_unreadable_and_of_readable_files(root) -> None:
    (root / "decision").mkdir()
    (root / "decision" / "broken.json").write_text("{")
    raw(root, "odd", id="odd", created_at="yesterday")
    found = examined(root)
    assert not found.healthy
    assert [finding.level for finding in found.findings if finding.kind == "schema"] == ["error", "warning"]
    assert any("created_at is 'yesterday'" in finding.text for finding in found.findings)


def test_the_same_id_twice_is_a_schema_error(root) -> None:
    raw(root, "one")
    (root / "runbook").mkdir()
    (root / "runbook" / "one.json").write_text((root / "decision" / "one.json").read_text())
    assert any("is that of" in finding.text for finding in examined(root).findings)


def test_settings_that_do_not_hold_are_named(root) -> None:
    (root / "memory-config.json").write_text(json.dumps({"retrieval": {"match_strategy": "best", "enabled": False}}))
    texts = [finding.text for finding in examined(root).findings if finding.kind == "settings"]
    assert len(texts) == 2
    assert "match_strategy is 'best'" in texts[0]


def test_every_planted_secret_that_the_scanner_knows_is_found(root) -> None:
    secrets = [text for _, text, _ in planted() if find_secrets(text)]
    for number, text in enumerate(secrets):
        raw(root, f"leaky-{number}", content={"decision": text})
    found = {finding.ids[0] for finding in examined(root).findings if finding.kind == "secret"}
    assert found == {f"leaky-{number}" for number in range(len(secrets))}
    assert not examined(root).healthy


def test_dangling_links_and_what_is_superseded_but_active(root) -> None:
    put(root, memory("old", "Sessions are cookies", "x", **DATED))
    put(root, memory("new", "Invoices are PDF", "y", supersedes=("old", "never-was"), links={"leads_to": ("gone",)}, **DATED))
    found = examined(root).findings
    texts = {finding.text: finding.cure for finding in found}
    assert texts["'old' is superseded by 'new' and still shown"] == "ringtrue memory retire old"
    assert (
        texts["'new' names 'gone' in links.leads_to, which is not there"] == "ringtrue memory link new leads_to gone --remove"
    )
    assert "'new' names 'never-was' in supersedes, which is not there" in texts


def test_a_retired_memory_may_be_superseded(root) -> None:
    put(root, memory("old", "Sessions are cookies", "x", status="retired", **DATED))
    put(root, memory("new", "Sessions are JWT", "y", supersedes=("old",), **DATED))
    assert kinds(root) == {}


def test_more_constitutional_memories_than_a_search_shows_are_an_error(root) -> None:
    (root / "memory-config.json").write_text(json.dumps({"retrieval": {"search": {"max_results": 3}}}))
    for number, word in enumerate(("cache", "invoice", "webhook", "tenant")):
        put(root, memory(f"rule-{number}", f"{word} rule", word, tier="constitutional", **DATED))
        found = examined(root)
        assert ("constitutional" in {finding.kind for finding in found.findings}) == (number == 3)
    assert not found.healthy


def test_duplicates_and_contradictions_among_active_memories_only(root) -> None:
    put(root, memory("a", "Access tokens live fifteen minutes", "JWT access tokens expire after 15 minutes.", **DATED))
    put(root, memory("b", "Access tokens live one hour", "JWT access tokens expire after 60 minutes.", **DATED))
    put(root, memory("c", "Roll back a bad release", "Switch the load balancer to the previous colour.", **DATED))
    put(root, memory("d", "How to roll back a release", "Switch the load balancer back to the previous colour.", **DATED))
    found = kinds(root)
    assert (set(found["contradiction"]), set(found["duplicate"])) == ({"a", "b"}, {"c", "d"})
    put(
        root,
        memory("b", "Access tokens live one hour", "JWT access tokens expire after 60 minutes.", status="retired", **DATED),
    )
    assert "contradiction" not in kinds(root)


def test_a_contradiction_that_is_linked_is_known(root) -> None:
    put(root, memory("a", "Use tabs", "tabs", links={"contradicts": ("b",)}, **DATED))
    put(root, memory("b", "Use spaces", "spaces", links={"contradicts": ("a",)}, **DATED))
    assert [finding.kind for finding in examined(root).findings] == ["known contradiction"]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"category": "session_summary", "updated_at": "2026-01-01"}, "past its retention of 90 days"),
        ({"tier": "temporary", "updated_at": "2026-07-01"}, "is temporary and"),
        ({"updated_at": "2024-01-01", "created_at": "2024-01-01"}, "has not changed for"),
        ({"related_files": ("src/gone.py",)}, "none of the files that 'one' is about is there any more (src/gone.py)"),
    ],
)
def test_stale_memories(root, fields, says) -> None:
    put(root, memory("one", "One", "text", **{**DATED, **fields}))
    assert [says in finding.text for finding in examined(root).findings if finding.kind == "stale"] == [True]


def test_a_file_that_is_there_makes_nothing_stale(root) -> None:
    (root.parents[1] / "src").mkdir()
    (root.parents[1] / "src" / "here.py").write_text("")
    put(root, memory("one", "One", "text", related_files=("src/here.py", "src/gone.py"), **DATED))
    assert kinds(root) == {}


def prompts(root: Path, outcome: str, count: int, *ids: str) -> None:
    for number in range(count):
        event = {"event": "prompt", "at": NOW - 1000 + number, "session_id": "s", "outcome": outcome, "ms": 9.0}
        record(str(root), {**event, "injected": [{"id": name, "rank": 1} for name in ids]})


def test_trap_24_prompts_that_arrive_empty_raise_an_alarm(root) -> None:
    put(root, memory("one", "One", "text", **DATED))
    prompts(root, "empty", 2)
    assert "empty prompts" not in kinds(root)
    prompts(root, "empty", 1)
    found = examined(root)
    assert "empty prompts" in {finding.kind for finding in found.findings}
    assert not found.healthy


def test_nothing_injected_for_n_prompts_raises_an_alarm(root) -> None:
    put(root, memory("one", "One", "text", **DATED))
    prompts(root, "silent", 29)
    assert "silent" not in kinds(root)
    assert "silent" in kinds(root, silent_after=20)
    prompts(root, "silent", 1)
    assert "silent" in kinds(root)


def test_what_no_prompt_ever_brought_up_is_listed(root) -> None:
    old = {"created_at": "2026-01-01", "updated_at": "2026-08-01"}
    put(root, memory("used", "Cache keys", "text", **old), memory("unused", "Invoice numbers", "text", **old))
    put(root, memory("young", "Webhook names", "text", created_at="2026-09-20"))
    prompts(root, "injected", 40, "used")
    assert kinds(root)["never retrieved"] == ("unused",)


def test_failures_of_the_hook_are_reported(root) -> None:
    put(root, memory("one", "One", "text", **DATED))
    record(str(root), {"event": "error", "at": NOW - 5, "kind": "timeout", "message": "no answer within 0.9 s"})
    assert "hook failures" in kinds(root)


@pytest.mark.parametrize(
    ("mounts", "slow"),
    [
        ("C:\\134 {} 9p rw 0 0", True),
        ("server:/x {} nfs4 rw 0 0", True),
        ("/dev/sda1 {} ext4 rw 0 0", False),
        ("", False),
        ("server:/x / nfs4 rw 0 0\n/dev/sda1 {} ext4 rw 0 0", False),
        ("garbage", False),
    ],
)
def test_a_slow_file_system_is_recognised_by_its_mount(root, mounts, slow) -> None:
    table = mounts.format(root.parents[1])
    found = check_up(str(root), now=NOW, home=root.parents[1] / "home", meaning=False, mounts=table)
    assert ("slow file system" in {finding.kind for finding in found.findings}) == slow


def test_a_windows_drive_is_slow_though_no_table_says_so() -> None:
    assert slow_file_system("/mnt/c/projects/.claude/memory", "") == "/mnt/c, a Windows drive seen from WSL"
    assert slow_file_system("/mnt/cache/memory", "") is None


def test_whether_a_host_runs_the_hook(root) -> None:
    home = root.parents[1] / "home"
    assert hosts_with_hook(str(root), home=home) == ["claude"]
    (root.parents[0] / "settings.json").write_text('{"hooks": {}}')
    assert hosts_with_hook(str(root), home=home) == []
    assert "hook not installed" in kinds(root)
    (home / ".codex").mkdir(parents=True)
    (home / ".codex" / "hooks.json").write_text('{"command": "ringtrue memory hook"}')
    assert hosts_with_hook(str(root), home=home) == ["codex"]


def test_an_installed_hook_that_never_ran_and_an_untrusted_folder_are_named(root, monkeypatch: pytest.MonkeyPatch) -> None:
    project, home = root.parents[1], root.parents[1] / "home"
    monkeypatch.setattr(doctor, "missing_for_meaning", lambda python: ())
    for host in ("claude", "codex"):
        install(host, base=project)
    assert {"never ran", "untrusted"} <= kinds(root).keys()
    home.mkdir()
    (home / ".claude.json").write_text(json.dumps({"projects": {str(project.parent): {"hasTrustDialogAccepted": True}}}))
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(f'[projects."{project}"]\ntrust_level = "trusted"\n')
    record(str(root), {"event": "prompt", "at": NOW - 5, "outcome": "silent", "injected": [], "ms": 20.0})
    assert not {"never ran", "untrusted"} & kinds(root).keys()


@pytest.mark.parametrize(("lacks", "kind"), [(None, "no interpreter"), (("NumPy",), "no meaning"), ((), None)])
def test_a_python_that_is_gone_or_cannot_compare_meanings_is_named(root, monkeypatch: pytest.MonkeyPatch, lacks, kind) -> None:
    install("claude", base=root.parents[1])
    monkeypatch.setattr(doctor, "missing_for_meaning", lambda python: lacks)
    assert {"no interpreter", "no meaning"} & kinds(root).keys() == ({kind} if kind else set())


def test_a_hook_that_is_slow_or_has_words_alone_is_named(root) -> None:
    words = {"event": "prompt", "outcome": "silent", "injected": [], "by": "words", "words_because": "ImportError: numpy"}
    for place in range(20):
        record(str(root), {**words, "at": NOW - 100 + place, "ms": 400.0})
    found = {finding.kind: finding.text for finding in examined(root).findings}
    assert "400 ms" in found["slow hook"]
    assert "all 20 prompts: ImportError: numpy" in found["words only"]
    _, account = answer(
        str(root), Question("how is it signed", now=NOW, prompt="how is it signed"), read_settings(str(root))[0]
    )
    record(str(root), {**words, **account, "at": NOW - 1, "by": "server"})
    assert account["by"] in ("numpy", "words")
    assert "words only" not in kinds(root)
    assert examined(root).health.roads == {"words": 20, "server": 1}


def test_words_alone_are_fine_if_the_settings_say_so(root) -> None:
    words = {"event": "prompt", "outcome": "silent", "injected": [], "by": "words", "words_because": CHOSEN}
    record(str(root), {**words, "at": NOW - 1})
    assert "words only" not in kinds(root)


def test_a_title_with_hidden_characters_is_reported(root) -> None:
    raw(root, "spoofed", title="Use JWT #tags:admin")
    assert kinds(root) == {"title": ("spoofed",)}


def test_the_doctor_changes_no_memory(root) -> None:
    store(root, 20)
    before = {path: path.read_bytes() for path in root.rglob("*.json")}
    check_up(str(root), now=NOW, home=root, meaning=False)
    assert {path: path.read_bytes() for path in root.rglob("*.json")} == before


def test_text_that_no_prompt_can_reach_is_counted(root) -> None:
    put(root, memory("long", "Long", "word " * 401, **DATED), memory("short", "Short", "word", **DATED))
    (found,) = (finding for finding in examined(root).findings if finding.kind == "beyond the index")
    assert (found.level, found.ids) == ("info", ("long",))
    assert "1 of 2 memories are longer than 2,000 characters" in found.text
    assert "engine.body_max_chars" in found.cure
    (root / "memory-config.json").write_text('{"retrieval": {"engine": {"body_max_chars": 3000}}}')
    assert "beyond the index" not in kinds(root)
