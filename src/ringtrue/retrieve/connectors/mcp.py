"""A tool of an MCP server as a search, over the server's standard input and output or over streamable HTTP.

::

    [connections.notes]
    kind = "mcp"
    command = ["uvx", "notes-server"]
    tool = "search_notes"
    arguments = {query = "{text}", limit = "{k}"}

The protocol is spoken by the official SDK, which is asynchronous. One session serves all questions; it ends, and a server
that was started ends with it, when the connection is closed or Python ends.
Documents are planted by tools of the same server (``plant``, ``unplant``, ``lookup``).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import logging
import os
import ssl
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, ClassVar

from ringtrue import traffic
from ringtrue.errors import AccessDenied, BadAnswer, InputError, RingtrueError, TimedOut, Unreachable, nearest
from ringtrue.retrieve.connectors.base import OpenResource, Program, SecondsLeft
from ringtrue.retrieve.connectors.deciding import template, words
from ringtrue.retrieve.connectors.http import MappedConnector, Request, at
from ringtrue.retrieve.connectors.settings import Seconds, Text, Url, filled, places
from ringtrue.retrieve.connectors.web import one_line, redacted, words_of
from ringtrue.retrieve.connectors.writing import PLACE
from ringtrue.retrieve.library import library

_GRACE = 10.0
"""Seconds that the end of a session may take: the SDK waits 2, then terminates, then kills the server's process group."""
_CANCELLED = asyncio.CancelledError | futures.CancelledError
_FAILURES = (Exception, asyncio.CancelledError, BaseExceptionGroup)
"""Everything but the user's own interruption."""
_CLOSED, _TIMED_OUT = -32000, -32001
"""Codes by which the SDK says that the connection was closed, or that an answer did not come in time."""


