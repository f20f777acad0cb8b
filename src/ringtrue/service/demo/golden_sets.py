"""Golden sets, evaluations, baselines and gates of the demonstration: all of them computed, only their dates are made up."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from datetime import datetime

from ringtrue.config import cache_folder
from ringtrue.golden import (
    OfflineGenerator,
    content_hash,
    diff,
    generate,
    load,
    parse_version,
    record_of,
    rewrite,
    version_name,
)
from ringtrue.records import GoldenSet, Judgment, Query
from ringtrue.rollout import record_evaluation
from ringtrue.run import DEFAULT_MEASURES, Evaluation, corpus_of, evaluate
from ringtrue.service.demo.scene import Scene
from ringtrue.service.routes.gate import VERDICT, JudgedRun, verdict_record
from ringtrue.store import StoredBaseline, StoredGoldenSet, StoredResult, timestamp
from ringtrue.verdict import Baseline, Policy, baseline_of, baseline_record, compare, gate
from ringtrue.verdict.reachable import with_measures

SHIPPED = "hotel"
BM25, DENSE, HYBRID = "bm25", "dense", "hybrid"
DIVERSE = "hybrid >> mmr(0.5)"
LOPSIDED = "weighted(bm25, dense, w=[0.05, 0.95])"
"""A fusion whose weights somebody got wrong: keywords hardly count."""
MEASURES = (*DEFAULT_MEASURES, "RR@10")
"""RR@10 is what shadow data on a golden set is compared by."""
BASELINE = "production"
POLICY = Policy(latency={}, latency_increase=math.inf)
"""Milliseconds of a machine that does other things, too, say nothing of a search; what is shown must not hang on them."""
REWORDED = ("q001", "ferry cancelled by the gale, and we had paid Advance Purchase: do we get our money back?")
NEW_QUERY = Query(
    "q073",
    "what time does breakfast start at weekends, and what do children pay?",
    {"category": "AMENITY_QUERY", "query_type": "factual"},
)
NEW_GRADES = {
    "entity-lantern-room-dining": 3,
    "entity-guest-handbook": 2,
    "entity-review-breakfast-queue": 1,
    "entity-rate-plans": 1,
    "entity-groups-events-terms": 1,
}
DRAFTED = 24
"""Documents that the provisional set asks about."""


class Shelf:
    """What was kept and measured so far."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.golden: GoldenSet = load(SHIPPED)
        """The newest version."""
        self.corpus = corpus_of(self.golden, cache_folder() / "corpora")
        self.baseline: Baseline | None = None
        self.results: list[StoredResult] = []
        self._made: dict[tuple[str, str], Evaluation] = {}
        self._kept: dict[tuple[str, str], StoredResult] = {}

    # ── golden sets ─────────────────────────────────────────────────────────────────────────────────────────────────

    def keep(self, golden: GoldenSet, at: datetime) -> None:
        """Store a version of a golden set."""
        row = StoredGoldenSet(
            golden.id, golden.version, record_of(golden), timestamp(at), self.scene.project, fingerprint=content_hash(golden)
        )
        self.scene.store.save_golden_set(row)
        self.scene.note(at, "golden.upload", f"{golden.id}@{golden.version}", queries=len(golden.queries))

    def keep_shipped(self, at: datetime) -> None:
        self.keep(self.golden, at)

    def keep_drafted(self, at: datetime) -> None:
        """Store a small set that nobody has confirmed: questions made from some of the documents."""
        documents = self.golden.documents[:DRAFTED]
        made = generate(documents, OfflineGenerator(documents))
        base = GoldenSet(
            "hotel-drafts", "0.1.0", (), (), description="Questions made from documents; nobody has judged an answer yet.",
            created_at=at.date().isoformat(), relevance_threshold=2, provenance="Made by Ringtrue's offline generator.",
        )  # fmt: skip
        self.keep(rewrite(base, made.rows(2), source="synthetic", prefix="made", documents=documents).golden, at)

    def keep_reviewed(self, reviewed: GoldenSet, at: datetime) -> GoldenSet:
        """Store the next version: what reviewers published, a question in better words and a new one; return it."""
        said = tuple(Judgment(NEW_QUERY.query_id, doc_id, grade, "manual") for doc_id, grade in NEW_GRADES.items())
        queries = (replace(one, text=REWORDED[1]) if one.query_id == REWORDED[0] else one for one in reviewed.queries)
        made = replace(reviewed, queries=(*queries, NEW_QUERY), judgments=(*reviewed.judgments, *said))
        step = diff(self.golden, made).suggested
        self.golden = replace(made, version=parse_version(self.golden.version).bump(step).number)
        self.keep(self.golden, at)
        return self.golden

    # ── evaluations ─────────────────────────────────────────────────────────────────────────────────────────────────

    def evaluation(self, expression: str, at: datetime) -> Evaluation:
        """Return a retriever on the newest version; where nothing changed since, the answers of then, as a cache would."""
        key = (expression, self.golden.version)
        if key in self._made:
            return replace(self._made[key], cached=True)
        self._made[key] = evaluate(
            expression, self.golden, measures=MEASURES, collection=self.corpus, components=expression == HYBRID,
            cache=False, now=at,
        )  # fmt: skip
        return self._made[key]

    def record(self, expression: str, at: datetime, *, against: str | None = None, parts: bool = False) -> None:
        """Evaluate a retriever and store it, compared with another one that was stored before on the same version.

        ``parts`` keeps what each channel is worth alone, too.
        """
        found = self.evaluation(expression, at)
        found = found if parts else replace(found, components=())
        other = None if against is None else (against, self.golden.version)
        comparison = None if other is None else compare(self._made[other], found)
        control = None if other is None else self._kept[other].run_id
        self._add(
            record_evaluation(
                self.scene.store, found, now=at, comparison=comparison, control_run_id=control, project=self.scene.project
            ),
            expression,
        )

    def gated(self, expression: str, at: datetime) -> None:
        """Evaluate a retriever, hold it against the baseline, and store both, and every check as the service does."""
        found = self.evaluation(expression, at)
        verdict = gate(found, POLICY, baseline=self.baseline)
        row = record_evaluation(self.scene.store, found, now=at, verdict=verdict, project=self.scene.project)
        self._add(row, expression)
        self.scene.note(at, VERDICT, row.run_id, **asdict(verdict_record(JudgedRun(verdict, found, row.run_id))), by=BASELINE)

    def keep_baseline(self, expression: str, version: str, at: datetime, *, reason: str) -> None:
        """Make an evaluation the standard."""
        whole, _ = with_measures(self.evaluation(expression, at), POLICY.measures)
        self.baseline = baseline_of(whole, version=version, reason=reason)
        row = StoredBaseline(
            BASELINE, version, baseline_record(self.baseline), timestamp(at), self.scene.project, self.baseline.reason
        )
        self.scene.store.save_baseline(row)
        self.scene.note(
            at, "baseline.update", f"{BASELINE}@{version}", reason=reason, retriever=self.baseline.retriever,
            golden=version_name(self.golden), run_id=self._kept[expression, self.golden.version].run_id,
        )  # fmt: skip

    def _add(self, row: StoredResult, expression: str) -> None:
        self.results.append(row)
        self._kept[expression, self.golden.version] = row
