"""Two weeks of simulated guests, and three features tried on them.

One feature reached everybody, one was rolled back by a guardrail, one is on its way. The operator starts them;
``ringtrue.rollout.step`` decides on the evidence in the store whether they move.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ringtrue.answers import EventType
from ringtrue.feedback import re_searches, scroll_pasts
from ringtrue.retrieve import Collection, observing
from ringtrue.rollout import (
    NO_CONSTITUTIONAL,
    change_flag,
    compared,
    create_test,
    existing_flag,
    feed_for_test,
    feed_judged,
    is_on,
    record_on_golden,
    without_constitutional,
)
from ringtrue.rollout.evidence import SINCE
from ringtrue.run import subject_of
from ringtrue.service.demo.hotel import BM25, HYBRID, OPERATOR, Hotel
from ringtrue.service.routes.search import SearchRequest, logged
from ringtrue.service.searches import FoundHits
from ringtrue.store import FeedbackEvent, LoggedQuery, ShadowRun, timestamp

DAYS, VISITS, USERS = 14, 180, 400
"""Days, visits of each day, and guests."""
TOOLS = ("web", "web", "app", "assistant")
BUSIEST_HOUR = 20
SHORT_FIRST = 0.6
"""How often a guest types a few words first and then the whole question."""
LATE, LATE_MS, MOVED = 0.015, 300.0, 6
"""How often vectors come too late, so that keywords answer alone after so many milliseconds more, and from which day on."""
LAST = timedelta(minutes=8)
"""No search is later than this before a day ends, so that what follows from an answer still belongs to the day."""
ABROAD = ("schwimmbad öffnungszeiten", "wlan passwort", "chiens acceptés", "desayuno domingo", "ontbijt")
"""Searches in languages that no document is in: keywords find nothing."""


class SimulatedSearch:
    """A retriever as the site uses it: real answers, simulated milliseconds."""

    def __init__(self, expression: str, corpus: Collection, *, typical_ms: float) -> None:
        self.expression, self.typical_ms = expression, typical_ms
        self.subject = subject_of(expression, collection=lambda: corpus)
        self._known: dict[str, LoggedQuery] = {}

    def ask(self, text: str) -> LoggedQuery:
        """Return a search as the service logs it; each question is searched once."""
        if text not in self._known:
            with observing() as seen:
                hits = tuple(self.subject.retriever.search(text, k=10))
            found = FoundHits(self.subject, hits, seen.root, self.typical_ms)
            self._known[text] = logged(
                found, SearchRequest.model_validate({"query": text}), query_id="", created_at="", project="", traffic="user"
            )
        return self._known[text]

    def ms(self, rng: random.Random) -> float:
        """Draw how long an answer took."""
        return round(self.typical_ms * rng.lognormvariate(0.0, 0.12), 2)


class Guests:
    """Who searches; each day is drawn by itself, so that what happens on one does not move the others."""

    def __init__(self, hotel: Hotel) -> None:
        self.hotel = hotel
        self.candidates: dict[str, SimulatedSearch] = {}
        """Flag → the search of those for whom it is on; later ones count more."""
        self.production = self.engine(BM25, typical_ms=38.0)
        self.days: list[list[LoggedQuery]] = []
        """The searches of every day that is over."""

    def engine(self, expression: str, *, typical_ms: float) -> SimulatedSearch:
        return SimulatedSearch(expression, self.hotel.corpus, typical_ms=typical_ms)

    def pass_day(self) -> None:
        """Let the next day pass: store its searches and what became of them."""
        number, hotel = len(self.days), self.hotel
        rng, begins = random.Random(f"day {number}"), hotel.ago(DAYS - number)
        flags, judged = hotel.store.flags(project=hotel.project), hotel.golden.qrels.to_dict()
        questions = [(query.text, judged.get(query.query_id, {})) for query in hotel.golden.queries]
        questions += [(text, {}) for text in ABROAD]
        rows: list[LoggedQuery] = []
        events: list[FeedbackEvent] = []
        for place in range(VISITS):
            user, at = f"guest-{rng.randrange(USERS):03}", _moment(begins, rng)
            visit: dict[str, Any] = {
                "session_id": f"visit-{number:02}-{place:03}", "user_id": user, "project": hotel.project,
                "tool_name": rng.choice(TOOLS), "flags": {flag.name: is_on(flag, user) for flag in flags},
            }  # fmt: skip
            text, grades = rng.choice(questions)
            for asked in (" ".join(text.split()[:5]), text) if rng.random() < SHORT_FIRST else (text,):
                query_id = f"eq_{at:%Y%m%d%H%M%S}_{number:02}{len(rows):03}"
                rows.append(replace(self._answer(rng, asked, visit), query_id=query_id, created_at=timestamp(at), **visit))
                events += _acts(rng, rows[-1], grades)
                at = min(at + timedelta(seconds=rng.randint(25, 160)), begins + timedelta(days=1) - LAST)
        rows.sort(key=lambda row: (row.created_at, row.query_id))
        hotel.store.add_queries(rows)
        hotel.store.add_feedback([*events, *re_searches(rows), *scroll_pasts(rows, events)])
        self.days.append(rows)

    def _answer(self, rng: random.Random, text: str, visit: Mapping[str, Any]) -> LoggedQuery:
        """Return what answers a guest; now and then the vectors come too late."""
        on = [engine for name, engine in self.candidates.items() if visit["flags"].get(name)]
        if on and len(self.days) >= MOVED and rng.random() < LATE:
            said = "the encoder did not answer in time; keywords alone"
            ms = self.production.ms(rng) + LATE_MS
            return replace(self.production.ask(text), total_latency_ms=ms, degraded=True, fallback=said)
        engine = (on or [self.production])[-1]
        return replace(engine.ask(text), total_latency_ms=engine.ms(rng))


def _acts(rng: random.Random, row: LoggedQuery, grades: Mapping[str, int]) -> Iterator[FeedbackEvent]:
    """Yield what is done with an answer: people click, stay and sometimes say so; an assistant reads and cites."""
    agent, at = row.tool_name == "assistant", datetime.fromisoformat(row.created_at)
    for rank, doc_id in enumerate(row.result_ids, 1):
        grade = grades.get(doc_id, 0)
        if rng.random() >= (0.05 + 0.2 * grade) / rank:
            continue
        kinds: list[EventType] = ["read_after_search"] if agent else ["click"]
        if rng.random() < 0.3:
            kinds.append("cite" if agent else "dwell")
        if grade != 1 and rng.random() < 0.1:
            kinds.append("validate_useful" if grade else "validate_not_useful")
        for kind in kinds:
            at += timedelta(seconds=rng.randint(3, 30))
            yield FeedbackEvent(
                event_id=f"{kind}:{row.query_id}:{rank}", event_type=kind, session_id=str(row.session_id),
                created_at=timestamp(at), project=row.project, query_id=row.query_id, item_id=doc_id, rank_in_results=rank,
                actor="agent" if agent else "person", user_id=row.user_id,
                metadata={"seconds": 20 * (grade + 1)} if kind == "dwell" else {},
            )  # fmt: skip


def _moment(begins: datetime, rng: random.Random) -> datetime:
    """Draw a moment of the 24 hours that begin then, most of them in the evening (UTC)."""
    midnight = begins.replace(hour=0, minute=0, second=0, microsecond=0)
    at = midnight + timedelta(seconds=int(rng.triangular(0, 86_399, BUSIEST_HOUR * 3600)))
    at = at if at >= begins else at + timedelta(days=1)
    return min(at, begins + timedelta(days=1) - LAST)


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

    def shadow(self, feature: Feature, day: int, at: datetime) -> None:
        """Let the candidate answer what guests asked on a day, too; count what the golden set has judged."""
        engine, rng = self.guests.candidates[feature.name], random.Random(f"shadow {feature.name}")
        since = str(existing_flag(self.store, feature.name, project=self.project).metadata.get(SINCE, ""))
        rows = [
            ShadowRun(
                query_id=row.query_id, feature_id=feature.name, project=self.project, candidate=since, source="live",
                created_at=timestamp(datetime.fromisoformat(row.created_at) + timedelta(seconds=1)),
                control_result_ids=row.result_ids, control_latency_ms=row.total_latency_ms,
                treatment_result_ids=engine.ask(row.query).result_ids, treatment_latency_ms=engine.ms(rng),
            )
            for row in self.guests.days[day]
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

    def _feed(self, feature: Feature, at: datetime) -> Any:
        """Return the feed of a test whose clock goes on with every question."""
        moments = (at + timedelta(minutes=2 * place) for place in range(10_000))
        return feed_for_test(self.store, feature.name, clock=lambda: next(moments), project=self.project)
