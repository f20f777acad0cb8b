"""One request to the API of GitHub or GitLab and its answer, with what the standard library has.

Bounded retries, no redirect and no page that leads a token to another host, and no token in a message.
"""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

from ringtrue.errors import AccessDenied, InputError, Unreachable

ATTEMPTS = 4
TIMEOUT = 30.0
UNTOLD_WAIT = 60.0
"""Seconds to wait where a rate limit names none, as GitHub advises."""
LONGEST_WAIT = 120.0
"""Nobody pays for a machine that waits longer than this for a comment."""
REDIRECTS = (301, 302, 307, 308)
_NEXT = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next\b')


class NotAllowed(AccessDenied):
    """The token is valid, but may not do this; a pull request from a fork has such a token."""


@dataclass(frozen=True)
class Answer:
    """What came back: status, headers by their names in lower case, and the decoded JSON."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def message(self) -> str:
        """What the API says about an error, in one line."""
        said = self.body.get("message") or self.body.get("error") if isinstance(self.body, dict) else None
        return " ".join(str(said).split())[:200] if said else "no reason given"


@dataclass(frozen=True)
class Api:
    """An API at an address, with the headers that every request carries."""

    address: str
    headers: Mapping[str, str] = field(repr=False)
    secret: str = field(repr=False)
    sleep: Callable[[float], None] = time.sleep

    def get(self, path: str) -> Answer:
        """Return the answer; raises Unreachable, AccessDenied, NotAllowed or InputError."""
        return self._patiently("GET", self._at(path), None)

    def pages(self, path: str) -> Iterator[Any]:
        """Yield the items of every page, along the Link headers."""
        url: str | None = self._at(path)
        while url is not None:
            answer = self._patiently("GET", url, None)
            if not isinstance(answer.body, list):
                raise Unreachable(f"{self._name} answered no list for {urlsplit(url).path}; check the address of the API")
            yield from answer.body
            following = _NEXT.search(answer.headers.get("link", ""))
            url = self._same_host(url, following[1]) if following else None

    def change(self, method: str, path: str, body: Mapping[str, Any]) -> Answer:
        """Return the answer to a change that may be sent twice without harm (PATCH, PUT)."""
        return self._patiently(method, self._at(path), body)

    def create(self, path: str, body: Mapping[str, Any]) -> Answer:
        """Return the answer to a POST. It is sent again only where it was refused unread: a lost answer may hide a success."""
        return self._patiently("POST", self._at(path), body, repeatable=False)

    def _at(self, path: str) -> str:
        return f"{self.address.rstrip('/')}/{path.lstrip('/')}"

    @property
    def _name(self) -> str:
        return urlsplit(self.address).netloc.rpartition("@")[2] or self.address

    def _patiently(self, method: str, url: str, body: Mapping[str, Any] | None, *, repeatable: bool = True) -> Answer:
        problem = ""
        for attempt in range(1, ATTEMPTS + 1):
            wait = float(2 ** (attempt - 1))
            try:
                answer = self._once(method, url, body)
            except (OSError, http.client.HTTPException) as error:
                reason = getattr(error, "reason", error)
                problem = f"cannot be reached ({self._clean(reason)}); check the network and the address, then run it again"
                if not repeatable:
                    break
            else:
                limited = _is_rate_limit(answer)
                if not limited and answer.status < 500:
                    return self._checked(answer, url)
                problem = f"answered {answer.status} ({self._clean(answer.message)}); run it again later"
                if limited:
                    wait = _seconds(answer.headers.get("retry-after"))
                    if wait > LONGEST_WAIT:
                        break
                elif not repeatable:
                    break
            if attempt < ATTEMPTS:
                self.sleep(wait)
        raise Unreachable(f"{self._name} {problem}")

    def _once(self, method: str, url: str, body: Mapping[str, Any] | None) -> Answer:
        for _ in range(3):
            answer = self._sent(method, url, body)
            if answer.status not in REDIRECTS or "location" not in answer.headers:
                return answer
            # A renamed repository answers so; the same verb and body go to its new place.
            url = self._same_host(url, answer.headers["location"])
        return answer

    def _sent(self, method: str, url: str, body: Mapping[str, Any] | None) -> Answer:
        headers = {"User-Agent": "ringtrue", **self.headers}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        try:
            request = urllib.request.Request(url, data, headers, method=method)
            with _OPENER.open(request, timeout=TIMEOUT) as response:
                return _answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            with error:
                return _answer(error.code, error.headers, error.read())
        except ValueError:  # an address that is none, or a token that no header can hold; the reason would show it
            raise InputError(f"{self._name} cannot be asked; check the address of the API and the token's characters") from None

    def _same_host(self, here: str, there: str) -> str:
        target = urljoin(here, there)
        if urlsplit(target)[:2] != urlsplit(here)[:2]:
            raise Unreachable(f"{self._name} points to another host, {urlsplit(target).netloc}; check the address of the API")
        return target

    def _checked(self, answer: Answer, url: str) -> Answer:
        if answer.status < 300:
            return answer
        said = f"{self._name} answered {answer.status} ({self._clean(answer.message)})"
        if answer.status == 401:
            raise AccessDenied(f"{said}: it does not know the token; set one that is valid")
        if answer.status == 403:
            raise NotAllowed(said)
        if answer.status in (404, 410):
            raise InputError(f"{said} for {urlsplit(url).path}; check repository and number, and that the token may see them")
        raise InputError(f"{said} for {urlsplit(url).path}; check what is sent there")

    def _clean(self, text: object) -> str:
        line = " ".join(str(text).split())
        return line.replace(self.secret, "***") if self.secret else line


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Leave redirects to us: the default takes the token along to any host."""
        return


_OPENER = urllib.request.build_opener(_NoRedirect)


def _answer(status: int, headers: Any, raw: bytes) -> Answer:
    try:
        body = json.loads(raw) if raw else None
    except ValueError:  # a proxy's page
        body = None
    return Answer(status, {name.lower(): value for name, value in headers.items()}, body)


def _is_rate_limit(answer: Answer) -> bool:
    """True for 429, and for the 403 that GitHub uses for it: only that one is worth waiting for."""
    if answer.status == 429:
        return True
    told = "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0"
    return answer.status == 403 and (told or "rate limit" in answer.message.lower())


def _seconds(retry_after: str | None) -> float:
    return float(retry_after) if retry_after is not None and retry_after.isdigit() else UNTOLD_WAIT
