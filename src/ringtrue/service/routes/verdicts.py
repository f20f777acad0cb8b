"""``/v1/compare`` and ``/v1/gate``: is one run better than another, and is a run good enough."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import Field, TypeAdapter

from ringtrue import answers
from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.report import known
from ringtrue.service.auth import Access, Reader, Writer
from ringtrue.service.errors import ERRORS
from ringtrue.service.evaluating import MOST_MEASURES, EvaluationPlan, evaluated, kept, keys_of, planned
from ringtrue.service.jobs import JobProgress
from ringtrue.service.library import answers_of, baseline_named, server_policy
from ringtrue.service.models import Line, Name, Strict, record_from
from ringtrue.service.routes.evaluate import SEARCH_ERRORS, EvaluateRequest, wanted_of
from ringtrue.service.routes.server import STARTED, started
from ringtrue.store import StoredJob
from ringtrue.traffic import marked
from ringtrue.verdict import Check, Comparison, Verdict, with_checks, with_measures
from ringtrue.verdict import compare as compare_evaluations
from ringtrue.verdict import gate as gate_evaluation

if TYPE_CHECKING:
    from ringtrue.run import Evaluation, Watcher
    from ringtrue.verdict import MeasureComparison, Policy

Correction = Literal["holm", "benjamini-hochberg", "none"]


def compared(
    access: Access,
    a: str,
    b: str,
    *,
    measures: Sequence[str] = (),
    primary: str | None = None,
    alpha: float = 0.05,
    correction: Correction | None = None,
    by: Sequence[str] = (),
    allow_different_sets: bool = False,
) -> Comparison:
    """Return whether run ``b`` is better than run ``a``, over the queries that both answered.

    Measures that a run did not score are computed from its answers. Raises MissingInput, InputError, and CannotDecide if the
    two cannot be compared.
    """
    wanted = [*measures, *([primary] if primary is not None else [])]
    before, after = (with_measures(answers_of(access, one), wanted)[0] for one in (a, b))
    if before.name == after.name:  # so that each is told from the other
        before, after = replace(before, name=f"{before.name} ({a})"), replace(after, name=f"{after.name} ({b})")
    for name in by:
        fields = sorted({field for one in (before, after) for facts in one.scores.facts.values() for field in facts})
        if name not in fields:
            cure = f"did you mean {nearest(name, fields)}?" if fields else "the sets declare none"
            raise InputError(f"no query has the field '{name[:60]}'; {cure}")
    return compare_evaluations(
        before,
        after,
        measures=list(dict.fromkeys(wanted)) if measures else None,
        primary=primary,
        alpha=alpha,
        correction=correction,
        slices=tuple(by),
        allow_different_sets=allow_different_sets,
    )


def comparison_opened(access: Access, a: str, b: str, *, measure: str | None) -> Comparison:
    """Return whether run ``b`` is better than run ``a``; raises MissingInput, InputError and CannotDecide."""
    for run_id in (a, b):
        if access.store.result(run_id, project=access.project) is None:
            raise MissingInput(f"there is no run '{run_id:.120}'; look it up in the list of runs")
    key = (access.project, a, b, measure)
    return access.service.opened.comparisons.get(key, lambda: (1, compared(access, a, b, primary=measure)))


comparing_routes = APIRouter(prefix="/v1/compare", tags=["compare"], responses=ERRORS)
BEFORE, AFTER = "full-2026-01-05T08:00:00.000000Z-0000000a", "full-2026-01-05T09:00:00.000000Z-0000000b"
"""The runs of the examples."""


class CompareRequest(
    Strict,
    examples=[
        {"a": BEFORE, "b": AFTER},
        {"a": BEFORE, "b": AFTER, "measures": ["nDCG@10", "R@10"], "primary": "R@10", "correction": "none"},
    ],
):
    """Two runs: is ``b`` better than ``a``?"""

    a: Name = Field(description="Id of the run that is there.")
    b: Name = Field(description="Id of the run that is new.")
    measures: list[Line] = Field(
        [],
        max_length=MOST_MEASURES,
        description="The measures that decide; default: the primary one, with all others as information.",
    )
    primary: Line | None = Field(None, description="The measure whose word is the verdict; nDCG@10, else the first.")
    alpha: float = Field(0.05, gt=0, lt=1, description="How often a difference may be found where there is none.")
    correction: Correction | None = Field(
        None, description="Correction if several measures decide; default: holm. Given without measures, all measures decide."
    )
    by: list[Name] = Field([], max_length=5, description="Also per value of these query fields.")
    allow_different_sets: bool = False


@comparing_routes.post("")
def compare(access: Reader, request: CompareRequest) -> answers.Compared:
    """Compare two runs of the project over the queries that both answered."""
    found = compared(access, **request.model_dump())
    keys, latency = keys_of(list(found.measures)), found.latency

    def differences(measures: Mapping[str, MeasureComparison]) -> dict[str, answers.MeasureDifference]:
        return {
            keys[name]: record_from(answers.MeasureDifference, one, ci=(one.low, one.high), verdict=one.word)
            for name, one in measures.items()
        }

    return record_from(
        answers.Compared,
        found,
        primary=keys[found.primary],
        measures=differences(found.measures),
        per_query=found.measures[found.primary].deltas,
        slices={
            field: {value: differences(parts) for value, parts in values.items()} for field, values in found.slices.items()
        },
        latency_ms=latency and record_from(answers.LatencyDifference, latency, ci=(latency.low, latency.high)),
    )


VERDICT = "gate.verdict"
"""What the audit trail calls a verdict; it keeps the checks, of which the run itself keeps only the outcome."""
_GATED = TypeAdapter(answers.Gated)


def gated(
    access: Access, judged: str | EvaluationPlan, policy: Policy, *, baseline: str | None, watcher: Watcher | None = None
) -> answers.Gated:
    """Return the verdict on a run, named by its id, or on a plan that is carried out first; it is kept with its verdict.

    Raises MissingInput for a run or baseline that is not there, and what evaluating raises.
    """
    before = None if baseline is None else baseline_named(access, baseline)
    if isinstance(judged, str):
        evaluation = answers_of(access, judged)
        row = access.store.result(judged, project=access.project)
        # A candidate stays one when it is judged.
        feature_id, uploaded = (None, False) if row is None else (row.feature_id, row.uploaded)
    else:
        with marked("gate"):
            evaluation = evaluated(access.service, judged, watcher=watcher, more=policy.measures)
        feature_id, uploaded = judged.feature_id, judged.uploaded
    verdict = gate_evaluation(evaluation, policy, baseline=before)
    if evaluation.cached:
        verdict = with_checks(verdict, (), notes=[f"answers from the cache, recorded at {evaluation.setup.recorded_at}"])
    row = kept(access, evaluation, verdict=verdict, feature_id=feature_id, uploaded=uploaded)
    found = verdict_record(verdict, evaluation, run_id=row.run_id)
    access.note(VERDICT, found.run_id, asdict(found) | {"by": baseline})
    return found


@dataclass(frozen=True)
class Decided:
    """What the gate said of a run when it judged it, and every check that it said it for."""

    verdict: Verdict
    record: answers.Gated
    """As REST says it."""
    by: str | None
    """The baseline as it was named; None where floors and ceilings alone counted."""
    at: str
    who: str


def decided(access: Access, run_id: str) -> Decided | None:
    """Return what the gate said of a run and why; None if it was not judged here."""
    entries = access.store.audit(project=access.project, subject=run_id, what=VERDICT, limit=1)
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


def verdict_record(verdict: Verdict, evaluation: Evaluation, *, run_id: str) -> answers.Gated:
    """Return what REST says about a verdict on a run."""
    return record_from(
        answers.Gated,
        verdict,
        run_id=run_id,
        verdict=verdict.word,
        golden=evaluation.setup.golden.version,
        checks=tuple(map(_check_record, verdict.checks)),
        failures=tuple(map(_check_record, verdict.failures)),
    )


def _check_record(check: Check) -> answers.GateCheck:
    numbers = {name: known(getattr(check, name)) for name in ("current", "threshold", "baseline", "degradation")}
    interval = None if check.interval is None else tuple(map(known, check.interval))
    return record_from(answers.GateCheck, check, **numbers, interval=interval)


gating_routes = APIRouter(prefix="/v1/gate", tags=["gate"])


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


@gating_routes.post("", response_model=answers.Gated, responses={**STARTED, **SEARCH_ERRORS})
def gate(access: Writer, request: GateRequest) -> answers.Gated | JSONResponse:
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
        judged = planned(access.service, wanted_of(access, request.evaluate))
        if request.baseline is not None:
            baseline_named(access, request.baseline)  # a wrong name is told before anything is evaluated
        if request.evaluate.wait is False or not judged.at_once(access.service.settings.at_once):
            return started(start_gate(access, judged, policy, baseline=request.baseline))
    return gated(access, judged, policy, baseline=request.baseline)


def start_gate(access: Access, plan: EvaluationPlan, policy: Policy, *, baseline: str | None) -> StoredJob:
    """Carry a plan out and judge it as a job, whose result is the verdict."""

    def work(progress: JobProgress) -> dict[str, Any]:
        return asdict(gated(access, plan, policy, baseline=baseline, watcher=progress.watcher()))

    return access.service.jobs.start("gate", access.caller, plan.record() | {"baseline": baseline}, work)
