"""Experiments in the store are those of the file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringtrue.errors import InputError
from ringtrue.experiment import Experiment, ExperimentFile, ExperimentTable, find
from ringtrue.store import Store

NOW = "2026-03-01T12:00:00Z"
FULL = Experiment(
    "", "2026-03-01", "wider", {"k": 20}, {"mrr": 0.7, "R@5": math.nan}, "REJECTED (slow)", commit="abc", golden="hotel-v1.0.0",
    corpus="c0ffee", run="runs/1", baseline="runs/0", extra={"sweep": {"trial": 1}},
)  # fmt: skip


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[ExperimentTable]:
    with Store.open(tmp_path / "s.sqlite") as store:
        yield ExperimentTable(store, NOW)


def test_an_experiment_reads_from_the_store_as_from_the_file(ledger: ExperimentTable, tmp_path: Path) -> None:
    file = ExperimentFile(tmp_path / "experiments.json")
    for one in (ledger, file):
        (added,) = one.add([FULL])
        assert added.id == "exp-001"
    assert [one.as_dict() for one in ledger.all()] == [one.as_dict() for one in file.all()]
    assert find(ledger, "exp-001").extra == {"sweep": {"trial": 1}}


def test_ids_go_on_and_a_taken_one_is_refused(ledger: ExperimentTable) -> None:
    ledger.add([FULL, FULL])
    assert [one.id for one in ledger.add([FULL])] == ["exp-003"]
    with pytest.raises(InputError, match="exp-001"):
        ledger.add([ledger.all()[0]])
    assert ExperimentTable(ledger.store, NOW, "shop").all() == ()
    assert len(ledger.all()) == 3
