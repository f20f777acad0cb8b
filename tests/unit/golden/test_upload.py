"""Golden sets from strangers: every format comes in, no path is followed, no bomb goes off, and errors stay errors."""

from __future__ import annotations

import gzip
import json
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringtrue.errors import InputError
from ringtrue.formats import yaml_text
from ringtrue.golden import UploadLimits, content_hash, golden_from, load, read_upload, record_of, shipped
from ringtrue.golden.formats import losses
from ringtrue.records import GoldenSet, Judgment

MEGABYTE = 1 << 20
TEST_SET: dict[str, Any] = {
    "version": "1.0.0",
    "queries": [
        {
            "query_id": "q1",
            "query_text": "can my dog stay",
            "relevant_docs": [{"doc_id": "pets", "grade": 3, "source": "manual"}],
        },
        {"query_id": "q2", "query_text": "who won the cup", "negative": True, "relevant_docs": []},
    ],
}
DATASET: dict[str, Any] = {
    "id": "inn",
    "version": "1.0.0",
    "entities": [{"entity_id": "pets", "title": "Pets", "content": "Dogs are welcome.", "metadata": {"page": 3}}],
    "queries": [{"query_id": "q1", "query_text": "can my dog stay", "expected_results": {"relevance_labels": {"pets": 3}}}],
}
SPAN = {
    "context": {"span_id": "s1"},
    "attributes": {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "can my dog stay",
        "retrieval.documents": [{"document.id": "pets", "document.content": "Dogs are welcome."}],
    },
    "annotations": [{"name": "relevance", "document_position": 0, "score": 1}],
}
LINES: dict[str, dict[str, Any]] = {
    "gold-jsonl": {"id": "q1", "query": "can my dog stay", "relevant_ids": ["pets"], "source": "chair"},
    "memory-bench": {"query": "can my dog stay", "expected_relevant": ["decision/pets.json"], "expected_irrelevant": ["x"]},
    "agent-memory": {"queryId": 1, "query": "can my dog stay", "judgments": [{"memoryId": 12, "relevance": 3}]},
    "ragas": {"user_input": "can my dog stay", "reference_contexts": ["Dogs are welcome."]},
    "openinference": SPAN,
}
DOCUMENTS = {"dict": {"q1": {"pets": 3}}, "ragas": [LINES["ragas"]], "openinference": {"spans": [SPAN]}}


def check_refused(content: bytes, kind: Any, says: str, limits: dict[str, int] | None = None) -> str:
    with pytest.raises(InputError) as found:
        read_upload(content, kind=kind, name="their.file", limits=UploadLimits(**limits or {}))
    message = str(found.value)
    assert message.startswith("their.file")
    assert says in message
    assert "\n" not in message
    assert tempfile.gettempdir() not in message
    return message


@contextmanager
def within(megabytes: float) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes * MEGABYTE
    finally:
        tracemalloc.stop()


# ── what comes in ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", shipped())
def test_a_golden_set_and_its_json_object_say_the_same(name: str) -> None:
    golden = load(name)
    record = json.loads(json.dumps(record_of(golden)))
    assert golden_from(record, name=name) == golden
    assert read_upload(json.dumps(record).encode(), kind="json", name=name) == golden


def test_the_json_object_keeps_everything_a_set_can_say(golden: GoldenSet) -> None:
    rich = replace(
        golden,
        judgments=(*golden.judgments, Judgment("q2", "menu", 3, None, {"labelled": False, "listed": True})),
        equivalence_classes=(("pets", "menu"),),
        slices=("query_type",),
        scope="house",
        metadata={"queries": "not those", "licence": "CC0", "nested": {"a": [1, 2.5, None, True]}},
    )
    found = golden_from(json.loads(json.dumps(record_of(rich))), name="inn")
    assert losses(rich, found) == ("metadata 'listed' of 1 judgments",)  # it says no more than the grade does
    assert content_hash(replace(found, judgments=())) == content_hash(replace(rich, judgments=()))
    assert found.corpus_hash is not None
    assert golden_from(record_of(found), name="inn") == found


def test_a_grade_given_later_survives_where_the_label_was_missing() -> None:
    set_ = {"queries": [{"query_id": "q", "query_text": "t", "expected_results": {"relevant_entities": ["d"]}}]}
    read = golden_from(set_, name="x")
    assert read.judgments[0].grade == 3
    changed = replace(read, judgments=(replace(read.judgments[0], grade=2),), relevance_threshold=2)
    assert golden_from(record_of(changed), name="x").judgments[0].grade == 2


def test_a_judgment_of_a_query_that_is_not_there_is_not_lost_in_silence(golden: GoldenSet) -> None:
    with pytest.raises(InputError, match="judges query 'q9', which it does not have"):
        record_of(replace(golden, judgments=(Judgment("q9", "pets", 1),)))


