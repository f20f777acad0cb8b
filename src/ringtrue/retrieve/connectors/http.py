"""Any search that answers JSON over HTTP, mapped by a small template.

::

    [connections.shop]
    kind = "http"
    url = "https://search.example.com/find"
    body = {query = "{text}", limit = "{k}", filter = {city = "{scope.city}"}}
    hits = "results.items"
    id = "document.id"

``{text}``, ``{k}`` and ``{scope.NAME}`` are replaced as values of the JSON, so nothing in a question can change its shape.
Where a search has no such scope, the part of the template that asks for it is left out.

Documents are planted by requests of their own (``plant``, ``unplant``, ``lookup``), one for each document, in the same style.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import quote

from ringtrue.errors import BadAnswer, InputError, TimedOut, nearest
from ringtrue.retrieve.connectors.base import hidden
from ringtrue.retrieve.connectors.deciding import template
from ringtrue.retrieve.connectors.passages import Row, enough
from ringtrue.retrieve.connectors.template import QUESTION as _PLACE
from ringtrue.retrieve.connectors.template import filled, places, texts
from ringtrue.retrieve.connectors.web import call, keys_of
from ringtrue.retrieve.connectors.writing import PLACE, Mark, Planted, WritingConnector, check_template, check_tenant, no_mark
from ringtrue.retrieve.protocol import Scope, plain

_LOOKS_LIKE_ONE = re.compile(r"\{[A-Za-z_][\w.]*\}")
_REQUEST = ("url", "method", "body", "params")
_LOOKUP = (*_REQUEST, "source_hash", "tenant")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_SCALARS = (str, int, float, bool)


@dataclass(frozen=True, kw_only=True)
class Http(WritingConnector):
    """A JSON endpoint."""

    ASIDE: ClassVar[frozenset[str]] = WritingConnector.ASIDE | {"headers", "token_header", "token_prefix", "title", "text"}
    TELLING: ClassVar[str] = "say which request shows one, lookup = {url = 'https://…/documents/{id}', source_hash = 'path'}"

    url: str = field(repr=False)
    """Where it is asked, http:// or https://."""
    method: str = ""
    """GET or POST; when empty, POST where there is a body, else GET."""
    body: Mapping[str, Any] | None = hidden()
    """The JSON to send, with placeholders."""
    params: Mapping[str, Any] | None = hidden()
    """What to add to the address (``?q=…``), with placeholders."""
    headers: Mapping[str, str] | None = hidden()
    """Further headers, as they are."""
    hits: str = "hits"
    """Dotted path to the list of hits in the answer; empty when the answer is the list."""
    id: str = "id"
    """Dotted path to the document id in a hit; empty if the hits are the ids themselves."""
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
    null_is_empty: bool = False
    """True where the system says null, or leaves the list out, when it found nothing."""
    token_env: str | None = None
    """Environment variable that holds a token."""
    token_header: str = "Authorization"
    token_prefix: str = "Bearer "
    user_env: str | None = None
    """Environment variables that hold user and password for basic authentication."""
    password_env: str | None = None
    ca_file: str | None = None
    """PEM file of the certificate authority, where it is not one of the usual."""

    plant: Mapping[str, Any] | None = hidden()
    """The request that writes a document: ``{url, method, body, params}`` with {id}, {title}, {text}, {tenant}, {source_hash},
    {metadata} and {metadata.NAME}; without it the system is only read."""
    unplant: Mapping[str, Any] | None = hidden()
    """The request that removes one, in the same words; {id} and {tenant} are known then."""
    lookup: Mapping[str, Any] | None = hidden()
    """The request that shows one, by {id}; 404 says that there is none. ``source_hash`` and ``tenant`` in it are the dotted
    paths to these in the answer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.url, str) or not self.url.startswith(("http://", "https://")):
            raise InputError(
                f"{self.name}: the url is no http:// or https:// address; write it like https://search.example.com/find"
            )
        if not self.method:
            object.__setattr__(self, "method", "GET" if self.body is None else "POST")
        if self.method not in ("GET", "POST"):
            raise InputError(f"{self.name}: method={self.method!r} is not known; write 'GET' or 'POST'")
        for setting in ("body", "params", "headers"):
            if not isinstance(getattr(self, setting) or {}, Mapping):
                raise InputError(f"{self.name}: {setting} is {getattr(self, setting)!r:.40}; write a table of names and values")
        for setting in ("hits", "id", "score", "chunk", "title", "text"):
            if not isinstance(getattr(self, setting), str):
                raise InputError(
                    f"{self.name}: {setting}={getattr(self, setting)!r:.40} is no path; write it like 'results.items'"
                )
        self._check_template()
        self._check_credentials()
        for setting, keys in (("plant", _REQUEST), ("unplant", _REQUEST), ("lookup", _LOOKUP)):
            self._check_request(setting, keys)

    def _check_request(self, setting: str, keys: Sequence[str]) -> None:
        request = getattr(self, setting)
        if request is None:
            return
        check_template(self.name, setting, request)
        for key in request:
            if key not in keys:
                raise InputError(f"{self.name}: {setting} has '{key}', which is not known; did you mean {nearest(key, keys)}?")
        if not isinstance(request.get("url"), str) or not request["url"].startswith(("http://", "https://")):
            raise InputError(f"{self.name}: {setting} has no url that begins with http:// or https://; write one")
        if request.get("method", "GET") not in _METHODS:
            known = nearest(str(request["method"]), _METHODS)
            raise InputError(f"{self.name}: {setting} has the method {request['method']!r:.40}; did you mean {known}?")
        if "id" not in places([request.get(part) for part in ("url", "body", "params")], place=PLACE):
            raise InputError(f"{self.name}: '{{id}}' stands nowhere in {setting}; write where the document's id goes")

    def _check_template(self) -> None:
        if self.method == "GET" and self.body is not None:
            raise InputError(f"{self.name}: a GET has no body; write it as params, or method = 'POST'")
        for key, value in (self.params or {}).items():
            items = value if isinstance(value, list | tuple) else [value]
            if not all(isinstance(item, _SCALARS) for item in items):
                raise InputError(
                    f"{self.name}: the parameter '{key}' is {value!r:.40}; write a text, a number or a list of them"
                )
        for key, value in (self.headers or {}).items():
            if not isinstance(value, str):
                raise InputError(f"{self.name}: the header '{key}' is {value!r:.40}; write a text")
        written = list(texts([self.body, self.params]))
        for text in written:
            if _LOOKS_LIKE_ONE.fullmatch(text) and not _PLACE.fullmatch(text):
                known = nearest(text, ["{text}", "{k}", "{scope.NAME}"])
                raise InputError(f"{self.name}: there is no placeholder {text!r}; did you mean {known}?")
            if "{text}" in text and "{scope." in text:
                raise InputError(f"{self.name}: {text!r:.60} mixes the question with a scope; write them as two values")
        if not any("{text}" in text for text in written):
            raise InputError(
                f"{self.name}: '{{text}}' stands nowhere, the question would not be asked; write it into body or params"
            )

    def _check_credentials(self) -> None:
        if (self.user_env is None) != (self.password_env is None):
            raise InputError(f"{self.name}: only one of user_env and password_env is given; give both or none")
        if self.user_env and self.token_env and self.token_header.lower() == "authorization":
            raise InputError(f"{self.name}: token_env and user_env would both fill Authorization; give one of them")

    def deciding(self) -> dict[str, Any]:
        return super().deciding() | {"body": template(self.body), "params": template(self.params)}

    def ask(self, text: str, *, k: int, scope: Scope | None) -> Iterable[Any]:
        """Return the mapped hits of one request; a blank question is not asked, since most endpoints refuse it."""
        wanted = {f"scope.{name}": plain(str(value)) for name, value in (scope or {}).items()}
        self._check_scope(wanted)
        if not text.strip():
            return []
        end = time.monotonic() + self.timeout

        def fetch(count: int) -> list[Row]:
            answer = self._answer({"text": text, "k": count, **wanted}, end)
            return [self._row(hit, rank) for rank, hit in enumerate(self._list(answer), 1)]

        return enough(fetch, k) if self.chunk and "k" in places([self.body, self.params]) else fetch(k)

    def _answer(self, values: Mapping[str, Any], end: float) -> Any:
        return self.request(
            self.method,
            self.url,
            end,
            json=_or(filled(self.body, values), {}) if self.body is not None else None,
            params=_or(filled(self.params, values), {}) if self.params else None,
        )

    def request(self, method: str, url: str, end: float, **sent: Any) -> Any:
        """Return what a request with the credentials gets until ``end``; raises SearchFailed."""
        left = end - time.monotonic()
        if left <= 0:
            raise TimedOut(f"{self.name} did not answer within {self.timeout:g} s; raise timeout=, or ask why it is slow")
        return call(
            self.name,
            method,
            url,
            headers=self._headers(),
            auth=self._auth(),
            timeout=round(left, 2) or 0.01,
            ca_file=self.ca_file,
            secrets=self.secrets(),
            **sent,
        )

    def check_plant(self, documents: Sequence[Planted]) -> None:
        if self.plant is None:
            raise InputError(
                f"{self.name} is only read; say which request writes a document, "
                "plant = {url = 'https://…/documents', body = {id = '{id}', text = '{text}'}}, and unplant for removing it"
            )
        if self.unplant is None:
            raise InputError(
                f"{self.name} has no unplant, so what is written would stay for ever; say which request removes a document, "
                "unplant = {url = 'https://…/documents/{id}', method = 'DELETE'}"
            )
        if "{source_hash}" not in texts([self.plant.get("body"), self.plant.get("params")]):
            raise no_mark(self.name, "source_hash = '{source_hash}' in its body")
        check_tenant(self.name, "plant", self.plant, documents)

    def resolves(self) -> bool:
        return self.lookup is not None

    def resolve(self, doc_ids: Sequence[str]) -> set[str]:
        return set(self.look_up(doc_ids))

    def looks_up(self) -> bool:
        return "source_hash" in (self.lookup or {})

    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        found: dict[str, Mark] = {}
        for doc_id in ids:
            try:
                answer = self._request(self.lookup or {}, {"id": doc_id}, silent=False)
            except BadAnswer as problem:
                if "answered HTTP 404" in str(problem):
                    continue
                raise
            paths = [(self.lookup or {}).get(name) for name in Mark._fields]
            marks = [at(answer, path, self.name, "the answer to lookup", default=None) if path else None for path in paths]
            found[doc_id] = Mark(*(None if mark is None else str(mark) for mark in marks))
        return found

    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        for document in documents:
            values = document.values()
            self.tried(lambda values=values: self._request(self.plant or {}, values))  # type: ignore[misc]

    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        for doc_id in ids:
            values = {"id": doc_id} if tenant is None else {"id": doc_id, "tenant": tenant}
            try:
                self.tried(lambda values=values: self._request(self.unplant or {}, values))  # type: ignore[misc]
            except BadAnswer as problem:
                if "answered HTTP 404" not in str(problem):  # gone already is gone
                    raise

    def _request(self, request: Mapping[str, Any], values: Mapping[str, Any], *, silent: bool = True) -> Any:
        # In an address a value must not become a further part of the path.
        quoted = {name: quote(str(value), safe="") for name, value in values.items()}
        body = request.get("body")
        method = request.get("method") or ("GET" if body is None else "POST")
        params = request.get("params")
        url = filled(request["url"], quoted, place=PLACE)
        if url is None:
            raise InputError(f"{self.name}: a url asks for {sorted(places(request['url'], place=PLACE))}; give a tenant")
        return self.request(
            method,
            url,
            time.monotonic() + self.timeout,
            json=_or(filled(body, values, place=PLACE), {}) if body is not None else None,
            params=_or(filled(params, values, place=PLACE), {}) if params else None,
            silent=silent,
        )

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

    def _check_scope(self, wanted: Mapping[str, str]) -> None:
        offered = {name for text in texts([self.body, self.params]) for name in _PLACE.findall(text)}
        for name in wanted:
            if name not in offered:
                raise InputError(
                    f"{self.name} cannot be searched within '{name[6:]}'; write '{{{name}}}' into its body or params"
                )

    def _headers(self) -> dict[str, str]:
        token = self.secret(self.token_env)
        return {**(self.headers or {}), **({self.token_header: self.token_prefix + token} if token else {})}

    def _auth(self) -> tuple[str, str] | None:
        user, password = self.secret(self.user_env), self.secret(self.password_env)
        return None if user is None or password is None else (user, password)

    def _list(self, answer: Any) -> list[Any]:
        if self.null_is_empty and at(answer, self.hits, self.name, "the answer", default=None) is None:
            return []
        found = at(answer, self.hits, self.name, "the answer")
        if not isinstance(found, list):
            place = f"'{self.hits}' in its answer" if self.hits else "its answer"
            raise BadAnswer(f"{self.name}: {place} is {shown(found)}, no list; set hits= to the path of the list")
        return found

    def _row(self, hit: Any, rank: int) -> Row:
        where = f"hit {rank}"
        if not self.id:
            if isinstance(hit, Mapping):
                raise BadAnswer(f"{self.name}: {where} is {shown(hit)}; set id= to the path of the id in it")
            return {"doc_id": hit}
        row: Row = {"doc_id": at(hit, self.id, self.name, where)}
        if self.score:
            row["score"] = self._number(at(hit, self.score, self.name, where), where)
        if self.chunk:
            row["chunk"] = at(hit, self.chunk, self.name, where)
        title, text = (at(hit, path, self.name, where, default=None) if path else None for path in (self.title, self.text))
        self.note_passage(row["doc_id"], title, text)
        return row

    def _number(self, value: Any, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1.7e308:
            problem = f"{self.name}: '{self.score}' of {where} is {shown(value)}, no score"
            raise BadAnswer(f"{problem}; set score= to a number in the hit, or to '' where there is none")
        return -float(value) if self.lower_is_better else float(value)


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def at(value: Any, path: str, who: str, where: str, *, default: Any = ...) -> Any:
    """Return what stands at a dotted path (``results.0.items``); raises BadAnswer naming the path and what is there.

    >>> at({"results": [{"id": "d1"}]}, "results.0.id", "shop", "the answer")
    'd1'
    """
    if not path:
        return value
    steps = path.split(".")
    for place, step in enumerate(steps):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif default is not ... and place == len(steps) - 1 and isinstance(value, Mapping):
            return default
        else:
            inside = f"'{'.'.join(steps[:place])}' of {where}" if place else where
            raise BadAnswer(
                f"{who}: {inside} has no '{step}' (path '{path}') but is {shown(value)}; mend the path in its settings"
            )
    return value


def shown(value: Any) -> str:
    """Return a value of an answer for a message: the keys of an object, the length of a list, else the value."""
    if isinstance(value, Mapping):
        keys = ", ".join(repr(key) for key in list(value)[:8])
        return f"an object with {keys:.120}" if keys else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "null" if value is None else f"{value!r:.40}"


__all__ = ["Http", "at", "filled", "shown"]
