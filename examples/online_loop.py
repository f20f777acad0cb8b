"""The whole circle in one command: a simulated hotel whose guests search, click and so decide which search they get.

    log → feedback → judgments → review → golden set → shadow → sequential test → rollout → guardrail → health

The guests, the clock and the milliseconds are simulated; everything else is Ringtrue as a live system uses it: the searches are
really made over the documents of the shipped hotel set, the events go through the query log into a real store, and every
decision is the library's. Guests click with a probability that is known here (looked at × liked), so the script can say how
well the judgments derived from their clicks recover the truth.

Example: python examples/online_loop.py --short
Example: python examples/online_loop.py --store postgresql://ringtrue@localhost/try --json
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
import tempfile
import textwrap
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import ringtrue
from ringtrue import feedback, review, rollout
from ringtrue.golden import content_hash, save, version_name
from ringtrue.log import QueryLog
from ringtrue.review import refresh
from ringtrue.stats import kendall_tau_b
from ringtrue.store import FeedbackEvent, LoggedQuery, Store, timestamp

PROJECT = "online-loop"
START = datetime(2027, 1, 25, tzinfo=UTC)
DAYS = 28
SHOWN = 10
LOOKED_AT = tuple(1 / rank for rank in range(1, SHOWN + 1))
"""How often each rank is looked at: what the derived judgments must find out."""
LIKED = {0: 0.05, 1: 0.25, 2: 0.45, 3: 0.65}
"""How often somebody who looks at a document of this true grade opens it."""
EDITED = 0.03
"""Share of the documents that somebody edits on a day; they move to the top of a search that puts the newest first."""
CONFIRMED, FORGOTTEN = 32, 20
"""Questions of the old golden set: confirmed by a person, and those that nobody asks any more. People ask the rest, too."""
MEASURES = ("RR@10", "nDCG@10")
PATIENCE = 60
"""Days after which a rollout that does not move is given up."""
WORTH = 0.03
"""The gain in nDCG@10 below which a change is not worth a rollout."""


@dataclass(frozen=True)
class Size:
    """How much is simulated."""

    searches: int
    """In the four weeks of step 1."""
    questions: int
    """New ones that the refresh brings in."""
    depth: int
    """Documents that people judge for each of them."""
    shadowed: int
    """Searches of the shadow week."""
    a_day: int
    """Searches on each day of a rollout."""
    samples: int
    """What a test and each stage of a rollout need at least."""


LONG = Size(searches=6000, questions=20, depth=12, shadowed=800, a_day=1500, samples=45)
SHORT = Size(searches=2000, questions=8, depth=8, shadowed=400, a_day=1000, samples=40)


# ── what is simulated ───────────────────────────────────────────────────────────────────────────────────────────────


class Timer(threading.local):
    """Seconds of the simulated world, which pass where somebody searches; each thread has its own."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


TIMER = Timer()


@dataclass
class Engine:
    """A search whose answers are real and were made beforehand, and whose milliseconds are drawn."""

    name: str
    answers: Mapping[str, Sequence[str]]
    typical_ms: float
    rng: random.Random

    def search(self, text: str, *, k: int = SHOWN) -> list[str]:
        TIMER.seconds += self.ms() / 1000
        return self.ranked(text)[:k]

    def ranked(self, text: str) -> list[str]:
        return list(self.answers[text])

    def ms(self) -> float:
        return self.typical_ms * math.exp(self.rng.gauss(0, 0.15))


@dataclass
class NewestFirst(Engine):
    """What the hotel has today: documents that match the words, the last edited first, however well they match."""

    edited: dict[str, float] = field(default_factory=dict)

    def ranked(self, text: str) -> list[str]:
        return sorted(self.answers[text][:SHOWN], key=lambda doc_id: -self.edited[doc_id])

    def day(self, number: int) -> None:
        """Let a day pass, on which some documents are edited."""
        for doc_id in self.edited:
            if self.rng.random() < EDITED:
                self.edited[doc_id] = number + self.rng.random()


