"""``ringtrue golden bootstrap`` and ``golden convert``: what is written, and that it is read back the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ringtrue.golden import load
from ringtrue.records import Judgment

CORPUS = [
    {"_id": "c-1", "title": "Levy on improvements", "text": "Betterment.", "practice_area": "levy", "corpus": "library"},
    {"_id": 2, "title": "Zoning appeal", "text": "Appeals.", "practice_area": "zoning", "corpus": "decisions"},
    {"_id": "c-3", "title": "zoning appeal", "text": "Costs.", "practice_area": "costs", "corpus": "decisions"},
]


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in CORPUS))


def rows(path: str) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_a_set_from_a_list_of_queries_is_not_asked_for_other_kinds_of_queries(ringtrue) -> None:
    Path("queries.txt").write_text("zoning appeal costs\n")
    assert (
        ringtrue("golden", "bootstrap", "corpus.jsonl", "--from", "queries", "--queries", "queries.txt", "--out", "q.json").code
        == 0
    )
    assert load("q.json").profile == "test-set"
    assert "query_type" not in ringtrue("golden", "validate", "q.json").out


def test_bootstrap_writes_the_gold_set_as_json_lines_with_corpus_and_practice_area(ringtrue) -> None:
    found = ringtrue("golden", "bootstrap", "corpus.jsonl", "--out", "gold.jsonl")
    assert found.code == 0, found.err
    first, second = rows("gold.jsonl")
    assert {**first, "id": ""} == {
        "id": "", "query": "Levy on improvements", "practice_area": "levy", "corpus": "library",
        "relevant_case_law_ids": ["c-1"], "source": "bootstrap",
    }  # fmt: skip
    assert second["relevant_ids"] == ["2", "c-3"]
    assert second["corpus"] == "decisions"
    assert "practice_area" not in second, "its documents do not share one"
    assert "gold.jsonl cannot hold " in found.err
    assert "all 3 documents" in found.err


def test_bootstrap_again_keeps_what_a_person_confirmed_in_json_lines(ringtrue) -> None:
    ringtrue("golden", "bootstrap", "corpus.jsonl", "--out", "gold.jsonl")
    first, second = rows("gold.jsonl")
    confirmed = first | {"source": "chair", "query": "tax on a new floor", "note": "reworded"}
    Path("gold.jsonl").write_text(json.dumps(confirmed) + "\n" + json.dumps(second) + "\n")
    assert ringtrue("golden", "bootstrap", "corpus.jsonl", "--out", "gold.jsonl").code == 0
    assert rows("gold.jsonl") == [confirmed, second]


@pytest.mark.parametrize("out", ["gold.jsonl", "gold.json", "gold.yaml", "gold.csv"])
def test_what_bootstrap_writes_is_read_back_the_same(ringtrue, out: str) -> None:
    ringtrue("golden", "bootstrap", "corpus.jsonl", "--out", out)
    written, golden = Path(out).read_bytes(), load(out)
    assert [dict(query.metadata) for query in golden.queries] == [
        {"practice_area": "levy", "corpus": "library"}, {"corpus": "decisions"},
    ]  # fmt: skip
    assert [(judgment.doc_id, judgment.source) for judgment in golden.judgments] == [
        ("c-1", "bootstrap"), ("2", "bootstrap"), ("c-3", "bootstrap"),
    ]  # fmt: skip
    assert ringtrue("golden", "bootstrap", "corpus.jsonl", "--out", out).code == 0
    assert Path(out).read_bytes() == written


def test_bootstrap_writes_the_format_that_is_named(ringtrue) -> None:
    assert ringtrue("golden", "bootstrap", "corpus.jsonl", "--out", "gold", "--format", "gold-jsonl").code == 0
    assert sorted(file.name for file in Path("gold").iterdir()) == ["corpus.jsonl", "gold-set.jsonl", "golden.json"]
    assert len(load("gold").documents) == 3
    refused = ringtrue("golden", "bootstrap", "corpus.jsonl", "--out", "gold.txt")
    assert (refused.code, "--format" in refused.err) == (2, True)


def test_a_list_of_queries_becomes_candidates_that_people_can_judge(ringtrue) -> None:
    Path("asked.csv").write_text("query,count\nzoning fees,4\nlevy,1\nZoning Fees,2\n")
    found = ringtrue("golden", "bootstrap", "corpus.jsonl", "--from", "queries", "--queries", "asked.csv", "--out", "c.json")
    assert found.code == 0, found.err
    golden = load("c.json")
    assert [(query.text, dict(query.metadata)) for query in golden.queries] == [("zoning fees", {"count": 4}), ("levy", {})]
    assert (golden.judgments, len(golden.documents)) == ((), 3)
    assert "ringtrue search --queries c.json --run found.run, then ringtrue review add c.json --run found.run" in found.err
    for command in (
        ("ingest", "corpus.jsonl", "--into", "index", "--retriever", "bm25"),
        ("search", "--queries", "c.json", "--run", "found.run", "--in", "index", "--retriever", "bm25"),
        ("review", "add", "c.json", "--run", "found.run", "--store", "s.sqlite"),
    ):
        done = ringtrue(*command)
        assert done.code == 0, (command, done.err)
    assert ringtrue("review", "list", "--store", "s.sqlite", "--json").json["backlog"]["total"] >= 2


def test_columns_of_a_list_of_queries_may_have_other_names(ringtrue) -> None:
    Path("asked.csv").write_text("term,hits\nzoning fees,4\nlevy,1\n")
    listed = ("golden", "bootstrap", "corpus.jsonl", "--from", "queries", "--queries", "asked.csv", "--out", "c.json")
    unnamed = ringtrue(*listed)
    assert (unnamed.code, "name it with --columns query=NAME" in unnamed.err) == (2, True)
    found = ringtrue(*listed, "--columns", "query=term,count=hits")
    assert found.code == 0, found.err
    assert [(query.text, dict(query.metadata)) for query in load("c.json").queries] == [
        ("zoning fees", {"count": 4}),
        ("levy", {}),
    ]


def test_a_list_of_queries_is_named_with_its_method(ringtrue) -> None:
    missing = ringtrue("golden", "bootstrap", "corpus.jsonl", "--from", "queries", "--out", "c.json")
    assert (missing.code, "add --queries FILE" in missing.err) == (2, True)
    stray = ringtrue("golden", "bootstrap", "corpus.jsonl", "--queries", "asked.csv", "--out", "c.json")
    assert (stray.code, "--queries belongs to --from queries" in stray.err) == (2, True)


def test_convert_reads_a_table_with_other_columns(ringtrue) -> None:
    Path("stars.csv").write_text("question,sku,stars\nZoning?,2,3\n")
    done = ringtrue("golden", "convert", "stars.csv", "gold.json", "--columns", "query=question, doc_id=sku,grade=stars")
    assert done.code == 0, done.err
    assert load("gold.json").judgments == (Judgment("Zoning?", "2", 3),)
    wrong = ringtrue("golden", "convert", "stars.csv", "more.json", "--columns", "question")
    assert (wrong.code, "write it like --columns query=question,doc_id=sku" in wrong.err) == (2, True)
