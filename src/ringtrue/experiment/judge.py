"""Accepted, rejected or undecided: what the gate and the paired comparison say about a change, with the real reason (X-1)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from ringtrue.experiment.changes import changes
from ringtrue.experiment.record import Experiment
from ringtrue.run import Evaluation, open_run
from ringtrue.verdict import Baseline, Check, Comparison, Policy, baseline_of, compare, gate, read_baseline, upside

SHOWN = 3
"""Failures that a reason names."""


def open_arm(path: Path) -> Evaluation | Baseline:
    """Return what lies there: a run folder, or a baseline file; raises MissingInput and InputError as their readers do."""
    return open_run(path) if path.is_dir() or path.name == "run.json" else read_baseline(path)


def experiment_of(
    evaluation: Evaluation,
    before: Evaluation | Baseline | None,
    *,
    on: date,
    description: str = "",
    config_changes: Mapping[str, Any] | None = None,
    verdict: str = "",
    measure: str | None = None,
    policy: Policy | None = None,
    commit: str | None = None,
    run: str | None = None,
    compared_with: str | None = None,
) -> Experiment:
    """Return a run as an experiment without an id, held against what was there ``before``.

    What is not given follows from the two: the changes from their setups, the verdict from gate and comparison, the
    description from the changes. ``run`` and ``compared_with`` say where the two lie.
    """
    if config_changes is None:
        setup = before.setup if isinstance(before, Evaluation) else before
        config_changes = {} if setup is None else changes(setup, evaluation.setup)
    if not verdict and before is not None:
        verdict = judge(evaluation, before, measure=measure, policy=policy)
        if isinstance(before, Evaluation):
            # It is judged against as if it were a baseline; whoever reads the verdict looks for it under its own name.
            verdict = verdict.replace(baseline_of(before).name, f"run {compared_with or before.name}")
    return Experiment(
        "",
        on.isoformat(),
        description or describe(config_changes),
        config_changes,
        dict(evaluation.metrics),
        verdict,
        golden=evaluation.setup.golden.version,
        corpus=evaluation.setup.corpus,
        commit=commit,
        run=run,
        baseline=compared_with,
    )


def describe(config_changes: Mapping[str, Any]) -> str:
    """Return changes as a sentence part: ``rrf.k = 30, chunking.tokens = 256``."""
    return ", ".join(f"{name} = {value}" for name, value in config_changes.items()) or "the same configuration again"


def judge(
    evaluation: Evaluation, before: Evaluation | Baseline, *, measure: str | None = None, policy: Policy | None = None
) -> str:
    """Return ``ACCEPTED (…)``, ``REJECTED (…)`` or ``UNDECIDED (…)``.

    Rejected is what fails a rule of the gate that was not failed before, or is worse by the paired test of ``measure``.
    Accepted is what is better by that test. Everything else, and runs that cannot be compared, are undecided.
    """
    rules = policy or Policy()
    baseline = baseline_of(before) if isinstance(before, Evaluation) else before
    checks = gate(evaluation, rules, baseline=baseline).checks
    apart = [check for check in checks if check.rule == "completeness" and check.status == "undecided"]
    if apart:
        return f"UNDECIDED ({apart[0].message})"
    earlier = gate(before, rules).failures if isinstance(before, Evaluation) else ()
    failed = [check for check in checks if check.status == "fail" and not _failed_before(check, earlier, baseline)]
    if failed:
        more = f"; and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
        return f"REJECTED ({'; '.join(check.message for check in failed[:SHOWN])}{more})"
    if not baseline.per_query:
        return f"UNDECIDED ({baseline.name} has no scores per query, so nothing can be tested)"
    found = compare(baseline, evaluation, primary=measure)
    word = {"better": "ACCEPTED", "worse": "REJECTED"}.get(found.verdict, "UNDECIDED")
    return f"{word} ({_reason(found)})"


def _failed_before(check: Check, earlier: tuple[Check, ...], baseline: Baseline) -> bool:
    """True where an absolute rule was missed already: the change did not cause it."""
    if any((old.rule, old.measure, old.slice) == (check.rule, check.measure, check.slice) for old in earlier):
        return True
    if check.threshold is None or check.slice is not None:
        return False
    if check.rule == "latency":
        return baseline.latency.get(check.measure, 0.0) > check.threshold
    then = baseline.metrics.get(check.measure) if check.rule in ("floor", "constitutional") else None
    return then is not None and upside(check.measure) * (then - check.threshold) < 0


def _reason(found: Comparison) -> str:
    main = found.measures[found.primary]
    numbers = f"{main.diff:+.4f} ({main.a:.4f} → {main.b:.4f}) over {main.n} queries, p = {main.p_adjusted:.2g}"
    gains = [upside(name) * one.diff for name, one in found.measures.items()]
    if found.verdict == "better":
        every = f"all {len(gains)} measures improved; " if len(gains) > 1 and all(gain > 0 for gain in gains) else ""
        return f"{every}{found.primary} better by {numbers}"
    if found.verdict == "worse":
        return f"{found.primary} worse by {numbers}"
    more = f"; about {main.more_queries:,} more queries would settle it" if main.more_queries else ""
    return f"not enough evidence: {found.primary} {numbers}{more}"
