"""The Qdrant connector: Qdrant's own engine, and its client's local mode, behind small servers that speak the REST API.

No wheel carries the server. ``qdrant-edge-py`` carries its engine, which here does the searching; what stands in is the HTTP
in front of it: two calls of the documented API, strict about what they are sent, with the documented errors.
"""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

import pytest
from pydantic_core import to_jsonable_python

from connectors.faults import Answer, Answering, Request, answering, dripping, free_port, proxy
from ringtrue.errors import AccessDenied, BadAnswer, InputError, MissingInput, TimedOut, Unreachable
from ringtrue.retrieve.connectors import connect, qdrant
from ringtrue.retrieve.connectors.qdrant import Qdrant
from ringtrue.retrieve.encode import encoder
from ringtrue.testing.retrievers import ConnectorSuite, RetrieverSuite

client = pytest.importorskip("qdrant_client", reason="QDRANT IS NOT TESTED: pip install qdrant-client")
edge = pytest.importorskip("qdrant_edge", reason="QDRANT IS NOT TESTED: pip install qdrant-edge-py, which carries the engine")
models = client.models

EXAMPLE = Path(__file__).parents[2] / "examples" / "connect" / "with_qdrant.py"
KEY = "qdrant-key-4711"
POINTS: dict[int, tuple[str, dict[str, Any]]] = {
    1: (
        "a heated outdoor pool",
        {"doc": "pool", "part": "1", "lang": "en", "floor": 0, "open": True, "meta": {"source": "pool.md"}},
    ),
    2: (
        "the pool opens at seven",
        {"doc": "pool", "part": "2", "lang": "en", "floor": 0, "open": True, "meta": {"source": "pool.md"}},
    ),
    3: (
        "spa with sauna and whirlpool",
        {"doc": "spa", "part": "1", "lang": "en", "floor": 1, "open": True, "meta": {"source": "spa.md"}},
    ),
    4: (
        "Schwimmbad, pool",
        {"doc": "schwimmbad", "part": "1", "lang": "de", "floor": 1, "open": False, "meta": {"source": "bad.md"}},
    ),
    5: (
        "airport shuttle",
        {"doc": "shuttle", "part": "1", "lang": "en", "floor": 0, "open": False, "meta": {"source": "bus.md"}},
    ),
    6: (
        "breakfast buffet",
        {"doc": "breakfast", "part": "1", "lang": "en", "floor": 2, "open": True, "meta": {"source": "food.md"}},
    ),
}
METRICS = ("Cosine", "Dot", "Euclid", "Manhattan")


@dataclass
class Engine:
    """Shards of the real engine, and the two calls of the REST API that a search makes."""

    shards: dict[str, tuple[Any, dict[str, Any]]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request) -> Answer:
        _, _, name, *rest = unquote(request.path.partition("?")[0]).split("/")
        name, rest = rest[0] if name == "collections" and rest else name, rest[1:] if name == "collections" else rest
        if name not in self.shards:
            return Answer({"status": {"error": f"Not found: Collection `{name}` doesn't exist!"}, "time": 0.0}, 404)
        shard, vectors = self.shards[name]
        if request.method == "GET" and not rest:
            return Answer({"result": _described(vectors), "status": "ok", "time": 0.0})
        if request.method == "POST" and rest == ["points", "query"]:
            try:
                with self.lock:
                    found = shard.query(_question(request.json()))
            except Exception as problem:
                return Answer({"status": {"error": f"Format error in JSON body: {problem}"}, "time": 0.0}, 400)
            points = [{"id": point.id, "version": 0, "score": point.score, "payload": point.payload} for point in found]
            return Answer({"result": {"points": points}, "status": "ok", "time": 0.0})
        return Answer(b"", 404)


def _described(vectors: dict[str, Any]) -> dict[str, Any]:
    """What GET /collections/{name} says, with all that the documented schema requires."""
    return {
        "status": "green",
        "optimizer_status": "ok",
        "points_count": len(POINTS),
        "indexed_vectors_count": 0,
        "segments_count": 1,
        "config": {
            "params": {"vectors": vectors, "shard_number": 1, "replication_factor": 1, "on_disk_payload": True},
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
            "optimizer_config": {
                "deleted_threshold": 0.2,
                "vacuum_min_vector_number": 1000,
                "default_segment_number": 0,
                "flush_interval_sec": 5,
            },
        },
        "payload_schema": {},
    }


