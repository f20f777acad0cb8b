"""``/v1/compare``: is one run better than another, and is that certain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from fastapi import APIRouter
from pydantic import Field

from ringtrue.answers import Compared, LatencyDifference, MeasureDifference
from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.service.auth import Reader
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.models import Line, Name, Strict, record_from
from ringtrue.service.work.evaluating import MOST_MEASURES, keys_of
from ringtrue.service.work.library import answers_of
from ringtrue.verdict import Comparison, with_measures
from ringtrue.verdict import compare as compare_evaluations

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service
    from ringtrue.verdict import MeasureComparison

Correction = Literal["holm", "benjamini-hochberg", "none"]


def compared(
    service: Service,
    caller: Caller,
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

    Measures that a run did not score are computed from its answers. Raises MissingInput, InputError, and CannotDecide where the
    two cannot be compared.
    """
    wanted = [*measures, *([primary] if primary is not None else [])]
    before, after = (with_measures(answers_of(service, caller, one), wanted)[0] for one in (a, b))
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


def comparison_opened(service: Service, caller: Caller, a: str, b: str, *, measure: str | None) -> Comparison:
    """Return whether run ``b`` is better than run ``a``; raises MissingInput, InputError and CannotDecide."""
    for run_id in (a, b):
        if service.of(caller).result(run_id, project=caller.project) is None:
            raise MissingInput(f"there is no run '{run_id:.120}'; look it up in the list of runs")
    key = (caller.project, a, b, measure)
    return service.opened.comparisons.get(key, lambda: (1, compared(service, caller, a, b, primary=measure)))


def _difference(one: MeasureComparison) -> MeasureDifference:
    return record_from(MeasureDifference, one, ci=(one.low, one.high), verdict=one.word)


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
    found = compared(service, caller, **request.model_dump())
    keys, latency = keys_of(list(found.measures)), found.latency

    def differences(measures: Mapping[str, MeasureComparison]) -> dict[str, MeasureDifference]:
        return {keys[name]: _difference(one) for name, one in measures.items()}

    return record_from(
        Compared,
        found,
        primary=keys[found.primary],
        measures=differences(found.measures),
        per_query=found.measures[found.primary].deltas,
        slices={
            field: {value: differences(parts) for value, parts in values.items()} for field, values in found.slices.items()
        },
        latency_ms=latency and record_from(LatencyDifference, latency, ci=(latency.low, latency.high)),
    )
