"""Planting into vector stores: Chroma's server, Qdrant's engine in memory, Milvus' server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from connectors.conftest import MilvusServer
from connectors.faults import answering
from connectors.test_chroma import COLLECTIONS, chroma, post  # noqa: F401  (the fixture of the server)
from connectors.test_qdrant import speaking
from connectors.writing_suite import GOLDEN, IDS, TENANT, HeldSuite
from ringtrue.errors import InputError
from ringtrue.retrieve.connectors.chroma import Chroma
from ringtrue.retrieve.connectors.milvus import Milvus
from ringtrue.retrieve.connectors.qdrant import Qdrant
from ringtrue.retrieve.encode import encoder
from ringtrue.run import plant, planted
from ringtrue.run.planting import plantings

PLANT = {"text": "{text}", "company": "{tenant}", "hash": "{source_hash}", "lang": "{metadata.lang}", "all": "{metadata}"}


class TestChroma(HeldSuite):
    SETTINGS: ClassVar[dict[str, Any]] = {}

    @pytest.fixture(autouse=True)
    def _collection(self, chroma: str) -> Iterator[None]:  # noqa: F811
        self.url = chroma
        made = post(chroma + COLLECTIONS, {"name": "planting", "configuration": {"hnsw": {"space": "cosine"}}})
        self.place = f"{chroma}{COLLECTIONS}/{made['id']}"
        self._add("c1", {"doc": "c1", "lang": "en"})
        yield
        post(f"{chroma}{COLLECTIONS}/planting", None, "DELETE")

    def _add(self, record: str, metadata: dict[str, Any]) -> None:
        vector = encoder().encode(["a pool"]).tolist()
        post(f"{self.place}/add", {"ids": [record], "embeddings": vector, "documents": ["a pool"], "metadatas": [metadata]})

    def make(self) -> Chroma:
        return Chroma(url=self.url, collection="planting", plant=PLANT, **self.SETTINGS)

    def everything(self) -> dict[str, Any]:
        found = post(f"{self.place}/get", {"include": ["metadatas", "documents"]})
        rows = zip(found["ids"], found["metadatas"], found["documents"], strict=True)
        return {key: (metadata, text) for key, metadata, text in rows}

    def foreign(self, doc_id: str) -> None:
        self._add(doc_id, {"doc": doc_id})

    def clear(self, doc_id: str) -> None:
        post(f"{self.place}/delete", {"ids": [doc_id]})

    def marks(self, doc_id: str) -> tuple[str, str]:
        metadata = self.everything()[doc_id][0]
        return metadata["hash"], metadata["company"]


class TestChromaByMetadata(TestChroma):
    SETTINGS: ClassVar[dict[str, Any]] = {"document": "doc"}

    def test_known_reads_on_where_the_records_fill_more_than_a_page(self) -> None:
        vector = encoder().encode(["a pool"])[0].tolist()
        ids = [f"p{number}" for number in range(350)]
        metadata = [{"doc": f"d{number // 2}"} for number in range(350)]
        post(f"{self.place}/add", {"ids": ids, "embeddings": [vector] * 350, "metadatas": metadata})
        wanted = {f"d{number}" for number in range(175)}
        assert self.make().known([*sorted(wanted), "d999"]) == wanted
        assert replace(self.make(), document=None).known([*ids, "d1"]) == set(ids)

    def test_fields_that_are_no_longer_written_do_not_stay(self) -> None:
        with planted(self.make(), GOLDEN, tenant=TENANT):
            shorter = replace(self.make(), plant={name: PLANT[name] for name in ("company", "hash")})
            shorter.write([item for item in plantings(GOLDEN, tenant=TENANT) if item.id == "golden:tiny:bicycles"])
            metadata = self.everything()["golden:tiny:bicycles"][0]
        assert set(metadata) == {"doc", "company", "hash"}


class TestQdrant(HeldSuite):
    @pytest.fixture(autouse=True)
    def _client(self) -> Iterator[None]:
        client = pytest.importorskip("qdrant_client", reason="QDRANT IS NOT TESTED: pip install qdrant-client")
        self.models, self.client = client.models, client.QdrantClient(":memory:")
        params = self.models.VectorParams(size=384, distance=self.models.Distance.COSINE)
        self.client.create_collection("hotel", vectors_config=params)
        self._add(1, {"meta": {"doc": "q1"}})
        self._add(2, {"meta": {"doc": "q2", "part": 2}})
        with answering(speaking(self.client)) as running:
            self.url = running.url
            yield
        self.client.close()

    def _add(self, key: Any, payload: dict[str, Any]) -> None:
        vector = encoder().encode(["a pool"])[0].tolist()
        self.client.upsert("hotel", [self.models.PointStruct(id=key, vector=vector, payload=payload)])

    def make(self) -> Qdrant:
        return Qdrant(url=self.url, collection="hotel", document="meta.doc", plant=PLANT)

    def everything(self) -> dict[str, Any]:
        points, _ = self.client.scroll("hotel", limit=100, with_payload=True)
        return {point.payload["meta"]["doc"]: (point.id, point.payload) for point in points}

    def foreign(self, doc_id: str) -> None:
        from ringtrue.retrieve.connectors.qdrant import _point

        self._add(_point(doc_id), {"meta": {"doc": doc_id}})

    def clear(self, doc_id: str) -> None:
        """The engine in memory goes with the test."""

    def marks(self, doc_id: str) -> tuple[str, str]:
        payload = self.everything()[doc_id][1]
        return payload["hash"], payload["company"]

    def test_ids_of_points_are_no_place_for_texts(self) -> None:
        bare = replace(self.make(), document=None)
        with pytest.raises(InputError, match="document = 'doc_id'"):
            plant(bare, GOLDEN, tenant=TENANT)
        assert bare.known(["1", "3", "no-uuid"]) == {"1"}

    def test_payloads_keep_lists_and_tables(self) -> None:
        with planted(self.make(), GOLDEN, tenant=TENANT):
            assert self.everything()["golden:tiny:bicycles"][1]["all"] == {"lang": "en"}


@pytest.fixture(scope="module")
def collections(milvus: MilvusServer) -> Iterator[Any]:
    """A collection whose keys are the ids, and one whose keys Milvus makes itself; the client that made them."""
    pymilvus = pytest.importorskip("pymilvus", reason="MILVUS IS NOT TESTED: pip install pymilvus")
    client = pymilvus.MilvusClient(milvus.uri, token=milvus.token, timeout=30)
    types = pymilvus.DataType
    text = {"datatype": types.VARCHAR, "max_length": 99}
    for name, auto in (("by_key", False), ("by_field", True)):
        schema = client.create_schema(auto_id=auto, enable_dynamic_field=True)
        schema.add_field("key", is_primary=True, **({"datatype": types.INT64} if auto else text))
        schema.add_field("place", types.FLOAT_VECTOR, dim=384)
        if auto:
            schema.add_field("code", **text)
        indexes = client.prepare_index_params()
        indexes.add_index("place", index_type="FLAT", metric_type="COSINE")
        client.create_collection(name, schema=schema, index_params=indexes, consistency_level="Strong")
        vector = encoder().encode(["a pool"])[0].tolist()
        client.insert(name, [{"code" if auto else "key": "m1", "place": vector, "lang": "en"}])
    yield client
    for name in ("by_key", "by_field"):
        client.drop_collection(name)
    client.close()


class OnMilvus:
    COLLECTION, ID = "by_key", "key"

    @pytest.fixture(autouse=True)
    def _connection(self, milvus: MilvusServer, collections: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setenv("RINGTRUE_TEST_MILVUS", milvus.token)
        self.uri, self.client = milvus.uri, collections
        self.opened: list[Milvus] = []
        yield
        for connector in self.opened:
            connector.close()
        assert set(self.everything()) == {"m1"}, "the test left something behind"

    def make(self) -> Milvus:
        self.opened.append(
            Milvus(uri=self.uri, token_env="RINGTRUE_TEST_MILVUS", collection=self.COLLECTION, id=self.ID, plant=PLANT)
        )
        return self.opened[-1]

    def everything(self) -> dict[str, Any]:
        rows = self.client.query(
            self.COLLECTION, filter=f'{self.ID} != ""', output_fields=["*"], limit=100, consistency_level="Strong"
        )
        return {row[self.ID]: {name: value for name, value in row.items() if name != "place"} for row in rows}

    def foreign(self, doc_id: str) -> None:
        self.client.insert(
            self.COLLECTION, [{self.ID: doc_id, "place": encoder().encode(["a pool"])[0].tolist(), "lang": "en"}]
        )

    def clear(self, doc_id: str) -> None:
        self.client.delete(self.COLLECTION, filter=f'{self.ID} == "{doc_id}"')

    def marks(self, doc_id: str) -> tuple[str, str]:
        row = self.everything()[doc_id]
        return row["hash"], row["company"]


class TestMilvus(OnMilvus, HeldSuite):
    pass


class TestMilvusThatMakesItsKeys(OnMilvus):
    COLLECTION, ID = "by_field", "code"

    def test_documents_are_told_apart_by_a_field_of_their_own(self) -> None:
        connector, before = self.make(), self.everything()
        with planted(connector, GOLDEN, tenant=TENANT):
            assert set(self.everything()) == {"m1", *IDS}
            assert plant(connector, GOLDEN, tenant=TENANT).unchanged == 3
        assert self.everything() == before

    def test_a_key_of_numbers_is_no_place_for_ids(self) -> None:
        with pytest.raises(InputError, match="field 'key' holds none"):
            plant(replace(self.make(), id="key"), GOLDEN, tenant=TENANT)
        assert not IDS & set(self.everything())
