from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from made_memories import WORDS, memory, store
from ringtrue.memory.hook import cache
from ringtrue.memory.hook.cache import open_index
from ringtrue.memory.hook.files import find, load, locked, remove, write
from ringtrue.memory.hook.index import Index
from ringtrue.memory.hook.memory import Memory, MemoryFault, changed
from ringtrue.memory.hook.settings import Settings


def update(root: str, memory_id: str, change: Callable[[Memory], Memory]) -> Memory:
    """Write what ``change`` makes of a memory, while nobody else changes anything."""
    with locked(root):
        memory = find(root, memory_id)
        assert memory is not None
        write(root, after := change(memory))
        return after


NOW = time.time()
SETTINGS = Settings()
QUESTIONS = [*(f"{first} {second}" for first, second in zip(WORDS, WORDS[5:])), "cache", " ".join(WORDS[:15]), "nothing here"]


@pytest.fixture
def root(tmp_path: Path) -> str:
    store(tmp_path, 70)
    settle(tmp_path)
    return str(tmp_path)


def settle(folder: Path) -> None:
    """Wait until the last change is as long ago as it mostly is."""
    while time.time_ns() - max(path.stat().st_ctime_ns for path in folder.rglob("*.json")) < 2 * cache.FINE:
        time.sleep(0.02)


def answers(index: Index) -> list[list[tuple[str, float, int, str]]]:
    found = [index.search(text, k=10, now=NOW) for text in QUESTIONS]
    return [[(one.memory.id, one.score, one.rank, one.memory.path) for one in hits] for hits in found]


def check(root: str, settings: Settings = SETTINGS) -> Index:
    """Assert that the cached index answers as one built from the files does, bit for bit; return it."""
    index = open_index(root, settings)
    fresh = Index(load(root, settings).memories, settings)
    assert isinstance(index, cache.CachedIndex)
    assert answers(index) == answers(fresh)
    assert len(index) == len(fresh)
    assert index.memories == fresh.memories
    assert answers(open_index(root, settings)) == answers(fresh), "and so does the one that is there already"
    return index


def made(root: str) -> tuple[int, int]:
    """Return what tells one cache file from the next, which may have the same inode."""
    state = Path(root, ".ringtrue", "index.sqlite").stat()
    return state.st_ino, state.st_mtime_ns


def test_the_cache_answers_like_a_rebuild_and_is_used_again(root: str) -> None:
    first = check(root)
    before = made(root)
    second = check(root)
    assert made(root) == before
    assert first.stamp == second.stamp != ""
    assert os.listdir(os.path.join(root, ".ringtrue")).count("index.sqlite") == 1
    assert not [name for name in os.listdir(os.path.join(root, ".ringtrue")) if name.endswith(".tmp")]


def test_a_small_store_has_no_cache(tmp_path: Path) -> None:
    store(tmp_path, 5)
    index = open_index(str(tmp_path), SETTINGS)
    assert not isinstance(index, cache.CachedIndex)
    assert index.stamp.startswith("5-")
    assert not (tmp_path / ".ringtrue").exists()


def test_every_kind_of_change_shows_at_once(root: str) -> None:
    stamps = [check(root).stamp]
    write(root, memory("brand-new", "cache cache cache"))
    stamps.append(check(root).stamp)
    update(root, "brand-new", lambda one: changed(one, title="queue queue queue"))
    stamps.append(check(root).stamp)
    update(root, "decision-0", lambda one: changed(one, status="retired"))
    stamps.append(check(root).stamp)
    update(root, "decision-0", lambda one: changed(one, status="active"))
    stamps.append(check(root).stamp)
    gone = find(root, "decision-6")
    assert gone is not None
    remove(root, gone)
    stamps.append(check(root).stamp)
    assert gone.path
    os.rename(os.path.join(root, "runbook"), os.path.join(root, "runbooks"))
    stamps.append(check(root).stamp)
    assert len(set(stamps)) == len(stamps)
    torn = os.path.join(root, "decision", "decision-12.json")
    Path(torn).write_text('{"id": ')
    check(root)
    Path(root, ".ringtrue", "unrelated").write_text("x")
    check(root)


def test_a_change_in_place_shows_even_where_size_and_time_are_set_back(root: str) -> None:
    path = Path(root, "decision", "decision-0.json")
    text, state = path.read_text(), path.stat()
    check(root)
    with path.open("r+") as file:
        file.write(text.replace("cache", "queue").replace("token", "index"))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    after = path.stat()
    assert (after.st_mtime_ns, after.st_size, after.st_ino) == (state.st_mtime_ns, state.st_size, state.st_ino)
    assert path.read_text() != text
    check(root)


