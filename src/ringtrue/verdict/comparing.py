"""Is B better than A? Two or more runs over the same queries → Comparison (C-1, C-2).

Every test is made on b − a as measured; where lower is better only the words are turned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from ringtrue.errors import CannotDecide, InputError, nearest
from ringtrue.measures import Measure, Scores, latency
from ringtrue.records import Floats
from ringtrue.run import Evaluation, Origin
from ringtrue.stats import PairedComparison, compare_paired, mean_interval
from ringtrue.stats.verdict import Correction
from ringtrue.verdict.reachable import with_measures
from ringtrue.verdict.records import Arm, Baseline, Comparison, LatencyComparison, MeasureComparison, Word
from ringtrue.verdict.slices import members
from ringtrue.verdict.wording import some, upside

PRIMARY = "nDCG@10"
SLICE_MINIMUM = 5
"""A value of a field with fewer queries is listed and not tested: four signs alone never reach 0.05."""
TURNED: Mapping[Word, Word] = {"better": "worse", "worse": "better", "not enough evidence": "not enough evidence"}


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores with a name, such as those of a run file: the simplest Arm."""

    name: str
    scores: Scores
    timings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    machine: str = ""
    golden: Origin | None = None


@dataclass(frozen=True)
class _Pair:
    """B beside A: what they share, and what each measure says about every shared query."""

    a: Arm
    b: Arm
    measures: tuple[str, ...]
    queries: tuple[str, ...]
    values: tuple[Floats, Floats]
    """Of A and of B: queries × measures, nan where a value is not defined."""

    @property
    def differences(self) -> Floats:
        return np.asarray(self.values[1] - self.values[0])


def compare(
    a: Arm,
    b: Arm,
    *,
    measures: Sequence[str] | None = None,
    primary: str | None = None,
    alpha: float = 0.05,
    correction: Correction | None = None,
    deciding: Sequence[str] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    slices: Sequence[str] = (),
    allow_different_sets: bool = False,
) -> Comparison:
    """Return whether B is better than A, over the queries that both scored.

    The measures are those that both have, unless named. The verdict is the word of ``primary`` (the first of the measures
    named, else nDCG@10 if it is compared). That measure decides alone, and the others are for reading; but several
    ``measures``, a ``correction`` or measures named in ``deciding`` all decide, corrected for one another (by Holm unless
    said otherwise). ``slices`` are fields of the queries, never part of the verdict. The same seed gives the same answer.

    Raises InputError if the two share no query or no measure or an option is unusable, and CannotDecide if they were scored
    on different golden sets, unless ``allow_different_sets``.
    """
    (only,) = compare_all(
        [a, b],
        measures=measures,
        primary=primary,
        alpha=alpha,
        correction=correction,
        deciding=deciding,
        resamples=resamples,
        seed=seed,
        slices=slices,
        allow_different_sets=allow_different_sets,
    )
    return only


