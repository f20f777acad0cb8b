"""Planting into the vector stores and indexes of LangChain and LlamaIndex, and where there is nothing to write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.writing_suite import GOLDEN, TENANT, HeldSuite
from ringtrue.errors import InputError
from ringtrue.retrieve.connectors.langchain import LangChain
from ringtrue.retrieve.connectors.llamaindex import LlamaIndex
from ringtrue.retrieve.connectors.run import RunFile
from ringtrue.retrieve.encode import encoder
from ringtrue.run import plant, planted, remove_planted

PLANT = {"company": "{tenant}", "hash": "{source_hash}", "lang": "{metadata.lang}"}


class TestLangChain(HeldSuite):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        pytest.importorskip("langchain_core", reason="LANGCHAIN IS NOT TESTED: pip install langchain-core")
        from langchain_core.documents import Document
        from langchain_core.embeddings import Embeddings
        from langchain_core.vectorstores import InMemoryVectorStore

        class Ours(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return encoder().encode(texts).tolist()  # type: ignore[no-any-return]

            def embed_query(self, text: str) -> list[float]:
                return self.embed_documents([text])[0]

        self.kind, self.store = Document, InMemoryVectorStore(Ours())
        self.foreign("l1")

    def make(self) -> LangChain:
        return LangChain(retriever=self.store, plant=PLANT)

    def everything(self) -> dict[str, Any]:
        return {key: (found["text"], found["metadata"]) for key, found in self.store.store.items()}

    def foreign(self, doc_id: str) -> None:
        self.store.add_documents([self.kind(id=doc_id, page_content="a pool", metadata={"lang": "en"})])

    def clear(self, doc_id: str) -> None:
        self.store.delete([doc_id])

    def marks(self, doc_id: str) -> tuple[str, str]:
        metadata = self.everything()[doc_id][1]
        return metadata["hash"], metadata["company"]

    def test_a_retriever_is_written_through_its_store_and_named_by_metadata(self) -> None:
        connector = LangChain(retriever=self.store.as_retriever(), plant={**PLANT}, document="source")
        self.store.delete(["l1"])
        assert not hasattr(connector, "known")
        with planted(connector, GOLDEN, tenant=TENANT):
            assert self.everything()["golden:tiny:bicycles"][1]["source"] == "golden:tiny:bicycles"
            assert plant(connector, GOLDEN, tenant=TENANT).unchanged == 3
        assert not self.everything()

    def test_a_store_that_cannot_be_asked_by_id_is_not_written(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def get_by_ids(ids: Any) -> Any:
            raise NotImplementedError

        monkeypatch.setattr(self.store, "get_by_ids", get_by_ids)
        before = self.everything()
        for action in (plant, remove_planted):
            with pytest.raises(InputError, match="nothing is written; take a vector store that has get_by_ids"):
                action(self.make(), GOLDEN, tenant=TENANT)
        assert self.everything() == before

    def test_a_retriever_without_a_store_says_so(self) -> None:
        from langchain_core.runnables import RunnableLambda

        with pytest.raises(InputError, match="has no add_documents and delete; give the vector store itself"):
            plant(LangChain(retriever=RunnableLambda(lambda text: []), plant=PLANT), GOLDEN, tenant=TENANT)


class TestLlamaIndex(HeldSuite):
    @pytest.fixture(autouse=True)
    def _index(self) -> None:
        pytest.importorskip("llama_index.core", reason="LLAMAINDEX IS NOT TESTED: pip install llama-index-core")
        from llama_index.core import VectorStoreIndex
        from llama_index.core.base.embeddings.base import BaseEmbedding
        from llama_index.core.node_parser import SentenceSplitter
        from llama_index.core.schema import Document

        class Ours(BaseEmbedding):
            def _get_text_embedding(self, text: str) -> list[float]:
                return encoder().encode([text])[0].tolist()  # type: ignore[no-any-return]

            def _get_query_embedding(self, query: str) -> list[float]:
                return self._get_text_embedding(query)

            async def _aget_query_embedding(self, query: str) -> list[float]:
                return self._get_text_embedding(query)

        self.kind = Document
        self.index: Any = VectorStoreIndex([], embed_model=Ours(), transformations=[SentenceSplitter()])
        self.foreign("l1")

    def make(self) -> LlamaIndex:
        return LlamaIndex(retriever=self.index, plant=PLANT)

    def everything(self) -> dict[str, Any]:
        return {key: dict(info.metadata) for key, info in self.index.ref_doc_info.items()}

    def foreign(self, doc_id: str) -> None:
        self.index.insert(self.kind(id_=doc_id, text="a pool", metadata={"lang": "en"}))

    def clear(self, doc_id: str) -> None:
        self.index.delete_ref_doc(doc_id, delete_from_docstore=True)

    def marks(self, doc_id: str) -> tuple[str, str]:
        metadata = self.everything()[doc_id]
        return metadata["hash"], metadata["company"]

    def test_marks_are_no_part_of_what_is_searched(self) -> None:
        with planted(self.make(), GOLDEN, tenant=TENANT):
            nodes = [node for node in self.index.docstore.docs.values() if node.ref_doc_id == "golden:tiny:bicycles"]
            from llama_index.core.schema import MetadataMode

            assert TENANT not in nodes[0].get_content(MetadataMode.EMBED)

    def test_an_index_that_does_not_tell_its_documents_is_not_written(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def ref_doc_info(self: Any) -> Any:
            raise NotImplementedError

        before = self.everything()
        with monkeypatch.context() as patched:
            patched.setattr(type(self.index), "ref_doc_info", property(ref_doc_info))
            for action in (plant, remove_planted):
                with pytest.raises(InputError, match="nothing is written; take an index that keeps its documents"):
                    action(self.make(), GOLDEN, tenant=TENANT)
        assert self.everything() == before

    def test_a_retriever_of_an_index_cannot_be_written(self) -> None:
        with pytest.raises(InputError, match="has no insert and delete_ref_doc; give the index itself"):
            plant(LlamaIndex(retriever=self.index.as_retriever(), plant=PLANT), GOLDEN, tenant=TENANT)

    def test_a_metadata_field_that_names_documents_must_be_written(self) -> None:
        with pytest.raises(InputError, match=r"write file = '\{id\}' into plant"):
            plant(replace(self.make(), document="file"), GOLDEN, tenant=TENANT)


def test_a_run_file_holds_answers_and_takes_no_documents(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2.0 x\n")
    connector = RunFile(path=tmp_path / "a.run", name="last-year")
    assert not hasattr(connector, "known")
    with pytest.raises(InputError, match="last-year cannot be written, it only answers"):
        plant(connector, GOLDEN)