@dataclass(frozen=True, kw_only=True)
class Mcp(Program, MappedConnector):
    """A tool of an MCP server."""

    PATHS: ClassVar[tuple[str, ...]] = ("folder", "ca_file")
    ASIDE: ClassVar[frozenset[str]] = MappedConnector.ASIDE | {"folder", "args", "start_timeout"}
    TELLING: ClassVar[str] = (
        "say which tool shows one, lookup = {tool = '…', arguments = {id = '{id}'}, source_hash = 'path in its answer'}"
    )
    REQUEST: ClassVar[tuple[str, ...]] = ("tool", "arguments")
    FILLED: ClassVar[tuple[str, ...]] = ("arguments",)
    EXAMPLE: ClassVar[str] = "{tool = '…', arguments = {id = '{id}', text = '{text}'}}"

    tool: Text
    """Name of the tool."""
    command: Sequence[str] | str = field(default=(), repr=False)
    """Program that is the server, with or without its arguments; no shell reads it."""
    args: Sequence[str] = field(default=(), repr=False)
    """Further arguments of the program."""
    url: Url | None = field(default=None, repr=False)
    """Address of a server that runs already, instead of a command."""
    token_env: str | None = None
    """Environment variable with a bearer token for that address."""
    ca_file: str | None = None
    """PEM file of the certificate authority, if it is not one of the usual."""
    arguments: Mapping[str, Any] = field(default_factory=lambda: {"query": "{text}", "limit": "{k}"})
    """Arguments of the tool; "{text}", "{k}" and "{scope.NAME}" in them become values."""
    hits: str = ""
    """Dotted path to the list in the tool's answer; empty when the answer is the list, or has it as 'result'."""
    id: Text = "id"
    """Dotted path to the document id in a hit."""
    start_timeout: Seconds = 30.0
    """Seconds that the server may take to start and to name its tools."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.command, str):
            object.__setattr__(self, "command", (self.command,) if self.command else ())
        misplaced = self.url and (self.args or self.env or self.folder is not None)
        self.refuse(
            (bool(self.command) == bool(self.url), "a server is reached by command or by url; write one of the two"),
            (misplaced, "args, env and folder belong to a command, not to a url; leave them out"),
            (
                self.command and (self.token_env or self.ca_file),
                "token_env and ca_file belong to a url; name the variables of a command in env",
            ),
            (
                "text" not in places(self.arguments),
                "'{text}' is missing, the question would not be asked; write it into arguments",
            ),
        )

    def check_request(self, setting: str, request: Request) -> None:
        if not isinstance(request.get("tool"), str) or not isinstance(request.get("arguments"), Mapping):
            raise InputError(f"{self.name}: {setting} names no tool and its arguments; write it like {self.EXAMPLE}")

    def deciding(self) -> dict[str, Any]:
        run = words([*self.command, *self.args], self.folder)
        return super().deciding() | {"command": run, "arguments": template(self.arguments)}

    def answering(self) -> Callable[[Mapping[str, Any]], Any]:
        session, left = self._session(), self.deadline()
        return lambda values: self._read(self._call(session, self.tool, filled(self.arguments, values), left))

    def listed(self, answer: Any) -> Any:
        found = super().listed(answer)
        if not self.hits and isinstance(found, Mapping) and isinstance(found.get("result"), list):
            return found["result"]
        return found

    def sent(self, request: Request, values: Mapping[str, Any], *, absent: Any = ...) -> Any:
        arguments = filled(request["arguments"], values, place=PLACE)
        result = self._call(self._session(), request["tool"], arguments, self.deadline())
        if request is not self.lookup:  # who writes or removes a document need not say anything
            return None
        answer = self._read(result)
        # What the protocol wraps one answer in.
        if isinstance(answer, Mapping) and set(answer) == {"result"}:
            answer = answer["result"]
        return (answer[0] if isinstance(answer, list) and answer else None if isinstance(answer, list) else answer) or absent

    def close(self) -> None:
        """End the session, and the server if one was started; the next question opens another."""
        open_now = self._kept.value
        super().close()
        if open_now is not None:
            open_now.ended.wait(_GRACE)

    @property
    def _kept(self) -> OpenResource[_Session]:
        return self.kept("session", _Session.close)

    def _session(self) -> _Session:
        """Return the open session, or open one."""
        held = self._kept
        with held.lock:
            if held.value is not None and not held.value.alive:
                held.end()
            return held.get(self._opened)

    def _opened(self) -> _Session:
        # The session holds a copy: were it this connection itself, nobody could ever let go of it.
        session = _Session(replace(self)._client)
        futures.wait([session.opened, session.task], self.start_timeout, futures.FIRST_COMPLETED)
        if session.opened.done():
            return session
        started_in_time = session.task.done()
        session.close()
        if not started_in_time:
            said = f"{self.name} was not ready within {self.start_timeout:g} s"
            raise TimedOut(f"{said}; raise start_timeout=, or find out why it is slow")
        # Not chained: what the SDK says may name the address, and a traceback may end in a log.
        raise self._failed(session.failure, session) from None

    @contextlib.asynccontextmanager
    async def _client(self, session: _Session) -> AsyncIterator[Any]:
        """Open a session of the SDK."""
        sdk = library("mcp", "mcp")
        stdio_client = library("mcp.client.stdio", "mcp").stdio_client
        http_client = library("mcp.client.streamable_http", "mcp").streamable_http_client
        # Without a handler of its own, the SDK's reports of a broken peer would be printed; they may show addresses.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        if self.url is None:
            program, *rest = self.command
            arguments = [*rest, *self.args]
            server = sdk.StdioServerParameters(command=program, args=arguments, env=self.environment(), cwd=self.folder)
            async with sdk.Client(stdio_client(server, errlog=session.complaints)) as client:
                yield client
        else:
            async with self._http(session) as http, sdk.Client(http_client(self.url, http_client=http)) as client:
                yield client

    def _http(self, session: _Session) -> Any:
        import httpx2

        token = self.secret(self.token_env)

        async def note(response: Any) -> None:
            if response.request.method == "POST" and response.status_code >= 400:
                session.status = response.status_code

        verify: Any = ssl.create_default_context(cafile=self.ca_file) if self.ca_file else True
        return httpx2.AsyncClient(
            verify=verify,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=max(self.timeout, self.start_timeout),
            # The SDK does not tell which status a server refused with.
            event_hooks={"response": [note]},
        )

    def _check_tool(self, tools: Mapping[str, Any], tool: str, arguments: Mapping[str, Any]) -> None:
        """Raise InputError if there is no such tool or argument: servers ignore arguments that they do not know."""
        if tool not in tools:
            there = nearest(tool, tools) if tools else "no tool at all"
            raise InputError(f"{self.name} has no tool '{tool}'; it has {there}")
        schema = tools[tool]
        known = schema.get("properties", {})
        missing = [name for name in schema.get("required", ()) if name not in arguments]
        if missing:
            raise InputError(f"{self.name}: the tool '{tool}' needs the argument '{missing[0]}'; add it to arguments")
        for name in arguments:
            if name not in known and not schema.get("additionalProperties"):
                cure = f"did you mean {nearest(name, known)}?" if known else "it takes none"
                raise InputError(f"{self.name}: the tool '{tool}' knows no argument '{name}'; {cure}")

    def _call(self, session: _Session, tool: str, arguments: Mapping[str, Any], left: SecondsLeft) -> Any:
        """Return the result of a tool that did not fail."""
        self._check_tool(session.tools, tool, arguments)
        try:
            result = session.call(tool, dict(arguments), left())
        except _FAILURES as problem:
            failed = self._failed(problem, session)
            if isinstance(failed, Unreachable) or (isinstance(failed, TimedOut) and self.command):
                # A server that is gone or stuck is not asked again: the next attempt starts another.
                with self._kept.lock:
                    if self._kept.value is session:
                        self._kept.end()
            raise failed from None
        if result.is_error:
            said = self._safe(" ".join(part.text for part in result.content if part.type == "text")) or "it gave no reason"
            raise BadAnswer(f"{self.name}: the tool '{tool}' failed ({said}); look at the server's log")
        return result

    def _read(self, result: Any) -> Any:
        """Return the structured content, else the text content read as JSON."""
        texts = [part.text for part in result.content if part.type == "text"]
        if result.structured_content is not None:
            return result.structured_content
        try:
            # A list without a schema comes as one text for every item.
            parts = [json.loads(text) for text in texts]
        except ValueError as problem:
            said = self._safe(texts[0]) if texts else ""
            raise BadAnswer(
                f"{self.name}: the tool '{self.tool}' answered '{said:.60}', which is not JSON; use a tool that returns JSON"
            ) from problem
        return parts[0] if len(parts) == 1 and (self.hits or not _is_hit(parts[0], self.id)) else parts

    def _failed(self, problem: BaseException, session: _Session) -> RingtrueError:
        """Return what went wrong as one of our errors."""
        cause = _cause(problem)
        if isinstance(cause, RingtrueError):
            return type(cause)(str(cause))
        code, kind = getattr(cause, "code", None), type(cause).__name__
        if session.status in (401, 403):
            check = "check the environment variable that holds them"
            return AccessDenied(f"{self.name} refused the credentials (HTTP {session.status}); {check}")
        if code == _TIMED_OUT or isinstance(cause, TimeoutError) or "Timeout" in kind:
            return self.too_slow()
        if session.status in (408, 429) or (session.status or 0) >= 500:
            return Unreachable(f"{self.name} answered HTTP {session.status}; try again later")
        if code == _CLOSED or "Session terminated" in str(cause) or isinstance(cause, _CANCELLED):
            said = self._safe(session.last_complaint())
            last = f" (it said last: {said})" if said else ""
            return Unreachable(f"{self.name} went away{last}; look at the server's log")
        if isinstance(cause, ssl.SSLError) or "CERTIFICATE_VERIFY_FAILED" in str(cause):
            return Unreachable(
                f"{self.name} cannot be reached (its TLS certificate is not trusted); set ca_file= to its authority"
            )
        if isinstance(cause, OSError) and self.command:
            return Unreachable(f"{self.name} cannot be started ({kind}); check command=")
        if isinstance(cause, OSError) or type(cause).__module__.split(".")[0] in ("httpx2", "httpcore2", "anyio"):
            return Unreachable(f"{self.name} cannot be reached ({kind}); check that it runs and the address is right")
        if session.status == 404:
            return BadAnswer(f"{self.name} has no MCP server at that address (HTTP 404); check the path of url=")
        said = self._safe(str(cause)) or kind
        return BadAnswer(
            f"{self.name} did not answer as the protocol or its own schema says ({said}); look at the server's log"
        )

    def _safe(self, text: str) -> str:
        """Return a text of the server for a message: one line, short, without address or secrets."""
        return f"{one_line(redacted(text, [*self.secrets(), *words_of(self.url or '')])):.120}"


class _Session:
    """One session with a server: a task of the event loop that all sessions of this process share."""

    def __init__(self, make: Callable[[_Session], Any]) -> None:
        self.opened: futures.Future[None] = futures.Future()
        self.ended = threading.Event()
        self.tools: Mapping[str, Any] = {}
        """Name of every tool → the schema of its arguments."""
        self.status: int | None = None
        """The last HTTP status of 400 or more."""
        self.failure: BaseException = futures.CancelledError()
        """Why it ended."""
        self.complaints = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed with the session
        self._last = ""
        self._client: Any = None
        self._loop = _loop(os.getpid())
        self.task = self._loop.start_task_soon(self._serve, make)
        _OPEN.add(self)

    async def _serve(self, make: Callable[[_Session], Any]) -> None:
        import anyio

        try:
            async with make(self) as self._client:
                self.tools = {tool.name: tool.input_schema async for tool in _tools(self._client)}
                self.opened.set_result(None)
                await anyio.sleep_forever()
        except (Exception, BaseExceptionGroup) as problem:
            self.failure = _cause(problem)
        finally:
            self.last_complaint()
            self.complaints.close()
            _OPEN.discard(self)
            self.ended.set()

    def last_complaint(self) -> str:
        """Return the last line that a started server wrote to its standard error."""
        with contextlib.suppress(OSError, ValueError):  # it is closed
            file = self.complaints.fileno()
            end = os.pread(file, 2000, max(0, os.fstat(file).st_size - 2000)).decode("utf-8", "replace")
            self._last = next((line for line in reversed(end.split("\n")) if line.strip()), "")
        return self._last

    @property
    def alive(self) -> bool:
        """True while it can be asked."""
        return not self.task.done()

    def call(self, tool: str, arguments: dict[str, Any], timeout: float) -> Any:
        """Return the result of a tool; raises whatever went wrong."""
        self.status = None
        meta = None if traffic.current() == "user" else {traffic.META: traffic.current()}
        asked = partial(self._client.call_tool, tool, arguments, read_timeout_seconds=timeout, meta=meta)
        answer = self._loop.start_task_soon(asked)
        # The SDK's own limit comes first, unless its loop is stuck.
        futures.wait([answer, self.task], timeout + 1.0, futures.FIRST_COMPLETED)
        if not futures.wait([answer], 0.1).done:
            answer.cancel()
            raise TimeoutError if self.alive else self.failure
        return answer.result()

    def close(self) -> None:
        """End the session; ``ended`` is set when it is over."""
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self.task.cancel()


_OPEN: set[_Session] = set()


@lru_cache(maxsize=1)
def _loop(process: int) -> Any:
    """Return the event loop of a process, in a thread of its own: a forked process needs another."""
    held = contextlib.ExitStack()
    loop = held.enter_context(library("anyio.from_thread", "mcp").start_blocking_portal(name="ringtrue-mcp"))

    def end() -> None:
        """No server that was started outlives Python."""
        if process != os.getpid():
            return
        sessions = list(_OPEN)
        for session in sessions:
            session.close()
        for session in sessions:
            session.ended.wait(_GRACE)
        held.close()

    atexit.register(end)
    return loop


async def _tools(client: Any) -> AsyncIterator[Any]:
    cursor: str | None = None
    for _ in range(100):  # a server whose list never ends cannot hold us
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            yield tool
        cursor = page.next_cursor
        if cursor is None:
            return


def _cause(problem: BaseException) -> BaseException:
    """Return the first failure inside groups of failures."""
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    return problem


def _is_hit(value: Any, path: str) -> bool:
    """True for one hit by itself: a list of one item without a schema comes like that."""
    try:
        at(value, path, "", "")
    except BadAnswer:
        return False
    return True
