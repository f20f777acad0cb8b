"""Documents are read from files and folders of every format, streamed, with ids, titles, tags and metadata."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import InputError, MissingInput
from ringtrue.extras import install_command
from ringtrue.records import Document
from ringtrue.retrieve.sources import Skipped, find, kind_of, read_documents


@pytest.fixture(autouse=True)
def _current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # files are called by their path from there


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path: Path, **options: Any) -> list[Document]:
    return list(read_documents([path], **options))


def pdf(text: str = "", title: str = "") -> bytes:
    """Return a PDF with one page of text, written by hand so that no other library is needed."""
    pypdf = pytest.importorskip("pypdf", reason="PDF needs ringtrue[pdf]")
    stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode()
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out = b"%PDF-1.4\n"
    offsets = []
    for number, part in enumerate(parts, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    start = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(out))
    if title:
        writer.add_metadata({"/Title": title})
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


def test_beir_corpus_lines(tmp_path: Path) -> None:
    lines = [
        {"_id": "d1", "title": "Breakfast", "text": "Served at seven.", "metadata": {"stars": 4}},
        {"_id": 2, "title": "", "text": ""},
    ]
    path = write(tmp_path / "corpus.jsonl", "\n".join(map(json.dumps, lines)) + "\n\n")
    assert read(path) == [Document("d1", "Served at seven.", "Breakfast", {"stars": 4}), Document("2", "")]


@pytest.mark.parametrize("id_name", ["_id", "id", "doc_id", "docid", "ID"])
@pytest.mark.parametrize("text_name", ["text", "content", "contents", "body", "Text"])
def test_usual_field_names_are_guessed(id_name: str, text_name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", json.dumps({id_name: "x", text_name: "words", "Title": "T", "stars": 3}))
    assert read(path) == [Document("x", "words", "T", {"stars": 3})]


def test_named_fields_come_before_the_guessed_ones_which_become_metadata(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"id": 1, "key": "k", "text": "t", "note": "n", "name": "N", "title": "T"}')
    assert read(path, id_field="key", text_field="note", title_field="name") == [
        Document("k", "n", "N", {"id": 1, "text": "t", "title": "T"})
    ]


def test_tags_and_flat_and_nested_metadata_are_kept(tmp_path: Path) -> None:
    record = {"id": "1", "text": "t", "tags": ["a", "b"], "price": {"eur": [1, 2.5]}, "metadata": {"city": "Ulm"}}
    (document,) = read(write(tmp_path / "a.jsonl", json.dumps(record)))
    assert document.tags == ("a", "b")
    assert document.metadata == {"price": {"eur": [1, 2.5]}, "city": "Ulm"}


@pytest.mark.parametrize(
    "content",
    [
        '[{"id": 1, "text": "a"}, {"id": 2, "text": "b"}]',
        '{"documents": [{"id": 1, "text": "a"},\n {"id": 2, "text": "b"}], "version": 3}',
        '\n{"id": 1, "text": "a"}\n\n{"id": 2, "text": "b"}\n',
        '[\n  {\n    "id": 1, "text": "a"\n  },\n  {"id": 2, "text": "b"}\n]\n',
    ],
    ids=["list", "wrapped", "lines", "indented"],
)
def test_json_lists_wrapped_lists_and_lines(content: str, tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.json", content)) == [Document("1", "a"), Document("2", "b")]


def test_json_object_by_itself_is_called_by_its_id_else_by_its_file(tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.json", '{\n  "text": "one"\n}')
    write(tmp_path / "in" / "b.json", '{"id": "own", "text": "two"}')
    assert read(tmp_path) == [Document("in/a.json", "one"), Document("own", "two")]


def test_csv_and_tsv(tmp_path: Path) -> None:
    csv = '\ufeff\n"ID",Title,text,stars,\n1,"Bread, eggs","line one\nline ""two""",4,\n\n2,,plain,,x\n'
    assert read(write(tmp_path / "a.csv", csv)) == [
        Document("1", 'line one\nline "two"', "Bread, eggs", {"stars": "4"}),
        Document("2", "plain", "", {"column 5": "x"}),
    ]
    assert read(write(tmp_path / "b.csv", "id;text\r\n1;a, b\r\n")) == [Document("1", "a, b")]
    assert read(write(tmp_path / "c.tsv", 'id\ttext\n1\tsay "no", he said\n')) == [Document("1", 'say "no", he said')]
    (document,) = read(write(tmp_path / "d.csv", 'id,text,tags,metadata\n1,a,"x, y","{""n"": 1}"\n'))
    assert (document.tags, document.metadata) == (("x", "y"), {"n": 1})


