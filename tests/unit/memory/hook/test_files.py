from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from made_memories import memory, store
from ringtrue.memory.hook.files import LARGEST, find, find_root, load, locked, own_folder, remove, scan, write
from ringtrue.memory.hook.memory import Memory, MemoryFault, as_record, changed
from ringtrue.memory.hook.settings import Settings


def update(root: str, memory_id: str, change: Callable[[Memory], Memory]) -> Memory:
    """Write what ``change`` makes of a memory, while nobody else changes anything."""
    with locked(root):
        memory = find(root, memory_id)
        assert memory is not None
        write(root, after := change(memory))
        return after


SETTINGS = Settings()


def test_a_memory_is_one_readable_file_under_its_category(tmp_path: Path) -> None:
    one = memory("use-jwt", "Größe der Token", "ein Text", tags=("auth",), extra={"owner": "payments"})
    path = Path(write(str(tmp_path), one))
    assert path == tmp_path / "decision" / "use-jwt.json"
    text = path.read_text(encoding="utf-8")
    assert '\n  "title": "Größe der Token",\n' in text, "one field a line, as people write it"
    assert text.endswith("}\n")
    assert not [name for name in os.listdir(path.parent) if name.endswith(".tmp")]
    assert load(str(tmp_path), SETTINGS).memories == [changed(one, path=str(path))]


def test_a_text_that_has_no_utf8_is_kept_by_its_escape(tmp_path: Path) -> None:
    write(str(tmp_path), memory("odd", "lone \ud800", "x"))
    assert load(str(tmp_path), SETTINGS).memories[0].title == "lone \ud800"


def test_a_memory_is_written_back_to_the_file_it_came_from(tmp_path: Path) -> None:
    (tmp_path / "decisions").mkdir()
    place = tmp_path / "decisions" / "Some_Name.json"
    place.write_text(json.dumps(as_record(memory("jwt", "JWT"))))
    after = update(str(tmp_path), "jwt", lambda one: changed(one, status="retired"))
    assert after.status == "retired"
    assert [(one.path, one.status) for one in load(str(tmp_path), SETTINGS).memories] == [(str(place), "retired")]


def test_faults_are_collected_and_the_other_memories_read(tmp_path: Path) -> None:
    root = str(tmp_path / "memory")
    write(root, memory("good", "Good"))
    folder = tmp_path / "memory" / "decision"
    (folder / "torn.json").write_text('{"id": "torn", ')
    (folder / "latin.json").write_bytes(b'{"id": "\xe9"}')
    (folder / "list.json").write_text("[]")
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "large.json").write_text(json.dumps({"id": "x" * LARGEST}))
    (folder / "twice.json").write_text((folder / "good.json").read_text())
    (folder / "kindless.json").write_text('{"id": "a", "title": "b"}')
    os.mkfifo(folder / "pipe.json")
    (folder / "index.md").write_text("for people")
    (folder / ".hidden.json").write_text("{")
    (tmp_path / "memory" / "memory-config.json").write_text("{}")
    (tmp_path / "outside.json").write_text((folder / "good.json").read_text())
    (folder / "link.json").symlink_to(tmp_path / "outside.json")
    (folder / "away").symlink_to(tmp_path)
    (folder / "within.json").symlink_to(folder / "good.json")
    loaded = load(root, SETTINGS)
    assert [one.id for one in loaded.memories] == ["good"]
    told = {os.path.basename(path): text for path, text in loaded.faults}
    wrong = {"torn.json", "latin.json", "list.json", "deep.json", "large.json", "twice.json", "kindless.json", "pipe.json"}
    assert told.keys() == wrong | {"link.json", "away"}
    assert "leads out" in told["link.json"]
    assert "leads out" in told["away"]
    assert "not JSON" in told["torn.json"]
    assert "UTF-8 at byte 8" in told["latin.json"]
    assert "larger than" in told["large.json"]
    assert "the id 'good' is that of" in told["twice.json"]


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    loaded = load(str(tmp_path / "none"), SETTINGS)
    assert (loaded.memories, loaded.faults) == ([], [])


