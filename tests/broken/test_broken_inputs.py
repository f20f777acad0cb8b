"""Every broken file of the corpus ends with exit code 2 and one line that names file, place, value and cure."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import ringtrue.formats
from broken.inputs import ANSWER, CASES, QREL, BrokenInput
from ringtrue.errors import BAD_INPUT, InputError, MissingInput
from ringtrue.formats import KINDS, kind_of_new, read_qrels, read_run

READERS: dict[str, Callable[[str | Path], object]] = {"qrels": read_qrels, "run": read_run}
TREC_RUNS = [case for case in CASES if case.reader == "run" and kind_of_new(Path(case.filename)) == "trec"]


def complaint(reader: str, path: Path) -> str:
    with pytest.raises(InputError) as caught:
        READERS[reader](path)
    assert caught.value.exit_code == BAD_INPUT
    message = str(caught.value)
    assert message.splitlines() == [message], "a complaint is one line"
    assert message.isprintable(), "a complaint holds no control character"
    return message


def placed(case: BrokenInput, folder: Path) -> Path:
    path = folder / case.filename
    path.write_bytes(case.content)
    return path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_broken_input_is_named_with_place_value_and_cure(case: BrokenInput, tmp_path: Path) -> None:
    path = placed(case, tmp_path)
    message = complaint(case.reader, path)
    assert message.startswith(str(path))
    assert [wanted for wanted in case.must_name if wanted not in message] == [], message


@pytest.mark.parametrize("case", TREC_RUNS, ids=lambda case: case.name)
def test_the_fast_road_complains_in_the_same_words(case: BrokenInput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = placed(case, tmp_path)
    slow = complaint("run", path)
    monkeypatch.setattr(ringtrue.formats, "BULK", 1)
    assert complaint("run", path) == slow


def test_the_corpus_covers_both_readers_every_format_and_no_name_twice() -> None:
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)
    for reader in READERS:
        kinds = {kind_of_new(Path(case.filename)) for case in CASES if case.reader == reader}
        assert kinds == set(KINDS), reader
    assert all(case.must_name[0].startswith(case.filename) for case in CASES), "the first thing to name is the file"


def test_missing_file_offers_the_nearest_names(tmp_path: Path) -> None:
    (tmp_path / "robust04.qrels").write_text(QREL)
    (tmp_path / "notes.md").write_text("x")
    path = tmp_path / "robust4.qrels"
    message = complaint("qrels", path)
    assert message.startswith(str(path))
    assert "no such file" in message
    assert "'robust04.qrels'" in message


@pytest.mark.parametrize("ending", ["run", "csv", "tsv", "json", "jsonl", "yaml", "parquet", "csv.gz"])
@pytest.mark.parametrize("reader", READERS)
def test_missing_file_is_missing_input_in_every_format(reader: str, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"absent.{ending}"
    with pytest.raises(MissingInput, match="there is no such file"):
        READERS[reader](path)
    assert str(path) in complaint(reader, path)


def test_missing_folder_says_so(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "a.run"
    message = complaint("run", path)
    assert str(path) in message
    assert "check the path" in message


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    message = complaint("run", tmp_path / "plain" / "a.run")
    assert "plain/a.run" in message
    assert "check" in message


@pytest.mark.parametrize("name", ["folder", "folder.run", "folder.csv", "folder.json", "folder.parquet"])
def test_folder_given_as_a_run(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    message = complaint("run", tmp_path / name)
    assert str(tmp_path / name) in message
    assert "is a folder" in message
    assert "name the file inside it" in message


def test_beir_folder_without_qrels(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text("{}")
    message = complaint("qrels", tmp_path)
    assert str(tmp_path) in message
    assert "qrels/*.tsv" in message
    assert "name a judgments file or a BEIR folder" in message


def test_beir_folder_without_a_test_split_names_the_splits_it_has(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    for split in ("dev", "train"):
        (tmp_path / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    message = complaint("qrels", tmp_path)
    assert "no test.tsv" in message
    assert str(tmp_path / "qrels" / "dev.tsv") in message
    assert str(tmp_path / "qrels" / "train.tsv") in message


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
@pytest.mark.parametrize("size", [1, 1 << 30])
def test_unreadable_file(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ringtrue.formats, "BULK", size)
    path = tmp_path / "secret.run"
    path.write_text(ANSWER)
    path.chmod(0)
    message = complaint("run", path)
    assert str(path) in message
    assert "check its permissions" in message


@pytest.mark.parametrize("size", [1, 1 << 30])
def test_file_that_the_system_refuses(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.run"
    path.write_text(ANSWER)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(ringtrue.formats, "BULK", size)
    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    message = complaint("run", path)
    assert str(path) in message
    assert "Permission denied" in message
    assert "check its permissions" in message


@pytest.mark.parametrize("reader", READERS)
def test_a_file_name_with_a_line_break_still_gives_one_line(reader: str, tmp_path: Path) -> None:
    assert "od\\nd.txt" in complaint(reader, tmp_path / "od\nd.txt")
    (tmp_path / "od\nd.txt").write_text("one\n")
    assert "od\\nd.txt:1" in complaint(reader, tmp_path / "od\nd.txt")


def test_unknown_format_names_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text(ANSWER)
    with pytest.raises(InputError, match=r"there is no format 'parket'; use 'parquet'"):
        read_run(path, kind="parket")
