"""Evaluate: start an evaluation, judged by a baseline or not, watch it, cancel it, and go to what came of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Annotated, Any, get_args
from urllib.parse import quote

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse

from ringtrue.answers import ENDED, JobState
from ringtrue.errors import InputError, RingtrueError
from ringtrue.measures import Measure
from ringtrue.run import DEFAULT_MEASURES
from ringtrue.service.auth import Access, PageReader, PageWriter
from ringtrue.service.errors import Refused, refused
from ringtrue.service.evaluating import EvaluationPlan, planned
from ringtrue.service.jobs import STOPPING
from ringtrue.service.library import (
    baseline_named,
    baselines,
    golden_named,
    golden_sets,
    golden_versions,
    server_policy,
)
from ringtrue.service.models import Cursor
from ringtrue.service.pages.shell import Choice, ChoiceField, Named, NamedField, TextField, page
from ringtrue.service.routes import server
from ringtrue.service.routes.evaluate import start_evaluation
from ringtrue.service.routes.verdicts import start_gate
from ringtrue.store import StoredJob

router = APIRouter(include_in_schema=False)
JobId = Annotated[str, Path(min_length=1, max_length=100)]
SUGGESTED = ("bm25", "dense", "hybrid", "rrf(bm25, dense)", "hybrid >> mmr(0.5)", "weighted(bm25, dense, w=[0.3, 0.7])")
"""Retrievers that need nothing but the documents."""
SPLITS = (("all", "all queries"), ("tuning", "tuning part"), ("held_out", "held-out part"))
TRIED = "try-out"
"""What the candidate of an evaluation is called that is only tried; its figures are not production's."""
JOBS = 50
LISTED = 8
"""Jobs that the form shows below itself."""
_MEASURE = re.compile(r"[^,;\s(]+(?:\([^)]*\))?[^,;\s(]*")


@dataclass(frozen=True)
class EvaluationForm:
    """The form as somebody filled it in."""

    golden: str = ""
    retriever: str = ""
    measures: str = ""
    baseline: str = ""
    split: str = "all"
    k: str = ""
    tried: bool = False
    """It is only tried: how it does is no news about production."""

    def wanted(self, access: Access) -> EvaluationPlan:
        """Return what is to be evaluated; raises InputError and MissingInput."""
        if self.k.strip() and not (self.k.strip().isdecimal() and 1 <= int(self.k) <= 1000):
            raise InputError(f"'{self.k[:20]}' is not a number of hits; write a whole number from 1 to 1000, or leave it empty")
        return EvaluationPlan(
            golden_named(access, self.golden or None),
            retriever=self.retriever.strip() or None,
            measures=measures_in(self.measures),
            options={"k": int(self.k) if self.k.strip() else None, "split": self.split},
            feature_id=TRIED if self.tried else None,
        )


def measures_in(text: str) -> tuple[str, ...]:
    """Return the measures that somebody wrote one behind the other; raises SpecError naming the one that is none.

    >>> measures_in("nDCG(rel=2)@10, R@10 RR")
    ('nDCG(rel=2)@10', 'R@10', 'RR')
    """
    return tuple(dict.fromkeys(str(Measure.parse(name)) for name in _MEASURE.findall(text)))


@router.get("/evaluate")
def evaluate_form(
    request: Request,
    access: PageReader,
    golden: Named = "",
    retriever: Annotated[str, Query(max_length=2_000)] = "",
    baseline: Named = "",
    measures: Annotated[str, Query(max_length=2_000)] = "",
) -> Response:
    """Show what can be evaluated, filled in as the address says."""
    return _form(request, access, EvaluationForm(golden, retriever, measures, baseline))


