"""A table of broken judgments and run files, each with what the complaint about it has to name.

The bytes are made here, so that the corpus can be read and extended as text. Every entry has to end with exit code 2 and
one line that holds all of ``must_name``: the file, the line or field, the offending value and a word of the cure.
"""

from __future__ import annotations

import gzip
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb


@dataclass(frozen=True)
class BrokenInput:
    """One broken file."""

    name: str
    filename: str
    content: bytes
    reader: Literal["qrels", "run"]
    must_name: tuple[str, ...]


CASES: list[BrokenInput] = []


def _add(reader: Literal["qrels", "run"], name: str, filename: str, content: bytes | str, *must_name: str) -> None:
    data = content.encode() if isinstance(content, str) else content
    CASES.append(BrokenInput(f"{reader}-{name}", filename, data, reader, must_name))


def _qrels(name: str, filename: str, content: bytes | str, *must_name: str) -> None:
    _add("qrels", name, filename, content, *must_name)


def _run(name: str, filename: str, content: bytes | str, *must_name: str) -> None:
    _add("run", name, filename, content, *must_name)


def parquet(query: str) -> bytes:
    """Return the Parquet file that DuckDB makes of a query."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.parquet"
        duckdb.connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
        return path.read_bytes()


QREL = "q1 0 d1 1\n"
ANSWER = "q1 Q0 d1 1 9.5 bm25\n"
QCSV = "query_id,doc_id,grade\nq1,d1,1\n"
RCSV = "query_id,doc_id,score\nq1,d1,9.5\n"
QJSONL = '{"query_id": "q1", "doc_id": "d1", "grade": 1}\n'
RJSONL = '{"query_id": "q1", "doc_id": "d1", "score": 9.5}\n'

# Nothing in it.
for _kind, _file in {
    "trec": "j.qrels",
    "csv": "j.csv",
    "tsv": "j.tsv",
    "json": "j.json",
    "jsonl": "j.jsonl",
    "yaml": "j.yaml",
}.items():
    _qrels(f"{_kind}-0-bytes", _file, b"", _file, "empty", "write at least one")
for _kind, _file in {"trec": "r.run", "csv": "r.csv", "json": "r.json", "jsonl": "r.jsonl", "yaml": "r.yml"}.items():
    _run(f"{_kind}-0-bytes", _file, b"", _file, "empty", "write at least one")
_run("parquet-0-bytes", "r.parquet", b"", "r.parquet", "cannot be read", "write the file again")
_qrels("trec-only-blanks", "j.qrels", " \n\t\r\n\n", "j.qrels", "empty", "write at least one")
_qrels(
    "trec-only-comments", "j.qrels", "# nothing\n\n# here\n", "j.qrels", "only blank lines and comments", "write at least one"
)
_run("trec-only-comments", "r.run", "# nothing here\n", "r.run", "only blank lines and comments", "write at least one")
_qrels("gz-of-nothing", "j.qrels.gz", gzip.compress(b"", mtime=0), "j.qrels.gz", "empty", "write at least one")
_qrels("csv-only-header", "j.csv", "query_id,doc_id,grade\n", "j.csv", "no judgment", "write at least one row")
_qrels("tsv-only-header", "test.tsv", "query-id\tcorpus-id\tscore\n", "test.tsv", "no judgment", "write at least one row")
_run("csv-only-header", "r.csv", "query_id,doc_id,score\n", "r.csv", "no answer", "write at least one row")
_run("json-no-query", "r.json", "{}", "r.json", "no answer", "write at least one row")
_qrels("json-no-record", "j.json", "[]", "j.json", "no judgment", "write at least one row")
_qrels("yaml-only-comment", "j.yaml", "# nothing\n", "j.yaml", "None", "write {query: {document: number}}")
_qrels(
    "parquet-no-row", "j.parquet", parquet("SELECT 'q' AS query_id, 'd' AS doc_id, 1 AS grade LIMIT 0"),
    "j.parquet", "no judgment", "write at least one row",
)  # fmt: skip

# The wrong number of fields in a TREC line.
_qrels("trec-three-fields", "j.qrels", f"{QREL}q1 d2 1\n", "j.qrels:2", "3 fields", "q1 d2 1", "query iteration document grade")
_qrels("trec-one-field", "j.qrels", "q1\n", "j.qrels:1", "1 field ", "'q1'", "query iteration document grade")
_qrels("trec-five-fields", "j.qrels", f"{QREL}q1 0 my doc 1\n", "j.qrels:2", "5 fields", "q1 0 my doc 1", "document grade")
_qrels("trec-run-given", "j.qrels", ANSWER, "j.qrels:1", "6 fields", "q1 Q0 d1 1 9.5 bm25", "is this a run file?")
_qrels("trec-commas", "j.qrels", "q1,0,d1,1\n", "j.qrels:1", "1 field ", "q1,0,d1,1", "query iteration document grade")
_run("trec-five-fields", "r.run", f"{ANSWER}q1 Q0 d2 2 9.4\n", "r.run:2", "5 fields", "q1 Q0 d2 2 9.4", "rank score tag")
_run("trec-qrels-given", "r.run", QREL, "r.run:1", "4 fields", "q1 0 d1 1", "is this a judgments file?")
_run("trec-blank-in-query", "r.run", "q 1 Q0 d1 1 9.5 bm25\n", "r.run:1", "7 fields", "9.5", "ids without blanks")
_run("trec-blank-in-document", "r.run", f"{ANSWER}q1 Q0 d 2 2 9.4 bm25\n", "r.run:2", "7 fields", "9.4", "ids without blanks")
_run("trec-blank-between-tabs", "r.run", "q 1\tQ0\td1\t1\t9.5\tbm25\n", "r.run:1", "7 fields", "9.5", "ids without blanks")
_run("trec-empty-field", "r.run", "q1\tQ0\t\t1\t9.5\tbm25\n", "r.run:1", "5 fields", "q1 Q0 1 9.5 bm25", "rank score tag")
_qrels("trec-json-given", "j.qrels", '{"q1": {"d1": 1}}\n', "j.qrels:1", "3 fields", "{", "query iteration document grade")
_run("trec-old-mac-lines", "r.run", "q1 Q0 d1 1 9 t\rq1 Q0 d2 2 8 t\r", "r.run:1", "carriage return", "q1 Q0 d1", "line feed")
_qrels("trec-old-mac-lines", "j.qrels", "q1 0 d1 1\rq1 0 d2 0\r", "j.qrels:1", "carriage return", "q1 0 d1", "line feed")

# Grades that are not whole numbers.
for _name, _grade in {
    "text": "high", "fraction": "1.5", "overflow": "9" * 30, "nan": "NaN", "infinite": "inf", "hexadecimal": "0x1",
    "underscore": "1_0", "sign-only": "-", "exponent": "1e0", "arabic-digit": "٣",
}.items():  # fmt: skip
    _qrels(
        f"trec-{_name}-grade", "j.qrels", f"{QREL}q1 0 d2 {_grade}\n", "j.qrels:2", "'grade'", f"'{_grade}'", "write 0, 1, 2"
    )
    _qrels(f"csv-{_name}-grade", "j.csv", f"{QCSV}q1,d2,{_grade}\n", "j.csv:3", "'grade'", f"'{_grade}'", "write 0, 1, 2")
_qrels("csv-empty-grade", "j.csv", f"{QCSV}q1,d2,\n", "j.csv:3", "'grade'", "''", "write 0, 1, 2")
_qrels(
    "tsv-fraction-grade",
    "test.tsv",
    "query-id\tcorpus-id\tscore\nq1\td1\t0.5\n",
    "test.tsv:2",
    "'score'",
    "'0.5'",
    "write 0, 1, 2",
)
_qrels("json-text-grade", "j.json", '{"q1": {"d1": "high"}}', "j.json", "'q1.d1.score'", "'high'", "write 0, 1, 2")
_qrels("json-null-grade", "j.json", '{"q1": {"d1": null}}', "j.json", "'q1.d1.score'", "None", "write 0, 1, 2")
_qrels("json-truth-grade", "j.json", '{"q1": {"d1": true}}', "j.json", "'q1.d1.score'", "True", "write 0, 1, 2")
_qrels("json-list-grade", "j.json", '{"q1": {"d1": [1]}}', "j.json", "'q1.d1.score'", "[1]", "write 0, 1, 2")
_qrels(
    "json-huge-grade",
    "j.json",
    '{"q1": {"d1": 1' + "0" * 400 + "}}",
    "j.json",
    "'q1.d1.score'",
    "'1000",
    "18 digits",
    "write 0, 1",
)
_qrels("json-endless-grade", "j.json", '{"q1": {"d1": ' + "7" * 5000 + "}}", "j.json", "digits", "write a shorter number")
_qrels("json-infinite-grade", "j.json", '{"q1": {"d1": 1e999}}', "j.json", "'q1.d1.score'", "'inf'", "write 0, 1, 2")
_qrels(
    "jsonl-fraction-grade",
    "j.jsonl",
    f"{QJSONL}{QJSONL.replace('1}', '2.5}')}",
    "j.jsonl:2",
    "'grade'",
    "'2.5'",
    "write 0, 1, 2",
)
_qrels("jsonl-truth-grade", "j.jsonl", QJSONL.replace("1}", "true}"), "j.jsonl:1", "'grade'", "True", "write 0, 1, 2")
_qrels("yaml-truth-grade", "j.yaml", "q1:\n  d1: yes\n", "j.yaml", "'q1.d1.score'", "True", "write 0, 1, 2")
_qrels(
    "parquet-fraction-grade", "j.parquet", parquet("SELECT 'q1' AS query_id, 'd1' AS doc_id, 1.5::DOUBLE AS grade"),
    "j.parquet", "'row 1.grade'", "'1.5'", "write 0, 1, 2",
)  # fmt: skip
_qrels(
    "parquet-null-grade", "j.parquet", parquet("SELECT 'q1' AS query_id, 'd1' AS doc_id, NULL::INT AS grade"),
    "j.parquet", "'row 1.grade'", "None", "write 0, 1, 2",
)  # fmt: skip
_qrels(
    "parquet-truth-grade", "j.parquet", parquet("SELECT 'q1' AS query_id, 'd1' AS doc_id, true AS grade"),
    "j.parquet", "'row 1.grade'", "True", "write 0, 1, 2",
)  # fmt: skip

# Scores that are not finite numbers.
for _name, _score in {
    "nan": "NaN", "infinite": "-inf", "overflow": "1e999", "hexadecimal": "0x1F", "underscore": "1_000", "text": "best",
    "comma": "1;5", "two-signs": "+-1", "half-exponent": "1e", "suffix": "1.5f",
}.items():  # fmt: skip
    _run(
        f"trec-{_name}-score", "r.run", f"{ANSWER}q1 Q0 d2 2 {_score} bm25\n",
        "r.run:2", "'score'", f"'{_score}'", "'q1'", "'d2'", "write one like 12.5",
    )  # fmt: skip
    _run(
        f"csv-{_name}-score", "r.csv", f"{RCSV}q1,d2,{_score}\n",
        "r.csv:3", "'score'", f"'{_score}'", "'q1'", "'d2'", "write one like 12.5",
    )  # fmt: skip
_run("csv-empty-score", "r.csv", f"{RCSV}q1,d2,\n", "r.csv:3", "'score'", "''", "write one like 12.5")
_run("csv-text-rank", "r.csv", "qid,docid,rank\nq1,d1,first\n", "r.csv:2", "'rank'", "'first'", "write one like")
_run("json-nan-literal", "r.json", '{\n"NaN": {"d1": 1.5,\n"d2": NaN}\n}', "r.json:3", "NaN", "write a finite number")
_run("json-infinity-literal", "r.json", '{"q1": {"d1": -Infinity}}', "r.json:1", "-Infinity", "write a finite number")
_run("json-overflow-score", "r.json", '{"q1": {"d1": 1e999}}', "r.json", "'q1.d1.score'", "'inf'", "write one like 12.5")
_run("json-text-score", "r.json", '{"q1": {"d1": "best"}}', "r.json", "'q1.d1.score'", "'best'", "write one like 12.5")
_run("json-truth-score", "r.json", '{"q1": {"d1": true}}', "r.json", "'q1.d1.score'", "True", "write one like 12.5")
_run("json-null-score", "r.json", '{"q1": {"d1": null}}', "r.json", "'q1.d1.score'", "None", "write one like 12.5")
_run(
    "json-object-score",
    "r.json",
    '{"q1": {"d1": {"bm25": 1}}}',
    "r.json",
    "'q1.d1.score'",
    "{'bm25': 1}",
    "write one like 12.5",
)
_run("jsonl-nan-literal", "r.jsonl", f"{RJSONL}{RJSONL.replace('9.5', 'NaN')}", "r.jsonl:2", "NaN", "write a finite number")
_run("jsonl-truth-score", "r.jsonl", RJSONL.replace("9.5", "false"), "r.jsonl:1", "'score'", "False", "write one like 12.5")
_run("yaml-nan-score", "r.yaml", "q1:\n  d1: .nan\n", "r.yaml", "'q1.d1.score'", "'nan'", "write one like 12.5")
_run(
    "parquet-nan-score", "r.parquet", parquet("SELECT 'q1' AS query_id, 'd1' AS doc_id, 'nan'::DOUBLE AS score"),
    "r.parquet", "'row 1.score'", "'nan'", "'d1'", "write one like 12.5",
)  # fmt: skip
_run(
    "parquet-null-score", "r.parquet",
    parquet("SELECT * FROM (VALUES ('q1', 'd1', 2.5::DOUBLE), ('q1', 'd2', NULL)) AS t(query_id, doc_id, score)"),
    "r.parquet", "'row 2.score'", "None", "write one like 12.5",
)  # fmt: skip

# Ids that are blank or no ids.
_qrels("csv-blank-document", "j.csv", f"{QCSV}q1,  ,1\n", "j.csv:3", "'doc_id'", "'  '", "blank", "write a non-blank text")
_qrels("csv-empty-query", "j.csv", f"{QCSV},d2,1\n", "j.csv:3", "'query_id'", "''", "blank", "write a non-blank text")
_run("csv-empty-document", "r.csv", f"{RCSV}q1,,1\n", "r.csv:3", "'doc_id'", "''", "blank", "write a non-blank text")
_run(
    "tsv-empty-document", "r.tsv", "qid\tdocid\tscore\nq1\t\t1\n", "r.tsv:2", "'docid'", "''", "blank", "write a non-blank text"
)
_qrels("json-blank-query", "j.json", '{" ": {"d1": 1}}', "j.json", "query_id", "' '", "blank", "write a non-blank text")
_run("json-blank-document", "r.json", '{"q1": {"": 1}}', "r.json", "doc_id", "''", "blank", "write a non-blank text")
_run("json-null-in-list", "r.json", '{"q1": ["d1", null]}', "r.json", "'q1[1].doc_id'", "None", "write a text")
_run("json-fraction-id", "r.json", '{"q1": [1.5]}', "r.json", "'q1[0].doc_id'", "1.5", "write a text")
_run("json-object-in-list", "r.json", '{"q1": [{"id": "d1"}]}', "r.json", "'q1[0].doc_id'", "{'id': 'd1'}", "write a text")
_run("jsonl-truth-id", "r.jsonl", RJSONL.replace('"d1"', "true"), "r.jsonl:1", "'doc_id'", "True", "write a text")
_run("json-half-character", "r.json", '{"q1": ["\\ud83d"]}', "r.json", "'q1[0].doc_id'", "\\ud83d", "write the whole character")
_qrels("trec-no-break-space", "j.qrels", "q1 0 \u00a0 1\n", "j.qrels:1", "'document'", "\\xa0", "write a non-blank text")
_run(
    "trec-wide-blank", "r.run", f"{ANSWER}\u3000 Q0 d1 1 9.5 bm25\n", "r.run:2", "'query'", "\\u3000", "write a non-blank text"
)
_run("yaml-octal-id", "r.yaml", "q1:\n- d1\n- 010\n", "r.yaml:3", "'010'", "8", "put an id in quotes")
_run("yaml-time-id", "r.yaml", "q1: [12:30]\n", "r.yaml:1", "'12:30'", "750", "put an id in quotes")
_run("yaml-date-id", "r.yaml", "q1: [2024-01-31]\n", "r.yaml", "'q1[0].doc_id'", "2024", "write a text")
_run("yaml-truth-id", "r.yaml", "q1: [no]\n", "r.yaml", "'q1[0].doc_id'", "False", "write a text")
_qrels(
    "parquet-null-query", "j.parquet", parquet("SELECT NULL::VARCHAR AS query_id, 'd1' AS doc_id, 1 AS grade"),
    "j.parquet", "'row 1.query_id'", "None", "write a text",
)  # fmt: skip
_run(
    "parquet-null-document", "r.parquet", parquet("SELECT 'q1' AS query_id, NULL::VARCHAR AS doc_id, 1.5 AS score"),
    "r.parquet", "'row 1.doc_id'", "None", "write a text",
)  # fmt: skip
_run(
    "parquet-blank-document", "r.parquet", parquet("SELECT 'q1' AS query_id, '' AS doc_id, 1.5 AS score"),
    "r.parquet", "'row 1.doc_id'", "''", "write a non-blank text",
)  # fmt: skip

# Columns that are missing, misspelt or repeated, and rows that do not fit them.
_qrels("csv-no-grade", "j.csv", "query_id,doc_id\nq1,d1\n", "j.csv:2", "grade", "'query_id', 'doc_id'", "name it 'grade'")
_qrels(
    "csv-misspelt-grade", "j.csv", "query_id,doc_id,grde\nq1,d1,1\n", "j.csv:2", "'grde'", "name it 'grade'", "is 'grde' meant?"
)
_qrels("csv-misspelt-query", "j.csv", "qury_id,doc_id,grade\nq1,d1,1\n", "j.csv:2", "'qury_id'", "name it 'query_id'")
_qrels("csv-no-document", "j.csv", "query_id,grade\nq1,1\n", "j.csv:2", "document", "'query_id', 'grade'", "name it 'doc_id'")
_qrels(
    "csv-repeated-column", "j.csv", "query_id,doc_id,grade,grade\nq1,d1,1,2\n", "j.csv:1", "'grade'", "twice", "its own name"
)
_run(
    "csv-repeated-column", "r.csv", "query_id,doc_id,doc_id,score\nq1,d1,d2,2\n", "r.csv:1", "'doc_id'", "twice", "its own name"
)
_run("csv-no-score", "r.csv", "query_id,doc_id\nq1,d1\n", "r.csv:2", "score or rank", "'query_id', 'doc_id'", "name it 'score'")
_run("csv-qrels-given", "r.csv", QCSV, "r.csv:2", "score or rank", "'grade'", "name it 'score'")
_run("csv-only-queries", "r.csv", "query_id\nq1\nq2\n", "r.csv:1", "'query_id'", "query, document and a number")
_qrels(
    "csv-bars", "j.csv", "query_id|doc_id|grade\nq1|d1|1\n", "j.csv:1", "query_id|doc_id|grade", "commas, semicolons or tabs"
)
_qrels("csv-without-header", "j.csv", "q1,d1,1\nq1,d2,0\n", "j.csv:2", "'q1', 'd1', '1'", "name it 'query_id'")
_run(
    "tsv-spaces", "r.tsv", "query_id\tdoc_id\tscore\nq1 d1 9.5\n", "r.tsv:2", "1 value ", "q1 d1 9.5", "query_id, doc_id, score"
)
_run("tsv-forced-csv", "r.tsv", "doc_id\tx\nd1\t2\n", "r.tsv:2", "query", "'doc_id', 'x'", "name it 'query_id'")
_qrels("csv-short-row", "j.csv", f"{QCSV}q1,d2\n", "j.csv:3", "2 values", "q1,d2", "3 columns", "query_id, doc_id, grade")
_qrels("csv-long-row", "j.csv", f"{QCSV}q1,d2,1,2\n", "j.csv:3", "4 values", "q1,d2,1,2", "query_id, doc_id, grade")
_run("csv-decimal-comma", "r.csv", f"{RCSV}q1,d2,1,5\n", "r.csv:3", "4 values", "q1,d2,1,5", "query_id, doc_id, score")
_qrels("csv-open-quote", "j.csv", f'{QCSV}q1,"d2,1\nq1,d3,1\nq1,d4,1\n', "j.csv:3", "not valid CSV", "fix the quotes")
_run("csv-quote-inside", "r.csv", f'{RCSV}q1,"d"2,1\n', "r.csv:3", "not valid CSV", "fix the quotes")
_run("csv-old-mac-lines", "r.csv", RCSV.replace("\n", "\r"), "r.csv:1", "not valid CSV", "line ends")
_qrels("json-no-grade", "j.json", '[{"query_id": "q1", "doc_id": "d1"}]', "j.json", "'[0]'", "grade", "name it 'grade'")
_qrels("json-list-of-documents", "j.json", '{"q1": ["d1", "d2"]}', "j.json", "'q1[0]'", "grade", "name it 'grade'")
_run("jsonl-no-query", "r.jsonl", f'{RJSONL}{{"doc_id": "d1", "score": 1}}\n', "r.jsonl:2", "query", "name it 'query_id'")
_run("jsonl-misspelt-score", "r.jsonl", RJSONL.replace("score", "scor"), "r.jsonl:1", "'scor'", "name it 'score'")
_run(
    "yaml-record-without-document",
    "r.yaml",
    "- query_id: q1\n  score: 1\n",
    "r.yaml:1",
    "'[0]'",
    "document",
    "name it 'doc_id'",
)
_qrels(
    "parquet-no-grade", "j.parquet", parquet("SELECT 'q1' AS query_id, 'd1' AS doc_id"),
    "j.parquet", "'row 1'", "grade", "'query_id', 'doc_id'", "name it 'grade'",
)  # fmt: skip
_run(
    "parquet-misspelt-document", "r.parquet", parquet("SELECT 'q1' AS query_id, 'd1' AS doc_idd, 1.5 AS score"),
    "r.parquet", "'row 1'", "'doc_idd'", "name it 'doc_id'",
)  # fmt: skip
_run(
    "parquet-only-queries", "r.parquet", parquet("SELECT 'q1' AS query_id"),
    "r.parquet", "'query_id'", "query, document and a number",
)  # fmt: skip
_run("json-scores-and-lists", "r.json", '{"q1": {"d1": 1.5}, "q2": ["d2"]}', "r.json", "'q2[0]'", "rank", "use one of the two")
_run(
    "jsonl-scores-and-ranks", "r.jsonl", f'{RJSONL}{{"query_id": "q1", "doc_id": "d2", "rank": 2}}\n',
    "r.jsonl:2", "rank", "score", "use one of the two",
)  # fmt: skip

# Two statements about the same thing.
_qrels(
    "trec-two-grades",
    "j.qrels",
    f"{QREL}q1 0 d2 0\nq1 0 d1 2\n",
    "j.qrels:3",
    "'q1'",
    "'d1'",
    "as 2",
    "line 1 says 1",
    "keep one",
)
_qrels("csv-two-grades", "j.csv", f"{QCSV}q1,d1,2\n", "j.csv:3", "'q1'", "'d1'", "as 1 and as 2", "keep one")
_qrels("jsonl-two-grades", "j.jsonl", f"{QJSONL}{QJSONL.replace('1}', '0}')}", "j.jsonl:2", "'d1'", "as 1 and as 0", "keep one")
_qrels("json-repeated-document", "j.json", '{"q1": {"d1": 1,\n"d1": 1}}', "j.json", "'d1'", "twice", "keep one")
_run("json-repeated-query", "r.json", '{"q1": {"d1": 1}, "q1": {"d2": 1}}', "r.json", "'q1'", "twice", "keep one")
_run("jsonl-repeated-key", "r.jsonl", '{"query_id": "q1", "query_id": "q2"}\n', "r.jsonl:1", "'query_id'", "twice", "keep one")
_qrels("yaml-repeated-query", "j.yaml", "q1:\n  d1: 1\nq1:\n  d2: 1\n", "j.yaml:3", "'q1'", "twice", "keep one")

# The wrong bytes.
_qrels("trec-utf-16", "j.qrels", QREL.encode("utf-16"), "j.qrels", "UTF-16", "save it as UTF-8")
_run("csv-utf-16-big-endian", "r.csv", b"\xfe\xff" + RCSV.encode("utf-16-be"), "r.csv", "UTF-16", "save it as UTF-8")
_run("json-utf-16-without-mark", "r.json", '{"q1": {"d1": 1}}'.encode("utf-16-le"), "r.json:1", "NUL", "UTF-8")
_qrels(
    "trec-latin-1",
    "j.qrels",
    f"{QREL}q1 0 d2 1\n".encode() + b"q1 0 caf\xe9 1\n",
    "j.qrels:3",
    "0xe9",
    "save the file as UTF-8",
)
_run(
    "trec-latin-1-tag", "r.run", f"{ANSWER}q1 Q0 d2 2 9.4 caf".encode() + b"\xe9\n", "r.run:2", "0xe9", "save the file as UTF-8"
)
_run("trec-latin-1-rank", "r.run", b"q1 Q0 d1 \xe9 9.5 bm25\n" + ANSWER.encode(), "r.run:1", "0xe9", "save the file as UTF-8")
_run("csv-latin-1", "r.csv", RCSV.encode() + b"q\xfc1,d1,1\n", "r.csv:3", "0xfc", "save the file as UTF-8")
_qrels("jsonl-latin-1", "j.jsonl", QJSONL.encode() + b'{"query_id": "\xe9"}\n', "j.jsonl:2", "0xe9", "save the file as UTF-8")
_qrels("yaml-latin-1", "j.yaml", b"q1:\n  caf\xe9: 1\n", "j.yaml:2", "0xe9", "save the file as UTF-8")
_qrels("trec-nul", "j.qrels", f"{QREL}q1 0 d\x002 1\n", "j.qrels:2", "NUL", "remove it")
_run("trec-nul", "r.run", f"{ANSWER}q1 Q0 d\x002 2 9.4 bm25\n", "r.run:2", "NUL", "remove it")
_run("csv-nul", "r.csv", f"{RCSV}q1,d\x002,1\n", "r.csv:3", "NUL", "remove it")
_run("trec-picture-given", "r.run", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "r.run:1", "0x89", "UTF-8")
_qrels("yaml-control-character", "j.yaml", "q1:\n  d\x07: 1\n", "j.yaml:2", "#x0007", "fix the YAML")

# Damaged containers.
_packed = gzip.compress((ANSWER * 200).encode(), mtime=0)
_run("gz-truncated", "r.run.gz", _packed[: len(_packed) // 2], "r.run.gz", "gzip data is damaged", "compress the file again")
_run("gz-without-trailer", "r.run.gz", _packed[:-6], "r.run.gz", "gzip data is damaged", "compress the file again")
_run("gz-wrong-checksum", "r.run.gz", _packed[:-8] + b"\0" * 8, "r.run.gz", "gzip data is damaged", "compress the file again")
_qrels(
    "gz-of-garbage", "j.qrels.gz", b"\x1f\x8b" + b"garbage" * 9, "j.qrels.gz", "gzip data is damaged", "compress the file again"
)
_qrels("gz-header-only", "j.json.gz", b"\x1f\x8b", "j.json.gz", "gzip data is damaged", "compress the file again")
_qrels(
    "gz-bad-line",
    "j.qrels.gz",
    gzip.compress(f"{QREL}q1 0 d2\n".encode(), mtime=0),
    "j.qrels.gz:2",
    "3 fields",
    "document grade",
)
_run(
    "gz-bad-csv",
    "r.csv.gz",
    gzip.compress(f"{RCSV}q1,d2,best\n".encode(), mtime=0),
    "r.csv.gz:3",
    "'best'",
    "write one like 12.5",
)
_run("parquet-is-text", "r.parquet", RCSV, "r.parquet", "cannot be read", "write the file again")
_run(
    "parquet-truncated", "r.parquet", parquet("SELECT 'q1' AS query_id, 'd1' AS doc_id, 1.5 AS score")[:-20],
    "r.parquet", "cannot be read", "write the file again",
)  # fmt: skip

# Syntax and shape of JSON, JSON lines and YAML.
_qrels("json-open", "j.json", '{"q1": {"d1": 1}', "j.json:1", "at the end", "fix the JSON")
_qrels("json-trailing-comma", "j.json", '{"q1":\n  {"d1": 1,}\n}', "j.json:2", "column", "}", "fix the JSON")
_run("json-single-quotes", "r.json", "{'q1': {'d1': 1}}", "r.json:1", "'q1'", "fix the JSON")
_run("json-two-documents", "r.json", '{"q1": {"d1": 1}}\n{"q2": {"d2": 1}}\n', "r.json:2", "Extra data", "q2", "fix the JSON")
_qrels("json-a-number", "j.json", "17", "j.json", "17", "write {query: {document: number}}")
_qrels("json-a-text", "j.json", '"q1 0 d1 1"', "j.json", "'q1 0 d1 1'", "write {query: {document: number}}")
_qrels(
    "json-list-of-lists", "j.json", '[["q1", "d1", 1]]', "j.json", "'[0]'", "['q1', 'd1', 1]", "query_id, doc_id and a number"
)
_run("json-answer-is-text", "r.json", '{"q1": "d1"}', "r.json", "'q1'", "'d1'", "write {document: number} or [document, …]")
_run("json-answer-is-null", "r.json", '{"q1": null}', "r.json", "'q1'", "None", "write {document: number} or [document, …]")
_run("json-deep", "r.json", "[" * 100_000, "r.json", "nested too deeply", "flatten it")
_qrels("jsonl-list", "j.jsonl", f'{QJSONL}["q1", "d1", 1]\n', "j.jsonl:2", "a list", 'write one {"key": value} object per line')
_run("jsonl-text", "r.jsonl", f'{RJSONL}\n"q1"\n', "r.jsonl:3", "a text", 'write one {"key": value} object per line')
_run("jsonl-open", "r.jsonl", f'{RJSONL}{{"query_id": "q1"\n', "r.jsonl:2", "at the end", "fix the JSON")
_run("jsonl-is-json", "r.jsonl", '{\n"q1": {"d1": 1}\n}\n', "r.jsonl:1", "no column for the query", "name it 'query_id'")
_run("jsonl-two-a-line", "r.jsonl", RJSONL.rstrip() + RJSONL, "r.jsonl:1", "Extra data", "fix the JSON")
_qrels("yaml-tab", "j.yaml", "q1:\n\td1: 1\n", "j.yaml:2", "\\t", "fix the YAML")
_qrels("yaml-alias", "j.yaml", "q1: &same\n  d1: 1\nq2: *same\n", "j.yaml:3", "*same", "write the value out")
_qrels("yaml-open-bracket", "j.yaml", "q1: {d1: 1\nq2: {d2: 1}\n", "j.yaml:2", "not valid YAML", "fix the YAML")
_qrels("yaml-two-documents", "j.yaml", "q1: {d1: 1}\n---\nq2: {d2: 1}\n", "j.yaml:2", "another document", "fix the YAML")
_qrels("yaml-deep", "j.yaml", "[" * 3000 + "]" * 3000, "j.yaml", "nested too deeply", "flatten it")
_qrels("yaml-list-as-key", "j.yaml", "q1: {d1: 1}\n? [q2, q3]\n: {d1: 1}\n", "j.yaml:2", "key", "write a text before the colon")
_run("yaml-object-tag", "r.yaml", "q1: !!python/name:os.system\n", "r.yaml:1", "python/name", "fix the YAML")
_run("yaml-no-such-day", "r.yaml", "q1:\n- d1\n- 2024-13-45\n", "r.yaml:3", "'2024-13-45'", "put it in quotes")
_run("yaml-a-text", "r.yaml", "q1 Q0 d1 1 9.5 bm25\n", "r.yaml", "q1 Q0 d1 1 9.5 bm25", "write {query: {document: number}}")
