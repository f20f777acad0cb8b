"""``/v1/shadow``, ``/v1/tests`` and ``/v1/flags``: candidates beside production, sequential tests, who gets a feature.

Shadow runs show nobody anything; tests may be looked at after every query; flags move as the evidence allows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field, model_validator

from ringtrue import answers
from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.log import Redactor
from ringtrue.measures import Measure
from ringtrue.rollout import (
    Decision,
    PairedScores,
    Recorded,
    change_flag,
    checked_scores,
    compared,
    create_test,
    decide,
    existing_flag,
    explain,
    found_test,
    gather,
    grades_by_words,
    is_on,
    judged_shadow_of,
    only_forced,
    overrides,
    record_difference,
    record_scores,
    roll_back,
    scorer,
    set_status,
    standing,
    step,
)
from ringtrue.rollout import TestStanding as TestStanding
from ringtrue.rollout.abtest import measure_of
from ringtrue.rollout.evidence import shadowed as shadow_features
from ringtrue.service.auth import Access, Reader, Writer
from ringtrue.service.errors import ERRORS, Refused, for_rest
from ringtrue.service.library import check_address
from ringtrue.service.models import Label, Limit, Line, Name, Strict, record_from
from ringtrue.service.routes.log import Milliseconds, Past, PathName
from ringtrue.store import ABTest, Flag, ShadowRun, TestPoint, timestamp

shadow_routes = APIRouter(prefix="/v1/shadow", tags=["shadow"], responses=ERRORS)
MOST = 1_000
SHADOW_K = 10
"""Depth to which lists of production and candidate are compared."""


@dataclass(frozen=True, slots=True)
class Shadowed:
    """A feature whose candidate runs beside production, and what that has shown."""

    flag: Flag
    known: bool
    """False if nobody set the flag, and runs were recorded all the same."""
    summary: answers.ShadowSummary


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
    source: answers.ShadowSource = "live"


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


@shadow_routes.get("")
def list_features(access: Reader) -> list[answers.ShadowFeature]:
    """List the features that run or ran in the shadow, with what that has shown."""
    return list(map(_feature, shadowed(access)))


def _feature(found: Shadowed) -> answers.ShadowFeature:
    return record_from(answers.ShadowFeature, found.flag, feature=found.flag.name, summary=found.summary)


def shadowed(access: Access) -> list[Shadowed]:
    """Return the features of the project that run or ran in the shadow."""
    store = access.store
    found = [
        Shadowed(flag, known, judged_shadow_of(store, flag)) for flag, known in shadow_features(store, project=access.project)
    ]
    return [one for one in found if one.flag.shadow or one.summary.queries]


@shadow_routes.get("/{feature}", name="one")
def one_shadow(access: Reader, feature: PathName, limit: Limit = 50) -> answers.ShadowFeatureRuns:
    """Return what the shadow of a feature has shown, and its newest runs."""
    found = shadow_feature(access, feature)
    runs = tuple(shadow_rows(access, feature, limit=limit))
    return record_from(answers.ShadowFeatureRuns, _feature(found), runs=runs)


def shadow_feature(access: Access, feature: str) -> Shadowed:
    """Return what the shadow of a feature has shown; raises MissingInput if there is neither a flag nor a run."""
    store = access.store
    known = store.flag(feature, project=access.project)
    flag = known or Flag(feature, project=access.project)
    found = Shadowed(flag, known is not None, judged_shadow_of(store, flag))
    if known is None and not found.summary.queries:
        names = [one.name for one in store.flags(project=access.project)]
        cure = f"did you mean {nearest(feature, names)}?" if names else "no feature runs in the shadow yet"
        raise MissingInput(f"there is no shadow of '{feature}'; {cure}")
    return found


def shadow_rows(access: Access, feature: str, *, limit: int) -> list[ShadowRun]:
    """Return the newest runs of a feature, the newest first."""
    return access.store.shadow_runs(feature_id=feature, project=access.project, limit=limit, newest=True)[::-1]


@shadow_routes.post("/{feature}/runs", status_code=201, name="record")
def record_runs(access: Writer, feature: PathName, given: SentShadowRuns) -> answers.ShadowRecorded:
    """Record results of a candidate that runs elsewhere; they are compared here, and scored where the query is judged."""
    now, store, cleaner = timestamp(access.now()), access.store, Redactor()
    searches = store.queries(project=access.project, query_ids=sorted({run.query_id for run in given.runs}))
    judged = grades_by_words(searches, store.judgments(project=access.project)) if searches else {}
    score = scorer(judged, k=SHADOW_K)
    rows = []
    for run in given.runs:
        lists = {name: tuple(getattr(run, name)) for name in ("control_result_ids", "treatment_result_ids")}
        facts = run.model_dump() | lists | {"created_at": run.created_at or now}
        row = ShadowRun(**facts, feature_id=feature, project=access.project)
        if run.error is not None:
            rows.append(replace(row, error=cleaner.text(run.error)))
            continue
        control, treatment = score(run.query_id, row.control_result_ids), score(run.query_id, row.treatment_result_ids)
        both = None if control is None or treatment is None else (control, treatment)
        rows.append(compared(row, k=SHADOW_K, scores=both))
    return answers.ShadowRecorded(accepted=len(rows), stored=store.add_shadow_runs(rows))


abtests_routes = APIRouter(prefix="/v1/tests", tags=["tests"], responses=ERRORS)
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
    again: bool = Field(False, description="Begin anew if the feature has a test; nothing of it is kept.")


class OneScore(Strict):
    """The scores of both sides on one query, or their difference."""

    query_id: Name
    control: Score | None = None
    treatment: Score | None = None
    difference: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] | None = Field(
        None, description="In the place of both scores, where the test counts differences."
    )

    @model_validator(mode="after")
    def _either(self) -> OneScore:
        given = tuple(score is not None for score in (self.control, self.treatment, self.difference))
        if given not in ((True, True, False), (False, False, True)):
            raise ValueError(f"query '{self.query_id}' needs control and treatment, or a difference; send one")
        return self


class NewScores(Strict, examples=[{"scores": [{"query_id": "eq_a1", "control": 0.5, "treatment": 1}]}]):
    """What is counted. All are checked before any is."""

    scores: Annotated[list[OneScore], Field(min_length=1, max_length=MOST)]


class NewStatus(Strict, examples=[{"status": "paused", "why": "the index is being rebuilt"}]):
    """What is to become of a test."""

    status: answers.Status
    why: Line = ""


@abtests_routes.get("")
def list_tests(access: Reader) -> list[answers.SequentialTest]:
    """List the sequential tests by feature."""
    return list(map(_answer, tests(access)))


def _answer(found: Tested) -> answers.SequentialTest:
    return record_from(answers.SequentialTest, found.standing, found.test, feature=found.test.feature_id)


def tests(access: Access) -> list[Tested]:
    """Return the tests of the project by feature, without their paths."""
    return [Tested(test, standing(test)) for test in access.store.tests(project=access.project)]


@abtests_routes.post("", status_code=201)
def create(access: Writer, given: NewTest) -> answers.SequentialTest:
    """Start the test of a feature."""
    feature, options = given.feature, given.model_dump(exclude={"feature"})
    check_address("a feature", feature)
    store, now = access.store, timestamp(access.now())
    try:
        test = create_test(store, feature, now=now, who=access.who, project=access.project, **options)
    except InputError:
        if given.again or store.test(feature, project=access.project) is None:
            raise
        said = f"feature '{feature}' has a test already; look at it, or begin it anew with again"
        raise Refused(409, "conflict", said, field="body.feature") from None
    if not given.again:  # a test begun anew is written down already
        access.note("test.create", feature, {"method": test.method})
    return _answer(Tested(test, standing(test)))


@abtests_routes.get("/{feature}", name="one")
def one_test(access: Reader, feature: PathName) -> answers.SequentialTestPath:
    """Return a test with the points of its boundary plot."""
    found = tested(access, feature)
    points = tuple(record_from(answers.EvidencePoint, point) for point in found.points)
    return record_from(answers.SequentialTestPath, _answer(found), points=points)


def tested(access: Access, feature: str) -> Tested:
    """Return a feature's test with its path; raises MissingInput if there is none."""
    store = access.store
    test = found_test(store, feature, project=access.project)
    return Tested(test, standing(test), tuple(store.test_points(feature, project=access.project)))


