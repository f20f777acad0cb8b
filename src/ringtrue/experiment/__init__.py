"""Experiments: what was tried, what came of it, and searches over a retriever's parameters.

Comes in: evaluations, baselines, golden sets, retriever expressions with holes. Goes out: Experiments in a ledger, and Sweeps.
May not: print or read the clock; dates and times are given. Owner of ``experiments.json`` and of the journals of sweeps;
in the store they are rows of its table.
"""

from ringtrue.experiment.judging import (
    changes as changes,
    describe as describe,
    experiment_of as experiment_of,
    given_change as given_change,
    judge as judge,
    open_arm as open_arm,
)
from ringtrue.experiment.ledger import (
    Experiment as Experiment,
    ExperimentFile as ExperimentFile,
    ExperimentTable as ExperimentTable,
    check_verdict as check_verdict,
    find as find,
    numbered as numbered,
    read_experiments as read_experiments,
    write_experiments as write_experiments,
)
from ringtrue.experiment.outcome import (
    Effect as Effect,
    HeldOut as HeldOut,
    Overfitting as Overfitting,
    Sweep as Sweep,
    Trial as Trial,
    Tuning as Tuning,
    Undefined as Undefined,
    effects as effects,
    tracked as tracked,
)
from ringtrue.experiment.space import (
    METHODS as METHODS,
    Choice as Choice,
    TrialPoint as TrialPoint,
    Space as Space,
    Value as Value,
    parameter as parameter,
    size as size,
)
from ringtrue.experiment.sweeping import sweep as sweep
from ringtrue.experiment.trials import Variants as Variants
