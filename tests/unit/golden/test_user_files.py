"""Golden sets as people have them: lists where lines are usual, no grades, other column names, plain Python values."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ringtrue.errors import InputError
from ringtrue.golden import load, read_upload, save, validate_file, version_name
from ringtrue.records import GoldenSet, Judgment

Put = Callable[[str, str], Path]

AGENT_MEMORY = {
    "queryId": "q-017",
    "query": "why was the decision made to use JWT",
    "intent": "find_decision",
    "category": "causal-query",
    "sessionContext": {"sessionId": "s1", "workingMemoryIds": [3, 12], "turnNumber": 4},
    "judgments": [
        {"memoryId": 12, "relevance": 3, "sourceChannels": ["vector", "graph"], "annotator": "mk", "confidence": 0.9},
        {"memoryId": 40, "relevance": 0},
    ],
    "judgmentSource": "manual",
    "harvestedAt": None,
}
MEMORY_BENCH = {
    "query": "what did we decide about that?",
    "transcript_context": ["we were discussing session cookies"],
    "expected_relevant": ["jwt-over-session-cookies.json"],
    "expected_irrelevant": ["saml-not-supported.json"],
}
GOLD = {
    "id": "g001",
    "query": "levy on improvements",
    "practice_area": "betterment_levy",
    "corpus": "precedent_library",
    "relevant_case_law_ids": ["c-1", "c-2"],
    "source": "bootstrap",
    "note": "",
}
TEST_SET = {
    "query_id": "et01",
    "query_text": "metformin renal dosing",
    "query_type": "exact_term",
    "relevant_docs": [{"doc_id": "doc1", "grade": 3}, {"doc_id": "doc4", "grade": 0}],
}
SPREAD = (
    lambda row: json.dumps([row]),
    lambda row: json.dumps([row], indent=2),
    lambda row: json.dumps(row, indent=4) + "\n" + json.dumps({**row, **_another_id(row)}, indent=4),
)


def _another_id(row: dict[str, Any]) -> dict[str, Any]:
    return {name: "other" for name in ("queryId", "id", "query_id") if name in row}


@pytest.mark.parametrize("written", SPREAD, ids=["list on one line", "indented list", "indented objects"])
@pytest.mark.parametrize(
    ("row", "grades"),
    [
        (AGENT_MEMORY, {"12": 3, "40": 0}),
        (MEMORY_BENCH, {"jwt-over-session-cookies": 1, "saml-not-supported": 0}),
        (GOLD, {"c-1": 1, "c-2": 1}),
    ],
    ids=["agent-memory", "memory-bench", "gold-jsonl"],
)
@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_records_of_a_line_format_may_stand_in_a_list_or_over_several_lines(
    put: Put, row: dict[str, Any], grades: dict[str, int], written: Callable[[Any], str], ending: str
) -> None:
    golden = load(put(f"queries.{ending}", written(row)))
    first = golden.queries[0]
    assert first.text == row["query"]
    assert golden.qrels.to_dict()[first.query_id] == grades


def test_a_broken_record_over_several_lines_is_named_by_the_line_where_it_breaks(put: Put) -> None:
    text = json.dumps(GOLD, indent=1) + '\n{\n "id": "g002",\n "query": oops\n}\n'
    with pytest.raises(InputError, match=r"queries\.jsonl:15: not valid JSON"):
        load(put("queries.jsonl", text))


def test_a_list_with_something_else_than_objects_names_the_item(put: Put) -> None:
    with pytest.raises(InputError, match=r"field '\[1\]': the item holds a number, not an object: 7"):
        load(put("queries.json", json.dumps([GOLD, 7])))


@pytest.mark.parametrize("value", [{"queries": [TEST_SET]}, [TEST_SET]], ids=["object", "list"])
def test_the_json_test_set_that_rest_takes_is_read_from_a_file_alike(put: Put, value: Any) -> None:
    text = json.dumps(value)
    from_file = load(put("t.json", text))
    assert from_file == read_upload(text.encode(), kind="json", name="t.json")
    assert from_file.qrels.to_dict() == {"et01": {"doc1": 3, "doc4": 0}}
    assert from_file.profile == "test-set"


def test_a_test_set_is_written_to_json_and_read_back_the_same(golden: GoldenSet, tmp_path: Path) -> None:
    assert save(golden, tmp_path / "t.json", format="test-set") == ()
    assert load(tmp_path / "t.json").judgments == golden.judgments


UNGRADED = "the file gives no grades: every document that it lists counts as relevant, grade 1"


@pytest.mark.parametrize("suffix", ["jsonl", "json"])
def test_a_test_set_may_be_one_query_a_line(put: Put, suffix: str) -> None:
    rows = [{"query": "late checkout", "relevant": ["d1"]}, {"query": "pool", "relevant": ["d2"]}]
    read = load(put(f"lines.{suffix}", "".join(json.dumps(row) + "\n" for row in rows)))
    assert read.queries == load(put("list.json", json.dumps(rows))).queries
    assert [judgment.doc_id for judgment in read.judgments] == ["d1", "d2"]
    with pytest.raises(InputError, match=rf"broken\.{suffix}:2: not valid JSON"):
        load(put(f"broken.{suffix}", json.dumps(rows[0]) + "\n{'query'}\n"))


@pytest.mark.parametrize("name", ["relevant_docs", "relevant"])
@pytest.mark.parametrize("listed", [[{"doc_id": "d1"}, {"doc_id": 7}], ["d1", 7]], ids=["objects", "ids"])
@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_documents_without_grades_count_as_relevant_and_validation_says_so_once(
    put: Put, name: str, listed: list[Any], ending: str
) -> None:
    rows = [{"query_id": f"q{n}", "query_text": f"ask {n}", name: listed} for n in (1, 2)]
    path = put(f"t.{ending}", json.dumps({"queries": rows}))  # JSON is YAML, too
    golden = load(path)
    assert golden.qrels.to_dict() == {"q1": {"d1": 1, "7": 1}, "q2": {"d1": 1, "7": 1}}
    assert golden.relevance_threshold == 1
    assert validate_file(path).notes == (UNGRADED,)


def test_documents_without_grades_get_the_threshold_that_the_set_declares(put: Put) -> None:
    path = put("t.json", json.dumps({"relevance_threshold": 2, "queries": [TEST_SET | {"relevant_docs": ["d1"]}]}))
    assert load(path).judgments == (Judgment("et01", "d1", 2),)


def test_a_set_in_which_only_some_documents_have_grades_is_refused(put: Put) -> None:
    path = put("t.json", json.dumps([TEST_SET | {"relevant_docs": [{"doc_id": "d1", "grade": 3}, "d2"]}]))
    with pytest.raises(InputError, match=r"relevant_docs\[1\]': the document has no grade, but the one at .*\[0\]' has"):
        load(path)


def test_a_grade_under_another_usual_name_is_a_grade_and_a_score_is_not(put: Put) -> None:
    row = {"query": "late checkout", "relevant": [{"docid": 1, "relevance": 2}]}
    golden = load(put("t.json", json.dumps([row])))
    assert (golden.queries[0].query_id, golden.qrels.to_dict()) == ("late checkout", {"late checkout": {"1": 2}})
    scored = load(put("s.json", json.dumps([{"query": "pool", "relevant": [{"doc_id": 1, "score": 0.4}]}])))
    assert (scored.judgments[0].grade, dict(scored.judgments[0].metadata)) == (1, {"score": 0.4})


@pytest.mark.parametrize("separator", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
def test_a_table_of_query_doc_id_relevance_is_a_golden_set(put: Put, separator: str) -> None:
    rows = ["query,doc_id,relevance", "late checkout,d1,3", "late checkout,d2,0", "pool,7,1"]
    golden = load(put("judged.csv", "\n".join(row.replace(",", separator) for row in rows)))
    assert [(query.query_id, query.text) for query in golden.queries] == [("late checkout",) * 2, ("pool", "pool")]
    assert golden.qrels.to_dict() == {"late checkout": {"d1": 3, "d2": 0}, "pool": {"7": 1}}


@pytest.mark.parametrize("name", ["listed.csv", "listed.parquet"])
def test_a_table_of_questions_and_documents_without_grades_lists_what_is_relevant(put: Put, tmp_path: Path, name: str) -> None:
    path = put("listed.csv", "query,doc_id,area\nlate checkout,d1,stay\nlate checkout,d2,stay\npool,7,fun\nrocket,,none\n")
    if name.endswith("parquet"):
        source = str(path)
        path = tmp_path / name
        duckdb.sql(f"COPY (SELECT * FROM read_csv('{source}', all_varchar = true)) TO '{path}' (FORMAT parquet)")
    assert load(path).qrels.to_dict() == {"late checkout": {"d1": 1, "d2": 1}, "pool": {"7": 1}, "rocket": {}}
    assert [query.text for query in load(path).queries] == ["late checkout", "pool", "rocket"]
    assert validate_file(path).notes[0] == UNGRADED


@pytest.mark.parametrize(
    "text",
    ["query,doc_id,stars\npool,d1,2\nspa,d2,0\n", "query,doc_id,grade\npool,d1,\n", "query_id,doc_id\nq1,d1\n"],
    ids=["other name", "empty", "no text"],
)
def test_a_table_that_may_lack_its_grades_by_mistake_is_refused(put: Put, text: str) -> None:
    with pytest.raises(InputError, match="grade"):
        load(put("slip.csv", text))


def test_other_columns_of_a_table_are_named_by_the_user(put: Put, tmp_path: Path) -> None:
    path = put("stars.csv", "frage,sku,sterne\nSauna?,12,3\n")
    with pytest.raises(InputError, match=r"'query_id' is missing; .* --columns query_id=NAME"):
        load(path)
    names = {"query": "frage", "doc_id": "sku", "grade": "sterne"}
    assert load(path, columns=names).qrels.to_dict() == {"Sauna?": {"12": 3}}
    assert save(load(path, columns=names), tmp_path / "gold.json") == ()
    with pytest.raises(InputError, match="no column 'sku2' to read as 'doc_id'; name one of 'frage', 'sku', 'sterne'"):
        load(path, columns=names | {"doc_id": "sku2"})
    with pytest.raises(InputError, match="a golden set has no column 'stars'"):
        load(path, columns={"stars": "sterne"})


def test_two_columns_that_may_both_be_the_grade_are_refused(put: Put) -> None:
    with pytest.raises(InputError, match=r"'relevance', 'label' may both be 'grade'; .*--columns grade=relevance"):
        load(put("two.csv", "query,doc_id,relevance,label\npool,d1,1,2\n"))


def test_a_score_column_is_a_grade_only_if_the_user_says_so(put: Put) -> None:
    path = put("scored.csv", "query,doc_id,score\npool,d1,2\n")
    with pytest.raises(InputError, match="the column 'grade' is missing"):
        load(path)
    assert load(path, columns={"grade": "score"}).qrels.to_dict() == {"pool": {"d1": 2}}


def test_validation_says_once_where_a_record_cannot_be_read(put: Put) -> None:
    path = put("t.json", json.dumps([TEST_SET | {"relevant_docs": [{"doc_id": "d1", "grade": "high"}]}]))
    (problem,) = [problem for problem in validate_file(path).problems if problem.rule == "readable"]
    assert problem.place == f"{path}: field 'queries[0].relevant_docs[0].grade'"
    assert str(problem).count("t.json") == 1


@pytest.mark.parametrize(
    ("version", "name"), [("1.0.0", "inn-v1.0.0"), ("v1", "inn-v1"), ("inn-v1.0.0", "inn-v1.0.0"), ("vivid", "inn-vvivid")]
)
def test_a_version_that_begins_with_v_is_named_with_one_v(version: str, name: str) -> None:
    assert version_name(GoldenSet("inn", version, (), ())) == name


def test_a_plain_list_of_dicts_is_a_golden_set() -> None:
    golden = load(
        [{"query_id": 1, "query": "late checkout", "relevant": {7: 1}}, {"query": "pool", "relevant": {8: 3, "9": 1}}]
    )
    assert golden.qrels.to_dict() == {"1": {"7": 1}, "pool": {"8": 3, "9": 1}}


@pytest.mark.parametrize("row", [AGENT_MEMORY, MEMORY_BENCH, GOLD, TEST_SET], ids=["agent", "bench", "gold", "test set"])
def test_rows_of_any_format_may_come_as_python_values(put: Put, row: dict[str, Any]) -> None:
    from_file = load(put("rows.json", json.dumps([row])))
    assert load([row]) == replace(from_file, id="golden")


@pytest.mark.parametrize(("name", "words"), [("query_id", "query"), ("qid", "question"), ("id", "query_text")])
@pytest.mark.parametrize("answers", ["relevant_ids", "expected_relevant"])
def test_usual_names_of_id_and_text_are_read_in_every_line_format(put: Put, name: str, words: str, answers: str) -> None:
    golden = load(put("mine.json", json.dumps([{name: "a", words: "late checkout", answers: ["d1"]}])))
    assert [(query.query_id, query.text, dict(query.metadata)) for query in golden.queries] == [("a", "late checkout", {})]
    assert [judgment.doc_id for judgment in golden.judgments] == ["d1"]


def test_a_dict_of_queries_in_words_is_a_golden_set_and_one_of_ids_is_refused() -> None:
    golden = load({"late checkout": {"d1": 3, 2: 0}, "pool": {"d2": 1}})
    assert [query.text for query in golden.queries] == ["late checkout", "pool"]
    assert golden.qrels.to_dict() == {"late checkout": {"d1": 3, "2": 0}, "pool": {"d2": 1}}
    with pytest.raises(InputError, match="its keys, such as 'q1', look like ids, so the texts of the queries are missing"):
        load({"q1": {"d1": 3}, "q2": {"d1": 3}})


def test_a_value_that_is_no_golden_set_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="the golden set: not recognised"):
        load([{"colour": "red"}])
    with pytest.raises(InputError, match="the golden set: it is a int; pass a path, a GoldenSet, a dict or a list of dicts"):
        load(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"judgmentSource": "manaul"}, "field 'judgmentSource': 'manaul' is not a judgmentSource; write 'manual'"),
        ({"judgmentSource": "crowd"}, "field 'judgmentSource': 'crowd' is not a judgmentSource"),
        ({"category": "causal-qery"}, "field 'category': 'causal-qery' is not a category; write 'causal-query'"),
        ({"category": "POLICY"}, "field 'category': 'POLICY' is not a category"),
        ({"intent": "find_decison"}, "field 'intent': 'find_decison' is not a known intent; did you mean 'find_decision'?"),
    ],
)
def test_a_misspelt_word_of_the_agent_memory_format_is_named(put: Put, change: dict[str, Any], says: str) -> None:
    path = put("queries.jsonl", json.dumps(AGENT_MEMORY | change))
    with pytest.raises(InputError) as problem:
        load(path)
    assert f"queries.jsonl:1: {says}" in str(problem.value)
    (found,) = [str(problem) for problem in validate_file(path).problems if problem.rule == "readable"]
    assert says in found


MEMORY_LINE = {"query": "how are sessions signed", "expected_relevant": ["a.json"]}


def judged_by(source: str) -> dict[str, Any]:
    return {
        "queries": [{"query_id": "q1", "query_text": "pool", "relevant_docs": [{"doc_id": "d1", "grade": 3, "source": source}]}]
    }


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.json", {"queries": [TEST_SET | {"category": "cold-strat"}]}, "'cold-strat' is not a known category"),
        ("t.json", judged_by("manul"), "'manul' is not a known source; did you mean 'manual'"),
        ("t.csv", "query_id,query_text,doc_id,grade,source\nq1,pool,d1,3,manul\n", "'manul' is not a known source"),
        ("q.jsonl", MEMORY_LINE | {"judgmentSource": "manul"}, "'manul' is not a known source; did you mean 'manual'"),
        ("q.jsonl", MEMORY_LINE | {"category": "cold-strat"}, "did you mean 'cold-start'"),
        ("q.jsonl", MEMORY_LINE | {"intent": "find_decison"}, "did you mean 'find_decision'"),
        ("q.jsonl", MEMORY_LINE | {"judgementSource": "manual"}, "'judgementSource' is not known; did you mean"),
        ("q.jsonl", MEMORY_LINE | {"catgory": "edge-case"}, "the field 'catgory' is not known; did you mean 'category'"),
        ("q.jsonl", MEMORY_LINE | {"Intent": "x"}, "the field 'Intent' is not known; did you mean 'intent'"),
    ],
)  # fmt: skip
def test_a_misspelt_word_of_other_formats_is_named_too(put: Put, name: str, content: Any, says: str) -> None:
    with pytest.raises(InputError) as problem:
        load(put(name, content if isinstance(content, str) else json.dumps(content)))
    assert says in str(problem.value)


def test_words_of_ones_own_and_those_of_the_agent_memory_are_free_in_a_test_set(put: Put) -> None:
    for source in ("bootstrapped", "validated", "crowd"):
        assert load(put("t.json", json.dumps(judged_by(source)))).judgments[0].source == source
    assert load(put("c.json", json.dumps({"queries": [TEST_SET | {"category": "SUPPORT"}]})))


def test_a_question_that_expects_no_memory_is_negative(put: Put, tmp_path: Path) -> None:
    lines = [
        MEMORY_LINE,
        {"query": "quantum", "expected_relevant": [], "expected_irrelevant": []},
        {"query": "later", "expected_relevant": [], "negative": False},
    ]
    golden = load(put("q.jsonl", "\n".join(map(json.dumps, lines))))
    assert [query.negative for query in golden.queries] == [False, True, False]
    save(golden, tmp_path / "again.jsonl", format="memory-bench")
    assert [query.negative for query in load(tmp_path / "again.jsonl").queries] == [False, True, False]


def test_a_judgment_repeated_with_the_same_grade_counts_once_and_is_noted(put: Put) -> None:
    rows = "query_id,query_text,doc_id,grade\nq1,pool,d1,3\nq1,pool,d1,3\n"
    found = validate_file(put("t.csv", rows))
    assert not [problem for problem in found.problems if problem.rule == "readable" and problem.severity == "error"]
    assert len(load(put("t.csv", rows)).judgments) == 1
    with pytest.raises(InputError, match="twice, as 2 and as 3; keep one of the two"):
        load(put("t.csv", rows.replace("d1,3\n", "d1,2\n", 1)))


def test_a_table_with_a_header_alone_is_refused(put: Put) -> None:
    with pytest.raises(InputError, match="holds no row below its header; write one for each judgment"):
        load(put("t.csv", "query_id,query_text,doc_id,grade\n"))


def test_an_intent_of_ones_own_is_free(put: Put) -> None:
    assert load(put("q.jsonl", json.dumps(AGENT_MEMORY | {"intent": "book_room"}))).queries[0].metadata["intent"] == "book_room"


def test_a_misspelt_source_above_the_queries_is_named(put: Put) -> None:
    with pytest.raises(InputError, match="field 'judgment_source': 'manaul' is not a known source; did you mean 'manual'"):
        load(put("t.json", json.dumps({"judgment_source": "manaul", "queries": [TEST_SET]})))


def test_a_set_with_words_of_its_own_is_kept_in_the_agent_memory_format(golden: GoldenSet, tmp_path: Path) -> None:
    judgments = tuple(replace(one, source="crowd") for one in golden.judgments)
    mine = replace(golden, judgments=judgments)
    lost = save(mine, tmp_path / "kept", format="agent-memory")
    assert not [loss for loss in lost if "category" in loss or "source" in loss], lost


@pytest.mark.parametrize("text", ['{"query": "late checkout"}\n{"query": "pool"}\n', '[{"query": "pool", "count": 3}]'])
def test_a_list_of_queries_without_judgments_is_told_what_to_do_with_it(put: Put, text: str) -> None:
    with pytest.raises(InputError, match=r"has queries but no judgments.*ringtrue golden bootstrap CORPUS --from queries"):
        load(put("q.json", text))


@pytest.mark.parametrize(
    ("name", "plain", "said", "confirmed"),
    [
        (
            "t.csv",
            "query,doc_id,relevance\nlate checkout,d1,3\n",
            "a column source with manual in each row",
            "query,doc_id,relevance,source\nlate checkout,d1,3,manual\n",
        ),
        (
            "t.yaml",
            json.dumps({"queries": [TEST_SET]}),
            "judgment_source: manual above the queries, or source: manual on each judgment",
            json.dumps({"judgment_source": "manual", "queries": [TEST_SET]}),
        ),
        (
            "t.jsonl",
            json.dumps({**GOLD, "source": None}),
            '"source": "manual" on each line',
            json.dumps({**GOLD, "source": "manual"}),
        ),
        (
            "t.jsonl",
            json.dumps({**AGENT_MEMORY, "judgmentSource": None}),
            '"judgmentSource": "manual" on each line, or "source": "manual" on each judgment',
            json.dumps(AGENT_MEMORY),
        ),
    ],
)
def test_the_hint_how_to_confirm_judgments_fits_the_format(
    put: Put, ringtrue: Callable[..., Any], name: str, plain: str, said: str, confirmed: str
) -> None:
    file = put(name, plain)
    assert f"if people made them, say so: {said}\n" in ringtrue("golden", "validate", file).out
    assert load(file).provisional
    file.write_text(confirmed)
    assert not load(file).provisional, "as the hint says"


def test_column_names_in_capitals_and_grades_of_data_frames_are_read(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_text("Query,Doc_ID,Relevance\nlate checkout,d1,2.0\nlate checkout,d2,0.0\n", encoding="utf-8")
    assert [(one.query_id, one.doc_id, one.grade) for one in load(path).judgments] == [
        ("late checkout", "d1", 2),
        ("late checkout", "d2", 0),
    ]
    path.write_text("query,doc_id,relevance\nlate checkout,d1,2.5\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"2\.5"):
        load(path)
