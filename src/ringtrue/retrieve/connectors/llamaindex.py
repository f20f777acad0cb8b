"""LlamaIndex objects: any retriever that answers a text with nodes, and any index, which makes one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

from ringtrue.errors import InputError
from ringtrue.retrieve.connectors.base import Row
from ringtrue.retrieve.connectors.objects import ObjectConnector, asked
from ringtrue.retrieve.connectors.writing import Mark, Planted
from ringtrue.retrieve.protocol import Scope

_LIMITS = ("similarity_top_k", "_similarity_top_k", "num_chunks_per_query")
"""Where retrievers keep how many nodes they return."""


@dataclass(frozen=True, kw_only=True)
class LlamaIndex(ObjectConnector):
    """A retriever (``retrieve``), or an index (``as_retriever``), which can also be searched within a scope.

    The document is the one a node was cut from (``ref_doc_id``), else the node; the node names the passage.
    """

    ANSWERING: ClassVar[tuple[str, ...]] = ("retrieve", "aretrieve", "as_retriever")
    KINDS: ClassVar[str] = "a retriever nor an index of LlamaIndex; give something with retrieve(text) or as_retriever()"
    ONE_BY_ONE: ClassVar[bool] = True
    TELLING: ClassVar[str] = "take an index that keeps its documents (ref_doc_info), or connect to the store itself"

    def limited(self, target: Any, count: int, scope: Scope | None) -> tuple[Callable[[str], Any], bool]:
        if callable(getattr(target, "as_retriever", None)):
            made = target.as_retriever(**({"filters": _filters(scope)} if scope else {}))
        else:
            self.no_scope(scope)
            made = copy.copy(target)
        limit = next((name for name in _LIMITS if hasattr(made, name)), None) if self.pass_k else None
        if limit is not None:
            setattr(made, limit, count)
        return (lambda text: asked(made, "retrieve", text)), limit is not None

    def row(self, item: Any) -> Row:
        node = self.record_in(item)
        metadata, own = self.metadata(item), getattr(node, "node_id", None)
        row = self.named(own, metadata, getattr(item, "score", None))
        if self.document is None:
            row["doc_id"] = getattr(node, "ref_doc_id", None) or own
            row.setdefault("chunk", own)
        return row

    def record_in(self, item: Any) -> Any:
        return getattr(item, "node", item)

    def check_plant(self, documents: Sequence[Planted]) -> None:
        super().check_plant(documents)
        target = self.target()
        if not all(callable(getattr(target, name, None)) for name in ("insert", "delete_ref_doc")):
            raise InputError(
                f"{self.name}: {type(target).__name__} has no insert and delete_ref_doc; give the index itself to write into it"
            )
        if self.document is not None and self.document not in (self.plant or {}):
            raise InputError(
                f"{self.name}: planted documents would have no '{self.document}', which document= names; "
                f"write {self.document} = '{{id}}' into plant"
            )

    def resolve(self, doc_ids: Sequence[str]) -> set[str]:
        return set(self.within(self._sources)) & set(doc_ids)

    def looks_up(self) -> bool:
        if not hasattr(type(self.target()), "ref_doc_info"):  # to ask the object itself would be to read it
            return False
        return self.implements(self._sources)

    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        there = self.within(self._sources)
        return {doc_id: self.mark_of(there[doc_id]) for doc_id in ids if doc_id in there}

    def _sources(self) -> dict[str, Mapping[str, Any]]:
        """Return the metadata of every document that nodes were cut from."""
        found = self.target().ref_doc_info
        return {str(doc_id): getattr(info, "metadata", None) or {} for doc_id, info in found.items()}

    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        index, make = self.target(), import_module("llama_index.core.schema").Document

        def insert(document: Planted) -> None:
            if document.id in there:
                index.delete_ref_doc(document.id, delete_from_docstore=True)
            metadata = self.record(document)
            # Metadata is for filters here; in the text it would be searched, and seen by a model.
            hide = {"excluded_embed_metadata_keys": list(metadata), "excluded_llm_metadata_keys": list(metadata)}
            index.insert(make(id_=document.id, text=document.whole, metadata=metadata, **hide))

        for document in documents:
            self.within(partial(insert, document))

    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        index = self.target()
        for doc_id in ids:
            self.within(partial(index.delete_ref_doc, doc_id, delete_from_docstore=True))


def _filters(scope: Scope) -> Any:
    library = import_module("llama_index.core.vector_stores")
    return library.MetadataFilters(filters=[library.MetadataFilter(key=key, value=value) for key, value in scope.items()])