@abtests_routes.post("/{feature}/record", name="record")
def record_test(access: Writer, feature: PathName, given: NewScores) -> answers.RecordedScores:
    """Count the scores of both sides on queries; each query counts once, whoever reports it and however often."""
    store, project, now = access.store, access.project, timestamp(access.now())
    test = found_test(store, feature, project=project)
    rows = [
        PairedScores(one.query_id, one.control, one.treatment, f"scores.{place}")
        for place, one in enumerate(given.scores)
        if one.control is not None and one.treatment is not None
    ]
    differences = [(one.query_id, one.difference) for one in given.scores if one.difference is not None]
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
    queries = tuple(answers.CountedQuery(name, what.counted, what.why_not) for name, what in found)
    return answers.RecordedScores(sum(one.counted for one in queries), queries, _answer(tested(access, feature)))


@abtests_routes.post("/{feature}/status")
def status(access: Writer, feature: PathName, given: NewStatus) -> answers.SequentialTest:
    """Pause, resume, graduate or reject a test; it is written down who did it."""
    now = timestamp(access.now())
    test = set_status(access.store, feature, given.status, now=now, who=access.who, why=given.why, project=access.project)
    return _answer(Tested(test, standing(test)))


CHANGES = 50
"""The newest changes of a flag that are shown."""
flags_routes = APIRouter(prefix="/v1/flags", tags=["flags"], responses=ERRORS)


