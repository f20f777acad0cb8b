"""Indexes that follow a collection: made once, kept on disk, brought up to date by whoever needs them next.

An index has a folder with ``state.json``: the generation it holds and the place (a folder inside) where it lies. Documents that
were only added are appended; where some were changed or removed it is made anew beside the old one, so that its statistics
are always those of one clean run. The state is written last, by renaming: a process killed at any moment leaves the old
state, and the next one repeats the step. An index that cannot be opened is made again: the documents are the truth.

What a search needs is loaded into one snapshot that is never changed, only replaced. While somebody else writes, searches go on
with the snapshot they have.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from ringtrue.errors import CannotDecide, InputError
from ringtrue.retrieve.documents import DocumentStore

Progress = Callable[[int], None]
T = TypeVar("T")
PATIENCE = 60.0
"""Seconds to wait for somebody who is just making the first index."""
_UNREADABLE = (OSError, ValueError, sqlite3.Error)


@dataclass(frozen=True)
class IndexState:
    """What an index on disk holds."""

    place: str
    generation: int
    count: int


class LoadedIndex(Protocol):
    """What is loaded of an index."""

    @property
    def ids(self) -> Mapping[int, str]:
        """The documents by their rows."""


S = TypeVar("S", bound=LoadedIndex)


class StoredIndex(ABC, Generic[S]):
    """An index of one collection; ``S`` is what is loaded of it."""

    def __init__(self, collection: DocumentStore, label: str) -> None:
        self.collection = collection
        self.folder = collection.folder / "indexes" / label
        self._loaded: tuple[int | None, IndexState, S] | None = None
        self._lock = threading.RLock()

    @abstractmethod
    def fill(self, place: Path, *, since: int, before: int, progress: Progress | None) -> int:
        """Add what came after generation ``since`` to the ``before`` entries at ``place``; return the new count."""

    @abstractmethod
    def holds(self, place: Path, count: int) -> bool:
        """Tell whether the index at ``place`` is whole and has the first ``count`` entries; more may be cut off."""

    @abstractmethod
    def load(self, place: Path, count: int, ids: Mapping[int, str]) -> S:
        """Return what a search needs; raises OSError, ValueError or sqlite3.Error if the files are not whole.

        ``ids`` are the documents by their rows; a row that is not among them was removed since the index was made.
        """

    @cached_property
    def metadata(self) -> CachedView[dict[str, Mapping[str, Any]]]:
        """The metadata of every document, read again after a write."""
        return CachedView(self.collection, self.collection.metadata)

    @property
    def ids(self) -> Mapping[int, str]:
        """The documents that can be found, by their rows."""
        return self.ready().ids

    def pending(self) -> int:
        """Return how many steps the next ``ready`` will report."""
        generation, rewritten = self.collection.generations()
        state = self._state(generation)
        since = 0 if state is None or state.generation < rewritten else state.generation
        return self.steps(since) if state is None or state.generation < generation else 0

    def steps(self, since: int) -> int:
        """Return how many entries there are after a generation: documents, unless an index says otherwise."""
        with self.collection.connect() as connection:
            (count,) = connection.execute("SELECT count(*) FROM documents WHERE generation > ?", (since,)).fetchone()
        return int(count)

    def ready(self, *, progress: Progress | None = None) -> S:
        """Return the snapshot to search, brought up to the collection; costs microseconds when nothing was written."""
        version = self.collection.version()
        loaded = self._loaded
        if loaded is not None and loaded[0] == version:
            return loaded[2]
        with self._lock:
            loaded = self._loaded
            if loaded is None or loaded[0] != version:
                state, snapshot = self._update(loaded, progress)
                # While another process is ahead of the index it is looked at again at the next search.
                current = state.generation >= self.collection.generations()[0]
                self._loaded = loaded = (version if current else None), state, snapshot
            return loaded[2]

    def _update(self, loaded: tuple[int | None, IndexState, S] | None, progress: Progress | None) -> tuple[IndexState, S]:
        generation, _ = self.collection.generations()
        state = self._state(generation)
        if state is None or state.generation < generation:
            # Only the very first index is waited for; later ones have one before them to go on with.
            with self.collection.writing(wait=PATIENCE if state is None else 0) as mine:
                if mine:
                    state = self._build(progress)
                elif loaded is not None:
                    return loaded[1], loaded[2]
                elif state is None:
                    raise CannotDecide(f"{self.collection.folder}: is being written for the first time; search when it is done")
        return self._opened(state, loaded, progress)

    def _opened(
        self, state: IndexState, loaded: tuple[int | None, IndexState, S] | None, progress: Progress | None
    ) -> tuple[IndexState, S]:
        if loaded is not None and loaded[1] == state:
            return loaded[1], loaded[2]
        problem: Exception | None = None
        for _ in range(3):
            try:
                return state, self.load(self.folder / state.place, state.count, self.collection.ids())
            except _UNREADABLE as found:
                problem = found
            # Somebody made it anew just now, and the state says where it is; or it is damaged, and is made again.
            newer = self._state(self.collection.generations()[0])
            if newer is None or newer == state:
                with self.collection.writing(wait=PATIENCE) as mine:
                    if not mine:
                        break
                    newer = self._build(progress, anew=newer is not None)
            state = newer
        raise InputError(f"{self.folder}: cannot be read ({problem}); remove that folder, it is made again") from problem

    def _state(self, generation: int) -> IndexState | None:
        """Return what the index says it holds; nothing if that cannot be, like a generation yet to come."""
        try:
            found = json.loads((self.folder / "state.json").read_text(encoding="utf-8"))
            state = IndexState(found["place"], found["generation"], found["count"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        whole = (
            all(type(value) is int and value >= 0 for value in (state.generation, state.count))
            and state.generation <= generation
        )
        return state if whole and isinstance(state.place, str) and Path(state.place).name == state.place else None

    def _build(self, progress: Progress | None, *, anew: bool = False) -> IndexState:
        generation, rewritten = self.collection.generations()
        state = None if anew else self._state(generation)
        if state is not None and state.generation == generation:
            return state
        try:
            if state is not None and state.generation >= rewritten and self.holds(self.folder / state.place, state.count):
                place = self.folder / state.place
                count = self.fill(place, since=state.generation, before=state.count, progress=progress)
            else:
                place = self.folder / f"g{generation}"
                number = 0
                while place.exists():  # a reader may still have the damaged one open
                    number += 1
                    place = self.folder / f"g{generation}.{number}"
                place.mkdir(parents=True)
                count = self.fill(place, since=0, before=0, progress=progress)
            state = IndexState(place.name, generation, count)
            scratch = self.folder / "state.json.new"
            scratch.write_text(json.dumps(vars(state)), encoding="utf-8")
            scratch.replace(self.folder / "state.json")
        except (OSError, sqlite3.Error) as problem:
            raise InputError(f"{self.folder}: cannot be written ({problem}); check free space and permissions") from problem
        for other in self.folder.glob("g*"):
            if other != place:
                shutil.rmtree(other, ignore_errors=True)  # readers keep the files they have open
        return state


class CachedView(Generic[T]):
    """Something made from a collection and kept in memory until the collection changes.

    ``CachedView(collection, collection.metadata)()`` reads the metadata once, and again only after a write.
    """

    def __init__(self, collection: DocumentStore, make: Callable[[], T]) -> None:
        self.collection, self.make = collection, make
        self._made: tuple[int, T] | None = None
        self._lock = threading.Lock()

    def __call__(self) -> T:
        # Asked before reading, so that what is written meanwhile is seen at the next call; and outside the lock, because a
        # thread that writes holds the collection's own lock and may search too.
        version = self.collection.version()
        with self._lock:
            if self._made is None or self._made[0] != version:
                self._made = version, self.make()
            return self._made[1]


def indexes_of(retriever: Any) -> list[StoredIndex[Any]]:
    """Return every index under a retriever, each once."""
    if isinstance(retriever, StoredIndex):
        return [retriever]
    found: dict[Path, StoredIndex[Any]] = {}
    for part in getattr(retriever, "parts", ()):
        for index in indexes_of(part):
            found.setdefault(index.folder, index)
    return list(found.values())
