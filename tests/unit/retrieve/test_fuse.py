"""Fusion rules on hand-computed lists; every hit keeps what each stage said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringtrue.records import Hit, Stage
from ringtrue.retrieve import fuse
from ringtrue.retrieve.protocol import from_channel

ONE = from_channel("one", [("a", 10.0), ("b", 6.0), ("c", 2.0)])
OTHER = from_channel("other", [("c", 0.9), ("a", 0.5), ("d", 0.1)])


class Fixed:
    def __init__(self, hits: Sequence[Hit]) -> None:
        self.hits = hits

    def search(self, text: str, *, k: int = 10, scope: Any = None) -> Sequence[Hit]:
        return self.hits[:k]


def test_rrf_is_the_sum_of_reciprocal_ranks_after_k() -> None:
    assert fuse.rrf([ONE, OTHER]) == {"a": 1 / 61 + 1 / 62, "b": 1 / 62, "c": 1 / 63 + 1 / 61, "d": 1 / 63}
    assert fuse.rrf([ONE, OTHER], k=0, w=[1, 2])["c"] == 1 / 3 + 2


def test_weighted_min_max() -> None:
    found = fuse.weighted([ONE, OTHER], w=[0.25, 0.75], depth=3)  # both lists are cut off at three
    assert found == {"a": 0.25 + 0.75 * 0.5, "b": 0.125, "c": 0.75, "d": 0.0}


def test_weighted_z_gives_a_document_beyond_the_cut_the_lowest_value_of_the_list() -> None:
    spread = (32 / 3) ** 0.5
    found = fuse.weighted([ONE, OTHER], w=[1.0, 0.0], norm="z", depth=3)
    assert found == pytest.approx({"a": 4 / spread, "b": 0.0, "c": -4 / spread, "d": -4 / spread})


def test_weighted_by_rank() -> None:
    assert fuse.weighted([ONE, OTHER], w=[1.0, 1.0], norm="rank", depth=3) == pytest.approx(
        {"a": 5 / 3, "b": 1.0, "c": 4 / 3, "d": 2 / 3}
    )


@pytest.mark.parametrize("norm", fuse.NORMS)
@pytest.mark.parametrize("scores", [[7.0], [7.0, 7.0], [7.0, 1.0], [-1.0, -3.0], [math.nan, math.nan]], ids=str)
def test_a_document_that_was_found_always_gains_over_one_that_was_not(norm: str, scores: list[float]) -> None:
    """A word that only one document has is a list of one hit; it must not count as nothing."""
    few = from_channel("words", [(f"found{place}", score) for place, score in enumerate(scores)])
    many = from_channel("dense", [(f"other{place}", 0.5) for place in range(5)])
    total = fuse.weighted([few, many], w=[1.0, 0.0], norm=norm)
    assert min(total[hit.doc_id] for hit in few) > max(total[hit.doc_id] for hit in many)


@pytest.mark.parametrize("rule", ["minmax", "z", "rank", "combsum", "combmnz"])
def test_a_list_without_scores_counts_by_its_order(rule: str) -> None:
    bare = [Hit("b"), Hit("a"), Hit("c")]
    if rule in fuse.NORMS:
        total = fuse.weighted([bare, []], w=[1.0, 0.0], norm=rule)
    else:
        total = {"combsum": fuse.comb_sum, "combmnz": fuse.comb_mnz}[rule]([bare])
    assert sorted(total, key=lambda doc_id: -total[doc_id]) == ["b", "a", "c"]
    assert not any(map(math.isnan, total.values()))


def test_a_list_whose_scores_end_half_way_counts_by_its_order() -> None:
    """What a reranker leaves beyond its depth has no score."""
    assert fuse.scored([Hit("a", 3.0), Hit("b", 1.0), Hit("c"), Hit("d")]) == [4.0, 3.0, 2.0, 1.0]


def test_combsum_and_combmnz() -> None:
    assert fuse.comb_sum([ONE, OTHER]) == {"a": 1.5, "b": 0.5, "c": 1.0, "d": 0.0}
    assert fuse.comb_mnz([ONE, OTHER]) == {"a": 3.0, "b": 0.5, "c": 2.0, "d": 0.0}


@pytest.mark.parametrize("norm", fuse.NORMS)
def test_equal_scores_and_an_empty_list_divide_by_nothing(norm: str) -> None:
    flat = from_channel("flat", [("a", 1.0), ("b", 1.0)])
    assert set(fuse.weighted([flat, []], w=[0.5, 0.5], norm=norm)) == {"a", "b"}


@pytest.mark.parametrize(
    ("text", "lean"),
    [
        ('"exact phrase"', 2.0),
        ("error E1234", 2.0),
        ("user_id column", 2.0),
        ("parseArgs", 2.0),
        ("why is it so cold", 0.5),
        ("cold?", 0.5),
        ("cold room", 1.0),
    ],
)
def test_adaptive_leans_by_what_the_query_looks_like(text: str, lean: float) -> None:
    assert fuse.leaning(text) == lean
    assert fuse.adaptive(text, [ONE, OTHER]) == fuse.rrf([ONE, OTHER], w=[lean, 1.0])


def test_every_hit_keeps_the_channels_ranks_and_scores_it_came_from() -> None:
    fusion = fuse.Fusion([("one", Fixed(ONE)), ("other", Fixed(OTHER))], lambda _, lists: fuse.rrf(lists), name="rrf")
    first = fusion.search("x", k=1)[0]
    assert first.doc_id == "a"
    assert first.channels == {"one": 1, "other": 2}
    assert first.stages == (Stage("one", 1, 10.0), Stage("other", 2, 0.5), Stage("rrf", 1, 1 / 61 + 1 / 62))


def test_the_passage_that_answered_is_kept_whoever_found_it() -> None:
    with_passage = [Hit("a", 0.5, "a:chunk:3", {"dense": 1}, None, (Stage("dense", 1, 0.5),))]
    fusion = fuse.Fusion([("one", Fixed(ONE)), ("dense", Fixed(with_passage))], lambda _, lists: fuse.rrf(lists), name="rrf")
    assert fusion.search("x", k=1)[0].chunk == "a:chunk:3"


@given(st.permutations(range(30)), st.permutations(range(30)), st.integers(1, 29), st.sampled_from(["rrf", "z"]))
def test_asking_for_more_changes_no_place(first: list[int], second: list[int], k: int, rule: str) -> None:
    lists = [
        from_channel(name, [(f"d{n:02}", float(100 - at)) for at, n in enumerate(order)])
        for name, order in (("a", first), ("b", second))
    ]
    rules: dict[str, fuse.Rule] = {
        "rrf": lambda _, found: fuse.rrf(found),
        "z": lambda _, found: fuse.weighted(found, w=[0.5, 0.5], norm="z"),
    }
    fusion = fuse.Fusion([(name, Fixed(hits)) for name, hits in zip("ab", lists, strict=True)], rules[rule], name=rule, depth=5)
    everything, part = fusion.search("x", k=30), fusion.search("x", k=k)
    assert [(hit.doc_id, hit.score) for hit in part] == [(hit.doc_id, hit.score) for hit in everything[:k]]
    assert len(everything) == 30
