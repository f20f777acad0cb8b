"""The retriever ``memory``: what an agent remembers, by passages, trigger phrases, causal links and the session.

Passages carry the answer; the other channels, a memory's tier and what is being done (the intent) lift what they speak for. All
lifts are in standard deviations of the passages' scores over the documents asked, so that they mean the same in a store of ten
memories and in one of ten thousand. What was retired or archived is never returned.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from ringtrue.errors import InputError, nearest
from ringtrue.memory.hook.index import Index
from ringtrue.memory.hook.intents import intent_of
from ringtrue.memory.hook.memory import CATEGORIES, LINKS, STATUSES, Memory
from ringtrue.memory.hook.memory import TIERS as HOOK_TIERS
from ringtrue.memory.hook.settings import Settings
from ringtrue.records import Document, Hit, Stage
from ringtrue.retrieve.channels.context import PassageRetriever
from ringtrue.retrieve.channels.trigger import Trigger
from ringtrue.retrieve.documents import DocumentStore, inside, members
from ringtrue.retrieve.fuse import Fusion, Lists
from ringtrue.retrieve.index import CachedView
from ringtrue.retrieve.observe import unobserved
from ringtrue.retrieve.protocol import Retriever, Scope, check_k, from_channel, plain, ranked

STRATEGIES = ("hybrid", "fts5_bm25", "title_tags")
DEPTH = 200
"""Documents of each channel that are looked at."""
TRIGGER, SESSION = 2.0, 0.5
"""Lifts of a trigger phrase in the question, and of what the session holds."""
USED = 0.5
"""What a memory that is in use counts in its session, as a score."""
TIERS = {"constitutional": 0.2, "critical": 0.1, "important": 0.05, "temporary": -0.1}
"""Lifts of the tiers: enough to decide between equals."""
LINKS_COUNT: Mapping[str, float] = {
    "find_decision": 0.4, "fix_bug": 0.3, "understand": 0.3, "security_audit": 0.2, "refactor": 0.2, "add_feature": 0.2,
    "find_spec": 0.1,
}  # fmt: skip
"""By intent: the share of a hit's score that its causal links carry on. Who asks why wants causes, who wants a text only it."""
FIRST = 10
"""Among so many hits constitutional memories come, if they are asked for."""
STARTS = 10
"""Hits whose links are followed."""
_SCOPES = 64
_HELD: ContextVar[tuple[str, ...]] = ContextVar("ringtrue_session_held", default=())


class Linked:
    """Memories that causal links join to the best hits; the score is that of the best hit that leads there."""

    def __init__(self, source: PassageRetriever) -> None:
        self.source = source
        self._neighbours = CachedView(source.collection, self._read)

    def _read(self) -> dict[str, set[str]]:
        metadata = self.source.metadata()
        found: dict[str, set[str]] = {}
        for doc_id, facts in metadata.items():
            for other in links_of(facts):
                if other in metadata and other != doc_id:
                    found.setdefault(doc_id, set()).add(other)
                    found.setdefault(other, set()).add(doc_id)
        return found

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        with unobserved():  # the hits it starts from are not candidates
            found = self.source.search(text, k=DEPTH, scope=scope)
        neighbours, metadata = self._neighbours(), self.source.metadata()
        best: dict[str, float] = {}
        for hit in found[:STARTS]:
            for other in neighbours.get(hit.doc_id, ()):
                if hit.score > 0 and other in metadata and (not scope or inside(metadata[other], scope)):
                    best[other] = max(best.get(other, 0.0), hit.score)
        return from_channel("graph", ranked(best.items(), k=check_k(k)))


class Held:
    """What the session holds already: memories that were used in it, and those near to what was said before."""

    def __init__(self, source: PassageRetriever) -> None:
        self.source = source

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        held = _HELD.get()
        if not held:
            return []
        metadata = self.source.metadata()
        used = [item for item in held if item in metadata and (not scope or inside(metadata[item], scope))]
        scores: dict[str, float] = dict.fromkeys(used, USED)
        said = [item for item in held if item not in metadata]
        if said:
            with unobserved():
                for hit in self.source.search("\n".join(said), k=DEPTH, scope=scope):
                    if hit.score > 0:
                        scores[hit.doc_id] = max(scores.get(hit.doc_id, 0.0), hit.score)
        return from_channel("session", ranked(scores.items(), k=check_k(k)))


