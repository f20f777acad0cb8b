"""The search kept open: it follows the files, shows the constitutional, and ranks as the hook does."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from made_memories import memory, store
from ringtrue.errors import InputError
from ringtrue.memory.engine import Engine, guaranteed
from ringtrue.memory.hook.files import load, write
from ringtrue.memory.hook.index import Index, MemoryHit
from ringtrue.memory.hook.memory import changed
from ringtrue.memory.hook.settings import Settings

NOW = 1_800_000_000.0
QUESTIONS = ("invoice refund", "cursor webhook timeouts", "how are tenant sessions cached", "nothing of that")


def ids(hits):
    return [hit.memory.id for hit in hits]


@pytest.mark.parametrize("count", [5, 120])
@pytest.mark.parametrize("strategy", ["fts5_bm25", "title_tags"])
def test_ranks_and_scores_are_those_of_the_index_of_the_hook(tmp_path: Path, strategy: str, count: int) -> None:
    store(tmp_path, count)
    engine = Engine(str(tmp_path), Settings(), strategy)
    index = Index(load(str(tmp_path), Settings()).memories, Settings())
    for question in QUESTIONS:
        expected = index.search(question, k=10, now=NOW, strategy=strategy, limit=20)
        found = engine.search(question, k=10, now=NOW).hits
        if expected and expected[0].score >= Settings().search.min_score_abs:
            expected = [one for one in expected if one.score >= Settings().search.min_score_abs]
        assert [(one.memory.id, one.score) for one in found] == [(one.memory.id, one.score) for one in expected]


def test_a_change_of_the_files_is_seen_by_the_next_search(tmp_path: Path) -> None:
    store(tmp_path, 60)
    engine = Engine(str(tmp_path), Settings(), "fts5_bm25")
    assert "quokka" not in ids(engine.search("quokka burrow", k=3, now=NOW).hits)
    write(str(tmp_path), memory("quokka", "Quokka burrow", "quokka"))
    assert ids(engine.search("quokka burrow", k=3, now=NOW).hits) == ["quokka"]
    write(str(tmp_path), memory("quokka", "Wombat", "wombat"))
    assert ids(engine.search("quokka burrow", k=3, now=NOW).hits) == []
    (retired,) = (one for one in load(str(tmp_path), Settings()).memories if one.id == "quokka")
    write(str(tmp_path), changed(retired, status="retired"))
    assert ids(engine.search("wombat", k=3, now=NOW).hits) == []
    assert "quokka" not in [one.id for one in engine.memories(NOW)]


def test_files_at_rest_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in store(tmp_path, 5):
        path = tmp_path / one.category / f"{one.id}.json"
        os.utime(path, (1_000_000_000, 1_000_000_000))
    engine = Engine(str(tmp_path), Settings())
    monkeypatch.setattr("ringtrue.memory.engine._settled", lambda state, began: True)
    first = ids(engine.search("invoice", k=1, now=NOW).hits)
    monkeypatch.setattr("ringtrue.memory.engine.open_index", lambda *_: pytest.fail("it was read again"))
    assert first == ids(engine.search("invoice", k=1, now=NOW).hits) != []


def test_memories_past_their_retention_are_not_shown(tmp_path: Path) -> None:
    old = memory("old", "Sprint summary", "done", category="session_summary", updated_at="2020-01-01T00:00:00Z")
    write(str(tmp_path), old)
    engine = Engine(str(tmp_path), Settings())
    assert engine.memories(NOW) == []
    assert engine.search("sprint summary", k=3, now=NOW).hits == ()


def test_threads_may_share_an_engine(tmp_path: Path) -> None:
    store(tmp_path, 60)
    engine = Engine(str(tmp_path), Settings())
    expected = {question: ids(engine.search(question, k=5, now=NOW).hits) for question in QUESTIONS}
    with ThreadPoolExecutor(8) as pool:
        asked = [*QUESTIONS] * 25
        found = pool.map(lambda question: ids(engine.search(question, k=5, now=NOW).hits), asked)
        assert list(found) == [expected[question] for question in asked]


def test_a_strategy_that_does_not_exist_is_named_with_the_nearest() -> None:
    with pytest.raises(InputError, match="there is no strategy 'fts5'; did you mean 'fts5_bm25'"):
        Engine("/nowhere", Settings(), "fts5")


def hits(*names: str, always: tuple[str, ...] = ()):
    tier = {name: "constitutional" if name in always else "normal" for name in names}
    return [MemoryHit(memory(name, tier=tier[name]), 10.0 - rank, rank) for rank, name in enumerate(names, 1)]


def test_constitutional_memories_keep_their_place_or_come_last_and_push_others_out() -> None:
    always = [memory(name, tier="constitutional") for name in ("law", "oath")]
    found = guaranteed(hits("a", "law", "b", "c", always=("law",)), always, k=4)
    assert [(hit.memory.id, hit.rank) for hit in found] == [("a", 1), ("law", 2), ("b", 3), ("oath", 4)]
    assert found[-1].score == found[-2].score
    assert ids(guaranteed([], always, k=2)) == ["law", "oath"]


def test_more_constitutional_memories_than_places_is_an_error_with_its_cure() -> None:
    always = [memory(f"law-{number}", tier="constitutional") for number in range(4)]
    with pytest.raises(InputError, match="there are 4 constitutional memories and k is 3; ask for k=4 or more"):
        guaranteed([], always, k=3)


def test_without_constitutional_memories_the_ranking_is_untouched() -> None:
    found = hits("a", "b", "c")
    assert guaranteed(found, [], k=3) == found
