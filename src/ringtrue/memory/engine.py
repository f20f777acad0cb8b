"""A search kept open (A-7): what ``search_memories`` answers, for a server that answers many times.

An engine follows the files: every search asks for their state first, and what changed is read again. It ranks as the hook's
index and the retriever expression ``memory`` do, because it asks them (E-6).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ringtrue.errors import InputError, nearest
from ringtrue.memory.hook.cache import COARSE, FINE
from ringtrue.memory.hook.files import scan
from ringtrue.memory.hook.index import Index, open_index, shown_until
from ringtrue.memory.hook.memory import Memory, MemoryFault
from ringtrue.memory.hook.settings import STRATEGIES, Settings
from ringtrue.memory.search import HYBRID, Answer, MemoryHit, answer_from, collection_of

if TYPE_CHECKING:
    from ringtrue.retrieve.channels.memory import Memory as Hybrid


@dataclass
class _Opened:
    """The files as they were read last."""

    state: tuple[str, ...]
    settled: bool
    index: Index
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class _Hybrid:
    """The retriever, and the files and memories it was brought up to."""

    state: tuple[str, ...]
    ids: tuple[str, ...]
    settled: bool
    retriever: Hybrid


class Engine:
    """The memories of a folder, ready to be searched by one strategy; threads may share it."""

    def __init__(self, root: str, settings: Settings, strategy: str) -> None:
        self.root, self.settings, self.strategy = root, settings, strategy
        self._lock, self._hybrid_lock = threading.Lock(), threading.Lock()
        self._opened: _Opened | None = None
        self._hybrid: _Hybrid | None = None

    def search(self, text: str, *, k: int, now: float, session: Sequence[str] = (), files: Sequence[str] = ()) -> Answer:
        """Return what ``View.search`` does, for the files as they are now."""
        return self.view().search(text, k=k, now=now, session=session, files=files)

    def memories(self, now: float) -> list[Memory]:
        """Return what ``View.memories`` does, for the files as they are now."""
        return self.view().memories(now)

    def view(self) -> View:
        """Return the files as they are now, to be asked several times; raises InputError where the folder cannot be used."""
        return View(self, self._current())

    def _current(self) -> _Opened:
        with self._lock:
            began = time.time_ns()
            state = tuple(sorted(scan(self.root, self.settings).lines))
            opened = self._opened
            if opened is None or not opened.settled or opened.state != state:
                try:
                    index = open_index(self.root, self.settings)
                except (MemoryFault, OSError) as problem:
                    raise InputError(f"{self.root} cannot be searched: {problem}; check the folder") from problem
                opened = self._opened = _Opened(state, _settled(state, began), index)
            return opened

    def retriever(self, opened: _Opened, ids: tuple[str, ...], now: float) -> Hybrid:
        """Return the hybrid, brought up to the files where they, or what is past its retention, have changed."""
        with self._hybrid_lock:
            kept = self._hybrid
            if kept is not None and kept.settled and (kept.state, kept.ids) == (opened.state, ids):
                return kept.retriever
            try:
                collection = collection_of(self.root, self.settings, now=now)
            except OSError as problem:
                raise InputError(f"{self.root}: the hybrid cannot keep its vectors ({problem}); make it writable") from problem
            # The retriever follows its documents, whoever writes them; a new one would load its model again.
            retriever = kept.retriever if kept is not None else collection.retriever("memory")
            self._hybrid = _Hybrid(opened.state, ids, opened.settled, retriever)  # type: ignore[arg-type]
            return self._hybrid.retriever


class View:
    """The memories of a folder as they were at one moment."""

    def __init__(self, engine: Engine, opened: _Opened) -> None:
        self._engine, self._opened = engine, opened

    def search(self, text: str, *, k: int, now: float, session: Sequence[str] = (), files: Sequence[str] = ()) -> Answer:
        """Return at most ``k`` memories for a text, the best first.

        ``session`` is what was said before (texts) or is in use (ids of memories) and counts for the hybrid; ``files`` is the
        paths used last and counts where ``related_files_boost`` is on. Raises InputError where the model of the hybrid cannot
        be used.
        """
        strategy = self._engine.strategy
        if strategy == HYBRID:
            return self._by_hybrid(text, k, now, session)
        try:
            with self._opened.lock:
                return answer_from(self._opened.index, text, now=now, strategy=strategy, k=k, session=files)
        except MemoryFault as fault:
            raise InputError(str(fault)) from fault

    def memories(self, now: float) -> list[Memory]:
        """Return what may be shown, in the order of the ids: active and inside its retention."""
        with self._opened.lock:
            found = self._opened.index.memories
        return [memory for memory in found if now <= shown_until(memory, self._engine.settings)]

    def _by_hybrid(self, text: str, k: int, now: float, session: Sequence[str]) -> Answer:
        memories = {memory.id: memory for memory in self.memories(now)}
        if not memories:
            return Answer(HYBRID, ())
        hits = self._engine.retriever(self._opened, tuple(memories), now).search(text, k=k, session=session)
        known = [hit for hit in hits if hit.doc_id in memories]
        return Answer(
            HYBRID,
            tuple(MemoryHit(memories[hit.doc_id], hit.score, rank, tuple(hit.stages)) for rank, hit in enumerate(known, 1)),
        )


def _settled(state: Sequence[str], began: int) -> bool:
    """True where every file had been at rest so long that a further change must show in its state."""
    changes = (max(map(int, line.rpartition("\0")[2].split(" ")[:2])) for line in state)
    return all(began - change > (FINE if change % 1_000_000_000 else COARSE) for change in changes)


def open_engine(root: str, settings: Settings, strategy: str | None = None) -> Engine:
    """Return the search over a memory folder; the strategy is that of the settings unless one is given.

    Raises InputError for a strategy that does not exist. A folder that is not there yet holds nothing.

    >>> open_engine("/nowhere/memory", Settings()).search("why postgres", k=3, now=0.0).hits
    ()
    """
    chosen = settings.match_strategy if strategy is None else strategy
    if chosen not in STRATEGIES:
        raise InputError(f"there is no strategy '{chosen}'; did you mean {nearest(chosen, STRATEGIES)}?")
    return Engine(root, settings, chosen)


def constitutional(memories: Sequence[Memory]) -> list[Memory]:
    """Return the memories that every search on demand shows, in their order."""
    return [memory for memory in memories if memory.tier == "constitutional"]


def too_many_constitutional(count: int, k: int) -> str | None:
    """Return what is wrong where there are more constitutional memories than places, with the cure; None where they fit.

    >>> too_many_constitutional(6, 5)
    'there are 6 constitutional memories and k is 5; ask for k=6 or more, or give some of them a lower tier'
    """
    if count <= k:
        return None
    return (
        f"there are {count} constitutional memories and k is {k}; ask for k={count} or more, or give some of them a lower tier"
    )


def guaranteed(found: Sequence[MemoryHit], always: Sequence[Memory], *, k: int) -> list[MemoryHit]:
    """Return at most ``k`` hits with every constitutional memory among them (A-7).

    Those that the search found keep their places; the others come last, and the last hits that are not constitutional make
    room. What was added has the score of the hit before it, as the expression ``memory(constitutional=true)`` has it. Raises
    InputError where there are more of them than ``k``.
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
    return [replace(hit, rank=rank) for rank, hit in enumerate(hits, 1)]
