"""Every rule catches what it is for, all problems come at once, and a sound set has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import ValidationFailed
from ringtrue.golden import PROFILES, ValidationReport, validate, validate_file
from ringtrue.golden.rules import RULES, name_of
from ringtrue.records import Document, GoldenSet, Judgment, Query

Sound = Callable[..., GoldenSet]


def found(golden: GoldenSet, rule: str, severity: str = "error", **options: Any) -> list[str]:
    """Return place and message of the problems of one rule."""
    problems = validate(golden, **options).problems
    assert all(problem.cure for problem in problems)
    return [f"{p.place}: {p.message}" for p in problems if p.rule == rule and p.severity == severity]


def ask(golden: GoldenSet, *queries: Query) -> GoldenSet:
    return replace(golden, queries=(*golden.queries, *queries))


def judge(golden: GoldenSet, *judgments: Judgment) -> GoldenSet:
    return replace(golden, judgments=(*golden.judgments, *judgments))


@pytest.mark.parametrize("profile", PROFILES)
def test_sound_set_has_no_problem_in_any_profile(sound: Sound, profile: str) -> None:
    report = validate(sound(profile=profile))
    assert report.problems == ()
    assert report.ok
    assert report.profile == profile
    report.require()


def test_all_problems_are_listed_at_once(sound: Sound) -> None:
    broken = judge(ask(sound(version="one"), Query("q0", ""), Query("qx", "nothing for me here")), Judgment("q1", "gone", 9))
    rules = {problem.rule for problem in validate(broken).problems}
    assert rules == {
        "semantic-version",
        "required-fields",
        "unique-ids",
        "has-relevant",
        "grades-in-scale",
        "judged-exist",
    }
    with pytest.raises(ValidationFailed, match=r"and \d more errors"):
        validate(broken).require()


def test_report_names_the_rules_of_the_profile(sound: Sound) -> None:
    general, memory = validate(sound()), validate(sound(profile="memory"))
    assert "minimum-documents" in general.rules
    assert "minimum-documents" not in memory.rules
    assert "visible-memories" in memory.rules
    assert {name_of(rule) for rule in RULES} == {
        name for profile in PROFILES for name in validate(sound(profile=profile)).rules
    }


def test_unknown_profile_is_an_error_and_gets_every_rule(sound: Sound) -> None:
    report = validate(sound(profile="generl"))
    assert [(p.rule, p.cure) for p in report.errors] == [("known-profile", "write 'general'")]
    assert "covered-kinds" in report.rules


def test_required_fields(sound: Sound) -> None:
    assert found(ask(sound(), Query("q99", " ")), "required-fields") == ["q99: the query has no text"]
    assert found(sound(id=" "), "required-fields") == [": the set has no id"]
    empty = replace(sound(), documents=(*sound().documents, Document("blank", "", "")))
    assert found(empty, "required-fields", "warning") == ["blank: the document has neither title nor text"]
    assert found(replace(sound(), queries=()), "required-fields") == [": the set has no query"]


def test_unique_ids(sound: Sound) -> None:
    golden = sound()
    assert found(ask(golden, Query("q3", "something else entirely")), "unique-ids") == ["q3: the query id is given twice"]
    twice = replace(golden, documents=(*golden.documents, golden.documents[4]))
    assert found(twice, "unique-ids") == ["d4: the document id is given twice"]


def test_two_labels_for_one_pair_are_an_error(sound: Sound) -> None:
    assert found(judge(sound(), Judgment("q0", "d0", 1)), "unique-ids") == ["q0: document 'd0' is judged 2 times, as 1 and 3"]


@pytest.mark.parametrize("grade", [-1, 4])
def test_grade_outside_the_scale_is_an_error(sound: Sound, grade: int) -> None:
    assert found(judge(sound(), Judgment("q0", "d40", grade)), "grades-in-scale") == [
        f"q0: grade {grade} of document 'd40' is outside 0 to 3"
    ]
    assert found(judge(sound(scale=(-1, 4)), Judgment("q0", "d40", grade)), "grades-in-scale") == []


@pytest.mark.parametrize("threshold", [0, 4])
def test_threshold_must_divide_the_scale(sound: Sound, threshold: int) -> None:
    assert len(found(sound(relevance_threshold=threshold), "grades-in-scale")) == 1


def test_query_without_relevant_document_is_an_error_unless_negative(sound: Sound) -> None:
    lonely = Query("qx", "weather on the moon")
    assert found(ask(sound(), lonely), "has-relevant") == ["qx: no document is relevant to the query"]
    assert found(ask(sound(), replace(lonely, negative=True)), "has-relevant") == []


def test_only_grades_below_the_threshold_is_a_warning(sound: Sound) -> None:
    weak = judge(ask(sound(), Query("qx", "weather on the moon")), Judgment("qx", "d1", 1))
    assert found(weak, "has-relevant") == []
    assert "best grade is 1, below the threshold 2" in found(weak, "has-relevant", "warning")[0]


def test_negative_query_with_a_relevant_document_is_an_error(sound: Sound) -> None:
    wrong = judge(ask(sound(), Query("qx", "weather on the moon", negative=True)), Judgment("qx", "d1", 3))
    assert found(wrong, "has-relevant") == ["qx: the query is negative, but has a document of grade 3"]


def test_judged_document_missing_from_corpus_is_an_error(sound: Sound) -> None:
    report = validate(judge(sound(), Judgment("q0", "dd9", 1)))
    (problem,) = report.errors
    assert (problem.rule, problem.place) == ("judged-exist", "q0")
    assert "'dd9' is not in the corpus" in problem.message
    assert "did you mean 'd9'?" in problem.cure


def test_judgment_of_an_unknown_query_is_an_error(sound: Sound) -> None:
    assert found(judge(sound(), Judgment("q999", "d1", 1)), "judged-exist") == [
        "q999: 1 judgments are for a query that is not in the set"
    ]


def test_set_without_documents_says_that_ids_were_not_checked(sound: Sound) -> None:
    assert len(found(replace(sound(), documents=()), "judged-exist", "warning")) == 1
    assert found(replace(sound(), documents=(), corpus_hash="abc"), "judged-exist", "warning") == []


def test_top_1_chunk_belongs_to_a_document(sound: Sound) -> None:
    golden = sound()
    chunked = replace(golden, queries=(replace(golden.queries[0], metadata={"top_1_chunk": "e9:chunk:0"}), *golden.queries[1:]))
    assert found(chunked, "consistent-lists") == ["q0: top_1_chunk 'e9:chunk:0' belongs to no document"]


def test_identical_query_is_an_error_and_near_duplicate_a_warning(sound: Sound) -> None:
    base = "one two three four five six seven eight nine ten"
    golden = judge(
        ask(sound(), Query("a", base), Query("b", base.upper() + "!"), Query("c", base + " eleven")),
        *(Judgment(name, "d1", 3) for name in "abc"),
    )
    assert found(golden, "distinct-queries") == ["b: the query repeats 'a'"]
    assert [line[:2] for line in found(golden, "distinct-queries", "warning")] == ["c:", "c:"]


def test_same_words_in_another_scope_or_conversation_are_another_query(sound: Sound) -> None:
    golden = sound()
    queries = tuple(replace(query, metadata={**query.metadata, "tenant": "a"}) for query in golden.queries)
    other = replace(queries[0], query_id="q0b", metadata={"tenant": "b"})
    assert found(replace(golden, queries=(*queries, other), scope="tenant"), "distinct-queries") == []
    follow = [
        Query(name, "and then?", {"transcript_context": [turn]}) for name, turn in (("x", "pool hours"), ("y", "late fee"))
    ]
    assert found(ask(golden, *follow), "distinct-queries") == []


def test_minimum_sizes_and_their_options(golden: GoldenSet) -> None:
    assert found(golden, "minimum-documents") == [": the set has 3 documents, fewer than 50"]
    assert found(golden, "minimum-queries") == [": the set has 3 queries, fewer than 20"]
    assert validate(golden, minimum_documents=3, minimum_queries=3).problems == ()


def test_memory_profile_has_no_minimum_of_documents(golden: GoldenSet) -> None:
    assert found(replace(golden, profile="memory"), "minimum-documents") == []


def test_lengths_are_covered_in_the_general_profile(sound: Sound) -> None:
    golden = sound()
    middling = replace(golden, documents=tuple(replace(doc, text="word " * 200) for doc in golden.documents))
    assert found(middling, "covered-lengths", "warning") == [
        ": no document is shorter than 150 words",
        ": no document is longer than 3,000 words",
    ]
    assert found(replace(middling, profile="test-set"), "covered-lengths", "warning") == []
    assert validate(golden).figures["words_histogram"] == {
        "0-49": 0, "50-99": 1, "100-149": 0, "150-499": 48, "500-999": 0, "1000-2999": 0, "3000-5000": 1, "5001+": 0,
    }  # fmt: skip


def test_query_kinds_and_document_types_are_covered_in_the_general_profile(sound: Sound) -> None:
    golden = sound()
    plain = replace(golden, queries=tuple(replace(query, metadata={"query_type": "factual"}) for query in golden.queries))
    assert len(found(plain, "covered-kinds", "warning")) == 3
    assert validate(plain).figures["query_kinds_missing"] == ["comparative", "troubleshooting", "sentiment"]
    alike = replace(golden, documents=tuple(replace(doc, metadata={"format": "JSON"}) for doc in golden.documents))
    assert found(alike, "covered-kinds", "warning") == [": all documents have the format 'JSON'"]


def test_trap_18_copied_query_is_flagged(sound: Sound) -> None:
    golden = sound()
    copied = " ".join(golden.documents[0].text.split()[3:9])
    lines = found(judge(ask(golden, Query("qc", copied)), Judgment("qc", "d0", 3)), "not-copied", "warning")
    assert len(lines) == 1
    assert lines[0].startswith("qc: 100% of the query stands in its document 'd0'")


def test_trap_18_a_set_with_a_tenth_of_its_queries_copied_fails(sound: Sound) -> None:
    golden = sound()
    for number in range(len(golden.queries) // 5):
        copied = " ".join(golden.documents[number].text.split()[3:9])
        golden = judge(ask(golden, Query(f"qc{number}", copied)), Judgment(f"qc{number}", f"d{number}", 3))
    assert found(golden, "not-copied")
    assert not validate(golden).ok


def one_relevant(golden: GoldenSet) -> GoldenSet:
    return replace(golden, judgments=tuple(judgment for judgment in golden.judgments if judgment.grade in (3, 0)))


def test_trap_41_unreachable_precision_is_a_warning_with_the_reachable_value(sound: Sound) -> None:
    report = validate(one_relevant(sound()))
    assert report.figures["p5_reachable"] == pytest.approx(0.2)
    (problem,) = report.warnings
    assert problem.rule == "reachable-precision"
    assert "P@5 = 0.20" in problem.message


def test_trap_41_known_item_sets_have_one_answer_by_design(sound: Sound) -> None:
    report = validate(one_relevant(sound(profile="known-item")))
    assert report.problems == ()
    assert report.figures["p5_reachable"] == pytest.approx(0.2)


def test_interchangeable_documents_are_one_relevant_item(sound: Sound) -> None:
    golden = sound(equivalence_classes=(("d0", "d1", "d2", "d3"),))
    assert validate(sound()).figures["p5_reachable"] == pytest.approx(0.8)
    assert validate(golden).figures["relevant_per_query"] < 4


def test_classes_must_name_known_documents_once(sound: Sound) -> None:
    lines = found(sound(equivalence_classes=(("d0", "d1"), ("d1", "zz"))), "sound-classes")
    assert lines == [
        "d1: the document is in two equivalence classes, or twice in one",
        "zz: an equivalence class names a document that is not in the corpus",
    ]


def test_scope_is_named_by_each_query_and_holds_its_documents(sound: Sound) -> None:
    lines = found(sound(scope="tenant"), "known-scope")
    assert len(lines) == 20
    golden = sound(scope="tenant")
    queries = tuple(replace(query, metadata={**query.metadata, "tenant": "a"}) for query in golden.queries)
    documents = tuple(
        replace(doc, metadata={**doc.metadata, "tenant": "b" if doc.doc_id == "d0" else "a"}) for doc in golden.documents
    )
    assert found(replace(golden, queries=queries, documents=documents), "known-scope") == [
        "q0: relevant document 'd0' lies in tenant 'b', not in 'a'"
    ]


def test_leakage_between_declared_splits_is_an_error(sound: Sound) -> None:
    text = "one two three four five six seven eight nine ten"
    pair = [Query("t", text, {"split": "tuning"}), Query("h", text + " eleven", {"split": "held_out"})]
    golden = judge(ask(sound(), *pair), Judgment("t", "d1", 3), Judgment("h", "d1", 3))
    assert found(golden, "no-leakage") == ["h: 't' (tuning) asks the same as this query (held_out)"]


def test_retired_memory_is_never_the_right_answer(sound: Sound) -> None:
    golden = sound(profile="memory")
    documents = (replace(golden.documents[0], metadata={"record_status": "retired"}), *golden.documents[1:])
    assert found(replace(golden, documents=documents), "visible-memories") == [
        "q0: relevant memory 'd0' is retired, so it is never shown"
    ]


def test_chain_names_known_memories(sound: Sound) -> None:
    golden = sound(profile="memory")
    queries = (replace(golden.queries[0], metadata={"chain": ["d0", "dx"]}), *golden.queries[1:])
    assert found(replace(golden, queries=queries), "visible-memories") == ["q0: the chain names 'dx', which is not a memory"]


def test_trap_8_figures_of_nothing_are_unknown_not_zero() -> None:
    report: ValidationReport = validate(GoldenSet("x", "1.0.0", (), ()))
    for name in ("relevant_per_query", "p5_reachable", "words_median", "overlap_mean"):
        assert report.figures[name] is None


def test_problem_reads_as_one_line(golden: GoldenSet) -> None:
    problem = validate(golden).errors[0]
    assert str(problem) == (
        "error [minimum-queries] the set has 3 queries, fewer than 20; add 17 or lower the minimum (--minimum-queries)"
    )


@pytest.mark.parametrize("name", ["golden.csv", "golden.json"])
def test_grades_off_the_usual_scale_of_a_table_are_warned_about(tmp_path: Path, name: str) -> None:
    rows = {"golden.csv": "query_id,doc_id,grade\nq1,a,9\nq2,b,-1\n", "golden.json": '{"q1": {"a": 9}, "q2": {"b": -1}}'}
    (tmp_path / name).write_text(rows[name])
    said = [one.message for one in validate_file(tmp_path / name).warnings if one.rule == "grades-in-scale"]
    assert said == [
        "grades go up to 9; the scale is taken as 0 to 9",
        "grade -1 of document 'b' for query 'q2' is negative and counts as not judged",
    ]


def test_qrels_may_have_their_own_scale(tmp_path: Path) -> None:
    (tmp_path / "deep.qrels").write_text("q1 0 a 4\nq1 0 c 0\nq2 0 b -1\n")
    assert not [one for one in validate_file(tmp_path / "deep.qrels").problems if one.rule == "grades-in-scale"]
