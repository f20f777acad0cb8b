"""``sweep``: try many settings of a retriever on one part of a golden set, and confirm the best on the other.

Trials see the tuning queries only. The held-out ones are asked once, after the last trial, for two retrievers: the best and the
baseline. Who looked, and when, goes to the ledger beside the set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from ringtrue.errors import CannotDecide, InputError, MissingInput, RingtrueError, SpecError
from ringtrue.experiment import outcome
from ringtrue.experiment.outcome import Impossible, Sweep, Trial
from ringtrue.experiment.space import Range, Space, TrialPoint, Walk, next_point, walk
from ringtrue.experiment.trials import Bench, CollectionFor, TrialJournal
from ringtrue.golden import leakage, split, version_name
from ringtrue.measures import Measure, average
from ringtrue.records import GoldenSet
from ringtrue.retrieve import canonical
from ringtrue.run import Evaluation
from ringtrue.verdict import upside

MEASURE = "nDCG@10"
SHARE = 0.2
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
    if every parameter is a list.
    ``ledger`` is the file of looks, ``when`` the time of this one; ``journal`` a folder where trials are kept, so that an
    interrupted sweep goes on (``fresh`` starts over). Raises InputError, and CannotDecide if no honest number exists.
    """
    name = str(Measure.parse(measure))
    points = walk(space, method, trials=trials, seed=seed)  # a wrong method is refused before anything is asked
    tuning, rest, notes = parts_of(golden, held_out)
    start = _to_beat(space) if baseline is None else TrialPoint({}, baseline)
    bench = Bench(tuning, name, collection_for, scope, tuple(allow))
    first = bench.evaluate(start, tuning)
    if math.isnan(first.metrics[name]):
        raise CannotDecide(f"{name} is not defined for any of the {len(tuning.queries)} tuning queries; choose another measure")
    bench.k = first.setup.k
    if start.key != space.first().key:
        _check(space.first(), bench)
    bench.journal = TrialJournal(None if journal is None else journal / f"{bench.identity(first)}.jsonl", fresh=fresh)
    tried, impossible = _trials(points, bench, progress)
    ranked = sorted(tried, key=lambda trial: (-upside(name) * trial.value, trial.number))
    tests = sum(trial.point.key != start.key for trial in tried)
    made = outcome.on_tuning(first, ranked[0].per_query, ranked[0].value, name, tests=tests, alpha=alpha, seed=seed)
    reused = sum(trial.reused for trial in tried)
    found = Sweep(
        space, method, seed, name, bench.k, tuple(ranked), tuple(impossible), start, None, made, None, None, "baseline",
        f"none of {tests} trials beat the baseline on {made.n} tuning queries ({name} {made.baseline:.4f}); "
        "the held-out queries were not looked at",
        version_name(tuning), first.setup.corpus, bench.memory.asked, tuple(notes),
    )  # fmt: skip
    if upside(name) * made.diff > _SAME:
        found = _confirmed(found, first, bench, rest, look=partial(outcome.look, ledger, when=when, golden=rest), alpha=alpha)
    if reused:
        found = replace(
            found, notes=(*found.notes, f"{reused} of {len(tried)} trials were made before and were not made again")
        )
    return found


def _confirmed(
    found: Sweep, first: Evaluation, bench: Bench, rest: GoldenSet, *, look: Callable[[str], outcome.Looks], alpha: float
) -> Sweep:
    """Return a sweep with its best trial as the winner, and what the held-out queries say of it; ``look`` records the look."""
    winner, name, notes = found.trials[0], found.measure, list(found.notes)
    again = bench.evaluate(winner.point, bench.tuning)
    value = again.metrics[name]
    if abs(value - winner.value) > _SAME:
        notes.append(
            f"the best trial reached {winner.value:.6f}, asked again {value:.6f}: the search does not always answer alike"
        )
    made = replace(found.tuning, best=value, diff=value - found.tuning.baseline)
    found = replace(found, best=winner, tuning=made, outcome="not enough evidence")
    if made.undefined.unfair:  # whatever the held-out queries said, it could not be believed
        missing = made.undefined.sentence(name, "tuning")
        sentence = f"not confirmed: {missing}, so the best may only have left out the hard ones"
        notes += _comparable(found)
        return replace(found, sentence=f"{sentence}; the held-out queries were not looked at", notes=tuple(notes))
    within = f" within {bench.scope}" if bench.scope else ""
    looks = look(f"{name}{within} of {_written(winner.point)} against {_written(found.baseline)}")
    if looks.earlier:
        notes.append(
            f"{looks.earlier} of the {looks.count} looks at '{rest.id}' were at other versions of it; what was tried "
            "there counts on"
        )
    pair = bench.evaluate(found.baseline, rest), bench.evaluate(winner.point, rest)
    held_out = outcome.on_held_out(*pair, name, looks=looks, alpha=alpha, seed=found.seed)
    word, sentence = outcome.outcome_of(held_out, name, alpha=alpha)
    overfit = outcome.overfitting(outcome.gains(first, again, name), outcome.gains(*pair, name))
    return replace(found, held_out=held_out, overfitting=overfit, outcome=word, sentence=sentence, notes=tuple(notes))


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
    if not leaks:
        return tuning, rest, []
    note = f"{len(leaks)} held-out queries ask nearly what a tuning query asks, such as '{leaks[0].held_out}'"
    return tuning, rest, [note]


def _to_beat(space: Space) -> TrialPoint:
    """Return the first point of the space; raises InputError if a range begins it."""
    loose = next((one for one in space.parameters if isinstance(one, Range)), None)
    if loose is not None:
        # Its lower end is nobody's setting, and to beat that proves nothing.
        raise InputError(f"the range {loose} has no value to start from; name the retriever to beat with --baseline")
    return space.first()


def _check(point: TrialPoint, bench: Bench) -> None:
    """Raise what would keep a point of the space from being evaluated, before hours of trials."""
    try:
        canonical(point.retriever)
    except SpecError:
        return  # one combination that cannot be does not end a sweep; if all are so, the trials say it
    bench.evaluate(point, bench.tuning)


def _trials(points: Walk, bench: Bench, progress: Callable[[int], None] | None) -> tuple[list[Trial], list[Impossible]]:
    """Return what came of every point; raises the first objection if no point can be."""
    measure, up = Measure.parse(bench.measure), upside(bench.measure)
    tried: list[Trial] = []
    impossible: list[Impossible] = []
    problem: RingtrueError | None = None
    reached: float | None = None
    while (point := next_point(points, reached)) is not None:
        value = math.nan
        try:
            values, reused = bench.values(point)
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
        if progress is not None:
            progress(1)
        reached = None if math.isnan(value) else up * value
    if not tried:
        raise problem or CannotDecide(f"{impossible[0].reason}, nor at any other point; choose another measure")
    return tried, impossible


def _comparable(found: Sweep) -> list[str]:
    """Return which trial is best among those that leave no more queries undefined than the baseline, if one beats it."""
    missing, then, up = found.tuning.undefined.baseline, found.tuning.baseline, upside(found.measure)
    fair = (one for one in found.trials if outcome.undefined(one.per_query.values()) <= missing)
    best = next((one for one in fair if up * (one.value - then) > _SAME), None)
    if best is None:
        return []
    return [
        f"trial {best.number} leaves no more undefined than the baseline and reaches {best.value:.4f}: {_written(best.point)}"
    ]


def _written(point: TrialPoint) -> str:
    return point.retriever + (f" over {point.chunks}" if point.chunks else "")
