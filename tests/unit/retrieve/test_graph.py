"""The graph channel: neighbours of what another retriever finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringtrue.errors import InputError
from ringtrue.records import Document, Hit, Stage
from ringtrue.retrieve.builders import Collection
from ringtrue.retrieve.channels.fts5 import Fts5
from ringtrue.retrieve.channels.graph import EDGES, Graph
from ringtrue.retrieve.protocol import Scope
from ringtrue.testing.retrievers import RetrieverSuite, raises


class Finds:
    """A source that always finds the same documents, and remembers how it was asked."""

    def __init__(self, *doc_ids: str) -> None:
        self.doc_ids, self.asked = doc_ids, [(0, None)]

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        self.asked.append((k, scope))
        return [Hit(doc_id) for doc_id in self.doc_ids[:k]]


def fill(folder: Path, facts: Mapping[str, Mapping[str, Any]]) -> Collection:
    collection = Collection.create(folder)
    collection.ingest((Document(d, f"text {d}", metadata=own) for d, own in facts.items()), remove_missing=True)
    return collection


def found(graph: Graph, **options: Any) -> list[str]:
    return [hit.doc_id for hit in graph.search("pool", **options)]


def scores(graph: Graph) -> dict[str, float]:
    return {hit.doc_id: hit.score for hit in graph.search("pool", k=100)}


CHAIN = {"a": {"links": ["b"]}, "b": {"links": ["c"]}, "c": {"links": ["d"]}, "d": {}, "alone": {}}


@pytest.fixture(scope="module")
def hotel(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Two documents say 'pool'; four others are linked to them."""
    collection = Collection.create(tmp_path_factory.mktemp("graph") / "hotel")
    collection.ingest(
        [
            Document("pool", "the pool", metadata={"depends_on": "boiler", "related": ["spa"]}),
            Document("pool-old", "the pool of last year", metadata={"links": [{"to": "lift", "type": "mentions"}]}),
            Document("boiler", "hot water"),
            Document("spa", "sauna"),
            Document("lift", "two lifts"),
            Document("towels", "at the desk", metadata={"supports": "pool"}),
            Document("parking", "behind the house"),
        ]
    )
    return Graph(Fts5(collection), collection)


class TestGraph(RetrieverSuite):
    @pytest.fixture(autouse=True)
    def _given(self, hotel: Graph) -> None:
        self.hotel = hotel

    def make(self) -> Graph:
        return self.hotel


def test_neighbours_come_and_what_is_not_linked_does_not(hotel: Graph) -> None:
    assert sorted(found(hotel)) == ["boiler", "lift", "spa", "towels"]


def test_a_hit_says_that_the_graph_brought_it(tmp_path: Path) -> None:
    (hit,) = Graph(Finds("a"), fill(tmp_path, CHAIN)).search("pool")
    score = 0.5 / 61
    assert hit == Hit("b", score, None, {"graph": 1}, None, (Stage("graph", 1, score),))


def test_every_hop_decays(tmp_path: Path) -> None:
    graph = Graph(Finds("a"), fill(tmp_path, CHAIN), hops=3, decay=0.25)
    assert scores(graph) == pytest.approx({"b": 0.25 / 61, "c": 0.0625 / 61, "d": 0.015625 / 61})


@pytest.mark.parametrize(("hops", "reached"), [(1, ["b"]), (2, ["b", "c"]), (3, ["b", "c", "d"]), (10, ["b", "c", "d"])])
def test_no_walk_is_longer_than_hops(tmp_path: Path, hops: int, reached: list[str]) -> None:
    assert found(Graph(Finds("a"), fill(tmp_path, CHAIN), hops=hops)) == reached


def test_a_better_place_in_the_source_counts_more(tmp_path: Path) -> None:
    graph = Graph(Finds("b", "a"), fill(tmp_path, {"a": {"links": "x"}, "b": {"links": "y"}, "x": {}, "y": {}}))
    assert scores(graph) == pytest.approx({"y": 0.5 / 61, "x": 0.5 / 62})
    assert found(graph) == ["y", "x"]


def test_a_neighbour_reached_twice_keeps_its_best_and_gains_nothing(tmp_path: Path) -> None:
    facts = {"a": {"links": ["x"]}, "b": {"links": ["x"], "causes": ["x"]}, "x": {"related": "a"}}
    assert scores(Graph(Finds("a", "b"), fill(tmp_path, facts), hops=3))["x"] == pytest.approx(0.5 / 61)