def compare_all(
    arms: Sequence[Arm],
    *,
    measures: Sequence[str] | None = None,
    primary: str | None = None,
    alpha: float = 0.05,
    correction: Correction | None = None,
    deciding: Sequence[str] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    slices: Sequence[str] = (),
    allow_different_sets: bool = False,
) -> tuple[Comparison, ...]:
    """Return the comparison of every later arm with the first; the correction is over all systems and deciding measures.

    Options and errors are those of ``compare``; fewer than two arms are an InputError.
    """
    if len(arms) < 2:
        raise InputError(f"{len(arms)} run is nothing to compare; name two or more")
    if seed < 0:
        raise InputError(f"cannot use seed = {seed}: write a whole number from 0")
    pairs = [_pair(arms[0], other, measures) for other in arms[1:]]
    notes = [(*_set_notes(pair, allowed=allow_different_sets), *_notes(pair)) for pair in pairs]
    if primary is not None:
        primary = str(Measure.parse(primary))
    chosen = [_primary(pair, primary, measures) for pair in pairs]
    asked = [_deciding(pair, main, measures, correction, deciding) for pair, main in zip(pairs, chosen, strict=True)]
    how = _Tests(alpha, correction or "holm", resamples)
    everything = how.run(
        _side_by_side(pairs),
        [(name, name in said) for pair, said in zip(pairs, asked, strict=True) for name in pair.measures],
        rng=np.random.default_rng(seed),
    )
    found, start = [], 0
    for place, pair in enumerate(pairs):
        columns = range(start, start := start + len(pair.measures))
        judged = {
            name: _judged(pair, name, everything, column, decides=name in asked[place])
            for name, column in zip(pair.measures, columns, strict=True)
        }
        main = judged[chosen[place]]
        fields = {}
        for at, name in enumerate(slices):
            rng = np.random.default_rng([seed, 1, place, at])
            fields[name] = _sliced(pair, name, asked[place], how, rng=rng)
        latencies, told = _latency(pair, np.random.default_rng([seed, 2, place]), alpha=alpha, resamples=resamples)
        scored = [set(side.scores.query_ids) for side in (pair.a, pair.b)]
        found.append(
            Comparison(
                a=pair.a.name,
                b=pair.b.name,
                primary=main.measure,
                verdict=main.word,
                reason=main.reason,
                measures=judged,
                slices=fields,
                latency=latencies,
                only_a=tuple(query for query in pair.a.scores.query_ids if query not in scored[1]),
                only_b=tuple(query for query in pair.b.scores.query_ids if query not in scored[0]),
                alpha=alpha,
                correction=how.correction,
                resamples=resamples,
                seed=seed,
                notes=(*notes[place], *told),
            )
        )
    return tuple(found)


# ── what is compared ────────────────────────────────────────────────────────────────────────────────────────────────


def _pair(a: Arm, b: Arm, wanted: Sequence[str] | None) -> _Pair:
    """Return what both have; a query or a measure that one lacks takes no part, and never counts as 0 (trap 6)."""
    if wanted is not None:
        names = tuple(dict.fromkeys(str(Measure.parse(name)) for name in wanted))
        if not names:
            raise InputError("no measure is named; name at least one, like nDCG@10, or none at all for those both runs have")
        _check_averaged(names)
        a, b = _with(a, names), _with(b, names)
    else:
        there = set(b.scores.measures)
        names = tuple(str(one) for one in a.scores.measures if one in there and one.definition.average == "mean")
        if not names:
            has = " and ".join(f"{side.name} has {some([str(one) for one in side.scores.measures])}" for side in (a, b))
            raise InputError(f"the two runs share no measure that can be compared ({has}); score both with the same ones")
    place = {query: index for index, query in enumerate(b.scores.query_ids)}
    # Resampling draws by row: sorted, the same two runs give the same numbers whatever the order of their queries.
    shared = tuple(sorted(query for query in a.scores.query_ids if query in place))
    if not shared:
        ids = " and ".join(f"{side.name} has {some(list(side.scores.query_ids), count=2)}" for side in (a, b))
        raise InputError(f"the two runs share no scored query ({ids}); check that both use the same query ids")
    here = {query: index for index, query in enumerate(a.scores.query_ids)}
    values = (_table(a.scores, names, [here[query] for query in shared]), _table(b.scores, names, [place[q] for q in shared]))
    return _Pair(a, b, names, shared, values)


def _check_averaged(names: Sequence[str]) -> None:
    for name in names:
        average = Measure.parse(name).definition.average
        if average != "mean":
            how, instead = ("a geometric mean", "AP") if average == "geometric" else ("a sum", "R@10 or another mean")
            raise InputError(f"'{name}' is {how} over all queries, which has no difference per query; compare {instead}")


