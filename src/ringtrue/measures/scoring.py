"""``score``: a run against judgments. The one place where undefined values meet a policy and become means.

What it gives back is a number per query and measure, their means, and an honest account of what was counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from ringtrue.brief import brief
from ringtrue.errors import CannotDecide, InputError, nearest
from ringtrue.measures import ranked
from ringtrue.measures.align import Aligned, Flags, align, class_names, merge_classes
from ringtrue.measures.definition import Measure
from ringtrue.measures.lists import Facts, JudgedAnswer
from ringtrue.records import Floats, GoldenSet, Qrels, Ranking, Run

Judgments = Qrels | GoldenSet | Mapping[str, Mapping[str, int]]
Answers = Run | Mapping[str, Mapping[str, float]] | Mapping[str, Sequence[str]] | Iterable[Ranking]
ZeroRelevant = Literal["exclude", "zero", "one"]
AverageOver = Literal["judged", "common"]
Unjudged = Literal["irrelevant", "bounds"]
_POLICIES: Mapping[str, tuple[str, ...]] = {
    "zero_relevant": get_args(ZeroRelevant), "average_over": get_args(AverageOver), "unjudged": get_args(Unjudged)
}  # fmt: skip
JUDGED = Measure("Judged", at=10)


def score(
    run: Answers,
    qrels: Judgments,
    measures: Iterable[str | Measure],
    *,
    rel: int | None = None,
    zero_relevant: ZeroRelevant = "exclude",
    average_over: AverageOver = "judged",
    unjudged: Unjudged = "irrelevant",
    depth: int | None = None,
    facts: Facts | None = None,
) -> Scores:
    """Return the measures of a run against judgments.

    >>> score({"q1": {"a": 2.0, "b": 1.0}}, {"q1": {"b": 1}}, ["RR", "nDCG@10"]).aggregate
    {'RR': 0.5, 'nDCG@10': 0.6309297535714575}

    ``rel`` is the lowest grade that counts as relevant: the golden set's own threshold when one is given, else 1.
    ``zero_relevant`` says what a query without a relevant document does to means that need one. ``average_over='common'``
    leaves out judged queries that the run lacks, as trec_eval does without ``-c``; otherwise they score 0. ``depth`` cuts
    every answer first. Raises SpecError for a measure, InputError for ids, grades or scores that cannot be used, and
    CannotDecide if run and judgments share no query.
    """
    wanted = parse_measures(measures)
    _check(depth=depth, rel=rel, zero_relevant=zero_relevant, average_over=average_over, unjudged=unjudged)
    answers, judgments = as_run(run), as_qrels(qrels)
    threshold = rel if rel is not None else qrels.relevance_threshold if isinstance(qrels, GoldenSet) else 1
    if threshold < 0:
        raise InputError(f"rel={threshold!r} would count documents that nobody judged; use a grade, 0 or more")
    known, strays, top_grade = facts or Facts(), 0, None
    if isinstance(qrels, GoldenSet):
        facts = facts or Facts.of(qrels)
        strays = _outside_scope(answers, qrels.scope, facts)
        known = facts.under_one_name(class_names(qrels.equivalence_classes))
        top_grade = qrels.scale[1]
        answers, judgments = merge_classes(answers, judgments, qrels.equivalence_classes)
    aligned = align(answers, judgments, depth=depth, cutoffs=_cutoffs(wanted, depth), top_grade=top_grade)
    chosen = aligned.answered if average_over == "common" else np.ones(len(aligned.query_ids), np.bool_)
    if not aligned.answered.any():  # an arm that did not run has no score; zeros would look like a bad one
        raise CannotDecide(
            f"run and judgments share no query (run: {_some(answers.query_ids)}; judged: {_some(judgments.query_ids)}); "
            "check that both use the same query ids"
        )

    lists = _answers(answers, judgments, depth) if any(measure.definition.lists for measure in wanted) else []
    no_relevant = aligned.relevant(threshold) == 0

    def row(measure: Measure, hits: Aligned, shown: list[JudgedAnswer]) -> Floats:
        values = _compute(measure, hits, threshold, shown, known)
        return _settle(measure, values, aligned, zero_relevant, no_relevant)[chosen]

    def best_case(measure: Measure) -> Floats:
        limit = min((cut for cut in (measure.at, depth) if isinstance(cut, int)), default=None)
        return row(measure, aligned.optimistic(limit), [answer.optimistic(limit, aligned.top_grade) for answer in lists])

    values = np.array([row(measure, aligned, lists) for measure in wanted])
    upper = np.array([best_case(measure) for measure in wanted]) if unjudged == "bounds" else None
    names = _names(aligned, chosen)
    return Scores(
        measures=tuple(wanted),
        query_ids=names,
        values=values,
        counted=Counted(
            queries=len(names),
            missing=_names(aligned, ~aligned.answered),
            without_relevant=_names(aligned, no_relevant & chosen),
            ignored_queries=aligned.ignored_queries,
            duplicates=aligned.duplicates,
            repeated_judgments=judgments.repeated,
            outside_scope=strays,
            tied_cutoffs=aligned.tied_cutoffs,
            zero_relevant=zero_relevant,
            average_over=average_over,
            rel=threshold,
            gain=tuple(f"{m}: {_GAIN[m.option('gain')]}" for m in wanted if "gain" in m.definition.options),
        ),
        judged=ranked.judged_share(aligned, k=10)[chosen],
        upper=upper,
        facts={} if facts is None else facts.queries,
    )


def parse_measures(measures: Iterable[str | Measure]) -> list[Measure]:
    """Return measures, each once; raises InputError for none, and SpecError for what is none."""
    if isinstance(measures, str | Measure) or not isinstance(measures, Iterable):
        raise InputError(f"measures={measures!r} is not a list; write it like ['nDCG@10', 'R@100']")
    wanted = list(dict.fromkeys(one if isinstance(one, Measure) else Measure.parse(one) for one in measures))
    if not wanted:
        raise InputError("no measure is asked for; name at least one, like nDCG@10")
    return wanted


def _check(*, depth: int | None, rel: int | None, **policies: str) -> None:
    for name, value in policies.items():
        if value not in _POLICIES[name]:
            raise InputError(f"{name}={value!r} is not known; use {nearest(str(value), _POLICIES[name])}")
    for name, number in (("depth", depth), ("rel", rel)):
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            raise InputError(f"{name}={number!r} is not a whole number; write one like {name}=2")
    if depth is not None and depth < 1:
        raise InputError(f"depth={depth!r} leaves nothing to score; use a whole number above 0")


def check_documents(run: Run, judgments: Judgments, scores: Scores) -> None:
    """Raise CannotDecide if no document of a scored run is judged for any query: its zeros say nothing about the search."""
    if scores.judged_share > 0:
        return
    known = set(as_qrels(judgments).doc_ids)
    if isinstance(judgments, GoldenSet):
        known |= {document.doc_id for document in judgments.documents}
    found = run.docs.take(np.arange(len(run.docs)))
    if found and known and known.isdisjoint(found):
        raise CannotDecide(
            f"no document of the run is judged for any query (run: {_some(found)}; judged: {_some(sorted(known))}); "
            "check that both use the same document ids"
        )


_GAIN = {"lin": "linear gain (the grade)", "exp": "exponential gain (2^grade − 1)"}


def _compute(measure: Measure, hits: Aligned, threshold: int, lists: list[JudgedAnswer], facts: Facts) -> Floats:
    """Call the measure's kernel with the options that it declares."""
    definition = measure.definition
    options: dict[str, Any] = {key: measure.option(key) for key in definition.options}
    if "rel" in options and definition.threshold and options["rel"] is None:
        options["rel"] = threshold
    if definition.cutoff in ("may", "must"):
        options["k"] = measure.at
    elif definition.cutoff == "level":
        options["level"] = measure.at
    if "max" in options:
        options["top"] = options.pop("max")
    if definition.lists:
        return np.asarray(definition.kernel(lists, facts, **options), np.float64)
    condense = options.pop("judged_only", False)
    values = definition.kernel(hits.condensed() if condense else hits, **options)
    return np.asarray(values, np.float64)


