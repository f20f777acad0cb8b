"""Plain searches, answered by the process that writes them (W-3).

A program that logs searches sends the same few headers and a small JSON body, again and again, over a connection that it keeps.
Such requests are known here letter by letter. Whatever is the least different goes back to the server with its connection, from
the first letter of that request on: so nothing is understood in two ways, and nothing is refused here that would not be there.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import NamedTuple, Protocol

from ringtrue.online.lines import Row
from ringtrue.service.auth import Keyring
from ringtrue.service.errors import Refused, answer, refused
from ringtrue.service.headers import POLICY, always
from ringtrue.service.incoming import Incoming, Receipt
from ringtrue.service.intake import Promise
from ringtrue.service.limits import BODY_S, RateLimits, host_of, too_many
from ringtrue.service.settings import Rates, Settings
from ringtrue.store import LoggedQuery, Store

PATH = "/v1/queries"
BEGINNING = b"POST /v1/queries HTTP/1.1\r\n"
NAMES = frozenset(
    b"host content-type content-length authorization user-agent accept accept-encoding accept-language connection".split()
)
"""Headers that say nothing a check would have to look at."""
HEAD_END = b"\r\n\r\n"
LONGEST_HEAD = 16 * 1024
LARGEST = 256 * 1024
IDLE_S = 30.0
"""A connection that says nothing for so long is closed."""
LOOK_S = 1.0
"""How often those are looked for that wait, or say nothing, for too long; there hardly ever are any."""
MOST_CONNECTIONS = 1_000
MOST_HEADS = 4_000
"""Heads that are remembered as read: a program's differ in the length of the body and in nothing else."""
LONGEST_REMEMBERED = 2 * 1024
"""A longer head is read each time, so that all that are remembered take 8 MB and no more."""
Observed = tuple[str | None, int, float, tuple[float, ...]]
"""Project, where it is known, status, seconds, and how long the searches took: for the metrics, which the server tells."""


@dataclass(frozen=True)
class Rules:
    """What of a server's settings holds for those who log."""

    hosts: frozenset[str]
    open_to: str | None
    """The project of callers without a key, where they need none."""
    https: bool
    time_limit: float
    rates: Rates

    @classmethod
    def of(cls, settings: Settings) -> Rules:
        return cls(
            hosts=settings.own_hosts,
            open_to=settings.project if settings.open else None,
            https=settings.https,
            time_limit=settings.time_limit,
            rates=settings.rates,
        )


class Head(NamedTuple):
    """What a plain request says before its body."""

    length: int
    shown: str | None
    """The key, with the word before it."""


def read_head(head: bytes, hosts: frozenset[str]) -> Head | None:
    """Return what a request says up to its empty line; None where it is not plain."""
    first, *lines = head.split(b"\r\n")
    if first + b"\r\n" != BEGINNING or b"\0" in head:
        return None
    found: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        name = name.lower()
        if not colon or name not in NAMES or name in found or b"\r" in line or b"\n" in line:
            return None
        found[name] = value.strip(b" \t")
    length, shown = found.get(b"content-length", b""), found.get(b"authorization")
    if not length.isdigit() or len(length) > 6 or int(length) > LARGEST or found.get(b"content-type") != b"application/json":
        return None
    if found.get(b"connection", b"keep-alive").lower() != b"keep-alive" or b"host" not in found:
        return None
    if hosts and host_of(found[b"host"].decode("latin-1")) not in hosts:
        return None
    if shown is not None and not shown.startswith(b"Bearer rt_"):
        return None
    return Head(int(length), None if shown is None else shown.decode("latin-1"))


class Put(Protocol):
    """Who takes rows and keeps the promise when they are stored; raises Refused."""

    def __call__(self, rows: Sequence[Row], kind: type[Row], size: int, *, fresh: bool, future: Promise) -> None: ...


