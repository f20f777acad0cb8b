"""Several ranked lists → one. Every hit keeps the channels it came from and what each stage said about it."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from ringtrue.records import Hit, Stage
from ringtrue.retrieve.observe import Fused, ask, tell
from ringtrue.retrieve.protocol import Retriever, Scope, check_k, ranked

Lists = Sequence[Sequence[Hit]]
DEPTH = 100
"""Hits of each channel that a fusion looks at."""
_STEP = 1e-6


def rrf(lists: Lists, *, k: float = 60, w: Sequence[float] | None = None) -> dict[str, float]:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009): Σ w ÷ (k + rank)."""
    total: dict[str, float] = {}
    for weight, hits in zip(w or [1.0] * len(lists), lists, strict=True):
        for rank, hit in enumerate(hits, 1):
            total[hit.doc_id] = total.get(hit.doc_id, 0.0) + weight / (k + rank)
    return total


def scored(hits: Sequence[Hit]) -> list[float]:
    """Return the scores of a list; if one has none, or the scores contradict the order, the order speaks: n, n − 1 … 1."""
    scores = [hit.score for hit in hits]
    if all(above >= below for above, below in pairwise(scores)) and not any(map(math.isnan, scores)):
        return scores
    return [float(len(hits) - place) for place in range(len(hits))]


def floor_of(scores: Sequence[float]) -> float:
    """Return the score of a document that a channel did not find although it returned all it found.

    Where scores are positive that is 0, as BM25 scores a document without any of the words; else a step below the lowest.

    >>> floor_of([3.0, 1.0]), floor_of([-1.0, -2.0, -4.0])
    (0.0, -5.0)
    """
    low, high = min(scores), max(scores)
    return 0.0 if low > 0 else low - ((high - low) / len(scores) or 1.0)


def _min_max(scores: Sequence[float]) -> list[float]:
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def _z(scores: Sequence[float]) -> list[float]:
    mean = sum(scores) / len(scores)
    spread = (sum((score - mean) ** 2 for score in scores) / len(scores)) ** 0.5
    return [(score - mean) / spread if spread else 0.0 for score in scores]


NORMS: Mapping[str, Callable[[Sequence[float]], list[float]]] = {
    "minmax": _min_max,
    "z": _z,
    "rank": lambda scores: [1.0 - place / len(scores) for place in range(len(scores))],
}


def weighted(lists: Lists, *, w: Sequence[float], norm: str = "minmax", depth: int = DEPTH) -> dict[str, float]:
    """Weighted sum of normalised scores.

    A document that a list lacks gets that list's lowest value when the list was cut off at ``depth``; when the channel returned
    fewer, it has nothing on the document, which then gets the floor, so that having been found always counts.
    """
    total: dict[str, float] = {}
    everyone = dict.fromkeys(hit.doc_id for hits in lists for hit in hits)
    for weight, hits in zip(w, lists, strict=True):
        if not hits:
            continue
        scores = scored(hits)
        if len(hits) < min(depth, len(everyone)):
            *values, missing = NORMS[norm]([*scores, floor_of(scores)])
        else:
            values = NORMS[norm](scores)
            missing = min(values)
        found = dict(zip((hit.doc_id for hit in hits), values, strict=True))
        for doc_id in everyone:
            total[doc_id] = total.get(doc_id, 0.0) + weight * found.get(doc_id, missing)
    return total


def comb_sum(lists: Lists) -> dict[str, float]:
    """Sum of min-max normalised scores (Fox and Shaw 1994); a document that a list lacks gets nothing from it."""
    total: dict[str, float] = {}
    for hits in lists:
        if hits:
            for hit, value in zip(hits, _min_max(scored(hits)), strict=True):
                total[hit.doc_id] = total.get(hit.doc_id, 0.0) + value
    return total


def comb_mnz(lists: Lists) -> dict[str, float]:
    """CombSUM times the number of lists that have the document."""
    count = Counter(hit.doc_id for hits in lists for hit in hits)
    return {doc_id: score * count[doc_id] for doc_id, score in comb_sum(lists).items()}


_EXACT = re.compile(r"[\"“”«»`]|\w[_/\\:.#@-]\w|\d|[a-z][A-Z]")
_ASKING = re.compile(
    r"\s*(who|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|should|will)\b|.*\?\s*$", re.I | re.S
)