def _with(arm: Arm, names: Sequence[str]) -> Arm:
    """Return the arm with these measures; an evaluation can compute what it did not score from its answers."""
    problems: dict[str, str] = {}
    if isinstance(arm, Evaluation):
        arm, problems = with_measures(arm, names)
    scored = [str(measure) for measure in arm.scores.measures]
    for name in names:
        if name in problems:
            raise CannotDecide(f"{arm.name}: {problems[name]}")
        if name not in scored:
            raise InputError(f"{arm.name}: '{name}' was not scored; did you mean {nearest(name, scored)}?")
    return arm


def _table(scores: Scores, names: Sequence[str], rows: Sequence[int]) -> Floats:
    return np.stack([scores.of(name)[rows] for name in names], axis=1)


def _side_by_side(pairs: Sequence[_Pair]) -> Floats:
    """Return the differences of all systems and measures as one table; a query that a system lacks has none there."""
    everyone = sorted({query for pair in pairs for query in pair.queries})
    row = {query: index for index, query in enumerate(everyone)}
    parts = []
    for pair in pairs:
        part = np.full((len(everyone), len(pair.measures)), np.nan)
        part[[row[query] for query in pair.queries]] = pair.differences
        parts.append(part)
    return np.hstack(parts)


def _primary(pair: _Pair, wanted: str | None, named: Sequence[str] | None) -> str:
    if wanted is None:
        return PRIMARY if PRIMARY in pair.measures and named is None else pair.measures[0]
    if wanted not in pair.measures:
        raise InputError(f"primary measure '{wanted}' is not compared; did you mean {nearest(wanted, pair.measures)}?")
    return wanted


def _deciding(
    pair: _Pair, primary: str, named: Sequence[str] | None, correction: Correction | None, deciding: Sequence[str] | None
) -> frozenset[str]:
    """Return the measures that decide: those that were asked to, else the primary one alone."""
    if deciding is not None:
        return frozenset(str(Measure.parse(name)) for name in deciding) & frozenset(pair.measures)
    return frozenset(pair.measures) if named is not None or correction is not None else frozenset((primary,))


def _origin(arm: Arm) -> Origin | None:
    if isinstance(arm, Evaluation):
        return arm.setup.golden
    return arm.golden if isinstance(arm, Baseline | Scored) else None


def _set_notes(pair: _Pair, *, allowed: bool) -> Iterator[str]:
    """Yield what to know about the golden sets; raises CannotDecide where they differ: other judgments are other measures."""
    origins = [_origin(pair.a), _origin(pair.b)]
    known = [origin for origin in origins if origin is not None and origin.content_hash]
    if len({origin.content_hash for origin in known}) > 1:
        names = [f"{arm.name} on {origin.version}" for arm, origin in zip((pair.a, pair.b), known, strict=True)]
        sets = " and ".join(names if known[0].version != known[1].version else [*names[:1], f"{names[1]} with other content"])
        if not allowed:
            raise CannotDecide(
                f"the runs were scored on different golden sets ({sets}), so that a difference may come from the judgments; "
                "evaluate both on the same set, or allow it (--allow-different-sets, allow_different_sets=True)"
            )
        yield f"the runs were scored on different golden sets ({sets}): a difference may come from the judgments"
    unsure = next((origin for origin in known if origin.unreviewed), None)
    if unsure is not None:
        yield f"the golden set {'is' if unsure.provisional else 'has'} {unsure.reviewed}"


def _notes(pair: _Pair) -> Iterator[str]:
    for here, there in ((pair.a, pair.b), (pair.b, pair.a)):
        other = set(there.scores.query_ids)
        only = [query for query in here.scores.query_ids if query not in other]
        if only:
            yield f"{len(only)} queries have a score in {here.name} only and take no part: {some(only)}"
    depths = {arm.setup.k for arm in (pair.a, pair.b) if isinstance(arm, Evaluation)}
    uncut = [name for name in pair.measures if Measure.parse(name).at is None]
    if len(depths) > 1 and uncut:
        asked = " and ".join(map(str, sorted(depths)))
        yield f"the two were asked for {asked} hits, and {some(uncut)} look down to the last: evaluate both with the same -k"
    corpora = [
        arm.setup.corpus if isinstance(arm, Evaluation) else arm.corpus if isinstance(arm, Baseline) else None
        for arm in (pair.a, pair.b)
    ]
    if None not in corpora and corpora[0] != corpora[1]:
        yield "the two searched different documents: a difference may come from these"