class Counter:
    """What the connections share: who may write, how often, where it goes, and how an answer looks."""

    def __init__(self, rules: Rules, store: Store, put: Put, give_back: Callable[[Connection, bytes], None]) -> None:
        self.rules, self.put, self.give_back = rules, put, give_back
        self.keyring, self.rates = Keyring(store), RateLimits(rules.rates)
        self.loop = asyncio.get_running_loop()
        self.connections: set[Connection] = set()
        self.observed: list[Observed] = []
        self.closing = False
        self._store = store
        self._heads: dict[bytes, Head] = {}
        self._prefix, self._numbers = f"{secrets.token_hex(4)}-", itertools.count(1)
        fixed = [*always(https=rules.https), (b"content-security-policy", POLICY.encode()), (b"cache-control", b"no-store")]
        self._fixed = _lines([(b"content-type", b"application/json"), *fixed])
        self._dated = (0, b"")
        self._looking = self.loop.call_later(LOOK_S, self._look)

    def head(self, head: bytes) -> Head | None:
        """Return ``read_head``, of most heads as it was before."""
        try:
            return self._heads[head]
        except KeyError:
            found = read_head(head, self.rules.hosts)
            # One that is not plain takes its connection along and is not asked for again: strangers would fill the memory.
            if found is not None and len(head) <= LONGEST_REMEMBERED:
                if len(self._heads) >= MOST_HEADS:
                    self._heads.clear()
                self._heads[head] = found
            return found

    def renew(self, token: str) -> asyncio.Future[bool]:
        """Look a key up beside the requests; the result says whether it opens anything. Errors of the store are not told."""

        def look() -> bool:
            from datetime import UTC, datetime

            return self.keyring.find(token, now=datetime.now(UTC)) is not None

        return self.loop.run_in_executor(None, look)

    def request_id(self) -> str:
        return f"{self._prefix}{next(self._numbers):x}"

    def message(self, status: int, body: bytes, request_id: str, more: bytes = b"") -> bytes:
        """Return an answer as it goes over the wire."""
        second = int(time.time())
        if self._dated[0] != second:
            self._dated = (second, b"date: %s\r\n" % formatdate(second, usegmt=True).encode())
        head = b"%s%sx-request-id: %s\r\ncontent-length: %d\r\n" % (self._dated[1], self._fixed, request_id.encode(), len(body))
        return b"%s%s%s\r\n%s" % (STATUS[status], head, more, body)

    def take_observed(self) -> list[Observed]:
        """Return what was observed since the last time."""
        found, self.observed = self.observed, []
        return found

    def close(self) -> None:
        """Take nothing more: who waits is answered, and then hung up on."""
        self.closing = True
        self._looking.cancel()
        for one in list(self.connections):
            one.close_when_answered()

    def _look(self) -> None:
        now = time.monotonic()
        for one in list(self.connections):
            one.look(now)
        self._looking = self.loop.call_later(LOOK_S, self._look)


