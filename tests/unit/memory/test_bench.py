"""The memory on judged sets: the bars that need no vectors, and that the questions are asked as the hook asks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ringtrue.errors import InputError
from ringtrue.golden import load
from ringtrue.memory.bench import ARMS, BenchArm, bench, questions_of
from ringtrue.memory.hook.settings import Settings
from ringtrue.records import GoldenSet

SHIPPED = BenchArm("fts5_bm25", "null")


@pytest.fixture(scope="module")
def memory_bench() -> GoldenSet:
    return load("memory-bench")


def test_what_is_shown_unasked_is_right_and_off_topic_prompts_get_silence(memory_bench: GoldenSet) -> None:
    (row,) = bench(memory_bench, [SHIPPED])
    assert row.measures["SetP@3"] >= 0.70
    assert row.measures["R@10"] >= 0.90
    assert row.measures["FalseInject@3"] < 0.10
    assert row.measures["off-topic silent"] == 1.0
    assert row.measures["answered"] > 0.4  # silence alone would pass the rest
    assert all(len(ids) <= 3 for ids in row.shown.values())


def test_the_level_is_what_keeps_the_hook_from_talking(memory_bench: GoldenSet) -> None:
    fixed, null = bench(memory_bench, [BenchArm("fts5_bm25", "fixed"), SHIPPED])
    assert fixed.measures["FalseInject@3"] > 0.5 > null.measures["FalseInject@3"]
    assert fixed.measures["R@10"] == null.measures["R@10"]  # on demand the threshold does not count


def test_trap_30_nothing_retired_is_shown_or_found(memory_bench: GoldenSet) -> None:
    for row in bench(memory_bench, [arm for arm in ARMS if arm.strategy != "hybrid"]):
        assert row.measures["Stale@10"] == 0.0
        assert row.measures["Constitutional@5"] == 1.0


def test_follow_ups_are_asked_with_the_turns_before(memory_bench: GoldenSet) -> None:
    texts = questions_of(memory_bench, Settings())
    follow_up = next(query for query in memory_bench.queries if query.metadata["transcript_context"])
    whole = next(query for query in memory_bench.queries if not query.metadata["transcript_context"])
    assert texts[follow_up.query_id].startswith(follow_up.text)
    assert follow_up.metadata["transcript_context"][-1] in texts[follow_up.query_id]
    assert texts[whole.query_id] == whole.text


def test_what_a_set_does_not_tell_is_left_out(memory_bench: GoldenSet) -> None:
    (row,) = bench(memory_bench, [SHIPPED])
    assert "ChainCompleteness@10" not in row.measures
    assert "session lift" not in row.measures
    positive = replace(memory_bench, queries=tuple(query for query in memory_bench.queries if not query.negative))
    (row,) = bench(positive, [SHIPPED])
    assert not {"abstention F1", "off-topic silent"} & row.measures.keys()


def test_a_set_without_memories_is_refused() -> None:
    with pytest.raises(InputError, match="no documents"):
        bench(GoldenSet("empty", "1.0.0", (), ()))
