"""``/v1/health``, ``/v1/diagnostics`` and ``/v1/audit``: how the platform and this server are, and who changed what."""

from __future__ import annotations

import platform
from collections import Counter
from dataclasses import asdict, replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import Annotated

from fastapi import APIRouter, Query

from ringtrue.answers import AuditEntry, Diagnostics, HealthPart, HealthState
from ringtrue.memory.signals import health_with_memory
from ringtrue.rollout import health_of, review_and_evaluation
from ringtrue.service.auth import Admin, Caller, Reader
from ringtrue.service.context import Here, Service
from ringtrue.service.errors import ERRORS, Refused, clean
from ringtrue.service.incoming import At, is_moment
from ringtrue.service.models import Cursor, Limit, Page, plain, wrong_cursor
from ringtrue.store import timestamp

router = APIRouter(prefix="/v1", responses=ERRORS)
PACKAGES = ("ringtrue", "fastapi", "starlette", "uvicorn", "pydantic", "SQLAlchemy", "psycopg", "prometheus_client")
"""Packages of which the version is told; PostgreSQL's driver is needed on PostgreSQL alone."""
SHOWN = (
    "host", "port", "project", "https", "hosts", "proxies", "retriever", "prefix", "gauges", "history_seconds", "body_limit",
    "time_limit", "at_once", "jobs", "rates", "demo",
)  # fmt: skip
"""Settings that whoever runs the server may see: none holds a secret or a path."""
JOBS = 200
"""The newest jobs that are counted."""


@router.get("/health", tags=["health"])
def health(service: Here, caller: Reader) -> HealthState:
    """Look at the log, losses, evaluation, gate, reviews, shadow, tests, rollout, index and schema.

    The parts `constitutional` and `memory` are there as soon as the project uses the agent memory.

    The status is 200 whatever the state is; `/healthz` and `/readyz` are for supervisors.
    """
    store, settings, now = service.of(caller), service.settings, service.now()
    served = settings.retriever
    found = health_of(store, now=now, project=caller.project, index=settings.folder, retriever=served, served=served)
    found = health_with_memory(found, store, project=caller.project, now=now)
    return HealthState(found.state, caller.project, tuple(_public(service, part) for part in found.parts))


def _public(service: Service, part: HealthPart) -> HealthPart:
    """Return a part as any caller may see it: without places of this machine."""
    if part.name == "schema":  # the database's, and so of no project
        number = service.store.schema_version()
        return HealthPart("schema", "ok", f"version {number}", {"version": number})
    return replace(part, says=clean(part.says), figures=plain(part.figures))


def runs_the_server(service: Service, caller: Caller) -> bool:
    """True for an administrator of the project that the server was started with: whoever runs it, among many projects."""
    return caller.may("admin") and caller.project == service.settings.project


@router.get("/diagnostics", tags=["diagnostics"])
def diagnostics(service: Here, caller: Admin) -> Diagnostics:
    """Return what whoever runs this server wants to know of it."""
    # The intake serves all projects, and its figures would tell one project how much the others log.
    settings, shown = service.settings, asdict(service.settings)
    if not runs_the_server(service, caller):
        raise Refused(
            403, "forbidden", "this tells of all projects; it needs a key of the one that the server was started with"
        )
    known = review_and_evaluation(service.of(caller), project=caller.project, served=settings.retriever)
    jobs = Counter(job.state for job in service.of(caller).jobs(project=caller.project, limit=JOBS))
    return Diagnostics(
        versions={"python": platform.python_version()}
        | {name.lower(): version(name) for name in PACKAGES if find_spec(name.lower()) is not None},
        database=service.store.address.url.get_backend_name(),
        database_schema=service.store.schema_version(),
        started_at=timestamp(service.started_at),
        uptime_s=(service.now() - service.started_at).total_seconds(),
        intake=service.intake.figures,
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


@router.get("/audit", tags=["audit"])
def audit_trail(
    service: Here,
    caller: Admin,
    subject: Annotated[str | None, Query(max_length=300)] = None,
    what: Annotated[str | None, Query(max_length=200)] = None,
    since: Annotated[At | None, Query()] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[AuditEntry]:
    """List changes, the newest first."""
    at, seen = None, 0
    if cursor is not None:
        at, mark, count = cursor.rpartition("~")
        if not mark or not is_moment(at) or not count.isdecimal() or len(count) > 6:
            raise wrong_cursor()
        seen = int(count)
    # Entries have no number of their own. The cursor says how many of those at its moment were shown.
    rows = service.of(caller).audit(
        project=caller.project, subject=subject, what=what, since=since, until=at, limit=seen + limit + 1
    )
    rows = rows[min(seen, sum(row.at == at for row in rows)) :][: limit + 1]
    shown = rows[:limit]
    if len(rows) <= limit:
        return Page(items=shown, next=None)
    last = shown[-1].at
    return Page(items=shown, next=f"{last}~{(seen if last == at else 0) + sum(row.at == last for row in shown)}")
