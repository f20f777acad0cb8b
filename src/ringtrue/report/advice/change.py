"""Advice from what a change did."""

from __future__ import annotations

from collections.abc import Iterator

from ringtrue.measures import Measure
from ringtrue.report.formatting import signed
from ringtrue.report.records import Recommendation, Report
from ringtrue.report.sentences import comparison_of
from ringtrue.verdict import Comparison, MeasureComparison


def threshold(report: Report) -> Iterator[Recommendation]:
    """Precision fell while recall rose: more documents get in than before, good and bad."""
    comparison = comparison_of(report)
    if comparison is None:
        return
    fell = [found for found in _named(comparison, "P", "SetP") if found.high < 0]
    rose = [found for found in _named(comparison, "R") if found.low > 0]
    if fell and rose:
        precision, recall = fell[0], rose[-1]
        yield Recommendation(
            "threshold",
            f"Precision fell ({precision.measure} {signed(precision.diff)}) while recall rose ({recall.measure} "
            f"{signed(recall.diff)}): more is let in, good and bad. Raise the score threshold or return fewer hits (k), "
            "and look at what entered the first ranks.",
            {
                precision.measure: precision.diff,
                f"{precision.measure} high": precision.high,
                recall.measure: recall.diff,
                f"{recall.measure} low": recall.low,
            },
            _fallen(precision),
        )


def _named(comparison: Comparison, *names: str) -> list[MeasureComparison]:
    return [found for found in comparison.measures.values() if Measure.parse(found.measure).definition.name in names]


def _fallen(found: MeasureComparison) -> tuple[str, ...]:
    fell = [query_id for query_id, delta in found.deltas.items() if delta < 0]
    return tuple(sorted(fell, key=lambda query_id: found.deltas[query_id])[:10])
