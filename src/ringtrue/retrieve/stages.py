"""Hits → hits: what may follow ``>>``. A stage reorders or cuts an answer; it never adds a document to it.

``stage.depth(k)`` says how many candidates the stage wants in order to return ``k``; ``stage.apply(text, hits, k=k)`` returns
at most ``k`` of them. Every hit that stays keeps chunk, channels and confidence, takes the stage's score, and says so in
``stages``. ``Staged`` is a retriever with stages after it.

Stages that weigh a score against something else first bring it to a common scale, see ``relevance``.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.records import Floats, Hit, Stage
from ringtrue.retrieve.documents import scope_values
from ringtrue.retrieve.fuse import floor_of, scored
from ringtrue.retrieve.observe import Stepped, StepResult, ask, tell
from ringtrue.retrieve.protocol import Retriever, Scope, check_k, finite_number, ranked, whole_number

DEPTH = 50
"""Candidates a reordering stage looks at when fewer are asked for."""
Vectors = Callable[[Sequence[str]], NDArray[Any]]
"""Document ids → one vector each, in their order."""
Metadata = Callable[[], Mapping[str, Mapping[str, Any]]]
"""→ every document's metadata by its id. What is read from it is kept for as long as the same mapping comes back."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400.0
_STEP = 1e-6


class Step(Protocol):
    """Anything that may follow ``>>``."""

    @property
    def name(self) -> str: ...

    def depth(self, k: int) -> int:
        """Return how many candidates it wants in order to return ``k``."""

    def apply(self, text: str, hits: Sequence[Hit], *, k: int) -> list[Hit]:
        """Return at most ``k`` of the hits, best first."""


def relevance(hits: Sequence[Hit]) -> Floats:
    """Return how relevant each hit is, from 0 (the last) to 1 (the first), never rising from one to the next.

    Scores are used by their place between the lowest and the highest; if all are equal each is 1. If a hit has no
    score, or the scores contradict the order (distances do), the order is the truth: the first of four is 1, then 0.75, 0.5,
    0.25.

    >>> relevance([Hit("a", 9.0), Hit("b", 8.0), Hit("c", 5.0)]).tolist()
    [1.0, 0.75, 0.0]
    """
    scores = np.array([hit.score for hit in hits], np.float64)
    if np.isfinite(scores).all() and (scores[1:] <= scores[:-1]).all():
        spread = float(scores[0]) - float(scores[-1]) if len(scores) else 0.0
        if spread == 0:
            return np.ones(len(scores))
        if math.isfinite(spread):
            return np.asarray((scores - scores[-1]) / spread)
    return 1.0 - np.arange(len(scores)) / max(1, len(scores))


def shares(hits: Sequence[Hit]) -> list[float]:
    """Return each hit's share of the best score, above 0 for every hit, so that a factor can lift any of them.

    >>> shares([Hit("a", 8.0), Hit("b", 4.0)])
    [1.0, 0.5]
    """
    scores = scored(hits)
    floor = floor_of(scores)
    return [(score - floor) / (scores[0] - floor) for score in scores]


def _staged(name: str, found: Iterable[tuple[Hit, float]]) -> list[Hit]:
    return [
        replace(hit, score=score, stages=(*hit.stages, Stage(name, rank, score))) for rank, (hit, score) in enumerate(found, 1)
    ]


class Reordering(ABC):
    """A step that orders the first ``depth`` hits anew; the others follow as they came."""

    name: str

    def __init__(self, *, depth: int) -> None:
        self.candidates = whole_number(self.name, "depth", depth)

    def depth(self, k: int) -> int:
        return max(k, self.candidates)

    @abstractmethod
    def ordered(self, text: str, hits: Sequence[Hit], k: int) -> list[tuple[Hit, float]]:
        """Return at least the best ``k`` of the candidates with their scores, best first."""

    def after(self, lowest: float, place: int) -> float:
        """Return the score of a hit beyond the candidates: a little below the one before it."""
        return lowest - _STEP * place

    def apply(self, text: str, hits: Sequence[Hit], *, k: int) -> list[Hit]:
        """Return the best ``k`` hits in the new order."""
        check_k(k)
        if not hits:
            return []
        chosen = self.ordered(text, hits[: self.candidates], k)
        lowest = min(score for _, score in chosen)
        rest = [(hit, self.after(lowest, place)) for place, hit in enumerate(hits[self.candidates :], 1)]
        return _staged(self.name, [*chosen, *rest][:k])