def test_a_test_set_is_the_same_as_yaml_and_as_json() -> None:
    from_yaml = read_upload(yaml_text(TEST_SET).encode(), kind="yaml", name="inn.yaml")
    from_json = read_upload(json.dumps(TEST_SET).encode(), kind="json", name="inn.json")
    assert from_yaml == from_json
    assert (from_json.id, from_json.profile, len(from_json.queries)) == ("inn", "test-set", 2)
    assert from_json.judgments == (Judgment("q1", "pets", 3, "manual"),)
    assert read_upload(json.dumps(TEST_SET["queries"]).encode(), kind="json", name="q").queries == from_json.queries


@pytest.mark.parametrize("form", LINES)
def test_every_format_of_lines_comes_in_under_the_name_of_its_file(form: str) -> None:
    found = read_upload((json.dumps(LINES[form]) + "\n\n").encode(), kind="jsonl", name=r"C:\sets\inn.jsonl")
    assert (found.id, [query.text for query in found.queries]) == ("inn", ["can my dog stay"])
    assert found.judgments[0].grade >= 1


@pytest.mark.parametrize("form", DOCUMENTS)
def test_every_json_format_comes_in(form: str) -> None:
    found = read_upload(json.dumps(DOCUMENTS[form]).encode(), kind="json", name="inn.json")
    assert (found.id, len(found.queries), len(found.judgments)) == ("inn", 1, 1)


# ── what does not ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (json.dumps(DATASET | {"corpus": "/etc/passwd"}).encode(), "json"),
        (json.dumps(DATASET | {"corpus": {"a": "../secret.jsonl"}}).encode(), "json"),
        (json.dumps(TEST_SET | {"corpus": "corpus.jsonl"}).encode(), "json"),
        (yaml_text(TEST_SET | {"corpus": "/etc/passwd"}).encode(), "yaml"),
    ],
)
def test_no_path_in_an_upload_is_followed(content: bytes, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: opened.append(str(self)) or read(self))  # type: ignore[func-returns-value]
    message = check_refused(content, kind, "field '")
    assert any(name in message for name in ("corpus", "queries", "format"))
    assert all(path.startswith(tempfile.gettempdir()) for path in opened)


@pytest.mark.parametrize(
    ("content", "kind", "says"),
    [
        (b"", "json", "is empty"),
        (b"  \n", "yaml", "is empty"),
        (b"\xff\xfe{\x00}\x00", "json", "UTF-16"),
        (b'{"queries": ["\xff"]}', "json", "byte 0xff is not UTF-8"),
        (b'{"a": 1}\n{"id": "\xff"}', "jsonl", "their.file:2: byte 0xff is not UTF-8"),
        (b"a: \xff", "yaml", "byte 0xff is not UTF-8"),
        (b'{"id": "\\ud83d", "queries": []}', "json", "half of a character pair"),
        (b'{"queries": [], "\\udc00": 1}', "json", "half of a character pair"),
        (b'{"queries": [], "x": 1e999}', "json", "'x' is not finite"),
        (b'{"queries": [], "x": NaN}', "json", "NaN is not a JSON number"),
        (b'{"queries": [], "x": 99999999999999999999}', "json", "more than 64 bits"),
        (b'{"q1": {"pets": 1e300}}', "json", "the number of 'pets' has more than 64 bits"),
        (b'{"queries": [], "x": ' + b"9" * 5000 + b"}", "json", "write a shorter number"),
        (b'{"queries": [], "x": 1, "x": 2}', "json", "the key 'x' is given twice"),
        (b'{"queries": []', "json", "not valid JSON"),
        (b"PAR1....PAR1", "json", "not valid JSON"),
        (gzip.compress(b"{}", mtime=0), "json", "is an archive; unpack it first"),
        (gzip.compress(b"{}", mtime=0), "jsonl", "is an archive; unpack it first"),
        (b"- !!python/object/apply:os.system [ls]", "yaml", "the tag 'tag:yaml.org,2002:python/object/apply:os.system'"),
        (b"queries: []\n---\nqueries: []", "yaml", "another document"),
        (b"queries: [}", "yaml", "not valid YAML"),
        (b'{"queries": "many"}', "json", "'many' is a text; write a list"),
        (b'"text"', "json", "not recognised"),
        (b"q1 0 d1 1\n", "jsonl", "not valid JSON"),
    ],
)  # fmt: skip
def test_what_is_no_golden_set_is_told_in_one_line(content: bytes, kind: str, says: str) -> None:
    check_refused(content, kind, says)


