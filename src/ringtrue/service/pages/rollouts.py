"""Shadow runs, sequential tests and flags: what a candidate would change, whether that is better, and who gets it.

A flag's page has the checklist that says why it moved or why it waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response
from markupsafe import Markup

from ringtrue import charts
from ringtrue.errors import InputError, MissingInput, RingtrueError
from ringtrue.golden import parse_version
from ringtrue.rollout import Decision
from ringtrue.rollout.evidence import ON_GOLDEN
from ringtrue.rollout.graduate import STAGES
from ringtrue.service.auth import Access, PageReader, PageWriter
from ringtrue.service.errors import Refused, refused
from ringtrue.service.library import set_opened
from ringtrue.service.pages.filters import signs
from ringtrue.service.pages.shell import Choice, ChoiceField, ReasonField, WordsField, page
from ringtrue.service.routes import rollouts
from ringtrue.service.routes.rollouts import Shadowed, Tested, shadow_feature, shadow_rows, shadowed
from ringtrue.store import ShadowRun

router = APIRouter(include_in_schema=False)
DIFFERENT = 20
"""Shadow runs that are shown in full, the most different first, of the newest ``LOOKED_AT``."""
LOOKED_AT = 500
DECIDED: dict[str, charts.Decision] = {"accept-treatment": "accepted", "accept-control": "rejected"}
CHANGES = {"pause": "paused", "resume": "running", "reject": "rejected"}


@router.get("/tests")
def test_list(request: Request, access: PageReader) -> Response:
    """List the candidates in the shadow and the tests."""
    found = [rollouts.tested(access, one.test.feature_id) for one in rollouts.tests(access)]
    pictured = [(one, picture(one, small=True)) for one in found]
    return page(request, "abtests.html.jinja", shadows=shadowed(access), tests=pictured, words=words)


@router.get("/tests/{feature}")
def test_page(request: Request, access: PageReader, feature: str) -> Response:
    """Show one feature: its test with the boundary plot, and what its candidate changed in the shadow."""
    test: Tested | None = None
    shadow: Shadowed | None = None
    with suppress(MissingInput):
        test = rollouts.tested(access, feature)
    with suppress(MissingInput):
        shadow = shadow_feature(access, feature)
    if test is None and shadow is None:
        raise MissingInput(f"'{feature}' has neither a test nor a shadow; start one: ringtrue test create {feature}")
    rows = shadow_rows(access, feature, limit=LOOKED_AT) if shadow is not None else []
    rows.sort(key=lambda row: 1.0 if row.set_overlap is None else row.set_overlap)
    # The same two lists are the same question, asked again.
    distinct = {(row.control_result_ids, row.treatment_result_ids): row for row in reversed(rows)}
    store, shown = access.store, list(reversed(distinct.values()))[:DIFFERENT]
    return page(
        request, "abtest.html.jinja", feature=feature, test=test, shadow=shadow,
        flag=store.flag(feature, project=access.project), drawn=None if test is None else picture(test),
        after=0 if test is None else _after(test), asked=_asked(access, feature, shown), words=words,
        rows=shown, looked_at=len(rows),
        overlaps=charts.per_query(
            sorted((row.set_overlap for row in rows if row.set_overlap is not None), reverse=True), better=0, height=160,
            label="The share of results that both searches have, by query",
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class ShadowQuestion:
    """What a shadow run was asked, and the page that has more of it; no text where nobody kept it."""

    text: str
    href: str


def _asked(access: Access, feature: str, rows: Sequence[ShadowRun]) -> dict[str, ShadowQuestion]:
    """Return what shadow runs were asked by their id: searches of the log, and queries of golden sets that are still there."""
    store = access.store
    logged = store.queries(project=access.project, query_ids=[row.query_id for row in rows]) if rows else []
    found = {one.query_id: ShadowQuestion(one.query, f"/queries/{quote(one.query_id, safe='')}") for one in logged}
    # A set that is not kept here has no text to show, only the id of the question.
    for row in rows:
        if row.query_id.startswith(of_set := f"{ON_GOLDEN}{row.created_at}:"):
            found[row.query_id] = ShadowQuestion(row.query_id.removeprefix(of_set), "")
    for at in {row.created_at for row in rows if row.query_id.startswith(f"{ON_GOLDEN}{row.created_at}:")}:
        result = store.result(f"golden-{feature}-{at}-production", project=access.project)
        try:
            version = parse_version((result.golden if result is not None else None) or "")
            golden = set_opened(access, version.name, version.number).golden
        except (InputError, MissingInput):
            continue
        place = f"/golden/{quote(golden.id, safe='')}/{quote(golden.version, safe='')}/queries"
        for query in golden.queries:
            found[f"{ON_GOLDEN}{at}:{query.query_id}"] = ShadowQuestion(query.text, f"{place}/{quote(query.query_id, safe='')}")
    return found


def words(one: Tested) -> str:
    """Return what is to be said of a test: what became of the candidate, else how far the evidence is."""
    said = one.standing.reason
    for decision, meant in (("accept-treatment", "candidate accepted"), ("accept-control", "candidate rejected")):
        said = said.replace(decision, meant)
    return signs(said.replace("continue: ", "not decided yet: "))


@router.post("/tests/{feature}/status")
def change_test(access: PageWriter, feature: str, to: ChoiceField, why: ReasonField = "") -> Response:
    """Pause, resume or reject a test."""
    if to not in CHANGES:
        raise InputError(f"a test cannot be made '{to}'; choose {', '.join(CHANGES)}")
    rollouts.status(access, feature, rollouts.NewStatus(status=CHANGES[to], why=why))  # type: ignore[arg-type]
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


TOLD = {
    "advance": "It moved one stage further.",
    "graduate": "It graduated.",
    "rollback": "It was rolled back and paused.",
    "reject": "It was rejected.",
    "wait": "Nothing moved: the evidence does not allow it yet.",
    "done": "Nothing moved: the flag is in a final state.",
}
"""What a look at the evidence brought about, by its action."""
PAUSED = "Nothing moved: it is paused, whatever the evidence says. Resume it first."


@router.get("/flags")
def flag_list(request: Request, access: PageReader) -> Response:
    """List the flags with their stage."""
    return _flags(request, access)


def _flags(request: Request, access: Access, *, name: str = "", why: str = "", problem: Refused | None = None) -> Response:
    return page(
        request, "flags.html.jinja", status=problem.status if problem else 200, problem=problem, name=name, why=why,
        rows=rollouts.list_flags(access),
    )  # fmt: skip


@router.post("/flags")
def make(request: Request, access: PageWriter, name: WordsField, why: ReasonField = "") -> Response:
    """Make a flag that reaches nobody yet; one that is there already stays as it is."""
    try:
        if not name.strip():
            raise InputError("a flag needs a name, like new-reranker")
        rollouts.make_flag(access, name.strip(), why=why or "made on the page")
    except (RingtrueError, Refused) as problem:
        return _flags(request, access, name=name, why=why, problem=refused(problem))
    return RedirectResponse(f"/flags/{quote(name.strip(), safe='')}", 303)


@router.get("/flags/{name}")
def flag_page(request: Request, access: PageReader, name: str, stepped: Choice = "") -> Response:
    """Show a flag with its graduation checklist and what happened to it."""
    listed = next((one for one in rollouts.list_flags(access) if one.name == name), None)
    if listed is None:
        raise MissingInput(f"there is no flag '{name}'; /flags lists those there are")
    decision = None if listed.preset else _checked(access, name)
    history = access.store.audit(project=access.project, subject=name, limit=rollouts.CHANGES)
    checks = decision.checks if decision is not None else ()
    here = [entry for entry in history if (entry.detail.get("after") or {}).get("stage_since") == listed.stage_since]
    return page(
        request, "flag.html.jinja", listed=listed, flag=listed, decision=decision, stages=STAGES,
        told=PAUSED if stepped == "wait" and listed.state == "paused" else TOLD.get(stepped, ""),
        headline="" if decision is None else _headline(decision),
        missing=[check for check in checks if check.holds is not True], holding=[check for check in checks if check.holds],
        last=here[-1] if here else None, history=history,
    )  # fmt: skip


@router.post("/flags/{name}/step")
def further(access: PageWriter, name: str) -> Response:
    """Take a flag as far as the evidence allows, which may be back."""
    decision = rollouts.step_on(access, name, rollouts.FlagStep())
    return RedirectResponse(f"/flags/{quote(name, safe='')}?stepped={decision.action}", 303)


@router.post("/flags/{name}/rollback")
def back(access: PageWriter, name: str, why: ReasonField = "") -> Response:
    """Take the feature away from everybody at once."""
    if not why.strip():
        raise InputError("give a reason for the rollback; the audit trail keeps it")
    rollouts.take_back(access, name, rollouts.RollBack(why=why))
    return RedirectResponse(f"/flags/{quote(name, safe='')}", 303)


@router.post("/flags/{name}/resume")
def resume(access: PageWriter, name: str, why: ReasonField = "") -> Response:
    """Let the evidence move a paused flag again."""
    if not why.strip():
        raise InputError("give a reason for resuming; the audit trail keeps it")
    rollouts.resume_flag(access, name, why=why.strip())
    return RedirectResponse(f"/flags/{quote(name, safe='')}", 303)


@router.post("/flags/{name}/set")
def set_share(
    access: PageWriter, name: str, rollout_percent: Annotated[str, Form(max_length=8)], why: ReasonField = ""
) -> Response:
    """Set the share by hand."""
    try:
        percent = float(rollout_percent)
    except ValueError:
        raise InputError(f"'{rollout_percent}' is not a percentage; write a number from 0 to 100") from None
    if not why.strip():
        raise InputError("give a reason for setting the share by hand; the audit trail keeps it")
    rollouts.set_flag(access, name, why=why.strip(), rollout=percent)
    return RedirectResponse(f"/flags/{quote(name, safe='')}", 303)


def _checked(access: Access, name: str) -> Decision:
    """Return what would become of a flag, as it was a few seconds ago; one that was changed is looked at anew."""
    # The evidence is taken from thousands of live searches. A step looks anew.
    flag = access.store.flag(name, project=access.project)
    return access.service.figures.get(("flag", access.project, repr(flag)), partial(rollouts.checklist, access, name))


def _headline(decision: Decision) -> str:
    """Return in one sentence where a flag stands and what would become of it now."""
    at, missing = f"{decision.before.rollout:g} %", sum(check.holds is not True for check in decision.checks)
    checks = f"{missing} of {len(decision.checks)} checks {'does' if missing == 1 else 'do'} not hold yet"
    paused = f"It is paused: held at {at}, still served." if decision.before.rollout else f"It is paused at {at}."
    return {
        "wait": f"It waits at {at}: {checks}." if decision.before.state == "running" else paused,
        "advance": f"Every check holds: it may go on from {at} to {decision.flag.rollout:g} %.",
        "graduate": f"It reached everybody and every check holds: it may graduate at {at}.",
        "rollback": f"A guardrail broke: it will be rolled back from {at}.",
        "reject": "Its test found it no better than production: it is to be rejected.",
        "done": f"It is {decision.before.state}, at {at}; nothing moves it by itself any more.",
    }[decision.action]
