"""HTTP for all that asks other systems: connectors, the client of the service, comments in CI.

TLS is verified, the whole time and the size of an answer are limited. Redirects are not followed, because they would carry the
credentials to another host, and cookies are not kept. A failure is one of Ringtrue's errors, without address or credentials.
"""

from __future__ import annotations

import contextvars
import json
import logging
import os
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ringtrue.errors import BadAnswer, InputError, MissingInput, RingtrueError, TimedOut, Unreachable

LARGEST = 64_000_000
"""The most bytes of an answer that a client with a limit reads."""
T = TypeVar("T")
_THREAD = "ringtrue-http"
_LOGGERS = ("httpx2", *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))
_EXAMPLE = "write it like https://search.example.com/find"


@dataclass(frozen=True, slots=True)
class Response:
    """The answer of a server, whatever its status."""

    who: str
    status: int
    headers: Mapping[str, str]
    """By name, in any case."""
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON; raises BadAnswer if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise BadAnswer(f"{self.who} did not answer with JSON; check the address, and any proxy in front of it") from None


class HttpClient:
    """A pool of connections, which any number of threads may share."""

    def __init__(self, *, ca_file: str | None = None, proxies: bool = True, limit_size: bool = True) -> None:
        self._httpx, self._limit_size = _httpx(), limit_size
        self._pool = self._httpx.Client(
            verify=_context(ca_file) if ca_file else True,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            trust_env=proxies,
        )

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def request(
        self, who: str, method: str, url: str, *, timeout: float, auth: tuple[str, str] | None = None, **parts: Any
    ) -> Response:
        """Return the answer to a request with the ``headers``, ``params`` and ``content`` that are given.

        ``who`` names the server in errors. ``timeout`` limits the whole: resolving the name, connecting, sending and reading.
        Raises InputError, TimedOut, Unreachable or BadAnswer.
        """
        request = self._request(who, method, url, timeout, **parts)
        given_up = threading.Event()

        def send() -> Response:
            found = self._pool.send(request, auth=auth, stream=True)
            try:
                return Response(who, found.status_code, found.headers, self._read(found, who, given_up))
            finally:
                found.close()

        try:
            # A request that was given up ends by the limit of its step, and with the process.
            return in_time(timeout, send, name=_THREAD, abandon=lambda _: given_up.set())
        except RingtrueError:
            raise
        # The message may contain the address, so it is not chained either: a traceback may end in a log.
        except Exception as problem:
            raise self._failure(problem, who, timeout) from None

    def _read(self, found: Any, who: str, given_up: threading.Event) -> bytes:
        parts: list[bytes] = []
        size = 0
        for part in found.iter_bytes():
            parts.append(part)
            size += len(part)
            if self._limit_size and size > LARGEST:
                raise BadAnswer(f"{who} answered more than {LARGEST // 1_000_000} MB; ask it for fewer or shorter fields")
            if given_up.is_set():  # a server that drips would otherwise hold the thread for ever
                raise TimeoutError
        return b"".join(parts)

    def _request(
        self,
        who: str,
        method: str,
        url: str,
        timeout: float,
        *,
        params: Mapping[str, Any] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        if not url.startswith(("http://", "https://")):
            raise InputError(f"{who}: the url is not an http:// or https:// address; {_EXAMPLE}")
        try:
            urlsplit(url).port  # noqa: B018  a port above 65535 raises here, and would be taken modulo 65536 later
            # Given as params=, they would replace those that already stand in the url.
            address = self._httpx.URL(url).copy_merge_params(dict(params)) if params else self._httpx.URL(url)
        except (ValueError, self._httpx.InvalidURL):
            raise InputError(f"{who}: the url cannot be read; {_EXAMPLE}") from None
        sent = {name: value.encode("utf-8", "replace") for name, value in (headers or {}).items()}
        try:
            return self._pool.build_request(method, address, content=content, headers=sent, timeout=timeout)
        except (TypeError, ValueError) as problem:
            kind = type(problem).__name__
            raise InputError(f"{who}: the request cannot be written ({kind}); check its headers and parameters") from None

    def _failure(self, problem: Exception, who: str, timeout: float) -> RingtrueError | Exception:
        httpx = self._httpx
        slow = f"{who} did not answer within {timeout:g} s; raise timeout=, or find out why it is slow"
        header = f"{who}: a header cannot be sent; check the address, the token and the other headers"
        encoding = f"{who} sent a body that does not match its Content-Encoding; check any proxy in front of it"
        known: tuple[tuple[Any, type[RingtrueError], str], ...] = (
            ((TimeoutError, httpx.TimeoutException), TimedOut, slow),
            ((httpx.InvalidURL, httpx.UnsupportedProtocol), InputError, f"{who}: the url cannot be read; {_EXAMPLE}"),
            (httpx.LocalProtocolError, InputError, header),
            (httpx.DecodingError, BadAnswer, encoding),
            ((httpx.TransportError, OSError), Unreachable, f"{who} cannot be reached {_network_failure(problem)}"),
        )
        return next((error(said) for kinds, error, said in known if isinstance(problem, kinds)), problem)


def is_loopback(url: str) -> bool:
    """Return whether an address is on this machine: such a request must not pass a proxy, which would see its key."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@cache
def _httpx() -> Any:
    import httpx2

    for name in _LOGGERS:  # they write addresses and headers; what other threads ask for is not touched
        logging.getLogger(name).addFilter(lambda record: record.threadName != _THREAD)
    return httpx2


def _context(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except FileNotFoundError:
        raise MissingInput(f"ca_file: there is no file {ca_file}; name the PEM file of your certificate authority") from None
    except OSError:
        raise InputError(f"ca_file: {ca_file} holds no certificates; name the PEM file of your authority") from None


def in_time(seconds: float, work: Callable[[], T], *, name: str, abandon: Callable[[threading.Thread], None]) -> T:
    """Return what ``work`` returns in a thread of its own; raises what it raises, and TimeoutError after so many seconds.

    Libraries limit each step, not their sum, and a name server not at all. Python cannot stop a thread: ``abandon`` gets the
    one that nobody waits for any more.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as problem:
            answer.set_exception(problem)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True, name=name)
    thread.start()
    try:
        return answer.result(seconds)
    finally:  # also if the user interrupts the wait
        if not answer.done():
            abandon(thread)


def _network_failure(problem: BaseException | None) -> str:
    """Return the kind of a network failure and its cure; the message of the error may contain the address."""
    kind, cure = type(problem).__name__, "check that it runs and the address is right"
    kind = "no complete HTTP answer" if kind == "RemoteProtocolError" else kind
    while problem is not None:
        if isinstance(problem, ssl.SSLCertVerificationError):
            cure = "name the certificate authority with ca_file=, or the host as its certificate does"
            return f"(its TLS certificate is not trusted); {cure}"
        if isinstance(problem, ssl.SSLError):
            return f"(TLS failed); {cure}"
        if isinstance(problem, socket.gaierror):
            return f"(its name is not known); {cure}"
        if isinstance(problem, OSError) and problem.errno:
            return f"({os.strerror(problem.errno).lower()}); {cure}"
        problem = problem.__cause__ or problem.__context__
    return f"({kind}); {cure}"
