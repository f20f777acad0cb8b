"""Experiments: what was tried, what came of it, and searches over a retriever's parameters (X-1, X-2).

Comes in: evaluations, baselines, golden sets, retriever expressions with holes. Goes out: Experiments in a ledger, and Sweeps.
May not: print or read the clock; dates and times are given. Owner of ``experiments.json`` and of the journals of sweeps;
in the store they are rows of its table.
"""

from ringtrue.experiment.changes import changes as changes, given_change as given_change
from ringtrue.experiment.effects import Effect as Effect, effects as effects
from ringtrue.experiment.exchange import read_experiments as read_experiments, write_experiments as write_experiments
from ringtrue.experiment.judge import describe as describe, experiment_of as experiment_of, judge as judge, open_arm as open_arm
from ringtrue.experiment.ledger import ExperimentFile as ExperimentFile, Ledger as Ledger, find as find, numbered as numbered
from ringtrue.experiment.methods import METHODS as METHODS, size as size
from ringtrue.experiment.outcome import (
    HeldOut as HeldOut,
    Overfitting as Overfitting,
    Sweep as Sweep,
    Trial as Trial,
    Tuning as Tuning,
    Undefined as Undefined,
)
from ringtrue.experiment.record import Experiment as Experiment, check_verdict as check_verdict
from ringtrue.experiment.space import Space as Space, parameter as parameter
from ringtrue.experiment.sweep import sweep as sweep
from ringtrue.experiment.table import ExperimentTable as ExperimentTable
from ringtrue.experiment.track import tracked as tracked
from ringtrue.experiment.variants import Variants as Variants
