"""Is B better than A? Two or more runs over the same queries → Comparison.

Every test is made on b − a as measured; if lower is better only the words are turned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from ringtrue.errors import CannotDecide, InputError, nearest
from ringtrue.measures import Measure, Scores, latency, members
from ringtrue.records import Floats
from ringtrue.run import Evaluation, Origin, Setup
from ringtrue.stats import Correction, PairedVerdict, Word, compare_paired, mean_interval
from ringtrue.verdict.numbers import some, upside, values_of, with_measures
from ringtrue.verdict.records import Baseline, Comparison, LatencyComparison, MeasureComparison

PRIMARY = "nDCG@10"
SLICE_MINIMUM = 5
"""A value of a field with fewer queries is listed and not tested: four signs alone never reach 0.05."""
TURNED: Mapping[Word, Word] = {"better": "worse", "worse": "better", "not enough evidence": "not enough evidence"}


@dataclass(frozen=True, eq=False)
class ScoredRun:
    """Scores with a name, such as those of a run file: the simplest Arm."""

    name: str
    scores: Scores
    timings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    machine: str = ""
    golden: Origin | None = None


Arm = Evaluation | Baseline | ScoredRun
"""One side of a comparison."""


@dataclass(frozen=True)
class ComparisonOptions:
    """What is compared and how it is tested; the options of ``compare``."""

    measures: Sequence[str] | None = None
    primary: str | None = None
    alpha: float = 0.05
    correction: Correction | None = None
    deciding: Sequence[str] | None = None
    resamples: int = 10_000
    seed: int = 0
    slices: Sequence[str] = ()
    allow_different_sets: bool = False


@dataclass(frozen=True)
class _Pair:
    """B beside A: what they share, and what each measure says about every shared query."""

    a: Arm
    b: Arm
    measures: tuple[str, ...]
    deciding: frozenset[str]
    queries: tuple[str, ...]
    values: tuple[Floats, Floats]
    """Of A and of B: queries × measures, nan if a value is not defined."""

    def part(self, rows: Sequence[int]) -> _Pair:
        """Return the pair over some of its queries."""
        chosen = list(rows)
        values = self.values[0][chosen], self.values[1][chosen]
        return replace(self, queries=tuple(self.queries[row] for row in chosen), values=values)


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

    Raises InputError if the two share no measure or an option is unusable, and CannotDecide if they share no query or were
    scored on different golden sets, unless ``allow_different_sets``.
    """
    options = ComparisonOptions(
        measures, primary, alpha, correction, deciding, resamples, seed, slices, allow_different_sets
    )  # fmt: skip
    return compare_all([a, b], options)[0]


def compare_all(arms: Sequence[Arm], options: ComparisonOptions) -> tuple[Comparison, ...]:
    """Return the comparison of every later arm with the first; the correction is over all systems and deciding measures.

    Options and errors are those of ``compare``; fewer than two arms are an InputError.
    """
    if len(arms) < 2:
        raise InputError(f"{len(arms)} run cannot be compared; name two or more")
    if options.seed < 0:
        raise InputError(f"cannot use seed = {options.seed}: write a whole number from 0")
    primaries, pairs = zip(*(_pair(arms[0], other, options) for other in arms[1:]), strict=True)
    notes = [(*_set_notes(pair, allowed=options.allow_different_sets), *_notes(pair)) for pair in pairs]
    verdicts = iter(_tested(pairs, options, np.random.default_rng(options.seed)))
    found = []
    for place, pair in enumerate(pairs):
        judged = {name: _judged(pair, name, next(verdicts)) for name in pair.measures}
        fields = {
            name: _sliced(pair, name, options, rng=np.random.default_rng([options.seed, 1, place, at]))
            for at, name in enumerate(options.slices)
        }
        latencies, remarks = _latency(pair, options, rng=np.random.default_rng([options.seed, 2, place]))
        a, b = set(pair.a.scores.query_ids), set(pair.b.scores.query_ids)
        found.append(
            Comparison(
                a=pair.a.name,
                b=pair.b.name,
                primary=primaries[place],
                verdict=judged[primaries[place]].word,
                reason=judged[primaries[place]].reason,
                measures=judged,
                slices=fields,
                latency=latencies,
                only_a=tuple(query for query in pair.a.scores.query_ids if query not in b),
                only_b=tuple(query for query in pair.b.scores.query_ids if query not in a),
                alpha=options.alpha,
                correction=options.correction or "holm",
                resamples=options.resamples,
                seed=options.seed,
                notes=(*notes[place], *remarks),
            )
        )
    return tuple(found)


# ── what is compared ────────────────────────────────────────────────────────────────────────────────────────────────


