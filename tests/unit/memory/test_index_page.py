"""The page for people: all memories, safe to render, and no part of the hot path."""

from __future__ import annotations

from made_memories import memory, store
from ringtrue.memory.exporters import index_page, write_index_page
from ringtrue.memory.hook.files import load
from ringtrue.memory.hook.settings import Settings


def test_the_page_lists_every_memory_once_with_a_link_that_leads_there(tmp_path) -> None:
    store(tmp_path, 30)
    memories = load(str(tmp_path), Settings()).memories
    page = write_index_page(memories, str(tmp_path))
    text = page.read_text()
    for one in memories:
        assert text.count(f"({one.category}/{one.id}.json)") == 1
    assert load(str(tmp_path), Settings()).memories == memories  # the page is not read as a memory
    assert index_page(reversed(memories), str(tmp_path)) == text


def test_titles_are_text_and_retired_memories_stand_apart() -> None:
    hostile = memory("x", "See [here](http://evil) <script> `rm`", "y", path="/m/decision/x.json")
    old = memory("old", "Old", "y", status="retired", path="/m/decision/old.json")
    page = index_page([hostile, old], "/m")
    assert "[See \\[here\\](http://evil) \\<script\\> \\`rm\\`](decision/x.json)" in page
    assert page.index("no longer shown (1)") < page.index("[Old]")
