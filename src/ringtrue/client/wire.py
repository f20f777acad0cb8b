"""Requests to one service: one connection pool, the key, retries, and every refusal as one of Ringtrue's errors.

A write carries an ``Idempotency-Key`` that stays the same over all retries, so that the service carries it out once.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from ringtrue import traffic
from ringtrue.client.problems import code_of, refusal
from ringtrue.client.reading import read
from ringtrue.errors import BadAnswer, InputError, RingtrueError, Unreachable
from ringtrue.http_client import HttpClient, Response, is_loopback

Record = TypeVar("Record")
LONGEST_WAIT_S = 60.0
"""A service that wants to be left alone for longer is told of at once."""
SILENCE_S = 45.0
"""A stream of events without a sign of life for so long is taken for broken; the service sends one every 15 s."""
FIRST_WAIT_S = 0.2
BUSY = (429, 503)
SAFE = ("GET", "HEAD")
_KEY = re.compile(r"[\x21-\x7e]+")
_EXAMPLE = "write it like https://search.example.org"


class Wire:
    """Sends requests to one service; any number of threads may share it."""

    def __init__(self, url: str, *, key: str | None, timeout: float, retries: int) -> None:
        self.url = _address(url)
        if key is not None and not _KEY.fullmatch(key):
            raise InputError(
                "the key is empty or holds spaces or other signs that no key has; give it as `ringtrue keys create` printed it"
            )
        if not timeout > 0:
            raise InputError(f"timeout {timeout!r} leaves no time; write seconds, such as 30")
        if retries < 0:
            raise InputError(f"retries {retries!r} is no number of tries; write 0 for none")
        self.timeout, self.retries = timeout, retries
        self._key = key
        self._http = HttpClient(proxies=not is_loopback(self.url), limit_size=False)

    @property
    def who(self) -> str:
        """The service, as messages call it."""
        return f"the service at {self.url}"

    def close(self) -> None:
        """End the connections."""
        self._http.close()

    # ── requests ────────────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, path: str, /, **params: Any) -> Any:
        """Return the JSON of an address; parameters that are None are left out."""
        return self.send("GET", path, params=params).json

    def get_as(self, kind: type[Record], path: str, /, **params: Any) -> Record:
        """Return what an address answers as a record."""
        return read(kind, self.get(path, **params))

    def write(self, method: str, path: str, body: Any = None, /, **params: Any) -> Any:
        """Send JSON and return the JSON that is answered; None where nothing is."""
        reply = self.send(method, path, params=params, content=None if body is None else encoded(body))
        return reply.json if reply.body else None

    def write_as(self, kind: type[Record], method: str, path: str, body: Any = None, /, **params: Any) -> Record:
        """Send JSON and return the answer as a record."""
        return read(kind, self.write(method, path, body, **params))

    def items(self, kind: type[Record], path: str, /, **params: Any) -> Iterator[Record]:
        """Yield a list of any length as records, a page at a time as they are asked for."""
        cursor: str | None = None
        while True:
            page = self.get(path, **params, cursor=cursor)
            if not isinstance(page, dict) or not isinstance(page.get("items"), list):
                raise BadAnswer("the service answered no list; is this a service of another version?")
            for at, item in enumerate(page["items"]):
                yield read(kind, item, place=f"items[{at}]")
            before, cursor = cursor, page.get("next")
            if cursor is None:
                return
            if cursor == before:
                raise BadAnswer(f"{self.who} answers the same part of a list again and again; tell its operator")

    def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        again: bool = True,
    ) -> Response:
        """Send a request, again where that may help, and return the successful answer; without ``again`` it is sent once.

        Raises the exception of the service's refusal, Unreachable, TimedOut or BadAnswer.
        """
        sent = {**self._key_header(), **traffic.headers(), **({} if content is None else {"Content-Type": "application/json"})}
        sent.update(headers or {})
        if again and method not in SAFE:
            sent["Idempotency-Key"] = secrets.token_hex(16)
        parts: dict[str, Any] = {"params": given(params or {}), "content": content, "headers": sent}
        tries, until = 0, time.monotonic() + self.timeout
        while True:
            error: RingtrueError
            try:
                found = self._http.request(self.who, method, self.url + path, timeout=self.timeout, **parts)
            except Unreachable as problem:
                error, wait = problem, FIRST_WAIT_S * 2**tries
            else:
                if 200 <= found.status < 300:
                    return found
                error, wait = self._refused(found), _pause(found, tries)
                if _at_work(found) and time.monotonic() + wait < until:
                    # The first try arrived after all; what it is answered is worth waiting for.
                    time.sleep(wait)
                    continue
                if found.status not in BUSY or wait > LONGEST_WAIT_S:
                    raise error
            if not again or tries >= self.retries:
                raise error from None
            tries += 1
            time.sleep(wait)

    def events(self, path: str) -> Generator[Any, None, None]:
        """Yield the data of a stream of events until it ends; raises Unreachable or TimedOut if it breaks."""
        headers = {**self._key_header(), "Accept": "text/event-stream"}
        where = self.url + path
        with self._http.stream(self.who, where, headers=headers, timeout=self.timeout, silence=SILENCE_S) as (found, lines):
            if found.status != 200:
                raise self._refused(found)
            if not found.headers.get("content-type", "").startswith("text/event-stream"):
                raise BadAnswer(f"{self.who} answered no stream of events; check what stands in front of it")
            yield from _data(lines)

    def _key_header(self) -> dict[str, str]:
        return {} if self._key is None else {"Authorization": f"Bearer {self._key}"}

    def _refused(self, found: Response) -> RingtrueError:
        request_id = found.headers.get("x-request-id")
        return refusal(found.status, found.body, who=self.who, request_id=request_id, key=self._key)


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was given: values that are None are left out."""
    return {name: value for name, value in values.items() if value is not None}


