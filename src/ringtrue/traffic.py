"""Whose searches these are: users', or those of an evaluation, a gate, a shadow run or a test.

``marked`` marks everything that this thread or task asks. Connectors send the mark with each request, as an HTTP header or as
MCP metadata; the query log stores it and leaves marked searches out of users' searches. A service reads the header with one
line: ``app.add_middleware(TrafficMiddleware)``.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, get_args

from ringtrue.errors import InputError, nearest

Traffic = Literal["user", "evaluation", "gate", "shadow", "test"]
KINDS: tuple[Traffic, ...] = get_args(Traffic)
HEADER = "Ringtrue-Traffic"
META = "ringtrue/traffic"
"""The key in the ``_meta`` of an MCP request."""
VARIABLE = "RINGTRUE_TRAFFIC"
"""The environment variable that marks everything a process asks, and its child processes."""
_CURRENT: ContextVar[Traffic | None] = ContextVar("ringtrue_traffic", default=None)


def current() -> Traffic:
    """Return whose searches this thread or task makes: ``user`` unless it or the process is marked."""
    return _CURRENT.get() or _process[0]


def kind_of(text: str) -> Traffic:
    """Return a kind of traffic by its name; raises InputError for any other word.

    >>> kind_of("Evaluation")
    'evaluation'
    """
    for kind in KINDS:
        if text.strip().lower() == kind:
            return kind
    raise InputError(f"unknown traffic {text!r:.40}; did you mean {nearest(text, KINDS)}?")


def received(text: str | None) -> Traffic:
    """Return the kind that a request's mark names: ``user`` without a mark, ``test`` for a word that is not known here.

    >>> received(None), received("gate"), received("load-test")
    ('user', 'gate', 'test')
    """
    if text is None or not text.strip():
        return "user"
    try:
        return kind_of(text)
    except InputError:
        return "test"


_process: list[Traffic] = [received(os.environ.get(VARIABLE))]


@contextmanager
def marked(kind: str, *, whole_process: bool = False) -> Iterator[None]:
    """Mark everything that this thread or task asks inside; a mark that is set already stays. Also a decorator.

    ``whole_process`` marks other threads and new child processes, too, such as those of a search's own pools: for programs that
    serve no users.

    >>> with marked("gate"), marked("evaluation"):
    ...     current()
    'gate'
    """
    known = kind_of(kind)
    before, inherited = _process[0], os.environ.get(VARIABLE)
    token = _CURRENT.set(known if current() == "user" else current())
    if whole_process:
        _process[0] = os.environ[VARIABLE] = current()
    try:
        yield
    finally:
        _CURRENT.reset(token)
        if whole_process:
            _process[0] = before
            if inherited is None:
                os.environ.pop(VARIABLE, None)
            else:
                os.environ[VARIABLE] = inherited


def headers() -> dict[str, str]:
    """Return the header that marks a request made here; nothing for a user's."""
    return {} if current() == "user" else {HEADER: current()}


App = Callable[[Mapping[str, Any], Any, Any], Awaitable[None]]


class TrafficMiddleware:
    """ASGI middleware that marks what a service logs while it answers a request with the header ``Ringtrue-Traffic``.

    For FastAPI and Starlette: ``app.add_middleware(TrafficMiddleware)``.
    """

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        found = dict(scope.get("headers", ())).get(HEADER.lower().encode())
        with marked(received(None if found is None else found.decode("latin-1"))):
            await self.app(scope, receive, send)
