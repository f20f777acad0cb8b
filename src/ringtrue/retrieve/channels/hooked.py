"""``memory('fts5_bm25')`` and ``memory('title_tags')``: the hook's own index over the documents of a collection (E-6).

A scope is a store of its own, with statistics of its own, as a project's memory folder is.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ringtrue.memory.hook.index import Index
from ringtrue.memory.hook.memory import CATEGORIES, LINKS, STATUSES, TIERS, Memory
from ringtrue.memory.hook.settings import Settings
from ringtrue.records import Document, Hit
from ringtrue.retrieve.documents import DocumentStore, inside
from ringtrue.retrieve.index import CachedView
from ringtrue.retrieve.protocol import Scope, check_k, from_channel, plain

_SCOPES = 64


def as_memory(document: Document) -> Memory:
    """Return a document as the memory it was made from, or as one that is as near as can be.

    A category that is not one of ours stands for 'decision', which never expires.

    >>> as_memory(Document("a", "use JWT", "Sessions", {"category": "constraint"}, ("auth",)))
    Memory(constraint/a: 'Sessions')
    """
    facts = document.metadata
    tables = [table for name in ("links", "causal_links") if isinstance(table := facts.get(name), Mapping)]
    links = {kind: found for kind in LINKS if (found := _texts(next((t[kind] for t in (*tables, facts) if kind in t), None)))}
    return Memory(
        id=document.doc_id,
        category=_known(facts.get("category"), CATEGORIES, CATEGORIES[0]),
        title=document.title,
        body=document.text,
        tags=tuple(document.tags),
        created_at=str(facts.get("created_at") or ""),
        updated_at=str(facts.get("updated_at") or facts.get("created_at") or ""),
        related_files=_texts(facts.get("related_files")),
        status=_known(facts.get("record_status"), STATUSES, "active"),
        tier=_known(facts.get("importance_tier"), TIERS, "normal"),
        trigger_phrases=_texts(facts.get("trigger_phrases")),
        links=links,
        spec_folder=str(facts["spec_folder"]) if facts.get("spec_folder") else None,
    )


def _known(value: Any, allowed: Sequence[str], default: str) -> str:
    return value if isinstance(value, str) and value in allowed else default


def _texts(value: Any) -> tuple[str, ...]:
    members = value if isinstance(value, list | tuple) else [] if value in (None, "") else [value]
    return tuple(str(member) for member in members)


class Hooked:
    """The index of the hook over a collection's documents, asked as ``ringtrue memory search`` and the MCP server ask it.

    Nothing is past its retention here: that depends on the hour, and an evaluation must give the same answer tomorrow.
    ``session`` is the paths of files used last, which count where the settings say so.
    """

    def __init__(
        self,
        collection: DocumentStore,
        *,
        strategy: str,
        settings: Settings | None = None,
        name: str = "memory",
    ) -> None:
        self.collection, self.strategy, self.name = collection, strategy, name
        self.settings = Settings() if settings is None else settings
        self._memories = CachedView(collection, self._read)
        self._lock = threading.Lock()
        self._opened: tuple[object, dict[tuple[tuple[str, str], ...], Index]] = (None, {})

    def _read(self) -> list[tuple[Memory, Mapping[str, Any]]]:
        return [(as_memory(document), document.metadata) for _, document in self.collection.documents()]

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None, session: Sequence[str] | None = None) -> list[Hit]:
        check_k(k)
        wanted = self.collection.check_scope(scope)
        memories = self._memories()
        key = tuple(sorted(wanted.items()))
        with self._lock:  # one database connection, asked by one thread at a time
            if self._opened[0] is not memories:
                self._opened = memories, {}
            indexes = self._opened[1]
            if key not in indexes:
                if len(indexes) >= _SCOPES:
                    indexes.clear()
                indexes[key] = Index([memory for memory, facts in memories if inside(facts, wanted)], self.settings)
            found = indexes[key].on_demand(plain(text), k=k, now=0.0, strategy=self.strategy, session=tuple(session or ()))
        return from_channel(self.name, ((one.memory.id, one.score) for one in found))