@dataclass
class World:
    """The hotel: its documents, what its guests ask, what is true, and who searches."""

    seed: int
    size: Size
    store: Store
    folder: Path
    now: datetime = START
    number: int = 0
    days: int = 0
    golden: ringtrue.GoldenSet = field(init=False)
    production: NewestFirst = field(init=False)
    candidates: dict[str, Engine] = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(f"guests {self.seed}")
        hotel = ringtrue.load("hotel")
        questions = list(hotel.queries)
        random.Random(f"questions {self.seed}").shuffle(questions)
        confirmed = {query.query_id for query in questions[:CONFIRMED]}
        forgotten = {query.query_id for query in questions[CONFIRMED : CONFIRMED + FORGOTTEN]}
        self.truth: dict[str, dict[str, int]] = {query.text: {} for query in questions}
        texts = {query.query_id: query.text for query in questions}
        for judgment in hotel.judgments:
            self.truth[texts[judgment.query_id]][judgment.doc_id] = judgment.grade
        self.asked = [query for query in questions if query.query_id not in forgotten]
        self.golden = replace(
            hotel,
            queries=tuple(query for query in hotel.queries if query.query_id in confirmed | forgotten),
            judgments=tuple(
                replace(one, source="manual" if one.query_id in confirmed else one.source)
                for one in hotel.judgments
                if one.query_id in confirmed | forgotten
            ),
        )
        titles = replace(hotel, id="hotel-titles", documents=tuple(replace(one, text=one.title) for one in hotel.documents))
        keyword, hybrid = (_answers(name, hotel) for name in ("fts5", "hybrid"))
        drawn = {name: random.Random(f"{name} {self.seed}") for name in ("newest", "hybrid", "remote", "titles")}
        ages = {document.doc_id: -drawn["newest"].random() for document in hotel.documents}
        self.production = NewestFirst("newest-first", keyword, 40.0, drawn["newest"], ages)
        self.candidates = {
            "hybrid": Engine("hybrid", hybrid, 41.0, drawn["hybrid"]),
            "hybrid-remote": Engine("hybrid-remote", hybrid, 42.0, drawn["remote"]),
            "titles-only": Engine("titles-only", _answers("bm25", titles), 30.0, drawn["titles"]),
        }

    def next_day(self) -> None:
        self.days += 1
        self.production.day(self.days)

    def search(self, engine: Engine, text: str, at: datetime, **facts: Any) -> LoggedQuery:
        """Return one search of a guest as it is logged; the simulated clock, and not this machine's, says when and how long."""
        self.number += 1
        before = TIMER()
        found = engine.search(text)
        return LoggedQuery(
            query_id=f"eq_{at:%Y%m%d%H%M%S}_{self.number:06}",
            query=text,
            tool_name="website",
            created_at=timestamp(at),
            project=PROJECT,
            session_id=f"visit-{self.number}",
            result_ids=tuple(found),
            total_latency_ms=(TIMER() - before) * 1000,
            retriever=engine.name,
            **facts,
        )

    def clicks(self, row: LoggedQuery, text: str, at: datetime) -> Iterator[FeedbackEvent]:
        """Yield what a guest does with an answer: looks by the rank, opens by the true grade, and sometimes says so."""
        for rank, doc_id in enumerate(row.result_ids, 1):
            grade = self.truth[text].get(doc_id, 0)
            if self.rng.random() >= LOOKED_AT[rank - 1] * LIKED[grade]:
                continue
            say = partial(self._event, row, doc_id, rank, at)
            yield say("click")
            if self.rng.random() < 0.04 and grade in (0, 3):
                yield say("validate_useful" if grade == 3 else "validate_not_useful")

    def _event(self, row: LoggedQuery, doc_id: str, rank: int, at: datetime, kind: Any) -> FeedbackEvent:
        return FeedbackEvent(
            event_id=f"{kind}:{row.query_id}:{rank}",
            event_type=kind,
            session_id=str(row.session_id),
            created_at=timestamp(at + timedelta(seconds=5 * rank)),
            project=PROJECT,
            query_id=row.query_id,
            item_id=doc_id,
            rank_in_results=rank,
            actor="person",
            user_id=row.user_id,
        )


