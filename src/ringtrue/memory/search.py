"""Searching on demand: the index of the hook for its strategies, the retriever ``memory`` for the hybrid (A-3, E-6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ringtrue.errors import InputError, nearest
from ringtrue.memory.documents import documents_of
from ringtrue.memory.hook.evidence import ends_of
from ringtrue.memory.hook.files import load, own_folder
from ringtrue.memory.hook.index import Index, open_index, shown_until
from ringtrue.memory.hook.memory import Memory
from ringtrue.memory.hook.phrases import called, spoken
from ringtrue.memory.hook.respond import find
from ringtrue.memory.hook.settings import STRATEGIES, Settings, read_settings
from ringtrue.memory.hook.threshold import Decision, null_level, told_by

if TYPE_CHECKING:
    from ringtrue.records import Stage
    from ringtrue.retrieve import Collection

HYBRID = "hybrid"
FOLDER = "collection"
"""Where the documents and vectors of the hybrid lie, under ``<root>/.ringtrue/``."""


@dataclass(frozen=True)
class MemoryHit:
    """A memory that was found: score, the higher the better within one answer, rank from 1, and what each stage said."""

    memory: Memory
    score: float
    rank: int
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a search found, and the strategy that found it."""

    strategy: str
    hits: tuple[MemoryHit, ...]


def search_memories(
    root: str,
    text: str,
    *,
    now: float,
    strategy: str | None = None,
    k: int | None = None,
    session: Sequence[str] = (),
    settings: Settings | None = None,
) -> Answer:
    """Return the memories that answer a text, the best first; at most ``k``, else as many as the settings say.

    ``strategy`` is that of the settings unless given. ``session`` is the paths that were used last. Scores under
    ``search.min_score_abs`` are left out where the best one reaches it: in a store of one or two memories BM25 is about 0 for
    a perfect match (trap 25), and the hybrid's scores have another unit. Raises InputError for a strategy there is not.
    """
    rules = settings or read_settings(root)[0]
    chosen = strategy or rules.match_strategy
    if chosen not in STRATEGIES:
        raise InputError(f"there is no strategy '{chosen}'; did you mean {nearest(chosen, STRATEGIES)}?")
    most = rules.search.max_results if k is None else k
    if most < 1:
        raise InputError(f"k is {most}; ask for 1 memory at least")
    if chosen == HYBRID:
        return Answer(HYBRID, _hybrid(root, text, rules, now=now, k=most))
    index = open_index(root, rules)
    return answer_from(index, text, now=now, strategy=chosen, k=most, session=session)


def answer_from(index: Index, text: str, *, now: float, strategy: str, k: int, session: Sequence[str] = ()) -> Answer:
    """Return what an index that is open already finds, cut as a search on demand is."""
    found = index.on_demand(text, k=k, now=now, strategy=strategy, session=session)
    return Answer(strategy, tuple(MemoryHit(one.memory, one.score, one.rank) for one in found))


@dataclass(frozen=True)
class HookView:
    """What the hook makes of a text as a prompt: the words it looks at, what it decides, and the evidence of memories by id."""

    words: tuple[str, ...]
    decision: Decision
    evidence: Mapping[str, float]
    phrases: Mapping[str, str]
    """The trigger phrase by which the text calls a memory, where it does."""


def hook_view(root: str, text: str, memories: Sequence[Memory], settings: Settings, *, now: float) -> HookView:
    """Return how the hook sees a text and these memories; nothing is written but the caches."""
    index = open_index(root, settings)
    level = null_level(index, settings, root=root)
    decision = find(root, text, settings, now=now)
    words = dict.fromkeys(word for part in ends_of(text, settings.query_max_tokens) for word in part)
    told = {memory.id: told_by(text, memory, level, settings) for memory in memories}
    said = spoken(text)
    phrases = {memory.id: phrase for memory in memories if (phrase := called(memory, said))}
    return HookView(tuple(words), decision, told, phrases)


def collection_of(root: str, settings: Settings, *, now: float) -> Collection:
    """Return the memories that may be shown as a collection under ``<root>/.ringtrue/``, brought up to the files."""
    return _collected(root, shown(root, settings, now=now))


def shown(root: str, settings: Settings, *, now: float) -> list[Memory]:
    """Return the memories that may be shown at all: active and inside their retention."""
    memories = load(root, settings).memories
    return [memory for memory in memories if memory.status == "active" and now <= shown_until(memory, settings)]


def _collected(root: str, memories: Sequence[Memory]) -> Collection:
    from ringtrue.retrieve import Collection

    collection = Collection.create(Path(own_folder(root)) / FOLDER)
    collection.ingest(documents_of(memories), remove_missing=True)
    return collection


def _hybrid(root: str, text: str, settings: Settings, *, now: float, k: int) -> tuple[MemoryHit, ...]:
    from ringtrue.retrieve import build

    memories = {memory.id: memory for memory in shown(root, settings, now=now)}
    if not memories:
        return ()
    hits = build("memory", _collected(root, list(memories.values()))).search(text, k=k)
    return tuple(
        MemoryHit(memories[hit.doc_id], hit.score, rank, tuple(hit.stages))
        for rank, hit in enumerate((hit for hit in hits if hit.doc_id in memories), 1)
    )
