"""``/v1/compare``: is one run better than another, and is that certain."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from ringtrue.service.auth import Reader
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import Answer, Line, Name, Strict
from ringtrue.service.work.comparing import Correction, compared, comparison_record
from ringtrue.service.work.evaluating import MOST_MEASURES

router = APIRouter(prefix="/v1/compare", tags=["compare"], responses=ERRORS)
Word = Literal["better", "worse", "not enough evidence"]
BEFORE, AFTER = "full-2026-01-05T08:00:00.000000Z-0000000a", "full-2026-01-05T09:00:00.000000Z-0000000b"
"""The runs of the examples."""


class CompareRequest(Strict):
    """Two runs: is ``b`` better than ``a``?"""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"a": BEFORE, "b": AFTER},
                {"a": BEFORE, "b": AFTER, "measures": ["nDCG@10", "R@10"], "primary": "R@10", "correction": "none"},
            ]
        }
    )

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
        None,
        description="Correction if several measures decide; default: holm. Given without measures, all measures decide.",
    )
    by: list[Name] = Field([], max_length=5, description="Also per value of these query fields.")
    allow_different_sets: bool = False


class MeasureAnswer(Answer):
    """One measure of b against a, over the queries that both have."""

    measure: str
    n: int
    a: float | None
    b: float | None
    diff: float | None
    ci: list[float | None] = Field(description="The interval of the mean difference that decided, at 1 − level.")
    p: float | None = Field(description="Of the randomisation test.")
    p_adjusted: float | None = Field(description="The p that decides: the larger of p and interval_p, corrected.")
    interval_p: float | None = Field(description="The smallest alpha at which the interval excludes 0.")
    decides: bool = Field(description="False for a measure that is informational only.")
    tests: int = Field(description="How many tests p_adjusted, ci and verdict are corrected for.")
    level: float
    effect: float | None
    prob_better: float | None
    wins: int
    ties: int
    losses: int
    verdict: Word
    reason: str
    more_queries: int | None = Field(description="How many more would settle it; null where no number does.")
    warnings: list[str]


class LatencyAnswer(Answer):
    """Milliseconds of a and b over the same queries."""

    n: int
    mean_diff: float | None
    ci: list[float | None]
    p50: list[float | None]
    p95: list[float | None]
    p99: list[float | None]
    comparable: bool = Field(description="False where the two were measured on different machines.")


class ComparisonAnswer(Answer):
    """Is b better than a? The verdict is the word of the primary measure."""

    verdict: Word
    reason: str
    a: str
    b: str
    primary: str
    measures: dict[str, MeasureAnswer]
    per_query: dict[str, float | None] = Field(description="b − a of the primary measure, by query.")
    slices: dict[str, dict[str, dict[str, MeasureAnswer]]] = Field(description="field → value → measure; explorative.")
    latency_ms: LatencyAnswer | None
    only_a: list[str]
    only_b: list[str]
    alpha: float
    correction: str
    notes: list[str]


@router.post("")
def compare(service: Here, caller: Reader, request: CompareRequest) -> ComparisonAnswer:
    """Compare two runs of the project over the queries that both answered."""
    found = compared(
        service,
        caller,
        request.a,
        request.b,
        measures=request.measures,
        primary=request.primary,
        alpha=request.alpha,
        correction=request.correction,
        by=request.by,
        allow_different_sets=request.allow_different_sets,
    )
    return ComparisonAnswer.model_validate(comparison_record(found))