class Connection(asyncio.Protocol):
    """One connection of a program that logs; one request at a time, in the order in which they came."""

    transport: asyncio.Transport

    def __init__(self, counter: Counter, peer: str, brought: bytes) -> None:
        self.counter, self.peer, self.brought = counter, peer, brought
        self.got = bytearray()
        self.since = time.monotonic()
        """When the first letter of what is here came, the last answer went, or a key began to be looked up."""
        self.waiting: _Asked | None = None
        self.looking_up = self.last = self.gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.counter.connections.add(self)
        brought, self.brought = self.brought, b""
        if len(self.counter.connections) > MOST_CONNECTIONS:
            self.give_back(brought)
        else:
            self.data_received(brought)  # before anything else can come

    def connection_lost(self, problem: Exception | None) -> None:
        self.gone = True
        self.counter.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        if self.gone:
            return
        if not self.got:
            self.since = time.monotonic()
        self.got += data
        if self.waiting is None and not self.looking_up:
            self._next()
        elif len(self.got) > LARGEST + LONGEST_HEAD:
            self.transport.pause_reading()

    def _next(self) -> None:
        """Take the next request where the whole of it is here."""
        got = self.got
        end = got.find(HEAD_END)
        if end < 0:
            if len(got) > LONGEST_HEAD or not (got.startswith(BEGINNING) or BEGINNING.startswith(bytes(got[: len(BEGINNING)]))):
                self.give_back()
            return
        head = self.counter.head(bytes(got[:end])) if end <= LONGEST_HEAD else None
        if head is None:
            self.give_back()
            return
        body_at = end + len(HEAD_END)
        if len(got) < body_at + head.length:
            return
        project = self._project(head)
        if project is not None:
            body = bytes(got[body_at : body_at + head.length])
            del got[: body_at + head.length]
            self._ask(body, project, head)

    def _project(self, head: Head) -> str | None:
        """Return where the request may write; None where the connection was given back, or a key is being looked up."""
        counter = self.counter
        if head.shown is None:
            if counter.rules.open_to is None:
                self.give_back()
            return counter.rules.open_to
        token = head.shown[7:]
        key = counter.keyring.remembered(token, renew=lambda one: counter.renew(one).add_done_callback(_heard))
        if key is None:
            self.looking_up, self.since = True, time.monotonic()
            counter.renew(token).add_done_callback(self._looked_up)
            return None
        if not key.allows("write"):
            self.give_back()
            return None
        return key.project

    def _looked_up(self, found: asyncio.Future[bool]) -> None:
        self.looking_up = False
        if self.gone:
            return
        if found.exception() is None and found.result():
            self._next()
        else:  # unknown, revoked, or the store is away: that is told there
            self.give_back()

    def _not_looked_up(self) -> None:
        """Answer a request whose key the store does not tell in time, and hang up: the server would wait as long again."""
        self.waiting, self.last = _Asked(self, None, began=self.since), True
        limit = self.counter.rules.time_limit
        said = f"to look up the key took longer than {limit:g} s, and nothing is stored; try again"
        self.waiting.set_exception(Refused(504, "timed_out", said))
        self.gone = True

    def _ask(self, body: bytes, project: str, head: Head) -> None:
        counter = self.counter
        self.waiting = asked = _Asked(self, project)
        try:
            wait = counter.rates.take("log", self.peer if head.shown is None else head.shown)
            if wait:
                raise too_many(wait)
            asked.found = found = Incoming.read(body, project)
            counter.put(found.rows, LoggedQuery, len(body), fresh=found.fresh, future=asked)
        except Exception as problem:
            asked.set_exception(refused(problem))

    def answered(self, message: bytes) -> None:
        """Send an answer, and go on with what came behind its request."""
        self.waiting = None
        self.since = time.monotonic()
        if self.gone:
            return
        self.transport.write(message)
        if self.last or self.counter.closing:
            self.transport.close()
            return
        if self.got:
            self.transport.resume_reading()
            self.counter.loop.call_soon(self._go_on)  # not from here: a thousand in a row would be a thousand calls deep

    def _go_on(self) -> None:
        if self.got and self.waiting is None and not self.looking_up and not self.gone:
            self._next()

    def close_when_answered(self) -> None:
        """Hang up, after the answer where one is due."""
        self.last = True
        if self.waiting is None:
            self.transport.close()

    def look(self, now: float) -> None:
        """Give up on what takes too long."""
        if self.waiting is not None:
            limit = self.counter.rules.time_limit
            if now - self.waiting.began > limit:
                said = (
                    f"this took longer than {limit:g} s, and it is not certain that it is stored; send it again with a query_id"
                )
                self.waiting.set_exception(Refused(504, "timed_out", said))
        elif self.looking_up:
            if now - self.since > self.counter.rules.time_limit:
                self._not_looked_up()
        elif self.got:
            if now - self.since > BODY_S:
                self.give_back()
        elif now - self.since > IDLE_S:
            self.transport.close()

    def give_back(self, brought: bytes = b"") -> None:
        """Return the connection to the server, with everything that it brought since the last answer."""
        rest, self.got = bytes(self.got) + brought, bytearray()
        self.counter.connections.discard(self)
        self.gone = True
        if self.transport.is_reading():
            self.transport.pause_reading()  # what comes from now on is for whoever gets it
        if self.transport.get_write_buffer_size():  # somebody who does not read answers gets no more of them
            self.transport.close()
        else:
            self.counter.give_back(self, rest)


class _Asked:
    """A request until it is answered; the intake keeps it like a promise."""

    __slots__ = ("began", "connection", "found", "over", "project", "request_id")

    def __init__(self, connection: Connection, project: str | None, *, began: float | None = None) -> None:
        self.connection, self.project = connection, project
        self.began = time.monotonic() if began is None else began
        self.request_id = connection.counter.request_id()
        self.found: Incoming | None = None
        self.over = False

    def done(self) -> bool:
        return self.over

    def set_result(self, stored: int, /) -> None:
        assert self.found is not None
        receipt: Receipt = self.found.receipt(stored)
        self._over(201, receipt.body, b"", receipt.spent)

    def set_exception(self, problem: Refused, /) -> None:
        body = bytes(answer(self.request_id, problem).body)
        more = _lines([(name.lower().encode(), value.encode()) for name, value in problem.headers.items()])
        self._over(problem.status, body, more, ())

    def _over(self, status: int, body: bytes, more: bytes, spent: tuple[float, ...]) -> None:
        if self.over:
            return
        self.over = True
        counter = self.connection.counter
        counter.observed.append((self.project, status, time.monotonic() - self.began, spent))
        if self.connection.last or counter.closing:
            more += b"connection: close\r\n"
        self.connection.answered(counter.message(status, body, self.request_id, more))


def _heard(found: asyncio.Future[bool]) -> None:
    found.exception()  # a store that is away is told to whoever asks after the key was forgotten


STATUS = {one.value: f"HTTP/1.1 {one.value} {one.phrase}\r\n".encode() for one in HTTPStatus}


def _lines(headers: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(b"%s: %s\r\n" % header for header in headers)
