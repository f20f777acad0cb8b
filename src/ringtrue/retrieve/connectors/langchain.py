"""LangChain objects: any retriever or runnable that answers a text with documents, and any vector store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Literal

from ringtrue.errors import BadAnswer, InputError
from ringtrue.retrieve.connectors.base import Row
from ringtrue.retrieve.connectors.objects import ObjectConnector, asked, awaited
from ringtrue.retrieve.connectors.writing import Mark, Planted
from ringtrue.retrieve.protocol import Scope

_SEARCHES = ("similarity_search_with_relevance_scores", "similarity_search_with_score", "similarity_search")
"""A vector store's searches, the one with the best known scores first; many stores lack the first."""
_LIMITS = ("k", "top_k")


@dataclass(frozen=True, kw_only=True)
class LangChain(ObjectConnector):
    """A retriever (``invoke``), or a vector store (``similarity_search…``), whose scores are then passed on.

    A retriever's documents have no scores unless ``score`` names the metadata field that holds them.
    """

    ANSWERING: ClassVar[tuple[str, ...]] = ("invoke", "ainvoke", "similarity_search")
    KINDS: ClassVar[str] = (
        "a retriever nor a vector store of LangChain; give something with invoke(text) or similarity_search(text, k=…)"
    )
    TELLING: ClassVar[str] = "take a vector store that has get_by_ids, or connect to the store itself"

    score: str | None = None
    """The metadata field of a retriever's documents that holds their score."""
    filter: Literal["dict"] | Callable[[Scope], Any] | None = field(default=None, hash=False)
    """How a scope becomes the store's ``filter=``: 'dict' for {field: value}, or in Python a function from scope to filter."""

    def limited(self, target: Any, count: int, scope: Scope | None) -> tuple[Callable[[str], Any], bool]:
        if callable(getattr(target, "similarity_search", None)):
            options: dict[str, Any] = {"k": count} if self.pass_k else {}
            if scope:
                options["filter"] = self._filter(scope)
            return (lambda text: self._stored(target, text, options)), self.pass_k
        target, told = self._copied(target, count, scope)
        return (lambda text: asked(target, "invoke", text)), told

    def _copied(self, target: Any, count: int, scope: Scope | None) -> tuple[Any, bool]:
        """Return a copy of a retriever that is set to ``count`` and scope where it has such settings; else itself."""
        settings = getattr(type(target), "model_fields", {})
        if "search_kwargs" in settings:
            own = dict(target.search_kwargs or {})
            changed = {**own, "k": count} if self.pass_k else own
            if scope:
                if own.get("filter") is not None:
                    raise InputError(
                        f"{self.name} has a filter of its own, which a scope would replace; search it without a scope"
                    )
                changed = {**changed, "filter": self._filter(scope)}
            return (target if changed == own else target.model_copy(update={"search_kwargs": changed})), self.pass_k
        self.no_scope(scope)
        limit = next((name for name in _LIMITS if name in settings), None) if self.pass_k else None
        return (target, False) if limit is None else (target.model_copy(update={limit: count}), True)

    def _stored(self, store: Any, text: str, options: Mapping[str, Any]) -> Any:
        """Ask a vector store by the first of its searches that it implements."""
        # Distances only come from the second: the first turns them into similarities.
        names = _SEARCHES[1:] if self.lower_is_better else _SEARCHES
        for name in (*names, *(f"a{name}" for name in names)):
            try:
                if hasattr(store, name):
                    return awaited(getattr(store, name)(text, **options), self.timeout)
            except NotImplementedError:
                continue
        raise BadAnswer(f"{self.name}: the vector store implements none of {', '.join(names)}; give it one of them")

    def _filter(self, scope: Scope) -> Any:
        if self.filter is None:
            # Each store has filters of its own kind, and some ignore what they do not know: only on the user's word.
            raise InputError(
                f"{self.name} cannot be searched within {dict(scope)}; say filter = 'dict' if the store takes {{field: value}}"
            )
        return self.filter(scope) if callable(self.filter) else dict(scope)

    def row(self, item: Any) -> Row:
        score = item[1] if isinstance(item, tuple) and len(item) == 2 else None
        metadata = self.metadata(item)
        if score is None and self.score is not None:
            score = metadata.get(self.score)
        return self.named(getattr(self.record_in(item), "id", None), metadata, score)

    def record_in(self, item: Any) -> Any:
        return item[0] if isinstance(item, tuple) and item else item

    def _store(self) -> Any:
        """Return what documents can be added to and deleted from: the vector store, also that of its retriever; else None."""
        target = self.target()
        both = [target, getattr(target, "vectorstore", None)]
        wanted = ("add_documents", "delete")
        return next((thing for thing in both if all(callable(getattr(thing, name, None)) for name in wanted)), None)

    def check_plant(self, documents: Sequence[Planted]) -> None:
        super().check_plant(documents)
        if self._store() is None:
            kind = type(self.target()).__name__
            raise InputError(
                f"{self.name}: {kind} has no add_documents and delete; give the vector store itself to write into it"
            )

    def resolve(self, doc_ids: Sequence[str]) -> set[str]:
        return set(self._by_ids(doc_ids))

    def looks_up(self) -> bool:
        store = self._store()
        if not callable(getattr(store, "get_by_ids", None)):
            return False
        return self.implements(lambda: store.get_by_ids([]))

    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        return {doc_id: self.mark_of(metadata) for doc_id, metadata in self._by_ids(ids).items()}

    def _by_ids(self, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        store = self._store()
        found = self.within(lambda: store.get_by_ids(list(ids)))
        return {str(document.id): self.metadata(document) for document in found}

    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        store, make = self._store(), import_module("langchain_core.documents").Document
        ids = [document.id for document in documents]
        old = [doc_id for doc_id in ids if doc_id in there]
        made = [
            make(id=item.id, page_content=item.whole, metadata=self.record(item, self.document, self.chunk))
            for item in documents
        ]

        def add() -> None:
            if old:
                store.delete(old)
            store.add_documents(made, ids=ids)

        self.within(add)

    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        store = self._store()
        self.within(lambda: store.delete(list(ids)))
