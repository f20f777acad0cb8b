"""Chroma through its REST API v2: the query's vector is made here, the collection's own index finds the nearest records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple
from urllib.parse import quote

from ringtrue.errors import BadAnswer, InputError
from ringtrue.retrieve.connectors.base import JsonApi, Row, SecondsLeft, enough, field_of, readings
from ringtrue.retrieve.connectors.settings import Rule, Text, Url
from ringtrue.retrieve.connectors.writing import Mark, Planted, VectorConnector
from ringtrue.retrieve.protocol import Scope

Name = Annotated[Text, Rule(lambda name: name not in (".", ".."), "a name")]
SPACES = ("cosine", "ip", "l2")
PAGE = 300
"""Records that are read at once; Chroma's own service allows no more."""
HEADERS = {"x-chroma-token": "", "authorization": "Bearer "}
"""The headers Chroma's clients send a token in, and what stands before it."""


class ChromaCollection(NamedTuple):
    """What must be known of a collection before it can be asked."""

    id: str
    space: str
    dimension: int | None


@dataclass(frozen=True, kw_only=True)
class Chroma(JsonApi, VectorConnector):
    """A collection of a Chroma server.

    Scores are similarities: the cosine, the inner product, or the negative squared distance, as the collection measures.
    """

    ASIDE: ClassVar[frozenset[str]] = VectorConnector.ASIDE | {"token_header"}

    url: Url = field(default="http://localhost:8000", repr=False)
    """The server, without a path: https://chroma.example.com."""
    collection: Name
    """The name of the collection."""
    tenant: Name = "default_tenant"
    database: Name = "default_database"
    document: Text | None = None
    """The metadata field that holds the document id where records are passages; the record id then names the passage."""
    token_header: str = "x-chroma-token"
    """The header of the token: 'x-chroma-token', or 'Authorization' to send it as a bearer token."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.token_header.lower() not in HEADERS:
            raise InputError(f"{self.name}: token_header={self.token_header!r:.60}; write 'x-chroma-token' or 'Authorization'")

    def ask(self, text: str, *, k: int, scope: Scope | None) -> Iterable[Row]:
        where = self._where(scope)
        vector, left = self.query_vector(text), self.deadline()
        known = self.__dict__.get("_found")
        found = known or self._described(left)
        try:
            return self._nearest(found, vector, k, where, left)
        except BadAnswer:
            # A collection that was dropped and made again has another id; one that was just looked up has not.
            again = self._described(left) if known else found
            if again.id == found.id:
                raise
        return self._nearest(again, vector, k, where, left)

    def resolve(self, doc_ids: Sequence[str]) -> set[str]:
        if self.document is None:
            return set(self._got({"ids": list(doc_ids)}))
        values = [value for doc_id in doc_ids for value in readings(doc_id)]
        # A list that Chroma compares with has values of one type.
        kinds = [[value for value in values if type(value) is kind] for kind in (str, int, float)]
        same = [{self.document: {"$in": of_kind}} for of_kind in kinds if of_kind]
        where = same[0] if len(same) == 1 else {"$or": same}
        name = self.document
        return {str(metadata[name]) for metadata in self._got({"where": where}).values() if name in metadata}

    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        return {record: self.mark_of(metadata) for record, metadata in self._got({"ids": list(ids)}).items()}

    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        vectors = self.document_vectors(documents)
        metadata = [self.record(document, self.document, scalars=True) for document in documents]
        texts, ids = [document.whole for document in documents], [document.id for document in documents]
        left = self.deadline()
        found = self._described(left)
        self.check_size(found.dimension, vectors[0])
        # A field that is no longer written would stay: an upsert adds to the metadata that is there.
        if old := [doc_id for doc_id in ids if doc_id in there]:
            self._post(found, "delete", left, {"ids": old})
        body = {"ids": ids, "embeddings": vectors, "documents": texts, "metadatas": metadata}
        self._post(found, "upsert", left, body)

    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        left = self.deadline()
        self._post(self._described(left), "delete", left, {"ids": list(ids)})

    def _got(self, wanted: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """Return the metadata of records by their ids."""
        left = self.deadline()
        collection = self._described(left)
        found: dict[str, Mapping[str, Any]] = {}
        while True:
            asked = {**wanted, "include": ["metadatas"], "limit": PAGE, "offset": len(found)}
            page = self._records(self._post(collection, "get", left, asked), ("ids", "metadatas"))
            found |= {str(key): metadata or {} for key, metadata in page}
            if len(page) < PAGE:
                return found

    def _nearest(self, found: ChromaCollection, vector: list[float], k: int, where: Any, left: SecondsLeft) -> list[Row]:
        self.check_size(found.dimension, vector)
        question: dict[str, Any] = {"query_embeddings": [vector], "include": ["metadatas", "distances"]}
        if where is not None:
            question["where"] = where

        def fetch(count: int) -> list[Row]:
            answer = self._post(found, "query", left, {**question, "n_results": count})
            records = self._records(answer, ("ids", "distances", "metadatas"), question=0)
            return [self._row(found.space, *record) for record in records]

        return enough(fetch, k)

    def _described(self, left: SecondsLeft) -> ChromaCollection:
        """Return the collection's id and metric, and remember them."""
        said = self._call("GET", quote(self.collection, safe=""), left)
        if not isinstance(said, Mapping) or not isinstance(said.get("id"), str):
            raise BadAnswer(
                f"{self.name} described collection '{self.collection}' without an id; check that the url is Chroma's"
            )
        dimension = said.get("dimension")
        found = ChromaCollection(said["id"], self._space(said), dimension if isinstance(dimension, int) else None)
        if found.dimension is not None:  # an empty collection has none yet, and is looked up again
            self.__dict__["_found"] = found
        return found

    def _space(self, said: Mapping[str, Any]) -> str:
        configuration = said.get("configuration_json") or {}
        places = [configuration.get(index) or {} for index in ("hnsw", "spann")] if isinstance(configuration, Mapping) else []
        places.append({"space": (said.get("metadata") or {}).get("hnsw:space")})
        space = next((place["space"] for place in places if place.get("space")), "l2")  # Chroma's own default
        if space not in SPACES:
            raise BadAnswer(f"{self.name} measures by {space!r:.40}, which is not known here; known are {', '.join(SPACES)}")
        return str(space)

    def _records(self, answer: Any, names: Sequence[str], *, question: int | None = None) -> list[tuple[Any, ...]]:
        """Return these values of every record in an answer, or in its part about one question."""
        try:
            columns = [answer[name] if question is None else answer[name][question] for name in names]
            return list(zip(*columns, strict=True))
        except (TypeError, KeyError, IndexError, ValueError) as problem:
            raise BadAnswer(
                f"{self.name} answered {answer!r:.60}, which has no {', '.join(names[:-1])} and {names[-1]} of one length; "
                "check that the url is Chroma's"
            ) from problem

    def _row(self, space: str, record: Any, distance: Any, metadata: Any) -> Row:
        if isinstance(distance, bool) or not isinstance(distance, int | float):
            raise BadAnswer(f"{self.name} answered the distance {distance!r:.40} of record '{record}'; it must be a number")
        score = -distance if space == "l2" else 1 - distance
        if self.document is None:
            return {"doc_id": record, "score": score}
        doc_id = field_of(metadata or {}, self.document, self.name, "document")
        return {"doc_id": doc_id, "score": score, "chunk": record}

    def _where(self, scope: Scope | None) -> Any:
        """Return Chroma's filter of a scope; names and values are never read as operators."""
        clauses: list[Any] = []
        for name, value in (scope or {}).items():
            if not name or name.startswith("$"):
                raise InputError(
                    f"{self.name}: scope names the field '{name}', which no record can have; name a metadata field"
                )
            same = [{name: {"$eq": reading}} for reading in readings(value)]
            clauses.append(same[0] if len(same) == 1 else {"$or": same})
        return None if not clauses else clauses[0] if len(clauses) == 1 else {"$and": clauses}

    def _post(self, found: ChromaCollection, action: str, left: SecondsLeft, json: Any) -> Any:
        return self._call("POST", f"{quote(found.id, safe='')}/{action}", left, json)

    def credentials(self) -> dict[str, str]:
        token, header = self.secret(self.token_env), self.token_header.lower()
        return {header: HEADERS[header] + token} if token else {}

    def _call(self, method: str, path: str, left: SecondsLeft, json: Any = None) -> Any:
        place = f"tenants/{quote(self.tenant, safe='')}/databases/{quote(self.database, safe='')}/collections"
        return self.request(method, f"{self.url.rstrip('/')}/api/v2/{place}/{path}", left, json=json)
