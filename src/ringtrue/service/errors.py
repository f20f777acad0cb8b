"""What went wrong, in one shape for every program and one page for every reader, in the words of whoever reads it.

``{"error": {"code", "message", "field", "request_id"}}``: the code is for programs, the message for people. What a message may
not hold: a path of this machine, an address with a password, a traceback. What lies below the service names options of the
command line; a message is kept as it was raised, and worded anew if it is shown.
"""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import Scope

from ringtrue.errors import (
    AccessDenied,
    BadAnswer,
    CannotDecide,
    InputError,
    MissingInput,
    RingtrueError,
    SearchFailed,
    SpecError,
    TimedOut,
    Unreachable,
    Unusable,
    ValidationFailed,
)

Words = Sequence[tuple[re.Pattern[str], str]]

_BOTH = (
    re.compile(r"map them with --id-pattern '[^']*'(?: \(ids= in Python\))?"),
    "name the documents of the set as the search does",
)
_PAGES: Words = (
    _BOTH,
    (re.compile(r"(?:GET )?/v1/queries lists the newest"), "the query log lists the newest"),
    (re.compile(r"/v1/openapi\.json lists what there is"), "the menu leads to what there is"),
    (
        re.compile(r"allow it \(--allow-different-sets, allow_different_sets=True\)"),
        "compare them with `ringtrue compare --allow-different-sets`",
    ),
    (re.compile(r", or accept it with --allow [\w-]+(?: \(allow= in Python\))?"), ""),
)
_REST: Words = (
    _BOTH,
    (re.compile(r"allow it \(--allow-different-sets, allow_different_sets=True\)"), 'send "allow_different_sets": true'),
    (re.compile(r"accept it with --allow ([\w-]+)(?: \(allow= in Python\))?"), r'send "allow": ["\1"]'),
    (re.compile(r"ringtrue test create \S+ --again"), 'POST /v1/tests with "again": true'),
    (re.compile(r"ringtrue test create(?: \S+)?"), "POST /v1/tests"),
    (re.compile(r"`ringtrue flag set (\S+) --state running`"), r'PUT /v1/flags/\1 with "state": "running"'),
    (re.compile(r"`ringtrue flag set`"), "PUT /v1/flags/{name}"),
    (re.compile(r"ringtrue flag set .+"), "PUT /v1/flags/{name}"),
)


def for_pages(message: str) -> str:
    """Return a message as a page tells it.

    >>> for_pages("no number: the run stops at rank 5; ask for more, or accept it with --allow cut-off (allow= in Python)")
    'no number: the run stops at rank 5; ask for more'
    """
    return _worded(message, _PAGES)


def for_rest(message: str) -> str:
    """Return a message as REST tells it.

    >>> for_rest("no number: the run stops at rank 5; ask for more, or accept it with --allow cut-off (allow= in Python)")
    'no number: the run stops at rank 5; ask for more, or send "allow": ["cut-off"]'
    """
    return _worded(message, _REST)


def _worded(message: str, words: Words) -> str:
    for pattern, said in words:
        message = pattern.sub(said, message)
    return message


LOG = logging.getLogger("ringtrue.service")
KINDS: tuple[tuple[type[RingtrueError], int, str], ...] = (
    (MissingInput, 404, "not_found"),
    (SpecError, 422, "invalid_expression"),
    (InputError, 422, "invalid_input"),
    (ValidationFailed, 422, "invalid_golden_set"),
    (CannotDecide, 422, "cannot_decide"),
    (TimedOut, 504, "search_timed_out"),
    (Unreachable, 502, "search_unreachable"),
    (AccessDenied, 502, "search_denied"),
    (BadAnswer, 502, "search_answered_wrongly"),
    (SearchFailed, 502, "search_failed"),
)
"""Every deliberate error with its status and code, the most particular first."""
CODES = {
    400: "bad_request", 401: "no_key", 403: "forbidden", 404: "not_found", 405: "method_not_allowed", 406: "not_acceptable",
    408: "too_slow", 409: "conflict", 411: "length_required", 413: "too_large", 415: "unsupported_type", 422: "invalid_input",
    429: "too_many_requests", 500: "internal", 503: "unavailable", 504: "timed_out",
}  # fmt: skip


class Problem(BaseModel):
    """What went wrong."""

    code: str
    """For programs; it does not change between versions."""
    message: str
    """For people: what is wrong, where, and what helps."""
    field: str | None = None
    """The part of the request that is wrong."""
    request_id: str
    """To be found again in the server's log, where the fault is the server's (5xx)."""


class ErrorAnswer(BaseModel):
    """The body of every answer that is not a success."""

    error: Problem


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": words}
    for status, words in {
        400: "Not a request this service reads",
        401: "No key, or one that is unknown, expired or revoked",
        403: "The key does not allow this",
        404: "There is none",
        409: "It is there already, or somebody else is at it",
        413: "Too large",
        415: "Not a kind of content that is read here",
        422: "Something in the request cannot be used",
        429: "Too many requests",
        503: "Busy, or the store cannot be reached",
    }.items()
}
"""For ``responses=`` of a route."""
LOGGING = (("POST", "/v1/queries"), ("POST", "/v1/feedback"))


