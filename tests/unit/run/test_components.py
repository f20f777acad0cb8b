"""Every part of a retriever is scored on the lists of the one pass that served."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import InputError
from ringtrue.measures import Contribution, score
from ringtrue.records import Document, GoldenSet, Hit, Judgment, Query, Ranking
from ringtrue.retrieve import Collection, Fusion, Seen, Staged, build, fuse, observing
from ringtrue.retrieve.protocol import from_channel
from ringtrue.retrieve.stages import Top
from ringtrue.run.parts import component_rankings, components

K = 3
MEASURES = ["RR", "R@3"]


class Fixed:
    """A channel that knows its answer to every question, and counts how often it is asked."""

    def __init__(self, name: str, answers: Mapping[str, str]) -> None:
        self.name, self.answers, self.asked = name, answers, 0

    def search(self, text: str, *, k: int = 10, scope: Any = None) -> Sequence[Hit]:
        self.asked += 1
        return from_channel(self.name, [(doc, 9.0 - place) for place, doc in enumerate(self.answers.get(text, ""))])[:k]


class Reverse:
    """A step that turns the order round."""

    name = "reverse"

    def depth(self, k: int) -> int:
        return max(k, 4)

    def apply(self, text: str, hits: Sequence[Hit], *, k: int) -> list[Hit]:
        return list(reversed(hits))[:k]


def fusion(*channels: tuple[str, Any], rule: fuse.Rule | None = None, name: str = "rrf") -> Fusion:
    return Fusion(channels, rule or (lambda _, lists: fuse.rrf(lists)), name=name, depth=5)


def answered(retriever: Any, texts: Iterable[str]) -> tuple[list[Ranking], dict[str, Seen]]:
    rankings, seen = [], {}
    for text in texts:
        with observing() as watched:
            hits = retriever.search(text, k=K)
        rankings.append(Ranking(text, tuple(hits)))
        if watched.root is not None:
            seen[text] = watched.root
    return rankings, seen


def golden_of(judged: Mapping[str, str]) -> GoldenSet:
    """A set in which these documents are relevant; the text of a query is its id."""
    return GoldenSet(
        "tiny",
        "1.0.0",
        tuple(Query(text, text) for text in judged),
        tuple(Judgment(text, doc_id, 1) for text, docs in judged.items() for doc_id in docs),
    )


def ids(ranking: Ranking) -> str:
    return "".join(hit.doc_id for hit in ranking.hits)


ONE = {"p": "abcd", "q": "xy"}
OTHER = {"p": "dab", "q": "z"}


def test_channels_fusion_leave_one_out_and_each_step_in_one_pass() -> None:
    one, other = Fixed("one", ONE), Fixed("other", OTHER)
    retriever = Staged(fusion(("one", one), ("other", other)), [Reverse(), Top(1)])
    rankings, seen = answered(retriever, "pq")
    found = component_rankings(retriever, seen, k=K)
    assert {name: (part.kind, [ids(ranking) for ranking in part.rankings]) for name, part in found.items()} == {
        "one": ("channel", ["abc", "xy"]),
        "other": ("channel", ["dab", "z"]),
        "rrf": ("fusion", ["adb", "zxy"]),
        "without one": ("without", ["dab", "z"]),
        "without other": ("without", ["abc", "xy"]),
        "rrf >> reverse": ("stage", ["cbd", "yxz"]),
        "rrf >> reverse >> top": ("stage", ["c", "y"]),
    }
    assert [ids(ranking) for ranking in rankings] == ["c", "y"]


def test_nobody_is_asked_a_second_time() -> None:
    one, other = Fixed("one", ONE), Fixed("other", OTHER)
    retriever = fusion(("one", one), ("other", other))
    rankings, seen = answered(retriever, "pq")
    assert components(retriever, golden_of({"p": "a", "q": "z"}), MEASURES, k=K, rankings=rankings, seen=seen)
    assert one.asked == other.asked == 2


def test_each_part_has_its_own_scores_on_the_same_judgments() -> None:
    retriever = fusion(("one", Fixed("one", ONE)), ("other", Fixed("other", OTHER)))
    rankings, seen = answered(retriever, "pq")
    golden = golden_of({"p": "a", "q": "z"})
    found = {one.name: one for one in components(retriever, golden, MEASURES, k=K, rankings=rankings, seen=seen)}
    assert found["one"].scores.aggregate == {"RR": 0.5, "R@3": 0.5}
    assert found["other"].scores.aggregate == {"RR": 0.75, "R@3": 1.0}
    assert found["rrf"].scores.aggregate == score(rankings, golden, MEASURES).aggregate == {"RR": 1.0, "R@3": 1.0}
    assert found["without other"].scores.aggregate == found["one"].scores.aggregate


def test_contribution_is_read_off_the_lists_not_off_the_names_in_the_hits() -> None:
    """'sparse' is another word for splade, whose hits say splade; and two channels may have one name."""
    retriever = fusion(("sparse", Fixed("splade", ONE)), ("bm25", Fixed("bm25", OTHER)), ("bm25", Fixed("bm25", {})))
    rankings, seen = answered(retriever, "pq")
    found = components(retriever, golden_of({"p": "a", "q": "z"}), MEASURES, k=K, rankings=rankings, seen=seen)
    assert {one.name: one.contribution for one in found} == {
        "sparse": Contribution(5 / 6, 2 / 6, 5),
        "bm25": Contribution(4 / 6, 1 / 6, 4),
        "bm25 (2)": Contribution(0.0, 0.0, 0),  # it was asked, and brought nothing
        "rrf": None,
        "without sparse": None,
        "without bm25": None,
        "without bm25 (2)": None,
    }


def test_no_contribution_stands_for_an_answer_without_hits() -> None:
    retriever = fusion(("one", Fixed("one", {})), ("other", Fixed("other", {})))
    rankings, seen = answered(retriever, "p")
    found = components(retriever, golden_of({"p": "a"}), MEASURES, k=K, rankings=rankings, seen=seen)
    assert [(one.name, one.contribution) for one in found if one.kind == "channel"] == [("one", None), ("other", None)]


def test_latency_is_the_way_from_the_question_and_unknown_for_what_was_computed_later() -> None:
    retriever = Staged(fusion(("one", Fixed("one", ONE)), ("other", Fixed("other", OTHER))), [Reverse()])
    rankings, seen = answered(retriever, "pq")
    found = {
        one.name: one.latency
        for one in components(retriever, golden_of({"p": "a", "q": "z"}), MEASURES, k=K, rankings=rankings, seen=seen)
    }
    assert [name for name, latency in found.items() if latency is None] == ["without one", "without other"]
    known = [found[name] for name in ("one", "other", "rrf", "rrf >> reverse")]
    one, other, fused, stepped = (latency for latency in known if latency is not None)
    assert one.count == stepped.count == 2
    assert 0 < one.mean + other.mean < fused.mean < stepped.mean


@pytest.mark.parametrize(
    "rule",
    [
        lambda _, lists: fuse.rrf(lists, w=[0.2, 0.8]),
        lambda _, lists: fuse.weighted(lists, w=[0.2, 0.8], norm="minmax", depth=5),
        lambda _, lists: fuse.weighted(lists, w=[0.2, 0.8], norm="z", depth=5),
        lambda _, lists: fuse.weighted(lists, w=[0.2, 0.8], norm="rank", depth=5),
        lambda _, lists: fuse.comb_sum(lists),
        lambda _, lists: fuse.comb_mnz(lists),
        fuse.adaptive,
    ],
    ids=["rrf", "minmax", "z", "rank", "combsum", "combmnz", "adaptive"],
)
def test_of_two_channels_leaving_one_out_is_the_other(rule: Callable[..., dict[str, float]]) -> None:
    retriever = fusion(("one", Fixed("one", ONE)), ("other", Fixed("other", OTHER)), rule=rule)
    _, seen = answered(retriever, "pq")
    found = component_rankings(retriever, seen, k=K)
    for left, right in (("one", "other"), ("other", "one")):
        assert list(map(ids, found[f"without {left}"].rankings)) == list(map(ids, found[right].rankings))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # The third weighs most; without the first it must still be the third weight that it gets.
        (lambda _, lists: fuse.rrf(lists, k=0, w=[5.0, 1.0, 3.0]), "cb"),
        (lambda _, lists: fuse.weighted(lists, w=[5.0, 1.0, 3.0], norm="minmax", depth=5), "cb"),
        # A question in plain words halves the first, which is away: the others stay equal, and the later id comes first.
        (fuse.adaptive, "cb"),
    ],
    ids=["rrf", "weighted", "adaptive"],
)
def test_weights_stay_with_their_channels_when_one_is_left_out(rule: Callable[..., dict[str, float]], expected: str) -> None:
    text = "where is the pool?"
    channels = [(name, Fixed(name, {text: name})) for name in "abc"]
    retriever = fusion(*channels, rule=rule)
    _, seen = answered(retriever, [text])
    found = component_rankings(retriever, seen, k=K)
    assert ids(found["without a"].rankings[0]) == expected


def test_adaptive_keeps_halving_the_first_when_another_is_left_out() -> None:
    text = "where is the pool?"
    retriever = fusion(*[(name, Fixed(name, {text: name})) for name in "zyx"], rule=fuse.adaptive)
    _, seen = answered(retriever, [text])
    found = component_rankings(retriever, seen, k=K)
    assert ids(found["without y"].rankings[0]) == "xz"  # equal weights would put the later id first


def test_channels_inside_a_channel_have_its_name_before_theirs() -> None:
    inner = fusion(("b", Fixed("b", {"p": "bc"})), ("c", Fixed("c", {"p": "cd"})))
    first = Staged(Fixed("a", {"p": "ab"}), [Top(1)])
    retriever = fusion(("a >> top(1)", first), ("rrf(b, c)", inner), name="combsum")
    rankings, seen = answered(retriever, "p")
    found = components(retriever, golden_of({"p": "a"}), MEASURES, k=K, rankings=rankings, seen=seen)
    assert [(one.name, one.kind, ids(one.rankings[0])) for one in found] == [
        ("a >> top(1): a", "channel", "ab"),
        ("a >> top(1)", "channel", "a"),
        ("rrf(b, c): b", "channel", "bc"),
        ("rrf(b, c): c", "channel", "cd"),
        ("rrf(b, c)", "channel", "cbd"),
        ("combsum", "fusion", "cab"),
        ("without a >> top(1)", "without", "cbd"),
        ("without rrf(b, c)", "without", "a"),
    ]
    shares = {one.name: one.contribution for one in found}
    assert shares["a >> top(1): a"] is None
    assert shares["rrf(b, c): b"] == Contribution(2 / 3, 1 / 3, 2)
    assert shares["rrf(b, c)"] == Contribution(2 / 3, 2 / 3, 2)


def test_a_channel_with_steps_has_parts_and_no_contribution() -> None:
    retriever = Staged(Fixed("one", ONE), [Reverse()])
    rankings, seen = answered(retriever, "p")
    found = components(retriever, golden_of({"p": "a"}), MEASURES, k=K, rankings=rankings, seen=seen)
    assert [(one.name, one.kind, one.contribution) for one in found] == [
        ("one", "channel", None),
        ("one >> reverse", "stage", None),
    ]


def test_a_retriever_without_parts_gives_none() -> None:
    retriever = Fixed("one", ONE)
    rankings, seen = answered(retriever, "p")
    assert components(retriever, golden_of({"p": "a"}), MEASURES, k=K, rankings=rankings, seen=seen) == ()


def test_only_answered_and_observed_queries_count_and_the_same_for_all() -> None:
    retriever = fusion(("one", Fixed("one", ONE)), ("other", Fixed("other", OTHER)))
    rankings, seen = answered(retriever, "pq")
    late = [*rankings, Ranking("late", (), error="took longer than 30 s")]
    golden = golden_of({"p": "a", "q": "z", "late": "a"})
    for one in components(retriever, golden, MEASURES, k=K, rankings=late, seen={"p": seen["p"], "late": seen["q"]}):
        assert one.scores.query_ids == ("p",)
        assert one.scores.counted.missing == ()


def test_ids_of_passages_become_those_of_the_set() -> None:
    """Trap 11: chunk ids against the ids of documents made a channel look dead."""

    def document(chunk: str) -> str:
        return chunk.split("#")[0]

    class Chunks(Fixed):
        def search(self, text: str, *, k: int = 10, scope: Any = None) -> Sequence[Hit]:
            return [Hit(f"{name}#{place}", 9.0 - place) for place, name in enumerate(self.answers[text])][:k]

    retriever = fusion(("one", Chunks("one", {"p": "aab"})), ("other", Chunks("other", {"p": "ba"})))
    _, seen = answered(retriever, "p")
    final = [Ranking("p", (Hit("b"), Hit("a")))]
    found = components(retriever, golden_of({"p": "b"}), MEASURES, k=K, rankings=final, seen=seen, id_of=document)
    by_name = {one.name: one for one in found}
    assert ids(by_name["one"].rankings[0]) == "ab"
    assert by_name["one"].rankings[0].hits[0].chunk == "a#0"
    assert by_name["one"].scores.aggregate == {"RR": 0.5, "R@3": 1.0}
    assert by_name["one"].contribution == Contribution(1.0, 0.0, 2)


def test_trees_of_another_retriever_are_refused() -> None:
    asked = fusion(("one", Fixed("one", ONE)), ("other", Fixed("other", OTHER)))
    _, seen = answered(asked, "p")
    with pytest.raises(
        InputError, match=r"query 'p' was observed with the channels \['one', 'other'\], not with \['one', 'third'\]"
    ):
        component_rankings(fusion(("one", asked), ("third", asked)), seen, k=K)


def test_a_real_pipeline_over_a_collection(tmp_path: Path) -> None:
    texts = {
        "pool": "A heated pool.",
        "spa": "Sauna and a quiet pool.",
        "bill": "Cards and cash.",
        "dogs": "No dogs in the pool.",
    }
    collection = Collection.create(tmp_path / "documents")
    collection.ingest(Document(doc_id, text) for doc_id, text in texts.items())
    retriever = build("weighted(bm25(title=2), fts5, w=[0.3, 0.7]) >> top(2)", collection)
    with observing() as watched:
        hits = retriever.search("pool", k=K)
    assert watched.root is not None
    golden = GoldenSet("hotel", "1.0.0", (Query("q", "pool"),), (Judgment("q", "pool", 1),))
    found = components(retriever, golden, MEASURES, k=K, rankings=[Ranking("q", tuple(hits))], seen={"q": watched.root})
    assert [(one.name, one.kind) for one in found] == [
        ("bm25(title=2)", "channel"),
        ("fts5", "channel"),
        ("weighted", "fusion"),
        ("without bm25(title=2)", "without"),
        ("without fts5", "without"),
        ("weighted >> top", "stage"),
    ]
    by_name = {one.name: one for one in found}
    assert by_name["weighted >> top"].rankings[0].hits == tuple(hits)
    for alone, left in (("bm25(title=2)", "without fts5"), ("fts5", "without bm25(title=2)")):
        asked = [hit.doc_id for hit in build(alone, collection).search("pool", k=K)]
        assert [hit.doc_id for hit in by_name[alone].rankings[0].hits] == asked
        assert [hit.doc_id for hit in by_name[left].rankings[0].hits] == asked
    assert by_name["fts5"].contribution == Contribution(1.0, 0.0, 2)
