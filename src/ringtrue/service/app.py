"""The application: layers, routes and pages put together over one service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from ringtrue.service import errors
from ringtrue.service.context import Service
from ringtrue.service.idempotency import Idempotency
from ringtrue.service.middleware import Bodies, BrowserSessions, Doorkeeper, Envelope
from ringtrue.service.pages import PAGES, shell
from ringtrue.service.routes import ROUTERS
from ringtrue.service.settings import Settings

ABOUT = """\
Ringtrue tells you whether a search is good, whether a change made it better or worse, and whether that is certain.

Send `Authorization: Bearer rt_…` with a key made by `ringtrue keys create`; on loopback none is needed unless the server was
started with `--keys`. A key belongs to one project and sees nothing of any other. Errors have one shape; writes may carry an
`Idempotency-Key`; lists go on with `cursor`.
"""


def create_app(settings: Settings, opened: Service | None = None) -> FastAPI:
    """Return the application; unless it is opened already, the store is when it starts, and closed when it stops."""

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        service = await run_in_threadpool(Service, settings) if opened is None else opened
        app.state.service = service
        await service.start()
        try:
            yield
        finally:
            await service.close()

    app = FastAPI(
        title="Ringtrue",
        version=version("ringtrue"),
        description=ABOUT,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # they load scripts from elsewhere; the pages' own reference works offline
        redoc_url=None,
        lifespan=living,
        redirect_slashes=False,
        # The framework's own would cost a twentieth of every request; ours is in telemetry.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    errors.install(app)
    app.state.error_page = shell.error_page
    app.add_exception_handler(errors.LoginNeeded, shell.to_login)
    for module, router in ROUTERS:
        app.include_router(getattr(import_module(f"ringtrue.service.routes.{module}"), router))
    for name in PAGES:
        app.include_router(import_module(f"ringtrue.service.pages.{name}").router)
    app.mount("/static", shell.static_files(), name="static")
    _probes(app)
    app.openapi = partial(_described, app.openapi)  # type: ignore[method-assign]
    # The last one added is the first that a request meets.
    app.add_middleware(Idempotency)
    app.add_middleware(BrowserSessions, settings=settings)
    app.add_middleware(Bodies, settings=settings)
    app.add_middleware(Doorkeeper, settings=settings)
    if settings.proxies:  # the address that rates are counted by is then the one that a trusted proxy was asked from
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=settings.trusted)
    app.add_middleware(Envelope, settings=settings)
    return app


def _probes(app: FastAPI) -> None:
    """Add what a supervisor asks: is the process alive, and can it take work."""

    @app.get("/healthz", include_in_schema=False)
    async def alive() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @app.get("/readyz", include_in_schema=False)
    def ready(request: Request) -> JSONResponse:
        service: Service = request.app.state.service
        ready = service.readiness
        problem = "stopping" if service.stopping else ready.write_problem() or ready.read_problem()
        return JSONResponse({"status": problem or "ok"}, 200 if problem is None else 503)


def _described(made: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the OpenAPI document, which says that every route takes a key."""
    document = made()
    parts = document.setdefault("components", {})
    parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "description": "ringtrue keys create"}}
    document["security"] = [{"key": []}]
    return document