def leaning(text: str) -> float:
    """Return how much a query asks for its exact words, as the weight of the first retriever against 1 for the others.

    Quotes, numbers and names like ``user_id`` ask for exact words (2); a question in plain words asks for meaning (½).

    >>> leaning("error E1234 in parse_args()"), leaning("how do I keep my coffee warm?"), leaning("warm coffee")
    (2.0, 0.5, 1.0)
    """
    if _EXACT.search(text):
        return 2.0
    return 0.5 if _ASKING.match(text) else 1.0


def adaptive(text: str, lists: Lists, *, k: float = 60) -> dict[str, float]:
    """RRF whose first list (the lexical one) weighs more or less by the kind of query."""
    return rrf(lists, k=k, w=[leaning(text), *[1.0] * (len(lists) - 1)])


Rule = Callable[[str, Lists], dict[str, float]]
"""(query, lists) → a score for every document."""


class Fusion:
    """Asks every channel and joins their answers by a rule."""

    def __init__(self, channels: Sequence[tuple[str, Retriever]], rule: Rule, *, name: str, depth: int = DEPTH) -> None:
        self.channels, self.rule, self.name, self.depth = list(channels), rule, name, depth
        self.weights: Mapping[str, float] = {}
        """What each channel weighs, if its rule gives fixed weights."""

    @property
    def parts(self) -> list[Retriever]:
        """The retrievers it joins."""
        return [channel for _, channel in self.channels]

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        return self.search_many([text], k=k, scope=scope)[0]

    def search_many(self, texts: Sequence[str], *, k: int = 10, scope: Scope | None = None) -> list[list[Hit]]:
        """Return the answers to several questions, each channel asked for all of them at once."""
        depth = max(check_k(k), self.depth)  # what lies beyond only follows
        asked = [ask(name, channel, texts, k=depth, scope=scope) for name, channel in self.channels]
        start = time.perf_counter()
        lists = list(zip(*(answers for answers, _ in asked), strict=True))
        orders = [self._order(text, part) for text, part in zip(texts, lists, strict=True)]
        found = [self._hits(part, order[:k]) for part, order in zip(lists, orders, strict=True)]
        ms = (time.perf_counter() - start) * 1000 / max(1, len(texts))
        seen = zip(texts, found, orders, zip(*(trees for _, trees in asked), strict=True), strict=False)
        tell(self, (Fused.of(self.name, text, hits, channels, order, ms) for text, hits, order, channels in seen))
        return found

    def join(self, text: str, lists: Lists, *, k: int) -> list[Hit]:
        """Return the fused answer from the channels' answers, so that components can share one pass over them."""
        return self._hits(lists, self._order(text, lists)[:k])

    def _order(self, text: str, lists: Lists) -> list[tuple[str, float]]:
        """Return every candidate with its fused score, best first."""
        scores = self._scores(text, lists)
        return ranked(scores.items(), k=len(scores))

    def _hits(self, lists: Lists, best: Sequence[tuple[str, float]]) -> list[Hit]:
        """Return the best candidates as hits that say which channels found them and what each stage said."""
        origin: dict[str, Hit] = {}
        channels: dict[str, dict[str, int]] = {}
        stages: dict[str, list[Stage]] = {}
        for hits in lists:
            for hit in hits:
                first = origin.setdefault(hit.doc_id, hit)
                if first.chunk is None and hit.chunk is not None:
                    origin[hit.doc_id] = hit  # the passage that answered is worth keeping, whoever found it
                known = channels.setdefault(hit.doc_id, {})
                for name, rank in hit.channels.items():
                    known.setdefault(name, rank)
                stages.setdefault(hit.doc_id, []).extend(hit.stages)
        return [
            replace(
                origin[doc_id],
                score=score,
                channels=channels[doc_id],
                stages=(*stages[doc_id], Stage(self.name, rank, score)),
            )
            for rank, (doc_id, score) in enumerate(best, 1)
        ]

    def _scores(self, text: str, lists: Lists) -> dict[str, float]:
        """Return the rule's scores over the first ``depth`` of each list, so that a larger k changes no place."""
        scores = self.rule(text, [hits[: self.depth] for hits in lists])
        # What lies beyond follows by its best rank, the one fact about it that a larger k leaves as it is.
        lowest = min(scores.values(), default=0.0)
        beyond: dict[str, int] = {}
        for hits in lists:
            for rank, hit in enumerate(hits[self.depth :], 1):
                if hit.doc_id not in scores:
                    beyond[hit.doc_id] = min(rank, beyond.get(hit.doc_id, rank))
        scores |= {doc_id: lowest - _STEP * rank for doc_id, rank in beyond.items()}
        return scores
