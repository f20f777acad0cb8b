"""Weights learned on one part of a set; nothing is learned from the other."""

from __future__ import annotations

import pytest

from ringtrue.errors import InputError
from ringtrue.records import GoldenSet, Judgment, Query
from ringtrue.retrieve.learn import _grid, learn, reached
from ringtrue.retrieve.protocol import from_channel

QUERIES = tuple(Query(f"q{number}", "question") for number in range(8))
GOLDEN = GoldenSet("g", "1.0.0", QUERIES, tuple(Judgment(query.query_id, "right", 3) for query in QUERIES))
GOOD = from_channel("good", [("right", 3.0), ("x", 2.0), ("y", 1.0)])
BAD = from_channel("bad", [("x", 3.0), ("y", 2.0), ("z", 1.0), ("right", 0.5)])


def test_the_channel_that_finds_gets_the_weight() -> None:
    learned = learn(["bm25", "dense"], {query.query_id: [BAD, GOOD] for query in QUERIES}, GOLDEN)
    assert learned.value == 1.0
    assert learned.weights[1] > learned.weights[0]
    assert str(learned.expression).startswith("weighted(bm25, dense, depth=50, norm='z', w=[")


def test_equal_channels_keep_equal_weights() -> None:
    learned = learn(["bm25", "dense"], {query.query_id: [GOOD, GOOD] for query in QUERIES}, GOLDEN)
    assert learned.weights == (0.5, 0.5)


def test_queries_of_the_other_part_teach_nothing() -> None:
    part = GoldenSet("g", "1.0.0", QUERIES[:4], GOLDEN.judgments[:4])
    answers = {query.query_id: [GOOD, BAD] if number < 4 else [BAD, GOOD] for number, query in enumerate(QUERIES)}
    assert learn(["bm25", "dense"], answers, part).weights[0] >= 0.5


def test_reached_is_ndcg_of_the_fused_answers() -> None:
    answers = {query.query_id: [GOOD, BAD] for query in QUERIES}
    assert reached(answers, GOLDEN, (1.0, 0.0)) == 1.0
    assert reached(answers, GOLDEN, (0.0, 1.0)) == pytest.approx(0.43068, abs=1e-5)


def test_the_grid_shares_everything_out() -> None:
    assert list(_grid(2, 2)) == [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)]
    assert all(sum(weights) == pytest.approx(1) for weights in _grid(3, 20))
    assert len(list(_grid(3, 20))) == 231


def test_one_channel_has_nothing_to_weigh() -> None:
    with pytest.raises(InputError, match="two or more"):
        learn(["bm25"], {}, GOLDEN)
