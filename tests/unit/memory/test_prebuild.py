"""The first prompt after an import finds what it needs."""

from __future__ import annotations

from made_memories import store
from ringtrue.memory.engine import make_ready
from ringtrue.memory.hook.cache import open_index
from ringtrue.memory.hook.null_level import null_level
from ringtrue.memory.hook.settings import Settings


def test_index_and_level_are_there_before_the_first_prompt(tmp_path) -> None:
    store(tmp_path, 80)
    make_ready(str(tmp_path))
    own = tmp_path / ".ringtrue"
    made = {path.name for path in own.iterdir()}
    assert "null.json" in made
    level = (own / "null.json").read_bytes()
    null_level(open_index(str(tmp_path), Settings()), Settings(), root=str(tmp_path))
    assert (own / "null.json").read_bytes() == level
    assert {path.name for path in own.iterdir()} == made


def test_a_folder_that_is_switched_off_or_broken_is_left_to_the_hook(tmp_path) -> None:
    (tmp_path / "memory-config.json").write_text('{"retrieval": {"enabled": false}}')
    make_ready(str(tmp_path))
    assert not (tmp_path / ".ringtrue").exists()
