"""Shadow runs and sequential tests: what a candidate would change, and whether it is certain that this is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response
from markupsafe import Markup

from ringtrue import charts
from ringtrue.errors import InputError, MissingInput
from ringtrue.golden import parse_version
from ringtrue.rollout.evidence import ON_GOLDEN
from ringtrue.service.auth import Caller, PageReader, PageWriter
from ringtrue.service.context import Here, Service
from ringtrue.service.pages.filters import signs
from ringtrue.service.pages.shell import page
from ringtrue.service.routes import abtests
from ringtrue.service.routes.abtests import Tested
from ringtrue.service.routes.shadow import Shadowed, shadow_feature, shadow_rows, shadowed
from ringtrue.service.work.library import set_opened
from ringtrue.store import ShadowRun

router = APIRouter(include_in_schema=False)
DIFFERENT = 20
"""Shadow runs that are shown in full, the most different first, of the newest ``LOOKED_AT``."""
LOOKED_AT = 500
DECIDED: dict[str, charts.Decision] = {"accept-treatment": "accepted", "accept-control": "rejected"}
CHANGES = {"pause": "paused", "resume": "running", "reject": "rejected"}


@router.get("/tests")
def overview(request: Request, service: Here, caller: PageReader) -> Response:
    """List the candidates in the shadow and the tests."""
    return page(
        request,
        caller,
        "abtests.html.jinja",
        shadows=shadowed(service, caller),
        tests=[(one, picture(one, small=True)) for one in _with_paths(service, caller)],
        words=words,
    )


@router.get("/tests/{feature}")
def one(request: Request, service: Here, caller: PageReader, feature: str) -> Response:
    """Show one feature: its test with the boundary plot, and what its candidate changed in the shadow."""
    test, shadow = _test(service, caller, feature), _shadow(service, caller, feature)
    if test is None and shadow is None:
        raise MissingInput(f"'{feature}' has neither a test nor a shadow; start one: ringtrue test create {feature}")
    rows = shadow_rows(service, caller, feature, limit=LOOKED_AT) if shadow is not None else []
    rows.sort(key=lambda row: 1.0 if row.set_overlap is None else row.set_overlap)
    store, shown = service.of(caller), rows[:DIFFERENT]
    return page(
        request, caller, "abtest.html.jinja", feature=feature, test=test, shadow=shadow,
        flag=store.flag(feature, project=caller.project), drawn=None if test is None else picture(test),
        after=0 if test is None else _after(test), asked=_asked(service, caller, feature, shown), words=words,
        rows=shown, looked_at=len(rows),
        overlaps=charts.per_query(
            sorted((row.set_overlap for row in rows if row.set_overlap is not None), reverse=True), better=0, height=160,
            label="The share of results that both searches have, by query",
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class Question:
    """What a shadow run was asked, and the page that has more of it; no text where nobody kept it."""

    text: str
    href: str


def _asked(service: Service, caller: Caller, feature: str, rows: Sequence[ShadowRun]) -> dict[str, Question]:
    """Return what shadow runs were asked by their id: searches of the log, and queries of golden sets that are still there."""
    store = service.of(caller)
    logged = store.queries(project=caller.project, query_ids=[row.query_id for row in rows]) if rows else []
    found = {one.query_id: Question(one.query, f"/queries/{quote(one.query_id, safe='')}") for one in logged}
    # A set that is not kept here has no text to show, only the id of the question.
    for row in rows:
        if row.query_id.startswith(of_set := f"{ON_GOLDEN}{row.created_at}:"):
            found[row.query_id] = Question(row.query_id.removeprefix(of_set), "")
    for at in {row.created_at for row in rows if row.query_id.startswith(f"{ON_GOLDEN}{row.created_at}:")}:
        result = store.result(f"golden-{feature}-{at}-production", project=caller.project)
        try:
            version = parse_version((result.golden if result is not None else None) or "")
            golden = set_opened(service, caller, version.name, version.number).golden
        except (InputError, MissingInput):
            continue
        place = f"/golden/{quote(golden.id, safe='')}/{quote(golden.version, safe='')}/queries"
        for query in golden.queries:
            found[f"{ON_GOLDEN}{at}:{query.query_id}"] = Question(query.text, f"{place}/{quote(query.query_id, safe='')}")
    return found


def words(one: Tested) -> str:
    """Return what is to be said of a test: what became of the candidate, else how far the evidence is."""
    said = one.standing.reason
    for decision, meant in (("accept-treatment", "candidate accepted"), ("accept-control", "candidate rejected")):
        said = said.replace(decision, meant)
    return signs(said.replace("continue: ", "not decided yet: "))


@router.post("/tests/{feature}/status")
def change(
    service: Here,
    caller: PageWriter,
    feature: str,
    to: Annotated[str, Form(max_length=20)],
    why: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Pause, resume or reject a test."""
    if to not in CHANGES:
        raise InputError(f"a test cannot be made '{to}'; choose {', '.join(CHANGES)}")
    abtests.change_status(service, caller, feature, CHANGES[to], why=why)  # type: ignore[arg-type]
    return RedirectResponse(f"/tests/{quote(feature, safe='')}", 303)


def picture(one: Tested, *, small: bool = False) -> Markup:
    """Return the path of a test between its bounds up to its decision; for one that has an interval, that against zero."""
    standing, decision = one.standing, DECIDED.get(str(one.test.decision))
    if standing.decided_after is not None:
        one = replace(one, points=tuple(point for point in one.points if point.sample_count <= standing.decided_after))
    if standing.interval is not None and not small:
        ranged = [point for point in one.points if point.low is not None and point.high is not None]
        if ranged:
            estimates = [charts.Point(point.sample_count, point.estimate, point.low, point.high) for point in ranged]
            label = f"Mean difference of {one.test.feature_id} with its interval"
            return charts.sequential(estimates, label=label, decision=decision)
    path = [charts.Point(point.sample_count, point.llr) for point in one.points if point.llr is not None]
    lower, upper = bounds = (one.test.lower_bound, one.test.upper_bound)
    label = f"Evidence of {one.test.feature_id} after each query, between the bounds {lower:.2f} and {upper:.2f}: {words(one)}"
    if small:
        return charts.sparkline([point.y for point in path], label=label)
    return charts.sequential(path, bounds=bounds, label=label, decision=decision)


def _after(one: Tested) -> int:
    """Return how many queries came in after the decision, which stands whatever they say."""
    decided = one.standing.decided_after
    return 0 if decided is None else one.standing.samples - decided


def _with_paths(service: Here, caller: PageReader) -> list[Tested]:
    return [abtests.tested(service, caller, one.test.feature_id) for one in abtests.tests(service, caller)]


def _test(service: Here, caller: PageReader, feature: str) -> Tested | None:
    try:
        return abtests.tested(service, caller, feature)
    except MissingInput:
        return None


def _shadow(service: Here, caller: PageReader, feature: str) -> Shadowed | None:
    try:
        return shadow_feature(service, caller, feature)
    except MissingInput:
        return None
