"""The review queue of the demonstration: two simulated reviewers judge pairs whose shipped grade is known, and others wait."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

from ringtrue.golden import Candidate, worth_judging
from ringtrue.records import GoldenSet, Run
from ringtrue.review import ReviewQueue, pairs_of
from ringtrue.service.demo.hotel import BM25, HYBRID, LOPSIDED, REWORDED, Hotel

SLIPS = {"reviewer-1": 0.08, "reviewer-2": 0.27}
"""How often each of the two gives a grade next to the shipped one."""
DRAWN = 27
"""Pairs that both judge: the first 14 are published with the next version, the others wait for it."""
FIRST, SECOND = slice(14), slice(14, DRAWN)
PENDING, DEPTH = 65, 20
"""Pairs that wait to be judged, and how far down the answers they are taken from."""
BEGUN, REJECTED = 9, 4
"""Pending pairs that one of the two has judged, and taken out, already."""


class Reviewers:
    """What the two reviewers do."""

    def __init__(self, hotel: Hotel) -> None:
        self.hotel = hotel
        self.queue = ReviewQueue(hotel.store, project=hotel.project)
        self._rng = random.Random("reviewers 8")
        self._drawn = _drawn_pairs(hotel.golden, random.Random("pairs"))
        self._grades = {(one.query_id, one.doc_id): one.grade for one in hotel.golden.judgments}

    def judge(self, which: slice, at: datetime) -> None:
        """Let both reviewers judge some of the drawn pairs, independently."""
        self._ask(self._drawn[which], at)
        for place, (reviewer, slips) in enumerate(SLIPS.items()):
            moment = at + timedelta(hours=3 * place)
            for item in self.queue.waiting(reviewer):
                if (item.query_id, item.doc_id) in self._grades:
                    moment += timedelta(seconds=self._rng.randint(12, 90))
                    grade = self._graded(self._grades[item.query_id, item.doc_id], slips)
                    self.queue.judge(item.item_key, grade, reviewer=reviewer, now=moment)

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
        waiting = self.queue.waiting("reviewer-1")
        for item in waiting[:REJECTED]:
            self.queue.reject(item.item_key, reviewer="reviewer-1", now=at, why="nobody would search for this here")
        for place, item in enumerate(waiting[REJECTED : REJECTED + BEGUN], 1):
            grade = self._rng.choice((0, 0, 1, 2))
            self.queue.judge(item.item_key, grade, reviewer="reviewer-1", now=at + timedelta(seconds=40 * place))

    def _ask(self, pairs: Sequence[Candidate], at: datetime) -> None:
        self.queue.add(pairs_of(self.hotel.golden, pairs, now=at, wanted=2, project=self.hotel.project))

    def _graded(self, true: int, slips: float) -> int:
        if self._rng.random() >= slips:
            return true
        return self._rng.choice([grade for grade in (true - 1, true + 1) if 0 <= grade <= 3])


def _drawn_pairs(golden: GoldenSet, rng: random.Random) -> list[Candidate]:
    """Return judged pairs to be judged again: as many of each grade, each of another question."""
    by_grade: dict[int, list[tuple[str, str]]] = {}
    for one in golden.judgments:
        if one.query_id != REWORDED[0]:
            by_grade.setdefault(one.grade, []).append((one.query_id, one.doc_id))
    chosen: dict[str, Candidate] = {}
    while len(chosen) < DRAWN:
        grade = sorted(by_grade)[len(chosen) % len(by_grade)]
        query_id, doc_id = rng.choice([pair for pair in by_grade[grade] if pair[0] not in chosen])
        chosen[query_id] = Candidate(query_id, doc_id, 0.9, {})
    return list(chosen.values())
