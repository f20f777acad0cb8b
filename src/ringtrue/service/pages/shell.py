"""The frame around every page: the templates, what all of them are given, the sections of the dashboard, and its files.

Everything a page shows passes through Jinja's escaping. A page holds no style and no script of its own: the policy its answer
carries forbids both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import Form, Query
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route, Router

from ringtrue import charts
from ringtrue.report import DASH
from ringtrue.service.errors import Refused, request_id_of
from ringtrue.service.pages.filters import FILTERS

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller

TEMPLATES = Path(__file__).with_name("templates")


Choice = Annotated[str, Query(max_length=20)]
Words = Annotated[str, Query(max_length=200)]
Named = Annotated[str, Query(max_length=250)]
"""A name with a version."""
ChoiceField = Annotated[str, Form(max_length=20)]
WordsField = Annotated[str, Form(max_length=200)]
NamedField = Annotated[str, Form(max_length=250)]
ReasonField = Annotated[str, Form(max_length=500)]
TextField = Annotated[str, Form(max_length=2_000)]


@dataclass(frozen=True)
class Section:
    """A place in the navigation."""

    key: str
    """Also the first part of its address, and the name of its icon."""
    word: str
    letter: str
    """Pressed after ``g`` it leads there."""
    group: str = ""
    scope: str = "read"
    """What its first page needs."""
    instead: str = ""
    """Where those are led who may not: a page of it that only shows."""

    @property
    def href(self) -> str:
        return "/" if self.key == "overview" else f"/{self.key}"

    def way(self, may: Callable[[str], bool]) -> str:
        """Return the address for somebody who may do some things and not others."""
        return self.href if not self.instead or may(self.scope) else self.instead


SECTIONS = (
    Section("overview", "Overview", "o"),
    Section("evaluate", "Evaluate", "e", "Measure"),
    Section("runs", "Runs", "r", "Measure"),
    Section("compare", "Compare", "c", "Measure"),
    Section("golden", "Golden sets", "g", "Judge"),
    Section("review", "Review", "v", "Judge", scope="review", instead="/review/agreement"),
    Section("backlog", "Backlog", "b", "Judge"),
    Section("queries", "Query log", "q", "Live"),
    Section("tests", "Shadow & tests", "t", "Live"),
    Section("flags", "Flags", "f", "Live"),
    Section("experiments", "Experiments", "x", "More"),
    Section("settings", "Settings", "s", "More"),
)

STATES: Mapping[str, tuple[str, str, str]] = {
    # of a gate and its checks, as the report says them
    "pass": ("good", "✓", "Pass"), "fail": ("bad", "✕", "Fail"), "undecided": ("unsure", "?", "Undecided"),
    "degraded": ("unsure", "▾", "Degraded"), "advisory": ("plain", "i", "Advisory"),
    # of a comparison
    "better": ("good", "▲", "better"), "worse": ("bad", "▼", "worse"), "same": ("plain", "=", "same"),
    "not enough evidence": ("unsure", "~", "not enough evidence"),
    # of a job
    "queued": ("plain", "…", "Queued"), "running": ("live", "◔", "Running"), "done": ("good", "✓", "Done"),
    "failed": ("bad", "✕", "Failed"), "cancelled": ("plain", "–", "Cancelled"), "interrupted": ("unsure", "!", "Interrupted"),
    # of a flag and a sequential test, which run as a job does
    "paused": ("unsure", "‖", "Paused"), "graduated": ("good", "✓", "Graduated"), "rejected": ("bad", "✕", "Rejected"),
    # of everything that is on or off, waits or is over
    "on": ("good", "●", "On"), "off": ("plain", "○", "Off"), "open": ("live", "○", "Open"), "closed": ("plain", "–", "Closed"),
    "shadow": ("live", "◐", "Shadow"), "canary": ("live", "◔", "Canary"), "full": ("good", "●", "Full"),
    "ok": ("good", "✓", "OK"), "warn": ("unsure", "!", "Warning"), "unknown": ("plain", "—", "Unknown"),
}  # fmt: skip
"""Tone, sign and word of every state; one that is not listed is shown as it is."""

HTMX = json.dumps({
    "includeIndicatorStyles": False, "allowEval": False, "allowScriptTags": False, "selfRequestsOnly": True,
    "historyCacheSize": 0, "refreshOnHistoryMiss": True,
    # A form that was refused comes back with its reasons, and is shown; every other error becomes a message.
    "responseHandling": [
        {"code": "204", "swap": False}, {"code": "[23]..", "swap": True}, {"code": "422", "swap": True},
        {"code": "[45]..", "swap": False, "error": True},
    ],
})  # fmt: skip


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a whole page."""
    return _answer(_templates().get_template(template).render(_shared(request, values)), status)


