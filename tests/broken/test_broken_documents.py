"""Every broken file of documents ends with one line that names the file, the line or record, the field and the cure."""

from __future__ import annotations

import gzip
import io
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringtrue.errors import BAD_INPUT, InputError, MissingInput
from ringtrue.retrieve.sources import find, read_documents


@dataclass(frozen=True)
class Broken:
    """One broken file and what its complaint must name."""

    name: str
    filename: str
    content: bytes
    must_name: tuple[str, ...]


def _case(name: str, filename: str, content: str | bytes, *must_name: str) -> Broken:
    return Broken(name, filename, content.encode() if isinstance(content, str) else content, (filename, *must_name))


OK = '{"_id": "d1", "text": "a"}\n'
FRONT = "---\n{}\n---\ntext\n"


def _cases() -> Iterator[Broken]:
    for ending in ("jsonl", "json", "csv", "tsv", "md", "txt", "html"):
        yield _case(f"{ending}-0-bytes", f"a.{ending}", b"", "the file is empty; write at least one document")
        yield _case(f"{ending}-blank", f"a.{ending}", " \n\r\n\t\n", "the file is empty; write at least one document")
        yield _case(f"{ending}-utf16", f"a.{ending}", "id,text\n".encode("utf-16"), "the file is UTF-16; save it as UTF-8")
        yield _case(f"{ending}-binary", f"a.{ending}", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary (NUL at offset 8)", "UTF-8")
        yield _case(f"{ending}-pdf", f"a.{ending}", b"%PDF-1.4\n", "is a PDF; end its name in .pdf")
        yield _case(f"{ending}-latin1", f"a.{ending}", b"\n caf\xe9\n", f"a.{ending}:2", "0xe9 at offset 5", "UTF-8")
        yield _case(
            f"{ending}-late-nul", f"a.{ending}", b"\n" * 8000 + b"\0", f"a.{ending}:8001", "NUL character at offset 8000"
        )
    yield _case(
        "gz-damaged", "a.jsonl.gz", gzip.compress(OK.encode() * 99)[:-9], "gzip data is damaged", "compress the file again"
    )
    yield _case("gz-garbage", "a.jsonl.gz", b"\x1f\x8b\x08garbage that is not gzip", "gzip data is damaged", "again")
    yield _case("gz-of-nothing", "a.jsonl.gz", gzip.compress(b""), "the file is empty; write at least one")
    yield _case("unknown-ending", "a.docx", b"PK", "the ending '.docx' is not known", ".jsonl, ", ".pdf")
    yield _case("no-ending", "corpus", OK, "the name has no ending; name the file by its format")
    yield _case("gzipped-pdf", "a.pdf.gz", b"x", "the ending '.gz' is not known")

    yield _case(
        "line-not-json", "a.jsonl", OK + '{"_id": "d2", "text": a}\n', "a.jsonl:2", "column 23, near 'a}'", "fix the JSON"
    )
    yield _case("line-cut-off", "a.jsonl", OK + '{"_id": "d2", "te', "a.jsonl:2", "not valid JSON", "fix the JSON there")
    yield _case("line-list", "a.jsonl", OK + "[1]\n", "a.jsonl:2", "[1] is not an object", '{"_id": …, "text": …}')
    yield _case("line-null", "a.jsonl", "null\n", "a.jsonl:1", "null is not an object")
    yield _case(
        "line-key-twice", "a.jsonl", '{"_id": "a", "_id": "b", "text": ""}', "a.jsonl:1", "'_id' is given twice", "keep one"
    )
    yield _case("line-nan", "a.jsonl", '{"_id": "a", "text": "", "x": NaN}', "a.jsonl:1", "NaN is not a JSON number", "finite")
    yield _case(
        "line-infinite", "a.jsonl", OK + '{"_id": "a", "text": "", "x": 1e999}', "a.jsonl:2", "'x'", "inf", "smaller number"
    )
    yield _case("line-deep", "a.jsonl", '{"_id": "a", "x": ' + "[" * 99_999, "a.jsonl:1", "nested too deeply", "flatten")
    yield _case(
        "id-missing", "a.jsonl", '{"key": "a", "text": ""}', "a.jsonl:1", "no field for the id among 'key', 'text'", "id_field"
    )
    yield _case(
        "id-missing-later", "a.jsonl", OK + '{"id": "d2", "text": ""}', "a.jsonl:2", "'_id' is missing among 'id', 'text'"
    )
    yield _case("id-empty", "a.jsonl", OK + '{"_id": "", "text": ""}', "a.jsonl:2", "field '_id'", "blank", "non-blank")
    yield _case("id-blank", "a.jsonl", '{"_id": " \\t", "text": ""}', "a.jsonl:1", "field '_id'", "' \\t'", "non-blank")
    yield _case(
        "id-null", "a.jsonl", '{"_id": null, "text": ""}', "a.jsonl:1", "field '_id'", "null is not an id", "whole number"
    )
    yield _case("id-fraction", "a.jsonl", '{"_id": 1.5, "text": ""}', "a.jsonl:1", "field '_id'", "1.5 is not an id")
    yield _case("id-truth", "a.jsonl", '{"_id": true, "text": ""}', "a.jsonl:1", "field '_id'", "True is not an id")
    yield _case("id-list", "a.jsonl", '{"_id": ["a"], "text": ""}', "a.jsonl:1", "field '_id'", "['a'] is not an id")
    yield _case("id-half", "a.jsonl", '{"_id": "a\\ud800", "text": ""}', "a.jsonl:1", "field '_id'", "half of a character pair")
    yield _case("id-twice", "a.jsonl", OK + "\n" + OK, "a.jsonl:3", "the id 'd1' is taken by", "a.jsonl:1; give each document")
    yield _case("id-as-number", "a.jsonl", '{"id": 1, "text": ""}\n{"id": "1", "text": ""}', "a.jsonl:2", "'1' is taken by")
    yield _case(
        "text-missing",
        "a.jsonl",
        '{"_id": "a", "words": "b"}',
        "a.jsonl:1",
        "no field for the text among '_id', 'words'",
        "text_field",
    )
    yield _case(
        "text-missing-later", "a.jsonl", OK + '{"_id": "b", "body": "b"}', "a.jsonl:2", "'text' is missing", "its text there"
    )
    yield _case(
        "text-null", "a.jsonl", '{"_id": "a", "text": null}', "a.jsonl:1", "field 'text'", "null is not text", "write a text"
    )
    yield _case("text-number", "a.jsonl", '{"_id": "a", "text": 5}', "a.jsonl:1", "field 'text'", "5 is not text")
    yield _case("text-list", "a.jsonl", '{"_id": "a", "text": ["b"]}', "a.jsonl:1", "field 'text'", "['b'] is not text")
    yield _case(
        "text-object", "a.jsonl", '{"_id": "a", "text": {"en": "b"}}', "a.jsonl:1", "field 'text'", "{'en': 'b'} is not text"
    )
    yield _case(
        "title-number", "a.jsonl", '{"_id": "a", "text": "", "title": 5}', "a.jsonl:1", "field 'title'", "5 is not text"
    )
    yield _case(
        "tags-object", "a.jsonl", '{"_id": "a", "text": "", "tags": {"b": 1}}', "a.jsonl:1", "field 'tags'", "list of texts"
    )
    yield _case(
        "tags-nested", "a.jsonl", '{"_id": "a", "text": "", "tags": [["b"]]}', "a.jsonl:1", "field 'tags'", "list of texts"
    )
    yield _case(
        "metadata-text",
        "a.jsonl",
        '{"_id": "a", "text": "", "metadata": "b"}',
        "a.jsonl:1",
        "'metadata'",
        "not an object",
        "rename",
    )
    yield _case(
        "metadata-twice", "a.jsonl", '{"_id": "a", "text": "", "x": 1, "metadata": {"x": 2}}', "a.jsonl:1", "'x' is given here"
    )

    yield _case("json-broken", "a.json", '[\n{"id": 1,\n "text": }]', "a.json:3", "not valid JSON", "fix the JSON there")
    yield _case("json-after-blank-lines", "a.json", '\n\n{\n"id": }', "a.json:4", "not valid JSON")
    yield _case("json-empty-list", "a.json", "[]", "no document in it; write at least one")
    yield _case("json-empty-wrapper", "a.json", '{"documents": []}', "no document in it")
    yield _case("json-text", "a.json", '"text"', "'text' is not an object")
    yield _case("json-list-of-texts", "a.json", '["a", "b"]', "field '[0]'", "'a' is not an object")
    yield _case("json-record", "a.json", '[{"id": 1, "text": ""}, {"id": 2, "text": 3}]', "field '[1].text'", "3 is not text")
    yield _case(
        "json-wrapped-record", "a.json", '{"documents": [{"id": {}, "text": ""}]}', "field 'documents[0].id'", "{} is not an id"
    )
    yield _case(
        "json-wrapper-object", "a.json", '{"documents": {"a": "b"}}', "no field for the text among 'documents'", "text_field"
    )
    yield _case(
        "json-id-twice", "a.json", '[{"id": 1, "text": ""}, {"id": 1, "text": ""}]', "field '[1]'", "taken by", "'[0]'; give"
    )
    yield _case("json-lines-second", "a.json", OK + "oops\n", "a.json:2", "not valid JSON")

    yield _case("csv-only-header", "a.csv", "id,text\n", "no document in it; write at least one")
    yield _case("csv-no-id", "a.csv", "key,text\n1,a\n", "a.csv:2", "no field for the id among 'key', 'text'", "id_field")
    yield _case("csv-no-text", "a.csv", "id,words\n1,a\n", "a.csv:2", "no field for the text", "text_field")
    yield _case("csv-blank-id", "a.csv", "id,text\n1,a\n ,b\n", "a.csv:3", "field 'id'", "blank")
    yield _case("csv-column-twice", "a.csv", "id,text,text\n1,a,b\n", "a.csv:1", "column 'text' is named twice", "its own name")
    yield _case("csv-too-many", "a.csv", "id,text\n1,a, b\n", "a.csv:2", "3 cells under 2 columns", "quote cells")
    yield _case("csv-too-few", "a.csv", 'id,text\n1,"a\nb"\n2\n', "a.csv:4", "1 cell under 2 columns")
    yield _case("csv-open-quote", "a.csv", 'id,text\n1,a\n2,"b\n3,c\n', "a.csv:3", "not valid CSV", "fix the quotes")
    yield _case("csv-id-twice", "a.csv", 'id,text\n1,"a\nb"\n1,c\n', "a.csv:4", "the id '1' is taken by", "a.csv:2;")
    yield _case("csv-metadata", "a.csv", "id,text,metadata\n1,a,{x\n", "a.csv:2", "field 'metadata'", "not valid JSON")
    yield _case("tsv-too-many", "a.tsv", "id\ttext\n1\ta\tb\n", "a.tsv:2", "3 cells under 2 columns", "remove tabs")

    yield _case(
        "md-bad-yaml", "a.md", FRONT.format("title: a\nx: [1"), "a.md:", "not valid YAML", "or begin the file with a blank line"
    )
    yield _case("md-yaml-tab", "a.md", FRONT.format("a:\n\tb: 1"), "a.md:3", "not valid YAML")
    yield _case("md-key-twice", "a.md", FRONT.format("a: 1\na: 2"), "a.md:3", "the key 'a' is given twice", "keep one")
    yield _case("md-alias", "a.md", FRONT.format("a: &x [1]\nb: *x"), "a.md:3", "the alias '*x'", "write the value out")
    yield _case("md-deep", "a.md", FRONT.format("a: " + "[" * 5000), "a.md:2", "nested too deeply")
    yield _case(
        "md-title-list", "a.md", FRONT.format("title: [a]"), "field 'title'", "['a'] is not text", "write the title as text"
    )
    yield _case("md-tags", "a.md", FRONT.format("tags: {a: 1}"), "field 'tags'", "list of texts")
    yield _case("md-key-list", "a.md", FRONT.format("? [a]\n: 1"), "a.md:2", "stands as a key")
    yield _case("html-nothing-seen", "a.html", "<title>x</title><script>run()</script>", "no visible text", "save the page")


CASES = list(_cases())


def complaint(path: Path, **options: str) -> str:
    with pytest.raises(InputError) as caught:
        list(read_documents([path], **options))  # type: ignore[arg-type]
    assert caught.value.exit_code == BAD_INPUT
    message = str(caught.value)
    assert message.isprintable(), "a complaint is one line without control characters"
    assert "; " in message, "a complaint ends with its cure"
    return message


def outcome(path: Path) -> tuple[list[str], str]:
    """Return the first words of the documents in a file, or why it was refused."""
    try:
        return [(document.text or document.doc_id).split(" ")[0] for document in read_documents([path])], ""
    except InputError as problem:
        return [], str(problem)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_broken_documents_are_named_with_place_field_and_cure(case: Broken, tmp_path: Path) -> None:
    path = tmp_path / case.filename
    path.write_bytes(case.content)
    message = complaint(path)
    assert message.startswith(str(path))
    assert [wanted for wanted in case.must_name if wanted not in message] == [], message


def test_no_case_is_named_twice() -> None:
    assert len({case.name for case in CASES}) == len(CASES) > 90


def test_the_same_id_in_two_files_names_both(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"_id": "d0", "text": ""}\n' + OK)
    (tmp_path / "b.csv").write_text("id,text\nd2,x\nd1,y\n")
    assert f"{tmp_path / 'b.csv'}:3: the id 'd1' is taken by {tmp_path / 'a.jsonl'}:2; " in complaint(tmp_path)


def test_a_record_with_the_id_of_a_file_names_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.jsonl").write_text('{"_id": "a.txt", "text": "two"}')
    message = complaint(tmp_path)
    assert f"{tmp_path / 'b.jsonl'}:1: the id 'a.txt' is taken by {tmp_path / 'a.txt'}; " in message


@pytest.mark.parametrize("option", ["id_field", "text_field"])
def test_a_named_field_that_is_not_there_offers_the_nearest(option: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"identifier": 1, "description": "x", "_id": "a", "text": "t"}')
    message = complaint(tmp_path / "a.jsonl", **{option: "descripton" if option == "text_field" else "identifer"})
    assert "a.jsonl:1" in message
    flag = f"--{option.replace('_', '-')}"
    assert f"({option} / {flag}) is missing among 'identifier', 'description'" in message
    assert "did you mean 'description'?" in message or "did you mean 'identifier'?" in message


def test_a_folder_without_a_readable_file_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match="the folder is empty; put documents into it"):
        find([tmp_path])
    (tmp_path / "a.png").write_bytes(b"x")
    (tmp_path / "b.png").write_bytes(b"x")
    with pytest.raises(
        MissingInput, match=r"no file in it can be read \(.*a\.png: the ending '\.png' .*, and 1 more\); use \.json"
    ):
        find([tmp_path])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x")
    path.chmod(0)
    assert "check its permissions" in complaint(path)


