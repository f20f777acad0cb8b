"""Two weeks of simulated guests: what they ask, what answers them, what they do with it, and three features tried on them.

One feature reached everybody, one was rolled back by a guardrail, one is on its way. The operator starts them;
``ringtrue.rollout.step`` decides on the evidence in the store whether they move.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ringtrue.answers import EventType, StageLogged
from ringtrue.feedback import re_searches, scroll_pasts
from ringtrue.log import quality_proxy, saturating
from ringtrue.log.capture import Answered, read_answer, stages_of
from ringtrue.records import GoldenSet
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
    step,
    without_constitutional,
)
from ringtrue.rollout.evidence import SINCE
from ringtrue.run import subject_of
from ringtrue.service.demo.hotel import BM25, HYBRID, OPERATOR, Hotel
from ringtrue.store import FeedbackEvent, LoggedQuery, ShadowRun, timestamp

DAYS, SEARCHES, USERS = 14, 286, 400
"""Days, searches of each day, and guests."""
SHOWN = 10
"""Hits that the site shows."""
TOOLS = {"web": 0.58, "app": 0.30, "assistant": 0.12}
HOURS = (3, 2, 1, 1, 1, 2, 5, 9, 13, 16, 16, 14, 13, 12, 12, 13, 15, 18, 21, 24, 24, 20, 13, 7)
"""How busy each hour of the day is, UTC."""
AGAIN, NEXT = 0.24, 0.3
"""How often a guest asks the same in other words, or something else, in the same visit."""
LIKED = {0: 0.04, 1: 0.2, 2: 0.42, 3: 0.66}
"""How often a guest opens a document of this grade that they look at."""
SAYS_SO = 0.07
LATE, LATE_MS, MOVED = 0.015, 300.0, 6
"""How often vectors come too late, so that keywords answer alone after so many milliseconds more, and from which day on."""
LAST = timedelta(minutes=8)
"""No search is later than this before a day ends, so that what follows from an answer still belongs to the day."""
STAGE_SHARES = {"candidate": 0.86, "fusion": 0.06}
"""The share of the milliseconds that goes to each stage; what follows the fusion gets the rest."""
ABROAD = (
    "schwimmbad öffnungszeiten", "wlan passwort", "parkplatz gebühr", "frühstück uhrzeit", "chiens acceptés",
    "piscine chauffée", "desayuno domingo", "hundar", "ontbijt", "kaution kreditkarte",
)  # fmt: skip
"""What guests type in languages that no document is in: keywords find nothing."""


@dataclass(frozen=True)
class Need:
    """What a guest wants to know: the ways to ask for it, and how good each document is."""

    phrases: tuple[str, ...]
    grades: Mapping[str, int]
    kind: str | None = None
    """The type of the question if the golden set asks it."""


class SimulatedSearch:
    """A retriever as the site uses it: real answers, simulated milliseconds."""

    def __init__(self, expression: str, corpus: Collection, *, typical_ms: float) -> None:
        self.expression, self.typical_ms = expression, typical_ms
        self.subject = subject_of(expression, collection=lambda: corpus)
        # BM25's scores have no upper end; fused ones are standard scores of a list.
        self._relevance = saturating(10.0 if expression == BM25 else 1.0)
        self._known: dict[str, tuple[Answered, tuple[StageLogged, ...]]] = {}

    def ask(self, text: str) -> tuple[Answered, tuple[StageLogged, ...]]:
        """Return what it finds and the stages that it went through; each question is searched once."""
        if text not in self._known:
            with observing() as seen:
                hits = self.subject.retriever.search(text, k=SHOWN)
            self._known[text] = read_answer(list(hits)), stages_of(seen.root)[0]
        return self._known[text]

    def ms(self, rng: random.Random) -> float:
        """Draw how long an answer took."""
        return round(self.typical_ms * rng.lognormvariate(0.0, 0.12), 2)

    def logged(self, text: str, ms: float) -> dict[str, Any]:
        """Return the fields of a logged search that tell of its answer."""
        answer, stages = self.ask(text)
        rest = max(0.0, 1 - sum(STAGE_SHARES.get(stage.name, 0.0) for stage in stages))
        stages = tuple(replace(stage, ms=round(ms * STAGE_SHARES.get(stage.name, rest), 3)) for stage in stages)
        return {
            **answer._asdict(), "total_latency_ms": ms, "stages": stages,
            "stage_latency_ms": {stage.name: stage.ms for stage in stages},
            "quality_proxy_score": quality_proxy(answer.scores, ms, relevance=self._relevance),
            "retriever": self.subject.fingerprint, "mode": "keywords" if self.expression == BM25 else "hybrid",
        }  # fmt: skip


class Guests:
    """Who searches; each day is drawn by itself, so that what happens on one does not move the others."""

    def __init__(self, hotel: Hotel) -> None:
        self.hotel = hotel
        self.candidates: dict[str, SimulatedSearch] = {}
        """Flag → the search of those for whom it is on; later ones count more."""
        self.production = self.engine(BM25, typical_ms=38.0)
        self.days: list[list[LoggedQuery]] = []
        """The searches of every day that is over."""
        self._needs = needs_of(hotel.golden)

    def engine(self, expression: str, *, typical_ms: float) -> SimulatedSearch:
        return SimulatedSearch(expression, self.hotel.corpus, typical_ms=typical_ms)

    def pass_day(self) -> None:
        """Let the next day pass: store its searches and what became of them."""
        number, store = len(self.days), self.hotel.store
        rng, begins = random.Random(f"day {number}"), self.hotel.ago(DAYS - number)
        flags = store.flags(project=self.hotel.project)
        rows: list[LoggedQuery] = []
        events: list[FeedbackEvent] = []
        while len(rows) < SEARCHES:
            user, at = f"guest-{rng.randrange(USERS):03}", _moment(begins, rng)
            visit = {
                "session_id": f"visit-{number:02}-{len(rows):03}", "user_id": user, "project": self.hotel.project,
                "tool_name": rng.choices(list(TOOLS), list(TOOLS.values()))[0],
                "flags": {flag.name: is_on(flag, user) for flag in flags},
            }  # fmt: skip
            for need, text in self._questions(rng):
                row = self._search(rng, text, at, f"eq_{at:%Y%m%d%H%M%S}_{number:02}{len(rows):03}", need, visit)
                rows.append(row)
                events += _acts(rng, row, need)
                at = min(at + timedelta(seconds=rng.randint(25, 160)), begins + timedelta(days=1) - LAST)
        rows.sort(key=lambda row: (row.created_at, row.query_id))
        store.add_queries(rows)
        store.add_feedback([*events, *re_searches(rows), *scroll_pasts(rows, events)])
        self.days.append(rows)

    def _questions(self, rng: random.Random) -> Iterator[tuple[Need, str]]:
        """Yield what one guest asks in one visit: some things are asked far more often than others."""
        place, asking = 0, True
        while asking:
            if place == 0:
                need = self._needs[min(int(rng.paretovariate(0.55) * 4) - 4, rng.randrange(len(self._needs)))]
            yield need, need.phrases[place]
            drawn = rng.random()
            again = drawn < AGAIN and place + 1 < len(need.phrases)
            place = place + 1 if again else 0
            asking = again or drawn < AGAIN + NEXT

    def _search(
        self, rng: random.Random, text: str, at: datetime, query_id: str, need: Need, visit: Mapping[str, Any]
    ) -> LoggedQuery:
        on = [engine for name, engine in self.candidates.items() if visit["flags"].get(name)]
        engine, late = (on or [self.production])[-1], bool(on) and len(self.days) >= MOVED and rng.random() < LATE
        engine = self.production if late else engine
        busy = round(0.1 * engine.typical_ms * HOURS[at.hour] / max(HOURS), 2)
        asked = need.kind if text == need.phrases[0] else None
        return LoggedQuery(
            query_id=query_id, query=text, created_at=timestamp(at), degraded=late,
            fallback="the encoder did not answer in time; keywords alone" if late else None,
            is_eval_corpus=asked is not None, eval_category=asked,
            **engine.logged(text, engine.ms(rng) + busy + late * LATE_MS), **visit,
        )  # fmt: skip


def _acts(rng: random.Random, row: LoggedQuery, need: Need) -> Iterator[FeedbackEvent]:
    """Yield what is done with an answer: people click, stay and sometimes say so; an assistant reads and cites."""
    agent, at = row.tool_name == "assistant", datetime.fromisoformat(row.created_at)

    def event(kind: EventType, later: int = 0, **facts: int) -> FeedbackEvent:
        return FeedbackEvent(
            event_id=f"{kind}:{row.query_id}:{rank}", event_type=kind, session_id=str(row.session_id),
            created_at=timestamp(at + timedelta(seconds=later)), project=row.project, query_id=row.query_id, item_id=doc_id,
            rank_in_results=rank, actor="agent" if agent else "person", user_id=row.user_id, metadata=facts,
        )  # fmt: skip

    for rank, doc_id in enumerate(row.result_ids, 1):
        grade = need.grades.get(doc_id, 0)
        if rng.random() >= rank**-0.9 * LIKED[grade]:
            continue
        at += timedelta(seconds=rng.randint(3, 9))
        yield event("read_after_search" if agent else "click")
        if agent and grade >= 2 and rng.random() < 0.3:
            yield event("cite")
        if not agent and rng.random() < 0.25:
            seconds = rng.randint(8, 30) if grade < 2 else rng.randint(25, 180)
            yield event("dwell", seconds, seconds=seconds)
        if grade != 1 and rng.random() < SAYS_SO:
            yield event("validate_useful" if grade >= 2 else "validate_not_useful", 5)


def _moment(begins: datetime, rng: random.Random) -> datetime:
    """Draw a moment of the 24 hours that begin then, by how busy each hour is."""
    hour = rng.choices(range(24), HOURS)[0]
    at = begins.replace(hour=hour, minute=rng.randrange(60), second=rng.randrange(60), microsecond=0)
    at = at if at >= begins else at + timedelta(days=1)
    return min(at, begins + timedelta(days=1) - LAST)


def needs_of(golden: GoldenSet) -> tuple[Need, ...]:
    """Return what guests want to know: the questions of the set, whole or in a few words, documents by title, and ABROAD."""
    grades: dict[str, dict[str, int]] = {}
    for one in golden.judgments:
        grades.setdefault(one.query_id, {})[one.doc_id] = one.grade
    asked = []
    for place, query in enumerate(golden.queries):
        words = re.findall(r"[\w-]{4,}", query.text.lower())
        shorter = [" ".join(words[:count]) for count in ((5, 4) if place % 2 == 0 else (5,))]
        kind = str(query.metadata.get("query_type", "question"))
        asked.append(Need((query.text, *shorter), grades.get(query.query_id, {}), kind))
    named = [Need((document.title,), {document.doc_id: 3}) for document in golden.documents[::2]]
    found = [*asked, *named, *(Need((text,), {}) for text in ABROAD)]
    random.Random("needs").shuffle(found)
    return tuple(found)


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
