"""Three features of the demonstration: one reached everybody, one was rolled back by a guardrail, one is on its way.

The operator starts them; ``ringtrue.rollout.step`` decides on the evidence in the store whether they move.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ringtrue.rollout import (
    NO_CONSTITUTIONAL,
    change_flag,
    compared,
    create_test,
    existing_flag,
    feed_for_test,
    feed_judged,
    record_on_golden,
    step,
    without_constitutional,
)
from ringtrue.rollout.evidence import SINCE
from ringtrue.service.demo.guests import Guests
from ringtrue.service.demo.hotel import BM25, HYBRID, OPERATOR, Hotel
from ringtrue.store import LoggedQuery, ShadowRun, timestamp


@dataclass(frozen=True)
class Feature:
    """A candidate for production, and what it has to show."""

    name: str
    description: str
    production: str
    typical_ms: float
    worth: float
    """The gain in nDCG@10 below which it is not worth a rollout."""
    samples: int = 50
    test: tuple[str, float] | None = None
    """The method of its sequential test, and its delta."""


GRADUATED = Feature(
    "hybrid-search", "Keywords and vectors together in place of keywords alone.", BM25, 40.0, 0.03, test=("sprt", 0.06)
)
# Reordering its hits takes the simulated site as long as the search itself.
ROLLED_BACK = Feature("diverse-results", "Fewer hits that say the same (MMR after the fusion).", HYBRID, 88.0, 0.02)
RUNNING = Feature(
    "tuned-fusion", "The weights that the sweep found best on the tuning questions.", HYBRID, 42.0, 0.005, samples=100,
    test=("confidence-sequence", 0.02),
)  # fmt: skip


class Rollouts:
    """The flags, shadows and tests of features."""

    def __init__(self, hotel: Hotel, guests: Guests) -> None:
        self.hotel, self.guests, self.store, self.project = hotel, guests, hotel.store, hotel.project

    def begin(self, feature: Feature, candidate: str, at: datetime) -> None:
        """Create the flag of a feature, its test if it has one, and the search for those for whom the flag is on."""
        self.guests.candidates[feature.name] = self.guests.engine(candidate, typical_ms=feature.typical_ms)
        metadata: dict[str, Any] = {
            "measure": "nDCG@10", "production": feature.production, "candidate": candidate,
            NO_CONSTITUTIONAL: without_constitutional(self.hotel.golden),
        }  # fmt: skip
        limits: dict[str, Any] = {"min_samples": feature.samples, "graduation_threshold": feature.worth}
        change_flag(
            self.store, feature.name, who=OPERATOR, now=at, why="a candidate", project=self.project,
            shadow=feature.test is not None, description=feature.description, metadata=metadata, **limits,
        )  # fmt: skip
        if feature.test is not None:
            method, delta = feature.test
            create_test(
                self.store, feature.name, now=timestamp(at), method=method, measure="ndcg", delta=delta, who=OPERATOR,
                project=self.project, **limits,
            )  # fmt: skip

    def shadow(self, feature: Feature, searches: Sequence[LoggedQuery], at: datetime) -> None:
        """Let the candidate answer what guests asked on a day, too; count what the golden set has judged."""
        engine, rng = self.guests.candidates[feature.name], random.Random(f"shadow {feature.name}")
        since = str(existing_flag(self.store, feature.name, project=self.project).metadata.get(SINCE, ""))
        rows = [
            ShadowRun(
                query_id=row.query_id, feature_id=feature.name, project=self.project, candidate=since, source="live",
                created_at=timestamp(datetime.fromisoformat(row.created_at) + timedelta(seconds=1)),
                control_result_ids=row.result_ids, control_latency_ms=row.total_latency_ms,
                treatment_result_ids=engine.ask(row.query)[0].result_ids, treatment_latency_ms=engine.ms(rng),
            )
            for row in searches
        ]  # fmt: skip
        self.store.add_shadow_runs([compared(row, k=10) for row in rows])
        golden = self.hotel.golden
        feed_judged(
            self.store, feature.name, self._feed(feature, at), golden=golden, rel=golden.relevance_threshold,
            project=self.project,
        )  # fmt: skip

    def on_golden(self, feature: Feature, at: datetime) -> None:
        """Store both sides on the golden set, and let the test count the questions that no guest asked."""
        names = feature.production, self.guests.candidates[feature.name].expression
        sides = (self.hotel.evaluation(name, at) for name in names)
        record_on_golden(self.store, feature.name, *sides, now=at, feed=self._feed(feature, at), project=self.project)

    def set(self, feature: Feature, percent: float, at: datetime, *, why: str) -> None:
        """Set a percentage by hand."""
        change_flag(self.store, feature.name, who=OPERATOR, now=at, why=why, project=self.project, rollout=percent)

    def step(self, feature: Feature, at: datetime) -> None:
        """Ask whether a flag may move, and move it."""
        step(self.store, feature.name, now=at, project=self.project)

    def _feed(self, feature: Feature, at: datetime) -> Any:
        """Return the feed of a test whose clock goes on with every question."""
        moments = (at + timedelta(minutes=2 * place) for place in range(10_000))
        return feed_for_test(self.store, feature.name, clock=lambda: next(moments), project=self.project)
