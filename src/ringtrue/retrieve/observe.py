"""How an answer came about: the lists that a retriever saw on its way, noted while it serves.

Nothing is asked a second time. Fusions and pipelines write down what their parts returned, when somebody observes; when nobody
does, that costs one look at a context variable. Observing belongs to the thread (or task) that asks::

    with observing() as seen:
        hits = retriever.search("pool", k=10)
    seen.root  # a Fused or Stepped tree; None for a retriever without parts
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from ringtrue.records import Hit
from ringtrue.retrieve.protocol import Retriever, Scope, search_many


@dataclass(frozen=True, slots=True)
class _SeenList:
    """A list of hits that somebody returned."""

    name: str
    hits: tuple[Hit, ...]
    ms: float
    """Milliseconds from the question to the list, but of one step of a pipeline alone; of a batch, its share."""


class Listed(_SeenList):
    """What a retriever without parts of its own returned: its whole candidate list."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Fused(_SeenList):
    """What a fusion made of its channels' lists."""

    text: str
    """The question, which some rules look at."""
    channels: tuple[Seen, ...]
    order: tuple[str, ...]
    """Every candidate in the fused order, also beyond the hits that were asked for."""

    @classmethod
    def of(
        cls, name: str, text: str, hits: Sequence[Hit], channels: Sequence[Seen], order: Iterable[tuple[str, float]], ms: float
    ) -> Fused:
        """Return the fusion of lists, which took ``ms`` beside the time of its channels."""
        total = ms + sum(channel.ms for channel in channels)
        return cls(name, tuple(hits), total, text, tuple(channels), tuple(doc_id for doc_id, _ in order))


@dataclass(frozen=True, slots=True)
class StepResult(_SeenList):
    """What one step of a pipeline made of the hits before it."""

    asked: int
    """Hits it was to return at most."""


@dataclass(frozen=True, slots=True)
class Stepped(_SeenList):
    """A retriever with steps after it."""

    base: Seen
    steps: tuple[StepResult, ...]


Seen = Listed | Fused | Stepped


class Observed:
    """What was seen while observing."""

    def __init__(self) -> None:
        self._calls: list[tuple[object, tuple[Seen, ...]]] = []

    @property
    def root(self) -> Seen | None:
        """The one question's tree; None if nothing with parts was asked, or more than one thing."""
        trees = self.trees
        return trees[0] if len(trees) == 1 else None

    @property
    def trees(self) -> tuple[Seen, ...]:
        """One tree for each question of the one call; empty if there was none, or more than one."""
        return self._calls[0][1] if len(self._calls) == 1 else ()

    def by(self, owner: object) -> tuple[Seen, ...]:
        """Return the trees where they tell of this very retriever, and not of something that it asked in turn."""
        return self.trees if self._calls and self._calls[0][0] is owner else ()

    def add(self, owner: object, trees: tuple[Seen, ...]) -> None:
        self._calls.append((owner, trees))


_OBSERVED: ContextVar[Observed | None] = ContextVar("ringtrue_observed", default=None)


@contextmanager
def _observing(observed: Observed | None) -> Iterator[None]:
    token = _OBSERVED.set(observed)
    try:
        yield
    finally:
        _OBSERVED.reset(token)


@contextmanager
def observing() -> Iterator[Observed]:
    """Note how the retriever asked inside comes to its answer; hits, order and depth stay as they are."""
    observed = Observed()
    with _observing(observed):
        yield observed


def unobserved() -> AbstractContextManager[None]:
    """Ask inside without a note: for a channel that needs another retriever's hits, which are not its own list."""
    return _observing(None)


def is_observed() -> bool:
    """Return whether somebody observes what is asked now."""
    return _OBSERVED.get() is not None


def ask(
    name: str, retriever: Retriever, texts: Sequence[str], *, k: int, scope: Scope | None
) -> tuple[list[Sequence[Hit]], list[Seen]]:
    """Return a part's answers, and what was seen of them: one tree for each question, none if nobody observes."""
    if not is_observed():
        return search_many(retriever, texts, k=k, scope=scope), []
    start = time.perf_counter()
    with observing() as inside:
        answers = search_many(retriever, texts, k=k, scope=scope)
    ms = (time.perf_counter() - start) * 1000 / max(1, len(texts))
    trees = [replace(tree, name=name, ms=ms) for tree in inside.by(retriever)]
    return answers, trees or [Listed(name, tuple(hits), ms) for hits in answers]


def tell(owner: object, trees: Iterable[Seen]) -> None:
    """Note one tree for each question that a fusion or pipeline answered, if somebody observes."""
    observed = _OBSERVED.get()
    if observed is not None:
        observed.add(owner, tuple(trees))
