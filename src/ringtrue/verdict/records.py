"""Comparisons and verdicts as frozen values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from ringtrue.brief import brief
from ringtrue.errors import OK, REGRESSION, UNDECIDED
from ringtrue.measures import Counted, Measure, Scores
from ringtrue.run import Origin
from ringtrue.stats import PairedVerdict, Word


class Arm(Protocol):
    """One side of a comparison: an Evaluation, a Baseline, or scores with a name."""

    @property
    def name(self) -> str: ...

    @property
    def scores(self) -> Scores: ...

    @property
    def timings(self) -> Mapping[str, tuple[float, ...]]: ...


@dataclass(frozen=True, kw_only=True)
class MeasureComparison(PairedVerdict):
    """One measure of B against A over paired queries. ``diff`` is b − a as measured; the word knows which way is better."""

    measure: str
    a: float
    b: float
    deltas: Mapping[str, float] = field(default_factory=dict, repr=False)
    """b − a by query."""
    decides: bool = True
    """Whether the measure was asked to decide; the others are for reading, and no correction counts them."""


@dataclass(frozen=True)
class LatencyComparison:
    """Milliseconds of A and B over the same queries."""

    n: int
    mean_diff: float
    low: float
    high: float
    p50: tuple[float, float]
    """(a, b)."""
    p95: tuple[float, float]
    p99: tuple[float, float]
    comparable: bool
    """False if the two were measured on different machines; the figures are then for reading only."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """B against A: is it better?"""

    a: str
    b: str
    primary: str
    """The measure whose word is the verdict."""
    verdict: Word
    reason: str
    measures: Mapping[str, MeasureComparison]
    slices: Mapping[str, Mapping[str, Mapping[str, MeasureComparison]]] = field(default_factory=dict)
    """field → value → measure; explorative: corrected for the values of the field, never part of the verdict."""
    latency: LatencyComparison | None = None
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    """Queries that one side lacks; they take no part."""
    alpha: float = 0.05
    correction: str = "holm"
    resamples: int = 10_000
    seed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def deciding(self) -> tuple[str, ...]:
        """Return the measures that were asked to decide, in their order; the others are for reading."""
        return tuple(name for name, found in self.measures.items() if found.decides)

    def __repr__(self) -> str:
        found = self.measures[self.primary]
        return (
            f"<Comparison of {self.b:.100} against {self.a:.100}: {self.verdict} by {self.primary} "
            f"({found.a:.4f} → {found.b:.4f}, {found.certainty}, {found.n} queries); {len(self.measures)} measures>"
        )


Rule = Literal["floor", "drop", "significant drop", "slice", "latency", "latency increase", "constitutional", "completeness"]
CheckStatus = Literal["pass", "degraded", "fail", "advisory", "undecided"]


@dataclass(frozen=True)
class Check:
    """One rule applied to one number."""

    rule: Rule
    measure: str
    """A measure, or ``p95`` and the like."""
    status: CheckStatus
    message: str
    """One sentence with measure, current value, threshold or baseline, and the fall in percent."""
    current: float
    threshold: float | None = None
    baseline: float | None = None
    degradation: float | None = None
    """Fall against the baseline as a share: 0.05 is 5 %; below 0 if it rose."""
    interval: tuple[float, float] | None = None
    slice: str | None = None
    """Like ``query_type=factual``."""
    queries: tuple[str, ...] = ()
    """The queries behind a failure, the guiltiest first."""


@dataclass(frozen=True, repr=False)
class Verdict:
    """What the gate says: 'pass', 'fail' or 'undecided', with every check."""

    word: Literal["pass", "fail", "undecided"]
    checks: tuple[Check, ...]
    name: str
    """The evaluation that was judged."""
    baseline: str | None = None
    """Version of the baseline."""
    comparison: Comparison | None = None
    mode: str = "relative"
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 pass, 1 regression, 3 could not decide."""
        return {"pass": OK, "fail": REGRESSION, "undecided": UNDECIDED}[self.word]

    @property
    def failures(self) -> tuple[Check, ...]:
        """Return the checks that failed."""
        return self.of_status("fail")

    def of_status(self, status: CheckStatus) -> tuple[Check, ...]:
        """Return the checks with one status, in their order."""
        return tuple(check for check in self.checks if check.status == status)

    def __repr__(self) -> str:
        against = f"against baseline {self.baseline:.40}" if self.baseline else "without a baseline"
        shown = [f"  {check.status}: {check.message:.200}" for check in (*self.failures, *self.of_status("undecided"))]
        more = [f"  and {len(shown) - 5} more"] if len(shown) > 5 else []
        return "\n".join(
            [f"<Verdict on {self.name:.100} {against}: {self.word}, {len(self.checks)} checks>", *shown[:5], *more]
        )


@dataclass(frozen=True, eq=False)
class Baseline:
    """What is held to be good enough, recorded in a file in git. An Arm like an Evaluation."""

    version: str
    """Of the baseline itself, like 1.0.0; raised by every update."""
    retriever: str
    config: Mapping[str, Any]
    fingerprint: str
    golden: Origin
    corpus: str | None
    recorded_at: str
    machine: str
    metrics: Mapping[str, float]
    latency: Mapping[str, float]
    """p50, p95 and p99 in milliseconds; empty if none was measured."""
    per_query: Mapping[str, Mapping[str, float]] = field(repr=False)
    """query → measure → value; nan if undefined."""
    latencies: Mapping[str, float] = field(default_factory=dict, repr=False)
    repeats: Mapping[str, tuple[float, ...]] = field(default_factory=dict, repr=False)
    """Milliseconds of every pass over the queries after the first, by query."""
    rankings: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """The first ten documents by query, to say what was lost."""
    workers: int = 1
    """Questions asked at once when the latencies were measured."""
    reason: str = ""
    """Why a worse run was accepted, when it was (``--force --reason``)."""

    def __repr__(self) -> str:
        made = {"retriever": self.retriever, "golden": self.golden.version, "recorded_at": self.recorded_at}
        return brief(self, version=self.version, **made, queries=len(self.per_query), metrics=self.metrics)

    @property
    def name(self) -> str:
        return f"baseline {self.version}"

    @cached_property
    def timings(self) -> dict[str, tuple[float, ...]]:
        """Return the milliseconds of every pass by query; empty if the file holds no times of single queries."""
        return {query: (first, *self.repeats.get(query, ())) for query, first in self.latencies.items()}

    @cached_property
    def scores(self) -> Scores:
        """The values per query as a table, like those of an evaluation."""
        measures = tuple(Measure.parse(name) for name in self.metrics)
        rows = [[self.per_query[query].get(str(measure), math.nan) for query in self.per_query] for measure in measures]
        values = np.asarray(rows, np.float64).reshape(len(measures), len(self.per_query))
        judged = np.full(len(self.per_query), np.nan)
        counted = Counted(len(self.per_query), rel=self.golden.relevance_threshold)
        return Scores(measures, tuple(self.per_query), values, counted, judged)
