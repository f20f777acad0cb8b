"""Requests to one service: one connection pool, the key, retries, records read from JSON, and every refusal as an error.

A write carries an ``Idempotency-Key`` that stays the same over all retries, so that the service carries it out once.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from ringtrue import traffic
from ringtrue.answers import JobError, RecordReader
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
    ValidationFailed,
)
from ringtrue.http_client import HttpClient, Response, is_loopback

OF_CODE: dict[str, type[RingtrueError]] = {
    "not_found": MissingInput,
    "invalid_expression": SpecError,
    "invalid_input": InputError,
    "invalid_golden_set": ValidationFailed,
    "cannot_decide": CannotDecide,
    "no_key": AccessDenied,
    "forbidden": AccessDenied,
    "timed_out": TimedOut,
    "in_progress": TimedOut,
    "search_timed_out": TimedOut,
    "search_unreachable": Unreachable,
    "search_denied": AccessDenied,
    "search_answered_wrongly": BadAnswer,
    "search_failed": SearchFailed,
}
"""Codes that say more than the status of the answer does."""
OF_STATUS: dict[int, type[RingtrueError]] = {
    401: AccessDenied, 403: AccessDenied, 404: MissingInput, 408: TimedOut, 429: Unreachable, 504: TimedOut,
}  # fmt: skip
MOST_LETTERS = 2_000


def refusal(status: int, body: bytes, *, who: str, request_id: str | None, key: str | None) -> RingtrueError:
    """Return the exception for an answer that is not a success.

    The service's own message is kept and the request id named, under which its log has more; ``key`` is never in it.
    """
    if 300 <= status < 400:
        return InputError(f"{who} redirects (HTTP {status}), and keys are not sent to another address; use the final one")
    said = _said(body)
    if said is None:
        kind = OF_STATUS.get(status, Unreachable if status >= 500 else InputError)
        return kind(f"{who} answered HTTP {status}, not in Ringtrue's words; check the address and what stands in front of it")
    kind = OF_CODE.get(str(said["code"])) or OF_STATUS.get(status) or (Unreachable if status >= 500 else InputError)
    return kind(_shown(str(said["message"]), str(said.get("request_id") or request_id or ""), key))


def failure(error: JobError | None, *, what: str) -> RingtrueError:
    """Return the exception for a job that failed, from the error that it ended with."""
    known = error or JobError("", "without saying why")
    return OF_CODE.get(known.code, SearchFailed)(_shown(f"{what} failed: {known.message}", "", None))


def _said(body: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(body)["error"]
        return said if isinstance(said, dict) and {"code", "message"} <= said.keys() else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _shown(message: str, request_id: str, key: str | None) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in message[:MOST_LETTERS])
    text = plain.replace(key, "…") if key else plain
    return f"{text} (request {request_id:.64})" if request_id else text


Record = TypeVar("Record")


def _not_as_declared(place: str, said: str, wanted: str) -> BadAnswer:
    expected = "" if said == "is missing" else f" and not {wanted}"
    return BadAnswer(f"{place} {said}{expected}; is this a service of another version?")


_READER = RecordReader(_not_as_declared)


def read(kind: type[Record], value: Any, *, place: str = "answer") -> Record:
    """Return JSON as a record; raises BadAnswer naming the place that is not as declared."""
    return _READER.read(kind, value, place=place)


LONGEST_WAIT_S = 60.0
"""A service that wants to be left alone for longer is told of at once."""
FIRST_WAIT_S = 0.2
BUSY = (429, 503)
SAFE = ("GET", "HEAD")
_KEY = re.compile(r"[\x21-\x7e]+")
_EXAMPLE = "write it like https://search.example.org"


class Wire:
    """Sends requests to one service; any number of threads may share it."""

    def __init__(self, url: str, *, key: str | None, timeout: float, retries: int) -> None:
        self.url = _address(url)
        self.who = f"the service at {self.url}"
        if key is not None and not _KEY.fullmatch(key):
            raise InputError(
                "the API key is empty or contains invalid characters; pass it exactly as `ringtrue keys create` printed it"
            )
        if not timeout > 0:
            raise InputError(f"timeout {timeout!r} must be above 0; write seconds, such as 30")
        if retries < 0:
            raise InputError(f"retries {retries!r} is not a number of tries; write 0 for none")
        self.timeout, self.retries = timeout, retries
        self._key = key
        self._http = HttpClient(proxies=not is_loopback(self.url), limit_size=False)

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
        """Send JSON and return the JSON that is answered; None if nothing is."""
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
                raise BadAnswer("the service did not return a list; does it run another version?")
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
        key = {} if self._key is None else {"Authorization": f"Bearer {self._key}"}
        sent = {**key, **traffic.headers(), **({} if content is None else {"Content-Type": "application/json"})}
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
                if found.status == 409 and isinstance(error, TimedOut) and time.monotonic() + wait < until:
                    # The first try arrived after all; what it is answered is worth waiting for.
                    time.sleep(wait)
                    continue
                if found.status not in BUSY or wait > LONGEST_WAIT_S:
                    raise error
            if not again or tries >= self.retries:
                raise error from None
            tries += 1
            time.sleep(wait)

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
        raise InputError(f"{name} is {value!r}, which is not a valid name")
    return quote(value, safe="")


def _pause(found: Response, tries: int) -> float:
    """Return the seconds to wait before the next try: what the service asks for, else longer each time."""
    asked = found.headers.get("retry-after", "")
    return float(asked) if asked.isascii() and asked.isdigit() else float(FIRST_WAIT_S * 2**tries)


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  a port above 65535 raises here
    except ValueError:
        raise InputError(f"the address of the service cannot be read; {_EXAMPLE}") from None
    if parts.username is not None or parts.password is not None:
        raise InputError(f"the address of the service holds a name or a password; give a key with key=, and {_EXAMPLE}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"'{url:.80}' is not an address of a service; {_EXAMPLE}")
    if parts.query or parts.fragment:
        raise InputError(f"the address of the service ends with ?… or #…; {_EXAMPLE}")
    return url.rstrip("/")
