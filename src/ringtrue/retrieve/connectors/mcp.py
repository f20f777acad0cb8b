"""A tool of an MCP server as a search, over the server's standard input and output or over streamable HTTP.

::

    [connections.notes]
    kind = "mcp"
    command = ["uvx", "notes-server"]
    tool = "search_notes"
    arguments = {query = "{text}", limit = "{k}"}

The protocol is spoken by the official SDK, which is asynchronous. One session lives in a thread of its own and serves all
questions; it ends, and a server that was started ends with it, when the connection is closed or Python ends.
Documents are planted by tools of the same server (``plant``, ``unplant``, ``lookup``).
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import json
import logging
import os
import ssl
import tempfile
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from ringtrue import traffic
from ringtrue.errors import (
    AccessDenied,
    BadAnswer,
    InputError,
    MissingInput,
    RingtrueError,
    TimedOut,
    Unreachable,
    nearest,
)
from ringtrue.extras import install_command
from ringtrue.retrieve.connectors.base import check_seconds, hidden
from ringtrue.retrieve.connectors.deciding import template, words
from ringtrue.retrieve.connectors.http import at, shown
from ringtrue.retrieve.connectors.passages import Row, enough
from ringtrue.retrieve.connectors.redact import one_line, redacted
from ringtrue.retrieve.connectors.template import filled, places, texts
from ringtrue.retrieve.connectors.web import words_of
from ringtrue.retrieve.connectors.writing import PLACE, Mark, Planted, WritingConnector, check_template, check_tenant, no_mark
from ringtrue.retrieve.protocol import Scope, plain

_GRACE = 10.0
"""Seconds that the end of a session may take: the SDK waits 2, then terminates, then kills the server's process group."""
_FAILURES = (Exception, asyncio.CancelledError, BaseExceptionGroup)
"""Everything but the user's own interruption."""
_CLOSED, _TIMED_OUT = -32000, -32001
"""Codes by which the SDK says that the connection was closed, or that an answer did not come in time."""


