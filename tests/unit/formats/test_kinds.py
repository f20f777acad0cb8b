"""Which format a file is in, by its ending, its first line, or because it was said."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from ringtrue.errors import InputError
from ringtrue.formats import KINDS, kind_of, kind_of_new, read_qrels, read_run


@pytest.mark.parametrize(
    ("name", "kind"),
    {
        "a.run": "trec", "a.qrels": "trec", "a.trec": "trec", "a.txt": "trec", "a": "trec", "run.bm25": "trec", "-": "trec",
        "a.csv": "csv", "A.CSV": "csv", "a.csv.gz": "csv", "a.parquet": "parquet", "a.json": "json", "a.json.GZ": "json",
        "a.jsonl": "jsonl", "a.ndjson": "jsonl", "a.yaml": "yaml", "a.yml": "yaml", "a.json.run": "trec", "v1.2/a": "trec",
        "qrels.test.gz": "trec",
    }.items(),
)  # fmt: skip
def test_kind_by_ending(name: str, kind: str) -> None:
    assert kind_of(Path(name)) == kind
    assert kind_of_new(Path(name)) == kind


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"query-id\tcorpus-id\tscore\nq1\td1\t1\n", "tsv"),
        (b"\xef\xbb\xbfquery-id\tcorpus-id\tscore\r\nq1\td1\t1\r\n", "tsv"),
        (b"docid\tqid\trelevance\nd1\tq1\t1\n", "tsv"),
        (b"q1\t0\td1\t1\n", "trec"),
        (b"# comment\nq1\t0\td1\t1\n", "trec"),
        (b"q1 0 d1 1\n", "trec"),
        ("q1\t0\td1\t1\n".encode("utf-16"), "trec"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_tsv_is_seen_from_its_first_line(content: bytes, kind: str, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / ("x.tsv.gz" if packed else "x.tsv")
    path.write_bytes(gzip.compress(content) if packed else content)
    assert kind_of(path) == kind
    assert kind_of_new(path) == "tsv"


def test_a_tab_separated_trec_file_may_be_called_tsv(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("q1\t0\td1\t1\n")
    assert read_qrels(path).to_dict() == {"q1": {"d1": 1}}
    path.write_text("q1\tQ0\td1\t1\t2.5\tt\n")
    assert read_run(path).to_dict() == {"q1": {"d1": 2.5}}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_that_is_said_wins_over_the_ending(kind: str) -> None:
    assert kind_of(Path("a.json"), kind) == kind
    assert kind_of_new(Path("a.json"), kind) == kind


def test_said_kind_is_used_by_the_readers(tmp_path: Path) -> None:
    path = tmp_path / "judgments.txt"
    path.write_text('{"q1": {"d1": 1}}')
    assert read_qrels(path, kind="json").to_dict() == {"q1": {"d1": 1}}
    assert read_run(path, kind="yaml").to_dict() == {"q1": {"d1": 1.0}}
    path.write_text("query_id,doc_id,grade\nq1,d1,1\n")
    assert read_qrels(path, kind="csv").to_dict() == {"q1": {"d1": 1}}


@pytest.mark.parametrize("function", [kind_of, kind_of_new])
def test_unknown_kind_names_the_nearest(function: Callable[[Path, str], str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no format 'jsonlines'; use 'jsonl'"):
        function(tmp_path / "x", "jsonlines")