def _question(body: dict[str, Any]) -> Any:
    """Return the engine's form of a REST query; raises ValueError for what the API does not know."""
    unknown = set(body) - {"query", "using", "filter", "limit", "with_payload", "with_vector", "offset"}
    if unknown:
        raise ValueError(f"unknown field {sorted(unknown)}")
    query = body["query"]
    if isinstance(query, dict) and set(query) == {"nearest"}:  # the API takes a bare vector and this form
        query = query["nearest"]
    return edge.QueryRequest(
        query=edge.Query.Nearest(query, body.get("using")),
        limit=body["limit"],
        with_payload=body.get("with_payload", False),
        filter=_filter(body["filter"]) if body.get("filter") else None,
    )


def _filter(body: dict[str, Any]) -> Any:
    def condition(item: dict[str, Any]) -> Any:
        if "key" not in item:
            return _filter(item)
        if set(item) != {"key", "match"} or set(item["match"]) != {"value"}:
            raise ValueError(f"unknown condition {item}")
        return edge.FieldCondition(key=item["key"], match=edge.MatchValue(item["match"]["value"]))

    return edge.Filter(**{kind: [condition(item) for item in items] for kind, items in body.items()})


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A shard of the real engine per metric, and one whose points have two vectors."""
    made = Engine()
    folder = tmp_path_factory.mktemp("qdrant-edge")
    texts = encoder().encode([text for text, _ in POINTS.values()]).tolist()
    names = encoder().encode([payload["doc"] for _, payload in POINTS.values()]).tolist()

    def shard(name: str, described: dict[str, Any], vectors: Any, points: list[Any]) -> None:
        (folder / name).mkdir()
        opened = edge.EdgeShard.create(str(folder / name), edge.EdgeConfig(vectors=vectors))
        opened.update(edge.UpdateOperation.upsert_points(points))
        made.shards[name] = opened, described

    payloads = {key: payload for key, (_, payload) in POINTS.items()}
    for metric in METRICS:
        params = edge.EdgeVectorParams(size=384, distance=getattr(edge.Distance, metric))
        points = [edge.Point(key, vector, payloads[key]) for key, vector in zip(POINTS, texts, strict=True)]
        shard(metric, {"size": 384, "distance": metric}, params, points)
    both = {name: edge.EdgeVectorParams(size=384, distance=edge.Distance.Cosine) for name in ("text", "title")}
    described = {name: {"size": 384, "distance": "Cosine"} for name in both}
    points = [
        edge.Point(key, {"text": text, "title": title}, payloads[key])
        for key, text, title in zip(POINTS, texts, names, strict=True)
    ]
    shard("named", described, both, points)
    yield made
    for opened, _ in made.shards.values():
        opened.close()


@pytest.fixture(scope="module")
def server(engine: Engine) -> Iterator[Answering]:
    with answering(engine.answer) as running:
        yield running


def filled(opened: Any, metric: str = "Cosine") -> Any:
    """Fill an engine of the client's local mode."""
    opened.create_collection("hotel", vectors_config=models.VectorParams(size=384, distance=models.Distance(metric)))
    vectors = encoder().encode([text for text, _ in POINTS.values()]).tolist()
    points = zip(POINTS.items(), vectors, strict=True)
    opened.upsert(
        "hotel", [models.PointStruct(id=key, vector=vector, payload=payload) for (key, (_, payload)), vector in points]
    )
    return opened


