"""``/v1/tests``: sequential tests, which may be looked at after every query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import Field

from ringtrue.answers import CountedQuery, EvidencePoint, RecordedScores, SequentialTest, SequentialTestPath, Status
from ringtrue.errors import InputError
from ringtrue.rollout import (
    Recorded,
    Scores,
    checked_scores,
    create_test,
    found_test,
    record_difference,
    record_scores,
    set_status,
    standing,
)
from ringtrue.rollout import Standing as TestStanding
from ringtrue.rollout.abtest import measure_of
from ringtrue.service.auth import Caller, Reader, Writer
from ringtrue.service.context import Here, Service
from ringtrue.service.errors import ERRORS, Refused
from ringtrue.service.models import Label, Line, Name, Strict, record_from
from ringtrue.service.routes.queries import PathName
from ringtrue.service.work.library import check_address
from ringtrue.store import ABTest, TestPoint, timestamp

router = APIRouter(prefix="/v1/tests", tags=["tests"], responses=ERRORS)
MOST = 1_000
SMALLEST = 1e-6
"""What is smaller has no square, no logarithm or no inverse that a float could hold."""
Share = Annotated[float, Field(ge=SMALLEST, le=1 - SMALLEST, allow_inf_nan=False)]
Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Tested:
    """A sequential test, how it stands, and the path of its evidence between the bounds."""

    test: ABTest
    standing: TestStanding
    points: tuple[TestPoint, ...] = ()


class NewTest(Strict, examples=[{"feature": "rerank-v2", "method": "confidence-sequence", "delta": 0.03}]):
    """A test of a feature."""

    feature: Label
    method: Literal["sprt", "confidence-sequence", "beta-binomial"] = "sprt"
    measure: Annotated[str, Field(max_length=60)] | None = Field("mrr", description="null for a test that counts differences.")
    alpha: Share = 0.05
    beta: Share = 0.20
    delta: Share = 0.05
    sigma: Annotated[float, Field(ge=SMALLEST, le=1, allow_inf_nan=False)] | None = None
    min_samples: Annotated[int, Field(ge=1, le=10_000_000)] = 100
    graduation_threshold: Share = 0.03
    again: bool = Field(False, description="Begin anew where the feature has a test; nothing of it is kept.")


class OneScore(Strict):
    """The scores of both sides on one query, or their difference."""

    query_id: Name
    control: Score | None = None
    treatment: Score | None = None
    difference: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] | None = Field(
        None, description="In the place of both scores, where the test counts differences."
    )


class NewScores(Strict, examples=[{"scores": [{"query_id": "eq_a1", "control": 0.5, "treatment": 1}]}]):
    """What is counted. All are checked before any is."""

    scores: Annotated[list[OneScore], Field(min_length=1, max_length=MOST)]


class NewStatus(Strict, examples=[{"status": "paused", "why": "the index is being rebuilt"}]):
    """What is to become of a test."""

    status: Status
    why: Line = ""


@router.get("")
def list_tests(service: Here, caller: Reader) -> list[SequentialTest]:
    """List the sequential tests by feature."""
    return list(map(_answer, tests(service, caller)))


def _answer(found: Tested) -> SequentialTest:
    return record_from(SequentialTest, found.standing, found.test, feature=found.test.feature_id)


def tests(service: Service, caller: Caller) -> list[Tested]:
    """Return the tests of the project by feature, without their paths."""
    return [Tested(test, standing(test)) for test in service.of(caller).tests(project=caller.project)]


@router.post("", status_code=201)
def create(service: Here, caller: Writer, given: NewTest) -> SequentialTest:
    """Start the test of a feature."""
    feature, options = given.feature, given.model_dump(exclude={"feature"})
    check_address("a feature", feature)
    store, now = service.of(caller), timestamp(service.now())
    try:
        test = create_test(store, feature, now=now, who=caller.who, project=caller.project, **options)
    except InputError:
        if given.again or store.test(feature, project=caller.project) is None:
            raise
        said = f"feature '{feature}' has a test already; look at it, or begin it anew with again"
        raise Refused(409, "conflict", said, field="body.feature") from None
    if not given.again:  # a test begun anew is written down already
        service.note(caller, "test.create", feature, {"method": test.method})
    return _answer(Tested(test, standing(test)))


@router.get("/{feature}")
def one(service: Here, caller: Reader, feature: PathName) -> SequentialTestPath:
    """Return a test with the points of its boundary plot."""
    found = tested(service, caller, feature)
    points = tuple(record_from(EvidencePoint, point) for point in found.points)
    return record_from(SequentialTestPath, _answer(found), points=points)


def tested(service: Service, caller: Caller, feature: str) -> Tested:
    """Return a feature's test with its path; raises MissingInput if there is none."""
    store = service.of(caller)
    test = found_test(store, feature, project=caller.project)
    return Tested(test, standing(test), tuple(store.test_points(feature, project=caller.project)))


@router.post("/{feature}/record")
def record(service: Here, caller: Writer, feature: PathName, given: NewScores) -> RecordedScores:
    """Count the scores of both sides on queries; each query counts once, whoever reports it and however often."""
    store, project, now = service.of(caller), caller.project, timestamp(service.now())
    test = found_test(store, feature, project=project)
    rows, differences = [], []
    for place, one in enumerate(given.scores):
        if one.difference is not None and one.control is None and one.treatment is None:
            differences.append((one.query_id, one.difference))
        elif one.difference is None and one.control is not None and one.treatment is not None:
            rows.append(Scores(one.query_id, one.control, one.treatment, f"scores.{place}"))
        else:
            raise InputError(f"scores.{place}: query '{one.query_id}' needs control and treatment, or a difference; send one")
    measure = measure_of(test)
    if differences and measure is not None:
        wanted = f"{measure} scores of both sides"
        raise InputError(f"query '{differences[0][0]}': the test of '{feature}' counts {wanted}; report those")
    found: list[tuple[str, Recorded]] = []
    for row in checked_scores(test, rows):  # all of them, before any is counted
        both = {"control": row.control, "treatment": row.treatment}
        found.append((row.query_id, record_scores(store, feature, row.query_id, **both, now=now, project=project)))
    for query_id, difference in differences:
        found.append((query_id, record_difference(store, feature, query_id, difference, now=now, project=project)))
    queries = tuple(CountedQuery(name, what.counted, what.why_not) for name, what in found)
    return RecordedScores(sum(one.counted for one in queries), queries, _answer(tested(service, caller, feature)))


@router.post("/{feature}/status")
def status(service: Here, caller: Writer, feature: PathName, given: NewStatus) -> SequentialTest:
    """Pause, resume, graduate or reject a test; it is written down who did it."""
    return _answer(change_status(service, caller, feature, given.status, why=given.why))


def change_status(service: Service, caller: Caller, feature: str, status: Status, *, why: str = "") -> Tested:
    """Pause, resume, graduate or reject a test; it is written down who did it."""
    now = timestamp(service.now())
    test = set_status(service.of(caller), feature, status, now=now, who=caller.who, why=why, project=caller.project)
    return Tested(test, standing(test))
