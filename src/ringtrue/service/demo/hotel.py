"""The hotel of the demonstration: golden sets, evaluations, baselines, gates and experiments at simulated times; its reviewers.

Two simulated reviewers judge pairs whose shipped grade is known, and others wait.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ringtrue.config import cache_folder
from ringtrue.experiment import Experiment, ExperimentTable, Space, experiment_of, parameter, sweep, tracked
from ringtrue.golden import Candidate, content_hash, diff, load, parse_version, record_of, version_name, worth_judging
from ringtrue.records import GoldenSet, Judgment, Query, Run
from ringtrue.review import ReviewQueue, pairs_of
from ringtrue.rollout import record_evaluation
from ringtrue.run import DEFAULT_MEASURES, Evaluation, corpus_of, evaluate
from ringtrue.service.routes.verdicts import VERDICT, verdict_record
from ringtrue.store import AuditEntry, Store, StoredBaseline, StoredGoldenSet, StoredResult, timestamp
from ringtrue.verdict import Baseline, Policy, baseline_of, baseline_record, compare, gate, with_measures

SHIPPED = "hotel"
OPERATOR = "operator"
"""Who sets flags, keeps golden sets and records baselines: a role, not a person."""
BM25, DENSE, HYBRID = "bm25", "dense", "hybrid"
LOPSIDED = "weighted(bm25, dense, w=[0.05, 0.95])"
"""A fusion with wrong weights: keywords hardly count."""
MEASURES = (*DEFAULT_MEASURES, "RR@10")
"""Shadow runs on a golden set are compared by RR@10."""
BASELINE = "production"
POLICY = Policy(latency={}, latency_increase=math.inf)
"""Without rules on latency: whether the demonstration passes must not depend on how busy the machine is."""
REWORDED = ("q001", "ferry cancelled by the gale, and we had paid Advance Purchase: do we get our money back?")
NEW_QUERY = Query(
    "q073",
    "what time does breakfast start at weekends, and what do children pay?",
    {"category": "AMENITY_QUERY", "query_type": "factual"},
)
NEW_GRADES = {"entity-lantern-room-dining": 3, "entity-guest-handbook": 2, "entity-review-breakfast-queue": 1}
SPACE = Space(
    "weighted(bm25(title={title}), dense, depth=50, norm={norm}, w=[{w}, 1])",
    (parameter("w=1,0.25,0.5,2,4"), parameter("title=3,1,5"), parameter("norm='z','minmax'")),
)
"""The first point of the sweep is the hybrid as it is."""


class Hotel:
    """A project of a store, the simulated clock, and what has been kept and measured so far."""

    def __init__(self, store: Store, now: datetime, project: str) -> None:
        self.store, self.now, self.project = store, now, project
        self.golden: GoldenSet = load(SHIPPED)
        """The newest version."""
        self.corpus = corpus_of(self.golden, cache_folder() / "corpora")
        self.baseline: Baseline | None = None
        self.tuned = ""
        self.results: list[StoredResult] = []
        self._evaluations: dict[tuple[str, str], Evaluation] = {}
        self._run_ids: dict[tuple[str, str], str] = {}

    def ago(self, days: float) -> datetime:
        """Return the moment so many days before the end."""
        return self.now - timedelta(days=days)

    def note(self, at: datetime, what: str, subject: str, **detail: Any) -> None:
        """Write what the operator did into the audit trail."""
        self.store.add_audit(AuditEntry(timestamp(at), OPERATOR, what, subject, detail, self.project))

    # ── golden sets ─────────────────────────────────────────────────────────────────────────────────────────────────

    def keep(self, golden: GoldenSet, at: datetime) -> None:
        """Store a version of a golden set."""
        row = StoredGoldenSet(
            golden.id, golden.version, record_of(golden), timestamp(at), self.project, fingerprint=content_hash(golden)
        )
        self.store.save_golden_set(row)
        self.note(at, "golden.upload", f"{golden.id}@{golden.version}", queries=len(golden.queries))

    def keep_reviewed(self, reviewed: GoldenSet, at: datetime) -> GoldenSet:
        """Store and return the next version: what reviewers published, one question reworded and one added."""
        added = tuple(Judgment(NEW_QUERY.query_id, doc_id, grade, "manual") for doc_id, grade in NEW_GRADES.items())
        queries = (replace(one, text=REWORDED[1]) if one.query_id == REWORDED[0] else one for one in reviewed.queries)
        made = replace(reviewed, queries=(*queries, NEW_QUERY), judgments=(*reviewed.judgments, *added))
        step = diff(self.golden, made).suggested
        self.golden = replace(made, version=parse_version(self.golden.version).bump(step).number)
        self.keep(self.golden, at)
        return self.golden

    # ── evaluations ─────────────────────────────────────────────────────────────────────────────────────────────────

    def evaluation(self, expression: str, at: datetime) -> Evaluation:
        """Return the evaluation of a retriever on the newest version, made once."""
        key = (expression, self.golden.version)
        if key in self._evaluations:
            return replace(self._evaluations[key], cached=True)
        self._evaluations[key] = evaluate(
            expression, self.golden, measures=MEASURES, collection=self.corpus, components=expression == HYBRID,
            cache=False, now=at,
        )  # fmt: skip
        return self._evaluations[key]

    def record(self, expression: str, at: datetime, *, against: str = "") -> None:
        """Evaluate a retriever and store it, compared with another one on the same version if asked."""
        found, other = self.evaluation(expression, at), (against, self.golden.version)
        comparison = compare(self._evaluations[other], found) if against else None
        self._store(expression, found, at, comparison=comparison, control_run_id=self._run_ids.get(other))

    def judge(self, expression: str, at: datetime) -> None:
        """Evaluate a retriever and store it with its verdict against the baseline, as the service does."""
        found = self.evaluation(expression, at)
        verdict = gate(found, POLICY, baseline=self.baseline)
        run_id = self._store(expression, found, at, verdict=verdict)
        self.note(at, VERDICT, run_id, **asdict(verdict_record(verdict, found, run_id=run_id)), by=BASELINE)

    def _store(self, expression: str, found: Evaluation, at: datetime, **more: Any) -> str:
        row = record_evaluation(self.store, found, now=at, project=self.project, **more)
        self.results.append(row)
        self._run_ids[expression, self.golden.version] = row.run_id
        return row.run_id

    def keep_baseline(self, expression: str, version: str, at: datetime, *, reason: str) -> None:
        """Make an evaluation the baseline."""
        whole, _ = with_measures(self.evaluation(expression, at), POLICY.measures)
        self.baseline = baseline_of(whole, version=version, reason=reason)
        row = StoredBaseline(BASELINE, version, baseline_record(self.baseline), timestamp(at), self.project, reason)
        self.store.save_baseline(row)
        self.note(
            at, "baseline.update", f"{BASELINE}@{version}", reason=reason, retriever=self.baseline.retriever,
            golden=version_name(self.golden), run_id=self._run_ids[expression, self.golden.version],
        )  # fmt: skip

    # ── experiments ─────────────────────────────────────────────────────────────────────────────────────────────────

    def try_out(self, before: str, after: str, description: str, at: datetime) -> None:
        """Keep an experiment: one retriever in place of another."""
        sides = self.evaluation(after, at), self.evaluation(before, at)
        given = Experiment("", at.date().isoformat(), description, baseline=before)
        self._track([experiment_of(*sides, given, policy=POLICY)], at)

    def sweep(self, at: datetime) -> None:
        """Try the settings of the fusion, and keep every trial; the best other than the baseline is ``tuned``."""
        with tempfile.TemporaryDirectory(prefix="ringtrue-") as folder:
            ledger = Path(folder) / "looks.jsonl"
            found = sweep(SPACE, self.golden, lambda chunks: self.corpus, ledger=ledger, when=timestamp(at))
        self._track(list(tracked(found, on=at.date())), at)
        self.tuned = next(trial.point.retriever for trial in found.trials if trial.point.key != found.baseline.key)

    def _track(self, found: list[Experiment], at: datetime) -> None:
        ExperimentTable(self.store, timestamp(at), self.project).add(found)


REVIEWERS = ("reviewer-1", "reviewer-2")
SLIPS = 0.3
"""How often the second one gives a grade next to the shipped one."""
DRAWN = 27
"""Pairs that both judge: the first 14 are published with the next version, the others wait for it."""
FIRST, SECOND = slice(14), slice(14, DRAWN)
PENDING, DEPTH = 65, 20
"""Pairs that wait to be judged, and how far down the answers they are taken from."""
BEGUN_PAIRS, REJECTED_PAIRS = 9, 4
"""Pending pairs that one of the two has judged, and taken out, already."""


class Reviewers:
    """What the two reviewers do."""

    def __init__(self, hotel: Hotel) -> None:
        self.hotel = hotel
        self.queue = ReviewQueue(hotel.store, project=hotel.project)
        self._rng = rng = random.Random("reviewers")
        judged = [one for one in hotel.golden.judgments if one.query_id != REWORDED[0]]
        self._grades = {(one.query_id, one.doc_id): one.grade for one in rng.sample(judged, DRAWN)}

    def judge(self, which: slice, at: datetime) -> None:
        """Let both reviewers judge some of the drawn pairs, independently."""
        self._ask([Candidate(*pair, 0.9, {}) for pair in list(self._grades)[which]], at)
        for reviewer in REVIEWERS:
            for item in self.queue.waiting(reviewer):
                if (item.query_id, item.doc_id) in self._grades:
                    at += timedelta(seconds=self._rng.randint(12, 90))
                    grade = self._grades[item.query_id, item.doc_id]
                    if reviewer == REVIEWERS[1] and self._rng.random() < SLIPS:
                        grade = abs(grade - 1)
                    self.queue.judge(item.item_key, grade, reviewer=reviewer, now=at)

    def publish(self, at: datetime) -> None:
        """Store the version with what they agree on, and mark its pairs."""
        found = self.queue.publication(self.hotel.golden)
        made = self.hotel.keep_reviewed(found.golden, at)
        self.queue.mark_published(found.keys, made, now=at)

    def begin_unjudged(self, at: datetime) -> None:
        """Queue the pairs whose judgment would tell the evaluations apart best, and let one reviewer begin with them."""
        runs = []
        for name in (BM25, HYBRID, LOPSIDED):
            found = self.hotel.evaluation(name, at)
            ids = {ranking.query_id: [hit.doc_id for hit in ranking.hits] for ranking in found.rankings}
            runs.append(Run.from_rankings(ids, name=found.name))
        self._ask(worth_judging(self.hotel.golden, runs, k=DEPTH)[:PENDING], at)
        for place, item in enumerate(self.queue.waiting(REVIEWERS[0])[: REJECTED_PAIRS + BEGUN_PAIRS]):
            said: dict[str, Any] = {"reviewer": REVIEWERS[0], "now": at + timedelta(seconds=40 * place)}
            if place < REJECTED_PAIRS:
                self.queue.reject(item.item_key, why="nobody would search for this here", **said)
            else:
                self.queue.judge(item.item_key, self._rng.choice((0, 0, 1, 2)), **said)

    def _ask(self, pairs: Sequence[Candidate], at: datetime) -> None:
        self.queue.add(pairs_of(self.hotel.golden, pairs, now=at, wanted=2, project=self.hotel.project))
