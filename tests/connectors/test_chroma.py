"""The Chroma connector against the real server of the chromadb wheel, and against servers that misbehave."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import pytest

from connectors.faults import Answer, Answering, Request, answering, free_port, halfway, proxy, silent
from ringtrue.errors import AccessDenied, BadAnswer, InputError, MissingInput, TimedOut, Unreachable
from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.connectors.chroma import Chroma
from ringtrue.retrieve.encode import encoder
from ringtrue.testing.retrievers import ConnectorSuite

# What `chroma run` calls, without importing the whole client first.
START = "import sys, chromadb_rust_bindings as chroma; chroma.cli(['chroma', 'run', *sys.argv[1:]])"
EXAMPLE = Path(__file__).parents[2] / "examples" / "connect" / "with_chroma.py"
COLLECTIONS = "/api/v2/tenants/default_tenant/databases/default_database/collections"
RECORDS = {
    "pool": ("a heated outdoor pool", {"doc": "pool", "lang": "en", "floor": 0, "open": True}),
    "pool-hours": ("the pool opens at seven", {"doc": "pool", "lang": "en", "floor": 0, "open": True}),
    "spa": ("spa with sauna and whirlpool", {"doc": "spa", "lang": "en", "floor": 1, "open": True}),
    "schwimmbad": ("Schwimmbad mit Liegewiese, pool", {"doc": "schwimmbad", "lang": "de", "floor": 1, "open": False}),
    "shuttle": ("airport shuttle every half hour", {"doc": "shuttle", "lang": "en", "floor": 0, "open": False}),
    "breakfast": ("breakfast buffet until eleven", {"doc": "breakfast", "lang": "en", "floor": 2, "open": True}),
}
TOKEN = "chroma-token-4711"


def post(url: str, body: Any, method: str = "POST") -> Any:
    """Speak to the real server in the tests' own words, not through the connector."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def fill(url: str, name: str, space: str, *, records: dict[str, Any] = RECORDS) -> None:
    """Make a collection and embed records into it."""
    made = post(url + COLLECTIONS, {"name": name, "configuration": {"hnsw": {"space": space}}})
    texts = [text for text, _ in records.values()]
    body = {
        "ids": list(records),
        "embeddings": encoder().encode(texts).tolist(),
        "documents": texts,
        "metadatas": [metadata for _, metadata in records.values()],
    }
    post(f"{url}{COLLECTIONS}/{made['id']}/add", body)