# ── what is said ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Tests:
    """How every column is tested."""

    alpha: float
    correction: Correction
    resamples: int

    def run(self, table: Floats, columns: Sequence[tuple[str, bool]], *, rng: np.random.Generator) -> PairedComparison:
        """Return the tests of a table whose columns are (measure, whether it decides), for every system or slice.

        All measures that decide are corrected together; each of the others alone, as nothing rests on it.
        """
        families = {name: place for place, name in enumerate(dict.fromkeys(name for name, _ in columns), 1)}
        # Two shares cannot lie further apart than 1, whatever an interval that knows no bounds says.
        return compare_paired(
            table,
            rng=rng,
            alpha=self.alpha,
            correction=self.correction,
            resamples=self.resamples,
            families=[0 if decides else families[name] for name, decides in columns],
            widest=[1.0 if Measure.parse(name).definition.bounded else math.inf for name, _ in columns],
        )


def _judged(pair: _Pair, name: str, everything: PairedComparison, column: int, *, decides: bool) -> MeasureComparison:
    verdict, effect = everything.verdicts[column], everything.effect
    place = pair.measures.index(name)
    up = upside(name) > 0
    chance = float(everything.posterior.better[column])
    wins, losses = int(effect.wins[column]), int(effect.losses[column])
    return replace(
        _described(pair, name, range(len(pair.queries))),
        n=verdict.n,
        low=verdict.low,
        high=verdict.high,
        p=verdict.p,
        p_adjusted=verdict.adjusted_p,
        t=float(everything.t.t[column]),
        t_p=float(everything.t.p[column]),
        wilcoxon_p=float(everything.wilcoxon.p[column]),
        effect=float(effect.dz[column]),
        prob_better=chance if up else 1 - chance,
        wins=wins if up else losses,
        ties=int(effect.ties[column]),
        losses=losses if up else wins,
        word=verdict.word if up else TURNED[verdict.word],
        reason=verdict.reason,
        detectable=verdict.detectable,
        more_queries=verdict.more_queries,
        warnings=(*verdict.warnings, *_left_out(pair, place)),
        interval_p=verdict.interval_p,
        bca=(float(everything.bca.low[column]), float(everything.bca.high[column])),
        decides=decides,
        tests=verdict.tests,
        level=verdict.level,
    )


def _left_out(pair: _Pair, place: int) -> Iterator[str]:
    undefined = int(np.isnan(pair.differences[:, place]).sum())
    if undefined:
        yield f"{undefined} of {len(pair.queries)} shared queries have no value on both sides and were left out"


def _described(pair: _Pair, name: str, rows: Sequence[int]) -> MeasureComparison:
    """Return what can be said of one measure on some of the queries without any test."""
    place = pair.measures.index(name)
    chosen = list(rows)
    then, now = (side[chosen, place] for side in pair.values)
    both = ~(np.isnan(then) | np.isnan(now))
    gaps = now - then
    n = int(both.sum())
    a, b = (float(side[both].mean()) if n else math.nan for side in (then, now))
    gains = upside(name) * gaps[both]
    wins, losses = int((gains > 1e-9).sum()), int((gains < -1e-9).sum())
    return MeasureComparison(
        measure=name,
        n=n,
        a=a,
        b=b,
        diff=float(gaps[both].mean()) if n else math.nan,
        low=math.nan,
        high=math.nan,
        p=math.nan,
        p_adjusted=math.nan,
        t=math.nan,
        t_p=math.nan,
        wilcoxon_p=math.nan,
        effect=math.nan,
        prob_better=math.nan,
        wins=wins,
        ties=n - wins - losses,
        losses=losses,
        word="not enough evidence",
        reason=f"not tested: {n} queries, at least {SLICE_MINIMUM} are needed",
        detectable=math.nan,
        more_queries=None,
        deltas={pair.queries[row]: float(gap) for row, gap, here in zip(chosen, gaps, both, strict=True) if here},
    )


