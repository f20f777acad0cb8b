"""The gate on request: a run or a new evaluation, a baseline and rules → pass, fail or undecided, kept in the store (B-2, B-3).

It reads baselines and never writes one (trap 38).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ringtrue.service.work.evaluating import Plan, evaluated, kept, known, run_named
from ringtrue.service.work.library import baseline_named
from ringtrue.verdict import Verdict, gate, with_checks

if TYPE_CHECKING:
    from ringtrue.run import Evaluation
    from ringtrue.run.evaluator import Watcher
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service
    from ringtrue.verdict import Check, Policy


@dataclass(frozen=True)
class Gated:
    """A verdict, what was judged, and under which id it is kept."""

    verdict: Verdict
    evaluation: Evaluation
    run_id: str


def gated(
    service: Service,
    caller: Caller,
    judged: str | Plan,
    policy: Policy,
    *,
    baseline: str | None,
    watcher: Watcher | None = None,
) -> Gated:
    """Return the verdict on a run, named by its id, or on a plan that is carried out first; it is kept with its verdict.

    Raises MissingInput for a run or baseline that is not there, and what evaluating raises.
    """
    before = None if baseline is None else baseline_named(service, caller, baseline)
    if isinstance(judged, str):
        evaluation = run_named(service, caller, judged)
    else:
        evaluation = evaluated(service, judged, watcher=watcher, more=policy.measures)
    verdict = gate(evaluation, policy, baseline=before)
    if evaluation.cached:
        verdict = with_checks(verdict, (), notes=[f"answers from the cache, made at {evaluation.setup.recorded_at}"])
    return Gated(verdict, evaluation, kept(service, caller, evaluation, verdict=verdict).run_id)


def verdict_record(found: Gated) -> dict[str, Any]:
    """Return what REST says about a verdict."""
    verdict = found.verdict
    return {
        "run_id": found.run_id,
        "verdict": verdict.word,
        "exit_code": verdict.exit_code,
        "name": verdict.name,
        "golden": found.evaluation.setup.golden.version,
        "baseline": verdict.baseline,
        "mode": verdict.mode,
        "checks": [check_record(check) for check in verdict.checks],
        "failures": [check_record(check) for check in verdict.failures],
        "notes": list(verdict.notes),
    }


def check_record(check: Check) -> dict[str, Any]:
    """Return one rule applied to one number."""
    return {
        "rule": check.rule,
        "measure": check.measure,
        "status": check.status,
        "message": check.message,
        "current": known(check.current),
        "threshold": known(check.threshold),
        "baseline": known(check.baseline),
        "degradation": known(check.degradation),
        "interval": None if check.interval is None else [known(check.interval[0]), known(check.interval[1])],
        "slice": check.slice,
        "queries": list(check.queries),
    }