def speaking(opened: Any) -> Callable[[Request], Answer]:
    """The client's own engine in memory behind the calls of the REST API that the connector makes."""

    def result(request: Request) -> Any:
        path = unquote(request.path.partition("?")[0]).split("/")[2:]
        name, body = path[0], request.json() if request.body else {}
        match request.method, path[1:]:
            case "GET", []:
                return opened.get_collection(name)
            case "POST", ["points", "query"]:
                found = models.QueryRequest(**body)
                options = {"limit": found.limit, "with_payload": found.with_payload, "query_filter": found.filter}
                return opened.query_points(name, query=found.query, using=found.using, **options)
            case "POST", ["points"]:
                return opened.retrieve(name, body["ids"], with_payload=body["with_payload"])
            case "POST", ["points", "scroll"]:
                asked = models.ScrollRequest(**body)
                points, after = opened.scroll(
                    name, asked.filter, limit=asked.limit, offset=asked.offset, with_payload=asked.with_payload
                )
                return {"points": points, "next_page_offset": after}
            case "PUT", []:
                return opened.create_collection(name, vectors_config=models.VectorParams(**body["vectors"]))
            case "DELETE", []:
                return opened.delete_collection(name)
            case "PUT", ["points"]:
                return opened.upsert(name, [models.PointStruct(**point) for point in body["points"]])
            case "POST", ["points", "delete"]:
                return opened.delete(name, models.PointIdsList(**body))
        raise ValueError(request.path)

    def answer(request: Request) -> Answer:
        try:
            return Answer({"result": to_jsonable_python(result(request)), "status": "ok", "time": 0.0})
        except ValueError as problem:  # how the local mode says that there is no such collection
            return Answer({"status": {"error": str(problem)}, "time": 0.0}, 404)

    return answer


@pytest.fixture(scope="module")
def local() -> Iterator[Answering]:
    with answering(speaking(filled(client.QdrantClient(":memory:")))) as running:
        yield running


class TestQdrantInMemory(RetrieverSuite):
    @pytest.fixture(autouse=True)
    def _local(self, local: Answering) -> None:
        self.url = local.url

    def make(self) -> Qdrant:
        return Qdrant(url=self.url, collection="hotel", document="doc")