@dataclass(frozen=True, kw_only=True)
class Mcp(WritingConnector):
    """A tool of an MCP server."""

    PATHS: ClassVar[tuple[str, ...]] = ("folder", "ca_file")
    ASIDE: ClassVar[frozenset[str]] = WritingConnector.ASIDE | {"folder", "args", "start_timeout", "title", "text"}
    TELLING: ClassVar[str] = (
        "say which tool shows one, lookup = {tool = '…', arguments = {id = '{id}'}, source_hash = 'path in its answer'}"
    )

    tool: str
    """Name of the tool."""
    command: Sequence[str] | str = field(default=(), repr=False)
    """Program that is the server, with or without its arguments; no shell reads it."""
    args: Sequence[str] = field(default=(), repr=False)
    """Further arguments of the program."""
    env: Sequence[str] = ()
    """Names of environment variables that the program may see besides PATH, HOME and the like; all must be set."""
    folder: str | None = None
    """Where the program runs; when not given, the folder of ringtrue.toml for a connection from there, else the current one."""
    url: str | None = hidden()
    """Address of a server that runs already, instead of a command."""
    token_env: str | None = None
    """Environment variable with a bearer token for that address."""
    ca_file: str | None = None
    """PEM file of the certificate authority, where it is not one of the usual."""
    arguments: Mapping[str, Any] = field(default_factory=lambda: {"query": "{text}", "limit": "{k}"})
    """Arguments of the tool; "{text}", "{k}" and "{scope.NAME}" in them become values."""
    hits: str = ""
    """Dotted path to the list in the tool's answer; empty when the answer is the list, or has it as 'result'."""
    id: str = "id"
    """Dotted path to the document id in a hit."""
    score: str = "score"
    """Dotted path to the score in a hit; empty when there is none and the order says all."""
    chunk: str = ""
    """Dotted path to the name of the passage in a hit; empty when each document comes once."""
    title: str = ""
    """Dotted path to the title in a hit, for people who judge it; empty when there is none."""
    text: str = ""
    """Dotted path to the text in a hit, for people who judge it; empty when there is none."""
    lower_is_better: bool = False
    """True for distances: the score is then the negated distance."""
    start_timeout: float = 30.0
    """Seconds that the server may take to start and to name its tools."""
    plant: Mapping[str, Any] | None = field(default=None, repr=False)
    """The tool that writes a document: ``{tool, arguments}`` with {id}, {title}, {text}, {tenant}, {source_hash}, {metadata}
    and {metadata.NAME}; without it the server is only read."""
    unplant: Mapping[str, Any] | None = field(default=None, repr=False)
    """The tool that removes one, in the same words; {id} and {tenant} are known then."""
    lookup: Mapping[str, Any] | None = field(default=None, repr=False)
    """The tool that shows one, by {id}, and answers null or an empty object where there is none. ``source_hash`` and ``tenant``
    in it are the dotted paths to these in the answer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.command, str):
            object.__setattr__(self, "command", (self.command,) if self.command else ())
        for setting in ("command", "args", "env"):
            value = getattr(self, setting)
            if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(word, str) for word in value):
                raise InputError(f"{self.name}: {setting} cannot be read; write a list of texts like ['uvx', 'notes-server']")
        if bool(self.command) == bool(self.url):
            raise InputError(f"{self.name}: a server is reached by command or by url; write one of the two")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise InputError(f"{self.name}: the url is no http:// or https:// address; write it like https://example.com/mcp")
        if self.url and (self.args or self.env or self.folder is not None):
            raise InputError(f"{self.name}: args, env and folder belong to a command, not to a url; leave them out")
        if self.folder is not None and (not isinstance(self.folder, str | Path) or not Path(self.folder).is_dir()):
            raise MissingInput(f"{self.name}: there is no folder {self.folder}; name the one that the program runs in")
        if self.command and (self.token_env or self.ca_file):
            raise InputError(f"{self.name}: token_env and ca_file belong to a url; name the variables of a command in env")
        if not isinstance(self.tool, str) or not self.tool.strip():
            raise InputError(f"{self.name}: tool={self.tool!r} is no name; write the name of the tool to call")
        if not isinstance(self.arguments, Mapping) or "text" not in places(self.arguments):
            raise InputError(
                f"{self.name}: '{{text}}' stands nowhere, the question would not be asked; write it into arguments"
            )
        if not self.id:
            raise InputError(f"{self.name}: id is empty; write the path to the document id in a hit, like 'document.id'")
        check_seconds(self.name, "start_timeout", self.start_timeout)
        for setting, further in (("plant", set()), ("unplant", set()), ("lookup", set(Mark._fields))):
            self._check_call(setting, getattr(self, setting), further)

    def _check_call(self, setting: str, used: Mapping[str, Any] | None, further: set[str]) -> None:
        if used is None:
            return
        check_template(self.name, setting, used)
        if (
            set(used) - further != {"tool", "arguments"}
            or not isinstance(used["tool"], str)
            or not isinstance(used["arguments"], Mapping)
        ):
            example = "{tool = 'add_note', arguments = {id = '{id}', text = '{text}'}}"
            raise InputError(f"{self.name}: {setting} names no tool and its arguments; write it like {example}")
        if "id" not in places(used["arguments"], place=PLACE):
            raise InputError(f"{self.name}: '{{id}}' stands nowhere in {setting}; write where the document's id goes")

    def deciding(self) -> dict[str, Any]:
        run = words([*self.command, *self.args], self.folder)
        return super().deciding() | {"command": run, "arguments": template(self.arguments)}

    def ask(self, text: str, *, k: int, scope: Scope | None) -> Iterable[Row]:
        """Return the mapped hits of one call; a blank question is not asked, since most tools refuse it."""
        offered = places(self.arguments)
        for name in scope or {}:
            if f"scope.{name}" not in offered:
                raise InputError(f"{self.name} cannot be searched within '{name}'; write '{{scope.{name}}}' into its arguments")
        if not text.strip():
            return []
        wanted = {f"scope.{name}": plain(str(value)) for name, value in (scope or {}).items()}
        link = self._link()
        end = time.monotonic() + self.timeout

        def fetch(count: int) -> list[Row]:
            arguments = filled(self.arguments, {"text": text, "k": count, **wanted})
            self._check_tool(link.tools, self.tool, arguments)
            answer = self._read(self._call(link, self.tool, arguments, end))
            return [self._row(hit, rank) for rank, hit in enumerate(self._list(answer), 1)]

        return enough(fetch, k) if self.chunk and "k" in offered else fetch(k)

    def check_plant(self, documents: Sequence[Planted]) -> None:
        if self.plant is None or self.unplant is None:
            lacking = "plant" if self.plant is None else "unplant"
            raise InputError(
                f"{self.name} is only read, it has no {lacking}; say which tools write and remove a document, "
                f"{lacking} = {{tool = '…', arguments = {{id = '{{id}}'}}}}"
            )
        if "{source_hash}" not in texts(self.plant["arguments"]):
            raise no_mark(self.name, "an argument like hash = '{source_hash}'")
        check_tenant(self.name, "plant", self.plant, documents)

    def resolves(self) -> bool:
        return self.lookup is not None

    def resolve(self, doc_ids: Sequence[str]) -> set[str]:
        return set(self.look_up(doc_ids))

    def looks_up(self) -> bool:
        return "source_hash" in (self.lookup or {})

    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        used = self.lookup or {}
        found: dict[str, Mark] = {}
        for doc_id in ids:
            answer = _only(self._read(self._used(used, {"id": doc_id})))
            if answer:
                paths = [used.get(name) for name in Mark._fields]
                marks = [at(answer, path, self.name, "the answer to lookup", default=None) if path else None for path in paths]
                found[doc_id] = Mark(*(None if mark is None else str(mark) for mark in marks))
        return found

    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        for document in documents:
            self._change(self.plant or {}, document.values())

    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        for doc_id in ids:
            self._change(self.unplant or {}, {"id": doc_id} if tenant is None else {"id": doc_id, "tenant": tenant})

    def _change(self, used: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        """Call a tool whose answer says nothing but that it did not fail."""
        self.tried(lambda: self._used(used, values))

    def _used(self, used: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
        """Return the result of a tool with its arguments filled in."""
        arguments = filled(used["arguments"], values, place=PLACE)
        link = self._link()
        self._check_tool(link.tools, used["tool"], arguments)
        return self._call(link, used["tool"], arguments, time.monotonic() + self.timeout)

    def close(self) -> None:
        """End the session, and the server where one was started; the next question opens another."""
        self._state.end(wait=True)

    @property
    def _state(self) -> _Held:
        made = _Held()
        held: _Held = self.__dict__.setdefault("_held", made)  # of two threads, one wins
        if held is made:
            weakref.finalize(self, held.end)
        return held

    def secrets(self) -> Iterator[str]:
        """Yield what no message may show: also what the program was told by its environment."""
        yield from super().secrets()
        yield from self._held_by(self.env)

    def _link(self) -> _Link:
        """Return the open session, or open one."""
        held = self._state
        with held.lock:
            if held.link is not None and held.link.alive:
                return held.link
            # The session's thread holds a copy: were it this connection itself, nobody could ever let go of it.
            link = _Link(replace(self)._client)
            try:
                link.opened.result(self.start_timeout)
            except concurrent.futures.TimeoutError:
                said = f"{self.name} was not ready within {self.start_timeout:g} s"
                raise TimedOut(f"{said}; raise start_timeout=, or ask why it is slow") from None
            except _FAILURES as problem:
                # Not chained: what the SDK says may name the address, and a traceback may end in a log.
                raise self._failed(problem, link) from None
            else:
                held.link = link
            finally:
                if held.link is not link:
                    link.close()
            return link

    @contextlib.asynccontextmanager
    async def _client(self, link: _Link) -> AsyncIterator[Any]:
        """Open a session of the SDK."""
        try:
            from mcp import Client, StdioServerParameters
            from mcp.client.stdio import stdio_client
            from mcp.client.streamable_http import streamable_http_client
        except ImportError as problem:
            raise MissingInput(f"mcp is not installed; {install_command('mcp')}") from problem
        # Without a handler of its own, the SDK's reports of a broken peer would be printed; they may show addresses.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        if self.url is None:
            program, *rest = self.command
            env = {name: value for name in self.env if (value := self.secret(name)) is not None}
            server = StdioServerParameters(command=program, args=[*rest, *self.args], env=env, cwd=self.folder)
            async with Client(stdio_client(server, errlog=link.complaints)) as client:
                yield client
        else:
            async with self._http(link) as http, Client(streamable_http_client(self.url, http_client=http)) as client:
                yield client

    def _http(self, link: _Link) -> Any:
        import httpx2

        token = self.secret(self.token_env)

        async def note(response: Any) -> None:
            if response.request.method == "POST" and response.status_code >= 400:
                link.status = response.status_code

        verify: Any = ssl.create_default_context(cafile=self.ca_file) if self.ca_file else True
        return httpx2.AsyncClient(
            verify=verify,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=max(self.timeout, self.start_timeout),
            # The SDK does not tell which status a server refused with.
            event_hooks={"response": [note]},
        )

    def _check_tool(self, tools: Mapping[str, Any], tool: str, arguments: Mapping[str, Any]) -> None:
        """Raise InputError where there is no such tool or argument: servers ignore arguments that they do not know."""
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

    def _call(self, link: _Link, tool: str, arguments: Mapping[str, Any], end: float) -> Any:
        """Return the result of a tool that did not fail."""
        try:
            result = link.call(tool, dict(arguments), max(end - time.monotonic(), 0.001))
        except _FAILURES as problem:
            failed = self._failed(problem, link)
            if isinstance(failed, Unreachable) or (isinstance(failed, TimedOut) and self.command):
                # A server that is gone or stuck is not asked again: the next attempt starts another.
                self._state.drop(link)
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
                f"{self.name}: the tool '{self.tool}' answered no JSON but '{said:.60}'; use one that does"
            ) from problem
        return parts[0] if len(parts) == 1 and (self.hits or not _is_hit(parts[0], self.id)) else parts

    def _list(self, answer: Any) -> list[Any]:
        found = at(answer, self.hits, self.name, "the answer")
        if not self.hits and isinstance(found, Mapping) and isinstance(found.get("result"), list):
            found = found["result"]
        if not isinstance(found, list):
            place = f"'{self.hits}' in its answer" if self.hits else "its answer"
            raise BadAnswer(f"{self.name}: {place} is {shown(found)}, no list; set hits= to the path of the list")
        return found

    def _row(self, hit: Any, rank: int) -> Row:
        where = f"hit {rank}"
        row: Row = {"doc_id": at(hit, self.id, self.name, where)}
        if self.score:
            value = at(hit, self.score, self.name, where)
            if isinstance(value, bool) or not isinstance(value, int | float):
                problem = f"{self.name}: '{self.score}' of {where} is {shown(value)}, no score"
                raise BadAnswer(f"{problem}; set score= to a number in the hit, or to '' where there is none")
            row["score"] = -value if self.lower_is_better else value
        if self.chunk:
            row["chunk"] = str(at(hit, self.chunk, self.name, where))
        title, text = (at(hit, path, self.name, where, default=None) if path else None for path in (self.title, self.text))
        self.note_passage(row["doc_id"], title, text)
        return row

    def _failed(self, problem: BaseException, link: _Link) -> RingtrueError:
        """Return what went wrong as one of our errors."""
        cause = _cause(problem)
        if isinstance(cause, RingtrueError):
            return type(cause)(str(cause))
        if isinstance(cause, asyncio.CancelledError | concurrent.futures.CancelledError):
            cause = _cause(link.failure) if link.failure is not None else cause
        code, kind = getattr(cause, "code", None), type(cause).__name__
        if link.status in (401, 403):
            check = "check the environment variable that holds them"
            return AccessDenied(f"{self.name} refused the credentials (HTTP {link.status}); {check}")
        if code == _TIMED_OUT or isinstance(cause, TimeoutError) or "Timeout" in kind:
            return TimedOut(f"{self.name} did not answer within {self.timeout:g} s; raise timeout=, or ask why it is slow")
        if link.status in (408, 429) or (link.status or 0) >= 500:
            return Unreachable(f"{self.name} answered HTTP {link.status}; try again later")
        if code == _CLOSED or "Session terminated" in str(cause) or isinstance(cause, asyncio.CancelledError):
            return Unreachable(f"{self.name} went away{self._last_words(link)}; look at the server's log")
        if isinstance(cause, ssl.SSLError) or "CERTIFICATE_VERIFY_FAILED" in str(cause):
            return Unreachable(
                f"{self.name} cannot be reached (its TLS certificate is not trusted); set ca_file= to its authority"
            )
        if isinstance(cause, OSError) and self.command:
            return Unreachable(f"{self.name} cannot be started ({kind}); check command=")
        if isinstance(cause, OSError) or type(cause).__module__.split(".")[0] in ("httpx2", "httpcore2", "anyio"):
            return Unreachable(f"{self.name} cannot be reached ({kind}); check that it runs and the address is right")
        if link.status == 404:
            return BadAnswer(f"{self.name} has no MCP server at that address (HTTP 404); check the path of url=")
        said = self._safe(str(cause)) or kind
        return BadAnswer(
            f"{self.name} did not answer as the protocol or its own schema says ({said}); look at the server's log"
        )

    def _last_words(self, link: _Link) -> str:
        said = self._safe(link.last_complaint())
        return f" (it said last: {said})" if said else ""

    def _safe(self, text: str) -> str:
        """Return a text of the server for a message: one line, short, without address or secrets."""
        return f"{one_line(redacted(text, [*self.secrets(), *words_of(self.url or '')])):.120}"


class _Held:
    """The session of one connection, and the lock that keeps two threads from opening two."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.link: _Link | None = None

    def drop(self, link: _Link) -> None:
        """End this session without waiting for it, if it still is the one."""
        with self.lock:
            if self.link is link:
                self.link = None
        link.close()

    def end(self, *, wait: bool = False) -> None:
        link, self.link = self.link, None
        if link is not None:
            link.close(wait=wait)