def _pair(a: Arm, b: Arm, options: ComparisonOptions) -> tuple[str, _Pair]:
    """Return the primary measure and what both have; a query or measure that one lacks takes no part, and never counts as 0."""
    if options.measures is not None:
        names = tuple(dict.fromkeys(str(Measure.parse(name)) for name in options.measures))
        if not names:
            raise InputError("no measure is named; name at least one, like nDCG@10, or none at all for those both runs have")
        for name in names:
            average = Measure.parse(name).definition.average
            if average != "mean":
                how, instead = ("a geometric mean", "AP") if average == "geometric" else ("a sum", "R@10 or another mean")
                raise InputError(f"'{name}' is {how} over all queries, which has no difference per query; compare {instead}")
        a, b = _with(a, names), _with(b, names)
    else:
        there = set(b.scores.measures)
        names = tuple(str(one) for one in a.scores.measures if one in there and one.definition.average == "mean")
        if not names:
            has = " and ".join(f"{side.name} has {some([str(one) for one in side.scores.measures])}" for side in (a, b))
            raise InputError(f"the two runs share no measure that can be compared ({has}); score both with the same ones")
    # Resampling draws by row: sorted, the same two runs give the same numbers whatever the order of their queries.
    shared = tuple(sorted(set(a.scores.query_ids) & set(b.scores.query_ids)))
    if not shared:
        ids = " and ".join(f"{side.name} has {some(list(side.scores.query_ids), count=2)}" for side in (a, b))
        raise CannotDecide(f"the two runs share no scored query ({ids}); check that both use the same query ids")
    primary = PRIMARY if PRIMARY in names and options.measures is None else names[0]
    if options.primary is not None:
        primary = str(Measure.parse(options.primary))
        if primary not in names:
            raise InputError(f"primary measure '{primary}' is not compared; did you mean {nearest(primary, names)}?")
    if options.deciding is not None:
        deciding = frozenset(str(Measure.parse(name)) for name in options.deciding) & frozenset(names)
    else:
        several = options.measures is not None or options.correction is not None
        deciding = frozenset(names if several else (primary,))
    then, now = (np.stack([values_of(side.scores, name, shared) for name in names], axis=1) for side in (a, b))
    return primary, _Pair(a, b, names, deciding, shared, (then, now))


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


def _setup(arm: Arm) -> Setup | Baseline | ScoredRun:
    """Return what knows golden set, documents, machine and depth of an arm."""
    return arm.setup if isinstance(arm, Evaluation) else arm