def test_an_unknown_kind_is_met_with_the_kinds_there_are() -> None:
    with pytest.raises(InputError, match="'jsnl'; choose 'jsonl' or 'json'"):
        read_upload(b"{}", kind="jsnl", name="x")  # type: ignore[arg-type]


def test_the_name_of_a_sender_stays_on_one_line() -> None:
    with pytest.raises(InputError) as found:
        read_upload(b"", kind="json", name="a\nb\x1b[31m" + "c" * 500)
    assert str(found.value).startswith("a\\nb\\x1b[31mccc")
    assert len(str(found.value)) < 300


@pytest.mark.parametrize(
    ("content", "kind", "says", "limits"),
    [
        (b"x" * 101, "json", "has 101 bytes, at most 100 are allowed", {"content": 100}),
        (json.dumps(TEST_SET).encode(), "json", "has 2 queries, at most 1 are allowed", {"queries": 1}),
        ((json.dumps(LINES["ragas"]) + "\n").encode() * 3, "jsonl", "more than 2 lines", {"queries": 2}),
        (json.dumps(DATASET).encode(), "json", "has 1 documents, at most 0 are allowed", {"documents": 0}),
        (json.dumps(DATASET).encode(), "json", "has 1 judgments, at most 0 are allowed", {"judgments": 0}),
        (json.dumps(DATASET).encode(), "json", "holds more than 5 values", {"values": 5}),
        (json.dumps(DATASET).encode(), "json", "more than 5 fields", {"fields": 5}),
        (json.dumps(DATASET).encode(), "json", "nested more than 3 deep", {"depth": 3}),
        ((json.dumps(SPAN) + "\n").encode(), "jsonl", "nested more than 3 deep", {"depth": 3}),
        (json.dumps(DATASET).encode(), "json", "a text of 17 characters in 'content'", {"text": 16}),
        (yaml_text(TEST_SET).encode(), "yaml", "bytes of YAML, 50 are allowed; send the same as JSON", {"yaml": 50}),
        (yaml_text(TEST_SET).encode(), "yaml", "holds more than 10 values; send the same as JSON", {"values": 300}),
        (yaml_text(TEST_SET).encode(), "yaml", "nested more than 2 deep", {"depth": 2}),
    ],
)  # fmt: skip
def test_every_limit_holds(content: bytes, kind: str, says: str, limits: dict[str, int]) -> None:
    check_refused(content, kind, says, limits)