class TestQdrant(ConnectorSuite):
    SECRETS: ClassVar[tuple[str, ...]] = (KEY, "127.0.0.1")

    @pytest.fixture(autouse=True)
    def _server(self, engine: Engine, server: Answering, local: Answering, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setenv("QDRANT_KEY", KEY)
        monkeypatch.setenv("QDRANT_WRONG", "guessed")
        self.engine, self.server, self.local = engine, server, local
        with ExitStack() as self.stack:
            yield

    def make(self) -> Qdrant:
        return Qdrant(url=self.server.url, collection="Cosine", api_key_env="QDRANT_KEY")

    def wrong_credentials(self) -> Qdrant:
        def guarded(request: Request) -> Answer:
            if request.headers.get("api-key") == KEY:
                return self.engine.answer(request)
            return Answer(b"Invalid API key or JWT", 401, {"Content-Type": "text/plain"})

        url = self.stack.enter_context(answering(guarded)).url
        assert Qdrant(url=url, collection="Cosine", api_key_env="QDRANT_KEY").search("pool", k=1)
        return Qdrant(url=url, collection="Cosine", api_key_env="QDRANT_WRONG")

    def nobody_there(self) -> Qdrant:
        return Qdrant(url=f"http://127.0.0.1:{free_port()}", collection="Cosine", retries=0)

    def gone_mid_query(self) -> Qdrant:
        cut = self.stack.enter_context(proxy(self.server.port))
        connector = Qdrant(url=f"http://127.0.0.1:{cut.port}", collection="Cosine", retries=0)
        assert connector.search("pool", k=1)
        cut.cut_answer_after(150)
        return connector

    def too_slow(self) -> Qdrant:
        slow = self.stack.enter_context(proxy(self.server.port))
        slow.hang()
        return Qdrant(url=f"http://127.0.0.1:{slow.port}", collection="Cosine", retries=0, timeout=0.3)

    def malformed(self) -> Qdrant:
        answers = [{"result": _described({"size": 384, "distance": "Dot"}), "status": "ok"}, {"result": {"hits": []}}]
        return Qdrant(url=self.stack.enter_context(answering(answers)).url, collection="Cosine", retries=0)

    def twice(self) -> Qdrant:
        return Qdrant(url=self.server.url, collection="Cosine", document="doc", chunk="doc")

    def few(self) -> tuple[Qdrant, str, int]:
        return self.make(), "pool", len(POINTS)

    def fails_once(self) -> Qdrant:
        failed: list[Request] = []

        def respond(request: Request) -> Answer:
            if request.method == "POST" and not failed:
                failed.append(request)
                return Answer({"status": {"error": "Service internal error: busy"}, "time": 0.0}, 503)
            return self.engine.answer(request)

        return Qdrant(url=self.stack.enter_context(answering(respond)).url, collection="Cosine", retries=1)

    def test_the_key_is_sent(self) -> None:
        self.make().search("pool", k=1)
        assert self.server.requests[-1].headers["api-key"] == KEY

    @pytest.mark.parametrize("metric", METRICS)
    def test_higher_scores_are_better_whatever_the_metric(self, metric: str) -> None:
        hits = Qdrant(url=self.server.url, collection=metric).search("pool", k=6)
        with answering(speaking(filled(client.QdrantClient(":memory:"), metric))) as running:
            local = Qdrant(url=running.url, collection="hotel").search("pool", k=6)
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert len(set(scores)) == 6
        assert [hit.doc_id for hit in hits] == [hit.doc_id for hit in local]
        assert scores == pytest.approx([hit.score for hit in local], abs=1e-3)
        assert (scores[0] > 0) == (metric in ("Cosine", "Dot"))

    def test_named_vectors(self) -> None:
        found = {
            name: Qdrant(url=self.server.url, collection="named", vector=name, document="doc").search("shuttle bus", k=1)[0]
            for name in ("text", "title")
        }
        assert {hit.doc_id for hit in found.values()} == {"shuttle"}
        assert found["text"].score != found["title"].score
        with pytest.raises(InputError, match="'text' or 'title'"):
            Qdrant(url=self.server.url, collection="named").search("pool")
        with pytest.raises(InputError, match="leave out vector="):
            Qdrant(url=self.server.url, collection="Cosine", vector="text").search("pool")

    def test_passages_count_once_and_make_room_for_other_documents(self) -> None:
        connector = Qdrant(url=self.server.url, collection="Cosine", document="doc", chunk="part")
        hits = connector.search("the heated outdoor pool opens at seven", k=2)
        assert hits[0].doc_id == "pool"
        assert hits[0].chunk in ("1", "2")
        assert len({hit.doc_id for hit in hits}) == 2
        assert [request.json()["limit"] for request in self.server.requests[-2:]] == [2, 8]

    def test_without_a_chunk_field_the_point_names_the_passage_and_paths_reach_nested_fields(self) -> None:
        hits = Qdrant(url=self.server.url, collection="Cosine", document="meta.source").search("airport shuttle", k=1)
        assert (hits[0].doc_id, hits[0].chunk) == ("bus.md", "5")

    @pytest.mark.parametrize(
        ("scope", "expected"),
        [
            ({"lang": "de"}, {"4"}),
            ({"floor": "1"}, {"3", "4"}),
            ({"floor": "0", "open": "true"}, {"1", "2"}),
            ({"meta.source": "spa.md"}, {"3"}),
            ({"lang": "en' OR 1=1"}, set()),
        ],
    )
    def test_scope_is_equality_of_payload_fields(self, scope: dict[str, str], expected: set[str]) -> None:
        local = Qdrant(url=self.local.url, collection="hotel")
        # The Python face of qdrant-edge 0.9 reads True as 1: truth values are tried on the local mode, and as sent below.
        for connector in (local,) if "open" in scope else (local, self.make()):
            assert {hit.doc_id for hit in connector.search("pool", k=10, scope=scope)} == expected

    def test_a_collection_that_is_not_there_is_named(self) -> None:
        with pytest.raises(BadAnswer, match="no collection 'hotles'"):
            Qdrant(url=self.server.url, collection="hotles").search("pool")

    def test_a_point_without_the_document_field_names_those_there_are(self) -> None:
        with pytest.raises(BadAnswer, match=r"'document_id'.*document="):
            Qdrant(url=self.server.url, collection="Cosine", document="document_id").search("pool")

    def test_connect_from_settings(self) -> None:
        settings = {"kind": "qdrant", "url": self.server.url, "collection": "Cosine", "document": "doc"}
        hits = connect(settings, name="hotel").search("how do I get to the airport", k=1)
        assert hits[0].doc_id == "shuttle"
        assert hits[0].channels == {"hotel": 1}

    def test_nothing_of_it_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.DEBUG):
            self.make().search("pool", k=1)
            assert KEY not in caplog.text
            assert "127.0.0.1" not in caplog.text
            logging.getLogger("httpx2").info("what the program itself asks is logged as before")
        assert "logged as before" in caplog.text

    def test_the_collection_is_described_once(self) -> None:
        connector = self.make()
        connector.search("pool", k=1)
        connector.search("spa", k=1)
        assert [request.method for request in self.server.requests[-3:]] == ["GET", "POST", "POST"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer({"status": {"error": "Forbidden: only GET"}}, 403), AccessDenied),
        (Answer({"status": {"error": "slow down"}}, 429), Unreachable),
        (Answer({"status": {"error": "slow down"}}, 429, {"Retry-After": "1"}), Unreachable),
        (Answer({"status": {"error": "Wrong input"}}, 400), BadAnswer),
        (Answer(b"<html>welcome</html>", 200, {"Content-Type": "text/html"}), BadAnswer),
        (Answer({"result": {"config": {}}}, 200), BadAnswer),
        (Answer(b"", 302, {"Location": "http://127.0.0.1:1/"}), BadAnswer),
    ],
)
def test_each_answer_that_is_none_is_one_error(answer: Answer, error: type[Exception]) -> None:
    with answering([answer]) as running, pytest.raises(error) as caught:
        Qdrant(url=running.url, collection="c", retries=0).search("pool")
    assert "127.0.0.1" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_server_that_drips_times_out() -> None:
    with dripping() as port, pytest.raises(TimedOut):
        Qdrant(url=f"http://127.0.0.1:{port}", collection="c", retries=0, timeout=0.3).search("pool")