def _answers(expression: str, golden: ringtrue.GoldenSet) -> dict[str, list[str]]:
    """Return the documents that a retriever really finds for every question, best first."""
    found = ringtrue.evaluate(expression, golden, measures=MEASURES, k=2 * SHOWN, allow=("ids",))
    return {query.text: [hit.doc_id for hit in found.ranking(query.query_id).hits] for query in found.queries}


# ── the steps ───────────────────────────────────────────────────────────────────────────────────────────────────────


def log_searches(world: World, log: QueryLog, show: Show) -> dict[str, Any]:
    """Step 1: four weeks of guests who search and click."""
    show.step("Log", "Four weeks: guests search, look at what stands high, open what they like. Everything goes into the log.")
    users = [f"guest-{number}" for number in range(300)]
    private = 0
    for day in range(DAYS):
        world.next_day()
        show.progress(day / DAYS)
        today = world.size.searches * (day + 1) // DAYS - world.size.searches * day // DAYS
        for number in range(today):
            at = world.now + timedelta(days=number / today)
            text = world.rng.choice(world.asked).text
            row = world.search(world.production, text, at, user_id=world.rng.choice(users))
            if world.rng.random() < 0.01:  # guests write what no log should keep
                row, private = replace(row, query=f"{text} answer to guest{number}@example.org"), private + 1
            log.record(row)
            for event in world.clicks(row, text, at):
                log.feedback(event)
        world.now += timedelta(days=1)
    log.flush()
    stored = world.store.queries(project=PROJECT)
    events = world.store.feedback(project=PROJECT)
    leaked = sum("@example.org" in row.query for row in stored)
    passed = feedback.scroll_pasts(stored, [event for event in events if event.event_type == "click"])
    counts = log.counts
    world.store.add_feedback(passed)
    kinds = Counter(event.event_type for event in [*events, *passed])
    show.line(
        f"{len(stored):,} searches and {len(events):,} events were logged; {counts.dropped} dropped, {counts.refused} refused."
    )
    show.line(
        f"{private} guests typed an address with their question: {private - leaked} taken out before storing, {leaked} stored."
    )
    show.table(["event", "count"], [[kind, f"{count:,}"] for kind, count in sorted(kinds.items())])
    show.line("(results that were passed over were not sent: Ringtrue found them in the log)")
    return {
        "searches": len(stored), "events": len(events), "dropped": counts.dropped, "refused": counts.refused,
        "private": private, "leaked": leaked, "scroll_past": len(passed),
    }  # fmt: skip


def judge_by_clicks(world: World, show: Show) -> dict[str, Any]:
    """Step 2: clicks become judgments, corrected for the rank at which they were made."""
    show.step(
        "Feedback → judgments", "What stands higher is clicked more. How much more is found from documents that changed rank."
    )
    found = feedback.derive_into(world.store, now=timestamp(world.now), project=PROJECT)
    (curve,) = found.examinations.values()
    show.table(
        ["rank", *map(str, range(1, SHOWN + 1))],
        [
            ["looked at, true", *(f"{share:.2f}" for share in LOOKED_AT)],
            ["looked at, found", *(f"{curve.at(rank):.2f}" for rank in range(1, SHOWN + 1))],
        ],
    )
    raw, corrected = _taus(world, found.judgments)
    by_source = ", ".join(f"{count} {source}" for source, count in found.by_source.items())
    show.line(
        f"Method: {curve.method}. Judgments: {by_source}; {len(found.unknown)} documents shown and never opened stay unknown."
    )
    show.line(f"Kendall's tau with the true order: {raw:.3f} by clicks alone, {corrected:.3f} by the derived judgments.")
    return {
        "method": curve.method, "curve": [round(curve.at(rank), 4) for rank in range(1, SHOWN + 1)],
        "tau_clicks": round(raw, 4), "tau_derived": round(corrected, 4), "by_source": found.by_source,
        "unknown": len(found.unknown),
    }  # fmt: skip