def test_a_file_that_the_system_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    assert complaint(path) == f"{path}: cannot be read (Permission denied); check its permissions"


def test_a_file_name_with_a_line_break_still_gives_one_line(tmp_path: Path) -> None:
    path = tmp_path / "od\nd.jsonl"
    path.write_text("{")
    assert "od\\nd.jsonl:1" in complaint(path)


def test_a_file_name_that_is_no_text_cannot_be_an_id(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt"))
    try:
        path.write_text("x")
    except OSError:
        pytest.skip("this file system holds only names that are UTF-8")
    assert "half of a character pair" in complaint(path)


def test_a_pdf_that_is_none_is_locked_or_holds_pictures_only(tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf", reason="PDF needs ringtrue[pdf]")
    path = tmp_path / "a.pdf"
    for content in (b"%PDF-1.4\nnothing", b"no PDF at all", b"%PDF-1.4\n1 0 obj\n<<\nstartxref\n9\n%%EOF"):
        path.write_bytes(content)
        assert "cannot be read as PDF" in complaint(path)
    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    made = io.BytesIO()
    writer.write(made)
    path.write_bytes(made.getvalue())
    assert "there is no text in the PDF (are its pages pictures?); run text recognition on it first" in complaint(path)
    writer.encrypt("secret", algorithm="RC4-128")
    made = io.BytesIO()
    writer.write(made)
    path.write_bytes(made.getvalue())
    assert complaint(path) == f"{path}: the PDF asks for a password; save it without one"


@pytest.mark.parametrize(
    "piece", ["<", "<!--", "<![", "</", "<a", "&", "<p>", "<script>", "<![if x]>", "<!DOCTYPE", "<?", "<a b='"]
)
def test_a_heap_of_html_marks_is_read_or_refused_in_time(piece: str, tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text(f"<p>words {piece * (20_000 // len(piece))}")
    started = time.process_time()
    read, refused = outcome(path)
    assert read[:1] == ["words"] or refused.startswith(f"{path}:1: not readable HTML")
    assert time.process_time() - started < 10


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    content=st.one_of(
        st.binary(max_size=60),
        st.lists(
            st.sampled_from(
                [
                    "{",
                    "}",
                    "[",
                    "]",
                    '"',
                    "\n",
                    ",",
                    ":",
                    "id",
                    "text",
                    '"id": 1',
                    '"text": "a"',
                    "---\n",
                    "# ",
                    "<p>",
                    "<![",
                    "a: b",
                    "\t",
                    "\r",
                ]
            ),
            max_size=25,
        ).map(lambda parts: "".join(parts).encode()),
    ),
    ending=st.sampled_from(["json", "jsonl", "csv", "tsv", "md", "txt", "html", "jsonl.gz"]),
)
def test_whatever_a_file_holds_it_is_documents_or_one_line(content: bytes, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{ending}"
    path.write_bytes(content)
    read, refused = outcome(path)
    assert bool(read) != bool(refused)
    assert not refused or (refused.isprintable() and refused.startswith(str(path)))
