"""OpenSearch and Elasticsearch, asked through their documented REST interface; no client library is needed.

The question only ever travels as a JSON value inside ``multi_match`` or as a vector, never as ``query_string``, so nothing in
it is an operator. An answer from some of the shards, or one cut short by a timeout, is an error and not a short answer.
"""

from __future__ import annotations

import base64
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import quote

from ringtrue.errors import BadAnswer, InputError, TimedOut, Unreachable
from ringtrue.retrieve.connectors.base import BasicLogin, Row, SecondsLeft, all_found, enough, field_of
from ringtrue.retrieve.connectors.settings import Count, Rule, Url, asked_for, filled, places
from ringtrue.retrieve.connectors.writing import Mark, Planted, VectorConnector
from ringtrue.retrieve.protocol import Scope, plain

VECTOR = re.compile(r"\{(vector)\}")
WINDOW = 10_000
"""The most hits either system returns at once (index.max_result_window)."""
Candidates = Annotated[int, Rule(lambda value: 1 <= value <= WINDOW, f"a whole number from 1 to {WINDOW}")]
_INDEX = re.compile(r"[^\s_/\\?#\"<>|,-][^\s/\\?#\"<>|]*")
IndexName = Annotated[str, Rule(lambda name: bool(_INDEX.fullmatch(name)), "the name of an index, like 'shop' or 'shop-*'")]
_FIELD = re.compile(r"[^\s^]+(\^\d+(\.\d+)?)?")
WeightedField = Annotated[str, Rule(lambda name: bool(_FIELD.fullmatch(name)), "a field like 'title^2' or 'body'")]
_ALONE = "\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u2600-\u27bf\U0001f000-\U0001faff\U00020000-\U0003ffff"
# The standard analyzer makes a term of every ideograph and emoji, of other letters in a row, and of 255 of them at most.
_TERM = re.compile(rf"[{_ALONE}]|[^\W{_ALONE}]{{1,255}}")


