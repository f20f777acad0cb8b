"""Indexes that follow a collection: made once, kept on disk, brought up to date by whoever needs them next.

An index has a folder with ``state.json``: the generation it holds and the place (a folder inside) where it lies. Documents that
were only added are appended; where some were changed or removed it is made anew beside the old one, so that its statistics
are always those of one clean run. The state is written last, by renaming: a process killed at any moment leaves the old
state, and the next one repeats the step. While another process writes, readers go on with the index they have.
"""

from __future__ import annotations

import json
import shutil
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from ringtrue.errors import CannotDecide
from ringtrue.retrieve.collection import Collection

Progress = Callable[[int], None]
T = TypeVar("T")


class Kept(ABC):
    """An index of one collection."""

    def __init__(self, collection: Collection, label: str) -> None:
        self.collection = collection
        self.folder = collection.folder / "indexes" / label
        self.ids: dict[int, str] = {}
        self._version: int | None = None
        self._loaded: tuple[str, int] | None = None
        self._lock = threading.RLock()

    @abstractmethod
    def fill(self, place: Path, *, since: int, before: int, progress: Progress | None) -> int:
        """Add what came after generation ``since`` to the ``before`` entries at ``place``; return the new count."""

    @abstractmethod
    def holds(self, place: Path, count: int) -> bool:
        """Tell whether the index at ``place`` is whole and has the first ``count`` entries; more may be cut off."""

    @abstractmethod
    def load(self, place: Path, count: int) -> None:
        """Open the index for searching."""

    def pending(self) -> int:
        """Return how many steps the next ``ready`` will report."""
        state = self._state()
        generation, rewritten = self.collection.generations()
        since = 0 if state is None or state["generation"] < rewritten else int(state["generation"])
        return self.steps(since) if state is None or state["generation"] < generation else 0

    def steps(self, since: int) -> int:
        """Return how many entries there are after a generation: documents, unless an index says otherwise."""
        with self.collection.connect() as connection:
            (count,) = connection.execute("SELECT count(*) FROM documents WHERE generation > ?", (since,)).fetchone()
        return int(count)

    def ready(self, *, progress: Progress | None = None) -> None:
        """Bring index and memory up to the collection; costs microseconds when nothing was written."""
        version = self.collection.version()
        if version == self._version:
            return
        with self._lock:
            if version == self._version:
                return
            current = self._update(progress)
            # An index that another process is just bringing up to date is looked at again at the next search.
            self._version = version if current else None

    def _update(self, progress: Progress | None) -> bool:
        generation, rewritten = self.collection.generations()
        state = self._state()
        if state is None or state["generation"] < generation:
            with self.collection.writing(wait=False) as mine:
                if mine:
                    generation, rewritten = self.collection.generations()
                    state = self._build(self._state(), generation, rewritten, progress)
                elif state is None:
                    raise CannotDecide(f"{self.collection.folder}: is being written for the first time; search when it is done")
        for _ in range(2):
            if self._loaded == (state["place"], state["count"]) and self.ids:
                break
            try:
                self.load(self.folder / state["place"], state["count"])
                self._loaded = state["place"], state["count"]
            except FileNotFoundError:  # made anew by another process between reading the state and opening the files
                state = self._state() or state
        self.ids = self.collection.ids()
        return bool(state["generation"] >= generation)

    def _state(self) -> dict[str, Any] | None:
        try:
            state: dict[str, Any] = json.loads((self.folder / "state.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return state

    def _build(
        self, state: dict[str, Any] | None, generation: int, rewritten: int, progress: Progress | None
    ) -> dict[str, Any]:
        if state is not None and state["generation"] == generation:
            return state
        usable = state is not None and state["generation"] >= rewritten
        if state is not None and usable and self.holds(self.folder / state["place"], state["count"]):
            place = self.folder / state["place"]
            count = self.fill(place, since=state["generation"], before=state["count"], progress=progress)
        else:
            place = self.folder / f"g{generation}"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            count = self.fill(place, since=0, before=0, progress=progress)
        state = {"place": place.name, "generation": generation, "count": count}
        scratch = self.folder / "state.json.new"
        scratch.write_text(json.dumps(state), encoding="utf-8")
        scratch.replace(self.folder / "state.json")
        for other in self.folder.glob("g*"):
            if other != place:
                shutil.rmtree(other, ignore_errors=True)  # readers keep the files they have open
        return state


class Followed(Generic[T]):
    """Something made from a collection and kept in memory until the collection changes.

    ``Followed(collection, collection.metadata)()`` reads the metadata once, and again only after a write.
    """

    def __init__(self, collection: Collection, make: Callable[[], T]) -> None:
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


def kept(retriever: Any) -> list[Kept]:
    """Return every index under a retriever, each once."""
    if isinstance(retriever, Kept):
        return [retriever]
    found: dict[Path, Kept] = {}
    for part in getattr(retriever, "parts", ()):
        for index in kept(part):
            found.setdefault(index.folder, index)
    return list(found.values())
