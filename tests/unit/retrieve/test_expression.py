"""Retrievers are values in the measures' grammar: parsed, printed, hashed, rebuilt; dicts are the same values."""

from __future__ import annotations

import pytest

from ringtrue.errors import InputError, RingtrueError, SpecError
from ringtrue.retrieve import ALL, Collection, as_expression, build, canonical, indexes_of, names_documents
from ringtrue.spec import parse

EXAMPLES = [
    "bm25",
    "bm25(title=2)",
    "rrf(bm25(title=2), dense('all-MiniLM-L6-v2'), k=60)",
    "weighted(bm25, rm3, dense, w=[0.3, 0.4, 0.3])",
    "weighted(bm25, dense, norm='z', w=[0.5, 0.5])",
    "rrf(bm25, dense) >> mmr(0.7)",
    "rrf(rrf(bm25, fts5), dense) >> threshold(relative=0.5) >> top(3)",
    "adaptive(bm25, dense)",
    "combmnz(bm25, fts5)",
    "dense(fields=['title', 'content'])",
    "graph(bm25, hops=2)",
    "trigger",
    "rrf(bm25 >> top(20), dense)",
    "bm25 >> recency(half_life=7) >> tier(core=1.5)",
]


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_expression_prints_parses_and_rebuilds(text: str, hotel: Collection) -> None:
    full = canonical(text)
    assert parse(str(full)) == full
    assert canonical(str(full)) == full
    assert canonical(str(full)) == canonical(text)
    again = build(str(full), hotel).search("pool in the spa", k=4)
    assert [(hit.doc_id, hit.score) for hit in build(text, hotel).search("pool in the spa", k=4)] == [
        (hit.doc_id, hit.score) for hit in again
    ]


def test_a_default_written_out_is_the_same_retriever_and_another_value_is_another() -> None:
    assert canonical("bm25") == canonical("bm25(title=3)") == canonical("bm25( tags = 1 )")
    assert canonical("bm25") != canonical("bm25(title=2)")
    assert canonical("rrf(bm25, dense)") != canonical("rrf(dense, bm25)")
    assert canonical("hybrid") == canonical(str(canonical("hybrid")))


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"fusion_method": "rrf", "rrf_k": 60}, "rrf(bm25, dense, k=60)"),
        ('{"fusion_method": "rrf", "rrf_k": 60}', "rrf(bm25, dense, k=60)"),
        (
            ' {"fusion_method": "weighted",\n "weights": {"bm25": 0.3, "splade": 0.4, "dense": 0.3}}',
            "weighted(bm25, splade, dense, w=[0.3, 0.4, 0.3])",
        ),
        ({"fusion_method": "rrf", "rrf_k": 20, "channels": ["bm25", "rm3"]}, "rrf(bm25, rm3, k=20)"),
        ({"fusion_method": "weighted", "weights": {"bm25": 0.3, "dense": 0.7}}, "weighted(bm25, dense, w=[0.3, 0.7])"),
        (
            {"fusion_method": "weighted", "weights": {"bm25": 1, "fts5": 1}, "normalization": "z"},
            "weighted(bm25, fts5, norm='z', w=[1, 1])",
        ),
    ],
)
def test_dict_configurations_are_the_same_expressions(config: dict[str, object], text: str) -> None:
    assert as_expression(config) == parse(text)
    assert canonical(config) == canonical(text)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("bm52", "'bm25'"),
        ("bm25(titel=2)", "'title'"),
        ("bm25(title='two')", "title=3"),
        ("bm25(2)", "named options"),
        ("rrf(bm25)", "two or more"),
        ("rrf", "two or more"),
        ("weighted(bm25, dense, w=[1])", "2 retrievers"),
        ("weighted(bm25, dense, w=[0, 0])", "2 retrievers"),
        ("weighted(bm25, dense, norm='maxmin')", "'minmax'"),
        ("mmr(0.7)", "cannot come first"),
        ("bm25 >> dense", "cannot follow"),
        ("bm25@10", "top(10)"),
        ("graph", "one retriever"),
        ("bm25(dense)", "takes no retriever"),
        ("bm25(title=0)", "from 1"),
        ("bm25(language='klingon')", "stemmer"),
        ("rrf(bm25, dense, k=-1)", "k=60"),
        ("dense(store='float8')", "'float16'"),
        ("dense('no-such-model')", "no-such-model"),
        ("splade", "model"),
        ("", "name"),
        ("rrf(bm25,", "at character 10; write it like bm25, rrf(bm25, dense) or hybrid >> mmr(0.5)"),
        ("hybrid(depth=10)", "weighted("),
        ("sparse(depth=1)", "'model'"),
        ("rrf(bm25, fts5, depth=0)", "depth=100"),
        ("adaptive(bm25, fts5, k=-1)", "k=60"),
        ("rrf(bm25, fts5, k=1e30)", "k=60"),
        ("weighted(bm25, fts5, w=[1e300, 1])", "2 retrievers"),
        ("dense(hnsw=-1)", "hnsw=-1"),
        ("fts5(title=0, tags=0, body=0)", "above 0"),
    ],
)
def test_a_wrong_expression_names_the_value_and_the_cure(wrong: str, says: str, hotel: Collection) -> None:
    with pytest.raises(RingtrueError) as problem:
        build(wrong, hotel)
    assert says in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(
    "config", [{}, {"fusion_method": "max"}, {"fusion_method": "weighted"}, {"fusion_method": "rrf", "k": 60}]
)
def test_a_wrong_configuration_is_a_spec_error(config: dict[str, object]) -> None:
    with pytest.raises(SpecError):
        as_expression(config)


def test_a_misspelt_key_of_a_configuration_is_shown() -> None:
    with pytest.raises(SpecError, match="needs the key 'fusion_method', but has 'fusion_metod'"):
        as_expression('{"fusion_metod": "rrf"}')


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -1.0])
def test_a_weight_that_is_no_number_is_refused(weight: float, hotel: Collection) -> None:
    with pytest.raises(SpecError):
        build({"fusion_method": "weighted", "weights": {"bm25": weight, "fts5": 1.0}}, hotel)


def test_another_word_for_a_channel_takes_its_options() -> None:
    assert canonical("sparse('folder')") == canonical("splade('folder')")


def test_a_channel_without_documents_says_how_to_get_them() -> None:
    with pytest.raises(InputError, match="ringtrue ingest"):
        build("bm25")


def test_what_needs_documents_is_known_before_any_are_opened() -> None:
    assert names_documents("hybrid")
    assert names_documents("rrf(connect('shop'), bm25)")
    assert not names_documents("connect('shop') >> top(3)")


def test_every_index_under_a_retriever_is_found_once(hotel: Collection) -> None:
    found = [index.folder.name.split("-")[0] for index in indexes_of(build("rrf(bm25, rm3, dense, fts5) >> mmr(0.5)", hotel))]
    assert sorted(found) == ["bm25", "dense", "fts5"]


def test_every_name_says_what_it_means() -> None:
    assert all(name.means and name.kind in ("channel", "fusion", "stage") for name in ALL.values())
