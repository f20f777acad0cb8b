"""Every trial of a sweep as an experiment (X-1)."""

from __future__ import annotations

from datetime import date

from ringtrue.experiment.judge import describe
from ringtrue.experiment.outcome import Sweep, Trial
from ringtrue.experiment.record import Experiment

_WORDS = {"confirmed": "ACCEPTED", "worse": "REJECTED", "not enough evidence": "UNDECIDED"}


def tracked(sweep: Sweep, *, on: date, commit: str | None = None) -> tuple[Experiment, ...]:
    """Return the trials as experiments without ids, in the order they were made; the results are those on tuning queries."""
    return tuple(_experiment(sweep, trial, on, commit) for trial in sorted(sweep.trials, key=lambda trial: trial.number))


def _experiment(sweep: Sweep, trial: Trial, on: date, commit: str | None) -> Experiment:
    point = trial.point
    extra = {"sweep": {"trial": trial.number, "of": len(sweep.trials), "method": sweep.method, "retriever": point.retriever}}
    if point.chunks is not None:
        extra["sweep"]["chunks"] = point.chunks
    return Experiment(
        "",
        on.isoformat(),
        f"sweep, trial {trial.number} of {len(sweep.trials)}: {describe(trial.values)}",
        dict(trial.values),
        {sweep.measure: trial.value},
        _verdict(sweep, trial),
        commit=commit,
        golden=sweep.golden,
        corpus=sweep.corpus,
        baseline=sweep.baseline.retriever,
        extra=extra,
    )


def _verdict(sweep: Sweep, trial: Trial) -> str:
    if sweep.best is None:
        return f"REJECTED (not better than the baseline's {sweep.measure} of {sweep.tuning.baseline:.4f} on the tuning queries)"
    if trial is sweep.best:
        return f"{_WORDS[sweep.outcome]} ({sweep.sentence})"
    reached = f"trial {sweep.best.number} reached {sweep.measure} {sweep.best.value:.4f}"
    return f"REJECTED ({reached} on the tuning queries, this one {trial.value:.4f})"