class FlagUpdate(Strict, examples=[{"shadow": True, "min_samples": 200, "why": "a first look"}, {"rollout": 5}]):
    """Changes to a flag; fields left out stay as they are. A new flag starts at 0 %."""

    rollout: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = None
    state: answers.Status | None = None
    shadow: bool | None = None
    min_samples: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    graduation_threshold: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    measure: Annotated[str, Field(max_length=100)] | None = Field(None, description="Of the improvement; RR@10 at first.")
    stage_hours: Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)] | None = None
    description: Line | None = None
    why: Line = ""


class FlagStep(Strict, examples=[{}]):
    """What a watch of one's own found."""

    breaches: Annotated[list[Line], Field(max_length=50, description="Each rolls the feature back.")] = Field(
        default_factory=list
    )


class RollBack(Strict, examples=[{"why": "complaints about missing bookings"}]):
    """Why a feature is taken away."""

    why: Annotated[str, Field(min_length=1, max_length=2_000, pattern=r"\S")]


@flags_routes.get("")
def list_flags(access: Reader) -> list[answers.ListedFlag]:
    """List the flags by name, with those that only the server's environment sets."""
    there, forced = access.store.flags(project=access.project), overrides()
    found = [(flag, False) for flag in there] + [(flag, True) for flag in only_forced(there, forced, project=access.project)]
    return [
        record_from(answers.ListedFlag, flag, preset=unset, override=forced.get(flag.name))
        for flag, unset in sorted(found, key=lambda one: one[0].name)
    ]


def _decision(found: Decision) -> answers.FlagDecision:
    checks = tuple(replace(check, says=for_rest(check.says)) for check in found.checks)
    return record_from(answers.FlagDecision, found, why=for_rest(found.why), checks=checks, page=for_rest(explain(found)))


