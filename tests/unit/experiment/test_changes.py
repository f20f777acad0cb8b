"""What was changed follows from the two setups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from made import evaluation
from ringtrue.errors import InputError
from ringtrue.experiment import changes, given_change
from ringtrue.experiment.judging import text_changes


def test_changed_options_are_named_by_their_place() -> None:
    before = "rrf(bm25(title=3), dense(model='a'), k=60) >> rerank(depth=50, model='m')"
    after = "rrf(bm25(title=1), dense(model='b'), k=60, w=[1, 2]) >> rerank(depth=20, model='m')"
    assert text_changes(before, after, "retriever") == {
        "rrf.bm25.title": 1,
        "rrf.dense.model": "b",
        "rrf.w": [1, 2],
        "rerank.depth": 20,
    }


def test_twins_are_told_apart_and_another_shape_is_written_out() -> None:
    found = text_changes("rrf(bm25(title=1), bm25(title=3))", "rrf(bm25(title=1), bm25(title=5))", "retriever")
    assert found == {"rrf.bm25[2].title": 5}
    assert text_changes("rrf(bm25, dense)", "rrf(bm25, splade)", "retriever") == {"retriever": "rrf(bm25, splade)"}
    assert text_changes("bm25", "bm25 >> top(5)", "retriever") == {"retriever": "bm25 >> top(5)"}
    assert text_changes("my search", "your search", "retriever") == {"retriever": "your search"}
    assert text_changes("bm25(title=2)", "bm25(title=2)", "retriever") == {}


def test_changes_of_a_setup_hold_chunking_and_settings_of_ones_own() -> None:
    config = {
        "chunking": "fixed(overlap=50, tokens=512)",
        "fusion": "rrf",
        "channels": ["bm25"],
        "server": {"url": "a", "n": 1},
    }
    before = evaluation(name="bm25(title=3)", setup={"config": config}).setup
    after = replace(
        before,
        retriever="bm25(title=2)",
        config={**config, "chunking": "fixed(overlap=25, tokens=256)", "fusion": None, "server": {"url": "b"}},
    )
    assert changes(before, after) == {
        "bm25.title": 2,
        "chunking.overlap": 25,
        "chunking.tokens": 256,
        "server.url": "b",
        "server.n": None,
    }
    other = replace(before, config={**config, "chunking": "none"})
    assert changes(before, other) == {"chunking": "none"}
    assert changes(before, before) == {}


def test_a_change_by_hand_is_a_name_and_a_value() -> None:
    assert given_change("reranking.threshold=0.6") == ("reranking.threshold", 0.6)
    assert given_change("chunker=fixed(tokens=256)") == ("chunker", "fixed(tokens=256)")
    with pytest.raises(InputError, match="names no value"):
        given_change("reranking")
