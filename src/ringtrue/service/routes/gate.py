"""``/v1/gate``: is a run good enough. It judges and keeps the verdict; it never writes a baseline."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import Field

from ringtrue.answers import Gated
from ringtrue.errors import InputError
from ringtrue.service.auth import Writer
from ringtrue.service.context import Here
from ringtrue.service.jobs import JobProgress
from ringtrue.service.models import Name, Strict
from ringtrue.service.routes.compare import AFTER
from ringtrue.service.routes.evaluate import SEARCH_ERRORS, EvaluateRequest, wanted_of
from ringtrue.service.routes.jobs import STARTED, started
from ringtrue.service.work.evaluating import EvaluationPlan, planned
from ringtrue.service.work.gating import gated, verdict_record
from ringtrue.service.work.library import baseline_named, server_policy

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
