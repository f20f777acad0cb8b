"""Any search that answers JSON over HTTP, mapped by a small template.

::

    [connections.shop]
    kind = "http"
    url = "https://search.example.com/find"
    body = {query = "{text}", limit = "{k}", filter = {city = "{scope.city}"}}
    hits = "results.items"
    id = "document.id"

``{text}``, ``{k}`` and ``{scope.NAME}`` are replaced as values of the JSON, so nothing in a question can change its shape.
If a search has no such scope, the part of the template that asks for it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from ringtrue.errors import BadAnswer, InputError, nearest
from ringtrue.retrieve.connectors.base import SecondsLeft
from ringtrue.retrieve.connectors.deciding import template
from ringtrue.retrieve.connectors.mapped import MappedConnector, Request, at
from ringtrue.retrieve.connectors.settings import QUESTION as _PLACE
from ringtrue.retrieve.connectors.settings import Url, filled, places, texts
from ringtrue.retrieve.connectors.web import call, keys_of
from ringtrue.retrieve.connectors.writing import PLACE

_LOOKS_LIKE_ONE = re.compile(r"\{[A-Za-z_][\w.]*\}")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True, kw_only=True)
class Http(MappedConnector):
    """A JSON endpoint."""

    ASIDE: ClassVar[frozenset[str]] = MappedConnector.ASIDE | {"headers", "token_header", "token_prefix"}
    TELLING: ClassVar[str] = "say which request shows one, lookup = {url = 'https://…/documents/{id}', source_hash = 'path'}"
    WRITTEN_IN: ClassVar[str] = "body or params"
    REQUEST: ClassVar[tuple[str, ...]] = ("url", "method", "body", "params")
    FILLED: ClassVar[tuple[str, ...]] = ("body", "params")
    EXAMPLE: ClassVar[str] = "{url = 'https://…/documents/{id}', method = 'PUT', body = {text = '{text}'}}"

    url: Url = field(repr=False)
    """Where it is asked, http:// or https://."""
    method: Literal["GET", "POST", ""] = ""
    """GET or POST; when empty, POST if there is a body, else GET."""
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    """The JSON to send, with placeholders."""
    params: Mapping[str, str | float | bool | Sequence[str | float | bool]] | None = field(default=None, repr=False)
    """What to add to the address (``?q=…``), with placeholders."""
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    """Further headers, as they are."""
    hits: str = "hits"
    """Dotted path to the list of hits in the answer; empty when the answer is the list."""
    null_is_empty: bool = False
    """True if the system says null, or leaves the list out, when it found nothing."""
    token_env: str | None = None
    """Environment variable that holds a token."""
    token_header: str = "Authorization"
    token_prefix: str = "Bearer "
    user_env: str | None = None
    """Environment variables that hold user and password for basic authentication."""
    password_env: str | None = None
    ca_file: str | None = None
    """PEM file of the certificate authority, if it is not one of the usual."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.method:
            object.__setattr__(self, "method", "GET" if self.body is None else "POST")
        written = list(texts([self.body, self.params]))
        unknown = next((text for text in written if _LOOKS_LIKE_ONE.fullmatch(text) and not _PLACE.fullmatch(text)), "")
        known = nearest(unknown, ["{text}", "{k}", "{scope.NAME}"])
        mixed = next((text for text in written if "{text}" in text and "{scope." in text), "")
        both = self.user_env and self.token_env and self.token_header.lower() == "authorization"
        self.refuse(
            (self.method == "GET" and self.body is not None, "a GET has no body; write it as params, or method = 'POST'"),
            (
                (self.user_env is None) != (self.password_env is None),
                "only one of user_env and password_env is given; give both or none",
            ),
            (both, "token_env and user_env would both fill Authorization; give one of them"),
            (unknown, f"unknown placeholder {unknown!r}; did you mean {known}?"),
            (mixed, f"{mixed!r:.60} mixes the question with a scope; write them as two values"),
            (
                not any("{text}" in text for text in written),
                "'{text}' is missing, the question would not be asked; write it into body or params",
            ),
        )

    def check_request(self, setting: str, request: Request) -> None:
        if not isinstance(request.get("url"), str) or not request["url"].startswith(("http://", "https://")):
            raise InputError(f"{self.name}: {setting} has no url that begins with http:// or https://; write one")
        if request.get("method", "GET") not in _METHODS:
            known = nearest(str(request["method"]), _METHODS)
            raise InputError(f"{self.name}: {setting} has the method {request['method']!r:.40}; did you mean {known}?")

    def deciding(self) -> dict[str, Any]:
        return super().deciding() | {"body": template(self.body), "params": template(self.params)}

    @property
    def templates(self) -> Any:
        return [self.body, self.params]

    def answering(self) -> Callable[[Mapping[str, Any]], Any]:
        left = self.deadline()
        return lambda values: self.request(self.method, self.url, left, **_filled(self.body, self.params, values, _PLACE))

    def listed(self, answer: Any) -> Any:
        if self.null_is_empty and at(answer, self.hits, self.name, "the answer", default=None) is None:
            return []
        return super().listed(answer)

    def request(self, method: str, url: str, left: SecondsLeft, **sent: Any) -> Any:
        """Return what a request with the credentials gets in the seconds left; raises SearchFailed."""
        token = self.secret(self.token_env)
        return call(
            self.name,
            method,
            url,
            headers={**(self.headers or {}), **({self.token_header: self.token_prefix + token} if token else {})},
            auth=self.login(self.user_env, self.password_env),
            timeout=round(left(), 2) or 0.01,
            ca_file=self.ca_file,
            secrets=self.secrets(),
            **sent,
        )

    def sent(self, request: Request, values: Mapping[str, Any], *, absent: Any = ...) -> Any:
        # In an address a value must not become a further part of the path.
        quoted = {name: quote(str(value), safe="") for name, value in values.items()}
        body, method = request.get("body"), request.get("method")
        url = filled(request["url"], quoted, place=PLACE)
        if url is None:
            raise InputError(f"{self.name}: a url asks for {sorted(places(request['url'], place=PLACE))}; give a tenant")
        parts = _filled(body, request.get("params"), values, PLACE)
        silent = request is not self.lookup  # who writes or removes a document need not say anything
        try:
            return self.request(method or ("GET" if body is None else "POST"), url, self.deadline(), **parts, silent=silent)
        except BadAnswer as problem:
            if absent is not ... and "answered HTTP 404" in str(problem):
                return absent
            raise

    def secrets(self) -> Iterator[str]:
        """Yield what no message may show: also what the settings write into a request, since a key may be part of it."""
        yield from super().secrets()
        yield from keys_of(self.url)
        for text in texts([self.body, self.params], numbers=True):
            yield from _PLACE.sub("\0", text).split("\0")
        for request in filter(None, (self.plant, self.unplant, self.lookup)):
            yield from keys_of(request["url"])
            for text in texts([request.get("body"), request.get("params")], numbers=True):
                yield from PLACE.sub("\0", text).split("\0")


def _filled(body: Any, params: Any, values: Mapping[str, Any], place: re.Pattern[str]) -> dict[str, Any]:
    """Return the JSON and the parameters of a request; one that is left with nothing to say is still sent."""
    sent: dict[str, Any] = {}
    for name, template_ in (("json", body), ("params", params)):
        if template_ is not None and (template_ or name == "json"):
            made = filled(template_, values, place=place)
            sent[name] = {} if made is None else made
    return sent
