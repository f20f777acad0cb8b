"""How the platform and this server are: health for everybody, diagnostics for whoever runs it."""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from ringtrue.answers import Diagnostics, HealthPart, IntakeState
from ringtrue.memory.signals import health_with_memory
from ringtrue.rollout import Health, health_of, review_and_evaluation
from ringtrue.service.errors import Refused, clean
from ringtrue.service.models import record_from
from ringtrue.service.work.logging_in import bad_cursor, is_moment
from ringtrue.store import AuditEntry, timestamp

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service

PACKAGES = ("ringtrue", "fastapi", "starlette", "uvicorn", "pydantic", "SQLAlchemy", "psycopg", "prometheus_client")
JOBS = 200
"""The newest jobs that are counted."""


def health(service: Service, caller: Caller) -> Health:
    """Return the health of the caller's project, with the documents that are served and the memory if it is used."""
    store, settings, now = service.of(caller), service.settings, service.now()
    served = settings.retriever
    found = health_of(store, now=now, project=caller.project, index=settings.folder, retriever=served, served=served)
    found = health_with_memory(found, store, project=caller.project, now=now)
    return Health(tuple(_public(service, part) for part in found.parts))


def _public(service: Service, part: HealthPart) -> HealthPart:
    """Return a part as any caller may see it: without places of this machine."""
    if part.name == "schema":  # the database's, and so of no project
        number = service.store.schema_version()
        return HealthPart("schema", "ok", f"version {number}", {"version": number})
    return replace(part, says=clean(part.says), figures=plain(part.figures))


def plain(value: Any) -> Any:
    """Return a structure as JSON has it; a number that is none is unknown."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float) or value is None else str(value)


def runs_the_server(service: Service, caller: Caller) -> bool:
    """True for an administrator of the project that the server was started with: whoever runs it, among many projects."""
    return caller.may("admin") and caller.project == service.settings.project


def diagnosis(service: Service, caller: Caller) -> Diagnostics:
    """Return versions, schema, uptime, the intake's figures, jobs by state, the settings without secrets and places, and the
    review backlog and newest evaluation of the caller's project.

    The intake is everybody's, and its figures would tell one project how much the others log. Raises Refused for those who
    do not run the server.
    """
    settings = service.settings
    if not runs_the_server(service, caller):
        raise Refused(
            403, "forbidden", "this tells of all projects; it needs a key of the one that the server was started with"
        )
    known = review_and_evaluation(service.of(caller), project=caller.project, served=settings.retriever)
    jobs = Counter(job.state for job in service.of(caller).jobs(project=caller.project, limit=JOBS))
    return Diagnostics(
        versions={"python": platform.python_version(), **dict(_versions())},
        database=service.store.address.url.get_backend_name(),
        database_schema=service.store.schema_version(),
        started_at=timestamp(service.started_at),
        uptime_s=(service.now() - service.started_at).total_seconds(),
        intake=record_from(IntakeState, service.intake.figures),
        jobs=dict(sorted(jobs.items())),
        settings={
            "host": settings.host,
            "port": settings.port,
            "project": settings.project,
            "keys": not settings.open,
            "https": settings.https,
            "hosts": list(settings.hosts),
            "proxies": list(settings.proxies),
            "retriever": settings.retriever,
            "serves_folder": settings.folder is not None,
            "serves_golden": settings.golden is not None,
            "prefix": settings.prefix,
            "gauges": dict(settings.gauges),
            "history_seconds": settings.history_seconds,
            "body_limit": settings.body_limit,
            "time_limit": settings.time_limit,
            "at_once": settings.at_once,
            "jobs": settings.jobs,
            "rates": asdict(settings.rates),
            "demo": settings.demo,
        },
        backlog=known["backlog"],
        evaluation=known["evaluation"],
        unknown=known["unknown"] or {},
    )


def _versions() -> list[tuple[str, str]]:
    found = []
    for package in PACKAGES:
        try:
            found.append((package.lower(), version(package)))
        except PackageNotFoundError:  # PostgreSQL's driver is needed on PostgreSQL alone
            continue
    return found


def audit_trail(
    service: Service,
    caller: Caller,
    *,
    limit: int,
    before: str | None = None,
    subject: str | None = None,
    what: str | None = None,
    since: str | None = None,
) -> tuple[list[AuditEntry], str | None]:
    """Return who changed what, the newest first, and the cursor behind them where there are more."""
    at, seen = None, 0
    if before is not None:
        at, mark, count = before.rpartition("~")
        if not mark or not is_moment(at) or not count.isdecimal() or len(count) > 6:
            raise bad_cursor()
        seen = int(count)
    # Entries have no number of their own: of those at the moment of the cursor, so many were shown.
    rows = service.of(caller).audit(
        project=caller.project, subject=subject, what=what, since=since, until=at, limit=seen + limit + 1
    )
    rows = rows[min(seen, sum(row.at == at for row in rows)) :][: limit + 1]
    shown = rows[:limit]
    if len(rows) <= limit:
        return shown, None
    last = shown[-1].at
    return shown, f"{last}~{(seen if last == at else 0) + sum(row.at == last for row in shown)}"