# ── bombs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def laughs() -> bytes:
    lines = ["a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"b{n}: &b{n} [{', '.join(['*a' if n == 0 else f'*b{n - 1}'] * 9)}]" for n in range(9)]
    return "\n".join(lines).encode()


BOMBS: dict[str, Callable[[], tuple[bytes, str, str]]] = {
    "a million lists in each other": lambda: (b"[" * 1_000_000, "json", "nested too deeply"),
    "a million objects in each other": lambda: (b'{"a":' * 1_000_000, "json", "nested too deeply"),
    "depth behind escaped quotes": lambda: (b'["\\"", ' + b"[" * 1_000_000, "json", "nested too deeply"),
    "depth in one line": lambda: (b"[" * 1_000_000, "jsonl", "nested too deeply"),
    "depth in YAML": lambda: (b"[" * 200_000, "yaml", "nested more than 50 deep"),
    "depth in block YAML": lambda: (b"- " * 200_000, "yaml", "nested more than 50 deep"),
    "millions of empty lists": lambda: (b"[" + b"[]," * 3_000_000 + b"[]]", "json", "holds more than 3,000,000 values"),
    "billion laughs": lambda: (laughs(), "yaml", "the alias '*a'"),
    "quadratic blow-up": lambda: (b"a: &a " + b"x" * 100_000 + b"\nb: [" + b"*a, " * 100_000 + b"]", "yaml", "the alias '*a'"),
    "a number to the base of 60": lambda: (b"a: 1" + b":1" * 100_000, "yaml", "a number of 200,001 characters"),
    "the same with a tag": lambda: (b"a: !!int '1" + b":1" * 100_000 + b"'", "yaml", "the tag 'tag:yaml.org,2002:int'"),
    "a number without an end": lambda: (b"a: 0x" + b"f" * 100_000, "yaml", "a number of 100,002 characters"),
    "a key as long as a book": lambda: (
        b'{"queries": [], "' + b"k" * 900_000 + b'": 1}',
        "json",
        "a key of 900,000 characters",
    ),
    "gzip of nothing but zeros": lambda: (gzip.compress(bytes(50 * MEGABYTE)), "json", "is an archive; unpack it first"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_no_bomb_goes_off(bomb: str) -> None:
    """YAML bombs and their like: a clear error, and no more memory than the upload itself would explain."""
    content, kind, says = BOMBS[bomb]()
    with within(40):
        check_refused(content, kind, says)


def test_a_repeated_key_among_hundreds_of_thousands_is_found_at_once() -> None:
    keys = ",".join(f'"k{n}":1' for n in range(300_000))
    check_refused(f'{{{keys},"k7":1}}'.encode(), "json", "the key 'k7' is given twice")


def test_a_million_fields_are_refused_and_facts_are_not() -> None:
    many = {f"field{n}": 1 for n in range(100_000)}
    check_refused(json.dumps(DATASET | many).encode(), "json", "more than 1,000 fields; put facts", {"fields": 1_000})
    check_refused(json.dumps(LINES["ragas"] | many).encode(), "jsonl", "more than 1,000 fields", {"fields": 1_000})
    assert len(read_upload(json.dumps(DATASET | {"metadata": many}).encode(), kind="json", name="x").metadata) == 100_000


def test_json_inside_json_is_measured_too() -> None:
    def span(documents: str) -> bytes:
        return json.dumps(SPAN | {"attributes": {"input.value": "q", "retrieval.documents": documents}}).encode()

    check_refused(span("[" * 900_000), "jsonl", "nested too deeply")
    check_refused(span("[" + "{}," * 200_000 + "{}]"), "jsonl", "holds more than 100,000 values", {"values": 100_000})
    check_refused(span('[{"a": 1, "a": 2}]'), "jsonl", "given twice")
    assert read_upload(span('[{"document.id": "d"}]'), kind="jsonl", name="x").queries[0].metadata["retrieved"] == ["d"]


# ── anything at all ─────────────────────────────────────────────────────────────────────────────────────────────────

SEEDS: list[tuple[bytes, str]] = [
    (json.dumps(DATASET).encode(), "json"),
    (json.dumps(TEST_SET).encode(), "json"),
    *((json.dumps(value).encode(), "json") for value in DOCUMENTS.values()),
    (yaml_text(TEST_SET).encode(), "yaml"),
    *(((json.dumps(value) + "\n").encode(), "jsonl") for value in LINES.values()),
]
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**62,
    1.5,
    1e300,
    "",
    " ",
    "x",
    "é\u2028",
    "[1]",
    "{}",
    [],
    [[]],
    [None],
    {},
    {"a": {}},
    [{}],
]
PIECES = [b"", b"[", b"]", b"{", b"}", b'"', b",", b":", b"\\", b"\x00", b"\xff", b"&a ", b"*a", b"!!", b"---\n", b"PK\x01\x02"]


def only_input_errors(content: bytes, kind: Any) -> None:
    says = ""
    try:
        golden = read_upload(content, kind=kind, name="x")
    except InputError as problem:
        says = str(problem)
    if says:
        assert tempfile.gettempdir() not in says
        assert "\n" not in says
        return
    # What is let in can be kept, measured with, and got back, unless it judges queries that it does not have.
    if {judgment.query_id for judgment in golden.judgments} <= {query.query_id for query in golden.queries}:
        found = golden_from(json.loads(json.dumps(record_of(golden), allow_nan=False)), name="x")
        assert content_hash(found) == content_hash(golden)
    assert len(golden.qrels.query_ids) >= len(golden.queries)
    assert golden.provisional in (True, False)


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_mangled_bytes_are_input_errors_and_nothing_else(data: st.DataObject) -> None:
    content, kind = data.draw(st.sampled_from(SEEDS))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        piece = data.draw(st.sampled_from(PIECES) | st.binary(max_size=4))
        content = content[:at] + piece + content[at + data.draw(st.integers(0, 12)) :]
    only_input_errors(content, data.draw(st.sampled_from([kind, kind, kind, "json", "yaml", "jsonl"])))


def swapped(value: Any, data: st.DataObject) -> Any:
    """The value with something odd somewhere in it."""
    if isinstance(value, dict) and value and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(sorted(value)))
        if data.draw(st.integers(0, 5)) == 0:
            return {name: item for name, item in value.items() if name != key}
        return value | {key: swapped(value[key], data)}
    if isinstance(value, list) and value and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(value) - 1))
        return [*value[:at], swapped(value[at], data), *value[at + 1 :]]
    return data.draw(st.sampled_from(ODD))


@settings(max_examples=600, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_odd_values_anywhere_are_input_errors_or_sets_that_can_be_kept(data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(["json", "yaml", "jsonl"]))
    if form == "json":
        only_input_errors(
            json.dumps(swapped(data.draw(st.sampled_from([DATASET, TEST_SET, *DOCUMENTS.values()])), data)).encode(), form
        )
    elif form == "yaml":
        only_input_errors(yaml_text(swapped(TEST_SET, data)).encode(), form)
    else:
        only_input_errors(json.dumps(swapped(data.draw(st.sampled_from(list(LINES.values()))), data)).encode(), form)
