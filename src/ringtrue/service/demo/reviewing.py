"""The review queue of the demonstration: two simulated reviewers judge pairs whose shipped grade is known, and others wait."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

from ringtrue.golden import Candidate, worth_judging
from ringtrue.records import GoldenSet, Run
from ringtrue.review import ReviewQueue, pairs_of
from ringtrue.run import Evaluation
from ringtrue.service.demo.golden_sets import BM25, HYBRID, LOPSIDED, REWORDED, Shelf
from ringtrue.service.demo.scene import Scene

SLIPS = {"reviewer-1": 0.08, "reviewer-2": 0.27}
"""How often each of the two says a grade beside the shipped one."""
FIRST, SECOND = 14, 13
"""Pairs that both judge: published with the next version, and waiting for it."""
PENDING = 60
DEPTH = 20
"""How far down the answers pairs are taken from."""
BEGUN = 9
"""Pending pairs that one of the two has judged already."""
REJECTED = 4
SISTER = "entity-fellgate-guest-information"
WHY = "the document is about the sister hotel, which has a search of its own"


class Reviewing:
    """What the two reviewers do."""

    def __init__(self, scene: Scene, shelf: Shelf) -> None:
        self.scene, self.shelf = scene, shelf
        self.queue = ReviewQueue(scene.store, project=scene.project)
        self._rng = random.Random("reviewers 8")
        self._drawn = _drawn_pairs(shelf.golden, FIRST + SECOND, random.Random("pairs"))
        self._unjudged: list[Candidate] = []
        self._grades = {(one.query_id, one.doc_id): one.grade for one in shelf.golden.judgments}

    def ask_first(self, at: datetime) -> None:
        self._ask(self._drawn[:FIRST], at)

    def ask_second(self, at: datetime) -> None:
        self._ask(self._drawn[FIRST:], at)

    def _ask(self, pairs: Sequence[Candidate], at: datetime) -> None:
        self.queue.add(pairs_of(self.shelf.golden, pairs, now=at, wanted=2, project=self.scene.project))

    def judge(self, at: datetime) -> None:
        """Let both reviewers judge what waits for two; each without what the other said."""
        for place, (reviewer, slips) in enumerate(SLIPS.items()):
            moment = at + timedelta(hours=3 * place)
            for item in self.queue.waiting(reviewer):
                if (item.query_id, item.doc_id) not in self._grades:
                    continue
                moment += timedelta(seconds=self._rng.randint(12, 90))
                said = self._said(self._grades[item.query_id, item.doc_id], slips)
                self.queue.judge(item.item_key, said, reviewer=reviewer, now=moment)

    def publish(self, at: datetime) -> None:
        """Store the version with what they agree on, and mark its pairs."""
        found = self.queue.publication(self.shelf.golden)
        made = self.shelf.keep_reviewed(found.golden, at)
        self.queue.mark_published(found.keys, made, now=at)

    def ask_unjudged(self, part: int, of: int, at: datetime) -> None:
        """Put one part of the pairs into the queue whose judgment would tell the evaluations apart best."""
        if not self._unjudged:
            runs = [_run(self.shelf.evaluation(name, at)) for name in (BM25, HYBRID, LOPSIDED)]
            found = worth_judging(self.shelf.golden, runs, k=DEPTH)
            ours = [one for one in found if one.doc_id != SISTER][:PENDING]
            self._unjudged = [*ours, *[one for one in found if one.doc_id == SISTER][:REJECTED]]
        self._ask(self._unjudged[part::of], at)

    def begin(self, at: datetime) -> None:
        """Let one reviewer judge some of what waits, and take out what nobody should judge."""
        waiting = self.queue.waiting("reviewer-1")
        for item in waiting:
            if item.doc_id == SISTER:
                self.queue.reject(item.item_key, reviewer="reviewer-1", now=at, why=WHY)
        for place, item in enumerate([item for item in waiting if item.doc_id != SISTER][:BEGUN]):
            grade = self._rng.choice((0, 0, 1, 2))  # nobody knows the true one: these pairs are not judged yet
            self.queue.judge(item.item_key, grade, reviewer="reviewer-1", now=at + timedelta(seconds=40 * (place + 1)))

    def _said(self, true: int, slips: float) -> int:
        if self._rng.random() >= slips:
            return true
        return self._rng.choice([grade for grade in (true - 1, true + 1) if 0 <= grade <= 3])


def _drawn_pairs(golden: GoldenSet, count: int, rng: random.Random) -> list[Candidate]:
    """Return judged pairs to be judged again: as many of each grade, each of another question."""
    by_grade: dict[int, list[tuple[str, str]]] = {}
    for one in golden.judgments:
        if one.query_id != REWORDED[0]:
            by_grade.setdefault(one.grade, []).append((one.query_id, one.doc_id))
    chosen: list[Candidate] = []
    asked: set[str] = set()
    while len(chosen) < count:
        grade = sorted(by_grade)[len(chosen) % len(by_grade)]
        query_id, doc_id = rng.choice([pair for pair in by_grade[grade] if pair[0] not in asked])
        asked.add(query_id)
        chosen.append(Candidate(query_id, doc_id, 0.9, {}))
    return chosen


def _run(evaluation: Evaluation) -> Run:
    return Run.from_rankings(
        {ranking.query_id: [hit.doc_id for hit in ranking.hits] for ranking in evaluation.rankings}, name=evaluation.name
    )
