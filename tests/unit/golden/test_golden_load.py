"""Sets by path and by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ringtrue.errors import InputError, MissingInput
from ringtrue.golden import load, load_test_set, locate, shipped
from ringtrue.golden import load as load_function
from ringtrue.golden.version import corpus_hash

Put = Callable[[str, str], Path]
YAML = "queries:\n  - {query_id: c1, query_text: ask, relevant_docs: [{doc_id: d1, grade: GRADE}]}\n"


def test_shipped_name_wins_over_a_folder_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hotel").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load("hotel").id == "hotel"
    assert locate("./hotel") == Path("hotel")


def test_unknown_name_lists_the_nearest_and_the_shipped_sets() -> None:
    with pytest.raises(MissingInput, match=r"did you mean 'hotel'.*shipped: agent-280, clinical, hotel") as caught:
        load("hotle")
    assert caught.value.exit_code == 2


def test_five_sets_are_shipped() -> None:
    assert shipped() == ("agent-280", "clinical", "hotel", "memory-bench", "millrace", "precedents", "tidewater")


def test_test_set_is_found_by_name_in_the_usual_folders(put: Put, tmp_path: Path) -> None:
    put("test_sets/mine_v1.yaml", YAML.replace("GRADE", "1"))
    assert load_test_set("mine_v1", folder=tmp_path).id == "mine_v1"
    assert load_test_set("mine_v1.yaml", folder=tmp_path).id == "mine_v1"


def test_nearer_folder_wins_over_the_shipped_test_set(put: Put, tmp_path: Path) -> None:
    assert load_test_set("test_set_v1", folder=tmp_path).id == "clinical"
    put("test_set_v1.yaml", "id: own\n" + YAML.replace("GRADE", "1"))
    assert load_test_set("test_set_v1", folder=tmp_path).id == "own"


def test_unknown_test_set_says_what_is_near_and_where_it_looked(put: Put, tmp_path: Path) -> None:
    put("golden/mine_v1.yaml", YAML.replace("GRADE", "1"))
    with pytest.raises(MissingInput, match=r"did you mean 'mine_v1'") as caught:
        load_test_set("mine_v2", folder=tmp_path)
    assert str(tmp_path / "golden") in str(caught.value)
    assert "mine_v2.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("grade", "declared", "threshold"),
    [(1, "", 1), (2, "", 2), (3, "relevance_threshold: 3\n", 3), (4, "scale: [0, 5]\n", 1)],
)
def test_threshold_is_declared_or_follows_from_the_grades(put: Put, grade: int, declared: str, threshold: int) -> None:
    golden = load(put("a.yaml", declared + YAML.replace("GRADE", str(grade))))
    assert golden.relevance_threshold == threshold


def test_threshold_can_be_overridden(put: Put) -> None:
    assert load(put("a.yaml", YAML.replace("GRADE", "3")), threshold=1).relevance_threshold == 1


@pytest.mark.parametrize("name", ["_id", "id", "doc_id"])
def test_the_id_of_a_document_in_a_corpus_file_has_the_usual_names(put: Put, name: str) -> None:
    put("c.jsonl", f'{{"{name}": "pool", "text": "an indoor pool", "number": 7}}\n')
    golden = load(put("a.yaml", "corpus: c.jsonl\n" + YAML.replace("GRADE", "3")))
    assert [(one.doc_id, dict(one.metadata)) for one in golden.documents] == [("pool", {"number": 7})]


def test_load_knows_the_corpus_hash(put: Put) -> None:
    put("c.jsonl", '{"_id": "d1", "text": "x"}\n')
    golden = load(put("a.yaml", "corpus: c.jsonl\n" + YAML.replace("GRADE", "3")))
    assert golden.corpus_hash == corpus_hash(golden.documents)
    assert len(golden.corpus_hash or "") == 64


def beir(put: Put) -> None:
    put("set/corpus.jsonl", '{"_id": "d1", "title": "T", "text": "x", "metadata": {"year": 2}}\n')
    rows = [{"_id": str(n), "text": f"ask {n}", "metadata": {}} for n in range(4)]
    put("set/queries.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    put("set/qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\td1\t1\n")
    put("set/qrels/train.tsv", "query-id\tcorpus-id\tscore\n0\td1\t1\n")


def test_beir_folder_reads_the_test_part_and_keeps_queries_that_no_part_judges(put: Put, tmp_path: Path) -> None:
    beir(put)
    golden = load(tmp_path / "set")
    assert [query.query_id for query in golden.queries] == ["1", "2", "3"]
    assert golden.documents[0].metadata == {"year": 2}
    assert golden.qrels.to_dict()["1"] == {"d1": 1}


def test_beir_part_is_chosen_with_split(put: Put, tmp_path: Path) -> None:
    beir(put)
    golden = load(tmp_path / "set", split="train")
    assert [query.query_id for query in golden.queries] == ["0", "2", "3"]
    assert golden.metadata["split"] == "train"
    with pytest.raises(MissingInput, match=r"no split 'dev'; choose .*'train'"):
        load(tmp_path / "set", split="dev")


def test_split_of_another_format_is_refused(put: Put) -> None:
    with pytest.raises(InputError, match="a test-set set has no split files"):
        load(put("a.yaml", YAML.replace("GRADE", "3")), split="test")


def test_public_function_is_the_module_level_one() -> None:
    assert load_function is load
