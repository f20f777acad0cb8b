"""Qdrant through its REST API: the query's vector is made here, the collection's own index finds the nearest points."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

from ringtrue.errors import BadAnswer, InputError, nearest
from ringtrue.retrieve.connectors.base import JsonApi, Row, SecondsLeft, enough, field_of, readings
from ringtrue.retrieve.connectors.settings import Text, Url
from ringtrue.retrieve.connectors.writing import Mark, Planted, VectorConnector
from ringtrue.retrieve.protocol import Scope

PAGE = 1000
"""Points that are read at once."""
_DISTANCES = ("Euclid", "Manhattan")
"""Metrics whose scores are smaller for nearer points."""


class QdrantVectors(NamedTuple):
    """What must be known of a collection's vectors before they can be searched."""

    size: int
    distance: str


@dataclass(frozen=True, kw_only=True)
class Qdrant(JsonApi, VectorConnector):
    """A collection of Qdrant, searched by vector.

    Scores are Qdrant's: the cosine or the dot product; Euclidean and Manhattan distances are negated.
    """

    url: Url = field(repr=False)
    """The server, like https://qdrant.example.com:6333."""
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

    def ask(self, text: str, *, k: int, scope: Scope | None) -> Iterable[Row]:
        vector, left = self.query_vector(text), self.deadline()
        known = self._vectors(left)
        self.check_size(known.size, vector)
        fields = [name for name in (self.document, self.chunk) if name]
        question: dict[str, Any] = {"query": vector, "with_payload": _with_parents(fields) or False}
        question |= {"using": self.vector} if self.vector else {}
        question |= {"filter": _filter(scope)} if scope else {}
        sign = -1 if known.distance in _DISTANCES else 1

        def fetch(count: int) -> list[Row]:
            answer = self._call("POST", "/points/query", left, {**question, "limit": count})
            return [self._row(point, sign) for point in self._points(answer, "points")]

        return enough(fetch, k)

    def resolve(self, doc_ids: Sequence[str]) -> set[str]:
        name = self.document
        if name is None:
            return {str(point["id"]) for point in self._retrieved([doc_id for doc_id in doc_ids if _is_point(doc_id)])}
        readable: list[Any] = [value for doc_id in doc_ids for value in readings(doc_id)]
        kinds = [[value for value in readable if type(value) is kind] for kind in (str, int)]
        same = [{"key": name, "match": {"any": values}} for values in kinds if values]
        page = {"filter": {"should": same}, "limit": PAGE, "with_payload": _with_parents([name])}
        return {str(field_of(point.get("payload") or {}, name, self.name, "document")) for point in self._scrolled(page)}

    def check_plant(self, documents: Sequence[Planted]) -> None:
        super().check_plant(documents)
        if self.document is None:
            raise InputError(
                f"{self.name}: ids of planted documents are texts, and Qdrant's are numbers or UUIDs; "
                "name a payload field for them, document = 'doc_id'"
            )

    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        points = {_point(doc_id): doc_id for doc_id in ids}
        return {points[str(point["id"])]: self.mark_of(point.get("payload") or {}) for point in self._retrieved(list(points))}

    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        left, points = self.deadline(), []
        for document, vector in zip(documents, self.document_vectors(documents), strict=True):
            self.check_size(self._vectors(left).size, vector)
            payload = self.record(document)
            for name in (self.document, self.chunk):
                _set(payload, name, document.id)
            named: Any = {self.vector: vector} if self.vector else vector
            points.append({"id": _point(document.id), "vector": named, "payload": payload})
        self._call("PUT", "/points?wait=true", left, {"points": points})

    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        self._call("POST", "/points/delete?wait=true", self.deadline(), {"points": [_point(doc_id) for doc_id in ids]})

    def _retrieved(self, ids: Sequence[str]) -> list[Any]:
        keys = [int(doc_id) if doc_id.isdecimal() else doc_id for doc_id in ids]
        return self._points(self._call("POST", "/points", self.deadline(), {"ids": keys, "with_payload": True})) if keys else []

    def _scrolled(self, page: Mapping[str, Any]) -> Iterator[Any]:
        left, offset = self.deadline(), None
        while True:
            answer = self._call("POST", "/points/scroll", left, {**page, "offset": offset} if offset is not None else page)
            yield from self._points(answer, "points")
            offset = answer.get("next_page_offset")
            if offset is None:
                return

    def _row(self, point: Any, sign: int) -> Row:
        payload = point.get("payload") or {}
        row: Row = {"doc_id": point["id"], "score": sign * point["score"]}
        if self.document is not None:
            row |= {"doc_id": field_of(payload, self.document, self.name, "document"), "chunk": point["id"]}
        if self.chunk is not None:
            row["chunk"] = field_of(payload, self.chunk, self.name, "chunk")
        return row

    def _vectors(self, left: SecondsLeft) -> QdrantVectors:
        """Return size and metric of the vector that is searched, and remember them."""
        if "_known" not in self.__dict__:
            self.__dict__["_known"] = self._described(self._call("GET", "", left))
        found: QdrantVectors = self.__dict__["_known"]
        return found

    def _described(self, said: Any) -> QdrantVectors:
        here = f"{self.name}: points of '{self.collection}'"
        try:
            described = said["config"]["params"].get("vectors") or {}
            if "size" in described and self.vector is not None:
                raise InputError(f"{here} have one vector without a name; leave out vector=")
            if "size" not in described and self.vector not in described:
                there = nearest(self.vector or "", described) if described else "none"
                raise InputError(f"{here} have no vector '{self.vector or ''}'; set vector = {there}")
            found = described if self.vector is None else described[self.vector]
            return QdrantVectors(int(found["size"]), str(found["distance"]))
        except (TypeError, KeyError, AttributeError):
            raise self._strange(said) from None

    def _points(self, answer: Any, *path: str) -> list[Any]:
        """Return the points in an answer; raises BadAnswer if it is none of Qdrant's."""
        try:
            found = answer[path[0]] if path else answer
            if all("id" in point for point in found):
                return list(found)
        except (TypeError, KeyError):
            pass
        raise self._strange(answer)

    def _strange(self, answer: Any) -> BadAnswer:
        return BadAnswer(
            f"{self.name} answered {answer!r:.60}, which is not an answer of Qdrant; check that the url is Qdrant's"
        )

    def credentials(self) -> dict[str, str]:
        key = self.secret(self.api_key_env)
        return super().credentials() if key is None else {"api-key": key}

    def _call(self, method: str, path: str, left: SecondsLeft, json: Any = None) -> Any:
        place = f"{self.url.rstrip('/')}/collections/{quote(self.collection, safe='')}"
        try:
            answer = self.request(method, f"{place}{path}", left, json=json)
        except BadAnswer as problem:
            if "HTTP 404" in str(problem):
                said = f"{self.name} has no collection '{self.collection}'"
                raise BadAnswer(f"{said}; check collection= and the url") from problem
            raise
        if not isinstance(answer, dict) or "result" not in answer:
            raise self._strange(answer)
        return answer["result"]


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


def _with_parents(fields: Sequence[str]) -> list[str]:
    """Return payload fields to ask for: a nested one cannot be told from a name with a dot, its first part holds both."""
    return sorted({part for name in fields for part in (name, name.split(".")[0])})


def _filter(scope: Scope) -> dict[str, Any]:
    """Return Qdrant's filter of a scope; names and values are never read as anything else."""

    def condition(name: str, value: object) -> dict[str, Any]:
        # Qdrant matches texts, whole numbers and truth values exactly; fractions it only compares.
        values = [reading for reading in readings(value) if not isinstance(reading, float)]
        same = [{"key": name, "match": {"value": reading}} for reading in values]
        return same[0] if len(same) == 1 else {"should": same}

    return {"must": [condition(name, value) for name, value in scope.items()]}
