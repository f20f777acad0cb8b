"""``/v1/compare``: is one run better than another, and is that certain."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field

from ringtrue.answers import Compared
from ringtrue.service.auth import Reader
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import Line, Name, Strict
from ringtrue.service.work.comparing import Correction, compared, comparison_record
from ringtrue.service.work.evaluating import MOST_MEASURES

router = APIRouter(prefix="/v1/compare", tags=["compare"], responses=ERRORS)
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
        None,
        description="Correction if several measures decide; default: holm. Given without measures, all measures decide.",
    )
    by: list[Name] = Field([], max_length=5, description="Also per value of these query fields.")
    allow_different_sets: bool = False


@router.post("")
def compare(service: Here, caller: Reader, request: CompareRequest) -> Compared:
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
    return comparison_record(found)
