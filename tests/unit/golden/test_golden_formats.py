"""What each format means in the one model, and what it says when it cannot hold something."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import InputError
from ringtrue.golden import FORMATS, format_named, load, save, validate
from ringtrue.golden.formats import detect, read
from ringtrue.golden.formats.fields import passage_id
from ringtrue.records import Document, GoldenSet, Judgment, Query

Put = Callable[[str, str], Path]


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def dataset(expected: dict[str, Any], **header: Any) -> str:
    query = {"query_id": "q1", "query_text": "ask", "category": "POLICY_QUERY", "expected_results": expected}
    entity = {
        "entity_id": "e1",
        "entity_type": "SIGNAL",
        "title": "T",
        "content": "C",
        "metadata": {"format": "JSON"},
        "tags": ["a"],
    }
    return json.dumps({"id": "x", "version": "1.0.0", "entities": [entity], "queries": [query]} | header)


def test_golden_dataset_fills_the_model(put: Put) -> None:
    expected = {"relevant_entities": ["e1"], "top_1_chunk": "e1:chunk:0", "relevance_labels": {"e1": 3, "e2": 0}}
    golden = load(put("a.json", dataset(expected, licence="Apache-2.0")))
    assert golden.documents == (Document("e1", "C", "T", {"entity_type": "SIGNAL", "format": "JSON"}, ("a",)),)
    assert golden.queries == (Query("q1", "ask", {"category": "POLICY_QUERY", "top_1_chunk": "e1:chunk:0"}),)
    assert golden.qrels.to_dict() == {"q1": {"e1": 3, "e2": 0}}
    assert golden.metadata == {"licence": "Apache-2.0"}


def test_listed_entity_without_label_has_grade_3(put: Put) -> None:
    golden = load(put("a.json", dataset({"relevant_entities": ["e1"], "relevance_labels": {"e2": 2}})))
    assert golden.qrels.to_dict() == {"q1": {"e1": 3, "e2": 2}}
    assert golden.relevance_threshold == 2


def test_listed_entity_with_low_label_keeps_it_and_is_a_validation_error(put: Put) -> None:
    golden = load(put("a.json", dataset({"relevant_entities": ["e1"], "relevance_labels": {"e1": 1, "e2": 3}})))
    assert golden.qrels.to_dict() == {"q1": {"e1": 1, "e2": 3}}
    found = {problem.severity: problem for problem in validate(golden).problems if problem.rule == "consistent-lists"}
    assert "'e1' is listed as relevant, but labelled 1, below 2" in found["error"].message
    assert "'e2' is labelled 3, but not listed" in found["warning"].message


@pytest.mark.parametrize(
    "expected",
    [
        {"relevant_entities": ["e1"], "relevance_labels": {"e2": 2}},
        {"relevant_entities": ["e1"], "relevance_labels": {"e1": 1, "e2": 3}},
        {"relevant_entities": ["e2", "e1"], "top_1_chunk": "e2:chunk:1", "relevance_labels": {"e2": 3, "e1": 2}},
    ],
)
def test_golden_dataset_comes_back_as_it_was_written_by_hand(put: Put, tmp_path: Path, expected: dict[str, Any]) -> None:
    source = put("a.json", dataset(expected, relevance_threshold=2))
    assert save(load(source), tmp_path / "b.json") == ()
    assert json.loads((tmp_path / "b.json").read_text())["queries"] == json.loads(source.read_text())["queries"]


def test_test_set_reads_ids_dates_and_bare_lists(put: Put) -> None:
    golden = load(
        put(
            "a.yaml",
            "- query_id: 7\n  query_text: ask\n  query_type: exact_term\n  asked: 2026-01-02\n  relevant_docs: []\n",
        )
    )
    assert golden.queries == (Query("7", "ask", {"query_type": "exact_term", "asked": "2026-01-02"}),)
    assert (golden.id, golden.profile) == ("a", "test-set")


def test_gold_jsonl_reads_both_spellings_and_who_vouches(put: Put) -> None:
    path = put(
        "a.jsonl",
        lines(
            {
                "id": "g1",
                "query": "a",
                "relevant_case_law_ids": ["d1", "d2"],
                "source": "chair",
                "practice_area": "tax",
                "note": "n",
            },
            {"id": "g2", "query": "b", "relevant_ids": [3], "corpus": "own"},
        ),
    )
    golden = load(path)
    assert golden.judgments[0] == Judgment("g1", "d1", 1, "chair")
    assert golden.judgments[2] == Judgment("g2", "3", 1)
    assert golden.queries[0].metadata == {"practice_area": "tax", "note": "n"}
    assert not golden.provisional


def test_gold_jsonl_folder_marks_documents_with_their_corpus(put: Put, tmp_path: Path) -> None:
    put(
        "s/golden.json",
        json.dumps(
            {
                "id": "s",
                "format": "gold-jsonl",
                "corpus": {"law": "l.jsonl"},
                "scope": "corpus",
                "relevance_threshold": 2,
            }
        ),
    )
    put("s/gold-set.jsonl", lines({"id": "g1", "query": "a", "relevant_ids": ["d1"], "corpus": "law"}))
    put("s/l.jsonl", lines({"_id": "d1", "text": "x"}))
    golden = load(tmp_path / "s")
    assert golden.documents[0].metadata == {"corpus": "law"}
    assert golden.judgments[0].grade == 2, "what is listed counts as relevant"


MEMORY = {
    "id": "use-redis",
    "category": "decision",
    "title": "Redis",
    "tags": ["cache"],
    "record_status": "active",
    "content": {"rationale": ["fast", "known"], "decision": "Use Redis"},
}


def memory_folder(put: Put) -> None:
    put("m/memories/decision/use-redis.json", json.dumps(MEMORY))
    other = MEMORY | {"id": "no-orm", "title": "No ORM", "content": {"decision": "Write SQL"}}
    put("m/memories/decision/no-orm.json", json.dumps(other))
    row = {
        "query_id": "m1",
        "query": "it?",
        "transcript_context": ["cache"],
        "expected_relevant": ["decision/use-redis.json"],
    }
    put("m/queries.jsonl", lines(row | {"expected_irrelevant": ["decision/no-orm.json"]}))


def test_memory_bench_reads_memories_by_category_and_paths_by_stem(put: Put, tmp_path: Path) -> None:
    memory_folder(put)
    golden = load(tmp_path / "m")
    redis = next(document for document in golden.documents if document.doc_id == "use-redis")
    assert (redis.title, redis.text, redis.tags) == ("Redis", "Use Redis\nfast\nknown", ("cache",))
    assert golden.profile == "memory"
    assert golden.judgments == (Judgment("m1", "use-redis", 1), Judgment("m1", "no-orm", 0, None, {"forbidden": True}))
    assert golden.queries[0].metadata == {"transcript_context": ["cache"]}


def test_memory_bench_writes_the_memory_files_back(put: Put, tmp_path: Path) -> None:
    memory_folder(put)
    assert save(load(tmp_path / "m"), tmp_path / "n", format="memory-bench") == ()
    assert json.loads((tmp_path / "n/memories/decision/use-redis.json").read_text()) == MEMORY


def test_memory_bench_reads_a_memory_folder_in_use_with_its_settings_and_caches(put: Put, tmp_path: Path) -> None:
    put("p/.claude/memory/decisions/use-redis.json", json.dumps(MEMORY))
    put("p/.claude/memory/auth/no-orm.json", json.dumps(MEMORY | {"id": "no-orm", "title": "No ORM"}))
    put("p/.claude/memory/memory-config.json", '{"retrieval": {"max_inject": 3}}')
    put("p/.claude/memory/.ringtrue/null.json", '{"key": "x"}')
    put("p/eval/golden.json", '{"format": "memory-bench", "corpus": "../.claude/memory"}')
    named = ["decisions/use-redis.json", "decision/use-redis.json", "auth/no-orm.json"]
    named.append(".claude/memory/decisions/use-redis.json")
    rows = [{"query_id": f"m{n}", "query": "it?", "expected_relevant": [name]} for n, name in enumerate(named)]
    put("p/eval/queries.jsonl", lines(*rows))
    golden = load(tmp_path / "p/eval")
    assert sorted(document.doc_id for document in golden.documents) == ["no-orm", "use-redis"]
    assert [judgment.doc_id for judgment in golden.judgments] == ["use-redis", "use-redis", "no-orm", "use-redis"]


def test_memory_bench_queries_without_ids_are_numbered(put: Put) -> None:
    path = put("a.jsonl", lines({"query": "a", "expected_relevant": ["x.json"]}, {"query": "b", "expected_relevant": []}))
    assert [query.query_id for query in load(path).queries] == ["q001", "q002"]


def test_trap_11_numbered_memories_have_text_ids_everywhere(put: Put, tmp_path: Path) -> None:
    put("m/memories.jsonl", lines({"memoryId": 12, "title": "T", "content": "C", "causal_links": {"leads_to": [13]}}))
    judgments = [{"memoryId": 12, "relevance": 3, "annotator": "project", "confidence": 0.9}]
    row = {"queryId": "t1", "query": "why", "intent": "understand", "judgments": judgments, "judgmentSource": "manual"}
    put(
        "m/queries.jsonl",
        lines(row | {"chain": [12, 13], "sessionContext": {"workingMemoryIds": [4]}, "harvestedAt": None}),
    )
    golden = load(tmp_path / "m")
    assert golden.documents[0].doc_id == "12"
    assert golden.documents[0].metadata["causal_links"] == {"leads_to": ["13"]}
    assert golden.queries[0].metadata["chain"] == ["12", "13"]
    assert golden.queries[0].metadata["sessionContext"] == {"workingMemoryIds": ["4"]}
    assert golden.judgments == (Judgment("t1", "12", 3, "manual", {"annotator": "project", "confidence": 0.9}),)
    assert save(load(tmp_path / "m"), tmp_path / "n", format="agent-memory") == ()
    back = json.loads((tmp_path / "n/queries.jsonl").read_text())
    assert (back["chain"], back["judgments"][0]["memoryId"], back["judgmentSource"]) == ([12, 13], 12, "manual")


TOPICS = """<top>
<num> Number: 301
<title> International crime
<desc> Description:
Who, and how?
<narr> Narrative:
Must name
the group.
</top>
"""


@pytest.mark.parametrize(
    ("name", "topics", "query"),
    [
        (
            "topics.301",
            TOPICS,
            Query("301", "International crime", {"description": "Who, and how?", "narrative": "Must name the group."}),
        ),
        (
            "topics.xml",
            '<topics><topic number="301"><query>a &amp; b</query><question>c</question></topic></topics>',
            Query("301", "a & b", {"question": "c"}),
        ),
        ("topics.tsv", "301\ta b\r\n", Query("301", "a b")),
    ],
)
def test_trec_topics_in_three_forms(put: Put, tmp_path: Path, name: str, topics: str, query: Query) -> None:
    put(f"t/{name}", topics)
    put("t/qrels.txt", "301 0 d1 2\n301 0 d2 0\n")
    golden = load(tmp_path / "t")
    assert golden.queries == (query,)
    assert golden.qrels.to_dict() == {"301": {"d1": 2, "d2": 0}}


@pytest.mark.parametrize("content", ["q1 0 d1 1\n", "query-id\tcorpus-id\tscore\nq1\td1\t1\n"])
def test_lone_qrels_file_has_queries_without_text(put: Put, content: str) -> None:
    golden = load(put("a.tsv" if "\t" in content else "a.txt", content))
    assert golden.queries == (Query("q1", ""),)
    assert any(problem.message == "the query has no text" for problem in validate(golden).errors)


def test_dict_of_dict_keeps_queries_without_judgments(put: Put) -> None:
    golden = load(put("a.json", '{"q1": {"d1": 2}, "q2": {}}'))
    assert golden.qrels.to_dict() == {"q1": {"d1": 2}, "q2": {}}


def test_queries_of_several_words_are_their_own_texts_in_a_dict_of_dicts(put: Put) -> None:
    golden = load(put("a.json", '{"late checkout": {"d1": 2}, "pool": {}}'))
    assert [query.text for query in golden.queries] == ["late checkout", "pool"]


def test_ragas_rows_of_both_generations(put: Put) -> None:
    new = {"user_input": "a", "retrieved_contexts": ["x", "y"], "reference_contexts": ["y"], "reference": "r"}
    old = {"question": "b", "contexts": ["x"], "answer": "z", "ground_truth": "g"}
    golden = load(put("a.json", json.dumps([new, old])))
    x, y = passage_id("x"), passage_id("y")
    assert {document.doc_id: document.text for document in golden.documents} == {x: "x", y: "y"}
    assert golden.judgments == (Judgment("r1", y, 1),)
    assert golden.queries[0].metadata == {"reference": "r", "retrieved": [x, y]}
    assert golden.queries[1].metadata == {"answer": "z", "ground_truth": "g", "retrieved": [x]}


def test_ragas_ids_are_used_where_given(put: Put) -> None:
    row = {"user_input": "a", "reference_contexts": ["x"], "reference_context_ids": [5], "retrieved_context_ids": ["7"]}
    golden = load(put("a.jsonl", lines(row)))
    assert golden.documents == (Document("5", "x"),)
    assert golden.queries[0].metadata["retrieved"] == ["7"]


SPANS: dict[str, dict[str, Any]] = {
    "nested": {
        "attributes": {
            "input": {"value": "a"},
            "retrieval": {"documents": [{"document": {"id": "d1", "content": "x"}}]},
        }
    },
    "dotted": {
        "attributes.input.value": "a",
        "attributes.retrieval.documents": [{"document.id": "d1", "document.content": "x"}],
    },
    "numbered": {
        "attributes": {
            "input.value": "a",
            "retrieval.documents.0.document.id": "d1",
            "retrieval.documents.0.document.content": "x",
        }
    },
}


@pytest.mark.parametrize("form", SPANS)
def test_openinference_spans_of_three_exporters(put: Put, form: str) -> None:
    note = {"name": "relevance", "document_position": 0, "label": "relevant", "annotator_kind": "HUMAN"}
    golden = load(put("a.jsonl", lines(SPANS[form] | {"context": {"span_id": "s-1"}, "annotations": [note]})))
    assert golden.queries == (Query("s-1", "a", {"retrieved": ["d1"]}),)
    assert golden.documents == (Document("d1", "x"),)
    assert golden.judgments == (Judgment("s-1", "d1", 1, "human"),)


def test_openinference_metadata_and_other_spans(put: Put) -> None:
    entry = {"document.id": "d1", "document.metadata": '{"page": 4, "title": "T", "relevance": 2}'}
    span = {"attributes": {"openinference.span.kind": "RETRIEVER", "input.value": "a", "retrieval.documents": [entry]}}
    other = {"attributes": {"openinference.span.kind": "LLM", "input.value": "a"}}
    golden = load(put("a.jsonl", lines(span, other)))
    assert golden.documents == (Document("d1", "", "T", {"page": 4}),)
    assert golden.judgments == (Judgment("s1", "d1", 2),)
    assert golden.metadata == {"spans_of_other_kinds": 1}


def test_table_columns_belong_to_the_query_or_to_the_judgment(put: Put) -> None:
    path = put(
        "a.csv",
        "query_id,query_text,doc_id,grade,source,topic,seconds,negative,doc_text\n"
        'q1,"a, b",d1,3,manual,pets,4,,one\nq1,"a, b",d2,0,,pets,9,,\nq2,c,,,,cup,,true,\n',
    )
    golden = load(path)
    assert golden.queries == (Query("q1", "a, b", {"topic": "pets"}), Query("q2", "c", {"topic": "cup"}, negative=True))
    assert golden.judgments == (
        Judgment("q1", "d1", 3, "manual", {"seconds": "4"}),
        Judgment("q1", "d2", 0, None, {"seconds": "9"}),
    )
    assert golden.documents == (Document("d1", "one"),)


def test_parquet_keeps_types(tmp_path: Path, golden: GoldenSet) -> None:
    timed = replace(
        golden,
        judgments=tuple(replace(j, metadata={"seconds": n, "sure": n > 1}) for n, j in enumerate(golden.judgments)),
    )
    save(timed, tmp_path / "a.parquet")
    back = load(tmp_path / "a.parquet")
    assert [judgment.metadata for judgment in back.judgments] == [judgment.metadata for judgment in timed.judgments]
    assert back.queries == timed.queries


@pytest.mark.parametrize("name", ["golden-dataset", "test-set", "agent-memory"])
def test_rich_formats_lose_nothing(name: str, golden: GoldenSet, tmp_path: Path) -> None:
    path = tmp_path / f"inn{format_named(name).suffixes[0]}"
    assert save(golden, path, format=name) == ()
    assert read(path) == golden


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "trec",
            [
                "all 3 documents",
                "negative of 1 queries ('q3')",
                "metadata 'query_type' of 3 queries",
                "source of 2 judgments",
            ],
        ),
        ("beir", ["source of 2 judgments", "metadata 'annotator' of 1 judgments"]),
        ("gold-jsonl", ["2 judgments ('q1 / boiler', 'q2 / pets')", "grade of 1 judgments ('q1 / pets')"]),
        ("dict", ["id ('inn' becomes 'out')", "text of 3 queries", "all 3 documents"]),
        ("csv", ["version ('1.2.0' becomes '0.0.0')", "1 documents ('menu')", "tags of 1 documents ('pets')"]),
        ("ragas", ["grade of 2 judgments", "2 judgments", "title of 2 documents"]),
    ],
)
def test_writer_says_what_it_lost(name: str, told: list[str], golden: GoldenSet, tmp_path: Path) -> None:
    lost = save(golden, tmp_path / f"out{format_named(name).suffixes[0]}", format=name)
    assert [part for part in told if not any(part in line for line in lost)] == [], lost


def test_source_that_all_judgments_share_survives_in_the_manifest(golden: GoldenSet, tmp_path: Path) -> None:
    same = replace(golden, judgments=tuple(Judgment(j.query_id, j.doc_id, j.grade, "chair") for j in golden.judgments))
    assert save(same, tmp_path / "b", format="beir") == ()
    assert not load(tmp_path / "b").provisional


@pytest.mark.parametrize("name", FORMATS)
def test_every_written_file_is_recognised_as_what_it_is(name: str, golden: GoldenSet, tmp_path: Path) -> None:
    for suffix in FORMATS[name].suffixes:
        path = tmp_path / f"out{suffix}"
        save(golden, path, format=name, overwrite=True)
        assert detect(path)[0] == name
        path.rename(tmp_path / f"done-{suffix}")


def test_set_that_a_format_cannot_express_is_refused_and_nothing_written(golden: GoldenSet, tmp_path: Path) -> None:
    spaced = replace(golden, queries=(Query("q 1", "a"),), judgments=(Judgment("q 1", "d", 1),))
    with pytest.raises(InputError, match="id 'q 1' cannot stand in a TREC file"):
        save(spaced, tmp_path / "t", format="trec")
    with pytest.raises(InputError, match="cannot name a memory file"):
        save(replace(golden, documents=(Document("a/b", "x"),)), tmp_path / "m", format="memory-bench")
    with pytest.raises(InputError, match="half of a pair"):
        save(replace(golden, description="\ud800"), tmp_path / "a.json")
    with pytest.raises(InputError, match="keep only text, numbers"):
        save(replace(golden, metadata={"x": {1, 2}}), tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []


def test_existing_target_is_kept_unless_told(golden: GoldenSet, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    save(golden, path)
    with pytest.raises(InputError, match="exists already"):
        save(golden, path)
    save(replace(golden, version="2.0.0"), path, overwrite=True)
    assert load(path).version == "2.0.0"


def test_overwriting_a_folder_leaves_no_stale_memory_and_keeps_foreign_files(put: Put, tmp_path: Path) -> None:
    memory_folder(put)
    put("m/README.md", "mine")
    golden = load(tmp_path / "m")
    fewer = replace(golden, documents=golden.documents[1:], judgments=golden.judgments[:1])
    save(fewer, tmp_path / "m", format="memory-bench", overwrite=True)
    assert [document.doc_id for document in load(tmp_path / "m").documents] == ["use-redis"]
    assert (tmp_path / "m/README.md").read_text() == "mine"


def test_unknown_format_and_wrong_ending_name_the_legal_ones(golden: GoldenSet, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no golden-set format 'bier'; choose 'beir'"):
        save(golden, tmp_path / "x", format="bier")
    with pytest.raises(InputError, match=r"written with '\.json'"):
        save(golden, tmp_path / "x.yaml", format="golden-dataset")
    with pytest.raises(InputError, match="choose one with --format"):
        save(golden, tmp_path / "x.jsonl")


def test_convert_takes_shipped_names(tmp_path: Path) -> None:
    assert save(load("clinical"), tmp_path / "c.json") == ()
    assert load(tmp_path / "c.json").qrels.to_dict() == load("clinical").qrels.to_dict()


def test_written_files_are_utf8_with_unix_lines(golden: GoldenSet, tmp_path: Path) -> None:
    save(replace(golden, description="café"), tmp_path / "a.json")
    content = (tmp_path / "a.json").read_bytes()
    assert "café".encode() in content
    assert b"\r" not in content
    assert content.endswith(b"}\n")
