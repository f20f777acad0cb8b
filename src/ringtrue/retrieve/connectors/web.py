"""HTTP for whoever needs it here: TLS verified, a limit on the whole time, errors in our words without addresses or keys."""

from __future__ import annotations

import atexit
import logging
import os
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from json import dumps, loads
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ringtrue import traffic
from ringtrue.errors import AccessDenied, BadAnswer, InputError, MissingInput, SearchFailed, TimedOut, Unreachable
from ringtrue.extras import install_command
from ringtrue.retrieve.connectors.redact import one_line, redacted

LARGEST = 64_000_000
"""Bytes of an answer that are read at most."""
_THREAD = "ringtrue-web"
_LOGGERS = ("httpx2", *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))
_HARMLESS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
"""Headers that hold no secret: their values may show in a message."""
_EXAMPLE = "write it like https://search.example.com/find"


@lru_cache(maxsize=1)
def _httpx() -> Any:
    try:
        import httpx2
    except ImportError as problem:
        raise MissingInput(f"httpx2 is not installed; {install_command('http')}") from problem
    for name in _LOGGERS:  # they write addresses and headers; what other threads ask for themselves is not touched
        logging.getLogger(name).addFilter(lambda record: record.threadName != _THREAD)
    return httpx2


@lru_cache(maxsize=64)
def _client(ca_file: str | None, process: int) -> Any:
    """Return the client of a process: after a fork, two processes must not read from one connection."""
    verify: Any = True
    if ca_file:
        try:
            verify = ssl.create_default_context(cafile=ca_file)
        except FileNotFoundError:
            raise MissingInput(
                f"ca_file: there is no file {ca_file}; name the PEM file of your certificate authority"
            ) from None
        except (ssl.SSLError, OSError):
            raise InputError(f"ca_file: {ca_file} holds no certificates; name the PEM file of your authority") from None
    # Redirects are not followed: they would carry the credentials to whoever was named. Cookies are not kept: what one
    # connector was told must not change what another one is answered.
    made = _httpx().Client(verify=verify, follow_redirects=False, cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])))
    atexit.register(made.close)
    return made


def call(
    who: str,
    method: str,
    url: str,
    *,
    json: Any = None,
    lines: Iterable[Any] | None = None,
    params: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    auth: tuple[str, str] | None = None,
    timeout: float = 10.0,
    ca_file: str | None = None,
    secrets: Iterable[str] = (),
    silent: bool = False,
) -> Any:
    """Return the JSON that a server answers; raises SearchFailed in the name of ``who``.

    ``json`` is sent as it is, ``lines`` as one line of JSON each. With ``silent`` the server need not answer JSON: what is
    none becomes None.

    ``timeout`` limits the whole: looking up the name, connecting, asking and reading. Status 401 and 403 deny access, 408, 429
    and 5xx are worth another try, everything else but 2xx is a bad answer. What the server says of it is shown without the
    address, the credentials and ``secrets``.
    """
    httpx = _httpx()
    client = _client(ca_file, os.getpid())
    request = _request(client, who, method, url, json, lines, params, headers, timeout)
    given_up = threading.Event()
    late = f"{who} did not answer within {timeout:g} s; raise timeout=, or ask why it is slow"

    def send() -> tuple[int, bytes]:
        response = client.send(request, auth=auth, stream=True)
        try:
            return response.status_code, _read(response, who, given_up)
        finally:
            response.close()

    try:
        status, body = _within(timeout, send, given_up)
    except SearchFailed:
        raise
    # What these say may name the address, so it is not chained either: a traceback may end in a log.
    except (TimeoutError, httpx.TimeoutException):
        raise TimedOut(late) from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        raise InputError(f"{who}: the url cannot be read; {_EXAMPLE}") from None
    except httpx.LocalProtocolError:
        raise InputError(f"{who}: a header cannot be sent; check headers and the variables that hold its credentials") from None
    except httpx.DecodingError:
        raise BadAnswer(f"{who} answered bytes that are not compressed as it says; check what stands before it") from None
    except (httpx.TransportError, ssl.SSLError, OSError) as problem:
        raise Unreachable(f"{who} cannot be reached ({_reason(problem)}); {_cure(problem)}") from None
    return _checked(status, body, who, {*secrets, *_secrets(url, headers, auth)}, silent=silent)


def _request(
    client: Any,
    who: str,
    method: str,
    url: str,
    json: Any,
    lines: Iterable[Any] | None,
    params: Mapping[str, Any] | None,
    headers: Mapping[str, str] | None,
    timeout: float,
) -> Any:
    httpx = _httpx()
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{who}: the url is no http:// or https:// address; {_EXAMPLE}")
    try:
        urlsplit(url).port  # noqa: B018  a port above 65535 raises here, and would be taken modulo 65536 later
    except ValueError:
        raise InputError(f"{who}: the url cannot be read; {_EXAMPLE}") from None
    sent = {name: value.encode("utf-8", "replace") for name, value in {**traffic.headers(), **(headers or {})}.items()}
    content = None
    try:
        if json is not None:
            content = _json(json)
            sent.setdefault("Content-Type", b"application/json")
        elif lines is not None:
            content = b"".join(_json(line) + b"\n" for line in lines)
            sent.setdefault("Content-Type", b"application/x-ndjson")
        # Given as params=, they would replace those that already stand in the url.
        address = httpx.URL(url).copy_merge_params(dict(params)) if params else httpx.URL(url)
        return client.build_request(method, address, content=content, headers=sent, timeout=timeout)
    except httpx.InvalidURL:
        raise InputError(f"{who}: the url cannot be read; {_EXAMPLE}") from None
    except (TypeError, ValueError) as problem:
        raise InputError(
            f"{who}: the request cannot be written ({type(problem).__name__}); check body, params, headers"
        ) from None