@flags_routes.get("/{name}", name="one")
def one_flag(access: Reader, name: PathName) -> answers.FlagPage:
    """Return a flag with its graduation checklist and its history; nothing changes."""
    found = checklist(access, name)
    history = access.store.audit(project=access.project, subject=name, limit=CHANGES)
    changes = (answers.FlagChange(entry.at, entry.who, entry.what, str(entry.detail.get("why", ""))) for entry in history)
    return answers.FlagPage(found.before, _decision(found), tuple(changes))


@flags_routes.put("/{name}")
def change(access: Writer, name: PathName, given: FlagUpdate) -> answers.FlagState:
    """Make a flag or change it; it is written down who did it."""
    changes = given.model_dump(exclude={"why"}, exclude_none=True)
    return set_flag(access, name, why=given.why, **changes)


@flags_routes.post("/{name}/step")
def step_on(access: Writer, name: PathName, given: FlagStep) -> answers.FlagDecision:
    """Take a feature one stage further where the evidence allows it, back where a guardrail is broken; else say why not."""
    project, breaches = access.project, given.breaches
    return _decision(step(access.store, name, now=access.now(), who=access.who, breaches=breaches, project=project))


@flags_routes.post("/{name}/rollback")
def take_back(access: Writer, name: PathName, given: RollBack) -> answers.FlagState:
    """Take a feature away from everybody at once and pause it."""
    return roll_back(access.store, name, now=access.now(), who=access.who, why=given.why.strip(), project=access.project)


@flags_routes.get("/{name}/variant")
def variant(
    access: Reader,
    name: PathName,
    identity: Annotated[str, Query(min_length=1, max_length=200, description="A user, session or whoever gets the feature.")],
) -> answers.Variant:
    """Say whether a feature is on for an identity; the same identity always gets the same."""
    flag = existing_flag(access.store, name, project=access.project)
    forced = overrides().get(name)
    on, share = is_on(flag, identity, override=forced), flag.rollout if forced is None else forced
    return answers.Variant(flag=name, identity=identity, on=on, variant="treatment" if on else "control", rollout=share)


# ── for routes and pages alike ──────────────────────────────────────────────────────────────────────────────────────


def checklist(access: Access, name: str) -> Decision:
    """Return what would become of a flag now, and every check behind it; nothing changes. Raises MissingInput."""
    store, now = access.store, access.now()
    flag = existing_flag(store, name, project=access.project)
    return decide(flag, gather(store, flag, now=now), now)


def set_flag(access: Access, name: str, *, why: str = "", **changes: Any) -> Flag:
    """Make a flag or change what is given of it; ``measure`` and ``stage_hours`` are kept in its metadata."""
    store = access.store
    facts = {field: changes.pop(field) for field in ("measure", "stage_hours") if field in changes}
    if facts:
        if "measure" in facts:
            facts["measure"] = str(Measure.parse(facts["measure"]))
        old = store.flag(name, project=access.project)
        changes["metadata"] = {**(old.metadata if old is not None else {}), **facts}
    return change_flag(store, name, who=access.who, now=access.now(), why=why, project=access.project, **changes)


def make_flag(access: Access, name: str, *, why: str) -> Flag:
    """Make a flag that reaches nobody yet; raises Refused (409) where somebody has set one of this name."""
    if access.store.flag(name, project=access.project) is not None:
        raise Refused(409, "conflict", f"flag '{name}' already exists; open it, or choose another name", field="name")
    return set_flag(access, name, why=why)


def resume_flag(access: Access, name: str, *, why: str) -> Flag:
    """Let the evidence move a paused flag again; raises MissingInput, and Refused (409) for one that is not paused."""
    flag = existing_flag(access.store, name, project=access.project)
    if flag.state != "paused":
        raise Refused(409, "conflict", f"flag '{name}' is {flag.state}, not paused; there is nothing to resume")
    return set_flag(access, name, why=f"resumed: {why}", state="running")