class _Link:
    """One session with a server, in a thread with an event loop of its own."""

    def __init__(self, make: Callable[[_Link], Any]) -> None:
        self.opened: concurrent.futures.Future[None] = concurrent.futures.Future()
        self.tools: Mapping[str, Any] = {}
        """Name of every tool → the schema of its arguments."""
        self.status: int | None = None
        """The last HTTP status of 400 or more."""
        self.failure: BaseException | None = None
        self.complaints = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed with the session
        self._make, self._process = make, os.getpid()
        self._loop = asyncio.new_event_loop()
        self._ending = asyncio.Event()
        self._closing = False
        self._last = ""
        self._client: Any = None
        self._thread = threading.Thread(target=self._run, name="ringtrue-mcp", daemon=True)
        _OPEN.add(self)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """True while it can be asked; a session does not survive a fork."""
        return self._thread.is_alive() and not self._closing and self._process == os.getpid()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as problem:
            self.failure = problem
        if not self.opened.done():
            self.opened.set_exception(self.failure or concurrent.futures.CancelledError())
        self._last = self.last_complaint()
        self.complaints.close()
        _OPEN.discard(self)

    async def _serve(self) -> None:
        import anyio

        async with anyio.create_task_group() as group:

            async def end() -> None:
                await self._ending.wait()
                # A scope of anyio, not a cancelled task: the SDK shields the end of the server's process from the former.
                group.cancel_scope.cancel()

            group.start_soon(end)
            async with self._make(self) as self._client:
                self.tools = {tool.name: tool.input_schema async for tool in _tools(self._client)}
                self.opened.set_result(None)
                await self._ending.wait()

    def call(self, tool: str, arguments: dict[str, Any], timeout: float) -> Any:
        """Return the result of a tool; raises whatever went wrong."""
        self.status = None
        meta = None if traffic.current() == "user" else {traffic.META: traffic.current()}
        asked = self._client.call_tool(tool, arguments, read_timeout_seconds=timeout, meta=meta)
        try:
            future = asyncio.run_coroutine_threadsafe(asked, self._loop)
        except RuntimeError as problem:  # the loop was closed a moment ago
            asked.close()
            raise concurrent.futures.CancelledError from problem
        try:
            return future.result(timeout + 1.0)  # the SDK's own limit comes first, unless its loop is stuck
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise

    def close(self, *, wait: bool = False) -> None:
        """End the session; with ``wait`` return when the server's process is gone."""
        if self._process != os.getpid():
            return
        self._closing = True
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._ending.set)
        if wait and threading.current_thread() is not self._thread:
            self._thread.join(_GRACE)

    def last_complaint(self) -> str:
        """Return the last line that a started server wrote to its standard error."""
        with contextlib.suppress(OSError, ValueError):
            file = self.complaints.fileno()
            size = os.fstat(file).st_size
            lines = os.pread(file, 2000, max(0, size - 2000)).decode("utf-8", "replace").split("\n")
            return next((line for line in reversed(lines) if line.strip()), "")
        return self._last


_OPEN: set[_Link] = set()


@atexit.register
def _end_all() -> None:
    """No server that was started outlives Python."""
    links = list(_OPEN)
    for link in links:
        link.close()
    for link in links:
        link.close(wait=True)


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


def _only(answer: Any) -> Any:
    """Return the one thing a tool answered, out of what the protocol wraps it in; None for nothing."""
    if isinstance(answer, Mapping) and set(answer) == {"result"}:
        answer = answer["result"]
    return (answer[0] if answer else None) if isinstance(answer, list) else answer
