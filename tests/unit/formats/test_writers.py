"""Writers: what they write, and what they refuse because the format cannot hold it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from ringtrue.errors import InputError
from ringtrue.formats import KINDS, read_qrels, read_run, write_qrels, write_run, write_whole
from ringtrue.records import Hit, Qrels, Ranking, Run

QRELS = Qrels.from_dict({"q1": {"a": 2, "b": 0}, "q2": {"c": -1}})
RUN = Run.from_dict({"q1": {"a": 0.5, "b": 2.0}, "q2": {"c": 0.1}}, name="bm25")
ORDERED = Run.from_rankings({"q1": ["b", "c", "a"], "q2": ["z"]}, name="live")


def text(path: Path) -> str:
    return path.read_bytes().decode()


def test_judgments_as_text_formats(tmp_path: Path) -> None:
    expected = {
        "j.qrels": "q1 0 a 2\nq1 0 b 0\nq2 0 c -1\n",
        "j.csv": "query_id,doc_id,grade\nq1,a,2\nq1,b,0\nq2,c,-1\n",
        "j.tsv": "query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tb\t0\nq2\tc\t-1\n",
        "j.jsonl": '{"query_id": "q1", "doc_id": "a", "grade": 2}\n{"query_id": "q1", "doc_id": "b", "grade": 0}\n'
        '{"query_id": "q2", "doc_id": "c", "grade": -1}\n',
        "j.yaml": "q1:\n  a: 2\n  b: 0\nq2:\n  c: -1\n",
    }
    for name, wanted in expected.items():
        write_qrels(QRELS, tmp_path / name)
        assert text(tmp_path / name) == wanted, name
    write_qrels(QRELS, str(tmp_path / "j.json"))
    assert json.loads(text(tmp_path / "j.json")) == QRELS.to_dict()


def test_runs_as_text_formats_best_first(tmp_path: Path) -> None:
    expected = {
        "r.run": "q1 Q0 b 1 2.0 bm25\nq1 Q0 a 2 0.5 bm25\nq2 Q0 c 1 0.1 bm25\n",
        "r.csv": "query_id,doc_id,score\nq1,b,2.0\nq1,a,0.5\nq2,c,0.1\n",
        "r.tsv": "query_id\tdoc_id\tscore\nq1\tb\t2.0\nq1\ta\t0.5\nq2\tc\t0.1\n",
        "r.yml": "q1:\n  b: 2.0\n  a: 0.5\nq2:\n  c: 0.1\n",
    }
    for name, wanted in expected.items():
        write_run(RUN, tmp_path / name)
        assert text(tmp_path / name) == wanted, name


def test_ordered_runs_write_their_order(tmp_path: Path) -> None:
    expected = {
        "r.run": "q1 Q0 b 1 -1.0 live\nq1 Q0 c 2 -2.0 live\nq1 Q0 a 3 -3.0 live\nq2 Q0 z 1 -1.0 live\n",
        "r.csv": "query_id,doc_id,rank\nq1,b,1\nq1,c,2\nq1,a,3\nq2,z,1\n",
        "r.yaml": "q1:\n- b\n- c\n- a\nq2:\n- z\n",
    }
    for name, wanted in expected.items():
        write_run(ORDERED, tmp_path / name)
        assert text(tmp_path / name) == wanted, name
        assert read_run(tmp_path / name).rankings() == ORDERED.rankings(), name


def test_ordered_run_with_contrary_scores_keeps_its_order_in_every_format(tmp_path: Path) -> None:
    run = Run.from_rankings([Ranking("q", (Hit("low", 0.1), Hit("high", 0.9), Hit("same", 0.9)))])
    for kind in KINDS:
        write_run(run, tmp_path / f"r.{kind}", kind=kind)
        assert read_run(tmp_path / f"r.{kind}", kind=kind).rankings() == {"q": ["low", "high", "same"]}, kind


@pytest.mark.parametrize("kind", KINDS)
def test_said_kind_is_written(kind: str, tmp_path: Path) -> None:
    write_qrels(QRELS, tmp_path / "out.txt", kind=kind)
    assert read_qrels(tmp_path / "out.txt", kind=kind).to_dict() == QRELS.to_dict()
    write_run(RUN, tmp_path / "run.txt", kind=kind)
    assert read_run(tmp_path / "run.txt", kind=kind).to_dict() == RUN.to_dict()


@pytest.mark.parametrize("ending", ["qrels", "csv", "tsv", "json", "jsonl", "yaml"])
def test_gz_ending_is_compressed_and_in_the_format_before_it(ending: str, tmp_path: Path) -> None:
    plain, packed = tmp_path / f"j.{ending}", tmp_path / f"j.{ending}.gz"
    write_qrels(QRELS, plain)
    write_qrels(QRELS, packed)
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert read_qrels(packed).to_dict() == QRELS.to_dict()
    again = tmp_path / f"again.{ending}.gz"
    write_qrels(QRELS, again)
    assert again.read_bytes() == packed.read_bytes(), "the same judgments are the same bytes"


def test_parquet_is_not_packed_twice(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"j\.parquet\.gz: Parquet is compressed in itself; name the file without \.gz"):
        write_qrels(QRELS, tmp_path / "j.parquet.gz")


@pytest.mark.parametrize("kind", ["json", "yaml", "jsonl"])
def test_empty_answers_and_unjudged_queries_are_written_where_the_format_can_say_it(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{kind}"
    for run in (Run.from_dict({"q1": {"a": 1.0}, "q2": {}}), Run.from_rankings({"q1": ["a"], "q2": []})):
        write_run(run, path)
        assert read_run(path).rankings() == {"q1": ["a"], "q2": []}
    qrels = Qrels.from_dict({"q1": {"a": 1}, "q2": {}})
    write_qrels(qrels, path)
    assert read_qrels(path).to_dict() == qrels.to_dict()


@pytest.mark.parametrize("kind", ["trec", "csv", "tsv", "parquet"])
def test_empty_answers_and_unjudged_queries_are_refused_elsewhere(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{kind}"
    with pytest.raises(InputError, match=r"query 'q2' has no document.*write JSON, JSON lines or YAML"):
        write_run(Run.from_dict({"q1": {"a": 1.0}, "q2": {}}), path, kind=kind)
    with pytest.raises(InputError, match=r"query 'q2' has no document.*write JSON, JSON lines or YAML"):
        write_qrels(Qrels.from_dict({"q1": {"a": 1}, "q2": {}}), path, kind=kind)
    assert not path.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_repeated_documents_are_written_or_refused_but_not_dropped(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"r.{kind}"
    ordered = Run.from_rankings({"q1": ["a", "b", "a"]})
    write_run(ordered, path, kind=kind)
    assert [doc for _, doc, _ in read_run(path, kind=kind)] == ["a", "b", "a"]
    scored = Run.of([("q1", "a", 3.0), ("q1", "b", 2.0), ("q1", "a", 1.0)])
    if kind in ("json", "yaml"):
        with pytest.raises(InputError, match=r"document 'a' stands twice in the answer to query 'q1'.*write JSON lines, CSV"):
            write_run(scored, path, kind=kind)
    else:
        write_run(scored, path, kind=kind)
        assert list(read_run(path, kind=kind)) == list(scored)


@pytest.mark.parametrize(
    ("kind", "odd"),
    [
        *(("trec", text) for text in ("two words", "tab\t", "line\n", "carriage\r", "#1", "nul\0", "\ufeffq", "form\f")),
        *(("tsv", text) for text in ("tab\t", "line\n", "carriage\r", "nul\0")),
        ("csv", "nul\0"),
    ],
)
def test_ids_that_a_format_cannot_hold_are_refused_with_what_to_use(kind: str, odd: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    for write, value in (
        (write_qrels, Qrels.of([(odd, "d", 1)])),
        (write_qrels, Qrels.of([("q", odd, 1)])),
        (write_run, Run.of([(odd, "d", 1.0)])),
        (write_run, Run.of([("q", odd, 1.0)])),
    ):
        with pytest.raises(InputError, match="JSON or Parquet") as caught:
            write(value, path, kind=kind)  # type: ignore[operator]
        assert len(str(caught.value).splitlines()) == 1
        assert not path.exists()


def test_run_name_with_a_blank_is_refused_in_trec(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'my run' cannot stand in a TREC file"):
        write_run(Run.of([("q", "d", 1.0)], name="my run"), tmp_path / "r.run")


@pytest.mark.parametrize("kind", KINDS)
def test_trap_33_half_characters_are_refused_by_every_writer(kind: str, tmp_path: Path) -> None:
    for query_id, doc_id in (("\ud83d", "d"), ("q", "x\udc80")):
        with pytest.raises(InputError) as caught:
            write_qrels(Qrels.of([(query_id, doc_id, 1)]), tmp_path / "x", kind=kind)
        assert str(tmp_path / "x") in str(caught.value)
        str(caught.value).encode()


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_is_not_there_is_named(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "x"
    with pytest.raises(InputError, match="cannot be written") as caught:
        write_qrels(QRELS, path, kind=kind)
    assert str(path) in str(caught.value)
    assert "folder" in str(caught.value)


def test_csv_with_a_carriage_return_in_an_id(tmp_path: Path) -> None:
    qrels = Qrels.of([("q\r1", "d\r\n", 1), ("q2", 'say "x", y', 0)])
    write_qrels(qrels, tmp_path / "j.csv")
    assert list(read_qrels(tmp_path / "j.csv")) == list(qrels)


def test_tsv_holds_quotes(tmp_path: Path) -> None:
    qrels = Qrels.of([('"q"', "d'", 1), ("two words", '"', 0)])
    write_qrels(qrels, tmp_path / "j.tsv")
    assert list(read_qrels(tmp_path / "j.tsv")) == list(qrels)


def test_parquet_path_with_a_quote(tmp_path: Path) -> None:
    path = tmp_path / "it's.parquet"
    write_run(RUN, path)
    assert read_run(path).to_dict() == RUN.to_dict()


def test_a_whole_file_replaces_the_old_one_and_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    file.write_text("old")
    file.chmod(0o640)
    write_whole("new", file)
    assert (file.read_text(), file.stat().st_mode & 0o777, list(tmp_path.iterdir())) == ("new", 0o640, [file])


def test_a_whole_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_whole("new", folder)
    with pytest.raises(InputError, match="cannot be written"):
        write_whole("new", tmp_path / "missing" / "file.txt")
    assert list(tmp_path.iterdir()) == [folder]
