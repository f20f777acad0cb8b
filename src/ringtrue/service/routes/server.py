"""The server itself: jobs, health, diagnostics, audit trail, keys, alerts, history, and what Prometheus reads."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from importlib.util import find_spec
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import Field, TypeAdapter
from starlette.concurrency import run_in_threadpool

from ringtrue import answers
from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.memory.signals import health_with_memory
from ringtrue.rollout import health_of, review_and_evaluation
from ringtrue.service.alerts import rules_text
from ringtrue.service.auth import Access, Admin, Reader, Writer
from ringtrue.service.context import Service
from ringtrue.service.errors import ERRORS, Refused, clean, for_rest
from ringtrue.service.gauges import METRICS
from ringtrue.service.history import trends
from ringtrue.service.models import (
    Cursor,
    Label,
    Limit,
    Moment,
    Page,
    Strict,
    paged,
    place_cursor,
    place_in,
    plain,
    record_from,
    wrong_cursor,
)
from ringtrue.service.routes.log import At, PathName
from ringtrue.store import MOST_KEY_DAYS, ApiKey, StoredJob, timestamp

jobs_routes = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=ERRORS)
_JOB = TypeAdapter(answers.Job)
JobId = Annotated[str, Path(min_length=1, max_length=100, description="Like job_1f3a….")]


def job_answer(job: StoredJob) -> answers.Job:
    """Return a job as callers see it: what failed is told in the words of REST."""
    return job if job.error is None else replace(job, error=replace(job.error, message=for_rest(job.error.message)))


def started(job: StoredJob) -> JSONResponse:
    """Return the answer to a request that became a job (202)."""
    place = f"/v1/jobs/{job.job_id}"
    return JSONResponse(asdict(answers.JobStarted(job.job_id, job.state, place)), 202, {"Location": place})


STARTED: Mapping[int | str, dict[str, Any]] = {
    202: {
        "model": answers.JobStarted,
        "description": "Taken on as a job",
        "headers": {"Location": {"description": "Where its state is.", "schema": {"type": "string"}}},
    }
}
"""For ``responses=`` of routes that may start a job."""


@jobs_routes.get("")
def list_jobs(
    access: Reader, limit: Limit = 50, cursor: Cursor = None, state: answers.JobState | None = None
) -> Page[answers.Job]:
    """List the project's jobs, the newest first."""
    return jobs_page(access, limit, cursor, state, job_answer)


def jobs_page(
    access: Access, limit: int, cursor: str | None, state: answers.JobState | None,
    shown: Callable[[StoredJob], answers.Job] = lambda job: job,
) -> Page[Any]:  # fmt: skip
    """Return some jobs, the newest first, each as ``shown`` makes it, and the cursor of the next page."""
    try:
        rows = access.store.jobs(project=access.project, limit=limit + 1, before=cursor, state=state)
    except MissingInput:
        raise wrong_cursor() from None
    return paged(rows, limit, "job_id", shown)


@jobs_routes.get("/{job_id}")
def get_job(access: Reader, job_id: JobId) -> answers.Job:
    """Return a job as it stands."""
    return job_answer(access.service.jobs.get(job_id, access.project))


@jobs_routes.post("/{job_id}/cancel")
def cancel_job(access: Writer, job_id: JobId) -> answers.Job:
    """Ask a job to stop; it stops at its next step, and one that has ended stays as it is."""
    return job_answer(access.service.jobs.cancel(job_id, access.project))


