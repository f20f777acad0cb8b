"""Three features of the demonstration: one that reached everybody, one that a guardrail took back, one on its way.

The operator starts them; whether they move is decided by ``ringtrue.rollout.step`` on the evidence in the store.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from ringtrue.rollout import (
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
from ringtrue.service.demo.golden_sets import BM25, HYBRID, Shelf
from ringtrue.service.demo.guests import Guests
from ringtrue.service.demo.scene import OPERATOR, Scene
from ringtrue.store import LoggedQuery, timestamp

GRADUATED, ROLLED_BACK, RUNNING = "hybrid-search", "diverse-results", "tuned-fusion"
SAMPLES = {GRADUATED: 60, ROLLED_BACK: 60, RUNNING: 100}
WORTH = {GRADUATED: 0.03, ROLLED_BACK: 0.02, RUNNING: 0.005}
"""The gain in nDCG@10 below which each is not worth a rollout."""
PRODUCTION = {GRADUATED: BM25, ROLLED_BACK: HYBRID, RUNNING: HYBRID}
TESTS = {GRADUATED: ("sprt", 0.06), RUNNING: ("confidence-sequence", 0.02)}
"""The method of each test, and its delta."""
SAYS = {
    GRADUATED: "Keywords and vectors together in place of keywords alone.",
    ROLLED_BACK: "Fewer hits that say the same (MMR after the fusion).",
    RUNNING: "The weights that the sweep found best on the tuning questions.",
}


class Rollouts:
    """The three flags, their shadows and their tests."""

    def __init__(self, scene: Scene, shelf: Shelf, guests: Guests) -> None:
        self.scene, self.shelf, self.guests = scene, shelf, guests

    def begin(self, name: str, at: datetime) -> None:
        """Create the flag of a feature and its test, if it has one."""
        metadata: dict[str, Any] = {
            "measure": "nDCG@10", "production": PRODUCTION[name], "candidate": self.guests.candidates[name],
            NO_CONSTITUTIONAL: without_constitutional(self.shelf.golden),
        }  # fmt: skip
        change_flag(
            self.scene.store, name, who=OPERATOR, now=at, why="a candidate", project=self.scene.project, shadow=name in TESTS,
            min_samples=SAMPLES[name], graduation_threshold=WORTH[name], description=SAYS[name], metadata=metadata,
        )  # fmt: skip
        if name in TESTS:
            method, delta = TESTS[name]
            create_test(
                self.scene.store, name, now=timestamp(at), method=method, measure="ndcg", delta=delta,
                min_samples=SAMPLES[name], graduation_threshold=WORTH[name], who=OPERATOR, project=self.scene.project,
            )  # fmt: skip

    def shadow(self, name: str, searches: Sequence[LoggedQuery], at: datetime) -> None:
        """Let the candidate answer beside production what guests asked on a day; count what the golden set has judged."""
        candidate = self.guests.engines[self.guests.candidates[name]]
        beside = _Beside(candidate, random.Random(f"shadow {name}"))
        # One worker and the simulated clock: the same rows in the same order.
        shadow = Shadow(
            beside.search, beside.search, self.scene.store, name, sample=1.0, workers=1, waiting=len(searches),
            timeout=60.0, project=self.scene.project, clock=beside.clock, timer=beside.timer,
        )  # fmt: skip
        for row in searches:
            beside.asked.append(datetime.fromisoformat(row.created_at))
            shadow.beside(row.query_id, row.query, row.result_ids, row.total_latency_ms)
        shadow.close()
        feed_judged(
            self.scene.store, name, self._feed(name, at), golden=self.shelf.golden, rel=self.shelf.golden.relevance_threshold,
            project=self.scene.project,
        )  # fmt: skip

    def on_golden(self, name: str, at: datetime) -> None:
        """Store both sides on the golden set, and let the test count the questions that no guest asked."""
        sides = (self.shelf.evaluation(one, at) for one in (PRODUCTION[name], self.guests.candidates[name]))
        record_on_golden(self.scene.store, name, *sides, now=at, feed=self._feed(name, at), project=self.scene.project)

    def set(self, name: str, percent: float, at: datetime, *, why: str) -> None:
        """Set a percentage by hand."""
        change_flag(self.scene.store, name, who=OPERATOR, now=at, why=why, project=self.scene.project, rollout=percent)

    def step(self, name: str, at: datetime) -> None:
        """Ask whether a flag may move, and move it."""
        step(self.scene.store, name, now=at, project=self.scene.project)

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