def _taus(world: World, judgments: Sequence[Any]) -> tuple[float, float]:
    """Return how well clicks, and derived judgments, order the opened documents of a question; means over the questions."""
    by_text: dict[str, list[Any]] = {}
    for one in judgments:
        if one.source == "implicit":
            by_text.setdefault(str(one.metadata["query"]), []).append(one)
    pairs = []
    for text, rows in sorted(by_text.items()):
        if text not in world.truth:
            continue  # an address was taken out of it
        true = [world.truth[text].get(one.item_id, 0) for one in rows]
        raw = kendall_tau_b(true, [one.metadata["selected"] for one in rows])
        corrected = kendall_tau_b(true, [one.confidence for one in rows])
        if not math.isnan(raw + corrected):
            pairs.append((raw, corrected))
    return fmean(pair[0] for pair in pairs), fmean(pair[1] for pair in pairs)


def renew_golden_set(world: World, show: Show) -> dict[str, Any]:
    """Steps 3 and 4: two reviewers judge what people ask today; the next version comes only if they agree."""
    show.step(
        "Review queue", "The golden set grows old. Questions of the last four weeks are proposed, two people judge them blind."
    )
    store, old = world.store, world.golden
    using = refresh.Harvest(count=world.size.questions, again=partial(_pooled, world), depth=world.size.depth)
    situation = review.propose_from_log(store, old, now=world.now, who="example", using=using, project=PROJECT)
    proposal, share = situation.proposal, situation.coverage
    show.line(
        f"{version_name(old)} has {len(old.queries)} questions, {CONFIRMED} of them confirmed by a person. "
        f"It asks {share.same:.0%} of what people search for."
    )
    for text in situation.warnings:
        show.line(f"Ringtrue warns: {text}.")
    show.line(
        f"Proposed: {len(proposal.new)} new questions with {situation.progress.pairs} pairs to judge, "
        f"for {len(proposal.retire)} that nobody asks any more. Such as:"
    )
    show.table(["asked", "question"], [[str(one.count), one.text] for one in proposal.questions[:3]])
    queue = review.ReviewQueue(store, project=PROJECT)
    rng = random.Random(f"reviewers {world.seed}")
    # One of the two is in a hurry: most of the grades are guesses.
    for reviewer, hurry in (("reviewer-a", 0.06), ("reviewer-b", 0.7)):
        for item in queue.waiting(reviewer, seed=world.seed):
            grade = _graded(world, item.query, item.doc_id, hurry, rng)
            queue.judge(item.item_key, grade, reviewer=reviewer, now=world.now)
        show.progress(0.5)
    world.now += timedelta(hours=4)

    show.step(
        "Refreshed golden set", "The next version is written only if the reviewers' agreement (Cohen's kappa) exceeds 0.6."
    )
    first = refresh.finish(store, proposal, old, project=PROJECT)
    show.line(
        f"First try:  kappa {first.agreement.coefficient:.3f}, {len(first.disputes)} disputes. "
        + (f"REFUSED: {first.refused}." if first.refused else "")
    )
    differing = {(dispute.query_id, dispute.doc_id) for dispute in first.disputes}
    for item in queue.items():
        if (item.query_id, item.doc_id) in differing:
            for reviewer in ("reviewer-a", "reviewer-b"):
                grade = _graded(world, item.query, item.doc_id, 0.06, rng)
                queue.judge(item.item_key, grade, reviewer=reviewer, now=world.now)
    show.line("They talk the disputes over and judge these pairs again.")
    second = refresh.finish(store, proposal, old, project=PROJECT)
    again = refresh.finish(store, proposal, old, project=PROJECT)
    if second.golden is None or again.golden is None:
        raise SystemExit(f"the reviewers of this seed never agree: {second.refused}; try another --seed")
    file = world.folder / "golden-dataset.json"
    save(second.golden, file, overwrite=True)
    published = refresh.released(store, proposal, old, second.golden, now=world.now, who="example", project=PROJECT)
    kept = all(one in second.golden.judgments for one in old.judgments if one.source == "manual")
    world.golden = second.golden
    show.line(
        f"Second try: kappa {second.agreement.coefficient:.3f}. {version_name(second.golden)} is written: {len(second.added)} "
        f"questions new, {len(second.retired)} gone, {len(second.left_out)} left out because nothing relevant was found."
    )
    show.line(
        f"Judgments that people had confirmed before: {'all untouched' if kept else 'CHANGED'}. "
        f"{published} pairs of the queue are published."
    )
    return {
        "before": version_name(old), "after": version_name(second.golden), "age_days": situation.age_days,
        "warned": bool(situation.warnings), "proposed": len(proposal.new), "pairs": situation.progress.pairs,
        "kappa_first": round(first.agreement.coefficient, 4), "refused_first": first.refused,
        "disputes": len(first.disputes), "kappa_second": round(second.agreement.coefficient, 4), "added": len(second.added),
        "retired": len(second.retired), "left_out": len(second.left_out), "confirmed_untouched": kept,
        "published": published, "idempotent": content_hash(second.golden) == content_hash(again.golden),
    }  # fmt: skip


