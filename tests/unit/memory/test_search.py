"""Searching on demand: the same index as the hook, cut as the settings say."""

from __future__ import annotations

import json
import time

import pytest

from made_memories import memory, store
from ringtrue.errors import InputError, RingtrueError
from ringtrue.memory.engine import Engine, documents_of, hook_view, search_memories
from ringtrue.memory.hook.cache import open_index
from ringtrue.memory.hook.files import load, write
from ringtrue.memory.hook.index import Index
from ringtrue.memory.hook.settings import OnDemand, Settings, read_settings

NOW = 1_800_000_000.0


@pytest.mark.parametrize("strategy", ["fts5_bm25", "title_tags"])
@pytest.mark.parametrize("count", [5, 120])
def test_a_search_ranks_as_the_index_of_the_hook(tmp_path, strategy, count) -> None:
    store(tmp_path, count)
    root, text = str(tmp_path), "cache token rollback of the invoice worker"
    answer = search_memories(root, text, now=NOW, strategy=strategy)
    direct = open_index(root, Settings()).search(text, k=10, now=NOW, strategy=strategy, limit=20)
    fresh = Index(load(root, Settings()).memories, Settings()).search(text, k=10, now=NOW, strategy=strategy, limit=20)
    assert [(hit.memory.id, hit.score, hit.rank) for hit in answer.hits] == [
        (one.memory.id, one.score, one.rank) for one in direct
    ]
    assert [one.memory.id for one in direct] == [one.memory.id for one in fresh]
    assert answer.hits


def test_trap_25_the_only_memory_is_found_though_its_score_is_next_to_nothing(tmp_path) -> None:
    write(str(tmp_path), memory("jwt", "Sessions are JWT", "signed"))
    (hit,) = search_memories(str(tmp_path), "jwt sessions", now=NOW).hits
    assert hit.memory.id == "jwt"
    assert hit.score < 0.1


def test_weak_hits_are_left_out_where_there_are_better_ones(tmp_path) -> None:
    store(tmp_path, 60)
    root = str(tmp_path)

    def words(least: float) -> Settings:
        return Settings(match_strategy="fts5_bm25", search=OnDemand(min_score_abs=least))

    everything = search_memories(root, "cache token", now=NOW, k=60, settings=words(0.0))
    middle = everything.hits[len(everything.hits) // 2].score
    cut = search_memories(root, "cache token", now=NOW, k=60, settings=words(middle))
    assert 0 < len(cut.hits) < len(everything.hits)
    assert min(hit.score for hit in cut.hits) >= middle


def test_settings_decide_strategy_number_and_words(tmp_path) -> None:
    store(tmp_path, 30)
    (tmp_path / "memory-config.json").write_text(
        json.dumps({"retrieval": {"match_strategy": "title_tags", "search": {"max_results": 2}}})
    )
    answer = search_memories(str(tmp_path), "cache token queue", now=NOW)
    assert (answer.strategy, len(answer.hits)) == ("title_tags", 2)
    assert len(search_memories(str(tmp_path), "cache token queue", now=NOW, k=4).hits) == 4
    halves = [" ".join(f"{name}{number}" for number in range(10)) for name in ("word", "more")]
    long = f"{halves[0]} cache {halves[1]}"
    assert search_memories(str(tmp_path), long[:-6], now=NOW).hits  # the twentieth word still counts
    assert not search_memories(str(tmp_path), long, now=NOW).hits


def test_a_strategy_there_is_not_is_an_error(tmp_path) -> None:
    with pytest.raises(InputError, match="did you mean 'hybrid'"):
        search_memories(str(tmp_path), "x", now=NOW, strategy="hybird")
    with pytest.raises(InputError, match="k is 0"):
        search_memories(str(tmp_path), "x", now=NOW, k=0)


def test_trap_30_what_is_retired_or_past_its_retention_is_in_no_strategy(tmp_path) -> None:
    root = str(tmp_path)
    write(root, memory("kept", "Rotate the cache keys", "weekly"))
    write(root, memory("gone", "Rotate the cache keys by hand", "weekly", status="retired"))
    write(root, memory("old", "Rotated the cache keys", "done", category="session_summary", updated_at="2020-01-01"))
    assert [one.id for one in Engine(root, Settings()).memories(time.time())] == ["kept"]
    for strategy in ("fts5_bm25", "title_tags", "hybrid"):
        try:
            found = search_memories(root, "rotate cache keys", now=time.time(), strategy=strategy, k=10)
        except RingtrueError as problem:
            assert strategy == "hybrid"
            pytest.skip(str(problem))
        assert [hit.memory.id for hit in found.hits] == ["kept"], strategy


def test_hybrid_is_the_retriever_expression_memory(tmp_path) -> None:
    from ringtrue.retrieve import Collection, build

    store(tmp_path, 25)
    root = str(tmp_path)
    try:
        answer = search_memories(root, "token cache rollback", now=NOW, strategy="hybrid", k=7)
    except RingtrueError as problem:
        pytest.skip(str(problem))
    collection = Collection.create(tmp_path / "other")
    collection.ingest(documents_of(Engine(root, read_settings(root)[0]).memories(NOW)))
    hits = build("memory", collection).search("token cache rollback", k=7)
    assert [(hit.memory.id, hit.score) for hit in answer.hits] == [(hit.doc_id, hit.score) for hit in hits]
    assert (tmp_path / ".ringtrue" / ".gitignore").read_text() == "*\n"


def test_the_collection_follows_the_files(tmp_path) -> None:
    made = store(tmp_path, 3)
    root = str(tmp_path)
    engine = Engine(root, Settings())
    assert len(engine.memories(NOW)) == 3
    (tmp_path / made[0].category / f"{made[0].id}.json").unlink()
    assert len(engine.memories(NOW)) == 2


def test_how_the_hook_sees_a_text_names_its_words_the_evidence_and_the_phrase(tmp_path) -> None:
    root = str(tmp_path)
    full = memory("redis", "Redis is full", "drain the queue", trigger_phrases=("OOM command not allowed",))
    other = memory("jwt", "Sessions are JWT", "signed")
    for one in (full, other):
        write(root, one)
    view = hook_view(root, "OOM command not allowed in redis", [full, other], Settings(), now=NOW)
    assert view.words == ("oom", "command", "allowed", "redis")
    assert [hit.memory.id for hit in view.decision.inject] == ["redis"]
    assert view.evidence["redis"] == view.decision.evidence[0] > view.decision.level > view.evidence["jwt"]
    assert view.phrases == {"redis": "oom command not allowed"}
