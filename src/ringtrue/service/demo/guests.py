"""Two weeks of simulated guests: what they ask, which search answers them, and what they do with the answer."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from ringtrue.answers import EventType
from ringtrue.feedback import re_searches, scroll_pasts
from ringtrue.records import GoldenSet
from ringtrue.rollout import is_on
from ringtrue.service.demo.engines import SHOWN, Engine
from ringtrue.service.demo.golden_sets import BM25, DIVERSE, HYBRID, Shelf
from ringtrue.service.demo.scene import Scene
from ringtrue.store import FeedbackEvent, Flag, LoggedQuery, timestamp

DAYS = 14
SEARCHES = 4000
USERS = 400
TOOLS = {"web": 0.58, "app": 0.30, "assistant": 0.12}
HOURS = (3, 2, 1, 1, 1, 2, 5, 9, 13, 16, 16, 14, 13, 12, 12, 13, 15, 18, 21, 24, 24, 20, 13, 7)
"""How busy each hour of the day is, UTC."""
WEIGHTS = (1.0, 0.97, 1.04, 1.08, 1.15, 0.9, 0.86, 1.01, 0.98, 1.03, 1.07, 1.14, 0.92, 0.85)
"""How busy each day is."""
AGAIN, NEXT = 0.24, 0.3
"""How often somebody asks the same in other words, or something else, in the same visit."""
LOOKED_AT = tuple(rank**-0.9 for rank in range(1, SHOWN + 1))
"""How often each rank is looked at."""
LIKED = {0: 0.04, 1: 0.2, 2: 0.42, 3: 0.66}
"""How often somebody who looks at a document of this grade opens it."""
SAYS_SO = 0.07
FALLS_BACK = 0.012
"""How often vectors come too late, from the day on that the simulated site has its encoder on another machine."""
MOVED = 6
OUTAGE = (10, (17, 18, 19), 0.7)
"""On this day, in these hours, so many searches go without vectors."""
WHY_FALLBACK = "the encoder did not answer in time; keywords alone"
LAST = timedelta(minutes=8)
"""Nobody searches later than this before a day ends, so that what is done with an answer still belongs to it."""
ABROAD = (
    "schwimmbad öffnungszeiten", "wlan passwort", "parkplatz gebühr", "frühstück uhrzeit", "chiens acceptés",
    "piscine chauffée", "desayuno domingo", "hundar", "ontbijt", "kaution kreditkarte",
)  # fmt: skip
"""What guests type in languages that no document is in: keywords find nothing."""
EVEN = {"bm25": 0.5, "dense": 0.5}
CANDIDATES: Mapping[str, str] = {"hybrid-search": HYBRID, "diverse-results": DIVERSE}
"""What answers whoever a flag is on for; the tuned fusion joins once the sweep has found it."""


@dataclass(frozen=True)
class Need:
    """What a guest wants to know: the ways to ask for it, the first one most of the time, and how good each document is."""

    phrases: tuple[str, ...]
    grades: Mapping[str, int]
    kind: str | None = None
    """The type of the question where the golden set asks it."""


class Guests:
    """Who searches; each day is drawn by itself, so that what happens on one does not move the others."""

    def __init__(self, scene: Scene, shelf: Shelf) -> None:
        self.scene, self.shelf = scene, shelf
        self.engines = {
            BM25: Engine(BM25, shelf.corpus, typical_ms=38.0),
            HYBRID: Engine(HYBRID, shelf.corpus, typical_ms=41.0, weights=EVEN),
            # Ordering its hits anew takes the simulated site as long as the search itself.
            DIVERSE: Engine(DIVERSE, shelf.corpus, typical_ms=88.0, weights=EVEN),
        }
        self.candidates = dict(CANDIDATES)
        self._needs = needs_of(shelf.golden)
        self._number = 0
        self._visits = 0

    def tuned(self, name: str, expression: str, weights: Mapping[str, float]) -> None:
        """Add a candidate, which answers whoever its flag is on for."""
        self.engines[expression] = Engine(expression, self.shelf.corpus, typical_ms=42.0, weights=weights)
        self.candidates[name] = expression

    def day(self, number: int) -> list[LoggedQuery]:
        """Let a day pass: add its searches and what became of them to the store; return the searches."""
        rng = random.Random(f"day {number}")
        begins = self.scene.ago(DAYS - number)
        flags = self.scene.store.flags(project=self.scene.project)
        wanted = round(SEARCHES * WEIGHTS[number] / sum(WEIGHTS))
        rows: list[LoggedQuery] = []
        events: list[FeedbackEvent] = []
        while len(rows) < wanted:
            for row, need in self._visit(rng, number, begins, flags, most=wanted - len(rows)):
                rows.append(row)
                events += self._acts(rng, row, need)
        rows.sort(key=lambda row: (row.created_at, row.query_id))
        store = self.scene.store
        store.add_queries(rows)
        store.add_feedback([*events, *re_searches(rows), *scroll_pasts(rows, events)])
        return rows

    def _visit(
        self, rng: random.Random, number: int, begins: datetime, flags: list[Flag], *, most: int
    ) -> Iterator[tuple[LoggedQuery, Need]]:
        """Yield the searches of one guest in one visit."""
        self._visits += 1
        visit, user = f"visit-{self._visits:05}", f"guest-{rng.randrange(USERS):03}"
        tool = rng.choices(list(TOOLS), list(TOOLS.values()))[0]
        at = _moment(begins, rng)
        need, place = self._need(rng), 0
        for _ in range(most):
            text = need.phrases[min(place, len(need.phrases) - 1)]
            yield self._search(rng, number, text, at, need, visit, user, tool, flags), need
            at = min(at + timedelta(seconds=rng.randint(25, 160)), begins + timedelta(days=1) - LAST)
            drawn = rng.random()
            if drawn < AGAIN and place + 1 < len(need.phrases):
                place += 1
            elif drawn < AGAIN + NEXT:
                need, place = self._need(rng), 0
            else:
                return

    def _answering(self, on: list[str]) -> str:
        """Return the search for somebody for whom these flags are on: the newest candidate, on top of those before it."""
        return next((expression for name, expression in reversed(self.candidates.items()) if name in on), BM25)

    def _need(self, rng: random.Random) -> Need:
        # Some things are asked far more often than others.
        return self._needs[min(int(rng.paretovariate(0.55) * 4) - 4, rng.randrange(len(self._needs)))]

    def _search(
        self, rng: random.Random, number: int, text: str, at: datetime, need: Need, visit: str, user: str, tool: str,
        flags: list[Flag],
    ) -> LoggedQuery:  # fmt: skip
        self._number += 1
        in_force = {flag.name: is_on(flag, user) for flag in flags}
        expression = self._answering([name for name in in_force if in_force[name]])
        falls_back = expression != BM25 and rng.random() < _late(number, at.hour)
        engine = self.engines[BM25 if falls_back else expression]
        found = engine.ask(text)
        ms = engine.ms(rng, busy=1 + 0.1 * HOURS[at.hour] / max(HOURS)) + (300.0 if falls_back else 0.0)
        stages = found.timed(ms)
        return LoggedQuery(
            query_id=f"eq_{at:%Y%m%d%H%M%S}_{self._number:05}",
            query=text,
            tool_name=tool,
            created_at=timestamp(at),
            project=self.scene.project,
            mode="keywords" if engine.expression == BM25 else "hybrid",
            session_id=visit,
            user_id=user,
            result_ids=found.answer.result_ids,
            scores=found.answer.scores,
            channel_contributions=found.answer.channel_contributions,
            total_latency_ms=ms,
            stage_latency_ms={stage.name: stage.ms for stage in stages},
            stages=stages,
            fusion_weights=engine.weights,
            quality_proxy_score=engine.proxy(found, ms),
            retriever=engine.subject.fingerprint,
            fallback=WHY_FALLBACK if falls_back else None,
            degraded=falls_back,
            flags=in_force,
            is_eval_corpus=need.kind is not None and text == need.phrases[0],
            eval_category=need.kind if text == need.phrases[0] else None,
        )

    def _acts(self, rng: random.Random, row: LoggedQuery, need: Need) -> Iterator[FeedbackEvent]:
        """Yield what is done with an answer: people click, stay and sometimes say so; an assistant reads and cites."""
        agent = row.tool_name == "assistant"
        at = datetime.fromisoformat(row.created_at)
        for rank, doc_id in enumerate(row.result_ids, 1):
            grade = need.grades.get(doc_id, 0)
            if rng.random() >= LOOKED_AT[rank - 1] * LIKED[grade]:
                continue
            at += timedelta(seconds=rng.randint(3, 9))
            yield _event(row, "read_after_search" if agent else "click", doc_id, rank, at, agent)
            if agent and grade >= 2 and rng.random() < 0.3:
                yield _event(row, "cite", doc_id, rank, at, agent)
            if not agent and rng.random() < 0.25:
                seconds = rng.randint(8, 30) if grade < 2 else rng.randint(25, 180)
                yield _event(row, "dwell", doc_id, rank, at + timedelta(seconds=seconds), agent, seconds=seconds)
            if grade != 1 and rng.random() < SAYS_SO:
                kind: EventType = "validate_useful" if grade >= 2 else "validate_not_useful"
                yield _event(row, kind, doc_id, rank, at + timedelta(seconds=5), agent)


def _event(row: LoggedQuery, kind: EventType, doc_id: str, rank: int, at: datetime, agent: bool, **facts: int) -> FeedbackEvent:
    return FeedbackEvent(
        event_id=f"{kind}:{row.query_id}:{rank}",
        event_type=kind,
        session_id=str(row.session_id),
        created_at=timestamp(at),
        project=row.project,
        query_id=row.query_id,
        item_id=doc_id,
        rank_in_results=rank,
        actor="agent" if agent else "person",
        user_id=row.user_id,
        metadata=facts,
    )


def _late(number: int, hour: int) -> float:
    """Return how often vectors come too late on a day, in an hour."""
    day, hours, share = OUTAGE
    return 0.0 if number < MOVED else share if number == day and hour in hours else FALLS_BACK


def _moment(begins: datetime, rng: random.Random) -> datetime:
    """Draw a moment of the 24 hours that begin then, by how busy each hour is."""
    hour = rng.choices(range(24), HOURS)[0]
    at = begins.replace(hour=hour, minute=rng.randrange(60), second=rng.randrange(60), microsecond=0)
    at = at if at >= begins else at + timedelta(days=1)
    return at - LAST if at > begins + timedelta(days=1) - LAST else at


def needs_of(golden: GoldenSet) -> tuple[Need, ...]:
    """Return what guests want to know: the questions of the set, whole or in a few words, documents by title, and ABROAD."""
    grades: dict[str, dict[str, int]] = {}
    for one in golden.judgments:
        grades.setdefault(one.query_id, {})[one.doc_id] = one.grade
    asked = [
        Need((query.text, *_shorter(query.text, twice=place % 2 == 0)), grades.get(query.query_id, {}), _kind(query.metadata))
        for place, query in enumerate(golden.queries)
    ]
    named = [Need((document.title,), {document.doc_id: 3}) for document in golden.documents[::2]]
    found = [*asked, *named, *(Need((text,), {}) for text in ABROAD)]
    random.Random("needs").shuffle(found)
    return tuple(found)


def _kind(metadata: Mapping[str, object]) -> str:
    return str(metadata.get("query_type", "question"))


def _shorter(text: str, *, twice: bool) -> list[str]:
    """Return a question as people type it again who are in a hurry: its first long words, then one of them less."""
    words = re.findall(r"[\w-]{4,}", text.lower())
    return [" ".join(words[:count]) for count in ((5, 4) if twice else (5,))]
