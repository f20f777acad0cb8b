"""The two sides of a report: now, the evaluation, and before, the run or baseline it is held against, where there is one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from ringtrue.measures import Scores
from ringtrue.records import Hit
from ringtrue.report.records import Report
from ringtrue.report.sentences import comparison_of, primary, same_golden
from ringtrue.run import Evaluation
from ringtrue.verdict import Baseline, Comparison


@dataclass(frozen=True, eq=False)
class Sides:
    """What both sides said, query by query; a side that is not there is None or empty, never a row of zeros."""

    report: Report

    @property
    def now(self) -> Evaluation:
        return self.report.evaluation

    @cached_property
    def comparison(self) -> Comparison | None:
        return comparison_of(self.report)

    @cached_property
    def primary(self) -> str:
        return primary(self.report)

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """The measures, the primary one first."""
        scored = [str(measure) for measure in self.now.scores.measures]
        return (self.primary, *(name for name in scored if name != self.primary))

    @cached_property
    def before(self) -> Evaluation | Baseline | None:
        """The other side: that of the comparison, else what was given; a baseline of another golden set is none."""
        arms = [self.report.other, self.report.baseline if same_golden(self.report) else None]
        given = [arm for arm in arms if arm is not None]
        named = [arm for arm in given if self.comparison and arm.name == self.comparison.a]
        return next(iter(named or given), None)

    @cached_property
    def before_name(self) -> str | None:
        """What the other side is called; None where there is no other side."""
        name = self.before.name if self.before else self.comparison.a if self.comparison else None
        return f"{name} (before)" if name == self.now.name else name

    @cached_property
    def before_scores(self) -> Scores | None:
        """The other side's scores, with this side's facts for slices."""
        return replace(self.before.scores, facts=self.now.scores.facts) if self.before else None

    @cached_property
    def before_values(self) -> Mapping[str, Mapping[str, float]]:
        """query → measure → value of the other side."""
        return self.before_scores.per_query if self.before_scores else {}

    @cached_property
    def before_hits(self) -> Mapping[str, tuple[Hit, ...]] | None:
        """query → hits of the other side; None where its rankings are not known."""
        if isinstance(self.before, Evaluation):
            return {ranking.query_id: ranking.hits for ranking in self.before.rankings if ranking.error is None}
        if self.before is not None and self.before.rankings:
            return {query: tuple(map(Hit, docs)) for query, docs in self.before.rankings.items()}
        return None

    @cached_property
    def times(self) -> tuple[list[float], list[float]]:
        """Return the milliseconds of all timed answers: now, and of the other side."""
        before = self.before.timings if self.before else {}
        return list(chain.from_iterable(self.now.timings.values())), list(chain.from_iterable(before.values()))

    @cached_property
    def same_machine(self) -> bool:
        """Return whether latencies of both sides were measured on the same kind of machine."""
        if self.comparison and self.comparison.latency:
            return self.comparison.latency.comparable
        before = self.before.setup if isinstance(self.before, Evaluation) else self.before
        return before is not None and bool(before.machine) and before.machine == self.now.setup.machine

    def before_mean(self, measure: str) -> float:
        """Return the other side's mean; nan where it is not known."""
        if self.comparison is not None and measure in self.comparison.measures:
            return self.comparison.measures[measure].a
        return self.before_scores.aggregate.get(measure, math.nan) if self.before_scores else math.nan

    def delta(self, query_id: str, measure: str) -> float:
        """Return now − before of one query; nan where either side has no value."""
        now = self.now.scores.per_query.get(query_id, {}).get(measure, math.nan)
        return now - self.before_values.get(query_id, {}).get(measure, math.nan)

    @cached_property
    def cutoff(self) -> int:
        """The k at which documents count as lost: that of the losses, else 10."""
        ks = Counter(loss.k for loss in self.now.losses)
        return ks.most_common(1)[0][0] if ks else min(10, self.now.setup.k)
