"""LangChain objects: any retriever or runnable that answers a text with documents, and any vector store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ringtrue.retrieve.connectors.base import Row
from ringtrue.retrieve.connectors.objects import ObjectConnector
from ringtrue.retrieve.protocol import Scope


@dataclass(frozen=True, kw_only=True)
class LangChain(ObjectConnector):
    """A retriever (``invoke``), or a vector store (``similarity_search_with_score``), whose scores are then passed on.

    A retriever's documents have no scores unless ``score`` names the metadata field that holds them.
    """

    ANSWERING: ClassVar[tuple[str, ...]] = ("invoke", "similarity_search_with_score")
    KINDS: ClassVar[str] = (
        "a retriever nor a vector store of LangChain; give something with invoke(text) or similarity_search_with_score(text)"
    )

    score: str | None = None
    """The metadata field of a retriever's documents that holds their score."""

    def limited(self, target: Any, count: int, scope: Scope | None) -> tuple[Callable[[str], Any], bool]:
        self.no_scope(scope)
        if hasattr(target, "similarity_search_with_score"):
            options = {"k": count} if self.pass_k else {}
            return (lambda text: target.similarity_search_with_score(text, **options)), self.pass_k
        settings = getattr(type(target), "model_fields", {}) if self.pass_k else {}
        limit = next((name for name in ("search_kwargs", "k", "top_k") if name in settings), None)
        if limit is None:
            return target.invoke, False
        changed = {**(target.search_kwargs or {}), "k": count} if limit == "search_kwargs" else count
        return target.model_copy(update={limit: changed}).invoke, True

    def row(self, item: Any) -> Row:
        score = item[1] if isinstance(item, tuple) and len(item) == 2 else None
        metadata = self.metadata(item)
        if score is None and self.score is not None:
            score = metadata.get(self.score)
        return self.named(getattr(self.record_in(item), "id", None), metadata, score)

    @staticmethod
    def record_in(item: Any) -> Any:
        return item[0] if isinstance(item, tuple) and item else item