def _settle(measure: Measure, values: Floats, hits: Aligned, zero_relevant: str, no_relevant: Flags) -> Floats:
    """Settle what a kernel left open: queries with nothing to find, and judged queries that the run lacks."""
    if measure.definition.needs_relevant:
        zero = ranked.GEOMETRIC_FLOOR if measure.definition.average == "geometric" else 0.0
        fill = {"exclude": np.nan, "zero": zero, "one": 1.0}[zero_relevant]
        # A list measure may look at some of the relevant documents only (tiers=…): where it has none of those, but the
        # query has others, the policy for queries without relevant documents does not apply.
        return np.where(np.isnan(values) & (no_relevant | (not measure.definition.lists)), fill, values)
    if measure.name in ("SetP", "TierP"):
        # An answer that was never given is a failure; an empty answer was given, and has no precision.
        return np.where(np.isnan(values) & ~hits.answered, 0.0, values)
    if measure.definition.lower_is_better or measure.name == "Silent":
        # Here 0 is the best value, and a query that was never answered must not look like the best answer.
        return np.where(hits.answered, values, np.nan)
    return values


def _outside_scope(run: Run, scope: str | None, facts: Facts) -> int:
    """Return how many answers lie outside the scope of their query, in a set where each query has one."""
    if scope is None:
        return 0
    strays = 0
    for query_id, documents in run.rankings().items():
        wanted = facts.queries.get(query_id, {}).get(scope)
        known = (facts.documents[doc_id] for doc_id in documents if doc_id in facts.documents)
        strays += 0 if wanted is None else sum(metadata.get(scope) != wanted for metadata in known)
    return strays


