"""What scoring gives back: a number per query and measure, their means, and an honest account of what was counted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ringtrue.brief import brief
from ringtrue.errors import InputError, nearest
from ringtrue.measures.definition import Measure
from ringtrue.records import Floats

JUDGED = Measure("Judged", at=10)


@dataclass(frozen=True)
class Counted:
    """What went into the numbers and what did not; nothing is dropped without appearing here (M-3)."""

    queries: int
    missing: tuple[str, ...] = ()
    """Judged queries that the run lacks; they score 0."""
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
            fate = "score 0 (undefined where lower is better)"
            notes.append(f"{len(self.missing)} judged queries are missing from the run and {fate}: {shown}")
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
    """Values per measure and query; nan where a value is not defined, and never 0 in its place."""

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
        """Return ``{measure: mean}``; nan where no query has a defined value."""
        return {str(measure): average(measure, row) for measure, row in zip(self.measures, self.values, strict=True)}

    @cached_property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Return ``{measure: (low, high)}`` between "unjudged is irrelevant" and "unjudged is maximally relevant"."""
        if self.upper is None:
            raise InputError("bounds were not computed; call score(…, unjudged='bounds')")
        both = zip(self.measures, self.values, self.upper, strict=True)
        return {str(m): _ordered(average(m, low), average(m, high)) for m, low, high in both}

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
        members: dict[str, list[int]] = {}
        for index, query_id in enumerate(self.query_ids):
            value = self.facts.get(query_id, {}).get(fact)
            for one in (value or [None]) if isinstance(value, list | tuple | set | frozenset) else [value]:
                members.setdefault("(none)" if one is None else str(one), []).append(index)
        if set(members) <= {"(none)"}:
            known = sorted({name for facts in self.facts.values() for name in facts})
            cure = f"did you mean {nearest(fact, known)}?" if known else "score against a golden set that declares it"
            raise InputError(f"no query has the field '{fact}'; {cure}")
        wanted, row = self._scored(measure), self.of(measure)
        return {value: summarise(wanted, row[indices]) for value, indices in sorted(members.items())}

    def worst(self, measure: str | Measure, *, count: int = 10) -> list[tuple[str, float]]:
        """Return the queries with the worst defined values, worst first: the lowest, or the highest where lower is better."""
        row = self.of(measure)
        badness = -row if self._scored(measure).definition.lower_is_better else row
        order = [index for index in np.argsort(badness, kind="stable").tolist() if not math.isnan(row[index])]
        return [(self.query_ids[index], float(row[index])) for index in order[:count]]


def average(measure: Measure, values: Floats) -> float:
    """Return the value a table shows for many queries: a mean, a geometric mean or, for counts, a sum."""
    defined = values[~np.isnan(values)]
    if measure.definition.average == "sum":
        return float(defined.sum())
    if not len(defined):
        return math.nan
    return _mean(measure, defined)


def _mean(measure: Measure, defined: Floats) -> float:
    return math.exp(np.log(defined).mean()) if measure.definition.average == "geometric" else float(defined.mean())


def summarise(measure: Measure, values: Floats) -> Summary:
    """Return count, mean, median and sample standard deviation of the defined values."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return Summary(0, math.nan, math.nan, math.nan)
    std = float(defined.std(ddof=1)) if len(defined) > 1 else math.nan
    return Summary(len(defined), _mean(measure, defined), float(np.median(defined)), std)


def _ordered(one: float, other: float) -> tuple[float, float]:
    return (other, one) if other < one else (one, other)
