"""``/metrics``: what Prometheus reads (V-2). It lies outside ``/v1``, where Prometheus looks for it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from ringtrue.service.auth import Reader
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS

router = APIRouter(tags=["monitoring"], responses=ERRORS)
_EXAMPLE = 'ringtrue_retrieval_recall_at_k{project="default",k="10",retriever="bm25",golden="hotel-v1.0.0",slice="all"} 0.82\n'
_FORMATS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The metrics of the caller's project",
        "content": {
            kind: {"schema": {"type": "string"}, "example": _EXAMPLE} for kind in ("text/plain", "application/openmetrics-text")
        },
    }
}


@router.get("/metrics", response_class=Response, responses=_FORMATS)
def metrics(request: Request, service: Here, caller: Reader) -> Response:
    """Return the metrics of the caller's project, in OpenMetrics where Accept asks for it, else in Prometheus' text format."""
    end = None if caller.expires_at is None else datetime.fromisoformat(caller.expires_at)
    body, kind = service.telemetry.scrape(caller.project, request.headers.get("accept"), key_ends=end)
    return Response(body, headers={"Content-Type": kind})