def fragment(request: Request, template: str, block: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return one block of a page, for htmx to put in its place; raises LookupError if the template has no such block."""
    found = _templates().get_template(template)
    if block not in found.blocks:
        raise LookupError(f"{template} has no block '{block}', only {', '.join(found.blocks)}")
    context = found.new_context(_shared(request, values))
    return _answer("".join(found.blocks[block](context)), status)


def wants_fragment(request: Request) -> bool:
    """True if htmx asks for a part of a page; going back in history asks for the whole."""
    given = request.headers
    return given.get("hx-request") == "true" and not given.get("hx-boosted") and not given.get("hx-history-restore-request")


def error_page(request: Request, problem: Refused) -> HTMLResponse:
    """Return what a reader is told when a page cannot be shown; only the box where htmx asked."""
    values = {"problem": problem, "request_id": request_id_of(request), "active": ""}
    if wants_fragment(request):
        made = fragment(request, "error.html.jinja", "problem", status=problem.status, **values)
    else:
        made = page(request, "error.html.jinja", status=problem.status, **values)
    made.headers.update(problem.headers)
    return made


def login_page(request: Request, wanted: str, *, problem: str = "") -> HTMLResponse:
    """Return the form for a key; ``wanted`` is where the reader goes from there, ``problem`` why the last key was not taken."""
    return page(request, "login.html.jinja", status=401 if problem else 200, next=wanted, problem=problem)


def to_login(request: Request, _: Exception) -> Response:
    """Return the way to the sign-in page, and from there back to where the reader wanted to go."""
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    address = "/login" if wanted == "/" or request.method not in ("GET", "HEAD") else f"/login?next={quote(wanted, safe='/')}"
    if request.headers.get("hx-request") == "true":
        return Response(status_code=204, headers={"HX-Redirect": address})
    return RedirectResponse(address, 303)


# --- what templates get


def _shared(request: Request, values: Mapping[str, Any]) -> dict[str, Any]:
    caller: Caller | None = getattr(request.state, "caller", None)
    service = getattr(request.app.state, "service", None)
    first = request.url.path.strip("/").split("/")[0] or "overview"
    shared: dict[str, Any] = {
        "request": request,
        "caller": caller,
        "me": caller,  # inside {% call %} the name caller is the macro's
        "project": caller.project if caller else "",
        "may": caller.may if caller else lambda scope: False,
        "csrf": getattr(request.state, "csrf", ""),
        "active": first,
        "now": service.now() if service else None,
        "demo": bool(service and service.settings.demo),
        "with_query": _changer(request),
    } | dict(values)  # fmt: skip
    # Macros see what their page sees: a form knows its token, a table the address it sorts.
    macros = _templates().get_template("macros.html.jinja")
    return shared | {"m": macros.make_module({name: shared[name] for name in ("csrf", "with_query", "now", "request")})}


def _changer(request: Request) -> Callable[..., str]:
    def with_query(**changes: Any) -> str:
        """Return this page's address with some parameters changed; None takes one away."""
        given = [(name, value) for name, value in request.query_params.multi_items() if name not in changes]
        given += [(name, str(value)) for name, value in changes.items() if value is not None]
        return request.url.path + (f"?{urlencode(given)}" if given else "")

    return with_query


def _answer(text: str, status: int) -> HTMLResponse:
    # Half of a character pair, which a query may hold, cannot be written as UTF-8.
    content = text.encode("utf-8", errors="replace")
    return HTMLResponse(content, status, {"Cache-Control": "private, no-store", "Vary": "HX-Request, Cookie"})


def prepare() -> None:
    """Read every template: who opens a page first would wait for it."""
    made = _templates()
    for name in made.list_templates():
        made.get_template(name)


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= FILTERS
    groups = [(name, list(members)) for name, members in groupby(SECTIONS, lambda one: one.group)]
    made.globals |= {
        "static": static, "charts": charts, "sections": SECTIONS, "groups": groups, "states": STATES, "dash": DASH,
        "htmx_config": HTMX, "version": version("ringtrue"),
    }  # fmt: skip
    return made


FOLDER = Path(__file__).with_name("static")
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}
A_YEAR = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class StaticFile:
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
def _files() -> Mapping[str, StaticFile]:
    contents = {place.relative_to(FOLDER).as_posix(): place.read_bytes() for place in FOLDER.rglob("*") if place.is_file()}
    contents["theme.css"] = (files("ringtrue.report") / "page" / "theme.css").read_bytes()
    return {
        name: StaticFile(content, KINDS.get(Path(name).suffix, "text/plain"), hashlib.sha256(content).hexdigest()[:16])
        for name, content in contents.items()
    }
