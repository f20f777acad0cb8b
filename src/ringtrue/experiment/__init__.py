"""Experiments: what was tried, what came of it, and searches over a retriever's parameters (X-1, X-2).

Comes in: evaluations, baselines, golden sets, retriever expressions with holes. Goes out: Experiments in a ledger, and Sweeps.
May not: print or read the clock; dates and times are given. Owner of ``experiments.json`` and of the journals of sweeps;
in the store they are rows of its table.
"""

from ringtrue.experiment.changes import changes, given_change
from ringtrue.experiment.effects import Effect, effects
from ringtrue.experiment.exchange import read_experiments, write_experiments
from ringtrue.experiment.judge import describe, experiment_of, judge, open_arm
from ringtrue.experiment.ledger import ExperimentFile, Ledger, find, numbered
from ringtrue.experiment.methods import METHODS, size
from ringtrue.experiment.outcome import HeldOut, Overfitting, Sweep, Trial, Tuning, Undefined
from ringtrue.experiment.record import Experiment, check_verdict
from ringtrue.experiment.space import Space, parameter
from ringtrue.experiment.sweep import sweep
from ringtrue.experiment.table import ExperimentTable
from ringtrue.experiment.track import tracked
from ringtrue.experiment.variants import Variants

__all__ = [
    "METHODS",
    "Effect",
    "Experiment",
    "ExperimentFile",
    "ExperimentTable",
    "HeldOut",
    "Ledger",
    "Overfitting",
    "Space",
    "Sweep",
    "Trial",
    "Tuning",
    "Undefined",
    "Variants",
    "changes",
    "check_verdict",
    "describe",
    "effects",
    "experiment_of",
    "find",
    "given_change",
    "judge",
    "numbered",
    "open_arm",
    "parameter",
    "read_experiments",
    "size",
    "sweep",
    "tracked",
    "write_experiments",
]