def _form(request: Request, access: Access, asked: EvaluationForm, *, problem: Refused | None = None) -> Response:
    settings = access.service.settings
    sets = golden_sets(access)
    choices = [(one.name, f"{one.name} {one.version}" + (" (shipped)" if one.shipped else "")) for one in sets]
    for one in sets:
        if one.versions > 1:
            older = golden_versions(access, one.name)[1:]
            choices += [(f"{old.name}@{old.version}", f"{old.name} {old.version} (older)") for old in older]
    standards = [(one.name, f"{one.name} {one.version}") for one in baselines(access)]
    # A deep link may name one that the lists do not show, such as an exact version.
    for chosen, listed in ((asked.golden, choices), (asked.baseline, standards)):
        if chosen and chosen not in dict(listed):
            listed.append((chosen, chosen.replace("@", " ")))
    # Without a set of one's own: that whose documents the server searches, for another's it may know no answers.
    served = (settings.golden or "").partition("@")[0]
    shipped = sorted((one.name for one in sets), key=lambda name: name != served)
    first = next((one.name for one in sets if not one.shipped), shipped[0] if shipped else "")
    if served and served not in shipped:
        choices.insert(0, (first := "", f"{PurePath(served).stem} (the server's)"))
    return page(
        request, "evaluate.html.jinja", status=422 if problem else 200,
        asked=replace(asked, golden=asked.golden or first, retriever=asked.retriever or settings.retriever),
        sets=choices, standards=standards, problem=problem, splits=SPLITS,
        measures=", ".join(DEFAULT_MEASURES),
        suggested=list(dict.fromkeys((settings.retriever, *settings.expressions, *SUGGESTED))),
        jobs=access.store.jobs(project=access.project, limit=LISTED),
    )  # fmt: skip


@router.post("/evaluate")
def start(
    request: Request,
    access: PageWriter,
    golden: NamedField = "",
    retriever: TextField = "",
    measures: TextField = "",
    baseline: NamedField = "",
    split: ChoiceField = "all",
    k: ChoiceField = "",
    tried: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Start an evaluation as a job and go to where it is watched."""
    asked = EvaluationForm(golden, retriever, measures, baseline, split, k, bool(tried))
    try:
        plan = planned(access.service, asked.wanted(access))
        if baseline:
            baseline_named(access, baseline)  # a wrong name is told before anything is evaluated
            job = start_gate(access, plan, server_policy(), baseline=baseline)
        else:
            job = start_evaluation(access, plan)
    except (RingtrueError, Refused) as problem:
        return _form(request, access, asked, problem=refused(problem))
    return RedirectResponse(f"/jobs/{job.job_id}?watch=1", 303)


# ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/jobs")
def job_list(request: Request, access: PageReader, cursor: Cursor = None, state: Choice = "") -> Response:
    """List the project's jobs, the newest first."""
    if state and state not in get_args(JobState):
        raise InputError(f"there is no state '{state}'; choose {', '.join(get_args(JobState))}, or leave it out")
    chosen: Any = state or None
    part = server.jobs_page(access, JOBS, cursor, chosen)
    shown, after = part.items, part.next
    return page(
        request, "jobs.html.jinja", active="evaluate", jobs=shown, next=after, cursor=cursor, state=chosen or "",
        known=get_args(JobState),
    )  # fmt: skip


@router.get("/jobs/{job_id}")
def job_page(request: Request, access: PageReader, job_id: JobId, watch: Annotated[str, Query(max_length=10)] = "") -> Response:
    """Show a job as it stands; while it runs its numbers move by themselves. Whoever watches it is led to its result."""
    job = access.service.jobs.get(job_id, access.project)
    if watch and _run_of(job) is not None:  # it was done before the page came
        return job_result(access, job_id)
    again = {name: str(job.request[name]) for name in ("golden", "retriever", "baseline") if job.request.get(name)}
    return page(
        request, "job.html.jinja", active="evaluate", job=job, over=job.state in ENDED, again=again,
        stopping=job.says == STOPPING,
    )  # fmt: skip


def _run_of(job: StoredJob) -> str | None:
    """Return the run that a job has left; None if it has none, or not yet."""
    run_id = None if job.result is None else job.result.get("run_id")
    return run_id if isinstance(run_id, str) else None


@router.get("/jobs/{job_id}/result")
def job_result(access: PageReader, job_id: JobId) -> Response:
    """Lead to what came of a job: its run, with the verdict where it was judged."""
    job = access.service.jobs.get(job_id, access.project)
    run_id = _run_of(job)
    if run_id is None:
        return RedirectResponse(f"/jobs/{job_id}", 303)
    judged = job.request.get("baseline")
    return RedirectResponse(f"/runs/{quote(run_id)}" + (f"?baseline={quote(str(judged))}" if judged else ""), 303)


@router.post("/jobs/{job_id}/cancel")
def cancel(access: PageWriter, job_id: JobId) -> Response:
    """Ask a job to stop; it stops at its next step."""
    access.service.jobs.cancel(job_id, access.project)
    return RedirectResponse(f"/jobs/{job_id}", 303)


@router.get("/jobs/{job_id}/events")
async def job_events(access: PageReader, job_id: JobId) -> StreamingResponse:
    """Tell a page how its job goes, as server-sent events, until it ends."""
    return await server.job_events(access, job_id)
