"""Searching a memory folder on demand: once (``search_memories``), or again and again for a server (``Engine``).

An engine follows the files: every search compares their state first, and reads what changed. It ranks as the hook's
index and the retriever expression ``memory`` do, because it asks them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringtrue.errors import InputError, MissingInput, check_choice
from ringtrue.memory.hook.cache import COARSE, FINE, open_index
from ringtrue.memory.hook.encoder import BertEncoder, open_encoder
from ringtrue.memory.hook.evidence import ends_of
from ringtrue.memory.hook.files import own_folder, scan
from ringtrue.memory.hook.index import Index, MemoryHit, shown_until
from ringtrue.memory.hook.meaning import Meaning, open_meaning
from ringtrue.memory.hook.memory import Memory, MemoryFault, as_record
from ringtrue.memory.hook.null_level import null_level
from ringtrue.memory.hook.respond import Question, find
from ringtrue.memory.hook.settings import FTS5, HYBRID, STRATEGIES, Settings, read_settings
from ringtrue.memory.hook.threshold import HookDecision, evidence_of
from ringtrue.memory.hook.words import called, spoken, without_command
from ringtrue.records import Document

if TYPE_CHECKING:
    from ringtrue.retrieve import Collection
    from ringtrue.retrieve.channels.memory import MemoryFusion as Hybrid


OWN_PLACES = ("id", "title", "tags")
"""Fields of a memory that a document has a place for; all others are its metadata."""


def documents_of(memories: Iterable[Memory]) -> list[Document]:
    """Return a document for each memory: its id, title, body and tags, and every other field as metadata.

    >>> from ringtrue.memory.hook.memory import Memory
    >>> (found,) = documents_of([Memory(id="x", category="preference", title="Tabs", body="tabs", content={"topic": "tabs"})])
    >>> found.doc_id, found.text, found.metadata["category"], found.metadata["content"]
    ('x', 'tabs', 'preference', {'topic': 'tabs'})
    """
    return [
        Document(
            memory.id,
            memory.body,
            memory.title,
            {name: _finite(value) for name, value in as_record(memory).items() if name not in OWN_PLACES},
            memory.tags,
        )
        for memory in memories
    ]


def _finite(value: Any) -> Any:
    """Return a value that JSON can hold: a number that is not finite becomes its text, so that one odd file stops no search."""
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value


NOTHING_ABOVE = "nothing is above the level of chance; ask in other words, or accept that no memory answers this"
VECTOR_SECONDS = 10.0
"""How long a search on demand may make vectors that are missing; the next one goes on."""
ASKED, OF_BEST = 1.28, 0.3
"""Evidence that a search on demand needs: the 90th percentile of chance, and this share of the best hit's evidence."""
FOLDER = "collection"
"""The folder of the hybrid's documents and vectors, under ``<root>/.ringtrue/``."""


@dataclass(frozen=True)
class MemoryAnswer:
    """What a search found, the strategy that found it, and what to know about it."""

    strategy: str
    hits: tuple[MemoryHit, ...]
    note: str = ""


def search_memories(
    root: str,
    text: str,
    *,
    now: float,
    strategy: str | None = None,
    k: int | None = None,
    session: Sequence[str] = (),
    settings: Settings | None = None,
) -> MemoryAnswer:
    """Return the memories that answer a text, the best first; at most ``k``, else as many as the settings say.

    ``strategy`` is that of the settings unless given. ``session`` is the paths that were used last. Raises InputError for an
    unknown strategy and for ``k`` below 1.
    """
    rules = settings or read_settings(root)[0]
    engine = Engine(root, rules, strategy)
    most = rules.search.max_results if k is None else k
    if most < 1:
        raise InputError(f"k is {most}; ask for 1 memory at least")
    return engine.search(text, k=most, now=now, files=session)


