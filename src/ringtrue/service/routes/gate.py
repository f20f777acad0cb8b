"""``/v1/gate``: is a run good enough. It judges and keeps the verdict; it never writes a baseline."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import Field, TypeAdapter

from ringtrue.answers import Check as CheckAnswer
from ringtrue.answers import Gated
from ringtrue.errors import InputError
from ringtrue.report import known
from ringtrue.service.auth import Writer
from ringtrue.service.context import Here
from ringtrue.service.jobs import JobProgress
from ringtrue.service.models import Name, Strict, record_from
from ringtrue.service.routes.compare import AFTER
from ringtrue.service.routes.evaluate import SEARCH_ERRORS, EvaluateRequest, wanted_of
from ringtrue.service.routes.jobs import STARTED, started
from ringtrue.service.work.evaluating import EvaluationPlan, evaluated, kept, planned
from ringtrue.service.work.library import answers_of, baseline_named, server_policy
from ringtrue.traffic import marked
from ringtrue.verdict import Check, Verdict, with_checks
from ringtrue.verdict import gate as gate_evaluation

if TYPE_CHECKING:
    from ringtrue.run import Evaluation, Watcher
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service
    from ringtrue.verdict import Policy

VERDICT = "gate.verdict"
"""What the audit trail calls a verdict; it keeps the checks, of which the run itself keeps only the outcome."""
_GATED = TypeAdapter(Gated)


@dataclass(frozen=True)
class JudgedRun:
    """A verdict, what was judged, and under which id it is kept."""

    verdict: Verdict
    evaluation: Evaluation
    run_id: str


def gated(
    service: Service,
    caller: Caller,
    judged: str | EvaluationPlan,
    policy: Policy,
    *,
    baseline: str | None,
    watcher: Watcher | None = None,
) -> JudgedRun:
    """Return the verdict on a run, named by its id, or on a plan that is carried out first; it is kept with its verdict.

    Raises MissingInput for a run or baseline that is not there, and what evaluating raises.
    """
    before = None if baseline is None else baseline_named(service, caller, baseline)
    if isinstance(judged, str):
        evaluation = answers_of(service, caller, judged)
        row = service.of(caller).result(judged, project=caller.project)
        # A candidate stays one when it is judged.
        feature_id, uploaded = (None, False) if row is None else (row.feature_id, row.uploaded)
    else:
        with marked("gate"):
            evaluation = evaluated(service, judged, watcher=watcher, more=policy.measures)
        feature_id, uploaded = judged.feature_id, judged.uploaded
    verdict = gate_evaluation(evaluation, policy, baseline=before)
    if evaluation.cached:
        verdict = with_checks(verdict, (), notes=[f"answers from the cache, recorded at {evaluation.setup.recorded_at}"])
    row = kept(service, caller, evaluation, verdict=verdict, feature_id=feature_id, uploaded=uploaded)
    found = JudgedRun(verdict, evaluation, row.run_id)
    service.note(caller, VERDICT, found.run_id, asdict(verdict_record(found)) | {"by": baseline})
    return found


@dataclass(frozen=True)
class Decided:
    """What the gate said of a run when it judged it, and every check that it said it for."""

    verdict: Verdict
    record: Gated
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
    record = _GATED.validate_python({name: value for name, value in entry.detail.items() if name != "by"})
    checks = []
    for one in record.checks:
        current, *ends = (math.nan if value is None else value for value in (one.current, *(one.interval or ())))
        facts = {field.name: getattr(one, field.name) for field in fields(one)}
        checks.append(Check(**facts | {"current": current, "interval": tuple(ends) or None}))
    verdict = Verdict(record.verdict, tuple(checks), record.name, record.baseline, mode=record.mode, notes=record.notes)
    return Decided(verdict, record, entry.detail.get("by"), entry.at, entry.who)


def verdict_record(found: JudgedRun) -> Gated:
    """Return what REST says about a verdict."""
    verdict = found.verdict
    return record_from(
        Gated,
        verdict,
        found,
        verdict=verdict.word,
        golden=found.evaluation.setup.golden.version,
        checks=tuple(map(_check_record, verdict.checks)),
        failures=tuple(map(_check_record, verdict.failures)),
    )


def _check_record(check: Check) -> CheckAnswer:
    numbers = {name: known(getattr(check, name)) for name in ("current", "threshold", "baseline", "degradation")}
    interval = None if check.interval is None else tuple(map(known, check.interval))
    return record_from(CheckAnswer, check, **numbers, interval=interval)


router = APIRouter(prefix="/v1/gate", tags=["gate"])


class GateRequest(
    Strict,
    examples=[
        {"run": AFTER, "baseline": "hotel-search", "policy": {"floors": {"R@10": 0.1}, "latency": {}}},
        {"run": AFTER, "baseline": "hotel-search"},
        {"evaluate": {"golden": "hotel", "retriever": "bm25"}, "baseline": "hotel-search@1.0.0"},
    ],
):
    """What is judged, by which baseline, and by which rules."""

    run: Name | None = Field(None, description="Id of a run.")
    evaluate: EvaluateRequest | None = Field(None, description="What to evaluate first, in place of `run`.")
    baseline: Name | None = Field(
        description="`name` or `name@version`. With null, rules that need one are undecided unless require_baseline is false."
    )
    policy: dict[str, Any] | None = Field(
        None,
        description="Rules in place of those of the server's ringtrue.toml: floors, latency, slices, drop_measures, max_drop, "
        "mode, min_effect, alpha, latency_increase, latency_slack, slice_drop, slice_minimum, minimum_queries, same_corpus, "
        "require_baseline.",
    )


@router.post("", response_model=Gated, responses={**STARTED, **SEARCH_ERRORS})
def gate(service: Here, caller: Writer, request: GateRequest) -> Gated | JSONResponse:
    """Judge a run, or evaluate and judge: pass, fail or undecided.

    An evaluation that is too large for one request becomes a job, whose result is this answer.
    """
    if (request.run is None) == (request.evaluate is None):
        raise InputError("name either a run or what to evaluate; give one of run and evaluate")
    policy = server_policy(request.policy)
    judged: str | EvaluationPlan
    if request.run is not None:
        judged = request.run
    else:
        assert request.evaluate is not None
        judged = planned(service, wanted_of(service, caller, request.evaluate))
        if request.baseline is not None:
            baseline_named(service, caller, request.baseline)  # a wrong name is told before anything is evaluated
        if request.evaluate.wait is False or not judged.at_once(service.settings.at_once):
            plan = judged

            def work(progress: JobProgress) -> dict[str, Any]:
                found = gated(service, caller, plan, policy, baseline=request.baseline, watcher=progress.watcher())
                return asdict(verdict_record(found))

            said = plan.record() | {"baseline": request.baseline}
            return started(service.jobs.start("gate", caller, said, work))
    return verdict_record(gated(service, caller, judged, policy, baseline=request.baseline))
