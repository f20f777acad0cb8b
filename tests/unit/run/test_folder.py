"""Run folders: what is written comes back whole, other programs can read it, and nothing of others is replaced."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made import answers, evaluation, golden_set
from ringtrue.errors import InputError, MissingInput
from ringtrue.formats import read_run
from ringtrue.measures import Contribution, latency
from ringtrue.records import Hit, Query, Ranking, Stage
from ringtrue.run import Component, Evaluation, Loss, Precondition, open_run, packed, save, unpacked


def full() -> Evaluation:
    golden = golden_set(8)
    rankings = answers(golden, k=6)
    rankings[0] = replace(rankings[0], hits=())
    rankings[1] = Ranking("q001", (), error="took longer than 30 s")
    odd = Hit("d001", float("nan"), "d001#2", {"bm25": 1}, 0.5, (Stage("bm25", 1, float("nan")),))
    rankings[2] = replace(rankings[2], hits=(odd,), latency_ms=None)
    made = evaluation(golden, rankings)
    part = Component("bm25", "channel", tuple(answers(golden)), made.scores, Contribution(0.5, 0.25, 3), latency([1.0, 2.0]))
    lost = Loss("q003", "d007", 3, "cut by fusion", 10, 12, {"bm25": 4, "rrf": 12})
    setup = replace(made.setup, preconditions=(Precondition("ids", "met", "fine"),))
    return replace(
        made, setup=setup, components=(part,), losses=(lost,), intervals={"nDCG@10": (0.1, float("nan"))}, notes=("a note",)
    )


def test_an_evaluation_comes_back_whole(tmp_path: Path) -> None:
    made = full()
    found = open_run(save(made, tmp_path / "run").run_dir or "")
    assert repr(found.rankings) == repr(made.rankings)  # nan is not equal to itself
    assert found.setup == made.setup
    assert found.queries == made.queries
    assert found.qrels.to_dict() == made.qrels.to_dict()
    assert found.titles == made.titles
    assert found.losses == made.losses
    assert found.notes == made.notes
    assert repr(found.intervals) == repr(made.intervals)
    assert found.failures == {"q001": "took longer than 30 s"}
    assert found.scores.counted == made.scores.counted
    np.testing.assert_array_equal(found.scores.values, made.scores.values)
    np.testing.assert_array_equal(found.scores.judged, made.scores.judged)
    assert found.scores.by("query_type", "RR") == made.scores.by("query_type", "RR")
    one, other = found.components[0], made.components[0]
    assert (one.name, one.kind, one.contribution, one.latency) == (other.name, other.kind, other.contribution, other.latency)
    np.testing.assert_array_equal(one.scores.values, other.scores.values)


def test_other_commands_read_the_folder_as_a_run(tmp_path: Path) -> None:
    """The ranking in the folder is the ranking that was scored; an empty answer stays an answer, a failure is none."""
    made = full()
    save(made, tmp_path / "run")
    run = read_run(tmp_path / "run")
    expected = {r.query_id: [hit.doc_id for hit in r.hits] for r in made.rankings if r.error is None}
    assert run.rankings() == expected


def test_a_second_save_replaces_the_first_whole(tmp_path: Path) -> None:
    save(full(), tmp_path / "run")
    save(evaluation(golden_set(3)), tmp_path / "run")
    assert not (tmp_path / "run" / "losses.jsonl").exists()
    assert len(open_run(tmp_path / "run").queries) == 3
    assert [item.name for item in tmp_path.iterdir()] == ["run"]


def test_nothing_of_others_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.md").write_text("years of work")
    with pytest.raises(InputError, match=r"holds 'chapter1\.md', which is not part of a run"):
        save(evaluation(golden_set(3)), tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter1.md").read_text() == "years of work"


def test_half_a_character_in_a_question_survives(tmp_path: Path) -> None:
    made = evaluation(golden_set(3))
    made = replace(made, queries=(Query("q000", "a\ud800b – ü"), *made.queries[1:]))
    assert open_run(save(made, tmp_path / "run").run_dir or "").queries[0].text == "a\ud800b – ü"


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda folder: (folder / "run.json").unlink(), "is not a run folder"),
        (lambda folder: (folder / "run.json").write_text('{"format": 99}'), "is of format 99, this version reads 1"),
        (lambda folder: (folder / "run.json").write_text("{"), "not valid JSON"),
        (lambda folder: (folder / "scores.jsonl").write_text('{"query_id": "q000"}\n'), "cannot be read"),
        (lambda folder: (folder / "queries.jsonl").unlink(), r"queries\.jsonl"),
    ],
)
def test_a_damaged_folder_is_named(tmp_path: Path, spoil: object, says: str) -> None:
    folder = save(evaluation(golden_set(3)), tmp_path / "run").run_dir
    spoil(folder)  # type: ignore[operator]
    with pytest.raises(InputError, match=says):
        open_run(tmp_path / "run")


def test_hits_that_do_not_fit_their_scores_are_refused(tmp_path: Path) -> None:
    """A run.parquet of one run beside the scores of another would give a report about neither."""
    save(evaluation(golden_set(3)), tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / "scores.jsonl").read_text().splitlines()]
    lines[0]["hits"] = 1
    (tmp_path / "run" / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InputError, match="the two are not of one run"):
        open_run(tmp_path / "run")


def test_a_missing_folder_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match="make one with `ringtrue eval --out"):
        open_run(tmp_path / "nowhere")


def test_scores_that_were_edited_by_hand_are_refused(tmp_path: Path) -> None:
    save(evaluation(golden_set(10)), tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / "scores.jsonl").read_text().splitlines()]
    for line in lines:
        line["scores"] = dict.fromkeys(line["scores"], 1.0)
    (tmp_path / "run" / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InputError, match="the two are not of one run"):
        open_run(tmp_path / "run")


def test_a_packed_run_is_the_run_folder_in_one_zip(tmp_path: Path) -> None:
    made = full()
    content = packed(made)
    found, saved = unpacked(content, name="run r1"), open_run(save(made, tmp_path / "run").run_dir or "")
    assert found.run_dir is None
    for item in fields(Evaluation):
        if item.name not in ("run_dir", "scores", "qrels", "components"):
            assert repr(getattr(found, item.name)) == repr(getattr(saved, item.name)), item.name
    assert found.qrels.to_dict() == saved.qrels.to_dict()
    for one, other in ((found.scores, saved.scores), (found.components[0].scores, saved.components[0].scores)):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.judged, other.judged)
        assert (one.measures, one.query_ids, one.counted, one.facts) == (
            other.measures,
            other.query_ids,
            other.counted,
            other.facts,
        )
    assert repr(found.components[0].rankings) == repr(saved.components[0].rankings)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()
        }
    assert packed(found) == content


def test_a_packed_run_of_many_hits_is_small() -> None:
    golden = golden_set(300, 2_000)
    content = packed(evaluation(golden, answers(golden, k=100)))
    assert len(content) < 2_000_000
    assert sum(len(ranking.hits) for ranking in unpacked(content, name="run").rankings) == 30_000


def repacked(content: bytes, change: Callable[[dict[str, bytes]], dict[str, bytes]]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in change(files).items():
            archive.writestr(name, text)
    return out.getvalue()


def test_nothing_leaves_a_packed_run_but_the_files_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "inner"))
    (tmp_path / "inner").mkdir()
    others = {"../escaped": b"x", str(tmp_path / "absolute"): b"x", "notes.txt": b"x"}
    content = repacked(packed(full()), lambda files: files | others)
    assert unpacked(content, name="run").name == "bm25"
    assert [item.name for item in tmp_path.rglob("*")] == ["inner"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda files: {}, "is not a run folder"),
        (lambda files: files | {"run.json": b"{"}, "run.json"),
        (lambda files: files | {"run.json": b'{"format": 9}'}, "is of format 9"),
        (lambda files: files | {"run.parquet": b"PAR1 and no more"}, "run.parquet: cannot be read"),
        (lambda files: files | {"scores.jsonl": b"[]"}, "scores.jsonl"),
        (lambda files: files | {"queries.jsonl": b'{"query_id": "q"}'}, "the run cannot be read"),
        (lambda files: {name: text for name, text in files.items() if name != "titles.json"}, "titles.json"),
    ],
)
def test_a_damaged_packed_run_is_an_input_error_that_names_no_folder_of_ours(change: Any, says: str) -> None:
    with pytest.raises(InputError) as found:
        unpacked(repacked(packed(full()), change), name="run r1")
    assert str(found.value).startswith("run r1")
    assert says in str(found.value)
    assert tempfile.gettempdir() not in str(found.value)


def test_bytes_that_are_no_zip_or_no_longer_are_an_input_error() -> None:
    content = packed(full())
    for broken in (b"", b"PK", content[:-30], content[:200], content[:300] + b"\xff\xff\xff\xff" + content[304:]):
        with pytest.raises(InputError, match="run r1"):
            unpacked(broken, name="run r1")


def test_a_packed_run_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringtrue.run.folder.UNPACKED", 1_000)
    with pytest.raises(InputError, match="holds more than 1,000 bytes"):
        unpacked(packed(full()), name="run r1")
