"""How an answer comes about is noted while it is served, and noting changes nothing."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringtrue.records import Hit
from ringtrue.retrieve import Collection, Fused, Fusion, Listed, Staged, Stepped, build, fuse, observing, search_many
from ringtrue.retrieve.protocol import from_channel
from ringtrue.retrieve.stages import Threshold, Top


class Fixed:
    """A channel with one answer to everything, which counts how often it is asked."""

    def __init__(self, name: str, *doc_ids: str) -> None:
        self.name, self.asked = name, 0
        self.hits = from_channel(name, [(doc_id, float(len(doc_ids) - place)) for place, doc_id in enumerate(doc_ids)])

    def search(self, text: str, *, k: int = 10, scope: Any = None) -> Sequence[Hit]:
        self.asked += 1
        return self.hits[:k]


class Backwards:
    """A step that turns the order round."""

    name = "backwards"

    def depth(self, k: int) -> int:
        return max(k, 5)

    def apply(self, text: str, hits: Sequence[Hit], *, k: int) -> list[Hit]:
        return list(reversed(hits))[:k]


def rrf(*channels: Any, name: str = "rrf") -> Fusion:
    named = [(channel.name, channel) for channel in channels]
    return Fusion(named, lambda _, lists: fuse.rrf(lists), name=name, depth=4)


def ids(hits: Sequence[Hit]) -> str:
    return "".join(hit.doc_id for hit in hits)


def test_a_fusion_shows_every_channel_with_its_whole_candidate_list() -> None:
    one, other = Fixed("one", *"abcdef"), Fixed("other", *"cxa")
    with observing() as seen:
        hits = rrf(one, other).search("pool", k=2)
    tree = seen.root
    assert isinstance(tree, Fused)
    assert (tree.name, tree.text, tree.hits) == ("rrf", "pool", tuple(hits))
    assert [(channel.name, ids(channel.hits)) for channel in tree.channels] == [("one", "abcd"), ("other", "cxa")]
    assert "".join(tree.order) == "caxbd"  # beyond the two that were asked for
    assert all(channel.ms > 0 for channel in tree.channels)
    assert tree.ms > sum(channel.ms for channel in tree.channels)
    assert one.asked == other.asked == 1


def test_a_pipeline_shows_the_hits_after_each_step_and_how_many_it_was_asked_for() -> None:
    pipeline = Staged(Fixed("one", *"abcdefgh"), [Backwards(), Top(2)])
    with observing() as seen:
        hits = pipeline.search("pool", k=3)
    tree = seen.root
    assert isinstance(tree, Stepped)
    assert (tree.name, ids(tree.hits), ids(hits)) == ("one >> backwards >> top", "ed", "ed")
    assert isinstance(tree.base, Listed)
    assert ids(tree.base.hits) == "abcde"
    assert [(step.name, ids(step.hits), step.asked) for step in tree.steps] == [("backwards", "edc", 3), ("top", "ed", 3)]
    assert tree.ms == tree.base.ms + sum(step.ms for step in tree.steps) > 0


def test_fusions_and_pipelines_nest_under_the_name_that_was_written() -> None:
    inner = Fusion([("b", Fixed("b", *"bc")), ("c", Fixed("c", *"cd"))], lambda _, lists: fuse.rrf(lists), name="rrf")
    outer = Fusion(
        [("a >> top(1)", Staged(Fixed("a", *"ab"), [Top(1)])), ("rrf(b, c)", inner)],
        lambda _, lists: fuse.comb_sum(lists),
        name="combsum",
    )
    with observing() as seen:
        outer.search("pool")
    tree = seen.root
    assert isinstance(tree, Fused)
    steps, fused = tree.channels
    assert isinstance(steps, Stepped)
    assert isinstance(fused, Fused)
    assert (steps.name, ids(steps.base.hits), ids(steps.hits)) == ("a >> top(1)", "ab", "a")
    assert (fused.name, [channel.name for channel in fused.channels]) == ("rrf(b, c)", ["b", "c"])


def test_a_retriever_without_parts_shows_none(hotel: Collection) -> None:
    with observing() as seen:
        assert build("bm25", hotel).search("pool")
    assert seen.root is None


def test_what_a_channel_asks_in_turn_is_not_its_own_list(hotel: Collection) -> None:
    """graph starts from the hits of a fusion, and a function may ask whatever it likes."""
    with observing() as seen:
        build("graph(rrf(bm25, fts5))", hotel).search("pool")
    assert seen.root is None
    inner = rrf(Fixed("one", *"ab"), Fixed("other", *"bc"))

    class Own:
        name = "own"

        def search(self, text: str, *, k: int = 10, scope: Any = None) -> Sequence[Hit]:
            return inner.search(text, k=k)

    with observing() as seen:
        rrf(Own(), Fixed("one", *"ab")).search("pool")
    assert isinstance(seen.root, Fused)
    assert [type(channel) for channel in seen.root.channels] == [Listed, Listed]


def test_asking_two_things_leaves_no_tree_that_could_be_taken_for_the_answer() -> None:
    with observing() as seen:
        rrf(Fixed("one", "a"), Fixed("other", "b")).search("pool")
        rrf(Fixed("one", "a"), Fixed("other", "b")).search("pool")
    assert seen.root is None
    assert seen.trees == ()


def test_a_batch_gives_one_tree_for_each_question() -> None:
    with observing() as seen:
        answers = search_many(Staged(rrf(Fixed("one", *"ab"), Fixed("other", *"bc")), [Top(1)]), ["pool", "spa"], k=2)
    assert [tree.hits for tree in seen.trees] == [tuple(hits) for hits in answers]
    bases = [tree.base for tree in seen.trees if isinstance(tree, Stepped)]
    assert [base.text for base in bases if isinstance(base, Fused)] == ["pool", "spa"]
    assert seen.root is None


def test_a_failing_search_leaves_nothing_behind() -> None:
    class Broken:
        name = "broken"

        def search(self, text: str, *, k: int = 10, scope: Any = None) -> Sequence[Hit]:
            raise ConnectionError("gone")

    with pytest.raises(ConnectionError), observing() as seen:
        rrf(Fixed("one", "a"), Broken()).search("pool")
    assert seen.root is None
    with observing() as seen:
        rrf(Fixed("one", "a"), Fixed("other", "b")).search("pool")
    assert seen.root is not None


def test_each_thread_sees_only_its_own_search() -> None:
    retriever = rrf(Fixed("one", *"ab"), Fixed("other", *"bc"))

    def ask(number: int) -> str:
        with observing() as seen:
            retriever.search(f"question {number}")
        assert isinstance(seen.root, Fused)
        return seen.root.text

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(40))) == [f"question {number}" for number in range(40)]


def test_a_tree_is_data_alone_and_can_travel() -> None:
    with observing() as seen:
        Staged(rrf(Fixed("one", *"ab"), Fixed("other", *"bc")), [Top(1)]).search("pool")
    assert pickle.loads(pickle.dumps(seen.root)) == seen.root


LISTS = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)


@given(one=LISTS, other=LISTS, k=st.integers(1, 9), steps=st.sampled_from([(), (3,), (0,), (0, 2)]))
def test_observing_changes_neither_hits_nor_order_nor_depth(
    one: list[str], other: list[str], k: int, steps: tuple[int, ...]
) -> None:
    fused = rrf(Fixed("one", *one), Fixed("other", *other))
    retriever = Staged(fused, [Top(n) if n else Backwards() for n in steps]) if steps else fused
    plain = retriever.search("pool", k=k)
    with observing() as seen:
        watched = retriever.search("pool", k=k)
    assert watched == plain
    assert seen.root is not None
    assert seen.root.hits == tuple(plain)


@pytest.mark.parametrize(
    "text", ["rrf(bm25, fts5)", "weighted(bm25, fts5, norm='z') >> top(3)", "rrf(bm25, graph(fts5), depth=2)"]
)
def test_observing_real_channels_changes_no_bit(hotel: Collection, text: str) -> None:
    retriever = build(text, hotel)
    plain = retriever.search("pool for children", k=5, scope={"kind": "page"})
    with observing() as seen:
        watched = retriever.search("pool for children", k=5, scope={"kind": "page"})
    assert plain == watched != []
    assert seen.root is not None
    assert seen.root.hits == tuple(plain)


def test_a_step_that_never_runs_since_nothing_was_found_is_noted_as_empty() -> None:
    with observing() as seen:
        assert Staged(Fixed("none"), [Threshold(min=0.5)]).search("pool") == []
    assert isinstance(seen.root, Stepped)
    assert [(step.name, step.hits) for step in seen.root.steps] == [("threshold", ())]
