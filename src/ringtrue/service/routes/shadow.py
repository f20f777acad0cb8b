"""``/v1/shadow``: candidates that answer beside production without anybody seeing it (S-1)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from ringtrue.service.auth import Reader, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.incoming import Milliseconds, Past
from ringtrue.service.models import Answer, Limit, Line, Name, Strict
from ringtrue.service.routes.queries import PathName
from ringtrue.service.work.rollout import Shadowed, record_shadow, shadow_feature, shadow_rows, shadowed
from ringtrue.store import ShadowRun, ShadowSource, timestamp

router = APIRouter(prefix="/v1/shadow", tags=["shadow"], responses=ERRORS)
MOST = 1_000


class Summary(Answer):
    """What the runs of a candidate have shown; null where there is nothing to take a figure from."""

    queries: int
    failures: int
    changed: float | None = Field(description="Share of answers that differ in any place.")
    top_changed: float | None
    overlap: float | None
    tau: float | None
    judged: int
    mrr_delta: float | None = Field(description="Candidate − production, over judged queries.")
    mrr_spread: float | None
    ndcg_delta: float | None
    timed: int
    control_p95_ms: float | None
    treatment_p95_ms: float | None
    timed_source: ShadowSource | None
    live: int
    missing: int
    missing_share: float | None
    failure_share: float | None
    p95_increase: float | None


class Feature(Answer):
    """A feature that runs in the shadow."""

    feature: str
    shadow: bool = Field(description="Whether its candidate runs now.")
    rollout: float
    state: str
    summary: Summary

    @classmethod
    def of(cls, found: Shadowed) -> Feature:
        return cls(
            feature=found.flag.name,
            shadow=found.flag.shadow,
            rollout=found.flag.rollout,
            state=found.flag.state,
            summary=Summary.model_validate(found.summary, from_attributes=True),
        )


class RunAnswer(Answer):
    """One query, answered by production and by the candidate."""

    query_id: str
    created_at: str
    control_result_ids: list[str]
    treatment_result_ids: list[str]
    rank_correlation: float | None
    set_overlap: float | None
    top_result_changed: bool | None
    order_differences: int | None
    mrr_delta: float | None
    ndcg_delta: float | None
    control_latency_ms: float | None
    treatment_latency_ms: float | None
    error: str | None
    candidate: str
    source: ShadowSource | None


class FeatureRuns(Feature):
    """A feature that runs in the shadow, with its newest runs."""

    runs: list[RunAnswer]


class Run(Strict):
    """One query that both answered; or why the candidate did not."""

    query_id: Name
    control_result_ids: Annotated[list[Name], Field(max_length=1_000)]
    treatment_result_ids: Annotated[list[Name], Field(max_length=1_000)] = Field(default_factory=list)
    created_at: Past | None = None
    control_latency_ms: Milliseconds | None = None
    treatment_latency_ms: Milliseconds | None = None
    error: Line | None = Field(None, description="Why the candidate gave no answer.")
    candidate: Annotated[str, Field(max_length=200)] = Field("", description="What tells candidates of one feature apart.")
    source: ShadowSource = "live"


class Runs(Strict):
    """Results of a candidate that runs elsewhere."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "runs": [
                        {
                            "query_id": "eq_a1",
                            "control_result_ids": ["faq-12", "policy-3"],
                            "treatment_result_ids": ["policy-3", "faq-12"],
                            "control_latency_ms": 20.5,
                            "treatment_latency_ms": 24,
                        },
                        {"query_id": "eq_a2", "control_result_ids": ["faq-1"], "error": "timed out after 5 s"},
                    ]
                }
            ]
        }
    )
    runs: Annotated[list[Run], Field(min_length=1, max_length=MOST)]


class Recorded(Answer):
    accepted: int
    stored: int = Field(description="New ones: a query counts once for a candidate of a feature.")


@router.get("")
def list_features(service: Here, caller: Reader) -> list[Feature]:
    """List the features that run or ran in the shadow, with what that has shown."""
    return [Feature.of(found) for found in shadowed(service, caller)]


@router.get("/{feature}")
def one(service: Here, caller: Reader, feature: PathName, limit: Limit = 50) -> FeatureRuns:
    """Return what the shadow of a feature has shown, and its newest runs."""
    found = shadow_feature(service, caller, feature)
    rows = shadow_rows(service, caller, feature, limit=limit)
    runs = [RunAnswer.model_validate(row, from_attributes=True) for row in rows]
    return FeatureRuns(**Feature.of(found).model_dump(), runs=runs)


@router.post("/{feature}/runs", status_code=201)
def record(service: Here, caller: Writer, feature: PathName, given: Runs) -> Recorded:
    """Record results of a candidate that runs elsewhere; they are compared here, and scored where the query is judged."""
    now = timestamp(service.now())
    rows = [
        ShadowRun(
            query_id=run.query_id,
            feature_id=feature,
            created_at=run.created_at or now,
            control_result_ids=tuple(run.control_result_ids),
            treatment_result_ids=tuple(run.treatment_result_ids),
            project=caller.project,
            control_latency_ms=run.control_latency_ms,
            treatment_latency_ms=run.treatment_latency_ms,
            error=run.error,
            candidate=run.candidate,
            source=run.source,
        )
        for run in given.runs
    ]
    return Recorded(accepted=len(rows), stored=record_shadow(service, caller, rows))