def _cutoffs(measures: list[Measure], depth: int | None) -> tuple[int, ...]:
    """Return every rank at which an answer is cut, where a tie would let the document ids decide."""
    cutoffs = {measure.at for measure in measures if isinstance(measure.at, int)}
    if depth is not None:
        cutoffs = {cutoff for cutoff in cutoffs if cutoff < depth} | {depth}
    return tuple(sorted(cutoffs))


def _answers(run: Run, qrels: Qrels, depth: int | None) -> list[JudgedAnswer]:
    shown, chunks = run.rankings(k=depth), run.first_chunks
    return [JudgedAnswer(name, shown.get(name, []), grades, chunks.get(name)) for name, grades in qrels.to_dict().items()]


def _names(hits: Aligned, chosen: Any) -> tuple[str, ...]:
    return tuple(name for name, kept in zip(hits.query_ids, chosen.tolist(), strict=True) if kept)


def _some(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(names[:100]))
    return ", ".join(f"'{name}'" for name in names[:3]) + (" …" if len(names) > 3 else "") if names else "none"


def as_qrels(judgments: Judgments) -> Qrels:
    """Return judgments as a table, from a table, a golden set or ``{query: {document: grade}}``."""
    if isinstance(judgments, Qrels):
        return judgments
    if isinstance(judgments, GoldenSet | Mapping):
        return judgments.qrels if isinstance(judgments, GoldenSet) else Qrels.from_dict(judgments)
    kind = type(judgments).__name__
    raise InputError(f"judgments cannot be a {kind}; pass Qrels, a GoldenSet or {{query: {{document: grade}}}}")


def as_run(answers: Answers) -> Run:
    """Return answers as a run: scores are sorted, lists and Ranking records keep the order they were given in."""
    if isinstance(answers, Run):
        return answers
    if isinstance(answers, Mapping):
        kinds = {isinstance(value, Mapping) for value in answers.values()}
        if len(kinds) > 1:
            raise InputError("the run mixes {document: score} and [document, …] answers; use one of the two for all queries")
        build: Callable[[Any], Run] = Run.from_dict if kinds == {True} else Run.from_rankings
        return build(answers)
    if isinstance(answers, Iterable) and not isinstance(answers, str | bytes):
        rankings: list[Any] = list(answers)
        if all(isinstance(ranking, Ranking) for ranking in rankings):
            return Run.from_rankings(rankings)
        for row in rankings:
            if not isinstance(row, tuple | list) or len(row) != 3:
                raise InputError(f"{row!r:.60} is not a row of a run; write (query, document, score)")
        return Run.of(rankings)
    raise InputError(f"a run cannot be a {type(answers).__name__}; pass a Run, {{query: {{document: score}}}} or rankings")


