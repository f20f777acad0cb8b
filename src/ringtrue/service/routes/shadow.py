"""``/v1/shadow``: candidates that answer beside production without anybody seeing it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from ringtrue.answers import ShadowFeature, ShadowFeatureRuns, ShadowRecorded, ShadowSource, ShadowSummary
from ringtrue.errors import MissingInput, nearest
from ringtrue.log import Redactor
from ringtrue.rollout import grades_by_words, scorer, shadow_of
from ringtrue.rollout.evidence import shadowed as shadow_features
from ringtrue.rollout.scoring import compared
from ringtrue.service.auth import Caller, Reader, Writer
from ringtrue.service.context import Here, Service
from ringtrue.service.errors import ERRORS
from ringtrue.service.incoming import Milliseconds, Past
from ringtrue.service.models import Limit, Line, Name, Strict, record_from
from ringtrue.service.routes.queries import PathName
from ringtrue.store import Flag, ShadowRun, timestamp

router = APIRouter(prefix="/v1/shadow", tags=["shadow"], responses=ERRORS)
MOST = 1_000
SHADOW_K = 10
"""Depth to which lists of production and candidate are compared."""


@dataclass(frozen=True, slots=True)
class Shadowed:
    """A feature whose candidate runs beside production, and what that has shown."""

    flag: Flag
    known: bool
    """False where nobody set the flag, and runs were recorded all the same."""
    summary: ShadowSummary


class SentShadowRun(Strict):
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


class SentShadowRuns(
    Strict,
    examples=[
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
    ],
):
    """Results of a candidate that runs elsewhere."""

    runs: Annotated[list[SentShadowRun], Field(min_length=1, max_length=MOST)]


@router.get("")
def list_features(service: Here, caller: Reader) -> list[ShadowFeature]:
    """List the features that run or ran in the shadow, with what that has shown."""
    return list(map(_feature, shadowed(service, caller)))


def _feature(found: Shadowed) -> ShadowFeature:
    return record_from(ShadowFeature, found.flag, feature=found.flag.name, summary=found.summary)


def shadowed(service: Service, caller: Caller) -> list[Shadowed]:
    """Return the features of the project that run or ran in the shadow."""
    store = service.of(caller)
    features = shadow_features(store, project=caller.project)
    found = [Shadowed(flag, known, shadow_of(store, flag, judged=True)) for flag, known in features]
    return [one for one in found if one.flag.shadow or one.summary.queries]


@router.get("/{feature}")
def one(service: Here, caller: Reader, feature: PathName, limit: Limit = 50) -> ShadowFeatureRuns:
    """Return what the shadow of a feature has shown, and its newest runs."""
    found = shadow_feature(service, caller, feature)
    runs = tuple(shadow_rows(service, caller, feature, limit=limit))
    return record_from(ShadowFeatureRuns, _feature(found), runs=runs)


def shadow_feature(service: Service, caller: Caller, feature: str) -> Shadowed:
    """Return what the shadow of a feature has shown; raises MissingInput if there is neither a flag nor a run."""
    store = service.of(caller)
    known = store.flag(feature, project=caller.project)
    flag = known or Flag(feature, project=caller.project)
    found = Shadowed(flag, known is not None, shadow_of(store, flag, judged=True))
    if known is None and not found.summary.queries:
        names = [one.name for one in store.flags(project=caller.project)]
        cure = f"did you mean {nearest(feature, names)}?" if names else "no feature runs in the shadow yet"
        raise MissingInput(f"there is no shadow of '{feature}'; {cure}")
    return found


def shadow_rows(service: Service, caller: Caller, feature: str, *, limit: int) -> list[ShadowRun]:
    """Return the newest runs of a feature, the newest first."""
    return service.of(caller).shadow_runs(feature_id=feature, project=caller.project, limit=limit, newest=True)[::-1]


@router.post("/{feature}/runs", status_code=201)
def record(service: Here, caller: Writer, feature: PathName, given: SentShadowRuns) -> ShadowRecorded:
    """Record results of a candidate that runs elsewhere; they are compared here, and scored where the query is judged."""
    now, store, cleaner = timestamp(service.now()), service.of(caller), Redactor()
    searches = store.queries(project=caller.project, query_ids=sorted({run.query_id for run in given.runs}))
    judged = grades_by_words(searches, store.judgments(project=caller.project)) if searches else {}
    score = scorer(judged, k=SHADOW_K)
    rows = []
    for run in given.runs:
        lists = {name: tuple(getattr(run, name)) for name in ("control_result_ids", "treatment_result_ids")}
        facts = run.model_dump() | lists | {"created_at": run.created_at or now}
        row = ShadowRun(**facts, feature_id=feature, project=caller.project)
        if run.error is not None:
            rows.append(replace(row, error=cleaner.text(run.error)))
            continue
        control, treatment = score(run.query_id, row.control_result_ids), score(run.query_id, row.treatment_result_ids)
        both = None if control is None or treatment is None else (control, treatment)
        rows.append(compared(row, k=SHADOW_K, scores=both))
    return ShadowRecorded(accepted=len(rows), stored=store.add_shadow_runs(rows))