@dataclass(frozen=True, kw_only=True)
class _Rest(BasicLogin, VectorConnector):
    """What both systems share: addressing, credentials, the text query, and how an answer is read."""

    url: Url = field(repr=False)
    """Address of the cluster, ``https://search.example.com:9200``."""
    index: IndexName
    """Index, alias or pattern such as ``shop-*``."""
    fields: Sequence[WeightedField] = ()
    """Text fields with their weights, ``["title^2", "body"]``; the best field counts."""
    mode: Literal["text", "vector", "hybrid"] = "text"
    """'text', 'vector' or 'hybrid'."""
    vector_field: str | None = None
    """Field that holds the documents' vectors."""
    body: Mapping[str, Any] | None = None
    """A whole request instead of the one made here; "{text}", "{k}", "{vector}" and "{scope.NAME}" in it become values.

    Where a search has no such scope, the part that asks for it is left out."""
    id: str = "_id"
    """Where the document id is: '_id', or a field of the source."""
    chunk: str | None = None
    """Where the passage's name is ('_id' or a field), when several hits may belong to one document."""
    filters: Mapping[str, str] = field(default_factory=dict)
    """Name in a scope → keyword field, ``{"hotel": "hotel.keyword"}``; a name that is not here is a field itself."""
    max_clauses: Count = 1000
    """The most clauses of a query; a longer question is cut, since the system would refuse it (its default is 1024)."""
    api_key_env: str | None = None
    """Environment variable with an API key, sent as ``Authorization: ApiKey …``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        own = self.body is not None
        kinds = [name for name in ("user_env", "api_key_env", "token_env") if getattr(self, name)]
        self.refuse(
            (
                not own and self.mode != "vector" and not self.fields,
                "no fields are named; write the text fields to search, like ['title^2', 'body']",
            ),
            (
                not own and self.mode != "text" and not self.vector_field,
                f"mode '{self.mode}' needs vector_field; name the field that holds the vectors",
            ),
            (
                own and "k" not in places(self.body),
                'the body never says "{k}"; write "size" = "{k}" in it, or 10 hits come at most',
            ),
            (len(kinds) > 1, f"{' and '.join(kinds)} are given; only one way to log in can be used, keep one"),
        )

    @abstractmethod
    def question(self, text: str, vector: Sequence[float], *, k: int, filters: Sequence[Any]) -> dict[str, Any]:
        """Return the parts of the body that ask: ``query`` and what belongs to it."""

    def params(self) -> dict[str, str]:
        """Return the parameters of the request's address."""
        return {
            "allow_partial_search_results": "false",
            # A pattern that matches no index would otherwise be answered with no hits at all.
            "allow_no_indices": "false",
            # Copies of a shard may score a little differently: one question always goes to the same copies.
            "preference": "ringtrue",
        }

    def ask(self, text: str, *, k: int, scope: Scope | None) -> list[Row]:
        if k > WINDOW:
            raise InputError(f"{self.name}: k={k} is more than it returns at once; ask for {WINDOW} or fewer")
        vector = [] if self.mode == "text" else self.query_vector(text)
        left = self.deadline()

        def fetch(size: int) -> list[Row]:
            hits = self._searched(self._body(text, vector, k=size, scope=scope), left, self.params())
            return [self._row(hit, rank) for rank, hit in enumerate(hits, 1)]

        return fetch(k) if self.chunk is None else enough(fetch, k)

    def _body(self, text: str, vector: list[float], *, k: int, scope: Scope | None) -> dict[str, Any]:
        cut = _cut(text, self.max_clauses // max(1, len(self.fields)))
        if self.body is not None:
            wanted = asked_for(self.name, scope, self.body, "body")
            # The vector goes first: a question that reads "{vector}" is still a question.
            return dict(filled(filled(self.body, {"vector": vector}, place=VECTOR), {"text": cut, "k": k, **wanted}))
        filters = [
            {"term": {self.filters.get(name, name): {"value": plain(str(value))}}} for name, value in (scope or {}).items()
        ]
        fields = [name for name in (self.id, self.chunk) if name and name != "_id"]
        return {"size": k, "_source": fields or False, **self.question(cut, vector, k=k, filters=filters)}

    def multi_match(self, text: str) -> dict[str, Any]:
        """Return the text query: every word counts, the best field of a document decides."""
        return {"multi_match": {"query": text, "fields": list(self.fields), "type": "best_fields"}}

    def resolve(self, doc_ids: Sequence[str]) -> set[str]:
        left = self.deadline()

        def found(ids: Sequence[str], count: int) -> list[str]:
            same = {"ids": {"values": ids}} if self.id == "_id" else {"terms": {self.filters.get(self.id, self.id): ids}}
            source = [self.id] if self.id != "_id" else False
            body = {"size": count, "_source": source, "query": {"bool": {"filter": [same]}}}
            hits = self._searched(body, left, _Rest.params(self))
            return [str(self._value(hit, self.id, rank)) for rank, hit in enumerate(hits, 1)]

        return all_found(found, doc_ids, WINDOW)

    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        wanted = self.marking()
        params = {"_source_includes": ",".join(wanted)} if wanted else {"_source": "false"}
        left = self.deadline()
        # Unlike a search, this also sees what was written a moment ago.
        answer = self._request("_mget", left, json={"ids": list(ids)}, params=params)
        documents = answer.get("docs") if isinstance(answer, dict) else None
        if not isinstance(documents, list):
            raise BadAnswer(f"{self.name} answered {answer!r:.60}, which are not documents; check url and index")
        for item in documents:
            if "error" in item:  # what would be written into an index that is not there would make one
                raise BadAnswer(f"{self.name} has no index '{self.index}' to look into; check index=, or create it there")
        return {str(item["_id"]): self.mark_of(self._flat(item.get("_source"))) for item in documents if item.get("found")}

    def _flat(self, source: Any) -> dict[str, Any]:
        """Return the marks in a source, which may be nested where their names have dots."""
        found: dict[str, Any] = {}
        for name in self.marking():
            with suppress(BadAnswer):
                found[name] = self._value({"_source": source or {}}, name, 1)
        return found

    def check_plant(self, documents: Sequence[Planted]) -> None:
        super().check_plant(documents)
        if "*" in self.index or "," in self.index:
            raise InputError(f"{self.name}: index='{self.index}' is a pattern; name the one index that is to be written")

    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        vectors = self.document_vectors(documents) if self.vector_field else [[]] * len(documents)
        lines: list[Any] = []
        for document, vector in zip(documents, vectors, strict=True):
            own = {self.vector_field: vector} if self.vector_field else {}
            names = [name for name in (self.id, self.chunk) if name != "_id"]
            lines += [{"index": {"_id": document.id}}, {**own, **self.record(document, *names)}]
        self._bulk(lines)

    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        self._bulk([{"delete": {"_id": doc_id}} for doc_id in ids])

    def _bulk(self, lines: Sequence[Any]) -> None:
        answer = self._request("_bulk", self.deadline(), lines=lines)
        items = answer.get("items") if isinstance(answer, dict) else None
        if not isinstance(items, list):
            raise BadAnswer(f"{self.name} answered {answer!r:.60}, which does not say what was written; check url and index")
        for item in items:
            kind, result = next(iter(item.items()))
            status = int(result.get("status", 0))
            if status >= 300 and not (kind == "delete" and status == 404):
                error = result.get("error") or {}
                why = f"{error.get('type')}: {error.get('reason')}" if isinstance(error, dict) else str(error)
                said = f"{self.name} did not {kind} document '{result.get('_id')}' ({why:.120})"
                if status == 429 or status >= 500:
                    raise Unreachable(f"{said}; try again later")
                raise BadAnswer(f"{said}; check plant= and the mapping of the index")

    def _request(self, action: str, left: SecondsLeft, **sent: Any) -> Any:
        try:
            return self.request("POST", f"{self.url.rstrip('/')}/{quote(self.index, safe='*,')}/{action}", left, **sent)
        except BadAnswer as problem:
            if "HTTP 404" in str(problem) and "index_not_found" in str(problem):
                raise BadAnswer(f"{self.name} has no index '{self.index}'; check index=, or create it there") from problem
            raise
        except TimedOut as problem:
            raise self.too_slow() from problem

    def credentials(self) -> dict[str, str]:
        key = self.secret(self.api_key_env)
        if key is None:
            return super().credentials()
        # Both forms are in use: the pair id:key, and its base64 as the system itself hands it out.
        return {"Authorization": f"ApiKey {base64.b64encode(key.encode()).decode() if ':' in key else key}"}

    def _searched(self, body: Mapping[str, Any], left: SecondsLeft, params: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the hits of a search that all shards answered in time."""
        answer = self._request("_search", left, json=body, params=params)
        shards = answer.get("_shards") if isinstance(answer, dict) else None
        if not isinstance(shards, dict) or not isinstance(answer.get("hits"), dict):
            raise BadAnswer(f"{self.name} answered {answer!r:.60}, which is not a search answer; check url and index")
        if answer.get("timed_out") is not False:
            raise TimedOut(
                f"{self.name} stopped before all documents were searched; raise its search timeout, or find out why it is slow"
            )
        if shards.get("failed"):
            count = f"{shards['failed']} of {shards.get('total', '?')} shards failed{_reason(shards.get('failures'))}"
            raise Unreachable(f"{self.name}: {count}, so documents are missing from the answer; check the cluster's health")
        if not shards.get("total"):
            raise BadAnswer(f"{self.name} has no index that matches '{self.index}'; check index=, or create it there")
        hits = answer["hits"].get("hits")
        if not isinstance(hits, list):
            raise BadAnswer(f"{self.name} answered hits that are {hits!r:.40} and no list; check url and body")
        for rank, hit in enumerate(hits, 1):
            if not isinstance(hit, dict):
                raise BadAnswer(f"{self.name}: hit {rank} is {hit!r:.40} and no object; check url and body")
        return hits

    def _row(self, hit: Mapping[str, Any], rank: int) -> Row:
        row = {"doc_id": self._value(hit, self.id, rank), "score": hit.get("_score")}
        if self.chunk is not None:
            row["chunk"] = str(self._value(hit, self.chunk, rank))
        return row

    def _value(self, hit: Mapping[str, Any], path: str, rank: int) -> Any:
        if path == "_id":
            if "_id" in hit:
                return hit["_id"]
            raise BadAnswer(f"{self.name}: hit {rank} has no '_id'; check url and body")
        found = hit.get("_source")
        return field_of(found if isinstance(found, dict) else {}, path, f"{self.name}: hit {rank}", "id= or chunk")


@dataclass(frozen=True, kw_only=True)
class OpenSearch(_Rest):
    """An OpenSearch index. Scores are the system's own; higher is better."""

    pipeline: str | None = None
    """Search pipeline for mode 'hybrid' that normalises and joins both scores; without one their plain sum decides."""

    def params(self) -> dict[str, str]:
        return super().params() | ({"search_pipeline": self.pipeline} if self.pipeline else {})

    def question(self, text: str, vector: Sequence[float], *, k: int, filters: Sequence[Any]) -> dict[str, Any]:
        words: dict[str, Any] = self.multi_match(text) if self.fields else {}
        within = {"filter": {"bool": {"filter": list(filters)}}} if filters else {}
        near = {"knn": {self.vector_field: {"vector": vector, "k": k, **within}}}
        if self.mode == "vector":
            return {"query": near}
        if self.mode == "text":
            return {"query": {"bool": {"must": [words], "filter": list(filters)}} if filters else words}
        if self.pipeline:
            inside = {"bool": {"must": [words], "filter": list(filters)}} if filters else words
            return {"query": {"hybrid": {"queries": [inside, near]}}}
        # A filter alone would make both should clauses optional.
        return {"query": {"bool": {"should": [words, near], "minimum_should_match": 1, "filter": list(filters)}}}


@dataclass(frozen=True, kw_only=True)
class Elasticsearch(_Rest):
    """An Elasticsearch index (8.4 or later for vectors). Scores are the system's own; higher is better."""

    candidates: Candidates = 100
    """Candidates that every shard looks at for a vector search; at least k are taken."""

    def question(self, text: str, vector: Sequence[float], *, k: int, filters: Sequence[Any]) -> dict[str, Any]:
        asked: dict[str, Any] = {}
        if self.mode != "vector":
            words = self.multi_match(text)
            asked["query"] = {"bool": {"must": [words], "filter": list(filters)}} if filters else words
        if self.mode != "text":
            asked["knn"] = {
                "field": self.vector_field,
                "query_vector": list(vector),
                "k": k,
                "num_candidates": max(k, self.candidates),
                **({"filter": list(filters)} if filters else {}),
            }
        return asked


def _cut(text: str, most: int) -> str:
    """Return as much of a question as makes at most that many terms."""
    for count, match in enumerate(_TERM.finditer(text)):
        if count == max(1, most):
            return text[: match.start()]
    return text


def _reason(failures: Any) -> str:
    """Return why the first shard failed, in brackets; its address is left out."""
    first = failures[0] if isinstance(failures, list) and failures and isinstance(failures[0], dict) else {}
    reason = first.get("reason")
    return f" ({reason['type']})" if isinstance(reason, dict) and isinstance(reason.get("type"), str) else ""
