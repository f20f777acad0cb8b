"""The gate on request: a run or a new evaluation, a baseline and rules → pass, fail or undecided, kept in the store (B-2, B-3).

It reads baselines and never writes one (trap 38).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ringtrue.service.work.evaluating import Plan, evaluated, kept, known, run_named
from ringtrue.service.work.library import baseline_named
from ringtrue.store import AuditEntry, timestamp
from ringtrue.traffic import marked
from ringtrue.verdict import Check, Verdict, gate, with_checks

if TYPE_CHECKING:
    from ringtrue.run import Evaluation
    from ringtrue.run.evaluator import Watcher
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service
    from ringtrue.verdict import Policy

VERDICT = "gate.verdict"
"""What the audit trail calls a verdict; it keeps the checks, of which the run itself keeps only the outcome."""


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
        row = service.of(caller).result(judged, project=caller.project)
        # A candidate stays one when it is judged.
        feature_id, uploaded = (None, False) if row is None else (row.feature_id, row.uploaded)
    else:
        with marked("gate"):
            evaluation = evaluated(service, judged, watcher=watcher, more=policy.measures)
        feature_id, uploaded = judged.wanted.feature_id, judged.wanted.uploaded
    verdict = gate(evaluation, policy, baseline=before)
    if evaluation.cached:
        verdict = with_checks(verdict, (), notes=[f"answers from the cache, recorded at {evaluation.setup.recorded_at}"])
    row = kept(service, caller, evaluation, verdict=verdict, feature_id=feature_id, uploaded=uploaded)
    found = Gated(verdict, evaluation, row.run_id)
    entry = AuditEntry(
        timestamp(service.now()), caller.who, VERDICT, found.run_id, caller.project, verdict_record(found) | {"by": baseline}
    )
    service.of(caller).add_audit(entry)
    return found


@dataclass(frozen=True)
class Decided:
    """What the gate said of a run when it judged it, and every check that it said it for."""

    verdict: Verdict
    record: Mapping[str, Any]
    """As REST says it."""
    by: str | None
    """The baseline as it was named; None where floors and ceilings alone counted."""
    at: str
    who: str


def decided(service: Service, caller: Caller, run_id: str) -> Decided | None:
    """Return what the gate said of a run and why; None where it was not judged here."""
    entries = service.of(caller).audit(project=caller.project, subject=run_id, what=VERDICT, limit=1)
    if not entries:
        return None
    entry = entries[0]
    record = {name: value for name, value in entry.detail.items() if name != "by"}
    verdict = Verdict(
        word=record["verdict"],
        checks=tuple(_check(one) for one in record["checks"]),
        name=record["name"],
        baseline=record["baseline"],
        mode=record["mode"],
        notes=tuple(record["notes"]),
    )
    return Decided(verdict, record, entry.detail.get("by"), entry.at, entry.who)


def _check(record: Mapping[str, Any]) -> Check:
    def number(value: float | None) -> float:
        return math.nan if value is None else value

    ends = record["interval"]
    return Check(
        **{
            **record,
            "current": number(record["current"]),
            "interval": None if ends is None else (number(ends[0]), number(ends[1])),
            "queries": tuple(record["queries"]),
        }
    )


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