class Mmr(Reordering):
    """Maximal marginal relevance: the next hit is the one that is relevant and unlike those already chosen.

    Score: ``weight`` · relevance − (1 − ``weight``) · the highest cosine to a chosen document. While nothing is chosen that
    cosine counts as −1, the lowest there is: the first choice stays the same, and scores never rise down the list.
    ``weight=1`` keeps the order that came in; ``weight=0`` takes the most relevant first and then goes by unlikeness alone.
    Equal scores go by relevance, then by document id, descending. Carbonell and Goldstein, SIGIR 1998.
    """

    name = "mmr"

    def __init__(self, vectors: Vectors, *, weight: float = 0.7, depth: int = DEPTH, made_with: str = "") -> None:
        super().__init__(depth=depth)
        self.vectors = vectors
        self.made_with = made_with
        """Key of the model behind the vectors, which decides the answers like any option."""
        self.weight = finite_number("mmr", "weight", weight, low=0, high=1)

    def ordered(self, text: str, hits: Sequence[Hit], k: int) -> list[tuple[Hit, float]]:
        pool = list(hits)
        relevant = relevance(pool)
        places = list(range(len(pool)))
        if self.weight < 1:
            # argmax takes the first of equals, so the order of the candidates is the order of ties.
            places.sort(key=lambda place: pool[place].doc_id, reverse=True)
            places.sort(key=lambda place: -relevant[place])
        pool, relevant = [pool[place] for place in places], relevant[places]
        matrix = np.ascontiguousarray(self.vectors([hit.doc_id for hit in pool]), np.float64)
        lengths = np.sqrt((matrix * matrix).sum(axis=1, keepdims=True))
        directions = matrix / np.where(lengths > 0, lengths, 1.0)
        likeness = np.full(len(pool), -1.0)
        left = np.ones(len(pool), np.bool_)
        chosen: list[tuple[Hit, float]] = []
        for _ in range(min(k, len(pool))):
            scores = self.weight * relevant - (1.0 - self.weight) * likeness
            best = int(np.argmax(np.where(left, scores, -np.inf)))
            chosen.append((pool[best], float(scores[best])))
            left[best] = False
            # einsum treats every row alike, which BLAS does not: equal documents get bitwise equal cosines, and tie.
            cosines = np.einsum("ij,j->i", directions, directions[best])
            np.maximum(likeness, np.clip(cosines, -1.0, 1.0), out=likeness)
        return chosen


class _Boost(Reordering):
    """A hit's share of the best score times a factor that a metadata field decides. Without the field the factor is 1.

    A field that no document has is an error, since the stage would then do nothing, unnoticed.
    """

    def __init__(self, metadata: Metadata, *, field: str, depth: int) -> None:
        super().__init__(depth=depth)
        self.metadata, self.field = metadata, field
        self._kept: tuple[Mapping[str, Mapping[str, Any]], dict[str, float]] | None = None

    @abstractmethod
    def factors(self, values: Mapping[str, Any]) -> dict[str, float]:
        """Return the factor of every document from its value of the field; raises InputError for one that cannot be used."""

    def _current(self) -> tuple[Mapping[str, Mapping[str, Any]], dict[str, float]]:
        metadata, kept = self.metadata(), self._kept
        if kept is None or kept[0] is not metadata:
            values = {
                doc_id: facts[self.field] for doc_id, facts in metadata.items() if facts.get(self.field) not in (None, "")
            }
            if metadata and not values:
                fields = dict.fromkeys(name for facts in metadata.values() for name in facts)
                cure = f"did you mean {nearest(self.field, fields)}?" if fields else "ingest documents with metadata"
                raise MissingInput(f"{self.name}: no document has the metadata field '{self.field}'; {cure}")
            self._kept = kept = metadata, self.factors(values)
        return kept

    def apply(self, text: str, hits: Sequence[Hit], *, k: int) -> list[Hit]:
        metadata, _ = self._current()
        stranger = next((hit.doc_id for hit in hits if hit.doc_id not in metadata), None)
        if stranger is not None:
            raise InputError(f"{self.name}: no metadata of document '{stranger}'; boost hits of the same collection")
        return super().apply(text, hits, k=k)

    def ordered(self, text: str, hits: Sequence[Hit], k: int) -> list[tuple[Hit, float]]:
        _, factors = self._current()
        by_id = {hit.doc_id: hit for hit in hits}
        scores = {hit.doc_id: value * factors.get(hit.doc_id, 1.0) for hit, value in zip(hits, shares(hits), strict=True)}
        return [(by_id[doc_id], score) for doc_id, score in ranked(scores.items(), k=len(hits))]