def _sliced(
    pair: _Pair, name: str, deciding: frozenset[str], how: _Tests, *, rng: np.random.Generator
) -> dict[str, dict[str, MeasureComparison]]:
    """Return the comparison per value of a field and measure, corrected within the field; empty if no query has it."""
    facts = {query: {**pair.a.scores.facts.get(query, {}), **pair.b.scores.facts.get(query, {})} for query in pair.queries}
    if not any(fact.get(name) is not None for fact in facts.values()):
        return {}
    row = {query: index for index, query in enumerate(pair.queries)}
    groups = {value: [row[query] for query in queries] for value, queries in members(facts, name, pair.queries).items()}
    tested = [value for value, rows in groups.items() if len(rows) >= SLICE_MINIMUM]
    found = {
        value: {one: replace(_described(pair, one, rows), decides=one in deciding) for one in pair.measures}
        for value, rows in groups.items()
    }
    if not tested:
        return found
    table = np.full((len(pair.queries), len(tested) * len(pair.measures)), np.nan)
    for place, value in enumerate(tested):
        start = place * len(pair.measures)
        table[groups[value], start : start + len(pair.measures)] = pair.differences[groups[value]]
    # So many that the adjusted p of every value could fall below alpha.
    enough = replace(how, resamples=max(how.resamples, math.ceil(2 * table.shape[1] / how.alpha)))
    everything = enough.run(table, [(one, one in deciding) for _ in tested for one in pair.measures], rng=rng)
    for place, value in enumerate(tested):
        part = replace(
            pair,
            queries=tuple(pair.queries[index] for index in groups[value]),
            values=(pair.values[0][groups[value]], pair.values[1][groups[value]]),
        )
        start = place * len(pair.measures)
        found[value] = {
            one: _judged(part, one, everything, start + at, decides=one in deciding) for at, one in enumerate(pair.measures)
        }
    return found


def _latency(
    pair: _Pair, rng: np.random.Generator, *, alpha: float, resamples: int
) -> tuple[LatencyComparison | None, tuple[str, ...]]:
    """Return the milliseconds of both over the same queries, and what to know about them; None where none were measured."""
    sides = (pair.a.timings, pair.b.timings)
    timed = [query for query in pair.queries if all(query in side for side in sides)]
    if not timed:
        return None, ()
    before, after = (np.array([np.mean(side[query]) for query in timed]) for side in sides)
    interval = mean_interval(after - before, rng=rng, alpha=alpha, resamples=resamples)
    then, now = (latency(chain.from_iterable(side[query] for query in timed)) for side in sides)
    machines = [arm.setup.machine if isinstance(arm, Evaluation) else getattr(arm, "machine", "") for arm in (pair.a, pair.b)]
    comparable = bool(machines[0]) and machines[0] == machines[1]
    notes = []
    if not comparable:
        named = " and ".join(machine or "an unknown machine" for machine in machines)
        notes.append(f"latencies were measured on {named}: they are informational only")
    workers = [arm.setup.workers for arm in (pair.a, pair.b) if isinstance(arm, Evaluation)]
    if len(set(workers)) > 1:
        notes.append(f"latencies were measured with {workers[0]} and {workers[1]} questions at once")
    found = LatencyComparison(
        n=len(timed),
        mean_diff=float(interval.mean[0]),
        low=float(interval.low[0]),
        high=float(interval.high[0]),
        p50=(then.p50, now.p50),
        p95=(then.p95, now.p95),
        p99=(then.p99, now.p99),
        comparable=comparable,
    )
    return found, tuple(notes)
