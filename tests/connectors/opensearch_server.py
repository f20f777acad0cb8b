"""A small stand-in for OpenSearch and Elasticsearch: the documented REST interface, as far as the connector uses it.

Neither system comes as a wheel. This server speaks what their documentation describes: create an index, ``_bulk`` (index and
delete), ``_mget``, ``_search`` with ``multi_match``, ``bool``, ``term``, ``terms``, ``ids``, ``match_all``, ``knn`` and
``hybrid``, status codes and error objects, what was written is searched after a refresh where ``lag`` says so, basic
authentication, API keys and bearer tokens. Text is ranked by a real BM25, vectors by cosine. It is as strict as the real
ones: a key it does not know is a ``parsing_exception`` with status 400. It keeps everything in memory.

``flavour`` decides where ``knn`` is written: as a query clause (OpenSearch) or beside the query (Elasticsearch).
"""

from __future__ import annotations

import base64
import fnmatch
import json
import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

K1, B = 1.2, 0.75
WINDOW = 10_000
CLAUSES = 1024
PARAMS = {"allow_partial_search_results", "allow_no_indices", "preference", "search_pipeline", "refresh", "pretty"}
PARAMS |= {"_source", "_source_includes"}
Scores = dict[str, float]


class Refused(Exception):
    """An error as the systems report it."""

    def __init__(self, status: int, kind: str, reason: str, **details: Any) -> None:
        super().__init__(reason)
        self.status = status
        cause = {"type": kind, "reason": reason, **details}
        self.body: Any = {"error": {"root_cause": [cause], **cause}, "status": status}


def unknown_key(where: str, key: str) -> Refused:
    return Refused(400, "parsing_exception", f"[{where}] query does not support [{key}]", line=1, col=1)


def terms(text: str) -> list[str]:
    """The standard analyzer, nearly: words in lower case, at most 255 letters each."""
    return re.findall(r"[\u3040-\u30ff\u3400-\u9fff\U0001f000-\U0001faff]|\w{1,255}", text.lower())


@dataclass
class Index:
    """Documents by id, with what their fields are."""

    name: str
    mappings: Mapping[str, Any]
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What a search sees."""
    unseen: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    """What was written or deleted (None) since the last refresh."""

    def refresh(self) -> None:
        for key, document in self.unseen.items():
            if document is None:
                self.documents.pop(key, None)
            else:
                self.documents[key] = document
        self.unseen.clear()

    def get(self, key: str) -> dict[str, Any] | None:
        return self.unseen[key] if key in self.unseen else self.documents.get(key)

    def kind(self, name: str) -> str | None:
        """Return the type of a field; what was not mapped is text, as dynamic mapping makes it, with a keyword beside it."""
        if name in self.mappings:
            return str(self.mappings[name]["type"])
        if name.endswith(".keyword") and name.removesuffix(".keyword") not in self.mappings:
            return "keyword"
        return "text" if any(value_of(document, name) is not None for document in self.documents.values()) else None

    def problem(self, document: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return why the mapping refuses a document."""
        for name, about in self.mappings.items():
            if about["type"] in ("integer", "long") and not str(document.get(name, 0)).lstrip("-").isdecimal():
                reason = f"failed to parse field [{name}] of type [{about['type']}]"
                return {"type": "mapper_parsing_exception", "reason": reason}
        return None

    def bm25(self, name: str, words: Sequence[str]) -> Scores:
        """Lucene's BM25 of one field: idf · tf ÷ (tf + k1 · (1 − b + b · length ÷ mean length))."""
        counts = {key: Counter(terms(str(value_of(document, name) or ""))) for key, document in self.documents.items()}
        lengths = {key: sum(count.values()) for key, count in counts.items()}
        present = [length for length in lengths.values() if length]
        mean = sum(present) / len(present) if present else 1.0
        scores: Scores = {}
        for word, weight in Counter(words).items():
            holding = [key for key, count in counts.items() if word in count]
            idf = math.log(1 + (len(present) - len(holding) + 0.5) / (len(holding) + 0.5))
            for key in holding:
                tf = counts[key][word]
                gain = weight * idf * tf / (tf + K1 * (1 - B + B * lengths[key] / mean))
                scores[key] = scores.get(key, 0.0) + gain
        return scores