def test_the_sources_own_hits_come_only_where_another_leads_to_them(tmp_path: Path) -> None:
    graph = Graph(Finds("a", "b", "d"), fill(tmp_path, CHAIN), hops=1)
    assert scores(graph) == pytest.approx({"b": 0.5 / 61, "a": 0.5 / 62, "c": 0.5 / 62})
    assert found(Graph(Finds("a"), graph.collection, hops=5)) == ["b", "c", "d"]


def test_a_hit_is_not_its_own_neighbour_however_many_ways_lead_round_to_it(tmp_path: Path) -> None:
    others = [f"o{n:02}" for n in range(20)]
    ways: dict[str, dict[str, Any]] = {f"m{n:02}": {"links": ["first", other]} for n, other in enumerate(others)}
    graph = Graph(Finds("first", *others), fill(tmp_path, {"first": {}} | {other: {} for other in others} | ways), hops=2)
    reached = scores(graph)
    assert reached["first"] == pytest.approx(0.25 / 62)
    assert {reached[other] for other in others} == {0.25 / 61}


def test_equal_scores_go_by_id_descending_also_at_the_cut(tmp_path: Path) -> None:
    graph = Graph(Finds("a"), fill(tmp_path, {"a": {"links": ["x", "z", "y"]}, "x": {}, "y": {}, "z": {}}))
    assert found(graph) == ["z", "y", "x"]
    assert found(graph, k=2) == ["z", "y"]


@pytest.mark.parametrize(("direction", "reached"), [("out", ["c"]), ("in", ["a"]), ("both", ["c", "a"])])
def test_links_are_walked_in_the_direction_asked_for(tmp_path: Path, direction: str, reached: list[str]) -> None:
    assert found(Graph(Finds("b"), fill(tmp_path, CHAIN), direction=direction)) == reached


@pytest.mark.parametrize("field", EDGES)
@pytest.mark.parametrize(
    "write", [lambda i: i, lambda i: [i], lambda i: {"to": i}, lambda i: [{"to": i}]], ids=["id", "ids", "to", "tos"]
)
def test_every_field_of_links_is_read_in_every_form(tmp_path: Path, field: str, write: Any) -> None:
    collection = fill(tmp_path, {"a": {field: write("b")}, "b": {}})
    assert found(Graph(Finds("a"), collection, edges=[field])) == ["b"]
    assert found(Graph(Finds("a"), collection, edges=[other for other in EDGES if other != field])) == []


def test_a_link_may_say_its_own_type(tmp_path: Path) -> None:
    facts = {"a": {"links": ["b", {"to": "c", "type": "causes"}, {"to": "d", "type": "mentions"}]}, "b": {}, "c": {}, "d": {}}
    collection = fill(tmp_path, facts)
    reached = {edge: found(Graph(Finds("a"), collection, edges=[edge])) for edge in ("links", "causes", "mentions")}
    assert reached == {"links": ["b"], "causes": ["c"], "mentions": ["d"]}
    assert found(Graph(Finds("a"), collection, edges=["causes", "mentions"])) == ["d", "c"]


def test_a_type_that_nothing_has_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    with raises(InputError) as messages:
        Graph(Finds("a"), fill(tmp_path, CHAIN), edges=["depend_on"]).search("pool")
    assert "'depend_on'" in messages[0]
    assert "'depends_on'" in messages[0]


def test_whole_numbers_are_ids_too(tmp_path: Path) -> None:
    assert found(Graph(Finds("a"), fill(tmp_path, {"a": {"related": [12]}, "12": {}}))) == ["12"]


def test_links_to_nowhere_are_not_followed(tmp_path: Path) -> None:
    facts = {"a": {"links": ["gone", "b", "gone"], "causes": ["gone", "a"]}, "b": {"related": None, "links": []}}
    collection = fill(tmp_path, facts)
    assert found(Graph(Finds("a"), collection)) == ["b"]
    assert found(Graph(Finds("a"), collection, edges=["causes"])) == []


@pytest.mark.parametrize(
    "value", [1.5, True, {"type": "causes"}, [{"to": None}], [["b"]], {"to": "b", "type": 3}, [None]], ids=repr
)
def test_a_link_that_is_none_is_an_error_that_names_the_document(tmp_path: Path, value: Any) -> None:
    with raises(InputError) as messages:
        Graph(Finds("b"), fill(tmp_path, {"bad": {"links": value}, "b": {}})).search("pool")
    assert "'bad'" in messages[0]


def test_cycles_end(tmp_path: Path) -> None:
    ring = {"a": {"links": "b"}, "b": {"links": "c"}, "c": {"links": "a"}, "self": {"links": "self"}}
    assert found(Graph(Finds("a", "self"), fill(tmp_path, ring), hops=10, direction="out")) == ["b", "c"]


