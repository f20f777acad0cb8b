"""How an answer came about: the lists that a retriever saw on its way, noted while it serves.

Nothing is asked a second time. Fusions and pipelines write down what their parts returned, when somebody observes; when nobody
does, that costs one look at a context variable. Observing belongs to the thread (or task) that asks::

    with observing() as seen:
        hits = retriever.search("pool", k=10)
    seen.root  # a Fused or Stepped tree; None for a retriever without parts
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


@contextmanager
def unobserved() -> Iterator[None]:
    """Ask inside without a note: for a channel that needs another retriever's hits, which are not its own list."""
    with _observing(None):
        yield


class Notes:
    """What one call of a fusion or pipeline writes down: its parts first, then itself."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._parts: list[tuple[Seen, ...]] = []
        self._lap = time.perf_counter()

    def _ms(self) -> float:
        """Return the milliseconds since it was last asked."""
        before, self._lap = self._lap, time.perf_counter()
        return (self._lap - before) * 1000

    def ask(self, name: str, retriever: Retriever, texts: Sequence[str], *, k: int, scope: Scope | None) -> list[Sequence[Hit]]:
        """Return a part's answers, noted."""
        inside = Observed()
        self._ms()
        with _observing(inside):
            answers = search_many(retriever, texts, k=k, scope=scope)
        ms = self._ms() / max(1, len(texts))
        trees = inside.by(retriever)
        if trees:
            self._parts.append(tuple(replace(tree, name=name, ms=ms) for tree in trees))
        else:
            self.listed(name, answers, ms)
        self._ms()
        return answers

    def listed(self, name: str, answers: Sequence[Sequence[Hit]], ms: float = 0.0) -> None:
        """Note a part's answers to the questions; ``ms`` is the time that each took."""
        self._parts.append(tuple(Listed(name, tuple(hits), ms) for hits in answers))

    def fused(
        self, owner: object, name: str, texts: Sequence[str], orders: Sequence[Sequence[str]], answers: Sequence[Sequence[Hit]]
    ) -> None:
        """Note the fusion of all parts, just made."""
        ms = self._ms() / max(1, len(texts))
        trees = [
            Fused(name, tuple(hits), ms + sum(channel.ms for channel in channels), text, channels, tuple(order))
            for text, hits, order, channels in zip(texts, answers, orders, zip(*self._parts, strict=True), strict=True)
        ]
        self._observed.add(owner, tuple(trees))

    def stepped(self, owner: object, answers: Sequence[Sequence[Hit]], results: Sequence[Sequence[StepResult]]) -> None:
        """Note the pipeline of the one part and the steps after it, with what each step made of each question's hits."""
        (bases,) = self._parts
        trees = [
            Stepped(
                " >> ".join([base.name, *(step.name for step in steps)]),
                tuple(hits),
                base.ms + sum(step.ms for step in steps),
                base,
                tuple(steps),
            )
            for hits, base, steps in zip(answers, bases, results, strict=True)
        ]
        self._observed.add(owner, tuple(trees))


def notes() -> Notes | None:
    """Return what to write into; None when nobody observes."""
    observed = _OBSERVED.get()
    return None if observed is None else Notes(observed)


def ask(
    into: Notes | None, name: str, retriever: Retriever, texts: Sequence[str], *, k: int, scope: Scope | None
) -> list[Sequence[Hit]]:
    """Return a part's answers, noted when somebody observes."""
    if into is None:
        return search_many(retriever, texts, k=k, scope=scope)
    return into.ask(name, retriever, texts, k=k, scope=scope)