def value_of(document: Mapping[str, Any], path: str) -> Any:
    value: Any = document
    for part in (path,) if path in document else path.removesuffix(".keyword").split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


class Searcher:
    """Runs one parsed request over one index."""

    def __init__(self, index: Index, flavour: str) -> None:
        self.index, self.flavour, self.clauses = index, flavour, 0

    def run(self, query: Any) -> Scores:
        if not isinstance(query, dict) or len(query) != 1:
            raise Refused(400, "parsing_exception", "query malformed, must start with start_object", line=1, col=1)
        kind, inside = next(iter(query.items()))
        found: Callable[[Any], Scores] | None = getattr(self, f"query_{kind}", None)
        if found is None or (kind in ("knn", "hybrid") and self.flavour != "opensearch"):
            raise Refused(400, "parsing_exception", f"unknown query [{kind}]", line=1, col=1)
        return found(inside)

    def query_match_all(self, inside: Any) -> Scores:
        return dict.fromkeys(self.index.documents, 1.0)

    def query_multi_match(self, inside: Any) -> Scores:
        for key in inside:
            if key not in ("query", "fields", "type", "operator", "tie_breaker", "boost"):
                raise unknown_key("multi_match", key)
        if not isinstance(inside.get("query"), str):
            raise Refused(400, "parsing_exception", "No text specified for multi-match query", line=1, col=1)
        if inside.get("type", "best_fields") != "best_fields":
            raise Refused(
                400, "parsing_exception", f"failed to parse [multi_match] query type [{inside['type']}]", line=1, col=1
            )
        words = terms(inside["query"])
        best: Scores = {}
        for name in inside["fields"]:
            plain, _, boost = name.partition("^")
            self.count(len(words))
            if self.index.kind(plain) != "text":
                continue
            for key, score in self.index.bm25(plain, words).items():
                best[key] = max(best.get(key, 0.0), score * float(boost or 1))
        return best

    def count(self, more: int) -> None:
        self.clauses += more
        if self.clauses > CLAUSES:
            reason = f"too_many_nested_clauses: Query contains too many nested clauses; maxClauseCount is set to {CLAUSES}"
            raise Refused(400, "too_many_nested_clauses", reason)

    def query_term(self, inside: Any) -> Scores:
        if not isinstance(inside, dict) or len(inside) != 1:
            raise Refused(400, "parsing_exception", "[term] query doesn't support multiple fields", line=1, col=1)
        name, wanted = next(iter(inside.items()))
        if isinstance(wanted, dict):
            for key in wanted:
                if key not in ("value", "boost", "case_insensitive"):
                    raise unknown_key("term", key)
            wanted = wanted["value"]
        self.count(1)
        found = {}
        for key, document in self.index.documents.items():
            value = value_of(document, name)
            # A term is compared as it is; a text field holds the words of its value.
            held = terms(str(value)) if self.index.kind(name) == "text" else [str(value)]
            if value is not None and str(wanted) in held:
                found[key] = 1.0
        return found

    def query_terms(self, inside: Any) -> Scores:
        if not isinstance(inside, dict) or len(inside) != 1 or not isinstance(next(iter(inside.values())), list):
            raise Refused(400, "parsing_exception", "[terms] query requires an array of terms", line=1, col=1)
        name, values = next(iter(inside.items()))
        return {key: 1.0 for value in values for key in self.query_term({name: value})}

    def query_ids(self, inside: Any) -> Scores:
        for key in inside:
            if key not in ("values", "boost"):
                raise unknown_key("ids", key)
        return {key: 1.0 for key in inside["values"] if key in self.index.documents}

    def query_bool(self, inside: Any) -> Scores:
        for key in inside:
            if key not in ("must", "filter", "should", "must_not", "minimum_should_match", "boost"):
                raise unknown_key("bool", key)
        clauses = {key: as_list(inside.get(key, [])) for key in ("must", "filter", "should", "must_not")}
        kept: Scores = dict.fromkeys(self.index.documents, 0.0)
        for key in ("must", "filter"):
            for clause in clauses[key]:
                scores = self.run(clause)
                kept = {doc: old + (scores[doc] if key == "must" else 0.0) for doc, old in kept.items() if doc in scores}
        for clause in clauses["must_not"]:
            kept = {doc: old for doc, old in kept.items() if doc not in self.run(clause)}
        options = [self.run(clause) for clause in clauses["should"]]
        needed = inside.get("minimum_should_match", 0 if clauses["must"] or clauses["filter"] else min(1, len(options)))
        kept = {doc: old for doc, old in kept.items() if sum(doc in scores for scores in options) >= needed}
        return {doc: old + sum(scores.get(doc, 0.0) for scores in options) for doc, old in kept.items()}

    def query_knn(self, inside: Any) -> Scores:
        """OpenSearch: ``{"knn": {"field": {"vector": …, "k": …, "filter": …}}}``."""
        if not isinstance(inside, dict) or len(inside) != 1:
            raise Refused(400, "parsing_exception", "[knn] query malformed", line=1, col=1)
        name, settings = next(iter(inside.items()))
        for key in settings:
            if key not in ("vector", "k", "filter", "boost", "method_parameters"):
                raise unknown_key("knn", key)
        filters = [settings["filter"]] if "filter" in settings else []
        return self.nearest(name, settings["vector"], settings["k"], filters, "knn_vector")

    def query_hybrid(self, inside: Any) -> Scores:
        for key in inside:
            if key not in ("queries", "filter"):
                raise unknown_key("hybrid", key)
        total: Scores = {}
        for scores in map(self.run, inside["queries"]):  # min-max and mean, the normalization processor's defaults
            low, high = (min(scores.values()), max(scores.values())) if scores else (0.0, 0.0)
            for key, score in scores.items():
                total[key] = total.get(key, 0.0) + ((score - low) / (high - low) if high > low else 1.0) / len(
                    inside["queries"]
                )
        return total

    def top_knn(self, inside: Any) -> Scores:
        """Elasticsearch: ``"knn": {"field": …, "query_vector": …, "k": …, "num_candidates": …}`` beside the query."""
        for key in inside:
            if key not in ("field", "query_vector", "k", "num_candidates", "filter", "boost", "similarity"):
                raise Refused(400, "x_content_parse_exception", f"[1:1] [knn] unknown field [{key}]")
        if inside["num_candidates"] < inside["k"]:
            raise Refused(400, "illegal_argument_exception", "[num_candidates] cannot be less than [k]")
        if inside["num_candidates"] > WINDOW:
            raise Refused(400, "illegal_argument_exception", "[num_candidates] cannot exceed [10000]")
        filters = as_list(inside.get("filter", []))
        return self.nearest(inside["field"], inside["query_vector"], inside["k"], filters, "dense_vector")

    def nearest(self, name: str, vector: Sequence[float], k: int, filters: Sequence[Any], kind: str) -> Scores:
        if self.index.kind(name) != kind:
            raise Refused(400, "query_shard_exception", f"failed to create query: Field '{name}' is not {kind} type.")
        size = self.index.mappings[name]["dimension" if kind == "knn_vector" else "dims"]
        if len(vector) != size:
            reason = f"Query vector has invalid dimension: {len(vector)}. Dimension should be: {size}"
            raise Refused(400, "illegal_argument_exception", reason)
        allowed = self.query_bool({"filter": list(filters)}) if filters else self.index.documents
        near = {}
        for key in allowed:
            held = self.index.documents[key].get(name)
            if held is not None:
                norm = math.hypot(*held) * math.hypot(*vector)
                near[key] = (1 + sum(a * b for a, b in zip(held, vector, strict=True)) / norm) / 2
        return dict(sorted(near.items(), key=lambda pair: -pair[1])[:k])


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@dataclass
class Cluster:
    """Indexes and who may use them; ``seen`` are the requests in order, as (method, path, headers, body)."""

    flavour: str = "opensearch"
    basic: tuple[str, str] | None = None
    api_key: str | None = None
    token: str | None = None
    indexes: dict[str, Index] = field(default_factory=dict)
    seen: list[tuple[str, str, Mapping[str, str], Any]] = field(default_factory=list)
    lag: int = 0
    """Searches that do not yet see what was written before them."""
    waited: int = 0

    def answer(self, method: str, address: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        self.check_access(headers)
        place = urlsplit(address)
        params = {key: values[-1] for key, values in parse_qs(place.query).items()}
        for key in params:
            if key not in PARAMS:
                reason = f"request [{place.path}] contains unrecognized parameter: [{key}]"
                raise Refused(400, "illegal_argument_exception", reason)
        parts = [unquote(part) for part in place.path.strip("/").split("/")]
        if method == "PUT" and len(parts) == 1:
            return 200, self.create(parts[0], read_json(body) if body else {})
        if method == "POST" and parts[-1] == "_bulk" and len(parts) <= 2:
            if headers.get("content-type", "").partition(";")[0] not in ("application/json", "application/x-ndjson"):
                raise Refused(406, "media_type_header_exception", "Invalid media-type value on header [Content-Type]")
            return 200, self.bulk(parts[0] if len(parts) == 2 else None, body)
        if method in ("GET", "POST") and len(parts) == 2 and parts[1] == "_mget":
            return 200, self.mget(parts[0], read_json(body), params)
        if method in ("GET", "POST") and len(parts) == 2 and parts[1] == "_search":
            return 200, self.search(parts[0], read_json(body) if body else {}, params)
        raise Refused(400, "illegal_argument_exception", f"no handler found for uri [{address}] and method [{method}]")

    def check_access(self, headers: Mapping[str, str]) -> None:
        ways = []
        if self.basic:
            ways.append("Basic " + base64.b64encode(":".join(self.basic).encode()).decode())
        if self.api_key:
            ways.append(f"ApiKey {self.api_key}")
        if self.token:
            ways.append(f"Bearer {self.token}")
        if ways and headers.get("authorization") not in ways:
            refused = Refused(401, "security_exception", "unable to authenticate with provided credentials for REST request")
            if self.flavour == "opensearch":
                refused.body = "Unauthorized"  # its security plugin answers in plain text
            raise refused

    def create(self, name: str, settings: Mapping[str, Any]) -> Any:
        for key in settings:
            if key not in ("settings", "mappings", "aliases"):
                raise Refused(400, "parse_exception", f"unknown key [{key}] for create index")
        if name in self.indexes:
            raise Refused(400, "resource_already_exists_exception", f"index [{name}] already exists", index=name)
        self.indexes[name] = Index(name, settings.get("mappings", {}).get("properties", {}))
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def bulk(self, default: str | None, body: bytes) -> Any:
        if not body.endswith(b"\n"):
            raise Refused(400, "illegal_argument_exception", "The bulk request must be terminated by a newline [\\n]")
        lines = iter([json.loads(line) for line in body.decode().split("\n") if line])
        items = []
        for action in lines:
            kind, target = next(iter(action.items()))
            if kind not in ("index", "delete"):
                raise Refused(400, "illegal_argument_exception", f"Malformed action/metadata line, found [{kind}]")
            index = self.indexes.setdefault(target.get("_index", default), Index(target.get("_index", default), {}))
            key = target.get("_id") or f"made-{len(index.documents)}"
            there = index.get(key) is not None
            result, status = ("updated", 200) if there else ("created", 201)
            if kind == "delete":
                result, status = ("deleted", 200) if there else ("not_found", 404)
            outcome: dict[str, Any] = {"_index": index.name, "_id": key, "_version": 1, "result": result, "status": status}
            document = next(lines) if kind == "index" else None
            problem = index.problem(document) if document is not None else None
            if problem is not None:
                outcome = {"_index": index.name, "_id": key, "status": 400, "error": problem}
            else:
                index.unseen[key] = document
            if not self.lag:
                index.refresh()
            items.append({kind: outcome})
        self.waited = 0
        errors = any("error" in next(iter(item.values())) for item in items)
        return {"took": 1, "errors": errors, "items": items}

    def mget(self, name: str, body: Mapping[str, Any], params: Mapping[str, str]) -> Any:
        """Return documents by id, in real time; an index that is not there is an error of each of them, as the systems do."""
        if set(body) != {"ids"}:
            raise Refused(400, "parsing_exception", f"unexpected field in {sorted(body)}", line=1, col=1)
        found = []
        for key in body["ids"]:
            about: dict[str, Any] = {"_index": name, "_id": key}
            if name not in self.indexes:
                missing = Refused(404, "index_not_found_exception", f"no such index [{name}]", index=name)
                found.append({**about, "error": missing.body["error"]})
                continue
            document = self.indexes[name].get(key)
            about["found"] = document is not None
            if document is not None and params.get("_source") != "false":
                wanted = params.get("_source_includes")
                about["_source"] = selected(document, wanted.split(",")) if wanted else document
            found.append(about)
        return {"docs": found}

    def search(self, names: str, body: Mapping[str, Any], params: Mapping[str, str]) -> Any:
        indexes = self.resolve(names, params.get("allow_no_indices") != "false")
        self.waited += 1
        if self.waited > self.lag:
            for index in indexes:
                index.refresh()
        known = {"query", "size", "from", "_source", "knn"} - ({"knn"} if self.flavour == "opensearch" else set())
        for key, value in body.items():
            if key not in known:
                token = (
                    "START_OBJECT" if isinstance(value, dict) else "START_ARRAY" if isinstance(value, list) else "VALUE_STRING"
                )
                raise Refused(400, "parsing_exception", f"Unknown key for a {token} in [{key}].", line=1, col=1)
        size, start = body.get("size", 10), body.get("from", 0)
        if size + start > WINDOW:
            reason = (
                f"Result window is too large, from + size must be less than or equal to: [{WINDOW}] but was [{size + start}]."
            )
            raise Refused(400, "illegal_argument_exception", reason)
        hits = [hit for index in indexes for hit in self.hits(index, body)]
        hits.sort(key=lambda hit: -hit["_score"])
        total = {"value": len(hits), "relation": "eq"}
        found = {"total": total, "max_score": hits[0]["_score"] if hits else None, "hits": hits[start : start + size]}
        count = len(indexes)
        shards = {"total": count, "successful": count, "skipped": 0, "failed": 0}
        return {"took": 1, "timed_out": False, "_shards": shards, "hits": found}

    def resolve(self, names: str, empty_is_fine: bool) -> list[Index]:
        found: dict[str, Index] = {}
        for name in names.split(","):
            matching = fnmatch.filter(self.indexes, name)
            if not matching and ("*" not in name or not empty_is_fine):
                details = {"resource.type": "index_or_alias", "resource.id": name, "index": name, "index_uuid": "_na_"}
                raise Refused(404, "index_not_found_exception", f"no such index [{name}]", **details)
            found.update({key: self.indexes[key] for key in matching})
        return list(found.values())

    def hits(self, index: Index, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        searcher = Searcher(index, self.flavour)
        query = body.get("query", None if "knn" in body else {"match_all": {}})
        scores = searcher.run(query) if query is not None else {}
        if "knn" in body:
            for key, score in searcher.top_knn(body["knn"]).items():
                scores[key] = scores.get(key, 0.0) + score
        for key, score in scores.items():
            hit: dict[str, Any] = {"_index": index.name, "_id": key, "_score": score}
            wanted = body.get("_source", True)
            if wanted is not False:
                source = index.documents[key]
                hit["_source"] = source if wanted is True else selected(source, as_list(wanted))
            yield hit


def selected(source: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for path in paths:
        if path in source:
            kept[path] = source[path]
        elif value_of(source, path) is not None:
            inside = kept
            *parents, last = path.split(".")
            for part in parents:
                inside = inside.setdefault(part, {})
            inside[last] = value_of(source, path)
    return kept


def read_json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        raise Refused(400, "json_parse_exception", "Unexpected character: was expecting a JSON value") from None


@dataclass(frozen=True)
class Running:
    """A server that runs: where, and the cluster behind it."""

    port: int
    cluster: Cluster

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serving(cluster: Cluster | None = None) -> Iterator[Running]:
    """Run the server on a free port of the loopback until the block ends."""
    shared = cluster or Cluster()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: the client's kernel would wait 40 ms between two

        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {key.lower(): value for key, value in self.headers.items()}
            with lock:
                shared.seen.append((self.command, self.path, headers, body))
                try:
                    status, answer = shared.answer(self.command, self.path, headers, body)
                except Refused as refused:
                    status, answer = refused.status, refused.body
            kind = "text/plain" if isinstance(answer, str) else "application/json"
            payload = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=UTF-8")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_PUT = respond

        def log_message(self, format: str, *args: Any) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield Running(server.server_address[1], shared)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