# What comes back


@dataclass(frozen=True)
class Counted:
    """What went into the numbers and what did not; nothing is dropped without appearing here."""

    queries: int
    missing: tuple[str, ...] = ()
    """Judged queries that the run lacks; they score 0, or take no part if only common queries are averaged."""
    without_relevant: tuple[str, ...] = ()
    """Queries with no relevant document; what they do to a mean is ``zero_relevant``."""
    ignored_queries: int = 0
    """Queries of the run that nobody judged."""
    duplicates: int = 0
    """Repeated documents taken out of the run."""
    repeated_judgments: int = 0
    outside_scope: int = 0
    """Answers from outside the scope of their query, in a set that has scopes; they count like any other."""
    tied_cutoffs: tuple[tuple[int, int], ...] = ()
    """(cut-off, queries) where equal scores lie on both sides of a cut-off."""
    zero_relevant: str = "exclude"
    average_over: str = "judged"
    rel: int = 1
    gain: tuple[str, ...] = ()
    """The gain behind each nDCG and DCG asked for."""

    def notes(self) -> list[str]:
        """Return one plain sentence for everything a reader should know before trusting a mean."""
        notes = []
        if self.missing:
            shown = ", ".join(self.missing[:5]) + (" …" if len(self.missing) > 5 else "")
            count = f"{len(self.missing)} judged {'query is' if len(self.missing) == 1 else 'queries are'} missing from the run"
            if self.average_over == "common":
                them = "it" if len(self.missing) == 1 else "them"
                notes.append(f"{count}: {shown}; -c (average_over='judged' in Python) counts {them} as 0")
            else:
                fate = "scores 0" if len(self.missing) == 1 else "score 0"
                notes.append(f"{count} and {fate} (undefined if lower is better): {shown}")
        if self.without_relevant:
            fate = {"exclude": "left out of the means that need one", "zero": "scored 0", "one": "scored 1"}[self.zero_relevant]
            notes.append(f"{len(self.without_relevant)} queries have no relevant document (grade ≥ {self.rel}): {fate}")
        if self.ignored_queries:
            notes.append(f"{self.ignored_queries} queries of the run are not judged and were ignored")
        if self.duplicates:
            notes.append(f"{self.duplicates} repeated documents were removed from the run; each counts once, at its best rank")
        if self.repeated_judgments:
            notes.append(f"{self.repeated_judgments} judgments are repeated with the same grade and count once")
        if self.outside_scope:
            notes.append(f"{self.outside_scope} answers lie outside the scope of their query")
        for cutoff, queries in self.tied_cutoffs:
            notes.append(f"{queries} queries have equal scores on both sides of rank {cutoff}; the document id decides")
        return notes


@dataclass(frozen=True)
class Summary:
    """Mean, median and standard deviation of one measure over the queries where it is defined."""

    count: int
    mean: float
    median: float
    std: float