def several(names: str | Iterable[str]) -> list[str]:
    """Return names as a list, also a single one, which is a sequence of its letters to Python.

    >>> several("bm25"), several(("bm25", "dense"))
    (['bm25'], ['bm25', 'dense'])
    """
    return [names] if isinstance(names, str) else [*names]


def encoded(body: Any) -> bytes:
    """Return a body as JSON; raises InputError for what JSON cannot hold."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as problem:
        raise InputError(f"this cannot be sent as JSON: {problem}; use texts, numbers, lists and dictionaries") from problem


def segment(value: str, name: str) -> str:
    """Return a value as one part of an address; raises InputError for what would lead elsewhere."""
    if not isinstance(value, str) or value in ("", ".", ".."):
        raise InputError(f"{name} is {value!r}, which names nothing")
    return quote(value, safe="")


def _data(lines: Iterator[str]) -> Iterator[Any]:
    parts: list[str] = []
    for line in lines:
        if line.startswith("data:"):
            parts.append(line[5:].removeprefix(" "))
        elif not line and parts:
            text, parts = "\n".join(parts), []
            try:
                yield json.loads(text)
            except ValueError:
                raise BadAnswer("the service sent an event that is no JSON; is this a service of another version?") from None


def _pause(found: Response, tries: int) -> float:
    """Return the seconds to wait before the next try: what the service asks for, else longer each time."""
    asked = found.headers.get("retry-after", "")
    return float(asked) if asked.isascii() and asked.isdigit() else float(FIRST_WAIT_S * 2**tries)


def _at_work(found: Response) -> bool:
    return found.status == 409 and code_of(found.body) == "in_progress"


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  a port above 65535 raises here
    except ValueError:
        raise InputError(f"the address of the service cannot be read; {_EXAMPLE}") from None
    if parts.username is not None or parts.password is not None:
        raise InputError(f"the address of the service holds a name or a password; give a key with key=, and {_EXAMPLE}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"'{url:.80}' is no address of a service; {_EXAMPLE}")
    if parts.query or parts.fragment:
        raise InputError(f"the address of the service ends with ?… or #…; {_EXAMPLE}")
    return url.rstrip("/")