class Recency(_Boost):
    """Newer documents first: share · (1 + ``weight`` · 2^(−age ÷ ``half_life``)), age and half-life in days.

    Dates are ISO 8601; one without a time is its midnight, one without a zone is UTC. ``now`` is the moment ages are counted
    to: the newest date among the documents unless it is given, never the clock, so that an answer can be repeated. A date
    after ``now`` has age 0. A document without a date is not boosted; a date that cannot be read is
    an InputError.
    """

    name = "recency"

    def __init__(
        self,
        metadata: Metadata,
        *,
        field: str = "date",
        half_life: float = 30.0,
        weight: float = 0.5,
        now: str = "",
        depth: int = DEPTH,
    ) -> None:
        super().__init__(metadata, field=field, depth=depth)
        self.half_life = finite_number(self.name, "half_life", half_life, low=0, above=True)
        self.weight = finite_number(self.name, "weight", weight, low=0)
        self.now = _days(now)
        if now and self.now is None:
            raise InputError(
                f"recency cannot have now={now!r:.60}; write it in ISO 8601, like 2026-11-15 or 2026-11-15T08:30:00Z"
            )

    def factors(self, values: Mapping[str, Any]) -> dict[str, float]:
        days: dict[str, float] = {}
        for doc_id, value in values.items():
            read = _days(value)
            if read is None:
                raise InputError(
                    f"recency: the {self.field} of document '{doc_id}' is {value!r:.60}; write it in ISO 8601, like 2026-11-15"
                )
            days[doc_id] = read
        now = max(days.values(), default=0.0) if self.now is None else self.now
        return {doc_id: 1.0 + self.weight * 2.0 ** (-max(0.0, now - day) / self.half_life) for doc_id, day in days.items()}


