"""TREC qrels and run files: what the strict reader accepts, and the order it gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringtrue.errors import InputError
from ringtrue.formats import read_qrels, read_run
from ringtrue.measures import score

JUDGMENTS = {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}}


@pytest.mark.parametrize(
    "content",
    [
        b"q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\n",
        b"q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1",
        b"q1\t0\td1\t2\nq1\t0\td2\t0\nq2\t0\td1\t1\n",
        b"q1   0 \t d1 \t\t 2\n  q1 0 d2 0  \n\tq2 0 d1 1\t\n",
        b"q1 0 d1 2\r\nq1 0 d2 0\r\nq2 0 d1 1\r\n",
        b"q1 0 d1 2\r\nq1 0 d2 0\nq2 0 d1 1",
        b"# judged by two people\nq1 0 d1 2\n\n  # and one more\nq1 0 d2 0\n \t\nq2 0 d1 1\n\n",
        b"\xef\xbb\xbfq1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\n",
        b"q1 Q0 d1 +2\nq1 anything d2 -0\nq2 7 d1 001\n",
        b"q1 0 d1 2\nq2 0 d1 1\nq1 0 d2 0\n",
    ],
    ids=[
        "plain",
        "no-last-line-feed",
        "tabs",
        "many-blanks",
        "crlf",
        "mixed-line-ends",
        "comments",
        "bom",
        "signs",
        "interleaved",
    ],
)
def test_qrels_as_people_write_them(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "j.qrels"
    path.write_bytes(content)
    assert read_qrels(path).to_dict() == JUDGMENTS


@pytest.mark.parametrize(
    "content",
    [
        b"q1 Q0 b 1 2.5 bm25\nq1 Q0 a 2 1 bm25\nq2 Q0 c 1 -3e-2 bm25\n",
        b"q1 Q0 b 1 2.5 bm25\nq1 Q0 a 2 1 bm25\nq2 Q0 c 1 -3e-2 bm25",
        b"q1\tQ0\tb\t1\t2.5\tbm25\nq1\tQ0\ta\t2\t1\tbm25\nq2\tQ0\tc\t1\t-3e-2\tbm25\n",
        b"q1  Q0 b  1\t  2.5 bm25\n q1 Q0 a 2 1 bm25 \nq2 Q0 c 1 -3e-2 bm25\n",
        b"q1 Q0 b 1 2.5 bm25\r\nq1 Q0 a 2 1 bm25\r\nq2 Q0 c 1 -3e-2 bm25\r\n",
        b"# made on Monday\nq1 Q0 b 1 2.5 bm25\n\nq1 Q0 a 2 1 bm25\nq2 Q0 c 1 -3e-2 bm25\n#",
        b"\xef\xbb\xbfq1 Q0 b 1 2.5 bm25\nq1 Q0 a 2 1 bm25\nq2 Q0 c 1 -3e-2 bm25\n",
        b"q1 0 b first 2.50 bm25\nq1 1 a ? 1. bm25\nq2 x c - -.03 bm25\n",
        b"q1 Q0 a 2 1 bm25\nq2 Q0 c 1 -0.03 bm25\nq1 Q0 b 1 2.5 bm25\n",
    ],
    ids=["plain", "no-last-line-feed", "tabs", "many-blanks", "crlf", "comments", "bom", "ranks-are-ignored", "interleaved"],
)
def test_runs_as_people_write_them(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "r.run"
    path.write_bytes(content)
    run = read_run(path)
    assert run.to_dict() == {"q1": {"b": 2.5, "a": 1.0}, "q2": {"c": -0.03}}
    assert run.name == "bm25"
    assert not run.ordered


def test_run_file_is_ordered_by_score_then_document_id_descending(tmp_path: Path) -> None:
    path = tmp_path / "r.run"
    path.write_text("q Q0 a 1 1 t\nq Q0 c 2 1 t\nq Q0 b 3 1 t\nq Q0 z 4 0 t\nq Q0 y 9 2 t\n")
    assert read_run(path).rankings() == {"q": ["y", "c", "b", "a", "z"]}


def test_repeated_document_is_kept_by_the_reader_and_counted_by_the_score(tmp_path: Path) -> None:
    path = tmp_path / "r.run"
    path.write_text("q Q0 a 1 3 t\nq Q0 a 2 2 t\nq Q0 b 3 1 t\n")
    run = read_run(path)
    assert len(run) == 3
    scores = score(run, {"q": {"a": 1, "b": 1}}, ["AP"])
    assert scores.counted.duplicates == 1
    assert scores["AP"] == 1.0


def test_judgment_given_twice_alike_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "j.qrels"
    path.write_text("q 0 a 1\nq 0 a 1\nq 0 b 0\nq 0 a 1\n")
    qrels = read_qrels(path)
    assert qrels.repeated == 2
    assert qrels.to_dict() == {"q": {"a": 1, "b": 0}}


def test_negative_grade_means_pooled_but_not_judged(tmp_path: Path) -> None:
    path = tmp_path / "j.qrels"
    path.write_text("q 0 a -1\nq 0 b -2\n")
    assert read_qrels(path).to_dict() == {"q": {"a": -1, "b": -2}}


def test_fields_after_the_tag_are_ignored_as_in_trec_eval(tmp_path: Path) -> None:
    path = tmp_path / "r.run"
    path.write_text("301\tQ0\tFT1\t99\t  2.13\tSTANDARD more junk at\n301 Q0 FT2 1 2.14 STANDARD\n")
    run = read_run(path)
    assert run.to_dict() == {"301": {"FT2": 2.14, "FT1": 2.13}}
    assert run.name == "STANDARD"


def test_ids_keep_every_character_but_ascii_blanks(tmp_path: Path) -> None:
    odd = [
        '"quoted"',
        "it's",
        "a,b;c|d",
        "x#1",
        "é",
        "e\u0301",
        "日本",
        "🙂",
        "no\u00a0break",
        "C:\\path",
        "{json}",
        "NULL",
        "-",
    ]
    path = tmp_path / "odd.qrels"
    path.write_text("".join(f"q{doc} 0 {doc} {n}\n" for n, doc in enumerate(odd)), encoding="utf-8")
    assert read_qrels(path).to_dict() == {f"q{doc}": {doc: n} for n, doc in enumerate(odd)}


def test_hash_inside_a_line_is_no_comment(tmp_path: Path) -> None:
    path = tmp_path / "r.run"
    path.write_text("q#1 Q0 d#1 1 0.5 t#1\n")
    run = read_run(path)
    assert run.to_dict() == {"q#1": {"d#1": 0.5}}
    assert run.name == "t#1"


def test_scores_are_read_to_the_last_bit(tmp_path: Path) -> None:
    written = [
        "0.1",
        "1e-320",
        "1.7976931348623157e308",
        "123456789012345678901234567890",
        "-0.0",
        "4.35",
        "2.2250738585072011e-308",
    ]
    path = tmp_path / "r.run"
    path.write_text("".join(f"q Q0 d{n} {n} {text} t\n" for n, text in enumerate(written)))
    read = read_run(path).to_dict()["q"]
    assert [read[f"d{n}"].hex() for n in range(len(written))] == [float(text).hex() for text in written]


def test_the_largest_grade_that_fits(tmp_path: Path) -> None:
    path = tmp_path / "j.qrels"
    path.write_text(f"q 0 a {'9' * 18}\n")
    assert read_qrels(path).to_dict() == {"q": {"a": 10**18 - 1}}
    path.write_text(f"q 0 a 1{'0' * 18}\n")
    with pytest.raises(InputError, match="18 digits"):
        read_qrels(path)
