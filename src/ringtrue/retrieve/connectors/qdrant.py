"""Qdrant through its own client: a server, a local folder, or a client that the program already has."""

from __future__ import annotations

import atexit
import json
import logging
import ssl
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from ringtrue.errors import AccessDenied, BadAnswer, InputError, MissingInput, SearchFailed, TimedOut, Unreachable, nearest
from ringtrue.retrieve.connectors.base import Kept, Row, enough, field_of, readings
from ringtrue.retrieve.connectors.objects import THREAD, failure, within
from ringtrue.retrieve.connectors.settings import Text, Url
from ringtrue.retrieve.connectors.writing import Mark, Planted, VectorConnector
from ringtrue.retrieve.library import library
from ringtrue.retrieve.protocol import Scope

T = TypeVar("T")
_opening = threading.Lock()
_folders: dict[Path, Any] = {}
"""Open local folders: a folder can be opened once in a process, and is shared by all who search it."""
_LOGGERS = ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))
_DISTANCES = ("Euclid", "Manhattan")
"""Metrics whose scores are smaller for nearer points."""


class QdrantVectors(NamedTuple):
    """What must be known of a collection's vectors before they can be searched."""

    size: int
    distance: str


@dataclass(frozen=True, kw_only=True)
class Qdrant(VectorConnector):
    """A collection of Qdrant, searched by vector.

    Scores are Qdrant's: the cosine or the dot product; Euclidean and Manhattan distances are negated.
    """

    PATHS: ClassVar[tuple[str, ...]] = ("path", "ca_file")

    url: Url | None = field(default=None, repr=False)
    """The server, like https://qdrant.example.com:6333."""
    path: Text | None = field(default=None, repr=False)
    """A folder of the client's local mode."""
    client: Any = field(default=None, repr=False, hash=False)
    """A QdrantClient of the program, from Python; its own time limits and credentials hold."""
    collection: Text
    """The name of the collection."""
    vector: Text | None = None
    """The name of the vector, where points have several."""
    document: Text | None = None
    """The payload field that holds the document id, as a name or a dotted path; without it the point's own id."""
    chunk: Text | None = None
    """The payload field that names the passage; without it, where document= is given, the point's own id."""
    api_key_env: str | None = None
    """The environment variable that holds the API key."""
    ca_file: str | None = None
    """Certificates to trust instead of the system's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [name for name in ("url", "path", "client") if getattr(self, name) is not None]
        self.refuse(
            (len(given) != 1, f"needs one of url=, path= and client=, and has {' and '.join(given) or 'none'}; give one"),
            (
                self.path == ":memory:",
                "an engine in memory starts empty; fill a QdrantClient(':memory:') and pass it as client=",
            ),
        )

    def ask(self, text: str, *, k: int, scope: Scope | None) -> Iterable[Row]:
        if not text.strip():  # a blank text has no meaning that a vector could carry
            return []
        vector = self.query_vector(text)
        return self._asked(lambda client: self._nearest(client, vector, k, scope))

    def resolve(self, doc_ids: Sequence[str]) -> set[str]:
        if self.document is None:
            return {str(point.id) for point in self._retrieved([doc_id for doc_id in doc_ids if _is_point(doc_id)])}
        name = self.document
        models = _library().models
        readable: list[Any] = [value for doc_id in doc_ids for value in readings(doc_id)]
        kinds = [[value for value in readable if type(value) is kind] for kind in (str, int)]
        same = [models.FieldCondition(key=name, match=models.MatchAny(any=values)) for values in kinds if values]
        page = {"scroll_filter": models.Filter(should=same), "limit": 1000, "with_payload": _with_parents([name])}

        def scroll(client: Any) -> set[str]:
            found: set[str] = set()
            offset = None
            while True:
                points, offset = client.scroll(self.collection, offset=offset, **page)
                found |= {str(field_of(point.payload or {}, name, self.name, "document")) for point in points}
                if offset is None:
                    return found

        return self._asked(scroll)

    def check_plant(self, documents: Sequence[Planted]) -> None:
        super().check_plant(documents)
        if self.document is None:
            raise InputError(
                f"{self.name}: ids of planted documents are texts, and Qdrant's are numbers or UUIDs; "
                "name a payload field for them, document = 'doc_id'"
            )

    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        points = {_point(doc_id): doc_id for doc_id in ids}
        found = self._retrieved(list(points))
        return {points[str(point.id)]: self.mark_of(point.payload or {}) for point in found}

    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        models, points = _library().models, []
        for document, vector in zip(documents, self.document_vectors(documents), strict=True):
            payload = self.record(document)
            for name in (self.document, self.chunk):
                _set(payload, name, document.id)
            named: Any = {self.vector: vector} if self.vector else vector
            points.append(models.PointStruct(id=_point(document.id), vector=named, payload=payload))

        def upsert(client: Any) -> None:
            self.check_size(self._vectors(client).size, vector)
            client.upsert(self.collection, points, wait=True)

        self._asked(upsert)

    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        chosen = _library().models.PointIdsList(points=[_point(doc_id) for doc_id in ids])
        self._asked(lambda client: client.delete(self.collection, chosen, wait=True))

    def _retrieved(self, ids: Sequence[str]) -> list[Any]:
        keys = [int(doc_id) if doc_id.isdecimal() else doc_id for doc_id in ids]
        return self._asked(lambda client: list(client.retrieve(self.collection, keys, with_payload=True))) if keys else []

    def _nearest(self, client: Any, vector: list[float], k: int, scope: Scope | None) -> list[Row]:
        found = self._vectors(client)
        self.check_size(found.size, vector)
        sign = -1 if found.distance in _DISTANCES else 1
        fields = [name for name in (self.document, self.chunk) if name]

        def fetch(count: int) -> list[Row]:
            answer = client.query_points(
                self.collection,
                query=vector,
                using=self.vector,
                query_filter=_filter(scope),
                limit=count,
                with_payload=_with_parents(fields) or False,
            )
            return [self._row(point, sign) for point in answer.points]

        return enough(fetch, k)

    def _row(self, point: Any, sign: int) -> Row:
        payload = point.payload or {}
        row: Row = {"doc_id": point.id, "score": sign * point.score}
        if self.document is not None:
            row |= {"doc_id": field_of(payload, self.document, self.name, "document"), "chunk": point.id}
        if self.chunk is not None:
            row["chunk"] = field_of(payload, self.chunk, self.name, "chunk")
        return row

    def _vectors(self, client: Any) -> QdrantVectors:
        """Return size and metric of the vector that is searched, and remember them."""

        def read() -> QdrantVectors:
            described = client.get_collection(self.collection).config.params.vectors
            if isinstance(described, Mapping):
                if self.vector not in described:
                    there = nearest(self.vector or "", described) if described else "none"
                    raise InputError(
                        f"{self.name}: points of '{self.collection}' have no vector '{self.vector or ''}'; say vector = {there}"
                    )
                described = described[self.vector]
            elif self.vector is not None:
                raise InputError(
                    f"{self.name}: points of '{self.collection}' have one vector without a name; leave out vector="
                )
            if described is None:
                raise InputError(f"{self.name}: points of '{self.collection}' have no dense vectors; name another collection")
            return QdrantVectors(described.size, getattr(described.distance, "value", str(described.distance)))

        kept: Kept[QdrantVectors] = self.kept("vectors", lambda _: None)
        return kept.get(read)

    def _asked(self, action: Callable[[Any], T]) -> T:
        """Return what an action with the client returns; raises its exceptions as ours, without addresses and keys."""
        client = self.client
        if client is None:
            # Not closed with the connector: a folder is shared by all who search it.
            client = self.kept("client", lambda _: None).get(self._server if self.path is None else self._folder)
        # The client's own limit counts whole seconds and single reads; the whole attempt is limited here.
        return within(self, lambda: action(client), self._failure)

    def _server(self) -> Any:
        options: dict[str, Any] = {}
        key = self.secret(self.api_key_env)
        if key is not None:
            options["headers"] = {"api-key": key}  # api_key= warns on every plain http address, also on the loopback
        if self.ca_file is not None:
            try:
                options["verify"] = ssl.create_default_context(cafile=self.ca_file)
            except OSError as problem:
                raise InputError(
                    f"{self.name}: ca_file={self.ca_file!r:.80} holds no certificates; name a PEM file"
                ) from problem
        return _library().QdrantClient(
            url=self.url, timeout=max(1, round(self.timeout + 0.5)), check_compatibility=False, **options
        )

    def _folder(self) -> Any:
        folder = Path(self.path or "").expanduser().resolve()
        if not folder.is_dir():  # the client would make it
            raise MissingInput(f"{self.name}: the folder of path= is not there; check it, or write url= for a server")
        with _opening:
            if folder not in _folders:
                client = _library().QdrantClient
                try:
                    _folders[folder] = client(path=str(folder), force_disable_check_same_thread=True)
                except RuntimeError as problem:
                    raise Unreachable(
                        f"{self.name}: another process has the folder open; stop it, or run a Qdrant server"
                    ) from problem
                atexit.register(_folders[folder].close)  # left to itself, it complains when the interpreter ends
            return _folders[folder]

    def _failure(self, problem: BaseException) -> SearchFailed:
        status = getattr(problem, "status_code", None)
        if isinstance(status, int):
            return self._refused(status, _said(getattr(problem, "content", b"")))
        code = getattr(problem, "code", None)
        if callable(code):  # gRPC
            return self._refused(_GRPC.get(getattr(code(), "name", ""), 400))
        source = getattr(problem, "source", None)  # what the client's HTTP library raised
        kind, kinds = type(source or problem).__name__, {kind.__name__ for kind in type(source).__mro__}
        if kind == "ResourceExhaustedResponse":
            return self._refused(429)
        if "TimeoutException" in kinds:
            return self._refused(408)
        if "CERTIFICATE_VERIFY_FAILED" in str(source):
            return Unreachable(f"{self.name} has a TLS certificate that is not trusted; name its authority in ca_file=")
        if "TransportError" in kinds:
            return Unreachable(f"{self.name} cannot be reached ({kind}); check that it runs and the address is right")
        if source is not None or isinstance(problem, json.JSONDecodeError):
            return BadAnswer(f"{self.name} answered what is no answer of Qdrant ({kind}); check that the url is Qdrant's")
        if isinstance(problem, ValueError) and self.url is None:  # the local engine's word for whatever is wrong
            said = " ".join(str(problem).split())
            return BadAnswer(f"{self.name} cannot answer ({said:.120}); check collection= and vector=")
        return failure(self.name, problem)

    def _refused(self, status: int, said: str = "") -> SearchFailed:
        if status in (401, 403):
            return AccessDenied(
                f"{self.name} refused the credentials ({status}); check the environment variable of api_key_env="
            )
        if status == 408:
            return TimedOut(f"{self.name} did not answer in time; raise timeout=, or ask why it is slow")
        if status == 404:
            return BadAnswer(f"{self.name} has no collection '{self.collection}' (404{said}); check collection= and the url")
        if status == 429 or status >= 500:
            return Unreachable(f"{self.name} answered {status}{said}; try again later")
        return BadAnswer(f"{self.name} answered {status}{said}; check its settings")


_GRPC = {
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "DEADLINE_EXCEEDED": 408,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
}


def _point(doc_id: str) -> str:
    """Return the id of a planted document's point: Qdrant takes no texts, and the same document must get the same point."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"ringtrue:{doc_id}"))


