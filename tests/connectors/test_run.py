"""RunFile over files as people have them: stored answers come back as they are, what was never answered is an error."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from connectors.writing_suite import GOLDEN
from ringtrue.errors import BadAnswer, InputError, MissingInput
from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.connectors.run import RunFile
from ringtrue.run import plant
from ringtrue.testing.retrievers import HOSTILE, ConnectorSuite, NotPossible

RUN = """\
q1 Q0 d2 1 2.5 old
q1 Q0 d1 2 1.5 old
q1 Q0 d9 3 0.5 old
q2 Q0 d7 1 9.0 old
"""
A_FILE = "a run file is read as a whole before the first answer, there is no server"


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


class TestRunFileKeepsTheProtocol(ConnectorSuite):
    """The hostile questions stand in the queries file, so that each has a stored answer to find."""

    @pytest.fixture(autouse=True)
    def _files(self, tmp_path: Path) -> None:
        self.folder = tmp_path
        texts = {"q1": "pool", **{f"h{number}": text for number, text in enumerate(HOSTILE)}}
        lines = [json.dumps({"_id": query_id, "text": text}) for query_id, text in texts.items()]
        self.queries = written(tmp_path, "queries.jsonl", "\n".join(lines))
        more = "".join(f"h{number} Q0 d{number} 1 1.0 old\n" for number in range(len(HOSTILE)))
        self.run = written(tmp_path, "old.run", RUN + more)

    def make(self) -> RunFile:
        return RunFile(path=self.run, queries=self.queries)

    def wrong_credentials(self) -> RunFile:
        raise NotPossible("a run file has no credentials")

    def nobody_there(self) -> RunFile:
        raise NotPossible(f"{A_FILE}; a missing file is bad input, tested below")

    def gone_mid_query(self) -> RunFile:
        raise NotPossible(A_FILE)

    def too_slow(self) -> RunFile:
        raise NotPossible(A_FILE)

    def malformed(self) -> RunFile:
        raise NotPossible("a malformed file is bad input, tested below")

    def twice(self) -> RunFile:
        run = written(self.folder, "twice.run", "pool Q0 d1 1 2 x\npool Q0 d1 2 1 x\n")
        return RunFile(path=run)

    def few(self) -> tuple[RunFile, str, int]:
        return self.make(), "pool", 3

    def fails_once(self) -> RunFile:
        raise NotPossible(A_FILE)

    def test_every_hostile_question_finds_its_own_answer(self) -> None:
        for number, text in enumerate(HOSTILE):
            if text.strip():
                assert [hit.doc_id for hit in self.make().search(text)] == [f"d{number}"]


def test_without_queries_a_question_is_a_query_id(tmp_path: Path) -> None:
    found = RunFile(path=written(tmp_path, "old.run", RUN), name="old").search("q1", k=2)
    assert [(hit.doc_id, hit.score) for hit in found] == [("d2", 2.5), ("d1", 1.5)]
    assert found[0].channels == {"old": 1}


def test_order_is_by_score_then_document_id_descending_as_trec_eval_reads_it(tmp_path: Path) -> None:
    run = written(tmp_path, "tied.run", "q Q0 a 1 1.0 x\nq Q0 c 2 1.0 x\nq Q0 b 3 1.0 x\nq Q0 z 4 0.5 x\n")
    assert [hit.doc_id for hit in RunFile(path=run).search("q")] == ["c", "b", "a", "z"]


def test_an_ordered_file_keeps_its_order_and_claims_no_scores(tmp_path: Path) -> None:
    run = written(tmp_path, "live.json", json.dumps({"q": ["b", "a", "c"], "none": []}))
    found = RunFile(path=run).search("q")
    assert [hit.doc_id for hit in found] == ["b", "a", "c"]
    assert all(hit.score != hit.score for hit in found)


def test_a_stored_empty_answer_is_empty_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    old = RunFile(path=written(tmp_path, "live.json", json.dumps({"asked": ["d1"], "nothing": []})))
    assert old.search("nothing") == []
    with pytest.raises(BadAnswer, match=r"has no query 'nothin'; did you mean 'nothing'\?"):
        old.search("nothin")


def test_a_text_that_was_never_asked_is_an_error_not_an_empty_answer(tmp_path: Path) -> None:
    queries = written(tmp_path, "queries.tsv", "q1\thotel with pool\nq3\tlate check-out\n")
    old = RunFile(path=written(tmp_path, "old.run", RUN), queries=queries)
    with pytest.raises(BadAnswer, match="has no query with the text 'hotel with spa'; ask one of its 2"):
        old.search("hotel with spa")
    with pytest.raises(BadAnswer, match=r"has no query 'q3' \('late check-out'\); make the run again"):
        old.search("late check-out")
    with pytest.raises(BadAnswer):  # an id is not text once there are texts
        old.search("q1")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("queries.jsonl", '{"_id": "q1", "text": "hotel with  pool"}\n\n{"_id": "q2", "text": "spa"}\n'),
        ("queries.jsonl", '{"query_id": "q1", "query": "hotel with pool"}\n'),
        ("queries.tsv", "query_id\ttext\nq1\thotel with pool\r\nq2\tspa\n"),
        ("topics.txt", "q1\thotel with pool \n"),
    ],
    ids=["beir", "other-names", "header", "plain"],
)
def test_query_texts_are_read_from_the_usual_files(tmp_path: Path, name: str, text: str) -> None:
    old = RunFile(path=written(tmp_path, "old.run", RUN), queries=written(tmp_path, name, text))
    assert [hit.doc_id for hit in old.search("hotel with pool", k=1)] == ["d2"]


def test_a_text_of_two_queries_is_answered_only_where_both_answers_are_the_same(tmp_path: Path) -> None:
    queries = written(tmp_path, "queries.tsv", "q1\tpool\nq2\tpool\nq3\tspa\nq4\tspa\n")
    run = written(tmp_path, "old.run", RUN + "q3 Q0 d1 1 1 x\nq4 Q0 d1 1 1 x\n")
    old = RunFile(path=run, queries=queries)
    assert [hit.doc_id for hit in old.search("spa")] == ["d1"]
    with pytest.raises(InputError, match="'pool' is the text of 'q1' and 'q2'"):
        old.search("pool")


def test_other_formats_and_gzip_are_read_and_connect_takes_a_table(tmp_path: Path) -> None:
    packed = tmp_path / "old.run.gz"
    packed.write_bytes(gzip.compress(RUN.encode()))
    table = written(tmp_path, "old.csv", "query_id,doc_id,score\nq1,d2,2.5\nq1,d1,1.5\n")
    odd = written(tmp_path, "old.csv.bak", "query_id,doc_id,score\nq1,d2,2.5\nq1,d1,1.5\n")
    for settings in ({"path": str(packed)}, {"path": str(table)}, {"path": str(odd), "format": "csv"}):
        assert [hit.doc_id for hit in connect({"kind": "run", **settings}).search("q1", k=2)] == ["d2", "d1"]


def test_a_repeated_document_may_be_allowed(tmp_path: Path) -> None:
    run = written(tmp_path, "twice.run", "q Q0 a 1 3 x\nq Q0 a 2 2 x\nq Q0 b 3 1 x\n")
    assert [hit.doc_id for hit in RunFile(path=run, duplicates="first").search("q")] == ["a", "b"]


def test_a_scope_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without a scope"):
        RunFile(path=written(tmp_path, "old.run", RUN)).search("q1", scope={"city": "Rome"})


@pytest.mark.parametrize(
    ("run", "queries", "error", "said"),
    [
        (None, None, MissingInput, "no such file"),
        ("q1 Q0 d1\n", None, InputError, r"old\.run:1"),
        ("", None, InputError, "empty"),
        (RUN, "q1 pool\n", InputError, r"queries\.tsv:1: 'q1 pool' has no tab; write id, tab, text"),
        (RUN, "q1\tpool\nq1\tspa\n", InputError, r"queries\.tsv:2: query 'q1' comes twice"),
        (RUN, "\tpool\n", InputError, r"queries\.tsv:1: the id '' is blank"),
    ],
    ids=range(6),
)
def test_a_broken_file_is_bad_input_with_its_place(
    tmp_path: Path, run: str | None, queries: str | None, error: type[InputError], said: str
) -> None:
    path = tmp_path / "old.run" if run is None else written(tmp_path, "old.run", run)
    named = None if queries is None else written(tmp_path, "queries.tsv", queries)
    with pytest.raises(error, match=said) as caught:
        RunFile(path=path, queries=named).search("pool")
    assert "\n" not in str(caught.value)


def test_a_queries_file_without_texts_says_which_field_is_missing(tmp_path: Path) -> None:
    queries = written(tmp_path, "queries.jsonl", '{"_id": "q1", "title": "pool"}\n')
    with pytest.raises(InputError, match=r"queries\.jsonl:1: the field 'text' is missing"):
        RunFile(path=written(tmp_path, "old.run", RUN), queries=queries).search("pool")


@pytest.mark.parametrize("settings", [{"path": ""}, {"path": None}, {"path": "a", "queries": 5}], ids=range(3))
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="write a text that is not blank or a path"):
        RunFile(**settings)


def test_the_example_runs() -> None:
    example = Path(__file__).parents[2] / "examples/connect/with_run.py"
    ran = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert "sea-view" in ran.stdout


def test_a_run_file_holds_answers_and_takes_no_documents(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2.0 x\n")
    connector = RunFile(path=tmp_path / "a.run", name="last-year")
    assert not hasattr(connector, "known")
    with pytest.raises(InputError, match="last-year cannot be written, it only answers"):
        plant(connector, GOLDEN)