class Engine:
    """The memories of a folder, ready to be searched by one strategy; threads may share it.

    Raises InputError for an unknown strategy. A folder that does not exist yet has no memories.

    >>> Engine("/nowhere/memory", Settings()).search("why postgres", k=3, now=0.0).hits
    ()
    """

    def __init__(self, root: str, settings: Settings, strategy: str | None = None) -> None:
        self.root, self.settings, self.strategy = root, settings, strategy or settings.match_strategy
        self.named = strategy is not None
        """Whether somebody asked for the strategy; if not, words answer in place of a model or a folder that cannot be used."""
        check_choice(self.strategy, STRATEGIES, f"there is no strategy '{self.strategy}'")
        self._lock, self._hybrid_lock = threading.Lock(), threading.Lock()
        self._snapshot: Snapshot | None = None
        self._retriever: Hybrid | None = None
        self._collected: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    def search(self, text: str, *, k: int, now: float, session: Sequence[str] = (), files: Sequence[str] = ()) -> MemoryAnswer:
        """Return what ``Snapshot.search`` does, for the files as they are now."""
        return self.snapshot().search(text, k=k, now=now, session=session, files=files)

    def memories(self, now: float) -> list[Memory]:
        """Return what ``Snapshot.memories`` does, for the files as they are now."""
        return self.snapshot().memories(now)

    def snapshot(self) -> Snapshot:
        """Return the files as they are now, to be asked several times; raises InputError if the folder cannot be used."""
        with self._lock:
            began = time.time_ns()
            state = tuple(sorted(scan(self.root, self.settings).lines))
            if self._snapshot is None or not self._snapshot.settled or self._snapshot.state != state:
                try:
                    index = open_index(self.root, self.settings)
                except (MemoryFault, OSError) as problem:
                    raise InputError(f"{self.root} cannot be searched: {problem}; check the folder") from problem
                self._snapshot = Snapshot(self, state, _settled(state, began), index)
            return self._snapshot

    def hybrid(self, snapshot: Snapshot, memories: Sequence[Memory]) -> Hybrid:
        """Return the retriever, brought up to these memories if the files, or what is past its retention, have changed."""
        with self._hybrid_lock:
            wanted = snapshot.state, tuple(memory.id for memory in memories)
            if self._retriever is None or self._collected != wanted or not snapshot.settled:
                try:
                    collection = _collect(self.root, memories)
                except OSError as problem:
                    raise InputError(
                        f"{self.root}: the hybrid cannot keep its vectors ({problem}); make it writable"
                    ) from problem
                # The retriever follows its documents, whoever writes them; a new one would load its model again.
                self._retriever = self._retriever or collection.retriever("memory")  # type: ignore[assignment]
                self._collected = wanted
            assert self._retriever is not None
            return self._retriever


class Snapshot:
    """The memories of a folder as they were at one moment."""

    def __init__(self, engine: Engine, state: tuple[str, ...], settled: bool, index: Index) -> None:
        self.state, self.settled = state, settled
        self._engine, self._index, self._lock = engine, index, threading.Lock()

    def search(self, text: str, *, k: int, now: float, session: Sequence[str] = (), files: Sequence[str] = ()) -> MemoryAnswer:
        """Return at most ``k`` memories for a text, the best first.

        ``session`` is what was said before (texts) or is in use (ids of memories) and counts for the hybrid; ``files`` is the
        paths used last and counts if ``related_files_boost`` is on. Raises InputError if the hybrid's model cannot be used.
        """
        text, strategy = without_command(text), self._engine.strategy
        if strategy != HYBRID:
            return self._by_words(text, strategy, k=k, now=now, files=files)
        memories = {memory.id: memory for memory in self.memories(now)}
        if not memories:
            return MemoryAnswer(HYBRID, ())
        try:
            found = self._engine.hybrid(self, list(memories.values())).search(text, k=k, session=session)
        except (MissingInput, InputError) as problem:
            if self._engine.named:
                raise
            by_words = self._by_words(text, FTS5, k=k, now=now, files=files)
            return replace(by_words, note=f"only words were compared: {problem}")
        known = [hit for hit in found if hit.doc_id in memories]
        hits = [MemoryHit(memories[hit.doc_id], hit.score, rank, hit.stages) for rank, hit in enumerate(known, 1)]
        return self._above_level(text, hits)

    def _by_words(self, text: str, strategy: str, *, k: int, now: float, files: Sequence[str]) -> MemoryAnswer:
        try:
            with self._lock:
                hits = self._index.on_demand(text, k=k, now=now, strategy=strategy, session=files)
        except MemoryFault as fault:
            raise InputError(str(fault)) from fault
        return MemoryAnswer(strategy, tuple(hits))

    def _above_level(self, text: str, hits: Sequence[MemoryHit]) -> MemoryAnswer:
        """Return the hits that mean more than chance does, share enough words, or are called; all if vectors are missing."""
        root, settings = self._engine.root, self._engine.settings
        with self._lock:
            meaning = meaning_of(root, self._index, settings, seconds=VECTOR_SECONDS)
            if meaning is None:
                return MemoryAnswer(HYBRID, tuple(hits))
            level = null_level(self._index, settings, root=root)
            memories, said = [hit.memory for hit in hits], spoken(text)
            words = evidence_of(text, memories, level, settings)
            meant = meaning.evidence(text, memories, words)
        floor = max(ASKED, OF_BEST * max(meant, default=0.0))
        kept = [
            hit
            for hit, shared, value in zip(hits, words, meant, strict=True)
            if value > floor or shared > level.value or called(hit.memory, said)
        ]
        ranked = (MemoryHit(hit.memory, hit.score, rank, hit.stages) for rank, hit in enumerate(kept, 1))
        return MemoryAnswer(HYBRID, tuple(ranked), "" if kept or not hits else NOTHING_ABOVE)

    def memories(self, now: float) -> list[Memory]:
        """Return what may be shown, in the order of the ids: active and inside its retention."""
        with self._lock:
            found = self._index.memories
        return [memory for memory in found if now <= shown_until(memory, self._engine.settings)]


