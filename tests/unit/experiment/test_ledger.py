"""Experiments in a file, in the seed's form, without losing anything."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from ringtrue.errors import InputError, MissingInput
from ringtrue.experiment import Experiment, ExperimentFile, check_verdict, find, read_experiments, write_experiments

SEED = """{
  "experiments": [
    {
      "id": "exp-001",
      "date": "2026-01-04",
      "description": "Reduce chunk size to 256 tokens",
      "config_changes": {
        "chunking.max_tokens": 256,
        "chunking.overlap_tokens": 25
      },
      "results": {
        "recall_at_5": 0.79,
        "precision_at_5": 0.71,
        "mrr": 0.72,
        "ndcg_at_5": 0.76
      },
      "verdict": "REJECTED (recall degraded below threshold)"
    },
    {
      "id": "exp-002",
      "date": "2026-01-05",
      "description": "Increase rerank threshold to 0.6",
      "config_changes": {
        "reranking.threshold": 0.6
      },
      "results": {
        "recall_at_5": 0.84,
        "precision_at_5": 0.74,
        "mrr": 0.77,
        "ndcg_at_5": 0.81
      },
      "verdict": "ACCEPTED (all metrics improved)"
    }
  ]
}
"""


def _file(folder: Path, text: str = SEED) -> Path:
    path = folder / "experiments.json"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_seeds_file_read_and_written_is_the_same_file(tmp_path) -> None:
    source = _file(tmp_path)
    write_experiments(read_experiments(source), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text(encoding="utf-8") == SEED
    first, second = read_experiments(source)
    assert (first.decision, first.reason) == ("REJECTED", "recall degraded below threshold")
    assert second.metrics["mrr"] == 0.77
    assert second.config_changes == {"reranking.threshold": 0.6}


def test_unknown_fields_survive_adding_to_the_file(tmp_path) -> None:
    document = json.loads(SEED)
    document["experiments"][0] |= {"reviewed_by": ["a", "b"], "commit": None}
    document = {"schema": 7, **document, "owner": "search"}
    path = _file(tmp_path, json.dumps(document))
    (added,) = ExperimentFile(path).add([Experiment("", "2026-01-06", "a third one")])
    now = json.loads(path.read_text(encoding="utf-8"))
    assert added.id == "exp-003"
    assert list(now) == ["schema", "experiments", "owner"]
    assert now["experiments"][:2] == document["experiments"]
    # Exported from the records alone it is still all there.
    write_experiments(ExperimentFile(path).all(), tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["experiments"] == now["experiments"]


def test_an_undefined_result_is_null_and_never_zero(tmp_path) -> None:
    path = tmp_path / "experiments.json"
    ExperimentFile(path).add([Experiment("", "2026-01-06", "x", metrics={"mrr": math.nan})])
    assert '"mrr": null' in path.read_text(encoding="utf-8")
    assert math.isnan(ExperimentFile(path).all()[0].metrics["mrr"])


def test_two_processes_that_add_at_once_lose_nothing(tmp_path) -> None:
    path = tmp_path / "experiments.json"
    code = (
        "import sys; from pathlib import Path; from ringtrue.experiment import Experiment, ExperimentFile\n"
        "for n in range(8): ExperimentFile(Path(sys.argv[1])).add([Experiment('', '2026-01-06', f'{sys.argv[2]}-{n}')])"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("a", "b", "c")]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    found = ExperimentFile(path).all()
    assert sorted(one.description for one in found) == sorted(f"{name}-{n}" for name in "abc" for n in range(8))
    assert [one.id for one in found] == [f"exp-{n:03}" for n in range(1, 25)]


def test_a_failed_write_leaves_the_file_as_it_was(tmp_path) -> None:
    path = _file(tmp_path)
    with pytest.raises(InputError, match="cannot be written"):
        ExperimentFile(path).add([Experiment("", "2026-01-06", "x", {"model": object()})])
    with pytest.raises(InputError, match="experiment 'exp-001' already exists"):
        ExperimentFile(path).add([Experiment("exp-001", "2026-01-06", "x")])
    assert path.read_text(encoding="utf-8") == SEED
    assert sorted(item.name for item in tmp_path.iterdir()) == [".experiments.json.lock", "experiments.json"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda row: row.update(results={"mrr": "high"}), r"experiments\[0\]\.results\.mrr.*'high' is not a number"),
        (lambda row: row.update(id=" "), r"experiments\[0\]\.id.*blank"),
        (lambda row: row.pop("date"), r"'date' is missing"),
        (lambda row: row.update(config_changes=[1]), "config_changes"),
        (lambda row: row.update(id="exp-002"), "'exp-002' comes twice"),
    ],
)
def test_a_broken_row_is_named_with_its_place(tmp_path, change, says) -> None:
    document = json.loads(SEED)
    change(document["experiments"][0])
    with pytest.raises(InputError, match=says):
        ExperimentFile(_file(tmp_path, json.dumps(document))).all()


def test_what_is_no_list_of_experiments_says_so(tmp_path) -> None:
    with pytest.raises(InputError, match="holds no experiments"):
        ExperimentFile(_file(tmp_path, "[]")).all()
    with pytest.raises(InputError, match=r"name the file \.json"):
        write_experiments([], tmp_path / "experiments.csv")


def test_a_wrong_id_names_the_nearest(tmp_path) -> None:
    with pytest.raises(MissingInput, match="did you mean 'exp-001'"):
        find(ExperimentFile(_file(tmp_path)), "exp-01")
    with pytest.raises(MissingInput, match="and no other"):
        find(ExperimentFile(tmp_path / "none.json"), "exp-001")


def test_a_verdict_by_hand_needs_decision_and_reason() -> None:
    assert check_verdict("Accepted (all metrics improved)") == "ACCEPTED (all metrics improved)"
    for text in ("fine", "ACCEPTED", "ACCEPTED ()", "MAYBE (who knows)"):
        with pytest.raises(InputError, match="is not a decision with a reason"):
            check_verdict(text)
