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

``MappedConnector`` is what searches that answer JSON share, over HTTP or MCP: where the hits and their parts are (a path like
``results.0.items``), and how documents are planted: by requests of their own (``plant``, ``unplant``, ``lookup``), one each.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from ringtrue.errors import BadAnswer, InputError, nearest
from ringtrue.retrieve.connectors.base import BasicLogin, Row, enough
from ringtrue.retrieve.connectors.deciding import template
from ringtrue.retrieve.connectors.settings import QUESTION as _PLACE
from ringtrue.retrieve.connectors.settings import Url, asked_for, filled, places, texts
from ringtrue.retrieve.connectors.web import keys_of
from ringtrue.retrieve.connectors.writing import PLACE, Mark, Planted, WritingConnector, check_template, check_tenant, no_mark
from ringtrue.retrieve.protocol import Scope

Request = Mapping[str, Any]
"""A request with placeholders, as ``plant``, ``unplant`` and ``lookup`` hold it."""


@dataclass(frozen=True, kw_only=True)
class MappedConnector(WritingConnector):
    """A search whose answer is JSON; settings say where the hits are in it."""

    ASIDE: ClassVar[frozenset[str]] = WritingConnector.ASIDE | {"title", "text"}
    REQUEST: ClassVar[tuple[str, ...]] = ()
    """The parts of a request."""
    FILLED: ClassVar[tuple[str, ...]] = ()
    """Those parts of a request that a question or a document is filled into; settings of these names ask the question."""
    EXAMPLE: ClassVar[str] = ""
    """A request that writes a document."""
    ONE_BY_ONE: ClassVar[bool] = True

    hits: str = ""
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
    plant: Mapping[str, Any] | None = field(default=None, repr=False)
    """The request that writes a document, with {id}, {title}, {text}, {tenant}, {source_hash}, {metadata} and {metadata.NAME};
    without it the system is only read."""
    unplant: Mapping[str, Any] | None = field(default=None, repr=False)
    """The request that removes one, in the same words; {id} and {tenant} are known then."""
    lookup: Mapping[str, Any] | None = field(default=None, repr=False)
    """The request that shows one, by {id}. ``source_hash`` and ``tenant`` in it are the dotted paths to these in the answer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for setting in ("plant", "unplant", "lookup"):
            request = getattr(self, setting)
            if request is None:
                continue
            check_template(self.name, setting, request)
            known = (*self.REQUEST, *(Mark._fields if setting == "lookup" else ()))
            for key in request:
                if key not in known:
                    raise InputError(f"{self.name}: {setting} has an unknown '{key}'; did you mean {nearest(key, known)}?")
            self.check_request(setting, request)
            if "id" not in places([request.get(part) for part in self.REQUEST], place=PLACE):
                raise InputError(f"{self.name}: {setting} has no '{{id}}'; write where the document's id goes")

    @abstractmethod
    def check_request(self, setting: str, request: Request) -> None:
        """Raise InputError for a request that cannot be sent."""

    @abstractmethod
    def sent(self, request: Request, values: Mapping[str, Any], *, absent: Any = ...) -> Any:
        """Return the answer to a request with its placeholders filled; ``absent`` if the system says that it has no such."""

    @property
    def templates(self) -> list[Any]:
        """The settings that a question is filled into."""
        return [getattr(self, part) for part in self.FILLED]

    @abstractmethod
    def answering(self) -> Callable[[Mapping[str, Any]], Any]:
        """Return what asks once for an answer, with the values of the placeholders; the time of the attempt begins now."""

    def ask(self, text: str, *, k: int, scope: Scope | None) -> list[Row]:
        """Return the mapped hits."""
        wanted = asked_for(self.name, scope, self.templates, " or ".join(self.FILLED))
        answer = self.answering()

        def fetch(count: int) -> list[Row]:
            return self.rows(answer({"text": text, "k": count, **wanted}))

        return enough(fetch, k) if self.chunk and "k" in places(self.templates) else fetch(k)

    # Hits

    def rows(self, answer: Any) -> list[Row]:
        """Return the hits of an answer."""
        found = self.listed(answer)
        if not isinstance(found, list):
            place = f"'{self.hits}' in its answer" if self.hits else "its answer"
            raise BadAnswer(f"{self.name}: {place} is {shown(found)}, no list; set hits= to the path of the list")
        return [self._row(hit, f"hit {rank}") for rank, hit in enumerate(found, 1)]

    def listed(self, answer: Any) -> Any:
        """Return what should be the list of hits."""
        return at(answer, self.hits, self.name, "the answer")

    def _row(self, hit: Any, where: str) -> Row:
        if not self.id:
            if isinstance(hit, Mapping):
                raise BadAnswer(f"{self.name}: {where} is {shown(hit)}; set id= to the path of the id in it")
            return {"doc_id": hit}
        row: Row = {"doc_id": at(hit, self.id, self.name, where)}
        if self.score:
            value = at(hit, self.score, self.name, where)
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1.7e308:
                problem = f"{self.name}: '{self.score}' of {where} is {shown(value)}, no score"
                raise BadAnswer(f"{problem}; set score= to a number in the hit, or to '' if there is none")
            row["score"] = -float(value) if self.lower_is_better else float(value)
        if self.chunk:
            row["chunk"] = at(hit, self.chunk, self.name, where)
        title, text = (at(hit, path, self.name, where, default=None) if path else None for path in (self.title, self.text))
        self.note_passage(row["doc_id"], title, text)
        return row

    # Planting

    def check_plant(self, documents: Sequence[Planted]) -> None:
        for setting, does in (("plant", "writes"), ("unplant", "removes")):
            if getattr(self, setting) is None:
                problem = "is read-only" if setting == "plant" else "has no unplant, so what is written would stay for ever"
                cure = f"say which request {does} a document, {setting} = {self.EXAMPLE}"
                raise InputError(f"{self.name} {problem}; {cure}")
        if "{source_hash}" not in texts([(self.plant or {}).get(part) for part in self.FILLED]):
            raise no_mark(self.name, "a value like hash = '{source_hash}'")
        check_tenant(self.name, "plant", self.plant, documents)

    def resolves(self) -> bool:
        return self.lookup is not None

    def looks_up(self) -> bool:
        return "source_hash" in (self.lookup or {})

    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        request = self.lookup or {}
        found: dict[str, Mark] = {}
        for doc_id in ids:
            answer = self.sent(request, {"id": doc_id}, absent=None)
            if answer is not None:
                paths = (request.get(name) for name in Mark._fields)
                marks = (at(answer, path, self.name, "the answer to lookup", default=None) if path else None for path in paths)
                found[doc_id] = Mark(*(None if mark is None else str(mark) for mark in marks))
        return found

    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        for document in documents:
            self.sent(self.plant or {}, document.values())

    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        for doc_id in ids:
            self.sent(self.unplant or {}, {"id": doc_id} if tenant is None else {"id": doc_id, "tenant": tenant}, absent=None)


def at(value: Any, path: str, who: str, where: str, *, default: Any = ...) -> Any:
    """Return what is at a dotted path (``results.0.items``); raises BadAnswer naming the path and what is there.

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
                f"{who}: {inside} has no '{step}' (path '{path}') but is {shown(value)}; correct the path in its settings"
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


_LOOKS_LIKE_ONE = re.compile(r"\{[A-Za-z_][\w.]*\}")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True, kw_only=True)
class Http(BasicLogin, MappedConnector):
    """A JSON endpoint."""

    ASIDE: ClassVar[frozenset[str]] = MappedConnector.ASIDE | {"headers", "token_header", "token_prefix"}
    TELLING: ClassVar[str] = "say which request shows one, lookup = {url = 'https://…/documents/{id}', source_hash = 'path'}"
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
    token_header: str = "Authorization"
    token_prefix: str = "Bearer "

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

    def answering(self) -> Callable[[Mapping[str, Any]], Any]:
        left = self.deadline()
        return lambda values: self.request(self.method, self.url, left, **_filled(self.body, self.params, values, _PLACE))

    def listed(self, answer: Any) -> Any:
        if self.null_is_empty and at(answer, self.hits, self.name, "the answer", default=None) is None:
            return []
        return super().listed(answer)

    def credentials(self) -> dict[str, str]:
        token = self.secret(self.token_env)
        return {**(self.headers or {}), **({self.token_header: self.token_prefix + token} if token else {})}

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