def _pooled(world: World, text: str, k: int) -> list[str]:
    """Return what today's search and the best candidate find: judging only one side's documents would favour it."""
    if text not in world.truth:
        return []
    sides = world.production.ranked(text), world.candidates["hybrid"].ranked(text)
    return list(dict.fromkeys(doc_id for pair in zip(*sides, strict=False) for doc_id in pair))[:k]


def _graded(world: World, text: str, doc_id: str, hurry: float, rng: random.Random) -> int:
    true = world.truth[text].get(doc_id, 0)
    return rng.choice((0, 1, 2, 3)) if rng.random() < hurry else true


def shadow_candidates(world: World, log: QueryLog, show: Show) -> dict[str, Any]:
    """Steps 5 and 6: three candidates answer beside production; a sequential test decides about each."""
    show.step(
        "Shadow", "A week: three candidates answer the same searches as production. Guests see production's answers only."
    )
    show.line("hybrid and hybrid-remote search by words and vectors; titles-only has a small, fast index of the titles alone.")
    store, golden = world.store, world.golden
    began, ended = timestamp(world.now), world.now + timedelta(days=7)
    why_none = rollout.without_constitutional(golden)
    shadows = {}
    for name, engine in world.candidates.items():
        rollout.change_flag(
            store, name, who="example", now=world.now, why="a candidate", project=PROJECT, shadow=True,
            min_samples=world.size.samples, graduation_threshold=WORTH,
            metadata={
                "measure": "nDCG@10", "candidate": name, "production": world.production.name,
                rollout.NO_CONSTITUTIONAL: why_none,
            },
        )  # fmt: skip
        rollout.create_test(
            store, name, now=began, measure="ndcg", delta=0.05, min_samples=world.size.samples, graduation_threshold=WORTH,
            who="example", project=PROJECT,
        )  # fmt: skip
        # One worker, and the simulated clock: the same seed gives the same rows in the same order.
        shadows[name] = rollout.Shadow(
            world.production, engine, store, name, sample=0.5, workers=1, waiting=world.size.shadowed, project=PROJECT,
            clock=lambda: ended, timer=TIMER,
        )  # fmt: skip
    for number in range(world.size.shadowed):
        if number % (world.size.shadowed // 7) == 0:
            world.next_day()
        show.progress(number / world.size.shadowed)
        at = world.now + (ended - world.now) * number / world.size.shadowed
        row = world.search(world.production, world.rng.choice(world.asked).text, at)
        log.record(row)
        for shadow in shadows.values():
            shadow.beside(row.query_id, row.query, row.result_ids, row.total_latency_ms, k=SHOWN)
    counted = {name: shadow.close() for name, shadow in shadows.items()}
    log.flush()
    world.now = ended
    rows: list[list[str]] = []
    facts: dict[str, dict[str, Any]] = {}
    before = ringtrue.evaluate(
        world.production.search, golden, measures=MEASURES, failed="zero", cache=False, name="newest-first"
    )
    for name, engine in world.candidates.items():
        after = ringtrue.evaluate(engine.search, golden, measures=MEASURES, failed="zero", cache=False, name=name)
        on_golden = rollout.record_on_golden(store, name, before, after, now=world.now, project=PROJECT)
        seen = rollout.summarise(store.shadow_runs(feature_id=name, project=PROJECT))
        gain = on_golden.treatment.deltas["nDCG@10"]
        facts[name] = {
            "shadowed": counted[name].answered, "dropped": counted[name].dropped, "failures": seen.failures,
            "top_changed": round(seen.top_changed or 0, 4), "overlap": round(seen.overlap or 0, 4),
            "golden_gain": round(gain, 4),
        }  # fmt: skip
        rows.append([
            name, str(counted[name].answered), str(seen.failures), f"{seen.top_changed:.0%}", f"{seen.overlap:.2f}",
            f"{before.metrics['nDCG@10']:.3f} → {after.metrics['nDCG@10']:.3f}", f"{gain:+.3f}",
        ])  # fmt: skip
    show.table(
        ["candidate", "answered", "failed", "first hit changed", "overlap", f"nDCG@10 on {version_name(golden)}", "gain"], rows
    )

    show.step(
        "Sequential test",
        "Each judged question of that week counts once, however often it was asked; one may look after every one of them.",
    )
    lines = []
    for name in world.candidates:
        feed = rollout.feed_for_test(store, name, clock=lambda: ended, project=PROJECT)
        fed = rollout.feed_judged(
            store, name, feed, golden=golden, min_confidence=0.3, rel=golden.relevance_threshold, project=PROJECT
        )
        found = rollout.standing(rollout.found_test(store, name, project=PROJECT))
        facts[name] |= {
            "judged": fed,
            "decision": found.decision,
            "decided_after": found.decided_after,
            "samples": found.samples,
        }
        lines.append([
            name, str(found.samples), f"{found.control:.3f}", f"{found.treatment:.3f}", f"{found.mean_difference:+.3f}",
            f"{found.decision} after {found.decided_after}" if found.decided_after else found.decision,
        ])  # fmt: skip
        show.progress(len(lines) / len(world.candidates))
    show.table(["candidate", "questions", "production", "candidate", "difference", "decision"], lines)
    worse = rollout.step(store, "titles-only", now=world.now, project=PROJECT)
    show.line(f"titles-only: {worse.action}. {_sentence(worse.why)}")
    facts["titles-only"]["action"] = worse.action
    facts["titles-only"]["state"] = worse.flag.state
    return facts


def roll_out(world: World, log: QueryLog, show: Show, name: str, *, breaks_at: float = math.inf) -> dict[str, Any]:
    """Steps 7 and 8: day by day, a timer asks whether a candidate may go one stage further."""
    store, engine = world.store, world.candidates[name]
    users = [f"guest-{number}" for number in range(5000)]
    typical, days = engine.typical_ms, 0
    stages: list[float] = []
    moves: list[list[str]] = []
    while (decision := rollout.step(store, name, now=world.now, project=PROJECT)).action in ("wait", "advance"):
        if decision.moved:
            stages.append(decision.flag.rollout)
            moves.append(_move(days, decision))
        if days == PATIENCE:
            raise SystemExit(f"{name} waits {decision.why} after {days} days; try another --seed")
        if decision.flag.rollout >= breaks_at:
            engine.typical_ms = 2.2 * typical
        flags = rollout.Flags(store, project=PROJECT, refresh=math.inf, environment={})
        world.next_day()
        for number in range(world.size.a_day):
            user, text = world.rng.choice(users), world.rng.choice(world.asked).text
            at = world.now + timedelta(days=number / world.size.a_day)
            used = engine if flags.is_on(name, user) else world.production
            log.record(world.search(used, text, at, user_id=user, flags=flags.in_force(user)))
        log.flush()
        days += 1
        world.now += timedelta(days=1)
        show.progress(len(stages) / 7)
    stages.append(decision.flag.rollout)
    show.table(["when", "decision", "guests", "why"], [*moves, _move(days, decision)])
    return {"stages": stages, "days": days, "action": decision.action, "state": decision.flag.state, "why": decision.why}


def _move(day: int, decision: rollout.Decision) -> list[str]:
    before, after = decision.before.rollout, decision.flag.rollout
    guests = f"{after:g} %" if before == after else f"{before:g} → {after:g} %"
    return [f"day {day}", decision.action, guests, _because(decision)]


def _because(decision: rollout.Decision) -> str:
    if decision.action != "advance":
        return decision.why
    live = {check.name: check.says.split(";")[0] for check in decision.checks}
    if "stage queries" in live:
        return f"{live['stage queries']}; {live['live latency']}"
    return f"{live['improvement']}; {live['sequential test']}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def look_at_health(world: World, show: Show) -> dict[str, Any]:
    """Step 9: what serves everybody now is measured on the new golden set, and one look at everything."""
    show.step("Health", "What everybody has now is evaluated and gated on the new golden set; then one look at everything.")
    measured = ringtrue.evaluate(world.candidates["hybrid"].search, world.golden, measures=MEASURES, cache=False, name="hybrid")
    verdict = ringtrue.gate(measured, ringtrue.Policy(require_baseline=False))  # the golden set is new: floors alone
    rollout.record_evaluation(world.store, measured, verdict=verdict, now=world.now, project=PROJECT)
    health = rollout.health_of(world.store, now=world.now, project=PROJECT)
    show.table(["part", "state", "what it says"], [[part.name, part.state, part.says] for part in health.parts])
    show.line(
        f"All in all: {health.state}."
        + (" A rollback stays 'wrong' until a person has looked at it." if health.state == "wrong" else "")
    )
    return {"state": health.state, "gate": verdict.word, "parts": {part.name: part.state for part in health.parts}}


def run(world: World, show: Show) -> dict[str, Any]:
    """Go once around; return what happened."""
    show.line(
        f"A simulated hotel, seed {world.seed}. Its search puts the newest document first; three candidates want its place. "
        "Guests, clock and milliseconds are made up; searches, store, statistics and every decision are Ringtrue's."
    )
    before = world.store.counts()["eval_queries"]
    with QueryLog(world.store, project=PROJECT, folder=world.folder / "log") as log:
        facts: dict[str, Any] = {"seed": world.seed, "log": log_searches(world, log, show)}
        facts["judgments"] = judge_by_clicks(world, show)
        facts["refresh"] = renew_golden_set(world, show)
        facts["shadow"] = shadow_candidates(world, log, show)
        show.step("Guardrail", "hybrid-remote goes first. Its vectors lie on a server that becomes slow at 10 % of the guests.")
        facts["rollback"] = roll_out(world, log, show, "hybrid-remote", breaks_at=10.0)
        show.step("Rollout", "hybrid is the same search with its vectors in the hotel's own machine. Nothing breaks.")
        facts["rollout"] = roll_out(world, log, show, "hybrid")
        facts["health"] = look_at_health(world, show)
        log.flush()
        counts = log.counts
    stored = world.store.counts()["eval_queries"] - before
    show.line(
        f"{world.number:,} searches were made in {world.days} simulated days, {stored:,} are in the store: "
        f"{world.number - stored} lost."
    )
    facts["kept"] = {"made": world.number, "stored": stored, "dropped": counts.dropped, "refused": counts.refused}
    return facts


# ── how it is shown ─────────────────────────────────────────────────────────────────────────────────────────────────

STEPS = 9
WIDTH = 118
NUMBER = re.compile(r"[-+]?[\d.,]+%?")


class Show:
    """Plain text for people; a bar on a terminal while they wait."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet, self._number, self._title, self._gap = quiet, 0, "", True
        self._bar = sys.stderr.isatty()

    def step(self, title: str, says: str) -> None:
        """Begin a step with its heading and one sentence about it."""
        self._number, self._title = self._number + 1, title
        self._space()
        self._print(f"{self._number}. {title}")
        self._print("─" * (len(title) + 3))
        self.line(says)

    def line(self, text: str) -> None:
        self._print(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False))

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print columns, numbers to the right; the last column is wrapped."""
        columns = list(zip(headers, *rows, strict=True))
        right = [all(NUMBER.fullmatch(cell) for cell in column[1:]) for column in columns]
        widths = [max(map(len, column)) for column in columns]
        used = 2 + sum(widths[:-1]) + 2 * (len(widths) - 1)
        widths[-1] = min(widths[-1], WIDTH - used)
        self._space()
        for row in (headers, ["─" * width for width in widths], *rows):
            cells = [cell.rjust(width) if r else cell.ljust(width) for cell, width, r in zip(row, widths, right, strict=True)]
            last = textwrap.wrap(cells[-1], widths[-1], drop_whitespace=not right[-1]) or [""]
            start = "  " + "".join(f"{cell}  " for cell in cells[:-1])
            self._print("\n".join([start + last[0], *(" " * used + more for more in last[1:])]))
        self._space()

    def progress(self, share: float) -> None:
        """Say on a terminal how far it is: this share of the present step."""
        if self._bar:
            done = round(30 * (self._number - 1 + share) / STEPS)
            sys.stderr.write(f"\r\x1b[2K[{'█' * done}{'·' * (30 - done)}] {self._number} of {STEPS}: {self._title}")
            sys.stderr.flush()

    def _space(self) -> None:
        if not self._gap:
            self._print("")

    def _print(self, text: str) -> None:
        if self._bar:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
        if not self._quiet:
            print("\n".join(line.rstrip() for line in text.split("\n")), flush=True)
        self._gap = not text


@contextmanager
def folder_of(keep: bool) -> Iterator[Path]:
    """Give a folder for store and files, which goes at the end unless it is to be kept."""
    if keep:
        yield Path(tempfile.mkdtemp(prefix="ringtrue-online-loop-"))
        return
    with tempfile.TemporaryDirectory(prefix="ringtrue-online-loop-") as name:
        yield Path(name)


def main() -> int:
    """Run the simulation; 0 where it went around, 2 where the store cannot be used."""
    about, example = str(__doc__).split("\n\nExample:", 1)
    parser = argparse.ArgumentParser(
        description=about, epilog=f"Example:{example}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same circle (default: 0)")
    parser.add_argument(
        "--searches",
        type=int,
        metavar="N",
        help=f"searches in the first four weeks ({LONG.searches}; {SHORT.searches} with --short)",
    )
    parser.add_argument("--short", action="store_true", help="fewer searches and questions: about half a minute")
    parser.add_argument("--store", metavar="URL", help="a path, sqlite:///… or postgresql://… (default: in a temporary folder)")
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder and say where it is")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    given = parser.parse_args()
    size = SHORT if given.short else LONG
    if given.searches is not None:
        if given.searches < 1000:
            parser.error(f"--searches {given.searches} are too few to learn anything from; write 1000 or more")
        size = replace(size, searches=given.searches)
    with folder_of(given.keep) as folder:
        where = given.store or str(folder / "store.sqlite")
        try:
            with Store.open(where) as store:
                if store.queries(project=PROJECT, limit=1):
                    print(f"project '{PROJECT}' of this store has been used; give a new --store", file=sys.stderr)
                    return 2
                facts = run(World(given.seed, size, store, folder), Show(quiet=given.json))
        except ringtrue.RingtrueError as problem:
            print(f"error: {problem}", file=sys.stderr)
            return 2
        if given.json:
            print(json.dumps(facts, indent=2, ensure_ascii=False))
        elif given.keep or given.store:
            kept = f"Files are kept in {folder}. " if given.keep else ""
            # An address may hold a password, so a given one is not printed.
            print(f"\n{kept}Look around: ringtrue health --project {PROJECT} --store {'URL' if given.store else where}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