def test_further_roots_are_read_and_never_written(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "style.md").write_text("---\nname: Style\ntype: user\n---\nShort lines.\n")
    write(str(tmp_path / "memory"), memory("jwt", "JWT"))
    write(str(notes), memory("jwt", "Another JWT"))
    settings = Settings(roots=(str(notes), str(tmp_path / "missing")))
    loaded = load(str(tmp_path / "memory"), settings)
    assert [(one.id, one.title, one.source) for one in loaded.memories] == [
        ("jwt", "JWT", "memory"),
        ("note-notes-style", "Style", "note"),
    ]
    assert sorted(Path(path).name for path, _ in loaded.faults) == ["jwt.json", "missing"]
    with pytest.raises(MemoryFault, match="only read"):
        write(str(tmp_path / "memory"), loaded.memories[1])
    with pytest.raises(MemoryFault, match="nothing was deleted"):
        remove(str(tmp_path / "memory"), loaded.memories[1])


def test_nothing_is_written_outside_the_root(tmp_path: Path) -> None:
    root, outside = tmp_path / "memory", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "decision").symlink_to(outside)
    with pytest.raises(MemoryFault, match="leads out"):
        write(str(root), memory("jwt", "JWT"))
    elsewhere = memory("jwt", "JWT", path=str(outside / "jwt.json"), category="runbook")
    assert write(str(root), elsewhere) == str(root / "runbook" / "jwt.json"), "a path of another folder is not followed"
    assert os.listdir(outside) == []
    for bad in ("../x", "a/b", "UPPER", "", "-", "a--b", "x" * 81, "a b", "ä"):
        with pytest.raises(MemoryFault, match="id is"):
            write(str(root), memory(bad, "Title"))
    with pytest.raises(MemoryFault, match="title has 121"):
        write(str(root), memory("long", "x" * 121))


def test_a_secret_is_not_stored_and_one_that_is_there_does_not_stop_retiring(tmp_path: Path) -> None:
    secret = memory("db", "Database", "postgres://app:correct-horse@db/main")
    with pytest.raises(MemoryFault, match="holds a login"):
        write(str(tmp_path), secret)
    assert load(str(tmp_path), SETTINGS).memories == []
    (tmp_path / "decision").mkdir()
    (tmp_path / "decision" / "db.json").write_text(json.dumps(as_record(secret)))
    assert update(str(tmp_path), "db", lambda one: changed(one, status="retired")).status == "retired"


def test_a_new_memory_replaces_nothing(tmp_path: Path) -> None:
    write(str(tmp_path), memory("jwt", "First"), new=True)
    with pytest.raises(MemoryFault, match="already"):
        write(str(tmp_path), memory("jwt", "Second"), new=True)
    assert [one.title for one in load(str(tmp_path), SETTINGS).memories] == ["First"]
    assert len(os.listdir(tmp_path / "decision")) == 1


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    write(str(tmp_path), memory("jwt", "First"))
    with pytest.raises(MemoryFault, match="category is"):
        update(str(tmp_path), "jwt", lambda one: changed(one, title="Second", category="idea"))
    found = find(str(tmp_path), "jwt")
    assert found is not None
    assert found.title == "First"
    with locked(str(tmp_path)):
        pass  # the failure has let go of the lock
    remove(str(tmp_path), found)
    assert find(str(tmp_path), "jwt") is None


def test_our_own_folder_stays_out_of_git_and_out_of_the_listing(tmp_path: Path) -> None:
    store(tmp_path, 3)
    folder = Path(own_folder(str(tmp_path)))
    (folder / "state.json").write_text("{}")
    assert (folder / ".gitignore").read_text() == "*\n"
    assert len(scan(str(tmp_path), SETTINGS).lines) == 3


def test_the_memory_folder_is_named_or_found_upwards(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".claude" / "memory").mkdir(parents=True)
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    other = tmp_path / "other"
    other.mkdir()
    expected = str(project / ".claude" / "memory")
    assert find_root(str(below), {}) == expected
    assert find_root(str(other), {"CLAUDE_PROJECT_DIR": str(project)}) == expected
    assert find_root(str(below), {"CLAUDE_PROJECT_DIR": str(other)}) == expected
    assert find_root(str(below), {"RINGTRUE_MEMORY_ROOT": "mine"}) == str(below / "mine")
    assert find_root(str(other), {}) in (None, find_root(str(tmp_path), {}))
