"""Runs: a retriever and a golden set come in, an Evaluation goes out. Owner of pools, stopwatches and the result cache.

May not: judge, print. The retriever that is asked is the very object that serves live queries (E-6).
"""

from ringtrue.run.blame import relevant_total, waterfall
from ringtrue.run.commit import branch_and_commit, commit_of
from ringtrue.run.evaluation import (
    DEFAULT_MEASURES,
    NOT_CACHED,
    REPLAYED,
    Component,
    Evaluation,
    Loss,
    Origin,
    Precondition,
    Setup,
    usual_measures,
)
from ringtrue.run.evaluator import evaluate, fingerprint, intervals_of, machine
from ringtrue.run.figures import FIGURES
from ringtrue.run.folder import RUNS, open_run, packed, run_folder, save, unpacked
from ringtrue.run.plant import PartlyPlanted, Planting, plant, planted, remove_planted
from ringtrue.run.subject import code_hash, corpus_of

__all__ = [
    "DEFAULT_MEASURES",
    "FIGURES",
    "NOT_CACHED",
    "REPLAYED",
    "RUNS",
    "Component",
    "Evaluation",
    "Loss",
    "Origin",
    "PartlyPlanted",
    "Planting",
    "Precondition",
    "Setup",
    "branch_and_commit",
    "code_hash",
    "commit_of",
    "corpus_of",
    "evaluate",
    "fingerprint",
    "intervals_of",
    "machine",
    "open_run",
    "packed",
    "plant",
    "planted",
    "relevant_total",
    "remove_planted",
    "run_folder",
    "save",
    "unpacked",
    "usual_measures",
    "waterfall",
]
