"""``/v1/shadow``: candidates that answer beside production without anybody seeing it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from ringtrue.answers import ShadowFeature, ShadowFeatureRuns, ShadowRecorded, ShadowSource
from ringtrue.service.auth import Reader, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.incoming import Milliseconds, Past
from ringtrue.service.models import Limit, Line, Name, Strict, record_from
from ringtrue.service.routes.queries import PathName
from ringtrue.service.work.rollout import Shadowed, record_shadow, shadow_feature, shadow_rows, shadowed
from ringtrue.store import ShadowRun, timestamp

router = APIRouter(prefix="/v1/shadow", tags=["shadow"], responses=ERRORS)
MOST = 1_000


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


@router.get("")
def list_features(service: Here, caller: Reader) -> list[ShadowFeature]:
    """List the features that run or ran in the shadow, with what that has shown."""
    return list(map(_feature, shadowed(service, caller)))


def _feature(found: Shadowed) -> ShadowFeature:
    return record_from(ShadowFeature, found.flag, feature=found.flag.name, summary=found.summary)


@router.get("/{feature}")
def one(service: Here, caller: Reader, feature: PathName, limit: Limit = 50) -> ShadowFeatureRuns:
    """Return what the shadow of a feature has shown, and its newest runs."""
    found = shadow_feature(service, caller, feature)
    runs = tuple(shadow_rows(service, caller, feature, limit=limit))
    return record_from(ShadowFeatureRuns, _feature(found), runs=runs)


@router.post("/{feature}/runs", status_code=201)
def record(service: Here, caller: Writer, feature: PathName, given: Runs) -> ShadowRecorded:
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
    return ShadowRecorded(accepted=len(rows), stored=record_shadow(service, caller, rows))
