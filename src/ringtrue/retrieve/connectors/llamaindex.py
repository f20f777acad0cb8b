"""LlamaIndex objects: any retriever that answers a text with nodes, and any index, which makes one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from ringtrue.retrieve.connectors.base import Row
from ringtrue.retrieve.connectors.objects import ObjectConnector
from ringtrue.retrieve.protocol import Scope

_LIMITS = ("similarity_top_k", "_similarity_top_k", "num_chunks_per_query")
"""Where retrievers keep how many nodes they return."""


@dataclass(frozen=True, kw_only=True)
class LlamaIndex(ObjectConnector):
    """A retriever (``retrieve``), or an index (``as_retriever``), which can also be searched within a scope.

    The document is the one a node was cut from (``ref_doc_id``), else the node; the node names the passage.
    """

    ANSWERING: ClassVar[tuple[str, ...]] = ("retrieve", "as_retriever")
    KINDS: ClassVar[str] = "a retriever nor an index of LlamaIndex; give something with retrieve(text) or as_retriever()"

    def limited(self, target: Any, count: int, scope: Scope | None) -> tuple[Callable[[str], Any], bool]:
        if hasattr(target, "as_retriever"):
            made = target.as_retriever(**({"filters": _filters(scope)} if scope else {}))
        else:
            self.no_scope(scope)
            made = copy.copy(target)
        limit = next((name for name in _LIMITS if hasattr(made, name)), None) if self.pass_k else None
        if limit is not None:
            setattr(made, limit, count)
        return made.retrieve, limit is not None

    def row(self, item: Any) -> Row:
        node = self.record_in(item)
        metadata, own = self.metadata(item), getattr(node, "node_id", None)
        row = self.named(own, metadata, getattr(item, "score", None))
        if self.document is None:
            row["doc_id"] = getattr(node, "ref_doc_id", None) or own
            row.setdefault("chunk", own)
        return row

    @staticmethod
    def record_in(item: Any) -> Any:
        return getattr(item, "node", item)


def _filters(scope: Scope) -> Any:
    library = import_module("llama_index.core.vector_stores")
    return library.MetadataFilters(filters=[library.MetadataFilter(key=key, value=value) for key, value in scope.items()])
