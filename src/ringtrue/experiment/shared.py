"""What trials share: a question that one channel has answered is not put to it again.

Trials that differ in weights, in RRF's k or in what follows ``>>`` ask the same channels the same questions. Each channel is
wrapped so that its lists are remembered by all that decides them: the channel with every default written out, the documents
and their chunker, the question, how many hits were asked for, and the scope. Reranking and MMR, which cost far more than a
fusion, are remembered by the hits they were given.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any

from ringtrue.records import Hit
from ringtrue.retrieve import Collection, Fusion, Retriever, Staged, build, canonical, search_many
from ringtrue.retrieve.protocol import Scope
from ringtrue.retrieve.stages import Step
from ringtrue.spec import Expression, Pipeline

MOST_HITS = 500_000
"""Hits that are remembered, about 300 MB; the channels not asked for longest go first."""
_COSTLY = ("rerank", "mmr")


class Memory:
    """Answers by who gave them (channel and documents) and to what."""

    def __init__(self, most: int = MOST_HITS) -> None:
        self.most, self.hits = most, 0
        self.asked = 0
        """Questions that really were put to a channel."""
        self._known: OrderedDict[Hashable, dict[Hashable, Sequence[Hit]]] = OrderedDict()

    def of(self, who: Hashable) -> dict[Hashable, Sequence[Hit]]:
        """Return the answers of one channel; read them only, and add with ``keep``."""
        found = self._known.setdefault(who, {})
        self._known.move_to_end(who)
        return found

    def keep(self, who: Hashable, what: Hashable, hits: Sequence[Hit]) -> None:
        """Remember an answer."""
        self.of(who)[what] = hits
        self.hits += len(hits)
        while self.hits > self.most and len(self._known) > 1:
            _, gone = self._known.popitem(last=False)
            self.hits -= sum(map(len, gone.values()))

    def build(self, text: str, collection: Collection | None) -> Retriever:
        """Return the retriever of an expression with everything below its fusion and stages remembered."""
        place = None if collection is None else (str(collection.folder), collection.chunks, collection.generations())
        return self._wrapped(build(text, collection), canonical(text), place)

    def _wrapped(self, retriever: Retriever, expression: Expression | Pipeline, place: Hashable) -> Retriever:
        if isinstance(retriever, Staged) and isinstance(expression, Pipeline):
            first, *rest = expression.stages
            retriever.base = self._wrapped(retriever.base, first, place)
            retriever.steps = [
                _Remembered(step, (str(stage), place), self) if stage.name in _COSTLY else step
                for step, stage in zip(retriever.steps, rest, strict=True)
            ]
            return retriever
        if isinstance(retriever, Fusion) and isinstance(expression, Expression):
            children = [child for child in expression.args if isinstance(child, Expression | Pipeline)]
            retriever.channels = [
                (name, self._wrapped(channel, child, place))
                for (name, channel), child in zip(retriever.channels, children, strict=True)
            ]
            return retriever
        return _Asked(retriever, (str(expression), place), self)


class _Asked:
    """A channel that is asked only what it has not answered yet."""

    def __init__(self, inner: Retriever, who: Hashable, memory: Memory) -> None:
        self.inner, self.who, self.memory = inner, who, memory

    @property
    def parts(self) -> list[Retriever]:
        return [self.inner]

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> Sequence[Hit]:
        return self.search_many([text], k=k, scope=scope)[0]

    def search_many(self, texts: Sequence[str], *, k: int = 10, scope: Scope | None = None) -> list[Sequence[Hit]]:
        within = tuple(sorted((scope or {}).items()))
        known = self.memory.of(self.who)
        found = {text: known[text, k, within] for text in texts if (text, k, within) in known}
        fresh = [text for text in dict.fromkeys(texts) if text not in found]
        if fresh:
            self.memory.asked += len(fresh)
            for text, hits in zip(fresh, search_many(self.inner, fresh, k=k, scope=scope), strict=True):
                found[text] = hits
                self.memory.keep(self.who, (text, k, within), hits)
        return [found[text] for text in texts]


class _Remembered:
    """A stage that works on the same hits once."""

    def __init__(self, inner: Step, who: Hashable, memory: Memory) -> None:
        self.inner, self.who, self.memory = inner, who, memory

    @property
    def name(self) -> str:
        return self.inner.name

    def depth(self, k: int) -> int:
        return self.inner.depth(k)

    def apply(self, text: str, hits: Sequence[Hit], *, k: int) -> list[Hit]:
        given: tuple[Any, ...] = tuple((hit.doc_id, hit.score, hit.chunk) for hit in hits)
        what = text, k, given
        known = self.memory.of(self.who)
        if what not in known:
            self.memory.keep(self.who, what, tuple(self.inner.apply(text, hits, k=k)))
        return list(self.memory.of(self.who)[what])
