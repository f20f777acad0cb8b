"""The two sides of a report: now, the evaluation, and before, the run or baseline it is held against, if there is one.

The page's script reads them as arrays over shared lists of names: document ids and titles appear once and are numbered, so
that 5,000 queries with ten hits on either side stay a few megabytes. ``report.js`` reads the arrays by position; ``QUERY`` says
which is which.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

from ringtrue.golden import slice_of
from ringtrue.measures import Scores
from ringtrue.records import Hit, Query
from ringtrue.report.formatting import beside_id
from ringtrue.report.records import Report
from ringtrue.report.sentences import comparison_of, lower_is_better, primary, same_golden
from ringtrue.report.tables import STAGES, WHY_LOST
from ringtrue.run import Evaluation, Loss
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
        """What the other side is called; None if there is no other side."""
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
        """query → hits of the other side; None if its rankings are not known."""
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
        """Return the other side's mean; nan if it is not known."""
        if self.comparison is not None and measure in self.comparison.measures:
            return self.comparison.measures[measure].a
        return self.before_scores.aggregate.get(measure, math.nan) if self.before_scores else math.nan

    def delta(self, query_id: str, measure: str) -> float:
        """Return now − before of one query; nan if either side has no value."""
        now = self.now.scores.per_query.get(query_id, {}).get(measure, math.nan)
        return now - self.before_values.get(query_id, {}).get(measure, math.nan)

    @cached_property
    def cutoff(self) -> int:
        """The k at which documents count as lost: that of the losses, else 10."""
        ks = Counter(loss.k for loss in self.now.losses)
        return ks.most_common(1)[0][0] if ks else min(10, self.now.setup.k)


# ── what the page's script reads ─────────────────────────────────────────────────────────────────────────────────────


QUERY = ("id", "text", "slices", "now", "before", "ms", "msBefore", "error", "hits", "hitsBefore", "grades", "missing", "lost")
MANY = 1000
"""From so many queries on, fewer hits of each are embedded."""
LONGEST_TEXT = 600
LONGEST_TITLE = 200
MOST_MISSING = 30


class Names(dict[str, int]):
    """Names by number, in the order of their first use."""

    def __call__(self, name: str) -> int:
        return self.setdefault(name, len(self))


def depth(sides: Sides) -> int:
    """Return how many hits of each answer the page holds."""
    return 10 if len(sides.now.queries) > MANY else 20


def script_data(sides: Sides) -> dict[str, Any]:
    """Return the data of the page's script."""
    docs, steps = Names(), Names()
    fields = sides.now.setup.golden.slices
    values = [Names() for _ in fields]
    losses: dict[str, list[Loss]] = {}
    for loss in sides.now.losses:
        if loss.k == sides.cutoff:
            losses.setdefault(loss.query_id, []).append(loss)
    other = sides.report.other.titles if sides.report.other else {}
    rows = [_query(sides, query, docs, steps, values, losses.get(query.query_id, [])) for query in sides.now.queries]
    return {
        "measures": sides.measures,
        "lower": [int(lower_is_better(name)) for name in sides.measures],
        "names": [sides.now.name, sides.before_name],
        "rankings": sides.before_hits is not None,
        "fields": fields,
        "values": [list(names) for names in values],
        "docs": list(docs),
        "titles": [_short(sides.now.titles.get(doc, "") or other.get(doc, ""), LONGEST_TITLE) for doc in docs],
        "steps": list(steps),
        "stages": [[stage, WHY_LOST[stage]] for stage in STAGES],
        "k": sides.cutoff,
        "depth": depth(sides),
        "threshold": max(1, sides.now.setup.golden.relevance_threshold),
        "top": sides.now.setup.golden.scale[1],
        "queries": rows,
    }


def as_json(value: Any) -> str:
    """Return JSON that is safe within a script element: nothing in it can end the element or a line.

    >>> as_json({"title": "</script><b>"})
    '{"title":"\\\\u003c/script\\\\u003e\\\\u003cb\\\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _query(sides: Sides, query: Query, docs: Names, steps: Names, values: Sequence[Names], losses: Iterable[Loss]) -> list[Any]:
    query_id = query.query_id
    ranking = sides.now.ranking(query_id)
    most = depth(sides)
    hits, hits_before = ranking.hits[:most], (sides.before_hits or {}).get(query_id)
    hits_before = hits_before[:most] if hits_before is not None else None
    fields = sides.now.setup.golden.slices
    now = sides.now.scores.per_query.get(query_id, {})
    before = sides.before_values.get(query_id)
    missing = []
    for loss in sorted(losses, key=lambda loss: -loss.grade):
        trail = (part for name, place in loss.ranks.items() for part in (steps(name), place))
        missing.append([docs(loss.doc_id), loss.grade, STAGES.index(loss.stage), loss.rank or 0, *trail])
    shown = {hit.doc_id for hit in (*hits, *(hits_before or ()))}
    grades = [part for doc, grade in sides.now.grades.get(query_id, {}).items() if doc in shown for part in (docs(doc), grade)]
    return [
        query_id,
        _short(beside_id(query_id, query.text), LONGEST_TEXT),
        [names(slice_of(query, field)) for names, field in zip(values, fields, strict=True)],
        [_round(now.get(name)) for name in sides.measures],
        [_round(before.get(name)) for name in sides.measures] if before is not None else None,
        _round(ranking.latency_ms, 3),
        _round(sides.before.latencies.get(query_id) if sides.before else None, 3),
        ranking.error,
        [_hit(hit, docs, steps) for hit in hits],
        [_hit(hit, docs, steps) for hit in hits_before] if hits_before is not None else None,
        grades,
        missing[:MOST_MISSING],
        len(missing),
    ]


def _hit(hit: Hit, docs: Names, steps: Names) -> Any:
    """A document's number, followed by (step, rank) pairs where they are known."""
    trail = [(stage.name, stage.rank) for stage in hit.stages] or list(hit.channels.items())
    if not trail:
        return docs(hit.doc_id)
    return [docs(hit.doc_id), *(part for name, rank in trail for part in (steps(name), rank))]


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _round(value: float | None, digits: int = 4) -> float | int | None:
    if value is None or not math.isfinite(value):
        return None
    rounded = round(value, digits)
    return int(rounded) if rounded == int(rounded) else rounded
