"""Golden sets from strangers: every format comes in, no path is followed, no bomb goes off, and errors stay errors."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tempfile
import tracemalloc
import zipfile
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
from ringtrue.golden import UploadLimits, content_hash, golden_from, load, read_upload, record_of, save, shipped
from ringtrue.golden.formats import losses
from ringtrue.records import GoldenSet, Judgment, Query

MEGABYTE = 1 << 20
CORPUS = '{"_id": "pets", "title": "Pets", "text": "Dogs are welcome.", "metadata": {"page": 3}}\n'
QUERIES = '{"_id": "q1", "text": "can my dog stay"}\n'
QRELS = "query-id\tcorpus-id\tscore\nq1\tpets\t1\n"
BEIR = {"inn/corpus.jsonl": CORPUS, "inn/queries.jsonl": QUERIES, "inn/qrels/test.tsv": QRELS}
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


def zipped(files: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


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


@pytest.mark.parametrize("top", ["inn/", ""])
def test_a_zip_of_a_beir_folder_comes_in(top: str) -> None:
    files: dict[str, str | bytes] = {name.replace("inn/", top): text for name, text in BEIR.items()}
    found = read_upload(zipped(files), kind="zip", name="inn.zip")
    assert (found.id, found.queries, found.judgments) == (
        "inn",
        (Query("q1", "can my dog stay"),),
        (Judgment("q1", "pets", 1),),
    )
    assert found.documents[0].metadata == {"page": 3}
    assert found.corpus_hash is not None


def test_a_zipped_folder_that_we_wrote_comes_back_whole(golden: GoldenSet, tmp_path: Path) -> None:
    plain = replace(golden, judgments=tuple(replace(one, source="manual", metadata={}) for one in golden.judgments))
    save(plain, tmp_path / "inn", format="beir")
    files = {str(file.relative_to(tmp_path)): file.read_bytes() for file in (tmp_path / "inn").rglob("*") if file.is_file()}
    found = read_upload(zipped({"inn/": b"", "inn/qrels/": b"", **files}), kind="zip", name="other.zip")
    assert losses(plain, found) == ()


# ── what does not ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (json.dumps(DATASET | {"corpus": "/etc/passwd"}).encode(), "json"),
        (json.dumps(DATASET | {"corpus": {"a": "../secret.jsonl"}}).encode(), "json"),
        (json.dumps(TEST_SET | {"corpus": "corpus.jsonl"}).encode(), "json"),
        (yaml_text(TEST_SET | {"corpus": "/etc/passwd"}).encode(), "yaml"),
        (zipped({**BEIR, "inn/golden.json": '{"corpus": "/etc/passwd"}'}), "zip"),
        (zipped({**BEIR, "inn/golden.json": '{"queries": "../../etc/passwd"}'}), "zip"),
        (zipped({**BEIR, "inn/golden.json": '{"format": "trec"}'}), "zip"),
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
    "name",
    ["../corpus.jsonl", "/corpus.jsonl", "inn/../corpus.jsonl", "a/b/corpus.jsonl", "inn/notes.txt", "C:\\corpus.jsonl",
     "inn/qrels/../x.tsv", "inn/qrels/a/b.tsv", "./corpus.jsonl", "inn/qrels/.tsv", "inn/corpus.jsonl.gz", "inn/inner.zip"],
)  # fmt: skip
def test_a_zip_holds_the_files_of_a_beir_folder_and_no_other(name: str) -> None:
    check_refused(zipped({**BEIR, name: "x"}), "zip", "zip only corpus.jsonl, queries.jsonl and qrels/*.tsv")


def test_a_zip_holds_no_links_no_secrets_no_odd_compression_and_nothing_twice() -> None:
    def with_entry(change: str, value: int) -> bytes:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            info = zipfile.ZipInfo("queries.jsonl")
            setattr(info, change, value)
            archive.writestr(info, "/etc/passwd")
        return content.getvalue()

    check_refused(with_entry("external_attr", 0o120777 << 16), "zip", "'queries.jsonl' is not a file but a link or a device")
    check_refused(with_entry("external_attr", 0o020666 << 16), "zip", "is not a file but a link")
    check_refused(zipped(dict(BEIR), zipfile.ZIP_BZIP2), "zip", "another way than deflate")
    check_refused(zipped(dict(BEIR), zipfile.ZIP_LZMA), "zip", "another way than deflate")
    locked = bytearray(zipped({"queries.jsonl": QUERIES}))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(mark) + place] |= 1
    check_refused(bytes(locked), "zip", "'queries.jsonl' is encrypted")
    check_refused(zipped({"a/queries.jsonl": QUERIES, "b/corpus.jsonl": CORPUS}), "zip", "files of several folders")
    twice = zipped({"queries.jsonl": QUERIES, "q_eries.jsonl": QUERIES}).replace(b"q_eries", b"queries")
    check_refused(twice, "zip", "holds 'queries.jsonl' twice")
    check_refused(
        zipped({**BEIR, "inn/queries.jsonl": zipped({"a": "b"})}), "zip", "their.file/queries.jsonl: is an archive itself"
    )
    check_refused(zipped({**BEIR, "inn/queries.jsonl": gzip.compress(b"{}", mtime=0)}), "zip", "is an archive itself")


def test_what_is_missing_or_wrong_in_a_zip_is_told_by_the_names_in_it() -> None:
    check_refused(zipped({"queries.jsonl": QUERIES}), "zip", "their.file/qrels: there is no qrels file")
    check_refused(
        zipped({"qrels/test.tsv": QRELS, "corpus.jsonl": CORPUS}), "zip", "their.file/queries.jsonl: there is no such file"
    )
    check_refused(zipped({**BEIR, "inn/queries.jsonl": QUERIES + "{"}), "zip", "their.file/queries.jsonl:2")
    check_refused(zipped({**BEIR, "inn/qrels/test.tsv": QRELS + "q1\tx\ty\n"}), "zip", "their.file/qrels/test.tsv:3")
    check_refused(zipped({**BEIR, "inn/golden.json": "[]"}), "zip", "their.file/golden.json")
    check_refused(b"PK\x03\x04 and so on", "zip", "is not a zip that can be read")
    check_refused(zipped(dict(BEIR))[:-9], "zip", "is not a zip that can be read")


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
        (gzip.compress(b"{}", mtime=0), "json", "is an archive itself"),
        (gzip.compress(b"{}", mtime=0), "jsonl", "is an archive itself"),
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
        (b"x" * 101, "json", "has 101 bytes, 100 are allowed", {"content": 100}),
        (json.dumps(TEST_SET).encode(), "json", "has 2 queries, 1 are allowed", {"queries": 1}),
        ((json.dumps(LINES["ragas"]) + "\n").encode() * 3, "jsonl", "more than 2 lines", {"queries": 2}),
        (json.dumps(DATASET).encode(), "json", "has 1 documents, 0 are allowed", {"documents": 0}),
        (json.dumps(DATASET).encode(), "json", "more than 0 judgments", {"judgments": 0}),
        (json.dumps(DATASET).encode(), "json", "holds more than 5 values", {"values": 5}),
        (json.dumps(DATASET).encode(), "json", "more than 5 fields", {"fields": 5}),
        (json.dumps(DATASET).encode(), "json", "nested more than 3 deep", {"depth": 3}),
        ((json.dumps(SPAN) + "\n").encode(), "jsonl", "nested more than 3 deep", {"depth": 3}),
        (json.dumps(DATASET).encode(), "json", "a text of 17 characters in 'content'", {"text": 16}),
        (yaml_text(TEST_SET).encode(), "yaml", "bytes of YAML, 50 are allowed; send the same as JSON", {"yaml": 50}),
        (yaml_text(TEST_SET).encode(), "yaml", "holds more than 10 values; send the same as JSON", {"values": 300}),
        (yaml_text(TEST_SET).encode(), "yaml", "nested more than 2 deep", {"depth": 2}),
        (zipped(dict(BEIR)), "zip", "more than 100 bytes when unpacked", {"unpacked": 100}),
        (zipped(dict(BEIR)), "zip", "so many documents are allowed", {"documents": 0}),
        (zipped(dict(BEIR)), "zip", "so many judgments are allowed", {"judgments": 1}),
        (zipped(dict(BEIR)), "zip", "holds more than 4 values", {"values": 4}),
    ],
)  # fmt: skip
def test_every_limit_holds(content: bytes, kind: str, says: str, limits: dict[str, int]) -> None:
    check_refused(content, kind, says, limits)


# ── bombs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def laughs() -> bytes:
    lines = ["a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"b{n}: &b{n} [{', '.join(['*a' if n == 0 else f'*b{n - 1}'] * 9)}]" for n in range(9)]
    return "\n".join(lines).encode()


def lie(content: bytes, size: int) -> bytes:
    """A zip whose headers say that its first file is of another size."""
    changed = bytearray(content)
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", changed, changed.index(mark) + place, size)
    return bytes(changed)


def far_away(content: bytes) -> bytes:
    """A zip whose list of files says that the first lies behind the end of every file there could be."""
    at = content.index(b"PK\x01\x02")
    name = content[at + 46 : at + 46 + struct.unpack_from("<H", content, at + 28)[0]]
    place = struct.pack("<HHQ", 1, 8, 2**63 + 5)
    entry = bytearray(content[at : at + 46]) + name + place
    struct.pack_into("<H", entry, 30, len(place))
    struct.pack_into("<I", entry, 42, 0xFFFFFFFF)
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 1, 1, len(entry), at, 0)
    return content[:at] + bytes(entry) + end


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
    "gzip of nothing but zeros": lambda: (gzip.compress(bytes(50 * MEGABYTE)), "json", "is an archive itself"),
    "a zip of zeros": lambda: (
        zipped({"corpus.jsonl": bytes(250_000_000)}),
        "zip",
        "more than 200,000,000 bytes when unpacked",
    ),
    "a zip of line ends": lambda: (zipped({"corpus.jsonl": b"\n" * 50_000_000}), "zip", "more than 500,000 lines"),
    "a zip of many files": lambda: (zipped({f"q{n}.jsonl": b"" for n in range(5_000)}), "zip", "holds more than 100 files"),
    "a zip that denies its size": lambda: (
        lie(zipped({"corpus.jsonl": bytes(90_000_000)}), 10),
        "zip",
        "is not a zip that can be read",
    ),
    "a zip that points far away": lambda: (far_away(zipped({"corpus.jsonl": CORPUS})), "zip", "is not a zip that can be read"),
    "a zip that brags": lambda: (lie(zipped({"corpus.jsonl": b"x"}), 4_000_000_000), "zip", ""),
    "a header of millions of columns": lambda: (
        zipped({"queries.jsonl": QUERIES, "qrels/test.tsv": b"query-id\tcorpus-id\tscore" + b"\ta" * 5_000_000}),
        "zip",
        "a line of more than 4,000 bytes",
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_no_bomb_goes_off(bomb: str) -> None:
    """YAML bombs, zip bombs and their like: a clear error, and no more memory than the upload itself would explain."""
    content, kind, says = BOMBS[bomb]()
    with within(40):
        check_refused(content, kind, says)


def test_a_repeated_key_among_hundreds_of_thousands_is_found_at_once() -> None:
    keys = ",".join(f'"k{n}":1' for n in range(300_000))
    check_refused(f'{{{keys},"k7":1}}'.encode(), "json", "the key 'k7' is given twice")


def test_a_record_has_no_hundred_thousand_fields() -> None:
    many = {f"field{n}": 1 for n in range(100_000)}
    check_refused(json.dumps(DATASET | many).encode(), "json", "a record with 100,004 fields")
    check_refused(json.dumps(LINES["ragas"] | many).encode(), "jsonl", "fields, 1,000 are allowed; put them under 'metadata'")
    assert len(read_upload(json.dumps(DATASET | {"metadata": many}).encode(), kind="json", name="x").metadata) == 100_000


def test_json_inside_json_is_measured_too() -> None:
    def span(documents: str) -> bytes:
        return json.dumps(SPAN | {"attributes": {"input.value": "q", "retrieval.documents": documents}}).encode()

    check_refused(span("[" * 900_000), "jsonl", "nested too deeply")
    check_refused(span("[" + "{}," * 200_000 + "{}]"), "jsonl", "holds more than 100,000 values", {"values": 100_000})
    check_refused(span('[{"a": 1, "a": 2}]'), "jsonl", "given twice")
    assert read_upload(span('[{"document.id": "d"}]'), kind="jsonl", name="x").queries[0].metadata["retrieved"] == ["d"]


def test_annotations_of_a_span_do_not_take_quadratic_time() -> None:
    many = [{"name": "relevance", "document_position": n, "score": 1} for n in range(1_001)]
    check_refused(json.dumps(SPAN | {"annotations": many}).encode(), "jsonl", "1,001 annotations of one span")


# ── anything at all ─────────────────────────────────────────────────────────────────────────────────────────────────

SEEDS: list[tuple[bytes, str]] = [
    (json.dumps(DATASET).encode(), "json"),
    (json.dumps(TEST_SET).encode(), "json"),
    *((json.dumps(value).encode(), "json") for value in DOCUMENTS.values()),
    (yaml_text(TEST_SET).encode(), "yaml"),
    *(((json.dumps(value) + "\n").encode(), "jsonl") for value in LINES.values()),
    (zipped({**BEIR, "inn/golden.json": '{"id": "inn", "version": "1.0.0", "split": "test"}'}), "zip"),
    (zipped(dict(BEIR), zipfile.ZIP_STORED), "zip"),
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
    only_input_errors(content, data.draw(st.sampled_from([kind, kind, kind, "json", "yaml", "jsonl", "zip"])))


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
    form = data.draw(st.sampled_from(["json", "yaml", "jsonl", "zip"]))
    if form == "json":
        only_input_errors(
            json.dumps(swapped(data.draw(st.sampled_from([DATASET, TEST_SET, *DOCUMENTS.values()])), data)).encode(), form
        )
    elif form == "yaml":
        only_input_errors(yaml_text(swapped(TEST_SET, data)).encode(), form)
    elif form == "jsonl":
        only_input_errors(json.dumps(swapped(data.draw(st.sampled_from(list(LINES.values()))), data)).encode(), form)
    else:
        name = data.draw(st.sampled_from(["inn/corpus.jsonl", "inn/queries.jsonl", "inn/golden.json"]))
        seed = {"id": "inn", "scale": [0, 3], "slices": ["a"], "split": "test", "relevance_threshold": 1}
        value = seed if name.endswith("golden.json") else json.loads(BEIR[name])
        only_input_errors(zipped({**BEIR, name: json.dumps(swapped(value, data))}), form)