def test_tls_is_verified_and_ca_file_names_another_authority(engine: Engine, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: TLS cannot be tested without a certificate")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=ringtrue-test"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with answering(engine.answer, ssl_context=context) as running:
        url = f"https://127.0.0.1:{running.port}"
        with pytest.raises(Unreachable, match=r"certificate is not trusted.*ca_file="):
            Qdrant(url=url, collection="Cosine", retries=0).search("pool")
        assert Qdrant(url=url, collection="Cosine", ca_file=str(cert)).search("pool", k=1)
    for wrong in (tmp_path / "none.pem", key):
        with pytest.raises(InputError, match="ca_file"):
            Qdrant(url=url, collection="Cosine", ca_file=str(wrong)).search("pool")


def test_settings_travel_to_another_process(server: Answering) -> None:
    connector = Qdrant(url=server.url, collection="Cosine")
    hits = connector.search("pool", k=2)
    assert pickle.loads(pickle.dumps(connector)).search("pool", k=2) == hits


def test_vectors_of_another_model_are_refused() -> None:
    opened = client.QdrantClient(":memory:")
    opened.create_collection("c", vectors_config=models.VectorParams(size=4, distance=models.Distance.DOT))
    with answering(speaking(opened)) as running, pytest.raises(InputError, match=r"4 dimensions.*384; name the model"):
        Qdrant(url=running.url, collection="c").search("pool")


def test_a_key_that_is_not_set_is_named() -> None:
    with pytest.raises(MissingInput, match="QDRANT_NOT_SET"):
        Qdrant(url="http://127.0.0.1:1", collection="c", api_key_env="QDRANT_NOT_SET").search("pool")


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"collection": "c"}, "lacks the setting 'url'"),
        ({"collection": "c", "url": "a:6333"}, "https://"),
        ({"collection": "", "url": "http://a"}, "collection"),
        ({"collection": "c", "url": 7}, "url"),
        ({"collection": "c", "url": "http://a", "document": ""}, "document"),
        ({"collection": "c", "url": "http://a", "vectors": "v"}, "vector"),
        ({"url": "http://a"}, "collection"),
    ],
)
def test_settings_that_cannot_be_are_named(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        connect({"kind": "qdrant", **settings})


def test_the_filter_holds_names_and_values_as_they_are() -> None:
    made = qdrant._filter({"a": "x", "n": "7", "b": "false"})
    seven = {"should": [{"key": "n", "match": {"value": "7"}}, {"key": "n", "match": {"value": 7}}]}
    false = {"should": [{"key": "b", "match": {"value": "false"}}, {"key": "b", "match": {"value": False}}]}
    assert made == {"must": [{"key": "a", "match": {"value": "x"}}, seven, false]}


def test_the_example_runs() -> None:
    with answering(speaking(client.QdrantClient(":memory:"))) as running:
        environment = {**os.environ, "QDRANT_URL": running.url}
        done = subprocess.run(
            [sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=60, check=False, env=environment
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split()[1] == "shuttle"