def test_a_scope_holds_for_the_source_the_way_and_the_answer(tmp_path: Path) -> None:
    facts = {doc_id: own | {"status": "retired" if doc_id == "c" else "active"} for doc_id, own in CHAIN.items()}
    source = Finds("a")
    graph = Graph(source, fill(tmp_path, facts), hops=3)
    assert found(graph, scope={"status": "active"}) == ["b"]
    assert source.asked[-1] == (50, {"status": "active"})
    assert found(graph) == ["b", "c", "d"]


def test_depth_is_how_many_hits_are_started_from_whatever_k_is(tmp_path: Path) -> None:
    collection = fill(tmp_path, {"a": {"links": "x"}, "b": {"links": "y"}, "x": {}, "y": {}})
    assert found(Graph(Finds("a", "b"), collection, depth=1), k=100) == ["x"]


def test_nothing_found_has_no_neighbours(tmp_path: Path) -> None:
    assert Graph(Finds(), fill(tmp_path, CHAIN)).search("pool") == []
    assert Graph(Finds(), Collection.create(tmp_path / "empty"), edges=["mentions"]).search("pool") == []


def test_a_source_over_other_documents_is_an_error(tmp_path: Path) -> None:
    with raises(InputError) as messages:
        Graph(Finds("mem:a", "mem:b"), fill(tmp_path, CHAIN)).search("pool")
    assert "'mem:a'" in messages[0]


def test_it_follows_the_collection(tmp_path: Path) -> None:
    graph = Graph(Finds("a"), fill(tmp_path, CHAIN))
    assert found(graph) == ["b"]
    fill(tmp_path, {"a": {"links": ["d", "b"]}, "d": {}})
    assert found(graph) == ["d"]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"edges": "causes"}, "edges='causes'"),
        ({"hops": 0}, "hops=0"),
        ({"hops": 11}, "hops=11"),
        ({"hops": True}, "hops=True"),
        ({"depth": 0}, "depth=0"),
        ({"depth": 2.5}, "depth=2.5"),
        ({"decay": 0}, "decay=0"),
        ({"decay": 1.5}, "decay=1.5"),
        ({"decay": float("nan")}, "decay=nan"),
        ({"direction": "up"}, "direction='up'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_options_that_cannot_be_are_refused(tmp_path: Path, options: dict[str, Any], shown: str) -> None:
    with raises(InputError) as messages:
        Graph(Finds("a"), fill(tmp_path, CHAIN), **options)
    assert shown in messages[0]


def slow_walk(
    out: Mapping[str, Sequence[str]], seeds: Sequence[str], hops: int, decay: float, direction: str
) -> dict[str, float]:
    """The definition: from every document of the source a search in widening rings."""
    pairs = {(a, b) for a, targets in out.items() for b in targets if a != b and b in out}
    back = {(b, a) for a, b in pairs}
    walked = {"out": pairs, "in": back, "both": pairs | back}[direction]
    best: dict[str, float] = {}
    for rank, seed in enumerate(seeds, 1):
        seen, ring = {seed}, {seed}
        for hop in range(1, hops + 1):
            ring = {b for a, b in walked if a in ring} - seen
            seen |= ring
            for doc_id in ring:
                best[doc_id] = max(best.get(doc_id, 0.0), decay**hop / (60 + rank))
    return best


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection that every example of a property writes anew."""
    return tmp_path_factory.mktemp("walks")


names = st.sampled_from("abcdefg")


@given(
    out=st.dictionaries(names, st.lists(names, max_size=4), min_size=1),
    seeds=st.lists(names, unique=True, max_size=5),
    hops=st.integers(1, 4),
    decay=st.sampled_from([0.1, 0.5, 0.99, 1.0]),
    direction=st.sampled_from(["both", "out", "in"]),
)
def test_scores_are_those_of_the_definition(
    shared_folder: Path, out: dict[str, list[str]], seeds: list[str], hops: int, decay: float, direction: str
) -> None:
    seeds = [seed for seed in seeds if seed in out]
    collection = fill(shared_folder, {doc_id: {"links": targets} for doc_id, targets in out.items()})
    graph = Graph(Finds(*seeds), collection, hops=hops, decay=decay, direction=direction)
    expected = slow_walk(out, seeds, hops, decay, direction)
    assert scores(graph) == pytest.approx(expected)
    assert found(graph, k=100) == sorted(sorted(expected, reverse=True), key=lambda doc_id: -expected[doc_id])