class Refused(Exception):
    """A request that is not carried out, with status, code and message."""

    def __init__(
        self, status: int, code: str, message: str, *, field: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.field = status, code, message, field
        self.headers = dict(headers or {})


class LoginNeeded(Exception):
    """A page that a reader must sign in for."""


def refused(problem: BaseException) -> Refused:
    """Return any error as the refusal that a caller sees; unknown ones keep their message to themselves."""
    if isinstance(problem, Refused):
        return problem
    if isinstance(problem, RingtrueError):
        said = clean(str(problem))
        if isinstance(problem, Unusable) or (isinstance(problem, SearchFailed) and said.startswith("store")):
            return Refused(503, "store_unavailable", "the store cannot be used now; try again", headers={"Retry-After": "5"})
        status, code = next((status, code) for kind, status, code in KINDS if isinstance(problem, kind))
        return Refused(status, code, said)
    if isinstance(problem, RequestValidationError):
        return _invalid(problem)
    if isinstance(problem, HTTPException):
        said = {
            404: "nothing is at this address; /v1/openapi.json lists what there is",
            405: "this address does not support this method",
        }.get(problem.status_code, str(problem.detail))
        return Refused(problem.status_code, CODES.get(problem.status_code, "refused"), said, headers=problem.headers)
    return Refused(500, "internal", "something went wrong here; the server's log has more under the request id")


def _invalid(problem: RequestValidationError) -> Refused:
    first = problem.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("(one)", "(many)")) or "body"
    if first["type"] == "json_invalid":
        reason = first.get("ctx", {}).get("error", first["msg"])
        return Refused(400, "invalid_json", f"the body is not JSON: {reason}; send one JSON value in UTF-8", field="body")
    every = problem.errors()
    lacking = [str(one["loc"][-1]) for one in every if one["type"] == "missing" and one["loc"][0] == "query"]
    if lacking and first["type"] == "missing":
        added = "&".join(f"{name}=…" for name in lacking)
        return Refused(422, "invalid_input", f"the address lacks {' and '.join(lacking)}; add {added} to it", field=place)
    others = f" ({len(every) - 1} more like this)" if len(every) > 1 else ""
    given = first.get("input")
    shown = f", not {given!r:.60}" if isinstance(given, str | int | float | bool) else ""
    return Refused(422, "invalid_input", f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}{shown}{others}", field=place)


_ROOTS: set[str] = set()
_places = re.compile("(?!)")


def hide(*places: Path | None) -> None:
    """Keep what lies at these places out of messages from now on."""
    global _places
    _ROOTS.update(str(place.absolute()) for place in places if place is not None)
    longest = sorted(map(re.escape, _ROOTS - {"/"}), key=len, reverse=True)
    _places = re.compile(rf"(?:{'|'.join(longest)})[^\s'\":;,]*")


hide(Path.home(), Path.cwd(), Path(tempfile.gettempdir()), Path(__file__).parents[2])


def clean(message: str) -> str:
    """Return a message without paths of this machine and without what a terminal would obey."""
    plain = "".join(letter if letter.isprintable() else " " for letter in message)
    return _places.sub("…", plain).encode("utf-8", "replace").decode()[:2000]


def answer(request_id: str, problem: Refused) -> JSONResponse:
    """Return the JSON answer of a refusal."""
    body = {"code": problem.code, "message": for_rest(problem.message), "field": problem.field, "request_id": request_id}
    return JSONResponse({"error": body}, problem.status, problem.headers)


def shown(request: Request, problem: Refused) -> Response:
    """Return the answer of a refusal: a page where a person reads, else JSON."""
    request_id = request_id_of(request)
    if not is_page(request.url.path):
        return answer(request_id, problem)
    try:
        return cast("Response", request.app.state.error_page(request, problem))
    except Exception:  # what is wrong may be wrong with every page
        LOG.exception("request %s: the page of its error cannot be shown", request_id)
        return answer(request_id, problem)


def request_id_of(request: Request) -> str:
    return str(request.scope.get("state", {}).get("request_id", "-"))


def note_failure(scope: Scope, status: int, problem: BaseException) -> None:
    """Write down why a request failed here, under its id: the answer may say less, and its page leads to the log."""
    request_id = scope.get("state", {}).get("request_id", "-")
    LOG.warning("request %s got %d: %s %s: %s", request_id, status, scope["method"], clean(scope["path"]), clean(str(problem)))


def is_page(path: str) -> bool:
    """True for addresses that people read."""
    return not path.startswith(("/v1/", "/metrics", "/healthz", "/readyz")) and path != "/v1"


def _methods(app: FastAPI, path: str) -> list[str]:
    """Return what may be done at a path; the framework names only what the first route there does."""
    found = [one.original_route for one in iter_route_contexts(app.routes)]
    here = [one for one in found if isinstance(one, Route) and one.path_regex.match(path)]
    # As the OpenAPI document has it: a path that is written out stands before one with a name in braces.
    chosen = [one for one in here if one.path == path] or here
    return sorted({method for one in chosen for method in one.methods or ()})


def install(app: FastAPI) -> None:
    """Let an application answer every error in the one shape, or with its ``state.error_page`` where a person reads."""

    async def told(request: Request, problem: Exception) -> Response:
        # FastAPI makes this one of whatever breaks while it reads a body.
        if isinstance(problem, HTTPException) and isinstance(problem.__cause__, Refused | ClientDisconnect):
            problem = problem.__cause__
        if isinstance(problem, ClientDisconnect):
            raise problem
        known = refused(problem)
        if known.status == 405:
            known.headers["Allow"] = ", ".join(_methods(app, request.url.path))
        paged = is_page(request.url.path)
        project = request.scope["state"].get("project")
        if project and (request.method, request.url.path) in LOGGING and not isinstance(problem, Refused):
            body = getattr(problem, "body", None)  # refused before it came to the log, which counts its own refusals
            request.app.state.service.intake.turn_away(project, len(body) if isinstance(body, list) else 1)
        # A program that is turned away, thousands of times a second where the log is full, was told all there is to say.
        if known.status >= 500 and (paged or not isinstance(problem, Refused)):
            note_failure(request.scope, known.status, problem)
        return shown(request, known)

    # Not pydantic's own error: an answer that does not fit its model is a fault of ours, and no request caused it.
    for kind in (RingtrueError, Refused, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, told)
