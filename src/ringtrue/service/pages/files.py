"""The files that pages load: scripts, styles, the icon. Read once and served by name; no other path leads anywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router

FOLDER = Path(__file__).with_name("static")
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}
A_YEAR = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class File:
    """What is sent, and the version in its address and its ETag."""

    content: bytes
    kind: str
    version: str


def static(name: str) -> str:
    """Return the address of a file that pages load; it changes with its content. Raises LookupError for an unknown one."""
    if name not in _files():
        raise LookupError(f"there is no static file '{name}'")
    return f"/static/{name}?v={_files()[name].version}"


def static_files() -> Router:
    """Return the application that serves them, to be mounted under ``/static``."""
    return Router([Route("/{name:path}", _serve, methods=["GET"])])


async def _serve(request: Request) -> Response:
    found = _files().get(request.path_params["name"])
    if found is None:
        return PlainTextResponse("there is no such file\n", 404)
    # An address with the version in it always means this content; one without must be asked for again.
    fresh = request.query_params.get("v") == found.version
    headers = {"Cache-Control": A_YEAR if fresh else "no-cache", "ETag": f'"{found.version}"'}
    if found.version in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers=headers, media_type=found.kind)


@cache
def _files() -> Mapping[str, File]:
    contents = {place.relative_to(FOLDER).as_posix(): place.read_bytes() for place in FOLDER.rglob("*") if place.is_file()}
    contents["theme.css"] = (files("ringtrue.report") / "page" / "theme.css").read_bytes()
    return {
        name: File(content, KINDS.get(Path(name).suffix, "text/plain"), hashlib.sha256(content).hexdigest()[:16])
        for name, content in contents.items()
    }
