"""Three features of the demonstration: one that reached everybody, one that a guardrail took back, one on its way.

The operator starts them; whether they move is decided by ``ringtrue.online.step`` on the evidence in the store.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from ringtrue.online import (
    NO_CONSTITUTIONAL,
    Shadow,
    change_flag,
    create_test,
    feed_for_test,
    feed_judged,
    record_on_golden,
    step,
    without_constitutional,
)
from ringtrue.service.demo.engines import Engine
from ringtrue.service.demo.guests import Guests
from ringtrue.service.demo.scene import OPERATOR, Scene
from ringtrue.service.demo.shelf import BM25, DIVERSE, HYBRID, Shelf
from ringtrue.store import LoggedQuery, timestamp

GRADUATED, ROLLED_BACK, RUNNING = "hybrid-search", "diverse-results", "tuned-fusion"
SAMPLES = {GRADUATED: 60, ROLLED_BACK: 60, RUNNING: 100}
WORTH = {GRADUATED: 0.03, ROLLED_BACK: 0.02, RUNNING: 0.005}
"""The gain in nDCG@10 below which each is not worth a rollout."""
SAYS = {
    GRADUATED: "Keywords and vectors together in place of keywords alone.",
    ROLLED_BACK: "Fewer hits that say the same (MMR after the fusion).",
    RUNNING: "The weights that the sweep found best on the tuning questions.",
}


class Rollouts:
    """The three flags, their shadows and their tests."""

    def __init__(self, scene: Scene, shelf: Shelf, guests: Guests) -> None:
        self.scene, self.shelf, self.guests = scene, shelf, guests
        self._tuned = HYBRID

    def begin_hybrid(self, at: datetime) -> None:
        self._flag(GRADUATED, at, BM25, HYBRID)
        self._test(GRADUATED, at, method="sprt", delta=0.06)

    def begin_diverse(self, at: datetime) -> None:
        """Start the second feature on a quarter of the guests, before any test: the operator may."""
        self._flag(ROLLED_BACK, at, HYBRID, DIVERSE, shadow=False)
        self.set(ROLLED_BACK, 25.0, at, why="tried on a quarter of the guests before any test")

    def begin_tuned(self, at: datetime, expression: str, weights: dict[str, float]) -> None:
        self._tuned = expression
        self.guests.tuned(RUNNING, expression, weights)
        self._flag(RUNNING, at, HYBRID, expression)
        self._test(RUNNING, at, method="confidence-sequence", delta=0.02)

    def shadow_hybrid(self, searches: Sequence[LoggedQuery], at: datetime) -> None:
        self._shadow(GRADUATED, HYBRID, searches)
        self._judged(GRADUATED, at)

    def shadow_tuned(self, searches: Sequence[LoggedQuery], at: datetime) -> None:
        self._shadow(RUNNING, self._tuned, searches)
        self._judged(RUNNING, at)

    def hybrid_on_golden(self, at: datetime) -> None:
        self._on_golden(GRADUATED, BM25, HYBRID, at)

    def tuned_on_golden(self, at: datetime) -> None:
        self._on_golden(RUNNING, HYBRID, self._tuned, at)

    def set(self, name: str, percent: float, at: datetime, *, why: str) -> None:
        """Set a percentage by hand."""
        change_flag(self.scene.store, name, who=OPERATOR, now=at, why=why, project=self.scene.project, rollout=percent)

    def step(self, name: str, at: datetime) -> None:
        """Ask whether a flag may move, and move it."""
        step(self.scene.store, name, now=at, project=self.scene.project)

    def _flag(self, name: str, at: datetime, production: str, candidate: str, *, shadow: bool = True) -> None:
        metadata: dict[str, Any] = {"measure": "nDCG@10", "production": production, "candidate": candidate}
        metadata[NO_CONSTITUTIONAL] = without_constitutional(self.shelf.golden)
        change_flag(
            self.scene.store, name, who=OPERATOR, now=at, why="a candidate", project=self.scene.project, shadow=shadow,
            min_samples=SAMPLES[name], graduation_threshold=WORTH[name], description=SAYS[name], metadata=metadata,
        )  # fmt: skip

    def _test(self, name: str, at: datetime, *, method: str, delta: float) -> None:
        create_test(
            self.scene.store, name, now=timestamp(at), method=method, measure="ndcg", delta=delta, min_samples=SAMPLES[name],
            graduation_threshold=WORTH[name], who=OPERATOR, project=self.scene.project,
        )  # fmt: skip

    def _shadow(self, name: str, candidate: str, searches: Sequence[LoggedQuery]) -> None:
        """Have the candidate answer beside production what guests asked on a day."""
        beside = _Beside(self.guests.engines[candidate], random.Random(f"shadow {name}"))
        # One worker and the simulated clock: the same rows in the same order.
        shadow = Shadow(
            beside.search, beside.search, self.scene.store, name, sample=1.0, workers=1, waiting=len(searches),
            timeout=60.0, project=self.scene.project, clock=beside.clock, timer=beside.timer,
        )  # fmt: skip
        for row in searches:
            beside.asked.append(datetime.fromisoformat(row.created_at))
            shadow.beside(row.query_id, row.query, row.result_ids, row.total_latency_ms)
        shadow.close()

    def _judged(self, name: str, at: datetime) -> None:
        """Count the questions of the shadowed searches that the golden set has judged."""
        feed_judged(
            self.scene.store, name, self._feed(name, at), golden=self.shelf.golden, rel=self.shelf.golden.relevance_threshold,
            project=self.scene.project,
        )  # fmt: skip

    def _on_golden(self, name: str, production: str, candidate: str, at: datetime) -> None:
        """Store both sides on the golden set, and let the test count the questions that no guest asked."""
        record_on_golden(
            self.scene.store, name, self.shelf.evaluation(production, at), self.shelf.evaluation(candidate, at), now=at,
            feed=self._feed(name, at), project=self.scene.project,
        )  # fmt: skip

    def _feed(self, name: str, at: datetime) -> Any:
        """Return the feed of a test whose clock goes on with every question."""
        moments = (at + timedelta(minutes=2 * place) for place in range(10_000))
        return feed_for_test(self.scene.store, name, clock=lambda: next(moments), project=self.scene.project)


class _Beside:
    """A candidate whose answers are real and whose time is the simulated one."""

    def __init__(self, engine: Engine, rng: random.Random) -> None:
        self.asked: deque[datetime] = deque()
        self._engine, self._rng = engine, rng
        self._seconds = 0.0
        self._at: datetime | None = None

    def search(self, text: str, *, k: int = 10) -> list[str]:
        self._at = self.asked.popleft() + timedelta(seconds=1)
        self._seconds += self._engine.ms(self._rng) / 1000
        return list(self._engine.ask(text).answer.result_ids[:k])

    def clock(self) -> datetime:
        assert self._at is not None
        return self._at

    def timer(self) -> float:
        return self._seconds
