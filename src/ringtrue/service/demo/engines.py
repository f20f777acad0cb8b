"""The searches behind the simulated site: real answers over the hotel's documents, each question asked once."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ringtrue.answers import StageLogged
from ringtrue.log import quality_proxy, saturating
from ringtrue.log.capture import Answered, read_answer, stages_of
from ringtrue.retrieve import Collection, observing
from ringtrue.run.subject import Subject, subject_of
from ringtrue.service.demo.golden_sets import BM25

SHOWN = 10
"""Hits that the site shows."""
STAGE_SHARES = {"candidate": 0.86, "fusion": 0.06}
"""Part of the drawn milliseconds that goes to each stage; what follows the fusion gets the rest."""
SPREAD = 0.16
"""Of the logarithm of the milliseconds."""


@dataclass(frozen=True)
class Found:
    """What one engine really found, and what it went through."""

    answer: Answered
    stages: tuple[StageLogged, ...]

    def timed(self, ms: float) -> tuple[StageLogged, ...]:
        """Return the stages with drawn milliseconds in place of measured ones, so that a filled store is always the same."""
        last = max(0.0, 1 - sum(STAGE_SHARES.get(stage.name, 0.0) for stage in self.stages))
        return tuple(
            StageLogged(stage.name, stage.input, stage.output, round(ms * STAGE_SHARES.get(stage.name, last), 3))
            for stage in self.stages
        )


class Engine:
    """A retriever as the site uses it."""

    def __init__(
        self, expression: str, corpus: Collection, *, typical_ms: float, weights: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        self.expression, self.typical_ms, self.weights = expression, typical_ms, dict(weights)
        self.subject: Subject = subject_of(expression, collection=lambda: corpus)
        # BM25's scores have no upper end; fused ones are standard scores of a list.
        self._relevance = saturating(10.0 if expression == BM25 else 1.0)
        self._known: dict[str, Found] = {}

    def ask(self, text: str) -> Found:
        """Return what it finds."""
        if text not in self._known:
            with observing() as seen:
                hits = self.subject.retriever.search(text, k=SHOWN)
            self._known[text] = Found(read_answer(list(hits)), stages_of(seen.root)[0])
        return self._known[text]

    def ms(self, rng: random.Random, *, busy: float = 1.0) -> float:
        """Draw how long an answer took on the simulated site."""
        return round(self.typical_ms * busy * rng.lognormvariate(0.0, SPREAD), 2)

    def proxy(self, found: Found, ms: float) -> float | None:
        return quality_proxy(found.answer.scores, ms, relevance=self._relevance)
