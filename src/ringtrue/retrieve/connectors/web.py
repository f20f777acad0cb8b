"""JSON over HTTP for connectors: a status that is not a success becomes one error, in which no address and no secret shows.

``redacted`` takes secrets out of somebody else's words before they stand in a message of ours.
"""

from __future__ import annotations

import atexit
import os
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import lru_cache
from html import escape
from json import dumps
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

from ringtrue import traffic
from ringtrue.errors import AccessDenied, BadAnswer, InputError, Unreachable
from ringtrue.http_client import HttpClient, Response, is_loopback

SHORTEST = 4
"""Letters of the shortest secret that is taken out; shorter ones stand inside other words."""
CUT = 6
"""Letters of the shortest beginning of a secret that is taken out where a text was cut."""
_ENDS = (";", ",", ")", " ", "'")
"""What follows a text that was cut in one of our messages."""


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Return a text in which '…' stands for every secret, however it is spelled there; also where a cut left its beginning.

    >>> redacted("cannot handle /find?key=a%2Fb%2Fc&q=pool", ["a/b/c"])
    'cannot handle /find?key=…&q=pool'
    """
    words = _spellings(secrets)
    for word in words:
        text = text.replace(word, "…")
    for word in words:  # only now: a whole one must not be taken for the beginning of another spelling
        for length in range(min(len(word) - 1, len(text)), CUT - 1, -1):
            beginning = word[:length]
            if beginning in text:
                for end in _ENDS:
                    text = text.replace(beginning + end, "…" + end)
                text = f"{text[:-length]}…" if text.endswith(beginning) else text
    return text


def one_line(text: str) -> str:
    """Return a text as one line without anything that a terminal obeys."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _spellings(secrets: Iterable[str]) -> list[str]:
    """Return the secrets as they are and as addresses, JSON, Python and HTML spell them, the longest first."""
    found: set[str] = set()
    for word in secrets:
        if len(word) >= SHORTEST:
            found |= {word, escape(word), repr(word)[1:-1], dumps(word)[1:-1], dumps(word, ensure_ascii=False)[1:-1]}
            found |= {quote(word, errors="replace"), quote(word, safe="", errors="replace"), quote_plus(word, errors="replace")}
    return sorted(found, key=lambda word: (-len(word), word))


_HARMLESS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
"""Headers that hold no secret: their values may show in a message."""


@lru_cache(maxsize=64)
def _client(ca_file: str | None, proxies: bool, process: int) -> HttpClient:
    """Return the client of a process: after a fork, two processes must not read from one connection."""
    made = HttpClient(ca_file=ca_file, proxies=proxies)
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

    ``json`` is sent as it is, ``lines`` as one line of JSON each. With ``silent`` the server need not answer JSON: anything
    else becomes None. ``timeout`` limits the whole request.

    Status 401 and 403 deny access, 408, 429 and 5xx are worth another try, everything else but 2xx is a bad answer. What the
    server says about it is shown without the address, the credentials and ``secrets``.
    """
    sent = {**traffic.headers(), **(headers or {})}
    content = None
    try:
        if json is not None:
            content, kind = _json(json), "application/json"
        elif lines is not None:
            content, kind = b"".join(_json(line) + b"\n" for line in lines), "application/x-ndjson"
    except (TypeError, ValueError) as problem:
        raise InputError(f"{who}: the request cannot be written ({type(problem).__name__}); check its body") from None
    if content is not None:
        sent.setdefault("Content-Type", kind)
    client = _client(ca_file, not is_loopback(url), os.getpid())
    found = client.request(who, method, url, params=params, content=content, headers=sent, auth=auth, timeout=timeout)
    return _checked(found, {*secrets, *_secrets(url, headers, auth)}, silent=silent)


def _json(value: Any) -> bytes:
    return dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _checked(found: Response, secrets: Iterable[str], *, silent: bool) -> Any:
    who, status = found.who, found.status
    if 200 <= status < 300:
        try:
            return found.json
        except BadAnswer:
            if silent:
                return None
    said = one_line(redacted(found.body[:4000].decode("utf-8", "replace"), secrets))
    if status in (401, 403):
        raise AccessDenied(f"{who} refused the credentials (HTTP {status}); check the environment variable that holds them")
    if status in (408, 429) or status >= 500:
        raise Unreachable(f"{who} answered HTTP {status} ({said:.120}); try again later")
    if 300 <= status < 400:
        raise BadAnswer(f"{who} redirects (HTTP {status}), where credentials do not follow; write the final address as url")
    if not 200 <= status < 300:
        raise BadAnswer(f"{who} answered HTTP {status} ({said:.120}); check its settings")
    raise BadAnswer(f"{who} answered '{said:.60}', which is not JSON; check that the url is its search endpoint")


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
    values = [value for name, value in (headers or {}).items() if name.lower() not in _HARMLESS]
    found = {*words_of(url), *values, *(value.split(" ")[-1] for value in values)}
    return found | ({auth[1], b64encode(f"{auth[0]}:{auth[1]}".encode()).decode()} if auth else set())
