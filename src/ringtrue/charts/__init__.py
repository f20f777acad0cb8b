"""Charts as SVG for reports and pages: they need no script, and the style sheet knows light and dark.

In: numbers and their names. Out: SVG that says in words what it shows. Colours are classes, never values.
"""

from ringtrue.charts.plots import (
    MOST_POINTS,
    MOST_STRANDS,
    Curve,
    Decision,
    Point,
    Strand,
    course,
    cumulative,
    histogram,
    parallel,
    pareto,
    per_query,
    scatter,
    sequential,
    trend,
)
from ringtrue.charts.rows import axis, bar, bars, interval, ring, shares, sparkline, states, step
from ringtrue.charts.svg import Scale, plain

__all__ = [
    "MOST_POINTS", "MOST_STRANDS", "Curve", "Decision", "Point", "Scale", "Strand", "axis", "bar", "bars", "course",
    "cumulative", "histogram", "interval", "parallel", "pareto", "per_query", "plain", "ring", "scatter", "sequential",
    "shares", "sparkline", "states", "step", "trend",
]  # fmt: skip