class MemoryFusion(Fusion):
    """The hybrid over a collection's documents.

    ``session`` is what was said before (texts) or is in use (ids of memories). With ``constitutional`` the memories of that
    tier are always among the first ten hits, at their end where the question is about something else.
    """

    def __init__(
        self, passages: PassageRetriever, collection: DocumentStore, *, constitutional: bool = False, name: str = "memory"
    ) -> None:
        self.passages, self.constitutional = passages, constitutional
        channels: list[tuple[str, Retriever]] = [
            ("passages", passages),
            ("trigger", Trigger(collection, field="trigger_phrases")),
            ("graph", Linked(passages)),
            ("session", Held(passages)),
        ]
        super().__init__(channels, self._rule, name=name, depth=DEPTH)

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None, session: Sequence[str] | None = None) -> list[Hit]:
        return self.search_many([text], k=k, scope=scope, session=session)[0]

    def search_many(
        self, texts: Sequence[str], *, k: int = 10, scope: Scope | None = None, session: Sequence[str] | None = None
    ) -> list[list[Hit]]:
        """Return the answers to several questions of one session."""
        with holding(session or ()):
            found = super().search_many(texts, k=k, scope=scope)
        return [self._with_constitutional(hits, k, scope) for hits in found] if self.constitutional else found

    def _rule(self, text: str, lists: Lists) -> dict[str, float]:
        passages, triggers, linked, held = lists
        metadata = self.passages.metadata()
        scores = {hit.doc_id: hit.score for hit in passages}
        lowest = min(scores.values(), default=0.0)
        for hits in (triggers, linked, held):
            scores |= {hit.doc_id: lowest for hit in hits if hit.doc_id not in scores and hit.doc_id in metadata}
        for hit in triggers:
            if hit.doc_id in metadata:
                scores[hit.doc_id] += TRIGGER
        for hits, share in ((linked, LINKS_COUNT[intent_of(text)]), (held, SESSION)):
            for hit in hits:
                if hit.doc_id in metadata:
                    scores[hit.doc_id] += share * hit.score
        for doc_id in scores:
            scores[doc_id] += TIERS.get(str(metadata[doc_id].get("importance_tier")), 0.0)
        return scores

    def _scores(self, text: str, lists: Lists) -> dict[str, float]:
        found = super()._scores(text, lists)
        metadata = self.passages.metadata()
        return {doc_id: score for doc_id, score in found.items() if doc_id in metadata}

    def _with_constitutional(self, hits: list[Hit], k: int, scope: Scope | None) -> list[Hit]:
        """Return the hits with every constitutional memory among the first; one that would come later ends them."""
        first = min(k, FIRST)
        head, rest = hits[:first], hits[first:]
        always = {
            doc_id
            for doc_id, facts in self.passages.metadata().items()
            if facts.get("importance_tier") == "constitutional" and (not scope or inside(facts, scope))
        }
        missing = always - {hit.doc_id for hit in head}
        others = [hit for hit in head if hit.doc_id not in always]
        over = max(0, len(head) + len(missing) - first)
        if not missing or (over and not others):
            return hits
        gone = others[-over:] if over else []
        # Who is put in takes the score of the place that was made for it, so that scores still fall with the rank.
        score = gone[0].score if gone else head[-1].score if head else 0.0
        left = {hit.doc_id for hit in gone}
        kept = [hit for hit in head if hit.doc_id not in left and (hit.score >= score or hit.doc_id not in always)]
        known = {hit.doc_id: hit for hit in hits}
        for doc_id in sorted(always - {hit.doc_id for hit in kept})[: first - len(kept)]:
            rank = len(kept) + 1
            hit = known.get(doc_id, Hit(doc_id, score))
            kept.append(
                replace(
                    hit,
                    score=score,
                    channels={**hit.channels, "constitutional": rank},
                    stages=(*hit.stages, Stage("constitutional", rank, score)),
                )
            )
        shown = {hit.doc_id for hit in kept}
        return [*kept, *(hit for hit in (*gone, *rest) if hit.doc_id not in shown)][:k]


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
        tier=_known(facts.get("importance_tier"), HOOK_TIERS, "normal"),
        trigger_phrases=_texts(facts.get("trigger_phrases")),
        links=links,
        spec_folder=str(facts["spec_folder"]) if facts.get("spec_folder") else None,
    )


def _known(value: Any, allowed: Sequence[str], default: str) -> str:
    return value if isinstance(value, str) and value in allowed else default


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(member) for member in members(value))


class Hooked:
    """The index of the hook over a collection's documents, asked as ``ringtrue memory search`` and the MCP server ask it.

    Nothing is past its retention here: that depends on the hour, and an evaluation must give the same answer tomorrow.
    ``session`` is the paths of files used last.
    """

    def __init__(self, collection: DocumentStore, *, strategy: str, name: str = "memory") -> None:
        self.collection, self.strategy, self.name = collection, strategy, name
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
                indexes[key] = Index([memory for memory, facts in memories if inside(facts, wanted)], Settings())
            found = indexes[key].on_demand(plain(text), k=k, now=0.0, strategy=self.strategy, session=tuple(session or ()))
        return from_channel(self.name, ((one.memory.id, one.score) for one in found))


def open_memory(
    collection: DocumentStore,
    *,
    strategy: str = "hybrid",
    constitutional: bool = False,
    name: str = "memory",
    **options: Any,
) -> Retriever:
    """Return the memory retriever of a strategy over a collection; raises InputError for a strategy that is not known.

    The options are those of ``PassageRetriever``.
    """
    if strategy not in STRATEGIES:
        raise InputError(f"memory has no strategy '{strategy}'; use {nearest(strategy, STRATEGIES)}")
    if strategy != "hybrid":
        return Hooked(collection, strategy=strategy, name=name)
    return MemoryFusion(PassageRetriever(collection, **options), collection, constitutional=constitutional, name=name)


@contextmanager
def holding(session: Sequence[str]) -> Iterator[None]:
    """Let what a session holds, ids or words, count for the searches inside."""
    token = _HELD.set(tuple(map(str, session)))
    try:
        yield
    finally:
        _HELD.reset(token)


def links_of(facts: Mapping[str, Any]) -> set[str]:
    """Return the ids that a memory's causal links lead to, wherever its metadata has them.

    >>> sorted(links_of({"causal_links": {"leads_to": ["b"]}, "supports": "c"}))
    ['b', 'c']
    """
    tables = [facts, *(facts[name] for name in ("links", "causal_links") if isinstance(facts.get(name), Mapping))]
    found: set[str] = set()
    for table in tables:
        for kind in LINKS:
            found |= {str(one) for one in members(table.get(kind)) if one not in (None, "")}
    return found
