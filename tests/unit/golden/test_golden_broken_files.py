"""A record that cannot be understood is an error that names file, line or field, the value and the cure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import InputError, MissingInput
from ringtrue.golden import load, validate_file

Put = Callable[[str, str], Path]


def dataset(**changes: Any) -> str:
    """Return a golden-dataset with one thing changed."""
    record: dict[str, Any] = {
        "id": "x",
        "version": "1.0.0",
        "entities": [{"entity_id": "e1", "title": "T", "content": "C"}],
        "queries": [
            {"query_id": "q1", "query_text": "ask", "expected_results": {"relevance_labels": {"e1": 3}}},
        ],
    }
    return json.dumps(record | changes, indent=1)


def query(**changes: Any) -> str:
    """Return a golden-dataset whose only query is changed."""
    record = {"query_id": "q1", "query_text": "ask", "expected_results": {"relevance_labels": {"e1": 3}}} | changes
    return dataset(queries=[{key: value for key, value in record.items() if value is not ...}])


def entities(*changes: dict[str, Any]) -> str:
    """Return a golden-dataset with these entities."""
    return dataset(entities=[{"entity_id": "e1", "title": "T", "content": "C"} | change for change in changes])


YAML = "queries:\n  - query_id: c1\n    query_text: ask\n    relevant_docs:\n      - {doc_id: d1, grade: 3}\n"
GOLD = '{"id": "g1", "query": "ask", "relevant_ids": ["d1"], "source": "chair"}\n'
AGENT = '{"queryId": "t1", "query": "ask", "judgments": [{"memoryId": 1, "relevance": 3}]}\n'

BROKEN: dict[str, tuple[str, str, list[str]]] = {
    "missing field": ("a.json", query(query_text=...), ["queries[0]", "'query_text' is missing", "add it"]),
    "field spelled nearly right": ("a.json", query(query_text=..., querytext="ask"), ["'querytext'", "'query_text'"]),
    "wrong type of text": ("a.json", query(query_text=7), ["queries[0].query_text", "7", "text"]),
    "wrong type of list": ("a.json", dataset(queries={"q": 1}, entities=[]), ["'queries'", "write a list"]),
    "query is not an object": ("a.json", dataset(queries=["q1"]), ["queries[0]", "'q1'", "named fields"]),
    "grade in words": (
        "a.json",
        query(expected_results={"relevance_labels": {"e1": "high"}}),
        ["relevance_labels.e1", "'high'", "0, 1, 2 or 3"],
    ),
    "grade between grades": (
        "a.json",
        query(expected_results={"relevance_labels": {"e1": 2.5}}),
        ["2.5", "whole number"],
    ),
    "grade as truth value": (
        "a.json",
        query(expected_results={"relevance_labels": {"e1": True}}),
        ["True", "whole number"],
    ),
    "unknown result field": (
        "a.json",
        query(expected_results={"relevant_entitys": ["e1"]}),
        ["'relevant_entitys'", "did you mean 'relevant_entities'?"],
    ),
    "duplicate query id": (
        "a.json",
        dataset(queries=2 * [{"query_id": "q1", "query_text": "ask", "expected_results": {}}]),
        ["queries[1]", "'q1' is given twice", "queries[0]", "own id"],
    ),
    "duplicate entity id": ("a.json", entities({}, {}), ["entities[1]", "'e1' is given twice"]),
    "two labels in one object": (
        "a.json",
        '{"entities": [], "queries": [{"query_id": "q", "query_text": "t", "expected_results": '
        '{"relevance_labels": {"e1": 3, "e1": 0}}}]}',
        ["'e1' is given twice", "keep one"],
    ),
    "blank id": ("a.json", entities({"entity_id": " "}), ["entities[0].entity_id", "' '", "non-blank"]),
    "unknown profile": ("a.json", dataset(profile="generl"), ["'profile'", "'generl'", "'general'"]),
    "header spelled nearly right": (
        "a.json",
        dataset(relevence_threshold=2),
        ["'relevence_threshold'", "'relevance_threshold'"],
    ),
    "scale that falls": ("a.json", dataset(scale=[3, 0]), ["'scale'", "[3, 0]", "lowest grade first"]),
    "version as number": ("a.json", dataset(version=1.2), ["'version'", "1.2", "text in quotes"]),
    "corpus that is not there": (
        "a.json",
        dataset(corpus="docs.jsonl"),
        ["'corpus'", "docs.jsonl", "correct the path"],
    ),
    "details of an unjudged document": (
        "a.json",
        query(expected_results={"judgment_details": {"e9": {"source": "chair"}}}),
        ["judgment_details", "'e9' is not judged"],
    ),
    "broken JSON": ("a.json", '{"entities": [}', [":1", "not valid JSON", "fix"]),
    "empty file": ("a.json", "  \n", ["empty", "at least one record"]),
    "not recognisable": ("a.json", '{"colour": "blue"}', ["colour", "not recognised", "golden-dataset", "beir"]),
    "text file": ("a.txt", "hello there\n", ["hello there", "not recognised", "csv"]),
    "bad YAML": ("a.yaml", "queries: [\n  - {query_id: 1\n", ["not valid YAML", "fix"]),
    "YAML alias": ("a.yaml", "a: &x 1\nqueries: *x\n", [":2", "'*x'", "write the value out"]),
    "YAML key twice": ("a.yaml", YAML + "queries: []\n", [":6", "'queries' is given twice"]),
    "YAML grade in words": (
        "a.yaml",
        YAML.replace("grade: 3", "grade: good"),
        [":5", "grade", "'good'", "0, 1, 2 or 3"],
    ),
    "YAML wrong key": ("a.yaml", YAML.replace("grade:", "grde:"), [":5", "'grde'", "'grade'"]),
    "YAML judgment is not an object": (
        "a.yaml",
        YAML.replace("{doc_id: d1, grade: 3}", "[d1]"),
        ["relevant_docs[0]", "['d1']"],
    ),
    "YAML version as number": ("a.yaml", "version: 1.2\n" + YAML, ["'version'", "1.2", "quotes"]),
    "YAML infinite number": ("a.yaml", "limit: .inf\n" + YAML, ["'limit'", "inf", "finite"]),
    "JSONL broken line": ("a.jsonl", GOLD + '{"id": "g2", \n', [":2", "not valid JSON"]),
    "JSONL line is a list": ("a.jsonl", GOLD + "[1]\n", [":2", "[1]", "object"]),
    "JSONL without ids": (
        "a.jsonl",
        GOLD + '{"id": "g2", "query": "b", "source": "chair"}',
        [":2", "'relevant_ids'", "add"],
    ),
    "JSONL ids misspelt": ("a.jsonl", GOLD.replace("relevant_ids", "relevent_ids"), [":1", "rename 'relevent_ids'"]),
    "JSONL both id lists": ("a.jsonl", GOLD.replace("}", ', "relevant_case_law_ids": []}'), [":1", "both", "keep one"]),
    "JSONL unknown source": ("a.jsonl", GOLD.replace('"chair"', '"chiar"'), [":1", "'source'", "'chiar'", "'chair'"]),
    "JSONL id of wrong type": ("a.jsonl", GOLD.replace('["d1"]', '["d1", null]'), [":1", "relevant_ids[1]", "None"]),
    "JSONL duplicate id": ("a.jsonl", GOLD + GOLD, [":2", "'g1' is given twice", ":1"]),
    "agent memory judged twice as 1 and '1'": (
        "a.jsonl",
        AGENT.replace("]", ', {"memoryId": "1", "relevance": 0}]'),
        [":1", "'1' twice, as 3 and as 0", "keep one"],
    ),
    "agent memory grade": (
        "a.jsonl",
        AGENT.replace("3", '"3"'),
        [":1", "judgments[0].relevance", "'3'", "whole number"],
    ),
    "agent memory key": ("a.jsonl", AGENT.replace("relevance", "relevanse"), [":1", "'relevanse'", "'relevance'"]),
    "memory bench without list": (
        "a.jsonl",
        '{"query_id": "m1", "query": "a", "expected_irrelevant": []}',
        [":1", "'expected_relevant' is missing", "add it"],
    ),
    "memory bench truth value": (
        "a.jsonl",
        '{"query_id": "m1", "query": "a", "expected_relevant": [], "negative": "yes"}',
        [":1", "'negative'", "'yes'", "true or false"],
    ),
    "dict grade": ("a.json", '{"q1": {"d1": 1.5}}', ["q1.d1", "1.5", "whole number"]),
    "dict of something else": ("a.json", '{"q1": {"d1": 1}, "q2": {"d1": {"x": 1}}}', ["q2.d1", "whole number"]),
    "ragas conversation": (
        "a.jsonl",
        '{"user_input": [{"content": "hi"}], "response": ""}',
        [":1", "user_input", "one row"],
    ),
    "ragas ids and passages": (
        "a.jsonl",
        '{"user_input": "a", "reference_contexts": ["x"], "reference_context_ids": ["1", "2"]}',
        [":1", "2 ids for 1 passages", "one id per passage"],
    ),
    "openinference label": (
        "a.jsonl",
        '{"attributes": {"input.value": "a", "retrieval.documents": [{"document.id": "d"}]}, "annotations": '
        '[{"name": "relevance", "document_position": 0, "label": "relevent"}]}',
        [":1", "'relevent'", "'relevant'"],
    ),
    "openinference without question": (
        "a.jsonl",
        '{"attributes": {"retrieval.documents": []}}',
        [":1", "input.value", "RETRIEVER"],
    ),
    "CSV without column": ("a.csv", "query_id,doc_id\nq1,d1\n", [":1", "'grade' is missing", "add it"]),
    "CSV column misspelt": ("a.csv", "query_id,doc_id,grad\nq1,d1,1\n", [":1", "'grad'", "'grade'"]),
    "CSV grade": ("a.csv", "query_id,doc_id,grade\nq1,d1,1\nq1,d2,best\n", [":3", "'grade'", "'best'", "whole number"]),
    "CSV cells": ("a.csv", "query_id,doc_id,grade\nq1,d1,1,x\n", [":2", "4 values", "for 3 columns", "quote"]),
    "CSV two labels": (
        "a.csv",
        "query_id,doc_id,grade\nq1,d1,1\nq1,d1,2\n",
        [":3", "'d1' twice, as 1 and as 2", "keep one"],
    ),
    "CSV text changes": (
        "a.csv",
        "query_id,query_text,doc_id,grade\nq1,a,d1,1\nq1,b,d2,2\n",
        [":3", "'query_text'", "'q1'", "on all its rows"],
    ),
    "qrels grade": ("a.qrels", "q1 0 d1 1\nq1 0 d2 x\n", [":2", "'x'", "0, 1, 2"]),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_record_names_file_place_value_and_cure(case: str, put: Put) -> None:
    name, content, told = BROKEN[case]
    path = put(name, content)
    with pytest.raises(InputError) as caught:
        load(path)
    message = str(caught.value)
    assert str(path) in message
    assert [part for part in told if part not in message] == [], message
    assert "\n" not in message
    assert message.count(";") >= 1 or "?" in message, "no cure in: " + message


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_a_report_not_an_exception(case: str, put: Put) -> None:
    name, content, told = BROKEN[case]
    report = validate_file(put(name, content))
    text = " ".join(f"{problem.place} {problem.message} {problem.cure}" for problem in report.errors)
    assert [part for part in told if part not in text] == []


def test_all_broken_records_of_a_file_are_reported_at_once(put: Put) -> None:
    lines = [
        GOLD,
        '{"id": "g2", "query": 7, "relevant_ids": []}\n',
        "{oops\n",
        '{"query": "no id", "relevant_ids": []}\n',
    ]
    report = validate_file(put("a.jsonl", "".join(lines)))
    unread = [problem for problem in report.errors if problem.rule == "readable"]
    assert [problem.place.split("a.jsonl:")[1].split(":")[0] for problem in unread] == ["2", "3", "4"]
    assert report.figures["queries"] == 1


def test_all_broken_judgments_of_a_yaml_file_are_reported_at_once(put: Put) -> None:
    path = put("a.yaml", YAML + "      - {doc_id: d2, grade: good}\n      - {grade: 1}\n      - {doc_id: d1, grade: 1}\n")
    unread = [problem for problem in validate_file(path).errors if problem.rule == "readable"]
    assert [problem.place.split(":")[-2] for problem in unread] == ["6", "7", "8"]


MANIFEST = '{"id": "m", "version": "1.0.0", "format": "memory-bench"}'
MEMORY = '{"id": "use-redis", "category": "decision", "title": "Redis", "content": {"decision": "Use Redis"}}'
ASK = '{"query_id": "m1", "query": "a", "expected_relevant": ["decision/use-redis.json"], "expected_irrelevant": []}'
FOLDERS: dict[str, tuple[dict[str, str], list[str]]] = {
    "unknown folder format": (
        {"golden.json": MANIFEST.replace("memory-bench", "memory-bank")},
        ["golden.json", "'memory-bank'", "'memory-bench'"],
    ),
    "no queries": ({"golden.json": MANIFEST}, ["golden.json", "queries.jsonl", "put the queries there"]),
    "corpus that is not there": (
        {"golden.json": MANIFEST[:-1] + ', "corpus": "mems"}'},
        ["golden.json", "'corpus'", "mems"],
    ),
    "unknown category": (
        {"queries.jsonl": ASK, "memories/decision/use-redis.json": MEMORY.replace('"decision",', '"decisions",')},
        ["use-redis.json", "'category'", "'decisions'", "'decision'"],
    ),
    "memory id is not its file": (
        {"queries.jsonl": ASK, "memories/decision/redis.json": MEMORY},
        ["redis.json", "'id'", "'use-redis'", "write 'redis'"],
    ),
    "content field misspelt": (
        {"queries.jsonl": ASK, "memories/decision/use-redis.json": MEMORY.replace('{"decision"', '{"decison"')},
        ["use-redis.json", "'content'", "'decison'", "'decision'"],
    ),
    "path names another folder": (
        {"queries.jsonl": ASK.replace("decision/", "runbook/"), "memories/decision/use-redis.json": MEMORY},
        ["queries.jsonl:1", "expected_relevant[0]", "runbook/use-redis.json", "decision/use-redis.json"],
    ),
    "path names another folder than the real one": (
        {"queries.jsonl": ASK.replace("decision/", "auth/"), "memories/decisions/use-redis.json": MEMORY},
        ["queries.jsonl:1", "auth/use-redis.json", "write 'decisions/use-redis.json'"],
    ),
    "path nearly right": (
        {"queries.jsonl": ASK.replace("use-redis", "use-rediss"), "memories/decision/use-redis.json": MEMORY},
        ["queries.jsonl:1", "use-rediss", "did you mean 'use-redis'?"],
    ),
    "BEIR document without id": (
        {
            "corpus.jsonl": '{"text": "x"}',
            "queries.jsonl": '{"_id": "1", "text": "a"}',
            "qrels/test.tsv": "query-id\tcorpus-id\tscore\n1\td\t1\n",
        },
        ["corpus.jsonl:1", "'_id' is missing"],
    ),
    "two qrels files": (
        {"topics.tsv": "1\ta\n", "qrels.a": "1 0 d 1\n", "qrels.b": "1 0 d 1\n"},
        ["several qrels files", "'qrels.a'", "keep one"],
    ),
    "topic without tab": ({"topics.tsv": "1 a\n", "qrels.txt": "1 0 d 1\n"}, ["topics.tsv:1", "'1 a'", "a tab"]),
    "topic without number": (
        {"topics.xml": "<top>\n<title>a</title>\n</top>\n", "qrels.txt": "1 0 d 1\n"},
        ["topics.xml:1", "no number", "<num>"],
    ),
    "nothing known": ({"notes.md": "hello"}, ["notes.md", "not recognised", "golden.json"]),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_broken_folder_names_file_place_value_and_cure(case: str, put: Put, tmp_path: Path) -> None:
    files, told = FOLDERS[case]
    for name, content in files.items():
        put(f"set/{name}", content)
    with pytest.raises(InputError) as caught:
        load(tmp_path / "set")
    message = str(caught.value)
    assert [part for part in told if part not in message] == [], message
    assert str(tmp_path / "set") in message


def test_document_in_the_file_of_another_corpus_is_an_error(put: Put, tmp_path: Path) -> None:
    manifest = {"format": "gold-jsonl", "corpus": {"law": "law.jsonl"}, "scope": "corpus"}
    put("set/golden.json", json.dumps(manifest))
    put("set/gold-set.jsonl", GOLD)
    put("set/law.jsonl", '{"_id": "d1", "text": "x", "metadata": {"corpus": "own"}}')
    with pytest.raises(InputError, match=r"law\.jsonl:1: field 'corpus': 'own' in the file of 'law'"):
        load(tmp_path / "set")


def test_missing_file_names_the_nearest(put: Put, tmp_path: Path) -> None:
    put("inn.json", dataset())
    with pytest.raises(MissingInput, match=r"did you mean 'inn\.json'"):
        load(tmp_path / "in.json")


def test_documents_that_differ_from_the_declared_hash_are_an_error(put: Put) -> None:
    path = put("a.json", dataset(corpus_hash="0" * 64))
    with pytest.raises(InputError, match="declares corpus_hash '0000"):
        load(path)
    assert "corpus-hash" in {problem.rule for problem in validate_file(path).errors}