@jobs_routes.get(
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
async def job_events(access: Reader, job_id: JobId) -> StreamingResponse:
    """Watch a job until it ends, as server-sent events."""
    # Asked before the stream begins: afterwards no status could tell that there is no such job.
    await run_in_threadpool(access.service.jobs.get, job_id, access.project)

    async def told() -> AsyncIterator[str]:
        number = 0
        async for job in access.service.jobs.watch(job_id, access.project):
            if job is None:
                yield ": still here\n\n"
                continue
            number += 1
            event = "end" if job.state in answers.ENDED else "progress"
            text = json.dumps(_JOB.dump_python(job_answer(job), mode="json"), ensure_ascii=True, allow_nan=False)
            yield f"id: {number}\nevent: {event}\ndata: {text}\n\n"

    # Proxies that hold back small pieces would keep the progress to themselves.
    return StreamingResponse(told(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


server_routes = APIRouter(prefix="/v1", responses=ERRORS)
PACKAGES = ("ringtrue", "fastapi", "starlette", "uvicorn", "pydantic", "SQLAlchemy", "psycopg", "prometheus_client")
"""Packages of which the version is told; PostgreSQL's driver is needed on PostgreSQL alone."""
SHOWN = (
    "host", "port", "project", "https", "hosts", "proxies", "retriever", "prefix", "gauges", "history_seconds", "body_limit",
    "time_limit", "at_once", "jobs", "rates", "demo",
)  # fmt: skip
"""Settings that whoever runs the server may see: none holds a secret or a path."""
COUNTED_JOBS = 200
"""The newest jobs that are counted."""


@server_routes.get("/health", tags=["health"])
def health(access: Reader) -> answers.HealthState:
    """Look at the log, losses, evaluation, gate, reviews, shadow, tests, rollout, index and schema.

    The parts `constitutional` and `memory` are there as soon as the project uses the agent memory.

    The status is 200 whatever the state is; `/healthz` and `/readyz` are for supervisors.
    """
    store, settings, now = access.store, access.service.settings, access.now()
    served = settings.retriever
    found = health_of(store, now=now, project=access.project, index=settings.folder, retriever=served, served=served)
    found = health_with_memory(found, store, project=access.project, now=now)
    return answers.HealthState(found.state, access.project, tuple(_public(access.service, part) for part in found.parts))


def _public(service: Service, part: answers.HealthPart) -> answers.HealthPart:
    """Return a part as any caller may see it: without places of this machine."""
    if part.name == "schema":  # the database's, and so of no project
        number = service.store.schema_version()
        return answers.HealthPart("schema", "ok", f"version {number}", {"version": number})
    return replace(part, says=clean(part.says), figures=plain(part.figures))


def runs_the_server(access: Access) -> bool:
    """True for an administrator of the project that the server was started with: whoever runs it, among many projects."""
    return access.may("admin") and access.project == access.service.settings.project


@server_routes.get("/diagnostics", tags=["diagnostics"])
def diagnostics(access: Admin) -> answers.Diagnostics:
    """Return what whoever runs this server wants to know of it."""
    # The intake serves all projects, and its figures would tell one project how much the others log.
    settings, shown = access.service.settings, asdict(access.service.settings)
    if not runs_the_server(access):
        raise Refused(403, "forbidden", "this covers all projects; use a key of the project that the server was started with")
    known = review_and_evaluation(access.store, project=access.project, served=settings.retriever)
    jobs = Counter(job.state for job in access.store.jobs(project=access.project, limit=COUNTED_JOBS))
    return answers.Diagnostics(
        versions={"python": platform.python_version()}
        | {name.lower(): version(name) for name in PACKAGES if find_spec(name.lower()) is not None},
        database=access.service.store.address.url.get_backend_name(),
        database_schema=access.service.store.schema_version(),
        started_at=timestamp(access.service.started_at),
        uptime_s=(access.now() - access.service.started_at).total_seconds(),
        intake=access.service.intake.figures,
        jobs=dict(sorted(jobs.items())),
        settings={name: shown[name] for name in SHOWN}
        | {
            "keys": not settings.open,
            "serves_folder": settings.folder is not None,
            "serves_golden": settings.golden is not None,
        },
        backlog=known["backlog"],
        evaluation=known["evaluation"],
        unknown=known["unknown"] or {},
    )


@server_routes.get("/audit", tags=["audit"])
def audit_trail(
    access: Admin,
    subject: Annotated[str | None, Query(max_length=300)] = None,
    what: Annotated[str | None, Query(max_length=200)] = None,
    since: Annotated[At | None, Query()] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[answers.AuditRecord]:
    """List changes, the newest first."""
    at, seen = None, 0
    if cursor is not None:
        at, seen = place_in(cursor, datetime, int)
        if not 0 <= seen < 1_000_000:
            raise wrong_cursor()
    # Entries have no number of their own. The cursor says how many of those at its moment were shown.
    rows = access.store.audit(project=access.project, subject=subject, what=what, since=since, until=at, limit=seen + limit + 1)
    rows = rows[min(seen, sum(row.at == at for row in rows)) :][: limit + 1]
    shown = rows[:limit]
    if len(rows) <= limit:
        return Page(items=shown, next=None)
    last = shown[-1].at
    return Page(items=shown, next=place_cursor(last, (seen if last == at else 0) + sum(row.at == last for row in shown)))


keys_routes = APIRouter(prefix="/v1/keys", tags=["keys"], responses=ERRORS)
KEY_DAYS = 90
"""Days that a key made over REST works unless its maker says otherwise; `ringtrue keys create` has the same default."""


class NewKey(Strict, examples=[{"name": "hotel app", "scopes": ["write"]}]):
    """A key to be made, for the project of the caller."""

    name: Label = Field(description="Owner or purpose; for reviewers, the name shown.")
    scopes: Annotated[list[answers.Scope], Field(min_length=1, max_length=4)]
    expires_at: At | None = Field(None, description=f"Expiry; default: {KEY_DAYS} days from now, {MOST_KEY_DAYS:,} at most.")


@keys_routes.get("")
def list_keys(access: Admin) -> list[answers.KeyState]:
    """List the keys of the project, those that ended or were revoked too."""
    return list(access.store.keys(project=access.project))


@keys_routes.post("", status_code=201)
def create(access: Admin, given: NewKey) -> answers.MadeKey:
    """Make a key. The token is shown this once; only its hash is kept."""
    end = given.expires_at or timestamp(access.now() + timedelta(days=KEY_DAYS))
    key, token = create_key(access, given.name, given.scopes, expires_at=end)
    return record_from(answers.MadeKey, key, token=token)


def create_key(
    access: Access, name: str, scopes: Sequence[answers.Scope], *, expires_at: str | None = None
) -> tuple[ApiKey, str]:
    """Make a key of the caller's project and return it with its token, which nobody can see a second time.

    Raises Refused for a scope that the caller does not have, InputError for a key that could open nothing.
    """
    beyond = [scope for scope in scopes if not access.may(scope)]
    if beyond:
        said = f"a key cannot grant what its maker may not do: {', '.join(beyond)}"
        raise Refused(403, "forbidden", said, field="body.scopes")
    unique: list[answers.Scope] = list(dict.fromkeys(scopes))
    made = access.store.create_key(name, unique, now=access.now(), project=access.project, expires_at=expires_at)
    detail = {
        "name": made[0].name,
        "scopes": list(made[0].scopes),
        "expires_at": made[0].expires_at,
        "by_key": access.caller.key_id,
    }
    access.note("key.create", made[0].key_id, detail)
    return made


@keys_routes.delete("/{key_id}")
def revoke(access: Admin, key_id: PathName) -> answers.KeyState:
    """Revoke a key: it opens nothing from now on."""
    store = access.store
    if not store.revoke_key(key_id, now=access.now(), project=access.project):
        raise MissingInput(f"no key '{key_id}' that is not revoked already; look it up in the list of keys")
    access.service.keyring.forget()
    found = next(key for key in store.keys(project=access.project) if key.key_id == key_id)
    access.note("key.revoke", key_id, {"name": found.name, "by_key": access.caller.key_id})
    return found


monitoring_routes = APIRouter(tags=["monitoring"], responses=ERRORS)
DAY = timedelta(days=1)
FIRST = datetime.min.replace(tzinfo=UTC)
MOST_DAYS = 400
MOST_LINES = 100
"""Series of one answer."""
_TIME: dict[str, Any] = {"format": "date-time"}
_YAML: dict[int | str, dict[str, Any]] = {
    200: {"description": "Rules for Prometheus", "content": {"application/yaml": {"schema": {"type": "object"}}}}
}


@monitoring_routes.get("/v1/alerts")
def alerts(access: Reader) -> answers.Alerts:
    """Return the state of every alert rule, checked over the stored history of the project."""
    found = tuple(access.service.telemetry.alerts(access.project))
    firing = sum(alert.state == "firing" for one in found for alert in one.alerts)
    return answers.Alerts("rules over stored history", firing, found)


@monitoring_routes.get("/v1/alerts/rules", response_class=Response, responses=_YAML)
def rules(access: Reader) -> Response:
    """Return the alert rules as a file for Prometheus, with the metrics called as this service calls them."""
    return Response(rules_text(access.service.telemetry.names), media_type="application/yaml")


@monitoring_routes.get("/v1/history")
def history(
    access: Reader,
    series: Annotated[
        str,
        Query(
            min_length=1,
            max_length=100,
            description="The canonical name of a metric, whatever it is called outside.",
            examples=["ringtrue_retrieval_recall_at_k"],
            json_schema_extra={"enum": sorted(METRICS)},
        ),
    ],
    label: Annotated[
        list[Annotated[str, Field(max_length=300, pattern="^[^=]+=")]] | None,
        Query(max_length=10, description="NAME=VALUE that the series must have; repeatable.", examples=[["k=10"]]),
    ] = None,
    since: Annotated[
        Moment | None,
        Query(description=f"By default a day before `until`; at most {MOST_DAYS} days before it.", json_schema_extra=_TIME),
    ] = None,
    until: Annotated[Moment | None, Query(description="By default now.", json_schema_extra=_TIME)] = None,
    points: Annotated[
        int, Query(ge=1, le=2_000, description="Most points of a series; of more, the last of each stretch of time.")
    ] = 500,
) -> answers.History:
    """Return the values of a gauge over time."""
    if series not in METRICS:
        raise Refused(
            422, "invalid_input", f"unknown metric '{series}'; did you mean {nearest(series, METRICS)}?", field="query.series"
        )
    end = _moment(until, "until") if until is not None else access.now()
    begin = _before(end, DAY) if since is None else max(_moment(since, "since"), _before(end, MOST_DAYS * DAY))
    labels = dict(one.split("=", 1) for one in label or [])
    found = trends(access.store, access.project, series, labels, begin, end, most=points)
    lines = tuple(
        answers.Line(dict(names), tuple(answers.TimePoint(timestamp(at), value) for at, value in line))
        for names, line in list(found.items())[:MOST_LINES]
    )
    return answers.History(series, lines)


def _moment(text: str, name: str) -> datetime:
    try:
        return datetime.fromisoformat(timestamp(text)).astimezone(UTC)
    except InputError as problem:
        raise Refused(422, "invalid_input", f"{name}: {problem}", field=f"query.{name}") from None


def _before(end: datetime, span: timedelta) -> datetime:
    return end - span if end - FIRST > span else FIRST


_EXAMPLE = 'ringtrue_retrieval_recall_at_k{project="default",k="10",retriever="bm25",golden="hotel-v1.0.0",slice="all"} 0.82\n'
_FORMATS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The metrics of the caller's project",
        "content": {
            kind: {"schema": {"type": "string"}, "example": _EXAMPLE} for kind in ("text/plain", "application/openmetrics-text")
        },
    }
}


@monitoring_routes.get("/metrics", response_class=Response, responses=_FORMATS)
def metrics(request: Request, access: Reader) -> Response:
    """Return the metrics of the caller's project, in OpenMetrics where Accept asks for it, else in Prometheus' text format."""
    end = None if access.caller.expires_at is None else datetime.fromisoformat(access.caller.expires_at)
    body, kind = access.service.telemetry.scrape(access.project, request.headers.get("accept"), key_ends=end)
    return Response(body, headers={"Content-Type": kind})