def _days(value: Any) -> float | None:
    """Return a date as days since 1970, or None when it cannot be read."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        return None
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    return (moment - _EPOCH).total_seconds() / _DAY


class Tier(_Boost):
    """Relevance times the boost of the document's tier: ``tier(core=1.5, archive=0.5)``. A tier that is not named has boost 1.

    A document without a tier is not boosted; one with several is an InputError.
    """

    name = "tier"

    def __init__(self, metadata: Metadata, *, field: str = "tier", boosts: Mapping[str, float], depth: int = DEPTH) -> None:
        super().__init__(metadata, field=field, depth=depth)
        if not boosts:
            raise InputError("tier has no boosts; write it like tier(core=1.5, archive=0.5)")
        self.boosts = {tier: finite_number(self.name, tier, boost, low=0) for tier, boost in boosts.items()}

    def factors(self, values: Mapping[str, Any]) -> dict[str, float]:
        found: dict[str, float] = {}
        for doc_id, value in values.items():
            tiers = scope_values(value)
            if len(tiers) != 1:
                raise InputError(f"tier: the {self.field} of document '{doc_id}' is {value!r:.60}; give it one tier, as a text")
            found[doc_id] = self.boosts.get(tiers[0], 1.0)
        return found


class Threshold:
    """Keeps the hits that are good enough; an empty answer is an answer.

    ``min`` keeps scores of at least that; ``relative`` those of at least that share of the best; ``gap`` ends the list before
    the first hit whose score lies more than that share below the one before it. If several are given, all must hold.
    A share of a best score below 0 is an error. If scores fall with the rank, a larger ``k`` only lengthens the answer.
    """

    name = "threshold"

    def __init__(self, *, min: float | None = None, relative: float | None = None, gap: float | None = None) -> None:
        if min is None and relative is None and gap is None:
            raise InputError(
                "threshold keeps everything; write it like threshold(min=0.3), threshold(relative=0.5) or threshold(gap=0.4)"
            )
        self.min = None if min is None else finite_number(self.name, "min", min, low=-math.inf)
        self.relative = None if relative is None else finite_number(self.name, "relative", relative, low=0, high=1)
        self.gap = None if gap is None else finite_number(self.name, "gap", gap, low=0, high=1, above=True)

    def depth(self, k: int) -> int:
        return k

    def apply(self, text: str, hits: Sequence[Hit], *, k: int) -> list[Hit]:
        pool = hits[: check_k(k)]
        for hit in pool:
            if math.isnan(hit.score):
                raise InputError(
                    f"threshold: the stage before gives no scores (document '{hit.doc_id}'); put one before it that does, "
                    "or cut by number with top(n)"
                )
        if not pool:
            return []
        floor = -math.inf if self.min is None else self.min
        best = max(hit.score for hit in pool)
        if best < 0 and (self.relative is not None or self.gap is not None):
            raise InputError(f"threshold: the best score is {best:g}, and a share of less than 0 says nothing; use min=")
        if self.relative is not None:
            floor = max(floor, self.relative * best)
        gap = math.inf if self.gap is None else self.gap
        pairs = enumerate(pairwise(pool), 1)
        fall = next((rank for rank, (hit, after) in pairs if hit.score - after.score > gap * hit.score), len(pool))
        return _staged(self.name, ((hit, hit.score) for hit in pool[:fall] if hit.score >= floor))


class Top:
    """The first ``n`` hits, whatever more is asked for."""

    name = "top"

    def __init__(self, n: int) -> None:
        self.n = whole_number(self.name, "n", n)

    def depth(self, k: int) -> int:
        return min(k, self.n)

    def apply(self, text: str, hits: Sequence[Hit], *, k: int) -> list[Hit]:
        return _staged(self.name, ((hit, hit.score) for hit in hits[: self.depth(check_k(k))]))


class Staged:
    """A retriever with steps after it."""

    def __init__(self, base: Retriever, steps: Sequence[Step]) -> None:
        self.base, self.steps = base, list(steps)

    @property
    def parts(self) -> list[Any]:
        """The retriever and its steps."""
        return [self.base, *self.steps]

    @property
    def weights(self) -> Mapping[str, float]:
        """What each channel of a fusion at its beginning weighs."""
        return getattr(self.base, "weights", {})

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        return self.search_many([text], k=k, scope=scope)[0]

    def search_many(self, texts: Sequence[str], *, k: int = 10, scope: Scope | None = None) -> list[list[Hit]]:
        """Return the answers to several questions; the steps see one at a time."""
        # Every step gets as many hits as it and those after it want.
        depths = [check_k(k)]
        for step in reversed(self.steps):
            depths.insert(0, max(depths[0], step.depth(depths[0])))
        name = getattr(self.base, "name", type(self.base).__name__)
        bases, seen = ask(name, self.base, texts, k=depths[0], scope=scope)
        answers, results = [], []
        for text, hits in zip(texts, bases, strict=True):
            found, passed = list(hits), []
            for step, depth in zip(self.steps, depths[1:], strict=True):
                start = time.perf_counter()
                found = step.apply(text, found, k=depth) if found else found
                passed.append(StepResult(step.name, tuple(found), (time.perf_counter() - start) * 1000, depth))
            answers.append(found[:k])
            results.append(passed)
        whole = " >> ".join([name, *(step.name for step in self.steps)])
        tell(
            self,
            (
                Stepped(whole, tuple(hits), base.ms + sum(step.ms for step in steps), base, tuple(steps))
                for hits, base, steps in zip(answers, seen, results, strict=False)
            ),
        )
        return answers
