"""Evaluate: start an evaluation, judged by a baseline or not, watch it, cancel it, and go to what came of it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, replace
from pathlib import PurePath
from typing import Annotated, Any, get_args
from urllib.parse import quote

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from ringtrue.answers import ENDED, JobState
from ringtrue.errors import InputError, MissingInput, RingtrueError
from ringtrue.measures import Measure
from ringtrue.retrieve import channels_in
from ringtrue.run import DEFAULT_MEASURES
from ringtrue.service.auth import Caller, PageReader, PageWriter
from ringtrue.service.context import Here, Service
from ringtrue.service.errors import Refused, refused
from ringtrue.service.jobs import STOPPING, JobProgress
from ringtrue.service.models import Cursor, paged, wrong_cursor
from ringtrue.service.pages.shell import fragment, page, wants_fragment
from ringtrue.service.routes.gate import gated, verdict_record
from ringtrue.service.routes.jobs import job_text
from ringtrue.service.work.evaluating import EvaluationPlan, admitted_by, evaluated, kept, planned, summary
from ringtrue.service.work.library import (
    baseline_named,
    baselines,
    golden_named,
    golden_of_server,
    golden_sets,
    golden_versions,
    server_policy,
)
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
class Asked:
    """The form as somebody filled it in."""

    golden: str = ""
    retriever: str = ""
    measures: str = ""
    baseline: str = ""
    split: str = "all"
    only: tuple[str, ...] = ()
    """Channels of the search that are evaluated without the others."""
    k: str = ""
    tried: bool = False
    """It is only tried: how it does is no news about production."""

    def wanted(self, service: Service, caller: Caller) -> EvaluationPlan:
        """Return what is to be evaluated; raises InputError and MissingInput."""
        if self.k.strip() and not (self.k.strip().isdecimal() and 1 <= int(self.k) <= 1000):
            raise InputError(f"'{self.k[:20]}' is no number of hits; write a whole number from 1 to 1000, or leave it empty")
        return EvaluationPlan(
            golden_named(service, caller, self.golden) if self.golden else golden_of_server(service),
            retriever=self.retriever.strip() or None,
            components=self.only,
            measures=measures_in(self.measures),
            k=int(self.k) if self.k.strip() else None,
            split=self.split,
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
    service: Here,
    caller: PageReader,
    golden: Annotated[str, Query(max_length=250)] = "",
    retriever: Annotated[str, Query(max_length=2_000)] = "",
    baseline: Annotated[str, Query(max_length=250)] = "",
    measures: Annotated[str, Query(max_length=2_000)] = "",
    only: Annotated[list[str] | None, Query(max_length=24)] = None,
) -> Response:
    """Show what can be evaluated, filled in as the address says; the channels alone where another search was chosen."""
    asked = Asked(golden, retriever, measures, baseline, only=_names(only))
    if wants_fragment(request):
        there = _channels(service, asked.retriever)
        return fragment(request, caller, "evaluate.html.jinja", "channels", asked=asked, channels=there)
    return _form(request, service, caller, asked)


def _names(given: list[str] | None) -> tuple[str, ...]:
    """Return the channels that were chosen; a link may name several with commas between them, as REST does."""
    return tuple(dict.fromkeys(name.strip() for one in given or () for name in one.split(",") if name.strip()))


def _channels(service: Service, retriever: str) -> list[str]:
    """Return the channels that a search fuses; none where it cannot be read, which starting it says."""
    try:
        text = admitted_by(service.settings, retriever) if retriever.strip() else service.settings.retriever
        return channels_in(text)
    except (RingtrueError, Refused):
        return []


def _form(request: Request, service: Service, caller: Caller, asked: Asked, *, problem: Refused | None = None) -> Response:
    settings = service.settings
    sets = golden_sets(service, caller)
    choices = [(one.name, f"{one.name} {one.version}" + (" (shipped)" if one.shipped else "")) for one in sets]
    for one in sets:
        if one.versions > 1:
            older = golden_versions(service, caller, one.name)[1:]
            choices += [(f"{old.name}@{old.version}", f"{old.name} {old.version} (older)") for old in older]
    standards = [(one.name, f"{one.name} {one.version}") for one in baselines(service, caller)]
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
        request, caller, "evaluate.html.jinja", status=422 if problem else 200,
        asked=replace(asked, golden=asked.golden or first, retriever=asked.retriever or settings.retriever),
        sets=choices, standards=standards, problem=problem, splits=SPLITS,
        measures=", ".join(DEFAULT_MEASURES), channels=_channels(service, asked.retriever),
        suggested=list(dict.fromkeys((settings.retriever, *settings.expressions, *SUGGESTED))),
        jobs=service.of(caller).jobs(project=caller.project, limit=LISTED),
    )  # fmt: skip


@router.post("/evaluate")
def start(
    request: Request,
    service: Here,
    caller: PageWriter,
    golden: Annotated[str, Form(max_length=250)] = "",
    retriever: Annotated[str, Form(max_length=2_000)] = "",
    measures: Annotated[str, Form(max_length=2_000)] = "",
    baseline: Annotated[str, Form(max_length=250)] = "",
    split: Annotated[str, Form(max_length=20)] = "all",
    only: Annotated[list[str] | None, Form(max_length=24)] = None,
    k: Annotated[str, Form(max_length=20)] = "",
    tried: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Start an evaluation as a job and go to where it is watched."""
    asked = Asked(golden, retriever, measures, baseline, split, _names(only), k, bool(tried))
    try:
        plan = planned(service, asked.wanted(service, caller))
        if baseline:
            baseline_named(service, caller, baseline)  # a wrong name is told before anything is evaluated
        job = _started(service, caller, plan, baseline or None)
    except (RingtrueError, Refused) as problem:
        return _form(request, service, caller, asked, problem=refused(problem))
    return RedirectResponse(f"/jobs/{job.job_id}?watch=1", 303)


