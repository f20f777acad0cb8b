"""Planting into OpenSearch and Elasticsearch, against the stand-in that speaks their documented interface."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from connectors.opensearch_server import Cluster, Running, serving
from connectors.writing_suite import GOLDEN, IDS, TENANT, HeldSuite
from ringtrue.errors import BadAnswer, InputError
from ringtrue.records import Document
from ringtrue.retrieve.connectors.opensearch import Elasticsearch, OpenSearch
from ringtrue.run import PartlyPlanted, plant, planted, remove_planted

PLANT = {
    "title": "{title}",
    "body": "{text}",
    "company": "{tenant}",
    "meta": {"lang": "{metadata.lang}"},
    "hash": "{source_hash}",
}
KEYWORD = {"type": "keyword"}
VECTORS = {"opensearch": {"type": "knn_vector", "dimension": 384}, "elasticsearch": {"type": "dense_vector", "dims": 384}}
KINDS = {"opensearch": OpenSearch, "elasticsearch": Elasticsearch}


@pytest.fixture(params=sorted(KINDS))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    cluster = Cluster(request.param)
    properties = {"company": KEYWORD, "hash": KEYWORD, "place": VECTORS[request.param], "doc": KEYWORD}
    cluster.create("hotels", {"mappings": {"properties": properties}})
    lines: list[Any] = [{"index": {"_id": "h1"}}, {"title": "Pool", "body": "A pool.", "doc": "h1"}]
    cluster.bulk("hotels", "".join(json.dumps(line) + "\n" for line in lines).encode())
    with serving(cluster) as running:
        yield running


class TestOpenSearch(HeldSuite):
    SETTINGS: ClassVar[dict[str, Any]] = {}

    @pytest.fixture(autouse=True)
    def _server(self, server: Running) -> None:
        self.server = server

    def make(self) -> Any:
        usual = {"url": self.server.url, "index": "hotels", "fields": ["title", "body"], "plant": PLANT}
        return KINDS[self.server.cluster.flavour](**{**usual, **self.SETTINGS})

    def everything(self) -> dict[str, Any]:
        index = self.server.cluster.indexes["hotels"]
        index.refresh()
        return dict(index.documents)

    def foreign(self, doc_id: str) -> None:
        self.server.cluster.indexes["hotels"].documents[doc_id] = {"title": "Theirs"}

    def clear(self, doc_id: str) -> None:
        del self.server.cluster.indexes["hotels"].documents[doc_id]

    def marks(self, doc_id: str) -> tuple[str, str]:
        found = self.everything()[doc_id]
        return found["hash"], found["company"]


class TestVectors(TestOpenSearch):
    SETTINGS: ClassVar[dict[str, Any]] = {"mode": "vector", "vector_field": "place", "id": "doc", "chunk": "_id"}

    def test_every_document_has_its_vector_and_its_id(self) -> None:
        with planted(self.make(), GOLDEN, tenant=TENANT):
            found = self.everything()["golden:tiny:bicycles"]
            assert len(found["place"]) == 384
            assert found["doc"] == "golden:tiny:bicycles"
            assert found["meta"] == {"lang": "en"}


def made(server: Running, **settings: Any) -> Any:
    usual = {"url": server.url, "index": "hotels", "fields": ["title", "body"], "plant": PLANT, "retries": 0}
    return KINDS[server.cluster.flavour](**{**usual, **settings})


def test_it_waits_until_a_refresh_shows_what_was_written(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    server.cluster.lag = 3
    waited: list[float] = []
    monkeypatch.setattr("ringtrue.run.planting.time", SimpleNamespace(monotonic=lambda: 0.0, sleep=waited.append))
    done = plant(made(server), GOLDEN, tenant=TENANT)
    assert done.searchable == 3
    assert len(waited) >= 3


def test_what_no_search_shows_yet_is_removed_all_the_same(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    server.cluster.lag = 1000
    connector = made(server)
    ticks = iter(range(1000))
    clock = SimpleNamespace(monotonic=lambda: next(ticks), sleep=lambda _: None)
    monkeypatch.setattr("ringtrue.run.planting.time", clock)
    with pytest.raises(Exception, match="3 of 3 documents are not known to it 5 s after writing"):  # noqa: SIM117
        with planted(connector, GOLDEN, tenant=TENANT, timeout=5):
            raise AssertionError("they cannot be searched")
    index = server.cluster.indexes["hotels"]
    index.refresh()
    assert set(index.documents) == {"h1"}


def test_an_index_that_is_not_there_is_not_made(server: Running) -> None:
    with pytest.raises(BadAnswer, match="has no index 'hotel'"):
        plant(made(server, index="hotel"), GOLDEN)
    assert set(server.cluster.indexes) == {"hotels"}


def test_a_pattern_of_indexes_cannot_be_written(server: Running) -> None:
    with pytest.raises(InputError, match="is a pattern"):
        plant(made(server, index="hot*"), GOLDEN)


def test_documents_that_the_mapping_refuses_are_named_and_the_others_are_there(server: Running) -> None:
    server.cluster.indexes["hotels"].mappings = {**server.cluster.indexes["hotels"].mappings, "stars": {"type": "integer"}}
    connector = made(server, plant={**PLANT, "stars": "{metadata.stars}"})
    odd = replace(GOLDEN, documents=(*GOLDEN.documents, Document("odd", "Text", "Odd", {"stars": "many"})))
    with pytest.raises(PartlyPlanted, match=r"took 3 of 4 documents and refused 'golden:tiny:odd' .*stars") as problem:
        plant(connector, odd, tenant=TENANT)
    assert set(problem.value.failed) == {"golden:tiny:odd"}
    assert set(server.cluster.indexes["hotels"].documents) == {"h1", *IDS}
    assert remove_planted(connector, odd, tenant=TENANT) == 3


def test_known_asks_for_all_documents_however_many_passages_they_have(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    connector = made(server, id="doc", chunk="_id")
    monkeypatch.setattr("ringtrue.retrieve.connectors.opensearch.WINDOW", 10)
    index = server.cluster.indexes["hotels"]
    for number in range(60):
        index.documents[f"p{number}"] = {"doc": f"d{number // 15}", "body": "pool"}
    assert connector.known([f"d{number}" for number in range(8)]) == {"d0", "d1", "d2", "d3"}
