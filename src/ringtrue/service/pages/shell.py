"""The frame around every page: the templates, what all of them are given, and the sections of the dashboard.

Everything a page shows passes through Jinja's escaping. A page holds no style and no script of its own: the policy its answer
carries forbids both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ringtrue import charts
from ringtrue.report import DASH
from ringtrue.service.errors import Refused, request_id_of
from ringtrue.service.pages.files import static, static_files
from ringtrue.service.pages.filters import FILTERS

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller

__all__ = [
    "SECTIONS",
    "STATES",
    "error_page",
    "fragment",
    "login_page",
    "page",
    "static",
    "static_files",
    "to_login",
    "wants_fragment",
]

TEMPLATES = Path(__file__).with_name("templates")


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


def page(request: Request, caller: Caller | None, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a whole page; ``caller`` is None where nobody has signed in."""
    shared = _shared(request, caller, values)
    return _answer(_templates().get_template(template).render(shared), status)


def fragment(
    request: Request, caller: Caller | None, template: str, block: str, *, status: int = 200, **values: Any
) -> HTMLResponse:
    """Return one block of a page, for htmx to put in its place; raises LookupError where the template has no such block."""
    found = _templates().get_template(template)
    if block not in found.blocks:
        raise LookupError(f"{template} has no block '{block}', only {', '.join(found.blocks)}")
    context = found.new_context(_shared(request, caller, values))
    return _answer("".join(found.blocks[block](context)), status)


def wants_fragment(request: Request) -> bool:
    """True where htmx asks for a part of a page; going back in history asks for the whole."""
    given = request.headers
    return given.get("hx-request") == "true" and not given.get("hx-boosted") and not given.get("hx-history-restore-request")


def error_page(request: Request, problem: Refused) -> HTMLResponse:
    """Return what a reader is told when a page cannot be shown; only the box where htmx asked."""
    values = {"problem": problem, "request_id": request_id_of(request), "active": ""}
    caller = getattr(request.state, "caller", None)
    if wants_fragment(request):
        made = fragment(request, caller, "error.html.jinja", "problem", status=problem.status, **values)
    else:
        made = page(request, caller, "error.html.jinja", status=problem.status, **values)
    made.headers.update(problem.headers)
    return made


def login_page(request: Request, wanted: str, *, problem: str = "") -> HTMLResponse:
    """Return the form for a key; ``wanted`` is where the reader goes from there, ``problem`` why the last key was not taken."""
    return page(request, None, "login.html.jinja", status=401 if problem else 200, next=wanted, problem=problem)


def to_login(request: Request, _: Exception) -> Response:
    """Return the way to the sign-in page, and from there back to where the reader wanted to go."""
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    address = "/login" if wanted == "/" or request.method not in ("GET", "HEAD") else f"/login?next={quote(wanted, safe='/')}"
    if request.headers.get("hx-request") == "true":
        return Response(status_code=204, headers={"HX-Redirect": address})
    return RedirectResponse(address, 303)


# --- what templates get


def _shared(request: Request, caller: Caller | None, values: Mapping[str, Any]) -> dict[str, Any]:
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
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= FILTERS
    groups = [(name, list(members)) for name, members in groupby(SECTIONS, lambda one: one.group)]
    made.globals |= {
        "static": static, "charts": charts, "sections": SECTIONS, "groups": groups, "states": STATES, "dash": DASH,
        "htmx_config": HTMX, "version": version("ringtrue"),
    }  # fmt: skip
    return made
