"""Experiments of the demonstration: a sweep over the fusion that is really made, and a few single ones."""

from __future__ import annotations

import tempfile
from datetime import datetime
from pathlib import Path

from ringtrue.experiment import Experiment, ExperimentTable, Space, Sweep, experiment_of, parameter, sweep, tracked
from ringtrue.service.demo.golden_sets import BM25, DENSE, HYBRID, LOPSIDED, POLICY, Shelf
from ringtrue.service.demo.scene import Scene
from ringtrue.store import timestamp

SPACE = Space(
    "weighted(bm25(title={title}), dense, depth=50, norm={norm}, w=[{w}, 1])",
    (parameter("w=1,0.25,0.5,2,4"), parameter("title=3,1,5"), parameter("norm='z','minmax'")),
)
"""Its first point is the hybrid as it is."""


class Trials:
    """What was tried."""

    def __init__(self, scene: Scene, shelf: Shelf) -> None:
        self.scene, self.shelf = scene, shelf

    def first(self, at: datetime) -> None:
        self._compared(BM25, DENSE, "vectors alone in place of keywords", at)
        self._compared(BM25, HYBRID, "keywords and vectors together", at)

    def second(self, at: datetime) -> None:
        self._compared(HYBRID, LOPSIDED, "vectors count nineteen times as much as keywords", at)

    def _compared(self, before: str, after: str, says: str, at: datetime) -> None:
        sides = self.shelf.evaluation(after, at), self.shelf.evaluation(before, at)
        self._add([experiment_of(*sides, on=at.date(), description=says, policy=POLICY, compared_with=before)], at)

    def sweep(self, at: datetime) -> Sweep:
        """Try the settings of the fusion on the tuning questions, confirm the best on the others, and keep every trial."""
        with tempfile.TemporaryDirectory(prefix="ringtrue-") as folder:
            found = sweep(
                SPACE, self.shelf.golden, lambda chunks: self.shelf.corpus, ledger=Path(folder) / "looks.jsonl",
                when=timestamp(at),
            )  # fmt: skip
        self._add(tracked(found, on=at.date()), at)
        return found

    def _add(self, found: list[Experiment] | tuple[Experiment, ...], at: datetime) -> None:
        ExperimentTable(self.scene.store, timestamp(at), self.scene.project).add(found)


def weights_of(found: Sweep) -> tuple[str, dict[str, float]]:
    """Return the best retriever of a sweep other than its baseline, and the weights of its channels as shares."""
    best = next(trial for trial in found.trials if trial.point.key != found.baseline.key)
    weight = float(best.values["w"])
    return best.point.retriever, {"bm25": round(weight / (weight + 1), 4), "dense": round(1 / (weight + 1), 4)}
