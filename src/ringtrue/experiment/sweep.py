"""``sweep``: try many settings of a retriever on one part of a golden set, and confirm the best on the other (X-2).

Trials see the tuning queries only. The held-out ones are asked once, after the last trial, for two retrievers: the best and the
baseline. Who looked, and when, goes to the ledger beside the set.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ringtrue.errors import CannotDecide, InputError, MissingInput, RingtrueError, SpecError
from ringtrue.experiment import confirm
from ringtrue.experiment.journal import Journal, Values
from ringtrue.experiment.methods import Walk, walk
from ringtrue.experiment.outcome import HeldOut, Impossible, Outcome, Overfitting, Sweep, Trial, Tuning
from ringtrue.experiment.shared import Memory
from ringtrue.experiment.space import Point, Range, Space
from ringtrue.golden import content_hash, leakage, split, version_name
from ringtrue.measures import Measure, score
from ringtrue.measures.scores import average
from ringtrue.records import GoldenSet
from ringtrue.retrieve import Collection, canonical, names_documents
from ringtrue.retrieve.answers import answer_all
from ringtrue.run import Evaluation, code_hash, evaluate, fingerprint
from ringtrue.verdict import upside

MEASURE = "nDCG@10"
SHARE = 0.2
CollectionFor = Callable[[str | None], Collection]
"""Chunker → the documents cut by it; None means as they are."""
_SAME = 1e-9


def sweep(
    space: Space,
    golden: GoldenSet,
    collection_for: CollectionFor,
    *,
    ledger: Path,
    when: str,
    method: str = "grid",
    trials: int | None = None,
    measure: str = MEASURE,
    baseline: str | None = None,
    held_out: GoldenSet | float = SHARE,
    seed: int = 0,
    alpha: float = 0.05,
    scope: str | None = None,
    allow: Iterable[str] = (),
    journal: Path | None = None,
    fresh: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Sweep:
    """Return every trial, the best, and whether the held-out queries confirm it against the baseline.

    ``golden`` is divided by ``golden.split`` with ``held_out`` as its share; a set that is a tuning part already needs the
    other one as ``held_out``. The baseline is an expression over the documents as they are, or the first point of the space
    where every parameter is a list.
    ``ledger`` is the file of looks, ``when`` the time of this one; ``journal`` a folder where trials are kept, so that an
    interrupted sweep goes on (``fresh`` starts over). Raises InputError, and CannotDecide where no honest number exists.
    """
    name = str(Measure.parse(measure))
    points = walk(space, method, trials=trials, seed=seed)  # a wrong method is refused before anything is asked
    tuning, rest, notes = parts_of(golden, held_out)
    start = _to_beat(space) if baseline is None else Point({}, baseline)
    bench = _Bench(tuning, name, collection_for, scope, tuple(allow))
    first = bench.evaluate(start, tuning)
    if math.isnan(first.metrics[name]):
        raise CannotDecide(f"{name} is not defined for any of the {len(tuning.queries)} tuning queries; choose another measure")
    bench.k = first.setup.k
    if start.key != space.first().key:
        bench.check(space.first())
    kept = Journal(None if journal is None else journal / f"{bench.identity(first)}.jsonl", fresh=fresh)
    tried, impossible = _trials(points, bench, kept, progress)
    up = upside(name)
    ranked = sorted(tried, key=lambda trial: (-up * trial.value, trial.number))
    winner = ranked[0] if up * (ranked[0].value - first.metrics[name]) > _SAME else None
    tests = sum(trial.point.key != start.key for trial in tried)
    shown = winner or ranked[0]
    made = confirm.on_tuning(first, shown.per_query, shown.value, name, tests=tests, alpha=alpha, seed=seed)
    outcome: Outcome = "baseline"
    sentence = (
        f"none of {tests} trials beat the baseline on {made.n} tuning queries ({name} {made.baseline:.4f}); "
        "the held-out queries were not looked at"
    )
    confirmed: HeldOut | None = None
    overfit: Overfitting | None = None
    if winner is not None:
        again = bench.evaluate(winner.point, tuning)
        if abs(again.metrics[name] - winner.value) > _SAME:
            notes.append(
                f"the best trial reached {winner.value:.6f}, asked again {again.metrics[name]:.6f}: "
                "the search does not always answer alike"
            )
        made = replace(made, best=again.metrics[name], diff=again.metrics[name] - made.baseline)
        if made.undefined.unfair:  # whatever the held-out queries said, it could not be believed
            outcome = "not enough evidence"
            sentence = (
                f"not confirmed: {made.undefined.told(name, 'tuning')}, so the best may only have left out the hard ones; "
                "the held-out queries were not looked at"
            )
            notes += _comparable(ranked, made, up)
        else:
            within = f" within {scope}" if scope else ""
            claim = f"{name}{within} of {_told(winner.point)} against {_told(start)}"
            looks = confirm.look(ledger, claim, when=when, golden=rest)
            if looks.earlier:
                notes.append(
                    f"{looks.earlier} of the {looks.count} looks at '{rest.id}' were at other versions of it; what was tried "
                    "there counts on"
                )
            pair = bench.evaluate(start, rest), bench.evaluate(winner.point, rest)
            confirmed = confirm.on_held_out(*pair, name, looks=looks, alpha=alpha, seed=seed)
            outcome, sentence = confirm.outcome_of(confirmed, name, alpha=alpha)
            overfit = confirm.overfitting(confirm.gains(first, again, name), confirm.gains(*pair, name))
    reused = sum(trial.reused for trial in tried)
    if reused:
        notes.append(f"{reused} of {len(tried)} trials were made before and were not made again")
    return Sweep(
        space, method, seed, name, bench.k, tuple(ranked), tuple(impossible), start, winner, made, confirmed, overfit, outcome,
        sentence, version_name(tuning), first.setup.corpus, bench.memory.asked, tuple(notes),
    )  # fmt: skip


def parts_of(golden: GoldenSet, held_out: GoldenSet | float) -> tuple[GoldenSet, GoldenSet, list[str]]:
    """Return the part to tune on, the part held out, and what a reader should know about them; raises InputError."""
    side = golden.metadata.get("split")
    if side == "held_out":
        raise InputError(f"'{golden.id}' is a held-out part; tune on the other one, and give this one as --held-out")
    if isinstance(held_out, GoldenSet):
        tuning, rest = golden, held_out
    elif side == "tuning":
        raise InputError(f"'{golden.id}' is a tuning part; name the part that was held out with --held-out")
    else:
        tuning, rest = split(golden, held_out=held_out)
    shared = {query.query_id for query in tuning.queries} & {query.query_id for query in rest.queries}
    if shared:
        raise InputError(f"'{tuning.id}' and '{rest.id}' share {len(shared)} queries, such as '{min(shared)}'; hold out others")
    for part in (tuning, rest):
        if len(part.queries) < 2:
            raise CannotDecide(f"'{part.id}' has {len(part.queries)} queries, too few to tell settings apart; add queries")
    leaks = leakage(tuning, rest)
    told = f"{len(leaks)} held-out queries ask nearly what a tuning query asks, such as '{leaks[0].held_out}'" if leaks else ""
    return tuning, rest, [told] if told else []


def _to_beat(space: Space) -> Point:
    """Return the first point of the space; raises InputError where a range begins it."""
    loose = next((one for one in space.parameters if isinstance(one, Range)), None)
    if loose is not None:
        # Its lower end is nobody's setting, and to beat that proves nothing.
        raise InputError(f"the range {loose} has no value to start from; name the retriever to beat with --baseline")
    return space.first()


@dataclass
class _Bench:
    """Where points are tried: the tuning queries, the documents, and what earlier trials have asked already."""

    tuning: GoldenSet
    measure: str
    collection_for: CollectionFor
    scope: str | None
    allow: tuple[str, ...]
    k: int = 0

    def __post_init__(self) -> None:
        self.memory = Memory()

    def documents(self, point: Point) -> Collection | None:
        return self.collection_for(point.chunks) if names_documents(point.retriever) else None

    def evaluate(self, point: Point, golden: GoldenSet) -> Evaluation:
        """Return the point evaluated as everything else is: the numbers that are reported come from here."""
        return evaluate(
            point.retriever,
            golden,
            measures=[self.measure],
            k=self.k or None,
            collection=self.documents(point),
            scope=self.scope,
            allow=self.allow,
        )

    def check(self, point: Point) -> None:
        """Raise what would keep a point of the space from being evaluated, before hours of trials."""
        try:
            canonical(point.retriever)
        except SpecError:
            return  # one combination that cannot be does not end a sweep; if all are so, the trials say it
        self.evaluate(point, self.tuning)

    def identity(self, first: Evaluation) -> str:
        """Return a hash of all that decides a trial's values, but for the retriever."""
        parts = [
            content_hash(self.tuning), self.tuning.relevance_threshold, self.measure, self.k, self.scope, first.setup.corpus,
            code_hash(),
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def values(self, point: Point) -> dict[str, float]:
        """Return the measure of every tuning query, sharing what other points have asked."""
        retriever = self.memory.build(point.retriever, self.documents(point))
        answers = answer_all(retriever, self.tuning, k=self.k, scope_field=self.scope)
        found = score(answers, self.tuning, [self.measure])
        return dict(zip(found.query_ids, found.of(self.measure).tolist(), strict=True))

    def print_of(self, point: Point) -> str:
        return fingerprint(point.retriever, collection=lambda: self.collection_for(point.chunks))


def _trials(
    points: Walk, bench: _Bench, kept: Journal, progress: Callable[[int], None] | None
) -> tuple[list[Trial], list[Impossible]]:
    """Return what came of every point; raises the first objection where no point can be."""
    measure, up = Measure.parse(bench.measure), upside(bench.measure)
    tried: list[Trial] = []
    impossible: list[Impossible] = []
    problem: RingtrueError | None = None
    point = next(points, None)
    while point is not None:
        told: float | None = None
        try:
            values, reused = _values(point, bench, kept)
        except MissingInput:
            raise  # a model or package that is not there is no property of the point
        except (SpecError, InputError) as objection:
            problem = problem or objection
            impossible.append(Impossible(point, str(objection)))
        else:
            value = average(measure, np.array(list(values.values()), np.float64))
            if math.isnan(value):
                impossible.append(Impossible(point, f"{bench.measure} is not defined for any query here"))
            else:
                tried.append(Trial(len(tried) + 1, point, value, values, reused))
                told = up * value
        if progress is not None:
            progress(1)
        try:
            point = points.send(told)
        except StopIteration:
            break
    if not tried:
        raise problem or CannotDecide(f"{impossible[0].reason}, nor at any other point; choose another measure")
    return tried, impossible


def _values(point: Point, bench: _Bench, kept: Journal) -> tuple[Values, bool]:
    """Return the values of a point, and whether they were known before."""
    of_point = bench.print_of(point)
    known = kept.known.get(of_point)
    if known is not None:
        return known, True
    made = bench.values(point)
    kept.write(of_point, made, retriever=point.retriever, chunks=point.chunks)
    return made, False


def _comparable(ranked: Iterable[Trial], made: Tuning, up: int) -> list[str]:
    """Return which trial is best among those that leave no more queries undefined than the baseline, if one beats it."""
    fair = (one for one in ranked if confirm.nowhere(one.per_query.values()) <= made.undefined.baseline)
    best = next((one for one in fair if up * (one.value - made.baseline) > _SAME), None)
    if best is None:
        return []
    return [f"trial {best.number} leaves no more undefined than the baseline and reaches {best.value:.4f}: {_told(best.point)}"]


def _told(point: Point) -> str:
    return point.retriever + (f" over {point.chunks}" if point.chunks else "")