def _json(value: Any) -> bytes:
    return dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _within(timeout: float, send: Callable[[], tuple[int, bytes]], given_up: threading.Event) -> tuple[int, bytes]:
    """Return what ``send`` returns, or raise TimeoutError.

    The client limits each step, not their sum, and a name server not at all. So the asking happens beside; a thread that was
    given up ends by the limit of its step and ends with the process.
    """
    answers: list[tuple[int, bytes]] = []
    problems: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            answers.append(send())
        except BaseException as problem:
            problems.append(problem)
        finally:
            done.set()

    threading.Thread(target=work, name=_THREAD, daemon=True).start()
    try:
        finished = done.wait(timeout)
    finally:
        given_up.set()  # also when the user interrupts the wait
    if problems:
        raise problems[0]
    if not finished or not answers:
        raise TimeoutError
    return answers[0]


def _read(response: Any, who: str, given_up: threading.Event) -> bytes:
    parts: list[bytes] = []
    size = 0
    for part in response.iter_bytes():
        parts.append(part)
        size += len(part)
        if size > LARGEST:
            raise BadAnswer(f"{who} answered more than {LARGEST // 1_000_000} MB; ask it for fewer or shorter fields")
        if given_up.is_set():  # a server that drips would otherwise hold the thread for ever
            raise TimeoutError
    return b"".join(parts)


def _checked(status: int, body: bytes, who: str, secrets: Iterable[str], *, silent: bool = False) -> Any:
    if 200 <= status < 300:
        with suppress(ValueError, RecursionError):
            return loads(body)
        if silent:
            return None
    said = _said(body, secrets)
    if status in (401, 403):
        raise AccessDenied(f"{who} refused the credentials (HTTP {status}); check the environment variable that holds them")
    if status in (408, 429) or status >= 500:
        raise Unreachable(f"{who} answered HTTP {status} ({said:.120}); try again later")
    if 300 <= status < 400:
        raise BadAnswer(
            f"{who} sends us elsewhere (HTTP {status}), where credentials do not follow; write the final address as url"
        )
    if not 200 <= status < 300:
        raise BadAnswer(f"{who} answered HTTP {status} ({said:.120}); check its settings")
    raise BadAnswer(f"{who} answered no JSON but '{said:.60}'; check that the url is that of its search")


def words_of(url: str) -> set[str]:
    """Return the parts of an address that a server may repeat and no message may show: a key may stand in any of them."""
    try:
        parts = urlsplit(url)
        return {url, parts.netloc, parts.hostname or "", parts.password or "", parts.path, *keys_of(url)}
    except ValueError:
        return {url}


def keys_of(url: str) -> set[str]:
    """Return what follows the question mark of an address, as a whole and value by value, as written and as meant.

    >>> sorted(keys_of("https://example.com/find?key=a%2Fb&lang=en"))
    ['a%2Fb', 'a/b', 'en', 'key=a%2Fb&lang=en']
    """
    query = url.partition("?")[2].partition("#")[0]
    return {query, *(pair.partition("=")[2] for pair in query.split("&")), *(value for _, value in parse_qsl(query))} - {""}


def _secrets(url: str, headers: Mapping[str, str] | None, auth: tuple[str, str] | None) -> set[str]:
    """Return what a server may repeat in an error page and no message may show."""
    found = words_of(url)
    found |= {
        word
        for name, value in (headers or {}).items()
        if name.lower() not in _HARMLESS
        for word in (value, value.split(" ")[-1])
    }
    if auth:
        found |= {auth[1], b64encode(f"{auth[0]}:{auth[1]}".encode()).decode()}
    return found


def _said(body: bytes, secrets: Iterable[str]) -> str:
    """Return how a text of the server begins: one line, nothing that a terminal obeys, no secret."""
    return one_line(redacted(body[:4000].decode("utf-8", "replace"), secrets))


def _causes(problem: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    cause: BaseException | None = problem
    while cause is not None and cause not in found:
        found.append(cause)
        cause = cause.__cause__ or cause.__context__
    return found


def _reason(problem: Exception) -> str:
    """Return the kind of a network failure; its message may carry the address."""
    for cause in _causes(problem):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "its TLS certificate is not trusted"
        if isinstance(cause, ssl.SSLError):
            return "TLS failed"
        if isinstance(cause, socket.gaierror):
            return "its name is not known"
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno).lower()
    return "no complete HTTP answer" if type(problem).__name__ == "RemoteProtocolError" else type(problem).__name__


def _cure(problem: Exception) -> str:
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(problem)):
        return "name the certificate authority with ca_file=, or the host as its certificate does"
    return "check that it runs and the address is right"