@dataclass(frozen=True, eq=False)
class Scores:
    """Values per measure and query; nan if a value is not defined, and never 0 in its place."""

    measures: tuple[Measure, ...]
    query_ids: tuple[str, ...]
    values: Floats
    counted: Counted
    judged: Floats
    """Judged@10 per query, always reported beside."""
    upper: Floats | None = None
    """With ``unjudged='bounds'``: the values if every unjudged document had the highest grade."""
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Query metadata, for slices."""

    def __repr__(self) -> str:
        return brief(self, queries=len(self.query_ids), aggregate=self.aggregate)

    def __getitem__(self, measure: str | Measure) -> float:
        """Return the mean of a measure: ``scores["nDCG@10"]``."""
        return self.aggregate[str(self._scored(measure))]

    @cached_property
    def aggregate(self) -> dict[str, float]:
        """Return ``{measure: mean}``; nan if no query has a defined value."""
        return {str(measure): average(measure, row) for measure, row in zip(self.measures, self.values, strict=True)}

    @cached_property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Return ``{measure: (low, high)}`` between "unjudged is irrelevant" and "unjudged is maximally relevant"."""
        if self.upper is None:
            raise InputError("bounds were not computed; call score(…, unjudged='bounds')")
        both = zip(self.measures, self.values, self.upper, strict=True)
        ends = {str(measure): sorted(average(measure, row) for row in rows) for measure, *rows in both}
        return {name: (low, high) for name, (low, high) in ends.items()}

    @cached_property
    def per_query(self) -> dict[str, dict[str, float]]:
        """Return ``{query: {measure: value}}``."""
        names = [str(measure) for measure in self.measures]
        rows = self.values.T.tolist()
        return {query_id: dict(zip(names, row, strict=True)) for query_id, row in zip(self.query_ids, rows, strict=True)}

    @property
    def judged_share(self) -> float:
        """Judged@10 over the queries that got an answer; nan when none did."""
        return average(JUDGED, self.judged)

    def of(self, measure: str | Measure) -> Floats:
        """Return the values of one measure, in the order of ``query_ids``."""
        row: Floats = self.values[self.measures.index(self._scored(measure))]
        return row

    def _scored(self, measure: str | Measure) -> Measure:
        wanted = measure if isinstance(measure, Measure) else Measure.parse(measure)
        if wanted not in self.measures:
            raise InputError(f"'{wanted}' was not scored; did you mean {nearest(str(wanted), map(str, self.measures))}?")
        return wanted

    def summary(self, measure: str | Measure) -> Summary:
        """Return mean, median and standard deviation of a measure."""
        return summarise(self._scored(measure), self.of(measure))

    def by(self, fact: str, measure: str | Measure) -> dict[str, Summary]:
        """Return a summary per slice: ``scores.by("query_type", "nDCG@10")``; a query may carry several values (tags)."""
        slices = members(self.facts, fact, self.query_ids)
        if set(slices) <= {NO_VALUE}:
            known = sorted({name for facts in self.facts.values() for name in facts})
            cure = f"did you mean {nearest(fact, known)}?" if known else "score against a golden set that declares it"
            raise InputError(f"no query has the field '{fact}'; {cure}")
        wanted, row = self._scored(measure), self.of(measure)
        place = {query_id: index for index, query_id in enumerate(self.query_ids)}
        return {value: summarise(wanted, row[[place[query] for query in queries]]) for value, queries in slices.items()}

    def worst(self, measure: str | Measure, *, count: int = 10) -> list[tuple[str, float]]:
        """Return the queries with the worst defined values, worst first: the lowest, or the highest where lower is better."""
        row = self.of(measure)
        badness = -row if self._scored(measure).definition.lower_is_better else row
        order = [index for index in np.argsort(badness, kind="stable").tolist() if not math.isnan(row[index])]
        return [(self.query_ids[index], float(row[index])) for index in order[:count]]


NO_VALUE = "(none)"
"""The slice of queries that do not have a field."""


def members(facts: Mapping[str, Mapping[str, Any]], field: str, queries: Iterable[str]) -> dict[str, list[str]]:
    """Return ``{value: queries}`` of one division, in order of the values; a query may carry several values (tags)."""
    found: dict[str, list[str]] = {}
    for query in queries:
        value = facts.get(query, {}).get(field)
        several = isinstance(value, list | tuple | set | frozenset)
        for one in (value or [None]) if several else [value]:
            found.setdefault(NO_VALUE if one is None else str(one), []).append(query)
    return dict(sorted(found.items()))


def average(measure: Measure, values: Floats) -> float:
    """Return the value a table shows for many queries: a mean, a geometric mean or, for counts, a sum."""
    defined = values[~np.isnan(values)]
    if measure.definition.average == "sum":
        return float(defined.sum())
    return _mean(measure, defined) if len(defined) else math.nan


def _mean(measure: Measure, defined: Floats) -> float:
    return math.exp(np.log(defined).mean()) if measure.definition.average == "geometric" else float(defined.mean())


def summarise(measure: Measure, values: Floats) -> Summary:
    """Return count, mean, median and sample standard deviation of the defined values."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return Summary(0, math.nan, math.nan, math.nan)
    std = float(defined.std(ddof=1)) if len(defined) > 1 else math.nan
    return Summary(len(defined), _mean(measure, defined), float(np.median(defined)), std)