def test_csv_cells_longer_than_the_module_allows(tmp_path: Path) -> None:
    long = "word " * 100_000
    assert read(write(tmp_path / "a.csv", f"id,text\n1,{long}\n"))[0].text == long


def test_markdown_front_matter(tmp_path: Path) -> None:
    content = (
        "---\ntitle: Breakfast\ntags: [food, morning]\ndate: 2024-01-05\nopens: 12:30\ncode: 010\nstars: 4\nrate: 2.5\n"
        "open: true\ncountry: no\nnothing:\nnested: {a: [1, b]}\n---\n# Heading\n\nText.\n"
    )
    assert read(write(tmp_path / "in" / "a.md", content).parent.parent) == [
        Document(
            "in/a.md",
            "# Heading\n\nText.\n",
            "Breakfast",
            {
                "date": "2024-01-05", "opens": "12:30", "code": "010", "stars": 4, "rate": 2.5, "open": True, "country": "no",
                "nothing": None, "nested": {"a": [1, "b"]},
            },
            ("food", "morning"),
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("# First\n\ntext\n\n# Second", "First"),
        ("text\n\n## Closed ##\n", "Closed"),
        ("```\n# code\n```\n\nUnder\nlined\n===\n", "Under lined"),
        ("# C#\n", "C#"),
        ("no heading", ""),
        ("---\ntags: x\n---\n# Heading\n", "Heading"),
        ("---\ntitle: 2024\n---\n# Heading\n", "2024"),
        ("---\njust a text between rules\n---\n", "just a text between rules"),
        ("#", ""),
    ],
)
def test_markdown_title(content: str, title: str, tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.md", content))[0].title == title


def test_markdown_id_from_front_matter_when_asked_for(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "---\nslug: breakfast\n---\ntext")
    write(tmp_path / "b.md", "text")
    assert [document.doc_id for document in read(tmp_path, id_field="slug")] == ["breakfast", "b.md"]


def test_plain_text_with_any_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.txt", b"\xef\xbb\xbfone\r\ntwo\rthree")) == [Document("a.txt", "one\ntwo\nthree")]


def test_html_visible_text_a_line_a_block(tmp_path: Path) -> None:
    page = """<!DOCTYPE html><html><head><title>Hotel &amp;
    Spa</title><style>p { color: red }</style><script>if (1 < 2) { alert("<p>no</p>") }</script></head>
    <body><h1>Welcome</h1><p>Break<b>fast</b> is
    served.<br>Daily<p>Unclosed &eacute; <img src="x" alt="y"/> paragraph<ul><li>one<li>two</ul>
    <table><tr><td>a</td><td>b</td></tr></table><template><p>hidden</p></template><svg><title>icon</title></svg>
    <pre>first
second</pre><!-- comment --></body></html>"""
    assert read(write(tmp_path / "a.html", page)) == [
        Document(
            "a.html",
            "Welcome\nBreakfast is served.\nDaily\nUnclosed é\nparagraph\none\ntwo\na b\nfirst\nsecond",
            "Hotel & Spa",
        )
    ]


def test_html_without_a_title_is_called_by_its_first_heading(tmp_path: Path) -> None:
    page = "<h1>First <i>one</i></h1><h1>Second</h1><svg/><p>after"
    assert read(write(tmp_path / "a.htm", page)) == [Document("a.htm", "First one\nSecond\nafter", "First one")]


def test_pdf(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pdf", pdf("Breakfast at seven", "Hotel"))
    assert read(path) == [Document("a.pdf", "Breakfast at seven", "Hotel", {"pages": 1})]


def test_pdf_without_its_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.pdf", b"%PDF-1.4")
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(MissingInput, match=re.escape(f"a.pdf: pypdf is not installed; {install_command('pdf')}")):
        find([path])


def test_pdf_in_a_folder_without_its_library_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.pdf", b"%PDF-1.4")
    write(tmp_path / "b.txt", "text")
    monkeypatch.setitem(sys.modules, "pypdf", None)
    reported: list[Skipped] = []
    assert [document.doc_id for document in read_documents([tmp_path], skipped=reported.append)] == ["b.txt"]
    assert reported == [Skipped(tmp_path / "a.pdf", f"pypdf is not installed; {install_command('pdf')}", unreadable=True)]


def test_a_file_is_called_by_its_path_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/readme.md", "b/readme.md", "b/deep/readme.md"):
        write(tmp_path / name, name)

    def ids(*paths: str | Path) -> list[str]:
        return [document.doc_id for document in read_documents(paths)]

    everything = ["a/readme.md", "b/deep/readme.md", "b/readme.md"]
    assert ids("a", "b") == ids(".") == ids(tmp_path) == ids("b/../a", tmp_path / "b") == everything
    assert ids("a/readme.md") == ["a/readme.md"]
    monkeypatch.chdir(tmp_path / "a")
    assert ids(".", "../b/readme.md") == ["readme.md", (tmp_path / "b" / "readme.md").as_posix()]
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert ids("../link/readme.md") == ["readme.md"], "the same file, reached through a link to the current folder"


def test_files_of_a_folder_that_cannot_be_read_are_reported_and_the_others_read(tmp_path: Path) -> None:
    write(tmp_path / "binary.txt", b"\x89PNG\r\n\x1a\n\0\0")
    write(tmp_path / "latin.md", b"one\ncaf\xe9\n")
    write(tmp_path / "wide.jsonl", "{}".encode("utf-16"))
    write(tmp_path / "cut.csv.gz", gzip.compress(b"id,text\n1,a\n" * 99)[:-9])
    write(tmp_path / "front.md", "---\ntitle: a: b\n---\ntext")
    write(tmp_path / "package.json", '{"name": "x", "version": "1"}')
    write(tmp_path / "good.txt", "words")
    reported: list[Skipped] = []
    assert [document.doc_id for document in read_documents([tmp_path], skipped=reported.append)] == ["good.txt"]
    found = {one.path.name: (one.reason, one.unreadable) for one in reported}
    assert found.keys() == {"binary.txt", "latin.md", "wide.jsonl", "cut.csv.gz", "front.md", "package.json"}
    assert found["latin.md"] == ("line 2: byte 0xe9 at offset 7 is not UTF-8; save the file as UTF-8", True)
    assert found["binary.txt"][0] == "the file is binary (NUL at offset 8); give text saved as UTF-8"
    assert found["front.md"][0].startswith("line 2: not valid YAML")
    assert found["package.json"] == ("no field for the text among 'name', 'version'", False)


def test_records_of_a_folder_that_cannot_be_understood_are_an_error(tmp_path: Path) -> None:
    write(tmp_path / "good.txt", "words")
    for content, says in (
        (b'{"_id": "1", "text": "a"}\n{"_id": "2", "text": "caf\xe9"}\n', r"a\.jsonl:2: byte 0xe9"),
        (b'{"_id": "1", "text": }\n', r"a\.jsonl:1: not valid JSON"),
        (b'{"key": "1", "text": "a"}\n', r"a\.jsonl:1: no field for the id .* id_field / --id-field"),
    ):
        write(tmp_path / "a.jsonl", content)
        with pytest.raises(InputError, match=says):
            read(tmp_path)


def test_a_folder_of_which_nothing_can_be_read_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", b"\xff\xff")
    write(tmp_path / "b.txt", " ")
    with pytest.raises(InputError, match=r"no file could be read \(.*a\.txt: line 1: byte 0xff .*, and 1 more\); fix"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl.gz", '{"id": "x", "text": "t"}\n'),
        ("a.json.gz", '[{"id": "x", "text": "t"}]'),
        ("a.csv.gz", "id,text\nx,t\n"),
        ("x.md.gz", "t"),
        ("x.txt.GZ", "t"),
        ("x.html.gz", "<p>t"),
    ],
)
def test_gzipped_text_formats(name: str, content: str, tmp_path: Path) -> None:
    (document,) = read(write(tmp_path / name, gzip.compress(content.encode())))
    assert document == Document("x" if name.startswith("a") else name, "t")


def test_folders_are_read_in_the_order_of_names_and_nothing_is_left_out_in_silence(tmp_path: Path) -> None:
    for name in ("b/2.txt", "b/1.md", "a.txt", "c.txt", "b-1.txt"):
        write(tmp_path / name, name)
    for name in (".git/config.txt", ".hidden.txt", "photo.png", "README", "b/notes.docx"):
        write(tmp_path / name, "x")
    write(tmp_path / "empty.txt", "")
    write(tmp_path / "blank.txt", " \n\t\n")
    write(tmp_path / "page.html", "<script>only()</script>")
    (tmp_path / "circle").symlink_to(tmp_path)
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere.txt")
    (tmp_path / "same.txt").symlink_to(tmp_path / "c.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    reported: list[Skipped] = []
    found = [document.doc_id for document in read_documents([tmp_path], skipped=reported.append)]
    assert found == ["a.txt", "b/1.md", "b/2.txt", "b-1.txt", "c.txt"]
    assert {one.path.relative_to(tmp_path).as_posix(): one.reason for one in reported} == {
        ".git": "is hidden",
        ".hidden.txt": "is hidden",
        "README": "the name has no ending",
        "b/notes.docx": "the ending '.docx' is not known",
        "blank.txt": "the file is empty",
        "circle": "is a link to a folder",
        "empty.txt": "the file is empty",
        "gone.txt": "cannot be read (No such file or directory)",
        "page.html": "there is no visible text in it",
        "photo.png": "the ending '.png' is not known",
        "pipe.txt": "is not a regular file",
        "same.txt": f"is read as {tmp_path / 'c.txt'}",
    }
    assert str(reported[0]).startswith(str(tmp_path))


def test_several_paths_and_a_path_by_itself(tmp_path: Path) -> None:
    write(tmp_path / "one" / "a.txt", "a")
    write(tmp_path / "b.txt", "b")
    assert [d.doc_id for d in read_documents([tmp_path / "b.txt", str(tmp_path / "one")])] == ["b.txt", "one/a.txt"]
    assert [d.doc_id for d in read_documents(str(tmp_path / "b.txt"))] == ["b.txt"]


def test_a_file_that_is_given_and_lies_in_a_given_folder_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path / "in" / "a.txt", "a")
    source = find([path, tmp_path])
    assert [file.path for file in source.files] == [path]
    assert [str(one) for one in source.skipped] == [f"{path}: is read as {path}"]


def test_progress_tells_every_byte_on_disk_once(tmp_path: Path) -> None:
    line = json.dumps({"id": "%d", "text": "word " * 200})
    content = "\n".join(line.replace("%d", str(number)) for number in range(1000))
    write(tmp_path / "a.jsonl", content)
    write(tmp_path / "b.jsonl.gz", gzip.compress(content.replace('"id": "', '"id": "b').encode()))
    write(tmp_path / "c.txt", " ")
    source = find([tmp_path])
    steps: list[int] = []
    count = sum(1 for _ in source.documents(progress=steps.append))
    assert count == 2000
    assert source.size == sum(path.stat().st_size for path in tmp_path.iterdir()) == sum(steps)
    assert len(steps) > 5
    assert min(steps) > 0


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv"])
def test_a_large_file_of_records_is_never_held_in_memory(kind: str, tmp_path: Path) -> None:
    text = "lorem ipsum " * 1000
    with (tmp_path / f"large.{kind}").open("w") as file:
        if kind == "csv":
            file.write("id,text\n")
        for number in range(2000):
            file.write(f"{number},{text}\n" if kind == "csv" else json.dumps({"id": str(number), "text": text}) + "\n")
    assert (tmp_path / f"large.{kind}").stat().st_size > 20_000_000
    documents = read_documents([tmp_path])
    next(documents)
    tracemalloc.start()
    try:
        assert sum(1 for _ in documents) == 1999
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000


def test_text_that_no_index_can_hold_is_made_plain(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"id": "1", "title": "\\ud83d", "text": "half \\ud83d and \\u0000 nothing"}')
    assert read(path) == [Document("1", "half \ufffd and   nothing", "\ufffd")]


def test_null_title_tags_and_metadata_are_none_at_all(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"id": "1", "text": "t", "title": null, "tags": null, "metadata": null, "x": null}')
    assert read(path) == [Document("1", "t", "", {"x": None})]


def test_the_same_files_give_the_same_documents(tmp_path: Path) -> None:
    for number in range(20):
        write(tmp_path / str(number % 3) / f"{number}.md", f"---\nb: 1\na: 2\n---\n# {number}\n")
    assert read(tmp_path) == read(tmp_path)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.JSONL", "jsonl"),
        ("a.b.html", "html"),
        ("a.pdf.gz", None),
        ("a.gz", None),
        ("a", None),
        ("v1.2", None),
        (".md", None),
    ],
)
def test_the_ending_tells_the_format(name: str, kind: str | None) -> None:
    assert kind_of(Path(name)) == kind


def test_missing_paths_are_named_at_once_with_the_nearest(tmp_path: Path) -> None:
    write(tmp_path / "corpus.jsonl", "{}")
    with pytest.raises(MissingInput, match=r"corpsu\.jsonl: there is no such file or folder; did you mean 'corpus\.jsonl'\?"):
        read_documents([tmp_path / "corpsu.jsonl"])
    with pytest.raises(InputError, match="no file or folder of documents is given; name at least one"):
        read_documents([])
