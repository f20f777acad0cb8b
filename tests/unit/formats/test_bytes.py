"""Where bytes come from: files, gzip, standard input; and how a complaint names the place."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ringtrue.errors import InputError
from ringtrue.formats import Place, decode, field_of, lines, one_line, read_bytes, read_qrels, read_run

QRELS = b"q1 0 d1 1\nq1 0 d2 0\n"
RUN = b"q1 Q0 d1 1 9.5 bm25\n"


class Stdin:
    """Standard input as a program sees it."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def feed(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", Stdin(content))

    return feed


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (None, QRELS),
        ("trec", QRELS),
        ("csv", b"query_id,doc_id,grade\nq1,d1,1\nq1,d2,0\n"),
        ("tsv", b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n"),
        ("json", b'{"q1": {"d1": 1, "d2": 0}}'),
        ("jsonl", b'{"qid": "q1", "docid": "d1", "rel": 1}\n{"qid": "q1", "docid": "d2", "rel": 0}\n'),
        ("yaml", b"q1:\n  d1: 1\n  d2: 0\n"),
    ],
)
def test_judgments_from_standard_input(kind: str | None, content: bytes, packed: bool, stdin: Callable[[bytes], None]) -> None:
    stdin(gzip.compress(content, mtime=0) if packed else content)
    assert read_qrels("-", kind=kind).to_dict() == {"q1": {"d1": 1, "d2": 0}}


@pytest.mark.parametrize("content", [RUN, gzip.compress(RUN, mtime=0)])
def test_run_from_standard_input(content: bytes, stdin: Callable[[bytes], None]) -> None:
    stdin(content)
    assert read_run("-").to_dict() == {"q1": {"d1": 9.5}}


@pytest.mark.parametrize(
    ("kind", "content", "named"),
    [
        (None, b"", "standard input: the file is empty"),
        (None, b"q1 0 d1 1\nq1 0 d2 x\n", "standard input:2: field 'grade': 'x'"),
        ("csv", b"query_id,doc_id,grade\nq1,d1,x\n", "standard input:2: field 'grade': 'x'"),
        ("json", b"{", "standard input:1: not valid JSON"),
        ("parquet", b"PAR1", "standard input: Parquet cannot be read from standard input; name the file"),
    ],
)
def test_complaints_about_standard_input_say_so(
    kind: str | None, content: bytes, named: str, stdin: Callable[[bytes], None]
) -> None:
    stdin(content)
    with pytest.raises(InputError) as caught:
        read_qrels("-", kind=kind)
    assert str(caught.value).startswith(named)


def test_gzip_is_seen_from_the_bytes_and_not_from_the_name(tmp_path: Path) -> None:
    for name, content in {
        "a.qrels.gz": QRELS,
        "b.qrels": gzip.compress(QRELS, mtime=0),
        "c.gz": gzip.compress(QRELS, mtime=0),
    }.items():
        (tmp_path / name).write_bytes(content)
        assert read_qrels(tmp_path / name).to_dict() == {"q1": {"d1": 1, "d2": 0}}, name


def test_gzip_of_several_members_is_read_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "parts.qrels.gz"
    path.write_bytes(gzip.compress(b"q1 0 d1 1\n", mtime=0) + gzip.compress(b"q1 0 d2 0\n", mtime=0))
    assert read_qrels(path).to_dict() == {"q1": {"d1": 1, "d2": 0}}


def test_gzip_followed_by_other_bytes_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "j.qrels.gz"
    path.write_bytes(gzip.compress(QRELS, mtime=0) + b"q2 0 d1 1\n")
    with pytest.raises(InputError, match="gzip data is damaged"):
        read_bytes(path)


def test_byte_order_mark_is_dropped_and_only_at_the_start() -> None:
    assert decode(b"\xef\xbb\xbfa\xef\xbb\xbf", "x") == "a\ufeff"


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes("a\u2028b\x0bc\x85d\r\ne\rf\n".encode())
    assert list(lines(path)) == [(1, "a\u2028b\x0bc\x85d"), (2, "e\rf"), (3, "")]


def test_place_is_written_as_file_line_and_field() -> None:
    place = Place("f.json")
    assert str(place) == "f.json"
    assert str(place.on(3)) == "f.json:3"
    assert str(place.on(3).at("a").at(0).at("b")) == "f.json:3: field 'a[0].b'"
    assert str(Place("-", 2)) == "standard input:2"


def test_complaint_is_one_line_whatever_the_value_holds() -> None:
    message = str(Place("f").error("'a\nb\r\t\x1b[31m\u2028\x85\ud800é🙂' is odd", "mend it"))
    assert message == "f: 'a\\nb\\r\\t\\x1b[31m\\u2028\\x85\\ud800é🙂' is odd; mend it"
    assert one_line("plain é") == "plain é"


def test_field_of_names_field_and_type() -> None:
    place = Place("f", 1)
    record = {"n": 1, "flag": True, "t": "x"}
    assert field_of(record, "n", int, place) == 1
    assert field_of(record, "absent", int, place, default=7) == 7
    with pytest.raises(InputError, match="f:1: the field 'absent' is missing; add it"):
        field_of(record, "absent", int, place)
    with pytest.raises(InputError, match="f:1: field 'flag': True is a truth value; write a whole number"):
        field_of(record, "flag", int, place)
    with pytest.raises(InputError, match="f:1: field 't': 'x' is a text; write a whole number or a number"):
        field_of(record, "t", (int, float), place)