def _started(service: Service, caller: Caller, plan: EvaluationPlan, baseline: str | None) -> StoredJob:
    if baseline is not None:
        policy = server_policy()

        def judge(progress: JobProgress) -> dict[str, Any]:
            return asdict(verdict_record(gated(service, caller, plan, policy, baseline=baseline, watcher=progress.watcher())))

        return service.jobs.start("gate", caller, plan.record() | {"baseline": baseline}, judge)

    def measure(progress: JobProgress) -> dict[str, Any]:
        found = evaluated(service, plan, watcher=progress.watcher())
        progress.check()
        run_id = kept(service, caller, found, feature_id=plan.feature_id).run_id
        return {"run_id": run_id, "location": f"/v1/runs/{run_id}", "metrics": summary(found, run_id=run_id).metrics}

    return service.jobs.start("evaluate", caller, plan.record(), measure)


# ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/jobs")
def job_list(
    request: Request,
    service: Here,
    caller: PageReader,
    cursor: Cursor = None,
    state: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """List the project's jobs, the newest first."""
    if state and state not in get_args(JobState):
        raise InputError(f"there is no state '{state}'; choose {', '.join(get_args(JobState))}, or leave it out")
    chosen: Any = state or None
    try:
        rows = service.of(caller).jobs(project=caller.project, limit=JOBS + 1, before=cursor, state=chosen)
    except MissingInput:
        raise wrong_cursor() from None
    shown, after = paged(rows, JOBS, "job_id")
    return page(
        request, caller, "jobs.html.jinja", active="evaluate", jobs=shown, next=after, cursor=cursor, state=chosen or "",
        known=get_args(JobState),
    )  # fmt: skip


@router.get("/jobs/{job_id}")
def job_page(
    request: Request,
    service: Here,
    caller: PageReader,
    job_id: JobId,
    watch: Annotated[str, Query(max_length=10)] = "",
) -> Response:
    """Show a job as it stands; while it runs its numbers move by themselves. Whoever watches it is led to its result."""
    job = service.jobs.get(job_id, caller.project)
    if watch and _run_of(job) is not None:  # it was done before the page came
        return job_result(service, caller, job_id)
    again = {name: str(job.request[name]) for name in ("golden", "retriever", "baseline") if job.request.get(name)}
    return page(
        request, caller, "job.html.jinja", active="evaluate", job=job, over=job.state in ENDED, again=again,
        stopping=job.says == STOPPING,
    )  # fmt: skip


def _run_of(job: StoredJob) -> str | None:
    """Return the run that a job has left; None where it has none, or not yet."""
    run_id = None if job.result is None else job.result.get("run_id")
    return run_id if isinstance(run_id, str) else None


@router.get("/jobs/{job_id}/result")
def job_result(service: Here, caller: PageReader, job_id: JobId) -> Response:
    """Lead to what came of a job: its run, with the verdict where it was judged."""
    job = service.jobs.get(job_id, caller.project)
    run_id = _run_of(job)
    if run_id is None:
        return RedirectResponse(f"/jobs/{job_id}", 303)
    judged = job.request.get("baseline")
    return RedirectResponse(f"/runs/{quote(run_id)}" + (f"?baseline={quote(str(judged))}" if judged else ""), 303)


@router.post("/jobs/{job_id}/cancel")
def cancel(service: Here, caller: PageWriter, job_id: JobId) -> Response:
    """Ask a job to stop; it stops at its next step."""
    service.jobs.cancel(job_id, caller.project)
    return RedirectResponse(f"/jobs/{job_id}", 303)


@router.get("/jobs/{job_id}/events")
async def job_events(service: Here, caller: PageReader, job_id: JobId) -> StreamingResponse:
    """Tell a page how its job goes, as server-sent events, until it ends."""
    # Asked before the stream begins: afterwards no status could tell that there is no such job.
    await run_in_threadpool(service.jobs.get, job_id, caller.project)

    async def told() -> AsyncIterator[str]:
        async for job in service.jobs.watch(job_id, caller.project):
            if job is None:
                yield ": still here\n\n"
                continue
            event = "end" if job.state in ENDED else "progress"
            body = job_text(job)
            yield f"event: {event}\ndata: {body}\n\n"

    # Proxies that hold back small pieces would keep the progress to themselves.
    return StreamingResponse(told(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