def test_a_second_change_within_one_tick_of_the_clock_is_not_missed(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(root, "decision", "decision-0.json")
    text = path.read_text()
    path.write_text(text.replace('"title": "', '"title": "cache ', 1))
    stamp = cache.scan(root, SETTINGS).stamps["decision/decision-0.json"]
    changed_at = path.stat().st_ctime_ns
    assert cache._lasting(stamp, changed_at + 1_000_000) == "changing"
    assert cache._lasting(stamp, changed_at + 3_000_000_000) == stamp
    monkeypatch.setattr(cache.time, "time_ns", lambda: changed_at + 1_000_000)
    check(root)
    before = made(root)
    check(root)
    assert made(root) != before, "it is read again until its time can be trusted"
    monkeypatch.undo()
    settle(Path(root))
    check(root)
    before = made(root)
    check(root)
    assert made(root) == before


def test_two_files_with_one_id_are_decided_as_by_reading_all(root: str) -> None:
    check(root)
    double = Path(root, "archive", "decision-0.json")
    double.parent.mkdir()
    double.write_text(Path(root, "decision", "decision-0.json").read_text().replace('"title": "', '"title": "webhook ', 1))
    settle(Path(root))
    check(root)
    assert any(hit.memory.path == str(double) for hit in open_index(root, SETTINGS).search("webhook", k=70, now=NOW))
    double.unlink()
    check(root)


def test_other_settings_make_another_cache(root: str) -> None:
    check(root)
    check(root, Settings(body_max_chars=20))
    check(root, Settings(retention_days={"decision": 1}))
    check(root, Settings(column_weights=(1.0, 1.0, 9.0)))
    notes = Path(root).parent / "notes"
    notes.mkdir(exist_ok=True)
    (notes / "cache.md").write_text("# Cache cache cache\ncache")
    index = check(root, Settings(roots=(str(notes),)))
    assert index.search("cache", k=1, now=NOW)[0].memory.source == "note"


@pytest.mark.parametrize(
    "damage",
    [b"", b"not a database", b"SQLite format 3\0" + bytes(5000), "cut", "tail", "zeros", "version"],
    ids=["empty", "text", "header", "cut", "tail", "zeros", "version"],
)
def test_a_damaged_or_foreign_cache_is_made_anew(root: str, damage: bytes | str) -> None:
    check(root)
    path = Path(root, ".ringtrue", "index.sqlite")
    data = path.read_bytes()
    if damage == "version":
        with sqlite3.connect(path) as db:
            db.execute("UPDATE made SET key = '0 ' || key")
        db.close()
    else:
        half = len(data) // 2
        cuts = {"cut": data[:half], "tail": data + bytes(4096), "zeros": data[:8192] + bytes(len(data) - 8192)}
        path.write_bytes(damage if isinstance(damage, bytes) else cuts[damage])
    index = open_index(root, SETTINGS)
    assert answers(index) == answers(Index(load(root, SETTINGS).memories, SETTINGS))
    check(root)


@pytest.mark.parametrize("blocked", ["file", "link"])
def test_where_the_cache_cannot_be_written_the_index_is_in_memory(root: str, blocked: str, tmp_path: Path) -> None:
    place = Path(root, ".ringtrue")
    if blocked == "file":
        place.write_text("")
    else:
        (tmp_path / "elsewhere").mkdir()
        place.symlink_to(tmp_path / "elsewhere")
    index = open_index(root, SETTINGS)
    assert not isinstance(index, cache.CachedIndex)
    assert answers(index) == answers(Index(load(root, SETTINGS).memories, SETTINGS))
    if blocked == "link":
        assert os.listdir(tmp_path / "elsewhere") == []


def test_without_fts5_the_index_is_in_memory(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "tables", lambda db, more="": False)
    assert not isinstance(open_index(root, SETTINGS), cache.CachedIndex)


def test_making_the_cache_of_a_large_folder_goes_on_where_time_ran_out(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(100_000))
    monkeypatch.setattr(cache.time, "monotonic", lambda: float(next(ticks)))
    with pytest.raises(MemoryFault, match="70 memories is being made, 30 are done"):
        open_index(root, SETTINGS, seconds=30)
    with pytest.raises(MemoryFault, match="60 are done"):
        open_index(root, SETTINGS, seconds=30)
    assert isinstance(open_index(root, SETTINGS, seconds=30), cache.CachedIndex)
    check(root)


def test_trap_30_a_memory_retired_after_the_index_was_opened_is_not_shown(root: str) -> None:
    index = open_index(root, SETTINGS)
    before = index.search("cache", k=5, now=NOW)
    update(root, before[0].memory.id, lambda one: changed(one, status="retired"))
    os.unlink(before[1].memory.path)
    after = [hit.memory.id for hit in index.search("cache", k=3, now=NOW)]
    assert after == [hit.memory.id for hit in before[2:5]]
    assert [hit.rank for hit in index.search("cache", k=3, now=NOW)] == [1, 2, 3]


def test_one_index_answers_several_threads(root: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    index = open_index(root, SETTINGS)
    expected = answers(index)
    with ThreadPoolExecutor(4) as pool:
        assert all(got == expected for got in pool.map(lambda _: answers(index), range(4)))


def test_names_that_are_no_utf8_are_kept(root: str) -> None:
    name = os.fsencode(root) + b"/decision/caf\xe9 100% #1?.json"
    source = Path(root, "decision", "decision-0.json")
    with open(name, "wb") as file:
        file.write(source.read_bytes().replace(b'"decision-0"', b'"odd-name"'))
    source.unlink()
    index = check(root)
    assert "odd-name" in [one.id for one in index.memories]


def test_the_python_of_a_hook_and_this_one_share_the_cache(root: str) -> None:
    check(root)
    before = made(root)
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from hook.cache import open_index
from hook.settings import Settings
print(type(open_index(sys.argv[2], Settings())).__name__)
"""
    folder = str(Path(cache.__file__).parent.parent)
    answer = subprocess.run([sys.executable, "-I", "-S", "-c", code, folder, root], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "CachedIndex"
    assert made(root) == before


def test_a_memory_found_in_the_cache_is_the_whole_memory(root: str) -> None:
    hit = open_index(root, SETTINGS).search("cache", k=1, now=NOW)[0].memory
    assert isinstance(hit, Memory)
    assert hit == find(root, hit.id)
