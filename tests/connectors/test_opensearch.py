"""OpenSearch and Elasticsearch, against a small server that speaks their documented interface.

Neither system can be started from a wheel, so the server in ``opensearch_server`` stands in for both.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from connectors import faults
from connectors.opensearch_server import Cluster, Running, serving
from ringtrue.errors import AccessDenied, BadAnswer, InputError, MissingInput, TimedOut, Unreachable
from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.connectors.opensearch import Elasticsearch, OpenSearch
from ringtrue.retrieve.encode import encoder
from ringtrue.testing.retrievers import ConnectorSuite, raises

EXAMPLE = Path(__file__).parents[2] / "examples" / "connect" / "with_opensearch.py"
USER, PASSWORD = "reader", "very-secret-word"
HOTELS = {
    "h1": {"title": "Heated pool", "body": "The pool is open from seven to ten.", "lang": "en"},
    "h2": {"title": "Spa", "body": "Sauna and steam bath stand beside the pool.", "lang": "en"},
    "h3": {"title": "Breakfast", "body": "Coffee is served until eleven, also beside the pool on sunny days.", "lang": "en"},
    "h4": {"title": "Parken", "body": "Der pool ist neben dem Parkplatz.", "lang": "de"},
    "h5": {"title": "Parking", "body": "Cars stand in the yard behind the house.", "lang": "en"},
}
PASSAGES = {
    **{f"d1-{number}": {"doc_id": "d1", "part": number, "body": "pool " * (9 - number)} for number in range(8)},
    "d2-0": {"doc_id": "d2", "part": 0, "body": "a pool somewhere in a longer text about the garden and the gate"},
    "d3-0": {
        "doc_id": "d3",
        "part": 0,
        "body": "a pool that is named once in a still longer text about the cellar and its many doors",
    },
}
KINDS = {"opensearch": OpenSearch, "elasticsearch": Elasticsearch}


def fill(cluster: Cluster, name: str, documents: dict[str, Any], properties: dict[str, Any]) -> None:
    cluster.create(name, {"mappings": {"properties": properties}})
    lines = [line for key, document in documents.items() for line in ({"index": {"_id": key}}, document)]
    cluster.bulk(name, "".join(json.dumps(line) + "\n" for line in lines).encode())


def filled(flavour: str, **access: Any) -> Cluster:
    cluster = Cluster(flavour, **access)
    fill(cluster, "hotels", HOTELS, {"lang": {"type": "keyword"}})
    fill(cluster, "passages", PASSAGES, {"doc_id": {"type": "keyword"}})
    return cluster


@pytest.fixture(scope="module", params=sorted(KINDS))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    with serving(filled(request.param)) as running:
        yield running


def made(running: Running, **settings: Any) -> Any:
    return KINDS[running.cluster.flavour](**{"url": running.url, "index": "hotels", "fields": ["title^2", "body"], **settings})


def last_request(running: Running) -> tuple[dict[str, list[str]], dict[str, str], Any]:
    _, path, headers, body = running.cluster.seen[-1]
    return parse_qs(urlsplit(path).query), dict(headers), json.loads(body)


class Suite(ConnectorSuite):
    """Both systems hold the same suite; only the class and the flavour of the server differ."""

    KIND: ClassVar[Any]
    FLAVOUR: ClassVar[str]
    SECRETS = ("127.0.0.1", PASSWORD, USER, "wrong-password")

    @pytest.fixture(autouse=True)
    def _systems(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setenv("SHOP_USER", USER)
        monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
        monkeypatch.setenv("WRONG_PASSWORD", "wrong-password")
        with ExitStack() as self.stack:
            self.running = self.stack.enter_context(serving(filled(self.FLAVOUR, basic=(USER, PASSWORD))))
            yield

    def make(self, **settings: Any) -> Any:
        access = {"user_env": "SHOP_USER", "password_env": "SHOP_PASSWORD"}
        return self.KIND(**{"url": self.running.url, "index": "hotels", "fields": ["title^2", "body"], **access, **settings})

    def at(self, port: int, **settings: Any) -> Any:
        return self.make(**{"url": f"http://127.0.0.1:{port}", "retries": 0, **settings})

    def wrong_credentials(self) -> Any:
        return self.make(password_env="WRONG_PASSWORD")

    def nobody_there(self) -> Any:
        return self.at(faults.free_port())

    def gone_mid_query(self) -> Any:
        proxy = self.stack.enter_context(faults.proxy(self.running.port))
        proxy.cut_answer_after(60)
        return self.at(proxy.port)

    def too_slow(self) -> Any:
        proxy = self.stack.enter_context(faults.proxy(self.running.port))
        proxy.hang()
        return self.at(proxy.port, timeout=0.3)

    def malformed(self) -> Any:
        return self.at(self.stack.enter_context(faults.answering([{"hits": "many"}])).port)

    def twice(self) -> Any:
        return self.make(index="passages", id="doc_id", fields=["body"])

    def few(self) -> Any:
        return self.make(), "pool", 4

    def fails_once(self) -> Any:
        real = self.running.cluster.search("hotels", {}, {})
        answers = [faults.Answer({"error": "no master", "status": 503}, 503), real]
        return self.at(self.stack.enter_context(faults.answering(answers)).port, retries=1)


class TestOpenSearchSuite(Suite):
    KIND, FLAVOUR = OpenSearch, "opensearch"


class TestElasticsearchSuite(Suite):
    KIND, FLAVOUR = Elasticsearch, "elasticsearch"


del Suite  # pytest would collect it as well


def test_the_weighted_title_decides_and_scores_are_the_systems_own(server: Running) -> None:
    hits = made(server).search("heated pool", k=5)
    assert hits[0].doc_id == "h1"
    raw = server.cluster.search("hotels", last_request(server)[2], {})["hits"]["hits"]
    assert [(hit.doc_id, hit.score) for hit in hits] == [(hit["_id"], hit["_score"]) for hit in raw]
    unweighted = made(server, fields=["title", "body"]).search("heated pool", k=1)
    assert unweighted[0].score < hits[0].score


def test_the_question_travels_as_a_value_only_r7(server: Running) -> None:
    question = 'title:* OR "x" {"match_all": {}} \\ \u202e'
    assert made(server).search(question, k=3) == []
    body = last_request(server)[2]
    assert body["query"] == {"multi_match": {"query": question, "fields": ["title^2", "body"], "type": "best_fields"}}


def test_a_scope_is_a_term_filter_and_does_not_score(server: Running) -> None:
    connector = made(server)
    plain = {hit.doc_id: hit.score for hit in connector.search("pool", k=5)}
    german = connector.search("pool", k=5, scope={"lang": "de"})
    assert {hit.doc_id: hit.score for hit in german} == {"h4": plain["h4"]}
    assert last_request(server)[2]["query"]["bool"]["filter"] == [{"term": {"lang": {"value": "de"}}}]


def test_a_scope_name_may_stand_for_another_field(server: Running) -> None:
    assert [hit.doc_id for hit in made(server, filters={"tongue": "lang"}).search("pool", k=5, scope={"tongue": "de"})] == [
        "h4"
    ]
    # A text field holds lower-case words, so a capital letter never matches there; its keyword does.
    assert made(server).search("pool", k=5, scope={"title": "Spa"}) == []
    assert [hit.doc_id for hit in made(server, filters={"title": "title.keyword"}).search("pool", scope={"title": "Spa"})] == [
        "h2"
    ]


def test_passages_of_a_document_count_once_and_k_documents_are_found(server: Running) -> None:
    connector = made(server, index="passages", fields=["body"], id="doc_id", chunk="_id")
    hits = connector.search("pool", k=3)
    assert [hit.doc_id for hit in hits] == ["d1", "d2", "d3"]
    assert hits[0].chunk in PASSAGES
    named = made(server, index="passages", fields=["body"], id="doc_id", chunk="part").search("pool", k=1)
    assert named[0].chunk in {str(number) for number in range(8)}


def test_an_index_that_is_not_there_is_named(server: Running) -> None:
    for name in ("shop", "shop-*", "hotels,shop"):
        with raises(BadAnswer) as messages:
            made(server, index=name).search("pool")
        assert f"'{name}'" in messages[0]


def test_a_pattern_finds_several_indexes(server: Running) -> None:
    found = {hit.doc_id for hit in made(server, index="hotels,pass*", fields=["body"]).search("pool", k=100)}
    assert {"h1", "d2-0"} <= found


def test_a_field_that_is_not_in_the_source_is_named(server: Running) -> None:
    with raises(BadAnswer) as messages:
        made(server, id="sku").search("pool")
    assert "'sku'" in messages[0]


def test_a_dotted_id_is_found_in_nested_and_in_flat_sources(server: Running) -> None:
    name = "nested"
    if name not in server.cluster.indexes:
        fill(server.cluster, name, {"1": {"meta": {"sku": "a"}, "body": "pool"}, "2": {"meta.sku": "b", "body": "pool"}}, {})
    found = made(server, index=name, fields=["body"], id="meta.sku").search("pool")
    assert sorted(hit.doc_id for hit in found) == ["a", "b"]


WHOLE = {"took": 1, "timed_out": False, "_shards": {"total": 2, "successful": 2, "failed": 0}, "hits": {"hits": []}}


@pytest.mark.parametrize(
    ("change", "wanted", "word"),
    [
        ({"timed_out": True}, TimedOut, "before all documents"),
        ({"_shards": {"total": 2, "successful": 1, "failed": 1}}, Unreachable, "1 of 2 shards"),
        (
            {"_shards": {"total": 2, "failed": 1, "failures": [{"node": "n1", "reason": {"type": "io_exception"}}]}},
            Unreachable,
            "io_exception",
        ),
        ({"_shards": {"total": 0, "successful": 0, "failed": 0}}, BadAnswer, "no index"),
        ({"_shards": None}, BadAnswer, "not a search answer"),
        ({"timed_out": None}, TimedOut, "before all documents"),
        ({"hits": {"hits": None}}, BadAnswer, "no list"),
        ({"hits": {"hits": ["h1"]}}, BadAnswer, "no object"),
        ({"hits": {"hits": [{"_score": 1.0}]}}, BadAnswer, "_id"),
        ({"hits": {"hits": [{"_id": "h1", "_score": "high"}]}}, BadAnswer, "not a number"),
    ],
)
def test_part_of_an_answer_is_no_answer(change: dict[str, Any], wanted: type[Exception], word: str) -> None:
    with faults.answering([{**WHOLE, **change}]) as server, raises(wanted) as messages:
        OpenSearch(url=server.url, index="hotels", fields=["body"], retries=0).search("pool")
    assert word in messages[0]
    with faults.answering([WHOLE]) as server:  # the same answer without the fault is an empty list
        assert OpenSearch(url=server.url, index="hotels", fields=["body"], retries=0).search("pool") == []


def test_whole_answers_from_the_same_copies_are_asked_for(server: Running) -> None:
    made(server).search("pool")
    params, _, body = last_request(server)
    assert params["allow_partial_search_results"] == ["false"]
    assert params["allow_no_indices"] == ["false"]
    assert params["preference"] == ["ringtrue"]
    assert body["_source"] is False
    assert body["size"] == 10


def test_a_question_with_too_many_words_is_cut_where_the_system_would_refuse_it(server: Running) -> None:
    long = "garden " * 600 + "pool"
    assert [hit.doc_id for hit in made(server).search("pool " + long, k=1)] == ["h1"]
    assert len(last_request(server)[2]["query"]["multi_match"]["query"].split()) == 500
    with raises(BadAnswer) as messages:
        made(server, max_clauses=3000).search(long)
    assert "too_many" in messages[0]
    short = "pool " * 500
    made(server).search(short)
    assert last_request(server)[2]["query"]["multi_match"]["query"] == short


def test_more_hits_than_the_window_holds_are_refused(server: Running) -> None:
    with raises(InputError):
        made(server).search("pool", k=10_001)
    assert made(server).search("pool", k=10_000)


class TestLogin:
    @pytest.mark.parametrize("flavour", sorted(KINDS))
    @pytest.mark.parametrize(
        ("access", "setting", "value", "header"),
        [
            ({"api_key": "YWJjOmRlZg=="}, "api_key_env", "YWJjOmRlZg==", "ApiKey YWJjOmRlZg=="),
            ({"api_key": "YWJjOmRlZg=="}, "api_key_env", "abc:def", "ApiKey YWJjOmRlZg=="),
            ({"token": "t0ken"}, "token_env", "t0ken", "Bearer t0ken"),
        ],
    )
    def test_keys_and_tokens_are_sent(
        self, monkeypatch: pytest.MonkeyPatch, flavour: str, access: dict[str, str], setting: str, value: str, header: str
    ) -> None:
        monkeypatch.setenv("SHOP_KEY", value)
        monkeypatch.setenv("OTHER_KEY", "something-else")
        with serving(filled(flavour, **access)) as running:
            assert made(running, **{setting: "SHOP_KEY"}).search("pool")
            assert last_request(running)[1]["authorization"] == header
            with raises(AccessDenied) as messages:
                made(running, **{setting: "OTHER_KEY"}).search("pool")
            assert "something-else" not in messages[0]
            with raises(AccessDenied):
                made(running).search("pool")

    def test_basic_authentication_is_sent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHOP_USER", USER)
        monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
        with serving(filled("opensearch", basic=(USER, PASSWORD))) as running:
            assert made(running, user_env="SHOP_USER", password_env="SHOP_PASSWORD").search("pool")
            sent = last_request(running)[1]["authorization"]
        assert base64.b64decode(sent.removeprefix("Basic ")).decode() == f"{USER}:{PASSWORD}"

    def test_a_variable_that_is_not_set_is_named(self, monkeypatch: pytest.MonkeyPatch, server: Running) -> None:
        monkeypatch.delenv("NOT_SET", raising=False)
        with raises(MissingInput) as messages:
            made(server, token_env="NOT_SET").search("pool")
        assert "NOT_SET" in messages[0]


class TestTemplate:
    BODY: ClassVar[dict[str, Any]] = {
        "size": "{k}",
        "query": {"bool": {"must": [{"multi_match": {"query": "{text}", "fields": ["title"]}}], "filter": []}},
    }

    def test_a_body_of_ones_own_is_sent_with_values_in_its_places(self, server: Running) -> None:
        hits = made(server, body=self.BODY, fields=[]).search('spa "x', k=2)
        assert [hit.doc_id for hit in hits] == ["h2"]
        body = last_request(server)[2]
        assert body["size"] == 2
        assert body["query"]["bool"]["must"][0]["multi_match"]["query"] == 'spa "x'

    def test_a_scope_goes_to_its_place_or_is_refused(self, server: Running) -> None:
        body = {**self.BODY, "query": {"bool": {"filter": [{"term": {"lang": "{scope.lang}"}}]}}}
        assert [hit.doc_id for hit in made(server, body=body).search("x", scope={"lang": "de"})] == ["h4"]
        with raises(InputError) as messages:
            made(server, body=body).search("x", scope={"lang": "de", "city": "Rome"})
        assert "'city'" in messages[0]
        with raises(InputError):
            made(server, body=self.BODY).search("x", scope={"lang": "de"})

    def test_without_a_scope_the_part_that_asks_for_it_is_left_out(self, server: Running) -> None:
        inside = {
            "must": [{"multi_match": {"query": "{text}", "fields": ["body"]}}],
            "filter": [{"term": {"lang": "{scope.lang}"}}],
        }
        connector = made(server, body={"size": "{k}", "query": {"bool": inside}})
        assert len(connector.search("pool")) == 4
        assert "filter" not in last_request(server)[2]["query"]["bool"]
        assert len(connector.search("pool", scope={"lang": "en"})) == 3

    def test_a_body_that_never_says_k_is_refused(self, server: Running) -> None:
        with raises(InputError) as messages:
            made(server, body={"query": {"match_all": {}}})
        assert "{k}" in messages[0]

    def test_a_wrong_body_is_a_bad_answer_with_the_systems_reason(self, server: Running) -> None:
        body = {"size": "{k}", "query": {"multi_match": {"query": "{text}", "fieldz": ["title"]}}}
        with raises(BadAnswer) as messages:
            made(server, body=body).search("pool")
        assert "fieldz" in messages[0]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"url": "search.example.com"}, "http://"),
        ({"index": ""}, "index="),
        ({"index": "_all"}, "index="),
        ({"index": "a/../b"}, "index="),
        ({"mode": "vektor"}, "'vector'"),
        ({"fields": "title"}, "fields="),
        ({"fields": ["title^x"]}, "fields="),
        ({"fields": []}, "no fields"),
        ({"mode": "vector"}, "vector_field"),
        ({"max_clauses": 0}, "max_clauses"),
        ({"user_env": "U"}, "password_env"),
        ({"token_env": "T", "api_key_env": "K"}, "keep one"),
        ({"timeout": 0}, "timeout"),
    ],
)
@pytest.mark.parametrize("kind", [OpenSearch, Elasticsearch], ids=["opensearch", "elasticsearch"])
def test_settings_that_cannot_be_are_named(kind: Any, change: dict[str, Any], word: str) -> None:
    with raises(InputError) as messages:
        kind(**{"url": "http://127.0.0.1:9", "index": "hotels", "fields": ["title"], **change})
    assert word in messages[0]


def test_candidates_are_checked() -> None:
    for candidates in (0, 10_001):
        with raises(InputError):
            Elasticsearch(url="http://127.0.0.1:9", index="hotels", fields=["title"], candidates=candidates)


def test_connect_reads_the_settings_of_a_file(server: Running) -> None:
    settings = {"kind": server.cluster.flavour, "url": server.url, "index": "hotels", "fields": ["title^2", "body"]}
    shop = connect(settings, name="shop")
    assert shop.search("heated", k=1)[0].channels == {"shop": 1}
    assert server.url not in repr(shop)
    with raises(InputError) as messages:
        connect({**settings, "indx": "x"})
    assert "'index'" in messages[0]
    with raises(InputError) as messages:
        connect({"kind": server.cluster.flavour, "url": server.url})
    assert "'index'" in messages[0]


class TestVectors:
    """Vector and hybrid search with the real encoder."""

    @pytest.fixture(scope="class")
    @classmethod
    def vectors(cls) -> dict[str, list[float]]:
        try:
            rows = encoder().encode([f"{document['title']}. {document['body']}" for document in HOTELS.values()])
        except MissingInput as reason:
            pytest.skip(f"no encoder, so vector search was NOT tested: {reason}")
        return dict(zip(HOTELS, rows.tolist(), strict=True))

    @pytest.fixture(params=sorted(KINDS))
    def near(self, request: pytest.FixtureRequest, vectors: dict[str, list[float]]) -> Iterator[Running]:
        documents = {key: {**document, "vector": vectors[key]} for key, document in HOTELS.items()}
        shape = {"opensearch": {"type": "knn_vector", "dimension": 384}, "elasticsearch": {"type": "dense_vector", "dims": 384}}
        cluster = Cluster(request.param)
        fill(cluster, "hotels", documents, {"lang": {"type": "keyword"}, "vector": shape[request.param]})
        with serving(cluster) as running:
            yield running

    def test_meaning_is_found_without_a_common_word(self, near: Running) -> None:
        connector = made(near, mode="vector", vector_field="vector", fields=[])
        hits = connector.search("where can I leave my automobile", k=3)
        assert hits[0].doc_id == "h5"
        assert len(hits) == 3
        expected = [(key, score) for key, score in self.cosines(near, "where can I leave my automobile")][:3]
        assert [hit.doc_id for hit in hits] == [key for key, _ in expected]
        assert [hit.score for hit in hits] == pytest.approx([(1 + score) / 2 for _, score in expected], abs=1e-5)

    def cosines(self, near: Running, text: str) -> list[tuple[str, float]]:
        question = encoder().encode([text])[0]
        scores = {
            key: float(question @ document["vector"]) for key, document in near.cluster.indexes["hotels"].documents.items()
        }
        return sorted(scores.items(), key=lambda pair: -pair[1])

    def test_the_vector_is_asked_for_as_each_system_documents_it(self, near: Running) -> None:
        made(near, mode="vector", vector_field="vector").search("pool", k=3, scope={"lang": "en"})
        body = last_request(near)[2]
        term = {"term": {"lang": {"value": "en"}}}
        if near.cluster.flavour == "opensearch":
            inside = body["query"]["knn"]["vector"]
            assert (inside["k"], len(inside["vector"])) == (3, 384)
            assert inside["filter"] == {"bool": {"filter": [term]}}
        else:
            assert "query" not in body
            assert (body["knn"]["field"], body["knn"]["k"], body["knn"]["num_candidates"]) == ("vector", 3, 100)
            assert (len(body["knn"]["query_vector"]), body["knn"]["filter"]) == (384, [term])

    def test_a_scope_holds_for_both_halves_of_a_hybrid_search(self, near: Running) -> None:
        for settings in ({}, {"pipeline": "both"}) if near.cluster.flavour == "opensearch" else ({},):
            connector = made(near, mode="hybrid", vector_field="vector", **settings)
            assert [hit.doc_id for hit in connector.search("pool", k=5, scope={"lang": "de"})] == ["h4"]

    def test_hybrid_search_adds_both_scores(self, near: Running) -> None:
        words = {hit.doc_id: hit.score for hit in made(near).search("pool", k=5)}
        places = {hit.doc_id: hit.score for hit in made(near, mode="vector", vector_field="vector").search("pool", k=5)}
        both = made(near, mode="hybrid", vector_field="vector").search("pool", k=5)
        assert {hit.doc_id: hit.score for hit in both} == pytest.approx(
            {key: words.get(key, 0.0) + score for key, score in places.items()}
        )

    def test_a_pipeline_is_named_in_the_request(self, near: Running) -> None:
        if near.cluster.flavour != "opensearch":
            with pytest.raises(TypeError):
                made(near, pipeline="both")
            return
        hits = made(near, mode="hybrid", vector_field="vector", pipeline="both").search("pool", k=5)
        params, _, body = last_request(near)
        assert params["search_pipeline"] == ["both"]
        assert [next(iter(part)) for part in body["query"]["hybrid"]["queries"]] == ["multi_match", "knn"]
        assert 0.0 <= hits[-1].score <= hits[0].score <= 1.0

    def test_no_question_has_no_neighbours(self, near: Running) -> None:
        before = len(near.cluster.seen)
        assert made(near, mode="vector", vector_field="vector").search(" ", k=3) == []
        assert len(near.cluster.seen) == before

    def test_the_wrong_vector_field_is_a_bad_answer(self, near: Running) -> None:
        with raises(BadAnswer):
            made(near, mode="vector", vector_field="title").search("pool")

    def test_a_template_may_use_the_vector(self, near: Running) -> None:
        if near.cluster.flavour == "opensearch":
            body: dict[str, Any] = {"size": "{k}", "query": {"knn": {"vector": {"vector": "{vector}", "k": "{k}"}}}}
        else:
            knn = {"field": "vector", "query_vector": "{vector}", "k": "{k}", "num_candidates": 50}
            body = {"size": "{k}", "knn": knn}
        asked = made(near, mode="vector", body=body, fields=[])
        assert asked.search("cars", k=2)[0].doc_id == "h5"
        assert len(asked.search("{vector}", k=2)) == 2


class TestStandIn:
    """The stand-in is worth something only while it refuses what the real systems refuse."""

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            ({"sise": 3}, "Unknown key for a VALUE_STRING in [sise]."),
            ({"query": {"mult_match": {}}}, "unknown query [mult_match]"),
            ({"query": {"bool": {"mast": []}}}, "[bool] query does not support [mast]"),
            ({"query": {"term": {"lang": {"valeu": "en"}}}}, "[term] query does not support [valeu]"),
            ({"size": 10_001}, "Result window is too large"),
        ],
    )
    def test_unknown_keys_are_refused_with_status_400(self, server: Running, body: dict[str, Any], reason: str) -> None:
        import httpx2

        answer = httpx2.post(f"{server.url}/hotels/_search", json=body)
        assert answer.status_code == 400
        assert reason in answer.json()["error"]["root_cause"][0]["reason"]

    def test_the_other_systems_knn_is_refused(self) -> None:
        import httpx2

        wrong = {
            "opensearch": {"knn": {"field": "v", "query_vector": [1.0], "k": 1, "num_candidates": 1}},
            "elasticsearch": {"query": {"knn": {"v": {"vector": [1.0], "k": 1}}}},
        }
        for flavour, body in wrong.items():
            with serving(filled(flavour)) as running:
                assert httpx2.post(f"{running.url}/hotels/_search", json=body).status_code == 400

    def test_bm25_is_lucenes(self) -> None:
        cluster = Cluster()
        fill(cluster, "two", {"a": {"t": "pool pool spa"}, "b": {"t": "spa"}}, {})
        scores = {hit["_id"]: hit["_score"] for hit in cluster.search("two", query("pool"), {})["hits"]["hits"]}
        # idf = ln(1 + (2 − 1 + 0.5) ÷ (1 + 0.5)); tf = 2 ÷ (2 + 1.2 · (0.25 + 0.75 · 3 ÷ 2))
        assert scores == {"a": pytest.approx(0.6931471805599453 * 2 / 3.65)}


def query(text: str) -> dict[str, Any]:
    return {"query": {"multi_match": {"query": text, "fields": ["t"]}}}


def test_the_example_runs() -> None:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "late-arrival" in done.stdout