def _is_point(doc_id: str) -> bool:
    if doc_id.isascii() and doc_id.isdecimal():
        return int(doc_id) < 2**64
    try:
        return str(uuid.UUID(doc_id)) == doc_id.lower()
    except ValueError:
        return False


def _set(payload: dict[str, Any], path: str | None, value: Any) -> None:
    """Put a value at a dotted path of a payload."""
    if path is None:
        return
    *parents, last = path.split(".")
    for part in parents:
        payload = payload.setdefault(part, {})
    payload[last] = value


def _said(content: bytes) -> str:
    """Return what Qdrant's error says, ``{"status": {"error": …}}``, for use in a message."""
    try:
        said = json.loads(content)["status"]["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return f": {' '.join(str(said).split()):.120}"


def _with_parents(fields: Sequence[str]) -> list[str]:
    """Return payload fields to ask for: a nested one cannot be told from a name with a dot, its first part holds both."""
    return sorted({part for name in fields for part in (name, name.split(".")[0])})


def _filter(scope: Scope | None) -> Any:
    """Return Qdrant's filter of a scope; names and values are never read as anything else."""
    if not scope:
        return None
    models = _library().models

    def condition(name: str, value: object) -> Any:
        # Qdrant matches texts, whole numbers and truth values exactly; fractions it only compares.
        same = [
            models.FieldCondition(key=name, match=models.MatchValue(value=reading))
            for reading in readings(value)
            if not isinstance(reading, float)
        ]
        return same[0] if len(same) == 1 else models.Filter(should=same)

    return models.Filter(must=[condition(name, value) for name, value in scope.items()])


def _library() -> Any:
    found = library("qdrant_client", "qdrant", package="qdrant-client")
    for name in _LOGGERS:  # they write addresses and keys; what the program asks for itself is not touched
        logger = logging.getLogger(name)
        if _quiet not in logger.filters:
            logger.addFilter(_quiet)
    return found


def _quiet(record: logging.LogRecord) -> bool:
    return not (record.threadName or "").startswith(THREAD)
