"""JSON, JSON lines and YAML: objects, lists, records, empty answers, numeric ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import InputError
from ringtrue.formats import Located, Place, parse_json, read_qrels, read_run, read_yaml
from ringtrue.measures import score


def made(path: Path, content: str) -> Path:
    path.write_bytes(content.encode())
    return path


def as_json(path: Path, value: Any) -> Path:
    return made(path, json.dumps(value))


RECORDS = [
    {"query_id": "q1", "doc_id": "a", "grade": 2, "note": "x"},
    {"qid": "q1", "docid": "b", "relevance": 0},
    {"query-id": "q2", "corpus-id": "a", "score": 1},
]


def test_json_object_of_objects(tmp_path: Path) -> None:
    path = as_json(tmp_path / "x.json", {"q1": {"a": 2, "b": 0}, "q2": {"a": 1}})
    assert read_qrels(path).to_dict() == {"q1": {"a": 2, "b": 0}, "q2": {"a": 1}}
    assert read_run(path).to_dict() == {"q1": {"a": 2.0, "b": 0.0}, "q2": {"a": 1.0}}


def test_records_in_json_json_lines_and_yaml(tmp_path: Path) -> None:
    expected = {"q1": {"a": 2, "b": 0}, "q2": {"a": 1}}
    assert read_qrels(as_json(tmp_path / "j.json", RECORDS)).to_dict() == expected
    lines = "\n\n".join(json.dumps(record) for record in RECORDS)
    for name, text in {"j.jsonl": lines, "k.ndjson": lines.replace("\n", "\r\n"), "l.jsonl": "\ufeff" + lines + "\n"}.items():
        assert read_qrels(made(tmp_path / name, text)).to_dict() == expected, name
    text = "- {query_id: q1, doc_id: a, grade: 2}\n- query_id: q1\n  doc_id: b\n  grade: 0\n- {qid: q2, docid: a, rel: 1}\n"
    assert read_qrels(made(tmp_path / "j.yml", text)).to_dict() == expected


def test_json_lists_keep_their_order(tmp_path: Path) -> None:
    run = read_run(as_json(tmp_path / "r.json", {"q1": ["b", "c", "a"], "q2": ["z"]}))
    assert run.ordered
    assert run.rankings() == {"q1": ["b", "c", "a"], "q2": ["z"]}


def test_empty_answer_is_an_answer_and_no_missing_query(tmp_path: Path) -> None:
    wanted: dict[str, list[str]] = {"q1": ["a"], "q2": []}
    lines = '{"query_id": "q1", "doc_id": "a", "score": 1}\n{"query_id": "q2"}\n'
    for path in (
        as_json(tmp_path / "objects.json", {"q1": {"a": 1.0}, "q2": {}}),
        as_json(tmp_path / "lists.json", {"q1": ["a"], "q2": []}),
        made(tmp_path / "lines.jsonl", lines),
        made(tmp_path / "objects.yaml", "q1: {a: 1.0}\nq2: {}\n"),
    ):
        run = read_run(path)
        assert run.rankings() == wanted, path
        scores = score(run, {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}}, ["RR"])
        assert scores.counted.missing == ("q3",), path


def test_only_empty_answers_are_a_run_too(tmp_path: Path) -> None:
    assert read_run(as_json(tmp_path / "r.json", {"q1": [], "q2": []})).rankings() == {"q1": [], "q2": []}


def test_query_without_judgments_is_kept(tmp_path: Path) -> None:
    assert read_qrels(as_json(tmp_path / "j.json", {"q1": {"a": 1}, "q2": {}})).to_dict() == {"q1": {"a": 1}, "q2": {}}
    path = made(tmp_path / "j.jsonl", '{"query_id": "q2"}\n{"query_id": "q1", "doc_id": "a", "grade": 1}\n')
    assert read_qrels(path).to_dict() == {"q1": {"a": 1}, "q2": {}}


def test_trap_11_numeric_ids_in_json_are_the_same_text_everywhere(tmp_path: Path) -> None:
    qrels = read_qrels(as_json(tmp_path / "j.json", [{"query_id": 7, "doc_id": 12, "grade": 1}]))
    run = read_run(as_json(tmp_path / "r.json", {"7": [12, 13]}))
    assert qrels.to_dict() == {"7": {"12": 1}}
    assert run.rankings() == {"7": ["12", "13"]}
    assert score(run, qrels, ["RR"])["RR"] == 1.0


def test_numbers_written_as_text(tmp_path: Path) -> None:
    assert read_run(as_json(tmp_path / "r.json", {"q": {"a": "2.5", "b": 3}})).to_dict() == {"q": {"b": 3.0, "a": 2.5}}
    assert read_qrels(as_json(tmp_path / "j.json", {"q": {"a": "2", "b": 1.0}})).to_dict() == {"q": {"a": 2, "b": 1}}


def test_escapes_and_whole_character_pairs_in_json(tmp_path: Path) -> None:
    path = made(tmp_path / "j.json", '{"q\\u00e9": {"\\ud83d\\ude42": 1, "tab\\tline\\nnul\\u0000": 0}}')
    assert read_qrels(path).to_dict() == {"qé": {"🙂": 1, "tab\tline\nnul\0": 0}}


def test_yaml_keys_are_the_text_as_written(tmp_path: Path) -> None:
    path = made(tmp_path / "j.yaml", "010: {yes: 1, 1_0: 2, 12:30: 0, 2024-01-31: 1, null: 3, 1e3: 0, '5': 1, \"é\": 1}\n")
    expected = {"yes": 1, "1_0": 2, "12:30": 0, "2024-01-31": 1, "null": 3, "1e3": 0, "5": 1, "é": 1}
    assert read_qrels(path).to_dict() == {"010": expected}


def test_yaml_scores_and_lists(tmp_path: Path) -> None:
    path = made(tmp_path / "r.yaml", "q1:\n  a: 1e3\n  b: 1.5e+3\n  c: -2\n  d: +4\n")
    assert read_run(path).to_dict() == {"q1": {"b": 1500.0, "a": 1000.0, "d": 4.0, "c": -2.0}}
    path = made(tmp_path / "l.yaml", "q1: [b, 7, a]\nq2:\n- '010'\n")
    assert read_run(path).rankings() == {"q1": ["b", "7", "a"], "q2": ["010"]}


def test_yaml_with_crlf_and_byte_order_mark(tmp_path: Path) -> None:
    path = made(tmp_path / "j.yaml", "\ufeffq1:\r\n  a: 1\r\n# end\r\n")
    assert read_qrels(path).to_dict() == {"q1": {"a": 1}}


def test_yaml_mappings_know_their_lines(tmp_path: Path) -> None:
    value = read_yaml(made(tmp_path / "x.yaml", "# head\n- a: 1\n\n- b: {c: 2}\n"))
    assert [type(item) for item in value] == [Located, Located]
    assert [item.line for item in value] == [2, 4]
    assert value[1]["b"].line == 4


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("- !!bool maybe\n", ":1: 'maybe' cannot be read as bool"),
        ("- 1\n- !!int x\n", ":2: 'x' cannot be read as int"),
        ("- !!timestamp x\n", ":1: 'x' cannot be read as timestamp"),
        ("- 2024-02-30T10:00:00Z\n", "cannot be read as timestamp"),
        ("- 0x1F\n", ":1: '0x1F' means 31 in YAML"),
        ("a:\n  b: 190:20:30\n", ":2: '190:20:30' means 685230 in YAML"),
        (f"- {'7' * 5000}\n", ":1: '7777"),
    ],
    ids=["bool", "int", "timestamp", "day", "hexadecimal", "sexagesimal", "endless"],
)
def test_yaml_that_is_not_what_it_looks_like(text: str, named: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_yaml(made(tmp_path / "x.yaml", text))
    assert named in str(caught.value)
    assert "quotes" in str(caught.value)


def test_json_constants_are_found_outside_texts() -> None:
    with pytest.raises(InputError, match=r"x:4: NaN is not a JSON number"):
        parse_json('{"NaN": "NaN",\n"a\\"": 1,\n"b":\nNaN}', Place("x"))
    with pytest.raises(InputError, match=r"x:9: Infinity is not a JSON number"):
        parse_json('{"a":\nInfinity}', Place("x", 9))
