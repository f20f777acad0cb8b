"""CSV, TSV, BEIR and Parquet: column names of many tools, quoting, encodings, types."""

from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import pytest

from ringtrue.errors import InputError
from ringtrue.formats import DOCUMENT, GRADE, QUERY, RANK, SCORE, read_qrels, read_run


def made(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def parquet(path: Path, query: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    duckdb.connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


@pytest.mark.parametrize("query", QUERY)
@pytest.mark.parametrize("document", DOCUMENT)
def test_every_spelling_of_query_and_document_is_understood(query: str, document: str, tmp_path: Path) -> None:
    path = made(tmp_path / "j.csv", f"{query},{document},grade\nq1,d1,2\n")
    assert read_qrels(path).to_dict() == {"q1": {"d1": 2}}


@pytest.mark.parametrize("name", GRADE)
def test_every_spelling_of_the_grade_is_understood(name: str, tmp_path: Path) -> None:
    assert read_qrels(made(tmp_path / "j.csv", f"{name},qid,docid\n3,q1,d1\n")).to_dict() == {"q1": {"d1": 3}}


@pytest.mark.parametrize("name", SCORE)
def test_every_spelling_of_the_score_is_understood(name: str, tmp_path: Path) -> None:
    assert read_run(made(tmp_path / "r.csv", f"qid,docid,{name}\nq1,d1,3.5\n")).to_dict() == {"q1": {"d1": 3.5}}


@pytest.mark.parametrize("name", RANK)
def test_ranks_without_scores_give_the_order(name: str, tmp_path: Path) -> None:
    path = made(tmp_path / "r.csv", f"qid,docid,{name}\nq1,b,2\nq2,x,1\nq1,a,10\nq1,c,1\n")
    run = read_run(path)
    assert run.ordered
    assert run.rankings() == {"q1": ["c", "b", "a"], "q2": ["x"]}


def test_grade_is_preferred_to_score_in_judgments_and_score_to_rank_in_runs(tmp_path: Path) -> None:
    path = made(tmp_path / "both.csv", "qid,docid,score,grade,rank\nq1,a,0.5,1,1\nq1,b,0.9,0,2\n")
    assert read_qrels(path).to_dict() == {"q1": {"a": 1, "b": 0}}
    run = read_run(path)
    assert run.rankings() == {"q1": ["b", "a"]}
    assert not run.ordered


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\n\n"])
@pytest.mark.parametrize("last", [True, False])
def test_csv_with_every_separator_line_end_and_start(
    separator: str, line_end: str, start: str, last: bool, tmp_path: Path
) -> None:
    rows = [("query_id", "doc_id", "grade", "note"), ("q1", "d1", "2", ""), ("q1", "d2", "0", "x"), ("q2", "d1", "1", "y z")]
    text = start + line_end.join(separator.join(row) for row in rows) + (line_end if last else "")
    assert read_qrels(made(tmp_path / "j.csv", text)).to_dict() == {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}}


def test_csv_quotes_hold_separators_quotes_and_line_breaks(tmp_path: Path) -> None:
    path = made(tmp_path / "j.csv", 'query_id,doc_id,grade\n"a,b","say ""hi""",1\n"two\nlines",d\'s,2\n')
    assert read_qrels(path).to_dict() == {"a,b": {'say "hi"': 1}, "two\nlines": {"d's": 2}}


def test_csv_line_numbers_count_lines_inside_quotes(tmp_path: Path) -> None:
    path = made(tmp_path / "j.csv", 'query_id,doc_id,grade\n"two\nlines",d1,1\n\nq2,d1,x\n')
    with pytest.raises(InputError, match=r"j\.csv:5: field 'grade': 'x'"):
        read_qrels(path)


def test_csv_blank_lines_and_blanks_around_names_and_numbers(tmp_path: Path) -> None:
    path = made(tmp_path / "j.csv", "query_id , doc_id,grade \n\nq1,d1, 2 \n\n")
    assert read_qrels(path).to_dict() == {"q1": {"d1": 2}}


def test_whole_numbers_written_as_decimals_are_grades(tmp_path: Path) -> None:
    path = made(tmp_path / "j.csv", "query_id,doc_id,grade\nq1,a,2.0\nq1,b,-1.\nq1,c,+3\nq1,d,123456789012345678\n")
    assert read_qrels(path).to_dict() == {"q1": {"a": 2, "b": -1, "c": 3, "d": 123456789012345678}}


def test_csv_gz_reads_like_csv(tmp_path: Path) -> None:
    path = made(tmp_path / "r.csv.gz", gzip.compress(b"qid,docid,score\nq1,d1,3.5\n"))
    assert read_run(path).to_dict() == {"q1": {"d1": 3.5}}


def test_judgment_given_twice_alike_is_counted_in_a_table(tmp_path: Path) -> None:
    qrels = read_qrels(made(tmp_path / "j.csv", "qid,docid,grade\nq1,d1,1\nq1,d1,1\n"))
    assert qrels.repeated == 1
    assert len(qrels) == 1


def test_repeated_documents_of_a_table_stay_in_the_run(tmp_path: Path) -> None:
    assert len(read_run(made(tmp_path / "r.csv", "qid,docid,score\nq1,d1,2\nq1,d1,1\n"))) == 2
    assert len(read_run(made(tmp_path / "s.csv", "qid,docid,rank\nq1,d1,2\nq1,d1,1\n"))) == 2


def test_tsv_knows_no_quotes(tmp_path: Path) -> None:
    path = made(tmp_path / "r.tsv", 'query_id\tdoc_id\tscore\n"q1\td,1"\t2\n')
    assert read_run(path).to_dict() == {'"q1': {'d,1"': 2.0}}


def test_beir_folder_means_its_test_split(tmp_path: Path) -> None:
    made(tmp_path / "set" / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    made(tmp_path / "set" / "qrels" / "train.tsv", "query-id\tcorpus-id\tscore\nq2\td2\t1\n")
    assert read_qrels(tmp_path / "set").to_dict() == {"q1": {"d1": 1}}
    assert read_qrels(str(tmp_path / "set" / "qrels" / "train.tsv")).to_dict() == {"q2": {"d2": 1}}


def test_parquet_types_that_hold_ids_and_numbers(tmp_path: Path) -> None:
    path = parquet(
        tmp_path / "r.parquet",
        "SELECT 7::BIGINT AS query_id, 'd1' AS doc_id, 1.25::DECIMAL(9, 4) AS score UNION ALL SELECT 8, 'd2', 2.5",
    )
    assert read_run(path).to_dict() == {"7": {"d1": 1.25}, "8": {"d2": 2.5}}
    path = parquet(tmp_path / "s.parquet", "SELECT 'q' AS qid, 12::INT AS docno, 0.5::FLOAT AS sim")
    assert read_run(path).to_dict() == {"q": {"12": 0.5}}
    path = parquet(tmp_path / "j.parquet", "SELECT 'q' AS qid, 'd' AS docno, 2::DECIMAL(4, 1) AS rel UNION SELECT 'q', 'e', 1")
    assert read_qrels(path).to_dict() == {"q": {"d": 2, "e": 1}}
    path = parquet(tmp_path / "k.parquet", "SELECT 'q' AS qid, 'd' AS docno, 3::TINYINT AS label")
    assert read_qrels(path).to_dict() == {"q": {"d": 3}}


def test_parquet_rows_keep_their_order(tmp_path: Path) -> None:
    path = parquet(
        tmp_path / "r.parquet", "SELECT 'q' || (i // 7) AS qid, 'd' || i AS docid, 1 AS score FROM range(30000) t(i)"
    )
    run = read_run(path)
    assert run.query_ids == tuple(f"q{i}" for i in range(30000 // 7 + 1))
    assert run.docs.take(run.query[:0]) == []
    assert list(run.docs.ids) == [f"d{i}" for i in range(30000)]  # type: ignore[attr-defined]


def test_parquet_file_name_is_no_pattern(tmp_path: Path) -> None:
    parquet(tmp_path / "run1.parquet", "SELECT 'wrong' AS query_id, 'd' AS doc_id, 1 AS score")
    path = tmp_path / "run[1].parquet"
    path.write_bytes(parquet(tmp_path / "other.parquet", "SELECT 'q' AS query_id, 'd' AS doc_id, 2 AS score").read_bytes())
    assert read_run(path).to_dict() == {"q": {"d": 2.0}}
    star = tmp_path / "*.parquet"
    star.write_bytes(path.read_bytes())
    assert read_run(star).to_dict() == {"q": {"d": 2.0}}


def test_a_folder_called_like_a_column_does_not_replace_it(tmp_path: Path) -> None:
    path = parquet(tmp_path / "score=3" / "r.parquet", "SELECT 'q' AS query_id, 'd' AS doc_id, 0.5 AS score")
    assert read_run(path).to_dict() == {"q": {"d": 0.5}}


def test_run_is_called_like_its_file(tmp_path: Path) -> None:
    assert read_run(made(tmp_path / "bm25.tuned.csv", "qid,docid,score\nq1,d1,1\n")).name == "bm25"
