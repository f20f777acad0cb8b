"""``/v1/jobs``: work that takes longer than a request, watched and cancelled."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from ringtrue.errors import MissingInput
from ringtrue.service.auth import Reader, Writer
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS, Refused
from ringtrue.service.hints import for_rest
from ringtrue.service.jobs import ENDED
from ringtrue.service.models import Answer, Cursor, Limit, Page, paged
from ringtrue.store import StoredJob

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=ERRORS)
JobId = Annotated[str, Path(min_length=1, max_length=100, description="Like job_1f3a….")]
State = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]


class JobFailure(Answer):
    """Why a job failed."""

    code: str
    message: str


class JobStarted(Answer):
    """Work that was taken on; its state is at ``location``."""

    job_id: str
    state: State
    location: str


class JobAnswer(Answer):
    """A job as it stands."""

    job_id: str
    kind: str
    state: State
    created_at: str
    updated_at: str
    who: str
    request: dict[str, Any] = Field(description="What was asked for, without what was uploaded.")
    done: int
    total: int | None = Field(description="Steps of what it is doing now; null where nobody knows.")
    says: str = Field(description="What it is doing now.")
    result: dict[str, Any] | None = Field(description="What came of it; for an evaluation run_id, location and metrics.")
    error: JobFailure | None


def job_answer(job: StoredJob) -> JobAnswer:
    """Return a job as callers see it."""
    return JobAnswer(
        job_id=job.job_id,
        kind=job.kind,
        state=job.state,
        created_at=job.created_at,
        updated_at=job.updated_at,
        who=job.who,
        request=dict(job.request),
        done=job.done,
        total=job.total,
        says=job.says,
        result=None if job.result is None else dict(job.result),
        error=None
        if job.error is None
        else JobFailure(code=str(job.error["code"]), message=for_rest(str(job.error["message"]))),
    )


def started(job: StoredJob) -> JSONResponse:
    """Return the answer to a request that became a job (202)."""
    place = f"/v1/jobs/{job.job_id}"
    body = JobStarted(job_id=job.job_id, state=job.state, location=place)
    return JSONResponse(body.model_dump(), 202, {"Location": place})


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
    service: Here, caller: Reader, limit: Limit = 50, cursor: Cursor = None, state: State | None = None
) -> Page[JobAnswer]:
    """List the project's jobs, the newest first."""
    try:
        rows = service.of(caller).jobs(project=caller.project, limit=limit + 1, before=cursor, state=state)
    except MissingInput:
        raise wrong_cursor(cursor) from None
    shown, after = paged(rows, limit, "job_id")
    return Page(items=[job_answer(row) for row in shown], next=after)


@router.get("/{job_id}")
def get_job(service: Here, caller: Reader, job_id: JobId) -> JobAnswer:
    """Return a job as it stands."""
    return job_answer(service.jobs.get(job_id, caller.project))


@router.post("/{job_id}/cancel")
def cancel_job(service: Here, caller: Writer, job_id: JobId) -> JobAnswer:
    """Ask a job to stop; it stops at its next step, and one that has ended stays as it is."""
    service.jobs.cancel(job_id, caller.project)
    return job_answer(service.jobs.get(job_id, caller.project))


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
            body = json.dumps(job_answer(job).model_dump(), ensure_ascii=True, allow_nan=False)
            yield f"id: {number}\nevent: {event}\ndata: {body}\n\n"

    # Proxies that hold back small pieces would keep the progress to themselves.
    return StreamingResponse(told(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def wrong_cursor(cursor: str | None) -> Refused:
    """Return the refusal of a cursor that no page gave."""
    said = f"the cursor {cursor!r:.80} goes on nowhere; take it from `next` of the page before, or leave it out"
    return Refused(422, "invalid_cursor", said, field="query.cursor")