def _settled(state: Sequence[str], began: int) -> bool:
    """Return whether every file had been at rest so long that a further change must show in its state."""
    changes = (max(map(int, line.rpartition("\0")[2].split(" ")[:2])) for line in state)
    return all(began - change > (FINE if change % 1_000_000_000 else COARSE) for change in changes)


def _collect(root: str, memories: Sequence[Memory]) -> Collection:
    from ringtrue.retrieve import Collection

    collection = Collection.create(Path(own_folder(root)) / FOLDER)
    collection.ingest(documents_of(memories), remove_missing=True)
    return collection


def constitutional(memories: Sequence[Memory]) -> list[Memory]:
    """Return the memories that every search on demand shows, in their order."""
    return [memory for memory in memories if memory.tier == "constitutional"]


def too_many_constitutional(count: int, k: int) -> str | None:
    """Return what is wrong if there are more constitutional memories than places, with the cure; None if they fit.

    >>> too_many_constitutional(6, 5)
    'there are 6 constitutional memories and k is 5; ask for k=6 or more, or give some of them a lower tier'
    """
    if count <= k:
        return None
    return (
        f"there are {count} constitutional memories and k is {k}; ask for k={count} or more, or give some of them a lower tier"
    )


def guaranteed(found: Sequence[MemoryHit], always: Sequence[Memory], *, k: int) -> list[MemoryHit]:
    """Return at most ``k`` hits with every constitutional memory among them.

    Those that the search found keep their places; the others come last, and the last hits that are not constitutional make
    room. What was added has the score of the hit before it, as the expression ``memory(constitutional=true)`` has it. Raises
    InputError if there are more of them than ``k``.
    """
    fault = too_many_constitutional(len(always), k)
    if fault:
        raise InputError(fault)
    names = {memory.id for memory in always}
    hits = list(found[:k])
    missing = [memory for memory in always if memory.id not in {hit.memory.id for hit in hits}]
    for place in range(len(hits) - 1, -1, -1):
        if len(hits) + len(missing) > k and hits[place].memory.id not in names:
            del hits[place]
    for memory in missing:
        hits.append(MemoryHit(memory, hits[-1].score if hits else 0.0, 0))
    return [hit if hit.rank == rank else MemoryHit(hit.memory, hit.score, rank, hit.stages) for rank, hit in enumerate(hits, 1)]


def make_ready(root: str) -> None:
    """Make the index of a folder, its vectors, and the level that chance reaches; what cannot be made is left to the hook."""
    settings, _ = read_settings(root)
    if settings.enabled:
        try:
            index = open_index(root, settings)
            null_level(index, settings, root=root)
            meaning_of(root, index, settings)
        except (MemoryFault, OSError):  # the command itself is done, and doctor says what is wrong
            return


@lru_cache(maxsize=1)
def loaded_encoder() -> BertEncoder:
    """Return the hook's encoder, loaded once per process; raises ImportError or OSError as ``open_encoder`` does."""
    return open_encoder()


def meaning_of(root: str, index: Index, settings: Settings, *, seconds: float | None = None) -> Meaning | None:
    """Return the meaning of a store, making its vectors; None without weights or memories, or if it is switched off."""
    if not settings.meaning_decides:
        return None
    try:
        return open_meaning(root, index, settings, loaded_encoder(), seconds=seconds)
    except (ImportError, OSError, MemoryFault):
        return None


@dataclass(frozen=True)
class HookView:
    """What the hook makes of a text as a prompt: the words it looks at, what it decides, and the evidence of memories by id."""

    words: tuple[str, ...]
    decision: HookDecision
    evidence: Mapping[str, float]
    phrases: Mapping[str, str]
    """The trigger phrase by which the text calls a memory, if it does."""


def hook_view(root: str, text: str, memories: Sequence[Memory], settings: Settings, *, now: float) -> HookView:
    """Return how the hook sees a text and these memories; nothing is written but the caches."""
    index = open_index(root, settings)
    level, meaning = null_level(index, settings, root=root), meaning_of(root, index, settings)
    decision = find(root, Question(text, now=now), settings)
    words = dict.fromkeys(word for part in ends_of(text, settings.query_max_tokens) for word in part)
    if decision.words_because:
        meaning = None
    evidence = evidence_of(text, memories, level, settings, meaning)
    said = spoken(text)
    phrases = {memory.id: phrase for memory in memories if (phrase := called(memory, said))}
    return HookView(tuple(words), decision, {one.id: value for one, value in zip(memories, evidence, strict=True)}, phrases)
