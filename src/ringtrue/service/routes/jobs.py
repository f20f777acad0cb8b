"""``/v1/jobs``: work that takes longer than a request, watched and cancelled."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, replace
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool

from ringtrue.answers import ENDED, Job, JobStarted, JobState
from ringtrue.errors import MissingInput
from ringtrue.service.auth import Reader, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.hints import for_rest
from ringtrue.service.models import Cursor, Limit, Page, paged, wrong_cursor
from ringtrue.store import StoredJob

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=ERRORS)
_JOB = TypeAdapter(Job)
JobId = Annotated[str, Path(min_length=1, max_length=100, description="Like job_1f3a….")]


def job_answer(job: StoredJob) -> Job:
    """Return a job as callers see it: what failed is told in the words of REST."""
    return job if job.error is None else replace(job, error=replace(job.error, message=for_rest(job.error.message)))


def job_text(job: StoredJob) -> str:
    """Return a job as the data of a server-sent event, one line of JSON."""
    return json.dumps(_JOB.dump_python(job_answer(job), mode="json"), ensure_ascii=True, allow_nan=False)


def started(job: StoredJob) -> JSONResponse:
    """Return the answer to a request that became a job (202)."""
    place = f"/v1/jobs/{job.job_id}"
    return JSONResponse(asdict(JobStarted(job.job_id, job.state, place)), 202, {"Location": place})


STARTED: Mapping[int | str, dict[str, Any]] = {
    202: {
        "model": JobStarted,
        "description": "Taken on as a job",
        "headers": {"Location": {"description": "Where its state is.", "schema": {"type": "string"}}},
    }
}
"""For ``responses=`` of routes that may start a job."""


@router.get("")
def list_jobs(
    service: Here, caller: Reader, limit: Limit = 50, cursor: Cursor = None, state: JobState | None = None
) -> Page[Job]:
    """List the project's jobs, the newest first."""
    try:
        rows = service.of(caller).jobs(project=caller.project, limit=limit + 1, before=cursor, state=state)
    except MissingInput:
        raise wrong_cursor() from None
    shown, after = paged(rows, limit, "job_id")
    return Page(items=[job_answer(row) for row in shown], next=after)


@router.get("/{job_id}")
def get_job(service: Here, caller: Reader, job_id: JobId) -> Job:
    """Return a job as it stands."""
    return job_answer(service.jobs.get(job_id, caller.project))


@router.post("/{job_id}/cancel")
def cancel_job(service: Here, caller: Writer, job_id: JobId) -> Job:
    """Ask a job to stop; it stops at its next step, and one that has ended stays as it is."""
    return job_answer(service.jobs.cancel(job_id, caller.project))


@router.get(
    "/{job_id}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events: `progress` with the job whenever it changed, then `end`; "
            "a comment every 15 seconds says that the connection lives.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def job_events(service: Here, caller: Reader, job_id: JobId) -> StreamingResponse:
    """Watch a job until it ends, as server-sent events."""
    # Asked before the stream begins: afterwards no status could tell that there is no such job.
    await run_in_threadpool(service.jobs.get, job_id, caller.project)

    async def told() -> AsyncIterator[str]:
        number = 0
        async for job in service.jobs.watch(job_id, caller.project):
            if job is None:
                yield ": still here\n\n"
                continue
            number += 1
            event = "end" if job.state in ENDED else "progress"
            yield f"id: {number}\nevent: {event}\ndata: {job_text(job)}\n\n"

    # Proxies that hold back small pieces would keep the progress to themselves.
    return StreamingResponse(told(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