def _set_notes(pair: _Pair, *, allowed: bool) -> Iterator[str]:
    """Yield what to know about the golden sets; raises CannotDecide if they differ: other judgments are other measures."""
    origins = [_setup(arm).golden for arm in (pair.a, pair.b)]
    known: list[Origin] = [origin for origin in origins if origin is not None and origin.content_hash]
    if len({origin.content_hash for origin in known}) > 1:
        names = [f"{arm.name} on {origin.version}" for arm, origin in zip((pair.a, pair.b), known, strict=True)]
        sets = " and ".join(names if known[0].version != known[1].version else [*names[:1], f"{names[1]} with other content"])
        if not allowed:
            raise CannotDecide(
                f"the runs were scored on different golden sets ({sets}), so a difference may come from the judgments; "
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
    setups = [_setup(arm) for arm in (pair.a, pair.b)]
    depths = sorted({setup.k for setup in setups if isinstance(setup, Setup)})
    uncut = [name for name in pair.measures if Measure.parse(name).at is None]
    if len(depths) > 1 and uncut:
        asked = f"{depths[0]} and {depths[1]} hits"
        yield f"the two were asked for {asked}, and {some(uncut)} have no cut-off: evaluate both with the same -k"
    corpora = [getattr(setup, "corpus", None) for setup in setups]
    if None not in corpora and corpora[0] != corpora[1]:
        yield "the two searched different documents: a difference may come from these"


# ── what the tests say ──────────────────────────────────────────────────────────────────────────────────────────────


def _tested(pairs: Sequence[_Pair], options: ComparisonOptions, rng: np.random.Generator) -> tuple[PairedVerdict, ...]:
    """Return the tests of the differences of every pair, a system or a slice each, by every measure.

    All measures that decide are corrected together; each of the others alone, as nothing rests on it.
    """
    # One table of all pairs and measures; a query that a pair lacks has no difference there.
    row = {query: index for index, query in enumerate(sorted({query for pair in pairs for query in pair.queries}))}
    tables = []
    for pair in pairs:
        tables.append(np.full((len(row), len(pair.measures)), np.nan))
        tables[-1][[row[query] for query in pair.queries]] = pair.values[1] - pair.values[0]
    columns = [(name, name in pair.deciding) for pair in pairs for name in pair.measures]
    families = {name: place for place, name in enumerate(dict.fromkeys(name for name, _ in columns), 1)}
    return compare_paired(
        np.hstack(tables),
        rng=rng,
        alpha=options.alpha,
        correction=options.correction or "holm",
        resamples=options.resamples,
        families=[0 if decides else families[name] for name, decides in columns],
        # Two shares cannot lie further apart than 1, whatever an interval that knows no bounds says.
        widest=[1.0 if Measure.parse(name).definition.bounded else math.inf for name, _ in columns],
    )


def _judged(pair: _Pair, name: str, verdict: PairedVerdict) -> MeasureComparison:
    """Return one measure with what its test says, its words turned if lower is better."""
    if upside(name) < 0:
        wins, losses, word = verdict.losses, verdict.wins, TURNED[verdict.word]
        verdict = replace(verdict, wins=wins, losses=losses, word=word, prob_better=1 - verdict.prob_better)
    seen = _described(pair, name)
    undefined = len(pair.queries) - seen.n
    left_out = f"{undefined} of {len(pair.queries)} shared queries have no value on both sides and were left out"
    warnings = (*verdict.warnings, *([left_out] if undefined else []))
    return replace(seen, **{**vars(verdict), "diff": seen.diff, "warnings": warnings})


def _described(pair: _Pair, name: str) -> MeasureComparison:
    """Return what can be said of one measure without any test."""
    then, now = (side[:, pair.measures.index(name)] for side in pair.values)
    both = ~(np.isnan(then) | np.isnan(now))
    gaps = now - then
    n = int(both.sum())
    a, b, diff = (float(values[both].mean()) if n else math.nan for values in (then, now, gaps))
    gains = upside(name) * gaps[both]
    wins, losses = int((gains > 1e-9).sum()), int((gains < -1e-9).sum())
    return MeasureComparison(
        measure=name,
        n=n,
        a=a,
        b=b,
        diff=diff,
        wins=wins,
        ties=n - wins - losses,
        losses=losses,
        reason=f"not tested: {n} queries, at least {SLICE_MINIMUM} are needed",
        decides=name in pair.deciding,
        deltas={query: float(gap) for query, gap, here in zip(pair.queries, gaps, both, strict=True) if here},
    )


def _sliced(
    pair: _Pair, name: str, options: ComparisonOptions, *, rng: np.random.Generator
) -> dict[str, dict[str, MeasureComparison]]:
    """Return the comparison per value of a field and measure, corrected within the field; empty if no query has it."""
    facts = {query: {**pair.a.scores.facts.get(query, {}), **pair.b.scores.facts.get(query, {})} for query in pair.queries}
    if not any(fact.get(name) is not None for fact in facts.values()):
        return {}
    row = {query: index for index, query in enumerate(pair.queries)}
    groups = {value: [row[query] for query in queries] for value, queries in members(facts, name, pair.queries).items()}
    parts = {value: pair.part(rows) for value, rows in groups.items()}
    found = {value: {one: _described(part, one) for one in pair.measures} for value, part in parts.items()}
    tested = [value for value, rows in groups.items() if len(rows) >= SLICE_MINIMUM]
    if not tested:
        return found
    # So many that the adjusted p of every value could fall below alpha.
    enough = max(options.resamples, math.ceil(2 * len(tested) * len(pair.measures) / options.alpha))
    verdicts = iter(_tested([parts[value] for value in tested], replace(options, resamples=enough), rng))
    return found | {value: {one: _judged(parts[value], one, next(verdicts)) for one in pair.measures} for value in tested}


def _latency(
    pair: _Pair, options: ComparisonOptions, *, rng: np.random.Generator
) -> tuple[LatencyComparison | None, tuple[str, ...]]:
    """Return the milliseconds of both over the same queries, and what to know about them; None if none were measured."""
    sides = (pair.a.timings, pair.b.timings)
    timed = [query for query in pair.queries if all(query in side for side in sides)]
    if not timed:
        return None, ()
    before, after = (np.array([np.mean(side[query]) for query in timed]) for side in sides)
    interval = mean_interval(after - before, rng=rng, alpha=options.alpha, resamples=options.resamples)
    then, now = (latency(chain.from_iterable(side[query] for query in timed)) for side in sides)
    setups = [_setup(arm) for arm in (pair.a, pair.b)]
    machines = [setup.machine for setup in setups]
    comparable = bool(machines[0]) and machines[0] == machines[1]
    named = " and ".join(machine or "an unknown machine" for machine in machines)
    notes = [] if comparable else [f"latencies were measured on {named}: they are informational only"]
    workers = [setup.workers for setup in setups if hasattr(setup, "workers")]
    if len(set(workers)) > 1:
        notes.append(f"latencies were measured with {workers[0]} and {workers[1]} concurrent queries")
    ends = float(interval.mean[0]), float(interval.low[0]), float(interval.high[0])
    p50, p95, p99 = ((getattr(then, name), getattr(now, name)) for name in ("p50", "p95", "p99"))
    return LatencyComparison(len(timed), *ends, p50, p95, p99, comparable), tuple(notes)
