"""Requests to the API of GitHub or GitLab: bounded retries, no token for another host, and no token in a message."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

from ringtrue.errors import AccessDenied, InputError, SearchFailed, Unreachable
from ringtrue.http_client import HttpClient, Response

ATTEMPTS = 4
TIMEOUT = 30.0
DEFAULT_WAIT = 60.0
"""Seconds to wait if a rate limit names none, as GitHub advises."""
LONGEST_WAIT = 120.0
"""A job must not wait longer than this for a comment."""
REDIRECTS = (301, 302, 307, 308)
_NEXT = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next\b')


class NotAllowed(AccessDenied):
    """The token is valid, but may not do this; a pull request from a fork has such a token."""


@dataclass(frozen=True)
class Api:
    """An API at an address, with the headers that every request carries."""

    address: str
    headers: Mapping[str, str] = field(repr=False)
    secret: str = field(repr=False)
    sleep: Callable[[float], None] = time.sleep

    def get(self, path: str) -> Any:
        """Return the decoded answer; raises Unreachable, AccessDenied, NotAllowed or InputError."""
        return _json(self._patiently("GET", self._at(path)))

    def pages(self, path: str) -> Iterator[Any]:
        """Yield the items of every page, along the Link headers."""
        url: str | None = self._at(path)
        while url is not None:
            found = self._patiently("GET", url)
            items = _json(found)
            if not isinstance(items, list):
                raise Unreachable(f"{self._name} answered no list for {urlsplit(url).path}; check the address of the API")
            yield from items
            following = _NEXT.search(found.headers.get("link", ""))
            url = self._same_host(url, following[1]) if following else None

    def change(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        """Return the answer to a change that may be sent twice without harm (PATCH, PUT)."""
        return _json(self._patiently(method, self._at(path), body))

    def create(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the answer to a POST, which is sent again only if it was refused unread: a lost answer may hide a success."""
        return _json(self._patiently("POST", self._at(path), body, repeatable=False))

    def _at(self, path: str) -> str:
        return f"{self.address.rstrip('/')}/{path.lstrip('/')}"

    @property
    def _name(self) -> str:
        return urlsplit(self.address).netloc.rpartition("@")[2] or self.address

    def _patiently(self, method: str, url: str, body: Mapping[str, Any] | None = None, *, repeatable: bool = True) -> Response:
        problem = ""
        for attempt in range(1, ATTEMPTS + 1):
            wait = float(2 ** (attempt - 1))
            try:
                found = self._once(method, url, body)
            except SearchFailed as error:
                problem = str(error)
                if not repeatable or isinstance(error, _OtherHost):
                    break
            else:
                limited = _is_rate_limit(found)
                if not limited and found.status < 500:
                    return self._checked(found, url)
                problem = f"{self._said(found)}; run it again later"
                if limited:
                    after = found.headers.get("retry-after", "")
                    wait = float(after) if after.isdigit() else DEFAULT_WAIT
                    if wait > LONGEST_WAIT:
                        break
                elif not repeatable:
                    break
            if attempt < ATTEMPTS:
                self.sleep(wait)
        raise Unreachable(problem)

    def _once(self, method: str, url: str, body: Mapping[str, Any] | None) -> Response:
        headers = {"User-Agent": "ringtrue", **self.headers, **({} if body is None else {"Content-Type": "application/json"})}
        content = None if body is None else json.dumps(body).encode()
        with closing(HttpClient()) as http:
            for _ in range(3):
                found = http.request(self._name, method, url, content=content, headers=headers, timeout=TIMEOUT)
                if found.status not in REDIRECTS or "location" not in found.headers:
                    break
                # A renamed repository answers so; the same verb and body go to its new place.
                url = self._same_host(url, found.headers["location"])
        return found

    def _same_host(self, here: str, there: str) -> str:
        target = urljoin(here, there)
        if urlsplit(target)[:2] != urlsplit(here)[:2]:
            raise _OtherHost(f"{self._name} points to another host, {urlsplit(target).netloc}; check the address of the API")
        return target

    def _checked(self, found: Response, url: str) -> Response:
        if found.status < 300:
            return found
        said, path = self._said(found), urlsplit(url).path
        if found.status == 401:
            raise AccessDenied(f"{said}: it does not know the token; set one that is valid")
        if found.status == 403:
            raise NotAllowed(said)
        if found.status in (404, 410):
            raise InputError(f"{said} for {path}; check repository and number, and that the token may see them")
        raise InputError(f"{said} for {path}; check what is sent there")

    def _said(self, found: Response) -> str:
        """Return the status of an answer and its reason, in one line without the token."""
        line = f"{self._name} answered {found.status} ({_message(found)})"
        return line.replace(self.secret, "***") if self.secret else line


class _OtherHost(Unreachable):
    """An answer that leads to another host, which must not get the token."""


def _json(found: Response) -> Any:
    with suppress(SearchFailed):  # a proxy's page
        return found.json
    return None


def _message(found: Response) -> str:
    body = _json(found)
    said = body.get("message") or body.get("error") if isinstance(body, dict) else None
    return " ".join(str(said).split())[:200] if said else "no reason given"


def _is_rate_limit(found: Response) -> bool:
    """Return whether to wait: for 429, and for the 403 that GitHub uses for a rate limit."""
    if found.status == 429:
        return True
    told = "retry-after" in found.headers or found.headers.get("x-ratelimit-remaining") == "0"
    return found.status == 403 and (told or "rate limit" in _message(found).lower())