@pytest.fixture(scope="session")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Chroma server with a collection per metric; its address."""
    if find_spec("chromadb_rust_bindings") is None:
        pytest.skip("CHROMA IS NOT TESTED: pip install chromadb, which carries the server")
    port = free_port()
    folder = tmp_path_factory.mktemp("chroma")
    command = [sys.executable, "-c", START, "--path", str(folder / "data"), "--host", "127.0.0.1", "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "ANONYMIZED_TELEMETRY": "0"},
        )
        try:
            end = time.monotonic() + 120
            while True:
                try:
                    post(f"{url}/api/v2/heartbeat", None, "GET")
                    break
                except OSError:
                    alive = server.poll() is None and time.monotonic() < end
                    assert alive, (folder / "log").read_text(errors="replace")[-500:]
                    time.sleep(0.05)
            for space in ("cosine", "ip", "l2"):
                fill(url, f"by-{space}", space)
            post(url + COLLECTIONS, {"name": "nothing"})
            yield url
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait(10)


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def in_front_of(url: str, decide: Callable[[Request], Answer | None]) -> Callable[[Request], Answer]:
    """A responder that asks the real server whatever ``decide`` does not answer itself."""

    def respond(request: Request) -> Answer:
        own = decide(request)
        if own is not None:
            return own
        headers = {"content-type": "application/json"}
        onward = urllib.request.Request(url + request.path, request.body or None, headers, method=request.method)
        try:
            with urllib.request.urlopen(onward, timeout=10) as answer:
                return Answer(answer.read(), answer.status)
        except urllib.error.HTTPError as problem:
            return Answer(problem.read(), problem.code)

    return respond


def stand_in(stack: ExitStack, ids: Any, distances: Any, metadata: Any, **settings: Any) -> Chroma:
    """A connector to a server that answers the lookup rightly and the query with these columns."""
    found = {"id": "c1", "configuration_json": {"hnsw": {"space": "cosine"}}, "dimension": 384}
    answer = {"ids": ids, "distances": distances, "metadatas": metadata}
    return Chroma(url=stack.enter_context(answering([found, answer])).url, collection="c", retries=0, **settings)


class TestChroma(ConnectorSuite):
    SECRETS: ClassVar[tuple[str, ...]] = (TOKEN, "127.0.0.1")

    @pytest.fixture(autouse=True)
    def _server(self, chroma: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setenv("CHROMA_TOKEN", TOKEN)
        monkeypatch.setenv("CHROMA_WRONG", "guessed")
        self.url = chroma
        with ExitStack() as self.stack:
            yield

    def make(self) -> Chroma:
        return Chroma(url=self.url, collection="by-cosine", token_env="CHROMA_TOKEN")

    def guarded(self) -> Answering:
        """The real server behind one that asks for the token, as it is run in production: Chroma 1.x has no auth of its own."""

        def decide(request: Request) -> Answer | None:
            if request.headers.get("x-chroma-token") == TOKEN or request.headers.get("authorization") == f"Bearer {TOKEN}":
                return None
            return Answer({"error": "AuthError", "message": "Unauthorized"}, 401)

        return self.stack.enter_context(answering(in_front_of(self.url, decide)))

    def wrong_credentials(self) -> Chroma:
        return Chroma(url=self.guarded().url, collection="by-cosine", token_env="CHROMA_WRONG")

    def nobody_there(self) -> Chroma:
        return Chroma(url=f"http://127.0.0.1:{free_port()}", collection="by-cosine", retries=0)

    def gone_mid_query(self) -> Chroma:
        cut = self.stack.enter_context(proxy(port_of(self.url)))
        connector = Chroma(url=f"http://127.0.0.1:{cut.port}", collection="by-cosine", retries=0)
        assert connector.search("pool", k=1)
        cut.cut_answer_after(150)  # the head of the answer and the beginning of its JSON
        return connector

    def too_slow(self) -> Chroma:
        slow = self.stack.enter_context(proxy(port_of(self.url)))
        connector = Chroma(url=f"http://127.0.0.1:{slow.port}", collection="by-cosine", retries=0, timeout=0.3)
        slow.hang()
        return connector

    def malformed(self) -> Chroma:
        return stand_in(self.stack, [["a", "b"]], [[0.1]], [[None, None]])

    def twice(self) -> Chroma:
        return stand_in(self.stack, [["a", "a"]], [[0.1, 0.2]], [[None, None]])

    def few(self) -> tuple[Chroma, str, int]:
        return self.make(), "pool", len(RECORDS)

    def fails_once(self) -> Chroma:
        failed: list[Request] = []

        def decide(request: Request) -> Answer | None:
            if request.path.endswith("/query") and not failed:
                failed.append(request)
                return Answer({"error": "InternalError", "message": "busy"}, 503)
            return None

        server = self.stack.enter_context(answering(in_front_of(self.url, decide)))
        return Chroma(url=server.url, collection="by-cosine", retries=1)

    def test_both_kinds_of_token_header_are_sent(self) -> None:
        server = self.guarded()
        for header, key, value in (
            ("x-chroma-token", "x-chroma-token", TOKEN),
            ("Authorization", "authorization", f"Bearer {TOKEN}"),
        ):
            connector = Chroma(url=server.url, collection="by-cosine", token_env="CHROMA_TOKEN", token_header=header)
            assert connector.search("pool", k=1)
            assert server.requests[-1].headers[key] == value

    @pytest.mark.parametrize("space", ["cosine", "ip", "l2"])
    def test_scores_are_similarities_whatever_the_metric(self, space: str) -> None:
        hits = Chroma(url=self.url, collection=f"by-{space}").search("pool", k=6)
        vectors = encoder().encode(["pool", *(RECORDS[hit.doc_id][0] for hit in hits)])
        expected = vectors[1:] @ vectors[0] if space != "l2" else -((vectors[1:] - vectors[0]) ** 2).sum(axis=1)
        assert [hit.score for hit in hits] == pytest.approx(expected.tolist(), abs=1e-4)

    def test_passages_count_once_and_make_room_for_other_documents(self) -> None:
        server = self.stack.enter_context(answering(in_front_of(self.url, lambda request: None)))
        connector = Chroma(url=server.url, collection="by-cosine", document="doc")
        hits = connector.search("the heated outdoor pool opens at seven", k=2)
        assert (hits[0].doc_id, hits[0].chunk) in {("pool", "pool"), ("pool", "pool-hours")}
        assert len({hit.doc_id for hit in hits}) == 2
        asked = [request.json()["n_results"] for request in server.requests if request.path.endswith("/query")]
        assert asked == [2, 8]  # the best two records are of one document

    @pytest.mark.parametrize(
        ("scope", "expected"),
        [
            ({"lang": "de"}, {"schwimmbad"}),
            ({"floor": "1"}, {"spa", "schwimmbad"}),
            ({"open": "true", "floor": "0"}, {"pool", "pool-hours"}),
            ({"lang": "$ne"}, set()),
        ],
    )
    def test_scope_is_equality_of_metadata_also_of_numbers_and_truth_values(
        self, scope: dict[str, str], expected: set[str]
    ) -> None:
        assert {hit.doc_id for hit in self.make().search("pool", k=10, scope=scope)} == expected

    def test_scope_cannot_name_an_operator(self) -> None:
        with pytest.raises(InputError, match=r"\$or"):
            self.make().search("pool", scope={"$or": "x"})

    def test_an_empty_collection_has_an_empty_answer(self) -> None:
        assert self.make().search("pool", k=1)
        assert Chroma(url=self.url, collection="nothing").search("pool", k=5) == []

    def test_a_collection_that_is_not_there_is_named(self) -> None:
        with pytest.raises(BadAnswer, match=r"Collection \[hotles\] does not exist"):
            Chroma(url=self.url, collection="hotles").search("pool")
        with pytest.raises(BadAnswer, match="404"):
            Chroma(url=self.url, collection="by-cosine", tenant="nobody").search("pool")

    def test_a_collection_made_again_is_found_again(self) -> None:
        fill(self.url, "again", "cosine", records={"old": ("pool", {"doc": "old"})})
        connector = Chroma(url=self.url, collection="again")
        assert [hit.doc_id for hit in connector.search("pool")] == ["old"]
        post(f"{self.url}{COLLECTIONS}/again", None, "DELETE")
        fill(self.url, "again", "cosine", records={"new": ("pool", {"doc": "new"})})
        try:
            assert [hit.doc_id for hit in connector.search("pool")] == ["new"]
        finally:
            post(f"{self.url}{COLLECTIONS}/again", None, "DELETE")

    def test_the_id_is_looked_up_once(self) -> None:
        server = self.stack.enter_context(answering(in_front_of(self.url, lambda request: None)))
        connector = Chroma(url=server.url, collection="by-cosine")
        connector.search("pool", k=1)
        connector.search("spa", k=1)
        assert [request.method for request in server.requests] == ["GET", "POST", "POST"]

    def test_connect_from_settings(self) -> None:
        settings = {"kind": "chroma", "url": self.url, "collection": "by-cosine", "document": "doc"}
        hits = connect(settings, name="hotel").search("how do I get to the airport", k=1)
        assert hits[0].doc_id == "shuttle"
        assert hits[0].channels == {"hotel": 1}


def test_vectors_of_another_model_are_refused() -> None:
    with (
        answering([{"id": "c1", "configuration_json": {"hnsw": {"space": "l2"}}, "dimension": 768}]) as server,
        pytest.raises(InputError, match=r"768 dimensions and those of .* 384; name the model"),
    ):
        Chroma(url=server.url, collection="c").search("pool")


@pytest.mark.parametrize(
    ("said", "space"),
    [
        ({"configuration_json": {"hnsw": None, "spann": {"space": "ip"}}}, "ip"),
        ({"metadata": {"hnsw:space": "cosine"}}, "cosine"),
        ({}, "l2"),
    ],
)
def test_the_metric_is_read_where_each_version_keeps_it(said: dict[str, Any], space: str) -> None:
    assert Chroma(collection="c")._space(said) == space


@pytest.mark.parametrize(
    "lookup", [[], {"name": "c"}, {"id": 7}, {"id": "c1", "configuration_json": {"hnsw": {"space": "hamming"}}}, "<html>"]
)
def test_a_lookup_that_describes_no_collection_is_a_bad_answer(lookup: Any) -> None:
    with answering([lookup]) as server, pytest.raises(BadAnswer):
        Chroma(url=server.url, collection="c", retries=0).search("pool")


@pytest.mark.parametrize(
    "answer",
    [
        {"ids": [["a"]], "distances": [["near"]], "metadatas": [[None]]},
        {"ids": [["a"]], "distances": None, "metadatas": [[None]]},
        {"ids": [[None]], "distances": [[0.1]], "metadatas": [[None]]},
        {"error": "x"},
        [],
    ],
)
def test_an_answer_that_is_none_is_a_bad_answer(answer: Any) -> None:
    found = {"id": "c1", "dimension": 384}
    with answering([found, answer, found]) as server, pytest.raises(BadAnswer):
        Chroma(url=server.url, collection="c", retries=0).search("pool")


def test_a_record_without_the_document_field_names_those_there_are() -> None:
    with ExitStack() as stack:
        connector = stand_in(stack, [["a"]], [[0.1]], [[{"source": "x", "page": 1}]], document="doc")
        with pytest.raises(BadAnswer, match=r"'doc'.*'source', 'page'"):
            connector.search("pool")


def test_the_whole_attempt_is_within_the_timeout() -> None:
    """A lookup and a query that each take most of it are too slow together."""
    with answering([Answer({"id": "c1", "dimension": 384}, wait=0.25), Answer({"ids": [[]]}, wait=0.25)]) as server:
        encoder().encode(["warm"])
        with pytest.raises(TimedOut):
            Chroma(url=server.url, collection="c", retries=0, timeout=0.4).search("pool")


def test_half_an_answer_and_silence() -> None:
    with halfway() as port, pytest.raises(Unreachable):
        Chroma(url=f"http://127.0.0.1:{port}", collection="c", retries=0).search("pool")
    with silent() as port, pytest.raises(TimedOut):
        Chroma(url=f"http://127.0.0.1:{port}", collection="c", retries=0, timeout=0.2).search("pool")


def test_a_token_that_is_not_set_is_named_and_access_denied_is_not_tried_again() -> None:
    with pytest.raises(MissingInput, match="CHROMA_NOT_SET"):
        Chroma(url="http://127.0.0.1:1", collection="c", token_env="CHROMA_NOT_SET").search("pool")
    with answering([Answer({}, 403)]) as server:
        with pytest.raises(AccessDenied):
            Chroma(url=server.url, collection="c").search("pool")
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"collection": ""}, "collection"),
        ({"collection": ".."}, "collection"),
        ({"collection": "c", "tenant": 3}, "tenant"),
        ({"collection": "c", "document": ""}, "document"),
        ({"collection": "c", "token_header": "X-Mine"}, "x-chroma-token"),
        ({"collection": "c", "url": ""}, "url"),
        ({"collection": "c", "timeout": 0}, "timeout"),
        ({}, "collection"),
        ({"collection": "c", "colection": "d"}, "collection"),
    ],
)
def test_settings_that_cannot_be_are_named(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        connect({"kind": "chroma", **settings})


def test_a_name_is_quoted_in_the_address() -> None:
    with answering([Answer({}, 404)]) as server:
        with pytest.raises(BadAnswer):
            Chroma(url=server.url + "/", collection="a/../b?c", tenant="t#1", retries=0).search("pool")
        assert server.requests[0].path == "/api/v2/tenants/t%231/databases/default_database/collections/a%2F..%2Fb%3Fc"


def test_the_example_runs() -> None:
    pytest.importorskip("chromadb_rust_bindings", reason="THE CHROMA EXAMPLE IS NOT TESTED: pip install chromadb")
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split()[1] == "shuttle"
