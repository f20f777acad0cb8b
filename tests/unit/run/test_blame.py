"""Every relevant document that is missing at k is blamed on the stage that lost it, with its ranks on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ringtrue.measures import score
from ringtrue.records import Document, GoldenSet, Hit, Judgment, Query, Ranking, Stage
from ringtrue.retrieve import Collection, Fusion, Seen, Staged, build, fuse, observing
from ringtrue.retrieve.protocol import from_channel
from ringtrue.retrieve.stages import Recency, Threshold, Tier, Top
from ringtrue.run.evaluation import Loss
from ringtrue.run.parts import blame, relevant_total


class Fixed:
    """A channel with one answer to everything; scores fall from 9 by one."""

    def __init__(self, name: str, doc_ids: str) -> None:
        self.name, self.doc_ids = name, doc_ids

    def search(self, text: str, *, k: int = 10, scope: Any = None) -> Sequence[Hit]:
        return from_channel(self.name, [(doc_id, 9.0 - place) for place, doc_id in enumerate(self.doc_ids)])[:k]


class Order:
    """A reranker that knows its order; what it does not name stays behind."""

    name = "rerank"

    def __init__(self, order: str, *, depth: int = 50) -> None:
        self.order, self.candidates = order, depth

    def depth(self, k: int) -> int:
        return max(k, self.candidates)

    def apply(self, text: str, hits: Sequence[Hit], *, k: int) -> list[Hit]:
        place = {doc_id: number for number, doc_id in enumerate(self.order)}
        return sorted(hits, key=lambda hit: place.get(hit.doc_id, len(place)))[:k]


def rrf(*lists: str, depth: int = 10) -> Fusion:
    channels = [(name, Fixed(name, doc_ids)) for name, doc_ids in zip(("one", "other", "third"), lists, strict=False)]
    return Fusion(channels, lambda _, found: fuse.rrf(found), name="rrf", depth=depth)


def golden_of(relevant: str = "x", *, grade: int = 3, **facts: Any) -> GoldenSet:
    judged = tuple(Judgment("q", doc_id, grade) for doc_id in relevant)
    return GoldenSet("tiny", "1.0.0", (Query("q", "pool", facts),), judged)


def asked(retriever: Any, *, k: int) -> tuple[list[Ranking], dict[str, Seen]]:
    with observing() as watched:
        hits = retriever.search("pool", k=k)
    return [Ranking("q", tuple(hits))], {} if watched.root is None else {"q": watched.root}


def losses_of(retriever: Any, *, k: int = 2, deep: int | None = None, relevant: str = "x", **options: Any) -> tuple[Loss, ...]:
    rankings, seen = asked(retriever, k=deep or k)
    return blame(golden_of(relevant), rankings, k=k, seen=seen, **options)


def lost(stage: Any, *, k: int = 2, rank: int | None = None, **ranks: int) -> tuple[Loss, ...]:
    return (Loss("q", "x", 3, stage, k, rank, ranks),)


def test_what_is_found_is_no_loss() -> None:
    assert losses_of(rrf("ax", "xb")) == ()
    assert losses_of(Fixed("one", "ax")) == ()


def test_not_in_corpus() -> None:
    assert losses_of(rrf("ab", "bc"), in_corpus=lambda doc_id: doc_id != "x") == lost("not in corpus")


def test_not_in_any_list() -> None:
    assert losses_of(rrf("ab", "bc"), in_corpus=lambda _: True) == lost("not in any list")
    assert losses_of(rrf("ab", "bc")) == lost("not in any list")  # nobody knows what the corpus holds


def test_a_list_that_has_it_is_believed_over_a_corpus_that_no_longer_has_it() -> None:
    assert losses_of(rrf("abx", "ab"), in_corpus=lambda _: False) == lost("cut by fusion", one=3, rrf=3)


def test_cut_by_fusion_with_its_ranks_beyond_what_was_asked_for() -> None:
    assert losses_of(rrf("xab", "abcd", "bacd")) == lost("cut by fusion", one=1, rrf=5)


def test_the_final_rank_is_known_where_more_was_asked_for_than_counts() -> None:
    assert losses_of(rrf("xab", "abcd", "bacd"), deep=5) == lost("cut by fusion", rank=5, one=1, rrf=5)


def test_beyond_the_candidates_of_a_fusion_nobody_has_it() -> None:
    assert losses_of(rrf("abcx", "bac", depth=3)) == lost("not in any list")


def test_demoted_by_rerank() -> None:
    retriever = Staged(rrf("xab", "xbc"), [Order("abcx")])
    assert losses_of(retriever) == lost("demoted by rerank", one=1, other=1, rrf=1)
    assert losses_of(retriever, deep=4) == lost("demoted by rerank", rank=4, one=1, other=1, rrf=1, rerank=4)


def test_the_step_that_demotes_it_last_is_to_blame_and_the_ranks_say_which() -> None:
    retriever = Staged(rrf("abx", "abx"), [Order("xab"), Order("abx")])
    expected = {"one": 3, "other": 3, "rrf": 3, "rerank": 1, "rerank (2)": 3}
    assert losses_of(retriever, deep=3) == (Loss("q", "x", 3, "demoted by rerank", 2, 3, expected),)


@pytest.mark.parametrize(
    "step",
    [
        Recency(lambda: {"a": {"date": "2026-01-01"}, "b": {"date": "2026-01-01"}, "x": {"date": "2020-01-01"}}, weight=9.0),
        Tier(lambda: {"a": {"tier": "core"}, "b": {"tier": "core"}, "x": {}}, boosts={"core": 9.0}),
    ],
    ids=["recency", "tier"],
)
def test_boosting_others_past_it_is_demoting(step: Any) -> None:
    found = losses_of(Staged(rrf("xab", "xab"), [step]), deep=3)
    assert found == (Loss("q", "x", 3, "demoted by rerank", 2, 3, {"one": 1, "other": 1, "rrf": 1, step.name: 3}),)


def test_a_reranker_that_could_not_lift_it_did_not_lose_it() -> None:
    retriever = Staged(rrf("abcx", "abcx"), [Order("baxc")])
    assert losses_of(retriever, deep=4) == lost("cut by fusion", rank=3, one=4, other=4, rrf=4, rerank=3)


def test_cut_by_threshold() -> None:
    retriever = Staged(Fixed("one", "ax"), [Threshold(min=8.5)])  # a scores 9, x scores 8
    assert losses_of(retriever) == lost("cut by threshold", one=2)


def test_cut_by_top() -> None:
    assert losses_of(Staged(rrf("abx", "abx"), [Top(2)]), k=5) == lost("cut by threshold", k=5, one=3, other=3, rrf=3)


def test_a_cut_beyond_k_takes_nothing_away() -> None:
    """At 2 it is missing either way; the fusion put it third."""
    assert losses_of(Staged(rrf("abx", "abx"), [Top(2)]), deep=5) == lost("cut by fusion", one=3, other=3, rrf=3)


def test_a_cut_before_a_reranker_took_away_the_chance_however_far_down_it_stood() -> None:
    retriever = Staged(rrf("abcx", "abcx"), [Top(3), Order("cab")])
    assert losses_of(retriever) == lost("cut by threshold", one=4, other=4, rrf=4)


def test_below_k_in_the_one_list_there_is() -> None:
    assert losses_of(Fixed("one", "abx"), deep=3) == lost("below k", rank=3, one=3)
    assert losses_of(Staged(Fixed("one", "abx"), [Order("bax")])) == lost("below k", one=3)


def test_below_k_of_a_system_that_cannot_be_looked_into() -> None:
    hits = Hit("a"), Hit("b"), Hit("x", stages=(Stage("vectors", 7, 0.1), Stage("boost", 3, 0.2)))
    assert blame(golden_of(), [Ranking("q", hits)], k=2) == lost("below k", rank=3, vectors=7, boost=3)
    assert blame(golden_of(), [Ranking("q", hits[:2])], k=2) == lost("not in any list")


def test_wrong_chunk() -> None:
    golden = golden_of(top_1_chunk="x:chunk:2")
    hits = Hit("a"), Hit("x", chunk="x:chunk:0", stages=(Stage("dense", 2, 0.5),))
    assert blame(golden, [Ranking("q", hits)], k=2) == lost("wrong chunk", rank=2, dense=2)
    assert blame(golden, [Ranking("q", (replace(hits[1], chunk="x:chunk:2"),))], k=2) == ()


@pytest.mark.parametrize("chunk", [None, "17", "x#0", "x:title"])
def test_a_chunk_that_is_unknown_or_named_otherwise_is_not_held_to_be_wrong(chunk: str | None) -> None:
    golden = golden_of(top_1_chunk="x:chunk:2")
    assert blame(golden, [Ranking("q", (Hit("x", chunk=chunk),))], k=2) == ()


@pytest.mark.parametrize("declared", ["y:chunk:2", "x", "x#2", None])
def test_a_declared_chunk_of_something_else_says_nothing_about_this_document(declared: str | None) -> None:
    assert blame(golden_of(top_1_chunk=declared), [Ranking("q", (Hit("x", chunk="x:chunk:0"),))], k=2) == ()


@pytest.mark.parametrize(
    ("channel", "stage", "ranks"),
    [
        (Staged(Fixed("one", "axb"), [Top(1)]), "cut by threshold", {"inner: one": 2}),
        (Staged(rrf("xab", "xbc"), [Order("abcx")]), "demoted by rerank", {"inner: one": 1, "inner: other": 1}),
        (rrf("abx", "abc"), "cut by fusion", {"inner: one": 3}),
    ],
    ids=["threshold", "rerank", "fusion"],
)
def test_what_a_channel_loses_inside_is_blamed_on_the_stage_in_there(channel: Any, stage: Any, ranks: dict[str, int]) -> None:
    channels = [("inner", channel), ("third", Fixed("third", "ab"))]
    outer = Fusion(channels, lambda _, found: fuse.rrf(found), name="outer", depth=2)
    assert losses_of(outer) == (Loss("q", "x", 3, stage, 2, None, ranks),)


def test_what_a_function_around_a_pipeline_does_to_its_hits_is_a_step_called_answer() -> None:
    pipeline = rrf("xab", "xab")

    class Filtered:
        def search(self, text: str, *, k: int = 10) -> Sequence[Hit]:
            return [hit for hit in pipeline.search(text, k=k) if hit.doc_id != "x"]

    class Turned:
        def search(self, text: str, *, k: int = 10) -> Sequence[Hit]:
            return pipeline.search(text, k=k)[::-1]

    class Silent:
        def search(self, text: str, *, k: int = 10) -> Sequence[Hit]:
            return pipeline.search(text, k=k)[:0]

    for around in (Filtered(), Silent()):
        assert losses_of(around, deep=3) == lost("cut by threshold", one=1, other=1, rrf=1)
    assert losses_of(Turned(), deep=3) == lost("demoted by rerank", rank=3, one=1, other=1, rrf=1, answer=3)


def test_only_relevant_documents_of_answered_questions_that_want_an_answer() -> None:
    queries = tuple(Query(name, name, negative=name == "silence") for name in ("q", "silence", "failed", "unasked"))
    judged = [("q", "x", 2), ("q", "y", 1), ("q", "z", 3), ("silence", "x", 2), ("failed", "x", 2), ("unasked", "x", 2)]
    golden = GoldenSet("tiny", "1.0.0", queries, tuple(Judgment(*row) for row in judged), relevance_threshold=2)
    rankings = [Ranking("q", ()), Ranking("silence", ()), Ranking("failed", (), error="gone")]
    found = blame(golden, rankings, k=2)
    assert [(loss.query_id, loss.doc_id, loss.grade) for loss in found] == [("q", "z", 3), ("q", "x", 2)]
    assert relevant_total(golden, rankings) == 2


def test_any_member_of_a_class_will_do_and_a_class_is_lost_once() -> None:
    golden = replace(golden_of("xy"), equivalence_classes=(("w", "x", "y"),))
    assert blame(golden, [Ranking("q", (Hit("a"), Hit("w")))], k=2) == ()
    missing = [Ranking("q", (Hit("a"), Hit("b"), Hit("w")))]
    assert blame(golden, missing, k=2) == lost("below k", rank=3)
    assert relevant_total(golden, missing) == 1
    # Two of a class take one place, as in the measures: what follows them moves up.
    twins = replace(golden_of("b"), equivalence_classes=(("x", "y"),))
    both = [Ranking("q", (Hit("x"), Hit("y"), Hit("b")))]
    assert blame(twins, both, k=2) == ()
    assert score(both, twins, ["R@2"]).aggregate == {"R@2": 1.0}
    assert blame(golden, [Ranking("q", ())], k=2, in_corpus=lambda doc_id: doc_id == "w")[0].stage == "not in any list"
    assert blame(golden, [Ranking("q", ())], k=2, in_corpus=lambda doc_id: doc_id == "a")[0].stage == "not in corpus"


def test_ids_of_the_system_are_turned_into_those_of_the_set() -> None:
    """Trap 11: 'mem:x' is x. The answer is in the ids of the set already, the lists are not."""

    class Prefixed(Fixed):
        def search(self, text: str, *, k: int = 10, scope: Any = None) -> Sequence[Hit]:
            return [replace(hit, doc_id=f"mem:{hit.doc_id}") for hit in super().search(text, k=k)]

    retriever = Staged(Prefixed("one", "xab"), [Order("")])
    reranked = Staged(retriever, [Turn()])
    _, seen = asked(reranked, k=3)
    final = [Ranking("q", (Hit("b"), Hit("a"), Hit("x")))]
    found = blame(golden_of(), final, k=2, seen=seen, id_of=lambda doc_id: doc_id.removeprefix("mem:"))
    assert found == lost("demoted by rerank", rank=3, one=1, rerank=1, turn=3)


class Turn:
    """A step that turns the order round."""

    name = "turn"

    def depth(self, k: int) -> int:
        return k

    def apply(self, text: str, hits: Sequence[Hit], *, k: int) -> list[Hit]:
        return list(hits)[::-1]


TEXTS = {
    "pool": "The heated pool is open to every guest.",
    "spa": "Sauna, and a quiet pool.",
    "rules": "Pool rules: no glass at the pool.",
    "dogs": "Dogs may not enter the pool, nor the restaurant, nor the lawn.",
    "bill": "We take cards and cash.",
}


@pytest.fixture(scope="module")
def hotel(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    collection = Collection.create(tmp_path_factory.mktemp("hotel") / "documents")
    collection.ingest(Document(doc_id, text) for doc_id, text in TEXTS.items())
    return collection


def test_a_real_pipeline_loses_each_document_where_it_should(hotel: Collection) -> None:
    retriever = build("rrf(bm25, fts5) >> top(3)", hotel)
    with observing() as watched:
        hits = retriever.search("pool", k=10)
    assert watched.root is not None
    found = [hit.doc_id for hit in hits]
    assert (len(found), set(TEXTS) - set(found)) == (3, {"dogs", "bill"})
    golden = GoldenSet("hotel", "1.0.0", (Query("q", "pool"),), tuple(Judgment("q", doc_id, 1) for doc_id in (*TEXTS, "sauna")))
    rankings = [Ranking("q", tuple(hits))]
    kept = set(hotel.ids().values())
    losses = {
        loss.doc_id: loss for loss in blame(golden, rankings, k=10, seen={"q": watched.root}, in_corpus=kept.__contains__)
    }
    ranks: Mapping[str, int] = {"bm25": 4, "fts5": 4, "rrf": 4}
    assert losses == {
        "dogs": Loss("q", "dogs", 1, "cut by threshold", 10, None, ranks),
        "bill": Loss("q", "bill", 1, "not in any list", 10),
        "sauna": Loss("q", "sauna", 1, "not in corpus", 10),
    }
    relevant = relevant_total(golden, rankings)
    found_count = relevant - len(losses)
    assert (relevant, found_count) == (6, 3)
    assert found_count / relevant == score(rankings, golden, ["R@10"]).aggregate["R@10"]
